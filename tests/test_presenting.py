"""Teaching from a real JupyterLab: keys turn the pages wherever the focus is, and the last row can read."""

import pytest
from deck_fixture import code, prose, result, write
from jupyter_lab import Lab, open_browser, open_page, wait_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NOTEBOOK = [
    prose("# One", "slide"),
    prose("## Two\n\nA sentence.", "slide"),
    code("1 + 1", result(text_plain="2")),
    code("6 * 7", result(text_plain="42"), kind="fragment", tags=["no-code"]),
    prose("# Three", "slide"),
]
FIRST, SECOND, STEP, THIRD = [0], [1, 2], [1, 2, 3], [4]  # the cells that each stop shows
SHOWN = """() => [...document.querySelectorAll(".jp-Cell")]
  .flatMap((cell, i) => cell.matches(".jp-deck-mod-visible") ? [i] : [])"""
TYPE = "(it) => parseFloat(getComputedStyle(it).fontSize) * it.currentCSSZoom"


@pytest.fixture(scope="module")
def page(chromium, tmp_path_factory):
    """JupyterLab with a notebook that has been run before."""
    folder = tmp_path_factory.mktemp("presenting")
    notebook = write(folder, NOTEBOOK)
    with open_browser(chromium) as browser, open_page(browser, 1920, 1080) as page, Lab(folder, page) as lab:
        lab.show(notebook.name)
        yield page


@pytest.fixture
def deck(page):
    """The page as the room sees it, on its first slide."""
    page.locator(".jp-MarkdownCell").first.click()
    page.locator('.jp-NotebookPanel-toolbar [data-jp-item-name="deck"] jp-button').click()
    wait_for(page, FIRST)
    yield page
    if page.locator("body[data-jp-deck-mode]").count():
        page.get_by_title("Exit Deck").click()
    page.locator("body:not([data-jp-deck-mode])").wait_for(state="attached")


def wait_for(page, cells):
    """Wait until exactly these cells are shown."""
    wait_until(lambda: page.evaluate(SHOWN) == cells, f"cells {cells}")


def press(page, key, cells):
    """Press a key and see what it shows."""
    page.keyboard.press(key)
    wait_for(page, cells)


def lose_focus(page):
    """Click on empty space, as lecturers do."""
    page.mouse.click(960, 1070)
    wait_until(lambda: page.evaluate("document.activeElement === document.body"), "the focus to be lost")


def test_a_clicker_turns_the_pages(deck):
    for cells in (SECOND, SECOND, STEP, THIRD):  # each cell is a stop, also where nothing new is shown
        press(deck, "PageDown", cells)
    press(deck, "PageUp", STEP)


def test_after_a_click_on_empty_space_every_key_works(deck):
    keys = [("Space", SECOND), ("Shift+Space", FIRST), ("ArrowRight", SECOND), ("ArrowLeft", FIRST)]
    keys += [("PageDown", SECOND), ("ArrowDown", SECOND), ("ArrowDown", STEP), ("ArrowUp", SECOND)]
    for key, cells in keys:
        lose_focus(deck)
        press(deck, key, cells)
    lose_focus(deck)
    deck.keyboard.press("Escape")
    deck.locator("body:not([data-jp-deck-mode])").wait_for(state="attached")


def test_what_is_typed_into_a_cell_stays_there(deck):
    press(deck, "PageDown", SECOND)
    line = deck.locator(".jp-CodeCell .cm-line").first
    line.click()
    for key in ("End", "Space", "ArrowLeft", "#"):
        deck.keyboard.press(key)
    wait_until(lambda: line.inner_text() == "1 + 1# ", "the line")
    assert deck.evaluate(SHOWN) == SECOND


def test_type_is_as_large_as_a_room_needs(deck):
    press(deck, "PageDown", SECOND)
    assert deck.get_by_role("paragraph").evaluate(TYPE) >= 28
    assert deck.locator(".jp-CodeCell .cm-line").first.evaluate(TYPE) >= 26


def test_no_code_shows_only_the_output(deck):
    press(deck, "PageDown", SECOND)
    press(deck, "ArrowDown", SECOND)
    press(deck, "ArrowDown", STEP)
    assert deck.get_by_text("42").is_visible()
    assert deck.locator(".jp-CodeCell .jp-Cell-inputWrapper:visible").count() == 1
