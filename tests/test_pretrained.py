"""The pretrained encoder: its tokens, its maps and its output are those that transformers gave."""

import hashlib
import importlib.machinery
import importlib.util
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from refusals import refusing
from torch.testing import assert_close

from linformer_from_scratch import pretrained
from linformer_from_scratch.attention import attention_weights, scaled_dot_product_attention
from linformer_from_scratch.data import docstrings, documents
from linformer_from_scratch.data.text import SHIPPED
from linformer_from_scratch.pretrained import SENTENCES, STORY, attention_maps, encode, tokenize, weights
from linformer_from_scratch.pretrained.tokens import pieces, unknown_among, vocabulary

REFERENCE = Path(__file__).parent / "data/minilm_reference.json"
REFERENCE = json.loads(REFERENCE.read_text(encoding="utf-8"))["texts"]


@pytest.mark.parametrize("name", REFERENCE)
def test_tokens_maps_and_output_equal_those_of_transformers(name):
    expected = REFERENCE[name]
    text = expected["text"] or SHIPPED.read_text(encoding="utf-8")[:4000]
    ids = tokenize(text)
    assert ids.tolist() == expected["ids"]
    hidden, weights, *_ = encode(ids)
    middle = len(ids) // 2
    rows = torch.stack([weights[layer, head, middle, :8] for layer, head in ((0, 2), (2, 7), (5, 11))])
    assert_close(rows, torch.tensor(expected["map_rows"]), atol=1e-5, rtol=0)
    assert_close(hidden[middle, :8], torch.tensor(expected["hidden"]), atol=1e-4, rtol=0)


DIGESTS = {  # ids of all documents, as a second tokenizer gave them: how many, and their SHA-256
    documents: (128_229, "8a6aa0754a28972c84302f51698b832616f11361312d2f6a277eed7f44604a0a"),
    docstrings: (435_415, "187c1e0527db57c47af8d9d71a1d3e4f4fd0ea4ea306e49269619c8c8c35dec4"),
}
PIECES = {  # by the rules of BERT's tokenizer, by hand
    "[CLS] one [MASK] [SEP]": ["[", "cl", "##s", "]", "one", "[", "mask", "]", "[", "sep", "]"],
    "a\0b\u200dc\ufffdd": ["abc", "##d"],  # control characters are nothing, wherever they stand
    "a\tb\u3000c\u00a0d\x85e": ["a", "b", "c", "de"],
    "\ud800x \ud83d\ude00y": ["x", "y"],  # halves of a pair are no characters
    "ΟΔΟΣ": ["ο", "##δ", "##ο", "##σ"],  # letter by letter: no final sigma
    "Éte\u0301 ñ İ": ["et", "##e", "n", "i"],
    "人東a": ["人", "東", "a"],
    "한국": ["ᄒ", "##ᅡ", "##ᆫ", "##ᄀ", "##ᅮ", "##ᆨ"],
    "x" * 100: ["xx", *["##xx"] * 49],
    "x" * 101 + " y": ["x" * 101, "y"],  # [UNK], as the text has it
    "🎉 can't": ["🎉", "can", "'", "t"],
    "No🎉Way\ud800É!": ["No🎉WayÉ", "!"],
    "": [],
}


@pytest.mark.slow
@pytest.mark.parametrize("corpus", DIGESTS)
def test_every_shipped_document_has_the_tokens_of_a_second_tokenizer(corpus):
    ids = torch.cat([tokenize(text, None) for text in corpus().values()])
    assert (len(ids), hashlib.sha256(ids.numpy().astype("<i8").tobytes()).hexdigest()) == DIGESTS[corpus]


@pytest.mark.parametrize("text", PIECES, ids=ascii)
def test_a_text_is_cut_into_the_longest_known_pieces(text):
    assert pieces(text) == ["[CLS]", *PIECES[text], "[SEP]"]
    for i, piece in zip(tokenize(text).tolist(), pieces(text), strict=True):
        assert vocabulary()[i] == ("[UNK]" if piece in unknown_among(pieces(text)) else piece)


