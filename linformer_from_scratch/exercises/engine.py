"""What an exercise is, and how an attempt at it is judged.

The attempt, the reference and the bank of mistakes are run on the same draws and *observed*: what they return,
the gradients that flow through it, whether they changed their inputs, what they raised. An attempt that looks
like a known mistake on every draw gets that mistake's sentence.
"""

import contextlib
import html
import random
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

SEEDS = (0, 1, 2, 3)  # one trial each
RELATIVE, ABSOLUTE = (
    1e-4,
    1e-5,
)  # tolerances of values and gradients, float32 rounding in another order included
COLOURS = {"passed": "#2E8B57", "failed": "#C8641B", "open": "#8A8A8A", "hint": "#2F6DB5"}
SIGNS = {"passed": "✓", "failed": "✗", "open": "·", "hint": "?"}


@dataclass(frozen=True)
class Exercise:
    """One exercise, all in one place.

    Args:
        id: chapter and number, such as "6.2".
        question: one line.
        difficulty: 1 to 3.
        minutes: what it takes.
        trains: what it is good for.
        reference: the right answer, a function.
        draw: seed -> the arguments of one trial.
        mistakes: plausible wrong answers; the docstring of each is the sentence its author needs to hear.
        hints: three steps: a nudge, the shapes, some of the code.
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


@dataclass(frozen=True)
class Result:
    """What a check found; it shows itself in a notebook.

    status is "passed", "failed" or "open"; message is one sentence.
    """

    id: str
    status: str
    message: str

    def __repr__(self) -> str:
        return f"{SIGNS[self.status]} {self.message}"

    def _repr_html_(self) -> str:
        style = f"border-left: 5px solid {COLOURS[self.status]}; padding: 0.3em 0.8em"
        return f'<div style="{style}">{html.escape(repr(self))}</div>'


@dataclass
class Observation:
    """What happened in one trial: what was returned, or what was raised."""

    value: Any = None
    gradients: list = field(default_factory=list)  # None where nothing flows
    changed: list = field(default_factory=list)  # positions of arguments changed in place
    error: BaseException | None = None


def judge(exercise: Exercise, attempt: Any) -> Result:
    """Judge an attempt; whatever it is or does, the answer is a Result."""
    try:
        status, message = _judge(exercise, attempt)
    except Exception as error:  # a result so odd that even looking at it raises
        status, message = (
            "failed",
            f"your result cannot be compared: looking at it raises {type(error).__name__}",
        )
    return Result(exercise.id, status, f"{exercise.id} {message}" if status != "failed" else message)


def _judge(exercise: Exercise, attempt: Any) -> tuple[str, str]:
    if not callable(attempt):
        given = f'check("{exercise.id}", your_function), without calling it'
        return "failed", f"expected the function itself, got {_type_name(attempt)}: {given}"
    fault, seen = None, []
    for seed in SEEDS:
        seen.append(observe(attempt, exercise.draw(seed)))
        if _is_stub(seen[-1].error):
            return "open", "not yet attempted"
        fault = fault or difference(
            observe(exercise.reference, exercise.draw(seed)), seen[-1], exercise.draw(seed), attempt
        )
        if isinstance(seen[-1].error, KeyboardInterrupt):
            return "failed", fault
    return ("failed", known_mistake(exercise, seen) or fault) if fault else ("passed", "passed")


def observe(function: Callable, arguments: tuple) -> Observation:
    """Call a function on copies of the arguments and keep what can be seen from outside."""
    leaves = [_leaf(argument) for argument in arguments]
    with _fences():
        # copies of the leaves: they may be changed in place, and gradients still arrive at the leaves
        given = [leaf.clone() if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        try:
            value = function(*given)
        except BaseException as error:
            return Observation(error=error)
        changed = [
            i for i, (a, b) in enumerate(zip(arguments, given, strict=True)) if not _same_argument(a, b)
        ]
        return Observation(value, _gradients(value, leaves), changed)


def difference(expected: Observation, got: Observation, arguments: tuple, attempt: Callable) -> str | None:
    """One sentence on the first thing that differs; None if nothing does."""
    if got.error is not None:
        return _tell_error(got.error, attempt)
    if got.value is None:
        return "it returns None: is the return line missing?"
    right, given = expected.value, got.value
    if isinstance(right, Tensor) != issubclass(type(given), Tensor) or not issubclass(
        type(given), Tensor | int | float
    ):
        return f"it returns {_type_name(given)}, expected {_type_name(right)}"
    if not isinstance(right, Tensor):
        sentence = f"it returns {given}, expected {right}, for the arguments {arguments}"
        return None if type(given) is not bool and abs(given - right) <= ABSOLUTE else sentence
    return _tensor_difference(right, given) or _side_difference(expected, got)


def known_mistake(exercise: Exercise, seen: list[Observation]) -> str | None:
    """The sentence of the mistake that looks like the attempt on every draw."""
    for mistake in exercise.mistakes:
        pairs = zip(SEEDS, seen, strict=False)
        if all(_look_alike(observe(mistake, exercise.draw(seed)), observed) for seed, observed in pairs):
            return " ".join(mistake.__doc__.split())
    return None


def _tensor_difference(right: Tensor, given: Tensor) -> str | None:
    if given.shape != right.shape:
        return f"it returns shape {tuple(given.shape)}, expected {tuple(right.shape)}"
    if given.dtype != right.dtype:
        return f"it returns dtype {given.dtype}, expected {right.dtype}"
    if given.isnan().any() and not right.isnan().any():
        return f"it returns NaN at index {tuple(given.isnan().nonzero()[0].tolist())}, expected numbers"
    if _close(right, given):
        return None
    gap = (given.detach() - right.detach()).abs()
    at = np.unravel_index(int(gap.nan_to_num(posinf=torch.inf).argmax()), gap.shape)
    where = f"at index {tuple(map(int, at))} of shape {tuple(right.shape)}"
    return f"it returns {given[at].item():.4g} {where}, expected {right[at].item():.4g}"


def _side_difference(expected: Observation, got: Observation) -> str | None:
    if got.changed:
        return f"the values are right, but it changes argument {got.changed[0] + 1} in place: work on a copy"
    for i, (right, given) in enumerate(zip(expected.gradients, got.gradients, strict=True)):
        if right is not None and (given is None or not _close(right, given)):
            problem = "does not reach" if given is None else "is wrong at"
            return f"the values are right, but the gradient {problem} argument {i + 1}"
    return None


def _look_alike(a: Observation, b: Observation) -> bool:
    if a.error is not None or b.error is not None:
        return type(a.error) is type(b.error) and str(a.error) == str(b.error)
    if a.changed != b.changed:
        return False
    if not (isinstance(a.value, Tensor) and issubclass(type(b.value), Tensor)):
        return type(a.value) is type(b.value) and a.value == b.value
    pairs = [(a.value, b.value), *zip(a.gradients, b.gradients, strict=True)]
    return all(
        (x is None and y is None) or (x is not None and y is not None and _close(x, y)) for x, y in pairs
    )


def _close(right: Tensor, given: Tensor) -> bool:
    same_kind = given.shape == right.shape and given.dtype == right.dtype
    return same_kind and torch.allclose(given, right, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)


def _gradients(value: Any, leaves: list) -> list:
    """Gradients at the leaves for an upstream gradient that is neither constant nor symmetric."""
    if not (issubclass(type(value), Tensor) and value.requires_grad and value.is_floating_point()):
        return [None] * len(leaves)
    upstream = torch.linspace(-1, 2, value.numel(), dtype=value.dtype).sin().view(value.shape)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.requires_grad]
    found = torch.autograd.grad(value, [leaves[i] for i in places], upstream, allow_unused=True)
    gradients = dict(zip(places, found, strict=True))
    return [gradients.get(i) for i in range(len(leaves))]


def _leaf(argument: Any) -> Any:
    if not isinstance(argument, Tensor):
        return argument
    return argument.detach().clone().requires_grad_(argument.is_floating_point())


def _same_argument(before: Any, after: Any) -> bool:
    if not isinstance(before, Tensor):
        return True  # numbers cannot be changed in place
    return before.shape == after.shape and torch.equal(before, after.detach())


@contextlib.contextmanager
def _fences():
    """Whatever an attempt does to global state is undone: random numbers, gradients, the default dtype."""
    states, dtype = (random.getstate(), np.random.get_state()), torch.get_default_dtype()
    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad(), warnings.catch_warnings(action="ignore"):
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_default_dtype(dtype)


def _is_stub(error: BaseException | None) -> bool:
    """`raise NotImplementedError` as the chapter wrote it; PyTorch's own ones carry a message."""
    return isinstance(error, NotImplementedError) and not error.args


def _tell_error(error: BaseException, attempt: Callable) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "it was stopped before it returned"
    code = getattr(attempt, "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    words = str(error).strip().splitlines()
    what = f"it raises {type(error).__name__}" + (f": {words[0]}" if words else "")
    return f"{what}, at line {own[-1].lineno} of your cell: {own[-1].line}" if own and own[-1].line else what


def _type_name(value: Any) -> str:
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"
