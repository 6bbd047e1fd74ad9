"""The pretrained encoder around any attention; with exact attention, that of chapter 04."""

import pytest
import torch
import yaml
from safetensors.torch import save_file
from torch.testing import assert_close

from lab import lengths
from linformer_from_scratch.course.recorded import lengths as timed
from linformer_from_scratch.course.recorded import read_rows, select
from linformer_from_scratch.data import docstrings, split
from linformer_from_scratch.low_rank import best_rank
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained import capstone, encode, model_weights, tokenize
from linformer_from_scratch.pretrained import sentence_encoder as se
from linformer_from_scratch.pretrained.lengthwise import Layout, window_encoder, write_layout
from linformer_from_scratch.pretrained.network import extend_positions
from linformer_from_scratch.projections import MeanPooling
from tools import model_card

TEXT = "The bank raised its rates because it expected inflation to rise."
SAME = {"atol": 2e-5, "rtol": 0}


@pytest.fixture(scope="module")
def full():
    return se.full_encoder().eval()


@pytest.fixture(scope="module")
def fitted():
    return se.fitted_encoder(128)


@torch.no_grad()
def test_with_exact_attention_it_is_the_pretrained_encoder(full):
    ids = tokenize(TEXT)
    assert_close(full(ids[None])[0], encode(ids).hidden, **SAME)


@torch.no_grad()
def test_padding_changes_nothing(full):
    ids, other = tokenize(TEXT), tokenize(TEXT + " And so it did, twice.")
    both = torch.zeros(2, len(other), dtype=torch.long)
    both[0, : len(ids)], both[1] = ids, other
    mask = torch.arange(len(other)) < torch.tensor([len(ids), len(other)])[:, None]
    expected = torch.cat([full.embed(ids[None]), full.embed(other[None])])
    assert_close(full.embed(both, mask), expected, **SAME)
    assert_close(expected.norm(dim=1), torch.ones(2))


@torch.no_grad()
def test_linformer_with_a_slot_for_every_token_is_exact(full):
    ids = tokenize(TEXT)
    n = len(ids)
    model = se.linformer_encoder(lambda: MeanPooling(n, n)).eval()
    assert_close(model(ids[None]), full(ids[None]), **SAME)
    fewer = se.linformer_encoder(lambda: MeanPooling(n, n - 2)).eval()
    assert (fewer(ids[None]) - full(ids[None])).abs().max() > 0.01


@torch.no_grad()
def test_the_best_rank_is_that_of_every_map(full):
    ids = tokenize(TEXT)
    assert_close(se.best_rank_encoder(len(ids)).eval()(ids[None]), full(ids[None]), **SAME)
    layer = se.BestRankAttention(12, 3, rank=2)
    x = torch.randn(2, 7, 12)
    q, k, v = layer.project(x)
    maps = best_rank((q @ k.mT / 2).softmax(dim=-1), 2)  # √d_head = 2
    assert_close(layer(x), layer.output((maps @ v).transpose(1, 2).flatten(2)))


def test_weights_are_copies_so_that_fitting_one_model_leaves_the_others_alone(full):
    before = model_weights()["embeddings.word_embeddings.weight"].clone()
    hidden = encode(tokenize(TEXT)).hidden
    other = se.full_encoder()
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
        other.segment.zero_()
    assert torch.equal(model_weights()["embeddings.word_embeddings.weight"], before)
    assert torch.equal(encode(tokenize(TEXT)).hidden, hidden)
    assert full.blocks[0].attention.query.weight.abs().max() > 0


def test_impossible_inputs_are_refused(full):
    with pytest.raises(ValueError, match="input has 513 tokens; the encoder has positions for 512"):
        full(torch.zeros(1, 513, dtype=torch.long))
    with pytest.raises(ValueError, match="got 5 attention layers, expected 6"):
        se.SentenceEncoder([block.attention for block in full.blocks][:5])
    layers = [MultiHeadAttention(384, 12) for _ in range(6)]
    del layers[4].output
    with pytest.raises(ValueError, match=r"^the attention layers have no blocks\.4\.attention\.output\.w"):
        se.SentenceEncoder(layers)


@torch.no_grad()
def test_no_weights_are_left_out_in_silence():
    layers = [MultiHeadAttention(384, 12) for _ in range(6)]
    with pytest.raises(ValueError, match="got 1 different attention layers, expected 6: each has weights"):
        se.SentenceEncoder([layers[0]] * 6)
    weights, one = model_weights(), torch.zeros(1)
    seventh = "encoder.layer.6.output.dense.bias"
    for wrong, said in (
        (weights | {seventh: one}, f"the weights hold {seventh}, expected the 101 of 6 BERT layers"),
        ({f"bert.{name}": w for name, w in weights.items()}, "the weights have no embeddings.LayerNorm.bias"),
    ):
        with pytest.raises(ValueError, match=said):
            se.SentenceEncoder(layers, wrong)


