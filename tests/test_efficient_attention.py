"""efficient/: every relative is its dense definition, forward and backward, without ever storing it."""

import math
from functools import partial
from inspect import signature
from itertools import product

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as pytorch_attention
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from linformer_from_scratch import efficient
from linformer_from_scratch.attention import attention_weights, scaled_dot_product_attention
from linformer_from_scratch.benchmark import peak_bytes
from linformer_from_scratch.efficient import sliding_window_attention, sparse_attention
from linformer_from_scratch.efficient.family import FAMILY, effective_map, largest_size
from linformer_from_scratch.efficient.hierarchical import hierarchical_attention
from linformer_from_scratch.efficient.linear import CHUNK, elu_plus_one, linear_attention
from linformer_from_scratch.efficient.nystrom import nystrom_attention, nystrom_flops, pseudoinverse
from linformer_from_scratch.efficient.performer import log_features, orthogonal_gaussian, performer_attention
from linformer_from_scratch.efficient.sliding_window import sliding_window_flops, window_and_global_attention
from linformer_from_scratch.efficient.tiled import tiled_attention
from linformer_from_scratch.multihead import MultiHeadAttention

BATCH, HEADS, N, D, D_V = 2, 3, 23, 5, 7
LONG = 8_192
LATER = "prefer_deferred_runtime_asserts_over_guards"  # what export takes in a newer torch than the oldest

both_ways = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
every_relative = pytest.mark.parametrize("relative", FAMILY, ids=lambda relative: relative.name)


@pytest.fixture
def qkv():
    torch.manual_seed(0)
    sizes = (D, D, D_V)
    return [torch.randn(BATCH, HEADS, N, size, dtype=torch.float64, requires_grad=True) for size in sizes]


def assert_same(attention, definition, qkv):
    """Same output, and the same gradients of q, k and v for an upstream gradient that is not constant."""
    output, expected = attention(*qkv), definition(*qkv)
    assert_close(output, expected)
    upstream = torch.randn_like(expected)
    found, wanted = (torch.autograd.grad(x, qkv, upstream) for x in (output, expected))
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other)


def rows_divided_by_their_sum(weights, v):
    return weights / weights.sum(dim=-1, keepdim=True) @ v


def masked(mask):
    return lambda q, k, v: scaled_dot_product_attention(q, k, v, mask)


# Definitions


def window_by_hand(n, window, causal):
    reads = [[abs(i - j) <= window and (j <= i or not causal) for j in range(n)] for i in range(n)]
    return torch.tensor(reads)


def sparse_by_hand(n, stride, num_global, causal):
    def reads(i, j):
        return (i % stride == j % stride or min(i, j) < num_global) and (j <= i or not causal)

    return torch.tensor([[reads(i, j) for j in range(n)] for i in range(n)])


@both_ways
@pytest.mark.parametrize("window", [1, 7, 40])
def test_sliding_window_is_attention_with_its_mask(qkv, window, causal):
    mask = window_by_hand(N, window, causal)
    assert torch.equal(efficient.window_mask(N, window, causal), mask)
    assert_same(lambda *qkv: sliding_window_attention(*qkv, window, causal), masked(mask), qkv)


@pytest.mark.parametrize("num_global", [1, 3])
@pytest.mark.parametrize("window", [1, 7, 40])
def test_windows_with_global_tokens_are_attention_with_their_mask(qkv, window, num_global):
    mask = window_by_hand(N, window, causal=False)
    mask[:num_global], mask[:, :num_global] = True, True
    assert_same(lambda *qkv: window_and_global_attention(*qkv, window, num_global), masked(mask), qkv)
    with pytest.raises(ValueError, match=f"num_global is {N}, expected an integer in 1 … {N - 1}"):
        window_and_global_attention(*qkv, window, N)


