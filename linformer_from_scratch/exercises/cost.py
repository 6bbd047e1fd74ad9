"""Chapter 03: exercises and quiz."""

import math

import torch
from torch import Tensor

from linformer_from_scratch.cost import Sizes, compress_keys, flops, moved_bytes
from linformer_from_scratch.exercises.engine.checking import Exercise
from linformer_from_scratch.exercises.engine.draws import row
from linformer_from_scratch.exercises.engine.quiz import Option, Question

# 3.1: operations of three matrices, in the cheaper order


def chain_flops(p: int, q: int, r: int, s: int) -> int:
    """The fewer of both orders' operations, for matrices (p, q), (q, r) and (r, s)."""
    return min(2 * p * q * r + 2 * p * r * s, 2 * q * r * s + 2 * p * q * s)


def draw_chain(seed: int) -> tuple[int, ...]:
    """p, q, r, s; (AB)C is cheaper in every second draw, A(BC) in the others; the outer and the inner two do not tell."""
    p, q, r, s = row(seed, ((3, 2, 7, 11), (5, 7, 11, 13), (64, 13, 4, 2), (5, 11, 2, 3)))
    sizes = (p, q, r, s) if (p < s) is (q < r) else (p, r, q, s)
    from_left = from_the_left(*sizes) < from_the_right(*sizes)
    return sizes if from_left is bool(seed % 2) else sizes[::-1]  # turned round, the orders change places


def from_the_left(p, q, r, s):
    """That is (AB)C, whichever is cheaper; count A(BC) as well, and take the smaller number."""
    return 2 * p * q * r + 2 * p * r * s


def from_the_right(p, q, r, s):
    """That is A(BC), whichever is cheaper; count (AB)C as well, and take the smaller number."""
    return 2 * q * r * s + 2 * p * q * s


def the_dearer(p, q, r, s):
    """That is the more expensive order; the question asks for the cheaper one."""
    return max(from_the_left(p, q, r, s), from_the_right(p, q, r, s))


def cheaper_of_each_step(p, q, r, s):
    """You add the cheaper first product to the cheaper second one, which may belong to different orders; add up each order."""
    return 2 * min(p * q * r, q * r * s) + 2 * min(p * r * s, p * q * s)


def chosen_by_first_product(p, q, r, s):
    """You chose by the first product only; an order whose first product is cheap may be the more expensive one as a whole."""
    return from_the_left(p, q, r, s) if p < s else from_the_right(p, q, r, s)


def chosen_by_inner_sizes(p, q, r, s):
    """You chose by q and r; p and s count as well: compute both orders in full and take the smaller number."""
    return from_the_left(p, q, r, s) if r < q else from_the_right(p, q, r, s)


def chosen_by_result(p, q, r, s):
    """You chose the smaller result in between; its size says nothing about the sums inside. Compare the operations."""
    return from_the_left(p, q, r, s) if p * r < q * s else from_the_right(p, q, r, s)


def one_per_pair(p, q, r, s):
    """You count one operation for each multiply-add; the convention counts two, a product and a sum."""
    return chain_flops(p, q, r, s) // 2


def one_addition_fewer(p, q, r, s):
    """You count 2 · inner − 1 for each entry, which is exact; the chapter counts 2 · inner, as PyTorch's counter does."""
    left = p * r * (2 * q - 1) + p * s * (2 * r - 1)
    right = q * s * (2 * r - 1) + p * s * (2 * q - 1)
    return min(left, right)


def all_at_once(p, q, r, s):
    """No dot product runs along q and r at once: there is one product of two matrices first, and then another."""
    return 2 * p * q * r * s


def first_product_only(p, q, r, s):
    """That is the first product alone; its result must still be multiplied with the third matrix."""
    return min(2 * p * q * r, 2 * q * r * s)


def entries_of_the_results(p, q, r, s):
    """These are the numbers of the results; each of them is a dot product of `inner` terms."""
    return min(p * r, q * s) + p * s


# 3.2: where the n² term reaches a share


def tokens_for_share(d_model: int, share: float) -> float:
    """The n at which 4n²d is this share of 8nd² + 4n²d."""
    return 2 * d_model * share / (1 - share)


def draw_share(seed: int) -> tuple[int, float]:
    """d_model, share."""
    return row(seed, ((512, 0.75), (64, 0.25), (5, 0.7), (96, 0.625)))


