"""Clip of chapter 10: floors of the time of one layer on an H200; 16 bit, d_model = 512, 8 heads, k = 256."""

import torch
from look import *
from manim import *

from linformer_from_scratch.benchmark import measured_crossover
from linformer_from_scratch.cost import DEVICES, LAYERS, Sizes, compress_tokens, crossover, floor_seconds

(H200,) = (device for device in DEVICES if device.name == "H200")
SLOTS, LENGTHS = 256, [round(2 ** (6 + i / 8)) for i in range(81)]  # 64 … 65,536 tokens
STORED, TILED, OURS = "stored maps", "tiled exact", "Linformer in tiles"
CURVES = {
    STORED: (LAYERS["full"], QUERY),
    TILED: (LAYERS["tiled exact"], VALUE),
    OURS: (lambda sizes: compress_tokens(sizes, fused=True), KEY),
}
MARKS = {1e-6: "1 µs", 1e-5: "10 µs", 1e-4: "100 µs", 1e-3: "1 ms", 1e-2: "10 ms"}


class Benchmark(Story):
    """Linformer becomes faster than stored maps at one length, and than tiled exact attention at another."""

    def construct(self) -> None:
        """The three curves one by one, a marker that stops where they cross, and the gaps at the end."""
        title = words(f"floor of the time of a layer, {H200.name}", size=24).move_to([-2.9, 3.55, 0])
        first = FadeIn(axes(), title), *curve(STORED)
        self.step("A floor of the time, with stored maps: it grows like n².", *first)
        self.step("Exact attention tile by tile: n² as well, but fewer bytes.", *curve(TILED))
        self.step(f"Linformer with k = {SLOTS} slots: it grows like n.", *curve(OURS), pause=0.8)
        log_n = ValueTracker(log2(LENGTHS[0]))
        line = always_redraw(lambda: marker(round(2 ** log_n.get_value())))
        self.step("“Linformer is faster.” From which n? Than what?", FadeIn(line), seconds=0.4, pause=0.8)
        for theirs, side, more in (
            (STORED, [-0.3, 0.6, 0], ", before n reaches k"),
            (TILED, [0.95, -0.35, 0], ""),
        ):
            n = crossover(lambda n: seconds(OURS, n), lambda n, theirs=theirs: seconds(theirs, n))
            times = [[seconds(name, length) for length in LENGTHS] for name in (OURS, theirs)]
            crossing = measured_crossover(LENGTHS, *times)  # of the lines as they are drawn
            dot = Dot(place(crossing, seconds(OURS, round(crossing))), 0.1, color=INK)
            name = words(f"n = {n}", CURVES[theirs][1]).move_to(dot).shift(side)
            name.add_background_rectangle(WHITE, opacity=1)  # the marker passes behind it
            self.play(log_n.animate.set_value(log2(n)), run_time=0.8)
            self.step(f"Than {theirs}: from n = {n} on{more}.", GrowFromCenter(dot), FadeIn(name))
        ratios = VGroup(*(ratio(name, LENGTHS[-1]) for name in CURVES))
        caption = "“Faster” says nothing until it says from which n, and than what."
        self.step(caption, log_n.animate.set_value(log2(LENGTHS[-1])), FadeIn(ratios), pause=2)


def seconds(name: str, n: int) -> float:
    """Floor of the layer's time, 16 bit."""
    sizes = Sizes(n, d_model=512, num_heads=8, proj_dim=SLOTS, bytes_per_number=2)
    return floor_seconds(CURVES[name][0](sizes), H200, sizes.bytes_per_number)


def place(n: float, time: float) -> list[float]:
    """Where a time stands in the picture; both axes are logarithmic."""
    return [-5.3 + 0.83 * log2(n / LENGTHS[0]), -2.4 + 0.286 * log2(time / 3e-7), 0]


def log2(x: float) -> float:
    """Logarithm to base 2."""
    return torch.tensor(x, dtype=torch.float64).log2().item()


def axes() -> VGroup:
    """Both axes, marked at powers of four and of ten."""
    first, last = LENGTHS[0], LENGTHS[-1]
    start, right = place(first, 3e-7), place(last, 3e-7)
    lines = VGroup(Line(start, right, color=INK), Line(start, place(first, 1e-1), color=INK))
    for time, text in MARKS.items():
        lines.add(Line(place(first, time), place(last, time), color=GRID, stroke_width=2))
        lines.add(words(text, size=22).next_to(place(first, time), LEFT, buff=0.12))
    marks = (words(f"{n:,}", size=22).next_to(place(n, 3e-7), DOWN, buff=0.12) for n in LENGTHS[::16])
    return lines.add(*marks, words("tokens n", size=24).next_to(right, UR, buff=0.15))


def curve(name: str) -> tuple[Animation, Animation]:
    """Draw the layer's curve, and name it where it ends."""
    line = VMobject(color=CURVES[name][1], stroke_width=5)
    line.set_points_as_corners([place(n, seconds(name, n)) for n in LENGTHS])
    text = words(name, CURVES[name][1], 24).next_to(line.get_end(), RIGHT, buff=0.2)
    return Create(line), FadeIn(text)


def marker(n: int) -> VGroup:
    """A line at n tokens, with a dot on each curve; n stands on top, away from the axis and its marks."""
    dots = (Dot(place(n, seconds(name, n)), color=color) for name, (_, color) in CURVES.items())
    line = DashedLine(place(n, 3e-7), place(n, 1e-1), color=INK, stroke_width=2)
    return VGroup(line, *dots, words(f"n = {n:,}", size=24).next_to(line, UP, buff=0.1))


def ratio(name: str, n: int) -> Text:
    """How many times Linformer's the time is, at the right of the layer's name."""
    text = words(f"{seconds(name, n) / seconds(OURS, n):.0f} ×", CURVES[name][1], 24)
    return text.move_to([6.8, place(n, seconds(name, n))[1], 0], aligned_edge=RIGHT)
