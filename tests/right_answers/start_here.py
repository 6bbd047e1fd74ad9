"""Right and nearly right answers: start_here."""

import math
from fractions import Fraction

import torch

from right_answers import right


@right("0.1")
def as_a_tensor(n, num_heads):
    return torch.tensor(n * n * num_heads)


@right("0.1")
def as_a_fraction(n, num_heads):
    return Fraction(num_heads * n * n)


@right("0.1")
def by_a_loop(n, num_heads):
    return sum(n * n for _ in range(num_heads))


right("0.1")(lambda tokens, heads: math.prod((heads, tokens, tokens)))
