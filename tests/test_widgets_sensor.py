"""Sensors around hidden sources: inputs, answers and colours in Python, and the same in a page."""

import re
import statistics

import pytest
import torch
from jupyter_lab import alive
from live import STOPWATCH, wait_until
from matplotlib.path import Path
from torch.testing import assert_close

from linformer_from_scratch.course.widgets import SensorExplorer, sensor_explorer
from linformer_from_scratch.course.widgets.sensor_explorer import SOURCES, hears, learned, places, readings

LIMIT_MS, LOADED = 50, 3  # from a drag to pixels; how much slower two test workers may make it


# In Python


@pytest.mark.parametrize("n", sensor_explorer.LENGTHS)
def test_every_source_is_heard_by_sensors_of_both_kinds_and_a_moved_one_hears_another(n):
    at = places(n)
    source = hears(at)
    for i in range(n):
        gaps = [(1.6 * (at[i, 0] - x)) ** 2 + (at[i, 1] - y) ** 2 for x, y in SOURCES]
        assert source[i] == gaps.index(min(gaps))
    assert all(source[kind::2].bincount(minlength=4).min() >= 5 for kind in (0, 1))
    assert torch.pdist(at).min() > 0.02
    other = (source[5] + 1) % 4
    assert hears(places(n, ((5, SOURCES[other]),)))[5] == other


def test_an_input_is_what_the_sensors_hear_and_ask():
    at, right = places(64), []
    source = hears(at)
    for t in (0, 7, sensor_explorer.INPUTS + 7):
        q, keys, v, wanted = readings(t, at)
        names, values = sensor_explorer.drawn()["sent"][t % sensor_explorer.INPUTS].tolist()
        assert len(set(names)) == len(set(values)) == 4
        assert (keys[1::2] == 0).all() and (v[::2] == 0).all()
        assert (q.amax(dim=1) == sensor_explorer.SHARP).all() and ((q > 0).sum(dim=1) == 1).all()
        for asked, answer in zip(q.argmax(dim=1).tolist(), wanted.argmax(dim=1).tolist(), strict=True):
            assert values[names.index(asked)] == answer
        assert set(q.argmax(dim=1).tolist()) == set(names)
        right += [keys[i].argmax() == names[source[i]] for i in range(0, 64, 2)]
        right += [v[i].argmax() == values[source[i]] for i in range(1, 64, 2)]
    assert torch.tensor(right).double().mean() == pytest.approx(0.8 + 0.2 / sensor_explorer.NAMES, abs=0.08)
    assert all(map(torch.equal, readings(7, at), readings(sensor_explorer.INPUTS + 7, at)))


def test_a_share_of_answers_counts_the_first_of_equal_ones():
    output = torch.tensor([[0.0, 2.0, 1.0], [3.0, 3.0, 0.0], [-1.0, -2.0, -1.0], [0.1, 0.2, 0.3]]).double()
    assert sensor_explorer.share_right(output, torch.eye(3).double()[[1, 1, 0, 2]]) == 0.75


@pytest.mark.parametrize(("n", "k"), [(64, 16), (128, 4), (128, 16), (256, 8)])
def test_slots_learn_who_belongs_together_and_nothing_else_does(n, k):
    explorer = SensorExplorer(n=n, proj_dim=k)
    assert explorer.E.shape == explorer.F.shape == (k, n)
    assert explorer.right[sensor_explorer.SLOTS] < 0.4
    assert (explorer.mix.argmax(dim=1) == hears(places(n))).double().mean() < 0.5  # noise
    explorer.updates = 200
    assert explorer.right[sensor_explorer.SLOTS] > 0.98
    assert max(explorer.right[sensor_explorer.ONE], explorer.right[sensor_explorer.EXACT]) < 0.35
    assert (explorer.mix.argmax(dim=1) == hears(places(n))).double().mean() > 0.95  # four patches


def test_exact_attention_with_one_head_gives_every_sensor_one_answer():
    for t, right in enumerate(sensor_explorer.exactly_right(128, 20)):
        *_, v, wanted = readings(t, places(128))
        most = v.sum(dim=0).argmax()  # heard most often
        assert right == (wanted.argmax(dim=1) == most).double().mean()


