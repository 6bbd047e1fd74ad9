"""Run an attempt, compare all that it does with the reference, and say in one sentence what is wrong with it.

An attempt is compared with the reference on several draws: what it returns, what it does to its inputs, and where
the exercise asks for it, what gradients flow through it. The same look at every known mistake finds the sentence
that this learner needs.
"""

import copy
import html
import inspect
import linecache
import os
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.course.exercises.engine.answers import Answer
from linformer_from_scratch.course.exercises.engine.compare import LONG, described, kind, value_difference
from linformer_from_scratch.course.exercises.engine.isolation import isolated

SEEDS = range(4)  # the draws an attempt must survive; authors make one of them odd (n = 1)
EXAMS = 10**9

SIGNS = {"passed": "✓", "failed": "✗", "open": "○"}
COLOURS = {"passed": "#2E8B57", "failed": "#D1495B", "open": "#808890"}  # legible on white and on black
STOPPED = "Stopped before it returned."
NUMPY = "Can't call numpy() on Tensor that requires grad"  # as PyTorch says it
RAISED = (Exception, SystemExit, GeneratorExit)  # all but an interrupt, which is the learner's own


class Refused(Exception):
    """What an exercise's `use` finds wrong with an attempt, in words for the learner."""


def call(attempt: Callable, *arguments: object) -> object:
    """How most attempts are used: as functions of what is drawn."""
    return attempt(*arguments)


@dataclass(frozen=True)
class Exercise:
    """One exercise as data.

    Args:
        id: chapter and number, as in "6.2".
        minutes: how long it takes.
        reference: the right function.
        draw: seed -> the arguments of one trial: tensors, numbers, None, lists or tuples of those. Seeds beyond
            those of the course, as an exam has them, give other sizes too.
        mistakes: plausible wrong functions; the docstring is the sentence that whoever wrote it needs to hear.
        hints: three steps: a nudge, the shapes, partial code.
        gradients: the arguments whose gradients are compared too, of a piece of a network; its text says so.
        use: (attempt, *arguments) -> what is compared; for a class, build it and call it.
        part: the name of the part of one's own Linformer that this is; empty where it is none.
        stars: how hard it is, 1 to 3, and how many points it gives.
    """

    id: str
    minutes: int
    reference: Callable
    draw: Callable[[int], tuple]
    mistakes: tuple[Callable, ...]
    hints: tuple[str, ...]
    gradients: tuple[str, ...] = ()
    use: Callable = call
    part: str = ""
    stars: int = 1

    def trial(self, seed: int) -> dict[str, Any]:
        """What is drawn for a seed, by the names of the arguments."""
        names = [*inspect.signature(self.reference if self.use is call else self.use).parameters]
        return dict(zip(names[self.use is not call :], self.draw(seed), strict=False))


def exercise(number: str, each: Callable | None = None, **settings: Any) -> Callable[[type], Exercise]:
    """Make an Exercise of a class's body: hints, reference, draw, use; all else in it is its mistakes, in order.

    Args: each: makes the mistake of what stands in the body for it.
    """

    def made(body: type) -> Exercise:
        parts = {name: part for name, part in vars(body).items() if not name.startswith("__")}
        own = {name: parts.pop(name) for name in ("hints", "reference", "draw", "use") if name in parts}
        several = chain.from_iterable(part if isinstance(part, tuple) else (part,) for part in parts.values())
        return Exercise(number, mistakes=tuple(map(each, several) if each else several), **own, **settings)

    return made


def exercises_of(chapter: ModuleType) -> tuple[Exercise, ...]:
    """Those that a module defines."""
    return tuple(part for part in vars(chapter).values() if isinstance(part, Exercise))


@dataclass(frozen=True, repr=False)
class Result(Answer):
    """What a check found: status is "passed", "failed" or "open", message is one sentence."""

    id: str
    status: str
    message: str

    @property
    def line(self) -> str:
        """The message, which begins with the id."""
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
        last = "That was the last one; solutions/ has the answer."
        return [*shown, f"{left} more: run it again." if left else last]

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


def exam_seeds(number: int) -> tuple[int, ...]:
    """The draws of an exam: other sizes and signs, different for every number from 0 on, and those of the course.

    Raises: ValueError if the number is not an integer in 0 … 10⁹.
    """
    first = 1000 + 2 * len(SEEDS) * check_size("number", number, 0, EXAMS)
    return (*range(first, first + 2 * len(SEEDS)), *SEEDS)


def judge(exercise: Exercise, attempt: object, seeds: Iterable[int] = SEEDS) -> Result:
    """Compare an attempt with the reference on every draw; whatever it does, the answer is one sentence."""
    try:
        with isolated():
            status, message = verdict(exercise, attempt, seeds)
    except KeyboardInterrupt:
        status, message = "failed", STOPPED
    except BaseException as error:  # an object made to resist inspection
        status, message = "failed", f"This attempt cannot be examined ({type(error).__name__})."
    return Result(exercise.id, status, message)


