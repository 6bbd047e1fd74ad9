"""Widgets 3 and 4 moved from Python: their numbers are those of low_rank.py, the picture follows."""

import pytest
import torch
from moves import report_moves
from torch.testing import assert_close

from linformer_from_scratch import pretrained
from linformer_from_scratch.data import documents
from linformer_from_scratch.pretrained import attention_maps
from linformer_from_scratch.widgets import RankSlider, rank_slider
from linformer_from_scratch.widgets.rank_slider import PERIOD, PRESETS, REAL, preset_scores

BOTH = pytest.mark.parametrize("widget_class", [RankSlider])
N = rank_slider.N


def state(widget):
    return widget.picture.value, widget.words


@BOTH
def test_every_control_changes_its_own_picture_and_numbers_only(widget_class):
    widget, twin = widget_class(), widget_class()
    untouched = state(twin)
    assert state(widget) == untouched
    moves = {"layer": 4, "head": 2}
    if widget_class is RankSlider:
        moves |= {"rank": 3, "temperature": 0.5, "preset": PRESETS[1]}
    else:
        moves |= {"share": 0.75, "text": widget.text.options[3]}
    assert len(moves) == len(widget.children[0].children)
    for name, value in moves.items():
        before = state(widget)
        getattr(widget, name).value = value
        picture, words = state(widget)
        assert picture != before[0], name
        assert words != before[1], name
    assert state(twin) == untouched


@BOTH
def test_a_control_moved_back_shows_what_it_showed(widget_class):
    widget = widget_class()
    before = state(widget)
    widget.head.value, old = 7, widget.head.value
    widget.head.value = old
    assert state(widget) == before


@BOTH
def test_without_the_pretrained_model_one_sentence_says_so(widget_class, monkeypatch):
    monkeypatch.setattr(pretrained.weights, "model_folder", lambda: None)
    pretrained.tokens.tokenizer.cache_clear()
    pretrained.tokens.vocabulary.cache_clear()
    rank_slider.real_maps.cache_clear()
    assert "needs the pretrained model" in widget_class().words


def test_without_the_pretrained_model_the_other_maps_still_show(monkeypatch):
    monkeypatch.setattr(rank_slider, "real_maps", rank_slider.real_maps.__wrapped__)
    monkeypatch.setattr(rank_slider, "attention_maps", raise_missing)
    slider = RankSlider()
    assert "needs the pretrained model" in slider.words
    slider.preset.value = PRESETS[2]
    assert "Rank 8 of 128" in slider.words


def raise_missing(*_):
    raise pretrained.PretrainedMissing("not installed")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("rank", [1, 17, N])
def test_the_measured_errors_are_those_of_eckart_young_and_mirsky(preset, rank):
    slider = RankSlider()
    slider.preset.value, slider.rank.value = preset, rank
    sigma = torch.linalg.svdvals(slider.P)
    frobenius = sigma[rank:].square().sum().sqrt()
    spectral = sigma[rank] if rank < N else torch.tensor(0.0)
    assert slider.error == pytest.approx((frobenius.item(), spectral.item()), abs=1e-4)
    assert torch.linalg.matrix_rank(slider.rebuilt, rtol=1e-5) <= rank
    assert f"Frobenius error {slider.error[0]:.4f}" in slider.words


def test_the_slider_opens_on_a_real_head_and_layer_and_head_choose_the_models_map():
    slider = RankSlider()
    assert slider.preset.value == REAL
    text = next(text for text in documents().values() if len(text) > 8 * N)
    slider.layer.value, slider.head.value = 2, 9
    assert_close(slider.P, attention_maps(text, N).weights[1, 8], atol=1e-5, rtol=0)


def test_the_presets_are_what_they_are_called():
    local = preset_scores(PRESETS[2], 0, 0).softmax(dim=-1)
    assert (local.argmax(dim=-1) == torch.arange(N)).all()
    assert local[60, 57:64].sum() > 0.8
    induction = preset_scores(PRESETS[3], 0, 0).softmax(dim=-1)
    late = torch.arange(PERIOD, N)
    assert (induction.argmax(dim=-1)[late] == late - PERIOD + 1).all()
    assert induction[0].max() == pytest.approx(1 / N)  # nothing to repeat yet


def test_cold_maps_of_a_random_softmax_are_of_higher_rank_than_hot_ones():
    slider = RankSlider()
    slider.preset.value = PRESETS[1]
    ranks = []
    for temperature in (10, 1, 0.3):
        slider.temperature.value = temperature
        ranks.append((slider.sigma.square().sum() / slider.sigma[0] ** 2).item())
    assert ranks == sorted(ranks)
    assert ranks[0] < 1.1 < 10 < ranks[-1]


def test_the_decomposition_is_done_once_a_map(monkeypatch):
    slider = RankSlider()
    monkeypatch.setattr(rank_slider, "decompose", pytest.fail)
    slider.rank.value = 30
    assert "Rank 30 of 128" in slider.words


@BOTH
def test_report_of_milliseconds_a_move(widget_class, record_property):
    widget, there_and_back = widget_class(), [*range(2, 13), *range(11, 0, -1)]
    report_moves(record_property, widget_class.__name__, widget, widget.head, there_and_back)
