"""Chapter 10: exercises and quiz."""

import math
import random
import statistics
from collections.abc import Callable

import torch
from torch import Tensor

from linformer_from_scratch.benchmark.statistics import measured_crossover
from linformer_from_scratch.exercises.engine.checking import Exercise
from linformer_from_scratch.exercises.engine.draws import row
from linformer_from_scratch.exercises.engine.quiz import Option, Question

# 10.1: median and spread


def spread(samples: Tensor) -> Tensor:
    """20th percentile, median, 80th percentile, linear between samples. Shape: (rounds,) -> (3,)."""
    return percentiles(samples, 0.2, 0.8)


def percentiles(samples: Tensor, low: float, high: float, between: str = "linear") -> Tensor:
    """The median between two percentiles."""
    return samples.quantile(torch.tensor([low, 0.5, high], dtype=samples.dtype), interpolation=between)


def draw_samples(seed: int) -> tuple[Tensor]:
    """Seconds by round, two rounds disturbed; once a single round."""
    generator = torch.Generator().manual_seed(seed)
    (rounds,) = row(seed, ((8,), (1,), (7,), (30,)))
    samples = 0.5 + 0.3 * torch.rand(rounds, generator=generator)
    samples[2:4] *= 4
    return (samples,)


def mean_in_the_middle(samples):
    """Your middle is the mean, which one disturbed round pulls along as far as it likes; take the median."""
    low, _, high = spread(samples)
    return torch.stack((low, samples.mean(), high))


def least_and_most(samples):
    """Smallest and largest move apart with every round you add, and one accident sets the largest: take the percentiles."""
    return percentiles(samples, 0, 1)


def mean_and_deviation(samples):
    """That is the mean and one standard deviation to either side; times have a long tail, which moves both: take percentiles."""
    return samples.mean() + samples.std() * torch.tensor([-1, 0, 1])


def tenth_and_ninetieth(samples):
    """These are the 10th and the 90th percentile; the question asks for the 20th and the 80th."""
    return percentiles(samples, 0.1, 0.9)


def quartiles(samples):
    """These are the quartiles, the 25th and the 75th percentile; the question asks for the 20th and the 80th."""
    return percentiles(samples, 0.25, 0.75)


def median_first(samples):
    """The median stands first; the order asked for is 20th percentile, median, 80th percentile."""
    return spread(samples)[[1, 0, 2]]


def percentiles_of_more_than_the_samples(samples):
    """That is the exclusive rule, which allows for values beyond the samples; here the smallest sample is the 0th percentile itself."""
    fifths = statistics.quantiles(samples.tolist(), n=5)
    return torch.tensor([fifths[0], statistics.median(samples.tolist()), fifths[-1]])


def sample_below(samples):
    """Where a percentile lies between two samples, you take the lower one; interpolate linearly between the two."""
    return percentiles(samples, 0.2, 0.8, between="lower")


def nearest_sample(samples):
    """Where a percentile lies between two samples, you take the nearer one; interpolate linearly between the two."""
    return percentiles(samples, 0.2, 0.8, between="nearest")


def lower_of_the_middle_two(samples):
    """Of an even number of samples, torch.median returns the lower of the two in the middle; quantile(0.5) lies halfway."""
    low, _, high = spread(samples)
    return torch.stack((low, samples.median(), high))


def picked_unsorted(samples):
    """The samples come in the order of the rounds; sort them before you count places."""
    return samples[[int(share * (len(samples) - 1)) for share in (0.2, 0.5, 0.8)]]


def picked_at_share_of_rounds(samples):
    """Places run from 0 to rounds − 1, so a share q lies at q · (rounds − 1), mostly between two samples: do not round."""
    return samples.sort().values[[int(share * len(samples)) for share in (0.2, 0.5, 0.8)]]


# 10.2: a ratio within rounds


def ratio(ours: Tensor, theirs: Tensor) -> Tensor:
    """Median over rounds of ours / theirs. Shape: (rounds,), (rounds,) -> ()."""
    return (ours / theirs).quantile(0.5)


