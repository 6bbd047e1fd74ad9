"""The reader's own text in Python: five widgets show what the model makes of it, or say why not."""

import pytest
from live import SCRIPTS
from torch.testing import assert_close

from linformer_from_scratch import pretrained
from linformer_from_scratch.course import widgets
from linformer_from_scratch.course.widgets.live import CannotDraw
from linformer_from_scratch.course.widgets.reading import LEAST, MOST
from linformer_from_scratch.pretrained import attention_maps

OWN = "My dog sleeps because it is old and tired of running after the cat."
LONG = "word " * 3000
TEXTS = widgets.RankSlider, widgets.HeadPicker, widgets.ProjectionExplorer
SENTENCES = widgets.AttentionExplorer, widgets.HeadGallery
REFUSED = {  # kinds -> text -> why it cannot be read
    TEXTS: {" ": "text is empty", "hi": f"3 tokens; at least {LEAST}"},
    SENTENCES: {"": "text is empty", "  ": "text is empty", "\u200b": "2 tokens; at least 3"},
}


def shown_map(widget):
    return widget.P if hasattr(widget, "P") else widget.map


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("text", [OWN, LONG])
def test_a_readers_text_is_read_by_the_model_up_to_the_most_tokens(kind, text):
    widget = kind(text=text)
    tokens, maps = attention_maps(text, MOST)
    at = widget.head.split(".") if kind is widgets.ProjectionExplorer else (widget.layer, widget.head)
    layer, head = map(int, at)
    assert_close(shown_map(widget).float(), maps[layer - 1, head - 1], atol=2e-2, rtol=0)
    assert widget.facts["tokens"][text] == tokens
    assert widget.data[text]["shape"] == [3, 6, 12, len(tokens), 32]
    assert f" {len(tokens)}" in widget.words and widget.still()


@pytest.mark.parametrize("kind", TEXTS + SENTENCES)
def test_a_long_text_is_told_its_whole_length_and_how_much_of_it_is_shown(kind):
    widget, most = kind(**{kind.reads["trait"]: LONG}), 40 if kind in SENTENCES else MOST
    assert widget.words.startswith(f"Your text has 3,002 tokens; this picture shows the first {most}. ")
    assert len(shown_map(widget)) == most == len(widget.facts["tokens"][LONG])
    if kind is widgets.RankSlider:
        assert not type(widget)(text=LONG, preset="local").words.startswith("Your")


@pytest.mark.parametrize("kind", [widgets.RankSlider, widgets.AttentionExplorer])
@pytest.mark.parametrize("text", SCRIPTS)
def test_a_word_that_the_vocabulary_lacks_is_shown_as_it_is_and_called_unknown(kind, text):
    widget, unknown = kind(**{kind.reads["trait"]: text}), SCRIPTS[text]
    tokens = widget.facts["tokens"][text]
    assert widget.facts["unknown"] == unknown and set(unknown) < set(tokens) and "[UNK]" not in tokens
    named = ", ".join([*(f"“{word}”" for word in unknown[:5]), *(["…"] if len(unknown) > 5 else [])])
    assert widget.words.startswith(f"Unknown to the model: {named}. ") and widget.still()


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [(kind, *one) for kinds, texts in REFUSED.items() for kind in kinds for one in texts.items()],
)
def test_a_text_that_cannot_be_read_is_refused_in_a_sentence_and_the_last_stays(kind, text, said):
    trait = kind.reads["trait"]
    widget = kind(**{trait: OWN})
    before = shown_map(widget)
    setattr(widget, trait, text)
    assert said in widget.refused and widget.facts["refused"] == {text: widget.words}
    assert_close(shown_map(widget), before)
    assert OWN in widget.data  # the browser shows it still
    setattr(widget, trait, next(iter(widget.choices[trait])))
    assert widget.words == kind().words and widget.facts["refused"] == {}


@pytest.mark.parametrize("kind", [widgets.ProjectionExplorer, *SENTENCES])
def test_without_the_package_its_own_texts_show_and_others_say_what_to_install(kind, without_the_package):
    widget = kind()
    before = shown_map(widget)
    setattr(widget, kind.reads["trait"], OWN)
    assert "Only the texts of the menu can be shown" in widget.words and pretrained.INSTALL in widget.words
    assert_close(shown_map(widget), before)


@pytest.mark.parametrize(("module", "heads"), [("rank_slider", "real_heads"), ("head_picker", "analysed")])
def test_without_the_pretrained_model_one_sentence_says_so(module, heads, without_the_package, monkeypatch):
    module = getattr(widgets, module)
    for name in (heads, "facts", "data"):
        monkeypatch.setattr(module, name, getattr(module, name).__wrapped__)
    widget = widgets.RankSlider() if module is widgets.rank_slider else widgets.HeadPicker()
    assert widget.caption() == widget.facts["missing"]
    assert "needs the pretrained model: " in widget.caption() and pretrained.INSTALL in widget.caption()
    with pytest.raises(CannotDraw):
        widget.figure()
    assert widget.still().startswith(b"\x89PNG") and not {"queries", "sigma"} & widget.data.keys()
    if module is widgets.rank_slider:
        widget.preset = "local"
        assert "Rank 8 of 128" in widget.words
