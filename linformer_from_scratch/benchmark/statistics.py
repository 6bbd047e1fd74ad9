"""What a few samples of seconds say: median and spread, ratios within a run, crossovers."""

import math
from collections.abc import Sequence
from statistics import median, quantiles


def spread(samples: Sequence[float]) -> tuple[float, float, float]:
    """20th percentile, median, 80th percentile; of one sample three times itself.

    The mean would follow the few rounds in which the machine did something else.
    Raises: ValueError if there is no sample.
    """
    if not samples:
        raise ValueError("got 0 samples, expected at least 1")
    if len(samples) == 1:
        return samples[0], samples[0], samples[0]
    fifths = quantiles(samples, n=5, method="inclusive")
    return fifths[0], median(samples), fifths[-1]


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median over rounds of ours / theirs: what disturbs a round disturbs both, and cancels.

    Raises: ValueError if there are no rounds, or not as many of one as of the other.
    """
    if len(ours) != len(theirs) or not ours:
        raise ValueError(f"got {len(ours)} and {len(theirs)} samples, expected as many of both, at least 1")
    return median(a / b for a, b in zip(ours, theirs, strict=True))


def measured_crossover(
    lengths: Sequence[int], ours: Sequence[float], theirs: Sequence[float]
) -> float | None:
    """The length from which ours stays below theirs, straight between the points on log axes.

    The first length if ours is below throughout; None if it is not below at the last.
    Raises: ValueError for unequal numbers of points, none, or a time that is not finite and positive.
    """
    if not len(lengths) == len(ours) == len(theirs) or not lengths:
        raise ValueError(
            f"got {len(lengths)} lengths, {len(ours)} and {len(theirs)} times; expected as many of each"
        )
    wrong = [seconds for seconds in (*ours, *theirs) if not 0 < seconds < math.inf]
    if wrong:
        raise ValueError(f"got a time of {wrong[0]}, expected finite numbers above 0")
    gaps = [math.log(a / b) for a, b in zip(ours, theirs, strict=True)]  # negative: ours is faster
    last_above = max((i for i, gap in enumerate(gaps) if gap >= 0), default=None)
    if last_above is None:
        return float(lengths[0])
    if last_above == len(gaps) - 1:
        return None
    above, below = gaps[last_above], gaps[last_above + 1]
    share = above / (above - below)
    return lengths[last_above] * (lengths[last_above + 1] / lengths[last_above]) ** share
