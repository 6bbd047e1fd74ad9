"""Exercises of chapter 03."""

import math

import torch
from torch import Tensor

from linformer_from_scratch.cost import Sizes, compress_keys, flops, moved_bytes
from linformer_from_scratch.course.exercises.engine.checking import exercise
from linformer_from_scratch.course.exercises.engine.draws import row


def chain_flops(p: int, q: int, r: int, s: int) -> int:
    """The fewer of both orders' operations, for matrices (p, q), (q, r) and (r, s)."""
    return min(orders(p, q, r, s))


def orders(p: int, q: int, r: int, s: int) -> tuple[int, int]:
    """The operations of (AB)C, and of A(BC)."""
    return 2 * p * q * r + 2 * p * r * s, 2 * q * r * s + 2 * p * q * s


@exercise("3.1", stars=1, minutes=5)
class CheaperOrder:
    """Operations of three matrices, in the cheaper order."""

    hints = (
        "Take one order at a time. What shape comes out of its first product?",
        "A B is (p, r), and each entry sums q products. B C is (q, s), and each entry sums r of them.",
        "min(2 * p * q * r + 2 * p * r * s, …)",
    )
    reference = chain_flops

    def draw(seed):
        """p, q, r, s; (AB)C is cheaper in every second draw, A(BC) in the others; the outer and the inner two do not tell."""
        p, q, r, s = row(seed, ((3, 2, 7, 11), (5, 7, 11, 13), (64, 13, 4, 2), (5, 11, 2, 3)))
        sizes = (p, q, r, s) if (p < s) is (q < r) else (p, r, q, s)
        left, right = orders(*sizes)
        return sizes if (left < right) is bool(seed % 2) else sizes[::-1]  # turned round, they change places

    def from_the_left(p, q, r, s):
        """You always count (AB)C. For some of the sizes A(BC) is cheaper, so count both and take the smaller number."""
        return orders(p, q, r, s)[0]

    def from_the_right(p, q, r, s):
        """You always count A(BC). For some of the sizes (AB)C is cheaper, so count both and take the smaller number."""
        return orders(p, q, r, s)[1]

    def the_dearer(p, q, r, s):
        """That's the expensive order. You have both numbers already, so take the other one."""
        return max(orders(p, q, r, s))

    def cheaper_of_each_step(p, q, r, s):
        """You picked the cheaper first product and the cheaper second one, perhaps from different orders. Finish each order, then compare."""
        return 2 * min(p * q * r, q * r * s) + 2 * min(p * r * s, p * q * s)

    def chosen_by_first_product(p, q, r, s):
        """You let the first product decide. A cheap start can lead to an expensive second product; compare the two sums."""
        return orders(p, q, r, s)[p >= s]

    def chosen_by_inner_sizes(p, q, r, s):
        """You let q and r decide, but p and s matter just as much. Work out both orders in full and compare."""
        return orders(p, q, r, s)[r >= q]

    def chosen_by_result(p, q, r, s):
        """You picked the order with the smaller matrix in between. Small doesn't mean cheap: compare the operations instead."""
        return orders(p, q, r, s)[p * r >= q * s]

    def one_per_pair(p, q, r, s):
        """You're off by a factor of two: a multiply-add counts as two operations here, the product and the sum."""
        return chain_flops(p, q, r, s) // 2

    def one_addition_fewer(p, q, r, s):
        """You count 2 · inner − 1 for each entry. That's exact, but the chapter rounds up to 2 · inner, as PyTorch's counter does."""
        left = p * r * (2 * q - 1) + p * s * (2 * r - 1)
        right = q * s * (2 * r - 1) + p * s * (2 * q - 1)
        return min(left, right)

    def all_at_once(p, q, r, s):
        """You sum over q and r at once. There are two products, one after the other: which matrix comes out of the first?"""
        return 2 * p * q * r * s

    def first_product_only(p, q, r, s):
        """You stopped after the first product. Its result still has to meet the third matrix."""
        return min(2 * p * q * r, 2 * q * r * s)

    def entries_of_the_results(p, q, r, s):
        """You count the entries of the results. Each entry is a dot product: how many terms does it add up?"""
        return min(p * r, q * s) + p * s


def tokens_for_share(d_model: int, share: float) -> float:
    """The n at which 4n²d is this share of 8nd² + 4n²d."""
    return 2 * d_model * share / (1 - share)


