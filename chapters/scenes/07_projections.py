"""Clip of chapter 07: the matrices E and F of 12 layers with 12 heads, shared more and more."""

from look import *
from manim import *

from linformer_from_scratch.projections import LearnedProjection

LAYERS, HEADS, SEQ_LEN, PROJ_DIM = 12, 12, 512, 128
NONE, HEADWISE, KEY_VALUE, LAYERWISE = "nothing shared", "headwise", "key-value", "layerwise"


class Projections(Story):
    """One E for each head, role and layer are 288 matrices; passing the same object leaves 24, 12, and 1."""

    def construct(self) -> None:
        """A cell for each use of a projection; cells that use one matrix flow together."""
        start = self.cells(NONE)
        names = VGroup(
            words("E: for keys", KEY).move_to([-3.3, 3.3, 0]),
            words("F: for values", VALUE).move_to([3.3, 3.3, 0]),
        )
        axes = words(f"{LAYERS} layers down, {HEADS} heads across", size=24).move_to([0, -1.9, 0])
        count = self.count(NONE)
        self.step(
            "Every head of every layer has an E and an F of its own.", FadeIn(start, names, axes, count)
        )
        steps = {
            HEADWISE: "Headwise: the heads of a layer share one E and one F.",
            KEY_VALUE: "Key-value: F is E.",
            LAYERWISE: "Layerwise: one E for everything.",
        }
        for sharing, caption in steps.items():
            gone = {KEY_VALUE: [FadeOut(names[1])], LAYERWISE: [FadeOut(names[0], axes)]}.get(sharing, [])
            fewer = self.count(sharing)
            moves = [Transform(start, self.cells(sharing)), exchange(count, fewer), *gone]
            self.step(caption, *moves, seconds=1.6)
            count = fewer
        self.wait(1.5)

    def cells(self, sharing: str) -> VGroup:
        """A small square for each use, drawn where its matrix lives."""
        cells = VGroup()
        for layer in range(LAYERS):
            for head in range(HEADS):
                for role, color in ((0, KEY), (1, VALUE)):
                    role = 0 if sharing in (KEY_VALUE, LAYERWISE) else role
                    x = -3.3 + 6.6 * role if sharing != LAYERWISE else 0
                    x += 0.34 * (head - 5.5) if sharing == NONE else 0
                    y = 0.55 + 0.34 * (5.5 - layer) if sharing != LAYERWISE else 0.55
                    shared = sharing in (KEY_VALUE, LAYERWISE)
                    cells.add(
                        Square(
                            0.28, color=INK if shared else color, fill_opacity=0.5, stroke_width=1
                        ).move_to([x, y, 0])
                    )
        return cells

    def count(self, sharing: str) -> Text:
        """How many matrices, and how many numbers they hold."""
        matrices = matrices_of(sharing)
        noun = "matrix" if matrices == 1 else "matrices"
        return words(f"{matrices} {noun}, {matrices * SEQ_LEN * PROJ_DIM:,} numbers", INK, 32).move_to(
            [0, -2.6, 0]
        )


def matrices_of(sharing: str) -> int:
    """Matrices in the projections that a model of this kind is given, each object counted once."""
    one, distinct = LearnedProjection(SEQ_LEN, PROJ_DIM), {}
    for _ in range(LAYERS):
        E = (
            one
            if sharing == LAYERWISE
            else LearnedProjection(SEQ_LEN, PROJ_DIM, HEADS if sharing == NONE else None)
        )
        F = (
            E
            if sharing in (KEY_VALUE, LAYERWISE)
            else LearnedProjection(*E.weight.shape[::-1][:2], HEADS if sharing == NONE else None)
        )
        distinct |= {id(p): p for p in (E, F)}
    return sum(p.weight.numel() for p in distinct.values()) // (SEQ_LEN * PROJ_DIM)
