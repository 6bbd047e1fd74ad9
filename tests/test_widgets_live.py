"""Every widget in a page opened from disk, no kernel: each control moves, the numbers are those of Python."""

import statistics
import time

import pytest
from deck_fixture import live
from lab import barriers, open_browser, open_page
from live import STOPWATCH, Live
from nbconvert import get_exporter
from nbformat.v4 import new_code_cell, new_notebook

from linformer_from_scratch import widgets
from linformer_from_scratch.widgets.live import LiveWidget
from linformer_from_scratch.widgets.page import page as page_of

pytestmark = pytest.mark.browser

KINDS = [kind for name in widgets.__all__ if issubclass(kind := getattr(widgets, name), LiveWidget)]
LIMIT_MS, PICTURES_S = 50, 30  # from key to pixels, and pictures a second of a drag, on idle cores
LOADED = 3  # how much slower two test workers may make it
THERE_AND_BACK = {
    "range": ("ArrowRight", "ArrowLeft"),
    "select-one": ("ArrowDown", "ArrowUp"),
    "checkbox": ("Space", "Space"),
    "button": ("ArrowDown", "ArrowUp"),
}

TURN_DARK = """() => {
    Object.assign(document.body.style, { background: "#111", color: "#eee" });
    document.body.dataset.theme = "dark";
}"""
# Elements whose text is smaller than 12 px.
SMALL = """() => {
    const isText = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim();
    const length = ({ a, b }) => Math.hypot(a, b); // of a matrix that may turn what it enlarges
    const scale = (it) => (it.ownerSVGElement ? length(it.getScreenCTM()) : 1);
    const size = (it) => parseFloat(getComputedStyle(it).fontSize) * scale(it);
    return [...document.querySelectorAll(".lw *")]
        .filter((it) => it.checkVisibility() && [...it.childNodes].some(isText) && size(it) < 11.9)
        .map((it) => `${it.outerHTML.slice(0, 80)} ${size(it)}`);
}"""
# A pressed pointer goes right and back in two seconds: pictures a second, and how many lines of numbers.
DRAG = """async ([left, right, y]) => {
    const root = document.querySelector(".lw"), chart = document.elementFromPoint(left, y).closest("svg");
    const start = performance.now(), first = root.pictures, seen = new Set();
    let now = start;
    while (now < start + 2000) {
        now = await new Promise(requestAnimationFrame);
        const clientX = right - (right - left) * Math.abs((now - start) / 1000 - 1);
        chart.dispatchEvent(new PointerEvent("pointermove", { pointerId: 1, clientX, clientY: y }));
        seen.add(root.querySelector(".lw-words").textContent);
    }
    return [(1000 * (root.pictures - first)) / (now - start), seen.size];
}"""

STARTS = {"CostModel": {"show": "seconds"}}  # where the numbers' type is seen

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@pytest.fixture(scope="module")
def browser(chromium):
    with open_browser(chromium) as browser:
        yield browser


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Kind of widget -> a page with one of it, opened as it opens."""
    folder, written = tmp_path_factory.mktemp("pages"), {}
    for kind in KINDS:
        written[kind] = folder / f"{kind.__name__}.html"
        written[kind].write_text(page_of([kind(**STARTS.get(kind.__name__, {}))]), encoding="utf-8")
    return written


@pytest.fixture
def opened(browser, files, kind):
    """A page with one widget of a kind."""
    with open_page(browser, 1280, 900) as page:
        page.goto(files[kind].as_uri())
        live = Live(page, page.locator(".lw"))
        yield live
        assert page.complaints == []
        assert page.outside == []


@every_kind
def test_every_control_moves_the_picture_and_the_numbers_are_those_of_python(opened):
    assert opened.differences(opened.as_python()) == []
    for name, control in opened.controls().items():
        seen = {opened.after(opened.root.get_by_role("button", name="Reset").click)}
        for move in opened.moves(name, control).values():
            seen.add(opened.after(move))
            assert opened.differences(opened.as_python()) == [], name
        words, pictures = map(len, map(set, zip(*seen, strict=True)))
        assert words > 1, f"{name} moves no number"
        assert pictures > 1, f"{name} moves no picture"


@every_kind
def test_a_key_is_answered_at_once(opened, kind, record_property):
    """Median from key press to changed pixels, for every control; keys come no faster than a hand's."""
    opened.page.evaluate(STOPWATCH)
    for name, control in opened.controls().items():
        opened.page.evaluate("() => { moves = [] }")
        there, back = THERE_AND_BACK[control.evaluate("it => it.type")]
        control.focus()
        for key in 6 * [there, back]:
            opened.after(lambda key=key: opened.page.keyboard.press(key))
        moves = opened.page.evaluate("moves")
        assert len(moves) >= 10, f"{name} draws too late, or not at all"
        median = statistics.median(moves)
        record_property("report", f"{kind.__name__}, {name}: {median:.0f} ms from key to pixels")
        assert median <= LOADED * LIMIT_MS, name


