"""Drawings of the widgets' stills: each function takes numbers and returns what draws them on an axis."""

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from linformer_from_scratch.course import plots
from linformer_from_scratch.course.plots import EDGE, GREY, INK, KEY, LINES, QUERY, SIGNED, VALUE, WEIGHTS

board = plots.board  # so that a widget's still needs this module alone
Arguments = ParamSpec("Arguments")
Drawing = Callable[[Axes], None]


def drawing(draw: Callable[Concatenate[Axes, Arguments], None]) -> Callable[Arguments, Drawing]:
    """A function that draws, without its axis: it returns what waits for one."""

    @wraps(draw)
    def waiting(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Drawing:
        return lambda axis: draw(axis, *args, **kwargs)

    return waiting


def captioned(figure: Figure, words: str) -> Figure:
    """The same figure with a line of words below; it becomes as much higher."""
    with plots.house_style():
        width, height = figure.get_size_inches()
        lines = textwrap.wrap(words, int(11.5 * width))
        more = 0.24 * len(lines) + 0.1
        figure.set_size_inches(width, height + more)
        below = more / (height + more)
        figure.set_layout_engine("constrained", rect=(0, below, 1, 1 - below))
        figure.text(0.01, 0.01, "\n".join(lines), fontsize=12, va="bottom", linespacing=1.4)
        return figure


@drawing
def heat_map(
    axis: Axes,
    values: ArrayLike,
    title: str,
    limit: float,
    signed: bool = False,
    tokens: Sequence[str] = (),
    note: str = "queries down, keys across",
    query: int | None = None,
    tall: float | None = None,
) -> None:
    """A map (n, m), white for zero, blue above it; signed: red below. limit has the strongest colour.

    tokens: names of rows and columns. tall: height over width; 1 where the map is square, and otherwise it
    fills its place.
    """
    array = np.asarray(values, dtype=float)
    look: dict[str, Any] = {"cmap": SIGNED, "vmin": -limit} if signed else {"cmap": WEIGHTS, "vmin": 0}
    axis.imshow(array, vmax=limit, interpolation="nearest", aspect="auto", **look)
    axis.set(title=title, xlabel=note)
    axis.set_box_aspect(tall or (1 if array.shape[0] == array.shape[1] else None))
    axis.set_xticks(range(len(tokens)), tokens, rotation=60, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(tokens)), tokens)
    axis.spines[:].set(visible=True, color=EDGE)
    if query is not None:
        axis.axhspan(query - 0.5, query + 0.5, fill=False, edgecolor=QUERY, linewidth=2)


@drawing
def spectrum(axis: Axes, sigma: ArrayLike, kept: int) -> None:
    """Singular values as bars on a scale of square roots, the kept ones in blue, the lost ones in orange."""
    values = np.asarray(sigma, dtype=float)
    index = np.arange(1, len(values) + 1)
    for part, colour, name in ((index <= kept, QUERY, "kept"), (index > kept, KEY, "lost")):
        axis.bar(index[part], values[part], color=colour, label=f"{name}: {part.sum()}")
    axis.set_yscale("function", functions=(np.sqrt, np.square))
    axis.set(xlabel="index of the singular value", ylabel="σ", xlim=(0, len(values) + 1))
    axis.legend(frameon=False)


@drawing
def shares(axis: Axes, rows: Mapping[str, tuple[str, str, Sequence[tuple[float, bool]]]], title: str) -> None:
    """Bars made of parts, one below the other.

    Args:
        rows: name -> colour, what is written at its end, (value, whether its colour is strong) of each part.
    """
    for i, (colour, words, parts) in enumerate(rows.values()):
        end, edge = 0.0, "white" if len(parts) > 1 else colour
        for value, strong in parts:
            alpha = 1 if strong else 0.3
            axis.barh(i, value, left=end, height=0.6, color=colour, edgecolor=edge, alpha=alpha)
            end += value
        axis.text(end, i, f" {words}", va="center")
    axis.set_title(title, loc="right")
    axis.set(xticks=[], ylim=(len(rows) - 0.5, -0.5))
    axis.set_yticks(range(len(rows)), list(rows))
    axis.tick_params(left=False)
    axis.spines[:].set_visible(False)
    axis.margins(x=0.25)


