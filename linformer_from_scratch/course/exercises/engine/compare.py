"""Is a returned value right? It may be written in any usual way.

A number is a number as a Python int or float, a fraction, a NumPy scalar, or an array or tensor without axes. An
array is one as a tensor or a NumPy array of any real type, or as lists of numbers. A list may stand for a tuple.
A dict is compared entry by entry, in any order.
True and False are no numbers. What agrees with the reference in float64 is right, and so is what agrees with it in
float32. How far float32 may be off follows from how far apart these two are; an array without float64 may be the
furthest off.
"""

import math
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy
import torch
from torch import Tensor, nn

NUMBER = 1e-5  # of a number: float32 is ten times as exact
RTOL, ATOL = 1e-4, 1e-5  # of an array: float32 summed in another order stays below, every mistake far above
LEAST = 1e-7  # float32 cannot tell a sum of ones from zero below
WHOLE = 1e-6  # float32 cannot tell large whole numbers apart
SLACK = 8  # times the reference's own rounding error: other right ways round differently
NOISE = 1e-2  # what is smaller may be rounding alone, as where a true gradient is zero
LONG = 300  # characters of a name or a message that are shown


def value_difference(got: Any, expected: Any, exact: Any = None) -> str:
    """What is wrong with a value, with both sides; empty where nothing is.

    Args: exact: the expected value computed in float64, where there is one.
    """
    if kind(expected) is bool:
        truth = bool(got) if is_array(got) and is_bool(got) and not shape(got) else got
        same = kind(truth) is bool and truth in (expected, exact)
        return "" if same else f"Got {described(got)}, expected {expected}"
    if is_number(expected):
        return number_difference(got, expected, exact)
    if kind(expected) is Tensor:
        return tensor_difference(got, expected.detach(), exact)
    if kind(expected) in (tuple, list):
        return items_difference(got, expected, exact)
    if kind(expected) is dict:
        return entries_difference(got, expected, exact)
    return "" if kind(got) is kind(expected) and got == expected else unexpected(got, expected)


def number_difference(got: Any, expected: Any, exact: Any) -> str:
    """As value_difference, where a number is expected."""
    if is_array(got) and (wrong := unreadable(got)):
        return wrong
    given, wanted = as_number(got), as_number(expected)
    if given is None or wanted is None:
        return unexpected(got, expected)
    if type(wanted) is int:
        tolerance = 0.0 if type(given) is int else WHOLE * abs(float(wanted))
    else:
        least = LEAST * (kind(expected) is Tensor or not wanted)
        tolerance = NUMBER * abs(wanted) + slack(wanted, as_number(exact)) + least
    rights = [right for right in (as_number(exact), wanted) if right is not None]
    same = any(is_close(given, right, tolerance) for right in rights)
    return "" if same else f"Got {number(given)}, expected {number(wanted)}"


def is_close(given: int | float, right: int | float, tolerance: float) -> bool:
    """Are two numbers the same, or both finite and this close?"""
    one, other = float(given), float(right)
    finite = math.isfinite(one) and math.isfinite(other)
    both_nan = math.isnan(one) and math.isnan(other)
    return given == right or both_nan or (finite and abs(given - right) <= tolerance)


def tensor_difference(got: Any, expected: Tensor, exact: Any) -> str:
    """As value_difference, where an array is expected: type, then shape, dtype, place and values."""
    if kind(got) in (list, tuple):
        got = gathered(got, expected.dim())
    if not is_array(got):
        return unexpected(got, expected)
    if shape(got) != tuple(expected.shape):
        return f"Got shape {shape(got)}, expected {tuple(expected.shape)}"
    if wrong := unreadable(got):
        return wrong
    if is_bool(got) is not is_bool(expected):
        names = ["True and False" if is_bool(array) else "numbers" for array in (got, expected)]
        return f"Got {names[0]}, expected {names[1]}"
    values = as_tensor(got)
    close = near(values, expected, exact)
    if close.all():
        return ""
    gap = (values.double() - expected.double()).abs().nan_to_num(math.inf, math.inf).masked_fill(close, -1)
    index = tuple(int(i) for i in torch.unravel_index(gap.argmax(), gap.shape))
    here = f" at index {index}" if index else ""
    found, wanted, distance = (number(tensor[index].item()) for tensor in (values, expected, gap))
    if is_bool(expected):
        return f"Got {found}{here}, expected {wanted}"
    if values[index].isnan():
        return f"NaN{here}, expected {wanted}"
    return f"Largest difference {distance}{here}: got {found}, expected {wanted}"


