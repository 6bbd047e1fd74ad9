"""What all widgets share: bounds, numbers sent once, a still with its words, pages without a kernel."""

import json
import re
from io import BytesIO

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
import traitlets
from comm import DummyComm
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from nbconvert.exporters import get_exporter
from test_plots import contrast

from linformer_from_scratch.course import widgets
from linformer_from_scratch.course.widgets import RankSlider
from linformer_from_scratch.course.widgets.colours import PALETTE
from linformer_from_scratch.course.widgets.live import HERE, CannotDraw, LiveWidget, packed
from linformer_from_scratch.course.widgets.page import embedded, page, widget_in

KINDS = [getattr(widgets, name) for name in widgets.__all__]
MOST_BYTES = 1_500_000  # that a widget sends

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


# State


def test_an_unknown_control_is_named_with_those_there_are():
    with pytest.raises(TypeError, match="RankSlider has no control 'rnk'; it has preset, text, rank"):
        RankSlider(rnk=3)


def test_a_value_out_of_bounds_is_refused_with_both_numbers():
    with pytest.raises(traitlets.TraitError, match=r"(?s)128.*200"):
        RankSlider(rank=200)
    with pytest.raises(traitlets.TraitError, match=r"'shuffled'.*'none'"):
        RankSlider(preset="none")
    with pytest.raises(traitlets.TraitError, match=r"'temperature'.*nan"):
        RankSlider(temperature=float("nan"))


BLOCKS = (
    "“it” attends to 3 slots (26%) and 4 tokens (74%); 0% goes to the future. "
    "The head is off by 29%. Its layer keeps 7,680 numbers (exact: 18,432)."
)
DECISION = (
    "512 tokens, one text at a time, CPU of the course, one machine: take fused exact attention, as it is."
)
WIRE = (
    "131,072 tokens on 8 ranks: Linformer sends 1.84 MB, ring attention 256 times as much, Ulysses 64 times "
    "as much. Linformer sends less than both above n = 2,048, as here."
)


@pytest.mark.parametrize(
    ("kind", "start", "opening", "words"),
    [
        (widgets.BlockExplorer, {"edit": "2"}, ("0", "5.6", 13), BLOCKS),
        (widgets.DecisionExplorer, {}, (512, 1, 1, "CPU of the course", False, False), DECISION),
        (widgets.WireExplorer, {}, (8, 131072, 256, 1024, False), WIRE),
    ],
)
def test_it_opens_with_these_values_and_says_these_words(kind, start, opening, words):
    widget = kind(**start)
    assert (tuple(widget.defaults.values()), widget.words) == (opening, words)


def test_reset_returns_to_how_it_was_made():
    widget = RankSlider(rank=3)
    widget.rank = 5
    assert widget.opening["rank"] == 3 and widget.defaults["rank"] == 8


@every_kind
def test_what_is_sent_is_small_and_every_menu_has_its_words(kind):
    widget = kind()
    assert sum(len(array["bytes"]) for array in widget.data.values()) <= MOST_BYTES
    json.dumps(widget.facts)
    for name, choices in widget.menus().items():
        trait = kind.class_traits()[name]
        assert widget.defaults[name] in choices
        assert not isinstance(trait, traitlets.Enum) or list(choices) == list(trait.values)


@every_kind
def test_a_notebook_gets_all_the_facts(kind, monkeypatch):
    sent = []

    def publish(_, __, data=None, **___):
        if "facts" in (data or {}).get("state", {}):
            sent.append(json.dumps(data["state"]["facts"], default=str))  # as it is now

    monkeypatch.setattr(DummyComm, "publish_msg", publish)
    assert json.dumps(kind().facts, default=str) == sent[-1]