@pytest.mark.slow
def test_the_projections_fitted_at_fixed_places_keep_what_was_recorded(full):
    model = se.fixed_encoder()
    for name, tensor in full.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name])
    assert len(model.state_dict()) == len(full.state_dict()) + 12
    ids, _ = capstone.passages(split(docstrings())[1])
    expected = capstone.embed_all(full, ids[:24])
    found = capstone.mean_cosine(capstone.embed_all(model, ids[:24]), expected)
    pooled = se.linformer_encoder(lambda: MeanPooling(512, 128))
    assert found > capstone.mean_cosine(capstone.embed_all(pooled, ids[:24]), expected) + 0.1
    (row,) = select(read_rows("12_capstone"), way="E and F", k=128)
    assert found == pytest.approx(row["docstrings"]["cosine"], abs=0.03)


@torch.no_grad()
@pytest.mark.parametrize("n", [256, pytest.param(512, marks=pytest.mark.slow)])
def test_the_fitted_encoder_keeps_of_long_texts_what_was_recorded(full, fitted, n):
    ids, _ = capstone.passages(split(docstrings())[1], n)
    expected = capstone.embed_all(full, ids[:16])
    found = capstone.mean_cosine(capstone.embed_all(fitted, ids[:16]), expected)
    (row,) = select(read_rows("12_lengths"), way="windows of n, last layer exact, fitted", n=n)
    assert found == pytest.approx(row["docstrings"]["cosine"], abs=0.01)
    without = capstone.mean_cosine(capstone.embed_all(window_encoder(128, (5,)), ids[:16]), expected)
    assert found > without + 0.03


@torch.no_grad()
def test_short_texts_are_the_exact_encoders(full, fitted):
    at = fitted.layout.crossover
    ids, _ = capstone.passages(split(docstrings())[1], at - 1)
    assert_close(fitted.embed(ids[:2]), full.embed(ids[:2]))
    ids, _ = capstone.passages(split(docstrings())[1], at)
    assert (fitted.embed(ids[:2]) - full.embed(ids[:2])).abs().max() > 1e-3


def test_other_sizes_of_fitted_encoders_are_refused(tmp_path, monkeypatch):
    only = "no fitted encoder of k=100 comes with the course, only that of k=128"
    with pytest.raises(ValueError, match=only):
        se.fitted_encoder(100)
    monkeypatch.setattr(se, "FITTED", tmp_path)
    save_file({"wrong": torch.zeros(2)}, tmp_path / "minilm_linformer_k64.safetensors")
    write_layout(Layout(64, (5,), 192), tmp_path / "minilm_linformer_k64.json")
    with pytest.raises(ValueError, match="got 1 tensors, expected the 122 of updates of rank 16"):
        se.fitted_encoder(64)


def test_the_shortest_text_for_slots_is_the_measured_one(fitted):
    assert fitted.layout == Layout(timed.PROJ_DIM, (lengths.LAST,), timed.crossover())


def test_the_card_says_what_was_recorded_in_the_form_of_the_hub():
    text = model_card.CARD.read_text(encoding="utf-8")
    assert text == model_card.card()
    _, header, body = text.split("---\n", 2)
    assert yaml.safe_load(header) == {
        "language": "en",
        "license": "apache-2.0",
        "library_name": "linformer-from-scratch",
        "pipeline_tag": "sentence-similarity",
        "base_model": "sentence-transformers/all-MiniLM-L6-v2",
        "base_model_relation": "finetune",
        "tags": ["sentence-similarity", "feature-extraction", "linformer", "efficient-attention"],
    }
    for title in ("How to use", "How close it comes, by length", "Limits and risks", "Licence and citation"):
        assert f"\n## {title}\n" in body
    for n in (256, 384, 512):
        (row,) = select(read_rows("12_lengths"), way="windows of n, last layer exact, fitted", n=n)
        found = [row[corpus] for corpus in model_card.CORPORA]
        docs, other = (f"{some['cosine']:.3f} ± {1.96 * some['standard error']:.3f}" for some in found)
        (line,) = [line for line in body.splitlines() if line.startswith(f"| {n} | {docs} |")]
        assert f"| {other} |" in line


@torch.no_grad()
def test_positions_beyond_the_trained_ones_are_these_again_or_lie_between_them(full):
    trained = full.positions.weight
    repeated = extend_positions(se.full_encoder(), 1200, "repeated").positions.weight
    assert torch.equal(repeated[:512], trained) and torch.equal(repeated[1024:], trained[:176])
    between = extend_positions(se.full_encoder(), 1023, "interpolated").positions.weight
    assert_close(between[::2], trained)
    assert_close(between[1::2], (trained[1:] + trained[:-1]) / 2)
    with pytest.raises(ValueError, match="n is 511, expected an integer of at least 512"):
        extend_positions(se.full_encoder(), 511, "repeated")
    with pytest.raises(ValueError, match="how is 'other', expected 'repeated' or 'interpolated'"):
        extend_positions(se.full_encoder(), 600, "other")
    ids = torch.randint(1000, 2000, (1, 600))
    assert extend_positions(se.full_encoder(), 600, "repeated").embed(ids).shape == (1, 384)
    with pytest.raises(ValueError, match="input has 600 tokens; the encoder has positions for 512"):
        full.embed(ids)
