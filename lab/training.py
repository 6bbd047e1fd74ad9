"""The runs of chapter 08: masked language models of the docstrings, and what they are good for afterwards."""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from itertools import product
from typing import Any

import torch
from torch import Tensor

from lab.experiment import BUILD, Experiment, every, rounded
from linformer_from_scratch.benchmark import peak_bytes, samples
from linformer_from_scratch.data import LabelledBatches, MaskedBatches, docstrings
from linformer_from_scratch.data.baselines import baseline_losses
from linformer_from_scratch.data.vocabulary import Vocabulary
from linformer_from_scratch.encoder import Classifier, MaskedLanguageModel
from linformer_from_scratch.projections import LearnedProjection, MeanPooling
from linformer_from_scratch.training import Config, Trainer, accuracy, classification_loss, masked_loss
from linformer_from_scratch.training.checkpoints import read
from linformer_from_scratch.training.copying import copying_losses
from linformer_from_scratch.training.corpora import (
    PACKAGES,
    passages,
    streams,
    validation_batches,
    vocabulary_for,
)
from linformer_from_scratch.training.recipes import Recipe, encoder, lr_scale, parameters

RUNS = BUILD / "runs"  # checkpoints and losses of every run
VOCABULARY, TOKENS = 1000, 2048  # tokens of the vocabulary, and in a batch
STEPS, LONGER = 2000, 6000  # updates of a run
RATE = 8e-3  # see 08_rate
RATES = (4e-3, 1.6e-2)  # and RATE
SEEDS = (0, 1, 2)
JUDGEMENTS = 10  # of a run on the way
SMALL = 16  # the small text is that part of the training text
EPOCHS = 8  # of fine-tuning

FULL, LINFORMER, NONE = Recipe("full"), Recipe("linformer"), Recipe("none")
MLP = Recipe("mlp")  # no attention, as many weights
ONE_SLOT = replace(LINFORMER, projection="mean", proj_dim=1)  # every query reads the same mean of the text
SLOW = 0.1  # of E's own rate
COMMON_RATE = LINFORMER.seq_len**0.5  # this times E's own rate is the rate of all other weights
WIDTHS = [replace(LINFORMER, proj_dim=k) for k in (32, 128, 16, 64)]
POOLED = [replace(LINFORMER, projection="mean", proj_dim=k) for k in (32, 16, 64)]
SIZE = [FULL, NONE, *WIDTHS, *POOLED]
RANDOM = replace(LINFORMER, projection="random")
START = [
    *(replace(recipe, projection_rate=COMMON_RATE) for recipe in (*WIDTHS[:2], RANDOM)),
    RANDOM,
    replace(WIDTHS[1], projection_rate=0.1 * COMMON_RATE),
    replace(LINFORMER, projection="gaussian"),
]
PLAIN = [
    replace(FULL, neighbours=neighbours, positions=positions)
    for neighbours, positions in ((0, "random"), (0, "sinusoids"), (1, "sinusoids"))
]
FINE = [(recipe, True) for recipe in (FULL, NONE, LINFORMER)] + [(FULL, False), (LINFORMER, False)]
CONTROLS = [MLP, ONE_SLOT, *(replace(recipe, projection_rate=SLOW) for recipe in WIDTHS[:2])]


READ = (512, 128)  # tokens of the texts of 08_longer


