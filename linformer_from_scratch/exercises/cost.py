"""Chapter 03: exercises and quiz."""

import torch
from torch import Tensor

from linformer_from_scratch.cost import Sizes, compress_keys, flops
from linformer_from_scratch.exercises.engine import Exercise
from linformer_from_scratch.exercises.quiz import Option, Question

# 3.1: operations of a matrix product


def product_flops(rows: int, inner: int, columns: int) -> int:
    """2 · rows · inner · columns."""
    return 2 * rows * inner * columns


def draw_product(seed: int) -> tuple[int, int, int]:
    """rows, inner, columns."""
    return ((5, 7, 11), (1, 13, 4), (64, 3, 17), (9, 1, 2))[seed % 4]


def one_per_pair(rows, inner, columns):
    """You count one operation for each multiply-add; the convention counts two, a product and a sum."""
    return rows * inner * columns


def entries_of_the_result(rows, inner, columns):
    """These are the entries of the result; each of them is a dot product of `inner` terms."""
    return rows * columns


def entries_read(rows, inner, columns):
    """These are the numbers that are read, not what is computed with them."""
    return rows * inner + inner * columns


def square_of_inner(rows, inner, columns):
    """`inner` enters once: the dot product runs along it, it is no axis of the result."""
    return 2 * rows * inner * inner * columns


def doubled_without_columns(rows, inner, columns):
    """That is one column of the result; there are `columns` of them."""
    return 2 * rows * inner


# 3.2: where the n² term reaches a share


def tokens_for_share(d_model: int, share: float) -> float:
    """The n at which 4n²d is this share of 8nd² + 4n²d."""
    return 2 * d_model * share / (1 - share)


def draw_share(seed: int) -> tuple[int, float]:
    """d_model, share."""
    return ((512, 0.8), (64, 0.25), (3, 0.9), (96, 0.6))[seed % 4]


def share_of_the_weights(d_model, share):
    """That is where the weights make up the share; asked is the n² term's."""
    return 2 * d_model * (1 - share) / share


def ratio_of_the_terms(d_model, share):
    """There 4n²d is that many times 8nd²; asked is its share of both together."""
    return 2 * d_model * share


def where_they_are_equal(d_model, share):
    """That is where the two terms are equal, a share of one half; here it is another share."""
    return 2.0 * d_model


def without_factor_two(d_model, share):
    """A factor of two is lost: 4n²d / 8nd² is n / 2d."""
    return d_model * share / (1 - share)


def share_as_of_weights(d_model, share):
    """You divide by 1 + share; the weights keep 1 − share of the whole."""
    return 2 * d_model * share / (1 + share)


# 3.3: the floor of a step's time


def step_floor(flops: int, moved: int, flops_per_s: float, bytes_per_s: float) -> float:
    """The longer of the two times."""
    return max(flops / flops_per_s, moved / bytes_per_s)


def draw_step(seed: int) -> tuple[int, int, float, float]:
    """A step bound by operations, one by bytes, one that computes nothing, one in which both nearly agree."""
    return ((10**9, 10**6, 1e12, 1e11), (10**6, 10**9, 3e12, 2e11), (0, 4321, 7e9, 5e9), (900, 33, 3e4, 1e3))[
        seed % 4
    ]


def one_after_the_other(flops, moved, flops_per_s, bytes_per_s):
    """You add the two times; a machine computes while it moves, so the floor is the longer of them."""
    return flops / flops_per_s + moved / bytes_per_s


def the_shorter(flops, moved, flops_per_s, bytes_per_s):
    """That is the shorter time; a step is done when both its operations and its bytes are."""
    return min(flops / flops_per_s, moved / bytes_per_s)


def operations_only(flops, moved, flops_per_s, bytes_per_s):
    """Bytes are left out: a step that computes nothing, like the softmax here, still takes time."""
    return flops / flops_per_s


def bytes_only(flops, moved, flops_per_s, bytes_per_s):
    """Operations are left out: large matrix products are bound by them."""
    return moved / bytes_per_s


def ceilings_swapped(flops, moved, flops_per_s, bytes_per_s):
    """The ceilings have changed places: operations over operations per second, bytes over bytes per second."""
    return max(flops / bytes_per_s, moved / flops_per_s)


# 3.4: operations of Linformer


def linformer_flops(n: int, d_model: int, proj_dim: int) -> int:
    """8nd² + 8nkd."""
    return flops(compress_keys(Sizes(n, d_model, num_heads=1, proj_dim=proj_dim)))


