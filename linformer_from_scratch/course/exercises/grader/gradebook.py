"""Points from marks, and the tables that Canvas and Moodle import.

A row of the roster has Student (or First name and Last name or Surname), ID, SIS User ID, SIS Login ID, Section, Email address, ID
number, Username, File, Submitted: what Canvas or Moodle exports will do. A file is the learner's whose File, or if that
is empty one of whose names, is in its name, between underscores. Handed in was when Submitted says; without it, when
the newest file was changed, which copying may reset.

https://github.com/instructure/canvas-lms/blob/master/lib/gradebook_importer.rb: columns in this order, no feedback.
https://docs.moodle.org/405/en/Grade_import: any columns; no grade above 100, so it gets percents.
"""

import csv
import io
import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import filter as matching
from pathlib import Path

from linformer_from_scratch.common.files import expanded
from linformer_from_scratch.course.exercises import EXERCISES
from linformer_from_scratch.course.exercises.engine.checking import sentence_of

UNSEEN = "not looked at"
ORDER = ("open", UNSEEN, "failed", "passed")  # a mistake's name counts as failed
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE = ("Email address", "ID number", "Username")
STARS = {id: float(exercise.stars) for id, exercise in EXERCISES.items()}
Row = dict[str, str]


@dataclass(frozen=True)
class Gradebook:
    """Points of exercises; learner -> row; a named mistake's share; deadline; percents a day late; the title there."""

    points: dict[str, float]
    roster: dict[str, Row]
    partial: float = 0.0
    due: datetime | None = None
    late_percent: float = 10.0
    title: str = "Linformer"

    def owner(self, name: str) -> str:
        """Whose file this is; where nobody's, its own name. Raises: ValueError, in one sentence, where several's."""
        found = []
        for learner, row in self.roster.items():
            names = [row["File"]] if row.get("File") else [row.get(one) for one in (*CANVAS[:-1], *MOODLE)]
            whole = [f"_{unicodedata.normalize('NFC', one)}_".casefold() for one in names if one]
            found += [learner] * any(one in f"_{name}_".casefold() for one in whole)
        if len(found) > 1:
            raise ValueError(
                f"{name} may be of {' or '.join(found)}; expected one: fill in the roster's File"
            )
        return found[0] if found else name

    def days_late(self, learner: str, files: list[Path]) -> int:
        """How many days late a learner's files are, a day begun counting whole."""
        if not self.due or not files:
            return 0
        changed = datetime.fromtimestamp(max(path.stat().st_mtime for path in files)).astimezone()
        submitted = self.roster.get(learner, {}).get("Submitted")
        handed_in = moment(submitted) if submitted else changed
        return max(0, math.ceil((handed_in - self.due) / timedelta(days=1)))

    def score(self, marks: dict[str, str], late: int, notes: Iterable[str] = ()) -> tuple[float, float, str]:
        """Points, percents and feedback for marks that were handed in so many days late, with these notes."""
        counts = {id: marks.get(id, "open") for id, points in self.points.items() if points}
        worth = dict.fromkeys(ORDER, 0.0) | {"passed": 1.0}
        kept, possible = max(0.0, 1 - late * self.late_percent / 100), sum(self.points.values())
        points = kept * sum(self.points[id] * worth.get(mark, self.partial) for id, mark in counts.items())
        off = f", {100 * (1 - kept):.3g} % off for {late} day{'s' * (late > 1)} late" * (late > 0)
        said = [f"{points:.5g} of {possible:g} points{off}", *(note for note in notes if "damaged" in note)]
        for id, mark in counts.items():
            told = {name_of_mistake(one): sentence_of(one) for one in EXERCISES[id].mistakes}
            said += [f"{id}: {told.get(mark, 'not passed')}"] * (mark not in ("passed", "open"))
        left = ", ".join(id for id, mark in counts.items() if mark == "open")
        said += [f"open: {left}" if marks else "nothing was graded"] * bool(left)
        return round(points, 2), round(100 * points / possible, 2), " · ".join(said)

    def tables(self, scores: dict[str, tuple[float, float, str]]) -> dict[str, str]:
        """Canvas's and Moodle's, of the learners in the roster."""
        possible: list[object] = ["    Points Possible", *[""] * 4, sum(self.points.values())]
        canvas: list[list[object]] = [[*CANVAS, self.title], possible]
        moodle: list[list[object]] = [[*MOODLE, self.title, f"{self.title} (feedback)"]]
        for name, row in self.roster.items():
            canvas.append([*(row.get(one, "") for one in CANVAS), scores[name][0]])
            moodle.append([*(row.get(one, "") for one in MOODLE), *scores[name][1:]])
        return {"canvas": table_of(canvas), "moodle": table_of(moodle)}


def name_of_mistake(mistake: Callable) -> str:
    """What the table of marks calls it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", mistake.__name__).lower()


def rows_of(file: Path) -> list[Row]:
    """The rows of a table of commas, semicolons or tabs. Raises: ValueError, in one sentence, or OSError."""
    try:
        text = expanded(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{file} is not text in UTF-8; expected what spreadsheets call CSV UTF-8") from None
    rows = csv.DictReader(io.StringIO(text), delimiter=max(",;\t", key=text.partition("\n")[0].count))
    return [{name: (row[name] or "").strip() for name in rows.fieldnames or []} for row in rows]


def points_in(file: Path) -> dict[str, float]:
    """STARS, but for a table's rows of exercise, as in 6.1, 6.* or *, and points. Raises: ValueError."""
    points = dict(STARS)
    for row in rows_of(file):
        pattern, number = row.get("exercise", ""), row.get("points", "")
        ids = matching(EXERCISES, pattern)
        if not ids or not re.fullmatch(r"\d+(\.\d+)?", number):
            raise ValueError(
                f"{file}: got exercise {pattern!r}, points {number!r}; expected columns exercise and points, "
                "as in 6.1 or 6.*, and 2.5"
            )
        points |= dict.fromkeys(ids, float(number))
    if not any(points.values()):
        raise ValueError(f"{file} leaves 0 points in all; expected more")
    return points


def roster_in(file: Path) -> dict[str, Row]:
    """Learner -> row. Raises: ValueError, in one sentence."""
    roster: dict[str, Row] = {}
    for row in rows_of(file):
        last = row.get("Last name") or row.get("Surname", "")
        name = row.setdefault("Student", f"{row.get('First name', '')} {last}".strip())
        if name in roster:
            raise ValueError(f"{file} has {name} twice; expected another name for each learner")
        if name and name != "Points Possible":  # which Canvas exports, too
            roster[name] = row
    if not roster:
        raise ValueError(f"{file} has 0 learners; expected a column Student, or First name and Surname")
    return roster


def moment(text: str) -> datetime:
    """A time, here unless it says where. Raises: ValueError, in one sentence."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise ValueError(f"got the time {text!r}; expected one such as 2026-12-01T23:59") from None


def table_of(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()
