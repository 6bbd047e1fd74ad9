"""The runs of chapter 09: small models on tasks whose every answer stands in the text.

Every relative may cost as many operations as reading 32 keys a query; two levels takes its cheapest blocks
where they cost more, a fitting stride costs 34, linear attention costs 32.5 whatever it may.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import torch
from torch import nn

from linformer_from_scratch.course.experiments.experiment import Experiment
from linformer_from_scratch.data import tasks
from linformer_from_scratch.efficient import EfficientAttention
from linformer_from_scratch.efficient.family import FAMILY, largest_size
from linformer_from_scratch.encoder import Encoder, MaskedLanguageModel, sinusoids
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import LearnedProjection, start_at_windows
from linformer_from_scratch.training import Config, Trainer, masked_accuracy, masked_loss

D_MODEL, NUM_HEADS, NUM_LAYERS = 64, 2, 2
D_HEAD = D_MODEL // NUM_HEADS
KEYS = 32  # what a query may read, by operations: 4 · n · KEYS · d_head a head
LENGTHS = {"needle": (64, 128, 256), "copy": (64, 128, 256, 512)}
TEXTS = {"needle": lambda n: 32, "copy": lambda n: 4096 // n, "recall": lambda n: 4096 // n}  # in a batch
CONFIG = Config(steps=4000, learning_rate=3e-3, warmup=100)
VALIDATION = {"needle": 16, "copy": 4, "recall": 8}  # batches: 512 answers, and 8,192
NEIGHBOURS = {"needle": 0, "copy": 0, "recall": 1}  # a value must know its key, which stands beside it
RELATIVES = {relative.name: relative for relative in FAMILY}
FITTING = "strided, fitting"  # a stride that divides n / 2, the distance of a copy from its origin
LEARNED, SLOWLY, MEAN = "Linformer, learned", "Linformer, learned slowly", "Linformer, mean pooling"
SPEEDS = {LEARNED: 1.0, SLOWLY: 0.1}  # of E's own numbers, not of what is stored of them
FULL = "full"
OTHERS = [name for name in RELATIVES if name not in ("tiled exact", MEAN)]
NAMES = (FULL, LEARNED, SLOWLY, MEAN, *OTHERS, FITTING)


def size_of(name: str, n: int, keys: int = KEYS) -> int:
    """The size of a relative within the budget; 0 where it has none."""
    if name == FULL:
        return 0
    if name in (LEARNED, SLOWLY):
        return size_of(MEAN, n, keys)
    if name == FITTING:
        return keys  # the stride is n / keys
    relative = RELATIVES[name]
    within = largest_size(relative, n, D_HEAD, 4 * n * keys * D_HEAD)
    return within or min(relative.sizes(n), key=lambda size: relative.flops(n, D_HEAD, size))


def attention_layer(name: str, n: int, size: int) -> nn.Module:
    """One attention layer of a model."""
    if name == FULL:
        return MultiHeadAttention(D_MODEL, NUM_HEADS)
    if name in (LEARNED, SLOWLY):
        E, F = (start_at_windows(LearnedProjection(n, size)) for _ in range(2))
        return LinformerAttention(D_MODEL, NUM_HEADS, E, F)
    relative = RELATIVES["strided + global" if name == FITTING else name]
    return EfficientAttention(D_MODEL, NUM_HEADS, relative.build(n, D_HEAD, size))


def model_for(task: str, name: str, n: int, size: int) -> MaskedLanguageModel:
    """An encoder of two layers, positions begun as sinusoids, that names the token at every blank."""
    layers = [attention_layer(name, n, size) for _ in range(NUM_LAYERS)]
    encoder = Encoder(tasks.vocab_size(task, n), n, D_MODEL, layers, NEIGHBOURS[task])
    with torch.no_grad():
        encoder.positions.weight.copy_(sinusoids(n, D_MODEL))
    return MaskedLanguageModel(encoder)


def solve(
    task: str, attention: str, n: int, size: int, seed: int = 0, times: int = 1, config: Config = CONFIG
) -> dict:
    """Train one model; its accuracy ten times on the way, until nothing is wrong any more.

    times: as many updates as usual, on the same schedule stretched.
    """
    torch.manual_seed(seed)
    config = replace(config, steps=times * config.steps)
    batches = getattr(tasks, task)(n, TEXTS[task](n), seed)
    unseen = tasks.validation_batches(batches, VALIDATION[task])
    model = model_for(task, attention, n, size)
    learned = [module for module in model.modules() if isinstance(module, LearnedProjection)]
    scale = {E.stored: SPEEDS[attention] * E.root for E in learned}
    trainer = Trainer(model, masked_loss, batches, config, device="cpu", lr_scale=scale)
    curve, tenth = [], config.steps // 10
    for until in range(tenth, config.steps + 1, tenth):
        trainer.train(until)
        curve.append([until, round(masked_accuracy(model, unseen), 4)])
        if curve[-1][1] == 1:
            break
    return {"accuracy": curve[-1][1], "curve": curve}


def grid(names: Sequence[str], sizes: Sequence[tuple[int, int]]) -> list[dict]:
    """Every attention at every length n and number of keys a query."""
    return [
        {"attention": name, "n": n, "size": size_of(name, n, keys)}
        for (n, keys), name in product(sizes, names)
    ]


def finding(task: str, about: str) -> Experiment:
    """All relatives on one task."""
    settings = grid(NAMES, [(n, KEYS) for n in LENGTHS[task]])
    return Experiment(f"09_{task}", about, settings, partial(solve, task), __file__, seeds=(0,))


EXPERIMENTS = [
    finding("needle", "one marked token among noise"),
    finding("copy", "the first half of a text written again"),
]