def share_of_the_weights(d_model, share):
    """That is where the products with weights make up the share; the question asks about the n² term."""
    return 2 * d_model * (1 - share) / share


def rounded_up(d_model, share):
    """You round the number up; return it as it is, whole or not."""
    return math.ceil(tokens_for_share(d_model, share))


def rounded_down(d_model, share):
    """You round the number down; return it as it is, whole or not."""
    return math.floor(tokens_for_share(d_model, share))


def ratio_of_the_terms(d_model, share):
    """At this n, 4n²d is that many times 8nd²; the question asks for its share of both terms together."""
    return 2 * d_model * share


def where_they_are_equal(d_model, share):
    """That is where the two terms are equal, a share of one half; here it is another share."""
    return 2.0 * d_model


def without_factor_two(d_model, share):
    """A factor of two is missing: 4n²d / 8nd² is n / 2d."""
    return d_model * share / (1 - share)


def share_as_of_weights(d_model, share):
    """You divide by 1 + share; the weights keep 1 − share of the whole."""
    return 2 * d_model * share / (1 + share)


# 3.3: what a faster processor saves


def speedup(flops: Tensor, moved: Tensor, flops_per_s: float, bytes_per_s: float, factor: float) -> Tensor:
    """The layer's floor over that of a processor with `factor` times the operations per second. Shape: (m,), (m,) -> ()."""
    moving = moved / bytes_per_s
    now = torch.maximum(flops / flops_per_s, moving).sum()
    then = torch.maximum(flops / (factor * flops_per_s), moving).sum()
    return now / then


def draw_steps(seed: int) -> tuple:
    """Steps, of which one computes nothing unless it is the only one, and a machine."""
    table = ((5, 3e5, 4e5, 2.0), (3, 7e5, 2e5, 3.0), (1, 2e5, 6e5, 4.0), (4, 4e5, 5e5, 1.5))
    count, *machine = row(seed, table)
    generator = torch.Generator().manual_seed(seed)
    flops, moved = torch.randint(10**5, 10**6, (2, count), generator=generator).double()
    flops[1:2] = 0.0
    return flops, moved, *machine


def floor_of(flops, moved, flops_per_s, bytes_per_s):
    """The sum of the longer times."""
    return torch.maximum(flops / flops_per_s, moved / bytes_per_s).sum()


def everything_faster(flops, moved, flops_per_s, bytes_per_s, factor):
    """Only computing gets faster: a step that waits for its bytes takes as long as before."""
    return factor


def one_large_step(flops, moved, flops_per_s, bytes_per_s, factor):
    """You added up operations and bytes first; but steps follow one another, so each has a floor of its own. Add up the floors."""
    moving = moved.sum() / bytes_per_s
    now, then = flops.sum() / flops_per_s, flops.sum() / (factor * flops_per_s)
    return torch.maximum(now, moving) / torch.maximum(then, moving)


def one_after_the_other(flops, moved, flops_per_s, bytes_per_s, factor):
    """You add the two times of a step; a machine computes while it moves, so its floor is the longer of them."""
    computing, moving = flops.sum() / flops_per_s, moved.sum() / bytes_per_s
    return (computing + moving) / (computing / factor + moving)


def the_shorter(flops, moved, flops_per_s, bytes_per_s, factor):
    """You take the shorter time of each step; it is done when both its operations and its bytes are."""
    moving = moved / bytes_per_s
    now = torch.minimum(flops / flops_per_s, moving).sum()
    return now / torch.minimum(flops / (factor * flops_per_s), moving).sum()


def ratio_turned_round(flops, moved, flops_per_s, bytes_per_s, factor):
    """Your ratio is upside down: return the old floor divided by the new one."""
    return 1 / speedup(flops, moved, flops_per_s, bytes_per_s, factor)


def seconds_saved(flops, moved, flops_per_s, bytes_per_s, factor):
    """These are the seconds saved; the question asks for the ratio of the two floors."""
    then = floor_of(flops, moved, factor * flops_per_s, bytes_per_s)
    return floor_of(flops, moved, flops_per_s, bytes_per_s) - then


def memory_faster(flops, moved, flops_per_s, bytes_per_s, factor):
    """You made the memory faster; it is the operations per second that grow."""
    then = floor_of(flops, moved, flops_per_s, factor * bytes_per_s)
    return floor_of(flops, moved, flops_per_s, bytes_per_s) / then


