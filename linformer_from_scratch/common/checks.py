"""Checks that many modules share: sizes, masks, ids; and whether PyTorch is tracing or autocasting."""

import operator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, SupportsIndex

import torch
from torch import Tensor


def check_size(name: str, size: SupportsIndex, least: int = 1, most: int | None = None) -> int:
    """The size as an int; NumPy's integers are accepted.

    Raises: ValueError unless it is an integer from `least` to `most`; True and False are not.
    """
    if type(size) is not int and graph_is_written():
        return size  # type: ignore[return-value]  # a symbol, or a tensor that a trace records
    try:
        number = size if type(size) is int else operator.index(size)
    except TypeError:
        number = least - 1
    if isinstance(size, bool) or number < least or (most is not None and number > most):
        expected = f"of at least {least}" if most is None else f"in {least} … {most}"
        raise ValueError(f"{name} is {size!r}, expected an integer {expected}")
    return number


def check_mask(name: str, mask: Tensor | None, tokens: Tensor) -> None:
    """Raise ValueError unless mask is None or holds a boolean for each of the tokens.

    Shape: tokens (batch, n) or (batch, n, d), mask (batch, n), on the same device
    """
    if mask is None:
        return
    if not isinstance(mask, Tensor):
        raise ValueError(f"{name} is a {type(mask).__name__}, expected a Tensor or None")
    if mask.shape != tokens.shape[:2] or mask.dtype != torch.bool:
        raise ValueError(
            f"{name} is {mask.dtype} {tuple(mask.shape)}, expected torch.bool {tuple(tokens.shape[:2])}"
        )
    if mask.device != tokens.device:
        raise ValueError(f"{name} is on {mask.device}, the tokens are on {tokens.device}")


def check_ids(ids: Tensor, vocab_size: int, dims: int = 2) -> None:
    """Raise ValueError unless these are token ids of a vocabulary, at least one in each text.

    Shape: ids (batch, n), or (n,) where dims is 1
    In a graph, and wherever values cannot be read (`seen`), only type and shape are checked.
    """
    shape = "(batch, n)" if dims == 2 else "(n,)"
    if not isinstance(ids, Tensor):
        raise ValueError(f"expected ids {shape}, got {type(ids).__name__}; `encode` takes texts")
    if ids.dim() != dims or ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"ids are {ids.dtype} {tuple(ids.shape)}, expected torch.int64 {shape}")
    if ids.size(-1) == 0:
        raise ValueError(f"ids are {tuple(ids.shape)}, expected at least 1 token")
    if graph_is_written() or not ids.numel():
        return
    low, high = map(seen, ids.aminmax())  # before the look-up, which on a GPU would end the process
    if low is not None and (low < 0 or high >= vocab_size):
        raise ValueError(f"ids go from {low} to {high}, expected 0 … {vocab_size - 1}")


def seen(x: Tensor) -> Any:
    """The number that a tensor holds; None where it cannot be read: in a graph, on "meta", in vmap."""
    if graph_is_written() or (x.is_cuda and torch.cuda.is_current_stream_capturing()):
        return None
    try:
        number = x.item()
    except RuntimeError:  # it holds none, or one for each sample
        return None
    return number if isinstance(number, int | float) else None  # otherwise a symbol


def graph_is_written() -> bool:
    """Whether PyTorch is recording a program for every n: by tracing, exporting or compiling."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def at_most(n: int, size: int) -> int:
    """min(n, size), for a size that has the same effect as n wherever it is larger.

    In a graph the size stays: the comparison would be recorded for one n only.
    """
    return size if graph_is_written() else min(n, size)


def in_float32(x: Tensor) -> Tensor:
    """x itself, of 16 bits in float32."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def full_precision(x: Tensor) -> AbstractContextManager:
    """A context without autocast on the device of x."""
    kind = x.device.type
    return nullcontext() if kind == "meta" else torch.autocast(kind, enabled=False)
