"""What a program sets for all of PyTorch, NumPy and Python changes no number here, and stays as it is."""

import copy
import random
from contextlib import contextmanager
from functools import cache, partial

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from linformer_from_scratch import attention, cost, data, efficient, fitting, low_rank, random_projections
from linformer_from_scratch.common import random_state
from linformer_from_scratch.data import ByteVocabulary, LabelledBatches, MaskedBatches, baselines, pad, tasks
from linformer_from_scratch.encoder import Classifier, MaskedLanguageModel, sinusoids
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained import model_weights, random_weights, stored
from linformer_from_scratch.pretrained.bootstrap import paired_bootstrap
from linformer_from_scratch.pretrained.sentence_encoder import fitted_encoder, full_encoder
from linformer_from_scratch.projections import (
    GaussianProjection,
    LearnedProjection,
    StridedConvolution,
    start_at_windows,
)
from linformer_from_scratch.training import Config, Trainer, loss
from linformer_from_scratch.training.recipes import Recipe, encoder


@contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def other_seeds():
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(99)
    try:
        yield
    finally:
        restore = torch.set_rng_state, np.random.set_state, random.setstate
        for put_back, state in zip(restore, before, strict=True):
            put_back(state)


SETTINGS = {
    "float64": lambda: default_dtype(torch.float64),
    "float16": lambda: default_dtype(torch.float16),
    "another device": lambda: torch.device("meta"),  # stands for a GPU
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "other seeds": other_seeds,
}


def set_for_all():
    """What the program has set, and the state of its random numbers."""
    return (
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.random.get_rng_state().numpy().tobytes(),
        np.random.get_state()[1].tobytes(),
        random.getstate(),
    )


# Functions, with inputs that were there before


def draw(seed=0):
    return torch.Generator().manual_seed(seed)


def few_facts(n, batch):
    return tasks.scattered_recall(n, 1, batch)


def numbers(*sizes):
    return torch.randn(sizes, generator=draw())


def seeded(build):
    """What is made of PyTorch's shared random numbers, from a seed."""
    with random_state.use_rng_state(random_state.seeded(3, CPU), CPU):
        return build()


CPU = torch.device("cpu")
N, D, SLOTS, SEQ_LEN, VOCAB = 23, 5, 4, 20, 40
QKV = numbers(3, 2, 3, N, D).unbind()
TEXTS = numbers(3, 2, 6, 8, D).unbind()
MASK = numbers(2, 1, N, N) > -1
MAPS, X, R, OMEGA = numbers(2, 7, 5), numbers(2, 11, 12), numbers(8, 11), numbers(7, D)
REAL = torch.tensor([[True] * 11, [True] * 7 + [False] * 4])
IDS = torch.randint(3, VOCAB, (3, SEQ_LEN), generator=draw())
ROW, LABELS = IDS.flatten(), torch.tensor([0, 1, 0])
E = seeded(lambda: LearnedProjection(11, SLOTS))
FULL, LINFORMER = seeded(lambda: (MultiHeadAttention(12, 3), LinformerAttention(12, 3, E, E)))
SMALL = Recipe("linformer", seq_len=SEQ_LEN, d_model=16, proj_dim=SLOTS, num_layers=1)
MODEL = seeded(lambda: MaskedLanguageModel(encoder(SMALL, VOCAB))).eval()
CLASSIFIER = seeded(lambda: Classifier(encoder(SMALL, VOCAB), 2)).eval()
ENCODER = full_encoder()


def fitted(start="windows"):
    return fitting.fit_projections(*TEXTS, 3, start, updates=3)


def trained():
    with torch.inference_mode(False):  # a model of before
        model = copy.deepcopy(MODEL)
    batches = MaskedBatches(ROW, SEQ_LEN, 3, VOCAB)
    history = Trainer(model, loss.masked_loss, batches, Config(steps=1), device="cpu").train()
    return [record["loss"] for record in history]


def both_ways(attend, *options):
    return [attend(*QKV, *options, causal=causal) for causal in (False, True)]


