"""Widgets moved from Python: the numbers are the model's, the picture follows, and nothing is shared."""

import math
from io import BytesIO

import matplotlib
import nbformat
import numpy as np
import pytest
import torch
from ipywidgets import IntSlider
from moves import report_moves
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from PIL import Image, ImageColor
from torch.testing import assert_close

from linformer_from_scratch import pretrained
from linformer_from_scratch.plots import QUERY
from linformer_from_scratch.pretrained import SENTENCES, AttentionMaps, attention_maps
from linformer_from_scratch.widgets import AttentionExplorer, HeadGallery
from linformer_from_scratch.widgets import sentence as sentence_module
from linformer_from_scratch.widgets.attention_explorer import reheat
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

OWN = "My dog sleeps because it is old."
LONG = "word " * 57  # 59 tokens with [CLS] and [SEP]
BOTH = pytest.mark.parametrize("widget_class", [AttentionExplorer, HeadGallery])


def pixels(png):
    return np.asarray(Image.open(BytesIO(png)).convert("RGB"))


def state(widget):
    return widget.picture.value, widget.readout.value


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


@BOTH
def test_every_control_has_a_label(widget_class):
    controls = widget_class().children[0].children
    assert len(controls) >= 5
    assert all(control.description for control in controls)


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


def test_a_notebook_gets_the_widget_a_still_and_constant_words():
    widget = AttentionExplorer()
    bundle, metadata = widget._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == widget.model_id
    assert bundle["image/png"] == widget.still()
    assert bundle["text/plain"] == "AttentionExplorer"
    assert metadata["image/png"] == {
        "width": pixels(widget.still()).shape[1] // DENSITY,
        "alt": widget.words,
    }
    widget.head.value = 9
    moved, _ = widget._repr_mimebundle_()
    assert moved["text/plain"] == bundle["text/plain"]
    assert moved["image/png"] != bundle["image/png"]


def test_an_exported_page_shows_the_still():
    code = "from linformer_from_scratch.widgets import AttentionExplorer; AttentionExplorer()"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, timeout=120, store_widget_state=False).execute()
    page, _ = HTMLExporter().from_notebook_node(notebook)
    png = notebook.cells[0].outputs[0].data["image/png"]
    assert page.count("".join(png.split())) == 1
    assert "widget-view" not in page


# On a real sentence


def test_the_explorer_opens_where_a_pronoun_reads_its_noun():
    explorer = AttentionExplorer()
    tokens, maps = attention_maps(SENTENCES[0])
    assert explorer.tokens == tokens
    assert_close(explorer.map, maps[3, 1])  # layer 4, head 2
    assert_close(explorer.weights, maps[3, 1, tokens.index("it")])
    assert tokens[int(explorer.weights.argmax())] == "bank"
    assert explorer.weights.max() > 0.5
    assert f"{explorer.weights.max():.2f}" in explorer.words


def test_the_entropy_is_that_of_the_weights():
    explorer = AttentionExplorer()
    by_hand = -sum(w * math.log2(w) for w in explorer.weights.tolist())
    assert explorer.entropy == pytest.approx(by_hand, abs=1e-5)
    assert f"{by_hand:.2f} bits of at most log₂ 14 = 3.81" in explorer.words


@BOTH
def test_layer_head_and_query_choose_the_models_numbers(widget_class):
    widget = widget_class()
    widget.layer.value, widget.head.value, widget.query.value = 6, 11, 3
    assert_close(widget.map, attention_maps(SENTENCES[0]).weights[5, 10])
    assert "“raised” reads" in widget.words


def test_temperature_divides_the_scores():
    scores = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    for temperature in (0.1, 1.0, 3.0):
        expected = (scores / temperature).softmax(dim=-1)
        assert_close(reheat(scores.softmax(dim=-1), temperature), expected)


def test_temperature_leaves_a_weight_of_zero_at_zero():
    assert reheat(torch.tensor([0.0, 0.25, 0.75]), 0.5).tolist() == pytest.approx([0, 0.1, 0.9])


def test_entropy_rises_with_temperature_towards_log2_n():
    explorer = AttentionExplorer()
    entropies = []
    for temperature in (0.1, 1, 10):
        explorer.temperature.value = temperature
        entropies.append(explorer.entropy)
    assert entropies == sorted(entropies)
    assert entropies[0] < 0.01
    assert 3.6 < entropies[-1] < math.log2(14)


@BOTH
def test_every_control_changes_its_own_picture_and_numbers_only(widget_class):
    widget, twin = widget_class(), widget_class()
    assert state(widget) == state(twin)
    untouched = state(twin)
    moves = {"preset": SENTENCES[4], "sentence": OWN, "query": 2, "layer": 2, "head": 5}
    if widget_class is AttentionExplorer:
        moves["temperature"] = 0.4
    assert len(moves) == len(widget.children[0].children)
    for name, value in moves.items():
        before = state(widget)
        getattr(widget, name).value = value
        picture, readout = state(widget)
        assert picture != before[0], name
        assert readout != before[1], name
    assert state(twin) == untouched


@BOTH
def test_a_learners_own_sentence_is_read_by_the_model(widget_class):
    widget = widget_class(OWN)
    tokens, maps = attention_maps(OWN)
    assert widget.tokens == tokens
    assert widget.preset.label == "your own sentence"
    assert tokens[widget.query.value] == "it"  # the word looked at before
    assert_close(widget.map, maps[3, 1])


