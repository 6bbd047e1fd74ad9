"""Chapter 05: exercises and quiz."""

import math

from torch import Tensor

from linformer_from_scratch.exercises.engine.checking import Exercise
from linformer_from_scratch.exercises.engine.draws import normal, row
from linformer_from_scratch.exercises.engine.quiz import Option, Question
from linformer_from_scratch.random_projections import (
    distortion,
    failure_bound,
    theorem_1_map,
)

SIZES = ((5, 7, 3), (2, 11, 4), (3, 5, 5), (1, 13, 2))  # rows, n, proj_dim of each draw


# 5.1: project


def project(x: Tensor, G: Tensor) -> Tensor:
    """x Gᵀ / √k. Shape: x (..., n), G (k, n) with entries N(0, 1) -> (..., k)."""
    return x @ G.mT / math.sqrt(G.size(0))


def draw_projection(seed: int) -> tuple[Tensor, ...]:
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


# 5.2: how far a length is off


def draw_vectors(seed: int) -> tuple[Tensor, Tensor]:
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


# 5.3: the union bound


def draw_bound(seed: int) -> tuple[int, float, int]:
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


# 5.4: the k of theorem 1


def slots_of_theorem_1(n: int, epsilon: float) -> int:
    """5 ln n / (ε² − ε³), rounded up."""
    return math.ceil(5 * math.log(n) / (epsilon**2 - epsilon**3))


def draw_theorem(seed: int) -> tuple[int, float]:
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


# 5.5: theorem 1's map at work


def project_and_mix(P: Tensor, R: Tensor, v: Tensor) -> Tensor:
    """P RᵀR v. Shape: P (m, n), R (k, n), v (n, d) -> (m, d)."""
    return theorem_1_map(P, R) @ v


def draw_mix(seed: int) -> tuple[Tensor, Tensor, Tensor]:
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


EXERCISES = (
    Exercise(
        id="5.1",
        question="Project x (..., n) with a matrix G (k, n) of N(0, 1) entries, so that squared lengths are kept on average.",
        difficulty=1,
        minutes=4,
        trains="where the 1/k of N(0, 1/k) comes from",
        reference=project,
        draw=draw_projection,
        mistakes=(not_scaled, scaled_by_n, scaled_twice, scaled_up, projected_back),
        hints=(
            "Take a single coordinate of Gx: what is its variance? And how many coordinates do you add up?",
            "(..., n) @ (n, k) -> (..., k). The squared length is a sum of k terms, each ‖x‖² on average.",
            "x @ G.mT / …",
        ),
    ),
    Exercise(
        id="5.2",
        question="Return the distortion ‖Rx‖² / ‖x‖² − 1 of each vector x (..., n) under R (k, n).",
        difficulty=1,
        minutes=4,
        trains="measuring what the lemma bounds",
        reference=distortion,
        draw=draw_vectors,
        mistakes=(
            lengths_not_squared,
            ratio_only,
            ratio_turned_round,
            without_sign,
            relative_difference,
        ),
        hints=(
            "You need two squared lengths. Divide them and take away one.",
            "(..., n) -> (...): square, then sum over the last axis, once for x and once for Rx.",
            "(x @ R.mT).square().sum(dim=-1) / … - 1",
        ),
    ),
    Exercise(
        id="5.3",
        question="How likely is it at most that any of several vectors is off by ε? Lemma times union bound, one number.",
        difficulty=2,
        minutes=5,
        trains="the union bound",
        reference=failure_bound,
        draw=draw_bound,
        mistakes=(
            one_side_only,
            one_vector_only,
            as_if_independent,
            independent_on_one_side,
            powers,
            without_the_cube_in_the_bound,
            without_the_quarter,
            sign_lost,
            clamped,
        ),
        hints=(
            "Pr(A or B) ≤ Pr(A) + Pr(B), whatever A and B have to do with each other. Now say it for N of them.",
            "For one vector it's 2 exp(−(ε² − ε³) k / 4), and k is proj_dim.",
            "vectors * 2 * math.exp(…)",
        ),
    ),
    Exercise(
        id="5.4",
        question="Which k does theorem 1 ask for: 5 ln n / (ε² − ε³), rounded up to a whole number?",
        difficulty=1,
        minutes=3,
        trains="putting numbers into a theorem",
        reference=slots_of_theorem_1,
        draw=draw_theorem,
        mistakes=(
            logarithm_to_base_2,
            logarithm_to_base_10,
            rounded_down,
            without_the_cube,
            cube_added,
            for_one_vector,
        ),
        hints=(
            "No tensors here, just arithmetic, and Python's math module has all of it.",
            "math.log is the natural logarithm. And half a summary doesn't exist, so round up.",
            "math.ceil(5 * math.log(n) / …)",
        ),
    ),
    Exercise(
        id="5.5",
        question="Mix values with theorem 1's map: P RᵀR v, with P (m, n), R (k, n), v (n, d).",
        difficulty=2,
        minutes=5,
        trains="which axis is compressed",
        reference=project_and_mix,
        draw=draw_mix,
        mistakes=(values_not_projected, projected_twice, rows_projected, map_transposed, rescaled),
        hints=(
            "Which axis of P and which of v do you sum over? Mix both down to k, then multiply.",
            "P @ R.mT is (m, k), and R @ v is (k, d).",
            "(P @ R.mT) @ …",
        ),
    ),
)

