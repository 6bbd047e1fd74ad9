"""What is minimised: the mean negative log-probability of the right answer, in nats."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.data import IGNORE, PAD
from linformer_from_scratch.training.modes import evaluating

Loss = TypeVar("Loss", bound=Callable[..., Tensor])


def mean_over(count: Callable[..., int]) -> Callable[[Loss], Loss]:
    """A decorator: the loss is a mean over loss.count(*batch) things, which are not the batch's rows.

    Where a batch is cut, for accumulation or for ranks, each part is weighted by how many of them it holds.
    """

    def decorate(loss: Loss) -> Loss:
        loss.count = count  # type: ignore[attr-defined]
        return loss

    return decorate


def to_be_guessed(ids: Tensor, targets: Tensor) -> int:
    """How many tokens of a batch are masked. Shape: ids and targets (batch, n)."""
    return int((targets != IGNORE).sum())


@mean_over(to_be_guessed)
def masked_loss(model: nn.Module, ids: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy of the masked tokens, in nats per token; the model scores the vocabulary only there.

    Shape: ids and targets (batch, n), targets IGNORE where nothing is to be guessed -> ()
    """
    chosen = targets != IGNORE
    return functional.cross_entropy(model(ids, where=chosen), targets[chosen])


@torch.no_grad()
def masked_accuracy(model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]) -> float:
    """Share of the masked tokens that get the highest score.

    Args: batches: ids and targets (batch, n) on the model's device, IGNORE where no token is masked.
    """
    right = []
    with evaluating(model):
        for ids, targets in batches:
            chosen = targets != IGNORE
            right.append((model(ids, where=chosen).argmax(dim=-1) == targets[chosen]).float())
    return torch.cat(right).mean().item()


@torch.no_grad()
def accuracy(model: nn.Module, ids: Tensor, labels: Tensor, batch_size: int = 64) -> float:
    """Share of texts whose class gets the highest score.

    Shape: ids (texts, n), labels (texts,)
    """
    device = next((p.device for p in model.parameters()), ids.device)
    pairs = zip(ids.to(device).split(batch_size), labels.to(device).split(batch_size), strict=True)
    with evaluating(model):
        right = [(model(some, some != PAD).argmax(dim=-1) == wanted).float() for some, wanted in pairs]
    return torch.cat(right).mean().item()


def classification_loss(model: nn.Module, ids: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of the classes, in nats per text; tokens that are PAD are padding.

    Shape: ids (batch, n), labels (batch,) -> ()
    """
    return functional.cross_entropy(model(ids, ids != PAD), labels)
