"""Every widget in a page opened from disk, no kernel: each control moves, the numbers are those of Python."""

import re
import statistics
import time

import pytest
from book.shelf import Shelf
from deck_fixture import live
from jupyter_lab import alive, barriers, open_page
from live import STOPWATCH, Live
from nbconvert import get_exporter
from nbformat.v4 import new_code_cell, new_notebook

from linformer_from_scratch.course import widgets
from linformer_from_scratch.course.widgets.live import LiveWidget
from linformer_from_scratch.course.widgets.page import page as page_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]

KINDS = [kind for name in widgets.__all__ if issubclass(kind := getattr(widgets, name), LiveWidget)]
LIMIT_MS, PICTURES_S = 50, 30  # from key to pixels, and pictures a second of a drag, on idle cores
LOADED = 3  # how much slower two test workers may make it
THERE_AND_BACK = {
    "range": ("ArrowRight", "ArrowLeft"),
    "select-one": ("ArrowDown", "ArrowUp"),
    "checkbox": ("Space", "Space"),
    "radio": ("ArrowDown", "ArrowUp"),
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

TEXTS = [  # that are awkward to quote
    "",
    'it\'s "said": \'"" ends with \\',
    "\\n is no line, \n  this is one\r\n, {x} ${y} %s </script><!-- &amp; 😀, Größe, Ωμέγα",
    "".join(map(chr, range(32))) + "\x7f\x85\xa0\xad\u2028\u2029\u200b\u202e\U000e0041",
    "\ud83d and \ude00 are halves",
]
# What a page needs is not there, or throws, the first time that it is asked for.
FAILS_ONCE = """(name) => {
    const [holder, member] = name.includes(".") ? [URL, name.split(".")[1]] : [window, name];
    const whole = holder[member];
    holder[member] = function () { holder[member] = whole; throw new Error(`no ${name}`); };
}"""
NOT_LIVE = "could not be made live"

STARTS = {"CostModel": {"show": "seconds"}}  # where the numbers' type is seen

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


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
    with open_page(browser, 1280, 900, at=files[kind]) as page:
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


@pytest.mark.parametrize("kind", [widgets.RankSlider, widgets.ProjectionExplorer])
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
@pytest.mark.parametrize(("width", "height"), [(1280, 720), (390, 844)])
def test_the_first_view_holds_the_picture_and_a_handle(browser, files, kind, width, height):
    with open_page(browser, width, height, at=files[kind]) as page:
        page.locator("h1").evaluate("it => it.remove()")
        page.locator(".lw-words").wait_for()
        assert page.locator(".lw-hint").bounding_box()["y"] < 20
        handles = page.locator(".lw :is(input, select, .lw-heads > button):not(.lw-more *):not([disabled])")
        assert min(it.bounding_box()["y"] + it.bounding_box()["height"] for it in handles.all()) <= height
        assert page.locator(".lw > .lw-controls > *").count() <= 2


@every_kind
def test_what_is_pointed_at_is_named_and_not_covered(opened):
    maps = opened.root.locator(".lw-frame:visible")
    for i in range(maps.count()):
        maps.nth(i).hover(position={"x": 20, "y": 20})
        tips = opened.root.locator(".lw-tip:not([hidden])")
        assert tips.first.inner_text()
        for tip in tips.all():
            below = tip.bounding_box()["y"] + tip.bounding_box()["height"]
            frames = tip.locator("xpath=../..").locator(".lw-frame").all()
            assert all(below <= one.bounding_box()["y"] + 1 for one in frames)


@every_kind
def test_play_pin_reset_and_copy(opened):
    opening = opened.state()
    sliders = opened.root.locator("input[type=range]")
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


def test_what_copy_state_copies_is_python_that_makes_this_state(browser, tmp_path):
    shown = [widgets.HeadGallery(text, layer=2) for text in TEXTS]
    with alive(browser, tmp_path, *shown) as seen:
        page = seen[0].page
        page.evaluate("() => { navigator.clipboard.writeText = async (text) => { window.copied = text; }; }")
        for live, widget in zip(seen, shown, strict=True):
            assert live.as_python().state() == widget.state()
            copied = page.evaluate("copied")
            assert eval(copied, vars(widgets)).state() == widget.state()
            assert copied.isprintable()


def test_a_state_that_cannot_be_drawn_leaves_the_last_picture_grey(browser, tmp_path):
    with alive(browser, tmp_path, widgets.CostModel(num_heads=3)) as (opened,):
        stale, pin = opened.root.locator(".lw-stale"), opened.root.get_by_role("button", name="Pin")
        drawn = opened.after(lambda: opened.root.get_by_label("Heads").press("ArrowRight"))
        assert stale.count() == 0 and pin.is_enabled()
        words, picture = opened.after(opened.root.get_by_role("button", name="Reset").click)
        assert "3 heads do not divide" in words and picture == drawn[1]
        assert stale.count() == 1 and pin.is_disabled()


@pytest.mark.parametrize("kind", [widgets.RankSlider])
def test_a_tip_stays_within_its_widget(opened, kind):
    last = opened.root.locator(".lw-frame").last
    last.hover(position={"x": last.bounding_box()["width"] - 5, "y": 40})
    tips, root = opened.root.locator(".lw-tip:not([hidden])"), opened.root.bounding_box()
    assert tips.count()
    for tip in (one.bounding_box() for one in tips.all()):
        assert tip["x"] + tip["width"] <= root["x"] + root["width"] + 1


def test_an_exported_notebook_lives(browser, tmp_path):
    notebook = new_notebook(cells=[new_code_cell("HeadGallery()", outputs=[live(widgets.HeadGallery())])])
    page_file = tmp_path / "exported.html"
    page_file.write_text(get_exporter("live")().from_notebook_node(notebook)[0], encoding="utf-8")
    with open_page(browser, 1280, 900, at=page_file) as page:
        gallery = Live(page, page.locator(".lw"))
        before = gallery.state()
        assert gallery.after(lambda: gallery.root.get_by_label("Query token").press("ArrowRight")) != before


TROUBLES = ["URL.createObjectURL", "DecompressionStream", "ResizeObserver"]  # for import, numbers, render


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_cannot_be_made_live_says_so_beside_its_still_and_the_others_live(browser, tmp_path, trouble):
    path = tmp_path / "two.html"
    path.write_text(page_of([widgets.HeadGallery(), widgets.CostModel()]), encoding="utf-8")
    with open_page(browser) as page:
        page.add_init_script(f"({FAILS_ONCE})('{trouble}')")
        page.goto(path.as_uri())
        Live(page, page.locator(".lw"))
        page.get_by_text(NOT_LIVE).wait_for()
        dead = page.locator(".live-widget", has_text=NOT_LIVE)
        assert dead.count() == dead.locator("img").count() == page.locator(".live-widget img").count() == 1
        assert [one for one in page.complaints if f"no {trouble}" in one]


@pytest.mark.parametrize("trouble", ["ResizeObserver", "parts.js", "numbers"])
def test_what_could_not_be_made_live_is_tried_again_when_a_reader_comes_back(browser, tmp_path, trouble):
    shelf, widget = Shelf(tmp_path, "."), widgets.HeadGallery()
    place = shelf.put(widget, widget.still())
    shelf.close()
    path = tmp_path / "page.html"
    path.write_text(f'{place}<div style="height: 9000px"></div><script src="host.js"></script>', "utf-8")
    with open_page(browser) as page:
        if trouble in TROUBLES:
            page.add_init_script(f"({FAILS_ONCE})('{trouble}')")
        else:  # a file does not come
            broken = "**/parts.js" if trouble == "parts.js" else re.compile(r"/[0-9a-f]{12}\.js")
            page.route(broken, lambda route: route.abort(), times=1)
        page.goto(path.as_uri())
        page.mouse.move(100, 100)
        page.get_by_text(NOT_LIVE).wait_for()
        assert (page.locator("img").count(), page.locator(".lw").count()) == (1, 0)
        page.mouse.wheel(0, 5000)
        page.wait_for_function("() => scrollY > 3000")
        page.mouse.wheel(0, -5000)
        Live(page, page.locator(".lw"))
        assert (page.locator("img").count(), page.get_by_text(NOT_LIVE).count()) == (0, 0)


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
