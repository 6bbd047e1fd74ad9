"""The whole family side by side: each relative with its size, its cost, and what it can do (chapter 09)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.efficient.blocks import whole_blocks
from linformer_from_scratch.efficient.hierarchical import hierarchical_attention, hierarchical_flops
from linformer_from_scratch.efficient.linear import linear_attention, linear_flops
from linformer_from_scratch.efficient.nystrom import nystrom_attention, nystrom_flops
from linformer_from_scratch.efficient.performer import (
    orthogonal_gaussian,
    performer_attention,
    performer_flops,
)
from linformer_from_scratch.efficient.sliding_window import sliding_window_attention, sliding_window_flops
from linformer_from_scratch.efficient.sparse import sparse_attention, sparse_flops
from linformer_from_scratch.efficient.tiled import tiled_attention
from linformer_from_scratch.projections import MeanPooling

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]  # (q, k, v), each (..., n, d) -> as v


def _every(n: int) -> range:
    return range(1, n + 1)


@dataclass(frozen=True)
class Relative:
    """One way to attend.

    Args:
        name: what it is called.
        size: what its size counts; "" where it has none.
        build: n, d, size -> a function or module of q, k, v; takes causal=True where that is possible.
        flops: n, d, size -> operations of one head with d features.
        sizes: n -> the sizes that make sense, ascending; by default every one from 1 to n.
        causal: whether a token can be kept from reading later ones.
        fixed_length: whether it is built for a length.
        exact: whether it is softmax attention, to rounding.
    """

    name: str
    size: str
    build: Callable[..., Attend]
    flops: Callable[[int, int, int], int]
    sizes: Callable[[int], Iterable[int]] = _every
    causal: bool = True
    fixed_length: bool = False
    exact: bool = False


def effective_map(attend: Attend, q: Tensor, k: Tensor) -> Tensor:
    """The n×n matrix that a relative multiplies the values with: what it makes of the identity.

    Shape: q and k (..., n, d) -> (..., n, n)
    """
    n = k.size(-2)
    identity = torch.eye(n, dtype=k.dtype, device=k.device).expand(*k.shape[:-2], n, n)
    return attend(q, k, identity)


def largest_size(relative: Relative, n: int, d: int, operations: float) -> int | None:
    """The largest size within this number of operations per head; None if every size costs more."""
    affordable = [size for size in relative.sizes(n) if relative.flops(n, d, size) <= operations]
    return affordable[-1] if affordable else None


class WithMatrix(nn.Module):
    """A relative that needs a matrix, which is saved and moved with the layer.

    Shape: q, k, v (..., n, d) -> as v
    """

    matrix: Tensor

    def __init__(self, attend: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor], matrix: Tensor):
        super().__init__()
        self.attend = attend
        self.register_buffer("matrix", matrix)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """As the relative does."""
        return self.attend(q, k, v, self.matrix.to(q.device))


def linformer_flops(n: int, d: int, k: int) -> int:
    """Operations of one head with d features: E K, F V, scores and mixing; E and F dense."""
    return 8 * n * k * d


def _pooled(q: Tensor, k: Tensor, v: Tensor, pool: MeanPooling) -> Tensor:
    return scaled_dot_product_attention(q, pool(k), pool(v))


FAMILY = (
    Relative(
        "sliding window",
        "tokens on either side",
        lambda n, d, size, causal=False: partial(sliding_window_attention, window=size, causal=causal),
        sliding_window_flops,
    ),
    Relative(
        "two levels",
        "tokens of a block",
        lambda n, d, size, causal=False: partial(hierarchical_attention, block=size, causal=causal),
        hierarchical_flops,
        lambda n: [block for block in _every(n) if block * block >= n],  # below √n smaller is dearer
    ),
    Relative(
        "strided + global",
        "tokens of a class",
        lambda n, d, size, causal=False: partial(
            sparse_attention, stride=whole_blocks(n, size), causal=causal
        ),
        lambda n, d, size: sparse_flops(n, d, whole_blocks(n, size)),
        lambda n: sorted({whole_blocks(n, stride) for stride in _every(n)}),
    ),
    Relative(
        "Linformer, mean pooling",
        "slots k",
        lambda n, d, size: partial(_pooled, pool=MeanPooling(n, size)),
        lambda n, d, size: 4 * n * size * d + 2 * n * d,  # scores and mixing, and one sum over K and V
        causal=False,
        fixed_length=True,
    ),
    Relative(
        "Nyström",
        "landmarks",
        lambda n, d, size: partial(nystrom_attention, landmarks=size),
        nystrom_flops,
        lambda n: range(1, max(n, 2)),  # fewer than tokens
        causal=False,
    ),
    Relative(
        "linear",
        "",
        lambda n, d, size, causal=False: partial(linear_attention, causal=causal),
        lambda n, d, size: linear_flops(n, d),
        lambda n: [1],
    ),
    Relative(
        "Performer",
        "random features",
        lambda n, d, size, causal=False: WithMatrix(
            partial(performer_attention, causal=causal), orthogonal_gaussian(size, d)
        ),
        performer_flops,
    ),
    Relative(
        "tiled exact",
        "",
        lambda n, d, size, causal=False: partial(tiled_attention, causal=causal),
        lambda n, d, size: 4 * n * n * d,
        lambda n: [1],
        exact=True,
    ),
)