def draw_rounds(seed: int) -> tuple[Tensor, Tensor]:
    """Seconds of two layers under a load common to both in each round; odd and even numbers of rounds."""
    generator = torch.Generator().manual_seed(seed)
    (rounds,) = row(seed, ((9,), (1,), (6,), (30,)))
    own = 1 + 3 * torch.rand(2, rounds, generator=generator)
    load = torch.exp(torch.randn(own.size(1), generator=generator))
    return 0.6 * load * own[0], load * own[1]


def ratio_of_medians(ours, theirs):
    """Your two medians may come from two rounds, one busy, one idle: divide round by round first, then take the median."""
    return ours.quantile(0.5) / theirs.quantile(0.5)


def ratio_of_means(ours, theirs):
    """In a ratio of means the slowest rounds decide: divide round by round first, then take the median."""
    return ours.mean() / theirs.mean()


def ratio_of_the_fastest(ours, theirs):
    """The fastest of each may come from two rounds, and one lucky sample decides: divide round by round, take the median."""
    return ours.min() / theirs.min()


def mean_of_ratios(ours, theirs):
    """You average the ratios, and a round that disturbed only one of the two pulls the mean along; take the median."""
    return (ours / theirs).mean()


def geometric_mean_of_ratios(ours, theirs):
    """A mean of logarithms, like any mean, is pulled along by a round that disturbed only one of the two; take the median."""
    return (ours / theirs).log().mean().exp()


def theirs_over_ours(ours, theirs):
    """That is theirs / ours; below 1 should mean that ours is faster."""
    return ratio(theirs, ours)


def median_of_differences(ours, theirs):
    """A difference in seconds grows with the load of its round; in a quotient the load cancels."""
    return (ours - theirs).quantile(0.5)


def sorted_apart(ours, theirs):
    """Sorting each on its own tears the rounds apart: sample i of both must come from the same round."""
    return ratio(ours.sort().values, theirs.sort().values)


def lower_of_the_two_ratios(ours, theirs):
    """Of an even number of ratios, torch.median returns the lower of the two in the middle; quantile(0.5) lies halfway."""
    return (ours / theirs).median()


def upper_of_the_two_ratios(ours, theirs):
    """Of an even number of ratios you take the upper of the two in the middle; the median lies halfway between them."""
    return (ours / theirs).quantile(0.5, interpolation="higher")


def geometric_middle(ours, theirs):
    """Of an even number of ratios you take the root of the product of the two in the middle; the median lies halfway between them."""
    return (ours / theirs).log().quantile(0.5).exp()


# 10.3: from which length it is worth it


def crossover(lengths: Tensor, ours: Tensor, theirs: Tensor) -> float:
    """The length from which ours stays below theirs; nan if it is not below at the last. Shape: (points,) each."""
    length = measured_crossover(lengths.tolist(), ours.tolist(), theirs.tolist())
    return math.nan if length is None else length


