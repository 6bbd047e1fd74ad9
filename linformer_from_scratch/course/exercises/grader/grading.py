"""A folder of learners' notebooks to a table of learner × exercise, each file in a process of its own.

A learner is a file or a folder at the top of it: ada.ipynb, ada/06_linformer.ipynb and ada/my_linformer.py are all
Ada's, and her best attempt counts. An attempt is what a cell hands to check("6.1", …), or a part in my_linformer.py.

The table says: passed; the name of the mistake whose sentence the learner was told; failed, with the reason in
the column of notes; not looked at, where the file's process ended before; open. gradebook.py counts the points.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from linformer_from_scratch import exercises
from linformer_from_scratch.common.files import atomic_write, expanded, make_folder
from linformer_from_scratch.course.exercises import EXERCISES, known, unknown_exercise
from linformer_from_scratch.course.exercises.engine import checking
from linformer_from_scratch.course.exercises.engine.checking import SEEDS, Exercise, Result, exam_seeds, judge
from linformer_from_scratch.course.exercises.engine.completion import compared
from linformer_from_scratch.course.exercises.grader import gradebook
from linformer_from_scratch.course.exercises.grader.gradebook import ORDER, UNSEEN, Gradebook, table_of

SUFFIXES = (".ipynb", ".py")
UNREAD = "a check(…) that could not be read"
SHOWN = 120  # characters of a reason
SYSTEMS = {"__MACOSX", "__pycache__", "desktop.ini", "Thumbs.db"}  # made by no learner


@dataclass
class Graded:
    """The marks of one file or one learner (id -> mark, as in the table), why some failed, and what else went wrong."""

    marks: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    at: str = ""  # the exercise that is being looked at
    ended: bool = False
    late: int = 0  # days

    def improve(self, exercise: str, mark: str) -> bool:
        """Take over a mark, unless there is a better one."""
        before = self.marks.get(exercise, "open")
        better = rank(mark) >= rank(before) or before == UNSEEN
        if better:
            self.marks[exercise] = mark
        return better

    def note(self) -> str:
        """All that went wrong, in one line."""
        failed = [f"{one} {why}" for one, why in self.reasons.items() if why and self.marks[one] == "failed"]
        return "; ".join([*failed, *dict.fromkeys(self.notes)])


def rank(mark: str) -> int:
    """How good a mark is."""
    return ORDER.index(mark) if mark in ORDER else ORDER.index("failed")


def mark_of(exercise: Exercise, result: Result) -> str:
    """passed, open, failed, or the name of the mistake whose sentence was said."""
    if result.status != "failed":
        return result.status
    told = (mistake for mistake in exercise.mistakes if checking.sentence_of(mistake) == result.message)
    return next(map(gradebook.name_of_mistake, told), "failed")


# The teacher's process


def grade_folder(
    folder: Path, out: Path, seconds: float, memory: int, number: int | None, book: Gradebook
) -> dict[str, Graded]:
    """Write the table, again after every file, so that an interrupt keeps the rest; return the learners.

    Args:
        seconds, memory: what one file may take; memory in bytes.
        number: of an exam; None grades with the course's draws.

    Raises: NotADirectoryError or FileNotFoundError, in one sentence, if there is nothing to grade; ValueError if a
        file may be two learners'; OSError if the table cannot be written. All before anything is graded.
    """
    folder, out = expanded(folder), expanded(out)
    if not folder.is_dir():
        raise NotADirectoryError(
            f"{folder} is not a folder; expected one with a file or a folder for each learner"
        )
    files: dict[str, list[Path]] = {name: [] for name in book.roster}
    for path in sorted(folder.iterdir()):
        if not is_hidden(path.name):
            files.setdefault(book.owner(name_of(path)), [])
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if path.suffix in SUFFIXES and path.is_file() and not any(map(is_hidden, inside)):
            files[book.owner(name_of(folder / inside[0]))].append(path)
    if not any(files.values()):
        raise FileNotFoundError(f"{folder} has no notebook and no Python file")
    make_folder(out.parent)
    learners = {}
    for name, own in files.items():
        notes = ["no notebook and no Python file"] * (not own)
        notes += ["not in the roster"] * (bool(book.roster) and name not in book.roster)
        learners[name] = Graded(notes=notes, late=book.days_late(name, own))
    write(out, learners, book)
    texts = dict.fromkeys(files, "")
    for name, path in tqdm([(name, path) for name, own in files.items() for path in own], unit="file"):
        graded = grade_file(path, seconds, memory, number)
        for exercise, mark in graded.marks.items():
            learners[name].improve(exercise, mark)
        if note := graded.note():
            learners[name].notes.append(f"{path.relative_to(folder)}: {note}")
        write(out, learners, book)
        with contextlib.suppress(OSError):
            texts[name] += path.read_text(encoding="utf-8", errors="replace")
    for name, learner in learners.items():
        passed = [exercise for exercise, mark in learner.marks.items() if mark == "passed"]
        learner.notes += compared(texts[name], passed, EXERCISES)
    write(out, learners, book)
    scores = {name: book.score(one.marks, one.late, one.notes) for name, one in learners.items()}
    for system, table in book.tables(scores).items() if book.roster else ():
        atomic_write(out.with_name(f"{out.stem}_{system}.csv"), table)
    return learners


def is_hidden(name: str) -> bool:
    """Is it the name of what a system or a program makes, and no learner hands in?"""
    return name[0] == "." or name in SYSTEMS


def name_of(path: Path) -> str:
    """A learner's name, the same from every machine: some write ö as one letter, some as two."""
    return unicodedata.normalize("NFC", path.name if path.is_dir() else path.stem)


