"""Clip of chapter 02: a freshly drawn layer (its weights random) on five tokens, d_model 6, three heads."""

import torch
from look import *
from manim import *

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.heads import merge_heads, split_heads
from linformer_from_scratch.multihead import MultiHeadAttention

N, D_MODEL, HEADS = 5, 6, 3
HEAD_COLORS = ("#7B4FA3", "#8F6A00", "#C2417C")


class MultiHead(Story):
    """The features are cut into heads, each attends by its own n×n map, and W_O mixes what they bring."""

    def construct(self) -> None:
        """One lane a head: queries, keys, values; their map; what it brings; below, all joined."""
        torch.manual_seed(7)
        layer = MultiHeadAttention(D_MODEL, HEADS).requires_grad_(False)
        x = 3 * torch.randn(1, N, D_MODEL)  # large, so that the maps differ at a glance
        q, k, v = layer.project(x)  # (1, heads, n, d_head) each
        maps = attention_weights(q, k)  # (1, heads, n, n)
        outputs = maps @ v  # (1, heads, n, d_head)
        w_o = layer.output.weight.mT  # its bias is left out of the picture
        y = merge_heads(outputs) @ w_o  # (1, n, d_model)

        tokens = blocks(split_heads(x, HEADS), INK).arrange(buff=0).scale(1.5)
        parts = ((q, QUERY), (k, KEY), (v, VALUE))
        wholes = VGroup(*(blocks(*part).arrange(buff=0).scale(1.5) for part in parts)).arrange(buff=1.2)
        wholes.shift(1.1 * DOWN)
        letters = VGroup(*(formula(s).next_to(whole, UP) for s, whole in zip("QKV", wholes, strict=True)))
        framed = [blocks(*part, HEAD_COLORS) for part in parts]
        cut = VGroup(*(parted.copy().arrange(buff=0.15).scale(1.5) for parted in framed))
        for parted, whole in zip(cut, wholes, strict=True):
            parted.move_to(whole)
        lanes = VGroup(*(VGroup(*lane).arrange(buff=0.3) for lane in zip(*framed, strict=True)))
        lanes.arrange(buff=1.7).shift(2.2 * UP)
        titles, squares, sizes = VGroup(), VGroup(), VGroup()
        reads = blocks(outputs, VALUE, HEAD_COLORS)
        for i, lane in enumerate(lanes):
            titles.add(words(f"head {i + 1}", HEAD_COLORS[i]).next_to(lane, UP, buff=0.2))
            squares.add(grid(maps[0, i], QUERY, HEAD_COLORS[i]).next_to(lane, DOWN, buff=0.3))
            sizes.add(words(f"{N}×{N}").next_to(squares[i], RIGHT))
            reads[i].next_to(squares[i], DOWN, buff=0.3)
        joined = reads.copy().arrange(buff=0).move_to(reads)
        mixing, mixed = grid(shades(w_o), INK), grid(shades(y)[0], INK)
        product = VGroup(joined.copy(), formula("times"), mixing, formula("="), mixed).arrange(buff=0.35)
        product.move_to(joined)
        names = VGroup(formula("W^O").next_to(mixing, DOWN, 0.1), formula("Y").next_to(mixed, DOWN, 0.1))

        self.step("Five tokens, one row each; d_model = 6 features, one column each.", FadeIn(tokens))
        project = Succession(tokens.animate.shift(2.2 * UP), FadeIn(wholes, letters))
        self.step("Three projections: queries, keys, values.", project)
        apart = FadeOut(tokens), ReplacementTransform(wholes, cut)
        caption = "Cut the features into 3 heads of 2. Every head keeps all tokens."
        self.step(caption, *apart, seconds=0.7, pause=0.1)
        self.play(FadeIn(lanes, titles), run_time=0.7)
        self.play(FadeOut(cut, letters), run_time=0.6)
        self.wait()
        pairs = [pulse(lane[:2]) for lane in lanes]
        compare = *pairs, FadeIn(squares, sizes)
        self.step("Each head compares its own queries and keys: 3 maps, each n×n.", *compare)
        sources = [
            pulse(source) for square, lane in zip(squares, lanes, strict=True) for source in (square, lane[2])
        ]
        self.step("Each map mixes the values of its own head.", *sources, FadeIn(reads))
        self.step("The results are joined side by side …", *map(Transform, reads, joined))
        mix = Succession(Transform(reads, product[0]), FadeIn(product[1:], names))
        self.step("… and Wᴼ mixes the heads: every new feature draws on all three.", mix, seconds=1.6)


def blocks(x: torch.Tensor, color: str, frames: tuple[str, ...] = HEADS * (GRID,)) -> VGroup:
    """One grid for each head of x (1, heads, n, d_head)."""
    return VGroup(*(grid(block, color, frame) for block, frame in zip(shades(x)[0], frames, strict=True)))
