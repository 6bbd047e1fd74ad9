"""How anybody's layer is called: by lines of text, so that what is printed is what was run."""

import inspect
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from textwrap import shorten
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.promises.report import BROKEN, KEPT, Verdict

# Names that a mask (batch, n) has. True = a real token, but for PyTorch's two names, where True = padding.
MASKS = ("padding_mask", "key_padding_mask", "src_key_padding_mask", "input_mask", "attention_mask", "mask")
HEADS = ("num_heads", "n_heads", "nhead", "heads")
SPLIT = "*(x.roll(i, -1).unflatten(-1, ({}, -1)).transpose(1, 2) for i in range(3))"  # q, k, v that differ
WORDS = {  # that a line may use
    "mask": "torch.arange(n) < torch.tensor([[real], [n]])",
    "far": "lambda gap: gap.abs().amax((0, 2))",
    "stuck": "lambda gap: torch.tensor([1.0 - gap.any().item()])",
}
RUNS = "moved = torch.stack([x[..., 0], f(x)[..., 0]])[1]"  # fails unless there is a row for each token


class Failed(Exception):
    """The lines raised an error. It is a refusal if it tells of a mistake in words."""

    def __init__(self, lines: tuple[str, ...], error: Exception):
        super().__init__(f"{type(error).__name__}: {shorten(str(error), 100, placeholder=' …')}")
        self.lines = lines
        self.is_refusal = isinstance(error, ValueError | AssertionError) and bool(str(error))


class Found(NamedTuple):
    """What lines found: how far each token moved."""

    moved: Tensor
    lines: tuple[str, ...]

    @property
    def by(self) -> float:
        """The largest; infinity where one is not finite."""
        return self.moved.double().nan_to_num(torch.inf).max().item() if self.moved.numel() else 0.0


@dataclass(frozen=True)
class Subject:
    """A layer as lines call it: f(x) or f(x, mask), x (2, n, dim). They find `moved`, often as far(a - b).

    Args:
        given: the layer, and the user's `call` and `write`.
        length: tokens of a text; asked: those asked for, where the layer does not run on them.
        start: what is done to the layer first; form: how it is called. Both are written out.
    """

    given: dict[str, Any]
    dim: int
    heads: int
    length: int
    asked: int
    dtype: str
    start: str
    form: str
    causal: bool
    exponent: float

    @cached_property
    def size(self) -> float:
        """The largest number of the output."""
        return self.run("moved = far(f(x))").by

    @property
    def small(self) -> float:
        """What counts as no movement."""
        return self.size * (1e-6 if self.dtype == "float64" else 1e-3)

    def run(self, line: str, n: int | None = None) -> Found:
        """Run a line on n tokens. Raises Failed if it raises an error."""
        n = self.length if n is None else n
        first = f"import copy, torch; {self.start}; f = lambda x, mask=None: {self.form}"
        draw = f"torch.randn(2, 2, n, {self.dim}, generator=torch.Generator().manual_seed(0))"
        second = f"n, real = {n}, {max(1, 2 * n // 3)}; x, z = {draw}.to(torch.{self.dtype})"
        second += "".join(f"; {name} = {what}" for name, what in WORDS.items() if name in line)
        code, mark, wrong = line.partition("  # ")
        shown = first, second, f"{code}; print(moved.max().item(), moved.argmax().item()){mark}{wrong}"
        scope = dict(self.given)
        try:
            exec("\n".join((first, second, line)), scope)
            return Found(scope["moved"].detach(), shown)
        except Exception as error:  # of whatever type the layer raises
            raise Failed(shown, error) from error

    def failure(self, n: int) -> Failed | None:
        """How the layer fails on n tokens, if it does."""
        try:
            self.run(RUNS, n)
        except Failed as failed:
            return failed
        return None

    @cached_property
    def masks(self) -> bool:
        """Whether it runs with a mask."""
        with suppress(Failed):
            return "mask" in self.form and bool(self.run("moved = f(x, mask)"))
        return False

    def still(self, found: Iterable[Found], share: float | None = None) -> Verdict:
        """Kept if nothing moved, or by no more than a share of the largest output."""
        worst = max(found, key=lambda one: one.by)
        if worst.by <= (self.small if share is None else share * self.size):
            return Verdict(KEPT)
        far = f"by {worst.by:.2g}" if worst.by < torch.inf else "not finite"
        wrong = worst.lines[-1].partition("  # ")[2]
        return Verdict(BROKEN, wrong or f"{far} at token {worst.moved.argmax()}", worst.lines)


