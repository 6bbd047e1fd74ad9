"""Every widget in a page opened from disk, no kernel: each control moves, the numbers are those of Python."""

import statistics
from pathlib import Path

import pytest
from lab import open_browser, open_page
from live import STOPWATCH, Live

from linformer_from_scratch import widgets
from linformer_from_scratch.widgets.live import LiveWidget
from linformer_from_scratch.widgets.page import page as page_of

pytestmark = pytest.mark.browser

KINDS = [kind for name in widgets.__all__ if issubclass(kind := getattr(widgets, name), LiveWidget)]
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
LIMIT_MS, LOADED = 50, 3  # from key to pixels on idle cores; how much slower two test workers may make it

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
    """Median from key press to changed pixels, for every slider; keys come no faster than a hand's."""
    opened.page.evaluate(STOPWATCH)
    for name, control in opened.controls().items():
        if control.evaluate("it => it.type") != "range":
            continue
        opened.page.evaluate("() => { moves = [] }")
        control.focus()
        for key in 6 * ["ArrowRight"] + 6 * ["ArrowLeft"]:
            opened.after(lambda key=key: opened.page.keyboard.press(key))
        median = statistics.median(opened.page.evaluate("moves"))
        record_property(
            "report", f"{type(opened.as_python()).__name__}, {name}: {median:.0f} ms from key to pixels"
        )
        assert median <= LOADED * LIMIT_MS, name


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
        opened.page.wait_for_timeout(600)
        opened.page.keyboard.press("Space")
        assert opened.state() != opening
    opened.root.get_by_role("button", name="Pin").click()
    words = opened.words()
    assert words in opened.root.locator(".lw-pinned").inner_text()
    opened.after(opened.root.get_by_role("button", name="Reset").click)
    assert opened.state() == opening
    assert opened.root.locator(".lw-pinned").count() == 0


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
        page.add_script_tag(path=AXE)
        found = page.evaluate("() => axe.run()")["violations"]
        serious = {
            v["id"]: v["nodes"][0]["html"][:200] for v in found if v["impact"] in ("serious", "critical")
        }
        assert [(v["id"], v["nodes"][0]["html"][:200]) for v in serious] == []


@pytest.mark.parametrize("width", [360, 640, 2560])
def test_nothing_is_cut_at_any_width(browser, together, width):
    with open_page(browser, width, 900) as page:
        show(page, together)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        assert page.evaluate(SMALL) == []
