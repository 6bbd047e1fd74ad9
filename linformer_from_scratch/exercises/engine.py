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
import traceback
import types
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from linformer_from_scratch.exercises.answers import Answer
from linformer_from_scratch.exercises.isolation import Afresh, isolated

SEEDS = range(4)  # the draws an attempt must survive; authors make one of them odd (n = 1)
RTOL, ATOL = 1e-4, 1e-5  # another order of summation in float32 stays below, every mistake far above
LONG = 300  # characters of an error's message that are shown

SIGNS = {"passed": "✓", "failed": "✗", "open": "○"}
COLOURS = {"passed": "#2E8B57", "failed": "#D1495B", "open": "#808890"}  # legible on white and on black
STOPPED = "Stopped before it returned."
RAISED = (Exception, SystemExit, GeneratorExit)  # all but an interrupt, which is the learner's own


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
class Result(Answer):
    """What a check found: status is "passed", "failed" or "open", message is one sentence."""

    id: str
    status: str
    message: str

    @property
    def line(self) -> str:
        """The message with its id in front, where it does not begin with it anyway."""
        return f"{self.id} · {self.message}" if self.status == "failed" else self.message

    def as_text(self) -> str:
        """The sign and the line."""
        return f"{SIGNS[self.status]} {self.line}"

    def as_html(self) -> str:
        """The same beside a bar in the colour of the status."""
        return boxed(COLOURS[self.status], f"<b>{SIGNS[self.status]}</b> {html.escape(self.line)}")


@dataclass(frozen=True, repr=False)
class Hints(Answer):
    """The hints of one exercise that have been opened, the newest last."""

    exercise: Exercise
    opened: int

    def lines(self) -> list[str]:
        """One line for each opened step, and one that says what is left."""
        steps = self.exercise.hints
        shown = [f"{i}. {step}" for i, step in enumerate(steps[: self.opened], start=1)]
        left = len(steps) - self.opened
        return [
            *shown,
            f"{left} more: run it again." if left else "That was the last one; solutions/ has the answer.",
        ]

    def as_text(self) -> str:
        """A heading and the lines."""
        return f"Hints for {self.exercise.id}\n" + "\n".join(self.lines())

    def as_html(self) -> str:
        """The same beside a bar."""
        rows = "<br>".join(map(html.escape, self.lines()))
        return boxed(COLOURS["open"], f"<b>Hints for {self.exercise.id}</b><br>{rows}")


def boxed(colour: str, content: str) -> str:
    """HTML with a coloured bar at its left; text and background stay the page's own, light or dark."""
    return f'<div style="border-left: 4px solid {colour}; padding: 0.2em 0.8em">{content}</div>'


def judge(exercise: Exercise, attempt: object) -> Result:
    """Compare an attempt with the reference on every draw; whatever it does, the answer is one sentence."""
    try:
        with isolated() as afresh:
            status, message = verdict(exercise, attempt, afresh)
    except KeyboardInterrupt:
        status, message = "failed", STOPPED
    except BaseException as error:  # an object made to resist inspection, whose very class raises
        status, message = "failed", f"This attempt cannot be examined ({name_of(type(error))})."
    return Result(exercise.id, status, message)


def verdict(exercise: Exercise, attempt: object, afresh: Afresh) -> tuple[str, str]:
    """Status and message of an attempt, each call of which is made in a context of its own."""
    if not callable(attempt):
        return (
            "failed",
            f"check needs the function itself, by its name without (…); got {described(attempt)}.",
        )
    names = list(inspect.signature(exercise.reference).parameters)
    candidates, complaint = list(exercise.mistakes), ""
    for seed in SEEDS:
        draw = dict(zip(names, exercise.draw(seed), strict=False))
        right = observe(exercise.reference, draw)
        needs_grad = any(tensor.requires_grad for tensor in tensors(right.value))
        with afresh:
            seen = observe(attempt, draw, needs_grad)
        if seen.error is KeyboardInterrupt:
            return "failed", STOPPED
        if seen.unattempted and seed == SEEDS[0]:
            return "open", f"{exercise.id} not yet attempted"
        wrong_value = complaint_about_value(seen, right)
        if not wrong_value:
            with afresh, suppress(*RAISED):  # it will be raised again where it is told
                gradients(seen)
        wrong = wrong_value or complaint_about_inputs(seen) or complaint_about_gradients(seen, right)
        if wrong and not complaint:
            complaint = f"{wrong}; inputs: {', '.join(map(told, draw, draw.values()))}."
        # Gradients tell two functions apart only where their values agree with the reference.
        candidates = [
            mistake
            for mistake in candidates
            if alike(seen, observe(mistake, draw, needs_grad), gradients_too=not wrong_value)
        ]
    if not complaint:
        return "passed", f"{exercise.id} passed"
    sentence = inspect.getdoc(candidates[0]) if candidates else None
    return "failed", sentence or complaint


# What one call of a function did