@both_ways
@pytest.mark.parametrize("num_global", [0, 3, 30])
@pytest.mark.parametrize("stride", [1, 5, 30])
def test_sparse_is_attention_with_its_mask(qkv, stride, num_global, causal):
    mask = sparse_by_hand(N, stride, num_global, causal)
    assert torch.equal(efficient.sparse_mask(N, stride, num_global, causal), mask)
    assert_same(lambda *qkv: sparse_attention(*qkv, stride, num_global, causal), masked(mask), qkv)


def hierarchical_by_hand(q, k, v, block, causal):
    """Full n×n scores in which every far key is the mean of its block, one token after another."""
    n, rows = q.size(-2), []
    blocks = [range(start, min(start + block, n)) for start in range(0, n, block)]
    for i in range(n):
        scores = []
        for tokens in blocks:
            for j in tokens:
                near = i in tokens
                key = k[..., j, :] if near else k[..., list(tokens), :].mean(dim=-2)
                hidden = causal and (j > i if near else tokens[0] > i)
                score = (q[..., i, :] * key).sum(dim=-1) / math.sqrt(q.size(-1))
                scores.append(torch.full_like(score, -math.inf) if hidden else score)
        rows.append(torch.stack(scores, dim=-1))
    return torch.stack(rows, dim=-2).softmax(dim=-1) @ v


@both_ways
@pytest.mark.parametrize("block", [1, 5, 30])
def test_two_levels_are_attention_to_means_of_far_blocks(qkv, block, causal):
    ours = partial(hierarchical_attention, block=block, causal=causal)
    assert_same(ours, partial(hierarchical_by_hand, block=block, causal=causal), qkv)


def test_nystrom_is_its_three_factors(qkv):
    def definition(q, k, v):
        q_mean, k_mean = (x.unflatten(-2, (5, 4)).mean(dim=-2) for x in (q, k))
        middle = torch.linalg.pinv(attention_weights(q_mean, k_mean))
        return attention_weights(q, k_mean) @ middle @ attention_weights(q_mean, k) @ v

    q, k, v = (x[..., :20, :] for x in qkv)
    assert_same(partial(nystrom_attention, landmarks=5, steps=40), definition, [3 * q, 3 * k, v])


def test_pseudoinverse_of_many_matrices_at_once():
    torch.manual_seed(0)
    a = torch.randn(3, 2, 5, 5, dtype=torch.float64) + 3 * torch.eye(5)
    singular = a.clone()
    singular[..., -1, :] = singular[..., 0, :]
    for matrices in (a, singular):
        assert_close(pseudoinverse(matrices, 15), torch.linalg.pinv(matrices), atol=1e-5, rtol=1e-5)
    large_and_small = torch.stack([torch.eye(5), 1e-4 * torch.eye(5)])
    assert_close(pseudoinverse(large_and_small, 6)[1], 1e4 * torch.eye(5))


def kernel_by_hand(q, k, v, causal):
    q, k = (torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (q, k))
    weights = q @ k.mT
    return rows_divided_by_their_sum(weights.tril() if causal else weights, v)


@both_ways
@pytest.mark.parametrize("n", [1, N, CHUNK, 2 * CHUNK + 3])
def test_linear_attention_is_a_map_of_kernel_weights(n, causal):
    torch.manual_seed(1)
    qkv = [torch.randn(BATCH, n, size, dtype=torch.float64, requires_grad=True) for size in (D, D, D_V)]
    assert_same(partial(linear_attention, causal=causal), partial(kernel_by_hand, causal=causal), qkv)


@both_ways
def test_performer_is_a_map_of_random_features(qkv, causal):
    omega = orthogonal_gaussian(11, D, seed=2).double()

    def definition(*qkv):
        *qk, v = qkv
        q, k = ((x / D**0.25 @ omega.mT - (x * x).sum(-1, keepdim=True) / (2 * D**0.5)).exp() for x in qk)
        weights = q @ k.mT
        return rows_divided_by_their_sum(weights.tril() if causal else weights, v)

    assert_same(lambda q, k, v: performer_attention(q, k, v, omega, causal), definition, qkv)


