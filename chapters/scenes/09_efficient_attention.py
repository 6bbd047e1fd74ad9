"""Clip of chapter 09: exact attention of 12 random tokens in tiles of 4×4 scores; values of one feature."""

import torch
from look import *
from manim import *

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.course.plots import GREY
from linformer_from_scratch.efficient import tiled_attention

N, TILE, CELL = 12, 4, 0.44
HEADS = {"m": ("largest", 0.3), "l": ("total", 1.6), "o": ("mixed", 2.9), r"o \/ l": ("output", 5.2)}
CAPTIONS = {  # by the first row and column of a tile; the other tiles pass without words
    (0, 0): f"A tile of {TILE}×{TILE} scores, and three numbers for each of its rows.",
    (0, 4): "The tile is gone, the numbers stay, and the next tile updates them.",
    (0, 8): "Where the largest grew (orange), total and mixed first shrink.",
    (4, 0): f"The same for the next {TILE} rows …",
    (8, 0): f"… and for the last {TILE}.",
}


class EfficientAttention(Story):
    """A tile of scores sweeps over an empty frame and vanishes: the output is exact, no map is ever held."""

    def construct(self) -> None:
        """Tile after tile, with the numbers of its rows beside it; each row of tiles leaves its output."""
        q, k, v = torch.randn(3, N, TILE, generator=torch.Generator().manual_seed(5))
        q, v = 1.5 * q, v[:, :1]
        scores, output = q @ k.mT / q.size(-1) ** 0.5, tiled_attention(q, k, v, tile=TILE)
        frame = Square(N * CELL, color=GREY, stroke_width=3).move_to(at(-6.2 + N * CELL / 2, N / 2))
        sides = VGroup(words(f"{N} keys", KEY).next_to(frame, UP, buff=0.15))
        sides.add(words(f"{N} queries", QUERY).rotate(PI / 2).next_to(frame, LEFT, buff=0.15))
        heads = VGroup(*(head(letter, *where) for letter, where in HEADS.items()))
        caption = f"{N}×{N} scores? Only their empty frame is drawn."
        self.step(caption, FadeIn(frame, sides, heads), seconds=0.7, pause=0.8)
        for row in range(0, N, TILE):
            numbers = VGroup()
            for column in range(0, N, TILE):
                tile = grid(shades(scores)[row : row + TILE, column : column + TILE], QUERY, QUERY, CELL)
                tile.move_to(at(-6.2 + CELL * (column + TILE / 2), row + TILE / 2))
                self.tell(CAPTIONS.get((row, column)), FadeIn(tile))
                self.remove(numbers)
                numbers = running(scores, v, row, column)
                self.add(numbers)
                self.wait(0.25 if row else 1.1)
                self.play(FadeOut(tile), run_time=0.15)
            caption = None if row else f"Mixed divided by total is the output of these {TILE} queries."
            self.tell(caption, FadeOut(numbers), FadeIn(cells(output, row)))
            self.wait(0.1 if row else 0.9)
        difference = (output - scaled_dot_product_attention(q, k, v)).abs().max().item()
        never = words(f"never held:\n{N}×{N} = {N**2} scores").move_to(frame)
        held = words(f"held at once:\n{TILE}×{TILE} = {TILE**2} scores", QUERY).move_to([1.6, 1.2, 0])
        equal = words(f"largest difference\nto attention with\na map: {difference:.8f}", VALUE)
        facts = FadeIn(never, held, equal.next_to(held, DOWN, buff=1, aligned_edge=LEFT))
        caption = "Exact attention, and its map was never stored."
        self.step(caption, FadeOut(heads[:3]), facts, seconds=0.7, pause=1.9)

    def tell(self, caption: str | None, *animations: Animation) -> None:
        """A step where there is something to say; else the animations alone."""
        if caption:
            self.step(caption, *animations, seconds=0.5, pause=0.1)
        else:
            self.play(*animations, run_time=0.25)


def at(x: float, row: float) -> list[float]:
    """A point at this height, counted in rows from the top of the frame."""
    return [x, 2.75 - CELL * row, 0]


def head(letter: str, name: str, x: float) -> VGroup:
    """What stands above a column of numbers."""
    return VGroup(words(name, size=24).move_to([x, 3.55, 0]), formula(letter).move_to([x, 3.1, 0]))


def running(scores: torch.Tensor, v: torch.Tensor, row: int, column: int) -> VGroup:
    """The three numbers of the tile's rows; orange if this tile, not the first, has raised the largest."""
    seen, texts = scores[row : row + TILE, : column + TILE], VGroup()
    for i, (s, where) in enumerate(zip(seen, seen.argmax(dim=-1), strict=True)):
        m, weights = s.max(), (s - s.max()).exp()
        values = (m, weights.sum(), weights @ v[: column + TILE, 0])
        colors = (KEY if where >= column > 0 else INK, INK, INK)
        for value, color, (_, x) in zip(values, colors, list(HEADS.values())[:3], strict=True):
            texts.add(number(value.item(), color).move_to(at(x, row + i + 0.5)))
    return texts


def cells(output: torch.Tensor, row: int) -> VGroup:
    """The finished cells of the output column."""
    texts = VGroup()
    for i in range(row, row + TILE):
        cell = Rectangle(width=1.2, height=CELL, color=GRID, stroke_width=1)
        cell.set_fill(interpolate_color(WHITE, ManimColor(VALUE), 0.7 * shades(output)[i].item()), opacity=1)
        texts.add(VGroup(cell, number(output[i].item())).move_to(at(HEADS[r"o \/ l"][1], i + 0.5)))
    return texts
