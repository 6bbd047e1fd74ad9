"""Put Linformer into a real pretrained encoder, and measure how much of it is kept (chapter 12).

The exact model is the teacher: the one with Linformer in its layers is fitted to its outputs on real text.
Two measures: the cosine of its sentence vectors to the teacher's, and a search among passages.
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.common.random_state import integers
from linformer_from_scratch.pretrained import MAX_TOKENS, tokenize
from linformer_from_scratch.pretrained.contrastive import ranks_of
from linformer_from_scratch.pretrained.sentence_encoder import SentenceEncoder
from linformer_from_scratch.pretrained.texts import chunks
from linformer_from_scratch.projections import LearnedProjection
from linformer_from_scratch.training import Config, Trainer
from linformer_from_scratch.training.modes import evaluating

BATCH = 4  # passages in an update


def passages(documents: Mapping[str, str], n: int = MAX_TOKENS) -> tuple[Tensor, Tensor]:
    """Documents cut into passages of n tokens, [CLS] and [SEP] included; a shorter rest is dropped.

    Shape: ids (passages, n), and pairs (count, 2): the second passage follows the first in its document
    Raises: ValueError if no document has n tokens, or n is less than 3.
    """
    if n < 3:
        raise ValueError(f"n is {n}, expected at least 3: [CLS], a token, [SEP]")
    rows: list[Tensor] = []
    pairs: list[tuple[int, int]] = []
    for text in documents.values():
        ids = tokenize(text, max_tokens=None)
        bodies = ids[1:-1].split(n - 2)
        whole = [body for body in bodies if len(body) == n - 2]
        pairs += [(len(rows) + i, len(rows) + i + 1) for i in range(len(whole) - 1)]
        rows += [torch.cat([ids[:1], body, ids[-1:]]) for body in whole]
    if not rows:
        raise ValueError(f"no document has a passage of n={n} tokens")
    return torch.stack(rows), torch.tensor(pairs, dtype=torch.long, device="cpu").reshape(-1, 2)


@torch.no_grad()
def embed_all(model: "SentenceEncoder | ChunkEncoder", ids: Tensor, batch: int = 8) -> Tensor:
    """Sentence vectors of many passages. Shape: ids (passages, n) -> (passages, 384), unit vectors."""
    device = next(model.parameters()).device
    with evaluating(model):
        return torch.cat([model.embed(some.to(device)).cpu() for some in ids.split(batch)])


def mean_cosine(vectors: Tensor, expected: Tensor) -> float:
    """Mean cosine of unit vectors to the expected ones. Shape: two of (passages, d)."""
    return (vectors * expected).sum(dim=-1).mean().item()


def following_ranks(vectors: Tensor, pairs: Tensor) -> Tensor:
    """A search among all passages with the first of each pair: the rank of the second, 1 for the best.

    Shape: unit vectors (passages, d), pairs (count, 2) -> (count,), as ranks_of
    """
    cosines = (vectors @ vectors.mT).fill_diagonal_(-2.0)[pairs[:, 0]]  # no passage finds itself
    return ranks_of(cosines, pairs[:, 1])


class ChunkEncoder(nn.Module):
    """Exact attention within chunks: each is encoded by itself, and their unit vectors are averaged.

    Args:
        encoder: encodes each chunk.
        chunk: most tokens of a text in one chunk, its own [CLS] and [SEP] not counted.
    """

    def __init__(self, encoder: SentenceEncoder, chunk: int):
        super().__init__()
        self.encoder, self.chunk = encoder, chunk

    def embed(self, ids: Tensor) -> Tensor:
        """Unit vectors of texts. Shape: ids (batch, n), [CLS] and [SEP] included -> (batch, 384)"""
        vectors = torch.stack([self.encoder.embed(chunk) for chunk in chunks(ids, self.chunk)])
        return functional.normalize(vectors.mean(dim=0), dim=-1)


def retention(
    model: SentenceEncoder | ChunkEncoder, ids: Tensor, pairs: Tensor, expected: Tensor
) -> dict[str, float | list[int]]:
    """What a model keeps of the exact one's vectors.

    cosine: the mean, to the exact vectors. ranks: of the following passage, one for each search. first: share
    of searches where that is 1. reciprocal: mean of 1 / rank.

    Shape: ids (passages, n), pairs (count, 2), expected (passages, 384)
    Raises: ValueError if there is no pair.
    """
    if not len(pairs):
        raise ValueError("0 pairs of passages, expected at least 1")
    vectors = embed_all(model, ids)
    ranks = following_ranks(vectors, pairs)
    return {
        "cosine": mean_cosine(vectors, expected),
        "first": (ranks == 1).float().mean().item(),
        "reciprocal": (1 / ranks).mean().item(),
        "ranks": ranks.tolist(),
    }


class DistillationLoss:
    """How far a model is from the exact one, on the same passages: a loss for the Trainer.

    The mean over blocks of ‖x - x_teacher‖² / ‖x_teacher‖²: every block has its own target, so that the last
    does not have to correct all the others (as in Sun et al. 2019, arXiv 1908.09355).

    Args: teacher: the exact model.
    Shape: ids (batch, n) -> ()
    """

    def __init__(self, teacher: SentenceEncoder):
        self.teacher = teacher.eval().requires_grad_(False)

    def __call__(self, model: SentenceEncoder, ids: Tensor) -> Tensor:
        """The loss of one batch."""
        with torch.no_grad():
            wanted = self.teacher.to(ids.device).hidden(ids)
        return self.compare(model.hidden(ids), wanted)

    def compare(self, hidden: list[Tensor], wanted: list[Tensor]) -> Tensor:
        """The loss, from the outputs of the blocks of both."""
        pairs = zip(hidden, wanted, strict=True)
        errors = [(x - y).square().sum() / y.square().sum() for x, y in pairs]
        return sum(errors, start=errors[0].new_zeros(())) / len(errors)


def fit(
    model: SentenceEncoder,
    trained: Iterable[nn.Parameter],
    teacher: SentenceEncoder,
    ids: Tensor,
    updates: int,
    rate: float,
    batch: int = BATCH,
) -> list[float]:
    """Fit some parameters of a model to its teacher on passages; return the loss of every update.

    The numbers of E and F move at the same rate as all others, since they start from trained weights.

    Shape: ids (passages, n)
    """
    model.requires_grad_(False)
    for parameter in trained:
        parameter.requires_grad_(True)

    def batches(step: int) -> tuple[Tensor]:
        some = integers(torch.Generator().manual_seed(step), 0, len(ids), batch)
        return (ids[some],)

    config = Config(updates, rate, warmup=updates // 10, weight_decay=0.0)
    scale = {E.weight: 1 / E.unit for E in model.modules() if isinstance(E, LearnedProjection)}
    trainer = Trainer(model, DistillationLoss(teacher), batches, config, lr_scale=scale)
    return [record["loss"] for record in trainer.train()]
