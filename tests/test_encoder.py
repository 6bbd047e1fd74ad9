"""encoder.py, against PyTorch's own layer, against its definition, and by edits that must go unnoticed."""

import copy
import math
from itertools import product

import pytest
import torch
from refusals import refusing
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import vmap
from torch.nn import functional
from torch.testing import assert_close

from linformer_from_scratch import encoder as module
from linformer_from_scratch.attention import padding_mask
from linformer_from_scratch.encoder import Classifier, Encoder, MaskedLanguageModel, NoAttention, TokenMLP
from linformer_from_scratch.linformer import LinformerAttention, real_tokens
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained.network import pool
from linformer_from_scratch.pretrained.windows import WindowAttention, lengths_of
from linformer_from_scratch.projections import MeanPooling
from linformer_from_scratch.training import recipes
from linformer_from_scratch.training.recipes import PROJECTIONS, SHARING, Recipe, encoder, lr_scale

VOCAB, BATCH, SEQ_LEN, SLOTS, HEADS, LAYERS, CLASSES = 23, 3, 13, 5, 2, 3, 7
D_MODEL = 11 * HEADS
LENGTHS = torch.tensor([13, 7, 1])
RECIPE = Recipe("linformer", SEQ_LEN, D_MODEL, HEADS, LAYERS, SLOTS)


class RealMean(nn.Module):
    """An attention of this test's own: every token hears the mean of the real ones."""

    def forward(self, x, padding_mask=None):
        real = torch.ones_like(x) if padding_mask is None else padding_mask[..., None].expand_as(x)
        return ((x * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)).expand_as(x)


ATTENTIONS = {
    "full": lambda: [MultiHeadAttention(D_MODEL, HEADS) for _ in range(LAYERS)],
    "grouped-query": lambda: [MultiHeadAttention(D_MODEL, HEADS, 1) for _ in range(LAYERS)],
    "none": lambda: [NoAttention() for _ in range(LAYERS)],
    "mlp": lambda: [TokenMLP(D_MODEL) for _ in range(LAYERS)],
    "own": lambda: [RealMean() for _ in range(LAYERS)],
} | {
    f"linformer, sharing {sharing}": lambda sharing=sharing: [
        block.attention for block in encoder(recipe(sharing=sharing), VOCAB).blocks
    ]
    for sharing in SHARING
}
every_attention = pytest.mark.parametrize("kind", ATTENTIONS)
full_and_linformer = pytest.mark.parametrize("kind", ["full", "linformer, sharing layerwise"])
with_and_without_neighbours = pytest.mark.parametrize("neighbours", [0, 1])


def recipe(**changes):
    return Recipe(**{**vars(RECIPE), **changes})


def make_encoder(kind="full", neighbours=1, **more):
    torch.manual_seed(0)
    return Encoder(VOCAB, SEQ_LEN, D_MODEL, ATTENTIONS[kind](), neighbours, **more)


def make_ids(n=SEQ_LEN, seed=1):
    return torch.randint(VOCAB, (BATCH, n), generator=torch.Generator().manual_seed(seed))


def written_out(encoder, ids, mask):
    x = math.sqrt(D_MODEL) * encoder.tokens.weight[ids] + encoder.positions.weight[: ids.size(1)]
    if encoder.neighbours is not None:
        x = x if mask is None else torch.where(mask[..., None], x, 0.0)
        left, right = x.new_zeros(2, BATCH, 1, D_MODEL)
        beside = torch.cat([left, x[:, :-1]], 1), x, torch.cat([x[:, 1:], right], 1)
        kernel = encoder.neighbours.weight.unbind(-1)
        x = x + encoder.neighbours.bias + sum(token @ W.T for token, W in zip(beside, kernel, strict=True))
    for block in encoder.blocks:
        x = x + block.attention(normed(x, block.attention_norm), mask)
        wide, _, narrow = block.feed_forward
        hidden = functional.linear(normed(x, block.feed_forward_norm), wide.weight, wide.bias)
        hidden = hidden / 2 * (1 + torch.erf(hidden / math.sqrt(2)))  # GELU
        x = x + functional.linear(hidden, narrow.weight, narrow.bias)
    return normed(x, encoder.norm)


