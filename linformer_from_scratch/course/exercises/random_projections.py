"""Exercises of chapter 05."""

import math

from torch import Tensor

from linformer_from_scratch.course.exercises.engine.checking import exercise
from linformer_from_scratch.course.exercises.engine.draws import normal, row
from linformer_from_scratch.random_projections import distortion, failure_bound, theorem_1_map

SIZES = ((5, 7, 3), (2, 11, 4), (3, 5, 5), (1, 13, 2))  # rows, n, proj_dim of each draw


def project(x: Tensor, G: Tensor) -> Tensor:
    """x Gᵀ / √k. Shape: x (..., n), G (k, n) with entries N(0, 1) -> (..., k)."""
    return x @ G.mT / math.sqrt(G.size(0))


@exercise("5.1", stars=1, minutes=4)
class Project:
    """Project."""

    hints = (
        "Take a single coordinate of Gx: what is its variance? And how many coordinates do you add up?",
        "(..., n) @ (n, k) -> (..., k). The squared length is a sum of k terms, each ‖x‖² on average.",
        "x @ G.mT / …",
    )
    reference = project

    def draw(seed):
        """Vectors, and a matrix with standard normal entries."""
        rows, n, proj_dim = row(seed, SIZES)
        return normal(seed, (2, rows, n), (proj_dim, n))

    def not_scaled(x, G):
        """Your lengths come out √k times too long. Each of the k coordinates of Gx has variance ‖x‖² all by itself, and you add up k of them: divide by √k."""
        return x @ G.mT

    def scaled_by_n(x, G):
        """You divide by √n. Tempting, since each sum has n terms, but R averages over its k rows: count G.size(0)."""
        return x @ G.mT / math.sqrt(G.size(1))

    def scaled_twice(x, G):
        """You divide by k. That's right for squared lengths, so the numbers themselves want its root, √k."""
        return x @ G.mT / G.size(0)

    def scaled_up(x, G):
        """You multiply by √k. Without any factor Gx is already √k times too long, so divide by it instead."""
        return x @ G.mT * math.sqrt(G.size(0))

    def projected_back(x, G):
        """You went down to k numbers and straight back up to n: that's RᵀRx. Stop halfway, at Rx."""
        return x @ G.mT @ G / G.size(0)


@exercise("5.2", stars=1, minutes=4)
class Distortion:
    """How far a length is off."""

    hints = (
        "You need two squared lengths. Divide them and take away one.",
        "(..., n) -> (...): square, then sum over the last axis, once for x and once for Rx.",
        "(x @ R.mT).square().sum(dim=-1) / … - 1",
    )
    reference = distortion

    def draw(seed):
        """Vectors, and a projection."""
        rows, n, proj_dim = row(seed, SIZES)
        x, G = normal(seed, (2, rows, n), (proj_dim, n))
        return x, G / math.sqrt(proj_dim)

    def lengths_not_squared(x, R):
        """You compare lengths, and the lemma compares squared lengths: ‖Rx‖² / ‖x‖² − 1."""
        return (x @ R.mT).norm(dim=-1) / x.norm(dim=-1) - 1

    def ratio_only(x, R):
        """You return the ratio, which is 1 if the length is kept. A distortion is 0 then: what is still missing?"""
        return distortion(x, R) + 1

    def ratio_turned_round(x, R):
        """Your ratio is upside down: the projected length goes on top, the original below."""
        return 1 / (distortion(x, R) + 1) - 1

    def without_sign(x, R):
        """You dropped the sign with an absolute value. Keep it: it tells a length that grew from one that shrank."""
        return distortion(x, R).abs()

    def relative_difference(x, R):
        """You compare the vectors entry by entry, after going back to n numbers. Only the lengths matter here: sum the squares of Rx and of x first, then compare."""
        y = x @ R.mT @ R
        return (y - x).square().sum(-1) / x.square().sum(-1)


@exercise("5.3", stars=2, minutes=5)
class UnionBound:
    """The union bound."""

    hints = (
        "Pr(A or B) ≤ Pr(A) + Pr(B), whatever A and B have to do with each other. Now say it for N of them.",
        "For one vector it's 2 exp(−(ε² − ε³) k / 4), and k is proj_dim.",
        "vectors * 2 * math.exp(…)",
    )
    reference = failure_bound

    def draw(seed):
        """proj_dim, epsilon, vectors."""
        return row(seed, ((250, 0.5, 512), (64, 0.3, 7), (1, 0.9, 3), (1301, 0.2, 4096)))

    def one_side_only(proj_dim, epsilon, vectors):
        """You count only lengths that come out too long. They can also come out too short, and that's the factor 2."""
        return failure_bound(proj_dim, epsilon, vectors) / 2

    def one_vector_only(proj_dim, epsilon, vectors):
        """Your bound is for a single vector; `vectors` never comes in. Each of them may fail, and the chances add up."""
        return failure_bound(proj_dim, epsilon)

    def as_if_independent(proj_dim, epsilon, vectors):
        """1 − (1 − p)ᴺ is for independent failures, as with N dice. Here all vectors share a single R, so use the bound that asks for no independence: N p."""
        return 1 - (1 - failure_bound(proj_dim, epsilon)) ** vectors

    def independent_on_one_side(proj_dim, epsilon, vectors):
        """Two things at once: you left out the factor 2 (too long and too short), and 1 − (1 − p)ᴺ needs independence, where the union bound N p does not."""
        return 1 - (1 - failure_bound(proj_dim, epsilon) / 2) ** vectors

    def powers(proj_dim, epsilon, vectors):
        """You multiplied the chances: that's how likely *all* vectors fail. We want *any* of them, so add."""
        return failure_bound(proj_dim, epsilon) ** vectors

    def without_the_cube_in_the_bound(proj_dim, epsilon, vectors):
        """Your exponent has ε² where the lemma has ε² − ε³. It looks small, but with ε = 0.5 it's half."""
        return 2 * vectors * math.exp(-(epsilon**2) * proj_dim / 4)

    def without_the_quarter(proj_dim, epsilon, vectors):
        """Your bound is far too good to be true: look for the 4 below the exponent's fraction line."""
        return 2 * vectors * math.exp(-(epsilon**2 - epsilon**3) * proj_dim)

    def sign_lost(proj_dim, epsilon, vectors):
        """Your bound grows with k. More mixtures should make failure less likely: the exponent wants a minus sign."""
        return 2 * vectors * math.exp((epsilon**2 - epsilon**3) * proj_dim / 4)

    def clamped(proj_dim, epsilon, vectors):
        """You cut the bound off at 1, which is sensible for a chance. We want the bare formula, though, also where it says nothing."""
        return min(1, failure_bound(proj_dim, epsilon, vectors))


