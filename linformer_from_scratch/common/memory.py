"""Whether memory ran out."""

import torch


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out: on the CPU, on a GPU, or in one of a GPU's libraries."""
    signs = "allocate memory", "out of memory", "ALLOC_FAILED"
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and any(sign in str(error) for sign in signs)
    )
