"""Clip of chapter 02: five tokens, d_model 6, three heads; a freshly drawn layer, its weights random."""

import torch
from look import *
from manim import *

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.multihead import MultiHeadAttention, merge_heads

N, D_MODEL, HEADS = 5, 6, 3
CELL = 0.24


class MultiHead(Story):
    """The features are split into three heads, each head draws its own n×n map, and W_O mixes what they read."""

    def construct(self) -> None:
        """From top to bottom: queries, keys and values, one lane a head, the joined output."""
        torch.manual_seed(0)
        layer = MultiHeadAttention(D_MODEL, HEADS).requires_grad_(False)
        x = 4 * torch.randn(1, N, D_MODEL)  # large features, so that the maps differ at a glance
        q, k, v = layer.project(x)  # (1, heads, n, d_head) each
        maps = attention_weights(q, k)
        heads = maps @ v
        y = layer(x)
