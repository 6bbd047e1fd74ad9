"""Attention to a window, and to a slot for every block before it: at once, or token by token (chapter 13).

DeepSeek-AI 2026 (DeepSeek-V4, arXiv 2606.19348), section 2.3, and what its successors changed: slots that
several layers share (DeepSeek-V4.1, arXiv 2609.19969), or that only choose which tokens are attended to
(GLM-5.3-Flash; Qwen4's QSA). The parts that came from Linformer, and none of the others.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch import heads
from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.common.checks import check_size, full_precision, in_float32
from linformer_from_scratch.descendants.blocks import NO_WINDOW, block_attention, compress_blocks, ended
from linformer_from_scratch.descendants.choice import best_slots, chosen_attention, index_scores
from linformer_from_scratch.efficient.blocks import check_same_length
from linformer_from_scratch.heads import AttentionLayer, check_inputs, merge_heads, split_heads


class Cache(NamedTuple):
    """What a layer keeps of a text that it writes.

    Attributes:
        keys, values: of the last `window` tokens, (batch, kv heads, at most window, d_head); of all tokens
            where tokens are chosen.
        slots_k, slots_v: of all blocks that have ended, (batch, kv heads, blocks, d_head). No values where
            tokens are chosen, nothing where another layer makes the slots.
        opened: inputs since then, and with overlap those of the block before, (batch, tokens, d_model).
        tokens: read so far.
    """

    keys: Tensor
    values: Tensor
    slots_k: Tensor
    slots_v: Tensor
    opened: Tensor
    tokens: int

    @property
    def nbytes(self) -> int:
        """Bytes of all its tensors."""
        return sum(x.nbytes for x in self if isinstance(x, Tensor))


class SharedSlots:
    """Slots of several layers: the first that it is given to makes them, of what that layer reads.

    Each of the others attends to what the first has made last: so it comes behind it, with the same text.
    Copied or saved with its layers, it forgets the text.

    Raises: ValueError, when a layer joins, if its `block` or what it chooses is not that of the first.
    """

    def __init__(self, kind: tuple[int, str] | None = None) -> None:
        self.made: tuple[Tensor, Tensor] | None = None
        self.kind = kind  # of the first layer: tokens of a block, and what is chosen

    def __reduce__(self) -> tuple:
        return SharedSlots, (self.kind,)

    def joined(self, block: int, choose: str) -> bool:
        """Whether the layer that joins is the first, which makes the slots."""
        first, self.kind = self.kind is None, self.kind or (block, choose)
        if self.kind != (block, choose):
            raise ValueError(f"got {(block, choose)} as block and choose, expected {self.kind}, as shared")
        return first

    def first(self, blocks: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Those of so many blocks. Raises ValueError unless they were made of a text such as this one."""
        if self.made is None:
            raise ValueError("no layer has made the shared slots yet, expected the first one to read first")
        slots_k, slots_v = self.made
        got, expected = (slots_k.size(0), *slots_k.shape[1::2]), (like.size(0), *like.shape[1::2])
        if got != expected or slots_k.size(-2) < blocks:
            got, expected = tuple(slots_k.shape), (*expected[:2], blocks, expected[2])
            raise ValueError(f"the shared slots have shape {got}, expected {expected}")
        return slots_k[..., :blocks, :], slots_v[..., :blocks, :]


