"""low_rank.py, against its theorems in float64 and spectra known by hand."""

import math

import pytest
import torch
from refusals import refusing
from torch.testing import assert_close

from linformer_from_scratch import low_rank
from linformer_from_scratch.low_rank import best_rank, random_head, rank_at, shuffled_rows, singular_values

HEADS, N, M = 3, 7, 5
BY_HAND = torch.tensor([3.0, 2.0, 1.0, 0.0])


@pytest.fixture
def maps():
    return torch.randn(HEADS, N, M, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("rank", range(M + 1))
def test_the_errors_of_the_best_map_are_those_of_the_theorem(maps, rank):
    difference, sigma = maps - best_rank(maps, rank), singular_values(maps)
    for error, order in ((low_rank.frobenius_error, "fro"), (low_rank.spectral_error, 2)):
        assert_close(torch.linalg.matrix_norm(difference, order), error(sigma, rank), atol=1e-12, rtol=0)
    assert (torch.linalg.matrix_rank(best_rank(maps, rank)) == rank).all()


def test_all_pieces_make_the_map_and_none_makes_zero(maps):
    assert_close(best_rank(maps, M), maps)
    assert torch.equal(best_rank(maps, 0), torch.zeros_like(maps))
    assert_close(low_rank.rebuild(*low_rank.decompose(maps), 2), best_rank(maps, 2))
    assert [part.shape for part in low_rank.decompose(maps)] == [(HEADS, N, M), (HEADS, M), (HEADS, M, M)]


@pytest.mark.parametrize(
    "function",
    [
        lambda maps: best_rank(maps, 2),
        singular_values,
        lambda maps: low_rank.frobenius_error(singular_values(maps), 2),
        lambda maps: low_rank.spectral_error(singular_values(maps), 2),
        lambda maps: low_rank.cumulative_spectrum(singular_values(maps)),
        lambda maps: rank_at(singular_values(maps), 0.7),
        lambda maps: low_rank.stable_rank(singular_values(maps)),
        lambda maps: low_rank.entropy_rank(singular_values(maps)),
    ],
)
def test_many_maps_at_once_are_each_treated_alone(maps, function):
    before = maps.clone()
    together = function(maps[None])  # layers, heads
    assert_close(together[0], torch.stack([function(one) for one in maps]))
    assert torch.equal(maps, before)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_decomposed_in_float32(dtype):
    halves = low_rank.softmax_map(11, torch.Generator().manual_seed(0)).to(dtype)
    exact = singular_values(halves.double())
    near = {"atol": 4 * torch.finfo(dtype).eps, "rtol": 0, "check_dtype": False}
    assert singular_values(halves).dtype == best_rank(halves, 3).dtype == dtype
    assert_close(singular_values(halves), exact.to(dtype), **near)
    assert_close(best_rank(halves, 3), best_rank(halves.double(), 3).to(dtype), **near)
    assert_close(low_rank.rebuild(*low_rank.decompose(halves), 11), halves, **near)
    assert random_head(halves, 4, torch.Generator().manual_seed(0)).dtype == dtype


def test_ranks_by_hand():
    assert low_rank.cumulative_spectrum(BY_HAND).tolist() == pytest.approx([3 / 6, 5 / 6, 1, 1])
    assert [rank_at(BY_HAND, share).item() for share in (0.1, 0.5, 0.51, 0.84, 1)] == [1, 1, 2, 3, 3]
    assert rank_at(torch.tensor([8.8, 0.8, 0.4])) == 2  # nine tenths, unless another share is asked for
    assert low_rank.stable_rank(BY_HAND) == pytest.approx(14 / 9)
    entropy = math.log(2) / 2 + math.log(3) / 3 + math.log(6) / 6
    assert low_rank.entropy_rank(BY_HAND) == pytest.approx(math.exp(entropy))


def test_a_share_of_all_is_reached_in_spite_of_rounding():
    drawn = torch.rand(50, 301, generator=torch.Generator().manual_seed(2))
    sigma = drawn.sort(descending=True).values + 1e-3
    assert (sigma.cumsum(-1) / sigma.sum(-1, keepdim=True) < 1).all(dim=-1).any()  # rounded below one
    assert rank_at(sigma, 1.0).max() <= 301


@pytest.mark.parametrize("name", low_rank.BASELINES)
def test_baselines_are_square_and_follow_their_generator(name):
    make = low_rank.BASELINES[name]
    first, same, other = (make(13, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert first.shape == (13, 13) and torch.equal(first, same)
    assert torch.equal(first, other) is (name == "identity")
    if name != "Gaussian":
        assert_close(first.sum(dim=-1), torch.ones(13))
        assert first.min() >= 0
    else:
        assert first.mean().abs() < 4 / 13 and first.std() == pytest.approx(1, rel=0.2)


def test_a_random_softmax_sharpens_with_the_spread_of_its_scores():
    even, sharp = (low_rank.softmax_map(50, torch.Generator().manual_seed(0), std) for std in (0.01, 10))
    assert even.max() < 1.1 / 50 and sharp.max(dim=-1).values.mean() > 0.8


def test_shuffled_rows_keep_their_weights_and_share_no_order(maps):
    shuffled = shuffled_rows(maps, torch.Generator().manual_seed(0))
    assert torch.equal(shuffled.sort(dim=-1).values, maps.sort(dim=-1).values)
    same = torch.arange(100.0).repeat(HEADS, N, 1)  # all rows alike: rank one before, and not after
    rows = shuffled_rows(same, torch.Generator().manual_seed(0)).flatten(0, 1)
    assert len(rows.unique(dim=0)) == HEADS * N
    assert torch.equal(shuffled_rows(maps, torch.Generator().manual_seed(0)), shuffled)
    assert not torch.equal(shuffled_rows(maps, torch.Generator().manual_seed(1)), shuffled)


def test_every_place_is_as_likely_for_the_heaviest_weight():
    one_hot = torch.eye(8)[:1].expand(4000, 8)
    share = shuffled_rows(one_hot, torch.Generator().manual_seed(0)).mean(dim=0)
    assert (share - 1 / 8).abs().max() < 4 * math.sqrt(1 / 8 * 7 / 8 / 4000)


def test_the_spread_of_scores_leaves_out_what_the_softmax_forgets():
    scores = torch.tensor([[1.0, 3.0], [10.0, 14.0]])  # off their means by 1, 1, 2, 2
    assert low_rank.score_spread(scores) == pytest.approx(math.sqrt(2.5))
    assert low_rank.score_spread(scores + torch.tensor([[5.0], [-7.0]])) == pytest.approx(math.sqrt(2.5))


def test_a_random_head_spreads_its_scores_as_far_as_the_given_one(maps):
    scores = torch.tensor([0.1, 1.0, 3.0], dtype=maps.dtype)[:, None, None] * maps
    drawn = random_head(scores, 2, torch.Generator().manual_seed(0))
    assert_close(drawn.sum(dim=-1), torch.ones(HEADS, N, dtype=maps.dtype))
    spread = low_rank.score_spread(scores)
    assert_close(low_rank.score_spread(drawn.log()), spread)  # log P is the scores minus a constant
    centred = drawn.log() - drawn.log().mean(dim=-1, keepdim=True)
    assert (torch.linalg.matrix_rank(centred, rtol=1e-5) == 2).all()  # of d_head, as QKᵀ is
    assert not torch.equal(drawn, random_head(scores, 2, torch.Generator().manual_seed(1)))


BAD = torch.tensor([[1.0, math.nan], [math.inf, 1.0]])


test_what_is_no_map_no_rank_and_no_share_is_refused = refusing(
    (lambda: singular_values(torch.ones(3)), r"torch\.float32 \(3,\), expected a floating-point tensor"),
    (lambda: low_rank.decompose(torch.ones(3, 3).long()), r"torch\.int64 \(3, 3\)"),
    (lambda: singular_values([[1.0]]), "maps are list"),
    (lambda: best_rank(torch.ones(0, 3), 1), r"\(0, 3\), expected at least 1 row"),
    (lambda: best_rank(BAD, 1), "2 numbers that are NaN or infinite, expected 0"),
    (lambda: shuffled_rows(BAD, torch.Generator()), "2 numbers that are NaN or infinite, expected 0"),
    (lambda: random_head(BAD, 2, torch.Generator()), "2 numbers that are NaN or infinite, expected 0"),
    (lambda: random_head(torch.ones(2, 2), 0, torch.Generator()), "d_head is 0, expected an integer of"),
    (lambda: best_rank(torch.ones(3, 2), 3), "rank is 3, expected an integer in 0 … 2"),
    (lambda: low_rank.frobenius_error(BY_HAND, -1), "rank is -1, expected an integer in 0 … 4"),
    (lambda: low_rank.spectral_error(BY_HAND, 5), "rank is 5, expected an integer in 0 … 4"),
    (lambda: rank_at(BY_HAND, 1.01), r"share is 1.01, expected a number in \(0, 1\]"),
)