def verdict(exercise: Exercise, attempt: object, seeds: Iterable[int]) -> tuple[str, str]:
    """Status and message of an attempt, each call of which is isolated from the next and from the comparison."""
    if not callable(attempt):
        said = f"check needs the function itself, by its name without (…); got {described(attempt)}."
        return "failed", said
    trials, complaint = [], ""
    for trial, seed in enumerate(seeds):
        draw = exercise.trial(seed)
        right = observe(exercise, exercise.reference, draw)
        exact = observe(exercise, exercise.reference, {name: doubled(value) for name, value in draw.items()})
        with isolated():
            did = observe(exercise, attempt, draw)
        if isinstance(did.error, KeyboardInterrupt):
            return "failed", STOPPED
        did.value = match_container(did.value, right.value)
        if did.unattempted and not trial:
            return "open", f"{exercise.id} not yet attempted{still_open(attempt)}"
        wrong_value = complaint_about_value(did, right, exact)
        wrong_gradients = "" if wrong_value else complaint_about_gradients(did, right, exact)
        wrong = wrong_value or complaint_about_inputs(did) or wrong_gradients
        if wrong and not complaint:
            complaint = f"{wrong}; inputs: {', '.join(map(in_words, draw, draw.values()))}."
        trials.append((draw, did, right, exact))
    if not complaint:
        return "passed", f"{exercise.id} passed"
    for mistake in exercise.mistakes:
        if all(alike(did, observe(exercise, mistake, draw), *true) for draw, did, *true in trials):
            return "failed", sentence_of(mistake)
    return "failed", complaint


def still_open(attempt: Callable) -> str:
    """Which methods of a half-written class are left to write; empty for anything else."""
    defined = vars(attempt) if isinstance(attempt, type) else {}
    methods = {name: m for name, m in defined.items() if type(m) is FunctionType and name != "__init__"}
    left = [name for name, method in methods.items() if method.__code__.co_names == ("NotImplementedError",)]
    return f": {' and '.join(left)} still to be written" if 0 < len(left) < len(methods) else ""


def sentence_of(mistake: Callable) -> str:
    """The sentence for a learner who has made this mistake."""
    return inspect.getdoc(mistake) or ""


# What one call of a function did


@dataclass
class Observation:
    """What was returned or raised, which arguments were changed, and the tensors whose gradients are taken."""

    value: object = None
    error: BaseException | None = None
    place: str = ""  # where in the attempt's own code it was raised
    unattempted: bool = False
    changed: list[str] = field(default_factory=list)
    leaves: dict[str, Tensor] = field(default_factory=dict)

    @cached_property
    def gradients(self) -> dict[str, Tensor]:
        """Those of a fixed random weighting of the outputs; zeros for an input on which none of them depends."""
        outputs, weights = [], []
        for seed, output in enumerate(tensors(self.value)):
            if output.requires_grad:
                outputs.append(output)
                generator = torch.Generator().manual_seed(seed)
                weights.append(torch.randn(output.shape, generator=generator).to(output.dtype))
        leaves = [*self.leaves.values()]
        options = {"retain_graph": True, "materialize_grads": True, "allow_unused": True}
        return dict(zip(self.leaves, torch.autograd.grad(outputs, leaves, weights, **options), strict=True))


def observe(exercise: Exercise, function: Callable, draw: dict[str, object]) -> Observation:
    """Use a function, as its exercise does, on copies of the draw's arguments."""
    did = Observation()
    learned, leaves = exercise.gradients, did.leaves
    arguments = {name: fresh(value, name, leaves, name in learned) for name, value in draw.items()}
    try:
        did.value = exercise.use(function, *arguments.values())
    except BaseException as error:  # SystemExit too: an attempt may not end the notebook
        own = own_frames(function, error)
        did.error = error
        called = f" when called with {len(draw)} argument{'s' * (len(draw) != 1)} ({', '.join(draw)})"
        did.place = quoted(own) or called * (exercise.use is call)
        did.unattempted = type(error) is NotImplementedError and not error.args and raised_in(own, error)
    did.changed = [name for name in draw if not unchanged(arguments[name], draw[name])]
    return did


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


def doubled(value: Any) -> Any:
    """The same in float64."""
    if isinstance(value, list | tuple):
        return type(value)(map(doubled, value))
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value


def unchanged(now: Any, before: Any) -> bool:
    """Is an argument as before, to the last bit?"""
    if kind(now) is not kind(before):
        return False
    if isinstance(before, list | tuple):
        return len(now) == len(before) and all(map(unchanged, now, before))
    if isinstance(before, Tensor):
        if now.shape != before.shape or now.dtype != before.dtype:
            return False
        return bool(torch.isclose(now.detach(), before, rtol=0, atol=0, equal_nan=True).all())
    return now == before


