"""Widgets 1 and 1b from Python: their numbers are the model's, for presets and for one's own sentence."""

import math
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from torch.testing import assert_close

from linformer_from_scratch.course.widgets import AttentionExplorer, HeadGallery, stills
from linformer_from_scratch.course.widgets import sentence as sentence_module
from linformer_from_scratch.course.widgets.attention_explorer import reheat
from linformer_from_scratch.course.widgets.sentence import opening_query, rounded
from linformer_from_scratch.pretrained import SENTENCES, AttentionMaps, attention_maps, stored_maps

OWN = "My dog sleeps because it is old."
BOTH = pytest.mark.parametrize("widget_class", [AttentionExplorer, HeadGallery])
ROUNDED = {"atol": 1e-3, "rtol": 1e-3}  # what float16 may change, and how the presets were stored


def received(widget):
    """Sentence -> maps as a browser makes them of what it was sent."""
    maps = {}
    for sentence, sent in widget.data.items():
        weights = torch.frombuffer(bytearray(sent["bytes"]), dtype=torch.float16).view(sent["shape"]).double()
        maps[sentence] = weights / weights.sum(dim=-1, keepdim=True)
    return maps


def showing(widget_class, heads, tokens, monkeypatch):
    """A widget of hand-made maps (n, n), head after head, the same in every layer."""
    weights = torch.stack([heads[i % len(heads)] for i in range(12)]).expand(6, 12, -1, -1)
    made = {SENTENCES[0]: rounded(AttentionMaps(tokens, weights))}
    monkeypatch.setattr(sentence_module, "presets", lambda: made)
    return widget_class()


# The explorer


def test_the_explorer_opens_where_a_pronoun_reads_its_noun():
    explorer = AttentionExplorer()
    tokens, maps = attention_maps(SENTENCES[0])
    assert explorer.tokens == tokens
    assert_close(explorer.map.float(), maps[3, 1], **ROUNDED)  # layer 4, head 2
    assert tokens[explorer.place] == "it"
    assert tokens[explorer.strongest] == "bank"
    assert explorer.words.startswith("“it” attends to “bank” most: weight 0.71.")


def test_temperature_divides_the_scores():
    scores = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    for temperature in (0.1, 1.0, 3.0):
        expected = (scores / temperature).softmax(dim=-1)
        assert_close(reheat(scores.softmax(dim=-1), temperature), expected)


@BOTH
def test_no_weight_is_rounded_to_zero_as_none_of_a_softmax_is(widget_class):
    assert (stored_maps()[SENTENCES[0]].weights == 0).any()
    assert all((maps > 0).all() for maps in received(widget_class()).values())
    assert (widget_class().maps > 0).all()


def test_a_head_is_dark_where_the_query_reads_another_word(monkeypatch):
    tokens = ["[CLS]", "a", "b", "[SEP]"]
    first, second = torch.full((4, 4), 0.25), torch.full((4, 4), 0.25)
    first[1] = torch.tensor([0.5, 0.25, 0.125, 0.125])
    second[1] = torch.tensor([0.0, 0.125, 0.75, 0.125])
    explorer = showing(AttentionExplorer, [first, second], tokens, monkeypatch)
    explorer.query = 1
    assert explorer.elsewhere[2].tolist() == pytest.approx([0.125, 0.75] * 6)
    explorer.temperature = 0.1  # of the head as it is
    assert explorer.elsewhere[2].tolist() == pytest.approx([0.125, 0.75] * 6)


# Sentence, query, layer, head


@BOTH
def test_layer_head_and_query_choose_the_models_numbers(widget_class):
    widget = widget_class(layer=6, head=11, query=3)
    assert_close(widget.map.float(), attention_maps(SENTENCES[0]).weights[5, 10], **ROUNDED)
    assert_close(widget.weights, widget.map[3])
    assert "“raised” attends to" in widget.words


@BOTH
def test_the_browser_is_sent_what_python_computes_with(widget_class):
    widget = widget_class()
    assert sum(len(sent["bytes"]) for sent in widget.data.values()) < 340_000
    for sentence, maps in received(widget).items():
        widget.sentence = sentence
        assert_close(widget.maps, maps)
        assert widget.facts["tokens"][sentence] == widget.tokens == attention_maps(sentence).tokens


@BOTH
def test_the_presets_open_at_a_word_worth_seeing(widget_class):
    widget = widget_class()
    words = [widget_class(sentence) for sentence in SENTENCES]
    assert [one.tokens[one.place] for one in words] == ["it", "it", "egg", "it", "them", "he"]
    assert [opening_query(widget.facts["tokens"][one]) for one in SENTENCES] == [one.place for one in words]


@BOTH
def test_a_learners_own_sentence_is_read_by_the_model(widget_class):
    widget = widget_class(OWN)
    tokens, maps = attention_maps(OWN)
    assert widget.tokens == tokens and tokens[widget.place] == "it"
    assert_close(widget.maps.float(), maps, **ROUNDED)
    assert_close(received(widget)[OWN], widget.maps)
    assert list(received(widget)) == [*SENTENCES, OWN]


def test_damaged_weights_are_said(monkeypatch):
    def damaged(sentence, most):
        raise ValueError("model.safetensors has SHA-256 12, expected 53")

    monkeypatch.setattr(sentence_module, "attention_maps", damaged)
    assert "SHA-256 12, expected 53" in AttentionExplorer(OWN).refused


def test_shares_and_entropies_of_maps_made_by_hand(monkeypatch):
    tokens = ["[CLS]", "a", "b", "c", "[SEP]"]
    itself, uniform = torch.eye(5), torch.full((5, 5), 0.2)
    previous = torch.eye(5).roll(-1, dims=1)  # row i has its one in column i - 1; row 0 in the last
    gallery = showing(HeadGallery, [itself, previous, uniform], tokens, monkeypatch)
    shares = []
    for head in (1, 2, 3):
        gallery.head = head
        shares.append(list(gallery.shares.values()))
    assert shares[0] == pytest.approx([0, 1, 0, 2 / 5], abs=1e-6)
    assert shares[1][:2] == pytest.approx([1, 0], abs=1e-6)
    assert shares[2] == pytest.approx([0.2, 0.2, 0.2, 0.4])
    assert gallery.entropies[0, :3].tolist() == pytest.approx([0, 0, math.log2(5)], abs=1e-4)
    assert "20% to the previous token, 20% to itself, 20% to the next token, 40% to [CLS]" in gallery.words


def test_bands_are_as_thick_as_their_weights_and_fill_the_querys_row():
    tokens, query = ["[CLS]", "a", "dog", "barks", "[SEP]"], 3
    map_ = np.full((5, 5), 0.2)
    map_[query] = [0.04, 0.5, 0.26, 0.1, 0.1]
    figure, axis = plt.subplots()
    stills.reading(tokens, map_, query, "a title")(axis)
    plt.close(figure)
    ends = []
    for band in axis.collections:
        corners = band.get_paths()[0].vertices
        right = corners[np.isclose(corners[:, 0], corners[:, 0].max())][:, 1]
        ends.append((right.min(), right.max()))
    ends.sort()
    assert [high - low for low, high in ends] == pytest.approx(map_[query].tolist())
    assert (ends[0][0], ends[-1][1]) == pytest.approx((query, query + 1))
    assert all(one[1] == pytest.approx(two[0]) for one, two in pairwise(ends))
    printed = [text.get_text() for text in axis.texts if text.get_text().startswith("0.")]
    assert printed == ["0.50", "0.26", "0.10", "0.10"]  # and not 0.04