def test_features_are_orthogonal_in_blocks_and_as_long_as_gaussian_vectors():
    omega = orthogonal_gaussian(3 * D + 2, D, seed=3)
    assert omega.shape == (3 * D + 2, D)
    for block in omega.split(D):
        gram = block @ block.mT
        assert_close(gram, gram.diag().diag(), atol=1e-5, rtol=0)
    assert MANY.square().sum(dim=1).mean() == pytest.approx(D, rel=0.03)  # E‖ω‖² = d


def test_no_direction_of_the_features_is_likelier_than_another():
    draws = torch.stack([orthogonal_gaussian(D, D, seed) for seed in range(4000)])
    assert draws.mean(dim=0).abs().max() < 4 / 4000**0.5  # four standard errors


MANY = orthogonal_gaussian(50_000, D)


@pytest.mark.parametrize("sign", [1, -1])
def test_random_features_estimate_the_exponential(sign):
    torch.manual_seed(0)
    x, y = sign * torch.randn(2, 1, D, dtype=torch.float64)
    features = [log_features(z, MANY.double()).exp() for z in (x, y)]
    exact = math.exp((x @ y.mT).item() / math.sqrt(D))
    assert (features[0] * features[1]).mean().item() == pytest.approx(exact, rel=0.02)


@both_ways
@pytest.mark.parametrize("tile", [1, 4, 128])
def test_tiles_are_exact_attention(qkv, tile, causal):
    ours = partial(tiled_attention, tile=tile, causal=causal)
    assert_same(ours, partial(pytorch_attention, is_causal=causal), qkv)


def test_tiles_refuse_a_second_derivative(qkv):
    (gradient,) = torch.autograd.grad(tiled_attention(*qkv).square().sum(), qkv[:1], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


# Nyström's segments


@pytest.mark.parametrize("segments", [1, 5, 22, N])
def test_every_token_is_in_one_segment_and_sizes_differ_by_at_most_one(segments):
    members = efficient.nystrom.segment_means(torch.eye(N, dtype=torch.float64), segments) > 0
    assert torch.equal(members.sum(dim=0), torch.ones(N, dtype=torch.long))
    sizes = members.sum(dim=1)
    assert sizes.tolist() == sorted(sizes.tolist())
    assert sizes.max() - sizes.min() <= 1
    assert torch.equal(members.int().argmax(dim=1), sizes.cumsum(0) - sizes)  # neighbours
    x = torch.randn(2, N, D)
    by_hand = torch.stack([x[:, member].mean(dim=1) for member in members], dim=1)
    assert_close(efficient.nystrom.segment_means(x, segments), by_hand)


@pytest.mark.parametrize("n", [1, 2, 64])
def test_nystrom_with_a_landmark_for_each_token_is_exact_without_any_step(n):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, n, 16)
    assert_close(nystrom_attention(q, k, v, n, steps=0), pytorch_attention(q, k, v))
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        nystrom_attention(q[:1], k[:1], v[:1], n)
    assert counter.get_total_flops() == nystrom_flops(n, 16, n)
    (nystrom,) = (relative for relative in FAMILY if relative.name == "Nyström")
    assert max(nystrom.sizes(n)) == max(n - 1, 1)  # with n it would be no relative, but exact


# Far from zero


def performer_by_hand(q, k, v, omega, causal):
    """In logarithms, weight by weight."""
    exponents = log_features(q, omega)[..., :, None, :] + log_features(k, omega)[..., None, :, :]
    scores = exponents.logsumexp(dim=-1)
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
    return scores.softmax(dim=-1) @ v


def assert_near_double(attend, definition, qkv, tolerance):
    """Output and gradients in float32 beside the definition in float64."""
    rounding = 2e-5 * max(x.abs().max().item() for x in qkv)  # of a gradient that is multiplied by q or k
    doubles = [x.double().requires_grad_() for x in qkv]
    singles = [x.clone().requires_grad_() for x in qkv]
    output, expected = attend(*singles), definition(*doubles)
    assert_close(output.double(), expected, atol=tolerance, rtol=tolerance)
    upstream = torch.randn_like(output)
    found = torch.autograd.grad(output, singles, upstream)
    wanted = torch.autograd.grad(expected, doubles, upstream.double())
    for one, other in zip(found, wanted, strict=True):
        scale = max(1, other.abs().max().item())
        assert_close(one.double(), other, atol=max(tolerance, rounding) * scale, rtol=0)