def near(got: Tensor, expected: Tensor, exact: Any) -> Tensor:
    """Where a tensor agrees with what is expected, in float64 or in float32. Shape: that of all three, boolean."""
    exact = exact.detach() if kind(exact) is Tensor and exact.shape == expected.shape else None
    rights = [expected] if exact is None else [exact, expected]
    if not (expected.is_floating_point() or got.is_floating_point()):
        return torch.stack([got == right for right in rights]).any(0)
    rtol, atol = tolerance(expected, exact)
    close = [torch.isclose(got.double(), right.double(), rtol, atol, equal_nan=True) for right in rights]
    return torch.stack(close).any(0)


def tolerance(expected: Tensor, exact: Tensor | None) -> tuple[float, float]:
    """How far each entry may be off: the share of its size, and how much whatever its size."""
    if not expected.is_floating_point():
        return WHOLE, 0.0
    size = largest(expected if exact is None else exact)
    rounding = math.inf if exact is None else largest(expected.double() - exact.double())
    # Of what is zero in truth, all that is left is rounding.
    atol = max(ATOL * min(1.0, size), LEAST) if size > LEAST else ATOL
    return RTOL, atol + min(SLACK * rounding, RTOL * max(size, NOISE))


def largest(values: Tensor) -> float:
    """The largest finite absolute value; 0 where there is none."""
    finite = values.double().abs()[values.isfinite()]
    return finite.max().item() if finite.numel() else 0.0


def slack(expected: float, exact: int | float | None) -> float:
    """How much further a number may be off, given the same in float64."""
    if exact is None or not math.isfinite(float(exact)):
        return 0.0
    return min(SLACK * abs(expected - exact), RTOL * abs(expected))


def items_difference(got: Any, expected: tuple | list, exact: Any) -> str:
    """As value_difference, where several values are expected: the first that differs."""
    if is_array(got) and shape(got) and not unreadable(got):
        got = list(got)  # as in a, b = array
    if kind(got) not in (tuple, list):
        return unexpected(got, expected)
    if len(got) != len(expected):
        return f"Returned {len(got)} values, expected {len(expected)}"
    exacts = exact if kind(exact) in (tuple, list) and len(exact) == len(expected) else [None] * len(expected)
    for i, three in enumerate(zip(got, expected, exacts, strict=True), start=1):
        if difference := value_difference(*three):
            return f"Value {i} of {len(got)}: {difference}"
    return ""


def entries_difference(got: Any, expected: dict, exact: Any) -> str:
    """As value_difference, where a dict is expected: an entry that is missing or too many, then the first that differs."""
    if kind(got) not in (dict, defaultdict):
        return unexpected(got, expected)
    if missing := [key for key in expected if key not in got]:
        return f"No entry for {missing[0]!r}"
    if surplus := [key for key in got if key not in expected]:
        return f"Got an entry for {repr(surplus[0])[:LONG]}, expected none"
    exacts = exact if kind(exact) is dict else {}
    for key, wanted in expected.items():
        if difference := value_difference(got[key], wanted, exacts.get(key)):
            return f"{key}: {difference}"
    return ""


# What counts as a number, and what as an array