def subject_of(
    given: dict[str, Any], dim: int | None, length: int, heads: int | None, causal: bool, exponent: float
) -> Subject:
    """Find out how the layer is called. Args, Raises: as `examine`."""
    layer, name = given["layer"], name_of(given["layer"])
    parts = [*layer.modules()] if isinstance(layer, nn.Module) else []
    dim = dim or next((part.in_features for part in parts if isinstance(part, nn.Linear)), None)
    if dim is None:
        raise ValueError(f"{name} does not say how many features a token has: give dim=")
    length = check_size("length", length, least=8)
    counts = (getattr(layer, count, None) for count in HEADS)
    heads = heads or next((count for count in counts if isinstance(count, int)), 4)
    of_heads = (dim // count for count in range(1, 17) if dim % count == 0)
    lengths = dict.fromkeys([length, dim // heads, *of_heads])
    forms, failures = _forms(heads, causal, **given), []
    for n, dtype, form in product(lengths, ("float64", "float32"), forms):
        start = f'layer = copy.deepcopy(layer).to("cpu", torch.{dtype}).eval()'
        if not parts:
            start = "box = torch.nn.Module(); box.forward = layer; layer = box"
        elif given["write"] is None and hasattr(layer, "write"):
            start += "; write = type(layer).write"
        subject = Subject(given, dim, heads, n, length, dtype, start, form, causal, exponent)
        try:
            if not subject.run(f"{RUNS}; moved = far(f(x))").by:
                raise ValueError(f"{name} gives 0 for every text: give it weights first")
            if form in forms[-2:] or subject.run("moved = f(x, mask) - f(x)").moved.any():
                return subject  # otherwise its mask has another name
        except Failed as failed:
            failures.append(failed)
            if failures[0].is_refusal and form == forms[-1]:
                break  # it says what it does not take; other lengths are not tried
    raise ValueError(
        f"{name} does not run on {length} tokens of {dim} features: {failures[0]}; is dim= or call= missing?"
    )


def name_of(layer: Any) -> str:
    """Of the function, or of the class."""
    return getattr(layer, "__name__", type(layer).__name__)


def _forms(heads: int, causal: bool, layer: Any, call: Callable | None, write: Callable | None) -> list[str]:
    """The call and its first output; with **keywords, for each name that a mask may have."""
    if call is not None:
        form = f"call(layer, x{', mask' if len(inspect.signature(call).parameters) > 2 else ''})"
        return [form, f"{form}[0]"]
    weights = [*layer.parameters()] if isinstance(layer, nn.Module) else []
    signature = inspect.signature(layer.forward if isinstance(layer, nn.Module) else layer).parameters
    takes = [p for p in signature.values() if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD]
    needed = [p.name for p in takes if p.name not in MASKS]
    if len(needed) not in (1, 3):
        raise ValueError(f"{name_of(layer)} takes {', '.join(needed)}: give call=lambda layer, x, mask: …")
    inputs, real, after = ", ".join(["x"] * len(needed)), "mask", ""
    if len(needed) == 3 and not weights:  # a function of q, k and v with heads
        inputs, after = SPLIT.format(heads), ".transpose(1, 2).flatten(2)"
        real = "mask if mask is None else mask[:, None, None, :]"
    if causal and isinstance(layer, nn.MultiheadAttention):
        inputs += ", attn_mask=torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)"
    names = [name for name in MASKS if name in signature][:1]
    if not names and any(p.kind is p.VAR_KEYWORD for p in signature.values()):
        names = [*MASKS]
    for_padding = "mask if mask is None else ~mask"
    masks = [f", {name}={for_padding if 'key' in name else real}" for name in names]
    return [f"layer({inputs}{mask}){item}{after}" for mask in masks or [""] for item in ("", "[0]")]
