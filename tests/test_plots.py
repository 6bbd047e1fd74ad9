"""plots.py: what the pictures say about themselves, and that they show the numbers they were given."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from linformer_from_scratch.course import plots


def texts(axis):
    return [text.get_text() for text in axis.texts]


def test_a_picture_is_one_png_with_alternative_text_and_is_closed():
    figure = plots.curves([1, 2], {"a line": [3, 4]}, "x", "y", "A title")
    bundle, metadata = figure._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert metadata["image/png"]["alt"] == "A title. y against x: a line."
    assert plt.get_fignums() == []


def test_ones_own_settings_of_matplotlib_change_no_picture():
    def drawn():
        figure = plots.curves([1, 2], {"a line": [0.001, 4]}, "x", "y", "A title", log=True)
        return figure._repr_mimebundle_()[0]["image/png"]

    expected = drawn()
    own = {"font.sans-serif": "DejaVu Sans Mono", "savefig.dpi": 50, "text.usetex": True}
    with plt.style.context(["dark_background", own]):
        assert drawn() == expected
        assert plt.rcParams["text.usetex"], "they stay"


def test_heat_maps_share_one_scale_that_begins_at_zero():
    figure = plots.heatmaps({"small": np.full((2, 3), 0.25), "large": np.full((2, 3), 4.0)})
    assert [axis.images[0].get_clim() for axis in figure.axes] == [(0, 4.0)] * 2


def test_what_is_missing_in_a_heat_map_is_white_and_has_no_number():
    figure = plots.heatmaps({"t": [[1.0, np.nan], [np.nan, 4.0]]}, numbers=".1f")
    axis = figure.axes[0]
    assert [text.get_text() for text in axis.texts] == ["1.0", "4.0"] and axis.images[0].get_clim() == (0, 4)


def test_tables_become_heat_maps_over_all_their_rows_and_columns():
    found = {"a": {512: {128: 1.5}}, "b": {1024: {128: 2.0, 256: 3.0}}}
    figure = plots.tables(found, "tokens", "slots", "fast")
    assert [axis.get_title() for axis in figure.axes] == ["fast: a", "fast: b"]
    assert [[text.get_text() for text in axis.texts] for axis in figure.axes] == [["1.5"], ["2.0", "3.0"]]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["512", "1,024"]


def test_a_table_prints_the_range_of_a_number_below_it():
    figure = plots.tables({"a": {512: {128: (1.2, 1.5, 2.3)}}, "b": {512: {128: 2.0}}}, "n", "k", "fast")
    assert [texts(axis) for axis in figure.axes] == [["1.5", "1.2–2.3"], ["2.0"]]
    assert [axis.images[0].get_array().item() for axis in figure.axes] == [1.5, 2.0]
    number, below = figure.axes[0].texts
    assert number.get_position()[1] < below.get_position()[1]  # rows go down


def test_intervals_have_a_row_each_with_its_colour_its_numbers_and_its_samples():
    rows = {"ours": {"n = 1": (0.5, 0.75, 1.5), "n = 2": (1, 2, 3)}, "theirs": {"n = 1": (1, 1, 1)}}
    samples = {"ours": [0.5, 1], "theirs": [1]}
    figure = plots.intervals(rows, "ratio", "Title", {"our": plots.KEY}, samples=samples)
    (axis,) = figure.axes
    assert texts(axis) == ["0.75", "2.00", "1.00"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["ours", "theirs"]
    first, *_, level = axis.lines
    assert list(first.get_xdata()) == [0.5, 1.5] and to_hex(first.get_color()) == plots.KEY.lower()
    assert list(level.get_xdata()) == [1, 1]
    assert figure.alt == "Title. Dots with their intervals, ratio, for ours; theirs: n = 1, n = 2."


def test_points_that_are_not_joined_have_no_line_and_a_shape_for_each_name():
    figure = plots.curves([1, 2], {"a": [1, 2], "b": [2, 1]}, "x", "y", "t", joined=False)
    lines = figure.axes[0].lines
    assert [line.get_linestyle() for line in lines] == ["None", "None"]
    assert len({line.get_marker() for line in lines}) == 2


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


def test_a_recipe_has_a_bar_for_each_token_and_an_outline_of_where_it_began():
    (axis,) = plots.recipe([0.25, -0.5, 1.0], [0.5, 0.5, 0.0], "A row of E").axes
    assert [bar.get_height() for bar in axis.patches] == [0.25, -0.5, 1.0]
    assert list(axis.lines[0].get_ydata()) == [0.5, 0.5, 0.0] and list(axis.lines[0].get_xdata()) == [1, 2, 3]


def test_bars_carry_their_numbers_and_their_spreads():
    figure = plots.bars({"a": [1.5, 2.25]}, ["x", "y"], "error", "t", {"a": [0.5, 0.25]})
    (axis,) = figure.axes
    assert texts(axis) == ["1.50", "2.25"]
    (segments,) = [lines.get_segments() for lines in axis.collections]
    assert [segment[:, 1].tolist() for segment in segments] == [[1.0, 2.0], [2.0, 2.5]]


def test_a_race_has_a_panel_for_each_head_and_names_its_lines_in_their_order_at_the_end():
    lines = {"a": [2.0, 0.5], "best": [0.5, 0.01], "b": [1.0, 1.0]}
    figure = plots.races([1, 2], {"one head": lines, "another": lines}, "A race", (0.25, 4), dashed=["best"])
    assert [axis.get_title() for axis in figure.axes] == ["one head", "another"]
    for axis in figure.axes:
        level, *drawn = axis.lines
        assert list(level.get_ydata()) == [1, 1] and axis.get_ylim() == (0.25, 4)
        assert [list(line.get_ydata()) for line in drawn] == [*lines.values()]
        assert [line.get_linestyle() for line in drawn] == ["-", "--", "-"]
        assert texts(axis)[:3] == ["b", "a", "best"]
    assert figure.alt == "A race. Relative error against slots k, for one head, another: a; best; b."


def test_curves_are_named_at_their_ends_and_no_name_covers_another():
    _, axis = plt.subplots(subplot_kw={"xscale": "log", "yscale": "log"})
    errors = {"low": [2.0, 0.01], "high": [2.0, 1.0], "beside": [2.0, 0.98]}
    for values in errors.values():
        axis.plot([1, 2], values)
    plots.name_ends(axis, {name: (values, plots.KEY) for name, values in errors.items()}, 1.01)
    plt.close()
    ends = axis.transData.transform([(2, 0.01), (2, 1.0)])  # in pixels
    (_, low), (_, high) = axis.transAxes.inverted().transform(ends)
    places = {text.get_text(): text.get_position()[1] for text in axis.texts}
    assert places == pytest.approx({"high": high, "beside": high - 0.065, "low": low})


def test_axis_of_curves_begins_at_zero_unless_something_lies_below():
    above, below = (plots.curves([1, 2], {"a": [low, 2.0]}, "x", "y", "t") for low in (0.5, -0.5))
    assert above.axes[0].get_ylim()[0] == 0
    assert below.axes[0].get_ylim()[0] <= -0.5


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


def test_guesses_stand_below_the_curves_at_their_moments_and_in_the_alternative_text():
    runs = {name: ([1, 10, 100], [3.0, 2.0, 1.0]) for name in ("Transformer", "no attention")}
    right, wrong = ("a", 90, True), ("b", 4, False)
    masks = {"the first": {"Transformer": [wrong, right], "no attention": [wrong, wrong]}}
    figure = plots.guesses_below_curves(runs, "loss", "Guesses", [10, 100], masks)
    above, below = figure.axes
    assert [line.get_xdata()[0] for line in above.lines[2:]] == [10, 100]
    assert texts(below) == ["the first", "b 4 %", "a 90 % ✓", "b 4 %", "b 4 %"]
    assert [text.get_position()[0] for text in below.texts[1:]] == [10, 100, 10, 100]
    assert figure.alt.endswith("the first: Transformer b 4 %; a 90 %, right. no attention b 4 %; b 4 %.")


def test_no_two_of_many_learning_curves_look_alike():
    names = [f"run {i}" for i in range(16)]
    axis = plots.learning_curves({name: ([1, 2], [3, 4]) for name in names}, "loss", "Many").axes[0]
    looks = {(to_hex(line.get_color()), line.get_linestyle()) for line in axis.lines}
    assert len(looks) == len(names)


def test_a_model_has_its_colour_in_every_picture_of_learning_curves():
    curve = [1, 2], [2.0, 1.0]
    three = dict.fromkeys(["no attention", "Linformer", "other"], curve)
    race = plots.learning_curves(three, "y", "t").axes[0]
    names = ["Linformer, k = 8", "Linformer, k = 4", "Transformer"]
    by_k = plots.learning_curves(dict.fromkeys(names, curve), "y", "t").axes[0]
    assert [line.get_color() for line in race.lines[:2]] == [plots.VALUE, plots.KEY]
    assert [line.get_color() for line in by_k.lines] == [plots.KEY, plots.KEY, plots.QUERY]
    assert len({line.get_linestyle() for line in by_k.lines[:2]}) == 2


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
