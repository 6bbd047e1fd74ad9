"""What a machine can do at best: operations of a large product, bytes of a large copy."""

from collections.abc import Callable

import torch

from linformer_from_scratch.benchmark.timing import Calls, both_clocks
from linformer_from_scratch.common.checks import check_size

SIDE, NUMBERS = {"cpu": 2048, "cuda": 8192}, {"cpu": 2**24, "cuda": 2**28}  # large enough for either
SMALL = 256  # side of a product that shows how long a large one takes
LONG_S = 1.0  # seconds; a product that takes longer is not made


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
        side: of the two square matrices; by default large, but small where a large product takes long, as in
            bfloat16 on many CPUs.
        busy: count the seconds that the process kept processors busy, as in `median_seconds`.
    """
    side = _affordable(dtype, device) if side is None else check_size("side", side)
    return 2 * side**3 / min(_seconds({"product": _product(side, dtype, device)}, rounds, device, busy))


def copy_ceiling(
    device: str = "cpu", rounds: int = 15, numbers: int | None = None, busy: bool = False
) -> float:
    """Bytes per second, read plus written, of a large copy; the best of some rounds.

    Of random numbers: zeros that were never written can all share one page of memory.

    Args:
        busy: as in `matmul_ceiling`.
    """
    source = torch.rand(numbers or NUMBERS[torch.device(device).type], device=device)
    target = torch.ones_like(source)
    return 2 * source.nbytes / min(_seconds({"copy": lambda: target.copy_(source)}, rounds, device, busy))


def _product(side: int, dtype: torch.dtype, device: str) -> Callable[[], torch.Tensor]:
    a, b = torch.randn(2, side, side, device=device).to(dtype)
    return lambda: a @ b


def _affordable(dtype: torch.dtype, device: str) -> int:
    """The side of a large product, or of a small one where the large one would take long."""
    large = SIDE[torch.device(device).type]
    if torch.device(device).type != "cpu":
        return large
    seconds = min(_seconds({"product": _product(SMALL, dtype, device)}, 5, device, busy=False))
    return SMALL if seconds * (large / SMALL) ** 3 > LONG_S else large


def _seconds(call: Calls, rounds: int, device: str, busy: bool) -> list[float]:
    """Of one call, in each round, by one of two clocks."""
    (pairs,) = both_clocks(call, rounds, device).values()
    return [pair[busy] for pair in pairs]
