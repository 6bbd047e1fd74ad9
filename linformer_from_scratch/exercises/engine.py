"""Run an attempt, look at all that it does, and say in one sentence what is wrong with it.

An attempt is compared with the reference on several draws: what it returns, what it does to its inputs, what
gradients flow through it. The same look at every known mistake finds the sentence that this learner needs.
"""

import copy
import html
import inspect
import linecache
import math
import os
import random
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy
import torch
from torch import Tensor, nn

SEEDS = range(4)  # the draws an attempt must survive; authors make one of them odd (n = 1)
RTOL, ATOL = 1e-4, 1e-5  # another order of summation in float32 stays below, every mistake far above
LONG = 300  # characters of an error's message that are shown

SIGNS = {"passed": "✓", "failed": "✗", "open": "○"}
COLOURS = {"passed": "#2E8B57", "failed": "#D1495B", "open": "#808890"}  # legible on white and on black
STOPPED = "Stopped before it returned."


@dataclass(frozen=True)
class Exercise:
    """One exercise as data.

    Args:
        id: chapter and number, as in "6.2".
        question: what to write, in one line.
        difficulty: 1 to 3.
        minutes: how long it takes.
        trains: what it is good for, in a few words.
        reference: the right function.
        draw: seed -> the arguments of one trial: tensors, numbers, None, lists or tuples of those.
        mistakes: plausible wrong functions; the docstring is the sentence that whoever wrote it needs to hear.
        hints: three steps: a nudge, the shapes, partial code.
    """

    id: str
    question: str
    difficulty: int
    minutes: int
    trains: str
    reference: Callable
    draw: Callable[[int], tuple]
    mistakes: tuple[Callable, ...]
    hints: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Result:
    """What a check found: status is "passed", "failed" or "open", message is one sentence."""

    id: str
    status: str
    message: str

    @property
    def line(self) -> str:
        """The message with its id in front, where it does not begin with it anyway."""
        return f"{self.id} · {self.message}" if self.status == "failed" else self.message

    def __repr__(self) -> str:
        return f"{SIGNS[self.status]} {self.line}"

    def _repr_html_(self) -> str:
        return boxed(COLOURS[self.status], f"<b>{SIGNS[self.status]}</b> {html.escape(self.line)}")


@dataclass(frozen=True, repr=False)
class Hints:
    """The hints of one exercise that have been opened, the newest last."""

    exercise: Exercise
    opened: int

    def lines(self) -> list[str]:
        """One line for each opened step, and one that says what is left."""
        steps = self.exercise.hints
        shown = [f"{i}. {step}" for i, step in enumerate(steps[: self.opened], start=1)]
        left = len(steps) - self.opened
        return [*shown, f"{left} more: run it again." if left else "That was the last one; solutions/ has the answer."]

    def __repr__(self) -> str:
        return f"Hints for {self.exercise.id}\n" + "\n".join(self.lines())

    def _repr_html_(self) -> str:
        rows = "<br>".join(map(html.escape, self.lines()))
        return boxed(COLOURS["open"], f"<b>Hints for {self.exercise.id}</b><br>{rows}")


def boxed(colour: str, content: str) -> str:
    """HTML with a coloured bar at its left; text and background stay the page's own, light or dark."""
    return f'<div style="border-left: 4px solid {colour}; padding: 0.2em 0.8em">{content}</div>'


def judge(exercise: Exercise, attempt: object) -> Result:
    """Compare an attempt with the reference on every draw; whatever it does, the answer is one sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what an attempt warns of is not what its author needs to hear
        try:
            return _judge(exercise, attempt)
        except KeyboardInterrupt:
            return Result(exercise.id, "failed", STOPPED)
        except Exception as error:  # an object made to resist inspection, such as one whose metaclass raises
            return Result(exercise.id, "failed", f"What it returns cannot be examined ({type(error).__name__}).")


def _judge(exercise: Exercise, attempt: object) -> Result:
    if not callable(attempt):
        message = f"check needs the function itself, got {described(attempt)}: name it without calling it."
        return Result(exercise.id, "failed", message)
    names = list(inspect.signature(exercise.reference).parameters)
    candidates, complaint = exercise.mistakes, None
    for seed in SEEDS:
        with isolated():
            draw = dict(zip(names, exercise.draw(seed), strict=False))
        right = Observation.of(exercise.reference, draw)
        needs_grad = any(tensor.requires_grad for tensor in tensors(right.value))
        seen = Observation.of(attempt, draw, needs_grad)
        if seen.error is KeyboardInterrupt:
            return Result(exercise.id, "failed", STOPPED)
        if seen.unattempted and seed == SEEDS[0]:
            return Result(exercise.id, "open", f"{exercise.id} not yet attempted")
        wrong_value = seen.complaint_about_value(right)
        wrong = wrong_value or seen.complaint_about_inputs() or seen.complaint_about_gradients(right)
        if wrong and complaint is None:
            complaint = f"{wrong}, on inputs {', '.join(map(told, draw, draw.values()))}."
        candidates = [
            mistake
            for mistake in candidates
            if seen.equals(Observation.of(mistake, draw, needs_grad), with_gradients=not wrong_value)
        ]
    if complaint is None:
        return Result(exercise.id, "passed", f"{exercise.id} passed")
    return Result(exercise.id, "failed", inspect.getdoc(candidates[0]) if candidates else complaint)


@dataclass
class Observation:
    """All that one call of a function did."""

    value: object = None
    error: str = ""
    place: str = ""
    unattempted: bool = False
    changed: list[str] = field(default_factory=list)
    leaves: dict[str, Tensor] = field(default_factory=dict)


