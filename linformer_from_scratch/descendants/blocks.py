"""One slot for every block of tokens, and a window beside the slots: E, cut into blocks (chapter 13).

slot_i = Σ_j softmax_j(gate_j + bias_j) ⊙ x_j, j in block i
                 DeepSeek-AI 2026 (DeepSeek-V4), section 2.3, before its norm and rotary positions
"""

import math

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.attention import check_features
from linformer_from_scratch.common.checks import at_most, check_size, in_float32
from linformer_from_scratch.efficient.blocks import (
    check_same_length,
    from_blocks,
    in_blocks,
    self_attention_in_float32,
    whole_blocks,
)

NO_WINDOW = 0  # queries read slots only


def compress_blocks(x: Tensor, bias: Tensor, gate: Tensor | None = None, overlap: bool = False) -> Tensor:
    """One slot for each whole block of m tokens: a weighted mean of them. What is left over has no slot yet.

    With a bias of zeros and without a gate, a slot is the mean of its block.

    Args:
        x: what is mixed.
        bias: a logit for each of the m places in a block (m,), or for each feature there (m, d).
        gate: logits that depend on the tokens, added to the bias.
        overlap: a slot mixes the block before, too. x, bias and gate then have 2d features: the first d of
            a token go into the slot of the next block, the others into that of its own.

    Shape: x and gate (..., n, d) -> (..., n // m, d)
    Raises: ValueError if bias or gate has another shape, or if the features that overlap are odd in number.
    """
    _check_logits(x, bias, gate, overlap)
    m, features = bias.size(0), x.size(-1)
    blocks = x.size(-2) // m
    logits = in_float32(bias.view(m, -1))
    if gate is not None:
        logits = logits + _whole(gate, blocks, m)
    logits, x = logits.expand(*x.shape[:-2], blocks, m, features), _whole(x, blocks, m)
    if overlap:
        logits, x = with_block_before(logits, -math.inf), with_block_before(x, 0.0)
    return (logits.softmax(dim=-2) * x).sum(dim=-2).to(x.dtype)


def with_block_before(x: Tensor, first: float) -> Tensor:
    """Half of each block's features beside the other half of the block before; the first block has `first`.

    Shape: (..., blocks, m, 2d) -> (..., blocks, 2m, d)
    """
    for_next, own = x.chunk(2, dim=-1)
    before = functional.pad(for_next, (0, 0, 0, 0, 1, 0), value=first)[..., : x.size(-3), :, :]
    return torch.cat([before, own], dim=-2)


@self_attention_in_float32
def block_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    slots_k: Tensor,
    slots_v: Tensor,
    block: int,
    window: int,
    chosen: Tensor | None = None,
) -> Tensor:
    """Causal softmax attention over the slots of all blocks that have ended, and the last `window` tokens.

    A block has ended for its own last token. One softmax goes over both. A query that may read nothing, as
    in the first block without a window, gets zeros.

    Args:
        slots_k, slots_v: of every whole block, as compress_blocks makes them.
        block: tokens in one.
        window: tokens, the query's own among them; 0 for none.
        chosen: which slots a query may read besides, True = may; all by default.

    Shape: q, k (..., n, d), v (..., n, d_v), slots_k (..., n // block, d), slots_v (..., n // block, d_v),
        chosen (..., n, n // block) -> (..., n, d_v); leading sizes are broadcast
    Raises: ValueError if sizes do not agree, block < 1, or window < 0.
    Cost: 2 n (n // block + 2 window)(d + d_v) operations; memory at most six times the n (n // block +
        2 window) scores.
    """
    n = check_same_length(q, k, v)
    check_features(q, k)
    blocks = n // check_size("block", block)
    if not slots_k.size(-2) == slots_v.size(-2) == blocks:
        raise ValueError(f"got {slots_k.size(-2)} and {slots_v.size(-2)} slots, expected {n} // {block}")
    window = at_most(n, check_size("window", window, NO_WINDOW))
    q = q / math.sqrt(q.size(-1))
    scores, seen = q @ slots_k.to(q.dtype).mT, ended(n, block, q.device)  # (..., n, blocks)
    seen = seen if chosen is None else seen & chosen
    if window == NO_WINDOW:
        return masked_softmax(scores, seen) @ slots_v.to(q.dtype)
    near, near_seen = _window_scores(q, k, window)  # (..., n, 2 window)
    together = torch.broadcast_shapes(seen.shape[:-2], near_seen.shape[:-2])
    seen = torch.cat([some.expand(*together, -1, -1) for some in (seen, near_seen)], dim=-1)
    weights = masked_softmax(torch.cat([scores, near], dim=-1), seen)
    far, near = weights.split([blocks, 2 * window], dim=-1)
    return far @ slots_v.to(q.dtype) + _window_mix(near, v, window)


def ended(n: int, block: int, device: torch.device | None = None) -> Tensor:
    """Which blocks have ended at each of n tokens. Shape: (n, n // block)"""
    n, block = check_size("n", n, least=0), check_size("block", block)
    count = torch.arange(1, n + 1, device=device) // block
    return torch.arange(n // block, device=device) < count[:, None]


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last axis where the mask is True; zeros in a row of False. Shape: (..., n, m)"""
    nobody = ~mask.any(dim=-1, keepdim=True)
    return scores.masked_fill(~(mask | nobody), -math.inf).softmax(dim=-1).masked_fill(nobody, 0.0)


def _window_scores(q: Tensor, k: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """Scores with the tokens in `window` places and in those before, and which of them may be read."""
    n, place = q.size(-2), torch.arange(window, device=q.device)
    scores = in_blocks(q, window) @ _with_tokens_before(k, window).mT  # (..., blocks, window, 2 window)
    back = place[:, None] + window - torch.arange(2 * window, device=q.device)  # how far away a key lies
    token = window * torch.arange(whole_blocks(n, window), device=q.device)[:, None] + place
    seen = (back >= 0) & (back < window) & (back <= token[..., None])
    return from_blocks(scores, n), from_blocks(seen, n)


def _window_mix(weights: Tensor, v: Tensor, window: int) -> Tensor:
    """Values of the same tokens, mixed. Shape: (..., n, 2 window), (..., n, d_v) -> (..., n, d_v)"""
    mixed = in_blocks(weights, window) @ _with_tokens_before(v, window)
    return from_blocks(mixed, v.size(-2))


def _with_tokens_before(x: Tensor, window: int) -> Tensor:
    blocks = in_blocks(x, window)
    return torch.cat([functional.pad(blocks, (0, 0, 0, 0, 1, -1)), blocks], dim=-2)


def _whole(x: Tensor, blocks: int, m: int) -> Tensor:
    return x[..., : blocks * m, :].unflatten(-2, (blocks, m))


def _check_logits(x: Tensor, bias: Tensor, gate: Tensor | None, overlap: bool) -> None:
    features = x.size(-1)
    if bias.dim() not in (1, 2) or not bias.size(0) or bias.shape[1:] not in ((), (features,)):
        raise ValueError(f"bias has shape {tuple(bias.shape)}, expected (m,) or (m, {features}), m >= 1")
    if gate is not None and gate.shape != x.shape:
        raise ValueError(f"gate has shape {tuple(gate.shape)}, expected that of x, {tuple(x.shape)}")
    if overlap and features % 2:
        raise ValueError(f"x has {features} features, expected an even number, for blocks overlap")
