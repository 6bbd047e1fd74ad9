"""Which slots, or tokens, a query attends to: an indexer scores the slots, the best are taken (chapter 13).

score(t, s) = Σ_h w_{t,h} · ReLU(q_{t,h} · k_s)          DeepSeek-AI 2026 (DeepSeek-V4), section 2.3.1
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.common.checks import check_size, full_precision, in_float32
from linformer_from_scratch.descendants.blocks import ended
from linformer_from_scratch.efficient.blocks import check_same_length


def index_scores(q: Tensor, k: Tensor, weights: Tensor) -> Tensor:
    """How much a query wants each slot: the heads' scores, negative ones as 0, weighed by the query.

    Shape: q (batch, heads, n, d), k (batch, heads or 1, slots, d), weights (batch, n, heads)
        -> (batch, n, slots)
    """
    q, k, weights = map(in_float32, (q, k, weights))
    with full_precision(q):
        wanted = (q @ k.mT).relu() / q.size(-1) ** 0.5  # (batch, heads, n, slots)
        return torch.einsum("bhns,bnh->bns", wanted, weights) / q.size(1) ** 0.5


def best_slots(scores: Tensor, top: int, seen: Tensor) -> Tensor:
    """The `top` best of the slots that a query may see, all if they are fewer. True = chosen.

    Of slots that score alike, as all do where the ReLU gives 0, the earliest are taken. topk alone would take
    others in a longer text.

    Shape: scores (..., n, slots), seen (n, slots), True = may see -> as scores
    Raises: ValueError if top < 1.
    """
    scores = scores.masked_fill(~seen, -torch.inf)
    top = min(check_size("top", top), scores.size(-1))
    worst = scores.topk(top, dim=-1).values[..., -1:]  # of those that are taken
    better, as_good = scores > worst, scores == worst
    room = top - better.sum(dim=-1, keepdim=True)
    return (better | as_good & (as_good.cumsum(dim=-1) <= room)) & seen


def chosen_attention(
    q: Tensor, k: Tensor, v: Tensor, scores: Tensor, block: int, window: int, top: int | None
) -> Tensor:
    """Causal softmax attention of the last queries to the tokens that tokens_read says, none twice.

    A choice has no gradient. So that what makes the scores learns all the same, the gradient of a token's
    score also goes to that of its block (straight-through, Bengio et al. 2013, arXiv 1308.3432).

    Args:
        scores: how much each query wants each block, as index_scores makes them.
        block, window, top: as tokens_read.

    Shape: q (batch, heads, queries, d), k (batch, heads or 1, n, d), v (batch, heads or 1, n, d_v),
        scores (batch, queries, n // block) -> (batch, heads, queries, d_v)
    Cost: as exact attention, whose scores are all computed; a kernel would skip those that are not read.
    """
    n, dtype = check_same_length(k, k, v), v.dtype
    q, k, v = map(in_float32, (q, k, v))
    read = tokens_read(scores, n, block, window, top)
    learning = (scores - scores.detach()).repeat_interleave(block, dim=-1)  # zeros
    mask = functional.pad(learning, (0, n % block)).masked_fill(~read, -math.inf).to(q.dtype)
    k, v = (some.expand(-1, q.size(1), -1, -1) for some in (k, v))
    with full_precision(q):
        return functional.scaled_dot_product_attention(q, k, v, mask[:, None]).to(dtype)


def tokens_read(scores: Tensor, n: int, block: int, window: int, top: int | None) -> Tensor:
    """Which of n tokens the last queries read: of the `top` best blocks or all, the open one, and a window.

    Shape: scores (..., queries, n // block) -> (..., queries, n), True = is read
    Raises: ValueError as best_slots and ended, or if there are scores for another number of blocks.
    """
    queries, blocks = scores.shape[-2:]
    seen = ended(n, block, scores.device)[n - queries :]
    if blocks != seen.size(-1):
        raise ValueError(f"got scores for {blocks} blocks, expected {n} // {block}")
    chosen = seen.expand_as(scores) if top is None else best_slots(scores, top, seen)
    chosen = chosen.repeat_interleave(block, dim=-1)
    place = torch.arange(n, device=scores.device)
    t = place[n - queries :, None]
    near = (place <= t) & ((place > t - window) | (place >= (t + 1) // block * block))
    return functional.pad(chosen, (0, n % block)) | near
