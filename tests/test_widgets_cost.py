"""Widget 2: its numbers are those of cost.py, and what was measured comes along wherever it is shown."""

import json
import math

import pytest
import traitlets
from jupyter_lab import alive

from linformer_from_scratch import cost
from linformer_from_scratch.cost import DEVICES, Device, Sizes, floor_seconds, flops, stored_bytes
from linformer_from_scratch.course.widgets import CostModel, cost_model
from linformer_from_scratch.course.widgets.cost_model import HERE, LENGTHS, LINES, ORDERS, UNITS, layers
from linformer_from_scratch.course.widgets.growth import quantity
from linformer_from_scratch.course.widgets.live import LIVE, CannotDraw
from linformer_from_scratch.course.widgets.page import widget_in

MACHINE = Device("a machine", {4: 5e11, 2: 7e11}, 3e10)
POINTS = {"full": [(1024, 1e-3), (4096, 2e-2)], "Linformer": [(2048, 3e-3)]}


def put(terms, values):
    """What the browser does with a formula's table."""
    return sum(c * math.prod(v**p for v, p in zip(values, powers, strict=True)) for c, *powers in terms)


@pytest.fixture
def measurements(monkeypatch):
    """What is measured of this machine, which takes no time."""
    made = []
    monkeypatch.setattr(cost_model, "matmul_ceiling", lambda dtype: made.append(dtype) or 1e12)
    monkeypatch.setattr(cost_model, "copy_ceiling", lambda: made.append("copy") or 1e11)
    cost_model.this_machine.cache_clear()
    yield made
    cost_model.this_machine.cache_clear()


def test_the_numbers_are_those_of_the_formulas():
    model = CostModel(n=2048, proj_dim=64, d_model=256, num_heads=4, batch=2, number="16 bit", order="E = F")
    model.show = "seconds"
    sizes = Sizes(2048, 256, 4, 64, 2, 2)
    for name, steps in (
        ("full", cost.full_attention(sizes)),
        ("tiled exact", cost.tiled_attention(sizes)),
        ("Linformer", cost.compress_tokens(sizes, shared=True)),
        ("Linformer, tiled", cost.compress_tokens(sizes, fused=True, shared=True)),
        ("linear attention", cost.linear_attention_steps(sizes)),
    ):
        assert model.costs[name] == (flops(steps), floor_seconds(steps, DEVICES[0], 2), stored_bytes(steps))
    assert quantity(model.costs["full"][1], UNITS["seconds"]) in model.words


@pytest.mark.parametrize("order", ORDERS)
def test_the_tables_that_the_browser_gets_are_the_formulas(order):
    sizes = Sizes(n=13, d_model=33, num_heads=11, proj_dim=7, batch=5, bytes_per_number=2)
    values = sizes.n, sizes.d_model, sizes.num_heads, sizes.proj_dim, sizes.batch, sizes.bytes_per_number
    for name, layer in layers(order).items():
        steps = layer(sizes)
        assert [formula["name"] for formula in cost_model.formulas(order)[name]] == [s.name for s in steps]
        for step, formula in zip(steps, cost_model.formulas(order)[name], strict=True):
            for kind in ("flops", "moved", "result"):
                assert put(formula[kind], values) == pytest.approx(getattr(step, kind), rel=1e-12)


def test_it_opens_at_the_crossover_of_operations_just_above_twice_k():
    model = CostModel()
    assert model.crossings == {"full": 513, "tiled exact": 513}
    assert "Linformer takes less than full from n = 513 on" in model.words
    model.proj_dim = 64
    assert model.crossings["full"] == 129


def test_time_crosses_earlier_against_stored_maps_and_later_against_tiles():
    model = CostModel(show="seconds", device="H200", number="16 bit")
    assert model.crossings == {"full": 323, "tiled exact": 2212}


