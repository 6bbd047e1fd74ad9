"""What a program sets for all of PyTorch, NumPy and Python changes no number here, and stays as it is."""

import copy
import decimal
import os
import random
from contextlib import contextmanager
from functools import cache, partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close

from linformer_from_scratch import attention, cost, efficient, fitting, low_rank, random_projections
from linformer_from_scratch.benchmark import median_seconds
from linformer_from_scratch.benchmark.ceilings import copy_ceiling, matmul_ceiling
from linformer_from_scratch.benchmark.modes import can_compile, forward_and_backward
from linformer_from_scratch.common import random_state
from linformer_from_scratch.common.tables import aligned
from linformer_from_scratch.data import (
    ByteVocabulary,
    LabelledBatches,
    MaskedBatches,
    baselines,
    mask_tokens,
    pad,
    stream,
    tasks,
)
from linformer_from_scratch.efficient.family import FAMILY
from linformer_from_scratch.encoder import Classifier, MaskedLanguageModel, sinusoids
from linformer_from_scratch.limits.bootstrap import paired_bootstrap
from linformer_from_scratch.limits.capstone import DistillationLoss, following_ranks
from linformer_from_scratch.limits.sharpness import errors_by_temperature
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained import model_weights, random_weights, stored, tokenize
from linformer_from_scratch.pretrained.sentence_encoder import fitted_encoder, full_encoder
from linformer_from_scratch.projections import (
    GaussianProjection,
    LearnedProjection,
    MaxPooling,
    MeanPooling,
    StridedConvolution,
    start_at_windows,
)
from linformer_from_scratch.training import Config, Trainer, corpora, loss
from linformer_from_scratch.training.copying import copies, copying_losses
from linformer_from_scratch.training.recipes import Recipe, encoder

# Settings: each a context in which a program may call


@contextmanager
def setting(read, write, value):
    before = read()
    write(value)
    try:
        yield
    finally:
        write(before)


@contextmanager
def default_device(device):
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextmanager
def other_seeds():
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(99)
    try:
        yield
    finally:
        for restore, state in zip(
            (torch.set_rng_state, np.random.set_state, random.setstate), before, strict=True
        ):
            restore(state)


@contextmanager
def few_digits_printed():
    torch.set_printoptions(precision=1, sci_mode=True)
    with np.printoptions(precision=1):
        try:
            yield
        finally:
            torch.set_printoptions(profile="default")


default_dtype = partial(setting, torch.get_default_dtype, torch.set_default_dtype)
SETTINGS = {
    "float64": lambda: default_dtype(torch.float64),
    "bfloat16": lambda: default_dtype(torch.bfloat16),
    "float16": lambda: default_dtype(torch.float16),
    "another device": lambda: default_device("meta"),  # stands for a GPU
    "within another device": lambda: torch.device("meta"),
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "anomaly": lambda: torch.autograd.set_detect_anomaly(True),
    "deterministic": lambda: setting(
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True
    ),
    "medium products": lambda: setting(
        torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "medium"
    ),
    "one thread": lambda: setting(torch.get_num_threads, torch.set_num_threads, 1),
    "denormals are zero": lambda: setting(lambda: False, torch.set_flush_denormal, True),
    "no fused kernel": lambda: sdpa_kernel(SDPBackend.MATH),
    "other seeds": other_seeds,
    "NumPy raises": lambda: np.errstate(all="raise"),
    "few digits": few_digits_printed,
    "two decimals": lambda: decimal.localcontext(prec=2),
    "another folder": lambda: setting(os.getcwd, os.chdir, os.path.dirname(os.getcwd())),
}


def set_for_all():
    """What the program has set, and where its random numbers stand."""
    return (
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.is_anomaly_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        torch.get_num_threads(),
        torch.backends.cuda.math_sdp_enabled(),
        torch.backends.cuda.flash_sdp_enabled(),
        torch.random.get_rng_state().numpy().tobytes(),
        np.random.get_state()[1].tobytes(),
        random.getstate(),
        np.geterr(),
        decimal.getcontext().prec,
        os.getcwd(),
    )


# Calls: functions with inputs that were there before


def numbers(*sizes, seed=0):
    return torch.randn(sizes, generator=draw(seed))


def draw(seed=0):
    return torch.Generator().manual_seed(seed)


