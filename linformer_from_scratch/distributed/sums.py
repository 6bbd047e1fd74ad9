"""A sum over ranks that gradients pass through."""

import torch
from torch import Tensor, distributed

from linformer_from_scratch.training.ranks import Group, world_size


class _SumOverRanks(torch.autograd.Function):
    """y = Σ_r x_r on every rank. Every rank's loss depends on every x_r, so gradients are summed as well."""

    @staticmethod
    def forward(ctx, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        total = x.clone(memory_format=torch.contiguous_format)  # all_reduce writes into what it is given
        distributed.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        return sum_over_ranks(gradient, ctx.group), None


def sum_over_ranks(x: Tensor, group: Group = None) -> Tensor:
    """The sum of what all ranks of a group hold, on each of them; gradients pass through it.

    The loss is that of all ranks together, so the gradient of one rank's x is the sum over ranks of
    ∂loss/∂sum: one all-reduce forward, one backward. The ranks' x must have one shape.

    Shape: x (...) -> (...)
    """
    return x if world_size(group) == 1 else _SumOverRanks.apply(x, group)
