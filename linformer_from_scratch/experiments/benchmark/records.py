"""Recorded benchmarks: files found and checked, medians and ratios read off their rows."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from linformer_from_scratch.benchmark.layers import DTYPES, FUSED, STORED
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
RACE = {"part": str, "n": int, "texts": int, "pass": str, "dtype": str}
RACE |= {"seconds": dict, "busy": dict, "bytes": dict, "out_of_memory": list}
MEASURED = ("per_second", "seconds", "busy", "bytes", "out_of_memory")
COMPARED = "table 3", "layer", "attention"  # parts in which exact attention is measured beside Linformer
PER_SECOND = 1e6, 1e17  # operations or bytes; what is outside was not measured
SLACK = 0.1  # of the best product, which may have been disturbed; work that is only queued is far faster


def check_row(row: dict) -> dict:
    """The row itself: a ceiling, or a race with equally many positive, finite samples of each variant.

    Raises: ValueError with what is missing or wrong.
    """
    fields = CEILING if row.get("part") == "ceiling" else RACE
    for field, kind in fields.items():
        if not isinstance(row.get(field), kind):
            raise ValueError(f"its {field} is {shortened(row.get(field))}, expected {kind.__name__}")
    seconds = row["seconds"] if fields is RACE else {row["kind"]: [row["per_second"]]}
    for name, samples in seconds.items():
        if not isinstance(samples, list) or not all(map(_is_sample, samples)):
            raise ValueError(f"{name} has the samples {shortened(samples)}, expected finite numbers above 0")
    rounds = {name: len(samples) for name, samples in seconds.items()}
    if len(set(rounds.values())) > 1 or 0 in rounds.values():
        raise ValueError(f"it has {rounds} samples, expected equal, non-zero counts")
    return row


def _is_sample(value: object) -> bool:
    return isinstance(value, float) and 0 < value < math.inf


def what_of(row: dict) -> dict:
    """The settings of a row, without its results."""
    return {field: value for field, value in row.items() if field not in MEASURED}


def read(path: Path) -> dict:
    """A recorded benchmark: command, date, machine, versions, rows.

    Raises: ValueError, with the file's name, if it is not a result file, check_row refuses a row, or two rows
        have the same settings; OSError if it cannot be read.
    """
    content = results.read(path)
    known: list[dict] = []
    for number, row in enumerate(content["rows"], start=1):
        try:
            what = what_of(check_row(row))
        except ValueError as error:
            raise ValueError(f"{path.name}: row {number}: {error}") from None
        if what in known:
            raise ValueError(f"{path.name}: row {number} is the second of {what}, expected one")
        known.append(what)
    return content


def check_file(path: Path, wanted: Sequence[dict]) -> dict:
    """The content of a file that has all wanted rows and no impossible number.

    Args:
        wanted: the settings of each row.

    Raises: ValueError, with the file's name, for the first thing that is wrong; OSError as read.
    """
    content = read(path)
    rows = content["rows"]
    missing = [what for what in wanted if not results.select(rows, **what)]
    if missing:
        some = f"{len(missing)} of {len(wanted)} rows"
        raise ValueError(f"{path.name}: {some} are missing, the first is {missing[0]}")
    products = [row["per_second"] for row in results.select(rows, kind="matmul")]
    for row in rows:
        problem = _impossible_ceiling(row) or _impossible_race(row, max(products, default=math.inf))
        if problem:
            raise ValueError(f"{path.name}: {problem}")
    return content


def _impossible_ceiling(row: dict) -> str | None:
    low, high = PER_SECOND
    if row["part"] != "ceiling" or low < row["per_second"] < high:
        return None
    return f"{row['kind']} is {row['per_second']:.2g} per second, expected {low:.0e} to {high:.0e}"


def _impossible_race(row: dict, per_second: float) -> str | None:
    """Exact attention takes the time of its products, and stored maps the memory of their numbers."""
    if row["part"] not in COMPARED:
        return None
    where = f"{row['part']}, n = {row['n']:,}, {row['pass']}"
    heads = row["texts"] * row["num_heads"]
    d_head = row["d_head"] if "d_head" in row else row["d_model"] // row["num_heads"]
    least = SLACK * 4 * heads * d_head * row["n"] ** 2 / per_second
    for name in (STORED, FUSED):
        seconds = times(row, name).middle
        if seconds < least:
            return f"{where}: {name} took {seconds:.2g} s, expected {least:.2g} or more"
    maps = heads * row["n"] ** 2 * DTYPES[row["dtype"]].itemsize
    if peak(row, STORED) < maps:
        return f"{where}: {STORED} held {peak(row, STORED):,} bytes, expected {maps:,} or more"
    return None


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
    return [row["n"] for row in chosen], {
        name: [of(row, name) for row in chosen] for name in _variants(chosen)
    }


def _variants(rows: Sequence[dict]) -> list[str]:
    """All that were measured, or ran out of memory, in the order of the rows."""
    return [*dict.fromkeys(name for row in rows for name in (*row["seconds"], *row["out_of_memory"]))]


def device_of(content: dict) -> Device:
    """The machine of a recorded benchmark by its measured ceilings."""
    products = results.select(content["rows"], part="ceiling", kind="matmul")
    (copy,) = results.select(content["rows"], part="ceiling", kind="copy")
    per_s = {DTYPES[row["dtype"]].itemsize: row["per_second"] for row in products}
    return Device(gpu_of(content) or content["machine"]["processor"], per_s, copy["per_second"])


def peak(row: dict, name: str) -> float:
    """Bytes of a variant at its peak; nan where it ran out of memory."""
    return row["bytes"].get(name, math.nan)


def times(row: dict, name: str) -> Interval:
    """Seconds of a variant, over rounds; nan where it ran out of memory."""
    return spread(row["seconds"][name]) if name in row["seconds"] else NOTHING


def _of(rows: Sequence[dict], part: str, way: str) -> list[dict]:
    """Rows of one part and one direction, short texts first."""
    chosen = [row for row in rows if row["part"] == part and row["pass"] == way]
    return sorted(chosen, key=lambda row: row["n"])
