"""Files of measured rows: what one must hold, and which numbers are impossible."""

import math
from collections.abc import Sequence
from pathlib import Path

from linformer_from_scratch.benchmark.layers import DTYPES, FUSED, STORED
from linformer_from_scratch.benchmark.statistics import NOTHING, Interval, spread
from linformer_from_scratch.common import rows as files
from linformer_from_scratch.common.rows import select, shortened

CEILING = {"part": str, "kind": str, "per_second": float}
RACE = {"part": str, "n": int, "texts": int, "pass": str, "dtype": str}
RACE |= {"seconds": dict, "busy": dict, "bytes": dict, "out_of_memory": list}
MEASURED = ("per_second", "seconds", "busy", "bytes", "out_of_memory", "provenance")
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
    content = files.read(path)
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
    missing = [what for what in wanted if not select(rows, **what)]
    if missing:
        some = f"{len(missing)} of {len(wanted)} rows"
        raise ValueError(f"{path.name}: {some} are missing, the first is {missing[0]}")
    products = [row["per_second"] for row in select(rows, kind="matmul")]
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


def times(row: dict, name: str) -> Interval:
    """Seconds of a variant, over rounds; nan where it ran out of memory."""
    return spread(row["seconds"][name]) if name in row["seconds"] else NOTHING


def peak(row: dict, name: str) -> float:
    """Bytes of a variant at its peak; nan where it ran out of memory."""
    return row["bytes"].get(name, math.nan)