def match_container(value: Any, like: Any) -> Any:
    """A tensor's rows as a tuple, or a list of equal rows as one tensor, where the reference returns that."""
    if isinstance(like, tuple) and kind(value) is Tensor and value.dim():
        return value.unbind()
    rows = value if kind(like) is Tensor and kind(value) in (list, tuple) else ()
    whole = rows and all(kind(row) is Tensor for row in rows) and len({row.shape for row in rows}) == 1
    return torch.stack(tuple(rows)) if whole else value


def tensors(value: object) -> list[Tensor]:
    """All tensors in a value, in order."""
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors(item)]
    return [value] if isinstance(value, Tensor) else []


# What is wrong, in words


def complaint_about_value(did: Observation, right: Observation, exact: Observation) -> str:
    """What was raised, or what is wrong with the value; empty if nothing is."""
    if isinstance(did.error, Refused):
        return str(did.error)
    if did.error and NUMPY in str(did.error):
        return f"Gradients are compared in this exercise, so stay with PyTorch{did.place}"
    if did.error:
        return f"Raised {described_error(did.error)}{did.place}"
    return value_difference(did.value, right.value, exact.value)


def complaint_about_inputs(did: Observation) -> str:
    """Which argument was changed; empty if none was."""
    return f"You changed argument {did.changed[0]} in place, work on a copy" if did.changed else ""


def complaint_about_gradients(did: Observation, right: Observation, exact: Observation) -> str:
    """Which gradients differ although the values are right; empty if none does, or if none are compared."""
    try:
        wrong = wrong_gradients(did, right, exact)
    except RAISED as error:
        return f"The values are right, but the backward pass raised {described_error(error)}"
    if cut := [name for name in wrong if not did.gradients[name].any()]:
        reason = ".detach(), .data, .item(), torch.tensor() and no_grad cut it off"
        return f"The values are right, but no gradient flows to {' and '.join(cut)}: {reason}"
    differing = [f"the gradient of {name} is not: {difference}" for name, difference in wrong.items()]
    return f"The values are right, but {differing[0]}" if differing else ""


def wrong_gradients(did: Observation, right: Observation, exact: Observation | None = None) -> dict[str, str]:
    """name -> what is wrong with its gradient, of those that differ."""
    if not did.leaves:
        return {}
    got, exactly = did.gradients, exact.gradients if exact else {}
    differences = {
        name: value_difference(got[name], expected, exactly.get(name))
        for name, expected in right.gradients.items()
    }
    return {name: difference for name, difference in differences.items() if difference}


def alike(did: Observation, other: Observation, right: Observation, exact: Observation) -> bool:
    """Did both calls do the same? What is right in both is the same, whatever rounding each has."""
    if did.error or other.error:
        return described_error(did.error) == described_error(other.error)
    if other.changed and did.changed != other.changed:  # what a mistake changes, it is about
        return False
    if any(value_difference(one.value, right.value, exact.value) for one in (did, other)):
        return not value_difference(did.value, other.value)
    # Gradients tell two functions apart only where their values agree with the reference.
    try:
        wrong = {**wrong_gradients(did, right, exact), **wrong_gradients(other, right, exact)}
        return not wrong.keys() & wrong_gradients(did, other).keys()
    except RAISED:
        return False


def in_words(name: str, value: object) -> str:
    """An argument in a few words: a tensor's shape, a number's value."""
    if isinstance(value, Tensor):
        return f"{name} {tuple(value.shape)}"
    return f"{name} of length {len(value)}" if isinstance(value, list | tuple) else f"{name}={value}"


def described_error(error: BaseException | None) -> str:
    """Its type, and the first line of its message if it has one; empty for None."""
    if error is None:
        return ""
    line = str(error).strip().split("\n")[0][:LONG]
    return f"{type(error).__name__}{': ' * bool(line)}{line}"


def own_frames(function: Callable, error: BaseException) -> list[tuple[FrameType, int]]:
    """Frames and lines of the traceback of the notebook, or of the module that defines the function."""
    home = ("__main__", getattr(function, "__module__", "__main__"))
    frames = traceback.walk_tb(error.__traceback__)
    return [(frame, line) for frame, line in frames if frame.f_globals.get("__name__") in home]


def quoted(own: list[tuple[FrameType, int]]) -> str:
    """The deepest of these lines; empty if there is none, because the call itself failed."""
    if not own:
        return ""
    frame, line = own[-1]
    path = frame.f_code.co_filename
    where = "your cell" if frame.f_globals.get("__name__") == "__main__" else os.path.basename(path)
    linecache.checkcache(path)  # it may have been edited
    source = linecache.getline(path, line).strip()
    return f" at line {line} of {where}{f': `{source}`' * bool(source)}"


def raised_in(own: list[tuple[FrameType, int]], error: BaseException) -> bool:
    """Was it raised in the cell of the attempt itself, not in something that the attempt calls?"""
    innermost, _ = list(traceback.walk_tb(error.__traceback__))[-1]
    cells = {own[0][0].f_code.co_filename, own[-1][0].f_code.co_filename} if own else set()
    return cells == {innermost.f_code.co_filename}
