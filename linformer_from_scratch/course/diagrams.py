"""Pictures of what follows from what: boxes with words, and arrows between them."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from linformer_from_scratch.course.plots import EDGE, GREY, INK, KEY, QUERY, VALUE, board

WIDTH, HEIGHT = 0.88, 0.68  # of a box, where columns and rows are one apart


class Box(NamedTuple):
    """A box of a diagram.

    text: one or more lines; the first is bold.
    column, row: its place, counted from the left and from the top; halves are allowed.
    colour: of its border and its first line.
    framed: whether it has a border.
    bold: whether that border is thick.
    """

    text: str
    column: float
    row: float
    colour: str = INK
    framed: bool = True
    bold: bool = False


def flow(
    boxes: Mapping[str, Box],
    arrows: Iterable[tuple[str, ...]],
    title: str,
    size: tuple[float, float] = (2.0, 1.05),
) -> Figure:
    """Boxes by name, and arrows from box to box: (from, to), or (from, to, what happens on the way).

    Args:
        size: inches from one column to the next, and from one row to the next.
    """
    arrows = list(arrows)
    columns, rows = 1 + max(box.column for box in boxes.values()), 1 + max(box.row for box in boxes.values())

    def draw(axis: Axes) -> None:
        for box in boxes.values():
            _draw_box(axis, box)
        for start, end, *words in arrows:
            _draw_arrow(axis, boxes[start], boxes[end], *words)
        axis.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), title=title)
        axis.axis("off")

    figure = board([["all"]], {"all": draw}, (size[0] * columns, size[1] * rows + 0.5))
    said = [f"{_flat(boxes[a].text)} → {_flat(boxes[b].text)}{_way(words)}" for a, b, *words in arrows]
    figure.alt = f"{title}. {'; '.join(said)}."  # type: ignore[attr-defined]
    return figure


def linformer_head() -> Figure:
    """One head of Linformer (chapter 06), with the shape of everything that it makes."""
    boxes = {
        "X": Box("X\n(n, d_model)", 0, 1),
        "Q": Box("Q\n(n, d)", 1, 0, QUERY),
        "K": Box("K\n(n, d)", 1, 1, KEY),
        "V": Box("V\n(n, d)", 1, 2, VALUE),
        "E": Box("E\n(k, n)", 2, 1, KEY, bold=True),
        "F": Box("F\n(k, n)", 2, 2, VALUE, bold=True),
        "EK": Box("E K\n(k, d)", 3, 1, KEY),
        "FV": Box("F V\n(k, d)", 3, 2, VALUE),
        "map": Box("P̄\n(n, k)", 4, 0.5),
        "head": Box("P̄ (F V)\n(n, d)", 4, 1.75),
        "output": Box("output\n(n, d_model)", 5, 1.75),
    }
    arrows = [("X", "Q"), ("X", "K"), ("X", "V"), ("K", "E"), ("V", "F"), ("E", "EK"), ("F", "FV")]
    arrows += [("Q", "map"), ("EK", "map"), ("map", "head"), ("FV", "head"), ("head", "output")]
    return flow(boxes, arrows, "One head of Linformer: k slots for n tokens", size=(1.75, 1.05))


def _draw_box(axis: Axes, box: Box) -> None:
    corner = (box.column - WIDTH / 2, box.row - HEIGHT / 2)
    edge: dict[str, Any] = {"edgecolor": box.colour, "linewidth": (5 if box.bold else 1.5) * box.framed}
    style = "round,pad=0,rounding_size=0.06"
    axis.add_patch(FancyBboxPatch(corner, WIDTH, HEIGHT, boxstyle=style, facecolor="white", **edge))
    first, *others = box.text.split("\n")
    place: dict[str, Any] = {"xycoords": "data", "ha": "center", "va": "center"}
    place |= {"xy": (box.column, box.row), "textcoords": "offset points"}
    top = 7.5 * len(others)
    axis.annotate(first, xytext=(0, top), weight="bold", fontsize=11, color=box.colour, **place)
    for i, line in enumerate(others, start=1):
        axis.annotate(line, xytext=(0, top - 15 * i), fontsize=10.5, color=INK, **place)


def _draw_arrow(axis: Axes, start: Box, end: Box, words: str = "") -> None:
    """From border to border: sideways between columns, up or down within one."""
    across, down = end.column - start.column, end.row - start.row
    sideways = abs(across) >= WIDTH
    x, y = (math.copysign(WIDTH / 2, across), 0) if sideways else (0, math.copysign(HEIGHT / 2, down))
    a, b = (start.column + x, start.row + y), (end.column - x, end.row - y)
    look = {"arrowstyle": "-|>", "color": GREY, "lw": 1.6, "shrinkA": 2, "shrinkB": 2}
    axis.annotate("", b, a, arrowprops=look)
    if words:
        middle = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
        style = {"facecolor": "white", "edgecolor": EDGE, "boxstyle": "round,pad=0.2"}
        axis.annotate(words, middle, ha="center", va="center", fontsize=10, color=INK, bbox=style)


def _flat(text: str) -> str:
    return text.replace("\n", ": ", 1).replace("\n", " ")


def _way(words: Iterable[str]) -> str:
    return "".join(f" ({word})" for word in words)
