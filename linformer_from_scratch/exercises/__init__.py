"""Exercises that are checked on the spot: check, hint, quiz, progress."""

import html
from dataclasses import dataclass
from typing import Any

from linformer_from_scratch.exercises import attention, multihead, start_here, store
from linformer_from_scratch.exercises.engine import COLOURS, Exercise, Result, judge

CHAPTERS = {"00": start_here, "01": attention, "02": multihead}
EXERCISES: dict[str, Exercise] = {e.id: e for chapter in CHAPTERS.values() for e in chapter.EXERCISES}

__all__ = ["EXERCISES", "check", "hint", "progress", "quiz"]


@dataclass(frozen=True)
class Note:
    """Some lines that show themselves in a notebook."""

    lines: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        style = f"border-left: 5px solid {COLOURS['hint']}; padding: 0.3em 0.8em; margin: 0; font-size: 1em"
        return f'<pre style="{style}">{html.escape(repr(self))}</pre>'


def check(exercise_id: str, attempt: Any) -> Result:
    """Judge an attempt at an exercise and remember it if it passes. The Result shows itself."""
    if exercise_id not in EXERCISES:
        return Result(str(exercise_id), "failed", _unknown(exercise_id))
    result = judge(EXERCISES[exercise_id], attempt)
    if result.status == "passed":
        store.note(exercise_id, passed=True)
    return result


def hint(exercise_id: str) -> Note:
    """The hints of an exercise, one more each time you ask."""
    if exercise_id not in EXERCISES:
        return Note((_unknown(exercise_id),))
    hints = EXERCISES[exercise_id].hints
    opened = min(store.load().get(exercise_id, {}).get("hints", 0) + 1, len(hints))
    store.note(exercise_id, hints=opened)
    steps = tuple(f"hint {i} of {len(hints)}: {text}" for i, text in enumerate(hints[:opened], 1))
    return Note(steps)


def quiz(chapter: str):
    """The quiz of a chapter, such as quiz("01"): a widget that explains every choice."""
    if chapter not in CHAPTERS:
        return Note((f"there is no quiz {chapter!r}; there are {', '.join(CHAPTERS)}",))
    from linformer_from_scratch.exercises.quiz_view import (
        QuizView,
    )  # loads ipywidgets, which check does not need

    return QuizView(CHAPTERS[chapter].QUIZ)


def progress() -> Note:
    """Your exercises by chapter: passed, of these with hints, and open."""
    record = store.load()
    lines = [f"{'chapter':<12}{'passed':>8}{'hinted':>8}{'open':>8}"]
    for number, chapter in CHAPTERS.items():
        entries = [record.get(exercise.id, {}) for exercise in chapter.EXERCISES]
        passed = sum(entry.get("passed", False) for entry in entries)
        hinted = sum(entry.get("hints", 0) > 0 for entry in entries)
        lines.append(f"{number:<12}{passed:>8}{hinted:>8}{len(entries) - passed:>8}")
    return Note(tuple(lines))


def _unknown(exercise_id: Any) -> str:
    return f"there is no exercise {exercise_id!r}; there are {', '.join(EXERCISES)}"
