"""Pictures of arrays: each function takes numbers and returns a closed Figure; it computes nothing.

Every Figure shows itself as one PNG with alternative text, made of its title and its axes' names.
"""

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from itertools import combinations, cycle
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

QUERY = "#2F6DB5"  # blue: what a token looks for
KEY = "#B5530F"  # orange: what it offers
VALUE = "#23794A"  # green: what it hands over
INK = "#222222"
GREY = "#6B6F76"
EDGE = "#C9CED6"  # around maps, and lines behind curves
WEIGHTS = "Blues"  # colour map of attention weights; white is zero
SIGNED = "RdBu"  # of signed numbers: blue above zero, as weights are, red below
LINES = (QUERY, KEY, VALUE, "#7B4FA3", GREY, "#C2417C", "#8F6A00", INK)
MODELS = {"Transformer": QUERY, "Linformer": KEY, "no attention": VALUE, "one slot": LINES[3]}
DASHES = ("-", "--", "-.", ":")

STYLE: dict[Any, Any] = {
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": plt.cycler(  # a second round of colours has other dashes
        color=LINES * 2, linestyle=DASHES * 2 + (DASHES[1:] + DASHES[:1]) * 2
    ),
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
}


class Picture(Figure):
    """A Figure that a notebook shows as one PNG with alternative text."""

    alt = ""

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> tuple[dict, dict]:
        png = BytesIO()
        self.savefig(png, format="png", facecolor="white")
        return {"image/png": png.getvalue(), "text/plain": self.alt}, {"image/png": {"alt": self.alt}}


def heatmaps(
    maps: Mapping[str, ArrayLike],
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    numbers: str | None = None,
    rows: str = "query",
    columns: str = "key",
    stretch: bool = False,
    ranges: Mapping[str, ArrayLike] | None = None,
) -> Figure:
    """Maps side by side on one colour scale that begins at zero; white is zero, or nan, which has no number.

    Args:
        maps: title -> array (n, m) of non-negative numbers; n queries go down, m keys across.
        queries, keys: labels of the rows and of the columns; a narrower map has the first of these.
        rows, columns: what goes down and across.
        numbers: a format such as ".2f" prints every entry in its cell.
        stretch: cells fill the picture instead of being square.
        ranges: title -> (n, m, 2), lowest and highest, printed below the number of each cell.
    """
    with plt.rc_context(STYLE):
        arrays = {title: np.asarray(array, dtype=float) for title, array in maps.items()}
        largest = max(np.nanmax(array) for array in arrays.values())
        widest = max(array.shape[1] for array in arrays.values()) if numbers else 0
        side = max(3.9, 0.3 * len(queries or ()))  # so that no label touches the next
        figure, axes = _figure(len(arrays), width=max(side, 0.6 * widest), height=side)
        for axis, (title, array) in zip(axes, arrays.items(), strict=True):
            axis.imshow(array, cmap=WEIGHTS, vmin=0, vmax=largest, interpolation="nearest")
            axis.set(title=title, xlabel=columns, ylabel=rows, aspect="auto" if stretch else "equal")
            _tick_labels(axis, queries, keys and keys[: array.shape[1]])
            if numbers:
                _print_numbers(axis, array, numbers, largest, (ranges or {}).get(title))
        return _finish(
            figure, f"Heat maps, {_plural(rows)} down, {_plural(columns)} across: {'; '.join(arrays)}."
        )


def tables(
    tables: Mapping[str, Mapping[int, Mapping[int, float | tuple[float, float, float]]]],
    rows: str,
    columns: str,
    what: str,
    form: str = ".1f",
) -> Figure:
    """Tables side by side as heat maps with their numbers: title -> row -> column -> number.

    A number may be three, as (lowest, middle, highest): the range then stands below the middle.
    """
    across = sorted({column for table in tables.values() for row in table.values() for column in row})
    down = sorted({row for table in tables.values() for row in table})
    nothing, grids, ranges = (np.nan,) * 3, {}, {}
    for title, table in tables.items():
        cells = [[table.get(row, {}).get(column, nothing) for column in across] for row in down]
        some = [cell for row in table.values() for cell in row.values()]
        three = np.asarray(
            [[cell if isinstance(cell, tuple) else 3 * (cell,) for cell in row] for row in cells]
        )
        grids[f"{what}: {title}"] = three[..., 1]
        if any(isinstance(cell, tuple) for cell in some):
            ranges[f"{what}: {title}"] = three[..., [0, 2]]
    queries, keys = ([f"{value:,}" for value in some] for some in (down, across))
    return heatmaps(grids, queries, keys, form, rows=rows, columns=columns, ranges=ranges)


def small_maps(maps: Mapping[str, ArrayLike], columns: int = 4, limit: float | None = None) -> Figure:
    """Many maps (n, m) below and beside each other, white for zero, each clipped at its 98th percentile.

    limit: clips all of them there instead.
    """
    with plt.rc_context(STYLE):
        rows = -(-len(maps) // columns)
        size = (2.4 * columns, 2.75 * rows)
        figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, FigureClass=Picture)
        for axis in axes.flat:
            axis.axis("off")
        for axis, (title, array) in zip(axes.flat, maps.items(), strict=False):
            array = np.asarray(array, dtype=float)
            high = limit or np.quantile(array, 0.98) or array.max()
            axis.imshow(array, cmap=WEIGHTS, vmin=0, vmax=high, interpolation="nearest")
            axis.set(title=title, xticks=[], yticks=[])
            axis.axis("on")
            axis.spines[:].set_visible(True)
        return _finish(figure, f"Small heat maps, queries down, keys across: {'; '.join(maps)}.")


