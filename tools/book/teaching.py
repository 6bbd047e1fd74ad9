"""What a teacher plans with, read from the notebooks: minutes of lectures, exercises, homework."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import nbformat
from slides import minutes, slide_type, slides, title

from linformer_from_scratch.exercises import EXERCISES

HOMEWORK = re.compile(r"Homework:\s*(.*?)[.;](?:\s|$)", re.DOTALL)


class Lesson(NamedTuple):
    """A chapter as a teacher sees it.

    title: number and name.
    stem: of its files.
    lecture: minutes, by the marks in the notes.
    slides: how many.
    exercises: (id, minutes) of each.
    homework: what the notes set, in words; empty where they set nothing.
    """

    title: str
    stem: str
    lecture: int
    slides: int
    exercises: list[tuple[str, int]]
    homework: str

    @property
    def practice(self) -> int:
        """Minutes of all exercises."""
        return sum(minutes for _, minutes in self.exercises)


def lesson(path: Path) -> Lesson:
    """The chapter of a notebook."""
    notebook = nbformat.read(path, as_version=4)
    notes = "\n".join(cell.source for cell in notebook.cells if slide_type(cell) == "notes")
    homework = HOMEWORK.search(notes)
    number = path.stem[:2]
    return Lesson(
        title=title(notebook),
        stem=path.stem,
        lecture=minutes(notebook)[-1],
        slides=len(slides(notebook)),
        exercises=[
            (id, one.minutes) for id, one in EXERCISES.items() if int(id.split(".")[0]) == int(number)
        ],
        homework=" ".join(homework[1].split()) if homework else "",
    )


def table(lessons: list[Lesson]) -> str:
    """The chapters with their minutes, as markdown."""
    rows = [
        f"| [{one.title}](teacher/{one.stem}.ipynb) | {one.lecture} | {one.slides} | {len(one.exercises)} "
        f"| {one.practice} | {one.homework or '–'} |"
        for one in lessons
    ]
    head = "| chapter | lecture, minutes | slides | exercises | their minutes | homework that the notes set |"
    return "\n".join([head, "| --- | --- | --- | --- | --- | --- |", *rows])


# One day for those who know Transformers a little: lectures by chapter, exercises by id, breaks in minutes.
ONE_DAY = (
    "00",
    "01",
    ["1.1", "1.2", "1.4"],
    15,
    "03",
    60,
    "04",
    15,
    "06",
    ["6.1", "6.2", "6.3"],
    15,
    "08",
    "12",
)
FOUR_WEEKS = (("00", "01", "02", "03"), ("04", "05", "06"), ("07", "08", "09"), ("10", "11", "12"))


def one_day(lessons: list[Lesson], start: int = 9 * 60) -> str:
    """The plan of a day as markdown: when each part begins, and for how many minutes.

    start: minutes after midnight.
    """
    rows, now = ["| from | what | minutes |", "| --- | --- | --- |"], start
    for part in ONE_DAY:
        what, takes = _part(part, {one.stem[:2]: one for one in lessons})
        rows.append(f"| {_clock(now)} | {what} | {takes} |")
        now += takes
    return "\n".join([*rows, f"| {_clock(now)} | the end | |"])


def four_weeks(lessons: list[Lesson]) -> str:
    """The plan of four weeks as markdown: the lectures of each, and their exercises at home, in minutes."""
    by_number = {one.stem[:2]: one for one in lessons}
    rows = ["| week | lectures | their minutes | exercises, minutes at home |", "| --- | --- | --- | --- |"]
    for week, numbers in enumerate(FOUR_WEEKS, start=1):
        held = [by_number[number] for number in numbers]
        lectures = ", ".join(one.title for one in held)
        taught, practised = _sum(one.lecture for one in held), _sum(one.practice for one in held)
        rows.append(f"| {week} | {lectures} | {taught} | {practised} |")
    return "\n".join(rows)


def _part(part: str | list[str] | int, lessons: dict[str, Lesson]) -> tuple[str, int]:
    if isinstance(part, int):
        return "break", part
    if isinstance(part, str):
        return f"lecture {lessons[part].title}", lessons[part].lecture
    return f"exercises {', '.join(part)}", sum(EXERCISES[id].minutes for id in part)


def _sum(numbers: Iterable[int]) -> str:
    numbers = list(numbers)
    return f"{' + '.join(map(str, numbers))} = {sum(numbers)}"


def _clock(minutes: int) -> str:
    return f"{minutes // 60}:{minutes % 60:02}"
