"""Recorded times of sentence encoders by the length of their texts (chapter 12)."""

from linformer_from_scratch.benchmark import Interval, ratio_spread
from linformer_from_scratch.course.recorded import read_rows

PROJ_DIM = 128
SHIPPED = "windows of n, last layer exact"
TIMED_AT = (10, 32, 64, 128, 160, 192, 224, 256, 320, 384, 416, 448, 480, 512)


def over_exact(way: str, n: int) -> Interval:
    """Time of an encoder as recorded, exact = 1; fitting changes no time.

    The median over rounds, between the 20th and the 80th percentile.
    """
    (row,) = read_rows("12_seconds", n=n)
    name = way if way in row["seconds"] else way.removesuffix(", fitted")
    return ratio_spread(row["seconds"][name], row["seconds"]["exact"])


def crossover() -> int:
    """Tokens from which on the fitted encoder's Linformer took less time than exact attention, as recorded.

    Of the lengths that were timed, the least from which on the whole interval was below 1 at every one;
    proj_dim at least.
    """
    slower = [n for n in TIMED_AT if over_exact(SHIPPED, n).high >= 1]
    return min(n for n in TIMED_AT if n > max([PROJ_DIM - 1, *slower]))