def paths(
    lines: Mapping[str, tuple[ArrayLike, ArrayLike]],
    x_label: str,
    y_label: str,
    title: str,
    level: tuple[str, float] | None = None,
    bars: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    lowest: float = 0,
) -> Figure:
    """Lines with an x axis of their own each, name -> (x, y); x is logarithmic (base 2).

    Args:
        level: a name and a height, drawn as a grey line across.
        bars: of some of the lines, from (lowest, highest) at each point.
        lowest: where the y axis begins.
    """
    with plt.rc_context(STYLE):
        figure, (axis,) = _figure(1, width=7.6, height=4.2)
        for name, (x, y) in lines.items():
            (line,) = axis.plot(x, y, marker="o", label=name)
            if bars and name in bars:
                axis.vlines(x, *bars[name], color=line.get_color(), lw=1.2)
        if level:
            axis.axhline(level[1], color=GREY, lw=1, linestyle="-")
            style: dict[str, Any] = {"va": "bottom", "ha": "right", "fontsize": 10, "color": GREY}
            axis.text(1.0, level[1], level[0], transform=axis.get_yaxis_transform(), **style)
        axis.set_xscale("log", base=2)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set(xlabel=x_label, ylabel=y_label, title=title, ylim=(lowest, None))
        axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        return _finish(figure, f"{title}. {y_label} against {x_label}: {', '.join(lines)}.")


def curves(
    x: ArrayLike,
    lines: Mapping[str, ArrayLike],
    x_label: str,
    y_label: str,
    title: str,
    log: bool = False,
    floors: Mapping[str, ArrayLike] | None = None,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    joined: bool = True,
) -> Figure:
    """Lines over one x axis, each named in the legend; log=True makes both axes logarithmic (base 2).

    Args:
        floors: below some of the lines, by their names: dotted, in the same colour.
        bands: around some of the lines, from (lowest, highest), in the same colour.
        joined: False draws points without lines, of another shape for each name.
    """
    with plt.rc_context(STYLE):
        figure, (axis,) = _figure(1, width=6.5, height=3.8)
        for (name, y), mark in zip(lines.items(), cycle("os^DvP"), strict=False):
            style: dict[str, Any] = {"marker": "o"} if joined else {"marker": mark, "linestyle": "none"}
            (line,) = axis.plot(x, y, label=name, **style)
            colour = line.get_color()
            if bands and name in bands:
                axis.fill_between(x, *bands[name], color=colour, alpha=0.2, lw=0)
            if floors and name in floors:
                axis.plot(x, floors[name], label=f"floor of {name}", color=colour, linestyle=":", lw=2)
        if log:
            axis.set_xscale("log", base=2)
            axis.set_yscale("log", base=2)
            axis.set_xticks(x, [f"{value:,}" for value in np.asarray(x)])
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
            axis.minorticks_off()
        elif axis.dataLim.ymin >= 0:
            axis.set_ylim(bottom=0)
        axis.set(xlabel=x_label, ylabel=y_label, title=title)
        if bands:  # beneath, so that it lies on none
            axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
        else:
            axis.legend(frameon=False)
        drawn = ", ".join([*lines, *(f"floor of {name}" for name in floors or {})])
        return _finish(figure, f"{title}. {y_label} against {x_label}: {drawn}.")


def races(
    dims: Sequence[int],
    panels: Mapping[str, Mapping[str, ArrayLike]],
    title: str,
    between: tuple[float, float],
    dashed: Sequence[str] = (),
) -> Figure:
    """Errors against the slots k, a panel for each head, on one scale; each line is named at its end.

    Args:
        panels: name of a head -> name of a line -> its error for each k. An error of 1 is marked.
        between: lowest and highest error that are shown; a line may leave the picture.
        dashed: lines that could not be had in practice.
    """
    low, high = between
    with plt.rc_context(STYLE):
        figure, axes = _figure(len(panels), width=6.1, height=4.6)
        for axis, (head, lines) in zip(axes, panels.items(), strict=True):
            axis.axhline(1, color=EDGE, lw=7, zorder=0)
            for (name, errors), colour in zip(lines.items(), LINES, strict=False):
                style = "--" if name in dashed else "-"
                axis.plot(dims, errors, color=colour, lw=3, ls=style, marker="" if name in dashed else "o")
            axis.set_xscale("log", base=2)
            axis.set_yscale("log", base=2)
            axis.set_xticks(dims, [str(k) for k in dims])
            axis.set_ylim(low, high)
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axis.minorticks_off()
            axis.set(xlabel="slots k", title=head)
            place = math.inf
            ends = {name: float(np.asarray(errors)[-1]) for name, errors in lines.items()}
            for name, end in sorted(ends.items(), key=lambda item: -item[1]):
                height = math.log(max(end, low) / low) / math.log(high / low)
                place = min(height, place - 0.062)
                colour = LINES[list(lines).index(name)]
                axis.text(1.03, place, name, color=colour, va="center", transform=axis.transAxes)
        axes[0].set_ylabel("relative error")
        axes[0].text(dims[-1], 1.07, "silence", color=GREY, ha="right", fontsize=11)
        figure.suptitle(title)
        drawn = "; ".join([*next(iter(panels.values()))])
        return _finish(figure, f"{title}. Relative error against slots k, for {', '.join(panels)}: {drawn}.")


