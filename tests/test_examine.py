"""`examine` names the promise that a planted fault breaks, and finds none in layers that are right."""

import contextlib
import copy
import io
import json
import math
import re
import runpy
import subprocess
import sys

import pytest
import torch
from refusals import refusing
from torch import nn
from torch.nn import functional

from linformer_from_scratch import assert_keeps, examine, projections
from linformer_from_scratch.attention import causal_mask, scaled_dot_product_attention
from linformer_from_scratch.common.files import PACKAGE
from linformer_from_scratch.descendants.layer import CompressedAttention
from linformer_from_scratch.efficient import EfficientAttention
from linformer_from_scratch.efficient.family import FAMILY
from linformer_from_scratch.heads import merge_heads, split_heads
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.promises.checks import CHECKS

DIM, HEADS, N, SLOTS = 24, 3, 40, 8  # d_head = 8
OLD = not hasattr(torch.compiler, "is_exporting")  # before 2.7
GRAPHS = {"compile", "export"} if OLD else set()  # which then take fewer layers
SIZES = {"length": N}


class Plain(nn.Module):
    """Attention whose parts a fault replaces one by one. It takes no mask."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.query, self.key, self.value, self.output = (nn.Linear(DIM, DIM, bias=False) for _ in range(4))

    def forward(self, x):
        return self.mixed(x, None)

    def mixed(self, x, mask):
        q, k, v = (split_heads(part(x), HEADS) for part in (self.query, self.key, self.value))
        return self.output(merge_heads(self.attend(q, k, v, mask)))

    def attend(self, q, k, v, mask):
        scores = self.scores(q, k)
        if mask is not None:
            scores = scores.masked_fill(~self.allowed(q.size(-2), mask), -1e30)
        return self.weights(scores) @ v

    def scores(self, q, k):
        return q @ k.mT / math.sqrt(q.size(-1))

    def allowed(self, n, mask):
        return mask[:, None, None, :]

    def weights(self, scores):
        return scores.softmax(-1)


class Masked(Plain):
    def forward(self, x, mask=None):
        return self.mixed(x, mask)


class Causal(Plain):
    def forward(self, x):
        return self.mixed(x, torch.ones(len(x), x.size(1), dtype=torch.bool))

    def allowed(self, n, mask):
        return causal_mask(n)


def fault(base, **methods):
    """A class like the base, but for these methods."""
    return type("Faulty", (base,), methods)


def of_forward(change):
    """One that does something to its input first: change(x)."""
    return fault(Plain, forward=lambda self, x: self.mixed(change(x), None))


def one_ahead(self, n, mask):
    return torch.ones(n, n, dtype=torch.bool).tril(1)


def open_last_block(self, n, mask):
    """Tokens of the block that has not ended see each other."""
    return causal_mask(n) | (torch.arange(n) >= n // 4 * 4)[:, None] & (torch.arange(n) >= n // 4 * 4)


def causal_until_masked(self, q, k, v, mask):
    seen = causal_mask(q.size(-2)) if mask is None else mask[:, None, None, :]
    return scaled_dot_product_attention(q, k, v, seen)


def first_sees_last(self, n, mask):
    seen = causal_mask(n).clone()
    seen[0, -1] = True
    return seen


def blocks_alone(self, n, mask):
    block = torch.arange(n) // (N // 2)
    return block[:, None] == block


def unwilling():
    raise RuntimeError("no weights")


def zero_scores(self, q, k, v, mask):
    scores = self.scores(q, k)
    return (scores if mask is None else scores * mask[:, None, None, :]).softmax(-1) @ v


def zero_weights(self, q, k, v, mask):
    weights = self.scores(q, k).softmax(-1)
    return (weights if mask is None else weights * mask[:, None, None, :]) @ v


def zero_inputs(self, x, mask=None):
    return self.mixed(x if mask is None else x * mask[..., None], None)


def hidden_outputs(self, x, mask=None):
    return self.mixed(x, None) * (1 if mask is None else mask[..., None])


def infinities(self, q, k, v, mask):
    scores = self.scores(q, k)
    scores = scores if mask is None else scores.masked_fill(~mask[:, None, None, :], -math.inf)
    return scores.softmax(-1) @ v


def infinities_covered(self, q, k, v, mask):
    """NaN is taken out of the output, and stays in the gradient."""
    return torch.nan_to_num(infinities(self, q, k, v, mask))


class TokenAxis(Plain):
    """The bug of chapter 06: a linear layer on the wrong axis."""

    def __init__(self):
        super().__init__()
        self.E = nn.Linear(DIM // HEADS, SLOTS, bias=False)

    def attend(self, q, k, v, mask):
        return super().attend(q, self.E(k.mT).mT, self.E(v.mT).mT, mask)


class With(Plain):
    """Plain, with something set up first."""

    def __init__(self, **things):
        super().__init__()
        for name, thing in things.items():
            setattr(self, name, thing)


class InAList(Plain):
    def __init__(self):
        super().__init__()
        self.parts = [nn.Linear(DIM, DIM)]

    def forward(self, x):
        return self.mixed(x + self.parts[0](x), None)


class PlainTensor(With):
    def forward(self, x):
        return self.mixed(x + self.place, None)


class PaddingVector(With):
    """Padding is replaced by a vector that is learned, and is hidden too."""

    def forward(self, x, mask=None):
        return self.mixed(x if mask is None else x.where(mask[..., None], self.vector), mask)


class Louder(With):
    def forward(self, x):
        return self.mixed(self.drop(x) * (2 if self.training else 1), None)


class Normalized(With):
    def forward(self, x):
        return self.mixed(self.norm(x.mT).mT, None)


class Counting(Plain):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return self.calls * self.mixed(x, None)


class ForgetsItsCache(CompressedAttention):
    def write(self, x, cache=None):
        output, cache = super().write(x, cache)
        return output, cache._replace(keys=cache.keys.roll(1, -2))


def closed_over():
    """A copy calls the forward of the first one."""
    layer = Plain()
    whole = type(layer).forward
    layer.forward = lambda x: whole(layer, x)
    return layer


def linformer():
    return pytest.importorskip("linformer").LinformerSelfAttention(DIM, N, k=SLOTS, heads=HEADS)


def linformer_pytorch():
    package = pytest.importorskip("linformer_pytorch")
    return package.Linformer(N, DIM, SLOTS, nhead=HEADS, depth=1, include_ff=False, dropout=0.0, causal=True)


def half_steps(self, q, k, v, mask):
    return (self.scores(q, k) + 1000).softmax(-1) @ v


def no_maximum(self, scores):
    weights = scores.exp()
    return weights / weights.sum(-1, keepdim=True)


CAUSAL, AMOUNT, PADDED = {"causal": True}, ["padding amount", "all padding"], ["padding", "padding amount"]
UNREAD, TURNED = [*PADDED, "mask"], [*PADDED, "mask", "all padding"]
FAULTS = {  # what is wrong -> the layer, the promises that it breaks, and how it is examined
    "sees the next token": (fault(Causal, allowed=one_ahead), ["causal"], CAUSAL),
    "the last block sees itself": (fault(Causal, allowed=open_last_block), ["causal"], CAUSAL),
    "token 0 sees the last": (fault(Causal, allowed=first_sees_last), ["causal"], CAUSAL),
    "a mean over the text": (
        fault(Causal, forward=lambda s, x: Causal.forward(s, x - x.mean(1, True))),
        ["causal"],
        CAUSAL,
    ),
    "linformer-pytorch": (linformer_pytorch, ["causal"], CAUSAL | {"dim": DIM}),
    "linformer": (linformer, [*UNREAD, "length"]),
    "nn.MultiheadAttention": (lambda: nn.MultiheadAttention(DIM, HEADS, batch_first=True), ["all padding"]),
    "batch second": (lambda: nn.MultiheadAttention(DIM, HEADS), ["batch", "length"]),
    "hides outputs": (fault(Masked, forward=hidden_outputs), UNREAD),
    "scores of 0": (fault(Masked, attend=zero_scores), PADDED),
    "weights of 0": (fault(Masked, attend=zero_weights), PADDED),
    "zeros are keys": (fault(Masked, forward=zero_inputs), ["padding amount"]),
    "the first mask for all": (fault(Masked, allowed=lambda s, n, mask: mask[:1, None, None, :]), AMOUNT),
    "takes a mask in vain": (fault(Masked, forward=lambda s, x, mask=None: s.mixed(x, None)), UNREAD),
    "an inverted mask": (fault(Masked, allowed=lambda s, n, mask: ~mask[:, None, None, :]), TURNED),
    "PyTorch's name, not its rule": (
        fault(Masked, forward=lambda s, x, key_padding_mask=None: s.mixed(x, key_padding_mask)),
        TURNED,
    ),
    "NaN": (fault(Masked, attend=infinities), ["all padding"]),
    "NaN behind": (fault(Masked, attend=infinities_covered), ["all padding"]),
    "the first text's keys for all": (
        fault(Plain, attend=lambda s, q, k, v, mask: Plain.attend(s, q, k[:1].expand_as(k), v, mask)),
        ["batch"],
    ),
    "causal until there is a mask": (fault(Masked, attend=causal_until_masked), ["causal", *AMOUNT], CAUSAL),
    "louder in training, behind dropout": (lambda: Louder(drop=nn.Dropout(0.1)), ["training mode"]),
    "a mean over the batch": (of_forward(lambda x: x - x.mean(0)), ["batch"]),
    "Linear on the wrong axis": (TokenAxis, ["axes", "length"]),
    "reads only the first N keys": (
        fault(Plain, attend=lambda s, q, k, v, mask: Plain.attend(s, q, k[..., :N, :], v[..., :N, :], mask)),
        ["length"],
    ),
    "answers only the first N": (of_forward(lambda x: x[:, :N]), ["length"]),
    "a deviation of one token": (of_forward(lambda x: x / x.std(1, keepdim=True)), ["length", "scale"]),
    "no token": (of_forward(lambda x: x + 0 * x.amax(1, keepdim=True)), ["length"]),
    "√n for √d": (fault(Plain, scores=lambda s, q, k: q @ k.mT / math.sqrt(k.size(-2))), ["scale"]),
    "a sum for a mean": (fault(Plain, weights=lambda s, scores: scores.sigmoid()), ["scale"]),
    "an offset": (fault(Plain, attend=half_steps), ["16 bits"]),
    "no maximum": (fault(Plain, weights=no_maximum), ["large inputs"]),
    "detached keys": (fault(Plain, scores=lambda s, q, k: Plain.scores(s, q, k.detach())), ["gradients"]),
    "a weight without use": (lambda: With(spare=nn.Linear(DIM, DIM)), ["gradients"]),
    "the root of 0": (of_forward(lambda x: x + (0 * x).abs().sqrt()), ["gradients"]),
    "batch statistics": (lambda: Normalized(norm=nn.BatchNorm1d(DIM)), ["training mode"]),
    "dropout that stays": (of_forward(lambda x: functional.dropout(x)), ["same twice"]),
    "counts its calls": (Counting, ["same twice"]),
    "a cache out of order": (lambda: ForgetsItsCache(DIM, HEADS, 4, 3), ["cache"], CAUSAL),
    "a tensor that is no buffer": (lambda: PlainTensor(place=torch.randn(1, 1, DIM)), ["state dict"]),
    "weights in a list": (InAList, ["state dict"]),
    "a copy of the first one": (closed_over, ["gradients", "deep copy"]),
    "a branch on numbers": (of_forward(lambda x: x if x.sum() > 0 else -x), ["batch", "compile", "export"]),
    "n² stored, n promised": (Plain, ["cost"], {"exponent": 1}),
}


def test_every_promise_that_can_be_broken_is_broken_by_a_fault():
    assert {name for _, broken, *_ in FAULTS.values() for name in broken} == {*CHECKS} - {"order"}


def rerun(lines, layer, options):
    """What the three lines print, and the error that they raise."""
    printed, error = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        try:
            exec("\n".join(lines), {"layer": layer} | options)
        except Exception as raised:
            error = raised
    return printed.getvalue().split(), error


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.filterwarnings("ignore")
def test_a_planted_fault_breaks_its_promise_and_no_other_and_three_lines_show_it_again(name):
    make, broken, options = (*FAULTS[name], {})[:3]
    torch.manual_seed(0)
    layer = make()
    report = examine(layer, **SIZES, **options)
    assert {*report.broken} - GRAPHS == {*broken} - GRAPHS, str(report)
    for verdict in (report.verdicts[each] for each in broken if each != "same twice"):
        assert len(verdict.lines) == 3
        printed, error = rerun(verdict.lines, layer, options)
        by = re.match(r"by (\S+) at token (\d+)$", verdict.words)
        if error is not None:
            assert f"{type(error).__name__}: " in verdict.words
        elif by:
            assert (f"{float(printed[0]):.2g}", printed[1]) == by.groups()
        else:
            assert not float(printed[0]) < 1


def learned(num_heads=None):
    return projections.LearnedProjection(N, SLOTS, num_heads)


def compressed(make):
    return lambda: LinformerAttention(DIM, HEADS, make(), make())


LINEAR = {"exponent": 1}
RIGHT = {
    "attention": (lambda: MultiHeadAttention(DIM, HEADS), {}),
    "causal attention": (lambda: MultiHeadAttention(DIM, HEADS, causal=True), CAUSAL),
    "grouped queries": (lambda: MultiHeadAttention(DIM, 4, 2), {}),
    "Linformer, learned": (compressed(learned), LINEAR),
    "Linformer, one E per head": (compressed(lambda: learned(HEADS)), LINEAR),
    "Linformer, mean pooling": (compressed(lambda: projections.MeanPooling(N, SLOTS)), LINEAR),
    "Linformer, max pooling": (compressed(lambda: projections.MaxPooling(N, SLOTS)), LINEAR),
    "Linformer, convolution": (
        compressed(lambda: projections.StridedConvolution(N, SLOTS, DIM // HEADS)),
        LINEAR,
    ),
    "slots that wait": (lambda: CompressedAttention(DIM, HEADS, 4, 3), CAUSAL),
    "slots that overlap": (lambda: CompressedAttention(DIM, HEADS, 4, 3, overlap=True), CAUSAL),
    "blocks alone": (fault(Causal, allowed=blocks_alone), {}),
    "a vector for padding": (lambda: PaddingVector(vector=nn.Parameter(torch.randn(DIM))), {}),
    "a function": (scaled_dot_product_attention, {"dim": DIM, "heads": HEADS}),
    "PyTorch's, without its maps": (
        lambda: nn.MultiheadAttention(DIM, HEADS, batch_first=True),
        {"call": lambda layer, x, mask: layer(x, x, x, None if mask is None else ~mask, need_weights=False)},
    ),
}
WELL_KNOWN = [*RIGHT]
for one in FAMILY:
    RIGHT[one.name] = lambda one=one: EfficientAttention(DIM, HEADS, one.build(N, DIM // HEADS, SLOTS)), {}
    if one.causal:
        attend = one.build(N, DIM // HEADS, SLOTS, causal=True)
        RIGHT[f"{one.name}, causal"] = lambda attend=attend: EfficientAttention(DIM, HEADS, attend), CAUSAL


@pytest.mark.parametrize(
    "name", [n if n in WELL_KNOWN else pytest.param(n, marks=pytest.mark.slow) for n in RIGHT]
)
def test_layers_known_to_be_right_break_nothing(name):
    make, options = RIGHT[name]
    torch.manual_seed(0)
    layer = make() if make is not scaled_dot_product_attention else make
    report = examine(layer, **SIZES, **options)
    assert {*report.broken} <= GRAPHS, str(report)
    assert len({*report.kept} | GRAPHS) >= 10


def test_what_is_no_fault_is_said():
    reports = [examine(layer, promises=["order"], **SIZES) for layer in (Plain(), Causal())]
    assert [one.verdicts["order"].words for one in reports] == ["order does not matter", "order matters"]
    for powers, layer in (((1.0, 1.0), compressed(learned)()), ((1.9, 2.0), Plain())):
        said = examine(layer, promises=["cost"], **SIZES).verdicts["cost"].words
        assert said == "operations ∝ n^{}, memory ∝ n^{}".format(*powers)


def test_what_does_not_apply_has_its_reason():
    report = examine(Plain(), **SIZES)
    reasons = {name: v.words for name, v in report.verdicts.items() if v.status == "not applicable"}
    no_mask = dict.fromkeys(["padding", "padding amount", "all padding", "mask"], "it takes no mask")
    others = {"causal": "it was not asked for", "cache": "no cache; or give write="}
    assert reasons == no_mask | others
    relative = EfficientAttention(DIM, HEADS, lambda q, k, v: v)
    said = examine(relative, **SIZES).verdicts["padding"].words
    assert said == "ValueError: 14 tokens are padding, expected 0"


def test_a_layer_is_left_as_it_was():
    layer = Normalized(norm=nn.BatchNorm1d(DIM)).train()
    layer.query.weight.grad = torch.ones(DIM, DIM)
    before, drawn = copy.deepcopy(layer), torch.get_rng_state()
    examine(layer, **SIZES)
    assert torch.equal(torch.get_rng_state(), drawn)
    assert layer.training and all(part.training for part in layer.modules())
    assert torch.equal(layer.query.weight.grad, torch.ones(DIM, DIM)) and layer.key.weight.grad is None
    for name, tensor in layer.state_dict().items():
        assert torch.equal(tensor, before.state_dict()[name]), name


def test_a_report_is_a_line_for_each_promise_and_three_for_each_broken_one():
    report = examine(fault(Causal, allowed=one_ahead)(), causal=True, **SIZES)
    lines = str(report).splitlines()
    assert len(lines) == 1 + len(CHECKS) + 3 * len(report.broken)
    assert re.match(r"causal +no output depends on later tokens +BROKEN by \d\.\d+ at token \d+$", lines[1])
    found = json.loads(json.dumps(report.json()))
    assert found["broken"] == ["causal"] and found["promises"]["batch"]["status"] == "kept"


def test_assert_keeps_raises_with_the_broken_lines_only():
    assert_keeps(Causal(), "causal", "batch", causal=True, **SIZES)
    with pytest.raises(AssertionError, match="BROKEN by") as broken:
        assert_keeps(fault(Causal, allowed=one_ahead)(), "causal", "batch", causal=True, **SIZES)
    assert len(str(broken.value).splitlines()) == 5 and "another one of the batch" not in str(broken.value)
    with pytest.raises(AssertionError, match="it takes no mask"):
        assert_keeps(Plain(), "padding", **SIZES)
    assert_keeps(Plain(), **SIZES)


test_what_cannot_be_examined_is_said_in_one_sentence = refusing(
    (lambda: examine(scaled_dot_product_attention), "attention does not say how many features a token has"),
    (lambda: examine(nn.Bilinear(DIM, DIM, 1), DIM), "takes input1, input2: give call=lambda layer, x, mask"),
    (lambda: examine(compressed(learned)()), "does not run on 128 tokens of 24 features: ValueError: input"),
    (lambda: examine(fault(Plain, weights=lambda s, scores: 0 * scores)()), "gives 0 for every text: give"),
    (lambda: examine(Plain(), promises=["casual"]), "got casual as promises, expected some of causal, pad"),
)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["test_examine:Plain"], 0),
        (["test_examine:Causal", "--causal", "--json"], 0),
        (["test_examine:Plain", "--causal"], 1),
        (["linformer_from_scratch.attention:scaled_dot_product_attention"], 2),
        (["linformer_from_scratch.attention:scaled_dot_product_attention", "--dim", "24"], 0),
        (["test_examine:no_such_layer"], 2),
        (["no_such_package:layer"], 2),
        (["test_examine:unwilling"], 2),
        (["test_examine:Plain", "--exponent", "1.5"], 1),
    ],
)
def test_the_command_leaves_with_0_for_kept_1_for_broken_2_for_neither(words, code, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["examine", *words, "--length", "40"])
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(PACKAGE / "examine.py"), run_name="__main__")
    printed, error = capsys.readouterr()
    assert left.value.code == code
    assert bool(printed) == (code < 2) and bool(error) == (code == 2)
    if "--json" in words:
        assert json.loads(printed)["broken"] == []


@pytest.mark.parametrize("first", ["", "import linformer_from_scratch.examine; "])
def test_the_package_gives_the_function_also_where_the_command_was_imported(first):
    code = f"{first}from linformer_from_scratch import examine; print(type(examine).__name__)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8")
    assert run.stdout.strip() == "function", run.stderr


def test_the_module_is_a_command():
    run = [sys.executable, "-m", "linformer_from_scratch.examine", "no_such_package:layer"]
    done = subprocess.run(run, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 2 and done.stderr == "ModuleNotFoundError: No module named 'no_such_package'\n"
