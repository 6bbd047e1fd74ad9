"""Every module of the package computes the same: wherever it was moved, in graphs, whatever padding holds."""

import copy
import importlib
import inspect
import pickle
import pkgutil

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.testing import assert_close

import lab
import linformer_from_scratch
from lab.arms import Convolution, FourierMixing, PairWeights, Place
from lab.descendants import WithTheTokenBefore
from lab.long_texts import FirstTokens, Parts
from lab.mixed_lengths import Louder
from lab.points import PointModel, UNet
from linformer_from_scratch.converters import BiasedProjection
from linformer_from_scratch.descendants.layer import CompressedAttention
from linformer_from_scratch.descendants.memory import BoundedMemoryAttention
from linformer_from_scratch.distributed.small import ShardedLinformer
from linformer_from_scratch.efficient import EfficientAttention
from linformer_from_scratch.efficient.family import FAMILY, WithMatrix
from linformer_from_scratch.encoder import Block, Classifier, Encoder, MaskedLanguageModel, TokenMLP
from linformer_from_scratch.fields.mixing import FixedMixing
from linformer_from_scratch.fields.model import FieldModel, SumOf
from linformer_from_scratch.fields.sensors import Readings
from linformer_from_scratch.fields.slots import GatedSlots, Slices
from linformer_from_scratch.heads import AttentionLayer
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.pretrained.capstone import ChunkEncoder
from linformer_from_scratch.pretrained.encoding import RecordedAttention
from linformer_from_scratch.pretrained.lengthwise import Layout, LengthwiseEncoder, window_encoder
from linformer_from_scratch.pretrained.low_rank_updates import LowRankUpdate
from linformer_from_scratch.pretrained.network import SentenceEncoder
from linformer_from_scratch.pretrained.sentence_encoder import BestRankAttention
from linformer_from_scratch.pretrained.texts import TextEncoder
from linformer_from_scratch.pretrained.windows import WindowAttention
from linformer_from_scratch.projections import LearnedProjection, Projection, StridedConvolution

N, SLOTS, D_MODEL, HEADS, VOCAB, CLASSES = 13, 5, 12, 3, 23, 7
SIZES, LAYOUT = (D_MODEL, HEADS), Layout(SLOTS, (5,), N)
X = torch.randn(2, N, D_MODEL, generator=torch.Generator().manual_seed(0))
IDS = torch.arange(2 * N).view(2, N) % VOCAB
NOT_WHOLE = {AttentionLayer, TextEncoder, Projection, ShardedLinformer, Readings}  # which need others


def windows():
    return WindowAttention(*SIZES, SLOTS)


def linformer(kind=LinformerAttention):
    return kind(*SIZES, LearnedProjection(N, SLOTS), LearnedProjection(N, SLOTS))


def encoder():
    return Encoder(VOCAB, N, D_MODEL, [linformer(), windows()], neighbours=1)


