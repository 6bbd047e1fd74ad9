"""metrics.jsonl: a line for each update, kept also where some of its lines are damaged."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from linformer_from_scratch.common.files import atomic_write

METRICS = "metrics.jsonl"  # in the run's folder
FIELDS = ("step", "loss", "learning_rate", "tokens_per_s")


def write(folder: Path, records: Sequence[Mapping]) -> None:
    """Write the whole file anew."""
    atomic_write(folder / METRICS, "".join(map(_line, records)))


def append(folder: Path, records: Sequence[Mapping]) -> None:
    """Add lines.

    Raises: OSError, in one sentence, if it cannot be written.
    """
    try:
        with (folder / METRICS).open("a", encoding="utf-8") as file:
            file.write("".join(map(_line, records)))
    except OSError as error:
        raise OSError(
            error.errno,
            f"{METRICS} cannot be written: {error.strerror}; "
            "the checkpoints are kept, free space and start again",
        ) from None


def read(folder: Path, step: int) -> tuple[list[dict], str | None]:
    """Records of the updates up to a step, and one sentence if not all of them are there."""
    path = folder / METRICS
    records: list[dict] = []
    bad: list[int] = []
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []  # the last may be half
    for number, line in enumerate(lines, 1):
        last = records[-1]["step"] if records else 0
        if last == step:
            break  # what a killed run wrote after its checkpoint is computed again
        record = _record(line)
        if record and last < record["step"] <= step:
            records.append(record)
        elif not record or record["step"] <= last:
            bad.append(number)
    if len(records) == step:
        return records, _left_out(bad) if bad else None
    return records, (_left_out(bad) + "; " if bad else "") + f"{METRICS} has {len(records)} of {step} updates"


def _left_out(bad: Sequence[int]) -> str:
    others = f", and of {len(bad) - 1} other lines" if len(bad) > 1 else ""
    return f"line {bad[0]} of {METRICS} is no record of the next update and is left out{others}"


def _record(line: bytes) -> dict | None:
    """What a line says, if it is the record of an update."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if type(found) is not dict or not found.keys() >= set(FIELDS):
        return None
    numbers = all(type(value) in (int, float) for value in found.values())
    return found if numbers and type(found["step"]) is int and found["step"] > 0 else None


def _line(record: Mapping) -> str:
    return json.dumps(record) + "\n"
