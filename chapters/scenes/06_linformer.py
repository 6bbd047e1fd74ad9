"""Clip of chapter 06: 12 tokens of 4 random features; E and F average neighbours into 3 slots."""

import torch
from look import *
from manim import *

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.projections import MeanPooling

N, D, SLOTS, CELL = 12, 4, 3, 0.27


class Linformer(Story):
    """E and F squeeze keys and values into slots: the n×n map folds into n×k, each query keeps its row."""

    def construct(self) -> None:
        """Queries at the left, keys on top, values at the right, the map in the middle; then the squeeze."""
        q, k, v = 1.6 * torch.randn(3, N, D, generator=torch.Generator().manual_seed(3))
        E = MeanPooling(N, SLOTS)(torch.eye(N))
        queries = placed(q, QUERY, [-4.6, 0, 0])
        whole = self.parts(k, v, attention_weights(q, k))
        squeezed = self.parts(E @ k, E @ v, attention_weights(q, E @ k))
        keys, values, square = whole
        letters = [formula("Q", QUERY).next_to(queries, UP), formula("K^T", KEY).next_to(keys, UP, 0.15)]
        letters += [formula("V", VALUE).next_to(values, UP), formula("P").next_to(square, DOWN, 0.15)]
        caption = f"{N} queries meet {N} keys: a map of {N}×{N}."
        self.step(
            caption, FadeIn(queries, keys, *letters[:2]), TransformFromCopy(keys, square), FadeIn(letters[3])
        )
        self.step(f"It mixes {N} values.", FadeIn(values, letters[2]))
        new = [
            formula("(E K)^T", KEY).next_to(squeezed[0], UP, 0.15),
            formula("F V", VALUE).next_to(squeezed[1], UP),
        ]
        caption = f"E squeezes the {N} keys into {SLOTS} slots …"
        self.step(caption, Transform(keys, squeezed[0]), Transform(letters[1], new[0]))
        caption = f"… F squeezes the {N} values into {SLOTS}."
        self.step(caption, Transform(values, squeezed[1]), Transform(letters[2], new[1]))
        strip = formula("overline(P)").next_to(squeezed[2], DOWN, 0.15)
        caption = f"The map folds into {N}×{SLOTS}: each query reads slots, not tokens."
        self.step(caption, Transform(square, squeezed[2]), Transform(letters[3], strip), seconds=1.8)
        output = placed(linformer_attention(q, k, v, E, E), INK, [5.4, 0, 0])
        caption = f"The output still has {N} rows, one for each token."
        self.step(caption, FadeIn(output, formula("overline(P) (F V)").next_to(output, UP)), pause=2.2)

    def parts(self, k, v, weights) -> tuple[VGroup, VGroup, VGroup]:
        """Keys on top of the map, values at its right, and the map; as wide and as high as they have keys."""
        square = placed(weights, QUERY, [-1.3, 0, 0], weights / weights.max())
        keys = placed(k.mT, KEY, [0, 0, 0]).next_to(square, UP, buff=0.2)
        return keys, placed(v, VALUE, [2.6, 0, 0]), square


def placed(x: torch.Tensor, color: str, where: list[float], shade: torch.Tensor | None = None) -> VGroup:
    """A matrix as coloured cells around a point."""
    return grid(shades(x) if shade is None else shade, color, cell=CELL).move_to(where)
