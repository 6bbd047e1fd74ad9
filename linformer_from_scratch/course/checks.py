"""Checks that many modules share: is this a size, is this call being traced?"""

import torch


def check_size(name: str, size: int, least: int = 1) -> None:
    """Raise ValueError unless size is an integer, and large enough."""
    if type(size) is not int or size < least:
        raise ValueError(f"{name} is {size!r}, expected an integer of at least {least}")


def graph_is_written() -> bool:
    """Whether PyTorch records a program that is to hold for every n: traced, exported or compiled."""
    return torch.compiler.is_compiling() or torch.jit.is_tracing()


def at_most(n: int, size: int) -> int:
    """min(n, size), for a size that says the same as n beyond it.

    In a graph the size stays: a comparison would be recorded for one n only.
    """
    return size if graph_is_written() else min(n, size)
