"""The runs of chapter 09: small models on tasks whose every answer stands in the text.

Every relative may cost as many operations as reading 32 keys a query; two levels takes its cheapest blocks
where they cost more, a fitting stride costs 34, linear attention costs 32.5 whatever it may.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product

import torch
from torch import nn

from lab.experiment import Experiment
from linformer_from_scratch.data import tasks
from linformer_from_scratch.efficient import EfficientAttention
from linformer_from_scratch.efficient.family import FAMILY, largest_size
from linformer_from_scratch.encoder import Encoder, MaskedLanguageModel, with_sinusoids
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import LearnedProjection, start_at, start_at_windows
from linformer_from_scratch.training import Config, Trainer, masked_accuracy, masked_loss

D_MODEL, NUM_HEADS, NUM_LAYERS = 64, 2, 2
D_HEAD = D_MODEL // NUM_HEADS
KEYS = 32  # what a query may read, by operations: 4 · n · KEYS · d_head a head
LENGTHS = (64, 256)
TEXTS = {"needle": lambda n: 32, "copy": lambda n: 4096 // n, "recall": lambda n: 4096 // n}  # in a batch
STEPS, RATE, WARMUP = 4000, 3e-3, 100
LOWER = 1e-3  # a second rate, where it decides
VALIDATION = {"needle": 16, "copy": 4, "recall": 8}  # batches: 512 answers, and 8,192
NEIGHBOURS = {"needle": 0, "copy": 0, "recall": 1}  # a value must know its key, which stands beside it
RELATIVES = {relative.name: relative for relative in FAMILY}
SEEDS = (0, 1, 2)
FITTING = "strided, fitting"  # a stride that divides n / 2, the distance of a copy from its origin
FULL, LEARNED, MEAN = "full", "Linformer, learned", "Linformer, mean pooling"
AT_VALUES = "Linformer, learned, begun at the values"  # of recall
OTHERS = [name for name in RELATIVES if name not in ("tiled exact", MEAN)]
NAMES = (FULL, LEARNED, MEAN, *OTHERS, FITTING)
ONCE = {  # with one seed: little rests on them
    "needle": ("sliding window",),
    "copy": ("sliding window", "two levels", "strided + global", "Performer", "Nyström"),
}


def start_at_values(E: LearnedProjection) -> LearnedProjection:
    """Let slot i begin as the i-th value of a text of recall, which stands at token 2i + 1; return it."""
    return start_at(E, torch.eye(E.seq_len)[1 : 2 * E.proj_dim : 2])


STARTS = {LEARNED: start_at_windows, AT_VALUES: start_at_values}


def size_of(name: str, n: int, keys: int = KEYS) -> int:
    """The size of a relative within the budget; 0 where it has none."""
    if name == FULL:
        return 0
    if name in STARTS:
        return keys // 2  # E K and F V cost as much as scores and mixing
    if name == FITTING:
        return keys  # the stride is n / keys
    relative = RELATIVES[name]
    within = largest_size(relative, n, D_HEAD, 4 * n * keys * D_HEAD)
    return within or min(relative.sizes(n), key=lambda size: relative.flops(n, D_HEAD, size))


def attention_layer(name: str, n: int, size: int) -> nn.Module:
    """One attention layer of a model."""
    if name == FULL:
        return MultiHeadAttention(D_MODEL, NUM_HEADS)
    if name in STARTS:
        with torch.random.fork_rng(devices=[]):  # all other numbers are those of mean pooling
            E, F = (STARTS[name](LearnedProjection(n, size)) for _ in range(2))
        return LinformerAttention(D_MODEL, NUM_HEADS, E, F)
    relative = RELATIVES["strided + global" if name == FITTING else name]
    return EfficientAttention(D_MODEL, NUM_HEADS, relative.build(n, D_HEAD, size))


def model_for(task: str, name: str, n: int, size: int) -> MaskedLanguageModel:
    """An encoder of two layers, positions begun as sinusoids, that names the token at every blank."""
    return model_of(name, n, size, tasks.vocab_size(task, n), NEIGHBOURS[task])


def model_of(name: str, n: int, size: int, vocab_size: int, neighbours: int) -> MaskedLanguageModel:
    """As above, for any vocabulary."""
    layers = [attention_layer(name, n, size) for _ in range(NUM_LAYERS)]
    return MaskedLanguageModel(with_sinusoids(Encoder(vocab_size, n, D_MODEL, layers, neighbours)))


def solve(
    task: str, attention: str, n: int, size: int, seed: int, learning_rate: float = RATE, steps: int = STEPS
) -> dict:
    """Train one model; its accuracy ten times on the way, until nothing is wrong any more."""
    torch.manual_seed(seed)
    model, batches = model_for(task, attention, n, size), getattr(tasks, task)(n, TEXTS[task](n), seed)
    curve = train(model, batches, VALIDATION[task], learning_rate, steps)
    return {"accuracy": curve[-1][1], "curve": curve}


def train(
    model: MaskedLanguageModel, batches: tasks.Batches, validation: int, learning_rate: float, steps: int
) -> list[list[float]]:
    """Train a model; its accuracies on the way: updates, share of right answers."""
    unseen = tasks.validation_batches(batches, validation)
    config = Config(steps, learning_rate, WARMUP)
    trainer = Trainer(model, masked_loss, batches, config, device="cpu")
    curve: list[list[float]] = []
    for until in range(steps // 10, steps + 1, steps // 10):
        trainer.train(until)
        curve.append([until, round(masked_accuracy(model, unseen), 4)])
        if curve[-1][1] == 1:
            break
    return curve


def grid(names: Sequence[str], sizes: Sequence[tuple[int, int]], **rest: float) -> list[dict]:
    """Every attention at every length n and number of keys a query."""
    return [
        {"attention": name, "n": n, "size": size_of(name, n, keys)} | {"learning_rate": RATE} | rest
        for (n, keys), name in product(sizes, names)
    ]


def pooled_alike(sizes: Sequence[tuple[int, int]]) -> list[dict]:
    """Mean pooling with as many slots as learned E and F have, which is half of what it could afford."""
    return [some | {"attention": MEAN} for some in grid((LEARNED,), sizes)]


def finding(task: str, about: str) -> Experiment:
    """The relatives on one task, and learned E and F at a second rate."""
    names = [name for name in NAMES if name not in ONCE[task]]
    settings = grid(names, [(n, KEYS) for n in LENGTHS])
    settings += pooled_alike([(n, KEYS) for n in LENGTHS])
    settings += grid((LEARNED,), [(LENGTHS[-1], KEYS)], learning_rate=LOWER)
    return Experiment(f"09_{task}", about, settings, partial(solve, task), SEEDS)


EXPERIMENTS = [
    finding("needle", "one marked token among noise"),
    finding("copy", "the first half of a text written again"),
    Experiment(
        "09_once",
        "the relatives of which little is said, with one seed",
        [{"task": task} | some for task in ONCE for some in grid(ONCE[task], [(n, KEYS) for n in LENGTHS])],
        solve,
        (0,),
    ),
]
