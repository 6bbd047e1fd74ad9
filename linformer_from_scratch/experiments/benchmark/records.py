"""Recorded benchmarks: rows checked on reading, files found, medians and ratios read off."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from linformer_from_scratch.benchmark.layers import DTYPES
from linformer_from_scratch.benchmark.statistics import (
    NOTHING,
    Interval,
    measured_crossover,
    ratio_spread,
    spread,
)
from linformer_from_scratch.cost import Device, Sizes, Step, floor_seconds
from linformer_from_scratch.experiments import results
from linformer_from_scratch.experiments.results import shortened

Number = TypeVar("Number", float, Interval)
CPU = "10_cpu"  # the file that the course brings
CEILING = {"part": str, "kind": str, "per_second": float}
SHAPE = {"part": str, "n": int, "texts": int, "pass": str, "dtype": str}
RACE = SHAPE | {"seconds": dict, "busy": dict, "bytes": dict, "out_of_memory": list}
NAMES = ("part", "kind", "pass", "dtype", "layer")  # whatever else is measured is a size
MEASURED = ("per_second", "seconds", "busy", "bytes", "out_of_memory")


def check_row(row: dict) -> dict:
    """The row itself: a ceiling, or a race with equally many positive, finite samples of each variant.

    Raises: ValueError with what is missing or wrong.
    """
    kinds = CEILING if row.get("part") == "ceiling" else RACE
    for field, kind in kinds.items():
        if type(row.get(field)) is not kind:
            raise ValueError(f"a row's {field} is {shortened(row.get(field))}, expected {kind.__name__}")
    for field, value in what_of(row).items():
        if field not in NAMES and not (type(value) is int and value > 0):
            raise ValueError(f"a row's {field} is {shortened(value)}, expected an int above 0")
    if row.get("dtype", "float32") not in [*DTYPES]:
        raise ValueError(f"a row's dtype is {row['dtype']!r}, expected one of {', '.join(DTYPES)}")
    if kinds is CEILING:
        _check_samples(row, [row["per_second"]])
    else:
        _check_race(row)
    return row


def _check_race(row: dict) -> None:
    """Samples of each variant; bytes of some; and whoever has no samples is out of memory."""
    part, seconds, lost = row["part"], row["seconds"], row["out_of_memory"]
    for name, samples in seconds.items():
        _check_samples(row, samples)
        _check_samples(row, row["busy"].get(name, [0.0]), "busy")
    rounds = {name: len(samples) for name, samples in seconds.items()}
    if len(set(rounds.values())) > 1:
        raise ValueError(f"a row of {part} has {rounds} samples, expected as many of each")
    for field in ("busy", "bytes"):
        if not row[field].keys() <= rounds.keys():
            raise ValueError(f"a row of {part} has {field} of {[*row[field]]}, expected {[*rounds]}")
    for held in row["bytes"].values():
        if type(held) is not int or held < 0:
            raise ValueError(f"a row of {part} has {shortened(held)} bytes, expected an int, at least 0")
    if not (rounds or lost) or any(type(name) is not str or name in rounds for name in lost):
        raise ValueError(f"a row of {part} has samples of {[*rounds]}, and {lost} are out of memory")


def _check_samples(row: dict, samples: object, field: str = "seconds") -> None:
    """Finite numbers above 0; a process may have been busy for none."""
    if type(samples) is not list or not samples:
        raise ValueError(f"a row of {row['part']} has {shortened(samples)}, expected a list of numbers")
    for sample in samples:
        number = type(sample) in (int, float) and 0 <= sample < math.inf
        if not number or (sample == 0 and field != "busy"):
            found = f"a row of {row['part']} has the sample {shortened(sample)}"
            raise ValueError(f"{found}, expected finite numbers above 0")


def what_of(row: dict) -> dict:
    """The settings of a row, without its results."""
    return {field: value for field, value in row.items() if field not in MEASURED}


def read(path: Path) -> dict:
    """A recorded benchmark: command, date, machine, versions, rows.

    Raises: ValueError, with the file's name, if it is no result file, check_row refuses a row, or two are of
        the same; OSError if it cannot be read.
    """
    content, known = results.read(path), []
    for number, row in enumerate(content["rows"], start=1):
        try:
            known.append(what_of(check_row(row)))
        except ValueError as error:
            raise ValueError(f"{path.name}: row {number}: {error}") from None
        if known[-1] in known[:-1]:
            raise ValueError(f"{path.name}: row {number}: it is the second of {known[-1]}, expected one")
    return content


def gpu_of(content: dict) -> str | None:
    """The GPU that was measured; None if the CPU was, whatever else that machine has."""
    return None if "--device cpu" in content.get("command", "") else content["machine"].get("gpu")


def recorded_gpu() -> dict | None:
    """The benchmark of a GPU, if one lies among the recorded files: any with a ceiling measured on a GPU."""
    for path in sorted(results.RESULTS.glob("*.json")):
        content = results.read(path)
        if gpu_of(content) and results.select(content["rows"], part="ceiling"):
            return read(path)
    return None


def recorded_cpu() -> dict:
    """The benchmark of a CPU that comes with the course."""
    return read(results.RESULTS / f"{CPU}.json")


def ceiling(rows: Sequence[dict], kind: str, **wanted: object) -> float:
    """A measured ceiling, per second: kind "matmul" (with its dtype) or "copy"."""
    (row,) = results.select(rows, part="ceiling", kind=kind, **wanted)
    return row["per_second"]


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
    found: dict[int, dict[int, Number]] = {}
    for row in _of(rows, "table 3", way):
        names = [name for name in row["seconds"] if name.endswith(f", {kind}")]
        found[row["n"]] = {int(name.split(",")[0]): of(row, name, over) for name in names}
    return found


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
    found = [row for row in _of(rows, "layer", way) if {ours, theirs} <= row["seconds"].keys()]
    compared = [slowdown(row, ours, theirs) for row in found]
    lengths, even = [row["n"] for row in found], [1.0] * len(found)
    low, middle, high = (measured_crossover(lengths, times, even) for times in zip(*compared, strict=True))
    if low is None or middle is None:
        return None
    return Interval(low, middle, math.inf if high is None else high)


def floors(content: dict, steps: Callable[..., list[Step]], **how: object) -> list[float]:
    """Seconds below which a layer of `cost` cannot go, at each length, by the machine's measured ceilings."""
    found, device = _of(content["rows"], "layer", "forward"), device_of(content)
    seconds = []
    for row in found:
        b = DTYPES[row["dtype"]].itemsize
        sizes = Sizes(row["n"], row["d_model"], row["num_heads"], row["proj_dim"], bytes_per_number=b)
        seconds.append(floor_seconds(steps(sizes, **how), device, b))
    return seconds


