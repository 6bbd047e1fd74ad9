"""What all scenes share: white paper, the course's colours, and one caption that names each step."""

from manim import *

from linformer_from_scratch.plots import GREY, INK, KEY, QUERY, VALUE

__all__ = ["GREY", "GRID", "INK", "KEY", "QUERY", "VALUE", "Story", "number", "words"]

GRID = "#D9D9D9"


def words(text: str, size: float = 26, color: str = INK) -> Text:
    """Text in the font of the course's figures; drawn at twice its size first, which evens the spacing."""
    return Text(text, font="DejaVu Sans", font_size=2 * size, color=color).scale(0.5)


def number(value: float, color: str = INK) -> Text:
    """A number with two decimals and a true minus sign."""
    return words(f"{value:.2f}".replace("-", "−"), color=color)


class Story(Scene):
    """A scene told in steps: each changes the caption, moves, and waits for the reader."""

    def setup(self) -> None:
        """Start on white paper, so that the clip sits on pages and slides alike."""
        self.camera.background_color = WHITE
        self.caption = words(" ")

    def step(self, caption: str, *animations: Animation, seconds: float = 1.2, pause: float = 1.0) -> None:
        """Show the caption, play the animations together, wait."""
        old, self.caption = self.caption, words(caption, 28).to_edge(DOWN, buff=0.35)
        self.play(FadeOut(old), FadeIn(self.caption), run_time=0.4)
        self.play(*animations, run_time=seconds)
        self.wait(pause)