CPU = torch.device("cpu")
N, D, SLOTS, SEQ_LEN, VOCAB = 23, 5, 4, 20, 40
QKV = numbers(3, 2, 3, N, D).unbind()
TEXTS = numbers(3, 2, 6, 8, D).unbind()
MASK = numbers(2, 1, N, N) > -1
MAPS, X, R, OMEGA = numbers(2, 7, 5), numbers(2, 11, 12), numbers(8, 11), numbers(7, D)
REAL = torch.tensor([[True] * 11, [True] * 7 + [False] * 4])
IDS = torch.randint(3, VOCAB, (3, SEQ_LEN), generator=draw())
TARGETS = torch.where(numbers(3, SEQ_LEN) > 1, IDS, -100)
ROW, LABELS, PAIRS = IDS.flatten(), torch.tensor([0, 1, 0]), torch.tensor([[0, 1], [1, 2]])
DOCUMENTS = {"email.a": "x" * 100, "xml.b": "y" * 90, "xml.c": "z" * 80}


def seeded(build):
    """What is made of random numbers that all code shares, drawn on from a seed."""
    with random_state.use_rng_state(random_state.seeded(3, CPU), CPU):
        return build()


def small(*kind):
    recipe = Recipe(*kind, seq_len=SEQ_LEN, d_model=16, proj_dim=SLOTS, num_layers=1)
    return seeded(lambda: encoder(recipe, VOCAB))


E = seeded(lambda: LearnedProjection(11, SLOTS))
LAYERS = {
    "MultiHeadAttention": seeded(lambda: MultiHeadAttention(12, 3)),
    "MultiHeadAttention, causal": seeded(lambda: MultiHeadAttention(12, 3, 1, causal=True)),
    "LinformerAttention": seeded(lambda: LinformerAttention(12, 3, E, E)),
}
LINEAR = seeded(lambda: nn.Linear(12, 12))
ENCODER = full_encoder()
MODEL, CLASSIFIER = MaskedLanguageModel(small()).eval(), seeded(lambda: Classifier(small("full"), 2)).eval()


class Teacher(nn.Module):
    def hidden(self, ids):
        return [self.weight * x for x in X]

    def __init__(self, weight):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))


STUDENT, TEACHER = Teacher(1.5), Teacher(1.0)


def fitted(*options):
    return fitting.fit_projections(*TEXTS, 3, *options, updates=3)


def trained():
    with torch.inference_mode(False):  # a model of before
        model = copy.deepcopy(MODEL)
    batches = MaskedBatches(ROW, SEQ_LEN, 3, VOCAB)
    history = Trainer(model, loss.masked_loss, batches, Config(steps=1), device="cpu").train()
    return [record["loss"] for record in history]


def both_ways(attend, *options):
    return [attend(*QKV, *options, causal=causal) for causal in (False, True)]


