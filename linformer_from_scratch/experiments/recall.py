"""The runs of chapter 12 on associative recall: a value for every key, then all keys again.

The models and their training are those of chapter 09.
"""

import torch

from linformer_from_scratch.data import tasks
from linformer_from_scratch.experiments.efficient import (
    AT_VALUES,
    FULL,
    KEYS,
    LEARNED,
    LOWER,
    MEAN,
    RATE,
    SEEDS,
    STEPS,
    TEXTS,
    VALIDATION,
    grid,
    model_for,
    model_of,
    pooled_alike,
    solve,
    train,
)
from linformer_from_scratch.experiments.experiment import Experiment
from linformer_from_scratch.training import masked_accuracy

LENGTHS = (64, 128, 256, 512)
LONGEST = LENGTHS[-1]
READ = [(n, KEYS) for n in LENGTHS]
RISING = [*grid((FULL, LEARNED), READ), *pooled_alike(READ)]
WIDTHS = [(256, 64), (256, 128), (LONGEST, 256)]  # n, and 2k
FEW = 8  # texts in a batch, whatever their length
FACTS = [  # tokens, facts among them, slots (0: full attention)
    *({"n": n, "facts": 16, "size": 16} for n in (256, 1024, 2048)),
    *({"n": n, "facts": 64, "size": size} for n in (256, 1024) for size in (16, 64)),
    {"n": 1024, "facts": 64, "size": 0},
]
WIDEST = [WIDTHS[-1]]  # one slot for every value


def facts_among_noise(n: int, facts: int, size: int, seed: int) -> dict:
    """Train a model on few facts in a long text; its accuracy on the way. A size of 0 is full attention."""
    torch.manual_seed(seed)
    model = model_of(MEAN if size else FULL, n, size, tasks.VOCAB_SIZE + facts, neighbours=1)
    curve = train(model, tasks.scattered_recall(n, facts, FEW, seed), VALIDATION["recall"], RATE, STEPS)
    return {"accuracy": curve[-1][1], "curve": curve}


def transplanted(n: int, size: int, seed: int) -> dict:
    """Train full attention; then give it slots, nothing else changed, and ask again.

    Slots that hold the values themselves, and slots that are means of windows; as many of either.
    """
    torch.manual_seed(seed)
    full, batches = model_for("recall", FULL, n, 0), tasks.recall(n, TEXTS["recall"](n), seed)
    curve = train(full, batches, VALIDATION["recall"], RATE, STEPS)
    unseen = tasks.validation_batches(batches, VALIDATION["recall"])
    accuracies = {FULL: curve[-1][1]}
    for name in (AT_VALUES, LEARNED):
        slots = model_for("recall", name, n, size)
        slots.load_state_dict(full.state_dict(), strict=False)  # all but E and F
        accuracies[name] = round(masked_accuracy(slots, unseen), 4)
    return {"learning_rate": RATE, "curve": curve, "accuracies": accuracies}


def recalling(name: str, about: str, settings: list[dict], seeds: tuple[int, ...] = SEEDS) -> Experiment:
    """Runs on recall."""
    return Experiment(name, about, [{"task": "recall"} | some for some in settings], solve, __file__, seeds)


EXPERIMENTS = [
    recalling("12_recall", "recall at 32 keys a query, n rising", RISING),
    recalling("12_width", "recall by Linformer, learned, at other k", grid((LEARNED,), WIDTHS)),
    Experiment(
        "12_slots",
        "full attention that recalls, read through slots",
        [{"n": LONGEST, "size": LONGEST // 4}],
        transplanted,
        __file__,
        SEEDS,
    ),
    recalling("12_start", "recall by Linformer that begins at the values", grid((AT_VALUES,), WIDEST)),
    recalling(
        "12_rate",
        "recall by Linformer that begins at windows, with a slot for every value: a lower rate",
        grid((LEARNED,), WIDEST, learning_rate=LOWER),
        (0,),
    ),
]
