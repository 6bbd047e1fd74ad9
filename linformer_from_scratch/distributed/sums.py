"""A sum over ranks that gradients pass through."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, distributed

from linformer_from_scratch.common.ranks import Group, assert_same_across_ranks, world_size

Reduce = Callable[[Tensor, Group], Tensor]  # (this rank's part, group) -> the sum over the ranks


class _SumOverRanks(torch.autograd.Function):
    """y = Σ_r x_r on every rank. Every rank's loss depends on every x_r, so gradients are summed as well."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.group = group
        total = x.clone(memory_format=torch.contiguous_format)  # all_reduce writes into what it is given
        distributed.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return sum_over_ranks(gradient, ctx.group), None


def sum_over_ranks(x: Tensor, group: Group = None) -> Tensor:
    """The sum of what all ranks of a group hold, on each of them; gradients pass through it.

    The loss is that of all ranks together, so the gradient of one rank's x is the sum over ranks of
    ∂loss/∂sum: one all-reduce forward, one backward. The ranks' x must have one shape.

    Shape: x (...) -> (...)
    """
    return x if world_size(group) == 1 else _SumOverRanks.apply(x, group)


class AgreedSum:
    """Sums over ranks of parts that all ranks describe alike; one exchange each while that stays the same.

    Unlike tensors must not be summed: that ends in a crash or in wrong numbers. So every rank sends as many
    numbers as were agreed on last, and one more, which is 1 where its part is now described differently. All
    see the sum of these; if it is not 0, they compare descriptions in two small exchanges, agree, and sum
    again. The first sum begins with that comparison. On GPUs, reading the number waits for the sum.

    Args:
        group: the ranks.
        check: whether to compare at all.
    """

    def __init__(self, group: Group = None, check: bool = True):
        self.group, self.check = group, check
        self.reduce: Reduce = sum_over_ranks
        self.agreed: dict[str, object] = {}
        self.agreed_part = torch.empty(0)  # size and type of the part that was agreed on, without storage

    def __call__(self, part: Tensor, **description: object) -> Tensor:
        """The sum of the parts, where the description is the same on all ranks and says how large they are.

        Raises: ValueError on every rank, with two descriptions, if they differ.
        """
        if world_size(self.group) == 1 or not self.check:
            return self.reduce(part, self.group)
        description |= {"dtype": part.dtype, "gradients": part.requires_grad}
        if self.agreed:
            differs = description != self.agreed
            own = torch.zeros_like(self.agreed_part, device=part.device) if differs else part.flatten()
            total = self.reduce(torch.cat([own, own.new_tensor([differs])]), self.group)
            if not total[-1]:
                return total[:-1].view_as(part)
        assert_same_across_ranks(self.group, **description)
        self.agreed = description
        self.agreed_part = torch.empty(part.numel(), dtype=part.dtype, device="meta")
        return self.reduce(part, self.group)