COMPUTED = {  # in full precision, under autocast too
    "singular_values": lambda: low_rank.singular_values(MAPS),
    "decompose": lambda: [part.abs() for part in low_rank.decompose(MAPS)],
    "best_rank": lambda: low_rank.best_rank(MAPS, 2),
    "stable_rank": lambda: low_rank.stable_rank(low_rank.singular_values(MAPS)),
    "rank_at": lambda: low_rank.rank_at(low_rank.singular_values(MAPS)),
    "shuffled_rows": lambda: [low_rank.shuffled_rows(maps, draw()) for maps in (MAPS, MAPS.double())],
    "random_head": lambda: low_rank.random_head(MAPS, 4, draw()),
    "maps to compare with": lambda: [make(6, draw()) for make in low_rank.BASELINES.values()],
    "gaussian_projection": lambda: random_projections.gaussian_projection(3, 7, draw()),
    "distortion": lambda: random_projections.distortion(X.mT, R),
    "theorem_1_map": lambda: random_projections.theorem_1_map(X.mT, R),
    "starting_pair": lambda: [fitting.starting_pair(TEXTS[1], 3, start, draw()) for start in fitting.STARTS],
    "fit_projections": lambda: [fitted(start) for start in fitting.STARTS],
    "fit_exponent": lambda: cost.fit_exponent([1, 2, 4], [1, 3, 9]),
    "attention_entropy": lambda: attention.attention_entropy(MAPS.softmax(dim=-1)),
    "padding_mask": lambda: attention.padding_mask(torch.tensor([4, 0, 9], device="cpu"), 9),
    "tiled_attention": lambda: both_ways(efficient.tiled_attention, 4),
    "sparse_attention": lambda: both_ways(efficient.sparse_attention, 4, 2),
    "hierarchical_attention": lambda: both_ways(efficient.hierarchical_attention, 4),
    "linear_attention": lambda: both_ways(efficient.linear_attention),
    "nystrom_attention": lambda: efficient.nystrom_attention(*QKV, SLOTS),
    "performer_attention": lambda: both_ways(efficient.performer_attention, OMEGA),
    "orthogonal_gaussian": lambda: efficient.orthogonal_gaussian(7, D, seed=1),
    "mask_tokens": lambda: mask_tokens(IDS, VOCAB, draw()),
    "MaskedBatches": lambda: MaskedBatches(ROW, SEQ_LEN, 4, VOCAB)(1),
    "LabelledBatches": lambda: LabelledBatches(IDS, LABELS, 2)(1),
    "stream": lambda: stream(["ab", "c"], ByteVocabulary()),
    "pad": lambda: pad([[3, 4], [5], []], 3),
    "passages": lambda: corpora.passages(DOCUMENTS, ByteVocabulary(), 40),
    **{
        task.__name__: partial(lambda task: task(8, 3)(1), task)
        for task in (tasks.needle, tasks.copy, tasks.recall)
    },
    "baseline_losses": lambda: baselines.baseline_losses(ROW, [mask_tokens(IDS, VOCAB, draw())], VOCAB),
    "bag_of_words": lambda: baselines.bag_scores(IDS, *baselines.bag_of_words(IDS, LABELS, VOCAB, 2)),
    "copies": lambda: copies(IDS, TARGETS),
    "randomness": lambda: random_state.seeded(3, CPU),
    "paired_bootstrap": lambda: paired_bootstrap(X[0, 0], X[0, 1], draws=100),
    "following_ranks": lambda: following_ranks(X[0], PAIRS),
    "DistillationLoss": lambda: DistillationLoss(TEACHER)(STUDENT, IDS),
    "stored_heads": lambda: (stored.stored_heads.cache_clear(), stored.stored_heads()[5, 6].q)[1:],
    "tokenize": lambda: tokenize("The bank raised its rates."),
    "Trainer": trained,
    "aligned": lambda: aligned("n", [1, 2], {"x": R[0, :2], "y": [float("nan"), 2.5]}, ".2f"),
    "ceilings": lambda: (
        seeded(lambda: (matmul_ceiling(rounds=1, side=8), copy_ceiling(rounds=1, numbers=8))) and 1
    ),
    "median_seconds": lambda: [*median_seconds({"one": lambda: None, "two": lambda: None}, 1)],
    "forward_and_backward": lambda: seeded(lambda: forward_and_backward(LINEAR, X)()),
}
LOWERED = {  # by autocast, as PyTorch's own attention and linear layers are
    "attention_weights": lambda: [attention.attention_weights(*QKV[:2], mask) for mask in (None, MASK)],
    "attention_weights of halves": lambda: attention.attention_weights(*(x.half() for x in QKV[:2])),
    "scaled_dot_product_attention": lambda: attention.scaled_dot_product_attention(*QKV, MASK),
    "sliding_window_attention": lambda: both_ways(efficient.sliding_window_attention, 3),
    **{r.name: partial(lambda r: r.build(N, D, SLOTS)(*QKV), r) for r in FAMILY},
    **{name: partial(lambda layer: layer(X, REAL), layer) for name, layer in LAYERS.items()},
    **{f"{name}, defined": partial(lambda a: a.definition(X, REAL), a) for name, a in LAYERS.items()},
    "pooling": lambda: [kind(11, SLOTS)(X) for kind in (MeanPooling, MaxPooling)],
    "start_at_windows": lambda: start_at_windows(copy.deepcopy(E)).state_dict(),
    "masked_loss": lambda: loss.masked_loss(MODEL, IDS, TARGETS),
    "accuracy": lambda: loss.accuracy(CLASSIFIER, IDS, LABELS),
    "copying_losses": lambda: copying_losses(MODEL, [(IDS, TARGETS)]),
    "SentenceEncoder": lambda: ENCODER.encode(["The bank raised its rates.", "a river"]),
    "errors_by_temperature": lambda: errors_by_temperature(5, 6, 8, [0.5]),
}
CALLS = COMPUTED | LOWERED


