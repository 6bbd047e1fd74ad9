"""Right answers: start_here."""

from fractions import Fraction

import numpy
import torch


def as_a_float(n, num_heads):
    return float(num_heads) * n**2


def as_a_tensor(n, num_heads):
    return torch.tensor(n * n * num_heads)


def by_numpy(n, num_heads):
    return numpy.int64(num_heads) * n * n


def as_a_fraction(n, num_heads):
    return Fraction(num_heads * n * n)


def by_a_loop(n, num_heads):
    return sum(n * n for _ in range(num_heads))


RIGHT = {"0.1": (as_a_float, as_a_tensor, by_numpy, as_a_fraction, by_a_loop)}
SAME = {}
