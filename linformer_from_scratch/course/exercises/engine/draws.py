"""Random inputs of exercises: the same for the same seed."""

import random
from collections.abc import Sequence

import torch
from torch import Tensor


def normal(seed: int, *sizes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Standard normal tensors of these sizes."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(*size, generator=generator) for size in sizes)


def row(seed: int, table: Sequence[tuple]) -> tuple:
    """The course's seeds have a row of the table each; later ones, an exam's, draw a row within its columns' bounds."""
    if seed < len(table):
        return table[seed]
    generator = random.Random(seed)
    return tuple(between(column, generator) for column in zip(*table, strict=True))


def between(column: tuple, generator: random.Random) -> int | float | bool:
    """A value of the column's type from its least to its largest; of two truth values, either."""
    low, high = min(column), max(column)
    if isinstance(low, int):
        return type(low)(generator.randint(low, high))
    return generator.uniform(low, high)