def draw_curves(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Curves that cross three times, that touch, that are equal at the last, one that is below throughout."""
    signs = longer(((1, -1, 1, 1, -1, -1), (-1, 0, -1), (1, -1, 1, 0), (-1, -1, -1, -1, -1))[seed % 4], seed)
    generator = torch.Generator().manual_seed(seed)
    lengths = 2.0 ** (8 - seed % 4) * 1.25 ** torch.arange(0, 3 * len(signs), 3)
    theirs = 1e-5 * lengths**2 * (1 + 0.2 * torch.rand(len(signs), generator=generator))
    gaps = torch.tensor(signs) * (0.2 + torch.rand(len(signs), generator=generator))
    return lengths, theirs * gaps.exp(), theirs


def longer(signs: tuple[int, ...], seed: int) -> list[int]:
    """In an exam the same end after one to twenty points more: of any sign, or below where all are."""
    if seed < 4:
        return [*signs]
    generator = random.Random(seed)
    more = generator.choices((-1, -1, 0, 1, 1) if max(signs) >= 0 else (-1,), k=generator.randint(1, 20))
    return [*more, *signs]


def zero_between(x: Tensor, gap: Tensor, i: int) -> Tensor:
    """Where the straight line through points i and i + 1 is zero."""
    return x[i] + gap[i] / (gap[i] - gap[i + 1]) * (x[i + 1] - x[i])


def falls(lengths: Tensor, ours: Tensor, theirs: Tensor) -> list[float]:
    """Every length at which ours falls below theirs, on log axes."""
    x, gap = lengths.log(), (ours / theirs).log()
    below = [i for i in range(len(x) - 1) if gap[i] >= 0 > gap[i + 1]]
    return [zero_between(x, gap, i).exp().item() for i in below]


def crossing_by(
    lengths: Tensor, ours: Tensor, theirs: Tensor, place: Callable[[int], Tensor | float]
) -> float:
    """The crossover, but its place found in another way, from the last point at which ours is above."""
    above = (ours >= theirs).nonzero().flatten().tolist()
    if not above or above[-1] == len(lengths) - 1:
        return crossover(lengths, ours, theirs)
    return float(place(above[-1]))


def first_crossing(lengths, ours, theirs):
    """That is the first crossing; ours rises above theirs once more, and stays below only after the last crossing."""
    return crossing_by(lengths, ours, theirs, lambda i: falls(lengths, ours, theirs)[0])


def first_crossing_whatever_follows(lengths, ours, theirs):
    """You stop at the first crossing; search from the end for the last point at which ours is not below, and go on from there."""
    crossings = falls(lengths, ours, theirs)
    return crossings[0] if crossings else crossover(lengths, ours, theirs)


def linear_axes(lengths, ours, theirs):
    """You interpolate on linear axes; times grow like powers of the length, which are straight lines where both axes are logarithmic."""
    return crossing_by(lengths, ours, theirs, lambda i: zero_between(lengths, ours - theirs, i))


def logarithm_of_lengths_only(lengths, ours, theirs):
    """You take the logarithm of the lengths only; take that of the times as well: log ours − log theirs is zero at the crossing."""
    return crossing_by(lengths, ours, theirs, lambda i: zero_between(lengths.log(), ours - theirs, i).exp())


def logarithm_of_times_only(lengths, ours, theirs):
    """You take the logarithm of the times only; the length lies on a logarithmic axis, too: interpolate its logarithm, then take exp."""
    return crossing_by(lengths, ours, theirs, lambda i: zero_between(lengths, (ours / theirs).log(), i))


def logarithm_returned(lengths, ours, theirs):
    """That is the logarithm of the length: you have interpolated the logarithm of the length, so take exp of the result."""
    return crossing_by(lengths, ours, theirs, lambda i: zero_between(lengths.log(), (ours / theirs).log(), i))


def point_after(lengths, ours, theirs):
    """That is the first measured length after the crossing; the curves meet before it, on the line from the last point above."""
    return crossing_by(lengths, ours, theirs, lambda i: lengths[i + 1])


def point_before(lengths, ours, theirs):
    """That is the last measured length at which ours is still above; the curves meet between it and the next."""
    return crossing_by(lengths, ours, theirs, lambda i: lengths[i])


def theirs_below_ours(lengths, ours, theirs):
    """You have swapped the two curves: the question is from where on ours, the first of the two, is the smaller."""
    return crossover(lengths, theirs, ours)


def end_not_looked_at(lengths, ours, theirs):
    """You return the last fall below, but in one case ours rises again after it: if ours is not below at the last length, return nan."""
    crossings = falls(lengths, ours, theirs)
    return crossings[-1] if crossings else crossover(lengths, ours, theirs)


def last_length_for_never(lengths, ours, theirs):
    """Where ours is not below at the last length, no measured length is long enough; return nan instead of the last one."""
    length = crossover(lengths, ours, theirs)
    return lengths[-1].item() if math.isnan(length) else length


def nan_for_always(lengths, ours, theirs):
    """Where ours is below throughout, nothing crosses, and yet ours is faster from the first measured length on: return that one."""
    return math.nan if (ours < theirs).all() else crossover(lengths, ours, theirs)


def none_for_never(lengths, ours, theirs):
    """You return None where ours is not below at the last; return math.nan, so that the answer is always a number."""
    length = crossover(lengths, ours, theirs)
    return None if math.isnan(length) else length


def equal_is_below(lengths, ours, theirs):
    """Where both take the same time, ours is not below: a point of equal times counts like one above."""
    return crossover(lengths, ours.where(ours != theirs, ours.double() * (1 - 1e-9)), theirs.double())


# 10.4: how much of the roofline is reached


def share_of_floor(
    flops: Tensor, moved: Tensor, flops_per_s: float, bytes_per_s: float, seconds: float
) -> Tensor:
    """Σ over steps of the longer time, of operations or bytes, over the seconds measured. Shape: (steps,), (steps,) -> ()."""
    return torch.maximum(flops / flops_per_s, moved / bytes_per_s).sum() / seconds


def draw_layer(seed: int) -> tuple[Tensor, Tensor, float, float, float]:
    """A layer's steps, the first without operations unless it is the only one; ceilings; seconds above the floor."""
    steps, flops_per_s, bytes_per_s, slower = row(
        seed, ((5, 2e12, 3e11, 1.1), (1, 7e11, 5e10, 1.9), (3, 4e12, 1e12, 1.3), (6, 9e11, 2e11, 2.3))
    )
    work = torch.randint(1, 100, (2, steps), generator=torch.Generator().manual_seed(seed))
    flops, moved = work * torch.tensor([[round(flops_per_s / 1000)], [round(bytes_per_s / 1000)]])
    if steps > 1:
        flops[0] = 0
    return flops, moved, flops_per_s, bytes_per_s, slower * work.sum().item() / 1000


def larger_of_the_sums(flops, moved, flops_per_s, bytes_per_s, seconds):
    """You sum before you compare, as if one step's bytes could travel during another's operations: compare step by step."""
    return torch.maximum(flops.sum() / flops_per_s, moved.sum() / bytes_per_s) / seconds


def both_times(flops, moved, flops_per_s, bytes_per_s, seconds):
    """You add the two times of a step; a machine computes while it moves, so only the longer counts."""
    return (flops / flops_per_s + moved / bytes_per_s).sum() / seconds


def operations_only(flops, moved, flops_per_s, bytes_per_s, seconds):
    """Bytes are left out: a step without matrix products, like a softmax, takes time as well."""
    return (flops / flops_per_s).sum() / seconds


def bytes_only(flops, moved, flops_per_s, bytes_per_s, seconds):
    """Operations are left out: a large matrix product takes longer to compute than to move."""
    return (moved / bytes_per_s).sum() / seconds


def shorter_times(flops, moved, flops_per_s, bytes_per_s, seconds):
    """You take the shorter time of each step; a step is done when its operations and its bytes are both done."""
    return torch.minimum(flops / flops_per_s, moved / bytes_per_s).sum() / seconds


def longest_step(flops, moved, flops_per_s, bytes_per_s, seconds):
    """That is the longest step alone; steps follow one another, so their times add up."""
    return torch.maximum(flops / flops_per_s, moved / bytes_per_s).max() / seconds


def mean_step(flops, moved, flops_per_s, bytes_per_s, seconds):
    """You take the mean over the steps; the layer takes all of them, so their times add up."""
    return torch.maximum(flops / flops_per_s, moved / bytes_per_s).mean() / seconds


def in_per_cent(flops, moved, flops_per_s, bytes_per_s, seconds):
    """That is in per cent; a share is a number between 0 and 1."""
    return 100 * share_of_floor(flops, moved, flops_per_s, bytes_per_s, seconds)


def seconds_at_least(flops, moved, flops_per_s, bytes_per_s, seconds):
    """That is the floor itself, in seconds; the question asks for the floor as a share of the measured seconds."""
    return torch.maximum(flops / flops_per_s, moved / bytes_per_s).sum()


def times_the_floor(flops, moved, flops_per_s, bytes_per_s, seconds):
    """That says how many times the floor it took; the share reached is floor / seconds, at most 1."""
    return 1 / share_of_floor(flops, moved, flops_per_s, bytes_per_s, seconds)


EXERCISES = (
    Exercise(
        id="10.1",
        question="Return the 20th percentile, the median and the 80th percentile of samples (rounds,) as a tensor (3,), in this order.",
        difficulty=1,
        minutes=4,
        trains="saying how sure a time is, on a machine that is never quiet",
        reference=spread,
        draw=draw_samples,
        mistakes=(
            mean_in_the_middle,
            least_and_most,
            mean_and_deviation,
            tenth_and_ninetieth,
            quartiles,
            median_first,
            percentiles_of_more_than_the_samples,
            sample_below,
            nearest_sample,
            lower_of_the_middle_two,
            picked_unsorted,
            picked_at_share_of_rounds,
        ),
        hints=(
            "Which function of a tensor finds the value below which a given share of its entries lies?",
            "samples.quantile takes one share, or a tensor of three; percentiles are shares in hundredths.",
            "samples.quantile(torch.tensor([0.2, …, …]))",
        ),
    ),
    Exercise(
        id="10.2",
        question="Two layers took turns in the same rounds: return the median over rounds of ours / theirs.",
        difficulty=2,
        minutes=5,
        trains="comparing two layers on a machine that others use, too",
        reference=ratio,
        draw=draw_rounds,
        mistakes=(
            ratio_of_medians,
            ratio_of_means,
            ratio_of_the_fastest,
            mean_of_ratios,
            geometric_mean_of_ratios,
            theirs_over_ours,
            median_of_differences,
            sorted_apart,
            lower_of_the_two_ratios,
            upper_of_the_two_ratios,
            geometric_middle,
        ),
        hints=(
            "What slows down a round slows down both layers in it: in which number does that cancel?",
            "ours / theirs is (rounds,), one ratio for each round; the answer is one number.",
            "(… / …).quantile(0.5)",
        ),
    ),
    Exercise(
        id="10.3",
        question="From which length on does ours stay below theirs, if you interpolate linearly on log-log axes? The first length if it is always below, nan if it is not below at the last; equal is not below.",
        difficulty=3,
        minutes=10,
        trains="finding the length from which a layer stays faster",
        reference=crossover,
        draw=draw_curves,
        mistakes=(
            first_crossing,
            first_crossing_whatever_follows,
            linear_axes,
            logarithm_of_lengths_only,
            logarithm_of_times_only,
            logarithm_returned,
            point_after,
            point_before,
            theirs_below_ours,
            end_not_looked_at,
            last_length_for_never,
            nan_for_always,
            none_for_never,
            equal_is_below,
        ),
        hints=(
            "Look for the last point at which ours is not below. What if there is none? What if it is the very last?",
            "gap = (ours / theirs).log() is (points,), positive at that point i and negative at i + 1. It is zero after the share gap[i] / (gap[i] - gap[i + 1]) of the way.",
            "That share counts along the logarithm of the length: lengths[i] * (lengths[i + 1] / …) ** share",
        ),
    ),
    Exercise(
        id="10.4",
        question="Which share of the roofline does a layer reach? Divide the sum of its steps' floors by its seconds.",
        difficulty=2,
        minutes=6,
        trains="telling how far a measured time lies from what the machine can do",
        reference=share_of_floor,
        draw=draw_layer,
        mistakes=(
            larger_of_the_sums,
            both_times,
            operations_only,
            bytes_only,
            shorter_times,
            longest_step,
            mean_step,
            in_per_cent,
            seconds_at_least,
            times_the_floor,
        ),
        hints=(
            "Chapter 03 found the floor of one step; a layer's steps come one after the other.",
            "flops / flops_per_s and moved / bytes_per_s are (steps,): the longer of the two at each step, then one sum.",
            "torch.maximum(flops / flops_per_s, …).… / seconds",
        ),
    ),
)

QUIZ = (
    Question(
        "A clock around a layer on a GPU shows 40 µs at n = 1,024, and 40 µs at n = 65,536. Why?",
        (
            Option(
                "The call only queued the work; nobody waited for it",
                "Python goes on at once. Synchronise before you read the clock, or let the GPU record events.",
                True,
            ),
            Option(
                "The layer takes 40 µs: the call has returned, so the GPU is done",
                "A call to a GPU returns when the work is queued, not when it is done.",
            ),
            Option("The layer is linear in n", "Then 64 times the tokens would take about 64 times as long."),
            Option(
                "The clock is too coarse for a GPU",
                "time.perf_counter resolves less than a microsecond.",
            ),
        ),
    ),
    Question(
        "Two layers took turns for 15 rounds; in some of them another program ran as well. Which number compares them best?",
        (
            Option(
                "the median over rounds of ours / theirs",
                "What slows a whole round slows both layers, and cancels in the ratio. A round in which only one layer was disturbed cannot move the median far.",
                True,
            ),
            Option(
                "mean of ours / mean of theirs",
                "In a mean a round that is ten times as slow weighs ten times as much.",
            ),
            Option(
                "the fastest of ours / the fastest of theirs",
                "These are two samples of thirty, and their rounds may have had different loads.",
            ),
            Option(
                "the same ratio for inputs of zeros",
                "Zeros are not harmless: a GPU that works at its limit of power can run faster on them, and errors hide.",
            ),
        ),
    ),
    Question(
        "Over seven rounds a new layer is 1.3 times as fast as the old one, with a 20 to 80 % interval of 0.9 to 1.8. What do you write?",
        (
            Option(
                "The two cannot be told apart in these rounds: 1.3 (0.9–1.8)",
                "The interval contains 1: even in some rounds inside the interval the new layer was the slower one.",
                True,
            ),
            Option(
                "It is 1.3 times as fast",
                "The median alone hides that the rounds disagree about who is faster.",
            ),
            Option(
                "It is up to 1.8 times as fast",
                "One could just as well say that it takes up to 1.1 times as long. A fifth of the rounds lies beyond either end.",
            ),
            Option(
                "They are equally fast",
                "Seven rounds that disagree do not show that. More rounds, or a quieter machine, may yet tell the two apart.",
            ),
        ),
    ),
    Question(
        "A layer reaches 100 % of its roofline on some machine. What follows?",
        (
            Option(
                "These steps cannot be faster there; other steps that need fewer operations or bytes can",
                "A floor belongs to a sequence of steps. (EX)W has a lower floor than E(XW), although both give the same result if there are no biases and the heads share E.",
                True,
            ),
            Option(
                "Its algorithm cannot be improved",
                "A layer that moves stored n×n maps at full speed is at its floor, too. One that works in tiles moves no maps, and has a lower floor.",
            ),
            Option(
                "A layer with half the operations would take half the time",
                "Only if operations, and not bytes, decide its time, and if the new layer reaches 100 % as well.",
            ),
            Option(
                "It is faster than any layer that reaches 50 %",
                "A layer at 50 % is the faster one if its floor is less than half as high.",
            ),
        ),
    ),
    Question(
        "You reset a GPU's peak (the most memory held), note what is held, run a layer without gradients, and subtract. This gives …",
        (
            Option(
                "the most that the call held at one moment: its result and its intermediate results",
                "Whatever was held before, weights and input too, has been subtracted.",
                True,
            ),
            Option(
                "the most that the call held at one moment, and the weights",
                "The weights were held before the call, so they have been subtracted. E and F, 2·n·k numbers, must be counted separately.",
            ),
            Option(
                "all memory that the process takes on the GPU",
                "That is what nvidia-smi shows, with PyTorch's reserve and the driver's context.",
            ),
            Option(
                "the sum of all results of its steps",
                "Some are freed before others are made; a peak counts what is held at the same time.",
            ),
        ),
    ),
    Question(
        "At n = 65,536 Linformer needs 52 times less memory in table 3, and twice as much in Dao et al. How?",
        (
            Option(
                "Table 3 compares with stored n×n maps; FlashAttention stores none",
                "In the table of FlashAttention's authors memory is O(n) on both sides, and the Linformer measured there stored its n×k maps. Time is another matter: n² against n·k.",
                True,
            ),
            Option(
                "Table 3 compares with FlashAttention too, on another machine",
                "Table 3 is from 2020, and FlashAttention from 2022.",
            ),
            Option("FlashAttention approximates", "It is exact: it computes every score, tile by tile."),
            Option(
                "One of them measured wrongly",
                "Both are right. Linformer saves memory against stored n×n maps. Against a kernel that stores none, it saves only if it stores none either.",
            ),
        ),
    ),
)
