"""Widget 4 in Python: its numbers are those of low_rank.py on the model's own maps, for all its texts."""

import pytest
import torch
from torch.testing import assert_close

from linformer_from_scratch.course.widgets import HeadPicker
from linformer_from_scratch.course.widgets.head_picker import BLOCK, N
from linformer_from_scratch.data import documents
from linformer_from_scratch.low_rank import cumulative_spectrum, rank_at, singular_values
from linformer_from_scratch.pretrained import STORY, attention_maps, encode, random_weights, tokenize


def test_the_ranks_are_those_of_the_models_maps():
    maps = attention_maps(documents()["assignment"], N).weights
    assert maps.size(-1) == N
    sigma = singular_values(maps)
    for share in (0.6, 0.9):
        picker = HeadPicker(text="assignment", share=share, layer=5, head=3)
        assert (picker.ranks - rank_at(sigma, share)).abs().max() <= 1  # float16 may move a rank by one
        assert f"Layer 5, head 3: {picker.ranks[4, 2]} of {N}" in picker.words
    assert_close(picker.spectra["this head"], cumulative_spectrum(sigma[4, 2].double()), atol=1e-3, rtol=0)


def test_the_map_says_what_neighbours_read_of_neighbours():
    weights = attention_maps(STORY).weights[3, 1]
    picker = HeadPicker(layer=4, head=2)
    for i, j in ((0, 0), (3, 1), (63, 60)):
        some = weights[BLOCK * i : BLOCK * (i + 1), BLOCK * j : BLOCK * (j + 1)]
        mean = some.sum().item() / BLOCK  # sent as its square root, in steps of 1/255
        assert picker.map[i, j].item() == pytest.approx(mean, abs=4e-3)
    assert_close(picker.map.sum(dim=1), torch.ones(N // BLOCK).double(), atol=0.03, rtol=0)


def test_the_baselines_are_what_they_are_called():
    spectra = HeadPicker().spectra
    assert list(spectra) == ["this head", "untrained", "random softmax", "identity"]
    assert_close(spectra["identity"], torch.linspace(1 / N, 1, N, dtype=torch.float64))
    untrained = encode(tokenize(STORY), random_weights(seed=0)).weights[4, 0]
    sigma = singular_values(untrained).double()
    spectra = HeadPicker(layer=5, head=3).spectra
    assert_close(spectra["untrained"], cumulative_spectrum(sigma), atol=1e-3, rtol=0)
    assert spectra["untrained"][32] > 0.9  # small scores: rank 1 + d_head, nearly
    assert all(spectrum[-1] == pytest.approx(1) for spectrum in spectra.values())
