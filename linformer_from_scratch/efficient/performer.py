"""Performer: random features whose products are the softmax's exponentials on average (chapter 09).

    exp(q·k) = E[φ(q)·φ(k)],  φ(x) = exp(ω x − ‖x‖²/2) / √m,  ω ~ N(0, I)
                         Choromanski et al. 2021 (FAVOR+, arXiv 2009.14794), lemma 1 and section 2.3

Features are positive, so that no weight is negative; the ω are orthogonal within blocks of d. The estimate of
an exponential is unbiased over draws of ω, and its variance grows like the exponential of ‖q + k‖²; the
output, a quotient of two estimates, is biased.
"""

import torch
from torch import Tensor

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.common.random_state import normal
from linformer_from_scratch.efficient.blocks import self_attention_in_float32, whole_blocks
from linformer_from_scratch.efficient.exponents import exponential_attention


def orthogonal_gaussian(num_features: int, d: int, seed: int = 0) -> Tensor:
    """Rows N(0, I), orthogonal to each other within blocks of d rows.

    Shape: (num_features, d), in float32 and on the CPU
    Raises: ValueError if a size is not a positive integer.
    """
    num_features, d = check_size("num_features", num_features), check_size("d", d)
    draw = torch.Generator().manual_seed(seed)
    blocks = [normal(draw, d, d) for _ in range(whole_blocks(num_features, d))]
    directions = torch.cat([_directions(block) for block in blocks])[:num_features]
    lengths = normal(draw, num_features, d).norm(dim=1, keepdim=True)
    return directions * lengths


def _directions(gaussian: Tensor) -> Tensor:
    """Orthonormal rows, every direction equally likely: the signs that QR chooses are undone."""
    Q, R = torch.linalg.qr(gaussian)
    return (Q * R.diagonal().sign()).mT


@self_attention_in_float32
def performer_attention(q: Tensor, k: Tensor, v: Tensor, omega: Tensor, causal: bool = False) -> Tensor:
    """Kernel attention with positive random features, an estimate of softmax attention.

    Shape: q and k (..., n, d), v (..., n, d_v), omega (num_features, d) -> (..., n, d_v)
    Raises: ValueError if omega and q differ in d, or if q, k and v differ in n.
    Cost: 8 n·num_features·d operations; memory O(n·num_features).
    Whatever the length of q and k, the exponentials neither overflow nor all vanish (exponents.py).
    Causal, it is exported for every n from CHUNK + 1 tokens on: as linear attention.
    """
    if omega.size(-1) != q.size(-1):
        raise ValueError(f"omega has {omega.size(-1)} features, q has {q.size(-1)}; expected the same number")
    return exponential_attention(log_features(q, omega), log_features(k, omega), v, causal)


def log_features(x: Tensor, omega: Tensor) -> Tensor:
    """ω x − ‖x‖²/2 with x divided by d^¼, so that products estimate exp(q·k / √d).

    Shape: x (..., n, d), omega (num_features, d) -> (..., n, num_features)
    """
    x = x / x.size(-1) ** 0.25
    return x @ omega.to(x).mT - x.square().sum(dim=-1, keepdim=True) / 2


def performer_flops(n: int, d: int, num_features: int) -> int:
    """Operations of one head with d features, not causal."""
    return 8 * n * num_features * d + 2 * n * num_features
