"""Measure the training runs that chapter 08 shows: python tools/training_runs.py size length

Each word is an experiment and a file chapters/results/08_WORD.json, a row for each run. A run that stands in
the file already is not measured again, so an interrupted command goes on where it was.
"""

import argparse
import time
from dataclasses import asdict
from pathlib import Path

import torch

from linformer_from_scratch.data import MaskedBatches, docstrings
from linformer_from_scratch.encoder import MaskedLanguageModel
from linformer_from_scratch.results import RESULTS, Results
from linformer_from_scratch.training import Config, Trainer, masked_loss
from linformer_from_scratch.training.recipes import (
    Recipe,
    encoder,
    judged,
    parameters,
    streams,
    vocabulary_for,
)

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "build" / "runs"  # checkpoints; fine-tuning begins from them
VOCABULARY, TOKENS = 1000, 2048  # tokens of the vocabulary, and in a batch
SMALL = 16  # the small text is that part of the training text

FULL, NONE = Recipe("full"), Recipe("none")
SIZES = [
    FULL,
    NONE,
    *(Recipe(proj_dim=k) for k in (32, 16, 64)),
    *(Recipe(sharing=sharing) for sharing in ("none", "headwise", "key-value")),
    *(Recipe(projection=kind) for kind in ("gaussian", "mean")),
]
LENGTHS = [Recipe(kind, seq_len=n) for n in (512, 256, 64) for kind in ("linformer", "full")]
PLAIN = [Recipe("full", neighbours=0), Recipe(neighbours=0)]
EXPERIMENTS = {"size": SIZES, "length": LENGTHS, "plain": PLAIN, "small": [FULL, Recipe()]}


def run(name: str, recipe: Recipe, seed: int, steps: int) -> dict:
    """Train one model; its losses on the same held-out and training windows, 16 times on the way."""
    documents = docstrings()
    vocabulary = vocabulary_for(documents, VOCABULARY)
    train, held = streams(documents, vocabulary)
    if name == "small":
        train = train[: len(train) // SMALL]
    size = recipe.seq_len, TOKENS // recipe.seq_len, vocabulary.size
    seen = judged(train, *size)
    torch.manual_seed(seed)
    model = MaskedLanguageModel(encoder(recipe, vocabulary.size))
    config = Config(steps=steps, evaluate_every=max(1, steps // 16), seed=seed)
    folder = RUNS / name / folder_name(recipe, seed, steps)
    trainer = Trainer(
        model, masked_loss, MaskedBatches(train, *size, seed), config, judged(held, *size), folder
    )
    start, curve = time.perf_counter(), []
    for until in range(config.evaluate_every, steps + 1, config.evaluate_every):
        last = trainer.train(until)[-1]
        curve.append([until, round(last["validation_loss"], 4), round(trainer.evaluate(seen), 4)])
    return {
        "parameters": parameters(model),
        "vocabulary": vocabulary.size,
        "training_tokens": len(train),
        "curve": curve,  # updates, validation loss, loss on training windows, in nats per token
        "seconds": round(time.perf_counter() - start, 1),
    }


def folder_name(recipe: Recipe, seed: int, steps: int) -> str:
    """One folder for each run."""
    return "-".join(map(str, [*asdict(recipe).values(), seed, steps]))


def main() -> None:
    """Measure the experiments named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiments", nargs="+", choices=EXPERIMENTS)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=1, help="of each process; start several processes")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for name in arguments.experiments:
        results = Results(RESULTS / f"08_{name}.json", f"python tools/training_runs.py {name}")
        for seed in arguments.seeds:
            for recipe in EXPERIMENTS[name]:
                what = asdict(recipe) | {"seed": seed, "steps": arguments.steps}
                results.measure(what, lambda name=name, r=recipe, s=seed: run(name, r, s, arguments.steps))
                print(name, what, flush=True)


if __name__ == "__main__":
    main()