@both_ways
@pytest.mark.parametrize("size", [1, 30, 1000])
@pytest.mark.parametrize("d", [D, 128])
def test_performer_is_its_definition_however_long_keys_are(d, size, causal):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 150, d)
    omega = orthogonal_gaussian(32, d)
    ours = partial(performer_attention, omega=omega, causal=causal)
    by_hand = partial(performer_by_hand, omega=omega.double(), causal=causal)
    tolerance = {1: 1e-5, 30: 2e-3, 1000: 1e-4}[size]  # rounding of exponents: 5 to 10,000
    assert_near_double(ours, by_hand, [q, size * k, v], tolerance)


def shrinking(n):
    """Every key far shorter than the one before it: exponents rise by thousands, token by token."""
    return torch.logspace(3, -1, n)[:, None]


@pytest.mark.parametrize("n", [1, 2, 37, 300])
def test_causal_performer_reads_the_past_though_later_features_are_far_larger(n):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, n, 16, dtype=torch.float64)
    k = shrinking(n) * k
    omega = orthogonal_gaussian(24, 16).double()
    expected = performer_by_hand(q, k, v, omega, causal=True)
    assert_close(performer_attention(q, k, v, omega, causal=True), expected, atol=1e-8, rtol=1e-8)
    in_float32 = performer_attention(q.float(), k.float(), v.float(), omega.float(), causal=True)
    assert in_float32.isfinite().all()
    assert_close(in_float32[0].double(), v[0])  # the first token has only itself to read


def test_a_huge_later_key_changes_no_bit_of_what_earlier_tokens_read():
    torch.manual_seed(0)
    n, d, omega = CHUNK + 40, 64, orthogonal_gaussian(32, 64)
    q, k, v = torch.randn(3, 2, n, d)
    for attend in (linear_attention, lambda *qkv, causal: performer_attention(*qkv, omega, causal)):
        before = attend(q, k, v, causal=True)
        for edited in (10, CHUNK - 1, CHUNK + 3):
            changed = k.clone()
            changed[:, edited] = 1e4 * omega[0]
            after = attend(q, changed, v, causal=True)
            assert torch.equal(after[:, :edited], before[:, :edited])
            assert not torch.equal(after[:, edited:], before[:, edited:])


@both_ways
@pytest.mark.parametrize("shift", [0, -20, -60])
def test_linear_attention_far_below_zero(shift, causal):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 70, D)
    ours, by_hand = (partial(f, causal=causal) for f in (linear_attention, kernel_by_hand))
    assert_near_double(ours, by_hand, [q + 3 * shift, k + shift, v], tolerance=1e-5)


def test_elu_plus_one_stops_at_minus_69():
    below = torch.tensor(-80.0, requires_grad=True)
    stopped = elu_plus_one(below)
    assert stopped.item() == pytest.approx(math.exp(-69))
    assert torch.autograd.grad(stopped, below)[0] == 0


# Halves

OMEGA = orthogonal_gaussian(16, 16)
ATTEND = {  # causal where they can be
    "sliding window": lambda q, k, v, causal: sliding_window_attention(q, k, v, 7, causal),
    "two levels": lambda q, k, v, causal: hierarchical_attention(q, k, v, 6, causal),
    "strided + global": lambda q, k, v, causal: sparse_attention(q, k, v, 6, 2, causal),
    "Nyström": lambda q, k, v, _: nystrom_attention(q, k, v, 5),
    "linear": linear_attention,
    "Performer": lambda q, k, v, causal: performer_attention(q, k, v, OMEGA.to(q.dtype), causal),
    "tiled exact": lambda q, k, v, causal: tiled_attention(q, k, v, 8, causal),
}
OF_LONG_TEXTS = ATTEND | {
    "two levels": lambda q, k, v, causal: hierarchical_attention(q, k, v, 173, causal),
    "strided + global": lambda q, k, v, causal: sparse_attention(q, k, v, 173, 1, causal),
}
by_name = pytest.mark.parametrize("name", ATTEND)
dtypes = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])