def normed(x, norm):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm.weight + norm.bias


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_block_is_pytorchs_layer_with_the_same_weights(norm_first):
    """nn.TransformerEncoderLayer, which normalises before or after each of its two parts."""
    torch.manual_seed(0)
    own, order = MultiHeadAttention(D_MODEL, HEADS), {"norm_first": norm_first}
    block = module.Block(D_MODEL, own, mlp_ratio=3, eps=0.01, **order).double()
    sizes = D_MODEL, HEADS, 3 * D_MODEL, 0.0, "gelu", 0.01
    theirs = nn.TransformerEncoderLayer(*sizes, batch_first=True, **order).double()
    for parameter in block.parameters():
        nn.init.normal_(parameter, std=0.3)
    attention, attend = block.attention, theirs.self_attn
    attend.in_proj_weight.data = torch.cat([getattr(attention, w).weight for w in ("query", "key", "value")])
    nn.init.zeros_(attend.in_proj_bias)  # ours has none
    for ours, its in (
        (attention.output, attend.out_proj),
        (block.attention_norm, theirs.norm1),
        (block.feed_forward_norm, theirs.norm2),
        (block.feed_forward[0], theirs.linear1),
        (block.feed_forward[2], theirs.linear2),
    ):
        its.load_state_dict(ours.state_dict())
    x = torch.randn(BATCH, SEQ_LEN, D_MODEL, dtype=torch.float64)
    upstream = torch.randn_like(x)
    found, expected = ([one(x), *gradients(one, x, upstream)] for one in (block, theirs))
    assert_close(found, expected, atol=1e-10, rtol=0)
    mask = padding_mask(LENGTHS, SEQ_LEN)
    assert_close(block(x, mask)[mask], theirs(x, src_key_padding_mask=~mask)[mask], atol=1e-10, rtol=0)


def gradients(layer, x, upstream):
    """Of x, and of one matrix of each of the two parts."""
    wide = layer.linear1 if hasattr(layer, "linear1") else layer.feed_forward[0]
    out = layer.self_attn.out_proj if hasattr(layer, "self_attn") else layer.attention.output
    x = x.clone().requires_grad_()
    return torch.autograd.grad(layer(x), [x, wide.weight, out.weight], upstream)


@every_attention
@with_and_without_neighbours
@pytest.mark.parametrize("n", [SEQ_LEN, 1])
@pytest.mark.parametrize("padded", [False, True])
def test_equals_its_definition_around_any_attention(kind, neighbours, n, padded):
    model, ids = make_encoder(kind, neighbours).double(), make_ids(n)
    for vector in model.parameters():  # LayerNorms begin as ones and zeros, which would hide them
        nn.init.normal_(vector) if vector.dim() == 1 else None
    mask = padding_mask(LENGTHS.clamp(max=n), n) if padded else None
    assert_close(model(ids, mask), written_out(model, ids, mask), atol=1e-10, rtol=0)


@pytest.mark.parametrize("neighbours", [0, 1, 2])
def test_the_convolution_sees_exactly_its_neighbours(neighbours):
    model, ids = make_encoder("none", neighbours), make_ids()
    for edited in (0, 6, SEQ_LEN - 1):
        changed = ids.clone()
        changed[:, edited] = (changed[:, edited] + 1) % VOCAB
        moved = (model.embed(changed) != model.embed(ids)).any(-1)
        near = (torch.arange(SEQ_LEN) - edited).abs() <= neighbours
        assert torch.equal(moved, near.expand(BATCH, -1))


@full_and_linformer
@with_and_without_neighbours
def test_what_padding_holds_and_how_much_there_is_changes_nothing(kind, neighbours):
    model = make_encoder(kind, neighbours).double()
    classifier = Classifier(model, CLASSES).double()
    ids, other = make_ids(), make_ids(seed=2)
    mask = padding_mask(LENGTHS, SEQ_LEN)
    filled = torch.where(mask, ids, other)
    assert torch.equal(model(filled, mask)[mask], model(ids, mask)[mask])
    assert torch.equal(classifier(filled, mask), classifier(ids, mask))
    for row, length in enumerate(LENGTHS):
        alone = ids[[row], :length]
        assert_close(model(ids, mask)[[row], :length], model(alone))
        assert_close(classifier(ids, mask)[[row]], classifier(alone))