def relative(name):
    (found,) = (one for one in FAMILY if one.name == name)
    return EfficientAttention(*SIZES, found.build(N, D_MODEL // HEADS, SLOTS))


# What a class is made with, and what is asked of it; one without a line is made as its nearest ancestor.
MADE = {
    nn.Module: (lambda kind: kind(), X),
    Block: (lambda kind: kind(D_MODEL, windows()), X),
    Encoder: (lambda kind: encoder(), IDS),
    MaskedLanguageModel: (lambda kind: kind(encoder()), IDS),
    Classifier: (lambda kind: kind(encoder(), CLASSES), IDS),
    Projection: (lambda kind: kind(N, SLOTS), X),
    BiasedProjection: (lambda kind: kind(torch.randn(SLOTS, N), torch.randn(SLOTS)), X),
    Louder: (lambda kind: kind(LearnedProjection(N, SLOTS)), X),
    StridedConvolution: (lambda kind: kind(N, SLOTS, D_MODEL), X),
    AttentionLayer: (lambda kind: kind(*SIZES), X),
    LinformerAttention: (linformer, X),
    WindowAttention: (lambda kind: windows(), X),
    BestRankAttention: (lambda kind: kind(*SIZES, 2), X),
    RecordedAttention: (lambda kind: kind(), X.repeat(1, 1, 32)),
    EfficientAttention: (lambda kind: relative("Performer"), X),
    WithMatrix: (lambda kind: relative("Performer").relative, X[..., : D_MODEL // HEADS]),
    LowRankUpdate: (lambda kind: kind(N, D_MODEL, 2), X),
    SentenceEncoder: (lambda kind: window_encoder(SLOTS, (5,)), IDS),
    LengthwiseEncoder: (lambda kind: kind(LAYOUT), IDS),
    ChunkEncoder: (lambda kind: kind(window_encoder(SLOTS), 7), IDS),
    **dict.fromkeys([FirstTokens, Parts], (lambda kind: kind(window_encoder(SLOTS)), IDS)),
    TokenMLP: (lambda kind: kind(D_MODEL), X),
    CompressedAttention: (lambda kind: kind(*SIZES, 4, 3, overlap=True, top=2), X),
    BoundedMemoryAttention: (lambda kind: kind(*SIZES, SLOTS), X),
    WithTheTokenBefore: (lambda kind: kind(D_MODEL, windows()), X),
    FixedMixing: (lambda kind: kind(N, SLOTS), X),
    FourierMixing: (lambda kind: kind(3, D_MODEL, 1), X[:, :9]),
    PairWeights: (lambda kind: kind(N), X.repeat(1, 1, 6)[..., :64]),
    **dict.fromkeys([GatedSlots, Slices], (lambda kind: kind(*SIZES, SLOTS), X)),
    FieldModel: (lambda kind: kind(nn.Linear(D_MODEL, D_MODEL), [windows()], N, D_MODEL, 2), X),
    SumOf: (lambda kind: kind(nn.Linear(D_MODEL, 2)), X),
    PointModel: (lambda kind: kind(N, [windows()], D_MODEL), X.repeat(1, 1, 3)),
    UNet: (lambda kind: kind(4, 8), X.repeat(1, 2, 3)[:, :16]),
    Convolution: (lambda kind: kind(Place(N, SLOTS)), X.repeat(1, 1, 6)[..., :64]),
}


def defined():
    """All modules of the package and of the lab, without those of exercises, whose mistakes are meant."""
    for package in (linformer_from_scratch, lab):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    places = ("linformer_from_scratch.", "lab.")
    ours = {kind for kind in below(nn.Module) if kind.__module__.startswith(places)} - NOT_WHOLE
    ours = {kind for kind in ours if ".course.exercises" not in kind.__module__}
    return sorted(ours, key=lambda kind: kind.__name__)


def below(kind):
    for found in kind.__subclasses__():
        yield found
        yield from below(found)


def makers():
    for kind in defined():
        make, given = next(MADE[ancestor] for ancestor in kind.__mro__ if ancestor in MADE)
        marks = [pytest.mark.slow] if issubclass(kind, TextEncoder) else []
        yield pytest.param(lambda make=make, kind=kind: make(kind), given, id=kind.__name__, marks=marks)
    for one in FAMILY:
        yield pytest.param(lambda name=one.name: relative(name), X, id=f"EfficientAttention, {one.name}")


def assigned(module, make):
    with torch.device("meta"):
        other = make()
    other.load_state_dict(module.state_dict(), assign=True)
    return other


def emptied(module, make):
    other = make().to_empty(device="cpu")
    for tensor in (*other.parameters(), *other.buffers()):
        tensor.data.fill_(77)  # any number may stand there
    other.load_state_dict(module.state_dict())
    return other


WAYS = {
    "assigned": assigned,
    "emptied": emptied,
    "copied": lambda module, make: copy.deepcopy(module),
    "pickled": lambda module, make: pickle.loads(pickle.dumps(module)),
}


@pytest.mark.parametrize(("make", "given"), [*makers()])
@torch.no_grad()
def test_a_module_computes_the_same_however_it_came_to_its_place(make, given):
    torch.manual_seed(1)
    module = make().eval()
    expected = run(module, given)
    for name, way in WAYS.items():
        assert torch.equal(run(way(module, make).eval(), given), expected), name


def run(module, given):
    if isinstance(module, ChunkEncoder | FirstTokens | Parts):
        return module.embed(given)
    return module(given, given, given) if isinstance(module, WithMatrix) else module(given)


def exported(module, given):
    return torch.export.export(module, (given,), strict=False).module()(given)


def compiled(module, given):
    torch.compiler.reset()
    return torch.compile(module, backend="eager", fullgraph=True)(given)


def by_sample(module, given):
    weights = {name: weight.detach() for name, weight in module.named_parameters()}

    def one(weights, text):
        return functional_call(module, weights, (text[None],))[0]

    vmap(grad(lambda *some: one(*some).square().mean()), in_dims=(None, 0))(weights, given)
    return vmap(one, in_dims=(None, 0))(weights, given)


GRAPHS = {"exported": exported, "compiled": compiled, "sample by sample": by_sample}
OTHERS = ("FirstTokens", "Parts", "ChunkEncoder", "WithMatrix", "LengthwiseEncoder")  # the last refuses
OTHERS += ("FourierMixing",)  # some FFTs refuse an empty batch


@pytest.mark.filterwarnings("ignore::UserWarning")  # that something is slow, or kept by the recording layer
@pytest.mark.parametrize(("make", "given"), [some for some in makers() if some.id not in OTHERS])
def test_no_module_branches_on_what_a_graph_cannot_see(make, given):
    torch.manual_seed(1)
    module = make().eval()
    expected = module(given)
    assert module(given[:0]).shape == (0, *expected.shape[1:])
    for name, graph in GRAPHS.items():
        assert_close(graph(module, given), expected, atol=1e-5, rtol=1e-4, msg=name)
    assert module.to("meta")(given.to("meta")).shape == expected.shape


def reading_padding():
    for some in makers():
        make, given = some.values
        if (
            given.is_floating_point()
            and given.size(1) == N
            and "padding_mask" in inspect.signature(make().forward).parameters
        ):
            yield some


@pytest.mark.parametrize(("make", "given"), [*reading_padding()])
def test_nan_in_padding_reaches_no_real_token_and_no_gradient_of_an_attention_layer(make, given):
    torch.manual_seed(1)
    module, real = make().eval(), torch.arange(N) < torch.tensor([[N - 2], [N]])
    x = given.masked_fill(~real[..., None], torch.nan).index_fill(1, torch.tensor([N - 1]), torch.inf)
    x = torch.where(real[..., None], given, x).requires_grad_()
    try:
        expected, output = module(given, real)[real], module(x, real)[real]
    except ValueError as refused:
        assert "tokens are padding, expected 0" in str(refused)
        return
    assert_close(output, expected)
    is_best = isinstance(module, BestRankAttention)  # ranks alike: no gradient
    if isinstance(module, AttentionLayer) and not is_best:
        output.sum().backward()
        assert all(some.grad.isfinite().all() for some in (x, *module.parameters()))
