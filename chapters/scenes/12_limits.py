"""Clip of chapter 12: a map that copies 16 tokens and one that averages them, read through ever fewer slots.

A slot is the mean of a window of keys. Shades are square roots of weights, so that 1/16 can be seen.
"""

import torch
from look import *
from manim import *
from torch import Tensor

from linformer_from_scratch.course.plots import GREY
from linformer_from_scratch.limits import copy_error
from linformer_from_scratch.low_rank import frobenius_error, singular_values
from linformer_from_scratch.projections import MeanPooling

N, CELL, TALL = 16, 0.25, 0.75  # tokens, side of a cell, height of a bar for a singular value of 1
MAPS = {"copying": (torch.eye(N), -3.5), "averaging": (torch.full((N, N), 1 / N), 3.5)}  # and where
Y = {"title": 3.65, "slots": 3.15, "map": 0.91, "bars": -2.1, "error": -2.62}
CAPTIONS = {
    8: f"8 slots, each the mean of {N // 8} keys, keep 8 of the {N} bars.",
    4: f"4 slots keep 4 of the {N}, and no map of rank 4 copies better.",
    1: "1 slot: copying has become averaging.",
}


class Limits(Story):
    """To copy, every token needs a key of its own, and k slots keep k of n; an average fits into one slot."""

    def construct(self) -> None:
        """Copying and its singular values, averaging beside it; then both lose slots."""
        copying, averaging = (shown(name, N) for name in MAPS)
        titles = [words(name).move_to([x, Y["title"], 0]) for name, (_, x) in MAPS.items()]
        queries = words(f"{N} queries", QUERY).rotate(PI / 2).next_to(copying[1], LEFT, buff=0.2)
        diagonal = VGroup(*copying[1][: N * N : N + 1]).copy().set_z_index(1)  # what is to be read
        diagonal.set_fill(opacity=0).set_stroke(INK, 2)
        keys = words(f"{N} keys", KEY).move_to([0, Y["slots"], 0])
        names = {"singular values": Y["bars"] + TALL / 2, "relative error": Y["error"]}
        names = [words(name, size=24).move_to([0, y, 0]) for name, y in names.items()]
        caption = f"To copy a text, each of {N} queries needs a key of its own."
        self.step(caption, FadeIn(titles[0], queries, keys, *copying[:2], diagonal), seconds=0.7)
        ghosts = copying[2].copy().set_fill(WHITE).set_stroke(GRID, 2)
        caption = f"Its {N} singular values are equal: none can be spared."
        self.step(caption, FadeIn(ghosts, *copying[2:], *names), seconds=0.7, pause=1.2)
        caption = "To average the text, one singular value is enough."
        self.step(caption, FadeIn(titles[1], averaging), seconds=0.7, pause=1.2)
        old, texts = [*copying[:3], *averaging[:3]], [keys, copying[3], averaging[3]]
        for k, caption in CAPTIONS.items():
            self.remove(*texts)
            new = [shown(name, k) for name in MAPS]
            texts = [words(f"{k} slot{'s' * (k > 1)}", KEY).move_to(keys), *(parts[3] for parts in new)]
            moves = map(Transform, old, [part for parts in new for part in parts[:3]])
            self.step(caption, *moves, FadeIn(*texts), pause=1.3)
        torch.testing.assert_close(*(through_slots(weights, 1) for weights, _ in MAPS.values()))
        caption = "A few slots hold averages, but not every token by itself."
        self.step(caption, *(Indicate(text, color=KEY) for text in texts[1:]), pause=2)


def through_slots(weights: Tensor, k: int) -> Tensor:
    """The map that reads k slots, the means of windows: a slot gets what the tokens of its window got."""
    E = MeanPooling(N, k)(torch.eye(N))
    return weights @ (E > 0).float().mT @ E


def shown(name: str, k: int) -> VGroup:
    """Of a map through k slots: the slots, a key each; the weights; their singular values; the error."""
    (weights, x), sigma = MAPS[name], singular_values(MAPS[name][0])
    new, error = through_slots(weights, k), frobenius_error(sigma, k)
    torch.testing.assert_close((new - weights).norm(), error)  # no map of rank k comes closer
    error = (error / weights.norm()).item()
    root = ""
    if name == "copying":
        torch.testing.assert_close(error, copy_error(N, k))
        root = rf"sqrt(1 - {k} \/ {N}) = "
    width, slots = N * CELL / k, VGroup()
    for token in range(N):  # the tokens of a window move into one slot
        slot = Rectangle(width=width - 0.07, height=0.22, stroke_width=0).set_fill(KEY, opacity=1)
        slots.add(slot.move_to([x + width * (token * k // N + 0.5 - k / 2), Y["slots"], 0]))
    cells = grid(new.sqrt(), QUERY, cell=CELL).move_to([x, Y["map"], 0])
    cells[:-1].set_stroke(GREY, 0.5)  # seen on every shade
    bars = VGroup()
    for i, value in enumerate(singular_values(new).tolist()):
        bar = Rectangle(width=CELL - 0.07, height=max(0.02, TALL * value), stroke_width=0)
        place = [x + CELL * (i + 0.5 - N / 2), Y["bars"], 0]
        bars.add(bar.set_fill(INK, opacity=1).move_to(place, aligned_edge=DOWN))
    return VGroup(slots, cells, bars, formula(f"{root}{error:.2f}", size=34).move_to([x, Y["error"], 0]))
