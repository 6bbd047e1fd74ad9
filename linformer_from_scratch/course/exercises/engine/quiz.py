"""Quizzes and bets: questions with options to choose from.

A quiz's wrong options are real misconceptions, and every option has its explanation. A bet is placed before an
experiment runs; the experiment answers it.
"""

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linformer_from_scratch.course.content import read_yaml
from linformer_from_scratch.course.exercises.engine.answers import Answer, note_shown

if TYPE_CHECKING:  # loaded only where a quiz is shown
    from ipywidgets import VBox

LETTERS = "abcdefgh"


@dataclass(frozen=True)
class Option:
    """One answer to choose, and an explanation for those who choose it."""

    text: str
    explanation: str
    right: bool = False


@dataclass(frozen=True)
class Question:
    """A question and its options, exactly one of them right.

    Raises: ValueError if not exactly one option is right, or one of them is no text, as 128 in YAML is none.
    """

    text: str
    options: tuple[Option, ...]

    def __post_init__(self):
        right = sum(option.right for option in self.options)
        if right != 1:
            raise ValueError(f"{right} options are right, expected 1: {self.text}")
        for text in (
            self.text,
            *(part for option in self.options for part in (option.text, option.explanation)),
        ):
            if not isinstance(text, str):
                raise ValueError(f"got {text!r}, expected a text: put it in quotes")

    def shuffled(self) -> list[Option]:
        """The options in an order that depends on their words only, so that authors may write the right one first."""
        return sorted(self.options, key=lambda option: sha256((self.text + option.text).encode()).digest())


@dataclass(frozen=True)
class Bet:
    """Answers to choose from before a cell runs.

    options: in the order shown; right: what the cell says.
    paper, ours: what the paper claims, and what we had written down before the run, where that is on record.

    Raises: ValueError if an answer is not among the options.
    """

    id: str
    options: tuple[str, ...]
    right: str
    paper: str | None = None
    ours: str | None = None

    def __post_init__(self):
        for answer in (self.right, self.paper, self.ours):
            if answer is not None and answer not in self.options:
                raise ValueError(
                    f"got the answer {answer!r} for bet {self.id}, expected one of {self.options}"
                )

    def __str__(self) -> str:
        return "Your bet: " + " · ".join(self.options)

    def as_html(self) -> str:
        """The bet for pages, where bets.js keeps it."""
        options = "".join(f"<li>{html.escape(option)}</li>" for option in self.options)
        at = {
            name: self.options.index(one)
            for name in ("right", "paper", "ours")
            if (one := getattr(self, name))
        }
        return f"<ol class='bet' data-bet='{json.dumps({'id': self.id} | at)}'>{options}</ol>"


def bets_of(stem: str) -> tuple[Bet, ...]:
    """Those of a chapter, from the same file as its quiz."""
    entries = [entry for entry in _entries(stem) if "bet" in entry]
    return tuple(
        Bet(one["bet"], tuple(one["options"]), one["right"], one.get("paper"), one.get("ours"))
        for one in entries
    )


class BetsLine(Answer):
    """How a reader's bets have done, in a sentence; bets.js says it on pages."""

    def __init__(self, bets: Sequence[Bet], placed: dict[str, str]):
        self.said = tally(bets, placed)

    def as_text(self) -> str:
        return self.said

    def as_html(self) -> str:
        return f"<p class='bets' role='status'>{html.escape(self.said)}</p>"


def tally(bets: Sequence[Bet], placed: dict[str, str]) -> str:
    """How a reader has done: against a coin, the paper's claims, and what we had written down."""
    open_bets = len(bets)
    bets = [bet for bet in bets if placed.get(bet.id) in bet.options]
    if not bets:
        return f"No bet placed yet, of {open_bets}."
    mine = [placed[bet.id] == bet.right for bet in bets]
    coin = sum(1 / len(bet.options) for bet in bets)
    said = f"You placed {len(bets)} of {open_bets} bets and won {sum(mine)}; a coin wins {coin:.1f}"
    for name, who in (("paper", "the paper's claim"), ("ours", "what we wrote down before the run")):
        theirs = [
            (won, getattr(bet, name) == bet.right)
            for won, bet in zip(mine, bets, strict=True)
            if getattr(bet, name)
        ]
        if theirs:
            you, they = map(sum, zip(*theirs, strict=True))
            said += f"; {who} wins {they} of {len(theirs)}, you {you} of these"
    return said + "."


