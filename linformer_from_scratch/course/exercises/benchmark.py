"""Exercises of chapter 10."""

import math
import random
import statistics
from collections.abc import Callable

import torch
from torch import Tensor

from linformer_from_scratch.benchmark.statistics import measured_crossover
from linformer_from_scratch.course.exercises.engine.checking import exercise
from linformer_from_scratch.course.exercises.engine.draws import row


def spread(samples: Tensor) -> Tensor:
    """20th percentile, median, 80th percentile, linear between samples. Shape: (rounds,) -> (3,)."""
    return percentiles(samples, 0.2, 0.8)


def percentiles(samples: Tensor, low: float, high: float, between: str = "linear") -> Tensor:
    """The median between two percentiles."""
    return samples.quantile(torch.tensor([low, 0.5, high], dtype=samples.dtype), interpolation=between)


@exercise("10.1", stars=1, minutes=4)
class MedianAndSpread:
    """Median and spread."""

    hints = (
        "A tensor has a function that finds the value below which a given share of its entries lies. Which one?",
        "samples.quantile takes one share, or a tensor of three; percentiles are shares in hundredths.",
        "samples.quantile(torch.tensor([0.2, …, …]))",
    )
    reference = spread

    def draw(seed):
        """Seconds by round, two rounds disturbed; once a single round."""
        generator = torch.Generator().manual_seed(seed)
        (rounds,) = row(seed, ((8,), (1,), (7,), (30,)))
        samples = 0.5 + 0.3 * torch.rand(rounds, generator=generator)
        samples[2:4] *= 4
        return (samples,)

    def mean_in_the_middle(samples):
        """You put the mean in the middle. One disturbed round can drag a mean as far as it likes; the median doesn't follow it."""
        low, _, high = spread(samples)
        return torch.stack((low, samples.mean(), high))

    def least_and_most(samples):
        """You return the smallest and the largest sample. Add rounds and these two only move apart, and one accident sets the largest; you want percentiles."""
        return percentiles(samples, 0, 1)

    def mean_and_deviation(samples):
        """Mean and standard deviation work for bell curves. Times have a long tail on one side, and it moves both of yours; use percentiles."""
        return samples.mean() + samples.std() * torch.tensor([-1, 0, 1])

    def tenth_and_ninetieth(samples):
        """You return the 10th and the 90th percentile, which is a wider interval; here it runs from the 20th to the 80th."""
        return percentiles(samples, 0.1, 0.9)

    def quartiles(samples):
        """Those are quartiles, the 25th and the 75th percentile, the ones every box plot has; we use the 20th and the 80th."""
        return percentiles(samples, 0.25, 0.75)

    def median_first(samples):
        """Your three numbers are right and in the wrong order: low end first, then the median, then the high end."""
        return spread(samples)[[1, 0, 2]]

    def percentiles_of_more_than_the_samples(samples):
        """statistics.quantiles assumes by default that rarer values lie beyond your samples. Here the smallest sample is itself the 0th percentile: look at its method argument."""
        fifths = statistics.quantiles(samples.tolist(), n=5)
        return torch.tensor([fifths[0], statistics.median(samples.tolist()), fifths[-1]])

    def sample_below(samples):
        """Your percentile falls between two samples, and you round down to the lower one; interpolate between them."""
        return percentiles(samples, 0.2, 0.8, between="lower")

    def nearest_sample(samples):
        """Your percentile falls between two samples, and you jump to whichever is nearer; go the exact fraction of the way instead."""
        return percentiles(samples, 0.2, 0.8, between="nearest")

    def lower_of_the_middle_two(samples):
        """Your percentiles are right and your median isn't: of an even number of samples torch.median returns the lower of the two in the middle. quantile(0.5) goes halfway."""
        low, _, high = spread(samples)
        return torch.stack((low, samples.median(), high))

    def picked_unsorted(samples):
        """You pick the samples at those places, but they're in the order of the rounds, not of size; sort first."""
        return samples[[int(share * (len(samples) - 1)) for share in (0.2, 0.5, 0.8)]]

    def picked_at_share_of_rounds(samples):
        """You count places from 0 to rounds. The last one is rounds − 1, so a share q lies at q · (rounds − 1), and mostly between two samples."""
        return samples.sort().values[[int(share * len(samples)) for share in (0.2, 0.5, 0.8)]]


