"""The runs of chapter 08: masked language models of the docstrings, and what they are good for afterwards."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from itertools import product
from pathlib import Path

import torch
from torch import Tensor

from linformer_from_scratch.benchmark import median_seconds, peak_bytes
from linformer_from_scratch.course.experiments.experiment import BUILD, Experiment
from linformer_from_scratch.course.files import atomic_write
from linformer_from_scratch.data import LabelledBatches, MaskedBatches, docstrings
from linformer_from_scratch.data.baselines import baseline_losses
from linformer_from_scratch.encoder import Classifier, MaskedLanguageModel
from linformer_from_scratch.projections import MeanPooling
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
from linformer_from_scratch.training.recipes import Recipe, encoder, lr_scale, parameters, projection_weights

RUNS, CURVE = BUILD / "runs", "curve.json"  # checkpoints, and beside them the losses on the way
VOCABULARY, TOKENS = 1000, 2048  # tokens of the vocabulary, and in a batch
STEPS, LONG = 3000, 6000  # updates of a run, and of a long one
RATE = Config.learning_rate
JUDGEMENTS = 16  # of a run on the way
SMALL = 16  # the small text is that part of the training text
EPOCHS = 8  # of fine-tuning

FULL, LINFORMER, NONE = Recipe("full"), Recipe("linformer"), Recipe("none")
WIDTHS = [replace(LINFORMER, proj_dim=k) for k in (32, 16, 64)]  # k = n/4, n/8, n/2
SHARED = [replace(LINFORMER, sharing=sharing) for sharing in ("none", "headwise", "key-value")]
FIXED = [replace(LINFORMER, projection=kind) for kind in ("gaussian", "mean")]
SQUARE = replace(LINFORMER, proj_dim=LINFORMER.seq_len)
FROM_WINDOWS, SLOW = (
    [replace(recipe, projection=kind) for recipe in (*WIDTHS, SQUARE)] for kind in ("windows", "slow")
)
POOLED = [replace(LINFORMER, projection="mean", proj_dim=k) for k in (16, 64)]  # 32 is in FIXED
SIZE = [FULL, NONE, *WIDTHS, *SHARED, *FIXED]
START = [*FROM_WINDOWS, SQUARE, *SLOW, *POOLED]
MIXED = [Recipe(words) for words in ("full+linformer", "linformer+full", "full+none", "none+full")]
LENGTH = [
    *(replace(recipe, seq_len=n) for n in (512, 256, 64) for recipe in (LINFORMER, FULL, NONE, FIXED[1])),
    *(replace(recipe, seq_len=512, proj_dim=128) for recipe in (LINFORMER, FIXED[1])),
]
PLAIN = [replace(recipe, neighbours=0) for recipe in (FULL, LINFORMER)]
COPYING = [FULL, NONE, LINFORMER, *SLOW, FROM_WINDOWS[-1]]
FINE = [*((recipe, True) for recipe in (FULL, NONE, *WIDTHS, SHARED[2])), (FULL, False), (LINFORMER, False)]
LENGTHS = (128, 256, 512, 1024, 2048)  # of the steps that are timed


def pretrain(experiment: str, seed: int, steps: int, learning_rate: float, **recipe) -> dict:
    """Train one model; its losses on the same held-out and training windows, several times on the way."""
    settings = Recipe(**recipe)
    train, held = tokens()
    train = train[: len(train) // SMALL] if experiment == "small" else train
    size = settings.seq_len, TOKENS // settings.seq_len, vocabulary().size
    torch.manual_seed(seed)
    model = MaskedLanguageModel(encoder(settings, vocabulary().size))
    config = Config(steps, learning_rate, evaluate_every=steps // JUDGEMENTS, seed=seed)
    batches, unseen, seen = (
        MaskedBatches(train, *size, seed),
        validation_batches(held, *size),
        validation_batches(train, *size),
    )
    folder = RUNS / experiment / folder_name(settings, seed, steps, learning_rate)
    trainer = Trainer(model, masked_loss, batches, config, unseen, folder, lr_scale=lr_scale(settings, model))
    counted = baseline_losses(train, unseen, size[-1])
    start, curve = time.perf_counter(), read_curve(folder)
    for until in [*range(config.evaluate_every, steps, config.evaluate_every), steps][len(curve) :]:
        if trainer.step > until:
            raise ValueError(f"the run in {folder} has no losses of step {until}: remove it to train again")
        last = trainer.train(until)[-1]
        curve.append([until, round(last["validation_loss"], 4), round(trainer.evaluate(seen), 4)])
        atomic_write(folder / CURVE, json.dumps(curve))
    return {
        "parameters": parameters(model),
        "training_tokens": len(train),
        "baselines": {name: round(loss, 4) for name, loss in counted.items()},
        "curve": curve,  # updates, held-out loss, loss on training windows; in nats per masked token
        "seconds": round(time.perf_counter() - start, 1),
    }


def read_curve(folder: Path) -> list[list[float]]:
    """What a run that goes on had reached on the way; its earlier weights are gone."""
    path = folder / CURVE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


@cache
def vocabulary():
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
    found, _ = read(last)
    return {key.removeprefix(prefix): tensor for key, tensor in found.items() if key.startswith(prefix)}


def copying(seed: int, **recipe) -> dict:
    """Held-out losses of a finished run on tokens that could be copied, and on those that could not."""
    settings = Recipe(**recipe)
    _, held = tokens()
    model = MaskedLanguageModel(encoder(settings, vocabulary().size)).eval()
    model.load_state_dict(weights_of(settings, seed, "model."))
    unseen = validation_batches(held, settings.seq_len, TOKENS // settings.seq_len, vocabulary().size)
    found = copying_losses(model, unseen)
    if settings.attention == "linformer":
        found["in_windows"] = in_windows(projection_weights(model)[0])
    return {kind: round(loss, 4) for kind, loss in found.items()}


def in_windows(E: Tensor) -> float:
    """Share of ΣE² that lies in the windows of mean pooling."""
    windows = MeanPooling(E.size(1), E.size(0))(torch.eye(E.size(1)))
    return (E[windows > 0].square().sum() / E.square().sum()).item()


def finetune(seed: int, pretrained: bool, **recipe) -> dict:
    """Train a classifier of passages, from the encoder of the recorded run of seed 0 or from nothing."""
    settings = Recipe(**recipe)
    train, held = passages(docstrings(), vocabulary(), settings.seq_len)
    weights = weights_of(settings, 0, "model.encoder.") if pretrained else None
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
    """Seconds and peak bytes of a step of both, d_model 64, 2 layers, 2048 tokens, in shuffled turns."""
    ids = torch.randint(3, VOCABULARY, (4 * TOKENS,))
    steps = {}
    for recipe in (FULL, LINFORMER):
        model = MaskedLanguageModel(encoder(replace(recipe, seq_len=seq_len), VOCABULARY))
        batches = MaskedBatches(ids, seq_len, TOKENS // seq_len, VOCABULARY)
        trainer = Trainer(model, masked_loss, batches, Config(steps=10**6))  # more than are timed
        steps[recipe.attention] = lambda trainer=trainer: trainer.train(trainer.step + 1)
    seconds = median_seconds(steps, rounds=21)
    return {"seconds": seconds, "bytes": {name: peak_bytes(step) for name, step in steps.items()}}


def runs(
    word: str,
    about: str,
    recipes: Sequence[Recipe],
    seeds: tuple[int, ...],
    steps: int = STEPS,
    rates: Sequence[float] = (RATE,),
) -> Experiment:
    """Every recipe trained at every rate."""
    grid = [
        asdict(recipe) | {"steps": steps, "learning_rate": rate} for recipe, rate in product(recipes, rates)
    ]
    return Experiment(f"08_{word}", about, grid, partial(pretrain, word), __file__, seeds)


EXPERIMENTS = [
    runs("size", "Transformer, Linformer (k, sharing, kinds of E and F), no attention", SIZE, (0, 1, 2)),
    runs("start", "E from mean pooling on, as fast as the rest and slowly, or fixed there", START, (0, 1)),
    runs("mixed", "full attention in one layer, Linformer or nothing in the other", MIXED, (0, 1, 2)),
    runs("length", "longer and shorter texts at the same k, learned and mean pooling", LENGTH, (0, 1)),
    runs("plain", "without the convolution over neighbours, as in the paper", PLAIN, (0,)),
    runs("long", "twice as many updates", [FULL, LINFORMER, NONE], (0,), steps=LONG),
    runs("rate", "half and twice the learning rate", [FULL, LINFORMER], (0,), rates=(2e-3, 8e-3)),
    runs("small", "a sixteenth of the training text", [FULL, LINFORMER], (0, 1, 2)),
    Experiment(
        "08_copying",
        "losses on hidden tokens that stand elsewhere in the text, and on others",
        [asdict(recipe) for recipe in COPYING],
        copying,
        __file__,
        seeds=(0, 1),
    ),
    Experiment(
        "08_finetune",
        "which package a passage is from; begins from the runs of size, seed 0",
        [asdict(recipe) | {"pretrained": pretrained} for recipe, pretrained in FINE],
        finetune,
        __file__,
        seeds=(0, 1, 2, 3, 4),
    ),
    Experiment(
        "08_speed",
        "seconds and bytes of a training step; let nothing else run",
        [{"seq_len": n} for n in LENGTHS],
        speed,
        __file__,
        threads=2,
    ),
]
