"""Which slots a query attends to: a small indexer scores them, and the best are taken (chapter 13).

score(t, s) = Σ_h w_{t,h} · ReLU(q_{t,h} · k_s)          DeepSeek-AI 2026 (DeepSeek-V4), section 2.3.1
"""

import torch
from torch import Tensor

from linformer_from_scratch.common.checks import check_size


def index_scores(q: Tensor, k: Tensor, weights: Tensor) -> Tensor:
    """How much a query wants each slot: the heads' scores, negative ones as 0, weighed by the query.

    Shape: q (batch, heads, n, d), k (batch, heads or 1, slots, d), weights (batch, n, heads)
        -> (batch, n, slots)
    """
    wanted = (q @ k.mT).relu() / q.size(-1) ** 0.5  # (batch, heads, n, slots)
    return torch.einsum("bhns,bnh->bns", wanted, weights) / q.size(1) ** 0.5


def best_slots(scores: Tensor, top: int, seen: Tensor) -> Tensor:
    """The `top` best of the slots that a query may see, all if they are fewer. True = chosen.

    Shape: scores (..., n, slots), seen (n, slots), True = may see -> as scores
    Raises: ValueError if top < 1.
    """
    scores = scores.masked_fill(~seen, -torch.inf)
    best = scores.topk(min(check_size("top", top), scores.size(-1)), dim=-1).indices
    return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, best, True) & seen
