"""Clip of chapter 06: 12 tokens of 4 random features; E and F average neighbours into 3 slots."""

import torch
from look import *
from manim import *
from torch import Tensor

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.course.plots import GREY
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.projections import MeanPooling

N, D, SLOTS, CELL, GAP = 12, 4, 3, 0.35, 0.25


class Linformer(Story):
    """Each row of E mixes tokens into one slot, F does the same for values, and queries attend to slots."""

    def construct(self) -> None:
        """First E and the keys, then F and the values, then attention over the slots."""
        q, k, v = 1.6 * torch.randn(3, N, D, generator=torch.Generator().manual_seed(3))
        E = MeanPooling(N, SLOTS)(torch.eye(N))
        for_keys = product(E, k, ["E", "K", "E K"], KEY).shift(2.3 * RIGHT)
        rows, keys, slots, names = for_keys
        caption = f"K has one row for each of {N} tokens, E one for each of {SLOTS} slots."
        self.step(caption, FadeIn(rows, keys, slots[-1], names), seconds=0.8)
        for i in range(SLOTS):
            caption = f"Row {i + 1} of E weighs the tokens and mixes their keys into slot {i + 1}."
            self.mix(caption, E[i], line(rows, i, N), keys, line(slots, i, D), slowly=i == 0)

        for_values = product(E, v, ["F", "V", "F V"], VALUE).shift(5.5 * RIGHT)
        rows, values, mixtures, names = for_values
        aside = for_keys.animate.shift(3.3 * LEFT)
        self.step("F does the same for the values.", aside, seconds=0.7, pause=0.1)
        self.play(FadeIn(rows, values, mixtures[-1], names), run_time=0.6)
        dim = line(values, 0, N * D).animate(rate_func=there_and_back).set_fill(opacity=0.15)
        self.play(dim, *(flow for i in range(SLOTS) for flow in flows(E[i], values, line(mixtures, i, D))))
        self.wait(0.3)

        gone = VGroup(*for_keys[:2], *for_keys[3], *for_values[:2], *for_values[3])
        caption = f"Now {N} queries attend to {SLOTS} slots instead of {N} tokens."
        self.step(caption, FadeOut(gone), seconds=0.4, pause=0.1)
        outputs = linformer_attention(q, k, v, E, E)
        self.attend(q, attention_weights(q, E @ k), outputs, slots, mixtures)

    def mix(
        self, caption: str, weights: Tensor, row: VGroup, keys: VGroup, slot: VGroup, slowly: bool
    ) -> None:
        """A row of E stands up beside the tokens and dims those it leaves out; the others become its slot."""
        upright, numbers, others = VGroup(), VGroup(), VGroup()
        for j, weight in enumerate(weights.tolist()):
            token = line(keys, j, D)
            upright.add(row[j].copy().next_to(token, LEFT, GAP))
            if weight:
                numbers.add(number(weight, KEY).next_to(upright[j], LEFT, 0.15))
            else:
                others.add(token)
        mark = SurroundingRectangle(row, color=INK, buff=0)
        pace = 1.2 if slowly else 0.7
        late = squish_rate_func(smooth, 0.85, 1)  # when what moves has arrived
        stand = TransformFromCopy(row, upright) if slowly else FadeIn(upright)
        dim, signs = others.animate.set_fill(opacity=0.15), FadeIn(numbers, rate_func=late)
        self.step(caption, stand, dim, FadeIn(mark), signs, seconds=pace, pause=pace - 0.5)
        back, done = others.animate(rate_func=late), FadeOut(mark, upright, numbers, rate_func=late)
        self.play(*flows(weights, keys, slot), back.set_fill(opacity=1), done, run_time=pace)
        self.wait(pace - 0.5)

    def attend(self, q: Tensor, weights: Tensor, outputs: Tensor, *slots: VGroup) -> None:
        """Queries at the left, slots on top, the map in the place of the full one, outputs at the right."""
        full = Square(N * CELL, color=GREY, stroke_width=2).shift(0.25 * DOWN)
        queries = matrix(shades(q), QUERY).next_to(full, LEFT, 2 * GAP)
        strip = matrix(weights / weights.max(), QUERY).align_to(full, UL)
        output = matrix(shades(outputs), INK).next_to(full, RIGHT, 2 * GAP)
        keys, values = (group.copy() for group in slots)
        keys.flip(RIGHT + DOWN).next_to(strip, UP, GAP)  # about its diagonal: transposed
        values.next_to(output, UP, GAP)
        letters = VGroup(
            formula("Q", QUERY).next_to(queries, UP, 0.15),
            formula("(E K)^T", KEY).next_to(keys, RIGHT),
            formula("F V", VALUE).next_to(values, UP, 0.15),
            words(f"{N}×{N} without E", GREY).next_to(full, DOWN, 0.15),
        )
        self.play(*map(Transform, slots, (keys, values)), run_time=0.7)
        self.play(FadeIn(queries, full, letters), run_time=0.3)
        self.play(FadeIn(strip, formula("overline(P)", QUERY).next_to(strip, RIGHT)), run_time=0.8)
        self.wait(0.7)
        result = FadeIn(output, formula("overline(P) (F V)").next_to(output, RIGHT))
        self.step(f"Each query mixes {SLOTS} values: {N} rows come out.", result, seconds=0.8, pause=1.4)


def product(E: Tensor, x: Tensor, names: list[str], color: str) -> VGroup:
    """E at the left, x on top, E x where rows meet columns, in the shades of x; and their names."""
    top, crossing = (matrix(shade, color) for shade in shades(torch.cat([x, E @ x])).split([N, SLOTS]))
    crossing.next_to(top.shift(1.25 * UP), DOWN, GAP)
    left = matrix(E / E.max(), color).next_to(crossing, LEFT, GAP)
    sides = zip(names, (left, top, crossing), (DOWN, UP, DOWN), strict=True)
    return VGroup(left, top, crossing, VGroup(*(formula(n, color).next_to(m, s, 0.15) for n, m, s in sides)))


def flows(weights: Tensor, tokens: VGroup, slot: VGroup) -> list[Animation]:
    """Copies of the tokens that have a weight slide into one slot."""
    lit = weights.nonzero().flatten().tolist()
    return [ReplacementTransform(line(tokens, j, D).copy(), slot) for j in lit]


def matrix(shade: Tensor, color: str) -> VGroup:
    """A matrix as coloured cells."""
    return grid(shade, color, cell=CELL)


def line(cells: VGroup, i: int, width: int) -> VGroup:
    """Row i of a matrix."""
    return cells[i * width : (i + 1) * width]
