"""Texts shorter than the one that E was built for."""

from torch import Tensor


def empty_slots(E: Tensor, n: int) -> int:
    """Slots that read none of the first n tokens. Shape: E (proj_dim, seq_len) -> a count."""
    return int((E[:, :n] == 0).all(dim=1).sum())