def as_number(value: Any) -> int | float | None:
    """A number as an int or a float; None if it is not a number."""
    if is_array(value):
        if shape(value) or is_bool(value) or unreadable(value):
            return None
        value = value.item()
    if isinstance(value, numpy.generic):  # as in longdouble, whose item is itself
        return None if is_bool(value) else float(value)
    if type(value) is Decimal:
        return float(value)
    if type(value) is Fraction:
        return value.numerator if value.denominator == 1 else float(value)
    return value if type(value) in (int, float) else None


def is_number(value: Any) -> bool:
    """Is it one real number?"""
    return as_number(value) is not None


def is_array(value: Any) -> bool:
    """Is it a tensor, a NumPy array or a NumPy scalar? Exact types, as in `kind`."""
    return kind(value) in (Tensor, numpy.ndarray) or (
        type(value).__module__ == "numpy" and isinstance(value, numpy.generic)
    )


def shape(value: Any) -> tuple[int, ...]:
    """The sizes of an array's axes."""
    return tuple(value.shape)


def is_bool(value: Any) -> bool:
    """Does an array hold True and False?"""
    return value.dtype in (torch.bool, numpy.bool_)


def unreadable(value: Any) -> str:
    """Why an array's entries cannot be read as real numbers; empty where they can."""
    if kind(value) is not Tensor:
        return "" if value.dtype.kind in "biuf" else f"Got dtype {value.dtype}, expected real numbers"
    if value.is_complex() or value.is_quantized:
        return f"Got dtype {value.dtype}, expected real numbers"
    if value.device.type != "cpu":
        return f"Got device {value.device}, expected cpu"
    return "" if value.layout is torch.strided else f"Got layout {value.layout}, expected {torch.strided}"


def as_tensor(array: Any) -> Tensor:
    """A readable array as a tensor."""
    if kind(array) is Tensor:
        return array.detach()
    if array.dtype.kind in "bi":
        return torch.tensor(array.astype(bool if array.dtype.kind == "b" else numpy.int64))
    return torch.tensor(array.astype(numpy.float64))


def gathered(items: Any, axes: int) -> Any:
    """Lists of numbers, nested at most this deep, as one tensor; anything else as it is."""
    if is_array(items) and not unreadable(items):
        return as_tensor(items)
    if kind(items) is bool or is_number(items):
        return torch.tensor(
            items if kind(items) in (bool, int) else float(items),
            dtype=None if kind(items) is bool else torch.float64,
        )
    if kind(items) not in (list, tuple) or not axes or not items:
        return items
    rows = [gathered(item, axes - 1) for item in items]
    alike = all(kind(row) is Tensor for row in rows) and len({(row.shape, is_bool(row)) for row in rows}) == 1
    return torch.stack([row if is_bool(row) else row.double() for row in rows]) if alike else items


# In words


def kind(value: object) -> type:
    """The exact type, since a subclass may pretend anything; but a Parameter is a Tensor, and a named tuple a tuple."""
    if isinstance(value, tuple):
        return tuple
    return Tensor if type(value) is nn.Parameter else type(value)


def unexpected(got: Any, expected: Any) -> str:
    """The complaint about another kind of value."""
    question = " (is the return line missing?)" if got is None else ""
    if kind(expected) in (tuple, list):
        wanted = f"{len(expected)} values"
    else:
        wanted = "a number" if kind(expected) is Tensor and not expected.dim() else described(expected)
    return f"Returned {described(got)}{question}, expected {wanted}"


def described(value: Any) -> str:
    """A value in a few words, whatever it is."""
    if value is None:
        return "None"
    if kind(value) is Tensor:
        return f"a tensor of shape {shape(value)}"
    if kind(value) is numpy.ndarray:
        return f"an array of shape {shape(value)}"
    if kind(value) in (tuple, list, dict):
        return f"a {kind(value).__name__} of length {len(value)}"
    if kind(value) in (bool, int, float):
        return f"{number(value)} ({kind(value).__name__})"
    return f"an object of type {type(value).__name__}"


def number(value: Any) -> str:
    """A number in a few digits."""
    return f"{value:.4g}" if type(value) is float else str(value)[:LONG]
