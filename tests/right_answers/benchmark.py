"""Right and nearly right answers: benchmark."""

import math
import operator
import statistics
from fractions import Fraction

import numpy
import torch

from right_answers import right, wrong


@right("10.1")
def spread_by_numpy(samples):
    return numpy.percentile(samples.numpy(), [20, 50, 80])


@right("10.1")
def spread_by_hand(samples):
    ordered, percentiles = sorted(samples.tolist()), []
    for share in (0.2, 0.5, 0.8):
        place = share * (len(ordered) - 1)
        low, high = math.floor(place), math.ceil(place)
        percentiles.append(ordered[low] + (place - low) * (ordered[high] - ordered[low]))
    return percentiles


@right("10.1")
def spread_as_a_tuple_with_pythons_median(samples):
    low, high = numpy.quantile(samples, (0.2, 0.8))
    return low, statistics.median(samples.tolist()), torch.tensor(high)


@right("10.1")
def spread_by_pythons_quantiles(samples):
    ordered = samples.tolist()
    if len(ordered) == 1:
        return ordered * 3
    tenths = statistics.quantiles(ordered, n=10, method="inclusive")
    return tenths[1], tenths[4], tenths[7]


@right("10.2")
def ratio_by_numpy(ours, theirs):
    return numpy.median(ours.numpy() / theirs.numpy())


@right("10.2")
def ratio_by_sorting(ours, theirs):
    ordered = (ours / theirs).sort().values
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


@right("10.2")
def ratio_of_logarithms(ours, theirs):
    low, high = ((ours.log() - theirs.log()).quantile(0.5, interpolation=way) for way in ("lower", "higher"))
    return (low.exp() + high.exp()) / 2


@right("10.2")
def ratio_of_mapped_floats(ours, theirs):
    return statistics.median(map(operator.truediv, ours.tolist(), theirs.tolist()))


@right("10.3")
def crossover_by_loop_from_the_end(lengths, ours, theirs):
    lengths, ours, theirs = lengths.tolist(), ours.tolist(), theirs.tolist()
    last = len(lengths) - 1
    for i in range(last, -1, -1):
        if ours[i] >= theirs[i]:
            if i == last:
                return math.nan
            a, b = math.log(ours[i] / theirs[i]), math.log(ours[i + 1] / theirs[i + 1])
            low, high = math.log(lengths[i]), math.log(lengths[i + 1])
            return math.exp(low + a / (a - b) * (high - low))
    return lengths[0]


@right("10.3")
def crossover_by_numpy(lengths, ours, theirs):
    below = numpy.asarray(ours) < numpy.asarray(theirs)
    if below.all():
        return numpy.float32(lengths[0])
    if not below[-1]:
        return numpy.nan
    i = numpy.flatnonzero(~below)[-1]
    gap = numpy.log(ours[i : i + 2].numpy()) - numpy.log(theirs[i : i + 2].numpy())
    return numpy.exp(numpy.interp(0, gap[::-1], numpy.log(lengths[i : i + 2].numpy())[::-1]))


@right("10.3")
def crossover_as_a_tensor_in_double(lengths, ours, theirs):
    gap = ours.double().log() - theirs.double().log()
    above = torch.cat((torch.tensor([-1]), (gap >= 0).nonzero().flatten()))
    i = above.max()
    if i < 0:
        return lengths.min()
    if i == len(gap) - 1:
        return torch.tensor(float("nan"))
    x = lengths.double().log2()
    slope = (gap[i + 1] - gap[i]) / (x[i + 1] - x[i])
    return 2 ** (x[i] - gap[i] / slope)


@wrong("10.3")
def first_fall(lengths, ours, theirs):
    """The first fall below theirs, and not the last."""
    gap = (ours / theirs).log().tolist()
    if gap[-1] >= 0:
        return math.nan
    i = next(j for j, each in enumerate(gap) if each < 0)
    if i == 0:
        return lengths[0]
    return lengths[i - 1] * (lengths[i] / lengths[i - 1]) ** (gap[i - 1] / (gap[i - 1] - gap[i]))


@right("10.4")
def share_by_loop(flops, moved, flops_per_s, bytes_per_s, seconds):
    steps = zip(flops.tolist(), moved.tolist(), strict=True)
    return sum(max(f / flops_per_s, m / bytes_per_s) for f, m in steps) / seconds


@right("10.4")
def share_of_stacked_times(flops, moved, flops_per_s, bytes_per_s, seconds):
    times = torch.stack((flops.double() / flops_per_s, moved.double() / bytes_per_s))
    return (times / seconds).amax(dim=0).sum().item()


@right("10.4")
def share_by_intensity(flops, moved, flops_per_s, bytes_per_s, seconds):
    computes = flops * bytes_per_s > moved * flops_per_s
    return torch.where(computes, flops / flops_per_s, moved / bytes_per_s).sum().reshape(()) / seconds


@right("10.4")
def share_of_fractions(flops, moved, flops_per_s, bytes_per_s, seconds):
    computing = [Fraction(each) / Fraction(flops_per_s) for each in flops.tolist()]
    moving = [Fraction(each) / Fraction(bytes_per_s) for each in moved.tolist()]
    return sum(map(max, computing, moving)) / Fraction(seconds)
