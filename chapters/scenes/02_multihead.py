"""Clip of chapter 02: a freshly drawn layer (its weights random) on five tokens, d_model 6, three heads."""

import torch
from look import *
from manim import *

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.multihead import MultiHeadAttention, merge_heads, split_heads

N, D_MODEL, HEADS = 5, 6, 3
HEAD_COLORS = ["#7B4FA3", "#B8860B", "#C2417C"]


class MultiHead(Story):
    """The features are cut into heads, each head reads by its own n×n map, and W_O mixes what they read."""

    def construct(self) -> None:
        """One lane a head: queries, keys, values; their map; its output; below, the outputs joined."""
        torch.manual_seed(7)
        layer = MultiHeadAttention(D_MODEL, HEADS).requires_grad_(False)
        x = 3 * torch.randn(1, N, D_MODEL)  # large, so that the maps differ at a glance
        q, k, v = layer.project(x)  # (1, heads, n, d_head) each
        maps = attention_weights(q, k)  # (1, heads, n, n)
        outputs = maps @ v  # (1, heads, n, d_head)
        w_o = layer.output.weight.mT  # its bias is left out of the picture
        y = merge_heads(outputs) @ w_o  # (1, n, d_model)

        tokens = VGroup(*blocks(split_heads(x, HEADS), INK)).arrange(buff=0).scale(1.5)
        wholes, lanes = VGroup(), VGroup(*(VGroup() for _ in range(HEADS)))
        for part, color in ((q, QUERY), (k, KEY), (v, VALUE)):
            wholes.add(VGroup(*blocks(part, color)).arrange(buff=0).scale(1.5))
            for lane, block in zip(lanes, blocks(part, color, HEAD_COLORS), strict=True):
                lane.add(block)
        wholes.arrange(buff=1.2)
        letters = VGroup(*(math(s).next_to(whole, UP) for s, whole in zip("QKV", wholes, strict=True)))
        VGroup(*(lane.arrange(buff=0.3) for lane in lanes)).arrange(buff=1.9).shift(2.1 * UP)
        titles, squares, sizes = VGroup(), VGroup(), VGroup()
        reads = VGroup(*blocks(outputs, VALUE, HEAD_COLORS))
        for i, lane in enumerate(lanes):
            titles.add(words(f"head {i + 1}", HEAD_COLORS[i]).next_to(lane, UP, buff=0.2))
            squares.add(grid(maps[0, i], QUERY, HEAD_COLORS[i]).next_to(lane, DOWN, buff=0.35))
            sizes.add(words(f"{N}×{N}").next_to(squares[i], RIGHT))
            reads[i].next_to(squares[i], DOWN, buff=0.35)
        joined = reads.copy().arrange(buff=0).move_to(reads)
        product = VGroup(joined.copy(), math("times"), grid(shades(w_o), INK), math("="), grid(shades(y)[0], INK))
        product.arrange(buff=0.35).move_to(joined)
        w_label, y_label = math("W^O"), math("Y")

        self.step("Five tokens with d_model = 6 features each.", FadeIn(tokens))
        self.step(
            "Three projections: queries, keys, values.",
            *(ReplacementTransform(tokens.copy(), whole) for whole in wholes), FadeOut(tokens), FadeIn(letters),
        )
        moves = [ReplacementTransform(wholes[j][i], lanes[i][j]) for i in range(HEADS) for j in range(3)]
        self.step("Cut the features into 3 heads of 2. Every head keeps all tokens.", *moves, FadeOut(letters), FadeIn(titles))
        maps_in = [TransformFromCopy(lane[:2], square) for lane, square in zip(lanes, squares, strict=True)]
        self.step("Each head compares its own queries and keys: 3 maps, each n×n.", *maps_in, FadeIn(sizes))
        reads_in = [TransformFromCopy(VGroup(s, lane[2]), r) for s, lane, r in zip(squares, lanes, reads, strict=True)]
        self.step("Each map mixes the values of its own head.", *reads_in)
        self.step("The results are joined side by side …", *map(Transform, reads, joined))
        self.step("… and W_O mixes the heads: every new feature reads all three.", *map(Transform, reads, product[0]), FadeIn(product[1:]))


def math(source: str) -> MathTypst:
    """A formula in the colour of the text."""
    return MathTypst(source, font_size=44, color=INK)


def shades(x: torch.Tensor) -> torch.Tensor:
    """Numbers moved into 0 … 1: from white to the full colour."""
    return (x - x.min()) / (x.max() - x.min())


def blocks(x: torch.Tensor, color: str, frames: list[str] = [GRID] * HEADS) -> list[VGroup]:
    """One grid for each head of x (1, heads, n, d_head)."""
    return [grid(block, color, frame) for block, frame in zip(shades(x)[0], frames, strict=True)]


def grid(shade: torch.Tensor, color: str, frame: str = GRID) -> VGroup:
    """A matrix as coloured cells in a frame."""
    fills = [interpolate_color(WHITE, ManimColor(color), s) for s in shade.flatten().tolist()]
    cells = VGroup(*(Square(0.27, color=GRID, fill_color=f, fill_opacity=1, stroke_width=1) for f in fills))
    cells.arrange_in_grid(*shade.shape, buff=0)
    return cells.add(SurroundingRectangle(cells, color=frame, buff=0, stroke_width=3))
