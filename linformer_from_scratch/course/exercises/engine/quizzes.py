"""Quizzes and bets: questions with options to choose from.

A quiz's wrong options are real misconceptions, and every option has its explanation. A bet is placed before an
experiment runs; the experiment answers it.
"""

import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from linformer_from_scratch.course.content import read_yaml
from linformer_from_scratch.course.exercises.engine.answers import note_shown

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


class Bet(NamedTuple):
    """Answers to choose from before a cell runs, in the order shown, and the one that the cell gives.

    paper, ours: what the paper claims, and what we had written down before the run, where that is on record.
    """

    id: str
    options: tuple[str, ...]
    right: str
    paper: str | None = None
    ours: str | None = None

    def as_html(self) -> str:
        """The bet for pages, where bets.js keeps it."""
        places = {
            name: self.options.index(answer)
            for name, answer in self._asdict().items()
            if answer in self.options
        }
        facts = html.escape(json.dumps({"id": self.id} | places))
        return f'<ol class="bet" data-bet="{facts}">{"".join(f"<li>{html.escape(one)}</li>" for one in self.options)}</ol>'


@cache
def bets_of(stem: str) -> tuple[Bet, ...]:
    """Those of a chapter, from the same file as its quiz."""
    return tuple(Bet(one.pop("bet"), **one) for one in read_yaml(_path(stem)) if "bet" in one)


def tally(bets: Sequence[Bet], placed: Mapping[str, str]) -> str:
    """How a reader has done: against a coin, the paper's claims, and what we had written down."""
    known = [bet for bet in bets if placed.get(bet.id) in bet.options]
    if not known:
        return f"No bet placed yet, of {len(bets)}."
    won = [bet for bet in known if placed[bet.id] == bet.right]
    said = f"You placed {len(known)} of {len(bets)} bets and won {len(won)}"
    said += f"; a coin wins {sum(1 / len(bet.options) for bet in known):.1f}"
    for name, who in (("paper", "the paper's claim"), ("ours", "what we wrote down before the run")):
        if on := [bet for bet in known if getattr(bet, name)]:
            theirs = sum(getattr(bet, name) == bet.right for bet in on)
            said += f"; {who} wins {theirs} of {len(on)}, you {sum(bet in won for bet in on)} of these"
    return f"{said}."


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
        for entry in read_yaml(_path(stem))
        if "question" in entry
    )


def _path(stem: str) -> Path:
    return Path(__file__).parents[1] / f"{stem}.yml"


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
        _asked(f"{i}. {question.text}", [(option.text, option) for option in question.shuffled()], explained)
        for i, question in enumerate(questions, start=1)
    ]
    return _carrier(asked, as_text(chapter, questions), as_html(questions))


def bet_widget(bet: Bet, placed: str | None, place: Callable[[str], None]) -> "VBox":
    """Radio buttons for a bet; choosing an answer places it."""

    def placing(option: str) -> str:
        place(option)
        return f"Placed: {html.escape(option)}. The next cell answers."

    asked = _asked("Your bet", bet.options, placing, placed if placed in bet.options else None)
    return _carrier([asked], f"Your bet: {' · '.join(bet.options)}", bet.as_html())


def _asked(title: str, options: Sequence[Any], says: Callable[[Any], str], chosen: Any = None) -> "VBox":
    """A title, radio buttons, and what is said to the one that is chosen."""
    from ipywidgets import HTML, Layout, RadioButtons, VBox

    tip, layout = title.split(". ", 1)[-1], Layout(width="auto")
    choices = RadioButtons(options=options, value=chosen, tooltip=tip, layout=layout)
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