@pytest.mark.parametrize(
    "kind", [widgets.RankSlider, widgets.ProjectionExplorer], ids=lambda kind: kind.__name__
)
def test_the_picture_follows_a_drag(opened, kind, record_property):
    """Pictures a second while the pointer moves at every frame, on every chart that can be dragged."""
    charts = opened.root.locator(".lw-stage svg[style*=resize]")
    assert charts.count()
    for i in range(charts.count()):
        charts.nth(i).scroll_into_view_if_needed()
        box = charts.nth(i).bounding_box()
        left, right, middle = box["x"] + 80, box["x"] + box["width"] - 30, box["y"] + box["height"] / 2
        opened.page.mouse.move(left, middle)
        opened.page.mouse.down()
        rate, drawn = opened.page.evaluate(DRAG, [left, right, middle])
        opened.page.mouse.up()
        record_property("report", f"{kind.__name__}, chart {i + 1}: {rate:.0f} pictures a second in a drag")
        assert drawn > 3, "lines of numbers that a sweep shows"
        assert rate >= PICTURES_S / LOADED


@every_kind
def test_what_is_pointed_at_is_named(opened):
    maps = opened.root.locator(".lw-frame")
    for i in range(maps.count()):
        maps.nth(i).hover(position={"x": 20, "y": 20})
        tip = opened.root.locator(".lw-tip:not([hidden])").first
        assert tip.inner_text()


@every_kind
def test_play_pin_reset_and_copy(opened):
    opening = opened.state()
    sliders = opened.root.locator(".lw-controls input[type=range]")
    if sliders.count():
        sliders.first.focus()
        opened.page.keyboard.press("Space")
        until = time.monotonic() + 5  # it plays until it is seen to, however busy the machine
        while opened.state() == opening and time.monotonic() < until:
            opened.page.wait_for_timeout(50)
        opened.page.keyboard.press("Space")
        assert opened.state() != opening
    opened.root.get_by_role("button", name="Pin").click()
    words = opened.words()
    assert words in opened.root.locator(".lw-pinned").inner_text()
    opened.after(opened.root.get_by_role("button", name="Reset").click)
    assert opened.state() == opening
    assert opened.root.locator(".lw-pinned").count() == 0


@pytest.mark.parametrize("kind", [widgets.LengthExplorer])
def test_a_state_that_cannot_be_drawn_leaves_the_last_picture_grey(opened, kind):
    pin = opened.root.get_by_role("button", name="Pin")
    assert opened.root.locator(".lw-stale").count() == 0 and pin.is_enabled()
    opened.after(lambda: opened.root.get_by_label("Tokens n").press("End"))
    assert "28 tokens" in opened.words()
    assert opened.root.locator(".lw-stale").count() == 1 and pin.is_disabled()


@pytest.mark.parametrize("kind", [widgets.RankSlider])
def test_a_tip_stays_within_its_widget(opened, kind):
    last = opened.root.locator(".lw-frame").last
    last.hover(position={"x": last.bounding_box()["width"] - 5, "y": 40})
    tip, root = opened.root.locator(".lw-tip:not([hidden])").bounding_box(), opened.root.bounding_box()
    assert tip["x"] + tip["width"] <= root["x"] + root["width"] + 1


def test_an_exported_notebook_lives(browser, tmp_path):
    notebook = new_notebook(cells=[new_code_cell("HeadGallery()", outputs=[live(widgets.HeadGallery())])])
    page_file = tmp_path / "exported.html"
    page_file.write_text(get_exporter("live")().from_notebook_node(notebook)[0], encoding="utf-8")
    with open_page(browser, 1280, 900) as page:
        page.goto(page_file.as_uri())
        gallery = Live(page, page.locator(".lw"))
        before = gallery.state()
        assert gallery.after(lambda: gallery.root.get_by_label("Query token").press("ArrowRight")) != before


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """A page with all widgets."""
    path = tmp_path_factory.mktemp("together") / "widgets.html"
    path.write_text(page_of([kind() for kind in KINDS]), encoding="utf-8")
    return path


def show(page, path):
    """Open a page of widgets and wait until all of them live."""
    page.goto(path.as_uri())
    for i in range(len(KINDS)):
        Live(page, page.locator(".lw").nth(i))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser, together, scheme):
    with open_page(browser, 1280, 900) as page:
        show(page, together)
        if scheme == "dark":
            page.evaluate(TURN_DARK)
            page.wait_for_function("() => document.querySelector('.lw').style.colorScheme === 'dark'")
        assert barriers(page, scheme) == []


@pytest.mark.parametrize("width", [360, 640, 2560])
def test_nothing_is_cut_at_any_width(browser, together, width):
    with open_page(browser, width, 900) as page:
        show(page, together)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        assert page.evaluate(SMALL) == []
