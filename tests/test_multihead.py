"""multihead.py, against nn.MultiheadAttention with the same weights, and against its own definition."""

import numpy as np
import pytest
import torch
from test_attention import gradients
from torch import nn
from torch.testing import assert_close

from linformer_from_scratch.attention import padding_mask
from linformer_from_scratch.heads import AttentionLayer, merge_heads, split_heads
from linformer_from_scratch.multihead import MultiHeadAttention

BATCH, N, HEADS, D_HEAD = 3, 7, 4, 5
D_MODEL = HEADS * D_HEAD
LENGTHS = torch.tensor([7, 4, 1])


def make_layer(num_kv_heads=HEADS, causal=False):
    torch.manual_seed(0)
    return MultiHeadAttention(D_MODEL, HEADS, num_kv_heads, causal)


def make_x():
    return torch.randn(BATCH, N, D_MODEL, generator=torch.Generator().manual_seed(1)).requires_grad_()


def pytorch_twin(layer):
    """nn.MultiheadAttention with the same weights; shared key/value heads are written out once per head."""
    twin = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True)
    copies = HEADS // layer.num_kv_heads

    def written_out(linear):
        return linear.weight.unflatten(0, (-1, D_HEAD)).repeat_interleave(copies, dim=0).flatten(0, 1)

    with torch.no_grad():
        weights = layer.query.weight, written_out(layer.key), written_out(layer.value)
        twin.in_proj_weight.copy_(torch.cat(weights))
        twin.in_proj_bias.zero_()
        twin.out_proj.weight.copy_(layer.output.weight)
        twin.out_proj.bias.copy_(layer.output.bias)
    return twin


@pytest.mark.parametrize("num_kv_heads", [HEADS, 2, 1])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_equals_pytorch_and_its_definition(num_kv_heads, causal, padded):
    layer, x = make_layer(num_kv_heads, causal), make_x()
    twin = pytorch_twin(layer)
    mask = padding_mask(LENGTHS, N) if padded else None
    future = ~torch.ones(N, N).tril().bool() if causal else None  # nn.MultiheadAttention: True = hidden
    hidden = None if mask is None else ~mask
    theirs, _ = twin(x, x, x, key_padding_mask=hidden, attn_mask=future, need_weights=False)
    ours = layer(x, mask)
    assert_close(ours, theirs, atol=1e-6, rtol=0)
    assert_close(ours, layer.definition(x, mask), atol=1e-6, rtol=0)
    assert_close(gradients(ours, [x]), gradients(theirs, [x]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("num_kv_heads", [HEADS, 2, 1])
def test_parameters_get_the_gradients_of_the_definition(num_kv_heads):
    layer, x, mask = make_layer(num_kv_heads).double(), make_x().double(), padding_mask(LENGTHS, N)
    parameters = list(layer.parameters())
    found, expected = (gradients(f(x, mask), parameters) for f in (layer, layer.definition))
    assert_close(found, expected, atol=1e-12, rtol=0)


def test_heads_split_the_features_and_keep_every_token():
    x = torch.arange(2 * 3 * 4).view(2, 3, 4)
    heads = split_heads(x, 2)
    assert heads.shape == (2, 2, 3, 2)
    assert torch.equal(heads[1, 0], x[1, :, :2]) and torch.equal(heads[1, 1], x[1, :, 2:])


def test_a_wholly_padded_sample_is_finite_and_disturbs_nobody():
    layer, x = make_layer(), make_x()
    mask = padding_mask(torch.tensor([7, 0, 4]), N)
    output = layer(x, mask)
    assert_close(output[1], layer.output.bias.expand(N, -1))
    assert_close(output[[0, 2]], layer(x[[0, 2]], mask[[0, 2]]))
    assert all(gradient.isfinite().all() for gradient in gradients(output, [x, *layer.parameters()]))


def test_sizes_may_be_whatever_counts_as_an_integer():
    assert MultiHeadAttention(np.int64(20), np.int32(4))(make_x()).shape == (BATCH, N, D_MODEL)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MultiHeadAttention(20, 3), "3 heads do not divide d_model=20"),
        (lambda: MultiHeadAttention(20, 4, num_kv_heads=3), "3 heads do not divide num_heads=4"),
        (lambda: split_heads(torch.zeros(3, 4), 2), r"x has 2 axes, expected 3 \(batch, n, d_model\)"),
        (lambda: split_heads(torch.zeros(2, 1, 3, 4), 2), r"x has 4 axes, expected 3 \(batch, n, d_model\)"),
        (lambda: merge_heads(torch.zeros(2, 3, 4)), r"x has 3 axes, expected 4 \(batch, num_heads, n, d_"),
        (lambda: merge_heads(torch.zeros(1, 2, 2, 3, 4)), r"x has 5 axes, expected 4 \(batch, num_heads"),
        (lambda: MultiHeadAttention(20, 4.0), "num_heads is 4.0, expected an integer of at least 1"),
        (lambda: make_layer()(torch.ones(3, 7, 19)), r"x has shape \(3, 7, 19\), expected \(batch, n, 20\)"),
        (lambda: make_layer()(make_x(), padding_mask(LENGTHS - 1, 6)), r"\(3, 6\), expected .* \(3, 7\)"),
        (lambda: AttentionLayer(D_MODEL, HEADS)(make_x()), "AttentionLayer does not say how its heads"),
    ],
)
def test_errors_say_both_numbers(call, message):
    with pytest.raises((ValueError, NotImplementedError), match=message):
        call()


@pytest.mark.parametrize("num_kv_heads", [HEADS, 1])
def test_the_definition_in_the_largest_halves_gives_what_doubles_give(num_kv_heads):
    layer, x = make_layer(num_kv_heads), make_x().detach().mul(60_000).clamp(-60_000, 60_000).half()
    with torch.no_grad():
        for linear in (layer.query, layer.key, layer.value, layer.output):  # what comes in comes out
            linear.weight.copy_(torch.eye(*linear.weight.shape))
        layer.output.bias.zero_()
        expected = layer.double().definition(x.double())
        for found in (layer.half().definition(x), layer(x)):
            assert_close(found.double(), expected, atol=60_000 * 2**-10, rtol=0)
