"""Widget 5 moved from Python: its numbers are those of random_projections.py, and n does not matter."""

import pytest
import torch
from moves import report_moves

from linformer_from_scratch.random_projections import failure_bound, needed_dim
from linformer_from_scratch.widgets import JLExplorer
from linformer_from_scratch.widgets.jl_explorer import LARGEST, SAMPLES, squares


def state(widget):
    return widget.picture.value, widget.words


def test_the_distortions_are_those_of_a_gaussian_projection():
    y = squares(256, 0)
    assert y.shape == (SAMPLES, LARGEST)
    assert y.mean() == pytest.approx(1, abs=0.02)  # mean of a squared normal number
    assert y.var() == pytest.approx(2, rel=0.1)
    explorer = JLExplorer()
    explorer.proj_dim.value = 16
    by_hand = squares(explorer.n.value, 0)[:, :16].mean(dim=-1) - 1
    assert torch.equal(explorer.distortions, by_hand)
    outside = (by_hand <= -explorer.epsilon.value) | (by_hand >= explorer.epsilon.value)
    assert explorer.outside == pytest.approx(outside.double().mean().item())


def test_the_bound_and_the_needed_k_are_those_of_the_lemma():
    explorer = JLExplorer()
    explorer.proj_dim.value, explorer.epsilon.value, explorer.vectors.value = 256, 0.5, 10**5
    assert explorer.bound == failure_bound(256, 0.5)
    assert explorer.needed == needed_dim(10**5, 0.5)
    assert f"k = {explorer.needed}" in explorer.words
    assert explorer.outside <= explorer.bound


@pytest.mark.parametrize("proj_dim", [16, 64, 256])
def test_the_spread_follows_k_whatever_n(proj_dim):
    explorer = JLExplorer()
    explorer.proj_dim.value = proj_dim
    for _, n in explorer.n.options:
        explorer.n.value = n
        if n > 2 * proj_dim:
            assert explorer.distortions.std() == pytest.approx((2 / proj_dim) ** 0.5, rel=0.25)


def test_a_bound_above_one_is_said_to_say_nothing():
    explorer = JLExplorer()
    explorer.epsilon.value = 0.1
    assert "which says nothing" in explorer.words
    explorer.proj_dim.value, explorer.epsilon.value = 512, 0.5
    assert "which says nothing" not in explorer.words


def test_it_says_whether_fewer_slots_than_numbers_are_asked_for():
    explorer = JLExplorer()
    explorer.n.value, explorer.epsilon.value = 4096, 0.5
    assert "fewer than the n = 4,096" in explorer.words and "not fewer" not in explorer.words
    explorer.n.value = 64
    assert "not fewer than the n = 64" in explorer.words


def test_every_control_changes_its_own_picture_and_numbers_only():
    explorer, twin = JLExplorer(), JLExplorer()
    untouched = state(twin)
    moves = {"proj_dim": 128, "n": 512, "epsilon": 0.5, "vectors": 10, "seed": 3}
    assert len(moves) == len(explorer.children[0].children)
    for name, value in moves.items():
        before = state(explorer)
        getattr(explorer, name).value = value
        picture, words = state(explorer)
        assert picture != before[0], name
        assert words != before[1], name
    assert state(twin) == untouched


def test_a_notebook_in_double_precision_shows_the_same():
    explorer = JLExplorer()
    squares.cache_clear()
    torch.set_default_dtype(torch.float64)
    try:
        assert state(JLExplorer()) == state(explorer)
    finally:
        torch.set_default_dtype(torch.float32)


def test_report_of_milliseconds_a_move(record_property):
    explorer = JLExplorer()
    values = [value for _, value in explorer.proj_dim.options * 3]
    report_moves(record_property, "JLExplorer", explorer, explorer.proj_dim, values)