def roofline(
    points: Mapping[str, tuple[float, float]], flops_per_s: float, bytes_per_s: float, title: str
) -> Figure:
    """Steps under the roof of a machine: operations a byte across, operations a second up, both logarithmic.

    Args:
        points: name of a step -> its operations a byte and its operations a second, up to eight of them.
    """
    corner = flops_per_s / bytes_per_s  # operations a byte, from which arithmetic is the limit
    across = [corner, *(x for x, _ in points.values())]
    low, high = min(across) / 3, max(across) * 3
    marks = (("s", 8), ("o", 13), ("v", 9), ("x", 9), ("D", 8), ("^", 9), ("P", 9), ("*", 11))
    with plt.rc_context(STYLE):
        figure, (axis,) = _figure(1, width=8.4, height=3.2)
        axis.plot([low, corner, high], [low * bytes_per_s, flops_per_s, flops_per_s], "-", color=INK, lw=2.5)
        axis.axvspan(low, corner, color="#F4E6DC", lw=0)
        axis.axvspan(corner, high, color="#E3EDF7", lw=0)
        for (name, (x, y)), (mark, size), colour in zip(points.items(), marks, LINES, strict=False):
            face = "none" if mark == "o" else colour  # a ring, so that a point inside it is seen
            style: dict[str, Any] = {"marker": mark, "ms": size, "mfc": face, "mew": 2, "linestyle": "none"}
            axis.plot(x, y, color=colour, label=name, **style)
        axis.set(xscale="log", yscale="log", xlim=(low, high), title=title)
        axis.set(xlabel="operations a byte", ylabel="operations a second")
        bottom = min([low * bytes_per_s, *(y for _, y in points.values())]) / 3
        axis.set_ylim(bottom, flops_per_s * 3)
        axis.text(low * 1.1, bottom * 1.3, "waits for memory", fontsize=10)
        axis.text(high / 1.1, bottom * 1.3, "waits for arithmetic", fontsize=10, ha="right")
        axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        places = "; ".join(
            f"{name} {'under the slope' if x < corner else 'under the flat part'}"
            for name, (x, _) in points.items()
        )
        return _finish(figure, f"{title}. A roof that rises, then is flat, and points below it: {places}.")


def learning_curves(
    runs: Mapping[str, tuple[ArrayLike, ArrayLike]],
    y_label: str,
    title: str,
    levels: Mapping[str, float] | None = None,
    between: tuple[float, float] | None = None,
    x_label: str = "updates",
) -> Figure:
    """Loss against updates: for each name the mean over its runs and a band from the lowest to the highest.

    Args:
        runs: name -> updates, or what else x_label names, (points,) and losses (points,) or (runs, points).
        levels: name -> a loss drawn as a line across, as of a baseline.
        between: lowest and highest loss to show; all by default.
    """
    with plt.rc_context(STYLE):
        figure, (axis,) = _figure(1, width=6.8, height=4.0)
        for name, (x, losses) in runs.items():
            losses = np.atleast_2d(np.asarray(losses, dtype=float))
            (line,) = axis.plot(x, losses.mean(axis=0), lw=2, label=name, **_look(name, [*runs]))
            lowest, highest = losses.min(axis=0), losses.max(axis=0)
            axis.fill_between(x, lowest, highest, color=line.get_color(), alpha=0.2, lw=0)
        low, high = between or (-np.inf, np.inf)
        for name, level in (levels or {}).items():
            if low < level < high:
                axis.axhline(level, color=GREY, lw=1, linestyle="-")
                axis.text(1.02, level, name, va="center", transform=axis.get_yaxis_transform(), fontsize=10)
        axis.set(xlabel=x_label, ylabel=y_label, title=title, xlim=(0, None), ylim=between)
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15)}  # off the curves
        axis.legend(frameon=False, ncols=3, columnspacing=1.0, handlelength=1.6, **below)
        drawn = ", ".join([*runs, *(levels or {})])
        return _finish(figure, f"{title}. {y_label} against {x_label}: {drawn}.")


def _look(name: str, names: Sequence[str]) -> dict[str, Any]:
    """A model's curve has the model's colour in every picture; several of one model differ in their lines."""
    model = next((model for model in MODELS if name.startswith(model)), None)
    if model is None:
        return {}
    alike = [other for other in names if other.startswith(model)]
    number = alike.index(name) if len(alike) > 1 else [*MODELS].index(model)
    return {"color": MODELS[model], "linestyle": DASHES[number % len(DASHES)]}


def bars(
    groups: Mapping[str, ArrayLike],
    labels: Sequence[str],
    y_label: str,
    title: str,
    spreads: Mapping[str, ArrayLike] | None = None,
    colours: Sequence[str] | None = None,
) -> Figure:
    """Bars over the same labels, one colour a group, a number on each; spreads are drawn as error bars.

    Args: colours: one for each label, where there is a single group.
    """
    with plt.rc_context(STYLE):
        figure, (axis,) = _figure(1, width=max(6.5, 1.05 * len(labels)), height=3.4)
        width = 0.8 / len(groups)
        for i, (name, heights) in enumerate(groups.items()):
            left = np.arange(len(labels)) + (i - (len(groups) - 1) / 2) * width
            spread = spreads[name] if spreads else None
            style: dict[str, Any] = {"yerr": spread, "error_kw": {"ecolor": INK, "capsize": 4}}
            drawn = axis.bar(left, heights, width * 0.92, label=name, color=colours or LINES[i], **style)
            axis.bar_label(drawn, fmt="%.2f", fontsize=10)
        axis.margins(y=0.12)  # room for the number on the highest
        axis.set_xticks(range(len(labels)), labels)
        axis.set(ylabel=y_label, title=title)
        if len(groups) > 1:  # beneath, where no bar can be
            axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=len(groups))
        named = ", ".join(label.replace("\n", " ") for label in labels)
        return _finish(figure, f"{title}. Bars of {y_label} for {named}: {', '.join(groups)}.")


