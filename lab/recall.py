"""The runs of chapter 12 on associative recall: a value for every key, then all keys again.

The models and their training are those of chapter 09.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch

from lab import efficient
from lab.efficient import AT_VALUES, FULL, LEARNED, MEAN, RATE, SEEDS, VALIDATION, grid, model_for, train
from lab.experiment import Experiment, every
from linformer_from_scratch.data import tasks
from linformer_from_scratch.training import masked_accuracy

LENGTHS = (64, 128, 256, 512)
LONGEST = LENGTHS[-1]
READ = [(n, efficient.KEYS) for n in LENGTHS]
RISING = [*grid((FULL, LEARNED), READ), *efficient.pooled_alike(READ)]
WIDTHS = [(256, 64), (256, 128), (LONGEST, 256)]  # n, and 2k
GROWN = {64: (64, 1200), 128: (32, 400), 256: (32, 400), 512: (32, 400), 1024: (32, 400), 2048: (16, 400)}
SLOTS = 16
WIDEST = [WIDTHS[-1]]  # one slot for every value
SLOTTED = {"n": LONGEST, "size": LONGEST // 4}


class Facts(NamedTuple):
    """What a text of n tokens asks for."""

    count: Callable[[int], int]
    longest: int = LONGEST
    unasked: bool = False  # whether the noise is facts, too
    attention: str = MEAN
    updates: int = 1  # times those of GROWN


FACTS = {
    "16": Facts(lambda n: 16, longest=2048),
    "n / 4": Facts(lambda n: n // 4),
    "16 of n / 2 - 16": Facts(lambda n: 16, unasked=True),
    "16 of n / 2 - 16, exact attention": Facts(lambda n: 16, unasked=True, attention=FULL),
    "16 of n / 2 - 16, ten times the updates": Facts(lambda n: 16, 256, unasked=True, updates=10),
}


def facts_among_noise(facts: str, seed: int) -> dict:
    """Recall, through SLOTS means of windows or exactly, while texts double in length: accuracies by n.

    A model begins with the weights of the next shorter texts, so that it need not find again what it knows.

    Args: facts: of FACTS; so many keys with their values stand among noise.
    """
    count, longest, unasked, attention, updates = FACTS[facts]
    vocab_size = tasks.vocab_size("recall", 2 * LONGEST if unasked else LONGEST)
    weights: dict[str, torch.Tensor] = {}
    curves: dict[int, list[list[float]]] = {}
    for n in (n for n in GROWN if n <= longest):
        texts, steps = GROWN[n]
        torch.manual_seed(seed)
        model = efficient.model_of(attention, n, SLOTS, vocab_size, efficient.NEIGHBOURS["recall"])
        model.load_state_dict(weights, strict=False)
        batches = tasks.scattered_recall(n, count(n), texts, seed, unasked)
        curves[n] = train(model, batches, VALIDATION["recall"], RATE, updates * steps)
        weights = {key: w for key, w in model.state_dict().items() if "positions" not in key}
    return {"curves": curves}


def transplanted(n: int, size: int, seed: int) -> dict:
    """Train full attention; then give it slots, nothing else changed, and ask again.

    Slots that hold the values themselves, and slots that are means of windows; as many of either.
    """
    torch.manual_seed(seed)
    full, batches = model_for("recall", FULL, n, 0), tasks.recall(n, efficient.TEXTS["recall"](n), seed)
    curve = train(full, batches, VALIDATION["recall"], RATE, efficient.STEPS)
    unseen = tasks.validation_batches(batches, VALIDATION["recall"])
    accuracies = {FULL: curve[-1][1]}
    for name in (AT_VALUES, LEARNED):
        slots = model_for("recall", name, n, size)
        slots.load_state_dict(full.state_dict(), strict=False)  # all but E and F
        accuracies[name] = round(masked_accuracy(slots, unseen), 4)
    return {"learning_rate": RATE, "curve": curve, "accuracies": accuracies}


def recalling(name: str, about: str, settings: list[dict], seeds: tuple[int, ...] = SEEDS) -> Experiment:
    """Runs on recall."""
    return Experiment(name, about, [{"task": "recall"} | some for some in settings], efficient.solve, seeds)


FACTS_EACH = every(facts=FACTS)
LOWER = grid((LEARNED,), WIDEST, learning_rate=efficient.LOWER)  # with a slot for every value
EXPERIMENTS = [
    recalling("12_recall", "recall at 32 keys a query, n rising", RISING),
    recalling("12_width", "recall by Linformer, learned, at other k", grid((LEARNED,), WIDTHS)),
    Experiment("12_slots", "full attention that recalls, read through slots", [SLOTTED], transplanted, SEEDS),
    Experiment("12_facts", "recall by 16 means, facts among noise", FACTS_EACH, facts_among_noise, SEEDS),
    recalling("12_start", "recall by Linformer that begins at the values", grid((AT_VALUES,), WIDEST)),
    recalling("12_rate", "recall by Linformer that begins at windows, at a lower rate", LOWER, (0,)),
]