@dtypes
@both_ways
@pytest.mark.parametrize("size", [1, 1000])
@by_name
def test_relatives_of_halves_are_those_of_float32_to_the_rounding_of_halves(name, size, causal, dtype):
    torch.manual_seed(0)
    q, k, v = (s * torch.randn(2, 75, 16) for s in (size, size, 1))
    halves = [x.to(dtype).requires_grad_() for x in (q, k, v)]
    output = ATTEND[name](*halves, causal)
    assert output.dtype == dtype
    expected = ATTEND[name](*(x.detach().float() for x in halves), causal)
    assert_close(output.float(), expected, atol=1e-2, rtol=1e-2)
    for gradient in torch.autograd.grad(output.float().sum(), halves):
        assert gradient.dtype == dtype
        assert size > 1 or gradient.isfinite().all()  # true gradients of large ones may be beyond a half


@pytest.mark.slow
@both_ways
@by_name
def test_long_texts_in_halves_keep_their_sums(name, causal):
    torch.manual_seed(0)
    n, attend = 3_000 if name == "tiled exact" else 30_000, OF_LONG_TEXTS[name]
    q, k, v = (x.half() for x in (torch.randn(n, 16), torch.randn(n, 16) + 3, torch.rand(n, 16) + 1))
    with torch.no_grad():
        expected = attend(*(x.double() for x in (q, k, v)), causal)
        assert_close(attend(q, k, v, causal).double(), expected, atol=1e-2, rtol=1e-2)


@both_ways
@by_name
def test_the_largest_halves_give_what_doubles_give(name, causal):
    torch.manual_seed(0)
    attend = ATTEND[name]
    q, k, v = (60_000 * torch.randn(3, 2, 150, 16)).clamp(-60_000, 60_000).half()
    assert ((q.double() @ k.double().mT).abs() > 4 * 65_504).double().mean() > 0.3  # scores beyond a half
    expected = attend(*(x.double() for x in (q, k, v)), causal)
    if name == "Performer":  # float32 does not hold exponents of 10¹⁰: there it is near its own definition
        expected = attend(*(x.float() for x in (q, k, v)), causal).double()
    assert_close(attend(q, k, v, causal).double(), expected, atol=60_000 * 2**-10, rtol=0)


def test_tiles_under_autocast_have_the_gradients_of_their_own_scores(qkv):
    qkv = [20 * x.detach().float() for x in qkv]
    for x in qkv:
        x.requires_grad_()
    wanted = torch.autograd.grad(tiled_attention(*qkv, 4).sum(), qkv)
    with torch.autocast("cpu", torch.bfloat16):
        found = torch.autograd.grad(tiled_attention(*qkv, 4).sum(), qkv)
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other)


# Sizes beyond the text


@both_ways
def test_sizes_beyond_the_text_cost_no_more_than_the_text(qkv, causal):
    q, k, v = (x.detach() for x in qkv)
    for attend in (hierarchical_attention, sparse_attention, sliding_window_attention):
        assert_close(attend(q, k, v, 8192, causal=causal), attend(q, k, v, N, causal=causal))
        assert peak_bytes(lambda: attend(q, k, v, 8192, causal=causal)) < 2**20  # noqa: B023
    assert sliding_window_flops(N, 4, 8192) == sliding_window_flops(N, 4, N)


# Windows


def numbers(*sizes):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(0))


