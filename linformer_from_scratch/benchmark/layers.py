"""The layers that are compared: name -> what builds it for texts of n tokens."""

from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.efficient import EfficientAttention, linear_attention
from linformer_from_scratch.encoder import Block
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import LearnedProjection

Builders = dict[str, Callable[[], nn.Module]]
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
STORED, FUSED = "stored maps", "fused exact"
PUBLISHED = "Linformer E(XW), stored maps"
KEYS_FIRST, TOKENS_FIRST, SHARED = "Linformer E(XW)", "Linformer (EX)W", "Linformer (EX)W, E = F"
LINEAR = "linear attention"
SLOTS = (128, 256, 512, 1024, 2048)  # k in the paper's table 3


class StoredMaps(MultiHeadAttention):
    """Multi-head attention that stores its n×n maps, as was usual before 2022."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor | None) -> Tensor:
        """By the definition, all heads at once."""
        return scaled_dot_product_attention(q, k, v, self.mask(q, padding_mask))


class KeysFirst(LinformerAttention):
    """Linformer in the paper's order, E(XW), with the fused kernel over its slots."""

    def slots(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Shape: two of (batch, num_heads, proj_dim, d_head)."""
        return self.E(self.split(self.key(x))), self.F(self.split(self.value(x)))


class AsPublished(KeysFirst):
    """Linformer as the paper wrote it: E(XW), and n×k maps that are stored."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor | None) -> Tensor:
        """By the definition, all heads at once."""
        return scaled_dot_product_attention(q, k, v)


def shared(kind: type[LinformerAttention], n: int, d_model: int, num_heads: int, proj_dim: int) -> nn.Module:
    """A Linformer layer with one matrix as E and F."""
    E = LearnedProjection(n, proj_dim)
    return kind(d_model, num_heads, E, E)


def blocks(n: int, d_model: int, num_heads: int) -> Builders:
    """A block around each attention; Linformer by its k, as published and fused, E = F."""
    sizes = d_model, num_heads
    builders: Builders = {
        STORED: lambda: Block(d_model, StoredMaps(*sizes)),
        FUSED: lambda: Block(d_model, MultiHeadAttention(*sizes)),
    }
    for k in (k for k in SLOTS if k <= n // 2):
        builders[f"{k}, {STORED}"] = partial(_linformer_block, AsPublished, n, *sizes, k)
        builders[f"{k}, fused"] = partial(_linformer_block, LinformerAttention, n, *sizes, k)
    return builders


def _linformer_block(kind: type[LinformerAttention], n: int, d_model: int, *sizes: int) -> Block:
    return Block(d_model, shared(kind, n, d_model, *sizes))


def layers(n: int, d_model: int, num_heads: int, proj_dim: int) -> Builders:
    """Attention layers of this course."""
    sizes = d_model, num_heads

    def projection() -> LearnedProjection:
        return LearnedProjection(n, proj_dim)

    return {
        STORED: lambda: StoredMaps(*sizes),
        FUSED: lambda: MultiHeadAttention(*sizes),
        PUBLISHED: lambda: AsPublished(*sizes, projection(), projection()),
        KEYS_FIRST: lambda: KeysFirst(*sizes, projection(), projection()),
        TOKENS_FIRST: lambda: LinformerAttention(*sizes, projection(), projection()),
        SHARED: lambda: shared(LinformerAttention, n, *sizes, proj_dim),
        LINEAR: lambda: EfficientAttention(*sizes, linear_attention),
    }


def packages(n: int, d_model: int, num_heads: int, proj_dim: int) -> Builders:
    """Layers that people install, where they are installed; their names carry their versions."""
    sizes = n, d_model, num_heads, proj_dim
    known = {"linformer": _linformer, "linformer-pytorch": _linformer_pytorch}
    return {
        f"{name} {version(name)}": partial(build, *sizes)
        for name, build in known.items()
        if find_spec(name.replace("-", "_"))
    }


def _linformer(n: int, d_model: int, num_heads: int, proj_dim: int) -> nn.Module:
    from linformer import LinformerSelfAttention

    return LinformerSelfAttention(d_model, n, k=proj_dim, heads=num_heads)


def _linformer_pytorch(n: int, d_model: int, num_heads: int, proj_dim: int) -> nn.Module:
    from linformer_pytorch import MHAttention

    E, F = (nn.Linear(n, proj_dim) for _ in range(2))  # it makes its own unless layers share them
    sizes = n, d_model // num_heads, d_model, proj_dim, num_heads
    return MHAttention(*sizes, 0.0, "C0", "headwise", E, F, full_attention=False, causal_mask=None)
