"""attention.py, against PyTorch's own function, the definition, and numbers worked out by hand."""

import itertools
import math

import pytest
import torch
from refusals import refusing
from torch.nn import functional
from torch.testing import assert_close

from linformer_from_scratch import attention as module
from linformer_from_scratch.attention import attention_weights, padding_mask, scaled_dot_product_attention

BATCH, HEADS, N, M, D, D_V = 2, 3, 7, 5, 11, 13


@pytest.fixture
def qkv():
    torch.manual_seed(0)
    return [torch.randn(BATCH, HEADS, *size, requires_grad=True) for size in ((N, D), (M, D), (M, D_V))]


def random_mask():
    mask = torch.rand(BATCH, 1, N, M, generator=torch.Generator().manual_seed(1)) > 0.4
    mask[..., 0] = True  # every query has somebody to attend to
    return mask


def gradients(output, inputs):
    upstream = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view_as(output)
    return torch.autograd.grad(output, inputs, upstream)


@pytest.mark.parametrize("mask", [None, random_mask(), random_mask()[:, 0, :1, None].transpose(1, 2)])
def test_equals_pytorch_forward_and_gradients(qkv, mask):
    ours = scaled_dot_product_attention(*qkv, mask)
    theirs = functional.scaled_dot_product_attention(*qkv, mask)
    assert_close(ours, theirs, atol=1e-6, rtol=0)
    assert_close(gradients(ours, qkv), gradients(theirs, qkv), atol=1e-6, rtol=0)


def test_rows_sum_to_one_and_masked_keys_get_exactly_zero(qkv):
    mask = random_mask()
    weights = attention_weights(*qkv[:2], mask)
    assert_close(weights.sum(-1), torch.ones(BATCH, HEADS, N))
    assert (weights[~mask.expand_as(weights)] == 0).all()


def test_weights_by_hand():
    q = torch.tensor([[2.0, 0.0, 0.0, 0.0]])  # d = 4, so the scores are 0 and ln 3
    k = torch.tensor([[0.0, 1.0, 0.0, 0.0], [math.log(3), 5.0, 0.0, 0.0]])
    assert_close(attention_weights(q, k), torch.tensor([[0.25, 0.75]]))


def test_a_query_with_nobody_to_attend_to_reads_zeros(qkv):
    mask = random_mask()
    mask[1, :, 2] = False
    assert (attention_weights(*qkv[:2], mask)[1, :, 2] == 0).all()


@pytest.mark.parametrize(
    ("dtype", "size"), [(torch.bfloat16, 1), *itertools.product((torch.float16, torch.float32), (1, 60_000))]
)  # bfloat16 rounds large scores to 8 bits, and stays finite
@pytest.mark.parametrize("mask", [None, random_mask()])
def test_large_numbers_give_what_pytorch_gives(qkv, dtype, size, mask):
    q, k = (x.detach().mul(size).clamp(-60_000, 60_000).to(dtype) for x in qkv[:2])
    v = qkv[2].detach().to(dtype)
    exact = functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), mask)
    for attend in (scaled_dot_product_attention, functional.scaled_dot_product_attention):
        output = attend(q, k, v, mask)
        assert output.dtype == dtype
        assert_close(output.double(), exact, atol=8 * torch.finfo(dtype).eps, rtol=0)


@pytest.mark.parametrize("rows", [(1, 0, 2), 1, slice(None)], ids=["one row", "a sample", "everybody"])
def test_no_step_backward_is_ever_nan(qkv, rows):
    mask = random_mask()
    mask[rows] = False
    with torch.autograd.set_detect_anomaly(True):
        ours = gradients(scaled_dot_product_attention(*qkv, mask), qkv)
    assert_close(ours, gradients(functional.scaled_dot_product_attention(*qkv, mask), qkv), atol=1e-6, rtol=0)


def test_entropy_by_hand():
    weights = torch.tensor([[0.25, 0.25, 0.25, 0.25], [0.0, 1.0, 0.0, 0.0], [0.5, 0.25, 0.25, 0.0]])
    assert_close(module.attention_entropy(weights), torch.tensor([2.0, 0.0, 1.5]))


def test_causal_mask_by_hand():
    expected = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1]]).bool()
    assert torch.equal(module.causal_mask(3), expected)


def test_padding_mask_by_hand():
    expected = torch.tensor([[1, 1, 0], [0, 0, 0], [1, 1, 1]]).bool()
    assert torch.equal(padding_mask(torch.tensor([2, 0, 3]), 3), expected)


X, FITS = torch.ones(4, 3), torch.ones(4, 4, dtype=torch.bool)


test_errors_say_both_numbers = refusing(
    (lambda: attention_weights(X, torch.ones(4, 2)), "q has 3 features, k has 2"),
    (lambda: scaled_dot_product_attention(X, X, torch.ones(5, 3)), "k has 4 tokens, v has 5"),
    (lambda: attention_weights(X.long(), X), "q is torch.int64, k is torch.float32; expected floating"),
    (lambda: attention_weights(X, X, FITS.float()), "mask has dtype torch.float32, expected torch.bool"),
    (lambda: attention_weights(X, X, FITS.tolist()), "mask is a list, expected a Tensor or None"),
    (lambda: attention_weights(X, X, FITS.to("meta")), "mask is on meta, q is on cpu"),
    (lambda: attention_weights(X, X, FITS[:, :3]), r"shape \(4, 3\), which does not fit scores \(4, 4\)"),
    (lambda: attention_weights(X, X, FITS[None]), r"\(1, 4, 4\), which does not fit scores \(4, 4\)"),
    (lambda: module.causal_mask(0), "n is 0, expected an integer of at least 1"),
    (lambda: padding_mask(torch.tensor([2, 9]), 8), "lengths go from 2 to 9; they must lie in 0 … n=8"),
    (lambda: padding_mask([2, 9], 8), "lengths is a list, expected a Tensor of integers"),
    (lambda: padding_mask(torch.tensor([2.5]), 8), r"float32 \(1,\), expected integers \(batch,\)"),
    (lambda: padding_mask(torch.tensor([[2]]), 8), r"int64 \(1, 1\), expected integers \(batch,\)"),
)


def test_lengths_may_be_small_integers():
    lengths = torch.tensor([2, 100], dtype=torch.uint8)
    assert torch.equal(padding_mask(lengths, 300).sum(dim=1), lengths.long())


class Causal(torch.nn.Module):
    def forward(self, x):
        return scaled_dot_product_attention(x, x, x, module.causal_mask(x.size(-2)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_a_causal_mask_is_exported_and_traced_for_every_length():
    n, seen, x = torch.export.Dim("n", min=2, max=64), torch.ones(2, 8, 3), torch.randn(2, 13, 3)
    exported = torch.export.export(Causal(), (seen,), dynamic_shapes={"x": {1: n}}, strict=False).module()
    for graph in (exported, torch.jit.trace(Causal(), seen)):
        assert_close(graph(x), Causal()(x))
