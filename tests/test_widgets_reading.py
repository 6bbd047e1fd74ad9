"""The reader's own text in Python: three widgets show the heads of the model on it, or say why not."""

import pytest
from torch.testing import assert_close

from linformer_from_scratch import pretrained
from linformer_from_scratch.course.widgets import HeadPicker, ProjectionExplorer, RankSlider
from linformer_from_scratch.course.widgets.reading import LEAST, MOST
from linformer_from_scratch.pretrained import attention_maps

OWN = "My dog sleeps because it is old and tired of running after the cat."
LONG = "word " * 300
EACH = pytest.mark.parametrize("kind", [RankSlider, HeadPicker, ProjectionExplorer])


def shown_map(widget):
    return widget.P if hasattr(widget, "P") else widget.map


@EACH
@pytest.mark.parametrize("text", [OWN, LONG])
def test_a_readers_text_is_read_by_the_model_up_to_the_most_tokens(kind, text):
    widget = kind(text=text)
    tokens, maps = attention_maps(text, MOST)
    at = widget.head.split(".") if kind is ProjectionExplorer else (widget.layer, widget.head)
    layer, head = map(int, at)
    assert_close(shown_map(widget).float(), maps[layer - 1, head - 1], atol=2e-2, rtol=0)
    assert widget.facts["tokens"][text] == tokens
    assert widget.data[text]["shape"] == [3, 6, 12, len(tokens), 32]
    assert f" {len(tokens)}" in widget.words and widget.still()


@EACH
@pytest.mark.parametrize(("text", "said"), [(" ", "text is empty"), ("hi", f"3 tokens; at least {LEAST}")])
def test_an_empty_or_short_text_is_refused_in_a_sentence_and_the_last_stays(kind, text, said):
    widget = kind(text=OWN)
    before = shown_map(widget)
    widget.text = text
    assert said in widget.refused and widget.facts["refused"] == {text: widget.caption()}
    assert_close(shown_map(widget), before)
    assert OWN in widget.data  # the browser shows it still
    widget.text = next(iter(widget.choices["text"]))
    assert widget.words == kind().words and widget.facts["refused"] == {}


def test_without_the_package_one_sentence_says_what_to_install(without_the_package):
    explorer = ProjectionExplorer(text=OWN)
    assert "Only the texts of the menu can be shown" in explorer.refused
    assert pretrained.INSTALL in explorer.refused
