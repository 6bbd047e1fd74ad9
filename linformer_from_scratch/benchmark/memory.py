"""Bytes that a call needs at its peak, beyond what was held before."""

import os
from collections.abc import Callable
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile


def peak_bytes(call: Callable, *arguments: object, device: str = "cpu") -> int:
    """Bytes that PyTorch held at most during call(*arguments) on the device, beyond what it held before."""
    return _on_gpu(call, *arguments) if torch.device(device).type == "cuda" else _on_cpu(call, *arguments)


def available_bytes(device: str = "cpu") -> int | None:
    """Bytes that could still be allocated; None where the system does not say."""
    if torch.device(device).type == "cuda":
        return torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), None)


def _on_gpu(call: Callable, *arguments: object) -> int:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call(*arguments)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def _on_cpu(call: Callable, *arguments: object) -> int:
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else the profiler writes to the terminal
    # Nothing is accumulated here; without the word, older PyTorch warns that nothing is.
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as recorded:
        call(*arguments)
    events = recorded.profiler.kineto_results.events()
    changes = [(event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]"]
    held = peak = 0
    for _, change in sorted(changes, key=lambda moment: moment[0]):
        held += change
        peak = max(peak, held)
    return peak
