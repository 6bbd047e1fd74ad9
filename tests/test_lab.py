"""The widgets in a real JupyterLab with a live kernel: every control answers, and only its own widget."""

import pytest
from jupyter_lab import Lab, open_browser, open_page
from live import wait_until

from linformer_from_scratch.course import widgets

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NAMES = widgets.__all__
NOTEBOOK = ["from linformer_from_scratch.widgets import *"]
QUIZ = "from linformer_from_scratch.exercises import quiz\nquiz('04')"
NOTEBOOK += [line for name in NAMES for line in (f"one = {name}()\none", f"{name}()")]  # twins


# Slow, once: JupyterLab starts, and every widget draws twice. What a reader does is seen nowhere else.
@pytest.fixture(scope="module")
def lab(chromium, tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    with open_browser(chromium) as browser, open_page(browser) as page, Lab(folder, page) as lab:
        lab.open("widgets.ipynb", NOTEBOOK)
        yield lab


@pytest.mark.parametrize("name", NAMES)
def test_every_control_answers_and_the_twin_stays_as_it_was(lab, name):
    cell = 1 + 2 * NAMES.index(name)
    moved, twin = lab.widget(cell), lab.widget(cell + 1)
    assert moved.words() == twin.words()
    untouched = twin.state()
    for label, control in moved.controls().items():
        before = moved.after(moved.root.get_by_role("button", name="Reset").click)
        for move in moved.moves(label, control).values():
            if moved.after(move) != before:
                break
        assert moved.state() != before, f"{label} moves nothing"
    assert twin.state() == untouched


def test_the_kernel_knows_what_the_hand_did(lab):
    sources = ["slider = RankSlider(layer=4)\nslider", "print(slider, slider.words)"]
    lab.open("kernel.ipynb", [NOTEBOOK[0], *sources])
    slider = lab.widget(1)
    slider.root.get_by_label("Rank r", exact=True).press("ArrowRight")
    wait_until(lambda: "Rank 9" in slider.words(), "the picture")
    assert lab.run(2) == f"RankSlider(rank=9, layer=4) {slider.words()}"


def test_ones_own_sentence_is_read_by_the_kernel_and_a_bad_one_is_said(lab):
    lab.open("sentence.ipynb", [NOTEBOOK[0], "AttentionExplorer()"])
    explorer = lab.widget(1)
    before = explorer.state()
    field = explorer.root.get_by_role("textbox")
    field.fill("My dog sleeps because it is old.")
    field.press("Enter")
    explorer.root.get_by_text("dog").first.wait_for()
    words, picture = explorer.state()
    assert (words, picture) != before
    field.fill("")
    field.press("Enter")
    explorer.root.get_by_text("Your text is empty").wait_for()
    assert explorer.picture() == picture


def test_this_machine_is_measured_by_the_kernel(lab):
    lab.open("device.ipynb", [NOTEBOOK[0], "model = CostModel(show='seconds')\nmodel", "print(model.words)"])
    model = lab.widget(1)
    devices = model.root.get_by_label("Device")
    others = devices.locator("option").all_inner_texts()
    assert others[0] != "the machine that ran this notebook"
    devices.select_option(label="the machine that ran this notebook")
    wait_until(lambda: "on the machine that ran this notebook" in model.words(), "the two ceilings")
    assert lab.run(2) == model.words()


def test_the_page_asks_nothing_of_the_internet_and_its_console_is_clean(lab):
    assert (lab.page.outside, lab.page.complaints) == ([], [])


def test_a_slider_stays_live_in_a_deck(lab):
    """Teaching with jupyterlab-slideshow: run all, select the first cell, press the deck button, go on."""
    sources = ["# One", NOTEBOOK[0], "# Two", "RankSlider()"]
    lab.open("deck.ipynb", sources, ["slide", "skip", "slide", None])
    page, widget = lab.page, lab.widget(1)
    page.locator(".jp-MarkdownCell").first.click()
    page.locator('.jp-NotebookPanel-toolbar [data-jp-item-name="deck"] jp-button').click()
    page.locator("body[data-jp-deck-mode=presenting]").wait_for(state="attached")
    assert not widget.root.is_visible()
    page.keyboard.press("Space")
    widget.root.wait_for(state="visible")
    before = widget.state()
    widget.root.get_by_label("Rank r", exact=True).press("ArrowRight")
    wait_until(lambda: widget.state() != before, "a change")
    assert page.outside == []


def test_a_widget_lives_as_long_as_its_kernel_and_leaves_its_still(lab, tmp_path):
    """And so does a quiz, whose questions still open."""
    with open_page(lab.page.context.browser) as page:
        with Lab(tmp_path, page) as lab:
            lab.open("session.ipynb", [NOTEBOOK[0], "RankSlider()", QUIZ])
            lab.widget(1).root.wait_for()
            with page.expect_response(lambda answer: answer.request.method == "PUT"):
                page.keyboard.press("Control+s")
            lab.show("session.ipynb")
            lab.widget(1).root.wait_for()
        with Lab(tmp_path, page) as lab:
            lab.show("session.ipynb")
            page.locator(".jp-OutputArea img").wait_for()
            page.locator(".jp-OutputArea details").first.wait_for()
            assert page.locator(".lw").count() == page.get_by_text("model not found").count() == 0
