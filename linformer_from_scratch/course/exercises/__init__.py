"""Exercises, checked on the spot.

check("6.2", my_function) says in one sentence what is wrong, hint("6.2") opens one step more, quiz("06") asks what
a chapter taught, bet("6a") what a cell will show, progress() and bets() show where you stand, and
yours("linformer_layer") is what you have built, or the package's where you have not. In a notebook the answer
is shown wherever in its cell the call is; in a script, print it.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module

from linformer_from_scratch.common.files import PACKAGE
from linformer_from_scratch.course.exercises.engine import checking, parts, quizzes
from linformer_from_scratch.course.exercises.engine import progress as kept
from linformer_from_scratch.course.exercises.engine.answers import to_be_seen
from linformer_from_scratch.course.exercises.engine.checking import Hints, Result, exam_seeds, judge
from linformer_from_scratch.course.exercises.engine.compare import described
from linformer_from_scratch.course.exercises.engine.completion import code_of
from linformer_from_scratch.course.exercises.engine.overview import Overview

if sys.flags.optimize > 1:
    raise ImportError(
        "python -OO, or PYTHONOPTIMIZE=2, leaves out the sentences that say what is wrong with an answer; "
        "expected neither"
    )

STEMS = (  # in the order of the chapters
    *("start_here", "attention", "multihead", "cost", "low_rank", "random_projections", "linformer"),
    *("projections", "training", "efficient_attention", "benchmark", "distributed", "limits"),
    *("descendants", "fields"),
)
CHAPTERS = {
    f"{i:02}": checking.exercises_of(import_module(f"{__name__}.{stem}")) for i, stem in enumerate(STEMS)
}
EXERCISES = {exercise.id: exercise for chapter in CHAPTERS.values() for exercise in chapter}
PARTS = {exercise.part: exercise for exercise in EXERCISES.values() if exercise.part}  # in the course's order


def check(id: str, attempt: object) -> Result:
    """Check an attempt at an exercise: passed, failed with the one sentence that helps, or not yet attempted.

    The attempt is a function; it is called on copies of several draws and compared with the reference. Random numbers
    and the usual global settings of Python, NumPy and PyTorch are left as they were (isolation.py says which).
    """
    if not known(id, EXERCISES):
        return unknown_exercise(id)
    exercise = EXERCISES[id]
    result = judge(exercise, attempt)
    if result.status == "passed":
        kept.record_pass(id)
        if exercise.part and callable(attempt) and not _is_ours(attempt):
            became = parts.keep(exercise, attempt, list(PARTS))
            result = replace(result, message=f"{result.message}, {became}")
    return to_be_seen(result)


def exam(id: str, attempt: object, number: int = 0) -> Result:
    """Check an attempt on sizes and signs that the course does not draw, as well; nothing is kept.

    Args: number: 0 to 10⁹; another number, another exam.
    Raises: ValueError if the number is no such integer.
    """
    if not known(id, EXERCISES):
        return unknown_exercise(id)
    return to_be_seen(judge(EXERCISES[id], attempt, exam_seeds(number)))


def yours(part: str, quiet: bool = False) -> Callable:
    """Your own part of my_linformer.py, or the package's while it is open; says in one line which, unless quiet.

    Raises: ValueError if there is no such part.
    """
    if not known(part, PARTS):
        raise ValueError(f"there is no part {part!r}; the parts are {', '.join(PARTS)}")
    attempt, said = parts.load(PARTS[part])
    if not quiet:
        print(said)
    return attempt


def hint(id: str) -> Hints | Result:
    """Open the next hint for an exercise, and show all that are open."""
    if not known(id, EXERCISES):
        return unknown_exercise(id)
    return to_be_seen(Hints(EXERCISES[id], kept.open_hint(id, len(EXERCISES[id].hints))))


def quiz(chapter: str):
    """Ask a chapter's questions, as in quiz("06"): radio buttons, and an explanation for every option."""
    if not known(chapter, CHAPTERS):
        return _unknown(chapter, "quiz", f'the chapters are {", ".join(CHAPTERS)}, as in quiz("00")')
    return to_be_seen(quizzes.quiz_widget(chapter, quizzes.questions(STEMS[int(chapter)])))


def bet(id: str):
    """Ask for a bet before a cell answers it, as in bet("6a"); it is kept beside your progress and sent nowhere."""
    bets = {one.id: one for stem in STEMS for one in quizzes.bets_of(stem)}
    if not known(id, bets):
        return _unknown(id, "bet", 'a number is a chapter\'s, as in bet("6a")')
    placed = kept.load().bets.get(id)
    return to_be_seen(
        quizzes.bet_widget(bets[id], placed, lambda answer: kept.remember(kept.State(bets={id: answer})))
    )


def bets(chapter: str = "") -> Result | None:
    """Print how your bets have done, in a chapter or, without one, in all."""
    if chapter and not known(chapter, CHAPTERS):
        return _unknown(chapter, "chapter", f'the chapters are {", ".join(CHAPTERS)}, as in bets("00")')
    asked = [
        one for i, stem in enumerate(STEMS) if chapter in ("", f"{i:02}") for one in quizzes.bets_of(stem)
    ]
    print(quizzes.tally(asked, kept.load().bets))
    return None


def progress(code: bool = False) -> Overview | str:
    """Show how far each chapter is, which parts of your own Linformer you have, what is next, and minutes.

    Args: code: give one line instead, for a teacher to compare with what you hand in; completion.py says what it is.
    """
    if code:
        return to_be_seen(code_of(kept.load().passed, EXERCISES))
    chapters = {f"{number}_{STEMS[int(number)]}": exercises for number, exercises in CHAPTERS.items()}
    return to_be_seen(Overview(chapters, kept.load(), parts.kept()))


def reset(id: str) -> Result:
    """Let an exercise be open again, its hints closed; what is in my_linformer.py stays there."""
    if not known(id, EXERCISES):
        return unknown_exercise(id)
    message = f"{id} is open again" if kept.forget(id) else f"{id} was open already"
    part = EXERCISES[id].part
    stays = f"; {part} stays in {parts.NAME}, and runs, until another passes" if part in parts.kept() else ""
    return to_be_seen(Result(id, "open", message + stays))


def _is_ours(attempt: object) -> bool:
    """Does an attempt come from the package, and not from the learner?"""
    return str(getattr(attempt, "__module__", "")).split(".")[0] == PACKAGE.name


def known(key: object, keys: dict) -> bool:
    """Is it one of the keys? Anything else may be asked for, too."""
    return isinstance(key, str) and key in keys


def unknown_exercise(key: object) -> Result:
    """What is said to whoever asks for an exercise that there is not."""
    if not isinstance(key, str):
        return _unknown(key, "exercise", 'an id is text, as in "1.2"')
    chapter = [other for other in EXERCISES if other.split(".")[0] == key.split(".")[0]]
    near = ", ".join(chapter or get_close_matches(key, EXERCISES, cutoff=0))
    return _unknown(key, "exercise", f"{'this chapter has' if chapter else 'the closest are'} {near}")


def _unknown(key: object, what: str, choice: str) -> Result:
    name = key if isinstance(key, str) else described(key)
    return to_be_seen(Result(name, "failed", f"There is no such {what}: {choice}."))