QUIZ = (
    Question(
        "When does the Johnson–Lindenstrauss lemma need a larger k? When …",
        (
            Option(
                "more vectors must be kept at once, or ε shrinks",
                "k grows like ln(vectors) and, roughly, 1/ε². Nothing else comes in.",
                True,
            ),
            Option(
                "the vectors have more dimensions",
                "That's the charm of it: n isn't in the bound, and the pile didn't get any wider.",
            ),
            Option(
                "the vectors have larger norms",
                "The error is relative to the length, so a vector ten times as long has an error ten times as large, and that's fine.",
            ),
            Option(
                "the vectors are correlated",
                "It doesn't matter: the bound holds for each vector, and adding chances needs no independence.",
            ),
        ),
    ),
    Question(
        "x and y are orthogonal unit vectors. You project both to k = 250. Their inner product is now …",
        (
            Option(
                "small, about 1/√k, but not zero", "The error is relative to ‖x‖‖y‖, and that's 1 here.", True
            ),
            Option(
                "exactly zero, since the error is at most ε · 0 = 0",
                "That's the slip in theorem 1's proof. The error is relative to the lengths, not to x·y.",
            ),
            Option(
                "exactly zero, because R keeps angles",
                "It keeps them roughly. A right angle comes out nearly right.",
            ),
            Option("about 1", "For that, R would have to send x and y to the same place."),
        ),
    ),
    Question(
        "What does the proof of theorem 1 use of attention?",
        (
            Option(
                "nothing: its steps can be written for the identity",
                "They need n rows, of whatever kind.",
                True,
            ),
            Option("that rows sum to one", "Check the four steps: none of them adds up a row."),
            Option("that softmax makes maps low rank", "Softmax doesn't appear in it at all."),
            Option(
                "that QKᵀ has rank d",
                "That's theorem 2, for the k without n. Theorem 1 never looks inside P.",
            ),
        ),
    ),
    Question(
        "At n = 512 and ε = 0.1, theorem 1 asks for k = 3,466. So …",
        (
            Option(
                "the theorem has nothing useful to say there: k > n",
                "At this ε it starts to compress from n = 4,699 on.",
                True,
            ),
            Option(
                "Linformer cannot work at n = 512",
                "It may well. The theorem says what the proof needs, not what the layer needs.",
            ),
            Option("k must be larger than n", "With k = n you could take E = F = I and be exact."),
            Option("3,466 is a misprint", "Do the sum: 5 ln 512 / (0.01 − 0.001), rounded up."),
        ),
    ),
    Question(
        "With theorem 2's construction and δ near zero, every query …",
        (
            Option(
                "gets the same answer",
                "δ wipes out the scores, so each summary gets the same weight, whoever asks.",
                True,
            ),
            Option(
                "gets the right answer, by the theorem",
                "Its bound holds, and so it does for zero. In the median head the error is that of answering zero.",
            ),
            Option("attends to one summary only", "A large δ can do that. A small one does the opposite."),
            Option(
                "gets zero",
                "Close, but it gets the plain mean of the summaries, which isn't zero. It's just no better.",
            ),
        ),
    ),
)
