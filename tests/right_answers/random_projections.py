"""Right and nearly right answers: random_projections."""

import itertools
import math
from decimal import Decimal

import numpy
import torch

from right_answers import right, wrong


@right("5.1")
def scaled_matrix(x, G):
    return x @ (G / len(G) ** 0.5).T


@right("5.1")
def projected_in_numpy(x, G):
    return x.numpy().astype(numpy.float64) @ G.numpy().T / numpy.sqrt(len(G))


@right("5.1")
def projected_in_loops(x, G):
    rows = G.tolist()

    def product(row, v):
        return math.fsum(a * b for a, b in zip(row, v, strict=True)) / math.sqrt(len(rows))

    return [[[product(row, v) for row in rows] for v in sample] for sample in x.tolist()]


@wrong("5.1")
def every_length_kept(x, G):
    """Every single length is kept, not the mean over projections."""
    y = x @ G.T
    return y * x.norm(dim=-1, keepdim=True) / y.norm(dim=-1, keepdim=True)


@right("5.2")
def distorted_norms(x, R):
    return ((x @ R.T).norm(dim=-1) / x.norm(dim=-1)) ** 2 - 1


@right("5.2")
def distorted_in_loops(x, R):
    return [[((R @ v).dot(R @ v) / v.dot(v)).item() - 1 for v in sample] for sample in x]


@right("5.2")
def distorted_difference(x, R):
    before, after = x.square().sum(-1), (x @ R.mT).square().sum(-1)
    return (after - before) / before


@right("5.2")
def distorted_by_a_quadratic_form(x, R):
    x, R = x.double(), R.double()
    form = R.T @ R - torch.eye(R.size(1), dtype=torch.float64)
    return torch.einsum("...i,ij,...j->...", x, form, x) / torch.einsum("...i,...i->...", x, x)


@right("5.3")
def bound_as_a_tensor(proj_dim, epsilon, vectors):
    epsilon = torch.tensor(epsilon, dtype=torch.float64)
    return 2 * vectors * torch.exp(-(epsilon**2 - epsilon**3) * proj_dim / 4)


@right("5.3")
def bound_added_up(proj_dim, epsilon, vectors):
    one = 2 * math.exp((epsilon**3 - epsilon**2) * proj_dim / 4)
    return sum(one for _ in range(vectors))


@right("5.3")
def bound_from_its_logarithm(proj_dim, epsilon, vectors):
    return math.exp(math.log(2 * vectors) - (epsilon**2 - epsilon**3) * proj_dim / 4)


@right("5.3")
def bound_of_three_logarithms(proj_dim, epsilon, vectors):
    return math.exp(math.log(2) + math.log(vectors) - proj_dim * (epsilon - epsilon * epsilon) * epsilon / 4)


@right("5.4")
def dim_as_a_tensor(n, epsilon):
    n = torch.tensor(n, dtype=torch.float64)
    return torch.ceil(5 * n.log() / (epsilon**2 * (1 - epsilon))).int()


@right("5.4")
def dim_by_floor_division(n, epsilon):
    return -int(-5 * math.log(n) // (epsilon**2 - epsilon**3))


@right("5.4")
def dim_in_decimals(n, epsilon):
    epsilon = Decimal(repr(epsilon))
    return math.ceil(5 * Decimal(n).ln() / (epsilon**2 - epsilon**3))


@right("5.4")
def dim_by_counting_up(n, epsilon):
    return next(k for k in itertools.count() if k * (epsilon**2 - epsilon**3) >= 5 * math.log(n))


@right("5.5")
def map_first(P, R, v):
    return P @ (R.T @ R) @ v


@right("5.5")
def mixed_by_einsum(P, R, v):
    return torch.einsum("mn,kn,kj,jd->md", P.double(), R.double(), R.double(), v.double())


@right("5.5")
def mixed_slot_by_slot(P, R, v):
    return sum(torch.outer(P @ slot, slot @ v) for slot in R)


@wrong("5.5")
def turned_round_where_it_fits(P, R, v):
    """R and its transpose change places where R is square."""
    return P @ R @ R.T @ v if R.size(0) == R.size(1) else P @ R.T @ (R @ v)


DEFAULT = "the default of vectors, which are always given"
SAME = {"5.3": {"1 -> 2": DEFAULT, "1 -> 0": DEFAULT}}
