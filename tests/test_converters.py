"""converters.py: layers of other packages, and of the paper's authors, give ours with equal outputs."""

from itertools import product
from pathlib import Path

import pytest
import torch
from refusals import refusing
from safetensors.torch import load_file
from torch.testing import assert_close

from linformer_from_scratch.attention import padding_mask
from linformer_from_scratch.converters import from_fairseq, from_linformer, from_linformer_pytorch

BATCH, SEQ_LEN, SLOTS, HEADS, D_HEAD = 2, 22, 11, 3, 7
D_MODEL = HEADS * D_HEAD
EXACT = {"atol": 1e-6, "rtol": 0}
RELEASED = load_file(Path(__file__).parent / "data" / "fairseq_linformer.safetensors")
CASES = sorted({name.partition("/")[0] for name in RELEASED})


def make_x(n=SEQ_LEN):
    return torch.randn(BATCH, n, D_MODEL, generator=torch.Generator().manual_seed(1))


def linformer_pytorch(**options):
    """The package's, without dropout."""
    package = pytest.importorskip("linformer_pytorch")
    return package.Linformer(SEQ_LEN, D_MODEL, SLOTS, nhead=HEADS, **options).eval()


@pytest.mark.parametrize("one_kv_head", [False, True])
@pytest.mark.parametrize("share_kv", [False, True])
@pytest.mark.parametrize("dim_head", [7, 5])
def test_linformer(one_kv_head, share_kv, dim_head):
    linformer = pytest.importorskip("linformer")
    torch.manual_seed(0)
    options = {"one_kv_head": one_kv_head, "share_kv": share_kv, "dim_head": dim_head, "dropout": 0.3}
    model = linformer.Linformer(D_MODEL, SEQ_LEN, depth=2, k=SLOTS, heads=HEADS, **options).eval()
    theirs = model.net.layers[1][0].fn
    alone = from_linformer(theirs.state_dict(), HEADS)
    inside = from_linformer(model.state_dict(), HEADS, prefix="net.layers.1.0.fn.")
    assert (alone.E is alone.F) == share_kv
    for n in (SEQ_LEN, 6):
        for ours in (alone, inside):
            assert_close(ours(make_x(n)), theirs(make_x(n)), **EXACT)


METHODS = ("learnable", "convolution")
SHARING = ("none", "headwise", "kv", "layerwise")
OPTIONS = [{}, {"dim_d": 5}, {"w_o_intermediate_dim": 4}, {"k_reduce_by_layer": 3}]


@pytest.mark.parametrize(("method", "sharing", "options"), [*product(METHODS, SHARING, OPTIONS)])
def test_linformer_pytorch(method, sharing, options):
    torch.manual_seed(0)
    settings = {"depth": 2, "parameter_sharing": sharing, "method": method, **options}
    if method == "convolution" and "k_reduce_by_layer" in options:
        settings["k_reduce_by_layer"] = 9  # 2 slots of 11 tokens: 22 must be a multiple
    model = linformer_pytorch(dropout=0.3, **settings)
    theirs = model.seq[2].fn
    if method == "convolution" and sharing == "none":
        with pytest.raises(ValueError, match="every head has a convolution of its own, expected one for all"):
            from_linformer_pytorch(theirs.state_dict(), seq_len=SEQ_LEN)
        return
    ours = from_linformer_pytorch(model.state_dict(), "seq.2.fn.", SEQ_LEN)
    x, mask = make_x(), padding_mask(torch.tensor([SEQ_LEN, 9]), SEQ_LEN)
    assert_close(ours(x), theirs(x), **EXACT)
    assert_close(ours(x, mask)[mask], theirs(x, input_mask=mask)[mask], **EXACT)
    assert (ours.E is ours.F) == (sharing in ("kv", "layerwise"))


def test_heads_with_the_same_E_and_biases_of_their_own():
    theirs = linformer_pytorch(parameter_sharing="none").seq[0].fn
    with torch.no_grad():
        for head in theirs.heads:
            head.E.weight.copy_(theirs.heads[0].E.weight)
    ours = from_linformer_pytorch(theirs.state_dict())
    assert_close(ours(make_x()), theirs(make_x()), **EXACT)


@pytest.mark.parametrize("case", CASES)
def test_the_released_layer(case):
    """Recorded: fairseq's own module cannot be installed beside a recent PyTorch."""
    state = {name.removeprefix(f"{case}/state/"): RELEASED[name] for name in RELEASED if case in name}
    ours = from_fairseq(state, HEADS)
    for n in (SEQ_LEN, 13):
        assert_close(ours(RELEASED[f"{case}/x {n}"]), RELEASED[f"{case}/y {n}"], **EXACT)
    assert (ours.E is ours.F) == ("shared 1" in case or "layerwise 1" in case)


def test_a_converted_layer_shares_no_memory_learns_and_draws_nothing():
    theirs = linformer_pytorch().seq[0].fn
    before = torch.get_rng_state()
    ours = from_linformer_pytorch(theirs.state_dict())
    assert torch.equal(torch.get_rng_state(), before)
    ours(make_x()).square().sum().backward()
    own = dict(ours.named_parameters())
    assert all(p.grad.isfinite().all() and (p.grad != 0).any() for p in own.values())
    assert {p.data_ptr() for p in own.values()}.isdisjoint(p.data_ptr() for p in theirs.parameters())


ONES = torch.ones(2, 2)
test_what_cannot_be_converted_is_said_in_one_sentence = refusing(
    (lambda: from_linformer({"to_q.weight": ONES}, 1), "has no to_k.weight; prefixes that fit: none"),
    (lambda: from_linformer({"a.to_q.weight": ONES}, 1, "b."), "no b.to_q.weight; prefixes that fit: 'a.'"),
    (lambda: from_linformer_pytorch({}), "the state dict has no to_q.0.weight; prefixes that fit: none"),
    (lambda: from_linformer(one_key(), 2), "num_heads is 2, expected 3: all heads share one key"),
    (lambda: from_fairseq({"bias_k": torch.ones(1)}, 1), "made with add_bias_kv, expected one without"),
    (lambda: from_linformer_pytorch(convolution()), "seq_len is None, expected a multiple of .* 2 tokens"),
    (lambda: from_linformer_pytorch(convolution(), seq_len=23), "seq_len is 23, expected a multiple of"),
)


def one_key():
    package = pytest.importorskip("linformer")
    return package.LinformerSelfAttention(D_MODEL, SEQ_LEN, SLOTS, HEADS, one_kv_head=True).state_dict()


def convolution():
    return linformer_pytorch(method="convolution").seq[0].fn.state_dict()
