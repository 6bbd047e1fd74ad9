"""Measured results: JSON files of rows with their provenance."""

import glob
import json
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import torch

from linformer_from_scratch.common.files import atomic_write, locked

FIELDS = {"command": str, "date": str, "machine": dict, "versions": dict, "rows": list}
STUDENT = (  # 97.5 % points of Student's t distribution, for 1, 2, … degrees of freedom
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
WAIT = 60.0  # seconds to wait for another process that writes into the same file


def provenance(command: str) -> dict:
    """Where rows come from: command, date, commit, machine, versions."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    driver = gpu and first_line("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    machine = {"processor": _processor(), "cores": os.cpu_count(), "threads": torch.get_num_threads()}
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    return {
        "version": 2,  # of the layout
        "command": command,
        "date": date.today().isoformat(),
        "commit": _commit(Path(__file__).parent),
        "machine": machine | {"gpu": gpu},
        "versions": versions | {"cuda": torch.version.cuda if gpu else None, "driver": driver},
    }


def _commit(folder: Path) -> str | None:
    """Of the code, with "-dirty" if a file that git knows has changed since; rows are no code."""
    commit = first_line("git", "-C", str(folder), "describe", "--always")
    rows = ":(exclude,top)*/recorded/*.json"
    changed = first_line("git", "-C", str(folder), "status", "--porcelain", "-uno", "--", ":/", rows)
    return commit and commit + "-dirty" * (changed is not None)


def first_line(*command: str) -> str | None:
    """Of what a program prints; None where it fails or is missing."""
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout.partition("\n")[0] or None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


class Results:
    """A file of rows that grows while they are measured: an interrupted run keeps what it had.

    Several processes may write into one file: each keeps the rows of the others. A row that is added later
    has, as its own provenance, what is no longer as the file says: date, commit, machine or the like.

    Args:
        path: the JSON file.
        command: what measures it, for the provenance.

    Raises: ValueError, with the file's name, if it is not a result file; OSError if it cannot be read.
    """

    def __init__(self, path: Path, command: str):
        self.path, self.now = path, provenance(command)
        self.content = read(path) if path.exists() else self.now | {"rows": []}

    def measure(self, what: dict, call: Callable[[], dict]) -> None:
        """Add the row {**what, **call()}, unless the file has a row with all of `what` already."""
        if not self.has(what):
            self.add(what | call())

    def has(self, what: dict) -> bool:
        """Whether there is a row with all of `what`."""
        return bool(select(self.rows(), **what))

    def rows(self) -> list[dict]:
        """Those of the file, to which other processes may have added."""
        return read(self.path)["rows"] if self.path.exists() else self.content["rows"]

    def add(self, *rows: dict) -> None:
        """Write the file with these rows added; without any, to learn whether it can be written at all.

        Raises: ValueError for a number that is not finite; OSError if the file cannot be written.
        """
        json.dumps(rows, allow_nan=False)  # what could not be read again is not written
        other = {field: value for field, value in self.now.items() if self.content.get(field) != value}
        rows = tuple(row | ({"provenance": other} if other else {}) for row in rows)
        with self._locked():
            self.content["rows"] = [*self.rows(), *rows]
            atomic_write(self.path, _layout(self.content))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Only one process writes at a time, so what a killed one left unfinished can be removed."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path, WAIT):
            for left in self.path.parent.glob(f"{glob.escape(self.path.name)}.*.unfinished"):
                left.unlink()
            yield


def read(path: Path) -> dict:
    """Content of a result file: command, date, machine, versions, rows.

    Raises: ValueError, with the file's name, if it is not JSON with finite numbers, lacks one of these, or
        has another type in its place; OSError if it cannot be read.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
        _check_types(content)
    except ValueError as error:
        raise ValueError(f"{path.name} is not a result file: {error}") from None
    return content


def _refuse(constant: str) -> None:
    raise ValueError(f"it contains {constant}, expected finite numbers")


def _check_types(content: Any) -> None:
    if not isinstance(content, dict):
        raise ValueError(f"it is {shortened(content)}, expected a dict")
    for field, kind in FIELDS.items():
        if not isinstance(content.get(field), kind):
            raise ValueError(f"its {field} is {shortened(content.get(field))}, expected a {kind.__name__}")
    for number, row in enumerate(content["rows"], start=1):
        if not isinstance(row, dict):
            raise ValueError(f"its row {number} is {shortened(row)}, expected a dict")


def shortened(value: object) -> str:
    """A value for a sentence: its first 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def select(rows: Sequence[dict], **wanted: object) -> list[dict]:
    """The rows in which every named field has the wanted value."""
    return [row for row in rows if all(row.get(field) == value for field, value in wanted.items())]


def mean_and_interval(values: Sequence[float]) -> tuple[float, float]:
    """A mean, and how far its 95 % interval reaches to either side (Student 1908); nan for one value.

    Of three values that is 2.5 standard deviations.

    Raises: ValueError for more than 21 values.
    """
    if len(values) > len(STUDENT) + 1:
        raise ValueError(f"got {len(values)} values, expected at most {len(STUDENT) + 1}")
    if len(values) == 1:
        return values[0], float("nan")
    error = statistics.stdev(values) / len(values) ** 0.5
    return statistics.fmean(values), STUDENT[len(values) - 2] * error


def _layout(content: dict) -> str:
    """JSON with one row a line."""
    head = json.dumps({field: value for field, value in content.items() if field != "rows"}, indent=1)
    body = ",\n".join(json.dumps(row) for row in content["rows"])
    return f'{head.removesuffix("}").rstrip()},\n "rows": [\n{body}\n]\n}}\n'
