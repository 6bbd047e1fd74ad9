"""Measured results: JSON files of rows with their provenance."""

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import torch

from linformer_from_scratch.files import PACKAGE, write_whole

RESULTS = PACKAGE / "recorded"
FIELDS = ("command", "date", "machine", "versions", "rows")
VERSION = 1  # of the layout; older files have none, lack commit and driver, and are read as well


def provenance(command: str) -> dict:
    """What a result file says of its origin: command, date, commit, machine, versions."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "version": VERSION,
        "command": command,
        "date": date.today().isoformat(),
        "commit": _said_by("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"),
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "gpu": gpu,
        },
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda if gpu else None,
            "driver": gpu and _said_by("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        },
    }


def _said_by(*command: str) -> str | None:
    """First line of what a program prints; None where it fails or is missing."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
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

    Args:
        path: the JSON file.
        command: what measures it, for the provenance of a new file.

    Raises: ValueError, with the file's name, if it is no such file.
    """

    def __init__(self, path: Path, command: str):
        self.path = path
        self.content = read(path) if path.exists() else provenance(command) | {"rows": []}

    def measure(self, what: dict, call: Callable[[], dict]) -> None:
        """Add the row {**what, **call()}, unless a row with all of `what` stands there already."""
        if not select(self.content["rows"], **what):
            self.content["rows"].append(what | call())
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.path, _layout(self.content))


def read(path: Path) -> dict:
    """Content of a result file: command, date, machine, versions, rows.

    Raises: ValueError, with the file's name, if it is not JSON, lacks one of them, or has a newer layout.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path.name} is no result file: {error}") from None
    missing = [field for field in FIELDS if type(content) is not dict or field not in content]
    if missing:
        raise ValueError(f"{path.name} is no result file: it has no {missing[0]}")
    if content.get("version", 0) > VERSION:
        raise ValueError(f"{path.name} has layout {content['version']}, expected at most {VERSION}")
    return content


def read_rows(name: str) -> list[dict]:
    """Rows of a recorded file of the course, such as read_rows("08_size")."""
    return read(RESULTS / f"{name}.json")["rows"]


def select(rows: Sequence[dict], **wanted: object) -> list[dict]:
    """The rows in which every named field has the wanted value."""
    return [row for row in rows if all(row.get(field) == value for field, value in wanted.items())]


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation (of a sample); the spread of one value is nan."""
    spread = statistics.stdev(values) if len(values) > 1 else float("nan")
    return statistics.fmean(values), spread


def _layout(content: dict) -> str:
    """JSON with one row a line."""
    head = json.dumps({field: value for field, value in content.items() if field != "rows"}, indent=1)
    body = ",\n".join(json.dumps(row) for row in content["rows"])
    return f'{head.removesuffix("}").rstrip()},\n "rows": [\n{body}\n]\n}}\n'
