"""A stream of random numbers of one's own: PyTorch's dropout draws from the only one that all code shares."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor


def standing(device: torch.device) -> dict[str, Tensor]:
    """The state of PyTorch's random numbers, of the CPU and of the device."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    if device.type == "mps":
        state["mps"] = torch.mps.get_rng_state()
    return state


def stand(state: Mapping[str, Tensor], device: torch.device) -> None:
    """Set that state; numbers of another kind of device are left alone."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
    if device.type == "mps" and "mps" in state:
        torch.mps.set_rng_state(state["mps"])


@contextmanager
def drawing(state: Mapping[str, Tensor], device: torch.device) -> Iterator[None]:
    """Inside, draw on from a state; afterwards all other random numbers are as if none had been drawn."""
    before = standing(device)
    try:
        stand(state, device)
        yield
    finally:
        stand(before, device)


def stream(seed: int, device: torch.device) -> dict[str, Tensor]:
    """The state with which a seed begins."""
    gpus = range(torch.cuda.device_count()) if device.type == "cuda" else ()
    with torch.random.fork_rng(gpus), drawing(standing(device), device):
        torch.default_generator.manual_seed(seed)  # the CPU's only: nothing waits for a GPU to start
        if device.type == "cuda":
            torch.cuda.manual_seed_all(seed)
        if device.type == "mps":
            torch.mps.manual_seed(seed)
        return standing(device)
