"""Measure what chapter 09 shows of training: python tools/family_runs.py needle copy

Each word is a task and a file course/recorded/09_WORD.json, a row for each run. A run that
stands in the file already is not measured again. Every relative may cost as many operations as reading 32
keys a query; two levels takes its cheapest blocks where they cost more, a fitting stride costs 34, linear
attention costs 32.5 whatever it may.

needle  one marked token among noise
copy    the first half of a text written again
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product

import torch
from torch import nn

from linformer_from_scratch.course.results import RESULTS, Results, select
from linformer_from_scratch.data import IGNORE, tasks
from linformer_from_scratch.efficient import EfficientAttention
from linformer_from_scratch.efficient.family import FAMILY, largest_size
from linformer_from_scratch.encoder import Encoder, MaskedLanguageModel, sinusoids
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import LearnedProjection, start_at_windows
from linformer_from_scratch.training import Config, Trainer, masked_loss
from linformer_from_scratch.training.modes import evaluating
from linformer_from_scratch.training.recipes import projection_weights

D_MODEL, NUM_HEADS, NUM_LAYERS = 64, 2, 2
D_HEAD = D_MODEL // NUM_HEADS
KEYS = 32  # what a query may read, by operations: 4 · n · KEYS · d_head a head
LENGTHS = {"needle": (64, 128, 256), "copy": (64, 128, 256, 512)}
TEXTS = {"needle": lambda n: 32, "copy": lambda n: 4096 // n, "recall": lambda n: 4096 // n}  # in a batch
CONFIG = Config(steps=4000, learning_rate=3e-3, warmup=100, evaluate_every=10**9)
JUDGED = {"needle": 16, "copy": 4, "recall": 8}  # batches that judge a run: 512 answers, and 8,192
NEIGHBOURS = {"needle": 0, "copy": 0, "recall": 1}  # a value must know its key, which stands beside it
UNSEEN = 10**9  # the first of them; training never comes so far
RELATIVES = {relative.name: relative for relative in FAMILY}
FITTING = "strided, fitting"  # a stride that divides n / 2, the distance of a copy from its origin
LEARNED, SLOW, MEAN = "Linformer, learned", "Linformer, learned slowly", "Linformer, mean pooling"
FULL = "full"
OTHERS = [name for name in RELATIVES if name not in ("tiled exact", MEAN)]
NAMES = (FULL, LEARNED, SLOW, MEAN, *OTHERS, FITTING)


def size_of(name: str, n: int, keys: int = KEYS) -> int:
    """The size of a relative within the budget; 0 where it has none."""
    if name == FULL:
        return 0
    if name in (LEARNED, SLOW):
        return size_of(MEAN, n, keys)
    if name == FITTING:
        return keys  # the stride is n / keys
    relative = RELATIVES[name]
    within = largest_size(relative, n, D_HEAD, 4 * n * keys * D_HEAD)
    return within or min(relative.sizes(n), key=lambda size: relative.flops(n, D_HEAD, size))


def attention(name: str, n: int, keys: int = KEYS) -> nn.Module:
    """One attention layer of a model."""
    if name == FULL:
        return MultiHeadAttention(D_MODEL, NUM_HEADS)
    size = size_of(name, n, keys)
    if name in (LEARNED, SLOW):
        E, F = (start_at_windows(LearnedProjection(n, size)) for _ in range(2))
        return LinformerAttention(D_MODEL, NUM_HEADS, E, F)
    relative = RELATIVES["strided + global" if name == FITTING else name]
    return EfficientAttention(D_MODEL, NUM_HEADS, relative.build(n, D_HEAD, size))


def model_for(task: str, name: str, n: int, keys: int = KEYS) -> MaskedLanguageModel:
    """An encoder of two layers, positions begun as sinusoids, that names the token at every blank."""
    layers = [attention(name, n, keys) for _ in range(NUM_LAYERS)]
    encoder = Encoder(tasks.vocab_size(task, n), n, D_MODEL, layers, NEIGHBOURS[task])
    with torch.no_grad():
        encoder.positions.weight.copy_(sinusoids(n, D_MODEL))
    return MaskedLanguageModel(encoder)


@torch.no_grad()
def accuracy(model: nn.Module, batches: tasks.Batches, count: int) -> float:
    """Share of right answers on some batches that were not trained on."""
    right = []
    with evaluating(model):
        for i in range(count):
            inputs, targets = batches(UNSEEN + i)
            asked = targets != IGNORE
            right.append((model(inputs, where=asked).argmax(dim=-1) == targets[asked]).float())
    return torch.cat(right).mean().item()


def run(task: str, name: str, n: int, seed: int = 0, keys: int = KEYS, times: int = 1) -> dict:
    """Train one model; its accuracy ten times on the way, until nothing is wrong any more.

    times: as many updates as usual, on the same schedule stretched.
    """
    torch.manual_seed(seed)
    config = replace(CONFIG, steps=times * CONFIG.steps)
    batches, model = getattr(tasks, task)(n, TEXTS[task](n), seed), model_for(task, name, n, keys)
    slow = projection_weights(model) if name == SLOW else []
    scale = dict.fromkeys(slow, 0.1)  # of the learning rate
    trainer = Trainer(model, masked_loss, batches, config, device="cpu", lr_scale=scale)
    curve = []
    tenth = config.steps // 10
    for until in range(tenth, config.steps + 1, tenth):
        trainer.train(until)
        curve.append([until, round(accuracy(trainer.model, batches, JUDGED[task]), 4)])
        if curve[-1][1] == 1:
            break
    return {"accuracy": curve[-1][1], "curve": curve}


def jobs(task: str, seeds: list[int]) -> Iterator[tuple[dict, Callable[[], dict]]]:
    """What is measured on a task, and the calls that do."""
    for seed, n, name in product(seeds, LENGTHS[task], NAMES):
        what = {"attention": name, "n": n, "size": size_of(name, n), "seed": seed}
        yield what, partial(run, task, name, n, seed)


def main() -> None:
    """Measure the tasks named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tasks", nargs="+", choices=LENGTHS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for task in arguments.tasks:
        results = Results(RESULTS / f"09_{task}.json", f"python tools/family_runs.py {task}")
        for what, call in jobs(task, arguments.seeds):
            results.measure(what, call)
            print(task, *select(results.content["rows"], **what), flush=True)


if __name__ == "__main__":
    main()
