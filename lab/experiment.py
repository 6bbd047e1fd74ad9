"""An experiment is a name, the settings of its rows, and a function that measures one of them.

`measure` measures what is missing of one, row by row: what was killed goes on where it was.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import torch

from linformer_from_scratch.common.files import PACKAGE, locked
from linformer_from_scratch.common.rows import Results, read, select
from linformer_from_scratch.course.recorded import RESULTS

BUILD = PACKAGE.parent / "build"  # checkpoints, and what else can be made again
COMMAND = "python -m lab"


@dataclass(frozen=True)
class Experiment:
    """A file of recorded rows, one for each settings of a grid, as it is declared.

    Args:
        name: chapter and word, as in 12_recall; that of the file.
        about: what is measured, in one line.
        grid: the settings of every row, but for the seed.
        measure: measure(**settings) -> the values of the row.
        seeds: each measures the whole grid; None where nothing is drawn by a seed.
        threads: of the CPU.
    """

    name: str
    about: str
    grid: Sequence[dict]
    measure: Callable[..., dict]
    seeds: tuple[int, ...] | None = None
    threads: int = 1

    @property
    def command(self) -> str:
        """What measures it."""
        return f"{COMMAND} {self.name}"

    def path(self, folder: Path = RESULTS) -> Path:
        """The file of its rows."""
        return folder / f"{self.name}.json"

    def settings(self) -> list[dict]:
        """The settings of every row, in the order in which they are measured."""
        if self.seeds is None:
            return list(self.grid)
        return [settings | {"seed": seed} for seed in self.seeds for settings in self.grid]

    def missing(self, folder: Path = RESULTS) -> list[dict]:
        """Settings of the rows that are not yet in its file."""
        rows = read(self.path(folder))["rows"] if self.path(folder).exists() else []
        return [settings for settings in self.settings() if not select(rows, **settings)]


def every(**choices: Iterable) -> list[dict]:
    """All combinations of some settings, each with its choices; the last changes first."""
    return [dict(zip(choices, some, strict=True)) for some in product(*choices.values())]


def rounded(seconds: Mapping[str, Iterable[float]]) -> dict[str, list[float]]:
    """Those of every round, by name, to hundredths of a millisecond."""
    return {name: [round(second, 5) for second in some] for name, some in seconds.items()}


def measure(experiment: Experiment, folder: Path = RESULTS) -> None:
    """Measure every row that is not yet in the experiment's file, and print them all.

    Several processes may measure one experiment: they share its rows. Sets the number of PyTorch's threads.

    Raises: ValueError as Results; OSError if nothing can be written.
    """
    torch.set_num_threads(experiment.threads)
    results = Results(experiment.path(folder), experiment.command)
    for settings in experiment.settings():
        with suppress(BlockingIOError), locked(row_file(results.path, settings)):
            results.measure(settings, partial(experiment.measure, **settings))
        rows = select(results.rows(), **settings)
        print(experiment.name, rows or f"{settings}: another process measures it", flush=True)


def row_file(path: Path, settings: dict) -> Path:
    """What a process locks while it measures one row of a file."""
    row = json.dumps([str(path.resolve()), settings])
    place = BUILD / "experiments" / hashlib.sha256(row.encode()).hexdigest()[:16]
    place.parent.mkdir(parents=True, exist_ok=True)
    return place