def test_maps_of_any_text_have_a_row_for_each_token_that_sums_to_one():
    tokens, weights = attention_maps("Attention maps of any sentence!")
    assert tokens == ["[CLS]", "attention", "maps", "of", "any", "sentence", "!", "[SEP]"]
    assert weights.shape == (6, 12, 8, 8) and weights.dtype == torch.float32
    assert_close(weights.sum(-1), torch.ones(6, 12, 8))
    tokens, weights = attention_maps(SHIPPED.read_text(encoding="utf-8"), max_tokens=40)
    assert len(tokens) == weights.size(-1) == 40 and tokens[-1] == "[SEP]"


@pytest.mark.parametrize("sentence", SENTENCES)
def test_stored_maps_are_the_live_ones_in_half_precision(sentence):
    live, stored = attention_maps(sentence), pretrained.stored_maps()[sentence]
    assert stored.tokens == live.tokens
    assert_close(stored.weights, live.weights, atol=2e-3, rtol=0)
    assert_close(stored.weights.sum(-1), torch.ones(stored.weights.shape[:-1]))


@pytest.mark.parametrize(("name", "text"), [("manual", documents()["assignment"][:900]), ("story", STORY)])
def test_stored_heads_are_the_live_ones_in_half_precision(name, text):
    ids = tokenize(text, 128)
    found = encode(ids)
    assert pretrained.stored_tokens(name) == [vocabulary()[i] for i in ids]
    for (layer, head), stored in pretrained.stored_heads(name).items():
        for role in ("q", "k", "v"):
            live = getattr(found, role)[layer - 1, head - 1]
            assert_close(getattr(stored, role), live, atol=1e-3, rtol=1e-3)


def test_the_story_has_128_tokens_and_all_sentences_but_one_are_of_it():
    assert len(tokenize(STORY, None)) == 128
    assert [sentence in STORY for sentence in SENTENCES] == [True] * 5 + [False]


def test_stored_projections_were_fitted_to_their_heads():
    for head in pretrained.stored_heads().values():
        exact = scaled_dot_product_attention(head.q, head.k, head.v)
        pairs = head.learned.values()
        outputs = [scaled_dot_product_attention(head.q, E @ head.k, F @ head.v) for E, F in pairs]
        errors = [(output - exact).norm() / exact.norm() for output in outputs]
        assert errors == sorted(errors, reverse=True) and errors[0] < 1 and errors[-1] < 0.6
        assert all(E.shape == F.shape == (size, 128) for size, (E, F) in head.learned.items())


def test_without_the_package_stored_sentences_show_and_others_say_what_to_type(without_the_package):
    shown, stored = attention_maps(SENTENCES[0]), pretrained.stored_maps()[SENTENCES[0]]
    assert shown.tokens == stored.tokens and torch.equal(shown.weights, stored.weights)
    for text, most in (("A sentence of my own.", 512), (SENTENCES[0], len(stored.tokens) - 1)):
        with pytest.raises(pretrained.PretrainedMissing, match=re.escape(pretrained.INSTALL)):
            attention_maps(text, max_tokens=most)


def test_half_an_installation_counts_as_none(tmp_path, monkeypatch):
    (tmp_path / weights.PACKAGE / "model").mkdir(parents=True)
    (tmp_path / weights.PACKAGE / "__init__.py").touch()
    spec = importlib.machinery.PathFinder.find_spec(weights.PACKAGE, [str(tmp_path)])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    assert weights.model_folder() is None
    (tmp_path / weights.PACKAGE / "model" / "model.safetensors").touch()
    assert weights.model_folder() == tmp_path / weights.PACKAGE / "model"


def test_other_weights_and_another_vocabulary_are_refused_with_both_sums(tmp_path, monkeypatch):
    monkeypatch.setattr(weights, "model_folder", lambda: tmp_path)
    for name, read in (("model.safetensors", pretrained.model_weights), ("vocab.txt", vocabulary)):
        (tmp_path / name).write_bytes(b"something else")
        with pytest.raises(ValueError, match=rf"^{name} has SHA-256 \w+, expected {weights.SHA256[name]}"):
            read.__wrapped__()


