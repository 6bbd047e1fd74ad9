"""Sliding window: every token attends to its neighbours only (chapter 09).

output_i = Σ_j softmax_j(q_i · k_j / √d) v_j over |i − j| ≤ window
                                      Beltagy et al. 2020 (Longformer, arXiv 2004.05150), section 3.1
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.attention import check_features
from linformer_from_scratch.common.checks import at_most, check_size
from linformer_from_scratch.efficient.blocks import check_same_length, from_blocks, in_blocks, whole_blocks

ALONE = 0  # the window of a mask in which every token attends to itself


def sliding_window_attention(q: Tensor, k: Tensor, v: Tensor, window: int, causal: bool = False) -> Tensor:
    """Softmax attention over the tokens at most `window` away; only earlier ones and itself if causal.

    Queries are cut into blocks of `window` tokens; a block's keys lie in it and in the two beside it. Each
    block is then a small attention with a mask, for PyTorch's fused kernel, which can be differentiated once.

    Shape: q and k (..., n, d), v (..., n, d_v) -> (..., n, d_v)
    Raises: ValueError if window < 1, if q, k and v differ in n, or q and k in d, or if they are not floating
        point.
    Cost: 12 n·window·d operations, 8 if causal; memory O(n·window). A window beyond n costs as one of n.
    """
    n = check_same_length(q, k, v)
    check_features(q, k)
    window = at_most(n, check_size("window", window))  # no token is farther away
    beside = (-1, 0) if causal else (-1, 0, 1)  # blocks that a block may read, itself among them
    leading = torch.broadcast_shapes(*(x.shape[:-2] for x in (q, k, v)))
    q, k, v = (x.expand(*leading, -1, -1) for x in (q, k, v))
    q, k, v = (in_blocks(x.reshape(math.prod(leading), n, x.size(-1)), window) for x in (q, k, v))
    k, v = (_neighbours(x, beside) for x in (k, v))  # (all, blocks, 3 window, d)
    i = torch.arange(window, device=q.device)[:, None]  # places in a block
    j = torch.arange(-window, k.size(-2) - window, device=q.device)
    tokens = j + window * torch.arange(whole_blocks(n, window), device=q.device)[:, None, None]
    mask = may_read(i, j, window, causal) & (tokens >= 0) & (tokens < n)  # (blocks, window, 3 window)
    mixed = functional.scaled_dot_product_attention(q, k, v, mask[None])  # (all, blocks, window, d_v)
    return from_blocks(mixed, n).reshape(*leading, n, v.size(-1))


def window_and_global_attention(q: Tensor, k: Tensor, v: Tensor, window: int, num_global: int = 1) -> Tensor:
    """As above, and besides the first num_global tokens read all and are read by all (Longformer).

    Shape: q and k (batch, heads, n, d), v (batch, heads, n, d_v) -> (batch, heads, n, d_v)
    Raises: as sliding_window_attention; ValueError unless 1 <= num_global < n.
    Cost: 4 n (3 window + num_global) d + 4 num_global n d operations.
    """
    n = check_same_length(q, k, v)
    check_features(q, k)
    window, first = at_most(n, check_size("window", window)), check_size("num_global", num_global, 1, n - 1)
    queries, keys, values = (in_blocks(x, window) for x in (q, k, v))  # (batch, heads, blocks, window, d)
    keys, values = (_neighbours(x, (-1, 0, 1)) for x in (keys, values))
    shared = (x[..., None, :first, :].expand(*keys.shape[:3], -1, -1) for x in (k, v))
    keys, values = (torch.cat(both, dim=-2) for both in zip(shared, (keys, values), strict=True))
    i = torch.arange(window, device=q.device)[:, None]  # places in a block
    j = torch.arange(-window, 2 * window, device=q.device)
    tokens = j + window * torch.arange(whole_blocks(n, window), device=q.device)[:, None, None]
    near_by = may_read(i, j, window, causal=False) & (tokens >= first) & (tokens < n)  # no global one twice
    mask = functional.pad(near_by, (first, 0), value=True)  # (blocks, window, first + 3 window)
    queries, keys, values = (x.flatten(0, 1) for x in (queries, keys, values))
    mixed = functional.scaled_dot_product_attention(queries, keys, values, mask[None])
    mixed = mixed.unflatten(0, q.shape[:2])
    readers = functional.scaled_dot_product_attention(q[..., :first, :], k, v)
    return torch.cat([readers, from_blocks(mixed, n)[..., first:, :]], dim=-2)


def window_mask(n: int, window: int, causal: bool = False) -> Tensor:
    """Which token may read which, as an n×n mask: what the function above never stores.

    Shape: (n, n)
    Raises: ValueError if n is not an integer of at least 1, or window not one of at least 0.
    """
    token = torch.arange(check_size("n", n))
    return may_read(token[:, None], token, check_size("window", window, ALONE), causal)


def may_read(i: Tensor, j: Tensor, window: int, causal: bool) -> Tensor:
    """Whether token i may read token j."""
    near = (i - j).abs() <= window
    return near & (j <= i) if causal else near


def sliding_window_flops(n: int, d: int, window: int) -> int:
    """Operations of one head with d features, not causal, those on masked tokens and on padding included."""
    window = min(n, window)
    return 12 * whole_blocks(n, window) * window * window * d


def _neighbours(blocks: Tensor, beside: tuple[int, ...]) -> Tensor:
    """Each block with those beside it, zeros where the text ends.

    Shape: (..., blocks, window, d) -> (..., blocks, window times the number of them, d)
    """
    moved = (functional.pad(blocks, (0, 0, 0, 0, -step, step)) for step in beside)
    return torch.cat([*moved], dim=-2)
