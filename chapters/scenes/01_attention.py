"""Clip of chapter 01, which uses the same five tokens and the same vectors."""

import torch
from look import *
from manim import *

from linformer_from_scratch.attention import attention_weights, scaled_dot_product_attention

TOKENS = ["the", "bank", "raised", "its", "rates"]
q = torch.tensor([[0.5, 1.0], [-1.0, 1.0], [1.5, 0.0], [1.0, 0.5], [0.0, -1.0]])
k = torch.tensor([[-1.5, -0.5], [1.5, 1.5], [-1.0, 1.5], [0.0, -1.5], [1.5, -1.0]])
v = torch.tensor([[-2.0, 0.5], [0.5, 2.0], [-1.0, -1.5], [1.0, -2.0], [2.0, -0.5]])
ITS = 3  # the token whose query the clip follows


class Attention(Story):
    """One query meets five keys: the dot products become weights, and the weights mix five values."""

    def construct(self) -> None:
        """On the left a plane with keys, then values; on the right one row for each token."""
        scores = (q @ k.mT)[ITS].tolist()
        weights = attention_weights(q, k)[ITS].tolist()
        mixture = scaled_dot_product_attention(q, k, v)[ITS].tolist()

        sentence = VGroup(*map(words, TOKENS)).scale(1.4).arrange(buff=0.35, aligned_edge=DOWN)
        plane = NumberPlane(
            (-2.6, 2.6), (-2.4, 2.4), 5.72, 5.28, background_line_style={"stroke_color": GRID}
        )
        plane.set_stroke(GRID, 1).shift(3.7 * LEFT + 0.05 * DOWN)
        query = arrow(plane, q[ITS], "query", QUERY)
        keys = VGroup(*(arrow(plane, key, token, KEY) for key, token in zip(k, TOKENS, strict=True)))

        rows = VGroup()
        for i, (token, score, weight) in enumerate(zip(TOKENS, scores, weights, strict=True)):
            y = (1.45 - 0.75 * i) * UP
            bar = Rectangle(QUERY, 0.4, 4 * weight, fill_opacity=0.8, stroke_width=0)
            bar.next_to(3.3 * RIGHT + y, buff=0)
            row = words(token).move_to(0.8 * RIGHT + y), number(score).move_to(2.3 * RIGHT + y), bar
            rows.add(VGroup(*row, number(weight, QUERY).next_to(bar, buff=0.15)))
        names, dots, bars, shares = (VGroup(*column) for column in zip(*rows, strict=True))
        dot_title = formula("q dot k").next_to(dots, UP, buff=0.4)
        weight_title = (
            formula('"softmax"(q dot k \\/ sqrt(2))', QUERY).match_y(dot_title).align_to(bars, LEFT)
        )
        total = words(f"sum {sum(weights):.2f}", QUERY).next_to(bars, DOWN, buff=0.35).align_to(bars, LEFT)

        places = [plane.c2p(*value) for value in v.tolist()]
        values = VGroup(ConvexHull(*places, color=VALUE, stroke_width=2, fill_opacity=0.06))
        star = Star(color=QUERY, fill_opacity=1).scale(0.25).move_to(plane.c2p(*mixture)).set_z_index(1)
        discs, threads = VGroup(), VGroup()  # area of a disc, width of a thread: the weight
        for place, token, weight in zip(places, TOKENS, weights, strict=True):
            values.add(Dot(place, color=VALUE), beside(plane, place, token, VALUE))
            disc = Circle(0.5 * weight**0.5, VALUE, fill_opacity=0.5, stroke_width=0).rotate(PI / 4)
            discs.add(disc.move_to(place))
            thread = Line(place, star.get_center(), color=VALUE, stroke_opacity=0.3, stroke_width=40 * weight)
            threads.add(thread)

        blue = sentence[ITS].animate.set_color(QUERY)
        self.step("Which words should “its” listen to?", FadeIn(sentence), blue)
        up = sentence.animate.to_edge(UP, buff=0.4)
        vectors = LaggedStart(up, FadeIn(plane, query, keys), lag_ratio=0.5)
        self.step("It asks with a query; every word offers a key.", vectors)
        products = LaggedStart(*map(linked, keys, dots, 5 * [QUERY]), lag_ratio=0.6)
        headed = FadeIn(names, dot_title)
        self.step("One dot product with each key: the same direction scores high.", headed, products)
        headed = FadeIn(weight_title, shares, total)
        softmax = (GrowFromEdge(bar, LEFT) for bar in bars)
        self.step("Softmax turns the scores into weights that sum to one.", headed, *softmax)
        exchange = Succession(FadeOut(query, keys), FadeIn(values))
        self.step("Every word also hands over a value.", exchange)
        counts = LaggedStart(*map(linked, bars, discs, 5 * [VALUE]), lag_ratio=0.6)
        self.step("Each value counts by its weight …", counts, seconds=1.8)
        slides = [FadeIn(star), *map(Create, threads), *(disc.animate.move_to(star) for disc in discs)]
        self.step("… and all slide into one point: what “its” takes home.", *slides)


def arrow(plane: NumberPlane, vector: torch.Tensor, label: str, color: str) -> VGroup:
    """A vector from the origin, its label beyond the tip."""
    tip = plane.c2p(*vector.tolist())
    return VGroup(Arrow(plane.c2p(0, 0), tip, buff=0, color=color), beside(plane, tip, label, color))


def linked(source: VGroup, target: VMobject, color: str) -> AnimationGroup:
    """The source lights up while what it gives appears in its own place: nothing crosses the words."""
    return AnimationGroup(Indicate(source, scale_factor=1.05, color=color), FadeIn(target))


def beside(plane: NumberPlane, place: np.ndarray, label: str, color: str) -> Text:
    """A label beyond a place, seen from the origin."""
    return words(label, color).move_to(place + 0.63 * normalize(place - plane.c2p(0, 0)))
