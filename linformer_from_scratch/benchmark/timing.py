"""Seconds of any callables, side by side: warm, synchronised, in shuffled turns, every sample kept."""

import random
import statistics
import time
from collections.abc import Callable, Mapping

import torch

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.common.memory import is_out_of_memory

Calls = Mapping[str, Callable[[], object]]
FLUSH_BYTES = 2**28  # more than most caches hold


def samples(
    calls: Calls, rounds: int, device: str = "cpu", before: Callable[[], object] | None = None
) -> dict[str, list[float]]:
    """Seconds of each call in each round, as `both_clocks` measures them."""
    pairs_of = both_clocks(calls, rounds, device, before)
    return {name: [seconds for seconds, _ in pairs] for name, pairs in pairs_of.items()}


def both_clocks(
    calls: Calls,
    rounds: int,
    device: str = "cpu",
    before: Callable[[], object] | None = None,
    lost: Callable[[str], object] | None = None,
) -> dict[str, list[tuple[float, float]]]:
    """Seconds of each call in each round, and seconds that this process kept processors busy meanwhile.

    After a warm-up, rounds in which each call has one turn, in shuffled order. On a GPU these are the seconds
    between two events on its stream, the queue of its work; otherwise those of the wall clock, with any GPU
    idle. (torch.utils.benchmark keeps no samples by round, does not take turns and flushes no caches.)

    Args:
        calls: name -> what is to be timed, with inputs that are there already.
        rounds: turns of each; the warm-up comes on top.
        device: "cpu" or "cuda", where the calls compute.
        before: called before each turn, such as `flush(device)`; it has finished before the clock starts.
        lost: called with the name of a call that runs out of memory; the others go on. By default the error
            is raised.

    Raises: ValueError if rounds is not a positive integer.
    """
    rounds = check_size("rounds", rounds)
    shuffled = random.Random()  # not the one that all code shares
    clock = _events if torch.device(device).type == "cuda" else _wall
    pairs_of: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name in shuffled.sample([*pairs_of], len(pairs_of)):
            if before is not None:
                before()
            wait()
            sample = _turn(clock, calls[name], lost is not None)
            if sample is None:
                del pairs_of[name]
                if lost is not None:
                    lost(name)
            elif turn:  # the first round warms up
                pairs_of[name].append(sample)
    return pairs_of


def _turn(
    clock: Callable[[Callable], float], call: Callable[[], object], may_fail: bool
) -> tuple[float, float] | None:
    """Seconds by both clocks; None if memory ran out, with everything released that the call held."""
    busy = time.process_time()
    try:
        return clock(call), time.process_time() - busy
    except (MemoryError, RuntimeError) as error:
        if may_fail and is_out_of_memory(error):
            return None
        raise


def median_seconds(calls: Calls, rounds: int = 7, busy: bool = False) -> dict[str, float]:
    """Median seconds of each call, by the wall clock; rounds and errors as `samples`.

    Args:
        busy: count instead the seconds that this process kept processors busy, added up over its threads.
            With one thread these are the call's own: time taken by other programs does not count.
    """
    pairs_of = both_clocks(calls, rounds)
    return {name: statistics.median(pair[busy] for pair in pairs) for name, pairs in pairs_of.items()}


def flush(device: str = "cpu", size: int = FLUSH_BYTES) -> Callable[[], object]:
    """A call that clears the caches by writing more than most of them hold."""
    return torch.empty(size, dtype=torch.uint8, device=device).zero_


def _wall(call: Callable[[], object]) -> float:
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
    """Wait until the GPU has finished its work; return at once where there is none."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
