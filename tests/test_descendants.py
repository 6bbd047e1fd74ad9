"""descendants/: what became of E, against its definition."""

import copy
import math

import pytest
import torch
from refusals import refusing
from torch.testing import assert_close

from linformer_from_scratch.attention import causal_mask, scaled_dot_product_attention
from linformer_from_scratch.benchmark import peak_bytes
from linformer_from_scratch.descendants.blocks import block_attention, compress_blocks, ended
from linformer_from_scratch.descendants.choice import best_slots, chosen_attention, index_scores, tokens_read
from linformer_from_scratch.descendants.layer import CompressedAttention, SharedSlots
from linformer_from_scratch.descendants.memory import BoundedMemoryAttention, bounded_memory_attention
from linformer_from_scratch.heads import merge_heads, split_heads

BATCH, HEADS, D, D_V = 2, 3, 5, 7
DOUBLE = torch.float64


def draw(*shapes, seed=0, dtype=DOUBLE):
    random = torch.Generator().manual_seed(seed)
    return [torch.randn(*shape, generator=random, dtype=dtype) for shape in shapes]


def drawn(n, block, dtype=DOUBLE):
    of = [(BATCH, HEADS, tokens, features) for tokens in (n, n // block) for features in (D, D, D_V)]
    q, k, v, _, slots_k, slots_v = draw(*of, dtype=dtype)
    return q, k, v, slots_k, slots_v


def test_a_slot_is_the_mean_of_its_block_if_nothing_is_learned():
    (x,) = draw((BATCH, 17, D))
    assert_close(compress_blocks(x, torch.zeros(5)), x[:, :15].unflatten(1, (3, 5)).mean(2))
    assert compress_blocks(x[:, :4], torch.zeros(5)).shape == (BATCH, 0, D)


def test_a_gate_and_a_bias_of_each_feature_weigh_the_tokens_of_a_block():
    x, gate, bias = draw((BATCH, 17, D), (BATCH, 17, D), (5, D))
    for i, slot in enumerate(compress_blocks(x, bias, gate).unbind(1)):
        part = slice(5 * i, 5 * i + 5)
        assert_close(slot, ((gate[:, part] + bias).softmax(1) * x[:, part]).sum(1))


def test_without_a_gate_blocks_are_linformer_with_a_block_diagonal_projection():
    x, bias = draw((15, D), (5,))
    E = torch.block_diag(*3 * [bias.softmax(0)[None]])
    assert_close(compress_blocks(x, bias), E @ x)


def test_overlapping_slots_mix_the_block_before_as_well():
    x, gate, bias = draw((BATCH, 14, 2 * D), (BATCH, 14, 2 * D), (4, 2 * D))
    logits = gate[:, :12] + bias.repeat(3, 1)
    slots = compress_blocks(x, bias, gate, overlap=True)
    for i, slot in enumerate(slots.unbind(1)):
        own, before = slice(4 * i, 4 * i + 4), slice(4 * max(i - 1, 0), 4 * i)
        mixed = torch.cat([x[:, before, :D], x[:, own, D:]], dim=1)
        weights = torch.cat([logits[:, before, :D], logits[:, own, D:]], dim=1).softmax(1)
        assert_close(slot, (weights * mixed).sum(1))


@pytest.mark.parametrize("overlap", [False, True])
def test_gradients_reach_everything_that_is_compressed(overlap):
    x, gate, bias = (some.requires_grad_() for some in draw((1, 9, 4), (1, 9, 4), (4, 4)))
    assert torch.autograd.gradcheck(lambda *some: compress_blocks(*some, overlap), (x, bias, gate))


def by_definition(q, k, v, slots_k, slots_v, block, window):
    """One query after another."""
    rows = []
    for t in range(q.size(-2)):
        first, blocks = max(0, t + 1 - window), (t + 1) // block
        keys = torch.cat([slots_k[..., :blocks, :], k[..., first : t + 1, :]], dim=-2)
        values = torch.cat([slots_v[..., :blocks, :], v[..., first : t + 1, :]], dim=-2)
        rows.append(scaled_dot_product_attention(q[..., [t], :], keys, values))
    return torch.cat(rows, dim=-2)


@pytest.mark.parametrize("n", [1, 2, 5, 6, 7, 13])
@pytest.mark.parametrize("block", [1, 3, 4, 20])
@pytest.mark.parametrize("window", [0, 1, 3, 5, 30])
def test_every_query_reads_the_blocks_that_ended_and_its_window(n, block, window):
    some = drawn(n, block)
    assert_close(block_attention(*some, block, window), by_definition(*some, block, window))


def test_one_head_of_keys_and_values_serves_all_queries():
    q, k, v, slots_k, slots_v = drawn(13, 4)
    one = [some[:, :1] for some in (k, v, slots_k, slots_v)]
    all_alike = [some.expand(-1, HEADS, -1, -1) for some in one]
    assert_close(block_attention(q, *one, 4, 3), block_attention(q, *all_alike, 4, 3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sixteen_bits_hold_out_against_extremes(dtype):
    q, k, v, slots_k, slots_v = (some.to(dtype) for some in drawn(13, 4))
    outputs = block_attention(300 * q, 300 * k, v, 300 * slots_k, slots_v, 4, 3)
    assert outputs.dtype == dtype and outputs.isfinite().all()
    slots = compress_blocks(v, torch.zeros(4), 1e4 * v)
    assert slots.dtype == dtype and slots.isfinite().all()


def test_the_best_slots_are_those_that_ended_and_score_highest():
    (scores,) = draw((BATCH, 13, 4))
    chosen = best_slots(scores, 2, ended(13, 3))
    for t in range(13):
        blocks = (t + 1) // 3
        best = scores[:, t, :blocks].argsort(descending=True)[:, :2].sort().values
        for text in range(BATCH):
            assert chosen[text, t].nonzero().flatten().tolist() == best[text].tolist()
    assert torch.equal(best_slots(scores, 9, ended(13, 3)), ended(13, 3).expand(BATCH, -1, -1))


def test_a_score_of_the_index_is_a_weighed_sum_over_heads():
    q, k, weights = draw((BATCH, HEADS, 6, D), (BATCH, 1, 4, D), (BATCH, 6, HEADS))
    by_hand = sum(
        weights[:, :, h, None] * (q[:, h] @ k[:, 0].mT).clamp(min=0) / math.sqrt(D) for h in range(HEADS)
    ) / math.sqrt(HEADS)
    assert_close(index_scores(q, k, weights), by_hand)


def test_only_chosen_slots_are_read():
    some = drawn(13, 4)
    nothing = torch.zeros(13, 3, dtype=torch.bool)
    without = [x[..., :0, :] for x in some[3:]]
    assert_close(block_attention(*some, 4, 3, nothing), block_attention(*some[:3], *without, 14, 3))
    only = torch.tensor([False, True, False]).expand(13, -1)
    q, k, v, slots_k, slots_v = some
    far = torch.cat([slots_k[..., :1, :] + 9, slots_k[..., 1:2, :], slots_k[..., 2:, :] - 9], dim=-2)
    assert_close(block_attention(*some, 4, 3, only), block_attention(q, k, v, far, slots_v, 4, 3, only))


@pytest.mark.parametrize("n", range(1, 14))
@pytest.mark.parametrize("window", [0, 3])
def test_tokens_that_are_read_are_those_of_the_best_blocks_the_open_block_and_the_window(n, window):
    (scores,) = draw((BATCH, n, n // 4))
    read = tokens_read(scores, n, 4, window, top=1)
    for text in range(BATCH):
        for t in range(n):
            blocks = (t + 1) // 4
            wanted = {*range(4 * blocks, t + 1), *range(max(0, t + 1 - window), t + 1)}
            if blocks:
                best = scores[text, t, :blocks].argmax().item()
                wanted |= {*range(4 * best, 4 * best + 4)}
            assert set(read[text, t].nonzero().flatten().tolist()) == wanted


def test_tokens_of_all_blocks_are_exact_causal_attention():
    q, k, v, _, _ = drawn(13, 4)
    (scores,) = draw((BATCH, 13, 3))
    exact = scaled_dot_product_attention(q, k, v, causal_mask(13))
    for top in (None, 3, 9):
        assert_close(chosen_attention(q, k, v, scores, 4, 0, top), exact)
    one = chosen_attention(q[..., -1:, :], k, v, scores[:, -1:], 4, 2, 1)
    assert_close(one, chosen_attention(q, k, v, scores, 4, 2, 1)[..., -1:, :])


def test_what_reaches_the_scores_of_tokens_reaches_those_of_their_blocks():
    q, k, v, _, _ = drawn(9, 4)
    (scores,) = draw((BATCH, 9, 2))
    scores.requires_grad_()
    chosen_attention(q, k, v, scores, 4, 1, 1).sum().backward()
    added = torch.zeros(BATCH, HEADS, 9, 9, dtype=DOUBLE, requires_grad=True)
    mask = tokens_read(scores.detach(), 9, 4, 1, 1)[:, None]
    logits = (q @ k.mT / math.sqrt(D) + added).masked_fill(~mask, -math.inf)
    (logits.softmax(-1) @ v).sum().backward()
    assert_close(scores.grad, added.grad.sum(1)[..., :8].unflatten(-1, (2, 4)).sum(-1))


def memory_by_definition(q, k, v, logits):
    rows = []
    for t in range(q.size(-2)):
        shares = logits[..., : t + 1, :].softmax(-2).mT  # (..., slots, tokens)
        slots = shares @ k[..., : t + 1, :], shares @ v[..., : t + 1, :]
        rows.append(scaled_dot_product_attention(q[..., [t], :], *slots))
    return torch.cat(rows, dim=-2)


@pytest.mark.parametrize("n", [1, 4, 11])
@pytest.mark.parametrize("chunk", [1, 3, 11, 64])
@pytest.mark.parametrize("own", [False, True])  # logits of every text, or of the position alone
def test_bounded_memory_holds_means_of_the_tokens_so_far(n, chunk, own):
    q, k, v, logits = draw(*((BATCH, HEADS, n, d) for d in (D, D, D_V, 4)))
    logits = logits if own else logits[0, 0]
    assert_close(bounded_memory_attention(q, k, v, logits, chunk), memory_by_definition(q, k, v, logits))


def test_bounded_memory_stands_logits_of_any_size():
    q, k, v, logits = draw((1, 130, D), (1, 130, D), (1, 130, D_V), (1, 130, 4))
    outputs = bounded_memory_attention(q, k, v, 500 * logits)
    assert_close(outputs, memory_by_definition(q, k, v, 500 * logits))
    small = [some[:, :7].requires_grad_() for some in (q, k, v, logits)]
    assert torch.autograd.gradcheck(lambda *some: bounded_memory_attention(*some, 3), small)


STATES = {
    "means of blocks": {"content": False, "window": 0},
    "a window": {"content": False},
    "content": {},
    "overlap": {"overlap": True},
    "overlap without content": {"overlap": True, "content": False},
    "choice": {"overlap": True, "top": 2},
    "one tensor": {"overlap": True, "top": 2, "one_tensor": True},
    "tokens": {"top": 2, "choose": "tokens"},
    "tokens of means, no window": {"top": 1, "choose": "tokens", "content": False, "window": 0},
    "tokens, one tensor": {"top": 2, "choose": "tokens", "one_tensor": True},
}


def layer_of(state, block=4, dtype=torch.float32):
    torch.manual_seed(0)
    layer = CompressedAttention(12, 3, **{"block": block, "window": 3} | STATES[state])
    torch.nn.init.normal_(layer.bias)
    return layer.to(dtype)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("block", [1, 4, 30])
def test_written_token_by_token_it_is_what_it_is_at_once(state, block):
    layer, (x,) = layer_of(state, block), draw((BATCH, 14, 12), dtype=torch.float32)
    outputs, cache = [], None
    for token in x.split(1, dim=1):
        output, cache = layer.write(token, cache)
        outputs.append(output)
    assert_close(torch.cat(outputs, dim=1), layer(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("state", [*STATES, "bounded memory"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_written_in_pieces_of_any_length_it_is_what_it_is_at_once(state, dtype):
    torch.manual_seed(0)
    layer = BoundedMemoryAttention(12, 3, 5) if state == "bounded memory" else layer_of(state)
    layer, (x,) = layer.to(dtype), draw((BATCH, 150, 12), dtype=dtype)
    for sizes in ([150], [1, 149], [3, 5, 4, 90, 1, 47], [64, 64, 22], 150 * [1]):
        outputs, memory = [], None
        for tokens in x.split(sizes, dim=1):
            output, memory = layer.write(tokens, memory)
            outputs.append(output)
        far = (torch.cat(outputs, dim=1) - layer(x)).norm() / layer(x).norm()
        assert far < (1e-6 if dtype == torch.float32 else 0.02)


def test_a_bounded_memory_in_16_bits_stays_near_itself_through_a_long_text():
    torch.manual_seed(0)
    layer, (x,) = BoundedMemoryAttention(16, 2, 8), draw((1, 3000, 16), dtype=torch.float32)
    with torch.no_grad():
        expected, memory, written = layer(x), None, []
        for token in x.bfloat16().split(1, dim=1):
            output, memory = layer.bfloat16().write(token, memory)
            written.append(output)
    assert (torch.cat(written, dim=1) - expected).norm() / expected.norm() < 0.02
    assert {some.dtype for some in memory} == {torch.float32}
    outputs, _ = layer.half().write(300 * x[:, :70].half())
    assert outputs.isfinite().all()


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:`torch.jit:DeprecationWarning")
def test_a_graph_of_a_bounded_memory_is_for_one_n():
    layer, (x,) = BoundedMemoryAttention(12, 3, 5), draw((2, 130, 12), dtype=torch.float32)
    exported = torch.export.export(layer, (x,)).module()
    assert_close(exported(500 * x), layer(500 * x), atol=1e-4, rtol=1e-4)  # of steep logits as well
    with pytest.raises(ValueError, match="got a graph for every n, expected one for one n"):
        torch.jit.trace(layer, x)


@pytest.mark.parametrize("top", [1, 4, 7])
def test_slots_that_score_alike_are_chosen_by_their_place_whatever_follows(top):
    torch.manual_seed(0)
    layer, (x,) = CompressedAttention(16, 1, 2, 2, top=top).double(), draw((1, 80, 16))
    scores = index_scores(split_heads(layer.query(x), 1), layer.slots(x)[0], torch.ones(1, 80, 1))
    assert ((scores == 0).sum(dim=-1) > 8).all()  # the ReLU's
    outputs, cache = layer(x), None
    for place, token in enumerate(x.split(1, dim=1)):
        output, cache = layer.write(token, cache)
        assert_close(output, outputs[:, place : place + 1])
        assert_close(layer(x[:, : place + 1]), outputs[:, : place + 1])
    tied = best_slots(torch.zeros(9, 4), 2, ended(9, 2))
    assert tied[-1].tolist() == [True, True, False, False]


@pytest.mark.parametrize("state", STATES)
def test_padding_enters_no_block_wherever_it_stands(state):
    layer, (x,) = layer_of(state), draw((2, 13, 12), dtype=torch.float32)
    real = torch.ones(2, 13, dtype=torch.bool)
    real[0, :3], real[1, [2, 9, 12]] = False, False
    outputs = layer(x.masked_fill(~real[..., None], 99.0), real)
    for text in range(2):
        assert_close(outputs[text, real[text]], layer(x[text : text + 1, real[text]])[0])
    with torch.autocast("cpu", torch.bfloat16):
        assert_close(layer(x, real)[real].float(), outputs[real], atol=0.05, rtol=0.05)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("n", range(9, 13))
def test_a_layer_is_causal_for_every_remainder(state, n):
    layer, (x,) = layer_of(state, dtype=DOUBLE), draw((1, n, 12))
    for place in range(n):
        edited = layer(x.index_fill(1, torch.tensor([place]), 2.0))
        assert torch.equal(layer(x)[:, :place], edited[:, :place])


def test_a_layer_learns_all_it_has():
    for state in STATES:
        layer, (x,) = layer_of(state), draw((1, 14, 12), dtype=torch.float32)
        layer(x).square().sum().backward()
        assert [name for name, weight in layer.named_parameters() if not weight.grad.any()] == []


def shared_by_three(**how):
    """Layers of which the first makes the slots of all."""
    torch.manual_seed(0)
    shared = SharedSlots()
    return [CompressedAttention(12, 3, 4, 3, shared=shared, **how) for _ in range(3)]


SHARING = pytest.mark.parametrize(
    "how", [{}, {"overlap": True, "top": 2}, {"top": 1, "choose": "tokens"}, {"one_tensor": True}], ids=str
)


@SHARING
def test_layers_that_share_slots_attend_to_those_of_the_first(how):
    layers, (x, y) = shared_by_three(**how), draw((BATCH, 14, 12), (BATCH, 14, 12), dtype=torch.float32)
    slots, _ = layers[0].slots(x), layers[0](x)
    alone = CompressedAttention(12, 3, 4, 3, **how)
    alone.load_state_dict(layers[1].state_dict(), strict=False)  # the second layer, on slots of its own
    alone.slots = lambda _: slots
    assert_close(layers[1](y), alone(y))
    assert not {"gate.weight", "bias"} & {*layers[1].state_dict()}
    model = torch.nn.Sequential(*layers)
    model(x).square().sum().backward()
    assert [name for name, weight in model.named_parameters() if not weight.grad.any()] == []


@SHARING
@pytest.mark.parametrize("n", range(9, 13))
def test_layers_that_share_are_causal_skip_padding_and_write_what_they_read(how, n):
    model, (x,) = torch.nn.Sequential(*shared_by_three(**how)), draw((BATCH, n, 12), dtype=torch.float32)
    outputs, caches = [], [None] * 3
    for tokens in x.split([5, 1, n - 6], dim=1):
        for i, layer in enumerate(model):
            tokens, caches[i] = layer.write(tokens, caches[i])
        outputs.append(tokens)
    whole = model(x)
    assert_close(torch.cat(outputs, dim=1), whole, atol=1e-5, rtol=1e-5)
    assert caches[1].slots_k.size(-2) == caches[1].opened.size(1) == 0
    for place in range(n):
        assert torch.equal(model(x.index_fill(1, torch.tensor([place]), 2.0))[:, :place], whole[:, :place])
    real = torch.ones(BATCH, n, dtype=torch.bool)
    real[:, [0, 3, n - 1]] = False
    padded = x.masked_fill(~real[..., None], 9.0)
    for layer in model:
        padded = layer(padded, real)
    assert_close(padded[real], model(x[:, real[0]]).flatten(0, 1))


def test_copies_of_layers_that_share_share_among_themselves():
    layers, (x,) = torch.nn.ModuleList(shared_by_three()), draw((1, 9, 12), dtype=torch.float32)
    layers[0](x)
    copies = copy.deepcopy(layers)
    assert copies[0].shared is copies[2].shared is not layers[0].shared
    assert not CompressedAttention(12, 3, 4, 3, shared=copies[0].shared).makes_slots
    with pytest.raises(ValueError, match="no layer has made the shared slots yet"):
        copies[1](x)
    assert_close(copies[1](copies[0](x)), layers[1](layers[0](x)))


def test_where_tokens_are_chosen_only_gate_and_bias_learn_from_the_choice():
    layer, (x,) = layer_of("tokens", dtype=DOUBLE), draw((1, 14, 12))
    x.requires_grad_()
    layer(x).square().sum().backward()
    weights = layer.query.weight, layer.key.weight, x
    grads = [weight.grad.clone() for weight in weights]
    assert layer.gate.weight.grad.any() and layer.bias.grad.any()
    for weight in weights:
        weight.grad = None
    q, k, v = layer.project(x)
    scores = index_scores(q, layer.slots(x)[0], torch.ones(1, 14, 3, dtype=DOUBLE)).detach()
    mask = tokens_read(scores, 14, layer.block, layer.window, layer.top)[:, None]
    mixed = scaled_dot_product_attention(q, k, v, mask)
    layer.output(merge_heads(mixed)).square().sum().backward()
    for weight, grad in zip(weights, grads, strict=True):
        assert_close(weight.grad, grad)


def test_a_long_text_takes_the_memory_that_is_promised_and_no_map():
    n, block, window, heads = 16384, 128, 128, 4
    layer, (x,) = CompressedAttention(16, heads, block, window), draw((1, n, 16), dtype=torch.float32)
    with torch.no_grad():
        peak = peak_bytes(lambda: layer(x))
    scores = 4 * heads * n * (n // block + 2 * window)
    assert scores < peak < 6 * scores < 4 * heads * n * n / 6


def test_a_cache_holds_the_window_the_slots_and_the_open_block():
    layer, (x,) = layer_of("one tensor"), draw((1, 14, 12), dtype=torch.float32)
    cache = None
    for token in x.split(1, dim=1):
        _, cache = layer.write(token, cache)
    window, slots, opened = 3, 3, 4 + 2  # the block before stays for the next slot
    assert cache.nbytes == 4 * (2 * (window + slots) * 4 + opened * 12)
    assert cache.tokens == 14


def test_a_layer_of_bounded_memory_is_causal_skips_padding_and_writes_what_it_reads():
    torch.manual_seed(0)
    layer, (x,) = BoundedMemoryAttention(12, 3, 5), draw((BATCH, 21, 12), dtype=torch.float32)
    outputs, memory = [], None
    for tokens in x.split([1, 1, 7, 12], dim=1):
        output, memory = layer.write(tokens, memory)
        outputs.append(output)
    assert_close(torch.cat(outputs, dim=1), layer(x), atol=1e-5, rtol=1e-5)
    for place in range(21):
        edited = layer(x.index_fill(1, torch.tensor([place]), 2.0))
        assert_close(layer(x)[:, :place], edited[:, :place])
    real = torch.ones(BATCH, 21, dtype=torch.bool)
    real[:, [0, 3, 20]] = False
    assert_close(layer(x.masked_fill(~real[..., None], 9.0), real)[real], layer(x[:, real[0]]).flatten(0, 1))


MEMORY = BoundedMemoryAttention(12, 3, 5)


def written(layer, *pieces):
    """What is left of texts of ones that are written in pieces."""
    memory = None
    for tokens in pieces:
        _, memory = layer.write(torch.ones(BATCH, tokens, 12), memory)
    return memory


def go_on(state, *block, batch=BATCH, other=None):
    """Write a token after nine that a layer of other sizes has written."""
    layer = layer_of(state, *block) if isinstance(state, str) else state
    layer.write(torch.ones(batch, 1, 12), written(other or layer_of("content"), 9))


def shared_of_two_lengths():
    for layer, n in zip(shared_by_three(), (9, 12), strict=False):
        layer(torch.ones(1, n, 12))


test_what_does_not_fit_is_refused_in_a_sentence = refusing(
    (lambda: compress_blocks(torch.ones(8, 3), torch.ones(4, 2)), "bias has shape (4, 2), expected (m,)"),
    (lambda: compress_blocks(torch.ones(8, 3), torch.ones(4), torch.ones(8, 2)), "gate has shape (8, 2)"),
    (lambda: compress_blocks(torch.ones(8, 3), torch.ones(4), None, True), "x has 3 features, expected"),
    (lambda: block_attention(*drawn(8, 4), 5, 2), "got 2 and 2 slots, expected 8 // 5"),
    (lambda: block_attention(*drawn(8, 4), 4, -1), "window is -1, expected an integer of at least 0"),
    (lambda: block_attention(*drawn(8, 4), 0, 2), "block is 0, expected an integer of at least 1"),
    (lambda: best_slots(torch.ones(8, 2), 0, ended(8, 4)), "top is 0, expected an integer of at least 1"),
    (lambda: tokens_read(torch.ones(1, 8, 3), 8, 4, 1, 1), "got scores for 3 blocks, expected 8 // 4"),
    (lambda: CompressedAttention(12, 3, 4, 3, choose="blocks"), "choose is 'blocks', expected 'slots' or"),
    (
        lambda: CompressedAttention(12, 3, 2, 3, shared=shared_by_three()[0].shared),
        "got (2, 'slots') as block and choose, expected (4, 'slots'), as shared",
    ),
    (shared_of_two_lengths, "the shared slots have shape (1, 3, 2, 4), expected (1, 3, 3, 4)"),
    (lambda: bounded_memory_attention(*drawn(8, 4)[:3], torch.ones(7, 2)), "for 7 tokens, expected 8"),
    (lambda: written(layer_of("content"), 3, 0), "x has 0 tokens, expected at least 1"),
    (
        lambda: go_on("content", batch=1),
        "the cache has keys, slots, open tokens ((2, 3, 3, 4), (2, 3, 2, 4), (2, 1, 12)); expected ((1, ",
    ),
    (
        lambda: go_on("content", 3),
        "(2, 3, 2, 4), (2, 1, 12)); expected ((2, 3, 3, 4), (2, 3, 3, 4), (2, 0, 12))",
    ),
    (lambda: go_on("overlap"), "(2, 1, 12)); expected ((2, 3, 3, 4), (2, 3, 2, 4), (2, 5, 12))"),
    (lambda: go_on("content", other=MEMORY), "the cache is a tuple, expected a Cache"),
    (
        lambda: go_on(BoundedMemoryAttention(12, 3, 4), other=MEMORY),
        "the memory has slots (2, 3, 5, 4), expected (2, 3, 4, 4)",
    ),
    (lambda: written(MEMORY, 0), "q, k, v have 0 tokens; expected at least 1"),
    pattern=False,
)
