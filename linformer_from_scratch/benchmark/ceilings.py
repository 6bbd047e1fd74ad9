"""What a machine can do at best: operations of a large product, bytes of a large copy."""

import torch

from linformer_from_scratch.benchmark.timing import Calls, both_clocks

SIDE, NUMBERS = {"cpu": 2048, "cuda": 8192}, {"cpu": 2**24, "cuda": 2**28}  # large enough for either
LONG_S = 2.0  # a round of so many seconds is not repeated


def matmul_ceiling(
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    rounds: int = 15,
    side: int | None = None,
    busy: bool = False,
) -> float:
    """Floating-point operations per second of a large matrix product, one multiply-add counted as two.

    The best of some rounds: a ceiling is what the machine can do when nothing disturbs it.

    Args:
        busy: take the seconds in which the process was at work, as in `median_seconds`.
    """
    side = side or SIDE[torch.device(device).type]
    a, b = torch.randn(2, side, side, device=device).to(dtype)
    return 2 * side**3 / min(_seconds({"product": lambda: a @ b}, rounds, device, busy))


def copy_ceiling(
    device: str = "cpu", rounds: int = 15, numbers: int | None = None, busy: bool = False
) -> float:
    """Bytes per second, read plus written, of a large copy; the best of some rounds.

    Of random numbers: zeros that nobody has written yet can be one page of memory that stands for all.

    Args:
        busy: as in `matmul_ceiling`.
    """
    source = torch.rand(numbers or NUMBERS[torch.device(device).type], device=device)
    target = torch.ones_like(source)
    return 2 * source.nbytes / min(_seconds({"copy": lambda: target.copy_(source)}, rounds, device, busy))


def _seconds(call: Calls, rounds: int, device: str, busy: bool) -> list[float]:
    """Of one call, by one of two clocks; one round where it is long, as bfloat16's is on many CPUs."""
    (pairs,) = both_clocks(call, 1, device).values()
    if pairs[0][0] < LONG_S:
        (pairs,) = both_clocks(call, rounds, device).values()
    return [pair[busy] for pair in pairs]