@exercise("3.2", stars=2, minutes=5)
class ShareOfTheSquare:
    """Where the n² term reaches a share."""

    hints = (
        "Write the share as a fraction, 4n²d over 8nd² + 4n²d. What cancels?",
        "You should have n / (2d + n). Set it equal to the share and solve for n, which needn't be whole.",
        "n = 2 * d_model * share / (1 - …)",
    )
    reference = tokens_for_share

    def draw(seed):
        """d_model, share."""
        return row(seed, ((512, 0.75), (64, 0.25), (5, 0.7), (96, 0.625)))

    def share_of_the_weights(d_model, share):
        """You found where the weights reach that share. Swap the roles: the question is about the n² term."""
        return 2 * d_model * (1 - share) / share

    def ratio_of_the_terms(d_model, share):
        """You set 4n²d to that multiple of 8nd². A share is measured against both terms together."""
        return 2 * d_model * share

    def where_they_are_equal(d_model, share):
        """You always return 2d, where the share is one half. Here it's another share."""
        return 2.0 * d_model

    def without_factor_two(d_model, share):
        """You lost a factor of two on the way. Cancel once more: 4n²d / 8nd² is n / 2d."""
        return d_model * share / (1 - share)

    def share_as_of_weights(d_model, share):
        """You divide by 1 + share. If the n² term has this share of the whole, how much is left for the weights?"""
        return 2 * d_model * share / (1 + share)

    def rounded_up(d_model, share):
        """You round up. The number may have a fraction; return it as it is."""
        return math.ceil(tokens_for_share(d_model, share))

    def rounded_down(d_model, share):
        """You round down. The number may have a fraction; return it as it is."""
        return math.floor(tokens_for_share(d_model, share))


def speedup(flops: Tensor, moved: Tensor, flops_per_s: float, bytes_per_s: float, factor: float) -> Tensor:
    """The layer's floor over that of a processor with `factor` times the operations per second. Shape: (m,), (m,) -> ()."""
    then = floor_of(flops, moved, factor * flops_per_s, bytes_per_s)
    return floor_of(flops, moved, flops_per_s, bytes_per_s) / then


def floor_of(flops, moved, flops_per_s, bytes_per_s):
    """The sum of the longer times."""
    return torch.maximum(flops / flops_per_s, moved / bytes_per_s).sum()


@exercise("3.3", stars=2, minutes=6)
class FasterProcessor:
    """What a faster processor saves."""

    hints = (
        "Which steps gain nothing? Write down the floor of one step, then add up the steps, once for each processor.",
        "flops / flops_per_s and moved / bytes_per_s are seconds, (steps,). torch.maximum picks the longer, step by step.",
        "now = torch.maximum(flops / flops_per_s, moved / bytes_per_s).sum(); then = …; return now / then",
    )
    reference = speedup

    def draw(seed):
        """Steps, of which one computes nothing unless it is the only one, and a machine."""
        table = ((5, 3e5, 4e5, 2.0), (3, 7e5, 2e5, 3.0), (1, 2e5, 6e5, 4.0), (4, 4e5, 5e5, 1.5))
        count, *machine = row(seed, table)
        generator = torch.Generator().manual_seed(seed)
        flops, moved = torch.randint(10**5, 10**6, (2, count), generator=generator).double()
        flops[1:2] = 0.0
        return flops, moved, *machine

    def everything_faster(flops, moved, flops_per_s, bytes_per_s, factor):
        """You speed up everything. A step that waits for its bytes doesn't notice the new processor."""
        return factor

    def one_large_step(flops, moved, flops_per_s, bytes_per_s, factor):
        """You added up all operations and all bytes before comparing. Steps run one after another, so each has its own floor; add up those."""
        moving = moved.sum() / bytes_per_s
        now, then = flops.sum() / flops_per_s, flops.sum() / (factor * flops_per_s)
        return torch.maximum(now, moving) / torch.maximum(then, moving)

    def one_after_the_other(flops, moved, flops_per_s, bytes_per_s, factor):
        """You add computing and moving. A machine does both at once, so a step takes as long as the longer of the two."""
        computing, moving = flops.sum() / flops_per_s, moved.sum() / bytes_per_s
        return (computing + moving) / (computing / factor + moving)

    def the_shorter(flops, moved, flops_per_s, bytes_per_s, factor):
        """You take the shorter of the two times. A step is done only when both its operations and its bytes are."""
        moving = moved / bytes_per_s
        now = torch.minimum(flops / flops_per_s, moving).sum()
        return now / torch.minimum(flops / (factor * flops_per_s), moving).sum()

    def ratio_turned_round(flops, moved, flops_per_s, bytes_per_s, factor):
        """Your ratio is upside down. Old over new: a faster machine should give a number above one."""
        return 1 / speedup(flops, moved, flops_per_s, bytes_per_s, factor)

    def seconds_saved(flops, moved, flops_per_s, bytes_per_s, factor):
        """You return the seconds saved. The question asks how many times shorter, so divide instead of subtracting."""
        then = floor_of(flops, moved, factor * flops_per_s, bytes_per_s)
        return floor_of(flops, moved, flops_per_s, bytes_per_s) - then

    def memory_faster(flops, moved, flops_per_s, bytes_per_s, factor):
        """You made the memory faster. It's the arithmetic that improves: which of the two ceilings is that?"""
        then = floor_of(flops, moved, flops_per_s, factor * bytes_per_s)
        return floor_of(flops, moved, flops_per_s, bytes_per_s) / then

    def ceilings_swapped(flops, moved, flops_per_s, bytes_per_s, factor):
        """You swapped the ceilings. Operations go with operations per second, and bytes with bytes per second."""
        return speedup(flops, moved, bytes_per_s, flops_per_s, factor)

    def mean_of_the_steps(flops, moved, flops_per_s, bytes_per_s, factor):
        """You average the steps' ratios, as if a short step counted as much as a long one. Add up the seconds first, then divide."""
        moving = moved / bytes_per_s
        now = torch.maximum(flops / flops_per_s, moving)
        return (now / torch.maximum(flops / (factor * flops_per_s), moving)).mean()


