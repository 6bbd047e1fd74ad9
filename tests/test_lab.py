"""The widgets in a real JupyterLab with a live kernel: every control answers, and only its own widget."""

import pytest
from lab import Lab, open_browser, open_page

pytestmark = pytest.mark.browser

NOTEBOOK = [
    "from linformer_from_scratch.widgets import *",
    "AttentionExplorer()",
    "AttentionExplorer()",
    "HeadGallery()",
    "HeadGallery()",
    "RankSlider()",
    "RankSlider()",
    "HeadPicker()",
    "HeadPicker()",
    "CostModel(show='floor of the time')",
    "CostModel(show='floor of the time')",
    "JLExplorer()",
    "JLExplorer()",
    "ProjectionExplorer()",
    "ProjectionExplorer()",
    "ProjectionRace()",
    "ProjectionRace()",
    "LengthExplorer()",
    "LengthExplorer()",
    "FamilyExplorer()",
    "FamilyExplorer()",
    "WireExplorer()",
    "WireExplorer()",
]


def slider(label, where):
    """Move a slider by key, then by a click on its track."""
    return [
        (label, lambda widget, label: widget.press(label, "ArrowRight")),
        (label, lambda widget, label: widget.click(label, where)),
    ]


def menu(label, option):
    """Choose from a menu by key, then by number."""
    return [
        (label, lambda widget, label: widget.press(label, "Space", "ArrowDown", "Enter")),
        (label, lambda widget, label: widget.choose(label, option)),
    ]


def tick(widget, label):
    """Tick a box by key."""
    widget.control(label).get_by_role("checkbox", name=label).focus()
    widget.page.keyboard.press("Space")


HEADS = [*slider("Layer", 0.1), *slider("Head", 0.8)]
SENTENCE = [
    *menu("Preset", 5),
    ("Sentence", lambda widget, label: widget.type(label, "My dog sleeps because it is old.")),
    *slider("Query token", 0.3),
    *HEADS,
]
MOVES = {  # the cell of the first of two twins -> what is moved
    1: SENTENCE + slider("Temperature", 0.1),
    3: SENTENCE,
    5: [*slider("Rank r", 0.5), *slider("Temperature", 0.2), *HEADS, *menu("Map", 3)],
    7: [*HEADS, *slider("Threshold", 0.3), *menu("Text", 4)],
    9: [
        *slider("Tokens n", 0.2),
        *slider("Slots k", 0.2),
        *slider("d_model", 0.8),
        *slider("Heads", 0.2),
        *slider("Batch", 0.8),
        *menu("Linformer", 2),
        *menu("Numbers", 0),
        *menu("Device", 3),
        *menu("Show", 0),
    ],
    11: [
        *slider("Keep k", 0.9),
        *slider("Dimension n", 0.2),
        *slider("ε", 0.7),
        *slider("Vectors N", 0.2),
        *slider("Dice", 0.7),
    ],
    13: [*menu("Map", 3), *menu("E and F", 3), *slider("Slots k", 0.1)],
    15: [*menu("Map", 2), *slider("Seeds", 0.2)],
    17: [*slider("Edit token", 0.1), *slider("Tokens n", 0.3)],
    19: [*menu("Map", 2), *menu("Relative", 1), *slider("Keys a query", 0.9)],
    21: [
        *slider("Ranks P", 0.9),
        *slider("Tokens n", 0.1),
        *slider("Slots k", 0.1),
        *slider("d_model", 0.1),
        ("E = F", tick),
    ],
}


# Slow, once: JupyterLab starts, and twenty-two widgets draw. What a reader does is seen nowhere else.
@pytest.fixture(scope="module")
def lab(chromium, tmp_path_factory):
    with (
        open_browser(chromium) as browser,
        open_page(browser) as page,
        Lab(tmp_path_factory.mktemp("lab"), page) as lab,
    ):
        lab.open("widgets.ipynb", NOTEBOOK)
        yield lab


@pytest.mark.parametrize(("cell", "moves"), MOVES.items())
def test_every_control_answers_and_the_twin_stays_as_it_was(lab, cell, moves):
    moved, twin = lab.widget(cell), lab.widget(cell + 1)
    assert moved.state() == twin.state()
    before = untouched = twin.state()
    for label, move in moves:
        move(moved, label)
        before = moved.wait_for_change(before)
    assert twin.state() == untouched


def test_a_sentence_that_cannot_be_shown_is_said_and_the_picture_stays(lab):
    widget = lab.widget(2)
    picture, _ = widget.state()
    widget.type("Sentence", "")
    widget.cell.get_by_text("The sentence is empty").wait_for()
    assert widget.picture() == picture


def test_the_page_asks_nothing_of_the_internet(lab):
    assert lab.page.outside == []


def test_the_console_is_clean(lab):
    assert lab.page.complaints == []


def test_a_slider_stays_live_in_a_deck(lab):
    """Teaching with jupyterlab-slideshow: run all, select the first cell, press the deck button, go on."""
    sources = ["# One", NOTEBOOK[0], "# Two", NOTEBOOK[1]]
    lab.open("deck.ipynb", sources, ["slide", "skip", "slide", None])
    page, widget = lab.page, lab.widget(1)
    page.locator(".jp-MarkdownCell").first.click()
    page.locator('.jp-NotebookPanel-toolbar [data-jp-item-name="deck"] jp-button').click()
    page.locator("body[data-jp-deck-mode=presenting]").wait_for(state="attached")
    assert not widget.image.is_visible()
    page.keyboard.press("Space")
    widget.image.wait_for(state="visible")
    before = widget.state()
    widget.press("Head", "ArrowRight")
    widget.wait_for_change(before)
    assert page.outside == []
