"""Clip of chapter 08: held-out loss of three encoders while they train, from the recorded runs of seed 0."""

from look import *
from manim import *

from linformer_from_scratch.course.plots import GREY
from linformer_from_scratch.course.recorded import curves as records

X, Y, WIDTH, HEIGHT = -5.2, -2.0, 8.0, 5.0  # of the picture, in the scene's units
LOWEST, HIGHEST = 2.6, 4.6  # losses that are drawn
COLOURS = {"full": QUERY, "linformer": KEY, "none": VALUE}
NAMES = {"full": "Transformer", "linformer": "Linformer", "none": "no attention"}


class Training(Story):
    """Three encoders learn the same text, and the gap between them opens late."""

    def construct(self) -> None:
        """Grey lines for what counting reaches, and three curves at the same pace."""
        runs = {name: run_of(name) for name in COLOURS}
        steps = runs["full"]["steps"]
        baselines = runs["full"]["baselines"].items()
        levels = VGroup(*(self.level(name, loss) for name, loss in baselines if loss < HIGHEST))
        frame = VGroup(
            Line(place(0, LOWEST), place(1, LOWEST), color=INK),
            Line(place(0, LOWEST), place(0, HIGHEST), color=INK),
            words(f"{steps:,} updates", size=24).next_to(place(0.85, LOWEST), DOWN, buff=0.12),
            words("loss", size=24).next_to(place(0, HIGHEST), UP, buff=0.1),
        )
        self.add(frame, levels)
        curves = [self.curve(run["curve"], COLOURS[name]) for name, run in runs.items()]
        caption = "Three encoders learn. Dashed: what counting alone reaches."
        self.step(caption, *map(Create, curves), seconds=6.0, pause=0.5)
        losses = {name: run["curve"][-1][1] for name, run in runs.items()}
        highest_first = sorted(losses, key=losses.get, reverse=True)
        ends = VGroup(*(self.end(name, losses[name]) for name in highest_first))
        middle = place(1, losses[highest_first[1]])
        ends.arrange(DOWN, buff=0.2, aligned_edge=LEFT).next_to(middle, RIGHT, buff=0.6)
        for name, end in zip(highest_first, ends, strict=True):
            end.add(Line(place(1, losses[name]), end.get_left() + 0.1 * LEFT, color=COLOURS[name]))
        closing = "The gap between green and blue is what attention brings."
        self.step(closing, FadeIn(ends), pause=2.5)

    def level(self, name: str, loss: float) -> VGroup:
        """A baseline: a thin line across, its name on it at the left, where no curve comes by."""
        line = DashedLine(place(0, loss), place(1, loss), color=GREY, stroke_width=2)
        return VGroup(
            line, words(name, GREY, 22).next_to(line, UP, 0.1, aligned_edge=LEFT).shift(0.1 * RIGHT)
        )

    def curve(self, points: list, color: str) -> VMobject:
        """A learning curve from where it enters the picture."""
        last = points[-1][0]
        corners = [place(updates / last, loss) for updates, loss in points if loss < HIGHEST]
        return VMobject(color=color, stroke_width=5).set_points_as_corners(corners)

    def end(self, name: str, loss: float) -> VGroup:
        """A model's name and its last loss."""
        return VGroup(words(NAMES[name], COLOURS[name], 24), number(loss, COLOURS[name])).arrange(RIGHT)


def place(share: float, loss: float) -> list[float]:
    """Where a loss stands in the picture after a share of the updates."""
    return [X + WIDTH * share, Y + HEIGHT * (loss - LOWEST) / (HIGHEST - LOWEST), 0]


def run_of(attention: str) -> dict:
    """The recorded run of seed 0 with k = 32, layerwise, learned."""
    return records.recorded("size", attention=attention, seed=0)[0]
