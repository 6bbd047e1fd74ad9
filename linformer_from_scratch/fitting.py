"""Fit E and F to the output of exact attention, for many heads at once (chapters 05 to 07).

Only E and F are learned; queries, keys and values come from a model that stays as it is. Every head has its
own pair and its own loss, so that fitting all heads together finds the same pairs as fitting each alone.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.common.checks import check_size, full_precision
from linformer_from_scratch.common.random_state import integers, normal
from linformer_from_scratch.projections import MeanPooling

STARTS = ("windows", "random")
BATCH = 8  # texts in an update


@torch.inference_mode(False)  # gradients are needed here, even where the caller has switched them off
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
    """E and F for which softmax(q (E k)ᵀ / √d) F v is close to exact attention on these texts, by Adam.

    The loss of a head is its squared error relative to the square of the exact output. The parameters are
    √n · E and √n · F, whose entries are of size 1 where E starts at random: Adam moves each number by about
    the rate, whatever its size, so that a rate for E itself would have to shrink with √n.

    Args:
        q, k, v: of the texts to learn from; the axes before `texts` are heads, each with its own E and F.
        proj_dim: slots, the paper's k.
        start: "windows" (slot i begins as the mean of window i) or "random" (entries N(0, 1/n)).
        updates: steps of Adam, each on 8 texts drawn with replacement; 0 returns the start.
        rate: of Adam, for √n · E and √n · F.
        seed: of the random start and of the texts drawn.

    Shape: q, k, v (..., texts, n, d) -> E, F (..., proj_dim, n)
    Raises: ValueError if start is neither of the two, updates no integer from 0 on, or rate negative.
    """
    updates = check_size("updates", updates, least=0)
    if not rate >= 0:
        raise ValueError(f"rate is {rate}, expected at least 0")
    generator = torch.Generator().manual_seed(seed)
    scale = math.sqrt(k.size(-2))
    scaled_weights = [(scale * E).requires_grad_() for E in starting_pair(k, proj_dim, start, generator)]
    q, k, v = (x.detach() for x in (q, k, v))
    optimizer = torch.optim.Adam(scaled_weights, lr=rate)
    with full_precision(k):
        exact = functional.scaled_dot_product_attention(q, k, v)  # chapter 01's, without maps in memory
        size = exact.square().mean(dim=(-3, -2, -1))  # (...): one number per head
        for _ in range(updates):
            drawn = integers(generator, 0, k.size(-3), BATCH)
            texts = (x[..., drawn, :, :] for x in (q, k, v))
            output = linformer_output(*texts, *(weight / scale for weight in scaled_weights))
            loss = (output - exact[..., drawn, :, :]).square().mean(dim=(-3, -2, -1)) / size
            optimizer.zero_grad()
            loss.sum().backward()  # the loss of a head depends on its own E and F only
            optimizer.step()
    E, F = (weight.detach() / scale for weight in scaled_weights)
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


def linformer_output(q: Tensor, k: Tensor, v: Tensor, E: Tensor, F: Tensor) -> Tensor:
    """softmax(q (E k)ᵀ / √d) F v, with the same E and F for all texts of a head.

    Shape: q, k, v (..., texts, n, d), E, F (..., proj_dim, n) -> (..., texts, n, d)
    """
    return scaled_dot_product_attention(q, E.unsqueeze(-3) @ k, F.unsqueeze(-3) @ v)


def relative_errors(output: Tensor, exact: Tensor) -> Tensor:
    """‖output − exact‖ / ‖exact‖ of each head, over all its texts: 1 for an output of zero.

    Shape: exact (..., texts, n, d), output broadcastable to it -> (...)
    """
    squared = (output - exact).square().sum(dim=(-3, -2, -1))
    return (squared / exact.square().sum(dim=(-3, -2, -1))).sqrt()
