"""What a reader moves and what it changes lie on one screen, and a widget's words are in one font."""

from contextlib import contextmanager

import pytest
import slides
from deck_browser import open_deck
from deck_fixture import code, live, prose, write
from jupyter_lab import ROOT, open_page
from live import Live, wait_until

from linformer_from_scratch.course import widgets
from linformer_from_scratch.course.widgets.page import page as page_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]

REACH = 640  # px, from a handle to the far end of what it changes
COLUMNS = {"book": (1280, 720, 992), "phone": (390, 844, 358)}  # a window and the book's column, px
DRESS = 'main { width: %dpx; margin: 0 auto } main .lw { font-family: "Source Serif", serif }'

# What a reader can move without opening "More": of a slider its thumb, of a choice what is chosen.
HANDLES = (
    ":is(input:not([type=text], [type=radio]:not(:checked)), select, .lw-heads > [aria-checked=true],"
    ".lw-control > button:only-child)"
    ":not(.lw-more *, [disabled]):visible"
)
# Top and bottom on the page, px.
PLACE = "(it) => [it.getBoundingClientRect().top + scrollY, it.getBoundingClientRect().bottom + scrollY]"
IS_TEXT = "(node) => node.nodeType === Node.TEXT_NODE && node.data.trim()"
# How the seen parts of a widget look, and where they lie: its canvases, its drawings, its words.
PARTS = f"""root => {{
    const look = (it) => it.matches("canvas") ? it.toDataURL() : it.matches("svg") ? it.innerHTML
        : it.cloneNode(false).outerHTML + it.textContent;
    return [...root.querySelectorAll(".lw-stage *, .lw-words")]
        .filter((it) => it.checkVisibility() && !it.closest("svg *, .lw-control, .lw-hidden"))
        .filter((it) => it.matches("canvas, svg") || [...it.childNodes].some({IS_TEXT}))
        .map((it) => [look(it), ...({PLACE})(it)]);
}}"""
FONTS = f"""root => {{
    const isWritten = (it) => it.matches("input, select") || [...it.childNodes].some({IS_TEXT});
    const written = [...root.querySelectorAll("*")].filter(isWritten);
    return [...new Set(written.map((it) => getComputedStyle(it).fontFamily))];
}}"""
TO_THE_WIDGET = """() => Reveal.slide(
    [...document.querySelectorAll(".slides > section")].findIndex((it) => it.querySelector(".live-widget"))
)"""
ASLEEP = {"scripts": [], "megabytes": 13, "folder": "."}  # the model, beside a field for own words
STEPS = {"range": ("ArrowRight", "ArrowLeft"), "checkbox": ("Space",)}

every_kind = pytest.mark.parametrize("name", widgets.__all__)
every_place = pytest.mark.parametrize("place", [*COLUMNS, "deck"])


@contextmanager
def placed(browser, folder, name, place):
    """A widget as it opens, in a column of the book or on a slide."""
    shown = getattr(widgets, name)()
    if place == "deck":
        cells = prose("## One claim", "slide"), code("shown", live(shown), tags=["no-code"])
        with open_deck(browser, slides.build(write(folder, cells), folder)) as page:
            page.evaluate(TO_THE_WIDGET)
            yield Live(page, page.locator(".lw"))
        return
    file, (width, height, column) = folder / "page.html", COLUMNS[place]
    file.write_text(page_of([shown], ASLEEP), encoding="utf-8")
    with open_page(browser, width, height, at=file) as page:
        page.add_style_tag(url=(ROOT / "tools/book/static/book.css").as_uri())
        page.add_style_tag(content=DRESS % column)
        page.evaluate("document.fonts.ready")
        yield Live(page, page.locator(".lw"))


def move(seen, handle):
    """Move a handle by one step, or back where it is at its end; what a button starts is stopped again."""
    if handle.evaluate("it => it.matches('button:not([role])')"):
        before = seen.picture()
        handle.click()
        wait_until(lambda: seen.picture() != before, "what the button does")
        handle.click()
        return
    for key in STEPS.get(handle.get_attribute("type"), ("ArrowDown",)):
        before = seen.picture()
        handle.press(key)
        if seen.after(lambda: None)[1] != before:
            return


def reach(seen, handle):
    """Pixels from the highest to the lowest of a handle and of all that its move changes."""
    seen.root.locator(".lw-more").evaluate("it => { it.open = false }")
    before = {look for look, *_ in seen.root.evaluate(PARTS)}
    move(seen, handle)
    changed = [place for look, *place in seen.root.evaluate(PARTS) if look not in before]
    assert len(changed) > 1, "a handle that changes no picture"
    tops, ends = zip(handle.evaluate(PLACE), *changed, strict=True)
    return max(ends) - min(tops)


@every_kind
@every_place
def test_a_handle_and_what_it_changes_lie_on_one_screen(browser, tmp_path, name, place, record_property):
    with placed(browser, tmp_path, name, place) as seen:
        reached = {}
        for handle in seen.root.locator(HANDLES).all():
            called = handle.evaluate("it => it.labels?.[0]?.textContent ?? it.textContent")
            reached[called] = round(reach(seen, handle))
        record_property("report", f"{name}, {place}: {reached}")
        assert reached and max(reached.values()) <= REACH


@every_kind
@every_place
def test_all_words_of_a_widget_are_set_in_one_font(browser, tmp_path, name, place):
    with placed(browser, tmp_path, name, place) as seen:
        assert len(seen.root.evaluate(FONTS)) == 1
