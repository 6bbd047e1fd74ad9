"""plots.py: what the pictures say about themselves, and that they show the numbers they were given."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from linformer_from_scratch import plots


def texts(axis):
    return [text.get_text() for text in axis.texts]


def test_a_picture_is_one_png_with_alternative_text_and_is_closed():
    figure = plots.curves([1, 2], {"a line": [3, 4]}, "x", "y", "A title")
    bundle, metadata = figure._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert metadata["image/png"]["alt"] == "A title. y against x: a line."
    assert plt.get_fignums() == []


def test_heat_maps_share_one_scale_that_begins_at_zero():
    figure = plots.heatmaps({"small": np.full((2, 3), 0.25), "large": np.full((2, 3), 4.0)})
    assert [axis.images[0].get_clim() for axis in figure.axes] == [(0, 4.0)] * 2


def test_a_heat_map_names_its_axes_and_prints_its_numbers():
    figure = plots.heatmaps({"t": [[0.123, 0.5]]}, ["1"], ["a", "b"], ".2f", rows="layer", columns="head")
    (axis,) = figure.axes
    assert (axis.get_ylabel(), axis.get_xlabel()) == ("layer", "head")
    assert texts(axis) == ["0.12", "0.50"]
    assert figure.alt == "Heat maps, layers down, heads across: t."


def test_what_is_missing_in_a_heat_map_is_white_and_has_no_number():
    figure = plots.heatmaps({"t": [[1.0, np.nan], [np.nan, 4.0]]}, numbers=".1f")
    axis = figure.axes[0]
    assert [text.get_text() for text in axis.texts] == ["1.0", "4.0"] and axis.images[0].get_clim() == (0, 4)


def test_tables_become_heat_maps_over_all_their_rows_and_columns():
    figure = plots.tables(
        {"a": {512: {128: 1.5}}, "b": {1024: {128: 2.0, 256: 3.0}}}, "tokens", "slots", "fast"
    )
    assert [axis.get_title() for axis in figure.axes] == ["fast: a", "fast: b"]
    assert [[text.get_text() for text in axis.texts] for axis in figure.axes] == [["1.5"], ["2.0", "3.0"]]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["512", "1,024"]


def test_a_table_prints_the_range_of_a_number_below_it():
    figure = plots.tables({"a": {512: {128: (1.2, 1.5, 2.3)}}, "b": {512: {128: 2.0}}}, "n", "k", "fast")
    assert [texts(axis) for axis in figure.axes] == [["1.5", "1.2–2.3"], ["2.0"]]
    assert [axis.images[0].get_array().item() for axis in figure.axes] == [1.5, 2.0]
    number, below = figure.axes[0].texts
    assert number.get_position()[1] < below.get_position()[1]  # rows go down


def test_a_table_may_have_more_decimals():
    (axis,) = plots.tables({"a": {512: {128: 1.456}}}, "n", "k", "fast", form=".2f").axes
    assert texts(axis) == ["1.46"]


def test_intervals_have_a_row_each_with_its_colour_its_numbers_and_its_samples():
    rows = {"ours": {"n = 1": (0.5, 0.75, 1.5), "n = 2": (1, 2, 3)}, "theirs": {"n = 1": (1, 1, 1)}}
    figure = plots.intervals(
        rows, "ratio", "Title", {"our": plots.KEY}, samples={"ours": [0.5, 1], "theirs": [1]}
    )
    (axis,) = figure.axes
    assert texts(axis) == ["0.75", "2.00", "1.00"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["ours", "theirs"]
    first, *_, level = axis.lines
    assert list(first.get_xdata()) == [0.5, 1.5] and to_hex(first.get_color()) == plots.KEY.lower()
    assert list(level.get_xdata()) == [1, 1]
    assert figure.alt == "Title. Dots with their intervals, ratio, for ours; theirs: n = 1, n = 2."


def test_bands_lie_around_their_curves():
    lines, bands = {"a": [2.0, 4.0], "b": [1.0, 1.0]}, {"a": ([1.5, 3.0], [3.0, 5.0])}
    (axis,) = plots.curves([1, 2], lines, "n", "ms", "t", bands=bands).axes
    (band,) = axis.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (1.5, 5.0)
    assert np.allclose(band.get_facecolor()[0][:3], plt.matplotlib.colors.to_rgb(axis.lines[0].get_color()))


def test_a_narrower_heat_map_has_the_first_of_the_labels():
    figure = plots.heatmaps({"two": np.ones((1, 2)), "three": np.ones((1, 3))}, keys=["a", "b", "c"])
    found = [[label.get_text() for label in axis.get_xticklabels()] for axis in figure.axes[:2]]
    assert found == [["a", "b"], ["a", "b", "c"]]


def test_cells_are_square_unless_they_are_stretched():
    square, stretched = (plots.heatmaps({"t": np.ones((9, 2))}, stretch=some) for some in (False, True))
    assert square.axes[0].get_aspect() == 1 and stretched.axes[0].get_aspect() == "auto"


def test_a_wide_heat_map_with_numbers_is_wide_enough_for_them():
    narrow, wide = (plots.heatmaps({"t": np.ones((2, n))}, numbers=".2f") for n in (3, 12))
    assert wide.get_size_inches()[0] > 1.5 * narrow.get_size_inches()[0]


def test_queries_and_keys_have_their_plurals():
    assert plots.heatmaps({"t": [[1.0]]}).alt == "Heat maps, queries down, keys across: t."


def test_every_line_of_eight_looks_different():
    figure = plots.curves([1, 2], {str(i): [i, i] for i in range(8)}, "x", "y", "t")
    looks = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}
    assert len(looks) == 8


@pytest.mark.parametrize(("value", "label"), [(1024, "1,024"), (0.25, "0.25")])
def test_logarithmic_axes_show_plain_numbers(value, label):
    figure = plots.curves([256, 1024], {"a": [0.25, 1024]}, "n", "ms", "t", log=True)
    (axis,) = figure.axes
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["256", "1,024"]
    assert axis.yaxis.get_major_formatter()(value, 0) == label


def test_a_floor_is_dotted_in_the_colour_of_its_line():
    lines, floors = {"a": [2, 4], "b": [3, 3]}, {"a": [1, 2]}
    figure = plots.curves([1, 2], lines, "n", "ms", "t", floors=floors)
    a, floor, b = figure.axes[0].lines
    assert (list(floor.get_ydata()), floor.get_linestyle()) == ([1, 2], ":")
    assert floor.get_color() == a.get_color() != b.get_color()
    assert figure.alt == "t. ms against n: a, b, floor of a."


def test_a_roofline_has_its_corner_where_the_two_ceilings_meet_and_every_step_below_it():
    points = {"softmax": (0.5, 2e10), "product": (100.0, 1.5e11)}
    figure = plots.roofline(points, 2e11, 5e10, "A machine")
    (axis,) = figure.axes
    roof, *steps = axis.lines
    assert (roof.get_xdata()[1], roof.get_ydata()[1]) == (4.0, 2e11)
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in steps] == [*points.values()]
    assert axis.get_xscale() == axis.get_yscale() == "log"
    assert figure.alt.endswith("softmax under the slope; product under the flat part.")


def test_bars_carry_their_numbers_and_their_spreads():
    figure = plots.bars({"a": [1.5, 2.25]}, ["x", "y"], "error", "t", {"a": [0.5, 0.25]})
    (axis,) = figure.axes
    assert texts(axis) == ["1.50", "2.25"]
    (segments,) = [lines.get_segments() for lines in axis.collections]
    assert [segment[:, 1].tolist() for segment in segments] == [[1.0, 2.0], [2.0, 2.5]]


def test_axis_of_curves_begins_at_zero_unless_something_lies_below():
    above, below = (plots.curves([1, 2], {"a": [low, 2.0]}, "x", "y", "t") for low in (0.5, -0.5))
    assert above.axes[0].get_ylim()[0] == 0
    assert below.axes[0].get_ylim()[0] <= -0.5


def test_small_maps_stand_in_a_grid_and_are_white_for_zero():
    maps = {str(i): np.eye(3) * i for i in range(1, 6)}
    figure = plots.small_maps(maps, columns=3)
    shown = [axis for axis in figure.axes if axis.images]
    assert [axis.get_title() for axis in shown] == [*maps] and len(figure.axes) == 6
    assert [axis.images[0].get_clim() for axis in shown] == [(0, i) for i in range(1, 6)]
    assert figure.alt == "Small heat maps, queries down, keys across: 1; 2; 3; 4; 5."


def test_paths_have_an_axis_of_their_own_each():
    figure = plots.paths({"a": ([1, 2], [3, 4]), "b": ([8], [0.5])}, "keys", "error", "t", ("none", 1.0))
    a, b, level = figure.axes[0].lines
    assert (list(a.get_xdata()), list(b.get_xdata()), level.get_ydata()[0]) == ([1, 2], [8], 1.0)
    assert figure.axes[0].get_ylim()[0] == 0 and figure.alt == "t. error against keys: a, b."


def test_learning_curves_show_means_bands_and_the_levels_within_the_picture():
    runs = {"one": ([10, 20, 30], [5.0, 4.0, 3.0]), "two": ([10, 30], [[4.0, 2.0], [6.0, 4.0]])}
    levels = {"low": 1.0, "middle": 3.5, "high": 9.0}
    axis = plots.learning_curves(runs, "loss", "A race", levels).axes[0]
    lines = {line.get_label(): line.get_ydata().tolist() for line in axis.lines[:2]}
    assert lines == {"one": [5.0, 4.0, 3.0], "two": [5.0, 3.0]}
    band = axis.collections[1].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (2.0, 6.0)
    assert texts(axis) == ["low", "middle", "high"]
    axis = plots.learning_curves(runs, "loss", "A race", levels, between=(2, 5)).axes[0]
    assert texts(axis) == ["middle"] and axis.get_ylim() == (2, 5)


def test_a_model_has_its_colour_in_every_picture_of_learning_curves():
    curve = [1, 2], [2.0, 1.0]
    three = dict.fromkeys(["no attention", "Linformer", "other"], curve)
    race = plots.learning_curves(three, "y", "t").axes[0]
    names = ["Linformer, k = 8", "Linformer, k = 4", "Transformer"]
    by_k = plots.learning_curves(dict.fromkeys(names, curve), "y", "t").axes[0]
    assert [line.get_color() for line in race.lines[:2]] == [plots.VALUE, plots.KEY]
    assert [line.get_color() for line in by_k.lines] == [plots.KEY, plots.KEY, plots.QUERY]
    assert len({line.get_linestyle() for line in by_k.lines[:2]}) == 2


def test_bars_of_one_group_may_have_a_colour_each():
    axis = plots.bars({"a": [1.0, 2.0]}, ["x", "y"], "y", "t", colours=[plots.KEY, plots.GREY]).axes[0]
    assert [to_hex(bar.get_facecolor()).upper() for bar in axis.patches] == [plots.KEY, plots.GREY]


def contrast(one: str, other: str) -> float:
    """WCAG 2.1's contrast ratio of two colours #RRGGBB, 1 to 21."""

    def luminance(colour):
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted(map(luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("colour", plots.LINES)
def test_every_colour_that_writes_is_read_on_white(colour):
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast(colour, "#FFFFFF") >= 4.5


def test_a_step_is_covered_by_named_curves():
    figure = plots.covers([0, 1, 2], [0.2, 0.6, 0.2], 1.5, {"line": [0, 0.7, 1.3]}, "A", "t")
    (axis,) = figure.axes
    assert [line.get_label() for line in axis.lines] == ["1 from 1.5 on, 0 before", "line"]
    assert max(bar.get_height() for bar in axis.patches) == 0.6
    assert figure.alt == "t. Bars and a step at 1.5 against A; above the step: line."


def test_a_triangle_has_its_corners_and_the_words_on_its_sides():
    corners = {"a": (0, 0), "b": (3, 0), "c": (0, 4)}
    figure = plots.triangle(corners, ["three", "five", "four"], "t")
    assert texts(figure.axes[0]) == ["three", "five", "four", "a", "b", "c"]
    words = {text.get_text(): text for text in figure.axes[0].texts}
    assert words["five"].xy == (1.5, 2.0)  # halfway from b to c
    across, up = words["b"].xyann  # names stand outside: b lies right of the middle and below it
    assert across > 0 > up
    assert figure.alt == "t. Triangle of a, b, c; sides: three, five, four."


def test_outlines_share_one_scale_and_have_their_arrows():
    circle = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
    shapes = {"small": (circle, {"v": ([1.0, 0.0], plots.QUERY)}), "large": (3 * np.array(circle), {})}
    figure = plots.outlines(shapes, "Two")
    assert len({axis.get_xlim() for axis in figure.axes} | {axis.get_ylim() for axis in figure.axes}) == 1
    assert figure.axes[0].get_xlim()[1] > 3
    assert [note.xy for note in figure.axes[0].texts if note.arrow_patch] == [(1.0, 0.0)]
    assert figure.alt == "Two. Outlines of small, large, with arrows v."
