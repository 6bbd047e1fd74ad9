"""Texts shorter than seq_len: what makes up for tokens that E misses? Masked models learn at many lengths.

An update has texts of one length, drawn from LENGTHS; every length is judged in the end (chapter 06).
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from lab.experiment import BUILD, Experiment, every
from lab.training import LINFORMER, RATE, STEPS, TOKENS, tokens, vocabulary
from linformer_from_scratch.data import MaskedBatches
from linformer_from_scratch.data.batches import generator_of
from linformer_from_scratch.encoder import Encoder, MaskedLanguageModel
from linformer_from_scratch.heads import AttentionLayer
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import LearnedProjection, MeanPooling, Projection, start_at_windows
from linformer_from_scratch.training import Config, Trainer, masked_loss
from linformer_from_scratch.training.corpora import validation_batches

LENGTHS = (16, 32, 64, 128)
SEQ_LEN, SLOTS = LENGTHS[-1], LINFORMER.proj_dim
SEEDS = (0, 1, 2)
LARGEST = 10  # factor by which a slot is made larger: a window that the text does not reach stays empty
RUNS = BUILD / "mixed_lengths"


class Rescaled(LearnedProjection):
    """Each row of E times the size of all of it over that of what the text reaches (the norm)."""

    order = 2

    def forward(self, x: Tensor) -> Tensor:
        """Shape: (..., n, d) -> (..., proj_dim, d)."""
        both = self.weight, self.weight[:, : x.size(-2)]
        whole, reached = (some.norm(self.order, dim=-1, keepdim=True) for some in both)
        return super().forward(x) * (whole / reached.clamp(min=whole / LARGEST + 1e-9))


class RescaledBySum(Rescaled):
    """By the sum of its entries' sizes."""

    order = 1


class Louder(Projection):
    """Another E's slots times √(seq_len / n): given for keys alone, a temperature of the softmax."""

    commutes = True

    def __init__(self, E: Projection):
        super().__init__(E.seq_len, E.proj_dim)
        self.of = E

    def forward(self, x: Tensor) -> Tensor:
        """Shape: (..., n, d) -> (..., proj_dim, d)."""
        return self.of(x) * (self.seq_len / x.size(-2)) ** 0.5


class OwnWindows(Projection):
    """Windows of the text that comes, whatever its length: proj_dim means."""

    commutes = True

    def forward(self, x: Tensor) -> Tensor:
        """Shape: (..., n, d) -> (..., proj_dim, d)."""
        return MeanPooling(x.size(-2), self.proj_dim)(x)


MAKES: dict[str, Callable[..., Projection]] = {
    "nothing": LearnedProjection,
    "sum": RescaledBySum,
    "norm": Rescaled,
    "temperature": LearnedProjection,
    "fixed windows": MeanPooling,
    "windows of each text": OwnWindows,
    "one slot": lambda seq_len, proj_dim: MeanPooling(seq_len, 1),
}
CURES = [
    *every(start=("random", "windows"), cure=("nothing", "sum", "norm", "temperature")),
    *({"start": "fixed", "cure": cure} for cure in ("fixed windows", "windows of each text", "one slot")),
    {"start": "none", "cure": "exact attention"},
]


def layers(start: str, cure: str) -> list[AttentionLayer]:
    """Two layers; Linformer's share one E, for keys and values, as in chapter 08."""
    sizes = LINFORMER.d_model, LINFORMER.num_heads
    if cure not in MAKES:
        return [MultiHeadAttention(*sizes) for _ in range(2)]
    E = MAKES[cure](SEQ_LEN, SLOTS)
    if start == "windows" and isinstance(E, LearnedProjection):
        start_at_windows(E)
    return [LinformerAttention(*sizes, Louder(E) if cure == "temperature" else E, E) for _ in range(2)]


def train(start: str, cure: str, seed: int) -> dict:
    """Train one model; its held-out loss at each length, in nats per masked token."""
    learned, held = tokens()
    torch.manual_seed(seed)
    made = layers(start, cure)
    model = MaskedLanguageModel(Encoder(vocabulary().size, SEQ_LEN, LINFORMER.d_model, made, neighbours=1))
    some = [MaskedBatches(learned, n, TOKENS // n, vocabulary().size, seed) for n in LENGTHS]
    config = Config(STEPS, RATE, evaluate_every=STEPS // 4, seed=seed)
    folder = RUNS / f"{start} {cure} {seed}"
    trainer = Trainer(model, masked_loss, partial(drawn, some, seed), config, folder=folder)
    losses = [record["loss"] for record in trainer.train()]
    judged = {n: validation_batches(held, n, TOKENS // n, vocabulary().size) for n in LENGTHS}
    return {
        "losses": {str(n): round(trainer.evaluate(batches), 4) for n, batches in judged.items()},
        "training_loss": round(sum(losses[-100:]) / 100, 4),
    }


def drawn(some: list[MaskedBatches], seed: int, step: int) -> tuple[Tensor, Tensor]:
    """The batch of a step: of one length, drawn for the step."""
    i = torch.randint(len(some), (), generator=generator_of(seed + 7, step))
    return some[int(i)](step)


EXPERIMENTS = [
    Experiment("06_lengths", "cures for texts shorter than seq_len", CURES, train, SEEDS),
]
