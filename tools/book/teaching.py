"""What a teacher plans with, read from the notebooks: minutes of lectures, exercises, homework."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lectures import lecture, minutes, notes
from slides import heading, slides

from linformer_from_scratch.course.exercises import EXERCISES
from linformer_from_scratch.course.exercises.engine.checking import Exercise

HOMEWORK = re.compile(r"Homework:\s*(.*?)[.;](?:\s|$)", re.DOTALL)
# One day for those who know Transformers a little: lectures by chapter, exercises by id, breaks in minutes.
MORNING = ("00", "01", ["1.1", "1.2", "1.4"], 15, "03", 60)
ONE_DAY = (*MORNING, "04", 15, "06", ["6.1", "6.2", "6.3"], 15, "08", "12")
BEGINS = 9 * 60  # minutes after midnight
FOUR_WEEKS = (
    ("00", "01", "02", "03"),
    ("04", "05", "06"),
    ("07", "08", "09"),
    ("10", "12", "13", "14"),
)


class Lesson(NamedTuple):
    """A chapter as a teacher sees it.

    title: number and name.
    stem: of its files.
    lecture: minutes, by the marks in the notes.
    slides: how many.
    exercises: all of them, with their minutes.
    homework: what the notes set, in words; empty where they set nothing.
    """

    title: str
    stem: str
    lecture: int
    slides: int
    exercises: list[Exercise]
    homework: str


def lesson(path: Path) -> Lesson:
    """The chapter of a notebook."""
    notebook = lecture(path)
    homework = HOMEWORK.search("\n".join(notes(path).values()))
    return Lesson(
        title=heading(notebook.cells),
        stem=path.stem,
        lecture=minutes(notebook)[-1],
        slides=len(slides(notebook)),
        exercises=[one for id, one in EXERCISES.items() if id.startswith(f"{int(path.stem[:2])}.")],
        homework=" ".join(homework[1].split()) if homework else "",
    )


def one_day(lessons: list[Lesson]) -> Iterator[tuple[str, str, int | str]]:
    """When each part of a day begins, what it is, and how many minutes it takes."""
    by_number, now = {one.stem[:2]: one for one in lessons}, BEGINS
    for part in ONE_DAY:
        match part:
            case str():
                what, takes = f"lecture {by_number[part].title}", by_number[part].lecture
            case list():
                what, takes = f"exercises {', '.join(part)}", sum(EXERCISES[id].minutes for id in part)
            case _:
                what, takes = "break", part
        yield f"{now // 60}:{now % 60:02}", what, takes
        now += takes
    yield f"{now // 60}:{now % 60:02}", "the end", ""