def linformer_flops(n: int, d_model: int, proj_dim: int) -> int:
    """8nd² + 8nkd."""
    return flops(compress_keys(Sizes(n, d_model, num_heads=1, proj_dim=proj_dim)))


@exercise("3.4", stars=2, minutes=5)
class LinformerFlops:
    """Operations of Linformer."""

    hints = (
        "Start from 8nd² + 4n²d. Which products change their shape, and which ones are new?",
        "New: (k, n) @ (n, d), twice. Scores: (n, d) @ (d, k). Mixing: (n, k) @ (k, d).",
        "8 * n * d_model**2 + 4 * 2 * …",
    )
    reference = linformer_flops

    def draw(seed):
        """n, d_model, proj_dim."""
        return row(seed, ((1024, 512, 128), (7, 64, 3), (1, 3, 5), (333, 96, 31)))

    def full_layer(n, d_model, proj_dim):
        """That's full attention, 8nd² + 4n²d. In Linformer n queries attend to proj_dim summaries, and making those costs something too."""
        return 8 * n * d_model**2 + 4 * n**2 * d_model

    def half_of_it(n, d_model, proj_dim):
        """You count a multiply-add as one operation. Here it's two, as everywhere in this chapter."""
        return linformer_flops(n, d_model, proj_dim) // 2

    def compression_forgotten(n, d_model, proj_dim):
        """You get the summaries for free. E K and F V are products as well: what do they cost?"""
        return 8 * n * d_model**2 + 4 * n * proj_dim * d_model

    def one_compression(n, d_model, proj_dim):
        """You compress once. Keys and values each need it: E K and F V."""
        return 8 * n * d_model**2 + 6 * n * proj_dim * d_model

    def queries_compressed(n, d_model, proj_dim):
        """You compressed the queries too. All n of them stay, so a map is n × k and not k × k."""
        return 8 * n * d_model**2 + 4 * n * proj_dim * d_model + 4 * proj_dim**2 * d_model

    def still_quadratic(n, d_model, proj_dim):
        """You paid for the compression and then kept the n×n maps. After compressing, how many keys does a query attend to?"""
        return 8 * n * d_model**2 + 4 * n * proj_dim * d_model + 4 * n**2 * d_model

    def projections_of_slots(n, d_model, proj_dim):
        """You project k rows to keys and values. In the paper's order, E(XW), the weights meet all n tokens first, and E comes after."""
        return 4 * n * d_model**2 + 4 * proj_dim * d_model**2 + 8 * n * proj_dim * d_model


def exponent(lengths: Tensor, costs: Tensor) -> Tensor:
    """Slope of the least-squares line through (log length, log cost). Shape: (m,), (m,) -> ()."""
    return slope(lengths.log(), costs.log())


def slope(x, y):
    """That of the least-squares line through these points."""
    x, y = x - x.mean(), y - y.mean()
    return x @ y / (x @ x)


