"""A Linformer that may write: k slots that are running means of all tokens so far (chapter 13).

slot_j(t) = Σ_{s ≤ t} exp(l_{s,j}) x_s / Σ_{s ≤ t} exp(l_{s,j})
                                       Peng et al. 2022 (ABC, arXiv 2110.02488), section 3
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from linformer_from_scratch import heads
from linformer_from_scratch.attention import check_features
from linformer_from_scratch.common import checks
from linformer_from_scratch.common.checks import check_size, full_precision, in_float32, seen
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
    Raises: ValueError if sizes do not agree, if chunk < 1, or in a graph that is for every n.
    Cost: O(n · (slots + chunk) · (d + d_v) + n · chunk · slots) operations. Where logits
        rise steeply, and in a graph, which cannot see it, the last are exponentials.
    """
    check_features(q, k)
    if logits.size(-2) != q.size(-2):
        raise ValueError(f"logits are for {logits.size(-2)} tokens, expected {q.size(-2)}")
    return read_on(None, q, k, v, logits, chunk)[1]


Memory = tuple[Tensor, Tensor, Tensor]  # slots of keys and of values, and the log of what they sum to


def empty_memory(q: Tensor, v: Tensor, logits: Tensor) -> Memory:
    """Memory before the first token. Shape: as below -> (..., slots, d), (..., slots, d_v), (..., slots)"""
    leading = torch.broadcast_shapes(*(x.shape[:-2] for x in (q, v, logits)))
    slots = logits.size(-1)
    keys, values = (q.new_zeros(*leading, slots, x.size(-1)) for x in (q, v))
    return keys, values, q.new_full((*leading, slots), -math.inf)


def read_on(
    memory: Memory | None, q: Tensor, k: Tensor, v: Tensor, logits: Tensor, chunk: int = CHUNK
) -> tuple[Memory, Tensor]:
    """Read some more tokens, or the first: their outputs, and the memory after them, of 32 bits at least.

    Shape: as bounded_memory_attention -> memory, (..., tokens, d_v)
    """
    check_same_length(q, k, v)
    if checks.graph_is_written() and type(q.size(-2)) is not int:
        raise ValueError("got a graph for every n, expected one for one n, whose chunks can be counted")
    chunk, of_outputs = check_size("chunk", chunk), v.dtype
    q, k, v, logits = map(in_float32, (q, k, v, logits))
    memory, outputs = memory or empty_memory(q, v, logits), []
    with full_precision(q):
        for part in zip(*(x.split(chunk, dim=-2) for x in (q, k, v, logits)), strict=True):
            memory, output = _read_chunk(memory, *part)
            outputs.append(output)
    return memory, torch.cat(outputs, dim=-2).to(of_outputs)


def _read_chunk(memory: Memory, q: Tensor, k: Tensor, v: Tensor, logits: Tensor) -> tuple[Memory, Tensor]:
    keys, values, total = memory
    sums = torch.logaddexp(total[..., None, :], logits.logcumsumexp(dim=-2))  # (..., tokens, slots)
    last = sums[..., -1:, :]
    steep = seen((last - sums[..., :1, :] > FURTHEST).any())
    meet, mix = _by_factors(logits, sums) if steep is False else _one_by_one(logits, sums)
    old = (total[..., None, :] - sums).exp()  # share of each slot that the memory keeps
    scores = old * (q @ keys.mT) + meet(q @ k.mT)
    weights = (scores / math.sqrt(q.size(-1))).softmax(dim=-1)
    mixed = (weights * old) @ values + mix(weights) @ v
    kept, new = old[..., -1, :, None], (logits - last).exp().mT  # (..., slots, 1), (..., slots, tokens)
    memory = kept * keys + new @ k, kept * values + new @ v, sums[..., -1, :]
    return memory, mixed


# When t reads slot j, token s ≤ t has the share exp(l_{s,j} - sums_{t,j}) in it. The first function turns
# scores of tokens into scores of slots, the second weights of slots into weights of tokens.
Ways = tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]


def _by_factors(logits: Tensor, sums: Tensor) -> Ways:
    """A share is a factor of s times one of t: fast, and of infinities where sums rise too far."""
    first = sums[..., :1, :]
    of_s, of_t = (logits - first).exp(), (first - sums).exp()
    return lambda scores: of_t * (scores.tril() @ of_s), lambda weights: ((weights * of_t) @ of_s.mT).tril()


def _one_by_one(logits: Tensor, sums: Tensor) -> Ways:
    """Right for all logits, by an exponential for each pair of tokens and each slot."""
    later = torch.ones(logits.size(-2), logits.size(-2), dtype=torch.bool, device=logits.device).triu(1)
    shares = logits[..., None, :, :] - sums[..., None, :]  # (..., t, s, slots)
    e = shares.masked_fill(later[..., None], -math.inf).exp()
    return lambda scores: (e * scores[..., None]).sum(-2), lambda weights: (e * weights[..., None, :]).sum(-1)


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
        x = heads.finite_padding(x, padding_mask)
        logits = split_heads(self.logits(x), self.num_heads)
        if padding_mask is not None:
            logits = logits.masked_fill(~padding_mask[:, None, :, None], torch.finfo(logits.dtype).min)
        return self.output(merge_heads(bounded_memory_attention(*self.project(x), logits)))

    def write(self, x: Tensor, memory: Memory | None = None) -> tuple[Tensor, Memory]:
        """Read some more tokens of every text: their outputs, and the memory with them.

        Args: memory: what this layer returned for the tokens so far; none before the first.
        Shape: x (batch, tokens, d_model) -> as x
        Raises: ValueError as forward, or if the memory is of another batch or layer.
        """
        check_inputs(x, None, self.query.in_features)
        q, k, v = self.project(x)
        logits = split_heads(self.logits(x), self.num_heads)
        expected = *q.shape[:2], logits.size(-1), q.size(-1)
        if memory is not None and memory[0].shape != expected:
            raise ValueError(f"the memory has slots {tuple(memory[0].shape)}, expected {expected}")
        memory, mixed = read_on(memory, q, k, v, logits)
        return self.output(merge_heads(mixed)), memory
