"""What Linformer cannot do, each as an experiment (chapter 12).

Recall and copying at a fixed k, from recorded runs; sharp attention; texts yet to be written; shorter texts.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.course.results import read_rows, select
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.low_rank import best_rank
from linformer_from_scratch.pretrained import stored_heads
from linformer_from_scratch.projections import MeanPooling
from linformer_from_scratch.training.modes import evaluating

RECORDED = {"recall": "12_recall", "copy": "09_copy"}  # the file of a task's runs


def accuracies(task: str) -> dict[str, dict[int, float]]:
    """What recorded models of about 32 keys a query reach: name -> n -> share of answers that are right.

    Args: task: "recall" or "copy".
    """
    rows = read_rows(RECORDED[task])
    names = dict.fromkeys(row["attention"] for row in read_rows(RECORDED["recall"]))
    return {
        name: {row["n"]: row["accuracy"] for row in select(rows, attention=name, seed=0)} for name in names
    }


def copy_error(n: int, rank: int) -> float:
    """‖Π − the best map of that rank‖ / ‖Π‖ for a permutation Π of n tokens: all its singular values are 1.

    Frobenius norm (Eckart and Young 1936).

    Raises: ValueError if rank does not lie in 0 … n.
    """
    if not 0 <= rank <= n:
        raise ValueError(f"rank is {rank}, expected 0 … n={n}")
    return math.sqrt(1 - rank / n)


def errors_by_temperature(
    layer: int, head: int, slots: int, temperatures: Sequence[float]
) -> dict[str, list[float]]:
    """Relative output errors of a stored head of MiniLM whose scores are divided by a temperature.

    Of the best map of rank `slots`, and of Linformer with mean pooling. Below 1 attention is sharper than the
    head's own.
    """
    q, k, v, _ = stored_heads()[layer, head]
    E = MeanPooling(len(k), slots)(torch.eye(len(k)))
    found: dict[str, list[float]] = {"best map of that rank": [], "mean pooling": []}
    for temperature in temperatures:
        weights = attention_weights(q / temperature, k)
        outputs = best_rank(weights, slots) @ v, linformer_attention(q / temperature, k, v, E, E)
        for errors, output in zip(found.values(), outputs, strict=True):
            errors.append(((output - weights @ v).norm() / (weights @ v).norm()).item())
    return found


def next_token_loss(model: nn.Module, ids: Tensor) -> Tensor:
    """Loss of a language model that sees a whole text at once: at each token, of the next one, in nats.

    That is the loss of a text yet to be written only if no output depends on later tokens (Vaswani et al.
    2017, section 3.2.3).

    Args: model: ids (batch, n) -> scores of the vocabulary (batch, n, vocab_size).
    Shape: ids (batch, n) -> ()
    """
    scores = model(ids[:, :-1])
    return functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())


@torch.no_grad()
def written_loss(model: nn.Module, ids: Tensor, lengths: Sequence[int]) -> float:
    """The same where the rest of the text is not there yet: given the first tokens only, of the next one.

    Args: lengths: how many tokens are given, each at least 1 and less than n.
    Shape: ids (batch, n) -> a number, the mean over texts and lengths
    """
    with evaluating(model):
        losses = [
            functional.cross_entropy(model(ids[:, :length])[:, -1], ids[:, length]) for length in lengths
        ]
    return torch.stack(losses).mean().item()


def leak(before: Tensor, after: Tensor, place: int) -> float:
    """Largest change of an output before token `place` when that token was edited.

    Shape: outputs (n, d) before and after -> a number; 0 for the first token, before which there is none
    """
    return (after - before)[:place].abs().max().item() if place else 0.0


def empty_slots(E: Tensor, n: int) -> int:
    """Slots that read none of the first n tokens. Shape: E (proj_dim, seq_len) -> a count."""
    return int((E[:, :n] == 0).all(dim=1).sum())