def ceilings_swapped(flops, moved, flops_per_s, bytes_per_s, factor):
    """You exchanged the two ceilings: divide operations by operations per second, and bytes by bytes per second."""
    then = torch.maximum(flops / bytes_per_s / factor, moved / flops_per_s).sum()
    return floor_of(flops, moved, bytes_per_s, flops_per_s) / then


def mean_of_the_steps(flops, moved, flops_per_s, bytes_per_s, factor):
    """You averaged the ratios of the steps; a long step counts more: divide the layer's two floors."""
    moving = moved / bytes_per_s
    now = torch.maximum(flops / flops_per_s, moving)
    return (now / torch.maximum(flops / (factor * flops_per_s), moving)).mean()


# 3.4: operations of Linformer


def linformer_flops(n: int, d_model: int, proj_dim: int) -> int:
    """8nd² + 8nkd."""
    return flops(compress_keys(Sizes(n, d_model, num_heads=1, proj_dim=proj_dim)))


def draw_linformer(seed: int) -> tuple[int, int, int]:
    """n, d_model, proj_dim."""
    return row(seed, ((1024, 512, 128), (7, 64, 3), (1, 3, 5), (333, 96, 31)))


def full_layer(n, d_model, proj_dim):
    """That is full attention, 8nd² + 4n²d; here n queries read proj_dim summaries, and compressing costs something too."""
    return 8 * n * d_model**2 + 4 * n**2 * d_model


def half_of_it(n, d_model, proj_dim):
    """You count one operation for each multiply-add; the convention counts two."""
    return linformer_flops(n, d_model, proj_dim) // 2


def compression_forgotten(n, d_model, proj_dim):
    """Compressing is not free: E K and F V cost 2nkd each."""
    return 8 * n * d_model**2 + 4 * n * proj_dim * d_model


def one_compression(n, d_model, proj_dim):
    """You count one compression; keys and values need one each, E K and F V."""
    return 8 * n * d_model**2 + 6 * n * proj_dim * d_model


def queries_compressed(n, d_model, proj_dim):
    """Queries are not compressed: n of them read k summaries, so scores and mixing cost 2nkd each, not 2k²d."""
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
    points, power = row(seed, ((5, 2.0), (7, 1.0), (4, 1.5), (40, 0.5)))
    lengths = 2.0 ** torch.arange(3, 3 + points)
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


def ratio_of_logarithms(lengths, costs):
    """log cost over log length forgets the constant factor c; the exponent is a slope, a ratio of differences."""
    return (costs.log() / lengths.log()).mean()


def slope_and_intercept(lengths, costs):
    """A line has a slope and an intercept, here a and log c; the exponent is the slope alone."""
    slope = exponent(lengths, costs)
    return torch.stack([slope, costs.log().mean() - slope * lengths.log().mean()])


def slope_turned_round(lengths, costs):
    """The axes are exchanged: this is how length grows with cost."""
    x, y = lengths.log() - lengths.log().mean(), costs.log() - costs.log().mean()
    return x @ y / (y @ y)


def ends_only(lengths, costs):
    """You use the first point and the last only; use least squares over all points."""
    return (costs[-1] / costs[0]).log() / (lengths[-1] / lengths[0]).log()


# 3.6: the bytes of attention with stored maps


def attention_bytes(n: int, keys: int, d_model: int, num_heads: int, bytes_per_number: int) -> int:
    """Bytes that scores, softmax and mixing read and write."""
    sizes = Sizes(n, d_model, num_heads, proj_dim=keys, bytes_per_number=bytes_per_number)
    return moved_bytes(compress_keys(sizes)[2:5])


def draw_sizes(seed: int) -> tuple[int, ...]:
    """Slots, fewer and more than tokens, and once as many keys as queries."""
    table = ((1024, 128, 8, 64, 2), (7, 5, 3, 4, 4), (1, 3, 2, 5, 8), (33, 33, 1, 7, 1))
    n, keys, heads, d_head, per_number = row(seed, table)
    return n, keys, heads * d_head, heads, per_number


def in_numbers(n, keys, d_model, num_heads, bytes_per_number):
    """You count numbers; each of them takes bytes_per_number bytes."""
    return 2 * (n + keys) * d_model + 4 * num_heads * n * keys


def one_map(n, keys, d_model, num_heads, bytes_per_number):
    """You count one map; every head has a map of its own, n × keys."""
    return bytes_per_number * (2 * (n + keys) * d_model + 4 * n * keys)