class CompressedAttention(AttentionLayer):
    """Causal self-attention to the last `window` tokens, and to one slot for each earlier block.

    Args:
        d_model: features per token, a multiple of num_heads.
        num_heads: query heads of d_model // num_heads features each.
        block: tokens in a slot. window: tokens, its own among them, that each query attends to; 0 for none.
        content: what a token is decides its weight in its slot, feature by feature. Otherwise only its place
            in the block does.
        overlap: a slot mixes the block before as well, by projections of its own.
        top: how many slots or blocks a query attends to, those that score best over all heads; or all.
        one_tensor: one head of keys for all queries, and the values are the keys.
        choose: "slots", or "tokens": slots of keys are then scored, and nobody attends to them, but to the
            tokens of the `top` best blocks, of the block that has not ended, and of the window.
        shared: slots that all layers with this object attend to; the first of them makes them.

    Shape: x (batch, n, d_model), padding_mask (batch, n) with True = a real token -> (batch, n, d_model)
    Raises: ValueError if sizes are no such integers or heads do not divide evenly, as AttentionLayer, or as
        SharedSlots.
    Padded tokens enter no block and are in no window, wherever they stand.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        block: int,
        window: int,
        content: bool = True,
        overlap: bool = False,
        top: int | None = None,
        one_tensor: bool = False,
        choose: Literal["slots", "tokens"] = "slots",
        shared: SharedSlots | None = None,
    ):
        super().__init__(d_model, num_heads, 1 if one_tensor else None)
        self.block, self.window = check_size("block", block), check_size("window", window, NO_WINDOW)
        self.top = None if top is None else check_size("top", top)
        self.overlap, self.choose, self.shared = overlap, choose, shared
        if choose not in ("slots", "tokens"):
            raise ValueError(f"choose is {choose!r}, expected 'slots' or 'tokens'")
        if one_tensor:
            self.value = self.key
        self.makes_slots = shared is None or shared.joined(self.block, choose)
        if not self.makes_slots:
            return
        width = self.key.out_features * (2 if overlap else 1)
        self.gate = nn.Linear(d_model, width, bias=False) if content else None
        self.bias = nn.Parameter(torch.zeros(self.block, *([width] if content or overlap else [])))
        if overlap:
            d_kv = self.key.out_features
            self.key_of_next = nn.Linear(d_model, d_kv, bias=False)
            self.value_of_next = self.key_of_next if one_tensor else nn.Linear(d_model, d_kv, bias=False)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """All tokens at once."""
        check_inputs(x, padding_mask, self.query.in_features)
        if padding_mask is None:
            return self._read(x)
        order = (~padding_mask).long().argsort(dim=1, stable=True)  # real tokens first
        order = order[..., None].expand_as(x)
        read = self._read(heads.finite_padding(x, padding_mask).gather(1, order))
        return torch.empty_like(read).scatter(1, order, read)

    def _read(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x)
        blocks = check_same_length(q, k, v) // self.block
        slots_k, slots_v = self._given(blocks, q, self.slots(x))
        if self.choose == "tokens":
            mixed = self._attend_to_chosen(q, k, v, slots_k)
        else:
            chosen = self._best(q, slots_k, ended(x.size(1), self.block, x.device))
            mixed = block_attention(q, k, v, slots_k, slots_v, self.block, self.window, chosen)
        return self.output(merge_heads(mixed))

    def write(self, x: Tensor, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """Read some more tokens of every text: their outputs, and the cache with them.

        The first ones, such as a prompt, are read at once; what is added to a cache, token by token.

        Shape: x (batch, tokens, d_model) -> as x
        Raises: ValueError as forward, or if the cache is of another batch or layer.
        """
        check_inputs(x, None, self.query.in_features)
        if cache is None:
            return self._read(x), self._cache(x)
        self._check(cache, x)
        outputs = []
        for token in x.split(1, dim=1):
            output, cache = self._write_one(token, cache)
            outputs.append(output)
        return torch.cat(outputs, dim=1), cache

    def _write_one(self, x: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        q, k, v = self.project(x)
        cache = self._with(cache, x, k, v)
        blocks = cache.tokens // self.block
        slots_k, slots_v = self._given(blocks, q, (cache.slots_k, cache.slots_v))
        if self.choose == "tokens":
            mixed = self._attend_to_chosen(q, cache.keys, cache.values, slots_k)
            return self.output(merge_heads(mixed)), cache
        keys = torch.cat([slots_k, cache.keys], dim=-2)
        values = torch.cat([slots_v, cache.values], dim=-2)
        chosen = self._best(q, slots_k, q.new_ones(1, blocks, dtype=torch.bool))
        if chosen is not None:
            chosen = functional.pad(chosen, (0, cache.keys.size(-2)), value=True)
        q, keys, values = map(in_float32, (q, keys, values))
        with full_precision(q):
            mixed = scaled_dot_product_attention(q, keys, values, chosen).to(v.dtype)
        return self.output(merge_heads(mixed)), cache

    def slots(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of all whole blocks, (batch, kv heads, n // block, d_head) each.

        Nothing where another layer makes the slots. Where tokens are chosen no values, and only gate and bias
        learn from the choice: where it also pulled at the layer's own keys, training diverged.
        """
        if not self.makes_slots:
            _, k, v = self.project(x[:, :0])
            return k, v
        k, v = self.key(x), self.value(x)
        if self.overlap:
            k, v = torch.cat([self.key_of_next(x), k], -1), torch.cat([self.value_of_next(x), v], -1)
        if self.choose == "tokens":
            x, k = x.detach(), k.detach()
        logits = None if self.gate is None else self.gate(x)

        def mixed(some: Tensor) -> Tensor:
            return split_heads(compress_blocks(some, self.bias, logits, self.overlap), self.num_kv_heads)

        slots_k = mixed(k)
        return slots_k, slots_k[..., :0, :] if self.choose == "tokens" else mixed(v)

    def _given(self, blocks: int, q: Tensor, own: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Its own slots, which are shown to those that share them; or those that it is shown."""
        if self.shared is None:
            return own
        if self.makes_slots:
            self.shared.made = own
        return self.shared.first(blocks, q[:, : self.num_kv_heads])

    def _best(self, q: Tensor, slots_k: Tensor, seen: Tensor) -> Tensor | None:
        """Which slots each query attends to, (batch, 1, n, slots); None: all."""
        return None if self.top is None else best_slots(_wanted(q, slots_k), self.top, seen)[:, None]

    def _attend_to_chosen(self, q: Tensor, k: Tensor, v: Tensor, slots_k: Tensor) -> Tensor:
        return chosen_attention(q, k, v, _wanted(q.detach(), slots_k), self.block, self.window, self.top)

    def _cache(self, x: Tensor) -> Cache:
        """After the first tokens of a text."""
        n = x.size(1)
        _, keys, values = self.project(x[:, n - self._kept(n) :])
        return Cache(keys, values, *self.slots(x), x[:, self._first_needed(n) :].clone(), n)

    def _kept(self, n: int) -> int:
        """Of n tokens, how many keys and values are kept."""
        return n if self.choose == "tokens" else min(self.window, n)

    def _first_needed(self, n: int) -> int:
        """The first token of n that a slot to come will mix."""
        if not self.makes_slots:
            return n
        blocks = n // self.block
        return self.block * (max(0, blocks - 1) if self.overlap else blocks)

    def _check(self, cache: Cache, x: Tensor) -> None:
        """Raise ValueError unless the cache has the sizes that this layer leaves after so many tokens."""
        if not x.size(1):
            raise ValueError("x has 0 tokens, expected at least 1")
        if not isinstance(cache, Cache):
            raise ValueError(
                f"the cache is a {type(cache).__name__}, expected a Cache, or None before a text"
            )
        n, of_head = cache.tokens, (len(x), self.num_kv_heads, self.key.out_features // self.num_kv_heads)
        sizes = self._kept(n), n // self.block * self.makes_slots, n - self._first_needed(n)
        parts = cache.keys, cache.slots_k, cache.opened
        expected = *((*of_head[:2], size, of_head[2]) for size in sizes[:2]), (len(x), sizes[2], x.size(-1))
        got = tuple(tuple(part.shape) for part in parts)
        if got != expected:
            raise ValueError(f"the cache has keys, slots, open tokens {got}; expected {expected}")

    def _with(self, cache: Cache, x: Tensor, k: Tensor, v: Tensor) -> Cache:
        """The cache with one more token; if that ends its block, with one more slot."""
        tokens, opened = cache.tokens + 1, torch.cat([cache.opened, x], dim=1)
        keys, values = torch.cat([cache.keys, k], dim=-2), torch.cat([cache.values, v], dim=-2)
        out = keys.size(-2) - self._kept(keys.size(-2))  # of the window
        slots_k, slots_v = cache.slots_k, cache.slots_v
        if tokens % self.block == 0:
            k, v = self.slots(opened)
            slots_k = torch.cat([slots_k, k[..., -1:, :]], dim=-2)
            slots_v = torch.cat([slots_v, v[..., -1:, :]], dim=-2)
        opened = opened[:, opened.size(1) - (tokens - self._first_needed(tokens)) :]
        return Cache(keys[..., out:, :], values[..., out:, :], slots_k, slots_v, opened, tokens)


def _wanted(q: Tensor, slots_k: Tensor) -> Tensor:
    """How much each query wants each slot, its heads' scores summed. Shape: (batch, n, slots)"""
    return index_scores(q, slots_k, q.new_ones(q.size(0), q.size(2), q.size(1)))
