"""Quiz questions: on paper, as HTML that folds, and as radio buttons that explain every choice."""

import html
import random
from dataclasses import dataclass

RIGHT, WRONG = "Right.", "No."


@dataclass(frozen=True)
class Option:
    """One answer, and the explanation that choosing it opens."""

    text: str
    explanation: str
    right: bool = False

    def verdict(self) -> str:
        """The explanation, after "Right." or "No."."""
        return f"{RIGHT if self.right else WRONG} {self.explanation}"


@dataclass(frozen=True)
class Question:
    """One question; exactly one option is right."""

    text: str
    options: tuple[Option, ...]

    def shuffled(self) -> list[Option]:
        """The options in an order that is the same every time and gives nothing away."""
        return random.Random(self.text).sample(self.options, len(self.options))


def on_paper(questions: tuple[Question, ...]) -> str:
    """Questions and lettered options, and the right letters at the end."""
    lines, answers = [], []
    for number, question in enumerate(questions, 1):
        lines.append(f"{number}. {question.text}")
        for letter, option in zip("abcdef", question.shuffled(), strict=False):
            lines.append(f"   {letter}) {option.text}")
            answers += [f"{number}{letter}"] if option.right else []
    return "\n".join([*lines, f"Answers: {', '.join(answers)}"])


def as_html(questions: tuple[Question, ...]) -> str:
    """Questions that open, one at a time, to their options, and once more to the explanations."""
    return '<div class="quiz">' + "".join(map(_question_html, questions)) + "</div>"


def _question_html(question: Question) -> str:
    options = "".join(f"<li>{html.escape(option.text)}</li>" for option in question.shuffled())
    verdicts = "".join(f"<li>{html.escape(option.verdict())}</li>" for option in question.shuffled())
    return (
        f'<details name="quiz"><summary>{html.escape(question.text)}</summary><ol type="a">{options}</ol>'
        f'<details><summary>Answer</summary><ol type="a">{verdicts}</ol></details></details>'
    )
