"""Fit E and F to what exact attention answers, for many heads at once (chapters 05 to 07).

Only E and F move; queries, keys and values are those of a model that stays as it is. Every head has a pair of
its own and a loss of its own, so that fitting all heads together finds the same pairs as fitting each alone.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.common.checks import full_precision
from linformer_from_scratch.common.random_state import integers, normal
from linformer_from_scratch.projections import MeanPooling

STARTS = ("windows", "random")
BATCH = 8  # texts of an update


@torch.inference_mode(False)  # it learns, whatever the caller has switched off
@torch.enable_grad()
def fit_projections(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    proj_dim: int,
    start: str = "windows",
    updates: int = 300,
    rate: float = 0.01,
    seed: int = 0,
) -> tuple[Tensor, Tensor]:
    """E and F with which softmax(q (E k)ᵀ / √d) F v comes near attention on these texts, by Adam.

    The loss of a head is its squared error, as a share of its exact answers' square. What moves is √n · E and
    √n · F, numbers of size 1 where E starts at random: Adam moves each number by about the rate, whatever its
    size, so that a rate for E itself would have to shrink with √n.

    Args:
        q, k, v: of the texts to learn from; the axes before `texts` are heads, each with its own E and F.
        proj_dim: slots, the paper's k.
        start: "windows" (slot i begins as the mean of window i) or "random" (entries N(0, 1/n)).
        updates: steps of Adam, each on 8 texts drawn with replacement; 0 returns the start.
        rate: of Adam, for √n · E and √n · F.
        seed: of the random start and of the texts drawn.

    Shape: q, k, v (..., texts, n, d) -> E, F (..., proj_dim, n)
    Raises: ValueError if start is another word, or updates or rate are negative.
    """
    if updates < 0 or not rate >= 0:
        raise ValueError(f"got updates={updates} and rate={rate}, expected at least 0 of each")
    generator = torch.Generator().manual_seed(seed)
    root = math.sqrt(k.size(-2))
    stored = [(root * one).requires_grad_() for one in starting_pair(k, proj_dim, start, generator)]
    q, k, v = (x.detach() for x in (q, k, v))
    optimizer = torch.optim.Adam(stored, lr=rate)
    with full_precision(k):
        exact = functional.scaled_dot_product_attention(q, k, v)  # chapter 01's, without maps in memory
        size = exact.square().mean(dim=(-3, -2, -1))  # (...): one number a head
        for _ in range(updates):
            some = integers(generator, 0, k.size(-3), BATCH)
            texts = (x[..., some, :, :] for x in (q, k, v))
            off = answers(*texts, *(one / root for one in stored)) - exact[..., some, :, :]
            loss = off.square().mean(dim=(-3, -2, -1)) / size
            optimizer.zero_grad()
            loss.sum().backward()  # no head's E and F are in another's loss
            optimizer.step()
    E, F = (one.detach() / root for one in stored)
    return E, F


def starting_pair(
    k: Tensor, proj_dim: int, start: str = "windows", generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """E and F before the first update.

    Shape: k (..., texts, n, d) -> E, F (..., proj_dim, n)
    Raises: ValueError if start is neither "windows" nor "random".
    """
    n, sizes = k.size(-2), (*k.shape[:-3], proj_dim, k.size(-2))
    if start == "windows":
        windows = MeanPooling(n, proj_dim)(torch.eye(n, dtype=k.dtype, device=k.device))
        return windows.expand(sizes), windows.expand(sizes)
    if start == "random":
        E, F = (normal(generator, *sizes).to(k) / math.sqrt(n) for _ in "EF")
        return E, F
    raise ValueError(f"start is {start!r}, expected one of {', '.join(STARTS)}")


def answers(q: Tensor, k: Tensor, v: Tensor, E: Tensor, F: Tensor) -> Tensor:
    """softmax(q (E k)ᵀ / √d) F v, with the same E and F for all texts of a head.

    Shape: q, k, v (..., texts, n, d), E, F (..., proj_dim, n) -> (..., texts, n, d)
    """
    return scaled_dot_product_attention(q, E.unsqueeze(-3) @ k, F.unsqueeze(-3) @ v)


def relative_errors(found: Tensor, exact: Tensor) -> Tensor:
    """‖found − exact‖ / ‖exact‖ of each head, over all its texts: 1 for an answer of zero.

    Shape: (..., texts, n, d), found also what broadcasts to it -> (...)
    """
    off = (found - exact).square().sum(dim=(-3, -2, -1))
    return (off / exact.square().sum(dim=(-3, -2, -1))).sqrt()
