"""cost.py, against PyTorch's own counter and allocator, and numbers by hand."""

import math

import pytest
import torch
from refusals import refusing
from torch.utils.flop_counter import FlopCounterMode

from linformer_from_scratch import cost
from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.benchmark import peak_bytes
from linformer_from_scratch.cost import Sizes, Step, compress_keys, flops, full_attention, stored_bytes
from linformer_from_scratch.heads import merge_heads, split_heads
from linformer_from_scratch.multihead import MultiHeadAttention

BATCH, N, HEADS, D_HEAD, K = 3, 11, 5, 7, 2
D = HEADS * D_HEAD
SIZES = Sizes(N, D, HEADS, K, BATCH)


def counted(call):
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def test_full_attention_has_the_operations_that_pytorch_counts():
    layer = MultiHeadAttention(D, HEADS)
    assert flops(full_attention(SIZES)) == counted(lambda: layer.definition(torch.randn(BATCH, N, D)))


def test_linear_attention_has_the_operations_that_pytorch_counts():
    x, wq, wk, wv, wo = (torch.randn(size) for size in ((BATCH, N, D), *[(D, D)] * 4))

    def layer():
        q, k, v = (split_heads(x @ w, HEADS) for w in (wq, wk, wv))
        mixed, divisors = q @ (k.mT @ v), q @ k.sum(dim=-2)[..., None]
        return merge_heads(mixed / divisors) @ wo

    assert flops(cost.linear_attention_steps(SIZES)) == counted(layer)


@pytest.mark.parametrize("num_heads", [1, 4, 16])
def test_the_closed_forms_hold_whatever_the_number_of_heads(num_heads):
    n, d, k, sizes = 1000, 64, 37, Sizes(1000, 64, num_heads, 37, batch=3)
    for layer in (full_attention, cost.tiled_attention):
        assert flops(layer(sizes)) == 3 * (8 * n * d**2 + 4 * n**2 * d)
    assert flops(compress_keys(sizes)) == 3 * (8 * n * d**2 + 8 * n * k * d)
    assert flops(cost.compress_tokens(sizes)) == 3 * (4 * n * d**2 + 4 * k * d**2 + 8 * n * k * d)


def test_linformer_and_full_attention_meet_at_twice_k():
    for k in (1, 64, 300):
        layers = compress_keys, full_attention
        ours, theirs = (lambda n, layer=layer, k=k: flops(layer(Sizes(n, 64, 4, k))) for layer in layers)
        assert ours(2 * k) == theirs(2 * k) and cost.crossover(ours, theirs) == 2 * k + 1


def test_a_crossover_that_never_comes_is_none():
    assert cost.crossover(lambda n: n + 1, lambda n: n, longest=1000) is None
    assert cost.crossover(lambda n: n, lambda n: n + 1) == 1


def test_bytes_of_a_step_by_hand():
    scores = full_attention(Sizes(5, 6, 2, batch=3, bytes_per_number=2))[1]
    queries_and_keys, maps = 2 * 3 * 5 * 6, 3 * 2 * 5 * 5
    assert scores == Step("scores", 2 * maps * 3, 2 * (queries_and_keys + maps), 2 * maps)


def test_bytes_of_the_products_with_weights_by_hand():
    sizes, x, w, slots = Sizes(5, 6, 2, 4, batch=3), 3 * 5 * 6, 6 * 6, 3 * 4 * 6
    project, *_, output = full_attention(sizes)
    assert (project.moved, project.result) == (4 * (x + 3 * w + 3 * x), 4 * 3 * x)
    assert (output.moved, output.result) == (4 * (x + w + x), 4 * x)
    queries, _, keys_and_values, *_ = cost.compress_tokens(sizes)
    assert queries.moved == 4 * (x + w + x)
    assert keys_and_values.moved == 4 * (2 * slots + 2 * w + 2 * slots)
    assert cost.compress_tokens(sizes, shared=True)[2].moved == 4 * (slots + 2 * w + 2 * slots)


def test_bytes_of_linear_attention_by_hand():
    x, states, sums = 3 * 5 * 6, 3 * 2 * 3 * 3, 3 * 6
    _, first, second, divisors, _ = cost.linear_attention_steps(Sizes(5, 6, 2, 4, batch=3))
    assert first.moved == 4 * (2 * x + states)
    assert second.moved == 4 * (x + states + x)
    assert divisors.moved == 4 * (x + sums + 3 * 2 * 5)


def test_bytes_of_the_compression_by_hand():
    compress = compress_keys(Sizes(7, 6, 2, 3, batch=5))[1]
    read, written = 2 * 5 * 7 * 6 + 2 * 3 * 7, 2 * 5 * 3 * 6
    assert (compress.moved, compress.result) == (4 * (read + written), 4 * written)
    separate, shared = (cost.compress_tokens(Sizes(7, 6, 2, 3, 5), shared=same)[1] for same in (False, True))
    assert separate.moved == 4 * (5 * 7 * 6 + 2 * 3 * 7 + 2 * 5 * 3 * 6)  # tokens, E and F, both results
    assert shared.moved == 4 * (5 * 7 * 6 + 3 * 7 + 5 * 3 * 6)


