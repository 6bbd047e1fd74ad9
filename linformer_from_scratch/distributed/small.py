"""Linformer's layer on shards at its smallest: chapter 11 on one screen. sequence.py is the real one."""

import copy

import torch
from torch import Tensor, distributed

from linformer_from_scratch.common.ranks import own_part
from linformer_from_scratch.distributed.sequence import shard_projection
from linformer_from_scratch.linformer import LinformerAttention


class SumOverRanks(torch.autograd.Function):
    """y = x_0 + x_1 + … on every rank. All losses depend on every x_s, so gradients are summed as well."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        """The sum, on every rank."""
        total = x.clone()  # all_reduce writes into what it is given
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        """The same sum, of the gradients."""
        return SumOverRanks.apply(gradient)


class ShardedLinformer(LinformerAttention):
    """Chapter 06's layer on this rank's tokens, with this rank's columns of E and F."""

    def slots(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Compressed keys and values of the whole text."""
        keys, values = SumOverRanks.apply(torch.stack(super().slots(x)))
        return keys, values


def updated(whole: LinformerAttention, x: Tensor, wanted: Tensor, rate: float) -> ShardedLinformer:
    """This rank's part of a layer after one step of gradient descent on texts that all ranks share."""
    E, F = copy.deepcopy((whole.E, whole.F))
    layer = ShardedLinformer(whole.query.in_features, whole.num_heads, E, F).to(x.dtype)
    layer.load_state_dict(whole.state_dict())
    for matrix in (layer.E, layer.F):
        shard_projection(matrix)  # keeps this rank's columns
    loss = (layer(own_part(x)) - own_part(wanted)).square().sum()  # of this rank's tokens
    loss.backward()
    for name, weight in layer.named_parameters():
        if not name.startswith(("E.", "F.")):  # every rank holds a copy of the others
            distributed.all_reduce(weight.grad)
    torch.optim.SGD(layer.parameters(), rate).step()
    return layer
