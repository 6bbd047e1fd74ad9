"""Sliding window: every token reads its neighbours only (chapter 09).

output_i = Σ_j softmax_j(q_i · k_j / √d) v_j over |i − j| ≤ window
                                      Beltagy et al. 2020 (Longformer, arXiv 2004.05150), section 3.1
"""

import torch
from torch import Tensor

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.efficient.blocks import check_same_length, check_size, in_blocks, whole_blocks


def sliding_window_attention(q: Tensor, k: Tensor, v: Tensor, window: int, causal: bool = False) -> Tensor:
    """Softmax attention over the tokens at most `window` away; only earlier ones and itself if causal.

    Queries are cut into blocks of `window` tokens; a block's keys lie in it and in the two beside it.

    Shape: q and k (..., n, d), v (..., n, d_v) -> (..., n, d_v)
    Raises: ValueError if window < 1, or if q, k and v differ in n.
    Cost: 12 n·window·d operations, 8 if causal; memory O(n·window).
    """
    n = check_same_length(q, k, v)
    check_size("window", window)
    beside = (window, 0 if causal else window)  # tokens before and after a block that it may read
    queries = in_blocks(q, window)  # (..., blocks, window, d)
    keys, values = (in_blocks(x, window, *beside) for x in (k, v))  # (..., blocks, 3 window, d)
    first = torch.arange(0, whole_blocks(n, window) * window, window, device=q.device)[:, None, None]
    i = first + torch.arange(window, device=q.device)[:, None]
    j = first + torch.arange(-window, keys.size(-2) - window, device=q.device)
    mask = may_read(i, j, window, causal) & (j >= 0) & (j < n)  # (blocks, window, 3 window)
    return scaled_dot_product_attention(queries, keys, values, mask).flatten(-3, -2)[..., :n, :]


def window_mask(n: int, window: int, causal: bool = False) -> Tensor:
    """Who may read whom, as an n×n mask: what the function above never stores. Shape: (n, n)."""
    token = torch.arange(n)
    return may_read(token[:, None], token, window, causal)


def may_read(i: Tensor, j: Tensor, window: int, causal: bool) -> Tensor:
    """Whether token i may read token j."""
    near = (i - j).abs() <= window
    return near & (j <= i) if causal else near


def sliding_window_flops(n: int, d: int, window: int, causal: bool = False) -> int:
    """Operations of one head with d features, those on masked tokens and on padding included."""
    return 4 * whole_blocks(n, window) * window * (2 if causal else 3) * window * d
