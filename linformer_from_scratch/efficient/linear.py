"""Linear attention: a kernel in place of the softmax, and brackets in another order (chapter 09).

    output_i = φ(q_i)ᵀ Σ_j φ(k_j) v_jᵀ / φ(q_i)ᵀ Σ_j φ(k_j)
                                      Katharopoulos et al. 2020 (arXiv 2006.16236), section 3.2, φ = elu + 1

With sums over j ≤ i it is causal, and the two sums are all that has to be kept of the past.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.common.checks import graph_is_written
from linformer_from_scratch.efficient.blocks import (
    check_same_length,
    from_blocks,
    in_blocks,
    self_attention_in_float32,
)

CHUNK = 64  # tokens whose scores are held at once if causal
LOWEST = -69.0  # where φ stops: 1 / e⁻⁶⁹ is far from the largest float32, so that gradients are finite


def elu_plus_one(x: Tensor) -> Tensor:
    """φ(x) = elu(x) + 1, which is positive: x + 1 above zero, eˣ below, and e⁻⁶⁹ below -69. Shape: as x."""
    if graph_is_written():
        return x.clamp(LOWEST, 0).exp() + x.relu()
    return _EluPlusOne.apply(x)


class _EluPlusOne(torch.autograd.Function):
    """φ with its derivative, min(φ, 1), which is faster than PyTorch's through the formula."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x.clamp(LOWEST, 0).exp_().add_(x.relu())  # elu(x) + 1 itself is rounded to 0 below -17

    @staticmethod
    def setup_context(context: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        context.save_for_backward(*inputs, output)

    @staticmethod
    def backward(context: Any, upstream: Tensor) -> Tensor:
        x, phi = context.saved_tensors
        return upstream * phi.clamp(max=1).masked_fill(x < LOWEST, 0)


@self_attention_in_float32
def linear_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Kernel attention with φ = elu + 1; no division by √d.

    Shape: q and k (..., n, d), v (..., n, d_v) -> (..., n, d_v)
    Raises: ValueError if q, k and v differ in n.
    Cost: 4 n·d² operations and 2 n·d more for the divisors; memory O(n·d).
    A query may lie as far below zero as it likes: a factor common to its features cancels. φ of a key stops
    at -69, so that no divisor is zero: keys below that, in all that a query attends to, count alike.
    Causal, it is exported for every n from CHUNK + 1 tokens on: PyTorch treats a single chunk apart.
    """
    q = q - q.detach().amax(dim=-1, keepdim=True).clamp(max=0)  # 0 unless all features are below zero
    return kernel_attention(elu_plus_one(q), elu_plus_one(k), v, causal)


def kernel_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Mix values by the products of non-negative features, each row divided by its sum.

    Shape: features q and k (..., n, m), v (..., n, d_v) -> (..., n, d_v)
    Raises: ValueError if q, k and v differ in n.
    """
    check_same_length(q, k, v)
    if causal:
        return _causal(q, k, v)
    mixed = q @ (k.mT @ v)  # the brackets: (..., m, d_v), and never (..., n, n)
    return mixed / (q @ k.sum(dim=-2)[..., None])


def _causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Token by token within a chunk, by the sums of all earlier chunks beyond it."""
    n = q.size(-2)
    q, k, v = (in_blocks(x, CHUNK) for x in (q, k, v))  # (..., chunks, CHUNK, m)
    near = (q @ k.mT).tril()
    states, sums = k.mT @ v, k.sum(dim=-2)[..., None]  # of each chunk: (..., m, d_v), (..., m, 1)
    states, sums = (_before(x) for x in (states, sums))  # of the earlier chunks
    mixed, divisors = near @ v + q @ states, near.sum(dim=-1, keepdim=True) + q @ sums
    mixed, divisors = from_blocks(mixed, n), from_blocks(divisors, n)
    return mixed / divisors


def _before(x: Tensor) -> Tensor:
    """Sums over earlier chunks; cumsum - x would keep rounding errors of what comes later."""
    return functional.pad(x, (0, 0, 0, 0, 1, 0)).cumsum(dim=-3)[..., :-1, :, :]


def linear_flops(n: int, d: int) -> int:
    """Operations of one head with d features, not causal."""
    return 4 * n * d * d + 2 * n * d