@cache
def expected(name):
    return CALLS[name]()


def assert_same(found, wanted, default=torch.float32):
    """Numbers that are equal to the rounding of the coarser dtype; another than wanted may be the default."""
    if isinstance(wanted, Tensor):
        assert found.device == wanted.device and found.dtype in (wanted.dtype, default)
        coarser = min(
            found.dtype, wanted.dtype, key=lambda d: -torch.finfo(d).eps if d.is_floating_point else 0
        )
        tolerance = {"atol": 4 * torch.finfo(coarser).eps, "rtol": 1e-5} if coarser.is_floating_point else {}
        assert_close(found.detach().to(coarser), wanted.detach().to(coarser), **tolerance)
    elif isinstance(wanted, dict):
        assert_same([*found.values()], [*wanted.values()], default)
    elif isinstance(wanted, list | tuple):
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other, default)
    else:
        assert found == (pytest.approx(wanted, rel=1e-5) if isinstance(wanted, float) else wanted)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize(
    ("setting", "name"), [(s, name) for s in SETTINGS for name in (COMPUTED if s == "autocast" else CALLS)]
)
def test_numbers_and_settings_stay_the_same_whatever_is_set(setting, name):
    wanted = expected(name)
    with SETTINGS[setting]():
        before = set_for_all()
        found = CALLS[name]()
        assert set_for_all() == before
        default = torch.get_default_dtype()
    assert_same(found, wanted, default)


BUILT = {  # values that no seed of the program's decides: a module has them in its own dtype
    "GaussianProjection": lambda: GaussianProjection(SEQ_LEN, SLOTS, seed=5).weight,
    "windows": lambda: start_at_windows(LearnedProjection(SEQ_LEN, SLOTS)).weight,
    "sinusoids": lambda: sinusoids(500, 8),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", BUILT)
def test_what_is_built_has_the_default_dtype_and_the_same_values(name, dtype):
    wanted = BUILT[name]()
    with default_dtype(dtype):
        found = BUILT[name]()
    assert found.dtype == dtype
    assert_same(found, wanted, dtype)


MODULES = {
    "Gaussian": lambda: GaussianProjection(SEQ_LEN, SLOTS),
    "convolution": lambda: StridedConvolution(SEQ_LEN, SLOTS, 12),
    "windows": lambda: start_at_windows(LearnedProjection(SEQ_LEN, SLOTS)),
    **{
        projection: partial(lambda p: encoder(Recipe(projection=p, positions="sinusoids"), VOCAB), projection)
        for projection in ("windows", "random", "gaussian", "mean")
    },
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_built_on_the_device_that_is_set(name):
    with torch.device("meta"):
        state = MODULES[name]().state_dict()
    assert {tensor.device.type for tensor in state.values()} == {"meta"}


def test_tensors_of_before_can_be_learned_from_after_inference_mode():
    with torch.inference_mode():
        for kept in (stored.stored_heads, model_weights):
            kept.cache_clear()
        found = [*fitted(), stored.stored_heads()[5, 6].q, *model_weights().values()]
    assert not any(x.is_inference() for x in found)


@pytest.mark.parametrize("setting", ["float64", "bfloat16", "another device"])
def test_pretrained_weights_are_the_same_whatever_is_set(setting):
    made = [lambda: random_weights(3), lambda: fitted_encoder(128).state_dict()]
    wanted = [make() for make in made]
    with SETTINGS[setting]():
        found = [make() for make in made]
    assert_same(found, wanted)


def test_whether_torch_compiles_does_not_depend_on_the_default_device(monkeypatch):
    monkeypatch.setattr("linformer_from_scratch.benchmark.modes.compiled", lambda layer, x: layer(x))
    can_compile.cache_clear()
    with torch.device("meta"):
        assert can_compile("cpu")
    can_compile.cache_clear()


@pytest.mark.parametrize("attend", [efficient.linear_attention, partial(efficient.tiled_attention, tile=4)])
def test_a_relative_says_its_shape_on_a_device_without_autocast(attend):
    assert attend(*(x.to("meta") for x in QKV)).shape == QKV[0].shape
