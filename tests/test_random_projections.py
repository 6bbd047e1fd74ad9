"""random_projections.py, against the lemma's statements and the theorems' arithmetic."""

import math

import pytest
import torch
from refusals import refusing
from torch.testing import assert_close

from linformer_from_scratch import random_projections as rp
from linformer_from_scratch.random_projections import failure_bound, gaussian_projection, theorem_2_dims

D = torch.float64


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_entries_are_normal_with_variance_one_over_k():
    R = gaussian_projection(50, 4000, generator(), D)
    assert R.mean().abs() < 4 / math.sqrt(50 * R.numel())  # four standard errors
    assert R.var() == pytest.approx(1 / 50, rel=4 * math.sqrt(2 / R.numel()))
    kurtosis = (R * math.sqrt(50)).pow(4).mean()
    assert kurtosis == pytest.approx(3, abs=4 * math.sqrt(96 / R.numel()))


def test_shape_precision_and_seed_of_a_projection():
    R = gaussian_projection(3, 7, generator())
    assert (R.shape, R.dtype, R.device) == ((3, 7), torch.float32, torch.device("cpu"))
    assert torch.equal(R, gaussian_projection(3, 7, generator()))
    assert not torch.equal(R, gaussian_projection(3, 7, generator(1)))
    assert gaussian_projection(3, 7, dtype=D).dtype == D
    assert gaussian_projection(1, 1).shape == (1, 1)


def test_distortion_by_hand():
    R = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 4.0]])
    assert rp.distortion(x, R).tolist() == pytest.approx([0, 3, (9 + 64) / 25 - 1])


def test_the_bound_by_hand():
    assert failure_bound(100, 0.5) == pytest.approx(2 * math.exp(-0.125 * 25))
    assert failure_bound(100, 0.5, vectors=7) == pytest.approx(7 * failure_bound(100, 0.5))


@pytest.mark.parametrize("vectors, epsilon, failure", [(1, 0.5, 0.5), (1000, 0.3, 0.01), (10**6, 0.1, 0.5)])
def test_the_needed_k_is_the_smallest_that_the_bound_allows(vectors, epsilon, failure):
    k = rp.needed_dim(vectors, epsilon, failure)
    assert failure_bound(k, epsilon, vectors) <= failure < failure_bound(k - 1, epsilon, vectors)


@pytest.mark.parametrize(
    ("n", "expected"), [(512, [3466, 975, 250]), (4096, [4621, 1300, 333]), (65536, [6162, 1733, 444])]
)
def test_the_k_of_theorem_1(n, expected):
    assert [rp.theorem_1_dim(n, epsilon) for epsilon in (0.1, 0.2, 0.5)] == expected
    for epsilon, k in zip((0.1, 0.2, 0.5), expected, strict=True):
        bound = 2 * n**-0.25
        assert failure_bound(k, epsilon, n) <= bound < failure_bound(k - 1, epsilon, n)


def test_the_branches_of_theorem_2_by_hand():
    without_n, with_n = theorem_2_dims(1000, 16, 0.5)
    assert without_n == pytest.approx(9 * 16 * math.log(16) * 4)
    assert with_n == pytest.approx(5 * math.log(1000) * 4)
    even = math.exp(9 * 3 * math.log(3) / 5)  # where they meet for d = 3: n = 376
    assert 376 < even < 378
    assert theorem_2_dims(376, 3, 0.5)[0] > theorem_2_dims(376, 3, 0.5)[1]
    assert theorem_2_dims(378, 3, 0.5)[0] < theorem_2_dims(378, 3, 0.5)[1]


def test_theorem_1s_map_is_of_rank_k_and_right_on_average():
    P = torch.randn(4, 6, 5, generator=generator(), dtype=D).softmax(dim=-1)
    R = gaussian_projection(2, 5, generator(), D)
    assert_close(rp.theorem_1_map(P, R), torch.einsum("hmn,kn,kj->hmj", P, R, R))
    assert (torch.linalg.matrix_rank(rp.theorem_1_map(P, R)) == 2).all()


def test_theorem_2s_projections_by_hand():
    R = gaussian_projection(3, 5, generator())
    E, F = rp.theorem_2_projections(R, 0.5)
    assert_close(E, 0.5 * R)
    assert_close(F, 0.6065307 * R)


def test_relative_error_by_hand():
    exact = torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    assert rp.relative_error(exact + torch.tensor([0.0, 1.0]), exact).tolist() == pytest.approx([0.2, 0.5])


test_wrong_arguments_get_one_sentence = refusing(
    (lambda: gaussian_projection(0, 5), "proj_dim is 0, expected an integer of at least 1"),
    (lambda: failure_bound(5, 0.5, 0), "vectors is 0, expected an integer of at least 1"),
    (lambda: failure_bound(5, 1), "epsilon is 1, expected a number between 0 and 1"),
    (lambda: rp.needed_dim(5, 0.5, 1), "failure is 1, expected a number between 0 and 1"),
    (lambda: rp.needed_dim(5, 0), "epsilon is 0, expected a number between 0 and 1"),
    (lambda: rp.theorem_1_dim(1, 0.5), "n is 1, expected an integer of at least 2"),
    (lambda: rp.theorem_1_dim(10, math.nan), "epsilon is nan, expected a number between 0 and 1"),
    (lambda: theorem_2_dims(5, 1, 0.5), "d is 1, expected an integer of at least 2"),
    (lambda: theorem_2_dims(5, 5, 1.5), "epsilon is 1.5, expected a number between 0 and 1"),
    (lambda: rp.theorem_2_projections(torch.ones(2, 3), math.inf), "delta is inf"),
    (lambda: rp.distortion(torch.ones(2, 4), torch.ones(2, 3)), "got 4 tokens; R was drawn for n=3"),
    (lambda: rp.theorem_1_map(torch.ones(4, 4), torch.ones(2, 3)), "got 4 tokens; R was drawn for n=3"),
    (lambda: rp.distortion(torch.zeros(2, 3), torch.ones(2, 3)), "a row of x is zero"),
)