@drawing
def wires(axis: Axes, title: str, how: str, ranks: int, colour: str, share: float) -> None:
    """Ranks in a circle and what travels between them, as thick as its share of the thickest arrow: "round"
    to the next, "across" to all others, or "inwards" to the sum in the middle.
    """
    turns = 2 * np.pi * np.arange(ranks) / ranks
    places = np.stack([np.sin(turns), np.cos(turns)], axis=1)
    look: dict[str, Any] = {"color": colour, "linewidth": max(0.4, 16 * share), "zorder": 0}
    arrow = look | {"arrowstyle": "-|>", "shrinkA": 12, "shrinkB": 14}
    for i, place in enumerate(places):
        if how == "across":
            for other in places[:i]:
                axis.plot(*np.stack([place, other]).T, linestyle="-", **look)
        else:
            end = (0, 0) if how == "inwards" else places[(i + 1) % ranks]
            axis.annotate("", end, place, arrowprops=arrow)
    axis.plot(*places.T, "s", ms=min(22, 180 / ranks), color="white", markeredgecolor=INK)
    axis.text(0, 1.3, title, color=colour, ha="center")
    axis.set(xlim=(-1.4, 1.4), ylim=(-1.2, 1.6), aspect="equal")
    axis.axis("off")


@drawing
def advice(
    axis: Axes,
    rows: Mapping[str, tuple[Sequence[int], Sequence[bool]]],
    lengths: Sequence[int],
    names: Sequence[str],
    chosen: tuple[int, int],
    pays: int | None,
    timed: tuple[int, int] | None,
) -> None:
    """A map of what to take by task and n, on a log axis; hatched where it was not tried.

    Args: rows: task -> which of names to take at each length, and whether that was tried there.
        chosen: row and n of the dot. pays: n from which Linformer saves time. timed: first and last n.
    """
    half = math.sqrt(2)  # a cell reaches half an octave to each side
    for i, (task, (taken, tried)) in enumerate(rows.items()):
        axis.text(lengths[0] / half, i - 0.34, task, va="bottom")
        for n, kind, known in zip(lengths, taken, tried, strict=True):
            look: dict[str, Any] = {"facecolor": LINES[kind], "linewidth": 0}
            if not known:
                look |= {"facecolor": "white", "hatch": "///", "edgecolor": LINES[kind]}
            axis.barh(i, n * half - n / half, left=n / half, height=0.62, **look)
        for j, kind in enumerate(taken):
            if j == 0 or kind != taken[j - 1]:
                label = axis.text(lengths[j] / half * 1.1, i, names[kind], va="center", weight="bold")
                label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1.5})
    if timed:
        axis.barh(len(rows) - 0.45, timed[1] - timed[0], left=timed[0], height=0.1, color=GREY)
        axis.text(timed[0], len(rows) - 0.35, "timed on this device", color=GREY, va="top")
    if pays:
        axis.axvline(pays, color=KEY, linewidth=1.5, linestyle="--")
        axis.text(pays, -0.75, " Linformer saves time →", color=KEY, va="top")
    row, n = chosen
    axis.plot([n], [row], "o", color=INK, markeredgecolor="white", markersize=14)
    axis.set(xscale="log", xlim=(lengths[0] / half, lengths[-1] * half), ylim=(len(rows), -0.8))
    title = "What to use, by task and tokens n; hatched: not tried at that n"
    axis.set_title(title, loc="left", weight="bold")
    axis.set_xticks(lengths[::2], [f"{length:,}" for length in lengths[::2]])
    axis.set_yticks([])
    axis.minorticks_off()
    axis.set_xlabel("tokens n")
    axis.spines["left"].set_visible(False)


@drawing
def notes(axis: Axes, lines: Mapping[str, Iterable[str]]) -> None:
    """Headings with lines of text below each other."""
    both = (f"{name}: {'; '.join(said)}" for name, said in lines.items())
    wrapped = "\n".join(textwrap.fill(line, 105, subsequent_indent="   ") for line in both)
    axis.text(0, 1, wrapped, va="top", fontsize=11, linespacing=1.4, transform=axis.transAxes)
    axis.set_axis_off()