@pytest.mark.parametrize("show", UNITS)
def test_steps_sum_to_their_layer_and_curves_pass_through_it(show):
    model = CostModel(show=show, n=4096)
    for name in LINES:
        total = model.costs[name][list(UNITS).index(show)]
        assert sum(model.shares[name]) == pytest.approx(total)
        assert model.curves[name][LENGTHS.index(4096)] == total


def test_exact_attention_alone_is_a_wall_without_a_crossing():
    model = CostModel(wall=True, n=1024)
    assert [*model.costs] == [*model.curves] == ["full"] and model.crossings == {}
    once, twice, again = (sum(model.shares[f"n = {n:,}"]) for n in (1024, 2048, 4096))
    assert once == model.costs["full"][0] and again == CostModel(n=4096).costs["full"][0]
    said = f"Twice the text takes {quantity(twice, UNITS['operations'])}, {twice / once:.1f} times as much."
    assert model.words.endswith(said) and "Linformer" not in model.words
    assert "wall" not in CostModel().arguments() and model.arguments()["wall"]
    assert model.figure().axes[1].get_title(loc="right").startswith("As the text doubles")


def test_the_length_from_which_it_pays_is_that_of_the_fastest_that_were_measured():
    """Of both the last that is there; twice as slow at 1,000, twice as fast at 4,000: 2,000 lies between."""
    points = {
        "full": [(1000, 1.0), (4000, 1.0)],
        "tiled exact": [(1000, 2.0), (4000, 8.0)],
        "Linformer, tiled": [(500, 9.0), (1000, 4.0), (4000, 4.0)],
    }
    model = CostModel(points, show="seconds")
    assert model.pays == pytest.approx(2000)
    assert model.words.endswith("Measured, Linformer pays from about n = 2,000 on.")
    assert model.figure().axes[0].get_title() == "Measured, Linformer pays from about n = 2,000 on"
    assert "Measured" not in CostModel(points).words
    assert CostModel({"full": points["full"]}).pays is CostModel(POINTS).pays is None


def test_what_was_measured_comes_along_and_nothing_is_measured_again(measurements):
    model = CostModel(POINTS, [MACHINE], show="seconds", device=HERE, n=1000)
    assert len(measurements) == 3
    data, metadata = model._repr_mimebundle_()
    stored = json.loads(json.dumps({"data": {LIVE: data[LIVE]}, "metadata": {LIVE: metadata[LIVE]}}))
    measurements.clear()
    cost_model.this_machine.cache_clear()
    twin = widget_in(stored)
    assert measurements == []
    assert (twin.words, twin.measured, twin.state()) == (model.words, model.measured, model.state())
    assert twin.devices == model.devices
    assert twin.arguments() == model.arguments()


def test_this_machine_is_measured_once_and_only_when_it_is_chosen(measurements):
    model = CostModel(show="seconds")
    assert measurements == [] and HERE in model.choices["device"]
    assert HERE not in model.facts["devices"]
    model.device = HERE
    assert model.facts["devices"][HERE] == Device(HERE, {4: 1e12, 2: 1e12}, 1e11)._asdict()
    model.n, model.number = 256, "16 bit"
    CostModel(device=HERE)
    assert len(measurements) == 3
    assert f"on {HERE}, 16 bit" in model.words


def test_what_cannot_be_is_refused_with_names_and_numbers():
    with pytest.raises(CannotDraw, match="3 heads do not divide d_model = 512"):
        _ = CostModel(num_heads=3).words
    with pytest.raises(CannotDraw, match="half a machine has no ceiling for 16 bit numbers"):
        _ = CostModel(machines=[Device("half a machine", {4: 1e9}, 1e9)], number="16 bit").words
    with pytest.raises(traitlets.TraitError, match=r"no device 'B200' among V100 .*machines="):
        CostModel(device="B200")
    with pytest.raises(ValueError, match="no line is named sparse; there are full, tiled exact"):
        CostModel({"sparse": [(1024, 1.0)]})