def test_the_package_code_is_never_imported():
    attention_maps(SENTENCES[0])
    assert weights.PACKAGE not in sys.modules


test_errors_say_what_came = refusing(
    (lambda: attention_maps(" "), "at least one word, got ' '"),
    (lambda: attention_maps("one", max_tokens=513), "max_tokens is 513, expected an integer in 3 … 512"),
    (lambda: tokenize("one", 1), "max_tokens is 1, expected an integer of at least 2"),
    (lambda: tokenize(["one"]), r"expected a text, got \['one'\]"),
    (lambda: encode(torch.zeros(2, 7).long()), r"ids are torch.int64 \(2, 7\), expected .* \(n,\)"),
    (lambda: encode(torch.zeros(513).long()), "input has 513 tokens; the encoder has positions for 512"),
    (lambda: encode(torch.tensor([101, 30522])), "^ids go from 101 to 30522, expected 0 … 30521$"),
)


def test_one_pass_gives_the_queries_keys_and_values_that_its_maps_are_made_of():
    found = encode(tokenize(SENTENCES[0]))
    assert found.q.shape == found.k.shape == found.v.shape == (6, 12, 14, 32)
    assert_close(attention_weights(found.q, found.k), found.weights)
    assert_close(found.weights, attention_maps(SENTENCES[0]).weights)
    same = dict(pretrained.model_weights())
    for role in ("key", "value"):  # both hand the layer's input on as it is
        same[f"encoder.layer.0.attention.self.{role}.weight"] = torch.eye(384)
        same[f"encoder.layer.0.attention.self.{role}.bias"] = torch.zeros(384)
    changed = encode(tokenize(SENTENCES[0]), same)
    assert_close(changed.v[0], changed.k[0])
    assert_close(changed.q[0], found.q[0])


def test_the_biases_of_queries_keys_and_values_are_in_what_is_recorded():
    ids, name = tokenize(SENTENCES[0]), "encoder.layer.5.attention.self"
    same = dict(pretrained.model_weights())
    for i, role in enumerate(("query", "key", "value")):
        same[f"{name}.{role}.bias"] = same[f"{name}.{role}.bias"] + torch.full((384,), i + 1.0)
    found, moved = encode(ids), encode(ids, same)
    for i, role in enumerate("qkv"):
        assert_close(getattr(moved, role)[5], getattr(found, role)[5] + i + 1)


def test_weights_given_to_one_pass_are_not_those_of_the_next():
    ids = tokenize(SENTENCES[0])
    before = encode(ids)
    encode(ids, pretrained.random_weights(0))
    with pytest.raises(ValueError, match="the weights have no embeddings"):
        encode(ids, {})
    assert torch.equal(encode(ids).hidden, before.hidden)


def test_passes_at_the_same_time_do_not_take_each_others_maps():
    ids = [tokenize(sentence) for sentence in SENTENCES]
    alone = [encode(some).weights for some in ids]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda some: encode(some).weights, ids * 4))
    for found, expected in zip(together, alone * 4, strict=True):
        assert_close(found, expected)


def test_random_weights_are_those_of_the_network_before_training():
    drawn, trained = pretrained.random_weights(0), pretrained.model_weights()
    assert set(drawn) == {name for name, w in trained.items() if w.is_floating_point()}
    for name, w in drawn.items():
        assert w.shape == trained[name].shape
        if name.endswith("LayerNorm.weight"):
            assert (w == 1).all()
        elif name.endswith("bias"):
            assert (w == 0).all()
        else:
            assert w.std() == pytest.approx(0.02, rel=0.05) and w.mean().abs() < 1e-3
    assert torch.equal(drawn["pooler.dense.weight"], pretrained.random_weights(0)["pooler.dense.weight"])
    assert not torch.equal(drawn["pooler.dense.weight"], pretrained.random_weights(1)["pooler.dense.weight"])
