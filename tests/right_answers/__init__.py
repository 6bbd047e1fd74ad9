"""Answers to the exercises, right ones of different make and nearly right ones: a module for each chapter.

RIGHT: exercise's id -> right answers that differ in what they are made of (loops, einsum, NumPy, float64, a
    library's function).
WRONG: exercise's id -> answers that are wrong in a way that no mistake of the bank is, as the docstring says.
SAME: exercise's id -> {mutation: why it is the same function}, of what tests/mutations.py makes of the
    reference and of the solution.
"""

from collections import defaultdict
from importlib import import_module
from pkgutil import iter_modules

RIGHT, WRONG, SAME = defaultdict(list), defaultdict(list), {}


def right(id):
    """Put an answer among the right ones."""
    return lambda answer: RIGHT[id].append(answer) or answer


def wrong(id):
    """Put an answer among the wrong ones."""
    return lambda answer: WRONG[id].append(answer) or answer


for module in iter_modules(__path__, f"{__name__}."):
    SAME |= getattr(import_module(module.name), "SAME", {})
