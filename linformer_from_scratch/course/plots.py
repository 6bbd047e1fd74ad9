"""Pictures of arrays: each function takes numbers and returns a closed Figure; it computes nothing.

Every Figure shows itself as one PNG with alternative text, made of its title and its axes' names.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from itertools import combinations, cycle
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
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


def house_style() -> AbstractContextManager[None]:
    """Inside, pictures look the same for everybody, whatever their own settings of matplotlib."""
    return plt.style.context(["default", STYLE])


class Picture(Figure):
    """A Figure that a notebook shows as one PNG with alternative text."""

    alt = ""

    def savefig(self, *args: Any, **kwargs: Any) -> None:
        """As any Figure's: some settings count only now."""
        with house_style():
            super().savefig(*args, **kwargs)

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
    with house_style():
        arrays = {title: np.asarray(array, dtype=float) for title, array in maps.items()}
        largest = max(np.nanmax(array) for array in arrays.values())
        widest = max(array.shape[1] for array in arrays.values()) if numbers else 0
        side = max(3.9, 0.3 * len(queries or ()))  # so that no label touches the next
        figure, axes = _figure(len(arrays), width=max(side, 0.6 * widest), height=side)
        for axis, (title, array) in zip(axes, arrays.items(), strict=True):
            axis.imshow(array, cmap=WEIGHTS, vmin=0, vmax=largest, interpolation="nearest")
            axis.set(title=title, xlabel=columns, ylabel=rows, aspect="auto" if stretch else "equal")
            axis.spines[:].set_visible(False)
            labels = (keys or ())[: array.shape[1]]
            axis.set_xticks(range(len(labels)), labels, rotation=60, ha="right", rotation_mode="anchor")
            axis.set_yticks(range(len(queries or ())), queries or ())
            if numbers:
                _print_numbers(axis, array, numbers, largest, (ranges or {}).get(title))
        names = "; ".join(arrays)
        return _finish(figure, f"Heat maps, {_plural(rows)} down, {_plural(columns)} across: {names}.")


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
    grids, ranges = {}, {}
    for title, table in tables.items():
        cells = [[table.get(row, {}).get(column, np.nan) for column in across] for row in down]
        three = np.asarray([[np.broadcast_to(cell, 3) for cell in row] for row in cells])
        grids[f"{what}: {title}"] = three[..., 1]
        if any(np.size(cell) == 3 for row in cells for cell in row):
            ranges[f"{what}: {title}"] = three[..., [0, 2]]
    queries, keys = ([f"{value:,}" for value in some] for some in (down, across))
    return heatmaps(grids, queries, keys, form, rows=rows, columns=columns, ranges=ranges)


def small_maps(maps: Mapping[str, ArrayLike], columns: int = 4, limit: float | None = None) -> Figure:
    """Many maps (n, m) below and beside each other, white for zero, each clipped at its 98th percentile.

    limit: clips all of them there instead.
    """
    with house_style():
        rows = -(-len(maps) // columns)
        size = (2.4 * columns, 2.75 * rows)
        figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, FigureClass=Picture)
        for axis in axes.flat[len(maps) :]:
            axis.axis("off")
        for axis, (title, array) in zip(axes.flat, maps.items(), strict=False):
            array = np.asarray(array, dtype=float)
            high = limit or np.quantile(array, 0.98) or array.max()
            axis.imshow(array, cmap=WEIGHTS, vmin=0, vmax=high, interpolation="nearest")
            axis.set(title=title, xticks=[], yticks=[])
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
    with house_style():
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
    with house_style():
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
    with house_style():
        figure, axes = _figure(len(panels), width=6.1, height=4.6)
        for axis, (head, lines) in zip(axes, panels.items(), strict=True):
            axis.axhline(1, color=EDGE, lw=7, zorder=0)
            ends = {}
            for (name, errors), colour in zip(lines.items(), LINES, strict=False):
                line, marker = ("--", "") if name in dashed else ("-", "o")
                axis.plot(dims, errors, color=colour, lw=3, ls=line, marker=marker)
                ends[name] = np.maximum(errors, low), colour
            axis.set_xscale("log", base=2)
            axis.set_yscale("log", base=2)
            axis.set_xticks(dims, [str(k) for k in dims])
            axis.set_ylim(low, high)
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axis.minorticks_off()
            axis.set(xlabel="slots k", title=head)
            name_ends(axis, ends, 1.03, 0.062)
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
    with house_style():
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
    with house_style():
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


