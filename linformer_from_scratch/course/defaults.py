"""Numbers that do not follow what a program sets for all of PyTorch: default dtype and device, autocast."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Generator, Tensor


def normal(draw: Generator | None, *sizes: int) -> Tensor:
    """N(0, 1) in float32: from the same state, another dtype would get other numbers.

    Shape: sizes, on the device of the generator; without one, from the CPU's that all code shares
    """
    return torch.randn(sizes, generator=draw, dtype=torch.float32, device=_place(draw))


def uniform(draw: Generator, *sizes: int) -> Tensor:
    """From 0 to 1, in float32. Shape: as normal."""
    return torch.rand(sizes, generator=draw, dtype=torch.float32, device=_place(draw))


def integers(draw: Generator, low: int, high: int, *sizes: int) -> Tensor:
    """From low to high - 1. Shape: as normal."""
    return torch.randint(low, high, sizes, generator=draw, device=_place(draw))


def full_precision(x: Tensor) -> AbstractContextManager:
    """Inside, autocast takes nothing from the numbers on the device of x."""
    kind = x.device.type
    available = torch.amp.is_autocast_available(kind)  # it is not on the device meta
    return torch.autocast(kind, enabled=False) if available else nullcontext()


def _place(draw: Generator | None) -> torch.device | str:
    return draw.device if draw else "cpu"