@drawing
def heads(axis: Axes, numbers: ArrayLike, title: str, limit: float, chosen: tuple[int, int]) -> None:
    """A number for each head, layers down, heads across, shaded up to limit; the chosen one is framed."""
    table, (layer, head) = np.asarray(numbers), chosen
    axis.imshow(table, cmap=WEIGHTS, vmin=0, vmax=2 * limit, aspect="auto")
    for (i, j), number in np.ndenumerate(table):
        axis.text(j, i, f"{number}", ha="center", va="center", color=INK, fontsize=10)
    axis.set_xticks(range(table.shape[1]), [str(i + 1) for i in range(table.shape[1])])
    axis.set_yticks(range(table.shape[0]), [str(i + 1) for i in range(table.shape[0])])
    axis.tick_params(length=0)
    axis.spines[:].set(visible=True, color=EDGE)
    axis.set(title=title, xlabel="layers down, heads across")
    axis.add_patch(plt.Rectangle((head - 0.5, layer - 0.5), 1, 1, fill=False, edgecolor=KEY, linewidth=3))


@drawing
def cumulative(axis: Axes, spectra: Mapping[str, ArrayLike], share: float) -> None:
    """Shares of the first r in a sum, name -> (p,), and a line at the share that is asked for."""
    colours, widths = (QUERY, VALUE, KEY, GREY), (3.5, 2, 2, 2)
    for (name, sums), colour, width in zip(spectra.items(), colours, widths, strict=False):
        axis.plot([0, *np.asarray(sums)], color=colour, linewidth=width, label=name)
    axis.axhline(share, color=INK, linewidth=1, linestyle="-")
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axis.set(title="Sum of the first r singular values", xlabel="r", xlim=(0, None), ylim=(0, 1.02))
    axis.legend(frameon=False, loc="lower right", fontsize=11)


@drawing
def reading(axis: Axes, tokens: Sequence[str], values: ArrayLike, query: int, title: str) -> None:
    """What a query reads: keys with bars, a band from each to the query's row, and the map (n, n) it is of.

    Bands are as thick as their weights, all together as a row; weights from 0.05 on have their number.
    """
    array, n = np.asarray(values, dtype=float), len(tokens)
    weights, most = array[query], int(array[query].argmax())
    size = min(12, 200 / n)
    scale = max(n, 8) / 14  # the part beside the map is as wide as it is high
    letter = 0.027 * size * scale  # width of one, in rows
    keys, left = 4.5 * scale, 16.5 * scale  # where keys stand and where the map begins, in rows
    end = left - 3.4 * scale
    axis.imshow(array, cmap=WEIGHTS, vmin=0, vmax=1, interpolation="nearest", extent=(left, left + n, n, 0))
    axis.add_patch(plt.Rectangle((left, 0), n, n, fill=False, edgecolor=EDGE))
    axis.add_patch(plt.Rectangle((left, query), n, 1, fill=False, edgecolor=QUERY, lw=2))
    axis.add_patch(plt.Rectangle((end, query), left - end, 1, color=QUERY, alpha=0.14, lw=0))
    below = query + weights.cumsum()
    t = np.linspace(0, 1, 50)
    for i in weights.argsort():  # the heaviest on top
        start = keys + 0.3 * scale + letter * len(tokens[i]) * (1.1 if i == most else 1)
        middle = i + 0.5 + (below[i] - weights[i] / 2 - i - 0.5) * t * t * (3 - 2 * t)
        half, alpha = max(weights[i], 0.03) / 2, 0.25 + 0.6 * weights[i] ** 0.5
        across = start + (end - start) * t
        axis.fill_between(across, middle - half, middle + half, color=KEY, alpha=alpha, lw=0)
    for i, (token, weight) in enumerate(zip(tokens, weights, strict=True)):
        style: dict[str, Any] = {"va": "center_baseline", "fontsize": size}
        strong: dict[str, Any] = style | {"weight": "bold"}
        axis.text(keys, i + 0.5, token, **(strong | {"color": KEY} if i == most else style))
        style["ha"] = strong["ha"] = "right"
        axis.text(left - 0.25, i + 0.5, token, **(strong | {"color": QUERY} if i == query else style))
        axis.text(left + i + 0.4, -0.2, token, rotation=50, rotation_mode="anchor", fontsize=size)
        bar = 2.6 * scale * weight
        axis.add_patch(plt.Rectangle((keys - 0.3 - bar, i + 0.2), bar, 0.6, color=KEY, lw=0))
        if weight >= 0.05:
            axis.text(keys - 0.5 - bar, i + 0.5, f"{weight:.2f}", **style)
    axis.text(keys - 0.3, -0.25, "weight", color=KEY, ha="right", fontsize=size)
    axis.text(keys, -0.25, "keys ↓", color=KEY, fontsize=size)
    axis.text(left - 0.25, -0.25, "queries ↓", color=QUERY, ha="right", fontsize=size)
    axis.set(xlim=(0, left + n + 2.5 * scale), ylim=(n + 0.1, -3.4 * scale), aspect="equal")
    axis.set_title(title, loc="left")
    axis.axis("off")