def ratio(ours: Tensor, theirs: Tensor) -> Tensor:
    """Median over rounds of ours / theirs. Shape: (rounds,), (rounds,) -> ()."""
    return (ours / theirs).quantile(0.5)


@exercise("10.2", stars=2, minutes=5)
class RatioWithinRounds:
    """A ratio within rounds."""

    hints = (
        "Whatever slows down a round slows down both layers in it. In which number does that cancel?",
        "ours / theirs is (rounds,), one ratio for each round. You want one number in the end.",
        "(… / …).quantile(0.5)",
    )
    reference = ratio

    def draw(seed):
        """Seconds of two layers under a load common to both in each round; odd and even numbers of rounds."""
        generator = torch.Generator().manual_seed(seed)
        (rounds,) = row(seed, ((9,), (1,), (6,), (30,)))
        own = 1 + 3 * torch.rand(2, rounds, generator=generator)
        load = torch.exp(torch.randn(own.size(1), generator=generator))
        return 0.6 * load * own[0], load * own[1]

    def ratio_of_medians(ours, theirs):
        """You divide two medians, and they may come from different rounds, one busy, one idle. What slows a round cancels only if you divide within it, before the median."""
        return ours.quantile(0.5) / theirs.quantile(0.5)

    def ratio_of_means(ours, theirs):
        """You divide two means, so the slowest rounds decide. Divide round by round first; then a slow round is one ratio among many."""
        return ours.mean() / theirs.mean()

    def ratio_of_the_fastest(ours, theirs):
        """The fastest of each looks like the time without disturbance, and it's one lucky sample each, from different rounds. Use every round: divide, then take the median."""
        return ours.min() / theirs.min()

    def mean_of_ratios(ours, theirs):
        """You divided within the rounds, which is the point. But then you averaged, so a round that disturbed only one of the two drags the result along: median."""
        return (ours / theirs).mean()

    def geometric_mean_of_ratios(ours, theirs):
        """The geometric mean treats 2 and 1/2 fairly, but it's still a mean, and a round that disturbed only one layer still moves it; take the median."""
        return (ours / theirs).log().mean().exp()

    def theirs_over_ours(ours, theirs):
        """You divided the other way round: below 1 should mean that ours is faster."""
        return ratio(theirs, ours)

    def median_of_differences(ours, theirs):
        """You subtract, so a round that's three times as slow counts three times; what slows both layers cancels in a quotient."""
        return (ours - theirs).quantile(0.5)

    def sorted_apart(ours, theirs):
        """You sort each layer's samples on its own, and that tears the rounds apart: sample i of both must come from the same round."""
        return ratio(ours.sort().values, theirs.sort().values)

    def lower_of_the_two_ratios(ours, theirs):
        """The ratios are right. Of an even number of them torch.median returns the lower of the two in the middle; quantile(0.5) goes halfway."""
        return (ours / theirs).median()

    def upper_of_the_two_ratios(ours, theirs):
        """For an even number of rounds you return the upper of the two ratios in the middle; the median is halfway between the two."""
        return (ours / theirs).quantile(0.5, interpolation="higher")

    def geometric_middle(ours, theirs):
        """For an even number of rounds you go halfway between the logarithms of the two middle ratios; go halfway between the ratios themselves."""
        return (ours / theirs).log().quantile(0.5).exp()


def crossover(lengths: Tensor, ours: Tensor, theirs: Tensor) -> float:
    """The length from which ours stays below theirs; nan if it is not below at the last. Shape: (points,) each."""
    length = measured_crossover(lengths.tolist(), ours.tolist(), theirs.tolist())
    return math.nan if length is None else length


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


