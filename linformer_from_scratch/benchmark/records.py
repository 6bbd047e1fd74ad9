"""Recorded benchmarks: rows checked on reading, files found, medians and ratios read off."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from linformer_from_scratch import results
from linformer_from_scratch.benchmark.statistics import measured_crossover, ratio, spread
from linformer_from_scratch.cost import Device, Sizes, Step, floor_seconds

Table = dict[int, dict[int, float]]  # n -> k -> number
Lines = tuple[list[int], dict[str, list[float]]]  # lengths, and variant -> a number at each
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
CPU = "10_cpu"  # the file that the course brings
CEILING = {"part": str, "kind": str, "per_second": float}
SHAPE = {"part": str, "n": int, "texts": int, "pass": str, "dtype": str}
RACE = SHAPE | {"seconds": dict, "busy": dict, "bytes": dict, "out_of_memory": list}


def check_row(row: dict) -> dict:
    """The row itself, if it is a ceiling or a race with positive, finite samples, as many of each variant.

    Raises: ValueError with what is missing or wrong.
    """
    kinds = CEILING if row.get("part") == "ceiling" else RACE
    for field, kind in kinds.items():
        if type(row.get(field)) is not kind:
            raise ValueError(f"a row's {field} is {row.get(field)!r}, expected {kind.__name__}")
    samples = [[row["per_second"]]] if kinds is CEILING else row["seconds"].values()
    wrong = [number for found in samples for number in found if not 0 < number < math.inf]
    if wrong:
        raise ValueError(f"a row of {row['part']} has the sample {wrong[0]}, expected finite numbers above 0")
    if kinds is RACE:
        rounds = {name: len(found) for name, found in row["seconds"].items()}
        if len(set(rounds.values())) > 1:
            raise ValueError(f"a row of {row['part']} has {rounds} samples, expected as many of each")
        if not row["bytes"].keys() <= row["seconds"].keys():
            raise ValueError(f"a row of {row['part']} has bytes of {[*row['bytes']]}, expected {[*rounds]}")
    return row


def read(path: Path) -> dict:
    """A recorded benchmark: command, date, machine, versions, rows.

    Raises: ValueError, with the file's name, if it is no result file or check_row refuses a row.
    """
    content = results.read(path)
    for row in content["rows"]:
        try:
            check_row(row)
        except ValueError as error:
            raise ValueError(f"{path.name}: {error}") from None
    return content


def recorded_gpu() -> dict | None:
    """The benchmark of a GPU, if one lies among the recorded files: any file with a ceiling measured on a GPU."""
    for path in sorted(results.RESULTS.glob("*.json")):
        content = results.read(path)
        if content["machine"]["gpu"] and results.select(content["rows"], part="ceiling"):
            return read(path)
    return None


def recorded_cpu() -> dict:
    """The benchmark of a CPU that the course brings."""
    return read(results.RESULTS / f"{CPU}.json")


def ceiling(rows: Sequence[dict], kind: str, **wanted: object) -> float:
    """A measured ceiling, per second: kind "matmul" (with its dtype) or "copy"."""
    (row,) = results.select(rows, part="ceiling", kind=kind, **wanted)
    return row["per_second"]


def speedup(row: dict, of: str, over: str) -> float:
    """How many times as fast one variant is as another, median over rounds; nan if one is missing."""
    seconds = row["seconds"]
    return ratio(seconds[over], seconds[of]) if {of, over} <= seconds.keys() else math.nan


def surely(row: dict, of: str, over: str) -> float:
    """How many times as fast one variant is as another in four rounds of five: the 20th percentile."""
    seconds = row["seconds"]
    if not {of, over} <= seconds.keys():
        return math.nan
    return spread([b / a for a, b in zip(seconds[of], seconds[over], strict=True)])[0]


def saving(row: dict, of: str, over: str) -> float:
    """How many times fewer bytes one variant needs at its peak than another; nan if one is missing."""
    held = row["bytes"]
    return held[over] / held[of] if {of, over} <= held.keys() else math.nan


def table_3(
    rows: Sequence[dict], of: Callable[[dict, str, str], float], over: str, way: str, kind: str = "fused"
) -> Table:
    """The paper's table 3 as measured: n -> k -> how much faster or smaller than `over` Linformer is.

    Args:
        of: speedup, surely or saving.
        over: the variant that Linformer is compared with, "stored maps" or "fused exact".
        way: "forward" or "forward + backward".
        kind: "fused", or "stored maps" for Linformer as the paper wrote it.
    """
    found: Table = {}
    for row in _of(rows, "table 3", way):
        names = [name for name in row["seconds"] if name.endswith(f", {kind}")]
        found[row["n"]] = {int(name.split(",")[0]): of(row, name, over) for name in names}
    return found


def ratios(
    rows: Sequence[dict], part: str, way: str, of: Callable[[dict, str, str], float], name: str, over: str
) -> list[float]:
    """How much faster or smaller (of: speedup or saving) one variant is than another, at each length."""
    return [of(row, name, over) for row in _of(rows, part, way)]


def crossing(rows: Sequence[dict], way: str, ours: str, theirs: str) -> float | None:
    """From which length one layer is faster than another, where both were measured."""
    found = [row for row in _of(rows, "layer", way) if {ours, theirs} <= row["seconds"].keys()]
    times = ([median(row, name) for row in found] for name in (ours, theirs))
    return measured_crossover([row["n"] for row in found], *times)


def floors(content: dict, steps: Callable[..., list[Step]], **how: object) -> list[float]:
    """Seconds below which a layer of `cost` cannot go, at each length, by the machine's measured ceilings."""
    found, device = _of(content["rows"], "layer", "forward"), device_of(content)
    seconds = []
    for row in found:
        b = DTYPES[row["dtype"]].itemsize
        sizes = Sizes(row["n"], row["d_model"], row["num_heads"], row["proj_dim"], bytes_per_number=b)
        seconds.append(floor_seconds(steps(sizes, **how), device, b))
    return seconds


def lines(rows: Sequence[dict], part: str, way: str, of: Callable[[dict, str], float]) -> Lines:
    """Lengths, and for each variant a number at each length; nan where it ran out of memory.

    of: median, or peak.
    """
    found = _of(rows, part, way)
    names = dict.fromkeys(name for row in found for name in (*row["seconds"], *row["out_of_memory"]))
    return [row["n"] for row in found], {name: [of(row, name) for row in found] for name in names}


def device_of(content: dict) -> Device:
    """The machine of a recorded benchmark by its measured ceilings."""
    machine, rows = content["machine"], content["rows"]
    products = [row for row in rows if row["part"] == "ceiling" and row["kind"] == "matmul"]
    per_s = {DTYPES[row["dtype"]].itemsize: row["per_second"] for row in products}
    return Device(machine["gpu"] or machine["processor"], per_s, ceiling(rows, "copy"))


def peak(row: dict, name: str) -> float:
    """Bytes of a variant at its peak; nan where it ran out of memory."""
    return row["bytes"].get(name, math.nan)


def median(row: dict, name: str) -> float:
    """Median seconds of a variant; nan where it ran out of memory."""
    return spread(row["seconds"][name])[1] if name in row["seconds"] else math.nan


def _of(rows: Sequence[dict], part: str, way: str) -> list[dict]:
    """Rows of a part and a pass, short texts first."""
    found = [row for row in rows if row["part"] == part and row["pass"] == way]
    return sorted(found, key=lambda row: row["n"])
