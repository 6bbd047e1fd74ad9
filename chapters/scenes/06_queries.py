"""Clip of chapter 06: averaging keys and values keeps 12 outputs; averaging queries keeps 3."""

import torch
from look import *
from manim import *

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.projections import MeanPooling

N, D, SLOTS, CELL = 12, 2, 3, 1 / 3


class Queries(Story):
    """Compressed keys and values still give a row for each token; compressed queries, one for each slot."""

    def construct(self) -> None:
        """On the left the keys and values shrink, on the right the queries."""
        q, k, v = 1.6 * torch.randn(3, N, D, generator=torch.Generator().manual_seed(3))
        E = MeanPooling(N, SLOTS)(torch.eye(N))
        start = VGroup(lane(q, k, v, -3.65), lane(q, k, v, 3.65))
        squeezed = lane(q, E @ k, E @ v, -3.65), lane(E @ q, k, v, 3.65)
        shorter = (0, 1), (0, 2), (1, 0), (1, 1)  # side and matrix; the two others stay as they are
        kept, lost = linformer_attention(q, k, v, E, E), attention_weights(E @ q, k) @ v
        left = words("compress keys and values", KEY).move_to([-3.6, 3.4, 0])
        right = words("compress queries", QUERY).move_to([3.6, 3.4, 0])
        caption = f"{N} queries, {N} keys, {N} values: queries × keys make a map."
        self.step(caption, FadeIn(start, left, right))
        caption = f"Averaging leaves {SLOTS} keys and values at the left, {SLOTS} queries at the right."
        squeeze = [FadeTransform(start[side][i], squeezed[side][i]) for side, i in shorter]
        self.step(caption, *squeeze, seconds=1.8, pause=1.5)
        outputs = VGroup(matrix(shades(kept), INK, -0.73), matrix(shades(lost), INK, 6.57))
        rows = [
            words(f"{len(o)} rows", INK, 32).move_to([x, -1.8, 0]) for o, x in ((kept, -0.73), (lost, 6.4))
        ]
        self.step(
            "The map mixes the values: one row comes out for each query.", FadeIn(outputs, *rows), pause=1.5
        )
        caption = f"{N} tokens get {N} outputs only if the queries stay."
        self.step(caption, Circumscribe(outputs[0], color=INK), pause=2.5)


def lane(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, x: float) -> VGroup:
    """Queries, map and values of one attention, side by side around x."""
    weights = attention_weights(q, k)
    parts = ((shades(q), QUERY, -3.02), (weights / weights.max(), QUERY, -0.48), (shades(v), VALUE, 2.05))
    return VGroup(*(matrix(shade, color, x + shift) for shade, color, shift in parts))


def matrix(shade: torch.Tensor, color: str, x: float) -> VGroup:
    """A matrix as coloured cells, its middle at x."""
    return grid(shade, color, cell=CELL).move_to([x, 0.6, 0])
