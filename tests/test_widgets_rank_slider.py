"""The rank slider: its numbers are those of low_rank.py, its maps those of the model and of their names."""

import pytest
import torch
from torch.testing import assert_close

from linformer_from_scratch.course.widgets import RankSlider
from linformer_from_scratch.course.widgets.rank_slider import PERIOD, PRESETS, N, scores
from linformer_from_scratch.pretrained import STORY, attention_maps


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("rank", [1, 17, N])
def test_the_measured_errors_are_those_of_eckart_young_and_mirsky(preset, rank):
    slider = RankSlider(preset=preset, rank=rank)
    sigma = torch.linalg.svdvals(slider.P)
    frobenius = sigma[rank:].square().sum().sqrt()
    spectral = sigma[rank] if rank < N else torch.tensor(0.0)
    assert slider.error == pytest.approx((frobenius.item(), spectral.item()), abs=1e-8)
    assert torch.linalg.matrix_rank(slider.rebuilt, rtol=1e-9) <= rank
    assert f"Frobenius error {slider.error[0]:.4f}" in slider.words


def test_the_slider_opens_on_a_real_head_and_layer_and_head_choose_the_models_map():
    slider = RankSlider()
    assert slider.preset == "head"
    slider.layer, slider.head = 2, 9
    maps = attention_maps(STORY)
    assert slider.facts["tokens"][""] == maps.tokens
    assert_close(slider.P.float(), maps.weights[1, 8], atol=5e-3, rtol=0)  # queries and keys in float16


def test_shuffling_keeps_the_weights_of_every_row_and_nothing_of_their_order():
    real, shuffled = RankSlider(), RankSlider(preset="shuffled")
    assert_close(real.P.sort(dim=-1).values, shuffled.P.sort(dim=-1).values)
    assert (real.P.argmax(dim=-1) == shuffled.P.argmax(dim=-1)).double().mean() < 0.2


def test_the_presets_are_what_they_are_called():
    local = scores("local", 1, 1).softmax(dim=-1)
    assert (local.argmax(dim=-1) == torch.arange(N)).all()
    assert local[60, 57:64].sum() > 0.8
    induction = scores("induction", 1, 1).softmax(dim=-1)
    late = torch.arange(PERIOD, N)
    assert (induction.argmax(dim=-1)[late] == late - PERIOD + 1).all()
    assert induction[0].max() == pytest.approx(1 / N)  # nothing to repeat yet
