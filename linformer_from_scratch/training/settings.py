"""Fields of a dataclass with an explanation and bounds: the command line's help, and its errors."""

import math
from dataclasses import field, fields
from numbers import Integral, Real
from typing import Any

LARGEST = 2**31 - 1  # of sizes


def setting(default: object, explained: str, least: float | None = None, most: float = math.inf) -> Any:
    """A field with its default; its metadata hold the explanation and the bounds, both inclusive."""
    return field(default=default, metadata={"help": explained, "least": least, "most": most})


def check_ranges(settings: Any) -> None:
    """Check that every field with bounds is a number of its type between them; make it Python's int or float.

    Raises: ValueError with the field's name, its value and what is expected.
    """
    for each in fields(settings):
        value, least, most = getattr(settings, each.name), each.metadata["least"], each.metadata["most"]
        if least is None:
            continue
        kind = Integral if each.type is int else Real
        if not isinstance(value, kind) or isinstance(value, bool):
            what = "an integer" if each.type is int else "a number"
            raise ValueError(f"{each.name} is {value!r}, expected {what}")
        if not value >= least:
            raise ValueError(f"{each.name} is {value}, expected at least {least}")
        if value > most:
            raise ValueError(f"{each.name} is {value}, expected at most {most}")
        number: Any = value
        object.__setattr__(settings, each.name, int(number) if each.type is int else float(number))