def write(out: Path, learners: dict[str, Graded], book: Gradebook) -> None:
    """Write the table with the mark by which spreadsheets recognise UTF-8."""
    atomic_write(out, as_csv(learners, book).encode("utf-8-sig"))


def as_csv(learners: dict[str, Graded], book: Gradebook) -> str:
    """A row for each learner: how many passed, points, a column for each exercise, feedback, what went wrong."""
    rows: list[list[object]] = [["learner", "passed", "points", "percent", *EXERCISES, "feedback", "note"]]
    for name, learner in sorted(learners.items(), key=lambda pair: pair[0].casefold()):
        marks = [learner.marks.get(exercise, "open") for exercise in EXERCISES]
        shown = f"'{name}" if name[0] in "=+-@" else name  # else a spreadsheet takes it for a formula
        points, percents, feedback = book.score(learner.marks, learner.late, learner.notes)
        rows.append([shown, marks.count("passed"), points, percents, *marks, feedback, learner.note()])
    return table_of(rows)


def grade_file(path: Path, seconds: float, memory: int, number: int | None) -> Graded:
    """Grade one file in a process of its own, within these limits of time and memory."""
    command = [sys.executable, "-m", f"{__package__}.examiner"]
    command += map(str, (path.resolve(), seconds, memory, number))
    with tempfile.TemporaryDirectory() as elsewhere, tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        own = {"LINFORMER_PROGRESS": f"{elsewhere}/progress.json", "OMP_NUM_THREADS": "1"}
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.DEVNULL}
        try:
            done = subprocess.run(command, cwd=elsewhere, env=os.environ | own, timeout=seconds, **pipes)
            ended = f"its process ended with {done.returncode}"
        except subprocess.TimeoutExpired:
            ended = f"stopped after {seconds:g} seconds"
        output.seek(0)
        return last_report(output, ended)


def last_report(lines: Iterable[str], ended: str) -> Graded:
    """The last report of an examiner.

    Args: ended: what became of its process, in case it did not come to the end of the file.
    """
    graded = Graded()
    for line in lines:
        with contextlib.suppress(ValueError):  # the line in which it was stopped
            graded = Graded(**json.loads(line))
    if not graded.ended:
        if graded.at:
            graded.improve(graded.at, "failed")
            ended += f" at {graded.at}"
        graded.notes.append(ended)
    return graded


# The examiner's process


def examine(path: Path, number: int | None, say: Callable[[Graded], None]) -> None:
    """Run what was handed in, in a process of its own whose check(…) is another from here on.

    Args: say: is told what is known, whenever it changes: in case the next attempt does not come back.
    """
    from linformer_from_scratch.course.exercises.grader.submissions import attempts  # it loads IPython

    seeds = SEEDS if number is None else exam_seeds(number)
    graded = Graded()
    marked: set[str] = set()

    def look_at(exercise: str) -> None:
        graded.at = exercise
        say(graded)

    def check(id: str, attempt: object) -> Result:
        if not known(id, EXERCISES):
            result = unknown_exercise(id)
            graded.notes.append(f"{result.id}: {result.message}")
            return result
        look_at(id)
        return enter(judge(EXERCISES[id], attempt, seeds))

    def enter(result: Result) -> Result:
        mark = mark_of(EXERCISES[result.id], result)
        marked.add(result.id)
        if graded.improve(result.id, mark):
            graded.reasons[result.id] = result.message[:SHOWN] if mark == "failed" else ""
        look_at("")
        return result

    exercises.check = check
    try:
        handed_in = list(attempts(path))
    except ValueError as error:
        handed_in = []
        graded.notes.append(str(error))
    else:
        if not handed_in:
            graded.notes.append(f"it has no {'part' if path.suffix == '.py' else 'check(…)'}")
    graded.marks = {exercise: UNSEEN for asked_for, _ in handed_in for exercise in asked_for}
    for asked_for, run in handed_in:
        marked.clear()
        look_at(next(iter(asked_for), ""))
        try:
            if run:
                run()
            elif not asked_for:
                graded.notes.append(UNREAD)
        except BaseException as error:
            for exercise in asked_for:
                if exercise not in marked:
                    enter(Result(exercise, "failed", f"{type(error).__name__} before it was checked"))
            if not asked_for and not marked:
                graded.notes.append(f"{UNREAD}: {type(error).__name__}")
    for exercise, mark in graded.marks.items():
        if mark == UNSEEN:
            graded.marks[exercise] = "open"
            graded.notes.append(f"{exercise}: {UNREAD}")
    graded.ended = True
    look_at("")
