"""Widget 2 moved from Python: its numbers are those of cost.py."""

import pytest
from moves import report_moves

from linformer_from_scratch.cost import (
    DEVICES,
    Device,
    Sizes,
    compress_tokens,
    floor_seconds,
    flops,
    full_attention,
    stored_bytes,
)
from linformer_from_scratch.widgets import CostModel, cost_model
from linformer_from_scratch.widgets.canvas import Card
from linformer_from_scratch.widgets.cost_model import (
    HERE,
    OPERATIONS,
    ORDERS,
    SECONDS,
    STORED,
    quantity,
    spread_labels,
)


def state(widget):
    return widget.picture.value, widget.words


def test_the_numbers_are_those_of_the_formulas():
    model = CostModel(n=2048, proj_dim=64, d_model=256, num_heads=4, batch=2, number=2)
    model.order.value = "(EX)W with E = F"
    sizes = Sizes(2048, 256, 4, 64, 2, 2)
    for name, steps in (("full", full_attention(sizes)), ("Linformer", compress_tokens(sizes, shared=True))):
        floor = floor_seconds(steps, DEVICES[0], 2)
        assert model.numbers[name] == (flops(steps), floor, stored_bytes(steps))
        assert quantity(floor, SECONDS) in model.words
    fused = compress_tokens(sizes, fused=True, shared=True)
    assert model.numbers["Linformer, tiled"][2] == stored_bytes(fused) < model.numbers["Linformer"][2]


def test_it_opens_at_the_crossover_of_operations_just_above_twice_k():
    model = CostModel()
    assert model.crossings == {"full": 513, "tiled exact": 513}
    assert "fewer operations than full from n = 513 on" in model.words
    model.proj_dim.value = 64
    assert model.crossings["full"] == 129


def test_time_crosses_earlier_against_stored_maps_and_later_against_tiles():
    model = CostModel(show=SECONDS, device=DEVICES[2], number=2)
    assert model.crossings == {"full": 323, "tiled exact": 2212}


def test_linformers_stored_bytes_never_fall_below_those_of_tiles():
    model = CostModel(show=STORED)
    assert model.crossings["tiled exact"] is None
    assert "than tiled exact never" in model.words


def test_every_control_changes_its_own_picture_and_numbers_only(monkeypatch):
    model, twin = CostModel(show=SECONDS), CostModel(show=SECONDS)
    untouched = state(twin)
    moves = {"n": 512, "proj_dim": 64, "d_model": 1024, "num_heads": 2, "batch": 8, "number": 2}
    moves |= {"order": list(ORDERS)[1], "device": DEVICES[1], "show": STORED}
    assert len(moves) == len(model.children[0].children)
    for name, value in moves.items():
        before = state(model)
        getattr(model, name).value = value
        picture, words = state(model)
        assert picture != before[0], name
        assert words != before[1], name
    assert state(twin) == untouched


def test_this_machine_is_measured_once_for_each_kind_of_number(monkeypatch):
    measured = []
    monkeypatch.setattr(cost_model, "matmul_ceiling", lambda dtype: measured.append(dtype) or 1e12)
    monkeypatch.setattr(cost_model, "copy_ceiling", lambda: 1e11)
    cost_model.this_machine.cache_clear()
    model = CostModel(show=SECONDS)
    assert measured == []
    model.device.label = HERE
    model.n.value = 256
    model.number.value = 2
    model.number.value = 4
    assert len(measured) == 2
    assert "on this machine" in model.words
    cost_model.this_machine.cache_clear()


def test_measured_points_are_drawn_where_the_time_is_shown(monkeypatch):
    points = {"full": [(1024, 1e-3), (4096, 2e-2)]}
    boxes = []
    box = Card.box
    monkeypatch.setattr(Card, "box", lambda self, *args, **kw: boxes.append(args) or box(self, *args, **kw))
    with_points = CostModel(points, show=SECONDS)
    assert len(boxes) == 2
    assert with_points.picture.value != CostModel(show=SECONDS).picture.value
    assert CostModel(points).picture.value == CostModel().picture.value  # operations: nothing to overlay


def test_heads_that_do_not_divide_are_refused_with_both_numbers(monkeypatch):
    model = CostModel()
    picture = model.picture.value
    model.num_heads.options = [("3", 3), ("8", 8)]
    model.num_heads.value = 3
    assert model.words == "3 heads do not divide d_model = 512."
    assert model.picture.value == picture


@pytest.mark.parametrize(
    ("value", "what", "words"),
    [
        (4.3e10, OPERATIONS, "43 GFLOP"),
        (1.5e-4, SECONDS, "150 µs"),
        (0.0123, SECONDS, "12.3 ms"),
        (3 * 2**20, STORED, "3 MiB"),
        (1, STORED, "0.000977 KiB"),
    ],
)
def test_quantities_have_three_digits_and_a_unit(value, what, words):
    assert quantity(value, what) == words


def test_labels_keep_their_distance_and_their_order():
    placed = spread_labels({"a": 50.0, "b": 50.5, "c": 10.0, "d": 300.0})
    assert placed["c"] == 10 and placed["d"] == 300
    assert placed["b"] - placed["a"] == 18 and placed["a"] == 50


def test_report_of_milliseconds_a_move(record_property):
    model = CostModel()
    report_moves(record_property, "CostModel", model, model.n, [value for _, value in model.n.options * 2])


def test_a_recorded_machine_stands_first_in_the_menu_and_its_floors_are_shown():
    machine = Device("recorded", {4: 1e9}, 1e9)
    model = CostModel(machines=[machine], show="floor of the time")
    assert model.device.label == "recorded" and len(model.device.options) == len(DEVICES) + 2
    sizes = Sizes(model.n.value, model.d_model.value, model.num_heads.value, model.proj_dim.value)
    assert model.numbers["full"][1] == floor_seconds(full_attention(sizes), machine)