def test_arrays_are_packed_row_by_row_in_the_type_that_was_asked_for():
    array = packed(np.array([[1, 2, 3], [4, 5, 6.5]]).T, "float16")
    assert (array["dtype"], array["shape"]) == ("float16", [3, 2])
    assert np.frombuffer(array["bytes"], "<f2").tolist() == [1, 4, 2, 5, 3, 6.5]


# Where no script runs


@every_kind
def test_the_output_of_a_cell_is_a_widget_a_still_with_its_words_and_what_makes_it_again(kind):
    widget = kind()
    for name in widget.controls:
        trait = kind.class_traits()[name]
        if isinstance(trait, traitlets.Enum):
            setattr(widget, name, trait.values[-1])
    data, metadata = widget._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == widget.model_id
    assert metadata["image/png"]["alt"] == f"{widget.title}. {widget.words}"
    picture = plt.imread(BytesIO(data["image/png"]))
    assert picture.shape[0] > 200 and picture.shape[1] > 500 and picture.std() > 0.05
    assert eval(data["text/plain"], vars(widgets)).state() == widget.state()
    assert widget_in({"data": data, "metadata": metadata}).state() == widget.state()


class Mute(LiveWidget):
    """Nothing that it is asked for can be shown."""

    title, controls = "Mute", ()

    @classmethod
    def parts(cls):
        return ("shell",)

    def _words(self):
        raise CannotDraw("Seven is too much.")

    _figure = _words


def test_what_cannot_be_drawn_is_said_in_the_still():
    _, metadata = Mute()._repr_mimebundle_()
    assert metadata["image/png"]["alt"] == "Mute. Seven is too much."


@pytest.mark.slow
def test_a_notebook_becomes_a_page_with_the_still_and_in_our_own_export_with_the_live_widget():
    code = "from linformer_from_scratch.widgets import RankSlider; RankSlider(rank=3)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, timeout=120, store_widget_state=False).execute()
    html, _ = HTMLExporter().from_notebook_node(notebook)
    png = notebook.cells[0].outputs[0].data["image/png"]
    assert html.count("".join(png.split())) == 1
    assert "widget-view" not in html
    html, _ = get_exporter("live")().from_notebook_node(notebook)
    assert html.count('class="live-widget"') == 1 and html.count("function heatMap") == 1
    assert 'alt="A map rebuilt from its first r singular values. Rank 3 of 128' in html


# In a page


def test_a_page_holds_each_part_once_and_asks_nothing_of_others():
    html = page([RankSlider(), RankSlider(rank=2)])
    assert html.count("function heatMap") == 1
    assert html.count('class="live-widget"') == 2
    assert not re.search(r"""(?:src|href)=["']https?:""", html)


def test_nothing_in_a_state_can_end_its_script():
    sly = RankSlider()
    sly.facts = {**sly.facts, "tokens": ["</script><b>"]}
    assert embedded(sly).count("</script>") == 1


def test_an_output_without_a_widget_is_none():
    assert widget_in({"output_type": "stream", "text": "x"}) is None
    assert widget_in({"data": {"text/plain": "x"}}) is None


# Colours


@pytest.mark.parametrize("theme", PALETTE)
def test_words_are_read_on_light_and_on_dark_pages(theme):
    colours = dict(PALETTE[theme])
    papers = {"light": ["#FFFFFF"], "dark": [colours["paper"], "#111111"]}[theme]
    for name in ("ink", "grey", "query", "key", "value"):
        assert all(contrast(colours[name], paper) >= 4.5 for paper in papers), name
    assert all(contrast(colour, paper) >= 3 for colour in colours["lines"] for paper in papers)


def test_no_widget_has_colours_of_its_own():
    """Only pictures.js: a colour of its own would be unreadable on a dark page, or on a light one."""
    for path in (*HERE.glob("*.js"), HERE / "view.css"):
        literal = re.findall(r"#[0-9a-fA-F]{6}\b|#[0-9a-fA-F]{3}\b", path.read_text(encoding="utf-8"))
        assert path.name == "pictures.js" or not literal, path.name