def maps_only(n, keys, d_model, num_heads, bytes_per_number):
    """These are the maps; queries, keys and values are read as well, and the output is written."""
    return bytes_per_number * 4 * num_heads * n * keys


def softmax_for_nothing(n, keys, d_model, num_heads, bytes_per_number):
    """The softmax is left out: it computes next to nothing, but it reads all maps and writes them again."""
    return bytes_per_number * (2 * (n + keys) * d_model + 2 * num_heads * n * keys)


def softmax_in_one_way(n, keys, d_model, num_heads, bytes_per_number):
    """You count the softmax's maps once; it reads the scores and writes the weights."""
    return bytes_per_number * (2 * (n + keys) * d_model + 3 * num_heads * n * keys)


def reads_only(n, keys, d_model, num_heads, bytes_per_number):
    """You count what is read; results are written to memory, too."""
    return bytes_per_number * ((n + 2 * keys) * d_model + 2 * num_heads * n * keys)


def results_only(n, keys, d_model, num_heads, bytes_per_number):
    """You count the results, which are written; each step must also read what it works on."""
    return bytes_per_number * (n * d_model + 2 * num_heads * n * keys)


def square_maps(n, keys, d_model, num_heads, bytes_per_number):
    """Your maps are n × n; n queries read `keys` keys, so a map is n × keys."""
    return bytes_per_number * (2 * (n + keys) * d_model + 4 * num_heads * n * n)


def as_many_keys_as_tokens(n, keys, d_model, num_heads, bytes_per_number):
    """Keys and values have `keys` rows, not n; only queries and the output have n."""
    return bytes_per_number * (4 * n * d_model + 4 * num_heads * n * keys)


def whole_features_in_every_head(n, keys, d_model, num_heads, bytes_per_number):
    """Each head reads its own d_model / num_heads features; all heads together read d_model, once."""
    return bytes_per_number * num_heads * (2 * (n + keys) * d_model + 4 * n * keys)