def lines(
    rows: Sequence[dict], part: str, way: str, of: Callable[[dict, str], Number]
) -> tuple[list[int], dict[str, list[Number]]]:
    """Lengths, and for each variant a number at each length; nan where it ran out of memory.

    of: times (an Interval over rounds), median, or peak.
    """
    found = _of(rows, part, way)
    return [row["n"] for row in found], {name: [of(row, name) for row in found] for name in _variants(found)}


def _variants(rows: Sequence[dict]) -> list[str]:
    """All that were measured, or ran out of memory, in the order of the rows."""
    return [*dict.fromkeys(name for row in rows for name in (*row["seconds"], *row["out_of_memory"]))]


def device_of(content: dict) -> Device:
    """The machine of a recorded benchmark by its measured ceilings."""
    rows = content["rows"]
    products = [row for row in rows if row["part"] == "ceiling" and row["kind"] == "matmul"]
    per_s = {DTYPES[row["dtype"]].itemsize: row["per_second"] for row in products}
    return Device(gpu_of(content) or content["machine"]["processor"], per_s, ceiling(rows, "copy"))


def peak(row: dict, name: str) -> float:
    """Bytes of a variant at its peak; nan where it ran out of memory."""
    return row["bytes"].get(name, math.nan)


def times(row: dict, name: str) -> Interval:
    """Seconds of a variant, over rounds; nan where it ran out of memory."""
    return spread(row["seconds"][name]) if name in row["seconds"] else NOTHING


def median(row: dict, name: str) -> float:
    """Median seconds of a variant; nan where it ran out of memory."""
    return times(row, name).middle


def _of(rows: Sequence[dict], part: str, way: str) -> list[dict]:
    """Rows of one part and one direction, short texts first."""
    found = [row for row in rows if row["part"] == part and row["pass"] == way]
    return sorted(found, key=lambda row: row["n"])