def read_at(n: int) -> list[Recipe]:
    """What is compared on texts of n tokens: attention, n / 4 slots, one, and what reads nothing."""
    quarter = replace(LINFORMER, proj_dim=n // 4, projection_rate=SLOW)
    return [replace(recipe, seq_len=n) for recipe in (FULL, quarter, ONE_SLOT, MLP, NONE)]


def other_sizes(n: int) -> list[Recipe]:
    """Linformer with more slots and with fewer, and with fixed windows."""
    sizes = [replace(LINFORMER, proj_dim=k, projection_rate=SLOW) for k in (n, n // 2, n // 8)]
    fixed = replace(LINFORMER, projection="mean", proj_dim=n // 4)
    return [replace(recipe, seq_len=n) for recipe in (*sizes, fixed)]


LONGER_RUNS = [recipe for n in READ for recipe in read_at(n)]
OTHER_RUNS = [*other_sizes(READ[0]), other_sizes(READ[1])[0], replace(read_at(READ[0])[1], sharing="none")]
WIDE_RUNS = [  # a convolution over 7 tokens instead of 3, before all of these
    replace(recipe, neighbours=3)
    for n in READ
    for recipe in (*read_at(n), other_sizes(n)[-1])
    if recipe.attention != "mlp"
]
E_RATES = [  # and SLOW
    replace(LINFORMER, seq_len=512, proj_dim=k, projection_rate=rate)
    for k, rate in ((512, 1.0), (512, 0.01), (128, 1.0))
]
LENGTHS = (128, 256, 512, 1024, 2048)  # of the steps that are timed


def pretrain(experiment: str, seed: int, steps: int, learning_rate: float, **recipe: Any) -> dict:
    """Train one model; its losses on the same held-out and training windows, several times on the way."""
    settings = Recipe(**recipe)
    train, held = tokens()
    train = train[: len(train) // SMALL] if experiment == "small" else train
    size = settings.seq_len, TOKENS // settings.seq_len, vocabulary().size
    torch.manual_seed(seed)
    model = MaskedLanguageModel(encoder(settings, vocabulary().size))
    config = Config(steps, learning_rate, evaluate_every=steps // JUDGEMENTS, seed=seed)
    batches = MaskedBatches(train, *size, seed)
    unseen, seen = (validation_batches(some, *size) for some in (held, train))
    folder = RUNS / experiment / folder_name(settings, seed, steps, learning_rate)
    trainer = Trainer(model, masked_loss, batches, config, unseen, folder, lr_scale=lr_scale(settings, model))
    counted = baseline_losses(train, unseen, size[-1])
    start = time.perf_counter()
    judged = [record for record in trainer.train() if "validation_loss" in record]
    if len(judged) < JUDGEMENTS:
        raise ValueError(
            f"the run in {folder} has {len(judged)} held-out losses, expected {JUDGEMENTS}: train it again"
        )
    return {
        "parameters": parameters(model),
        "training_tokens": len(train),
        "baselines": {name: round(loss, 4) for name, loss in counted.items()},
        # updates, held-out loss; in nats per masked token
        "curve": [[record["step"], round(record["validation_loss"], 4)] for record in judged],
        "training_loss": round(trainer.evaluate(seen), 4),  # in the end, on windows of the training text
        "seconds": round(time.perf_counter() - start, 1),
    }


@cache
def vocabulary() -> Vocabulary:
    """Of the training documents."""
    return vocabulary_for(docstrings(), VOCABULARY)


@cache
def tokens() -> tuple[Tensor, Tensor]:
    """Of the training documents, and of those held out."""
    return streams(docstrings(), vocabulary())


def folder_name(recipe: Recipe, *settings: float) -> str:
    """One folder for each run."""
    return "-".join(map(str, [*asdict(recipe).values(), *settings]))


def weights_of(recipe: Recipe, seed: int, prefix: str) -> dict[str, Tensor]:
    """The last weights of a recorded run whose names begin with the prefix, without it.

    A run whose checkpoints have been removed since is trained again.
    """
    experiment = "size" if recipe in SIZE else "start"
    last = RUNS / experiment / folder_name(recipe, seed, STEPS, RATE) / f"step-{STEPS:08}.safetensors"
    if not last.exists():
        pretrain(experiment, seed, STEPS, RATE, **asdict(recipe))
    tensors, _ = read(last)
    return {key.removeprefix(prefix): tensor for key, tensor in tensors.items() if key.startswith(prefix)}


def copying(seed: int, **recipe: Any) -> dict:
    """Held-out losses of a finished run on tokens that could be copied, and on those that could not."""
    settings = Recipe(**recipe)
    _, held = tokens()
    model = MaskedLanguageModel(encoder(settings, vocabulary().size)).eval()
    model.load_state_dict(weights_of(settings, seed, "model."))
    unseen = validation_batches(held, settings.seq_len, TOKENS // settings.seq_len, vocabulary().size)
    losses = copying_losses(model, unseen)
    if settings.attention == "linformer" and settings.projection != "mean":
        E = next(module for module in model.modules() if isinstance(module, LearnedProjection))
        losses["in_windows"] = in_windows(E.weight.detach())
    return {kind: round(loss, 4) for kind, loss in losses.items()}


def in_windows(E: Tensor) -> float:
    """Share of ΣE² that lies in the windows of mean pooling."""
    windows = MeanPooling(E.size(1), E.size(0))(torch.eye(E.size(1)))
    return (E[windows > 0].square().sum() / E.square().sum()).item()


def finetune(seed: int, pretrained: bool, **recipe: Any) -> dict:
    """Train a classifier of passages, from the encoder of the recorded run of this seed or from nothing."""
    settings = Recipe(**recipe)
    train, held = passages(docstrings(), vocabulary(), settings.seq_len)
    weights = weights_of(settings, seed, "model.encoder.") if pretrained else None
    torch.manual_seed(seed)
    body = encoder(settings, vocabulary().size)
    if weights:
        body.load_state_dict(weights)
    model = Classifier(body, len(PACKAGES))
    batches = LabelledBatches(*train, TOKENS // settings.seq_len, seed)
    config = Config(EPOCHS * len(batches), 1e-3, warmup=50, seed=seed)
    start = time.perf_counter()
    Trainer(model, classification_loss, batches, config).train()
    return {
        "accuracy": round(accuracy(model, *held), 4),
        "training_accuracy": round(accuracy(model, *train), 4),
        "texts": [len(train[1]), len(held[1])],
        "seconds": round(time.perf_counter() - start, 1),
    }


def speed(seq_len: int) -> dict:
    """Seconds of a step in every round, in shuffled turns, and peak bytes; 2 layers, 2048 tokens."""
    ids = torch.randint(3, VOCABULARY, (4 * TOKENS,))
    recipes = [FULL, LINFORMER]
    recipes += [*read_at(seq_len), *other_sizes(seq_len)] if seq_len in READ else []
    steps = {}
    for recipe in recipes:
        model = MaskedLanguageModel(encoder(replace(recipe, seq_len=seq_len), VOCABULARY))
        batches = MaskedBatches(ids, seq_len, TOKENS // seq_len, VOCABULARY)
        trainer = Trainer(model, masked_loss, batches, Config(steps=10**6))  # more than are timed
        steps[kind_of(recipe)] = lambda trainer=trainer: trainer.train(trainer.step + 1)
    return {
        "seconds": rounded(samples(steps, rounds=21)),
        "bytes": {name: peak_bytes(step) for name, step in steps.items()},
    }


def kind_of(recipe: Recipe) -> str:
    """The name of its attention: "full", "none", "mlp", "one slot", "k = 32" or the like."""
    if recipe.attention != "linformer":
        return recipe.attention
    fixed = ", fixed windows" if recipe.projection == "mean" else ""
    return "one slot" if recipe.proj_dim == 1 else f"k = {recipe.proj_dim}{fixed}"


def runs(
    word: str,
    about: str,
    recipes: Sequence[Recipe],
    rates: Sequence[float] = (RATE,),
    steps: int = STEPS,
    seeds: tuple[int, ...] = SEEDS,
) -> Experiment:
    """Every recipe trained at every rate."""
    pairs = product(recipes, rates)
    grid = [asdict(recipe) | {"steps": steps, "learning_rate": rate} for recipe, rate in pairs]
    return Experiment(f"08_{word}", about, grid, partial(pretrain, word), seeds)


COPIED = [asdict(recipe) for recipe in (*SIZE, *START[:4])]
TUNED = [asdict(recipe) | {"pretrained": pretrained} for recipe, pretrained in FINE]
EXPERIMENTS = [
    runs("size", "Transformer, Linformer at each k, learned and mean pooling, no attention", SIZE),
    runs("rate", "at half and twice the learning rate", [FULL, LINFORMER, NONE], rates=RATES),
    runs("start", "E from random numbers on, and at other rates; or fixed at random numbers", START),
    runs("small", "a sixteenth of the training text", [FULL, LINFORMER]),
    runs("controls", "no attention with as many weights, one slot, a slower E", CONTROLS),
    runs("longer_rate", "three times the updates: E at other rates", E_RATES, steps=LONGER, seeds=(0,)),
    runs("longer", "three times the updates: full, k = n/4, one slot, none", LONGER_RUNS, steps=LONGER),
    runs("longer_sizes", "as longer: other k, fixed windows, sharing", OTHER_RUNS, steps=LONGER, seeds=(0,)),
    runs("wide", "as longer, with a convolution over 7 tokens", WIDE_RUNS, steps=LONGER),
    runs("plain", "with and without the convolution, positions from random numbers or sinusoids", PLAIN),
    Experiment("08_copying", "hidden tokens that stand elsewhere, and others", COPIED, copying, SEEDS),
    Experiment("08_finetune", "which package a passage is from, after size", TUNED, finetune, SEEDS),
    Experiment("08_speed", "cost of a step; let nothing else run", every(seq_len=LENGTHS), speed, threads=2),
]
