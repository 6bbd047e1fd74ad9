"""What the three models of chapter 08's first picture say of the same masks while they train.

The runs are those of 08_longer with n = 128, three tokens and seed 0. In the end each mask whose answer also
stands elsewhere in its text is guessed once more with those places covered.
"""

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lab.experiment import Experiment
from lab.training import LONGER, RATE, READ, TOKENS, read_at, tokens, vocabulary
from linformer_from_scratch.common.random_state import uniform
from linformer_from_scratch.data import IGNORE, MASK, MaskedBatches
from linformer_from_scratch.encoder import MaskedLanguageModel
from linformer_from_scratch.training import Config, Trainer, masked_loss
from linformer_from_scratch.training.copying import copies
from linformer_from_scratch.training.corpora import validation_batches
from linformer_from_scratch.training.modes import evaluating
from linformer_from_scratch.training.recipes import Recipe, encoder, lr_scale

N = READ[-1]  # tokens of a text
MOMENTS = (20, 100, 600, 2000, LONGER)  # updates after which the masks are filled
JUDGED = sorted({*MOMENTS, 10, 50, 200, 350, 1000, 1400, 3000, 4500})  # and those of the curve
SHOWN = 16  # held-out texts whose every guess is recorded
TOP = 3  # tokens recorded for each mask, the likeliest first

Batches = list[tuple[Tensor, Tensor]]


def watch(seed: int, steps: int, learning_rate: float, **recipe: Any) -> dict:
    """Train one model, and stop on the way to let it fill the masks of the held-out texts."""
    settings = Recipe(**recipe)
    train, held = tokens()
    size = settings.seq_len, TOKENS // settings.seq_len, vocabulary().size
    torch.manual_seed(seed)
    model = MaskedLanguageModel(encoder(settings, vocabulary().size))
    config = Config(steps, learning_rate, evaluate_every=steps, seed=seed)
    scale = lr_scale(settings, model)
    trainer = Trainer(model, masked_loss, MaskedBatches(train, *size, seed), config, lr_scale=scale)
    unseen = validation_batches(held, *size)
    found: dict[str, Any] = {"curve": [], "right": [], "guesses": []}
    for until in JUDGED:
        trainer.train(until)
        found["curve"].append([until, round(trainer.evaluate(unseen), 4)])
        if until in MOMENTS:
            with evaluating(model), torch.no_grad():
                found["right"].append([until, *shares_right(model, unseen)])
                found["guesses"].append([until, guesses(model, unseen)])
    with evaluating(model), torch.no_grad():
        return found | {"covered": covered(model, unseen)}


def masks(inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Text, place and answer of each token that is hidden behind a mask, and where else its answer stands.

    Shape: (batch, n) twice -> three of (masks,) and bool (masks, n), in row-major order
    """
    row, column = (targets != IGNORE).nonzero(as_tuple=True)
    hidden = inputs[row, column] == MASK
    return row[hidden], column[hidden], targets[row, column][hidden], copies(inputs, targets)[hidden]


def shares_right(model: nn.Module, batches: Batches) -> list[float]:
    """Of the masks whose answer stands elsewhere in their text, and of the others, which share is right."""
    right, repeated = [], []
    for inputs, targets in batches:
        row, column, answer, there = masks(inputs, targets)
        right.append(model(inputs)[row, column].argmax(-1) == answer)
        repeated.append(there.any(1))
    each, again = torch.cat(right).float(), torch.cat(repeated)
    return [round(each[kind].mean().item(), 4) for kind in (again, ~again)]


def guesses(model: nn.Module, batches: Batches) -> list[list]:
    """For each mask of the first texts: per cent for its answer, then the likeliest tokens and theirs."""
    inputs, targets = (torch.cat(some)[:SHOWN] for some in zip(*batches, strict=True))
    row, column, answer, _ = masks(inputs, targets)
    percent = 100 * model(inputs)[row, column].softmax(-1)
    for_answer = percent.gather(1, answer[:, None])[:, 0].round().int().tolist()
    top = percent.topk(TOP)
    likeliest = torch.stack([top.indices, top.values.round().long()], dim=-1).tolist()
    return [[own, *some] for own, some in zip(for_answer, likeliest, strict=True)]


def covered(model: nn.Module, batches: Batches) -> dict[str, float]:
    """Mean loss on masks whose answer stands elsewhere, with and without masks over other places of the text.

    With nothing more covered; with a mask over each place where the answer stands; and with masks over as
    many other places, drawn at random. None of them is beside the mask that is guessed.
    """
    losses: dict[str, list[Tensor]] = {"nothing": [], "copies": [], "others": []}
    generator = torch.Generator().manual_seed(0)
    for inputs, targets in batches:
        row, column, answer, there = masks(inputs, targets)
        row, column, answer, there = (some[there.any(1)] for some in (row, column, answer, there))
        beside = (torch.arange(inputs.size(1)) - column[:, None]).abs() <= 1
        draws = uniform(generator, *there.shape).masked_fill(there | beside | (inputs[row] == MASK), 2.0)
        others = draws.argsort(dim=1, stable=True).argsort(dim=1, stable=True) < there.sum(1, keepdim=True)
        places = {"nothing": torch.zeros_like(there), "copies": there, "others": others}
        for name, hide in places.items():
            scores = model(inputs[row].masked_fill(hide, MASK))[range(len(row)), column]
            losses[name].append(functional.cross_entropy(scores, answer, reduction="none"))
    return {name: round(torch.cat(some).mean().item(), 4) for name, some in losses.items()}


RECIPES = [read_at(N)[i] for i in (0, 1, -1)]  # full attention, n / 4 slots, none

GRID = [asdict(recipe) | {"steps": LONGER, "learning_rate": RATE} for recipe in RECIPES]
ABOUT = "what the Transformer, Linformer and no attention say of the same masks while they train"
EXPERIMENTS = [Experiment("08_guesses", ABOUT, GRID, watch, (0,))]
