"""Kernel attention on exponentials of any size: none overflows, and no divisor is zero (chapter 09).

    output_i = Σ_j w_ij v_j / Σ_j w_ij,  w_ij = Σ_f exp(q_if + k_jf)

A number subtracted from feature f of all keys and added to feature f of all queries cancels, and so does one
that is subtracted from a whole query. With the largest exponent of the feature as the first and then that of
the query as the second, no exponential is above 1, every divisor is at least 1, and what is rounded to 0 is
some 10³⁸ times smaller than that.

If causal, the largest is that of the tokens so far, and no later token has any effect, not even by rounding.
A query meets the earlier keys of its chunk in pairs of neighbouring halves, of 1, 2, 4, … tokens: all keys of
the first half lie before all queries of the second. It meets earlier chunks as sums.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.common.checks import graph_is_written
from linformer_from_scratch.efficient.blocks import from_blocks, in_blocks
from linformer_from_scratch.efficient.linear import CHUNK, kernel_attention

HALVES = [2**i for i in range(CHUNK.bit_length() - 1)]  # 1, 2, 4, … CHUNK / 2
MOST_STEPS = 24  # of the sums over chunks, in a graph, which must hold for every number of chunks


def exponential_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Mix values by products of exponentials, each row divided by its sum.

    Shape: exponents q and k (..., n, m), v (..., n, d_v) -> (..., n, d_v)
    """
    if causal:
        return _causal(q, k, v)
    largest = k.detach().amax(dim=-2, keepdim=True)  # of each feature
    q = q + largest
    return kernel_attention((q - q.detach().amax(dim=-1, keepdim=True)).exp(), (k - largest).exp(), v)


def _causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    n = q.size(-2)
    counted = functional.pad(v, (0, 1), value=1.0)  # the divisor is the sum of weights, mixed as a value 1
    q, k, v = (in_blocks(x, CHUNK) for x in (q, k, counted))  # (..., chunks, CHUNK, m or d_v + 1)
    largest = _largest_so_far(k.detach())  # (..., chunks, CHUNK, m)
    top = (q.detach() + largest).amax(dim=-1, keepdim=True)  # subtracted last: no rounded sum is above it
    mixed = (q + k - top).exp().sum(dim=-1, keepdim=True) * v  # each token by itself
    for half in HALVES:
        mixed = mixed + _from_first_half(q, k, v, largest, top, half)
    mixed = from_blocks(mixed + _from_earlier_chunks(q, k, v, largest[..., -1, :], top), n)
    return mixed[..., :-1] * mixed[..., -1:].reciprocal()


def _largest_so_far(k: Tensor) -> Tensor:
    """The largest exponent of each feature up to each token. Shape: as k."""
    largest = k.clone(memory_format=torch.contiguous_format)
    for half in HALVES:
        pairs = largest.unflatten(-2, (-1, 2, half))
        pairs[..., 1, :, :].clamp_(min=pairs[..., 0, -1:, :])
    earlier = _one_later(largest[..., -1, :].cummax(dim=-2).values)
    return largest.clamp_(min=earlier[..., None, :])


def _from_first_half(q: Tensor, k: Tensor, v: Tensor, largest: Tensor, top: Tensor, half: int) -> Tensor:
    """What the second half of each pair attends to in the first; zeros for the first."""
    q, k, v, largest, top = (x.unflatten(-2, (-1, 2, half)) for x in (q, k, v, largest, top))
    reference = largest[..., 0, -1:, :]
    queries = (q[..., 1, :, :] + reference).sub_(top[..., 1, :, :]).exp_()
    keys = (k[..., 0, :, :] - reference).exp_()
    return functional.pad(queries @ keys.mT @ v[..., 0, :, :], (0, 0, half, 0)).flatten(-3, -2)


def _from_earlier_chunks(q: Tensor, k: Tensor, v: Tensor, largest: Tensor, top: Tensor) -> Tensor:
    """By running sums over chunks, each step reaching twice as far.

    Shape: largest (..., chunks, m), of each chunk and those before it -> (..., chunks, CHUNK, d_v + 1)
    """
    sums = (k - largest[..., None, :]).exp().mT @ v  # (..., chunks, m, d_v + 1)
    chunks = sums.size(-3)
    steps = MOST_STEPS if graph_is_written() else (chunks - 1).bit_length()
    for step in [2**i for i in range(steps)]:
        absent = torch.arange(chunks, device=q.device)[:, None] < step
        shrink = (largest.roll(step, dims=-2).masked_fill(absent, -math.inf) - largest).exp()
        sums = torch.addcmul(sums, shrink[..., None], sums.roll(step, dims=-3))
    before = functional.pad(sums, (0, 0, 0, 0, 1, -1))
    return (q + _one_later(largest)[..., None, :]).sub_(top).exp_() @ before


def _one_later(largest: Tensor) -> Tensor:
    """Shift by one chunk: each gets the value of the chunk before it, the first -∞."""
    return functional.pad(largest, (0, 0, 1, -1), value=-math.inf)