@full_and_linformer
def test_a_wholly_padded_text_is_finite_and_disturbs_nobody(kind):
    classifier, ids = Classifier(make_encoder(kind), CLASSES), make_ids()
    mask = padding_mask(torch.tensor([13, 7, 0]), SEQ_LEN)
    scores = classifier(ids, mask)
    assert_close(scores[:2], classifier(ids[:2], mask[:2]), atol=1e-5, rtol=0)
    assert_close(scores[2], classifier.classes.bias)
    scores.sum().backward()
    assert all(p.grad.isfinite().all() for p in classifier.parameters() if p.grad is not None)


def test_classifier_scores_the_mean_over_real_tokens():
    classifier, ids, mask = Classifier(make_encoder(), CLASSES), make_ids(), padding_mask(LENGTHS, SEQ_LEN)
    x = classifier.encoder(ids, mask)
    means = torch.stack([row[:length].mean(0) for row, length in zip(x, LENGTHS, strict=True)])
    assert_close(classifier(ids, mask), classifier.classes(means))
    assert_close(classifier(ids), classifier.classes(classifier.encoder(ids).mean(1)))


def test_masked_language_model_is_transform_then_the_tokens_themselves():
    model, ids, mask = MaskedLanguageModel(make_encoder()), make_ids(), padding_mask(LENGTHS, SEQ_LEN)
    nn.init.normal_(model.vocabulary.bias)
    linear, _, norm = model.transform
    hidden = normed(functional.gelu(linear(model.encoder(ids, mask))), norm)
    assert_close(model(ids, mask), hidden @ model.encoder.tokens.weight.T + model.vocabulary.bias)


def test_tied_weights_are_one_object_whose_gradients_add_up():
    model, ids = MaskedLanguageModel(make_encoder()), make_ids()
    assert model.vocabulary.weight is model.encoder.tokens.weight
    assert (model.vocabulary.bias == 0).all()
    untied = copy.deepcopy(model)
    untied.vocabulary.weight = nn.Parameter(model.vocabulary.weight.detach().clone())
    for one in (model, untied):
        one(ids).square().mean().backward()
    separate = untied.vocabulary.weight.grad, untied.encoder.tokens.weight.grad
    assert all(gradient.abs().max() > 1e-4 for gradient in separate)
    assert_close(model.vocabulary.weight.grad, sum(separate))


def test_scores_where_they_are_asked_for_are_those_of_all_indexed():
    model, ids, mask = MaskedLanguageModel(make_encoder()), make_ids(), padding_mask(LENGTHS, SEQ_LEN)
    where = torch.rand(BATCH, SEQ_LEN, generator=torch.Generator().manual_seed(3)) < 0.3
    scores = model(ids, mask, where)
    assert scores.shape == (where.sum(), VOCAB)
    assert_close(scores, model(ids, mask)[where])


def test_dropout_falls_on_what_is_added_and_on_the_embeddings_and_only_in_training():
    model, ids, plain = make_encoder(dropout=1.0), make_ids(), make_encoder()
    assert (model(ids) == 0).all()  # LayerNorm of zeros
    model.dropout = nn.Identity()
    assert_close(model(ids), model.norm(model.embed(ids)))
    assert torch.equal(make_encoder(dropout=1.0).eval()(ids), plain(ids))
    half = make_encoder(dropout=0.5)
    assert not torch.equal(half(ids), half(ids))


def test_tokens_begin_with_numbers_of_about_one():
    model = Encoder(503, 211, 64, [NoAttention()])
    assert_close(model.tokens.weight.std().item(), 1 / 8, atol=0.003, rtol=0)
    assert_close(model.positions.weight.std().item(), 1 / 8, atol=0.005, rtol=0)


@pytest.mark.parametrize(
    ("sharing", "matrices"),
    [("none", LAYERS * 2 * HEADS), ("headwise", LAYERS * 2), ("key-value", LAYERS), ("layerwise", 1)],
)
def test_sharing_leaves_this_many_parameters(sharing, matrices):
    d = D_MODEL
    embeddings = VOCAB * d + SEQ_LEN * d + 3 * d * d + d
    block = 4 * d * d + d + (d * 4 * d + 4 * d) + (4 * d * d + d) + 2 * 2 * d
    by_hand = embeddings + LAYERS * block + 2 * d + matrices * SLOTS * SEQ_LEN
    assert recipes.parameters(encoder(recipe(sharing=sharing), VOCAB)) == by_hand


