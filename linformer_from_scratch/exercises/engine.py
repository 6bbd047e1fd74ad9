"""Run an attempt, look at all that it does, and say in one sentence what is wrong with it."""

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

SEEDS = range(4)  # draws an attempt must survive; the authors make one of them odd (n = 1)
RTOL, ATOL = 1e-4, 1e-5  # another order of summation in float32 stays far below, every mistake far above
LONG = 300  # characters of an error message that are shown
LARGE = 2**20  # entries beyond which a returned tensor is not searched for NaN

SIGNS = {"passed": "✓", "failed": "✗", "open": "○"}
COLOURS = {"passed": "#2E8B57", "failed": "#D1495B", "open": "#8A8F98"}  # legible on white and on black
STOPPED = "Stopped before it returned."


@dataclass(frozen=True)
class Exercise:
    """One exercise as data.

    Args:
        id: chapter.number, as in "6.2".
        question: what to write, in one line.
        difficulty: 1 to 3.
        minutes: how long it takes.
        trains: what it is good for.
        reference: the right function.
        draw: seed -> the arguments of one trial: tensors, numbers, None, lists of those.
        mistakes: plausible wrong functions; the docstring is the sentence that their author needs to hear.
        hints: steps, from a nudge over the shapes to partial code.
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
