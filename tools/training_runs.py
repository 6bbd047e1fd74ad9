"""Measure the training runs that chapter 08 shows: python tools/training_runs.py size length

Each word is an experiment and a file course/recorded/08_WORD.json, a row for each run. A run
that stands in the file already is not measured again, and one that was killed goes on from its checkpoint.

size      Transformer and Linformer: k, sharing, kinds of E and F; without attention
start     E learned from mean pooling on, as fast as the rest and slowly, or fixed there; up to k = n
mixed     full attention in one layer, Linformer or nothing in the other
length    longer and shorter texts at the same k, learned and mean pooling
plain     without the convolution over neighbours, as in the paper
long      twice as many updates
rate      half and twice the learning rate
small     a sixteenth of the training text
copying   losses on hidden tokens that stand elsewhere in the text, and on others; from runs recorded before
finetune  which package a passage is from; begins from the runs of size, seed 0
speed     seconds and bytes of a training step; run it alone
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

import torch

from linformer_from_scratch.benchmark import median_seconds, peak_bytes
from linformer_from_scratch.course.results import RESULTS, Results
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
from linformer_from_scratch.training.recipes import Recipe, encoder, lr_scale, parameters

RUNS = Path(__file__).resolve().parents[1] / "build" / "runs"  # checkpoints
VOCABULARY, TOKENS = 1000, 2048  # tokens of the vocabulary, and in a batch
STEPS, LONG = 3000, 6000  # updates of a run, and of a long one
JUDGEMENTS = 16  # of a run on the way
SMALL = 16  # the small text is that part of the training text
EPOCHS, FINE_SEEDS = 8, range(5)  # of fine-tuning

FULL, LINFORMER, NONE = Recipe("full"), Recipe("linformer"), Recipe("none")
WIDTHS = [replace(LINFORMER, proj_dim=k) for k in (32, 16, 64)]  # k = n/4, n/8, n/2
SHARED = [replace(LINFORMER, sharing=sharing) for sharing in ("none", "headwise", "key-value")]
FIXED = [replace(LINFORMER, projection=kind) for kind in ("gaussian", "mean")]
SQUARE = replace(LINFORMER, proj_dim=LINFORMER.seq_len)
STARTED, SLOW = (
    [replace(recipe, projection=kind) for recipe in (*WIDTHS, SQUARE)] for kind in ("windows", "slow")
)
POOLED = [replace(LINFORMER, projection="mean", proj_dim=k) for k in (16, 64)]  # 32 is in FIXED
MIXED = ("full+linformer", "linformer+full", "full+none", "none+full")
RECIPES = {
    "size": [FULL, NONE, *WIDTHS, *SHARED, *FIXED],
    "start": [*STARTED, SQUARE, *SLOW, *POOLED],
    "mixed": [Recipe(words) for words in MIXED],
    "length": [
        *(replace(recipe, seq_len=n) for n in (512, 256, 64) for recipe in (LINFORMER, FULL, NONE, FIXED[1])),
        *(replace(recipe, seq_len=512, proj_dim=128) for recipe in (LINFORMER, FIXED[1])),
    ],
    "plain": [replace(recipe, neighbours=0) for recipe in (FULL, LINFORMER)],
    "long": [FULL, LINFORMER, NONE],
    "rate": [FULL, LINFORMER],
    "small": [FULL, LINFORMER],
}
RATES = {"rate": (2e-3, 8e-3)}  # other experiments take that of Config
FINE = [*((recipe, True) for recipe in (FULL, NONE, *WIDTHS, SHARED[2])), (FULL, False), (LINFORMER, False)]
COPYING = [("size", recipe) for recipe in (FULL, NONE, LINFORMER)] + [
    ("start", recipe) for recipe in (*SLOW, STARTED[-1])
]
LENGTHS = (128, 256, 512, 1024, 2048)  # of the steps that are timed


def pretrain(name: str, recipe: Recipe, seed: int, steps: int, rate: float) -> dict:
    """Train one model; its losses on the same held-out and training windows, several times on the way."""
    documents = docstrings()
    vocabulary = vocabulary_for(documents, VOCABULARY)
    train, held = streams(documents, vocabulary)
    train = train[: len(train) // SMALL] if name == "small" else train
    size = recipe.seq_len, TOKENS // recipe.seq_len, vocabulary.size
    torch.manual_seed(seed)
    model = MaskedLanguageModel(encoder(recipe, vocabulary.size))
    config = Config(steps, rate, evaluate_every=steps // JUDGEMENTS, seed=seed)
    batches, unseen, seen = (
        MaskedBatches(train, *size, seed),
        validation_batches(held, *size),
        validation_batches(train, *size),
    )
    folder = RUNS / name / folder_name(recipe, seed, steps, rate)
    trainer = Trainer(model, masked_loss, batches, config, unseen, folder, lr_scale=lr_scale(recipe, model))
    counted = baseline_losses(train, unseen, size[-1])
    start, curve = time.perf_counter(), []
    for until in [*range(config.evaluate_every, steps, config.evaluate_every), steps]:
        last = trainer.train(until)[-1]
        curve.append([until, round(last["validation_loss"], 4), round(trainer.evaluate(seen), 4)])
    return {
        "parameters": parameters(model),
        "training_tokens": len(train),
        "baselines": {name: round(loss, 4) for name, loss in counted.items()},
        "curve": curve,  # updates, held-out loss, loss on training windows; in nats per masked token
        "seconds": round(time.perf_counter() - start, 1),
    }


def copying(name: str, recipe: Recipe, seed: int) -> dict:
    """Held-out losses of a finished run on tokens that could be copied, and on those that could not."""
    documents = docstrings()
    vocabulary = vocabulary_for(documents, VOCABULARY)
    _, held = streams(documents, vocabulary)
    model = MaskedLanguageModel(encoder(recipe, vocabulary.size)).eval()
    model.load_state_dict(weights_of(name, recipe, seed, "model."))
    found = copying_losses(
        model, validation_batches(held, recipe.seq_len, TOKENS // recipe.seq_len, vocabulary.size)
    )
    if recipe.attention == "linformer":
        found["in_windows"] = in_windows(model.encoder.blocks[0].attention.E.weight)
    return {kind: round(loss, 4) for kind, loss in found.items()}


def in_windows(E: torch.Tensor) -> float:
    """Share of ΣE² that lies in the windows of mean pooling."""
    windows = MeanPooling(E.size(1), E.size(0))(torch.eye(E.size(1)))
    return (E[windows > 0].square().sum() / E.square().sum()).item()


def weights_of(name: str, recipe: Recipe, seed: int, prefix: str) -> dict[str, torch.Tensor]:
    """The last weights of a run whose names begin with the prefix, without it."""
    folder = RUNS / name / folder_name(recipe, seed, STEPS, Config.learning_rate)
    last = folder / f"step-{STEPS:08}.safetensors"
    if not last.exists():
        raise SystemExit(f"{folder} holds no finished run; first measure {name} with --seeds {seed}")
    tensors, _ = read(last)
    return {key.removeprefix(prefix): tensor for key, tensor in tensors.items() if key.startswith(prefix)}


def finetune(recipe: Recipe, seed: int, pretrained: bool) -> dict:
    """Train a classifier of passages, from the encoder of the recorded run of seed 0 or from nothing."""
    documents = docstrings()
    vocabulary = vocabulary_for(documents, VOCABULARY)
    train, held = passages(documents, vocabulary, recipe.seq_len)
    torch.manual_seed(seed)
    body = encoder(recipe, vocabulary.size)
    if pretrained:
        body.load_state_dict(weights_of("size", recipe, 0, "model.encoder."))
    model = Classifier(body, len(PACKAGES))
    batches = LabelledBatches(*train, TOKENS // recipe.seq_len, seed)
    config = Config(EPOCHS * len(batches), 1e-3, warmup=50, evaluate_every=10**9, seed=seed)
    start = time.perf_counter()
    Trainer(model, classification_loss, batches, config).train()
    return {
        "accuracy": round(accuracy(model, *held), 4),
        "training_accuracy": round(accuracy(model, *train), 4),
        "texts": [len(train[1]), len(held[1])],
        "seconds": round(time.perf_counter() - start, 1),
    }


def speed(n: int) -> dict:
    """Seconds and peak bytes of a step of both, d_model 64, 2 layers, 2048 tokens, in shuffled turns."""
    ids = torch.randint(3, VOCABULARY, (4 * TOKENS,))
    steps = {}
    for recipe in (FULL, LINFORMER):
        model = MaskedLanguageModel(encoder(replace(recipe, seq_len=n), VOCABULARY))
        batches = MaskedBatches(ids, n, TOKENS // n, VOCABULARY)
        trainer = Trainer(model, masked_loss, batches, Config(10**6))
        steps[recipe.attention] = lambda trainer=trainer: trainer.train(trainer.step + 1)
    seconds = median_seconds(steps, rounds=21)
    return {"seconds": seconds, "bytes": {name: peak_bytes(step) for name, step in steps.items()}}


def folder_name(recipe: Recipe, *settings: float) -> str:
    """One folder for each run."""
    return "-".join(map(str, [*asdict(recipe).values(), *settings]))


def jobs(name: str, seeds: list[int]) -> Iterator[tuple[dict, Callable[[], dict]]]:
    """What an experiment measures, and the calls that do."""
    if name == "speed":
        yield from (({"seq_len": n}, lambda n=n: speed(n)) for n in LENGTHS)
    elif name == "copying":
        for seed, (source, recipe) in product(seeds, COPYING):
            yield asdict(recipe) | {"seed": seed}, lambda s=seed, n=source, r=recipe: copying(n, r, s)
    elif name == "finetune":
        for seed in FINE_SEEDS:
            for recipe, pretrained in FINE:
                what = asdict(recipe) | {"pretrained": pretrained, "seed": seed}
                yield what, lambda r=recipe, s=seed, p=pretrained: finetune(r, s, p)
    else:
        steps = LONG if name == "long" else STEPS
        for seed, recipe, rate in product(seeds, RECIPES[name], RATES.get(name, [Config.learning_rate])):
            what = asdict(recipe) | {"seed": seed, "steps": steps, "learning_rate": rate}
            yield what, lambda r=recipe, s=seed, lr=rate: pretrain(name, r, s, steps, lr)


def main() -> None:
    """Measure the experiments named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("experiments", nargs="+", choices=[*RECIPES, "copying", "finetune", "speed"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for name in arguments.experiments:
        command = f"python tools/training_runs.py {name} --threads {arguments.threads}"
        results = Results(RESULTS / f"08_{name}.json", command)
        for what, call in jobs(name, arguments.seeds):
            results.measure(what, call)
            print(name, what, flush=True)


if __name__ == "__main__":
    main()
