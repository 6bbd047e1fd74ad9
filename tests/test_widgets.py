"""Widgets moved from Python: the numbers are the model's, the picture follows, and nothing is shared."""

from io import BytesIO

import matplotlib
import nbformat
import numpy as np
import pytest
from ipywidgets import IntSlider
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from PIL import Image

from linformer_from_scratch.plots import QUERY
from linformer_from_scratch.widgets.canvas import (
    DENSITY,
    Card,
    quick_png,
    shorten,
    small_png,
    swing,
    text_width,
    tint,
    wrap,
)
from linformer_from_scratch.widgets.explorer import CannotDraw, Explorer


def pixels(png):
    return np.asarray(Image.open(BytesIO(png)).convert("RGB"))


class Squares(Explorer):
    """The smallest widget: one slider, one square."""

    def __init__(self):
        self.n, self.m = IntSlider(3, 1, 9, description="n"), IntSlider(0, 0, 9, description="m")
        self.drawn = 0
        super().__init__([self.n, self.m])

    def draw(self):
        self.drawn += 1
        self.m.value = self.n.value
        if self.n.value == 7:
            raise CannotDraw("seven is too much")
        card = Card(120, 80)
        card.box((10, 10, 10 + 5 * self.n.value, 20), fill=QUERY)
        return card.image, f"{self.n.value} < 10 " * 9


# The base


def test_a_move_draws_once_even_if_drawing_sets_another_control():
    widget = Squares()
    widget.n.value = 5
    assert (widget.drawn, widget.m.value) == (2, 5)


def test_what_cannot_be_drawn_is_said_and_the_picture_stays():
    widget = Squares()
    before = widget.picture.value
    widget.n.value = 7
    assert widget.picture.value == before
    assert "seven is too much" in widget.readout.value
    widget.n.value = 8
    assert widget.picture.value != before


def test_the_readout_shows_its_words_and_not_their_markup():
    assert "3 &lt; 10" in Squares().readout.value


def test_a_control_without_a_label_is_refused():
    with pytest.raises(ValueError, match="IntSlider of Explorer has no description"):
        Explorer([IntSlider()])


def test_the_still_is_the_live_picture_with_the_numbers_beneath():
    widget = Squares()
    live, still = pixels(widget.picture.value), pixels(widget.still())
    assert still.shape[1] == live.shape[1]
    assert (still[: len(live)] == live).all()
    below = still[len(live) :]
    assert below.min() < 100  # ink
    assert below.mean() > 200  # on white
    widget.words = " ".join([widget.words] * 3)
    assert len(pixels(widget.still())) > len(still)  # wrapped, not cut


def test_an_exported_page_shows_the_still():
    code = "from linformer_from_scratch.widgets import AttentionExplorer; AttentionExplorer()"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, timeout=120, store_widget_state=False).execute()
    page, _ = HTMLExporter().from_notebook_node(notebook)
    png = notebook.cells[0].outputs[0].data["image/png"]
    assert page.count("".join(png.split())) == 1
    assert "widget-view" not in page


# The card


def test_a_heat_map_has_queries_down_keys_across_and_white_for_zero():
    card = Card(70, 30)
    weights = np.zeros((3, 7))
    weights[0, 6], weights[2, 1] = 1.0, 0.5
    card.heatmap((0, 0, 70, 30), weights)
    cells = np.asarray(card.image)[10::20, 10::20]  # the middles of cells of 10 CSS pixels
    blues = matplotlib.colormaps["Blues"]
    assert cells.shape == (3, 7, 3)
    assert cells[0, 6].tolist() == list(blues(255, bytes=True)[:3])
    assert cells[2, 1].tolist() == list(blues(128, bytes=True)[:3])
    assert cells[1].min() >= 247  # white, as nearly as Blues begins


def test_a_heat_map_of_signed_numbers_is_clipped_at_its_limits():
    card = Card(20, 10)
    card.heatmap((0, 0, 20, 10), [[-5.0, 5.0]], limits=(-1, 1), colours="RdBu")
    ends = [list(matplotlib.colormaps["RdBu"](i, bytes=True)[:3]) for i in (0, 255)]
    assert np.asarray(card.image)[10, [10, 30]].tolist() == ends


def test_lines_are_smooth_and_as_wide_as_they_say():
    card = Card(60, 40)
    card.lines((0, 0, 60, 40), [([(0, 20), (60, 20)], "#000000", 6)])
    assert (np.asarray(card.image)[:, 60, 0] < 128).sum() == pytest.approx(6 * DENSITY, abs=1)
    card.lines((0, 0, 60, 40), [([(0, 0), (60, 40)], "#000000", 1)])
    assert len(np.unique(np.asarray(card.image))) > 2  # greys: smooth edges


def test_a_swing_leaves_and_arrives_horizontally():
    points = swing((10, 5), (50, 85))
    assert points[0].tolist() == [10, 5]
    assert points[-1].tolist() == [50, 85]
    assert points[len(points) // 2].tolist() == [30, 45]
    steps = np.abs(np.diff(points[:, 1]))
    assert max(steps[0], steps[-1]) < steps.max() / 5


def test_a_tint_of_nothing_is_white():
    assert [tint("#2F6DB5", strength) for strength in (0, 1)] == ["#ffffff", "#2f6db5"]


def test_text_is_shortened_and_wrapped_to_its_width():
    words = "attention weights of a real sentence"
    assert shorten(words, 15, 1000) == words
    short = shorten(words, 15, 90)
    assert short.endswith("…")
    assert 60 < text_width(short, 15) <= 90
    lines = wrap(words, 15, 90)
    assert " ".join(lines) == words
    assert len(lines) > 2
    assert all(text_width(line, 15) <= 90 for line in lines)


def test_slanted_words_climb_to_the_right():
    card = Card(100, 100)
    card.slanted(20, 90, "climbing", 15)
    rows, columns = np.nonzero(np.asarray(card.image)[..., 0] < 128)
    assert np.corrcoef(rows, columns)[0, 1] < -0.8


@pytest.mark.parametrize("encode", [quick_png, small_png])
def test_png_bytes_hold_every_pixel(encode):
    noise = np.random.default_rng(0).integers(0, 256, (11, 13, 3), dtype=np.uint8)
    assert (pixels(encode(Image.fromarray(noise))) == noise).all()
