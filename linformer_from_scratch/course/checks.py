"""Checks that many modules share: is this a size, a padding mask, and is this call being traced?"""

import operator
from typing import SupportsIndex

import torch
from torch import Tensor


def check_size(name: str, size: SupportsIndex, least: int = 1, most: int | None = None) -> int:
    """The size as an int; NumPy's integers are some, too.

    Raises: ValueError unless it is an integer between the two; True and False are none.
    """
    if type(size) is not int and graph_is_written():
        return size  # type: ignore[return-value]  # a symbol, or a tensor that a trace records
    try:
        found = size if type(size) is int else operator.index(size)
    except TypeError:
        found = least - 1
    if isinstance(size, bool) or found < least or (most is not None and found > most):
        expected = f"of at least {least}" if most is None else f"in {least} … {most}"
        raise ValueError(f"{name} is {size!r}, expected an integer {expected}")
    return found


def check_padding_mask(padding_mask: Tensor | None, tokens: Tensor) -> None:
    """Raise ValueError unless there is none, or it has a True or False for each of the tokens.

    Shape: tokens (batch, n) or (batch, n, d), padding_mask (batch, n), on the same device
    """
    if padding_mask is None:
        return
    if not isinstance(padding_mask, Tensor):
        raise ValueError(f"padding_mask is a {type(padding_mask).__name__}, expected a Tensor or None")
    if padding_mask.shape != tokens.shape[:2] or padding_mask.dtype != torch.bool:
        raise ValueError(
            f"padding_mask is {padding_mask.dtype} {tuple(padding_mask.shape)}, "
            f"expected torch.bool {tuple(tokens.shape[:2])}"
        )
    if padding_mask.device != tokens.device:
        raise ValueError(f"padding_mask is on {padding_mask.device}, the tokens are on {tokens.device}")


def graph_is_written() -> bool:
    """Whether PyTorch records a program that is to hold for every n: traced, exported or compiled."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def at_most(n: int, size: int) -> int:
    """min(n, size), for a size that says the same as n beyond it.

    In a graph the size stays: a comparison would be recorded for one n only.
    """
    return size if graph_is_written() else min(n, size)
