"""Recorded benchmarks: rows checked on reading, files found, medians and ratios read off."""

import math
from collections.abc import Sequence
from pathlib import Path

from linformer_from_scratch import results
from linformer_from_scratch.benchmark.statistics import ratio, spread

CPU = "10_cpu"  # the file that the course brings
CEILING = {"part": str, "kind": str, "per_second": float}
SHAPE = {"part": str, "n": int, "texts": int, "pass": str, "dtype": str}
RACE = SHAPE | {"seconds": dict, "bytes": dict, "out_of_memory": list}


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
        if row["seconds"].keys() != row["bytes"].keys():
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
    """The benchmark of a GPU, if one lies in chapters/results: any file with a ceiling measured on a GPU."""
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


def saving(row: dict, of: str, over: str) -> float:
    """How many times fewer bytes one variant needs at its peak than another; nan if one is missing."""
    held = row["bytes"]
    return held[over] / held[of] if {of, over} <= held.keys() else math.nan


def median(row: dict, name: str) -> float:
    """Median seconds of a variant; nan where it ran out of memory."""
    return spread(row["seconds"][name])[1] if name in row["seconds"] else math.nan
