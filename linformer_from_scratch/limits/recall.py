"""Copying at a fixed k: why no map of low rank copies."""

import math


def copy_error(n: int, rank: int) -> float:
    """‖Π − the best map of that rank‖ / ‖Π‖ for a permutation Π of n tokens: all its singular values are 1.

    Frobenius norm (Eckart and Young 1936).

    Raises: ValueError if rank does not lie in 0 … n.
    """
    if not 0 <= rank <= n:
        raise ValueError(f"rank is {rank}, expected 0 … n={n}")
    return math.sqrt(1 - rank / n)
