"""Clip of chapter 13: what the queries of one sentence attend to, from Linformer on, edit by edit.

The head is one of MiniLM's, made causal. Shades are square roots of weights; at the end, of scores as well.
"""

import torch
from look import *
from manim import *

from linformer_from_scratch.course.widgets.block_explorer import EDITS, errors, reading, tokens

HEAD, CELL = "4.2", 0.2  # layer and head; side of a cell
Y = {"title": 3.55, "map": 0.65, "error": -2.25}
X = {"slots": -3.2, "tokens": 2.2}
CAPTIONS = {
    "1": "Edit 1: each query sees only blocks that have ended.",
    "2": "Edit 2: a window shows it the last few tokens.",
    "3": "Edit 3: the content decides what a slot holds.",
    "4": "Edit 4: smaller blocks, and a choice among them.",
}


class Descendants(Story):
    """Linformer's slots see the future; four edits later each query sees little, and the right things."""

    def construct(self) -> None:
        """The strip of slots and the window beside it change, and the error falls."""
        n = len(tokens())
        titles = [
            words(name, color).move_to([x, Y["title"], 0])
            for name, color, x in (("slots", KEY, X["slots"]), ("tokens", VALUE, X["tokens"]))
        ]
        queries = words(f"{n} queries", QUERY).rotate(PI / 2).move_to([-6.2, Y["map"], 0])
        parts = shown("0")
        caption = "Linformer: every slot mixes the whole text, the future included."
        self.step(caption, FadeIn(*titles, queries, *parts), seconds=0.8, pause=1.2)
        for edit, caption in CAPTIONS.items():
            self.step(caption, *map(Transform, parts, shown(edit)), pause=1.1)
        caption = "No query sees the future; each attends to at most seven things."
        assert reading("4", HEAD).effective.triu(1).abs().max() == 0
        assert sum((part > 0).sum(dim=1) for part in reading("4", HEAD)[:2]).max() == 7
        self.step(caption, Indicate(parts[2], color=KEY), pause=1.2)
        caption = "After V4: slots only choose whose tokens are attended to."
        assert not reading("6", HEAD).slots.any()
        self.step(caption, *map(Transform, parts, shown("6")), pause=1.8)


def shown(edit: str) -> VGroup:
    """How much every query attends to each slot, and to each token; and how far off the head's output is."""
    now, n = reading(edit, HEAD), len(tokens())
    slots = grid((now.slots + now.scores).sqrt(), KEY, cell=CELL).stretch_to_fit_width(n * CELL / 2)
    near = grid(now.tokens.sqrt(), VALUE, cell=CELL)
    error = errors(HEAD)[[*EDITS].index(edit)].item()
    torch.testing.assert_close(now.effective.sum(dim=1)[-1], torch.tensor(1.0))
    places = [X["slots"], Y["map"], 0], [X["tokens"], Y["map"], 0], [0, Y["error"], 0]
    parts = slots, near, words(f"relative error {error:.2f}", size=30)
    return VGroup(*(part.move_to(place) for part, place in zip(parts, places, strict=True)))
