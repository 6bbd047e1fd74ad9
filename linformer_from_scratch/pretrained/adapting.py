"""Fit an encoder to the exact one on texts of every length (chapter 12).

What is learned are low-rank updates of all weights (low_rank_updates.py), on pieces of real text.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.common.random_state import integers, seeded, uniform, use_rng_state
from linformer_from_scratch.pretrained import MAX_TOKENS, NUM_LAYERS, tokenize
from linformer_from_scratch.pretrained.capstone import DistillationLoss
from linformer_from_scratch.pretrained.low_rank_updates import add_updates
from linformer_from_scratch.pretrained.network import SentenceEncoder, pool
from linformer_from_scratch.training import Config, Trainer

CPU = torch.device("cpu")
TOKENS = 2048  # in an update
WHOLE = 0.3  # share of updates with texts of the greatest length; in the others any length is as likely


class Crops:
    """Pieces of documents, between [CLS] and [SEP]: batches for the Trainer.

    All texts of a batch have one length, drawn for the batch; together they have about TOKENS tokens.

    Args: texts: the documents. shortest, longest: in tokens, [CLS] and [SEP] included.
    Raises: ValueError if no document is long enough, or unless 2 <= shortest <= longest.
    """

    def __init__(self, texts: Iterable[str], shortest: int, longest: int = MAX_TOKENS):
        self.longest = longest = check_size("longest", longest, least=2)
        self.shortest = check_size("shortest", shortest, 2, longest)
        documents = [tokenize(text, max_tokens=None) for text in texts]
        self.first, self.last = documents[0][:1], documents[0][-1:]
        self.bodies = [ids[1:-1] for ids in documents]
        if max(map(len, self.bodies)) < longest - 2:
            raise ValueError(f"no document has {longest} tokens, the longest has {max(map(len, documents))}")

    def __call__(self, step: int) -> tuple[Tensor]:
        """The batch of one update: ids (texts, n), the same for the same step."""
        random = torch.Generator().manual_seed(step)
        whole = uniform(random) < WHOLE
        drawn = integers(random, self.shortest, self.longest + 1)
        n = self.longest if whole else int(drawn)
        return (torch.stack([self._piece(n, random) for _ in range(max(1, TOKENS // n))]),)

    def _piece(self, n: int, random: torch.Generator) -> Tensor:
        """n tokens; every place of every document is equally likely."""
        places = [max(0.0, len(body) - (n - 2) + 1) for body in self.bodies]
        weights = torch.tensor(places, dtype=torch.float32, device="cpu")
        body = self.bodies[torch.multinomial(weights, 1, generator=random)]
        start = int(integers(random, 0, len(body) - (n - 2) + 1))
        return torch.cat([self.first, body[start : start + n - 2], self.last])


class VectorLoss(DistillationLoss):
    """DistillationLoss of the blocks, plus 1 - the mean cosine of the texts' vectors to the teacher's.

    Args:
        teacher: the exact model.
        blocks: which ones are compared, counted from 0; by default all.

    Shape: ids (batch, n) -> ()
    """

    def __init__(self, teacher: SentenceEncoder, blocks: Sequence[int] = range(NUM_LAYERS)):
        super().__init__(teacher)
        self.blocks = blocks

    def compare(self, hidden: list[Tensor], wanted: list[Tensor]) -> Tensor:
        """The sum of the two terms, from the outputs of the blocks of both."""
        hidden, wanted = ([outputs[i].float() for i in self.blocks] for outputs in (hidden, wanted))
        cosine = (pool(hidden[-1]) * pool(wanted[-1])).sum(dim=-1).mean()
        return super().compare(hidden, wanted) + 1 - cosine


def adapt(
    model: nn.Module,
    loss: Callable[..., Tensor],
    batches: Callable[[int], tuple[Tensor, ...]],
    rank: int,
    config: Config,
    folder: str | Path | None = None,
) -> list[float]:
    """Fit a model by updates of rank `rank`; return the loss of every update.

    On a GPU made for bfloat16 it computes in that, as the Trainer does; what is learned is float32. With a
    folder, a run that was stopped continues where it was.

    Args: loss, batches: as the Trainer takes them, such as VectorLoss and Crops.
    """
    with use_rng_state(seeded(config.seed, CPU), CPU):
        add_updates(model, rank)
    trainer = Trainer(model, loss, batches, config, folder=folder)
    return [record["loss"] for record in trainer.train()]
