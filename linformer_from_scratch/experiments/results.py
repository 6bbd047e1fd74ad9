"""Measured results: JSON files of rows with their provenance."""

import glob
import json
import math
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import torch

from linformer_from_scratch.common.files import PACKAGE, atomic_write, locked
from linformer_from_scratch.experiments.sources import ROOT, changed, sources

RESULTS = PACKAGE / "experiments" / "recorded"
FIELDS = {"command": str, "date": str, "machine": dict, "versions": dict, "rows": list}
ACCEPT = "python -m linformer_from_scratch.experiments"
WAIT = 60.0  # seconds for another who writes into the same file
VERSION = (
    2  # of the layout; older ones lack the sources, the oldest commit and driver too: they are read as well
)


def provenance(command: str, source: Path | None = None) -> dict:
    """What a result file says of its origin: command, date, commit, sources, machine, versions.

    Args: source: the file whose code, and all that it imports, measures; by default that of the command.
    """
    source = source or program(command)
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "version": VERSION,
        "command": command,
        "date": date.today().isoformat(),
        "commit": _said_by("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"),
        "sources": sources(source) if source else {},
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


def program(command: str) -> Path | None:
    """The file of ours that `python FILE …` or `python -m PACKAGE …` runs; None for any other command."""
    found = re.match(r"python (?:-m ([\w.]+)|(\S+\.py))", command)
    if not found:
        return None
    package, file = found.groups()
    path = ROOT / (file or f"{package.replace('.', '/')}/__main__.py")
    return path if path.exists() else None


def outdated(content: dict, source: Path | None = None) -> list[str]:
    """Files whose code is not the one that measured the rows of a result file, or was accepted since.

    Args: source: as for provenance.
    """
    path = source or program(content["command"])
    return changed(content.get("sources", {}), path) if path else []


def accept(path: Path, why: str, command: str | None = None, source: Path | None = None) -> list[str]:
    """Let rows stand though code has changed since; the file keeps when, what and why. Returns what changed.

    Args:
        command: what measures such rows now, if it is another; the file keeps the old one with the reason.
        source: as for provenance.

    Raises: ValueError if no reason is given; as read.
    """
    if not why.strip():
        raise ValueError("got no reason, expected one: why do the rows stand though the code has changed?")
    with locked(path, WAIT):
        content = read(path)
        before = content["command"]
        source = source or program(before)
        found = outdated(content, source)
        if source and found:
            entry = {"date": date.today().isoformat(), "changed": found, "why": why}
            entry |= {"command": before} if command not in (None, before) else {}
            content |= {"command": command or before, "sources": sources(source)}
            content.setdefault("accepted", []).append(entry)
            atomic_write(path, _layout(content))
    return found


def _said_by(*command: str) -> str | None:
    """First line of what a program prints; None where it fails or is missing."""
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

    Args:
        path: the JSON file.
        command: what measures it, for the provenance of a new file.
        source: as for provenance.

    Several may write into one file: each keeps the rows of the others.

    Raises: ValueError, with the file's name, if it is no such file, or was measured with other code;
        OSError if it cannot be read.
    """

    def __init__(self, path: Path, command: str, source: Path | None = None):
        self.path = path
        if path.exists():
            self.content = read(path)
            _check_current(path, outdated(self.content, source))
        else:
            self.content = provenance(command, source) | {"rows": []}

    def measure(self, what: dict, call: Callable[[], dict]) -> None:
        """Add the row {**what, **call()}, unless a row with all of `what` stands there already."""
        if not self.has(what):
            self.add(what | call())

    def has(self, what: dict) -> bool:
        """Whether a row with all of `what` stands there."""
        return bool(select(self.rows(), **what))

    def rows(self) -> list[dict]:
        """Those of the file, which others may have added to, and own ones that are there no more."""
        there = read(self.path)["rows"] if self.path.exists() else []
        return [*there, *(row for row in self.content["rows"] if row not in there)]

    def add(self, row: dict) -> None:
        """Write a row, beside those that are there.

        Raises: ValueError for a number that is not finite, or if the file is no such file any more; OSError
            if it cannot be written.
        """
        json.dumps(row, allow_nan=False)  # what could not be read again is not written
        with self._alone():
            self.content["rows"] = [*self.rows(), row]
            atomic_write(self.path, _layout(self.content))

    def check_writable(self) -> None:
        """See that rows can be written, before they are measured: by writing.

        Raises: OSError if not.
        """
        with self._alone():
            there = self.path.exists()
            atomic_write(self.path, self.path.read_bytes() if there else _layout(self.content))
            if not there:
                self.path.unlink()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else writes meanwhile; so what a killed writer has left unfinished can go."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.path, WAIT):
            for left in self.path.parent.glob(f"{glob.escape(self.path.name)}.*.unfinished"):
                left.unlink()
            yield


def _check_current(path: Path, found: Sequence[str]) -> None:
    if found:
        files = ", ".join(found[:3]) + " …" * (len(found) > 3)
        raise ValueError(
            f"{path.name} was measured with other code ({files}): move it away to measure all again, or let "
            f"its rows stand with `{ACCEPT} {path.stem} --accept WHY`"
        )


def read(path: Path) -> dict:
    """Content of a result file: command, date, machine, versions, rows.

    Raises: ValueError, with the file's name, if it is not JSON with finite numbers, lacks one of them, has
        another kind in its place, or has a newer layout; OSError if it cannot be read.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_finite, parse_float=_finite)
        _check_kinds(content)
    except RecursionError:
        raise ValueError(f"{path.name} is no result file: it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path.name} is no result file: {error}") from None
    if content.get("version", 0) > VERSION:
        raise ValueError(f"{path.name} has layout {content['version']}, expected at most {VERSION}")
    return content


def _finite(text: str) -> float:
    if not math.isfinite(float(text)):
        raise ValueError(f"it has the number {text}, expected finite numbers")
    return float(text)


def _check_kinds(content: Any) -> None:
    for field, kind in FIELDS.items():
        if type(content) is not dict or field not in content:
            raise ValueError(f"it has no {field}")
        if type(content[field]) is not kind:
            raise ValueError(f"its {field} is {shortened(content[field])}, expected {kind.__name__}")
    if type(content.get("version", 0)) is not int:
        raise ValueError(f"its version is {shortened(content['version'])}, expected int")
    for number, row in enumerate(content["rows"], start=1):
        if type(row) is not dict:
            raise ValueError(f"its row {number} is {shortened(row)}, expected dict")


def shortened(value: object) -> str:
    """A value for a sentence: its first 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def read_rows(name: str, **wanted: object) -> list[dict]:
    """Rows of a recorded file of the course, as select has them: read_rows("08_size", proj_dim=32)."""
    return select(read(RESULTS / f"{name}.json")["rows"], **wanted)


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