@drawing
def errors(
    axis: Axes, dims: Sequence[int], lines: Mapping[str, tuple[ArrayLike, str, float, str]], k: int
) -> None:
    """Errors against the slots k on log axes, each curve named at its end.

    lines: name -> errors, colour, width, line style. k: marked across all curves.
    """
    axis.set(xscale="log", yscale="log", xlabel="slots k", title="error of the head's output")
    for values, colour, width, style in lines.values():
        axis.plot(dims, values, color=colour, linewidth=width, linestyle=style)
    axis.set_xticks(dims, [str(size) for size in dims])
    axis.yaxis.set_major_formatter(lambda error, _: f"{error:.3g}" if error < 0.01 else f"{error:.0%}")
    axis.minorticks_off()
    axis.grid(axis="y", color=EDGE, linewidth=0.7)
    axis.axvline(k, color=EDGE, linewidth=8, linestyle="-", zorder=0)
    plots.name_ends(axis, {name: (values, colour) for name, (values, colour, *_) in lines.items()}, 1.01)


@drawing
def distortions(
    axis: Axes, middles: ArrayLike, counts: ArrayLike, curve: tuple[ArrayLike, ArrayLike], epsilon: float
) -> None:
    """A histogram, orange where it lies ε or more from zero, with a curve (x, y) of what is expected."""
    x, heights = np.asarray(middles), np.asarray(counts)
    outside = np.abs(x) >= epsilon
    for part, colour, name in ((~outside, QUERY, "within ε"), (outside, KEY, "outside")):
        axis.bar(x[part], heights[part], 0.9 * (x[1] - x[0]), color=colour, label=name)
    axis.plot(*curve, color=INK, linewidth=1.5, linestyle="-", label="a mean of k squares")
    for sign in (-1, 1):
        axis.axvline(sign * epsilon, color=INK, linewidth=1, linestyle="--")
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:+.0%}" if value else "0")
    highest = max(heights.max(), np.asarray(curve[1]).max())
    axis.set(xlabel="‖Rx‖² / ‖x‖² − 1", ylabel="vectors", ylim=(0, 1.4 * highest))
    axis.set(title="Squared lengths: off by")
    axis.legend(framealpha=1, edgecolor="none", fontsize=10, loc="upper right")


@drawing
def tails(axis: Axes, measured: Mapping[int, float], bounds: Mapping[int, float], kept: int) -> None:
    """Measured shares as points and a bound as a line, by the number of dimensions kept."""
    axis.axvline(kept, color=INK, linewidth=1, linestyle="-")
    axis.plot(*zip(*bounds.items(), strict=True), color=VALUE, linewidth=2.5, linestyle="-", label="bound")
    axis.plot(*zip(*measured.items(), strict=True), "o-", color=KEY, linewidth=1.5, ms=7, label="measured")
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks := list(measured)[::2], [f"{k}" for k in ticks])
    axis.minorticks_off()
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axis.set(title="Share off by ε or more", xlabel="dimensions kept k", ylim=(0, 1.02))
    axis.legend(frameon=False, loc="center right")


@drawing
def needed(axis: Axes, numbers: Sequence[int], asked: Sequence[int], n: int, chosen: int) -> None:
    """Slots that a bound asks for against the number of vectors, and the n there are, on log axes."""
    axis.plot(numbers, asked, color=VALUE, linewidth=2.5, linestyle="-")
    axis.plot(chosen, asked[numbers.index(chosen)], "o", color=VALUE, markeredgecolor=INK, ms=9)
    axis.axhline(n, color=GREY, linewidth=2, linestyle="-")
    axis.text(numbers[-1], 1.15 * n, f"k = n = {n:,}", color=GREY, ha="right")
    axis.set(xscale="log", yscale="log", ylim=(10, 1e5))
    axis.set(title="The k that the bound asks for", xlabel="vectors N")
    axis.set_xticks(numbers[::2], [f"{number:,}" for number in numbers[::2]])
    axis.set_yticks(ticks := [10, 100, 1000, 10**4, 10**5], [f"{tick:,}" for tick in ticks])
    axis.minorticks_off()