def test_a_preset_fills_the_field_and_typing_a_preset_selects_it():
    explorer = AttentionExplorer()
    explorer.preset.value = SENTENCES[2]
    assert explorer.sentence.value == SENTENCES[2]
    explorer.sentence.value = OWN
    assert explorer.preset.label == "your own sentence"
    explorer.sentence.value = SENTENCES[1]
    assert explorer.preset.value == SENTENCES[1]


@BOTH
@pytest.mark.parametrize(
    ("words", "said"),
    [("", "sentence is empty"), ("  ", "sentence is empty"), (LONG, "59 tokens; up to 40 can")],
)
def test_an_empty_or_long_sentence_is_refused_in_a_sentence_and_the_picture_stays(widget_class, words, said):
    widget = widget_class()
    picture = widget.picture.value
    widget.sentence.value = words
    assert said in widget.readout.value
    assert widget.picture.value == picture
    widget.preset.value = SENTENCES[0]
    assert state(widget) == state(widget_class())


def test_forty_tokens_fit():
    explorer = AttentionExplorer("word " * 38)
    assert len(explorer.tokens) == 40
    assert "“word” reads" in explorer.readout.value


def test_one_word_fits():
    assert AttentionExplorer("Hello").tokens == ["[CLS]", "hello", "[SEP]"]


@BOTH
def test_without_the_package_presets_show_and_other_sentences_say_what_to_install(widget_class, monkeypatch):
    monkeypatch.setattr(pretrained.weights, "model_folder", lambda: None)
    monkeypatch.setattr(pretrained.tokens, "tokenizer", pretrained.tokens.tokenizer.__wrapped__)
    pretrained.tokens.vocabulary.cache_clear()
    widget = widget_class()
    assert "“it” reads “bank”" in widget.readout.value
    picture = widget.picture.value
    widget.sentence.value = OWN
    assert "Only the presets can be shown" in widget.readout.value
    assert pretrained.INSTALL in widget.readout.value
    assert widget.picture.value == picture


def test_damaged_weights_are_said(monkeypatch):
    def damaged(sentence):
        raise ValueError("model.safetensors has SHA-256 12, expected 53")

    explorer = AttentionExplorer()
    monkeypatch.setattr(sentence_module, "attention_maps", damaged)
    explorer.sentence.value = OWN
    assert "SHA-256 12, expected 53" in explorer.readout.value
    from_the_start = AttentionExplorer()
    assert "SHA-256 12, expected 53" in from_the_start.readout.value
    assert pixels(from_the_start.still()).min() < 100  # and in the still


def test_the_querys_row_is_outlined():
    explorer = AttentionExplorer()
    query = np.array(ImageColor.getrgb(QUERY))
    x = 562 * DENSITY - 2  # just left of the map

    def outlined():
        column = (pixels(explorer.picture.value)[:, x] == query).all(axis=1)
        return np.flatnonzero(column).mean() / DENSITY

    explorer.query.value = 0
    first = outlined()
    explorer.query.value = 5
    assert outlined() - first == pytest.approx(5 * 364 / 14, abs=1)


# Heads side by side


def show_heads(monkeypatch, heads, tokens):
    """A gallery of hand-made maps (n, n), the same in every layer."""
    weights = torch.stack([heads[i % len(heads)] for i in range(12)]).expand(6, 12, -1, -1)
    monkeypatch.setattr(sentence_module, "attention_maps", lambda text: AttentionMaps(tokens, weights))
    return HeadGallery()


def test_shares_and_entropies_of_maps_made_by_hand(monkeypatch):
    tokens = ["[CLS]", "a", "b", "c", "[SEP]"]
    itself, uniform = torch.eye(5), torch.full((5, 5), 0.2)
    previous = torch.eye(5).roll(-1, dims=1)  # row i has its one in column i - 1; row 0 in the last
    gallery = show_heads(monkeypatch, [itself, previous, uniform], tokens)
    where = list(gallery.shares)
    gallery.head.value = 1
    assert list(gallery.shares.values()) == pytest.approx([0, 1, 0, 2 / 5])
    gallery.head.value = 2
    assert gallery.shares[where[0]] == 1
    assert gallery.shares[where[1]] == 0
    gallery.head.value = 3
    assert list(gallery.shares.values()) == pytest.approx([0.2, 0.2, 0.2, 0.4])
    assert gallery.entropies[:3] == pytest.approx([0, 0, math.log2(5)])
    assert "20% to the previous token, 20% to itself, 20% to the next token, 40% to [CLS]" in gallery.words


def test_the_next_token_is_told_from_the_previous(monkeypatch):
    following = torch.eye(5).roll(1, dims=1)
    gallery = show_heads(monkeypatch, [following], ["[CLS]", "a", "b", "c", "[SEP]"])
    assert gallery.shares["the next token"] == 1
    assert gallery.shares["the previous token"] == 0


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


@BOTH
def test_report_of_milliseconds_a_move(widget_class, record_property):
    for words in (SENTENCES[0], "word " * 34):
        widget = widget_class(words)
        name = f"{widget_class.__name__}, {len(widget.tokens)} tokens"
        widget.head.value = 1
        report_moves(record_property, name, widget, widget.head, [*range(2, 13), *range(11, 0, -1)])