def guesses_below_curves(
    runs: Mapping[str, tuple[ArrayLike, ArrayLike]],
    y_label: str,
    title: str,
    moments: Sequence[int],
    masks: Mapping[str, Mapping[str, Sequence[tuple[str, int, bool]]]],
) -> Figure:
    """Losses against updates, and under each moment what every model says then; right answers have a tick.

    Args:
        runs: model -> updates, and losses of one run, each (points,).
        moments: updates, on an axis of equal ratios.
        masks: what is asked -> model -> at each moment a token, per cent for it, and whether it is right.
    """
    with house_style():
        rows = sum(1 + len(models) for models in masks.values())
        figure, (axis, below) = plt.subplots(
            2,
            sharex=True,
            figsize=(7.4, 2.3 + 0.235 * rows),
            height_ratios=(2.3, 0.235 * rows),
            FigureClass=Picture,
        )
        for name, (x, losses) in runs.items():
            axis.plot(x, losses, lw=2, label=name, **_look(name, [*runs]))
        axis.set(ylabel=y_label, title=title, xscale="log", xlim=(0.55 * moments[0], 1.6 * moments[-1]))
        axis.legend(frameon=False, fontsize=10)
        said: list[str] = []
        places: list[int] = []
        names: list[str] = []
        for mask, models in masks.items():
            below.text(0.0, len(said), mask, transform=below.get_yaxis_transform(), va="center", fontsize=10)
            said.append(f"{mask}:")
            for name, at_moments in models.items():
                for moment, (token, percent, right) in zip(moments, at_moments, strict=True):
                    words, weight = f"{token} {percent} %{' ✓' * right}", "bold" if right else "normal"
                    style: Any = {"color": MODELS[name], "weight": weight, "fontsize": 9.5}
                    style["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}  # over the line
                    below.text(moment, len(said), words, ha="center", va="center", **style)
                places.append(len(said))
                names.append(name)
                told = (f"{token} {percent} %{', right' * right}" for token, percent, right in at_moments)
                said.append(f"{name} {'; '.join(told)}.")
        below.set(ylim=(len(said) - 0.4, -0.6), xticks=moments, xticklabels=[f"{m:,}" for m in moments])
        below.set_yticks(places, names, fontsize=10)
        for label, name in zip(below.get_yticklabels(), names, strict=True):
            label.set(color=MODELS[name], va="center")
        for each in (axis, below):
            each.tick_params(which="both", length=0)
            each.minorticks_off()
            for moment in moments:
                each.axvline(moment, color=EDGE, lw=1, zorder=0)
        below.grid(visible=False)
        below.spines[["left", "bottom"]].set_visible(False)
        axis.tick_params(labelbottom=True)
        axis.set_xlabel("updates")
        below.tick_params(labelbottom=False)
        return _finish(
            figure, f"{title}. {y_label} against updates, and what each model says. {' '.join(said)}"
        )


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
    with house_style():
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


def recipe(weights: ArrayLike, start: ArrayLike, title: str) -> Figure:
    """The weights that a slot gives the tokens, a bar each, and an outline of those before training."""
    with house_style():
        figure, (axis,) = _figure(1, width=9.5, height=3.4)
        tokens = np.arange(1, len(np.asarray(weights)) + 1)
        axis.bar(tokens, weights, width=0.9, color=KEY, label="after training")
        axis.step(tokens, start, where="mid", color=GREY, lw=2, label="before training")
        axis.axhline(0, color=INK, lw=0.8)
        axis.set(xlabel="token", ylabel="weight", title=title)
        axis.margins(x=0.01)
        axis.legend(frameon=False, loc="upper left")
        return _finish(figure, f"{title}. Bars of each token's weight after training, an outline before it.")


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
    with house_style():
        figure, (axis,) = _figure(1, width=6.8, height=3.8)
        x, often = np.asarray(middles, dtype=float), np.asarray(shares, dtype=float)
        axis.bar(x, 0.6 * often / often.max(), x[1] - x[0], color=EDGE, label="how often (own scale)")
        ends = [x[0], edge, edge, x[-1]]
        axis.plot(ends, [0, 0, 1, 1], color=INK, linestyle="-", lw=2.5, label=f"1 from {edge:g} on, 0 before")
        for (name, y), colour in zip(lines.items(), (QUERY, KEY, VALUE), strict=False):
            axis.plot(x, y, color=colour, linestyle="-", lw=2, label=name)
        axis.set(xlabel=x_label, ylim=(0, 2), xlim=(x[0], x[-1]), title=title)
        axis.legend(frameon=False, loc="upper left", fontsize=10)
        drawn = f"{x_label}; above the step: {', '.join(lines)}"
        return _finish(figure, f"{title}. Bars and a step at {edge:g} against {drawn}.")


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
    with house_style():
        high = sum(len(row) + 0.9 for row in rows.values())
        figure, (axis,) = _figure(1, width=7.6, height=1.1 + 0.24 * high)
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
        drawn = f"{'; '.join(rows)}: {', '.join(names)}"
        return _finish(figure, f"{title}. Dots with their intervals, {x_label}, for {drawn}.")


def arrows(vectors: Mapping[str, tuple[ArrayLike, str]], title: str) -> Figure:
    """Arrows from the origin of a plane: name -> (vector of two numbers, colour)."""
    with house_style():
        figure, (axis,) = _figure(1, width=4.8, height=4.2)
        _draw_arrows(axis, vectors)
        _plane(axis, [vector for vector, _ in vectors.values()], title)
        return _finish(figure, f"{title}. Arrows from the origin: {', '.join(vectors)}.")


def outlines(
    shapes: Mapping[str, tuple[ArrayLike, Mapping[str, tuple[ArrayLike, str]]]], title: str
) -> Figure:
    """Closed curves in planes of one scale: name -> (points (m, 2), its arrows, as in `arrows`)."""
    with house_style():
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
    with house_style():
        figure, (axis,) = _figure(1, width=4.8, height=4.2)
        mixed = np.asarray(mixed, dtype=float)
        for one, other in combinations(np.asarray(values), 2):
            axis.plot(*zip(one, other, strict=True), color=GREY, linestyle="-", lw=0.6, alpha=0.5)
        for value, weight, label in zip(np.asarray(values), np.asarray(weights), labels, strict=True):
            style: dict[str, Any] = {"linestyle": "-", "lw": 0.5 + 9 * weight, "alpha": 0.45}
            axis.plot(*zip(value, mixed, strict=True), color=VALUE, **style)
            axis.plot(*value, "o", color=VALUE, ms=8)
            axis.annotate(f"{label} {weight:.2f}", value, (0, 10), textcoords="offset points", ha="center")
        axis.plot(*mixed, "*", color=QUERY, ms=18, label="mixture")
        _plane(axis, np.asarray(values), title)
        figure.legend(frameon=False, loc="outside lower center")
        return _finish(figure, f"{title}. Values as points, their mixture a star: {', '.join(labels)}.")


def _plural(name: str) -> str:
    if name.endswith("s"):
        return name
    return f"{name[:-1]}ies" if name.endswith("y") and name != "key" else f"{name}s"


def _figure(columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    size = width * columns, height
    figure, axes = plt.subplots(1, columns, figsize=size, squeeze=False, FigureClass=Picture)
    return figure, list(axes[0])


def _finish(figure: Figure, alt: str) -> Figure:
    assert isinstance(figure, Picture)
    figure.alt = alt
    plt.close(figure)  # a notebook draws the returned Figure once, not a second time as an open one
    return figure


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


def board(
    layout: Sequence[Sequence[str]],
    drawings: Mapping[str, Callable[[Axes], None]],
    size: tuple[float, float],
    heights: Sequence[float] | None = None,
    widths: Sequence[float] | None = None,
) -> Figure:
    """Drawings placed by name, as plt.subplot_mosaic does; size in inches, heights and widths relative."""
    with house_style():
        figure = plt.figure(figsize=size, FigureClass=Picture)
        ratios: dict[str, Any] = {"height_ratios": heights, "width_ratios": widths}
        axes = figure.subplot_mosaic([list(row) for row in layout], **ratios)
        for name, draw in drawings.items():
            draw(axes[name])
        plt.close(figure)
        return figure


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
    pays: float | None = None,
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
    if pays:  # a whole line
        axis.axvline(pays, color=KEY, linewidth=3, linestyle="-")
    for name in sorted(curves, key=lambda name: -looks[name][1]):  # the widest lies below
        values, (colour, width) = curves[name], looks[name]
        axis.plot(lengths, values, color=colour, linewidth=0.7 * width, linestyle="-", clip_on=False)
        axis.plot(n, dots[name], "o", color=colour, markeredgecolor=INK, ms=0.7 * width + 5)
    for name, pairs in (points or {}).items():
        axis.plot(*np.asarray(pairs).T, "s", color=looks[name][0], markeredgecolor=INK, ms=8, linestyle="")
    name_ends(axis, {name: (curves[name], looks[name][0]) for name in curves}, 1.02, weight="bold")


def name_ends(
    axis: Axes, lines: Mapping[str, tuple[ArrayLike, str]], x: float, gap: float = 0.065, **style: Any
) -> None:
    """Names at the ends of lines on a log axis, name -> (values, colour), a gap apart at least."""
    (low, high), place = np.log(axis.get_ylim()), np.inf
    ends = {name: float(np.asarray(values)[-1]) for name, (values, _) in lines.items()}
    for name, end in sorted(ends.items(), key=lambda item: -item[1]):
        place = min((np.log(end) - low) / (high - low), place - gap)
        axis.text(x, place, name, color=lines[name][1], va="center", transform=axis.transAxes, **style)
