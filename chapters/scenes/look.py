"""What all scenes share: white paper, the course's colours, captions, calm changes, text and matrices."""

from manim import *
from torch import Tensor

from linformer_from_scratch.course.plots import INK, KEY, QUERY, VALUE

__all__ = ["GRID", "INK", "KEY", "QUERY", "VALUE", "Story"]
__all__ += ["exchange", "formula", "grid", "number", "pulse", "shades", "words"]

GRID = "#D9D9D9"  # lines that only help the eye


class Story(Scene):
    """A scene told in steps."""

    def setup(self) -> None:
        """Start on white paper, so that the clip sits on pages and slides alike."""
        self.camera.background_color = WHITE
        self.caption = VGroup()

    def step(self, caption: str, *animations: Animation, seconds: float = 1.2, pause: float = 1.0) -> None:
        """Change the caption, play the animations together, give time to look."""
        old, self.caption = self.caption, words(caption, size=28).to_edge(DOWN, buff=0.35)
        self.play(exchange(old, self.caption), run_time=0.4)
        self.play(*animations, run_time=seconds)
        self.wait(pause)


def exchange(old: Mobject, new: Mobject) -> Succession:
    """The old one goes before the new one comes: neither is read through the other."""
    return Succession(FadeOut(old), FadeIn(new))


def pulse(source: Mobject) -> Animation:
    """The source grows a little and shrinks back: what appears meanwhile comes from it."""
    return ScaleInPlace(source, 1.08, rate_func=there_and_back)


def words(text: str, color: str = INK, size: float = 26) -> Text:
    """Text in the font of the course's figures."""
    return Text(text, font="DejaVu Sans", font_size=2 * size, color=color).scale(0.5)  # large: even spacing


def number(value: float, color: str = INK) -> Text:
    """A number with two decimals and a true minus sign."""
    return words(f"{value:.2f}".replace("-", "−"), color)


def formula(typst: str, color: str = INK, size: float = 40) -> MathTypst:
    """Mathematics, written in Typst's notation."""
    return MathTypst(typst, font_size=size, color=color)


def shades(x: Tensor) -> Tensor:
    """Numbers moved into 0 … 1: the smallest is white, the largest the full colour."""
    return (x - x.min()) / (x.max() - x.min())


def grid(shade: Tensor, color: str, frame: str = GRID, cell: float = 0.31) -> VGroup:
    """A matrix of shades in 0 … 1 as coloured cells in a frame."""
    fills = [interpolate_color(WHITE, ManimColor(color), s) for s in shade.flatten().tolist()]
    cells = VGroup(*(Square(cell, color=GRID, fill_color=f, fill_opacity=1, stroke_width=1) for f in fills))
    cells.arrange_in_grid(*shade.shape, buff=0)
    return cells.add(SurroundingRectangle(cells, color=frame, buff=0, stroke_width=3))
