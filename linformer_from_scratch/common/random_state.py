"""Random draws that ignore PyTorch's global settings, and random states that can be restored.

PyTorch's dropout draws from the one stream of random numbers that all code shares; a trainer that must resume
exactly where it stopped keeps the state of its own stream.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Generator, Tensor


def normal(generator: Generator | None, *sizes: int) -> Tensor:
    """N(0, 1) in float32, whatever the default dtype: another dtype would draw other numbers.

    Shape: sizes, on the generator's device; without a generator, from PyTorch's shared stream on the CPU
    """
    return torch.randn(sizes, generator=generator, dtype=torch.float32, device=_device_of(generator))


def uniform(generator: Generator, *sizes: int) -> Tensor:
    """Uniform numbers from 0 to 1, in float32. Shape: as normal."""
    return torch.rand(sizes, generator=generator, dtype=torch.float32, device=_device_of(generator))


def permutations(generator: Generator, *sizes: int) -> Tensor:
    """0 … size - 1 along the last axis, in random order; the same with every sort. Shape: as normal."""
    return uniform(generator, *sizes).argsort(dim=-1, stable=True)


def integers(generator: Generator, low: int, high: int, *sizes: int) -> Tensor:
    """Integers from low to high - 1. Shape: as normal."""
    return torch.randint(low, high, sizes, generator=generator, device=_device_of(generator))


def get_rng_state(device: torch.device) -> dict[str, Tensor]:
    """The state of PyTorch's random numbers, of the CPU and of the device."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    if device.type == "mps":
        state["mps"] = torch.mps.get_rng_state()
    return state


def set_rng_state(state: Mapping[str, Tensor], device: torch.device) -> None:
    """Set that state; states of other kinds of device are ignored."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
    if device.type == "mps" and "mps" in state:
        torch.mps.set_rng_state(state["mps"])


@contextmanager
def use_rng_state(state: Mapping[str, Tensor], device: torch.device) -> Iterator[None]:
    """Inside, draw from this state; afterwards the global state is as it was before."""
    before = get_rng_state(device)
    try:
        set_rng_state(state, device)
        yield
    finally:
        set_rng_state(before, device)


def seeded(seed: int, device: torch.device) -> dict[str, Tensor]:
    """The state that a seed sets."""
    gpus = range(torch.cuda.device_count()) if device.type == "cuda" else ()
    with torch.random.fork_rng(gpus), use_rng_state(get_rng_state(device), device):
        torch.default_generator.manual_seed(seed)  # the CPU's only: no GPU is initialized for it
        if device.type == "cuda":
            torch.cuda.manual_seed_all(seed)
        if device.type == "mps":
            torch.mps.manual_seed(seed)
        return get_rng_state(device)


def _device_of(generator: Generator | None) -> torch.device | str:
    return generator.device if generator else "cpu"
