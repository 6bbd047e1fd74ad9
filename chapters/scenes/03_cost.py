"""Clip of chapter 03: map entries of full attention and of Linformer, drawn to one scale; k = 128."""

from look import *
from manim import *

from linformer_from_scratch.cost import Sizes, compress_keys, crossover, flops, full_attention

LENGTHS, PROJ_DIM = (256, 512, 1024, 2048), 128
SCALE = 4.8 / LENGTHS[-1]  # of the scene's height, a token


class Cost(Story):
    """When the text doubles, the n×n map takes four times as much, and the n×k strip only twice as much."""

    def construct(self) -> None:
        """Square and strip grow side by side; their entries stand beneath; then the crossover."""
        pictures = [self.picture(n) for n in LENGTHS]
        square, strip, sizes = pictures[0]
        full = words("full attention: n×n", QUERY).move_to([-3.2, 3.4, 0])
        ours = words(f"Linformer: n×k, k = {PROJ_DIM}", KEY).move_to([3.4, 3.4, 0])
        start = f"{LENGTHS[0]} tokens: {LENGTHS[0] // PROJ_DIM} times as many entries on the left."
        self.step(start, *map(FadeIn, (full, ours, square, strip, sizes)))
        for old, new, picture in zip(LENGTHS, LENGTHS[1:], pictures[1:], strict=False):
            times = entries(full_attention, new) // entries(full_attention, old)
            twice = entries(compress_keys, new) // entries(compress_keys, old)
            caption = f"{new:,} tokens: the square takes {times} times as much, the strip {twice} times."
            grow = map(Transform, (square, strip), picture[:2])
            self.step(caption, *grow, exchange(sizes, picture[2]), seconds=1.5, pause=1.3)
            sizes = picture[2]
        n = crossover(lambda n: operations(compress_keys, n), lambda n: operations(full_attention, n))
        paid = f"All counted, the strip is cheaper from n = {n} on: just above 2k."
        filled = strip.animate(rate_func=there_and_back).set_fill(opacity=1)
        self.step(paid, filled, pause=2.5)

    def picture(self, n: int) -> tuple[Mobject, ...]:
        """Square, strip and their numbers of entries for n tokens."""
        square = box(n * SCALE, n * SCALE, QUERY).move_to([-3.2, 0.5, 0])
        strip = box(PROJ_DIM * SCALE, n * SCALE, KEY).move_to([3.4, 0.5, 0])
        left = words(f"{entries(full_attention, n):,} entries", QUERY, 30).move_to([-3.2, -2.5, 0])
        right = words(f"{entries(compress_keys, n):,} entries", KEY, 30).move_to([3.4, -2.5, 0])
        return square, strip, VGroup(left, right)


def box(width: float, height: float, color: str) -> Rectangle:
    """A filled rectangle."""
    return Rectangle(width=width, height=height, color=color, fill_color=color, fill_opacity=0.35)


def entries(layer, n: int) -> int:
    """Numbers in the layer's map of one head."""
    sizes = Sizes(n, d_model=64, num_heads=1, proj_dim=PROJ_DIM)
    return next(step.result for step in layer(sizes) if step.name == "scores") // sizes.bytes_per_number


def operations(layer, n: int) -> int:
    """Operations of the layer."""
    return flops(layer(Sizes(n, d_model=64, num_heads=1, proj_dim=PROJ_DIM)))
