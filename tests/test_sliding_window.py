"""efficient/sliding_window.py: whatever the axes, the numbers and the size of the window."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as pytorch_attention
from torch.testing import assert_close

from linformer_from_scratch.benchmark import peak_bytes
from linformer_from_scratch.efficient import sliding_window_attention, window_mask
from linformer_from_scratch.efficient.sliding_window import sliding_window_flops

D, D_V = 5, 7
both_ways = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])


def numbers(*sizes):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(0))


@both_ways
@pytest.mark.parametrize("window", [101, 8192])
def test_a_window_beyond_the_text_costs_no_more_than_the_text(window, causal):
    q, k, v = numbers(3, 1, 2, 100, D)
    with torch.no_grad():
        needed = peak_bytes(sliding_window_attention, q, k, v, window, causal)
    assert needed < 30 * 100 * 100 * 4  # at 8,192 it was 3.4 GB
    assert_close(
        sliding_window_attention(q, k, v, window, causal), pytorch_attention(q, k, v, is_causal=causal)
    )
    assert sliding_window_flops(100, D, window) == sliding_window_flops(100, D, 100)


@both_ways
def test_no_scores_are_stored(causal):
    n, window, heads = 2048, 64, 8
    q, k, v = numbers(3, 1, heads, n, 16)
    with torch.no_grad():
        needed = peak_bytes(sliding_window_attention, q, k, v, window, causal)
    scores = heads * n * (2 if causal else 3) * window * 4
    assert needed < scores / 2 + 8 * q.nbytes


@both_ways
@pytest.mark.parametrize("n", [1, 13, 29])
@pytest.mark.parametrize("axes", [((), (), ()), ((2, 3), (3,), ()), ((0, 3), (0, 3), (3,))])
def test_axes_before_the_tokens_are_broadcast(axes, n, causal):
    q, k, v = (numbers(*axis, n, d) for axis, d in zip(axes, (D, D, D), strict=True))
    expected = pytorch_attention(
        *(x.expand(*axes[0], n, D).unsqueeze(0) for x in (q, k, v)), window_mask(n, 4, causal)
    )[0]
    assert_close(sliding_window_attention(q, k, v, 4, causal), expected)


@both_ways
def test_what_stands_outside_the_window_never_enters(causal):
    q, k, v = numbers(3, 1, 20, D)
    expected = sliding_window_attention(q, k, v, 3, causal)[:, :10]
    for x in (k, v):
        x[:, 13:] = float("nan")
    assert_close(sliding_window_attention(q, k, v, 3, causal)[:, :9], expected[:, :9])


@both_ways
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_no_step_backward_is_ever_nan(causal):
    qkv = [x.requires_grad_() for x in numbers(3, 2, 13, D).unbind()]
    with torch.autograd.set_detect_anomaly(True):
        found = torch.autograd.grad(sliding_window_attention(*qkv, 4, causal).square().sum(), qkv)
    mask = window_mask(13, 4, causal)
    wanted = torch.autograd.grad(pytorch_attention(*qkv, mask).square().sum(), qkv)
    assert_close(found, wanted)
