"""Where the learner stands: a bar for each chapter, the parts of their Linformer, what is next, and minutes."""

import html
from collections.abc import Iterator

from linformer_from_scratch.course.exercises.engine.answers import Answer
from linformer_from_scratch.course.exercises.engine.checking import Exercise
from linformer_from_scratch.course.exercises.engine.progress import State

LENGTH = 10  # signs of a bar
DONE, OPEN = "●", "○"


class Overview(Answer):
    """Where the learner stands, a row for each chapter and three lines below.

    Args:
        chapters: title, as in "06_linformer" -> its exercises.
        state: what has been passed, and which hints were opened.
        kept: the parts that my_linformer.py has.
    """

    def __init__(self, chapters: dict[str, tuple[Exercise, ...]], state: State, kept: set[str]):
        self.chapters, self.state, self.kept = chapters, state, kept
        self.exercises = [exercise for group in chapters.values() for exercise in group]

    def rows(self) -> Iterator[tuple[str, int, int, str]]:
        """Of each chapter: its title, how many exercises are passed, of how many, and which are not."""
        for title, group in self.chapters.items():
            rest = [self.named(exercise) for exercise in group if exercise.id not in self.state.passed]
            yield title, len(group) - len(rest), len(group), " ".join(rest)

    def named(self, exercise: Exercise) -> str:
        """An id, with a note where hints are open."""
        hints = self.state.hints.get(exercise.id)
        return f"{exercise.id} ({hints} hint{'s' * (hints > 1)})" if hints else exercise.id

    def parts(self) -> str:
        """The parts of the learner's own Linformer, done and open."""
        names = [exercise.part for exercise in self.exercises if exercise.part]
        return "my_linformer.py: " + "  ".join(f"{DONE if n in self.kept else OPEN} {n}" for n in names)

    def next(self) -> tuple[str, str] | None:
        """The notebook with the first open exercise, and that exercise in a few words; None where all is done."""
        for title, group in self.chapters.items():
            for exercise in group:
                if exercise.id not in self.state.passed:
                    return f"{title}.ipynb", f"{exercise.id}, {exercise.minutes} minutes"
        return None

    def sum(self) -> str:
        """Exercises and minutes, of all."""
        done = [exercise for exercise in self.exercises if exercise.id in self.state.passed]
        minutes = [sum(exercise.minutes for exercise in group) for group in (done, self.exercises)]
        return f"{len(done)} of {len(self.exercises)} exercises passed, {minutes[0]} of {minutes[1]} minutes"

    def as_text(self) -> str:
        """Columns of words, and the three lines."""
        width = max(map(len, self.chapters))
        lines = [
            f"{title.ljust(width)}  {bar(done, count)}  {done} of {count}  {rest}".rstrip()
            for title, done, count, rest in self.rows()
        ]
        following = self.next()
        said = f"{following[1]}, in {following[0]}" if following else "nothing is open"
        return "\n".join([*lines, self.parts(), f"next: {said}", self.sum()])

    def as_html(self) -> str:
        """The same as a table, with a link to what is next."""
        rows = ""
        for title, done, count, rest in self.rows():
            cells = html.escape(title), bar(done, count), f"{done} of {count}", html.escape(rest)
            rows += "<tr>" + "".join(f'<td style="text-align: left">{cell}</td>' for cell in cells) + "</tr>"
        following = self.next()
        link = f'<a href="{following[0]}">{html.escape(following[1])}</a>' if following else "nothing is open"
        return f"<table>{rows}</table><p>{html.escape(self.parts())}<br>next: {link}<br>{self.sum()}</p>"


def bar(done: int, count: int) -> str:
    """A bar of signs, full where all is done and empty where nothing is."""
    full = LENGTH * done // count if count else LENGTH
    return "█" * full + "░" * (LENGTH - full)
