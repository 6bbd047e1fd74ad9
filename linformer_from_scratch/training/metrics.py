"""metrics.jsonl: one line of JSON for each update."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from linformer_from_scratch.common.files import atomic_write

METRICS = "metrics.jsonl"  # in the run's folder


def write(folder: Path, records: Sequence[Mapping]) -> None:
    """Write the whole file anew."""
    atomic_write(folder / METRICS, _lines(records))


def append(folder: Path, records: Sequence[Mapping]) -> None:
    """Add lines.

    Raises: OSError, in one sentence, if it cannot be written.
    """
    try:
        with (folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(_lines(records))
    except OSError as error:
        raise OSError(
            error.errno,
            f"{METRICS} cannot be written: {error.strerror}; "
            "the checkpoints are kept, free space and start again",
        ) from None


def read(folder: Path, step: int) -> list[dict]:
    """Records of updates 1 to `step`, without those whose line is missing or damaged."""
    path = folder / METRICS
    records: dict[int, dict] = {}
    for line in path.read_bytes().splitlines() if path.exists() else []:
        with suppress(ValueError, TypeError, KeyError):  # no JSON, no object, no step
            record = json.loads(line)
            records.setdefault(record["step"], record)
    return [records[i] for i in range(1, step + 1) if i in records]


def _lines(records: Sequence[Mapping]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)
