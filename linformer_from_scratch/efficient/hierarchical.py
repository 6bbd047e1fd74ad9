"""Two levels: the query's own block token by token, every other block as one (chapter 09).

score_ij = q_i · k_j / √d                       where i and j lie in the same block
score_ij = q_i · (mean of the block's k) / √d   elsewhere
                          after Zhu and Soricut 2021 (H-Transformer-1D, arXiv 2107.11906), with two levels
"""

import math

import torch
from torch import Tensor

from linformer_from_scratch.common.checks import at_most, check_size
from linformer_from_scratch.efficient.blocks import (
    from_blocks,
    in_blocks,
    self_attention_in_float32,
    whole_blocks,
)


@self_attention_in_float32
def hierarchical_attention(q: Tensor, k: Tensor, v: Tensor, block: int, causal: bool = False) -> Tensor:
    """Near tokens one by one, far ones by the mean of their block, in one softmax.

    A mean stands for all tokens of its block: the logarithm of their number is added to its score.

    Shape: q and k (..., n, d), v (..., n, d_v) -> (..., n, d_v)
    Raises: ValueError if block < 1, or if q, k and v differ in n.
    Cost: 4 n (block + n / block) d operations, least at block = √n; memory O(n (block + n / block)).
    """
    n = q.size(-2)
    block = at_most(n, check_size("block", block))
    q, k, v = (in_blocks(x, block) for x in (q / math.sqrt(q.size(-1)), k, v))  # (..., blocks, block, d)
    blocks = k.size(-3)
    real = in_blocks(q.new_ones(n, 1), block)[..., 0]  # (blocks, block), 0 at padding
    sizes = real.sum(dim=-1)
    mean_k, mean_v = (x.sum(dim=-2) / sizes[:, None] for x in (k, v))  # (..., blocks, d)

    near = q @ k.mT  # (..., blocks, block, block)
    far = q @ mean_k.mT[..., None, :, :] + sizes.log()
    masked, own = real[:, None, :] == 0, torch.eye(blocks, dtype=torch.bool, device=q.device)
    if causal:
        masked = masked | torch.ones(block, block, dtype=torch.bool, device=q.device).triu(1)
        own = own | torch.ones_like(own).triu(1)
    scores = near.masked_fill(masked, -math.inf), far.masked_fill(own[:, None, :], -math.inf)
    weights = torch.cat(scores, dim=-1).softmax(dim=-1)  # (..., blocks, block, block + blocks)
    output = weights[..., :block] @ v + weights[..., block:] @ mean_v[..., None, :, :]
    return from_blocks(output, n)


def hierarchical_flops(n: int, d: int, block: int) -> int:
    """Operations of one head with d features, those on padding included."""
    blocks = whole_blocks(n, block)
    return 4 * blocks * block * (block + blocks) * d
