"""Clip of chapter 01, which uses the same five tokens and the same vectors."""

import torch
from look import *
from manim import *

from linformer_from_scratch.attention import attention_weights, scaled_dot_product_attention

TOKENS = ["the", "cat", "chased", "its", "tail"]
q = torch.tensor([[0.5, 1.0], [-1.0, 1.0], [1.5, 0.0], [1.0, 0.5], [0.0, -1.0]])
k = torch.tensor([[-1.5, -0.5], [1.5, 1.5], [-1.0, 1.5], [0.0, -1.5], [1.5, -1.0]])
v = torch.tensor([[-2.0, 0.5], [0.5, 2.0], [-1.0, -1.5], [1.0, -2.0], [2.0, -0.5]])
ITS = 3  # the token whose query the clip follows


class Attention(Story):
    """One word's query is compared with five keys; the scores become weights, and the weights mix five values."""

    def construct(self) -> None:
        """Tell it in seven steps: on the left the plane, on the right one row for each token."""
        scores = (q @ k.mT)[ITS].tolist()
        weights = attention_weights(q, k)[ITS].tolist()
        mixture = scaled_dot_product_attention(q, k, v)[ITS].tolist()

        sentence = VGroup(*map(words, TOKENS)).arrange(buff=0.3).scale(1.4).to_edge(UP, buff=0.4)
        plane = NumberPlane((-2.6, 2.6), (-2.3, 2.3), 5.98, 5.29, background_line_style={"stroke_color": GRID})
        plane.set_stroke(GRID, 1).shift(3.6 * LEFT + 0.1 * DOWN)
        query = pointer(plane, q[ITS], "query", QUERY)
        keys = VGroup(*(pointer(plane, key, token, KEY) for key, token in zip(k, TOKENS, strict=True)))

        table = VGroup()
        for i in range(len(TOKENS)):
            y = (1.5 - 0.75 * i) * UP
            bar = Rectangle(QUERY, 0.4, 4 * weights[i], fill_opacity=0.8, stroke_width=0).next_to(3.4 * RIGHT + y, buff=0)
            row = words(TOKENS[i]).move_to(y + RIGHT), number(scores[i]).move_to(y + 2.5 * RIGHT), bar
            table.add(VGroup(*row, number(weights[i], QUERY).next_to(bar, buff=0.15)))
        names, dots, bars, shares = (VGroup(*column) for column in zip(*table, strict=True))
        score_title = MathTypst("q dot k", font_size=44, color=INK).move_to(2.5 * RIGHT + 2.35 * UP)
        weight_title = MathTypst('"softmax"(q dot k \\/ sqrt(2))', font_size=44, color=QUERY)
        weight_title.next_to(3.4 * RIGHT + 2.35 * UP, buff=0)
        total = words(f"sum {sum(weights):.2f}", color=QUERY).next_to(3.4 * RIGHT + 2.2 * DOWN, buff=0)

        places = [plane.c2p(*value) for value in v.tolist()]
        values = VGroup(ConvexHull(*places, color=VALUE, stroke_width=2, fill_opacity=0.06))
        for place, token in zip(places, TOKENS, strict=True):
            values.add(Dot(place, color=VALUE), beside(plane, place, token, VALUE))
        discs = VGroup(*(Dot(p, 0.6 * w**0.5, color=VALUE) for p, w in zip(places, weights, strict=True)))
        discs.set_opacity(0.6)
        star = Star(color=QUERY, fill_opacity=1).scale(0.25).move_to(plane.c2p(*mixture))

        self.step("Which words should “its” listen to?", FadeIn(sentence), sentence[ITS].animate.set_color(QUERY))
        self.step("It asks with a query; every word offers a key.", FadeIn(plane, query, keys))
        flights = [TransformFromCopy(key, dot) for key, dot in zip(keys, dots, strict=True)]
        self.step("One dot product with each key: the same direction scores high.", FadeIn(names, score_title), LaggedStart(*flights, lag_ratio=0.3))
        self.step("Softmax turns the scores into weights that sum to one.", FadeIn(weight_title, shares, total), TransformFromCopy(dots, bars))
        self.step("Every word also hands over a value.", FadeOut(query, keys), FadeIn(values))
        self.step("Each value counts by its weight …", TransformFromCopy(bars, discs))
        self.step("… and all slide into one point: what “its” has read.", discs.animate.move_to(star), FadeIn(star))


def pointer(plane, vector, label, color):
    """An arrow from the origin with its label beyond the tip."""
    tip = plane.c2p(*vector.tolist())
    return VGroup(Arrow(plane.c2p(0, 0), tip, buff=0, color=color), beside(plane, tip, label, color))


def beside(plane, place, label, color):
    """A label beyond a place, seen from the origin."""
    return words(label, color=color).move_to(place + 0.5 * normalize(place - plane.c2p(0, 0)))
