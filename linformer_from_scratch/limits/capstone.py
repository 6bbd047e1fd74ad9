"""Put Linformer into a real pretrained encoder, and measure what is left of it (chapter 12).

The exact model is the teacher: the one with Linformer in its layers is fitted until it says nearly the same
of real text. What is kept: the cosine of its sentence vectors to the teacher's, and a search among passages.
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.common.random_state import integers
from linformer_from_scratch.pretrained import MAX_TOKENS, tokenize
from linformer_from_scratch.pretrained.sentence_encoder import SentenceEncoder
from linformer_from_scratch.pretrained.texts import chunks
from linformer_from_scratch.projections import LearnedProjection
from linformer_from_scratch.training import Config, Trainer
from linformer_from_scratch.training.modes import evaluating

BATCH = 4  # passages in an update


def passages(documents: Mapping[str, str], n: int = MAX_TOKENS) -> tuple[Tensor, Tensor]:
    """Documents cut into passages of n tokens, [CLS] and [SEP] among them; what is left at an end is dropped.

    Shape: ids (passages, n), and pairs (count, 2): the second passage follows the first in its document
    Raises: ValueError if no document has that many tokens, or n leaves no room between the marks.
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


def mean_cosine(found: Tensor, expected: Tensor) -> float:
    """Mean cosine of found unit vectors to the expected ones. Shape: two of (passages, d)."""
    return (found * expected).sum(dim=-1).mean().item()


def following_ranks(vectors: Tensor, pairs: Tensor) -> Tensor:
    """Search with the first passage of each pair among all others: at which rank is its second, from 1 on?

    Shape: unit vectors (passages, d), pairs (count, 2) -> (count,) of integers
    """
    likeness = (vectors @ vectors.mT).fill_diagonal_(-2.0)[pairs[:, 0]]  # nobody finds itself
    wanted = likeness.gather(1, pairs[:, 1:])
    return (likeness > wanted).sum(dim=1) + 1


class ChunkEncoder(nn.Module):
    """Exact attention within chunks: each is encoded by itself, and their unit vectors are averaged.

    Args:
        encoder: of single chunks.
        chunk: how many tokens of a text go into one at most, its own [CLS] and [SEP] not counted.
    """

    def __init__(self, encoder: SentenceEncoder, chunk: int):
        super().__init__()
        self.encoder, self.chunk = encoder, chunk

    def embed(self, ids: Tensor) -> Tensor:
        """Unit vectors of texts. Shape: ids (batch, n), [CLS] and [SEP] among them -> (batch, 384)"""
        vectors = torch.stack([self.encoder.embed(chunk) for chunk in chunks(ids, self.chunk)])
        return functional.normalize(vectors.mean(dim=0), dim=-1)


def retention(
    model: SentenceEncoder | ChunkEncoder, ids: Tensor, pairs: Tensor, expected: Tensor
) -> dict[str, float | list[int]]:
    """What a model keeps of the exact one's vectors.

    cosine: mean to the exact vectors. first: share of searches whose first find is right. reciprocal: mean
    of 1 / the rank at which the passage that follows is found. ranks: those, one a search.

    Shape: ids (passages, n), pairs (count, 2), expected (passages, 384)
    Raises: ValueError if there is no pair to search for.
    """
    if not len(pairs):
        raise ValueError("0 pairs of passages, expected at least 1")
    found = embed_all(model, ids)
    ranks = following_ranks(found, pairs)
    return {
        "cosine": mean_cosine(found, expected),
        "first": (ranks == 1).float().mean().item(),
        "reciprocal": (1 / ranks).mean().item(),
        "ranks": ranks.tolist(),
    }


class DistillationLoss:
    """How far a model is from the exact one, on the same passages: a loss for the Trainer.

    The mean over blocks of ‖x - x_teacher‖² / ‖x_teacher‖²: every block is asked to say what the teacher's
    says, so that the last does not have to make good for all (as in Sun et al. 2019, arXiv 1908.09355).

    Args: teacher: the exact model.
    Shape: ids (batch, n) -> ()
    """

    def __init__(self, teacher: SentenceEncoder):
        self.teacher = teacher.eval().requires_grad_(False)

    def __call__(self, model: SentenceEncoder, ids: Tensor) -> Tensor:
        """The loss of one batch."""
        with torch.no_grad():
            wanted = self.teacher.hidden(ids)
        return self.compare(model.hidden(ids), wanted)

    def compare(self, found: list[Tensor], wanted: list[Tensor]) -> Tensor:
        """The loss, from what the blocks of both say."""
        pairs = zip(found, wanted, strict=True)
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
    """Make a model like its teacher on some passages by changing some parameters; every loss on the way.

    The numbers of E and F themselves move at the rate, as those of the other weights do: what is learned here
    begins from trained weights.

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
    teacher.to(trainer.device)
    return [record["loss"] for record in trainer.train()]
