"""Texts in blocks of neighbouring tokens, and the checks that every relative makes of its input."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.common.checks import full_precision, in_float32


def whole_blocks(n: int, size: int) -> int:
    """How many blocks n tokens need, the last one filled up."""
    return (n + size - 1) // size


def in_blocks(x: Tensor, size: int) -> Tensor:
    """Blocks of `size` tokens; zeros where the text ends.

    Shape: (..., n, d) -> (..., blocks, size, d)
    """
    n = x.size(-2)
    blocks = whole_blocks(n, size)
    return functional.pad(x, (0, 0, 0, blocks * size - n)).unflatten(-2, (blocks, size))


def from_blocks(x: Tensor, n: int) -> Tensor:
    """The first n tokens of all blocks, one after another.

    Shape: (..., blocks, size, d) -> (..., n, d)
    """
    if torch.compiler.is_compiling():  # flattened and sliced, it would not export for every n
        token = torch.arange(n, device=x.device)
        return x[..., token // x.size(-2), token % x.size(-2), :]
    return x.flatten(-3, -2)[..., :n, :]


def self_attention_in_float32(attend: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Wrap a relative so that it computes 16-bit q, k and v in float32, even under autocast.

    The output has the dtype of v again.

    Raises: ValueError if q, k or v is not floating point; as check_same_length.
    """

    @wraps(attend)
    def computed(q: Tensor, k: Tensor, v: Tensor, *arguments: Any, **options: Any) -> Tensor:
        if not all(x.is_floating_point() for x in (q, k, v)):
            raise ValueError(f"q, k, v are {q.dtype}, {k.dtype}, {v.dtype}; expected floating point")
        check_same_length(q, k, v)
        with full_precision(q):
            return attend(*map(in_float32, (q, k, v)), *arguments, **options).to(v.dtype)

    return computed


def check_same_length(q: Tensor, k: Tensor, v: Tensor) -> int:
    """The common number of tokens.

    Raises: ValueError if q, k and v differ in it, or have none.
    """
    n, of_k, of_v = q.size(-2), k.size(-2), v.size(-2)
    if not n == of_k == of_v:  # not a set: while a program is exported, n is a symbol, which has no hash
        raise ValueError(f"q, k, v have {n}, {of_k}, {of_v} tokens; expected the same number")
    if n == 0:
        raise ValueError("q, k, v have 0 tokens; expected at least 1")
    return n
