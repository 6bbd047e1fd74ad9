"""Random inputs of exercises: the same for the same seed."""

import torch
from torch import Tensor


def normal(seed: int, *sizes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """Standard normal tensors of these sizes."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(*size, generator=generator) for size in sizes)
