"""Quizzes: questions whose wrong options are real misconceptions, with an explanation for every option."""

import html
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING

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


@cache
def questions(stem: str) -> tuple[Question, ...]:
    """Those of a chapter, from the YAML file beside its exercises: the right option first, then the wrong ones."""
    path = Path(__file__).parents[1] / f"{stem}.yml"
    return tuple(
        Question(
            entry["question"],
            (
                *(Option(text, why, True) for text, why in entry["right"].items()),
                *starmap(Option, entry["wrong"].items()),
            ),
        )
        for entry in read_yaml(path)
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
    from ipywidgets import HTML, Layout, RadioButtons, VBox

    class Quiz(VBox):
        """Carries the quiz as text and as HTML, for places without a kernel."""

        def _repr_mimebundle_(self, **kwargs):
            note_shown(self)
            bundle = super()._repr_mimebundle_(**kwargs)
            return {**bundle, "text/plain": as_text(chapter, questions), "text/html": as_html(questions)}

    def asked(i: int, question: Question) -> VBox:
        options = question.shuffled()
        title = HTML(f"<b>{i}. {html.escape(question.text)}</b>")
        choices = RadioButtons(
            options=[(option.text, option) for option in options],
            value=None,
            layout=Layout(width="auto"),
            tooltip=question.text,
        )
        answer = HTML()
        choices.observe(lambda change: setattr(answer, "value", explained(change.new)), names="value")
        return VBox([title, choices, answer], layout=Layout(margin="0 0 1em 0"))

    return Quiz([asked(i, question) for i, question in enumerate(questions, start=1)])