@cache
def _entries(stem: str) -> list[dict]:
    return read_yaml(Path(__file__).parents[1] / f"{stem}.yml")


@cache
def questions(stem: str) -> tuple[Question, ...]:
    """Those of a chapter, from the YAML file beside its exercises: the right option first, then the wrong ones."""
    return tuple(
        Question(
            entry["question"],
            (
                *(Option(text, why, True) for text, why in entry["right"].items()),
                *starmap(Option, entry["wrong"].items()),
            ),
        )
        for entry in _entries(stem)
        if "question" in entry
    )


def as_text(chapter: str, questions: tuple[Question, ...]) -> str:
    """The quiz on paper: questions, options, and the answers at the end."""
    lines, answers = [f"Quiz {chapter}"], ["", "Answers"]
    for i, question in enumerate(questions, start=1):
        lines += ["", f"{i}. {question.text}"]
        for letter, option in zip(LETTERS, question.shuffled(), strict=False):
            lines.append(f"   {letter}) {option.text}")
            if option.right:
                answers.append(f"{i} {letter}. {option.explanation}")
    return "\n".join(lines + answers)


def as_html(questions: tuple[Question, ...]) -> str:
    """The quiz for places without a kernel: questions that open, one at a time, and answers that open in turn."""
    return '<div class="quiz">' + "".join(map(_question_html, questions)) + "</div>"


def _question_html(question: Question) -> str:
    options = question.shuffled()
    texts = "".join(f"<li>{html.escape(option.text)}</li>" for option in options)
    explanations = "".join(f"<li>{explained(option)}</li>" for option in options)
    return (
        f'<details name="quiz"><summary>{html.escape(question.text)}</summary><ol type="a">{texts}</ol>'
        f'<details><summary>Answer</summary><ol type="a">{explanations}</ol></details></details>'
    )


def explained(option: Option) -> str:
    """An option's explanation in HTML, with a sign that says whether it is right."""
    sign = "<b>✓</b>" if option.right else "✗"
    return f"{sign} {html.escape(option.explanation)}"


def quiz_widget(chapter: str, questions: tuple[Question, ...]) -> "VBox":
    """Radio buttons for every question; choosing an option shows its explanation."""
    asked = [
        _asked(
            f"{i}. {question.text}", {option.text: option for option in question.shuffled()}, None, explained
        )
        for i, question in enumerate(questions, start=1)
    ]
    return _carrier(asked, as_text(chapter, questions), as_html(questions))


def bet_widget(bet: Bet, placed: str | None, place: Callable[[str], None]) -> "VBox":
    """Radio buttons for a bet; choosing an answer places it."""

    def placing(option: str) -> str:
        place(option)
        return f"Placed: {html.escape(option)}. The next cell answers."

    asked = _asked("Your bet", {one: one for one in bet.options}, placed, placing)
    return _carrier([asked], str(bet), bet.as_html())


def _asked(title: str, options: dict[str, Any], chosen: Any, says: Callable[[Any], str]) -> "VBox":
    """A title, radio buttons, and what is said to the one that is chosen."""
    from ipywidgets import HTML, Layout, RadioButtons, VBox

    choices = RadioButtons(
        options=options.items(), value=chosen, layout=Layout(width="auto"), tooltip=title.split(". ", 1)[-1]
    )
    answer = HTML()
    choices.observe(lambda change: setattr(answer, "value", says(change.new)), names="value")
    return VBox([HTML(f"<b>{html.escape(title)}</b>"), choices, answer], layout=Layout(margin="0 0 1em 0"))


def _carrier(asked: list["VBox"], text: str, page: str) -> "VBox":
    """Questions that carry themselves as text and as HTML, for places without a kernel."""
    from ipywidgets import VBox

    class Asked(VBox):
        def _repr_mimebundle_(self, **kwargs):
            note_shown(self)
            return {**super()._repr_mimebundle_(**kwargs), "text/plain": text, "text/html": page}

    return Asked(asked)