def covers(
    middles: ArrayLike,
    shares: ArrayLike,
    edge: float,
    lines: Mapping[str, ArrayLike],
    x_label: str,
    title: str,
) -> Figure:
    """Curves that lie above a step from 0 to 1 at an edge, over bars that show how often each value occurs.

    Args:
        middles, shares: of the bars, (bins,), whose heights have a scale of their own.
        lines: name -> height at each of the middles, shown up to 2.
    """
    with plt.rc_context(STYLE):
        figure, (axis,) = _figure(1, width=6.8, height=3.8)
        x, often = np.asarray(middles, dtype=float), np.asarray(shares, dtype=float)
        axis.bar(x, 0.6 * often / often.max(), x[1] - x[0], color=EDGE, label="how often (own scale)")
        ends = [x[0], edge, edge, x[-1]]
        axis.plot(ends, [0, 0, 1, 1], color=INK, linestyle="-", lw=2.5, label=f"1 from {edge:g} on, 0 before")
        for (name, y), colour in zip(lines.items(), (QUERY, KEY, VALUE), strict=False):
            axis.plot(x, y, color=colour, linestyle="-", lw=2, label=name)
        axis.set(xlabel=x_label, ylim=(0, 2), xlim=(x[0], x[-1]), title=title)
        axis.legend(frameon=False, loc="upper left", fontsize=10)
        drawn = ", ".join(lines)
        return _finish(
            figure, f"{title}. Bars and a step at {edge:g} against {x_label}; above the step: {drawn}."
        )


def intervals(
    rows: Mapping[str, Mapping[str, tuple[float, float, float]]],
    x_label: str,
    title: str,
    colours: Mapping[str, str] | None = None,
    level: float | None = 1,
    form: str = ".2f",
    samples: Mapping[str, ArrayLike] | None = None,
) -> Figure:
    """Rows of dots with their intervals and numbers: row -> name of a dot -> (lowest, middle, highest).

    Args:
        colours: of rows, by the beginnings of their names; the others are grey.
        level: where a line goes up, such as 1 for ratios.
        form: how the numbers are written.
        samples: row -> what its interval was made of, drawn as ticks below it; for rows of one dot.
    """
    names = [*dict.fromkeys(name for row in rows.values() for name in row)]
    with plt.rc_context(STYLE):
        figure, (axis,) = _figure(
            1, width=7.6, height=1.1 + 0.24 * sum(len(row) + 0.9 for row in rows.values())
        )
        y, middles = 0.0, []
        for row, dots in rows.items():
            given = [colour for start, colour in (colours or {}).items() if row.startswith(start)]
            style: dict[str, Any] = {"color": given[0] if given else GREY}
            middles.append(y + (len(dots) - 1) / 2)
            for name, (low, middle, high) in dots.items():
                axis.plot([low, high], [y, y], lw=3, alpha=0.5, linestyle="-", **style)
                axis.plot(middle, y, "os^D"[names.index(name)], ms=8, **style)
                beside = axis.get_yaxis_transform()
                axis.text(1.01, y, f"{middle:{form}}", va="center", fontsize=10, transform=beside)
                y += 1
            if samples:
                axis.plot(samples[row], np.full(np.shape(samples[row]), y - 0.5), "|", ms=9, mew=2, color=INK)
            y += 0.9
        if level is not None:
            axis.axvline(level, color=INK, lw=1, linestyle="-")
        axis.set_yticks(middles, rows)
        axis.invert_yaxis()
        axis.set(xlabel=x_label, title=title)
        if len(names) > 1:
            style = {"color": INK, "linestyle": ""}
            marks = [plt.Line2D([], [], marker="os^D"[i], label=n, **style) for i, n in enumerate(names)]
            figure.legend(handles=marks, frameon=False, loc="outside lower center", ncols=4)
        return _finish(
            figure,
            f"{title}. Dots with their intervals, {x_label}, for {'; '.join(rows)}: {', '.join(names)}.",
        )


def arrows(vectors: Mapping[str, tuple[ArrayLike, str]], title: str) -> Figure:
    """Arrows from the origin of a plane: name -> (vector of two numbers, colour)."""
    with plt.rc_context(STYLE):
        figure, (axis,) = _figure(1, width=4.8, height=4.2)
        _draw_arrows(axis, vectors)
        _plane(axis, [vector for vector, _ in vectors.values()], title)
        return _finish(figure, f"{title}. Arrows from the origin: {', '.join(vectors)}.")


def outlines(
    shapes: Mapping[str, tuple[ArrayLike, Mapping[str, tuple[ArrayLike, str]]]], title: str
) -> Figure:
    """Closed curves in planes of one scale: name -> (points (m, 2), its arrows, as in `arrows`)."""
    with plt.rc_context(STYLE):
        figure, axes = _figure(len(shapes), width=4.4, height=4.4)
        everything = np.concatenate([np.asarray(points, dtype=float) for points, _ in shapes.values()])
        for axis, (name, (points, vectors)) in zip(axes, shapes.items(), strict=True):
            axis.plot(*np.asarray(points, dtype=float).T, color=GREY, linestyle="-", lw=2)
            _draw_arrows(axis, vectors)
            _plane(axis, everything, name)
        figure.suptitle(title)
        arrows_drawn = ", ".join(arrow for _, vectors in shapes.values() for arrow in vectors)
        return _finish(figure, f"{title}. Outlines of {', '.join(shapes)}, with arrows {arrows_drawn}.")


