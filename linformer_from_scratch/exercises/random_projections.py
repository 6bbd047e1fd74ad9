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
    """Lengths come out √k times too long, because each of the k coordinates alone has the variance ‖x‖². Divide by √k."""
    return x @ G.mT


def scaled_by_n(x, G):
    """You divide by √n; there are k coordinates to average over, not n."""
    return x @ G.mT / math.sqrt(G.size(1))


def scaled_twice(x, G):
    """You divide by k, so the squared length is k times too short. The entries are divided by the root, √k."""
    return x @ G.mT / G.size(0)


def scaled_up(x, G):
    """You multiply by √k, but the more rows there are, the smaller the entries must be."""
    return x @ G.mT * math.sqrt(G.size(0))


def projected_back(x, G):
    """That is RᵀRx, which is back in n dimensions. The projection itself has k."""
    return x @ G.mT @ G / G.size(0)


# 5.2: how far a length is off


def draw_vectors(seed: int) -> tuple[Tensor, Tensor]:
    """Vectors, and a projection."""
    rows, n, proj_dim = row(seed, SIZES)
    x, G = normal(seed, (2, rows, n), (proj_dim, n))
    return x, G / math.sqrt(proj_dim)


def lengths_not_squared(x, R):
    """The lemma speaks of squared lengths: ‖Rx‖² / ‖x‖² − 1."""
    return (x @ R.mT).norm(dim=-1) / x.norm(dim=-1) - 1


def ratio_only(x, R):
    """That is the ratio, which is 1 where the length is kept. The distortion is 0 there."""
    return distortion(x, R) + 1


def ratio_turned_round(x, R):
    """The ratio is upside down: projected over original."""
    return 1 / (distortion(x, R) + 1) - 1


def without_sign(x, R):
    """You took the absolute value. Keep the sign: it says whether a length grew or shrank."""
    return distortion(x, R).abs()


def relative_difference(x, R):
    """You compare vectors, but Rx and x have different numbers of entries. Only their lengths can be compared, so sum the squares first."""
    y = x @ R.mT @ R
    return (y - x).square().sum(-1) / x.square().sum(-1)


# 5.3: the union bound


def draw_bound(seed: int) -> tuple[int, float, int]:
    """proj_dim, epsilon, vectors."""
    return row(seed, ((250, 0.5, 512), (64, 0.3, 7), (1, 0.9, 3), (1301, 0.2, 4096)))


def one_side_only(proj_dim, epsilon, vectors):
    """A length can come out too long or too short: two ways to fail, hence the factor 2."""
    return failure_bound(proj_dim, epsilon, vectors) / 2


def one_vector_only(proj_dim, epsilon, vectors):
    """That is the bound for one vector. The chance that at least one of them fails is at most the sum of their chances."""
    return failure_bound(proj_dim, epsilon)


def as_if_independent(proj_dim, epsilon, vectors):
    """1 − (1 − p)ᴺ is right only if the vectors fail independently, but they all share one R. The union bound, N p, needs no independence."""
    return 1 - (1 - failure_bound(proj_dim, epsilon)) ** vectors


def independent_on_one_side(proj_dim, epsilon, vectors):
    """Two things are missing: the factor 2, for too long and too short, and the union bound, N p in place of 1 − (1 − p)ᴺ."""
    return 1 - (1 - failure_bound(proj_dim, epsilon) / 2) ** vectors


def powers(proj_dim, epsilon, vectors):
    """You multiplied the chances, as if all vectors had to fail. One failure is enough, so the chances add up."""
    return failure_bound(proj_dim, epsilon) ** vectors


def without_the_cube_in_the_bound(proj_dim, epsilon, vectors):
    """ε³ is missing: the exponent is −(ε² − ε³) k / 4."""
    return 2 * vectors * math.exp(-(epsilon**2) * proj_dim / 4)


def without_the_quarter(proj_dim, epsilon, vectors):
    """The 4 in the exponent is missing."""
    return 2 * vectors * math.exp(-(epsilon**2 - epsilon**3) * proj_dim)


def sign_lost(proj_dim, epsilon, vectors):
    """The exponent has lost its minus sign: with a larger k, failure must become less likely."""
    return 2 * vectors * math.exp((epsilon**2 - epsilon**3) * proj_dim / 4)


def clamped(proj_dim, epsilon, vectors):
    """You cut the bound off at 1. Above 1 it says nothing, but return what the formula gives."""
    return min(1, failure_bound(proj_dim, epsilon, vectors))


# 5.4: the k of theorem 1


def slots_of_theorem_1(n: int, epsilon: float) -> int:
    """5 ln n / (ε² − ε³), rounded up."""
    return math.ceil(5 * math.log(n) / (epsilon**2 - epsilon**3))


def draw_theorem(seed: int) -> tuple[int, float]:
    """n, once so small that k is a whole number before it is rounded, and epsilon."""
    return row(seed, ((512, 0.5), (4096, 0.2), (1, 0.9), (65537, 0.1)))


def logarithm_to_base_2(n, epsilon):
    """The logarithm is the natural one: it comes from exp in the bound."""
    return math.ceil(5 * math.log2(n) / (epsilon**2 - epsilon**3))


def logarithm_to_base_10(n, epsilon):
    """The logarithm is the natural one, not the decimal: math.log, not math.log10."""
    return math.ceil(5 * math.log10(n) / (epsilon**2 - epsilon**3))


