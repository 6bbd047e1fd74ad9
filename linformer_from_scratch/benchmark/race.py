"""Variants side by side: each is built and its peak of memory measured, then all take turns."""

import gc
from collections.abc import Callable, Mapping

import torch

from linformer_from_scratch.benchmark.memory import available_bytes, peak_bytes
from linformer_from_scratch.benchmark.timing import FLUSH_BYTES, both_clocks, flush
from linformer_from_scratch.common.memory import is_out_of_memory

Make = Callable[[], Callable[[], object]]  # builds a layer and its input, returns the call to measure


def race(
    variants: Mapping[str, Make],
    rounds: int,
    device: str = "cpu",
    needs: Mapping[str, int] | None = None,
    flushed: int = FLUSH_BYTES,
) -> dict:
    """Seconds of every round by both clocks and bytes at the peak, by name; and what ran out of memory.

    Args:
        variants: name -> what builds its call.
        rounds: turns of each.
        device: "cpu" or "cuda".
        needs: bytes that a variant is known to need; more than is available counts as out of memory, since
            Linux may grant more than it has, and then kill the process.
        flushed: bytes written before each turn, so that none of its numbers are in a cache.
    """
    calls: dict[str, Callable[[], object]] = {}
    held: dict[str, int] = {}
    out_of_memory: list[str] = []
    _tidy(device)  # of the race before
    clean = flush(device, flushed)  # while there is room

    def drop(name: str) -> None:
        out_of_memory.append(name)
        calls.pop(name, None)
        held.pop(name, None)
        _tidy(device)

    for name, make in variants.items():
        try:
            _check_available((needs or {}).get(name, 0), device)
            calls[name], held[name] = _with_peak(make, device)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        if name not in calls:  # here, where the error no longer holds any tensors
            drop(name)
    samples = both_clocks(calls, rounds, device, clean, lost=drop)
    return {
        "seconds": {name: [_rounded(s) for s, _ in pairs] for name, pairs in samples.items()},
        "busy": {name: [_rounded(b) for _, b in pairs] for name, pairs in samples.items()},
        "bytes": held,
        "out_of_memory": out_of_memory,
    }


def _with_peak(make: Make, device: str) -> tuple[Callable[[], object], int]:
    call = make()
    call()  # one-time set-up does not count
    return call, peak_bytes(call, device=device)


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.4g}")  # small files


def _check_available(needed: int, device: str) -> None:
    available = available_bytes(device)
    if available is not None and needed > available:
        raise MemoryError(f"{needed} bytes needed, {available} available")


def _tidy(device: str) -> None:
    gc.collect()
    if torch.device(device).type == "cuda":
        torch.cuda.empty_cache()
