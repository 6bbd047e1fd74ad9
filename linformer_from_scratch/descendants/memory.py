"""A Linformer that may write: k slots that are running means of all tokens so far (chapter 13).

slot_j(t) = Σ_{s ≤ t} exp(l_{s,j}) x_s / Σ_{s ≤ t} exp(l_{s,j})
                                       Peng et al. 2022 (ABC, arXiv 2110.02488), section 3
"""

import math

import torch
from torch import Tensor, nn

from linformer_from_scratch.attention import check_features
from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.efficient.blocks import check_same_length, self_attention_in_float32
from linformer_from_scratch.heads import AttentionLayer, check_inputs, merge_heads, split_heads

CHUNK = 64  # tokens that are computed at once
FURTHEST = 60.0  # that the logarithm of a sum may rise among them: exp(60) fits a float32


@self_attention_in_float32
def bounded_memory_attention(q: Tensor, k: Tensor, v: Tensor, logits: Tensor, chunk: int = CHUNK) -> Tensor:
    """Causal attention to slots, each of which averages the tokens so far, by the softmax of its logits.

    With logits that depend on the position alone, the last token sees what it would in a Linformer whose
    E and F have the softmaxed columns of the logits as rows. The state has k slots, however long the text.

    Args:
        logits: how much of a token goes into each slot.
        chunk: tokens that are computed at once; the result is the same.

    Shape: q and k (..., n, d), v (..., n, d_v), logits (n, slots) or (..., n, slots) -> (..., n, d_v)
    Raises: ValueError if sizes do not agree, or chunk < 1.
    Cost: O(n · (slots + chunk) · (d + d_v) + n · chunk · slots) operations.
    """
    n = check_same_length(q, k, v)
    check_features(q, k)
    if logits.size(-2) != n:
        raise ValueError(f"logits are for {logits.size(-2)} tokens, expected {n}")
    chunk = check_size("chunk", chunk)
    logits = logits.to(q.dtype)
    state = empty_memory(q, v, logits)
    outputs = []
    for start in range(0, n, chunk):
        part = slice(start, start + chunk)
        state, output = read_on(state, *(x[..., part, :] for x in (q, k, v, logits)))
        outputs.append(output)
    return torch.cat(outputs, dim=-2)


Memory = tuple[Tensor, Tensor, Tensor]  # slots of keys and of values, and the log of what they sum to


def empty_memory(q: Tensor, v: Tensor, logits: Tensor) -> Memory:
    """Memory before the first token. Shape: as below -> (..., slots, d), (..., slots, d_v), (..., slots)"""
    leading = torch.broadcast_shapes(*(x.shape[:-2] for x in (q, v, logits)))
    slots = logits.size(-1)
    keys, values = (q.new_zeros(*leading, slots, x.size(-1)) for x in (q, v))
    return keys, values, q.new_full((*leading, slots), -math.inf)


def read_on(memory: Memory, q: Tensor, k: Tensor, v: Tensor, logits: Tensor) -> tuple[Memory, Tensor]:
    """Read some more tokens: the memory after them, and their outputs.

    Shape: q and k (..., tokens, d), v (..., tokens, d_v), logits (..., tokens, slots) -> (..., tokens, d_v)
    """
    keys, values, total = memory
    sums = torch.logaddexp(total[..., None, :], logits.logcumsumexp(dim=-2))  # (..., tokens, slots)
    first, last = sums[..., :1, :], sums[..., -1:, :]
    if q.size(-2) > 1 and (last - first).max() > FURTHEST:
        return _read_halves(memory, q, k, v, logits)
    old = (total[..., None, :] - sums).exp()  # share of each slot that the memory keeps
    # A token's share of a slot, when a later one attends to it, is up of the one times down of the other.
    up, down = (logits - first).exp(), (first - sums).exp()
    scores = old * (q @ keys.mT) + down * ((q @ k.mT).tril() @ up)
    weights = (scores / math.sqrt(q.size(-1))).softmax(dim=-1)
    mixed = (weights * old) @ values + ((weights * down) @ up.mT).tril() @ v
    kept, new = old[..., -1, :, None], (logits - last).exp().mT  # (..., slots, 1), (..., slots, tokens)
    memory = kept * keys + new @ k, kept * values + new @ v, sums[..., -1, :]
    return memory, mixed


def _read_halves(memory: Memory, *tokens: Tensor) -> tuple[Memory, Tensor]:
    """Read one half after the other; a single token has no exponential that is too large."""
    outputs = []
    for part in zip(*(x.tensor_split(2, dim=-2) for x in tokens), strict=True):
        memory, output = read_on(memory, *part)
        outputs.append(output)
    return memory, torch.cat(outputs, dim=-2)


class BoundedMemoryAttention(AttentionLayer):
    """Causal self-attention to slots of all tokens so far; each token says how much of it each slot gets.

    Args:
        d_model: features per token, a multiple of num_heads.
        num_heads: heads of d_model // num_heads features each.
        slots: of every head.

    Shape: x (batch, n, d_model), padding_mask (batch, n) with True = a real token -> (batch, n, d_model)
    Raises: ValueError if slots < 1, or as AttentionLayer. Padded tokens enter no slot.
    """

    def __init__(self, d_model: int, num_heads: int, slots: int):
        super().__init__(d_model, num_heads)
        self.logits = nn.Linear(d_model, num_heads * check_size("slots", slots))

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """All tokens at once."""
        check_inputs(x, padding_mask, self.query.in_features)
        q, k, v = self.project(x)
        logits = split_heads(self.logits(x), self.num_heads)
        if padding_mask is not None:
            logits = logits.masked_fill(~padding_mask[:, None, :, None], torch.finfo(logits.dtype).min)
        return self.output(merge_heads(bounded_memory_attention(q, k, v, logits)))

    def write(self, x: Tensor, memory: Memory | None = None) -> tuple[Tensor, Memory]:
        """Read one more token of every text, or several: their outputs, and the memory with them.

        Shape: x (batch, tokens, d_model) -> the same
        """
        check_inputs(x, None, self.query.in_features)
        q, k, v = self.project(x)
        logits = split_heads(self.logits(x), self.num_heads)
        memory, mixed = read_on(memory or empty_memory(q, v, logits), q, k, v, logits)
        return self.output(merge_heads(mixed)), memory