IN_FULL_PRECISION = {  # under autocast too
    "decompose": lambda: [part.abs() for part in low_rank.decompose(MAPS)],
    "random_head": lambda: low_rank.random_head(MAPS, 4, draw()),
    "shuffled_rows": lambda: low_rank.shuffled_rows(MAPS, draw()),
    "maps to compare with": lambda: [make(6, draw()) for make in low_rank.BASELINES.values()],
    "gaussian_projection": lambda: random_projections.gaussian_projection(3, 7, draw()),
    "theorem_1_map": lambda: random_projections.theorem_1_map(X.mT, R),
    "fit_projections": lambda: [fitted(start) for start in fitting.STARTS],
    "fit_exponent": lambda: cost.fit_exponent([1, 2, 4], [1, 3, 9]),
    "padding_mask": lambda: attention.padding_mask(torch.tensor([4, 0, 9], device="cpu"), 9),
    "tiled_attention": lambda: both_ways(efficient.tiled_attention, 4),
    "sparse_attention": lambda: both_ways(efficient.sparse_attention, 4, 2),
    "hierarchical_attention": lambda: both_ways(efficient.hierarchical_attention, 4),
    "linear_attention": lambda: both_ways(efficient.linear_attention),
    "nystrom_attention": lambda: efficient.nystrom_attention(*QKV, SLOTS),
    "performer_attention": lambda: both_ways(efficient.performer_attention, OMEGA),
    "orthogonal_gaussian": lambda: efficient.orthogonal_gaussian(7, D, seed=1),
    "masked batches": lambda: MaskedBatches(ROW, SEQ_LEN, 4, VOCAB)(1),
    "labelled batches": lambda: LabelledBatches(IDS, LABELS, 2)(1),
    "ids": lambda: [data.stream(["ab", "c"], ByteVocabulary()), pad([[3, 4], [5], []], 3)],
    "tasks": lambda: [task(8, 3)(1) for task in (tasks.needle, tasks.copy, tasks.recall, few_facts)],
    "baseline_losses": lambda: baselines.baseline_losses(ROW, [data.mask_tokens(IDS, VOCAB, draw())], VOCAB),
    "paired_bootstrap": lambda: paired_bootstrap(X[0, 0], X[0, 1], draws=100),
    "Trainer": trained,
}
AS_AUTOCAST_SAYS = {  # as PyTorch's own attention and linear layers
    "attention_weights": lambda: attention.attention_weights(*QKV[:2], MASK),
    "sliding_window_attention": lambda: both_ways(efficient.sliding_window_attention, 3),
    "layers": lambda: [layer(X, REAL) for layer in (FULL, LINFORMER)],
    "definitions": lambda: [layer.definition(X, REAL) for layer in (FULL, LINFORMER)],
    "start_at_windows": lambda: start_at_windows(copy.deepcopy(E)).state_dict(),
    "accuracy": lambda: loss.accuracy(CLASSIFIER, IDS, LABELS),
    "sentence encoder": lambda: ENCODER.encode(["The bank raised its rates.", "a river"]),
}
CALLS = IN_FULL_PRECISION | AS_AUTOCAST_SAYS
LEARNED = "fit_projections", "Trainer"


@cache
def expected(name):
    return CALLS[name]()


def assert_same(found, wanted, default=torch.float32):
    """Numbers that are equal to the rounding of the coarser dtype; another than wanted may be the default."""
    if isinstance(wanted, Tensor):
        assert found.device == wanted.device and found.dtype in (wanted.dtype, default)
        both = found.dtype, wanted.dtype
        coarser = min(both, key=lambda d: -torch.finfo(d).eps if d.is_floating_point else 0)
        tolerance = {"atol": 4 * torch.finfo(coarser).eps, "rtol": 1e-5} if coarser.is_floating_point else {}
        assert_close(found.detach().to(coarser), wanted.detach().to(coarser), **tolerance)
    elif isinstance(wanted, dict):
        assert_same([*found.values()], [*wanted.values()], default)
    elif isinstance(wanted, list | tuple):
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other, default)
    else:
        assert found == (pytest.approx(wanted, rel=1e-5) if isinstance(wanted, float) else wanted)


