"""linformer.py, against its definition and against full attention."""

import copy
from pathlib import Path

import pytest
import torch
from refusals import refusing
from test_attention import gradients
from torch import nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from linformer_from_scratch import projections
from linformer_from_scratch.attention import padding_mask
from linformer_from_scratch.benchmark import peak_bytes
from linformer_from_scratch.cost import Sizes, compress_tokens, flops
from linformer_from_scratch.linformer import LinformerAttention, linformer_attention
from linformer_from_scratch.projections import LearnedProjection, MaxPooling, StridedConvolution, start_at

BATCH, SEQ_LEN, SLOTS, HEADS, D_HEAD = 2, 11, 5, 3, 7
D_MODEL = HEADS * D_HEAD
KINDS = {
    "learned, shared by heads": lambda: LearnedProjection(SEQ_LEN, SLOTS),
    "learned, one per head": lambda: LearnedProjection(SEQ_LEN, SLOTS, HEADS),
    "Gaussian": lambda: projections.GaussianProjection(SEQ_LEN, SLOTS, seed=3),
    "mean pooling": lambda: projections.MeanPooling(SEQ_LEN, SLOTS),
    "max pooling": lambda: MaxPooling(SEQ_LEN, SLOTS),
    "strided convolution": lambda: StridedConvolution(SEQ_LEN, SLOTS, D_HEAD),
}
LENGTHS = torch.tensor([11, 4])
every_kind = pytest.mark.parametrize("kind", KINDS)
shared_or_not = pytest.mark.parametrize("shared", [False, True], ids=["E and F", "E = F"])


def make_layer(kind="learned, shared by heads", shared=False):
    torch.manual_seed(0)
    E = KINDS[kind]()
    return LinformerAttention(D_MODEL, HEADS, E, E if shared else KINDS[kind]())


def make_x(n=SEQ_LEN, batch=BATCH):
    return torch.randn(batch, n, D_MODEL, generator=torch.Generator().manual_seed(1))


def qkv(n=SEQ_LEN):
    return torch.randn(3, BATCH, HEADS, n, D_HEAD, generator=torch.Generator().manual_seed(2)).double()


def written_out(layer, x, mask=None):
    """The paper's formula with plain loops over samples and heads, softmax(Q_i (E K_i)ᵀ / √d_head) F V_i."""
    samples = []
    for i in range(len(x)):
        tokens = x[i] if mask is None else torch.where(mask[i, :, None], x[i], 0.0)
        q, k, v = (tokens @ W.weight.T for W in (layer.query, layer.key, layer.value))
        heads = []
        for h in range(HEADS):
            mine = slice(h * D_HEAD, (h + 1) * D_HEAD)
            keys, values = slots_of(layer.E, k[:, mine], h), slots_of(layer.F, v[:, mine], h)
            heads.append((q[:, mine] @ keys.T / D_HEAD**0.5).softmax(-1) @ values)
        samples.append(torch.cat(heads, dim=-1) @ layer.output.weight.T + layer.output.bias)
    return torch.stack(samples)