def test_a_share_before_an_update_does_not_know_its_input_and_updates_go_on_from_there():
    few, more = learned(64, 8, 3), learned(64, 8, 10)
    assert few.right == more.right[:4] and len(more.right) == 11
    assert_close(learned(64, 8, 0).E, sensor_explorer.drawn()["start"][0, :8, :64] / 80)
    assert not torch.equal(few.E, more.E)
    assert torch.equal(few.E[:, 1::2], learned(64, 8, 0).E[:, 1::2])  # who hears no names moves nothing in E


def test_a_sensor_has_the_colour_of_the_places_that_it_is_tied_to():
    at = torch.tensor(SOURCES).double().repeat_interleave(2, dim=0)  # one of each kind at each source
    slots = torch.eye(4).double().repeat_interleave(2, dim=1)  # a slot for each source
    clean = sensor_explorer.mix(slots, slots, at)
    assert_close(clean.argmax(dim=1), hears(at))
    assert_close(clean.sum(dim=1), torch.ones(8).double())
    swapped = slots.clone()
    swapped[:, [0, 2]] = slots[:, [2, 0]]  # two that hear names stand at each other's
    assert sensor_explorer.mix(swapped, slots, at).argmax(dim=1)[[0, 2]].tolist() == [1, 0]
    assert_close(sensor_explorer.mix(3 * slots, 5 * slots, at), clean)


def test_it_says_before_and_after_what_is_right():
    explorer = SensorExplorer(proj_dim=8)
    assert explorer.words == (
        "Before learning, 128 sensors with 8 slots answer 24% right; with one slot 0%, with exact attention "
        "24%, by a guess 12.5%."
    )
    explorer.updates = 120
    assert explorer.words.startswith("After 120 updates, 128 sensors with 8 slots answer 100% right;")


# In a page


def updates(live):
    """How many there have been."""
    found = re.match(r"After (\d+)", live.words())
    return int(found[1]) if found else 0


def learn(live, until):
    """Press Learn, and Stop at so many updates or a few more; the number."""
    live.root.get_by_role("button", name="Learn").click()
    wait_until(lambda: updates(live) >= until, "updates")
    live.root.get_by_role("button", name="Stop", exact=True).click()
    live.after(lambda: None)
    return updates(live)


def on_screen(live, place):
    """A place of the plane in the page."""
    svg = live.root.locator(".lw-chart > svg").first
    size = svg.evaluate("({ viewBox: { baseVal } }) => [baseVal.width, baseVal.height]")
    box = svg.bounding_box()
    at = (14 + share * (whole - 28) for share, whole in zip(place, size, strict=True))
    x, y = (units * box["width"] / size[0] for units in at)
    return box["x"] + x, box["y"] + y


def drag(live, start, end):
    """Draw a pointer from one place to another in ten steps; what is said of the sensor on the way."""
    (x, y), (right, low) = on_screen(live, start), on_screen(live, end)
    live.page.mouse.move(x, y)
    live.page.mouse.down()
    for i in range(1, 11):
        live.after(lambda i=i: live.page.mouse.move(x + (right - x) * i / 10, y + (low - y) * i / 10))
    said = live.root.locator(".lw-tip").first.inner_text()
    live.page.mouse.up()
    live.after(lambda: None)
    return said


@pytest.mark.browser
@pytest.mark.parametrize(("n", "k"), [(64, 4), (128, 16), (256, 8)])
def test_learned_numbers_are_those_of_pytorch_until_reset(browser, tmp_path, n, k):
    explorer = SensorExplorer(n=n, proj_dim=k)
    with alive(browser, tmp_path, explorer) as (live,):
        explorer.updates = learn(live, 40)
        assert live.differences(explorer) == []
        live.after(live.root.get_by_role("button", name="Reset").click)
        explorer.updates = 0
        assert live.differences(explorer) == []


