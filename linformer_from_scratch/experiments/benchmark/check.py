"""Is a benchmark's file complete, and are its numbers possible?"""

from collections.abc import Sequence
from pathlib import Path

from linformer_from_scratch.benchmark.layers import DTYPES, FUSED, STORED
from linformer_from_scratch.experiments.benchmark.records import median, read, what_of
from linformer_from_scratch.experiments.results import select

COMPARED = "table 3", "layer", "attention"  # parts in which exact attention stands beside Linformer
SLACK = 0.1  # of the best product, which may have been disturbed; what is only queued is faster by far
PER_SECOND = 1e6, 1e17  # operations or bytes; what is outside was not measured


def check_file(path: Path, wanted: Sequence[dict], rounds: int) -> dict:
    """The content of a file that has all wanted rows and no impossible number.

    Args:
        wanted: what is measured in each row.
        rounds: samples of each variant.

    Raises: ValueError, with the file's name, for the first thing that is wrong; OSError if it cannot
        be read.
    """
    content = read(path)
    try:
        _check_complete([what_of(row) for row in content["rows"]], wanted)
        best = max(row["per_second"] for row in select(content["rows"], kind="matmul"))
        for row in content["rows"]:
            if row["part"] == "ceiling":
                _check_ceiling(row)
            else:
                _check_race(row, rounds)
            if row["part"] in COMPARED:
                _check_exact(row, best)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    return content


def _check_complete(found: list[dict], wanted: Sequence[dict]) -> None:
    missing = [what for what in wanted if what not in found]
    if missing:
        raise ValueError(f"{len(missing)} of {len(wanted)} rows are missing, the first is {missing[0]}")
    foreign = [what for what in found if what not in wanted]
    if foreign:
        raise ValueError(f"there is a row of {foreign[0]}, which is not asked for")


def _check_ceiling(row: dict) -> None:
    low, high = PER_SECOND
    if not low < row["per_second"] < high:
        raise ValueError(
            f"{row['kind']} is {row['per_second']:.2g} per second, expected {low:.0e} to {high:.0e}"
        )


def _check_race(row: dict, rounds: int) -> None:
    found = {len(samples) for samples in row["seconds"].values()}
    if found - {rounds}:
        raise ValueError(f"{_name(row)} has {found.pop()} rounds, expected {rounds}")
    expected = {STORED, FUSED} if row["part"] in COMPARED else set()
    missing = expected - row["seconds"].keys() - set(row["out_of_memory"])
    if missing:
        raise ValueError(f"{_name(row)} lacks {' and '.join(sorted(missing))}")


def _check_exact(row: dict, per_second: float) -> None:
    """Exact attention takes the time of its products, and stored maps the memory of their numbers."""
    heads = row["texts"] * row["num_heads"]
    d_head = row["d_head"] if "d_head" in row else row["d_model"] // row["num_heads"]
    least = SLACK * 4 * heads * d_head * row["n"] ** 2 / per_second
    for name in (STORED, FUSED):
        if median(row, name) < least:
            raise ValueError(
                f"{_name(row)}: {name} took {median(row, name):.2g} s, expected {least:.2g} or more"
            )
    numbers = heads * row["n"] ** 2 * DTYPES[row["dtype"]].itemsize
    held = row["bytes"].get(STORED, numbers)
    if held < numbers:
        raise ValueError(f"{_name(row)}: {STORED} held {held:,} bytes, expected {numbers:,} or more")


def _name(row: dict) -> str:
    return f"{row['part']}, n = {row['n']:,}, {row['pass']}"