@both_ways
def test_a_window_stores_no_scores(causal):
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
    q, k, v = (numbers(*axis, n, D) for axis in axes)
    full = (x.expand(*axes[0], n, D).unsqueeze(0) for x in (q, k, v))
    expected = pytorch_attention(*full, efficient.window_mask(n, 4, causal))[0]
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
        torch.autograd.grad(sliding_window_attention(*qkv, 4, causal).square().sum(), qkv)


# Graphs

RECORDED = [*product(ATTEND, (False, True))]
RECORDED.remove(("Nyström", True))
recorded = pytest.mark.parametrize(("name", "causal"), RECORDED)


class Recorded(torch.nn.Module):
    def __init__(self, name, causal):
        super().__init__()
        self.attend, self.causal = ATTEND[name], causal

    def forward(self, q, k, v):
        return self.attend(q, k, v, self.causal)


def assert_holds(program, name, causal, lengths):
    for n in lengths:
        q, k, v = torch.randn(3, 2, n, 16)
        assert_close(program(q, k, v), ATTEND[name](q, k, v, causal), atol=1e-5, rtol=1e-5)


@recorded
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:`torch.jit:DeprecationWarning")
def test_a_relative_traced_at_one_length_holds_at_others(name, causal, tmp_path):
    traced = torch.jit.trace(Recorded(name, causal), tuple(torch.randn(3, 2, 23, 16)))
    traced.save(tmp_path / "traced.pt")  # nothing in it calls Python
    assert_holds(torch.jit.load(tmp_path / "traced.pt"), name, causal, (8, 23, 24, 129, 300))


@pytest.mark.slow
@pytest.mark.skipif(LATER not in signature(torch.export.export).parameters, reason="needs a newer torch")
@recorded
def test_a_relative_exported_for_every_length_holds_at_each(name, causal):
    least = CHUNK + 1 if causal and name in ("linear", "Performer") else 12  # more than one chunk
    n = torch.export.Dim("n", min=least, max=4096)
    exported = torch.export.export(
        Recorded(name, causal),
        tuple(torch.randn(3, 2, least + 150, 16)),
        dynamic_shapes=[{1: n}] * 3,
        **{LATER: True},  # of blocks that n fills PyTorch proves too little
    )
    assert_holds(exported.module(), name, causal, (least, least + 1, least + 12, 258, 300, 1001))


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:`torch.jit:DeprecationWarning")
def test_a_layer_around_a_relative_is_traced_for_every_length():
    layer = efficient.EfficientAttention(12, 3, linear_attention).eval()
    traced = torch.jit.trace(layer, torch.randn(2, 23, 12))
    x = torch.randn(2, 70, 12)
    assert_close(traced(x), layer(x))
    with pytest.raises(ValueError, match="got a padding_mask, expected None: a graph cannot see that no"):
        torch.jit.trace(layer, (x, torch.ones(2, 70, dtype=torch.bool)))


# The family


def at_some_size(relative, n, causal=False, size=64):
    size = next((s for s in relative.sizes(n) if s >= size), 1)
    return relative.build(n, D, size, **({"causal": True} if causal else {})), size


@every_relative
def test_no_relative_stores_its_map_forward_or_backward(relative):
    torch.manual_seed(0)
    n = LONG // 4 if relative.exact else LONG  # as many operations as n², and the same promise
    q, k, v = (torch.randn(1, 1, n, 8, requires_grad=True) for _ in range(3))
    size = {"two levels": 128}.get(relative.name, 64)
    attend = relative.build(n, 8, size)

    assert peak_bytes(lambda: attend(q, k, v).square().sum().backward()) < n * n * 4 / 10


@every_relative
@pytest.mark.parametrize("n", [N, 32])
def test_operations_are_those_that_pytorch_counts(relative, n):
    attend, size = at_some_size(relative, n, size=6)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        attend(*torch.randn(3, 1, n, D))
    sums = 2 * n * D if relative.name == "Linformer, mean pooling" else 0  # PyTorch counts products only
    assert counter.get_total_flops() + sums == relative.flops(n, D, size)