def slots_of(projection, x, head):
    """What a projection makes of one head's (n, d_head), slot by slot; missing tokens are zeros."""
    full = torch.cat([x, x.new_zeros(SEQ_LEN - len(x), D_HEAD)])
    if hasattr(projection, "weight"):
        weight = projection.weight if projection.weight.dim() == 2 else projection.weight[head]
        return weight @ full
    starts = [s * SEQ_LEN // SLOTS for s in range(SLOTS)]
    if isinstance(projection, StridedConvolution):  # ⌈11 / 5⌉ = 3 tokens a window
        kernel = projection.convolution.weight  # (out, in, width)
        return torch.stack([torch.einsum("oiw,wi->o", kernel, full[start : start + 3]) for start in starts])
    windows = [full[start : -(-(s + 1) * SEQ_LEN // SLOTS)] for s, start in enumerate(starts)]
    pool = torch.Tensor.amax if isinstance(projection, MaxPooling) else torch.Tensor.mean
    return torch.stack([pool(window, 0) for window in windows])


@every_kind
@shared_or_not
@pytest.mark.parametrize("n", [SEQ_LEN, 8])
@pytest.mark.parametrize("padded", [False, True])
def test_equals_the_formula_written_out_head_by_head(kind, shared, n, padded):
    layer, x = make_layer(kind, shared).double(), make_x(n).double().requires_grad_()
    mask = padding_mask(LENGTHS.clamp(max=n), n) if padded else None
    inputs = [x, *layer.parameters()]
    theirs = written_out(layer, x, mask)
    their_gradients = gradients(theirs, inputs)
    for ours in (layer(x, mask), layer.definition(x, mask)):
        assert_close(ours, theirs, atol=1e-12, rtol=0)
        assert_close(gradients(ours, inputs), their_gradients, atol=1e-11, rtol=0)


def test_E_and_F_of_two_kinds_equal_the_formula():
    """Only one of them commutes with its weights, so neither may be compressed first."""
    torch.manual_seed(0)
    linear, largest = KINDS["learned, shared by heads"](), KINDS["max pooling"]()
    for E, F in ((linear, largest), (largest, linear)):
        layer, x = LinformerAttention(D_MODEL, HEADS, E, F).double(), make_x().double()
        assert_close(layer(x), written_out(layer, x))


def test_weights_that_functional_call_is_given_do_not_stay_in_a_shared_E():
    layer, x = make_layer(shared=True), make_x()
    model = nn.Sequential(layer, LinformerAttention(D_MODEL, HEADS, layer.E, layer.E))
    own = dict(model.named_parameters())
    doubled = {name: 2 * parameter.detach() for name, parameter in own.items()}
    found = functional_call(model, doubled, x, tie_weights=False)
    assert all(parameter is own[name] for name, parameter in model.named_parameters())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    assert_close(found, model(x))


@shared_or_not
def test_the_operations_are_those_of_the_cheap_order(shared):
    layer, x = make_layer(shared=shared), make_x()
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        layer(x)
    sizes = Sizes(SEQ_LEN, D_MODEL, HEADS, SLOTS, BATCH)
    assert counter.get_total_flops() == flops(compress_tokens(sizes, shared=shared))


def test_function_equals_the_formula_with_one_pair_or_one_per_head():
    q, k, v = qkv()
    for sizes in ((SLOTS, SEQ_LEN), (HEADS, SLOTS, SEQ_LEN)):
        E, F = torch.randn(2, *sizes, generator=torch.Generator().manual_seed(4)).double()
        theirs = (q @ (E @ k).mT / D_HEAD**0.5).softmax(-1) @ (F @ v)
        assert_close(linformer_attention(q, k, v, E, F), theirs)


@every_kind
@pytest.mark.parametrize("content", [1e3, float("nan")])
def test_content_of_padding_never_reaches_a_real_token(kind, content):
    layer, mask = make_layer(kind), padding_mask(LENGTHS, SEQ_LEN)
    x = make_x()
    filled = x.masked_fill(~mask[..., None], content).requires_grad_()
    output = layer(filled, mask)
    assert torch.equal(output, layer(x, mask))
    (gradient,) = gradients(output, [filled])
    assert (gradient[~mask] == 0).all() and gradient[mask].isfinite().all() and (gradient[mask] != 0).any()


@every_kind
def test_wholly_padded_sample_is_finite_and_disturbs_nobody(kind):
    layer, x, mask = make_layer(kind), make_x(), padding_mask(torch.tensor([7, 0]), SEQ_LEN)
    x = x.requires_grad_()
    output = layer(x, mask)
    assert output.isfinite().all()
    assert_close(output[:1], layer(x[:1], mask[:1]), atol=1e-6, rtol=0)
    found = gradients(output, [x, *layer.parameters()])
    assert all(gradient.isfinite().all() for gradient in found) and (found[0][1] == 0).all()


def test_E_and_F_that_are_put_in_later_are_looked_at():
    """PyTorch's kernel does not look: it would write beyond the smaller one."""
    x = torch.randn(HEADS, SEQ_LEN, D_MODEL)
    layer = make_layer()
    layer.F = LearnedProjection(SEQ_LEN, 4096)
    with pytest.raises(ValueError, match="E gives 5 slots, F 4096; expected the same number"):
        layer(x)
    layer = LinformerAttention(D_MODEL, HEADS, *(LearnedProjection(SEQ_LEN, SLOTS) for _ in "EF"))
    for E in (layer.E, layer.F):
        E.weight = torch.nn.Parameter(torch.randn(HEADS, SLOTS, SEQ_LEN))  # as many heads as texts
    assert_close(layer(x), layer.definition(x))


def learned(n=SEQ_LEN, slots=SLOTS, num_heads=None):
    return LearnedProjection(n, slots, num_heads)


def layer_of(E, F, num_heads=HEADS, **rest):
    return LinformerAttention(D_MODEL, num_heads, E, F, **rest)


X, TAKES = torch.zeros(2, 5, D_MODEL), "takes 11 tokens to 5 slots, expected no others"


test_wrong_sizes_are_refused_in_one_sentence = refusing(
    (lambda: layer_of(learned(), learned(), 4), "4 heads do not divide d_model=21"),
    (lambda: layer_of(torch.ones(5, 11), learned()), "^E is a Tensor, expected a Projection from `proj"),
    (lambda: layer_of(learned(), nn.Linear(11, 5)), "^F is a Linear, expected a Projection from `proj"),
    (lambda: layer_of(learned(), learned(12)), "E takes 11 tokens to 5 slots, F 12 to 5; expected"),
    (lambda: layer_of(learned(), None), "^F is None, expected .*s`, or one of learned, per head, windows, E"),
    (lambda: layer_of("mean", None), "^E is 'mean', expected .*, or one of learned, per head, windows"),
    (lambda: layer_of("learned", "E"), "E is 'learned' with seq_len=None, proj_dim=None; expected both"),
    (lambda: layer_of(learned(), "E", seq_len=12), f"^E {TAKES}; got seq_len=12, proj_dim=None"),
    (lambda: layer_of(learned(), "E", proj_dim=6), f"^E {TAKES}; got seq_len=None, proj_dim=6"),
    (lambda: layer_of(learned(), "E", dropout=1.5), "dropout is 1.5, expected a share from 0 to 1"),
    (lambda: layer_of(*[learned(num_heads=2)] * 2)(X), "E has a matrix for each of 2 heads"),
    (lambda: make_layer()(X[..., :20]), r"x has shape \(2, 5, 20\), expected \(batch, n, 21\)"),
)


@pytest.mark.parametrize("size", [300, 60_000])
@pytest.mark.parametrize("kind", ["Gaussian", "mean pooling"])
def test_the_largest_halves_give_what_doubles_give(kind, size):
    E = KINDS[kind]()(torch.eye(SEQ_LEN)).half()
    q, k = (x.mul(size).clamp(-60_000, 60_000).half() for x in qkv()[:2])
    v = qkv()[2].mul(60_000 if kind == "mean pooling" else 1).clamp(-60_000, 60_000).half()
    expected = linformer_attention(*(x.double() for x in (q, k, v, E, E)))
    assert ((E.double() @ k.double()).abs().max() > 65_504) == (kind == "Gaussian" and size == 60_000)
    found = linformer_attention(q, k, v, E, E)
    assert found.dtype == torch.float16
    assert_close(found.double(), expected, atol=v.abs().max().item() * 2**-10, rtol=0)


@every_kind
def test_half_precision_and_autocast_stay_close_and_have_gradients(kind):
    layer, x, mask = make_layer(kind), make_x(), padding_mask(LENGTHS, SEQ_LEN)
    half = copy.deepcopy(layer).bfloat16()(x.bfloat16(), mask)
    with torch.autocast("cpu", torch.bfloat16):
        cast = layer(x, mask)
    for output in (half, cast):
        assert output.dtype == torch.bfloat16
        assert_close(output.float(), layer(x, mask), atol=0.02, rtol=0)
    assert all(gradient.isfinite().all() for gradient in gradients(cast, [*layer.parameters()]))


@pytest.mark.slow
@every_kind
def test_compiles_as_one_graph(kind):
    layer, x, mask = make_layer(kind), make_x(n=8), padding_mask(LENGTHS.clamp(max=8), 8)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    assert_close(compiled(x, mask), layer(x, mask), atol=1e-6, rtol=0)


@pytest.mark.slow
@every_kind
def test_exports_with_every_length_up_to_seq_len(kind):
    layer = make_layer(kind)
    n = torch.export.Dim("n", min=2, max=SEQ_LEN)
    exported = torch.export.export(layer, (make_x(n=8),), dynamic_shapes={"x": {1: n}}).module()
    for length in (2, 5, SEQ_LEN):
        assert_close(exported(make_x(length)), layer(make_x(length)), atol=1e-6, rtol=0)


def test_words_in_place_of_E_and_F_make_what_they_say():
    made = {
        words: LinformerAttention(D_MODEL, HEADS, *words, seq_len=SEQ_LEN, proj_dim=SLOTS)
        for words in ((), ("learned", "E"), ("per head",), ("windows",), ("learned", "windows"))
    }
    shapes = {words: [tuple(p.weight.shape) for p in projections_of(made[words])] for words in made}
    one, each = (SLOTS, SEQ_LEN), (HEADS, SLOTS, SEQ_LEN)
    learns = {(): [one, one], ("learned", "E"): [one, one], ("per head",): [each, each]}
    assert shapes == learns | {("windows",): [], ("learned", "windows"): [one]}
    assert {words for words, layer in made.items() if layer.E is layer.F} == {("learned", "E")}
    layer = LinformerAttention(D_MODEL, HEADS, learned(), "E")
    assert layer.F is layer.E
    assert_close(made["windows",](make_x()), written_out(made["windows",], make_x()), atol=1e-6, rtol=0)


def projections_of(layer):
    return [E for E in (layer.E, layer.F) if isinstance(E, LearnedProjection)]


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_dropout_is_that_of_multihead_attention_in_mean_and_spread(share):
    """With as many slots as tokens and E = 1, the two are one layer."""
    torch.manual_seed(0)
    n, draws = 4, 20_000
    ours = LinformerAttention(D_MODEL, HEADS, learned(n, n), "E", dropout=share)
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, share, batch_first=True)
    with torch.no_grad():
        start_at(ours.E, torch.eye(n))
        theirs.in_proj_weight.copy_(torch.cat([W.weight for W in (ours.query, ours.key, ours.value)]))
        theirs.out_proj.load_state_dict(ours.output.state_dict())
        x = make_x(n, 1)
        exact = ours.eval()(x)
        assert_close(exact, theirs.eval()(x, x, x)[0])
        many = x.expand(draws, -1, -1)
        found, expected = ours.train()(many), theirs.train()(many, many, many)[0]
        mean = exact[0] if share < 1 else ours.output.bias.expand_as(exact[0])  # all weights are 0 then
        assert ((found.mean(0) - mean).abs() < 5 * found.std(0) / draws**0.5 + 1e-5).all()
        assert_close(found.std(0), expected.std(0), rtol=0.05, atol=1e-5)
        assert (found.std(0) > 0.01).any() == (0 < share < 1)


def test_the_first_lines_of_the_readme_run(capsys):
    code = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8").partition("```python\n")[2]
    exec(code.partition("```")[0], {})
    assert capsys.readouterr().out == "torch.Size([2, 3000, 512])\n"


def test_never_stores_a_map_of_n_times_n():
    n = 8192
    E = LearnedProjection(n, 16)
    layer, x = LinformerAttention(8, 2, E, E), torch.randn(1, n, 8)
    q = k = v = x.unflatten(-1, (2, 4)).transpose(1, 2)
    for call in (
        lambda: layer(x).square().sum().backward(),
        lambda: layer.definition(x).square().sum().backward(),
        lambda: linformer_attention(q, k, v, E.weight, E.weight).square().sum().backward(),
    ):
        assert peak_bytes(call) < n * n * 4 / 20  # a map of one head in float32 would be 256 MiB