@drawing
def error_bars(axis: Axes, of: Mapping[str, float | None], chosen: str) -> None:
    """Relative errors as bars with their percentages, smallest first, up to 200 %; the chosen in orange."""
    of = dict(sorted(of.items(), key=lambda item: math.inf if item[1] is None else item[1]))
    for i, (name, error) in enumerate(of.items()):
        axis.barh(i, min(error or 0, 2), color=KEY if name == chosen else QUERY, height=0.6)
        label, ink = ("too dear", GREY) if error is None else (f"{error:.0%}", INK)
        axis.text(2.5, i, label, ha="right", va="center", color=ink)
    axis.axvline(1, color=GREY, linewidth=1, linestyle="-")
    axis.set_yticks(range(len(of)), list(of))
    axis.set_xticks([1], ["answering zero"])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.set(title="Error of the output at this budget", xlim=(0, 2.5), ylim=(len(of) - 0.5, -0.5))


@drawing
def moved(axis: Axes, far: ArrayLike, first: int, highest: float, title: str, words: Sequence[str]) -> None:
    """How far each word's answer moves, as bars: orange those before the first that may, blue the others.

    highest: where the axis ends, so that several have the same.
    """
    heights = np.asarray(far, dtype=float)
    axis.bar(range(len(heights)), heights, color=[KEY if i < first else QUERY for i in range(len(heights))])
    axis.set_xticks(range(len(heights)), words, rotation=30)
    axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axis.set(title=title, ylim=(0, 1.05 * highest))


@drawing
def wall(axis: Axes, lengths: Sequence[int], proj_dim: int) -> None:
    """The n×n map of each length, drawn to one scale, with Linformer's n×k map laid over it."""
    left, largest = 0.0, lengths[-1]
    for n in lengths:
        axis.add_patch(plt.Rectangle((left, 0), n, n, facecolor="#D6E4F3", edgecolor=QUERY))
        axis.add_patch(plt.Rectangle((left, 0), proj_dim, n, facecolor=KEY, edgecolor=KEY))
        place: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "top"}
        axis.annotate(f"n = {n:,}", (left + n / 2, 0), (0, -8), **place)
        left += n + largest * 0.08
    corner = left - largest * 1.08  # of the largest square
    axis.text(corner + largest * 0.5, largest * 0.45, "n×n", color=QUERY, fontsize=20, ha="center")
    beside = corner + proj_dim + largest * 0.03
    axis.text(beside, largest * 0.9, f"n×k, k = {proj_dim}", color=KEY, fontsize=14)
    axis.set(xlim=(-40, left), ylim=(-largest * 0.08, largest * 1.03), aspect="equal")
    axis.set_title("Attention's square and Linformer's strip")
    axis.axis("off")


@drawing
def sensors(axis: Axes, places: ArrayLike, parts: ArrayLike, title: str) -> None:
    """Sensors on a plane, (n, 2), in mixtures of four colours, (n, 4): even ones round, odd ones square."""
    at, colours = np.asarray(places), np.asarray(parts) @ [to_rgb(colour) for colour in LINES[:4]]
    for first, shape in enumerate("os"):
        x, y = at[first::2].T
        axis.scatter(x, y, c=colours[first::2], marker=shape, s=3600 / len(at) + 10, linewidths=0)
    axis.set(title=title, aspect="equal", xticks=[], yticks=[])
    axis.invert_yaxis()
    axis.spines[:].set(visible=True, color=EDGE)


@drawing
def right_answers(axis: Axes, lines: Mapping[str, Sequence[float]], guess: float) -> None:
    """Shares of right answers by update, each line named, and a dotted one at the share of a guess."""
    for (name, shares), colour in zip(lines.items(), LINES, strict=False):
        axis.plot(shares, color=colour, linestyle="-", label=name)
    axis.axhline(guess, color=GREY, linewidth=1, linestyle=":", label="a guess")
    axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axis.set(title="Right answers", xlabel="updates", ylim=(0, 1.03))
    axis.legend(frameon=False, fontsize=10, loc=(0.45, 0.4))