@pytest.mark.parametrize("name", CALLS)
def test_numbers_and_settings_stay_the_same_whatever_is_set(name):
    wanted = expected(name)
    for setting, context in SETTINGS.items():
        if setting == "autocast" and name in AS_AUTOCAST_SAYS:
            continue
        if setting == "another device" and name in LEARNED and torch.__version__ < (2, 11):
            continue  # Adam itself counts its steps there, and meta holds no number
        with context():
            before = set_for_all()
            found = CALLS[name]()
            assert set_for_all() == before, setting
            default = torch.get_default_dtype()
        assert_same(found, wanted, default)


@pytest.mark.parametrize(
    "build",
    [
        lambda: GaussianProjection(SEQ_LEN, SLOTS, seed=5).weight,
        lambda: start_at_windows(LearnedProjection(SEQ_LEN, SLOTS)).weight,
        lambda: sinusoids(500, 8),
    ],
)
def test_what_is_built_has_the_default_dtype_and_the_same_values(build):
    wanted = build()
    for dtype in (torch.float64, torch.bfloat16):
        with default_dtype(dtype):
            found = build()
        assert found.dtype == dtype
        assert_same(found, wanted, dtype)


@pytest.mark.parametrize(
    "build",
    [
        lambda: GaussianProjection(SEQ_LEN, SLOTS),
        lambda: StridedConvolution(SEQ_LEN, SLOTS, 12),
        lambda: start_at_windows(LearnedProjection(SEQ_LEN, SLOTS)),
        *(
            partial(lambda p: encoder(Recipe(projection=p, positions="sinusoids"), VOCAB), projection)
            for projection in ("windows", "random", "gaussian", "mean")
        ),
    ],
)
def test_a_module_is_built_on_the_device_that_is_set(build):
    with torch.device("meta"):
        state = build().state_dict()
    assert {tensor.device.type for tensor in state.values()} == {"meta"}


def test_tensors_of_before_can_be_learned_from_after_inference_mode():
    with torch.inference_mode():
        for kept in (stored.stored_heads, model_weights):
            kept.cache_clear()
        found = [*fitted(), stored.stored_heads()[5, 6].q, *model_weights().values()]
    assert not any(x.is_inference() for x in found)


@pytest.mark.slow
def test_pretrained_weights_are_the_same_whatever_is_set():
    made = [lambda: random_weights(3), lambda: fitted_encoder(128).state_dict()]
    wanted = [make() for make in made]
    for setting in ("float64", "another device"):
        with SETTINGS[setting]():
            found = [make() for make in made]
        assert_same(found, wanted)


@pytest.mark.parametrize("attend", [efficient.linear_attention, partial(efficient.tiled_attention, tile=4)])
def test_a_relative_says_its_shape_on_a_device_without_autocast(attend):
    assert attend(*(x.to("meta") for x in QKV)).shape == QKV[0].shape


@pytest.mark.parametrize("kind", ["cpu", "mps"])
def test_the_state_of_an_apple_gpu_is_seeded_and_put_back_where_there_is_one(kind, monkeypatch):
    calls, states = [], iter("abc")  # before, seeded, after
    monkeypatch.setattr(torch.mps, "get_rng_state", lambda: next(states))
    monkeypatch.setattr(torch.mps, "set_rng_state", lambda state: calls.append(("set", state)))
    monkeypatch.setattr(torch.mps, "manual_seed", lambda seed: calls.append(("seed", seed)))
    state = random_state.seeded(3, torch.device(kind))
    if kind == "cpu":
        assert calls == [] and "mps" not in state
    else:
        assert calls == [("set", "a"), ("seed", 3), ("set", "b")] and state["mps"] == "c"


def test_a_permutation_deals_equal_draws_by_their_place(monkeypatch):
    """The default sort promises no order of them."""
    monkeypatch.setattr(random_state, "uniform", lambda generator, *sizes: torch.zeros(sizes))
    order = random_state.permutations(torch.Generator(), 2, 2000)
    assert torch.equal(order, torch.arange(2000).expand(2, -1))
