"""What a few samples of seconds say: median and spread, ratios within a run, crossovers."""

import math
from collections.abc import Sequence
from statistics import median, quantiles
from typing import NamedTuple

from linformer_from_scratch.common.checks import check_size


class Interval(NamedTuple):
    """20th percentile, median, 80th percentile of samples; as text "2.4 (1.6–3.7)", or "–" for nan."""

    low: float
    middle: float
    high: float

    def __format__(self, form: str) -> str:
        low, middle, high = (format(x, form) for x in self)
        return "–" if math.isnan(self.middle) else f"{middle} ({low}–{high})"

    def holds(self, value: float) -> bool:
        """Whether a value lies within it: if so, the rounds cannot tell the median from that value."""
        return self.low <= value <= self.high


NOTHING = Interval(math.nan, math.nan, math.nan)


def spread(samples: Sequence[float]) -> Interval:
    """20th percentile, median, 80th percentile; of one sample three times itself.

    The mean would follow the few rounds in which the machine did something else.
    Raises: ValueError if there is no sample.
    """
    if not samples:
        raise ValueError("got 0 samples, expected at least 1")
    if len(samples) == 1:
        return Interval(samples[0], samples[0], samples[0])
    fifths = quantiles(samples, n=5, method="inclusive")
    return Interval(fifths[0], median(samples), fifths[-1])


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """ours / theirs, round by round: what disturbs a round disturbs both, and cancels.

    Raises: ValueError if there are no rounds, or more of one than of the other.
    """
    if len(ours) != len(theirs) or not ours:
        raise ValueError(f"got {len(ours)} and {len(theirs)} samples; need equal, non-zero counts")
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Median over rounds of ours / theirs.

    Raises: ValueError as `ratios`.
    """
    return median(ratios(ours, theirs))


def ratio_spread(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Median over rounds of ours / theirs, between its 20th and 80th percentile.

    Raises: ValueError as `ratios`.
    """
    return spread(ratios(ours, theirs))


def coverage(rounds: int, left_out: int) -> float:
    """How likely the true median lies between the samples that are left when some are dropped at either end.

    Each round lies above the true median or below it, like a coin; that takes rounds that are independent.

    Args:
        rounds: how many samples there are.
        left_out: how many of the smallest, and as many of the largest, are dropped.

    Raises: ValueError unless at least one sample is left.
    """
    rounds, left_out = check_size("rounds", rounds), check_size("left_out", left_out, least=0)
    if 2 * left_out >= rounds:
        raise ValueError(f"got {left_out} left out at either end of {rounds}, expected at least 1 to be left")
    return 1 - 2 * sum(math.comb(rounds, i) for i in range(left_out + 1)) / 2**rounds


def measured_crossover(
    lengths: Sequence[int], ours: Sequence[float], theirs: Sequence[float]
) -> float | None:
    """The length from which ours stays below theirs, straight between the points on log axes.

    The first length if ours is below throughout; None if it is not below at the last.
    Raises: ValueError for unequal numbers of points, none, or a time that is not finite and positive.
    """
    if not len(lengths) == len(ours) == len(theirs) or not lengths:
        raise ValueError(
            f"got {len(lengths)} lengths, {len(ours)} and {len(theirs)} times; need equal, non-zero counts"
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