def rounded_down(n, epsilon):
    """Rounded down, k is a little too small for the bound; round up."""
    return math.floor(5 * math.log(n) / (epsilon**2 - epsilon**3))


def without_the_cube(n, epsilon):
    """ε³ is missing; it makes the denominator smaller and k larger."""
    return math.ceil(5 * math.log(n) / epsilon**2)


def cube_added(n, epsilon):
    """ε³ is subtracted, not added."""
    return math.ceil(5 * math.log(n) / (epsilon**2 + epsilon**3))


def for_one_vector(n, epsilon):
    """The factor 5 is missing: it is what leaves 2 n^(−1/4) after the union bound over n rows."""
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
    """R does not occur: that is the exact result. Compress the last axis of P and the rows of v, then multiply."""
    return P @ v


def projected_twice(P, R, v):
    """You applied RᵀR twice; once compresses and brings back."""
    return P @ R.mT @ R @ R.mT @ R @ v


def rows_projected(P, R, v):
    """You compressed the axis of the queries. Values are summed over the last axis of the map, so compress that one."""
    return R.mT @ R @ P @ v


def map_transposed(P, R, v):
    """The map is transposed: its rows are queries and must stay queries."""
    return P.mT @ R.mT @ R @ v


def rescaled(P, R, v):
    """R already carries its 1/√k; dividing once more shrinks the result."""
    return P @ R.mT @ R @ v / R.size(0)


EXERCISES = (
    Exercise(
        id="5.1",
        question="Project x (..., n) with a matrix G (k, n) of N(0, 1) entries so that lengths are kept on average.",
        difficulty=1,
        minutes=4,
        trains="where the 1/k of N(0, 1/k) comes from",
        reference=project,
        draw=draw_projection,
        mistakes=(not_scaled, scaled_by_n, scaled_twice, scaled_up, projected_back),
        hints=(
            "What is the variance of one coordinate of Gx? How many coordinates add up?",
            "(..., n) @ (n, k) -> (..., k); squared lengths add k terms, each ‖x‖² on average.",
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
            "Two squared lengths, their ratio, minus one.",
            "(..., n) -> (...): squares are summed over the last axis, before and after projecting.",
            "(x @ R.mT).square().sum(dim=-1) / … - 1",
        ),
    ),
    Exercise(
        id="5.3",
        question="Bound the chance that any of several vectors is off by ε: the lemma and the union bound, as one number.",
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
            "Pr(A or B) ≤ Pr(A) + Pr(B), whatever A and B have to do with each other.",
            "One vector: 2 exp(−(ε² − ε³) k / 4), with k = proj_dim.",
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
            "This is arithmetic, and Python's math module has all of it.",
            "math.log is the natural logarithm; the result is a whole number.",
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
            "Compress the keys' axis of P, compress the tokens of v, multiply.",
            "P @ R.mT is (m, k); R @ v is (k, d).",
            "(P @ R.mT) @ …",
        ),
    ),
)

QUIZ = (
    Question(
        "The Johnson–Lindenstrauss lemma needs a larger k when …",
        (
            Option(
                "more vectors must be kept at once, or ε shrinks", "k grows with ln(vectors) and 1/ε².", True
            ),
            Option(
                "the vectors have more dimensions",
                "n does not occur in the bound, and the histogram did not become wider.",
            ),
            Option("the vectors have larger norms", "The error is measured relative to the length."),
            Option(
                "the vectors are correlated",
                "The bound holds for every fixed vector, and the union bound needs no independence.",
            ),
        ),
    ),
    Question(
        "x and y are orthogonal unit vectors. After projection to k = 250 their inner product is …",
        (
            Option(
                "small, about 1/√k, but not zero", "The error is relative to ‖x‖‖y‖, which is 1 here.", True
            ),
            Option("exactly zero, since the error is at most ε · 0 = 0", "The error is not relative to x·y."),
            Option("exactly zero, because R keeps angles", "R keeps angles only approximately."),
            Option("about 1", "It would be about 1 if R mapped all vectors to the same one."),
        ),
    ),
    Question(
        "What does the proof of theorem 1 use of attention?",
        (
            Option("nothing: its steps can be written for the identity", "Only that P has n rows.", True),
            Option("that rows sum to one", "No step uses it."),
            Option("that softmax makes maps low rank", "It uses no property of the softmax."),
            Option("that QKᵀ has rank d", "Theorem 2 uses that for the k without n; theorem 1 does not."),
        ),
    ),
    Question(
        "At n = 512 and ε = 0.1, theorem 1 asks for k = 3,466. This means that …",
        (
            Option(
                "the theorem says nothing useful there: k > n",
                "It begins to compress from n = 4,699 on.",
                True,
            ),
            Option(
                "Linformer cannot work at n = 512", "It says what the proof needs, not what practice needs."
            ),
            Option("k must be larger than n", "With k = n nothing is compressed, and E = F = I is exact."),
            Option("3,466 is a misprint", "5 ln 512 / (0.01 − 0.001) is 3,466 when rounded up."),
        ),
    ),
    Question(
        "With theorem 2's construction and δ near zero, every query …",
        (
            Option(
                "gets the same answer",
                "δ times the scores vanishes, so all summaries get the same weight.",
                True,
            ),
            Option(
                "gets the right answer, by the theorem",
                "In the median of 72 heads the error is that of answering zero; with a larger δ it is larger.",
            ),
            Option("reads one summary only", "That can happen with a large δ, not with a small one."),
            Option("gets zero", "It gets the plain mean of the summaries, which is not zero."),
        ),
    ),
)