def test_bad_sizes_are_refused_with_both_numbers():
    with pytest.raises(ValueError, match="input has 14 tokens; the encoder has positions for seq_len=13"):
        make_encoder()(make_ids(n=14))
    with pytest.raises(ValueError, match="got 0 attention layers, expected at least 1"):
        Encoder(VOCAB, SEQ_LEN, D_MODEL, [])


def test_a_token_mlp_has_the_weights_of_attention_and_reads_no_other_token():
    layer, attention = TokenMLP(D_MODEL), MultiHeadAttention(D_MODEL, HEADS)
    matrices = [sum(p.numel() for p in one.parameters() if p.dim() == 2) for one in (layer, attention)]
    assert matrices[0] == matrices[1] == 4 * D_MODEL**2
    x = torch.randn(BATCH, SEQ_LEN, D_MODEL)
    assert_close(layer(x)[:, :5], layer(x[:, :5]))
    assert_close(layer(x.roll(1, dims=1)), layer(x).roll(1, dims=1))
    with pytest.raises(ValueError, match="padding_mask"):
        layer(x, torch.ones(BATCH, SEQ_LEN + 1, dtype=torch.bool))


@pytest.mark.parametrize("words", ["full+linformer+linformer", "linformer+full+none", "mlp+none+full"])
def test_a_recipe_names_the_attention_of_each_layer_and_linformers_share_one_projection(words):
    layers = [block.attention for block in encoder(Recipe(words, num_layers=3), VOCAB).blocks]
    kinds = {"full": MultiHeadAttention, "linformer": LinformerAttention}
    kinds |= {"mlp": TokenMLP, "none": NoAttention}
    assert [type(layer) for layer in layers] == [kinds[word] for word in words.split("+")]
    shared = {id(E) for layer in layers if type(layer) is LinformerAttention for E in (layer.E, layer.F)}
    assert len(shared) == ("linformer" in words)


@pytest.mark.parametrize(("sharing", "matrices"), [("layerwise", 1), ("key-value", 3), ("none", 6)])
def test_only_projections_with_a_rate_of_their_own_have_one(sharing, matrices):
    for kind, rate in product(PROJECTIONS, (1, 0.1)):
        if kind in ("gaussian", "mean") and sharing == "none":
            continue
        asked = recipe(projection=kind, projection_rate=rate, sharing=sharing)
        scaled = lr_scale(asked, encoder(asked, VOCAB))
        learns = kind in ("windows", "random")
        assert [*scaled.values()] == (matrices * [rate] if learns and rate != 1 else [])
        assert {p.shape[-2:] for p in scaled} <= {(SLOTS, SEQ_LEN)}
    mixed = recipe(attention="full+none+full", projection_rate=0.1)
    assert lr_scale(mixed, encoder(mixed, VOCAB)) == {}


@pytest.mark.parametrize("words", ["random", "sinusoids"])
def test_positions_start_where_they_are_told(words):
    torch.manual_seed(0)
    made = encoder(recipe(positions=words), VOCAB).positions.weight
    same = torch.equal(made, module.sinusoids(SEQ_LEN, D_MODEL))
    assert same == (words == "sinusoids") and made.requires_grad


@pytest.mark.parametrize("sharing", SHARING)
def test_a_projection_may_start_at_windows_and_then_learns(sharing):
    torch.manual_seed(0)
    layers = encoder(recipe(sharing=sharing), VOCAB).blocks
    x = torch.randn(2, HEADS, SEQ_LEN, D_MODEL)
    for E in (E for block in layers for E in (block.attention.E, block.attention.F)):
        assert E.weight.requires_grad
        assert_close(E(x), MeanPooling(SEQ_LEN, SLOTS)(x))


def test_a_fixed_random_projection_differs_between_seeds_and_layers():
    drawn = []
    for seed in (0, 1, 0):
        torch.manual_seed(seed)
        blocks = encoder(recipe(projection="gaussian", sharing="key-value"), VOCAB).blocks
        drawn.append([block.attention.E.weight for block in blocks])
    first, other, again = drawn
    assert not torch.equal(first[0], first[1]) and not torch.equal(first[0], other[0])
    assert torch.equal(first[0], again[0])


