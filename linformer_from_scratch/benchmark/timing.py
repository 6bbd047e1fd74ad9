"""Seconds of any callables, side by side: warm, synchronised, in shuffled turns, every sample kept."""

import random
import statistics
import time
from collections.abc import Callable, Mapping

import torch

Calls = Mapping[str, Callable[[], object]]
FLUSH_BYTES = 2**28  # more than any cache holds


def samples(
    calls: Calls, rounds: int, device: str = "cpu", before: Callable[[], object] | None = None
) -> dict[str, list[float]]:
    """Seconds of each call in each round: after a warm-up, rounds of one turn each, in shuffled order.

    On a GPU the time between two events on its stream; else the wall clock, and a GPU, if there is one, idle.

    Args:
        calls: name -> what is to be timed, with inputs that are there already.
        rounds: turns of each; the warm-up comes on top.
        device: "cpu" or "cuda", where the calls compute.
        before: called before each turn, outside of the clock; such as `flush(device)`.

    Raises: ValueError if rounds < 1.
    """
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}, expected at least 1")
    clock = _events if torch.device(device).type == "cuda" else _wall
    seconds = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name in random.sample([*calls], len(calls)):
            if before is not None:
                before()
            found = clock(calls[name])
            if turn:  # the first round warms up
                seconds[name].append(found)
    return seconds


def median_seconds(calls: Calls, rounds: int = 7) -> dict[str, float]:
    """Median seconds of each call, by the wall clock; rounds and errors as `samples`."""
    return {name: statistics.median(found) for name, found in samples(calls, rounds).items()}


def flush(device: str = "cpu") -> Callable[[], object]:
    """A call that drives everything else out of the caches: it writes more than they hold."""
    return torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=device).zero_


def _wall(call: Callable[[], object]) -> float:
    wait()
    start = time.perf_counter()
    call()
    wait()
    return time.perf_counter() - start


def _events(call: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    wait()
    return start.elapsed_time(end) / 1e3  # milliseconds


def wait() -> None:
    """Return when the GPU has finished all that it was given; at once where there is none."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
