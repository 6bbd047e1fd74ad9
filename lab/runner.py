"""Measure what is missing of an experiment, row by row: what was killed goes on where it was."""

import hashlib
import json
from contextlib import suppress
from functools import partial
from pathlib import Path

import torch

from lab.experiment import BUILD, Experiment
from linformer_from_scratch.common.files import locked
from linformer_from_scratch.common.rows import Results, read
from linformer_from_scratch.course.recorded import RESULTS, select


def measure(experiment: Experiment, folder: Path = RESULTS) -> None:
    """Measure every row that is not yet in the experiment's file, and print them all.

    Several processes may measure one experiment: they share its rows. Sets the number of PyTorch's threads.

    Raises: ValueError as Results; OSError if nothing can be written.
    """
    torch.set_num_threads(experiment.threads)
    results = Results(path_of(experiment, folder), experiment.command)
    for settings in experiment.settings():
        with suppress(BlockingIOError), locked(row_file(results.path, settings)):
            results.measure(settings, partial(experiment.measure, **settings))
        rows = select(results.rows(), **settings)
        print(experiment.name, rows or f"{settings}: another process measures it", flush=True)


def missing(experiment: Experiment, folder: Path = RESULTS) -> list[dict]:
    """Settings of the rows that are not yet in the experiment's file."""
    path = path_of(experiment, folder)
    rows = read(path)["rows"] if path.exists() else []
    return [settings for settings in experiment.settings() if not select(rows, **settings)]


def path_of(experiment: Experiment, folder: Path = RESULTS) -> Path:
    """The file of its rows."""
    return folder / f"{experiment.name}.json"


def row_file(path: Path, settings: dict) -> Path:
    """What a process locks while it measures one row of a file."""
    row = json.dumps([str(path.resolve()), settings])
    place = BUILD / "experiments" / hashlib.sha256(row.encode()).hexdigest()[:16]
    place.parent.mkdir(parents=True, exist_ok=True)
    return place
