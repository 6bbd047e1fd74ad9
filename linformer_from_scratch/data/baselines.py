"""What a trained model must beat: predictions by counting, without a network (chapter 08)."""

from collections.abc import Iterable

import torch
from torch import Tensor

from linformer_from_scratch.data import IGNORE, MASK, PAD
from linformer_from_scratch.data.batches import REPLACED
from linformer_from_scratch.data.vocabulary import SPECIAL


def unigram(ids: Tensor, vocab_size: int) -> Tensor:
    """log p(token): its share of the text, every token counted once more. Shape: (vocab_size,).

    Raises: ValueError if a token is not in the vocabulary.
    """
    counts = torch.bincount(ids, minlength=vocab_size).float() + 1
    if len(counts) > vocab_size:
        raise ValueError(f"got token {len(counts) - 1}, expected 0 … {vocab_size - 1}")
    return (counts / counts.sum()).log()


def bigram(ids: Tensor, vocab_size: int) -> Tensor:
    """log p(token | the one before it), row by row. Shape: (vocab_size, vocab_size).

    Witten-Bell smoothing (1991): a row with many different successors gives more weight to the unigram.

    Raises: as unigram.
    """
    alone = unigram(ids, vocab_size).exp()
    pairs = torch.bincount(ids[:-1] * vocab_size + ids[1:], minlength=vocab_size**2)
    counts = pairs.view(vocab_size, vocab_size).float()
    kinds = (counts > 0).sum(dim=1, keepdim=True)  # different successors of each token
    smoothed = counts + kinds * alone
    seen = smoothed.sum(dim=1, keepdim=True)
    return torch.where(seen > 0, smoothed / seen, alone).log()


def shown_instead(vocab_size: int) -> Tensor:
    """log p(input | target) of a token that mask_tokens has chosen. Shape: (vocab_size, vocab_size)."""
    mask, random = REPLACED[0], REPLACED[1] - REPLACED[0]
    p = torch.eye(vocab_size, dtype=torch.float32, device="cpu") * (1 - mask - random)
    p[:, len(SPECIAL) :] += random / (vocab_size - len(SPECIAL))
    p[:, MASK] += mask
    return p.log()


def baseline_losses(
    ids: Tensor, batches: Iterable[tuple[Tensor, Tensor]], vocab_size: int
) -> dict[str, float]:
    """Mean loss on masked batches, in nats per token, of predictions from counts in the training text.

    unigram: no context. bigram: the token on the left, as the model sees it (so it may be MASK or a random
    one). both neighbours: left and right, taken as independent given the token between them. neighbours and
    itself: also the input at the place itself: MASK, a random token, or the target.

    Shape: ids (tokens,), batches of inputs and targets (batch, n)
    Raises: ValueError if no target has two neighbours; as unigram.
    """
    alone, after = unigram(ids, vocab_size), bigram(ids, vocab_size)
    shown = shown_instead(vocab_size).to(ids.device)
    sums: dict[str, float] = {}
    count = 0
    for inputs, targets in batches:
        chosen = targets != IGNORE
        chosen[:, [0, -1]] = False  # these have only one neighbour
        row, column = chosen.nonzero(as_tuple=True)
        left, itself, right = (inputs[row, column + i] for i in (-1, 0, 1))
        both = after[left] + after.mT[right]
        scores = {
            "unigram": alone.expand(len(row), -1),
            "bigram": after[left],
            "both neighbours": both.log_softmax(dim=-1),
            "neighbours and itself": (both + shown.mT[itself]).log_softmax(dim=-1),
        }
        count += len(row)
        for name, score in scores.items():
            sums[name] = sums.get(name, 0.0) - score.gather(1, targets[chosen][:, None]).sum().item()
    if not count:
        raise ValueError("0 targets have two neighbours, expected at least 1")
    return {name: total / count for name, total in sums.items()}


def bag_of_words(ids: Tensor, labels: Tensor, vocab_size: int, num_classes: int) -> tuple[Tensor, Tensor]:
    """Naive Bayes on token counts: log p(class), and log p(token | class), each count once more.

    Shape: ids (texts, n) padded with PAD, labels (texts,) -> (num_classes,), (num_classes, vocab_size)
    Raises: ValueError if there is not one label for each text; as unigram.
    """
    if len(ids) != len(labels):
        raise ValueError(f"got {len(ids)} texts and {len(labels)} labels; need equal counts")
    prior = unigram(labels, num_classes)
    by_class = [ids[(labels == c)[:, None] & (ids != PAD)] for c in range(num_classes)]
    words = torch.stack([unigram(tokens, vocab_size) for tokens in by_class])
    return prior, words


def bag_scores(ids: Tensor, prior: Tensor, words: Tensor) -> Tensor:
    """log p(class) + Σ log p(token | class) of each text, without padding.

    Shape: (texts, n) -> (texts, num_classes)
    """
    real = (ids != PAD).float()
    return prior + torch.stack([(word[ids] * real).sum(dim=1) for word in words], dim=1)
