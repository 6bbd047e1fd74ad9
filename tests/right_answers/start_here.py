"""Right answers: start_here."""

from fractions import Fraction

import torch


def as_a_tensor(n, num_heads):
    return torch.tensor(n * n * num_heads)


def as_a_fraction(n, num_heads):
    return Fraction(num_heads * n * n)


def by_a_loop(n, num_heads):
    return sum(n * n for _ in range(num_heads))