@dataclass
class Observation:
    """What came back or was raised, which arguments were changed, and what gradients are taken of."""

    value: object = None
    error: type[BaseException] | None = None
    said: str = ""  # the error's message
    place: str = ""  # where in the attempt's own code it was raised
    unattempted: bool = False
    changed: list[str] = field(default_factory=list)
    leaves: dict[str, Tensor] = field(default_factory=dict)
    gradients: dict[str, Tensor] | None = None  # None before they are taken


def observe(function: Callable, draw: dict[str, object], needs_grad: bool = True) -> Observation:
    """Call a function on copies of the draw's arguments."""
    seen = Observation()
    arguments = {name: fresh(value, name, seen.leaves, needs_grad) for name, value in draw.items()}
    try:
        seen.value = function(*arguments.values())
        if type(seen.value) is types.CoroutineType:
            seen.value.close()  # nobody will await it: else Python says so later, in some other cell
    except BaseException as error:  # SystemExit too: an attempt may not end the notebook
        own = own_frames(function, error)
        seen.error, seen.said = type(error), first_line(error)
        seen.place = (
            quoted(own)
            or f" when called with {len(draw)} argument{'s' * (len(draw) != 1)} ({', '.join(draw)})"
        )
        seen.unattempted = type(error) is NotImplementedError and not error.args and raised_in(own, error)
    seen.changed = [name for name in draw if value_difference(arguments[name], draw[name], 0, 0)]
    return seen


def fresh(value: object, name: str, leaves: dict[str, Tensor], needs_grad: bool) -> object:
    """A copy; of a floating tensor one that knows its leaf, so that changing it in place is noticed, not refused."""
    if isinstance(value, list | tuple):
        items = (fresh(item, f"{name}[{i}]", leaves, needs_grad) for i, item in enumerate(value))
        return type(value)(items)
    if not isinstance(value, Tensor):
        return copy.deepcopy(value)
    if not (needs_grad and value.is_floating_point()):
        return value.clone()
    leaves[name] = value.clone().requires_grad_()
    return leaves[name].clone()


def tensors(value: object) -> list[Tensor]:
    """All tensors in a value, in order."""
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors(item)]
    return [value] if isinstance(value, Tensor) else []


def gradients(seen: Observation) -> dict[str, Tensor]:
    """Gradients of a fixed random weighting of the outputs; zeros for an input that none of them depends on."""
    if seen.gradients is not None:
        return seen.gradients
    weighted = []
    for seed, output in enumerate(tensors(seen.value)):
        if output.requires_grad:
            generator = torch.Generator().manual_seed(seed)
            weighted.append((output, torch.randn(output.shape, generator=generator, dtype=output.dtype)))
    found = torch.autograd.grad(
        [output for output, _ in weighted],
        list(seen.leaves.values()),
        [upstream for _, upstream in weighted],
        retain_graph=True,
        materialize_grads=True,
        allow_unused=True,
    )
    seen.gradients = dict(zip(seen.leaves, found, strict=True))
    return seen.gradients


# What is wrong, in words


def complaint_about_value(seen: Observation, right: Observation) -> str:
    """What is wrong with the error or the value; empty where nothing is."""
    if seen.error:
        return f"Raised {name_of(seen.error)}{': ' * bool(seen.said)}{seen.said}{seen.place}"
    return value_difference(seen.value, right.value)


def complaint_about_inputs(seen: Observation) -> str:
    """Which argument was changed; empty where none was."""
    return f"You changed argument {seen.changed[0]} in place, work on a copy" if seen.changed else ""


def complaint_about_gradients(seen: Observation, right: Observation) -> str:
    """Which gradients differ although the values are right; empty where none does, or where none are asked for."""
    if not seen.leaves:
        return ""
    try:
        found, expected = gradients(seen), gradients(right)
    except RAISED as error:
        said = first_line(error) or name_of(type(error))
        return f"The values are right, but the backward pass raised {said}"
    cut = [name for name in expected if expected[name].any() and not found[name].any()]
    if cut:
        reason = ".detach(), .data, .item(), torch.tensor() and no_grad cut it off"
        return f"The values are right, but no gradient flows to {' and '.join(cut)}: {reason}"
    for name in expected:
        if difference := value_difference(found[name], expected[name]):
            return f"The values are right, but the gradient of {name} is not: {difference}"
    return ""


def alike(seen: Observation, other: Observation, gradients_too: bool) -> bool:
    """Did both calls do the same?"""
    if seen.error or other.error:
        return (seen.error, seen.said) == (other.error, other.said)
    if value_difference(seen.value, other.value) or seen.changed != other.changed:
        return False
    return not (gradients_too and complaint_about_gradients(seen, other))


def value_difference(got: Any, expected: Any, rtol: float = RTOL, atol: float = ATOL) -> str:
    """Type, then shape, dtype, values: the first that differs, with both sides; empty where none does."""
    if type(got) is int and kind(expected) is float:
        got = float(got)
    if kind(got) is not kind(expected):
        question = " (is the return line missing?)" if got is None else ""
        return f"Returned {described(got)}{question}, expected {described(expected)}"
    if kind(expected) is Tensor:
        return tensor_difference(got.detach(), expected.detach(), rtol, atol)
    if kind(expected) in (tuple, list):
        return items_difference(got, expected, rtol, atol)
    close = kind(expected) is float and (
        math.isclose(got, expected, rel_tol=rtol, abs_tol=atol) or (math.isnan(got) and math.isnan(expected))
    )
    return "" if close or got == expected else f"Got {number(got)}, expected {number(expected)}"