def _draw_arrows(axis: Axes, vectors: Mapping[str, tuple[ArrayLike, str]]) -> None:
    for name, (vector, colour) in vectors.items():
        x, y = np.asarray(vector, dtype=float)
        length = np.hypot(x, y)
        axis.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2})
        style: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "center"}
        axis.annotate(name, (x, y), (x / length * 12, y / length * 12), color=colour, **style)


def mixture(
    values: ArrayLike, weights: ArrayLike, mixed: ArrayLike, labels: Sequence[str], title: str
) -> Figure:
    """Points in a plane and the point they mix to; a line to each value is as thick as its weight.

    Thin lines between the points enclose the polygon that mixtures cannot leave.

    Shape: values (n, 2), weights (n,), mixed (2,).
    """
    with plt.rc_context(STYLE):
        figure, (axis,) = _figure(1, width=4.8, height=4.2)
        mixed = np.asarray(mixed, dtype=float)
        for one, other in combinations(np.asarray(values), 2):
            axis.plot(*zip(one, other, strict=True), color=GREY, linestyle="-", lw=0.6, alpha=0.5)
        for value, weight, label in zip(np.asarray(values), np.asarray(weights), labels, strict=True):
            axis.plot(
                *zip(value, mixed, strict=True), color=VALUE, linestyle="-", lw=0.5 + 9 * weight, alpha=0.45
            )
            axis.plot(*value, "o", color=VALUE, ms=8)
            axis.annotate(f"{label} {weight:.2f}", value, (0, 10), textcoords="offset points", ha="center")
        axis.plot(*mixed, "*", color=QUERY, ms=18, label="mixture")
        _plane(axis, np.asarray(values), title)
        figure.legend(frameon=False, loc="outside lower center")
        return _finish(figure, f"{title}. Values as points, their mixture a star: {', '.join(labels)}.")


def wall(lengths: Sequence[int], proj_dim: int, title: str) -> Figure:
    """The n×n map of each length, drawn to one scale, with Linformer's n×k map laid over it."""
    with plt.rc_context(STYLE):
        figure, (axis,) = _figure(1, width=7.4, height=4.0)
        left = 0.0
        for n in lengths:
            axis.add_patch(plt.Rectangle((left, 0), n, n, facecolor="#D6E4F3", edgecolor=QUERY))
            axis.add_patch(plt.Rectangle((left, 0), proj_dim, n, facecolor=KEY, edgecolor=KEY))
            axis.annotate(
                f"n = {n:,}", (left + n / 2, 0), (0, -8), textcoords="offset points", ha="center", va="top"
            )
            left += n + lengths[-1] * 0.08
        largest = lengths[-1]
        corner = left - largest * 1.08  # of the largest square
        axis.text(corner + largest * 0.5, largest * 0.45, "n×n", color=QUERY, fontsize=20, ha="center")
        axis.text(
            corner + proj_dim + largest * 0.03, largest * 0.9, f"n×k, k = {proj_dim}", color=KEY, fontsize=14
        )
        axis.set(xlim=(-40, left), ylim=(-largest * 0.08, largest * 1.03), aspect="equal", title=title)
        axis.axis("off")
        sizes = ", ".join(f"{n:,}" for n in lengths)
        return _finish(
            figure, f"{title}. Squares n×n for n = {sizes} to scale, each with an n×{proj_dim} strip."
        )


def _plural(name: str) -> str:
    if name.endswith("s"):
        return name
    return f"{name[:-1]}ies" if name.endswith("y") and name != "key" else f"{name}s"


def _figure(columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    figure, axes = plt.subplots(
        1, columns, figsize=(width * columns, height), squeeze=False, FigureClass=Picture
    )
    return figure, list(axes[0])


def _finish(figure: Figure, alt: str) -> Figure:
    assert isinstance(figure, Picture)
    figure.alt = alt
    plt.close(figure)  # a notebook draws the returned Figure once, not a second time as an open one
    return figure


def _tick_labels(axis: Axes, queries: Sequence[str] | None, keys: Sequence[str] | None) -> None:
    axis.spines[:].set_visible(False)
    queries, keys = queries or [], keys or []
    axis.set_xticks(range(len(keys)), keys, rotation=60, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(queries)), queries)


def _print_numbers(
    axis: Axes, array: np.ndarray, form: str, largest: float, ranges: ArrayLike | None = None
) -> None:
    for (row, column), number in np.ndenumerate(array):
        if np.isnan(number):
            continue
        style: Any = {"ha": "center", "color": "white" if number > 0.55 * largest else INK}
        lift = 0.0 if ranges is None else 0.13  # up, to make room for the range
        axis.text(column, row - lift, format(number, form), va="center", fontsize=10, **style)
        if ranges is not None:
            low, high = (format(end, form) for end in np.asarray(ranges)[row, column])
            axis.text(column, row + 0.26, f"{low}–{high}", va="center", fontsize=7.5, **style)


def _plane(axis: Axes, points: Iterable[ArrayLike], title: str) -> None:
    reach = 1.25 * np.abs(np.asarray([np.asarray(point, dtype=float) for point in points])).max()
    axis.axhline(0, color=GREY, lw=0.7, linestyle="-")
    axis.axvline(0, color=GREY, lw=0.7, linestyle="-")
    axis.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", title=title)
    axis.set(xlabel="first feature", ylabel="second feature")


