"""A folder of learners' notebooks to a table of learner × exercise, each file in a process of its own.

A learner is a file or a folder at the top of it: ada.ipynb, ada/06_linformer.ipynb and ada/my_linformer.py are all
Ada's, and her best attempt counts. What the processes keep apart, and what they do not: fence.py.
"""

import contextlib
import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tqdm.auto import tqdm

from linformer_from_scratch.course.files import atomic_write
from linformer_from_scratch.exercises import EXERCISES
from linformer_from_scratch.exercises.engine import SEEDS, Exercise, Result, exam_seeds, judge, sentence_of

SUFFIXES = (".ipynb", ".py")
ORDER = ("open", "failed", "passed")  # a mistake's name counts as failed


@dataclass
class Graded:
    """What one file, or one learner, has: id -> "passed", "failed" or a mistake's name; and what went wrong."""

    marks: dict[str, str] = field(default_factory=dict)
    note: str = ""

    def add(self, other: "Graded", where: str) -> None:
        """Take over what is better, and the note."""
        for id, mark in other.marks.items():
            if rank(mark) >= rank(self.marks.get(id, "open")):
                self.marks[id] = mark
        if other.note:
            self.note = f"{self.note}; {where}: {other.note}".removeprefix("; ")


def rank(mark: str) -> int:
    """How good a mark is."""
    return ORDER.index(mark) if mark in ORDER else ORDER.index("failed")


def mark_of(exercise: Exercise, result: Result) -> str:
    """passed, open, failed, or the name of the mistake whose sentence was said."""
    if result.status != "failed":
        return result.status
    named = (mistake.__name__ for mistake in exercise.mistakes if sentence_of(mistake) == result.message)
    return next(named, "failed")


def grade_folder(folder: Path, out: Path, seconds: float, memory: int, number: int | None = None) -> int:
    """Write the table, again after every file, so that an interrupt keeps what there is; the number of learners.

    Args:
        seconds, memory: what one file may take; memory in bytes.
        number: of an exam; None grades with the course's draws.

    Raises: FileNotFoundError if there is nothing to grade; OSError if the table cannot be written.
    """
    files = sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    files = [path for path in files if ".ipynb_checkpoints" not in path.parts]
    if not files:
        raise FileNotFoundError(f"{folder} has no notebook and no Python file")
    learners: dict[str, Graded] = {}
    for path in tqdm(files, unit="file"):
        inside = path.relative_to(folder)
        learner = learners.setdefault(inside.parts[0] if len(inside.parts) > 1 else path.stem, Graded())
        learner.add(grade_file(path, seconds, memory, number), str(inside))
        atomic_write(out, as_csv(learners))
    return len(learners)


def as_csv(learners: dict[str, Graded]) -> str:
    """A row for each learner: how many passed, a column for each exercise, and what went wrong."""
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["learner", "passed", *EXERCISES, "note"])
    for name, learner in sorted(learners.items()):
        marks = [learner.marks.get(id, "open") for id in EXERCISES]
        shown = f"'{name}" if name[0] in "=+-@" else name  # else a spreadsheet takes it for a formula
        table.writerow([shown, marks.count("passed"), *marks, learner.note])
    return text.getvalue()


def grade_file(path: Path, seconds: float, memory: int, number: int | None) -> Graded:
    """What one file has, found in a process of its own that may not take longer, nor more memory."""
    command = [sys.executable, "-m", f"{__package__}.examiner", str(path.resolve()), str(memory), str(number)]
    with tempfile.TemporaryDirectory() as elsewhere, tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command,
            cwd=elsewhere,
            env={**os.environ, "LINFORMER_PROGRESS": f"{elsewhere}/progress.json", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(seconds)
            ended = ""
        except subprocess.TimeoutExpired:
            ended = f"stopped after {seconds:g} seconds"
        finally:
            end(process)
        said.seek(0)
        return graded(
            said, ended or ("" if process.returncode == 0 else f"its process ended with {process.returncode}")
        )


def end(process: subprocess.Popen) -> None:
    """The process and all that it began in its session."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def graded(lines: Iterator[str], ended: str) -> Graded:
    """What an examiner has said, line by line, and how it ended: at a fault, at which exercise."""
    found, at = Graded(), ""
    for line in lines:
        try:
            said = json.loads(line)
        except ValueError:
            continue  # the line in which it was stopped
        at = said.get("id", at)
        if "mark" in said:
            found.add(Graded({said["id"]: said["mark"]}), "")
            at = ""
        found.note = said.get("note", found.note)
    if ended:
        found.note = ended + f" at {at}, later exercises were not looked at" * bool(at)
        if at:
            found.add(Graded({at: "failed"}), "")
    return found


def examine(path: Path, number: int | None) -> Iterator[dict[str, str]]:
    """What an examiner says of a file: id before an attempt is run, id and mark after, a note if it is damaged."""
    from linformer_from_scratch.exercises.submissions import attempts  # runs what was handed in

    seeds = SEEDS if number is None else exam_seeds(number)
    try:
        for id, make in attempts(path):
            yield {"id": id}
            try:
                attempt = make()
            except Exception:
                yield {"id": id, "mark": "failed"}
                continue
            yield {"id": id, "mark": mark_of(EXERCISES[id], judge(EXERCISES[id], attempt, seeds))}
    except ValueError as error:
        yield {"note": str(error)}