def items_difference(got: tuple | list, expected: tuple | list, rtol: float, atol: float) -> str:
    """The first item that differs."""
    if len(got) != len(expected):
        return f"Returned {len(got)} values, expected {len(expected)}"
    for i, pair in enumerate(zip(got, expected, strict=True), start=1):
        if difference := value_difference(*pair, rtol, atol):
            return f"Value {i} of {len(got)}: {difference}"
    return ""


def tensor_difference(got: Tensor, expected: Tensor, rtol: float, atol: float) -> str:
    """Shape, then dtype, place and values."""
    for name, ours, theirs in (
        ("shape", tuple(got.shape), tuple(expected.shape)),
        ("dtype", got.dtype, expected.dtype),
        ("device", got.device, expected.device),
        ("layout", got.layout, expected.layout),
    ):
        if ours != theirs:
            return f"Got {name} {ours}, expected {theirs}"
    if not in_memory(got):
        return "Got a tensor whose storage was cut off"
    close = torch.isclose(got, expected, rtol=rtol, atol=atol, equal_nan=True)
    if close.all():
        return ""
    gap = (got.double() - expected.double()).abs().nan_to_num(math.inf, math.inf).masked_fill(close, -1)
    index = tuple(int(i) for i in torch.unravel_index(gap.argmax(), gap.shape))
    here = f" at index {index}" if index else ""
    found, wanted, distance = (number(tensor[index].item()) for tensor in (got, expected, gap))
    if got[index].isnan():
        return f"NaN{here}, expected {wanted}"
    return f"Largest difference {distance}{here}: got {found}, expected {wanted}"


def in_memory(tensor: Tensor) -> bool:
    """Does its storage hold every entry? To read one that is not there ends the kernel."""
    last = tensor.storage_offset() + sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return not tensor.numel() or (last + 1) * tensor.element_size() <= tensor.untyped_storage().nbytes()


def kind(value: object) -> type:
    """The type that counts: exact, since a subclass may lie about everything."""
    return Tensor if type(value) is nn.Parameter else type(value)


def described(value: Any) -> str:
    """A value in a few words, whatever it is."""
    if value is None:
        return "None"
    if kind(value) is Tensor:
        return f"a tensor of shape {tuple(value.shape)}"
    if kind(value) in (tuple, list):
        return f"a {kind(value).__name__} of length {len(value)}"
    if kind(value) in (bool, int, float):
        return f"{number(value)} ({kind(value).__name__})"
    return f"an object of type {name_of(type(value))}"


def name_of(kind: type) -> str:
    """A type's name, in one line whatever it is."""
    return " ".join(kind.__name__.split())[:LONG]


def number(value: float) -> str:
    """A number that stays short."""
    if type(value) is int:
        return str(value) if value.bit_length() < 200 else f"a number of {value.bit_length()} bits"
    return f"{value:.4g}" if type(value) is float else str(value)


def told(name: str, value: object) -> str:
    """An argument in a few words: a tensor's shape, a number's value."""
    if isinstance(value, Tensor):
        return f"{name} {tuple(value.shape)}"
    return f"{name} of length {len(value)}" if isinstance(value, list | tuple) else f"{name}={value}"


def first_line(error: BaseException) -> str:
    """The first line of an error's message, of signs that can be shown; empty where even that raises."""
    try:
        line = str(error).strip().split("\n")[0][:LONG].expandtabs(1)
        return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in line)
    except BaseException:
        return ""


def own_frames(function: Callable, error: BaseException) -> list[tuple[types.FrameType, int]]:
    """Frames and lines of the traceback that lie in the notebook, or in the module that defines the function."""
    home = ("__main__", getattr(function, "__module__", "__main__"))
    frames = traceback.walk_tb(error.__traceback__)
    return [(frame, line) for frame, line in frames if frame.f_globals.get("__name__") in home]


def quoted(own: list[tuple[types.FrameType, int]]) -> str:
    """The deepest of these lines; empty where there is none, because the call itself failed."""
    if not own:
        return ""
    frame, line = own[-1]
    path = frame.f_code.co_filename
    where = "your cell" if frame.f_globals.get("__name__") == "__main__" else os.path.basename(path)
    source = linecache.getline(path, line).strip()
    return f" at line {line} of {where}{f': `{source}`' * bool(source)}"


def raised_in(own: list[tuple[types.FrameType, int]], error: BaseException) -> bool:
    """Was it raised in the cell of the attempt itself, not in something that the attempt calls?"""
    innermost, _ = list(traceback.walk_tb(error.__traceback__))[-1]
    cells = {own[0][0].f_code.co_filename, own[-1][0].f_code.co_filename} if own else set()
    return cells == {innermost.f_code.co_filename}