def draw_linformer(seed: int) -> tuple[int, int, int]:
    """n, d_model, proj_dim."""
    return ((1024, 512, 128), (7, 64, 3), (1, 3, 5), (333, 96, 31))[seed % 4]


def compression_forgotten(n, d_model, proj_dim):
    """Compressing is not free: E K and F V cost 2nkd each."""
    return 8 * n * d_model**2 + 4 * n * proj_dim * d_model


def one_compression(n, d_model, proj_dim):
    """You count one compression; keys and values have one each, E K and F V."""
    return 8 * n * d_model**2 + 6 * n * proj_dim * d_model


def queries_compressed(n, d_model, proj_dim):
    """Queries are not compressed: n of them read k slots, so scores and mixing cost 2nkd each, not 2k²d."""
    return 8 * n * d_model**2 + 4 * n * proj_dim * d_model + 4 * proj_dim**2 * d_model


def still_quadratic(n, d_model, proj_dim):
    """You added the compression and kept the n×n maps; the maps are n×k now."""
    return 8 * n * d_model**2 + 4 * n * proj_dim * d_model + 4 * n**2 * d_model


def projections_of_slots(n, d_model, proj_dim):
    """In this order, E(XW), keys and values are projected before they are compressed: W meets n rows, not k."""
    return 4 * n * d_model**2 + 4 * proj_dim * d_model**2 + 8 * n * proj_dim * d_model


# 3.5: the exponent of a growth


def exponent(lengths: Tensor, costs: Tensor) -> Tensor:
    """Slope of the least-squares line through (log length, log cost). Shape: (m,), (m,) -> ()."""
    x, y = lengths.log(), costs.log()
    x, y = x - x.mean(), y - y.mean()
    return x @ y / (x @ x)


def draw_growth(seed: int) -> tuple[Tensor, Tensor]:
    """Lengths, and costs that grow as a power of them, with some noise."""
    generator = torch.Generator().manual_seed(seed)
    points = (5, 7, 4, 6)[seed % 4]
    lengths = 2.0 ** torch.arange(3, 3 + points)
    power = (2.0, 1.0, 1.5, 0.5)[seed % 4]
    return lengths, 3 * lengths**power * (1 + 0.2 * torch.rand(points, generator=generator))


def without_logarithms(lengths, costs):
    """That is the slope of cost against length; the exponent is the slope of their logarithms."""
    x, y = lengths - lengths.mean(), costs - costs.mean()
    return x @ y / (x @ x)


def logarithm_of_costs_only(lengths, costs):
    """You took the logarithm of the costs only; a power becomes a line where both axes are logarithmic."""
    x, y = lengths - lengths.mean(), costs.log() - costs.log().mean()
    return x @ y / (x @ x)


def through_the_origin(lengths, costs):
    """Your line is forced through the origin, so the constant factor of the cost spoils its slope: subtract the means."""
    x, y = lengths.log(), costs.log()
    return x @ y / (x @ x)


def slope_turned_round(lengths, costs):
    """The axes are exchanged: this is how length grows with cost."""
    x, y = lengths.log() - lengths.log().mean(), costs.log() - costs.log().mean()
    return x @ y / (y @ y)


def ends_only(lengths, costs):
    """Two points make a line, and the others do not count: use least squares over all of them."""
    return (costs[-1] / costs[0]).log() / (lengths[-1] / lengths[0]).log()


