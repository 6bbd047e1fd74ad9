"""Generating text: the loss of a model that sees the whole text, and of one that does not."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.training.modes import evaluating


def next_token_loss(model: nn.Module, ids: Tensor) -> Tensor:
    """Mean loss of each next token, in nats, of a language model that gets the whole text at once.

    Only if no output depends on later tokens is it the loss of generating text (Vaswani et al. 2017, section
    3.2.3).

    Args: model: ids (batch, n) -> scores of the vocabulary (batch, n, vocab_size).
    Shape: ids (batch, n) -> ()
    """
    scores = model(ids[:, :-1])
    return functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())


@torch.no_grad()
def written_loss(model: nn.Module, ids: Tensor, lengths: Sequence[int]) -> float:
    """Mean loss of the next token, in nats, where the model gets only the tokens before it.

    Args: lengths: how many tokens are given, each at least 1 and less than n.
    Shape: ids (batch, n) -> a number, the mean over texts and lengths
    """
    with evaluating(model):
        losses = [functional.cross_entropy(model(ids[:, :n])[:, -1], ids[:, n]) for n in lengths]
    return torch.stack(losses).mean().item()


@torch.no_grad()
def write_on(model: nn.Module, ids: Tensor, count: int) -> Tensor:
    """A text and the tokens that the model adds to it, each time the likeliest next one.

    Shape: ids (n,) -> (n + count,)
    """
    with evaluating(model):
        for _ in range(check_size("count", count, least=0)):
            ids = torch.cat([ids, model(ids[None])[0, -1].argmax()[None]])
    return ids


def leak(before: Tensor, after: Tensor, place: int) -> float:
    """Largest change of an output before token `place` when that token was edited.

    Shape: outputs (n, d) before and after -> a number; 0 for the first token, before which there is none
    """
    place = check_size("place", place, least=0)
    return (after - before)[:place].abs().max().item() if place else 0.0