def slots_of_theorem_1(n: int, epsilon: float) -> int:
    """5 ln n / (ε² − ε³), rounded up."""
    return math.ceil(5 * math.log(n) / (epsilon**2 - epsilon**3))


@exercise("5.4", stars=1, minutes=3)
class SlotsOfTheorem1:
    """The k of theorem 1."""

    hints = (
        "No tensors here, just arithmetic, and Python's math module has all of it.",
        "math.log is the natural logarithm. And half a summary doesn't exist, so round up.",
        "math.ceil(5 * math.log(n) / …)",
    )
    reference = slots_of_theorem_1

    def draw(seed):
        """n, once so small that k is a whole number before it is rounded, and epsilon."""
        return row(seed, ((512, 0.5), (4096, 0.2), (1, 0.9), (65537, 0.1)))

    def logarithm_to_base_2(n, epsilon):
        """You took the logarithm to base 2. It comes from solving an exp for k, so it's the natural one, math.log."""
        return math.ceil(5 * math.log2(n) / (epsilon**2 - epsilon**3))

    def logarithm_to_base_10(n, epsilon):
        """You took the decimal logarithm. The one that undoes exp is math.log; math.log10 is for counting digits."""
        return math.ceil(5 * math.log10(n) / (epsilon**2 - epsilon**3))

    def rounded_down(n, epsilon):
        """You rounded down, and a k that is even slightly too small misses the bound. Round up."""
        return math.floor(5 * math.log(n) / (epsilon**2 - epsilon**3))

    def without_the_cube(n, epsilon):
        """Your denominator is ε², and the theorem has ε² − ε³. It's smaller, so it asks for a larger k."""
        return math.ceil(5 * math.log(n) / epsilon**2)

    def cube_added(n, epsilon):
        """You add ε³ in the denominator. It comes with a minus, as in the lemma's exponent."""
        return math.ceil(5 * math.log(n) / (epsilon**2 + epsilon**3))

    def for_one_vector(n, epsilon):
        """You left out the 5. The union bound over n rows eats up 4 of it; the fifth makes the failures vanish."""
        return math.ceil(math.log(n) / (epsilon**2 - epsilon**3))


def project_and_mix(P: Tensor, R: Tensor, v: Tensor) -> Tensor:
    """P RᵀR v. Shape: P (m, n), R (k, n), v (n, d) -> (m, d)."""
    return theorem_1_map(P, R) @ v


@exercise("5.5", stars=2, minutes=5)
class MapOfTheorem1:
    """Theorem 1's map at work."""

    hints = (
        "Which axis of P and which of v do you sum over? Mix both down to k, then multiply.",
        "P @ R.mT is (m, k), and R @ v is (k, d).",
        "(P @ R.mT) @ …",
    )
    reference = project_and_mix

    def draw(seed):
        """A map whose rows sum to one, a projection, values."""
        d, n, proj_dim = row(seed, SIZES)
        scores, G, v = normal(seed, (n + 1, n), (proj_dim, n), (n, d))
        return scores.softmax(dim=-1), G / math.sqrt(proj_dim), v

    def values_not_projected(P, R, v):
        """Your answer is the exact one, because R never comes in. Mix the last axis of P and the rows of v down to k with R, then multiply."""
        return P @ v

    def projected_twice(P, R, v):
        """You applied RᵀR to P and again to v. One R on each side of the product is enough."""
        return P @ R.mT @ R @ R.mT @ R @ v

    def rows_projected(P, R, v):
        """You compressed the queries, P's first axis. The sum over values runs along the last one: compress that."""
        return R.mT @ R @ P @ v

    def map_transposed(P, R, v):
        """You turned the map around. Its rows are queries and should come out as queries: P, not P.mT."""
        return P.mT @ R.mT @ R @ v

    def rescaled(P, R, v):
        """You divide by k, as in 5.1. This R already has its 1/√k built in, so there's nothing left to divide by."""
        return P @ R.mT @ R @ v / R.size(0)
