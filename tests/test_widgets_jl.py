"""Widget 5 in Python: its numbers are those of random_projections.py, and n does not matter."""

import math

import pytest
import torch
from traitlets import TraitError

from linformer_from_scratch.random_projections import failure_bound, gaussian_projection, needed_dim
from linformer_from_scratch.widgets import JLExplorer, jl_explorer
from linformer_from_scratch.widgets.jl_explorer import (
    BINS,
    CURVE,
    DIMS,
    LENGTHS,
    NUMBERS,
    REACH,
    SAMPLES,
    SEEDS,
)


def test_the_distortions_are_those_of_a_gaussian_projection():
    y = jl_explorer.squares(256, 0)
    assert y.shape == (SAMPLES, DIMS[-1])
    assert y.mean() == pytest.approx(1, abs=0.02)  # mean of a squared normal number
    assert y.var() == pytest.approx(2, rel=0.1)
    explorer = JLExplorer(n=256, proj_dim=16)
    by_hand = y[:, :16].mean(dim=-1) - 1
    assert (explorer.distortions - by_hand).abs().max() < 1e-3  # float16
    assert explorer.outside == pytest.approx((by_hand.abs() >= 0.3).double().mean().item(), abs=0.005)


def test_one_vector_by_hand():
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(SAMPLES, 64, generator=generator)
    R = gaussian_projection(DIMS[-1], 64, generator)[:8] * math.sqrt(DIMS[-1] / 8)  # entries N(0, 1/8)
    off = (R @ x[7]).square().sum() / x[7].square().sum() - 1
    assert JLExplorer(n=64, seed=3, proj_dim=8).distortions[7] == pytest.approx(off.item(), abs=1e-3)


@pytest.mark.parametrize("proj_dim", [16, 64, 256])
def test_the_spread_follows_k_whatever_n(proj_dim):
    for n in LENGTHS:
        if n > 2 * proj_dim:
            spread = JLExplorer(proj_dim=proj_dim, n=n).distortions.std()
            assert spread == pytest.approx((2 / proj_dim) ** 0.5, rel=0.25)


@pytest.mark.parametrize("proj_dim", DIMS)
def test_the_histogram_counts_every_vector_and_lies_around_the_curve(proj_dim):
    explorer = JLExplorer(proj_dim=proj_dim)
    assert explorer.counts.sum() == SAMPLES
    assert explorer.counts[BINS // 2 :].sum() == (explorer.distortions >= 0).sum()
    beyond = explorer.distortions >= REACH - 2 * REACH / BINS
    assert explorer.counts[-1] == beyond.sum() and beyond.any() == (proj_dim <= 16)
    width = (CURVE[1] - CURVE[0]).item()
    assert (explorer.expected.sum() * width / (2 * REACH / BINS)).item() == pytest.approx(SAMPLES, rel=0.1)
    middles = explorer.expected[2::4]  # of the bins
    assert (explorer.counts - middles).abs().max() < 5 * middles.max().sqrt()
    assert explorer.expected[CURVE <= -1].max() == 0


def test_the_bounds_and_the_needed_k_are_those_of_the_lemma():
    explorer = JLExplorer(proj_dim=256, epsilon=0.5, vectors=10**5)
    assert explorer.bound == failure_bound(256, 0.5) == explorer.bounds[DIMS.index(256)]
    assert explorer.needed == needed_dim(10**5, 0.5) == explorer.asked[NUMBERS.index(10**5)]
    assert f"k = {explorer.needed}" in explorer.words
    assert explorer.outside <= explorer.bound


def test_the_bound_holds_for_every_throw():
    for seed in range(SEEDS):
        explorer = JLExplorer(seed=seed)
        assert all(share <= bound for share, bound in zip(explorer.shares, explorer.bounds, strict=True))


def test_a_bound_above_one_is_said_to_say_nothing():
    assert "which says nothing" in JLExplorer(epsilon=0.1).words
    assert "which says nothing" not in JLExplorer(proj_dim=512, epsilon=0.5).words


def test_it_says_whether_fewer_slots_than_numbers_are_asked_for():
    words = JLExplorer(n=4096, epsilon=0.5).words
    assert "fewer than the n = 4,096" in words and "not fewer" not in words
    assert "not fewer than the n = 64" in JLExplorer(n=64, epsilon=0.5).words


def test_a_move_that_is_not_possible_says_so():
    for wrong in ({"proj_dim": 65}, {"epsilon": 1.0}, {"seed": SEEDS}):
        with pytest.raises(TraitError):
            JLExplorer(**wrong)


def test_a_notebook_in_double_precision_shows_the_same():
    words = JLExplorer(seed=5).words
    jl_explorer.thrown.cache_clear()
    torch.set_default_dtype(torch.float64)
    try:
        assert JLExplorer(seed=5).words == words
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_still_is_drawn_from_the_same_numbers():
    explorer = JLExplorer()
    histogram, tails, needed = explorer.figure().axes
    assert sum(bar.get_height() for bar in histogram.patches) == SAMPLES
    assert list(tails.lines[2].get_ydata()) == explorer.shares
    assert list(needed.lines[0].get_ydata()) == explorer.asked
