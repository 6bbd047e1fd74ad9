"""Copying at a fixed k: why no map of low rank copies."""

import math

from linformer_from_scratch.common.checks import check_size


def copy_error(n: int, rank: int) -> float:
    """‖Π − the best map of that rank‖ / ‖Π‖ for a permutation Π of n tokens: all its singular values are 1.

    Frobenius norm (Eckart and Young 1936).

    Raises: ValueError if rank does not lie in 0 … n.
    """
    n = check_size("n", n)
    return math.sqrt(1 - check_size("rank", rank, 0, n) / n)