# Stills of the widgets: several drawings on one board, the line of numbers below.


def board(
    layout: Sequence[Sequence[str]],
    drawings: Mapping[str, Callable[[Axes], None]],
    size: tuple[float, float],
    heights: Sequence[float] | None = None,
    widths: Sequence[float] | None = None,
) -> Figure:
    """Drawings placed by name, as plt.subplot_mosaic does; size in inches, heights and widths relative."""
    with plt.rc_context(STYLE):
        figure = plt.figure(figsize=size, FigureClass=Picture)
        axes = figure.subplot_mosaic(
            [list(row) for row in layout], height_ratios=heights, width_ratios=widths
        )
        for name, draw in drawings.items():
            draw(axes[name])
        plt.close(figure)
        return figure


def captioned(figure: Figure, words: str) -> Figure:
    """The same figure with a line of words below; it becomes as much higher."""
    with plt.rc_context(STYLE):
        width, height = figure.get_size_inches()
        lines = textwrap.wrap(words, int(11.5 * width))
        more = 0.24 * len(lines) + 0.1
        figure.set_size_inches(width, height + more)
        below = more / (height + more)
        figure.set_layout_engine("constrained", rect=(0, below, 1, 1 - below))
        figure.text(0.01, 0.01, "\n".join(lines), fontsize=12, va="bottom", linespacing=1.4)
        return figure


def draw_map(
    axis: Axes,
    values: ArrayLike,
    title: str,
    limit: float,
    signed: bool = False,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    note: str = "queries down, keys across",
    query: int | None = None,
    tall: float | None = None,
    used: int | None = None,
) -> None:
    """A map (n, m), white for zero, blue above it; signed: red below. limit has the strongest colour.

    tall: height over width; 1 where the map is square, and otherwise it fills its place.
    used: how many columns are; the others are covered.
    """
    low, colours = (-limit, SIGNED) if signed else (0, WEIGHTS)
    array = np.asarray(values, dtype=float)
    axis.imshow(array, cmap=colours, vmin=low, vmax=limit, interpolation="nearest", aspect="auto")
    axis.set(title=title, xlabel=note)
    axis.set_box_aspect(tall or (1 if array.shape[0] == array.shape[1] else None))
    _tick_labels(axis, rows, columns)
    axis.spines[:].set(visible=True, color=EDGE)
    if rows is None:
        axis.set(xticks=[], yticks=[])
    if query is not None:
        axis.axhspan(query - 0.5, query + 0.5, fill=False, edgecolor=QUERY, linewidth=2)
    if used is not None:
        ends = used - 0.5, array.shape[1] - 0.5
        axis.axvspan(*ends, facecolor="white", edgecolor=GREY, hatch="//", alpha=0.9)


def draw_spectrum(axis: Axes, sigma: ArrayLike, kept: int) -> None:
    """Singular values as bars on a scale of square roots, the kept ones in blue, the lost ones in orange."""
    values = np.asarray(sigma, dtype=float)
    index = np.arange(1, len(values) + 1)
    for part, colour, name in ((index <= kept, QUERY, "kept"), (index > kept, KEY, "lost")):
        axis.bar(index[part], values[part], color=colour, label=f"{name}: {part.sum()}")
    axis.set_yscale("function", functions=(np.sqrt, np.square))
    axis.set(xlabel="index of the singular value", ylabel="σ", xlim=(0, len(values) + 1))
    axis.legend(frameon=False)


