"""Sparse: every stride-th token, and a few that read and are read by all (chapter 09).

i attends to j if stride divides i − j, or j < num_global, or i < num_global
          strides: Child et al. 2019 (Sparse Transformer, arXiv 1904.10509), section 4.3
          global tokens: Beltagy et al. 2020 (Longformer, arXiv 2004.05150), section 3.1
"""

import math

import torch
from torch import Tensor

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.common.checks import at_most, check_size
from linformer_from_scratch.efficient.blocks import (
    from_blocks,
    in_blocks,
    self_attention_in_float32,
    whole_blocks,
)


@self_attention_in_float32
def sparse_attention(
    q: Tensor, k: Tensor, v: Tensor, stride: int, num_global: int = 1, causal: bool = False
) -> Tensor:
    """Softmax attention over every stride-th token and over the first num_global ones, which read all.

    Tokens with the same remainder i mod stride form a class, and read each other.

    Shape: q and k (..., n, d), v (..., n, d_v) -> (..., n, d_v)
    Raises: ValueError if stride < 1 or num_global < 0, or if q, k and v differ in n.
    Cost: 4 n (n / stride + 2 num_global) d operations; with stride = √n O(n√n), as in table 1 of the paper.
    """
    n = q.size(-2)
    stride = at_most(n, check_size("stride", stride))
    num_global = at_most(n, check_size("num_global", num_global, least=0))
    scaled = q / math.sqrt(q.size(-1))
    queries, keys, values = (in_blocks(x, stride).transpose(-3, -2) for x in (scaled, k, v))
    i = torch.arange(whole_blocks(n, stride) * stride, device=q.device).unflatten(0, (-1, stride)).mT
    j = torch.arange(num_global, device=q.device)
    i, own, shared = i[..., None], i[:, None, :], j  # tokens, those of their class, the global ones
    in_class = own < n  # and no padding
    to_shared = (i - shared) % stride != 0  # none twice
    if causal:  # the rows that are kept below come after every global token
        in_class = in_class & (own <= i)

    scores = queries @ keys.mT, queries @ k[..., None, :num_global, :].mT
    masked = (s.masked_fill(~m, -math.inf) for s, m in zip(scores, (in_class, to_shared), strict=True))
    weights = torch.cat([*masked], dim=-1).softmax(dim=-1)
    own_weights, shared_weights = weights.split([keys.size(-2), num_global], dim=-1)
    output = own_weights @ values + shared_weights @ v[..., None, :num_global, :]
    output = from_blocks(output.transpose(-3, -2), n)[..., num_global:, :]
    mask = may_read(j[:, None], torch.arange(n, device=q.device), stride, num_global, causal)
    return torch.cat([scaled_dot_product_attention(q[..., :num_global, :], k, v, mask), output], dim=-2)


def sparse_mask(n: int, stride: int, num_global: int = 1, causal: bool = False) -> Tensor:
    """Which token may read which, as an n×n mask: what the function above never stores.

    Shape: (n, n)
    Raises: ValueError if a size is not an integer, n or stride is below 1, or num_global below 0.
    """
    token = torch.arange(check_size("n", n))
    sizes = check_size("stride", stride), check_size("num_global", num_global, least=0)
    return may_read(token[:, None], token, *sizes, causal)


def may_read(i: Tensor, j: Tensor, stride: int, num_global: int, causal: bool) -> Tensor:
    """Whether token i may read token j."""
    mask = ((i - j) % stride == 0) | (j < num_global) | (i < num_global)
    return mask & (j <= i) if causal else mask


def sparse_flops(n: int, d: int, stride: int, num_global: int = 1) -> int:
    """Operations of one head with d features, those on padding included."""
    in_class = whole_blocks(n, stride)
    return 4 * in_class * stride * (in_class + num_global) * d + 4 * num_global * n * d