@pytest.mark.parametrize("show", UNITS)
def test_a_still_is_drawn_of_everything_that_can_be_shown(show):
    model = CostModel(POINTS, show=show)
    curves, bars = model.figure().axes
    assert curves.get_title() == f"{cost_model.SHOWN[show].capitalize()} of one layer"
    low, high = curves.get_ylim()
    assert all(low <= value <= high for line in model.curves.values() for value in line)
    assert [label.get_text() for label in bars.get_yticklabels()] == list(LINES)


def test_quantities_have_three_digits_and_a_unit():
    assert quantity(4.3e10, UNITS["operations"]) == "43 GFLOP"
    assert quantity(1.5e-4, UNITS["seconds"]) == "150 µs"
    assert [quantity(b, UNITS["bytes"]) for b in (36.25 * 2**20, 1)] == ["36.2 MiB", "0.000977 KiB"]


@pytest.fixture
def live(browser, tmp_path):
    """A page with the model of a machine and its measured points."""
    with alive(browser, tmp_path, CostModel(POINTS, [MACHINE], show="seconds")) as (model,):
        yield model


@pytest.mark.slow
@pytest.mark.browser
def test_without_a_kernel_the_menu_offers_what_is_known(live):
    names = live.controls()["Device"].locator("option").all_inner_texts()
    assert names == ["a machine", *(device.name for device in DEVICES)]


@pytest.mark.slow
@pytest.mark.browser
def test_the_wall_and_the_crossing_say_in_the_page_what_they_say_in_python(browser, tmp_path):
    crossing = {"tiled exact": [(1000, 2.0), (4000, 8.0)], "Linformer": [(1000, 4.0), (4000, 4.0)]}
    models = CostModel(POINTS, wall=True, show="bytes"), CostModel(crossing, show="seconds")
    with alive(browser, tmp_path, *models) as seen:
        for live, model in zip(seen, models, strict=True):
            assert live.differences(model) == []
        wall, pays = (live.root.locator(".lw-chart figcaption b").all_inner_texts() for live in seen)
        assert wall == ["Twice the text, 3.9 times the bytes", "Bytes of all results of one layer"]
        assert pays[0] == "Measured, Linformer pays from about n = 2,000 on"
        assert "Slots k" not in seen[0].controls()


@pytest.mark.slow
@pytest.mark.browser
def test_a_square_names_what_was_measured_and_a_part_its_step(live):
    square = live.root.locator(".lw-chart svg rect").nth(0).bounding_box()
    live.page.mouse.move(square["x"] + 5, square["y"] + 5)
    tip = live.root.locator(".lw-tip:not([hidden])")
    assert tip.inner_text() == "full, measured, n = 1,024: 1 ms"
    model = CostModel(POINTS, [MACHINE], show="seconds")
    live.root.locator(".lw-chart svg").nth(1).get_by_text("softmax").hover()
    softmax, total = model.shares["full"][2], model.costs["full"][1]
    named = f"softmax: {quantity(softmax, UNITS['seconds'])}, {softmax / total:.0%} of full"
    assert tip.inner_text() == f"{named}; its bytes take longest"


@pytest.mark.slow
@pytest.mark.browser
def test_a_drag_on_the_curves_sets_n(live):
    box = live.root.locator(".lw-chart svg").first.bounding_box()
    mouse, y = live.page.mouse, box["y"] + 200
    mouse.move(box["x"] + 200, y)
    mouse.down()
    mouse.move(box["x"] + 300, y)
    mouse.up()
    at, _ = live.after(lambda: None)
    n = int(at.split(" on ")[0].removeprefix("At n = ").replace(",", ""))
    assert n in LENGTHS and n != 4096
    axis = live.root.locator(".lw-chart svg").first.evaluate(
        "svg => svg.querySelector('.tick line').getBoundingClientRect().x"
    )
    inside = (box["x"] + 300 - axis) / (box["width"] - 84 - 130)
    assert math.log2(n) == pytest.approx(8 + 9 * inside, abs=0.25)
