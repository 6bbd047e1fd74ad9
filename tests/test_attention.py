"""attention.py, against PyTorch's own function, the definition, and numbers worked out by hand."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

from linformer_from_scratch.attention import (
    attention_entropy,
    attention_weights,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)

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
    upstream = torch.linspace(-1, 1, output.numel()).view_as(output)
    return torch.autograd.grad(output, inputs, upstream)


@pytest.mark.parametrize("mask", [None, random_mask(), random_mask()[:, 0, :1, None].transpose(1, 2)])
def test_equals_pytorch_forward_and_gradients(qkv, mask):
    ours = scaled_dot_product_attention(*qkv, mask)
    theirs = functional.scaled_dot_product_attention(*qkv, mask)
    assert_close(ours, theirs, atol=1e-6, rtol=0)
    assert_close(gradients(ours, qkv), gradients(theirs, qkv), atol=1e-6, rtol=0)


def test_causal_equals_pytorch(qkv):
    q, k, v = qkv[0], qkv[0].flip(-1), qkv[0].flip(-2)  # as many keys as queries
    ours = scaled_dot_product_attention(q, k, v, causal_mask(N))
    assert_close(ours, functional.scaled_dot_product_attention(q, k, v, is_causal=True), atol=1e-6, rtol=0)


def test_rows_sum_to_one_and_masked_keys_get_exactly_zero(qkv):
    mask = random_mask()
    weights = attention_weights(*qkv[:2], mask)
    assert_close(weights.sum(-1), torch.ones(BATCH, HEADS, N))
    assert (weights[~mask.expand_as(weights)] == 0).all()


def test_weights_by_hand():
    q = torch.tensor([[2.0, 0.0, 0.0, 0.0]])  # d = 4, so the scores are 0 and ln 3
    k = torch.tensor([[0.0, 1.0, 0.0, 0.0], [math.log(3), 5.0, 0.0, 0.0]])
    assert_close(attention_weights(q, k), torch.tensor([[0.25, 0.75]]))


def test_a_query_with_nobody_to_attend_to_reads_zeros_and_has_finite_gradients(qkv):
    mask = random_mask()
    mask[1, :, 2] = False
    output = scaled_dot_product_attention(*qkv, mask)
    assert (output[1, :, 2] == 0).all()
    assert (attention_weights(*qkv[:2], mask)[1, :, 2] == 0).all()
    ours = gradients(output, qkv)
    theirs = gradients(functional.scaled_dot_product_attention(*qkv, mask), qkv)
    assert_close(ours, theirs, atol=1e-6, rtol=0)
    assert all(gradient.isfinite().all() for gradient in ours)


def test_scores_of_ten_thousand_do_not_overflow():
    q = torch.tensor([[10_000.0]])
    assert_close(attention_weights(q, torch.tensor([[1.0], [-1.0]])), torch.tensor([[1.0, 0.0]]))


@pytest.mark.parametrize(
    ("dtype", "size"),
    [(torch.bfloat16, 1), *itertools.product((torch.float16, torch.float32), (1, 100, 300, 60_000))],
)  # bfloat16 rounds large scores to 8 bits, and stays finite
@pytest.mark.parametrize("mask", [None, random_mask()])
def test_large_numbers_give_what_pytorch_gives(qkv, dtype, size, mask):
    q, k = (x.detach().mul(size).clamp(-60_000, 60_000).to(dtype) for x in qkv[:2])
    v = qkv[2].detach().to(dtype)
    exact = functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), mask)
    for attend in (scaled_dot_product_attention, functional.scaled_dot_product_attention):
        assert_close(attend(q, k, v, mask).double(), exact, atol=8 * torch.finfo(dtype).eps, rtol=0)


@pytest.mark.parametrize("size", [300, 60_000])
@pytest.mark.parametrize("mask", [None, random_mask()])
def test_values_as_large_as_halves_go_stay_finite_and_near(qkv, size, mask):
    q, k, v = (
        x.detach().mul(s).clamp(-60_000, 60_000).half()
        for x, s in zip(qkv, (size, size, 60_000), strict=True)
    )
    doubles = [x.double() for x in (q, k, v)]
    assert (doubles[0] @ doubles[1].mT).abs().max() > 4 * 65_504
    assert_close(
        attention_weights(q, k, mask).double(), attention_weights(*doubles[:2], mask), atol=2**-11, rtol=0
    )
    expected = scaled_dot_product_attention(*doubles, mask)
    assert_close(scaled_dot_product_attention(q, k, v, mask).double(), expected, atol=60_000 * 2**-10, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_q_is_divided_before_a_product_that_overflows(dtype):
    root = torch.finfo(dtype).max ** 0.5 / 4
    q, k = torch.full((1, 64), root, dtype=dtype), torch.full((2, 64), root, dtype=dtype)
    k[1] = -root  # q · k is 4 times the largest number, and half of it when divided by √64
    assert_close(attention_weights(q, k), torch.tensor([[1.0, 0.0]], dtype=dtype))


ROWS = {
    "one row": lambda mask: mask[1, :, 2],
    "a sample": lambda mask: mask[1],
    "everybody": lambda mask: mask,
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("heads", [1, HEADS])
def test_no_step_backward_is_ever_nan(qkv, rows, heads):
    mask = random_mask().repeat(1, heads, 1, 1)
    ROWS[rows](mask)[...] = False
    with torch.autograd.set_detect_anomaly(True):
        ours = gradients(scaled_dot_product_attention(*qkv, mask), qkv)
    assert_close(ours, gradients(functional.scaled_dot_product_attention(*qkv, mask), qkv), atol=1e-6, rtol=0)


def test_entropy_by_hand():
    weights = torch.tensor([[0.25, 0.25, 0.25, 0.25], [0.0, 1.0, 0.0, 0.0], [0.5, 0.25, 0.25, 0.0]])
    assert_close(attention_entropy(weights), torch.tensor([2.0, 0.0, 1.5]))


def test_causal_mask_by_hand():
    expected = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1]]).bool()
    assert torch.equal(causal_mask(3), expected)


def test_padding_mask_by_hand():
    expected = torch.tensor([[1, 1, 0], [0, 0, 0], [1, 1, 1]]).bool()
    assert torch.equal(padding_mask(torch.tensor([2, 0, 3]), 3), expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_dtype_is_kept(qkv, dtype):
    q, k, v = (t.detach().to(dtype) for t in qkv)
    output = scaled_dot_product_attention(q, k, v, random_mask())
    assert output.dtype == dtype and output.isfinite().all()


def test_inputs_are_left_as_they_were(qkv):
    mask = random_mask()
    before = [t.clone() for t in (*qkv, mask)]
    scaled_dot_product_attention(*qkv, mask)
    assert all(torch.equal(a, b) for a, b in zip(before, (*qkv, mask), strict=True))


def test_errors_say_both_numbers():
    x = torch.ones(4, 3)
    with pytest.raises(ValueError, match="q has 3 features, k has 2"):
        attention_weights(x, torch.ones(4, 2))
    with pytest.raises(ValueError, match="k has 4 tokens, v has 5"):
        scaled_dot_product_attention(x, x, torch.ones(5, 3))
    with pytest.raises(ValueError, match=r"mask has dtype torch.float32, expected torch.bool"):
        attention_weights(x, x, torch.ones(4, 4))
    with pytest.raises(ValueError, match=r"mask has shape \(4, 3\), which does not fit scores \(4, 4\)"):
        attention_weights(x, x, torch.ones(4, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"q is torch.int64, k is torch.float32; expected floating-point"):
        attention_weights(x.long(), x)
    with pytest.raises(ValueError, match="n is 0, expected an integer of at least 1"):
        causal_mask(0)
    with pytest.raises(ValueError, match=r"lengths go from 2 to 9; they must lie in 0 … n=8"):
        padding_mask(torch.tensor([2, 9]), 8)
    with pytest.raises(ValueError, match=r"lengths is torch.float32 \(1,\), expected integers \(batch,\)"):
        padding_mask(torch.tensor([2.5]), 8)
    with pytest.raises(ValueError, match=r"lengths is torch.int64 \(2, 1\), expected integers \(batch,\)"):
        padding_mask(torch.tensor([[2], [3]]), 8)


def test_a_batch_of_nobody_has_a_padding_mask():
    assert padding_mask(torch.tensor([], dtype=torch.long), 8).shape == (0, 8)


def no_masks(q, k):
    """What is no mask for q and k, and what the error says of it."""
    fits = torch.ones(N, M, dtype=torch.bool)
    yield fits.tolist(), "mask is a list, expected a Tensor or None"
    yield fits.numpy(), "mask is a ndarray, expected a Tensor or None"
    yield fits.float(), "mask has dtype torch.float32, expected torch.bool"
    yield fits.to(torch.uint8), "mask has dtype torch.uint8, expected torch.bool"
    yield fits.to("meta"), "mask is on meta, q is on cpu"
    for wrong in (fits.mT, fits[:2], fits[None, None, None], fits.expand(HEADS + 1, N, M)):
        scores = r"\(2, 3, 7, 5\)"
        yield wrong, rf"mask has shape .*{wrong.size(-1)}\), which does not fit scores {scores}"


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_what_is_no_mask_is_refused_before_anything_is_computed(qkv, dtype, monkeypatch):
    q, k, v = (x.detach().to(dtype) for x in qkv)
    monkeypatch.setattr(torch.Tensor, "__matmul__", None)
    for mask, said in no_masks(q, k):
        for attend in (
            lambda m: attention_weights(q, k, m),
            lambda m: scaled_dot_product_attention(q, k, v, m),
        ):
            with pytest.raises(ValueError, match=said):
                attend(mask)


@pytest.mark.parametrize(
    "lengths", [[2, 3], np.array([2, 3]), 2, torch.tensor([True, False]), torch.tensor([2j])]
)
def test_lengths_are_a_tensor_of_integers(lengths):
    with pytest.raises(ValueError, match=r"lengths is .*, expected .*integers \(batch,\)"):
        padding_mask(lengths, 8)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32])
def test_lengths_may_be_small_integers(dtype):
    assert torch.equal(
        padding_mask(torch.tensor([2, 100], dtype=dtype), 300).sum(dim=1), torch.tensor([2, 100])
    )


@pytest.mark.parametrize("make", [causal_mask, lambda n: padding_mask(torch.tensor([1, 3]), n)])
def test_a_mask_takes_any_integer_and_nothing_else_as_its_size(make):
    assert torch.equal(make(np.int64(3)), make(3))
    for size in (3.0, True, "3", None, -1, torch.tensor([3, 3])):
        with pytest.raises(ValueError, match=r"n is .*, expected an integer of at least"):
            make(size)


class Causal(torch.nn.Module):
    def forward(self, x):
        return scaled_dot_product_attention(x, x, x, causal_mask(x.size(-2)))


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_a_causal_mask_is_exported_and_traced_for_every_length():
    n, seen, x = torch.export.Dim("n", min=2, max=64), torch.ones(2, 8, 3), torch.randn(2, 13, 3)
    exported = torch.export.export(Causal(), (seen,), dynamic_shapes={"x": {1: n}}).module()
    for graph in (exported, torch.jit.trace(Causal(), seen)):
        assert_close(graph(x), Causal()(x))
