"""Which slots a query attends to: a small indexer scores them, and the best are taken (chapter 13).

score(t, s) = Σ_h w_{t,h} · ReLU(q_{t,h} · k_s)          DeepSeek-AI 2026 (DeepSeek-V4), section 2.3.1
"""

import torch
from torch import Tensor

from linformer_from_scratch.common.checks import check_size, full_precision, in_float32


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