def test_bytes_of_attention_over_slots_by_hand():
    sizes, x, slots, maps = Sizes(5, 6, 2, 4, batch=3), 3 * 5 * 6, 3 * 4 * 6, 3 * 2 * 5 * 4
    *_, scores, _softmax, mix, _ = compress_keys(sizes)
    assert scores.moved == 4 * (x + slots + maps)
    assert mix.moved == 4 * (maps + slots + x)
    fused = compress_keys(sizes, fused=True)[2]  # queries, keys, values in; outputs out
    assert (fused.moved, fused.result) == (4 * (x + 2 * slots + x), 4 * x)


def test_a_softmax_reads_and_writes_its_maps():
    softmax = full_attention(SIZES)[2]
    maps = 4 * BATCH * HEADS * N * N
    assert softmax == Step("softmax", 0, 2 * maps, maps)


def test_a_tiled_layer_stores_no_map():
    full, tiled = full_attention(SIZES), cost.tiled_attention(SIZES)
    assert stored_bytes(full) - stored_bytes(tiled) == 2 * 4 * BATCH * HEADS * N * N  # scores and weights
    fused = compress_keys(SIZES, fused=True)
    assert stored_bytes(compress_keys(SIZES)) - stored_bytes(fused) == 2 * 4 * BATCH * HEADS * N * K


@pytest.mark.parametrize("layer", cost.LAYERS.values(), ids=cost.LAYERS)
def test_16_bit_halves_all_bytes_and_a_batch_multiplies_all_operations(layer):
    assert 2 * cost.moved_bytes(layer(Sizes(64, bytes_per_number=2))) == cost.moved_bytes(layer(Sizes(64)))
    assert 2 * stored_bytes(layer(Sizes(64, bytes_per_number=2))) == stored_bytes(layer(Sizes(64)))
    assert flops(layer(Sizes(64, batch=5))) == 5 * flops(layer(Sizes(64)))


def test_the_measured_peak_is_that_of_the_formula():
    q, k, v = torch.randn(3, BATCH, HEADS, 101, D_HEAD)
    sizes = Sizes(101, D, HEADS, batch=BATCH)
    scores, weights = full_attention(sizes)[1:3]
    peak = peak_bytes(scaled_dot_product_attention, q, k, v)
    assert scores.result + weights.result <= peak < 1.01 * (scores.result + weights.result)


def test_the_floor_is_the_longer_of_two_times_step_by_step():
    device = cost.Device("toy", {4: 100.0}, 10.0)
    computing, moving = Step("a", 1000, 20, 0), Step("b", 100, 70, 0)
    assert cost.floor_seconds([computing], device) == 10
    assert cost.floor_seconds([moving], device) == 7
    assert cost.floor_seconds([computing, moving], device) == 17
    with pytest.raises(ValueError, match="toy has ceilings for 4 bytes a number, got 2"):
        cost.floor_seconds([computing], device, 2)


def test_every_device_has_both_precisions_and_16_bit_is_faster():
    for device in cost.DEVICES:
        assert device.flops_per_s[2] > device.flops_per_s[4] > 10 * device.bytes_per_s


@pytest.mark.parametrize("power", [0.5, 1, 2])
def test_the_exponent_of_a_power_is_found(power):
    lengths = [3, 7, 20, 100]
    assert cost.fit_exponent(lengths, [5 * n**power for n in lengths]) == pytest.approx(power, abs=1e-12)


def test_the_exponent_is_a_least_squares_fit_over_all_points():
    xs, ys = [0.0, 1.0, 2.0], [0.0, 0.0, 3.0]  # slope by hand: (−1·−1 + 0 + 1·2) / 2
    assert cost.fit_exponent([math.exp(x) for x in xs], [math.exp(y) for y in ys]) == pytest.approx(1.5)


test_wrong_numbers_are_refused = refusing(
    (lambda: cost.fit_exponent([1, 2], [1, 2, 3]), "2 lengths and 3 costs"),
    (lambda: cost.fit_exponent([1, 2], [1, 0]), "smallest value is 0, expected finite numbers above 0"),
    (lambda: Sizes(0), r"n is 0, expected an integer of at least 1"),
    (lambda: Sizes(8, proj_dim=2.5), r"proj_dim is 2\.5"),
    (lambda: Sizes(8, 64, 3), "3 heads do not divide d_model=64"),
    (lambda: cost.crossover(lambda n: n, lambda n: n, longest=0), "longest is 0"),
)