@every_relative
def test_a_causal_relative_does_not_see_the_future_and_the_others_do(relative):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, N, D)
    attend, _ = at_some_size(relative, N, causal=relative.causal, size=6)
    changed = [x.clone() for x in (q, k, v)]
    for x in changed:
        x[:, -4:] += 1  # the last four tokens say something else
    before, after = attend(q, k, v)[:, :-4], attend(*changed)[:, :-4]
    if relative.causal:
        assert torch.equal(before, after)
    else:
        assert not torch.allclose(before, after)
        with pytest.raises(TypeError):
            relative.build(N, D, 6, causal=True)


@every_relative
def test_only_the_exact_one_is_exact_and_only_the_fixed_one_refuses_longer_texts(relative):
    torch.manual_seed(0)
    attend, _ = at_some_size(relative, N, size=6)
    q, k, v = torch.randn(3, 1, N, D)
    assert torch.allclose(attend(q, k, v), pytorch_attention(q, k, v), atol=1e-5) == relative.exact
    longer = torch.randn(3, 1, N + 8, D)
    if relative.fixed_length:
        with pytest.raises(ValueError, match=f"{N + 8} tokens; E and F were built for seq_len={N}"):
            attend(*longer)
    else:
        assert attend(*longer).shape == longer[0].shape


@every_relative
def test_the_effective_map_is_what_the_values_are_multiplied_with(relative):
    q, k, v = torch.randn(3, BATCH, HEADS, N, D, dtype=torch.float64)
    attend, _ = at_some_size(relative, N, size=6)
    assert_close(effective_map(attend, q, k) @ v, attend(q, k, v))


@every_relative
def test_the_largest_size_within_a_budget(relative):
    costs = {size: relative.flops(32, D, size) for size in relative.sizes(32)}
    assert largest_size(relative, 32, D, min(costs.values()) - 1) is None
    for budget in costs.values():
        within = [size for size, cost in costs.items() if cost <= budget]
        assert largest_size(relative, 32, D, budget) == max(within)


def test_a_layer_around_exact_attention_is_multi_head_attention():
    torch.manual_seed(0)
    layer, exact = efficient.EfficientAttention(12, 3, tiled_attention), MultiHeadAttention(12, 3)
    layer.load_state_dict(exact.state_dict())
    x = torch.randn(BATCH, N, 12)
    assert_close(layer(x, torch.ones(BATCH, N, dtype=torch.bool)), exact(x))


# Bad input

LAYER = efficient.EfficientAttention(5, 1, tiled_attention)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda q: sliding_window_attention(q, q, q, 0), "window is 0, expected an integer of at least 1"),
        (lambda q: sliding_window_attention(q, q[..., :4], q, 2), "q has 5 features, k has 4"),
        (lambda q: sliding_window_attention(*3 * [q.long()], 2), "torch.int64; expected floating"),
        (lambda q: hierarchical_attention(q, q, q, 2.5), "block is 2.5, expected an integer"),
        (lambda q: nystrom_attention(q, q, q, 9), "landmarks is 9, expected at most n=8"),
        (lambda q: tiled_attention(q, q.expand(2, 8, 5), q), r"batch axes \(1,\), \(2,\), \(1,\)"),
        (lambda q: linear_attention(q, q[:, 1:], q), "q, k, v have 8, 7, 8 tokens"),
        (lambda q: tiled_attention(*3 * [q[:, :0]]), "q, k, v have 0 tokens; expected at least 1"),
        (lambda q: performer_attention(q, q, q, torch.randn(6, 4)), "omega has 4 features, q has 5"),
        (lambda q: linear_attention(q, q, q.long()), "float32, torch.int64; expected floating point"),
        (lambda q: efficient.EfficientAttention(5, 2, tiled_attention), "2 heads do not divide d_model=5"),
        (lambda q: LAYER(q, torch.arange(8)[None] < 6), "2 tokens are padding, expected 0"),
    ],
)
def test_bad_input_is_named_with_both_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.randn(1, 8, 5))