EXERCISES = (
    Exercise(
        id="3.1",
        question="Count the operations of A B C, matrices (p, q), (q, r) and (r, s), in the cheaper of both orders.",
        difficulty=1,
        minutes=5,
        trains="counting before measuring, and why the order of products matters",
        reference=chain_flops,
        draw=draw_chain,
        mistakes=(
            from_the_left,
            from_the_right,
            the_dearer,
            cheaper_of_each_step,
            chosen_by_first_product,
            chosen_by_inner_sizes,
            chosen_by_result,
            one_per_pair,
            one_addition_fewer,
            all_at_once,
            first_product_only,
            entries_of_the_results,
        ),
        hints=(
            "Count one order after the other; the result of the first product is a matrix of which shape?",
            "A B is (p, r) and sums q products for each entry; B C is (q, s) and sums r products.",
            "min(2 * p * q * r + 2 * p * r * s, …)",
        ),
    ),
    Exercise(
        id="3.2",
        question="From which n does the n² term make up a given share of a full layer's operations?",
        difficulty=2,
        minutes=5,
        trains="which part of the cost grows with n, and which with n²",
        reference=tokens_for_share,
        draw=draw_share,
        mistakes=(
            share_of_the_weights,
            ratio_of_the_terms,
            where_they_are_equal,
            without_factor_two,
            share_as_of_weights,
            rounded_up,
            rounded_down,
        ),
        hints=(
            "Write the share as a fraction: 4n²d over 8nd² + 4n²d. What cancels?",
            "It is n / (2d + n); set it equal to the share and solve for n, a number that need not be whole.",
            "n = 2 * d_model * share / (1 - …)",
        ),
    ),
    Exercise(
        id="3.3",
        question="By which factor does a layer's floor fall on a processor that computes `factor` times as fast?",
        difficulty=2,
        minutes=6,
        trains="the roofline: which steps gain from a faster processor, and which wait for bytes",
        reference=speedup,
        draw=draw_steps,
        mistakes=(
            everything_faster,
            one_large_step,
            one_after_the_other,
            the_shorter,
            ratio_turned_round,
            seconds_saved,
            memory_faster,
            ceilings_swapped,
            mean_of_the_steps,
        ),
        hints=(
            "Which steps gain nothing? Write the floor of one step first, then add up the steps, for both processors.",
            "flops / flops_per_s and moved / bytes_per_s are (steps,), seconds; torch.maximum takes the longer, step by step.",
            "now = torch.maximum(flops / flops_per_s, moved / bytes_per_s).sum(); then = …; return now / then",
        ),
    ),
    Exercise(
        id="3.4",
        question="Count the operations of a Linformer layer in the paper's order, E(XW).",
        difficulty=2,
        minutes=5,
        trains="what Linformer puts in place of the n² term",
        reference=linformer_flops,
        draw=draw_linformer,
        mistakes=(
            full_layer,
            half_of_it,
            compression_forgotten,
            one_compression,
            queries_compressed,
            still_quadratic,
            projections_of_slots,
        ),
        hints=(
            "Start from 8nd² + 4n²d; which products change their shape, and which are new?",
            "New: (k, n) @ (n, d), twice. Scores: (n, d) @ (d, k). Mixing: (n, k) @ (k, d).",
            "8 * n * d_model**2 + 4 * 2 * …",
        ),
    ),
    Exercise(
        id="3.5",
        question="Find the exponent a in costs ≈ c · lengthsᵃ, by least squares on the logarithms.",
        difficulty=2,
        minutes=7,
        trains="reading from measurements how a cost grows",
        reference=exponent,
        draw=draw_growth,
        mistakes=(
            without_logarithms,
            logarithm_of_costs_only,
            through_the_origin,
            ratio_of_logarithms,
            slope_and_intercept,
            slope_turned_round,
            ends_only,
        ),
        hints=(
            "log cost = log c + a · log length: a straight line.",
            "Slope of a line by least squares: Σ (x − mean x)(y − mean y) / Σ (x − mean x)².",
            "x = lengths.log(); x = x - x.mean(); the same for y; return x @ y / …",
        ),
    ),
    Exercise(
        id="3.6",
        question="Count the bytes that scores, softmax and mixing move: n queries read `keys` keys and values, maps stored.",
        difficulty=2,
        minutes=6,
        trains="counting bytes: every step reads its inputs and writes its result",
        reference=attention_bytes,
        draw=draw_sizes,
        mistakes=(
            in_numbers,
            one_map,
            maps_only,
            softmax_for_nothing,
            softmax_in_one_way,
            reads_only,
            results_only,
            square_maps,
            as_many_keys_as_tokens,
            whole_features_in_every_head,
        ),
        hints=(
            "For each of the three steps: what must be read, and what is written?",
            "Queries and the output are n · d_model numbers, keys and values keys · d_model each, the maps num_heads · n · keys.",
            "maps = num_heads * n * keys; scores read n * d_model + keys * d_model and write maps; softmax …; mixing …",
        ),
    ),
)

QUIZ = (
    Question(
        "The text becomes four times as long. The operations for scores and mixing become …",
        (
            Option("16 times as many", "n² grows by 4².", True),
            Option("4 times as many", "That is true of the projections, which grow with n."),
            Option("8 times as many", "Both sides of the n×n map grow by 4."),
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
        "The softmax over n×n scores contains no matrix product, so our count gives it no operations. On a GPU it is …",
        (
            Option(
                "bound by bytes: it reads and writes n² numbers",
                "It takes as long as it takes to read the maps once and write them once.",
                True,
            ),
            Option("free", "Its n² numbers must be read and written."),
            Option(
                "bound by operations",
                "It does only a few operations with each number, and moving the number takes far longer.",
            ),
            Option("negligible for large n", "It grows with n² like the scores."),
        ),
    ),
    Question(
        "A Linformer layer that projects first and compresses afterwards, as in the paper, needs fewer operations than full attention …",
        (
            Option("for n > 2k", "8nkd and 4n²d are equal at n = 2k.", True),
            Option("for n > k", "Compressing keys and values costs as much again as reading k slots."),
            Option("for n > d", "d multiplies both sides and drops out."),
            Option("for every n", "Below n = 2k the compression costs more than it saves."),
        ),
    ),
    Question(
        "Compared with stored maps, Linformer saves memory. Compared with tiled exact attention, a Linformer layer that stores its n×k maps …",
        (
            Option(
                "needs more",
                "Tiled attention stores no map at all; Linformer's h·n·k scores are stored unless its attention is tiled too.",
                True,
            ),
            Option("needs less, since k < n", "Less than n² is still more than no map."),
            Option("needs the same", "One stores n×k maps, the other none."),
            Option(
                "needs less beyond n = 2k",
                "n = 2k is where the operations are equal; it says nothing about memory.",
            ),
        ),
    ),
)