def draw_growth(
    axis: Axes,
    lengths: Sequence[int],
    curves: Mapping[str, Sequence[float]],
    looks: Mapping[str, tuple[str, float]],
    ticks: Mapping[float, str],
    n: int,
    dots: Mapping[str, float],
    title: str,
    points: Mapping[str, Sequence[Sequence[float]]] | None = None,
    marks: Mapping[str, int] | None = None,
) -> None:
    """Curves over n on log axes, their names at their ends.

    Args:
        looks: name -> colour and width. ticks: value -> what is written beside it.
        n, dots: the chosen n, and each curve's value there.
        points: name of a curve -> (n, value) of squares. marks: words -> n of a dashed line; at most two.
    """
    low, high = min(ticks), max(ticks)
    axis.set(xscale="log", yscale="log", xlim=(lengths[0], lengths[-1]), ylim=(low, high), xlabel="tokens n")
    axis.set_title(title, pad=24)
    some = lengths[:: len(lengths) // 3]
    axis.set_xticks(some, [f"{length:,}" for length in some])
    axis.set_yticks(list(ticks), list(ticks.values()))
    axis.minorticks_off()
    axis.grid(axis="y", color=EDGE, linewidth=0.7)
    axis.axvline(n, color=INK, linewidth=1, linestyle="-")
    for (words, place), side in zip((marks or {}).items(), ("right", "left"), strict=False):
        if lengths[0] <= place <= lengths[-1]:
            axis.axvline(place, color=KEY, linewidth=1.2, linestyle="--")
            axis.text(place, 1.02, f" {words} ", color=KEY, ha=side, transform=axis.get_xaxis_transform())
    ends = {}
    for name in sorted(curves, key=lambda name: -looks[name][1]):  # the widest lies below
        values, (colour, width) = curves[name], looks[name]
        axis.plot(lengths, values, color=colour, linewidth=0.7 * width, linestyle="-", clip_on=False)
        axis.plot(n, dots[name], "o", color=colour, markeredgecolor=INK, ms=0.7 * width + 5)
        ends[name] = np.log(values[-1] / low) / np.log(high / low)
    for name, pairs in (points or {}).items():
        axis.plot(*np.asarray(pairs).T, "s", color=looks[name][0], markeredgecolor=INK, ms=8, linestyle="")
    top = np.inf
    for name, height in sorted(ends.items(), key=lambda end: -end[1]):
        top = min(height, top - 0.065)
        axis.text(1.02, top, name, color=looks[name][0], va="center", weight="bold", transform=axis.transAxes)


def draw_shares(
    axis: Axes, rows: Mapping[str, tuple[str, str, Sequence[tuple[float, bool]]]], title: str
) -> None:
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


def draw_advice(
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
            bar = axis.barh(
                i, n * half - n / half, left=n / half, height=0.62, color=LINES[kind], linewidth=0
            )
            if not known:
                bar.patches[0].set(facecolor="white", hatch="///", edgecolor=LINES[kind])
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
    axis.set_title(
        "What to use, by task and tokens n; hatched: not tried at that n", loc="left", weight="bold"
    )
    axis.set_xticks(lengths[::2], [f"{length:,}" for length in lengths[::2]])
    axis.set_yticks([])
    axis.minorticks_off()
    axis.set_xlabel("tokens n")
    axis.spines["left"].set_visible(False)


def draw_notes(axis: Axes, notes: Mapping[str, Iterable[str]]) -> None:
    """Headings with lines of text below each other."""
    lines = [f"{name}: {'; '.join(said)}" for name, said in notes.items()]
    wrapped = "\n".join(textwrap.fill(line, 105, subsequent_indent="   ") for line in lines)
    axis.text(0, 1, wrapped, va="top", fontsize=11, linespacing=1.4, transform=axis.transAxes)
    axis.set_axis_off()


def draw_heads(
    axis: Axes, numbers: ArrayLike, title: str, limit: float, chosen: tuple[int, int] | None = None
) -> None:
    """A number for each head, layers down, heads across, shaded up to limit; the chosen one is framed."""
    table = np.asarray(numbers)
    axis.imshow(table, cmap=WEIGHTS, vmin=0, vmax=2 * limit, aspect="auto")
    for (layer, head), number in np.ndenumerate(table):
        axis.text(head, layer, f"{number}", ha="center", va="center", color=INK, fontsize=10)
    axis.set_xticks(range(table.shape[1]), [str(i + 1) for i in range(table.shape[1])])
    axis.set_yticks(range(table.shape[0]), [str(i + 1) for i in range(table.shape[0])])
    axis.tick_params(length=0)
    axis.spines[:].set(visible=True, color=EDGE)
    axis.set(title=title, xlabel="layers down, heads across")
    if chosen is not None:
        layer, head = chosen
        frame = plt.Rectangle((head - 0.5, layer - 0.5), 1, 1, fill=False, edgecolor=KEY, linewidth=3)
        axis.add_patch(frame)


def draw_cumulative(axis: Axes, spectra: Mapping[str, ArrayLike], share: float) -> None:
    """Shares of the first r in a sum, name -> (p,), and a line at the share that is asked for."""
    for i, ((name, shares), colour) in enumerate(
        zip(spectra.items(), (QUERY, VALUE, KEY, GREY), strict=False)
    ):
        r = np.arange(1, len(np.asarray(shares)) + 1)
        axis.plot([0, *r], [0, *np.asarray(shares)], color=colour, linewidth=2 if i else 3.5, label=name)
    axis.axhline(share, color=INK, linewidth=1, linestyle="-")
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axis.set(title="Sum of the first r singular values", xlabel="r", xlim=(0, None), ylim=(0, 1.02))
    axis.legend(frameon=False, loc="lower right", fontsize=11)


READING_KEYS, READING_MAP = 4.5, 16.5  # of draw_reading: where keys stand and where the map begins, in rows


def draw_reading(axis: Axes, tokens: Sequence[str], values: ArrayLike, query: int, title: str) -> None:
    """What a query reads: keys with bars, a band from each to the query's row, and the map (n, n) it is of.

    Bands are as thick as their weights, all together as a row; weights from 0.05 on have their number.
    """
    array, n = np.asarray(values, dtype=float), len(tokens)
    weights, most = array[query], int(array[query].argmax())
    size = min(12, 200 / n)
    scale = max(n, 8) / 14  # the part beside the map is as wide as it is high
    letter = 0.027 * size * scale  # width of one, in rows
    keys, left = READING_KEYS * scale, READING_MAP * scale
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
        half = max(weights[i], 0.03) / 2
        across = start + (end - start) * t
        axis.fill_between(
            across, middle - half, middle + half, color=KEY, alpha=0.25 + 0.6 * weights[i] ** 0.5, lw=0
        )
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
    for x, text, colour, side in (
        (keys - 0.3, "weight", KEY, "right"),
        (keys, "keys ↓", KEY, "left"),
        (left - 0.25, "queries ↓", QUERY, "right"),
    ):
        axis.text(x, -0.25, text, color=colour, ha=side, fontsize=size)
    axis.set(xlim=(0, left + n + 2.5 * scale), ylim=(n + 0.1, -3.4 * scale), aspect="equal")
    axis.set_title(title, loc="left")
    axis.axis("off")


def draw_errors(
    axis: Axes,
    dims: Sequence[int],
    errors: Mapping[str, ArrayLike],
    looks: Mapping[str, tuple[str, float, str]],
    k: int | None = None,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
) -> None:
    """Errors against the slots k on log axes, each curve named at its end.

    Args:
        looks: name -> colour, width, line style. k: marked across all curves.
        bands: name -> (lowest, highest).
    """
    axis.set(xscale="log", yscale="log", xlabel="slots k", title="error of the head's output")
    for name, values in errors.items():
        colour, width, style = looks[name]
        axis.plot(dims, values, color=colour, linewidth=width, linestyle=style)
        if bands and name in bands:
            axis.fill_between(dims, *bands[name], color=colour, alpha=0.2, lw=0)
    axis.set_xticks(dims, [str(size) for size in dims])
    axis.yaxis.set_major_formatter(lambda error, _: f"{error:.3g}" if error < 0.01 else f"{error:.0%}")
    axis.minorticks_off()
    axis.grid(axis="y", color=EDGE, linewidth=0.7)
    if k is not None:
        axis.axvline(k, color=EDGE, linewidth=8, linestyle="-", zorder=0)
    bottom, top = np.log(axis.get_ylim())
    place = np.inf
    for name, values in sorted(errors.items(), key=lambda item: -float(np.asarray(item[1])[-1])):
        place = min((np.log(float(np.asarray(values)[-1])) - bottom) / (top - bottom), place - 0.065)
        axis.text(1.01, place, name, color=looks[name][0], va="center", transform=axis.transAxes)


def draw_distortions(
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
    axis.set(
        xlabel="‖Rx‖² / ‖x‖² − 1",
        ylabel="vectors",
        ylim=(0, 1.4 * max(heights.max(), np.asarray(curve[1]).max())),
    )
    axis.set(title="Squared lengths: off by")
    axis.legend(framealpha=1, edgecolor="none", fontsize=10, loc="upper right")


def draw_tails(axis: Axes, shares: Mapping[int, float], bounds: Mapping[int, float], kept: int) -> None:
    """Measured shares as points and a bound as a line, by the number of dimensions kept."""
    axis.axvline(kept, color=INK, linewidth=1, linestyle="-")
    axis.plot(*zip(*bounds.items(), strict=True), color=VALUE, linewidth=2.5, linestyle="-", label="bound")
    axis.plot(*zip(*shares.items(), strict=True), "o-", color=KEY, linewidth=1.5, ms=7, label="measured")
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks := list(shares)[::2], [f"{k}" for k in ticks])
    axis.minorticks_off()
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axis.set(title="Share off by ε or more", xlabel="dimensions kept k", ylim=(0, 1.02))
    axis.legend(frameon=False, loc="center right")


def draw_needed(axis: Axes, numbers: Sequence[int], asked: Sequence[int], n: int, chosen: int) -> None:
    """Slots that a bound asks for against the number of vectors, and the n there are, on log axes."""
    axis.plot(numbers, asked, color=VALUE, linewidth=2.5, linestyle="-")
    axis.plot(chosen, asked[numbers.index(chosen)], "o", color=VALUE, markeredgecolor=INK, ms=9)
    axis.axhline(n, color=GREY, linewidth=2, linestyle="-")
    axis.text(numbers[-1], 1.15 * n, f"k = n = {n:,}", color=GREY, ha="right")
    axis.set(
        xscale="log", yscale="log", ylim=(10, 1e5), title="The k that the bound asks for", xlabel="vectors N"
    )
    axis.set_xticks(numbers[::2], [f"{number:,}" for number in numbers[::2]])
    axis.set_yticks(ticks := [10, 100, 1000, 10**4, 10**5], [f"{tick:,}" for tick in ticks])
    axis.minorticks_off()


def draw_error_bars(axis: Axes, errors: Mapping[str, float | None], chosen: str) -> None:
    """Relative errors as bars with their percentages, up to 200 %; the chosen one in orange."""
    for i, (name, error) in enumerate(errors.items()):
        colour = KEY if name == chosen else QUERY
        axis.barh(i, min(error or 0, 2), color=colour, height=0.6)
        label = "too dear" if error is None else f"{error:.0%}"
        axis.text(2.5, i, label, ha="right", va="center", color=GREY if error is None else INK)
    axis.axvline(1, color=GREY, linewidth=1, linestyle="-")
    axis.set_yticks(range(len(errors)), list(errors))
    axis.set_xticks([1], ["answering zero"])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.set(title="Error of the output at this budget", xlim=(0, 2.5), ylim=(len(errors) - 0.5, -0.5))


def draw_moved(axis: Axes, moved: ArrayLike, first: int, highest: float, title: str) -> None:
    """How far each output moves, as bars: orange those before the first that may, blue the others.

    highest: where the axis ends, so that several have the same.
    """
    heights = np.asarray(moved, dtype=float)
    colours = [KEY if i < first else QUERY for i in range(len(heights))]
    axis.bar(np.arange(1, len(heights) + 1), heights, color=colours)
    axis.set(title=title, xlabel="output", xlim=(0.5, len(heights) + 0.5), ylim=(0, 1.05 * highest))
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_spread(axis: Axes, spreads: ArrayLike, n: int) -> None:
    """Standard deviation of the scores against the number of tokens, of which n are chosen."""
    values = np.asarray(spreads, dtype=float)
    axis.plot(np.arange(1, len(values) + 1), values, color=QUERY, linestyle="-")
    axis.plot(n, values[n - 1], "o", color=QUERY, ms=9)
    axis.set(title="standard deviation of the scores", xlabel="tokens n", ylim=(0, None))