@exercise("3.5", stars=2, minutes=7)
class Exponent:
    """The exponent of a growth."""

    hints = (
        "Take logarithms: log cost = log c + a · log length. What kind of curve is that?",
        "A straight line. Its least-squares slope is Σ (x − mean x)(y − mean y) / Σ (x − mean x)².",
        "x = lengths.log(); x = x - x.mean(); the same for y; return x @ y / …",
    )
    reference = exponent

    def draw(seed):
        """Lengths, and costs that grow as a power of them, with some noise."""
        generator = torch.Generator().manual_seed(seed)
        points, power = row(seed, ((5, 2.0), (7, 1.0), (4, 1.5), (40, 0.5)))
        lengths = 2.0 ** torch.arange(3, 3 + points)
        return lengths, 3 * lengths**power * (1 + 0.2 * torch.rand(points, generator=generator))

    def without_logarithms(lengths, costs):
        """You fitted a line to the raw numbers. A power law is a straight line only after taking logarithms of both."""
        return slope(lengths, costs)

    def logarithm_of_costs_only(lengths, costs):
        """You took the logarithm of the costs but not of the lengths. A power needs both axes logarithmic."""
        return slope(lengths, costs.log())

    def through_the_origin(lengths, costs):
        """You force the line through the origin, so the constant c bends the slope. Subtract the two means first."""
        x, y = lengths.log(), costs.log()
        return x @ y / (x @ x)

    def ratio_of_logarithms(lengths, costs):
        """You divide log cost by log length, which mixes the constant c into a. A slope is a ratio of differences."""
        return (costs.log() / lengths.log()).mean()

    def slope_and_intercept(lengths, costs):
        """You return slope and intercept, a and log c. The exponent is the slope alone."""
        power = exponent(lengths, costs)
        return torch.stack([power, costs.log().mean() - power * lengths.log().mean()])

    def slope_turned_round(lengths, costs):
        """You swapped the axes: that's how length grows with cost."""
        return exponent(costs, lengths)

    def ends_only(lengths, costs):
        """You use the first and the last point and ignore the rest. Least squares lets every point have a say."""
        return (costs[-1] / costs[0]).log() / (lengths[-1] / lengths[0]).log()


def attention_bytes(n: int, keys: int, d_model: int, num_heads: int, bytes_per_number: int) -> int:
    """Bytes that scores, softmax and mixing read and write."""
    sizes = Sizes(n, d_model, num_heads, proj_dim=keys, bytes_per_number=bytes_per_number)
    return moved_bytes(compress_keys(sizes)[2:5])


@exercise("3.6", stars=2, minutes=6)
class AttentionBytes:
    """The bytes of attention with stored maps."""

    hints = (
        "Go step by step. What does it have to read, and what does it write?",
        "Queries and output are n · d_model numbers each, keys and values keys · d_model, all maps num_heads · n · keys.",
        "maps = num_heads * n * keys; scores read n * d_model + keys * d_model and write maps; softmax …; mixing …",
    )
    reference = attention_bytes

    def draw(seed):
        """Slots, fewer and more than tokens, and once as many keys as queries."""
        table = ((1024, 128, 8, 64, 2), (7, 5, 3, 4, 4), (1, 3, 2, 5, 8), (33, 33, 1, 7, 1))
        n, keys, heads, d_head, per_number = row(seed, table)
        return n, keys, heads * d_head, heads, per_number

    def in_numbers(n, keys, d_model, num_heads, bytes_per_number):
        """You count numbers. How many bytes does each of them take?"""
        return 2 * (n + keys) * d_model + 4 * num_heads * n * keys

    def one_map(n, keys, d_model, num_heads, bytes_per_number):
        """You count one map, but every head has its own, n × keys."""
        return bytes_per_number * (2 * (n + keys) * d_model + 4 * n * keys)

    def maps_only(n, keys, d_model, num_heads, bytes_per_number):
        """You count the maps alone. Queries, keys and values are read too, and the output is written."""
        return bytes_per_number * 4 * num_heads * n * keys

    def softmax_for_nothing(n, keys, d_model, num_heads, bytes_per_number):
        """You left out the softmax. It hardly computes anything, and still it reads every map and writes it again."""
        return bytes_per_number * (2 * (n + keys) * d_model + 2 * num_heads * n * keys)

    def softmax_in_one_way(n, keys, d_model, num_heads, bytes_per_number):
        """You count the softmax's maps once. It reads the scores and writes the weights: that's two maps a head."""
        return bytes_per_number * (2 * (n + keys) * d_model + 3 * num_heads * n * keys)

    def reads_only(n, keys, d_model, num_heads, bytes_per_number):
        """You count what is read. Every result also goes back to memory."""
        return bytes_per_number * ((n + 2 * keys) * d_model + 2 * num_heads * n * keys)

    def results_only(n, keys, d_model, num_heads, bytes_per_number):
        """You count what is written. Every step also has to read its inputs."""
        return bytes_per_number * (n * d_model + 2 * num_heads * n * keys)

    def square_maps(n, keys, d_model, num_heads, bytes_per_number):
        """Your maps are n × n. A query attends to `keys` keys: what's the shape then?"""
        return bytes_per_number * (2 * (n + keys) * d_model + 4 * num_heads * n * n)

    def as_many_keys_as_tokens(n, keys, d_model, num_heads, bytes_per_number):
        """You gave keys and values n rows. They have `keys` rows; only queries and the output have n."""
        return bytes_per_number * (4 * n * d_model + 4 * num_heads * n * keys)

    def whole_features_in_every_head(n, keys, d_model, num_heads, bytes_per_number):
        """You let every head read all d_model features. A head reads its own slice, and the slices of all heads add up to d_model."""
        return bytes_per_number * num_heads * (2 * (n + keys) * d_model + 4 * n * keys)