@exercise("10.3", stars=3, minutes=10)
class Crossover:
    """From which length it is worth it."""

    hints = (
        "Come from the right: where is the last point at which ours is not below? What if there is none? What if it's the very last?",
        "gap = (ours / theirs).log() is (points,), positive at that point i and negative at i + 1. It is zero after the share gap[i] / (gap[i] - gap[i + 1]) of the way.",
        "That share counts along the logarithm of the length: lengths[i] * (lengths[i + 1] / …) ** share",
    )
    reference = crossover

    def draw(seed):
        """Curves that cross three times, that touch, that are equal at the last, one that is below throughout."""
        signs = longer(
            ((1, -1, 1, 1, -1, -1), (-1, 0, -1), (1, -1, 1, 0), (-1, -1, -1, -1, -1))[seed % 4], seed
        )
        generator = torch.Generator().manual_seed(seed)
        lengths = 2.0 ** (8 - seed % 4) * 1.25 ** torch.arange(0, 3 * len(signs), 3)
        theirs = 1e-5 * lengths**2 * (1 + 0.2 * torch.rand(len(signs), generator=generator))
        gaps = torch.tensor(signs) * (0.2 + torch.rand(len(signs), generator=generator))
        return lengths, theirs * gaps.exp(), theirs

    def first_crossing(lengths, ours, theirs):
        """You return the first crossing. In one of our cases ours rises above theirs again, so it stays below only after the last one."""
        return crossing_by(lengths, ours, theirs, lambda i: falls(lengths, ours, theirs)[0])

    def first_crossing_whatever_follows(lengths, ours, theirs):
        """You search from the left and stop at the first crossing, whatever happens after it. Search from the right: where is the last point at which ours isn't below?"""
        crossings = falls(lengths, ours, theirs)
        return crossings[0] if crossings else crossover(lengths, ours, theirs)

    def linear_axes(lengths, ours, theirs):
        """You interpolate on plain axes. Times grow like powers of the length, and powers are straight lines only where both axes are logarithmic."""
        return crossing_by(lengths, ours, theirs, lambda i: zero_between(lengths, ours - theirs, i))

    def logarithm_of_lengths_only(lengths, ours, theirs):
        """The lengths are on a logarithmic axis, the times are not yet: what's zero at the crossing is log ours − log theirs."""
        return crossing_by(
            lengths, ours, theirs, lambda i: zero_between(lengths.log(), ours - theirs, i).exp()
        )

    def logarithm_of_times_only(lengths, ours, theirs):
        """The times are on a logarithmic axis, the length is not yet: interpolate the logarithm of the length, then take exp."""
        return crossing_by(lengths, ours, theirs, lambda i: zero_between(lengths, (ours / theirs).log(), i))

    def logarithm_returned(lengths, ours, theirs):
        """Nearly there: you return the logarithm of the length. One exp is missing at the end."""
        return crossing_by(
            lengths, ours, theirs, lambda i: zero_between(lengths.log(), (ours / theirs).log(), i)
        )

    def point_after(lengths, ours, theirs):
        """You return the first measured length at which ours is ahead. The curves met before it, on the line from the last point at which ours wasn't below."""
        return crossing_by(lengths, ours, theirs, lambda i: lengths[i + 1])

    def point_before(lengths, ours, theirs):
        """You return the last measured length at which ours still loses; the curves meet on the way from it to the next."""
        return crossing_by(lengths, ours, theirs, lambda i: lengths[i])

    def theirs_below_ours(lengths, ours, theirs):
        """You found where theirs wins. Swap the two: from which length is ours, the first, the smaller one?"""
        return crossover(lengths, theirs, ours)

    def end_not_looked_at(lengths, ours, theirs):
        """You return the last place where ours falls below, but in one case it comes up again afterwards. If ours isn't below at the last length, nobody has measured the answer: return nan."""
        crossings = falls(lengths, ours, theirs)
        return crossings[-1] if crossings else crossover(lengths, ours, theirs)

    def last_length_for_never(lengths, ours, theirs):
        """Ours still loses at the last length, and you return that length as if it won there; no measured length is long enough, so return nan."""
        length = crossover(lengths, ours, theirs)
        return lengths[-1].item() if math.isnan(length) else length

    def nan_for_always(lengths, ours, theirs):
        """Ours is below everywhere, so nothing crosses, and you return nan. But then ours is faster from the first measured length on: return that one."""
        return math.nan if (ours < theirs).all() else crossover(lengths, ours, theirs)

    def none_for_never(lengths, ours, theirs):
        """You return None where there's no crossing. Return math.nan, so that whoever calls you always gets a number."""
        length = crossover(lengths, ours, theirs)
        return None if math.isnan(length) else length

    def equal_is_below(lengths, ours, theirs):
        """You count a tie as a win. Where both take the same time, ours isn't below: treat that point like one above."""
        return crossover(lengths, ours.where(ours != theirs, ours.double() * (1 - 1e-9)), theirs.double())