test_a_recipe_of_unknown_words_is_refused = refusing(
    ({"sharing": "all"}, "^sharing is 'all', expected one of none, headwise, key-value, layerwise$"),
    ({"projection": "max"}, "^projection is 'max', expected one of windows, random, gaussian, mean$"),
    by=lambda wrong: recipe(**wrong),
)


IDS = make_ids()
REAL = padding_mask(LENGTHS, SEQ_LEN)
WRONG_IDS = {
    r"ids go from 0 to 23, expected 0 … 22": torch.tensor([[0, VOCAB]]),
    r"ids go from -100 to 2, expected 0 … 22": torch.tensor([[1, 2], [-100, 2]]),
    r"ids are torch.int64 \(13,\), expected torch.int64 \(batch, n\)": IDS[0],
    r"ids are \(3, 0\), expected at least 1 token": IDS[:, :0],
    r"expected ids \(batch, n\), got list; `encode` takes texts": ["a text"],
}
WRONG_MASKS = {
    "padding_mask is a list, expected a Tensor or None": REAL.tolist(),
    r"padding_mask is torch.float32 \(3, 13\), expected torch.bool \(3, 13\)": REAL.float(),
    r"padding_mask is torch.bool \(3, 1\), expected torch.bool \(3, 13\)": REAL[:, :1],
    "padding_mask is on meta, the tokens are on cpu": REAL.to("meta"),
}


@pytest.mark.parametrize("sentence", WRONG_IDS)
def test_ids_that_the_vocabulary_does_not_hold_are_refused(sentence):
    for model in (make_encoder(), MaskedLanguageModel(make_encoder()), Classifier(make_encoder(), CLASSES)):
        with pytest.raises(ValueError, match=sentence):
            model(WRONG_IDS[sentence])


@pytest.mark.parametrize("sentence", WRONG_MASKS)
def test_a_wrong_mask_is_refused(sentence):
    for model in (make_encoder(), MaskedLanguageModel(make_encoder()), Classifier(make_encoder(), CLASSES)):
        with pytest.raises(ValueError, match=sentence):
            model(IDS, WRONG_MASKS[sentence])
    for call in (NoAttention(), pool, lengths_of, real_tokens, WindowAttention(D_MODEL, HEADS, SLOTS)):
        with pytest.raises(ValueError, match=sentence):
            call(torch.randn(3, SEQ_LEN, D_MODEL), WRONG_MASKS[sentence])
    with pytest.raises(ValueError, match=sentence.replace("padding_mask", "where")):
        MaskedLanguageModel(make_encoder())(IDS, None, WRONG_MASKS[sentence])


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_ids_without_values_are_passed_on():
    """On the device "meta", in fake tensors, and in torch.func, which lets nobody look."""
    model, ids = Classifier(make_encoder("linformer, sharing layerwise"), CLASSES), make_ids()
    assert_close(vmap(lambda one: model(one[None])[0])(ids), model(ids))
    with FakeTensorMode(allow_non_fake_inputs=True) as fake:
        assert model(fake.from_tensor(ids), fake.from_tensor(REAL)).shape == (BATCH, CLASSES)
    assert model.to("meta")(ids.to("meta"), REAL.to("meta")).shape == (BATCH, CLASSES)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:`torch.jit:DeprecationWarning")
@full_and_linformer
@pytest.mark.parametrize("head", [lambda one: one, MaskedLanguageModel, lambda one: Classifier(one, CLASSES)])
@torch.no_grad()
def test_graphs_hold_for_every_length(kind, head):
    model, n = head(make_encoder(kind)).eval(), torch.export.Dim("n", min=2, max=SEQ_LEN)
    sizes = {0: torch.export.Dim("batch", min=1, max=64), 1: n}
    exported = torch.export.export(model, (IDS, REAL), dynamic_shapes=(sizes, sizes)).module()
    traced = torch.jit.trace(model, (IDS, REAL), check_trace=False)
    for n in (2, 7, SEQ_LEN):
        given = make_ids(n), padding_mask(LENGTHS.clamp(max=n), n)
        for graph in (exported, traced):
            assert_close(graph(*given), model(*given), atol=1e-5, rtol=0)
