"""Recorded benchmarks (chapter 10): files found, medians and ratios read off their rows."""

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeVar

from linformer_from_scratch.benchmark.layers import DTYPES
from linformer_from_scratch.benchmark.records import peak as peak
from linformer_from_scratch.benchmark.records import read
from linformer_from_scratch.benchmark.records import times as times
from linformer_from_scratch.benchmark.statistics import NOTHING, Interval, measured_crossover, ratio_spread
from linformer_from_scratch.common import rows as files
from linformer_from_scratch.common.rows import select
from linformer_from_scratch.cost import Device, Sizes, Step, floor_seconds
from linformer_from_scratch.course import recorded

Number = TypeVar("Number", float, Interval)
CPU = "10_cpu"  # the file that the course brings


def gpu_of(content: dict) -> str | None:
    """The GPU that was measured; None if the CPU was, whatever else that machine has."""
    return None if "--device cpu" in content.get("command", "") else content["machine"].get("gpu")


def recorded_gpu() -> dict | None:
    """The benchmark of a GPU, if one lies among the recorded files: any with a ceiling measured on a GPU."""
    for path in sorted(recorded.RESULTS.glob("*.json")):
        content = files.read(path)
        if gpu_of(content) and select(content["rows"], part="ceiling"):
            return read(path)
    return None


def recorded_cpu() -> dict:
    """The benchmark of a CPU that comes with the course."""
    return read(recorded.RESULTS / f"{CPU}.json")


def speedup(row: dict, of: str, over: str) -> Interval:
    """How many times as fast one variant is as another, over rounds; nan if one is missing."""
    seconds = row["seconds"]
    return ratio_spread(seconds[over], seconds[of]) if {of, over} <= seconds.keys() else NOTHING


def slowdown(row: dict, of: str, over: str) -> Interval:
    """How many times the time of another variant one takes, over rounds; nan if one is missing."""
    return speedup(row, over, of)


def surely(row: dict, of: str, over: str) -> float:
    """How many times as fast one variant is as another in four rounds of five: the 20th percentile."""
    return speedup(row, of, over).low


def saving(row: dict, of: str, over: str) -> float:
    """How many times fewer bytes one variant needs at its peak than another; nan if one is missing."""
    held = row["bytes"]
    return held[over] / held[of] if held.get(of) and over in held else math.nan


def table_3(
    rows: Sequence[dict], of: Callable[[dict, str, str], Number], over: str, way: str, kind: str = "fused"
) -> dict[int, dict[int, Number]]:
    """The paper's table 3 as measured: n -> k -> how much faster or smaller than `over` Linformer is.

    Args:
        of: speedup (an Interval over rounds), surely or saving (a number).
        over: the variant that Linformer is compared with, "stored maps" or "fused exact".
        way: "forward" or "forward + backward".
        kind: "fused", or "stored maps" for Linformer as the paper wrote it.
    """
    table: dict[int, dict[int, Number]] = {}
    for row in _of(rows, "table 3", way):
        names = [name for name in row["seconds"] if name.endswith(f", {kind}")]
        table[row["n"]] = {int(name.split(",")[0]): of(row, name, over) for name in names}
    return table


def ratios(
    rows: Sequence[dict], part: str, way: str, of: Callable[[dict, str, str], Number], name: str, over: str
) -> list[Number]:
    """How two variants compare (of: speedup, slowdown or saving) at each length."""
    return [of(row, name, over) for row in _of(rows, part, way)]


def crossing(rows: Sequence[dict], way: str, ours: str, theirs: str) -> Interval | None:
    """From which length one layer is faster than another, where both were measured.

    In the middle by the median of ours / theirs, at the ends by its 20th and its 80th percentile.
    The high end is infinite if that is not below 1 at the last length; None if the median is not.
    """
    measured = [row for row in _of(rows, "layer", way) if {ours, theirs} <= row["seconds"].keys()]
    compared = [slowdown(row, ours, theirs) for row in measured]
    lengths, even = [row["n"] for row in measured], [1.0] * len(measured)
    low, middle, high = (measured_crossover(lengths, times, even) for times in zip(*compared, strict=True))
    if low is None or middle is None:
        return None
    return Interval(low, middle, math.inf if high is None else high)


def floors(content: dict, steps: Callable[..., list[Step]], **how: object) -> list[float]:
    """Seconds below which a layer of `cost` cannot go, at each length, by the machine's measured ceilings."""
    measured, device = _of(content["rows"], "layer", "forward"), device_of(content)
    seconds = []
    for row in measured:
        b = DTYPES[row["dtype"]].itemsize
        sizes = Sizes(row["n"], row["d_model"], row["num_heads"], row["proj_dim"], bytes_per_number=b)
        seconds.append(floor_seconds(steps(sizes, **how), device, b))
    return seconds


def lines(
    rows: Sequence[dict], part: str, way: str, of: Callable[[dict, str], Number]
) -> tuple[list[int], dict[str, list[Number]]]:
    """Lengths, and for each variant a number at each length; nan where it ran out of memory.

    of: times (an Interval over rounds), or peak.
    """
    chosen = _of(rows, part, way)
    names = dict.fromkeys(name for row in chosen for name in chain(row["seconds"], row["out_of_memory"]))
    return [row["n"] for row in chosen], {name: [of(row, name) for row in chosen] for name in names}


def device_of(content: dict) -> Device:
    """The machine of a recorded benchmark by its measured ceilings."""
    products = select(content["rows"], part="ceiling", kind="matmul")
    (copy,) = select(content["rows"], part="ceiling", kind="copy")
    per_s = {DTYPES[row["dtype"]].itemsize: row["per_second"] for row in products}
    return Device(gpu_of(content) or content["machine"]["processor"], per_s, copy["per_second"])


def _of(rows: Sequence[dict], part: str, way: str) -> list[dict]:
    """Rows of one part and one direction, short texts first."""
    chosen = [row for row in rows if row["part"] == part and row["pass"] == way]
    return sorted(chosen, key=lambda row: row["n"])