def share_of_floor(
    flops: Tensor, moved: Tensor, flops_per_s: float, bytes_per_s: float, seconds: float
) -> Tensor:
    """Σ over steps of the longer time, of operations or bytes, over the seconds measured. Shape: (steps,), (steps,) -> ()."""
    return torch.maximum(flops / flops_per_s, moved / bytes_per_s).sum() / seconds


@exercise("10.4", stars=2, minutes=6)
class ShareOfRoofline:
    """How much of the roofline is reached."""

    hints = (
        "Chapter 03 found the floor of one step. A layer takes its steps one after the other.",
        "flops / flops_per_s and moved / bytes_per_s are both (steps,). At each step, which of the two do you wait for?",
        "torch.maximum(flops / flops_per_s, …).… / seconds",
    )
    reference = share_of_floor

    def draw(seed):
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
        """You sum first and compare the two sums, as if one step's bytes could travel during another step's operations. Compare within each step, then sum."""
        return torch.maximum(flops.sum() / flops_per_s, moved.sum() / bytes_per_s) / seconds

    def both_times(flops, moved, flops_per_s, bytes_per_s, seconds):
        """You add the two times of a step. The machine computes while it moves, so only the longer one counts."""
        return (flops / flops_per_s + moved / bytes_per_s).sum() / seconds

    def operations_only(flops, moved, flops_per_s, bytes_per_s, seconds):
        """You've left out the bytes. A softmax has hardly any operations, and still takes its time: moving numbers."""
        return (flops / flops_per_s).sum() / seconds

    def bytes_only(flops, moved, flops_per_s, bytes_per_s, seconds):
        """You've left out the operations. A large matrix product takes longer to compute than to move."""
        return (moved / bytes_per_s).sum() / seconds

    def shorter_times(flops, moved, flops_per_s, bytes_per_s, seconds):
        """You take the shorter time of each step. A step is done when both its operations and its bytes are, so wait for the longer."""
        return torch.minimum(flops / flops_per_s, moved / bytes_per_s).sum() / seconds

    def longest_step(flops, moved, flops_per_s, bytes_per_s, seconds):
        """You kept only the longest step. The steps come one after the other, so add them up."""
        return torch.maximum(flops / flops_per_s, moved / bytes_per_s).max() / seconds

    def mean_step(flops, moved, flops_per_s, bytes_per_s, seconds):
        """You average over the steps, but the layer has to take all of them: sum."""
        return torch.maximum(flops / flops_per_s, moved / bytes_per_s).mean() / seconds

    def in_per_cent(flops, moved, flops_per_s, bytes_per_s, seconds):
        """Right, and a hundred times too large: a share lies between 0 and 1, this is in per cent."""
        return 100 * share_of_floor(flops, moved, flops_per_s, bytes_per_s, seconds)

    def seconds_at_least(flops, moved, flops_per_s, bytes_per_s, seconds):
        """You return the floor itself, in seconds. What share of the measured seconds is it?"""
        return torch.maximum(flops / flops_per_s, moved / bytes_per_s).sum()

    def times_the_floor(flops, moved, flops_per_s, bytes_per_s, seconds):
        """You return how many times its floor the layer took. Turn it over: floor / seconds, which is at most 1."""
        return 1 / share_of_floor(flops, moved, flops_per_s, bytes_per_s, seconds)
