"""Seconds and bytes of any callable, and what this machine can do at best."""

import os
import random
import statistics
import time
from collections.abc import Callable, Mapping

import torch
from torch.profiler import ProfilerActivity, profile

SIDE, NUMBERS = 2048, 2**24  # of the matrices multiplied and of the vector copied to find the ceilings


def median_seconds(calls: Mapping[str, Callable[[], object]], rounds: int = 7) -> dict[str, float]:
    """Median seconds of each call: after a warm-up, rounds in which each has one turn, in shuffled order.

    Raises: ValueError if rounds < 1.
    """
    if rounds < 1:
        raise ValueError(f"rounds is {rounds}, expected at least 1")
    seconds = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name in random.sample([*calls], len(calls)):
            _wait()
            start = time.perf_counter()
            calls[name]()
            _wait()
            if turn:  # the first round warms up
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def peak_bytes(call: Callable, *arguments: object) -> int:
    """Bytes that PyTorch held at most during call(*arguments) on the CPU, beyond what it held before."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else the profiler writes to the terminal
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        result = call(*arguments)
    del result  # only now, so that its bytes count
    events = recorded.profiler.kineto_results.events()
    changes = [(event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"]
    held = peak = 0
    for _, change in sorted(changes, key=lambda moment: moment[0]):
        held += change
        peak = max(peak, held)
    return peak


def matmul_ceiling(dtype: torch.dtype = torch.float32, device: str = "cpu") -> float:
    """Floating-point operations per second of a large matrix product, one multiply-add counted as two."""
    a, b = torch.randn(2, SIDE, SIDE, device=device).to(dtype)
    return 2 * SIDE**3 / median_seconds({"product": lambda: a @ b}, rounds=3)["product"]


def copy_ceiling(device: str = "cpu") -> float:
    """Bytes per second, read plus written, of a large copy."""
    source = torch.zeros(NUMBERS, device=device)
    target = torch.ones_like(source)
    return 2 * source.nbytes / median_seconds({"copy": lambda: target.copy_(source)}, rounds=5)["copy"]


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
