"""Texts in blocks of neighbouring tokens, and the questions that every relative asks of its input."""

from torch import Tensor
from torch.nn import functional


def whole_blocks(n: int, size: int) -> int:
    """Blocks that n tokens need, the last one filled up."""
    return -(-n // size)


def in_blocks(x: Tensor, size: int, before: int = 0, after: int = 0) -> Tensor:
    """Blocks of `size` tokens, each with some tokens before and after it; zeros where the text ends.

    Shape: (..., n, d) -> (..., blocks, before + size + after, d)
    """
    n = x.size(-2)
    missing = whole_blocks(n, size) * size - n
    x = functional.pad(x, (0, 0, before, missing + after))
    return x.unfold(-2, before + size + after, size).mT  # unfold puts the tokens last


def check_same_length(q: Tensor, k: Tensor, v: Tensor) -> int:
    """The common number of tokens.

    Raises: ValueError if q, k and v differ in it, or have none.
    """
    lengths = q.size(-2), k.size(-2), v.size(-2)
    if len(set(lengths)) > 1:
        found = ", ".join(map(str, lengths))
        raise ValueError(f"q, k, v have {found} tokens; expected the same number")
    if lengths[0] == 0:
        raise ValueError("q, k, v have 0 tokens; expected at least 1")
    return lengths[0]


def check_size(name: str, size: int, least: int = 1) -> None:
    """Raise ValueError unless size is an integer, and large enough."""
    if type(size) is not int or size < least:
        raise ValueError(f"{name} is {size!r}, expected an integer of at least {least}")
