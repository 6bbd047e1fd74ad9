"""A folder of learners' notebooks to a table of learner × exercise, each file in a process of its own.

A learner is a file or a folder at the top of it: ada.ipynb, ada/06_linformer.ipynb and ada/my_linformer.py are all
Ada's, and her best attempt counts. An attempt is what a cell hands to check("6.1", …), however it does so, or a part
in my_linformer.py.

In the table stand: passed; the name of the mistake whose sentence the learner was told; failed, with the reason in
the column of notes; not looked at, where the file's process ended before; open.
"""

import contextlib
import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tqdm.auto import tqdm

from linformer_from_scratch import exercises
from linformer_from_scratch.common.files import atomic_write, expanded, make_folder
from linformer_from_scratch.exercises import EXERCISES
from linformer_from_scratch.exercises.engine.checking import (
    SEEDS,
    Exercise,
    Result,
    exam_seeds,
    judge,
    sentence_of,
)

SUFFIXES = (".ipynb", ".py")
UNSEEN = "not looked at"
UNREAD = "a check(…) that could not be read"
ORDER = ("open", UNSEEN, "failed", "passed")  # a mistake's name counts as failed
SHOWN = 120  # characters of a reason


@dataclass
class Graded:
    """What one file, or one learner, has: id -> mark, as in the table; and what went wrong."""

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
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", next(named, "failed")).lower()


def grade_folder(folder: Path, out: Path, seconds: float, memory: int, number: int | None = None) -> int:
    """Write the table, again after every file, so that an interrupt keeps what there is; the number of learners.

    Args:
        seconds, memory: what one file may take; memory in bytes.
        number: of an exam; None grades with the course's draws.

    Raises: NotADirectoryError or FileNotFoundError, in one sentence, if there is nothing to grade; OSError if the
        table cannot be written, before anything is graded.
    """
    folder, out = expanded(folder), expanded(out)
    if not folder.is_dir():
        raise NotADirectoryError(
            f"{folder} is not a folder; expected one with a file or a folder for each learner"
        )
    learners = {name_of(path): Graded() for path in sorted(folder.iterdir()) if not path.name.startswith(".")}
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in SUFFIXES and path.is_file()]
    files = [
        path for path in files if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    if not files:
        raise FileNotFoundError(f"{folder} has no notebook and no Python file")
    make_folder(out.parent)
    empty = {*learners} - {name_of(folder / path.relative_to(folder).parts[0]) for path in files}
    for name in empty:
        learners[name].note = "no notebook and no Python file"
    write(out, learners)
    for path in tqdm(files, unit="file"):
        inside = path.relative_to(folder)
        learner = learners[name_of(folder / inside.parts[0])]
        learner.add(grade_file(path, seconds, memory, number), str(inside))
        write(out, learners)
    return len(learners)


def name_of(path: Path) -> str:
    """A learner's name, however the machine that it comes from writes an ö."""
    return unicodedata.normalize("NFC", path.name if path.is_dir() else path.stem)


def write(out: Path, learners: dict[str, Graded]) -> None:
    """Write the table in such a way that spreadsheets know its letters."""
    atomic_write(out, as_csv(learners).encode("utf-8-sig"))


def as_csv(learners: dict[str, Graded]) -> str:
    """A row for each learner: how many passed, a column for each exercise, and what went wrong."""
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["learner", "passed", *EXERCISES, "note"])
    for name, learner in sorted(learners.items(), key=lambda pair: pair[0].casefold()):
        marks = [learner.marks.get(id, "open") for id in EXERCISES]
        shown = f"'{name}" if name[0] in "=+-@" else name  # else a spreadsheet takes it for a formula
        table.writerow([shown, marks.count("passed"), *marks, learner.note])
    return text.getvalue()


def grade_file(path: Path, seconds: float, memory: int, number: int | None) -> Graded:
    """What one file has, found in a process of its own that may not take longer, nor more memory."""
    words = path.resolve(), seconds, memory, number, os.getpid()
    command = [sys.executable, "-m", f"{__package__}.examiner", *map(str, words)]
    with tempfile.TemporaryDirectory() as elsewhere, tempfile.TemporaryFile("w+", encoding="utf-8") as said:
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
        return graded(said, ended or f"its process ended with {process.returncode}")


def end(process: subprocess.Popen) -> None:
    """The process and all that it began in its session."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def graded(lines: Iterable[str], ended: str) -> Graded:
    """What an examiner has said, line by line.

    Args: ended: what became of its process, in case its last line is missing.
    """
    found, at = Graded(), ""
    reasons: dict[str, str] = {}
    notes: dict[str, None] = {}  # each once
    for line in lines:
        try:
            said = json.loads(line)
        except ValueError:
            break  # the line in which it was stopped
        if "ids" in said:
            found.marks = dict.fromkeys(said["ids"], UNSEEN)
        elif "mark" in said:
            id, before = said["id"], found.marks.get(said["id"], UNSEEN)
            if rank(said["mark"]) >= rank(before) or before == UNSEEN:
                found.marks[id], reasons[id] = said["mark"], said["reason"]
            at = ""
        elif "note" in said:
            notes[said["note"]] = None
        elif "end" in said:
            notes |= {f"{id}: {UNREAD}": None for id, mark in found.marks.items() if mark == UNSEEN}
            found.marks = {id: "open" if mark == UNSEEN else mark for id, mark in found.marks.items()}
            ended = said["end"]
        else:
            at = said["id"]
    if at:
        found.marks[at] = "failed"
        ended += f" at {at}"
    failed = [f"{id} {reason}" for id, reason in reasons.items() if found.marks[id] == "failed" and reason]
    found.note = "; ".join([*failed, *notes, *filter(None, [ended])])
    return found


def examine(path: Path, number: int | None, say: Callable[[dict], None]) -> None:
    """Run what was handed in, in a process of its own whose check(…) is another from here on, and say what it has.

    Args: say: is told which exercises it names; an id before an attempt is run, its mark after; the end.
    """
    from linformer_from_scratch.exercises.grader.submissions import (  # runs what was handed in
        Unread,
        attempts,
    )

    seeds = SEEDS if number is None else exam_seeds(number)
    marked: set[str] = set()

    def check(id: str, attempt: object) -> Result:
        if not exercises._known(id, EXERCISES):
            result = exercises._unknown_exercise(id)
            say({"note": f"{result.id}: {result.message}"})
            return result
        say({"id": id})
        return told(judge(EXERCISES[id], attempt, seeds))

    def told(result: Result) -> Result:
        mark = mark_of(EXERCISES[result.id], result)
        marked.add(result.id)
        say({"id": result.id, "mark": mark, "reason": result.message[:SHOWN] if mark == "failed" else ""})
        return result

    exercises.check = check
    try:
        handed_in = list(attempts(path))
    except ValueError as error:
        say({"end": str(error)})
        return
    say({"ids": [id for ids, _ in handed_in for id in ids]})
    for ids, run in handed_in:
        marked.clear()
        say({"id": next(iter(ids), "")})
        try:
            run()
        except Unread:
            if not ids:
                say({"note": UNREAD})
        except BaseException as error:
            for id in ids:
                if id not in marked:
                    told(Result(id, "failed", f"{type(error).__name__} before it was checked"))
            if not ids and not marked:
                say({"note": f"{UNREAD}: {type(error).__name__}"})
    say({"id": ""})
    say({"end": "" if handed_in else f"it has no {'part' if path.suffix == '.py' else 'check(…)'}"})