EXERCISES = (
    Exercise(
        id="3.1",
        question="Count the operations of a product of matrices (rows, inner) and (inner, columns).",
        difficulty=1,
        minutes=3,
        trains="counting before measuring",
        reference=product_flops,
        draw=draw_product,
        mistakes=(
            one_per_pair,
            entries_of_the_result,
            entries_read,
            square_of_inner,
            doubled_without_columns,
        ),
        hints=(
            "How many numbers has the result, and what does one of them cost?",
            "The result is (rows, columns); each entry sums `inner` products.",
            "2 * rows * … * …",
        ),
    ),
    Exercise(
        id="3.2",
        question="From which n does the n² term make up a given share of a full layer's operations?",
        difficulty=2,
        minutes=5,
        trains="which part grows with n, which with n²",
        reference=tokens_for_share,
        draw=draw_share,
        mistakes=(
            share_of_the_weights,
            ratio_of_the_terms,
            where_they_are_equal,
            without_factor_two,
            share_as_of_weights,
        ),
        hints=(
            "Write the share as a fraction: 4n²d over 8nd² + 4n²d. What cancels?",
            "It is n / (2d + n); set it equal to the share and solve for n, a number that need not be whole.",
            "n = 2 * d_model * share / (1 - …)",
        ),
    ),
    Exercise(
        id="3.3",
        question="How many seconds does a step take at least, given its operations, its bytes and the ceilings?",
        difficulty=1,
        minutes=4,
        trains="the roofline",
        reference=step_floor,
        draw=draw_step,
        mistakes=(one_after_the_other, the_shorter, operations_only, bytes_only, ceilings_swapped),
        hints=(
            "Moving and computing overlap: which of the two ends last?",
            "Two times in seconds: operations / (operations per second), bytes / (bytes per second).",
            "max(flops / flops_per_s, …)",
        ),
    ),
    Exercise(
        id="3.4",
        question="Count the operations of a Linformer layer in the paper's order, E(XW).",
        difficulty=2,
        minutes=5,
        trains="what replaces n²",
        reference=linformer_flops,
        draw=draw_linformer,
        mistakes=(
            compression_forgotten,
            one_compression,
            queries_compressed,
            still_quadratic,
            projections_of_slots,
        ),
        hints=(
            "Take 3.2; which products change their shape, and which are new?",
            "New: (k, n) @ (n, d), twice. Scores: (n, d) @ (d, k). Mixing: (n, k) @ (k, d).",
            "8 * n * d_model**2 + 4 * 2 * …",
        ),
    ),
    Exercise(
        id="3.5",
        question="Find the exponent a in costs ≈ c · lengthsᵃ, by least squares on the logarithms.",
        difficulty=2,
        minutes=7,
        trains="reading growth from measurements",
        reference=exponent,
        draw=draw_growth,
        mistakes=(
            without_logarithms,
            logarithm_of_costs_only,
            through_the_origin,
            slope_turned_round,
            ends_only,
        ),
        hints=(
            "log cost = log c + a · log length: a straight line.",
            "Slope of a line by least squares: Σ (x − mean x)(y − mean y) / Σ (x − mean x)².",
            "x = lengths.log(); x = x - x.mean(); the same for y; return x @ y / …",
        ),
    ),
)

QUIZ = (
    Question(
        "The text becomes four times as long. The operations for scores and mixing become …",
        (
            Option("16 times as many", "n² grows by 4².", True),
            Option("4 times as many", "That is true of the projections, which grow with n."),
            Option("8 times as many", "Both n's of n×n grow by 4."),
            Option("256 times as many", "Two axes grow with n, not four."),
        ),
    ),
    Question(
        "PyTorch's fused attention (tiled, as in FlashAttention) …",
        (
            Option(
                "stores no n×n map and still needs 4n²d operations",
                "Tiles of the map live and die inside the processor: memory O(n), time O(n²).",
                True,
            ),
            Option(
                "needs O(n) operations",
                "It computes every score once, as before; it does not write them to memory.",
            ),
            Option("approximates the softmax", "It is exact: the running sum is rescaled as tiles arrive."),
            Option(
                "stores the n×n map in half precision",
                "It stores no map at all, in whatever precision.",
            ),
        ),
    ),
    Question(
        "The softmax over n×n scores counts no matrix operations. On a GPU it is …",
        (
            Option(
                "bound by bytes: it reads and writes n² numbers",
                "Its time is that of moving the maps twice.",
                True,
            ),
            Option("free", "Its n² numbers must be read and written."),
            Option("bound by operations", "A few operations a number: moving it takes far longer."),
            Option("negligible for large n", "It grows with n² like the scores."),
        ),
    ),
    Question(
        "Linformer in the paper's order has fewer operations than full attention from …",
        (
            Option("beyond n = 2k", "8nkd against 4n²d: equal at n = 2k.", True),
            Option("n = k on", "Compressing keys and values costs as much again as reading k slots."),
            Option("n = d on", "d multiplies both sides and drops out."),
            Option("any n on", "Below n = 2k the compression costs more than it saves."),
        ),
    ),
    Question(
        "Against stored maps Linformer saves memory. Against tiled exact attention, with Linformer's n×k maps stored, it …",
        (
            Option(
                "needs more",
                "Tiled attention stores no map at all; Linformer's h·n·k scores are stored unless they are tiled too.",
                True,
            ),
            Option("needs less, since k < n", "Less than n² is still more than no map."),
            Option("needs the same", "One stores n×k maps, the other none."),
            Option(
                "needs less beyond n = 2k",
                "n = 2k is where operations are equal; it says nothing of memory.",
            ),
        ),
    ),
)