@pytest.mark.browser
def test_a_dragged_sensor_hears_another_source_at_once(browser, tmp_path):
    explorer, (sensor, end) = SensorExplorer(), (3, (0.9, 0.9))
    with alive(browser, tmp_path, explorer) as (live,):
        live.page.evaluate(STOPWATCH.replace('"change"', '"pointermove"'))
        said = drag(live, places(128)[sensor].tolist(), end)
        assert statistics.median(live.page.evaluate("moves")) <= LOADED * LIMIT_MS
        assert said == "sensor 4 hears the value of source C: its column is in F"
        explorer.moved = ((sensor, end),)
        assert hears(places(128, explorer.moved))[sensor] != hears(places(128))[sensor]
        assert live.differences(explorer) == []
        explorer.updates = learn(live, 20)
        assert live.differences(explorer) == []
        grid = torch.cartesian_prod(*2 * [torch.linspace(0, 1, 50)]).double()
        empty = grid[torch.cdist(grid, places(128, explorer.moved)).amin(dim=1).argmax()]
        drag(live, empty.tolist(), (0.1, 0.1))  # takes nothing along
        assert live.differences(explorer) == []


@pytest.mark.browser
def test_keys_walk_to_a_sensor_and_move_it_into_the_next_patch(browser, tmp_path):
    explorer = SensorExplorer()
    with alive(browser, tmp_path, explorer) as (live,):
        plane, key = live.root.locator(".lw-chart").first, live.page.keyboard.press
        plane.focus()
        for name in ("ArrowRight", "ArrowRight", "ArrowDown"):  # to the first one, then away from it
            live.after(lambda name=name: key(name))
        tip = live.root.locator(".lw-tip").first.inner_text()
        sensor = int(re.match(r"sensor (\d+)", tip)[1]) - 1
        first, at = places(128)[0], places(128)[sensor]
        assert sensor != 0 and (at > first).all()
        live.after(lambda: key("Enter"))
        source, here = int(hears(places(128))[sensor]), torch.tensor(SOURCES).double()
        place = here[(source + 1) % 4] + 0.3 * (at - here[source])
        explorer.moved = ((sensor, tuple(place.tolist())),)
        assert live.differences(explorer) == []
        assert f"of source {'ABCD'[(source + 1) % 4]}" in live.root.locator(".lw-tip").first.inner_text()


@pytest.mark.browser
def test_patches_appear_when_they_are_learned_and_hold_those_who_hear_their_source(browser, tmp_path):
    with alive(browser, tmp_path, SensorExplorer()) as (live,):
        group = live.root.locator(".lw-chart > svg > g").first
        shown = [group.locator("> g").nth(i) for i in (0, 2)]
        assert [one.get_attribute("opacity") for one in shown] == ["0", "0"]
        learn(live, 60)
        assert [float(one.get_attribute("opacity")) > 0.9 for one in shown] == [True, True]
        corners = [re.findall(r"[\d.]+", path.get_attribute("d")) for path in shown[0].locator("path").all()]
        box = live.root.locator(".lw-chart > svg").first.bounding_box()
        size = torch.tensor([box["width"] - 28, box["height"] - 28])
        inside = [Path(torch.tensor([*map(float, one)]).view(-1, 2) / size) for one in corners]
        for place, source in zip(places(128).tolist(), hears(places(128)).tolist(), strict=True):
            assert [patch.contains_point(place, radius=1e-9) for patch in inside].index(True) == source


@pytest.mark.browser
@pytest.mark.slow  # hundreds of updates, one a frame: a column that was learned is unlearned no sooner
def test_the_column_of_a_square_that_was_moved_mends(browser, tmp_path):
    source = hears(places(128))
    sensor = next(i for i in range(5, 128, 2) if source[i] == 0)
    with alive(browser, tmp_path, SensorExplorer()) as (live,):

        def colour():
            return live.numbers()["mix"].reshape(-1, 4)[sensor].argmax()

        before = learn(live, 60)
        drag(live, places(128)[sensor].tolist(), (0.85, 0.62))
        assert colour() == 0  # as it was learned
        learn(live, before + 300)
        assert colour() == 2  # as it hears now
        assert live.numbers()[f"right.{sensor_explorer.SLOTS}"] > 0.98


@pytest.mark.browser
@pytest.mark.parametrize("k", sensor_explorer.DIMS)
def test_another_number_of_slots_begins_anew(browser, tmp_path, k):
    with alive(browser, tmp_path, SensorExplorer(proj_dim=k)) as (live,):
        learn(live, 5)
        live.after(lambda: live.controls()["Slots k"].press("ArrowLeft" if k == 16 else "ArrowRight"))
        assert live.words().startswith("Before learning") and live.differences(live.as_python()) == []
