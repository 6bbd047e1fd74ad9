"""Widget 5 in Python: its numbers are those of random_projections.py, and n does not matter."""

import pytest
import torch

from linformer_from_scratch.course.widgets import JLExplorer, jl_explorer
from linformer_from_scratch.course.widgets.jl_explorer import BINS, CURVE, DIMS, NUMBERS, REACH, SAMPLES
from linformer_from_scratch.random_projections import failure_bound, needed_dim


def test_the_distortions_are_those_of_a_gaussian_projection():
    y = jl_explorer.squares(256, 0)
    assert y.shape == (SAMPLES, DIMS[-1])
    assert y.mean() == pytest.approx(1, abs=0.02)  # mean of a squared normal number
    assert y.var() == pytest.approx(2, rel=0.1)
    explorer = JLExplorer(n=256, proj_dim=16)
    by_hand = y[:, :16].mean(dim=-1) - 1
    assert (explorer.distortions - by_hand).abs().max() < 1e-3  # float16
    assert explorer.outside == pytest.approx((by_hand.abs() >= 0.3).double().mean().item(), abs=0.005)


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


def test_the_bound_holds_for_every_projection():
    for seed in range(jl_explorer.SEEDS):
        explorer = JLExplorer(seed=seed)
        assert all(share <= bound for share, bound in zip(explorer.shares, explorer.bounds, strict=True))


def test_a_notebook_in_double_precision_shows_the_same():
    words = JLExplorer(seed=5).words
    jl_explorer.distortions_of.cache_clear()
    torch.set_default_dtype(torch.float64)
    try:
        assert JLExplorer(seed=5).words == words
    finally:
        torch.set_default_dtype(torch.float32)
