"""Two small models of bytes, one causal and one Linformer, that learn to write. Drawn by training_explorer.js."""

import math
from functools import cache, lru_cache
from typing import NamedTuple

import torch
import traitlets
from torch import Tensor, nn

from linformer_from_scratch.common.random_state import seeded, use_rng_state
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.live import LiveWidget, packed, source
from linformer_from_scratch.data import ByteVocabulary, docstrings
from linformer_from_scratch.encoder import Encoder, MaskedLanguageModel, with_sinusoids
from linformer_from_scratch.limits import next_token_loss, written_loss
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import LearnedProjection, start_at_windows
from linformer_from_scratch.training.corpora import streams

N, D_MODEL, SLOTS, BATCH, RATE = 32, 32, 16, 16, 0.01  # bytes of a text, …; of Adam
BYTES, UNSEEN = 40_000, 32  # of docstrings to learn from; texts that are kept apart
STRIDE = 24_733  # bytes from a text of a batch to the next, around and around
GIVEN = (4, 8, 16, 24, 31)  # bytes of an unseen text that isn't there yet
EVERY, LEARNED = 5, 150  # updates from one measurement to the next; of the still picture
CAUSAL, LINFORMER = "looks backwards", "Linformer"
GUESS = math.log(256)


class Learned(NamedTuple):
    """The models after some updates, and what was measured on the way, by model.

    losses: of every update, before it. there, yet: of unseen texts, at first and after every few updates:
    with the whole text in sight, and with its beginning alone.
    """

    models: dict[str, nn.Module]
    losses: dict[str, list[float]]
    there: dict[str, list[float]]
    yet: dict[str, list[float]]


def untrained(name: str) -> nn.Module:
    """A model with one block of one head, in double precision, with the weights that both begin with."""
    E, F = (start_at_windows(LearnedProjection(N, SLOTS)) for _ in "EF")
    causal = MultiHeadAttention(D_MODEL, 1, causal=True)
    attention = causal if name == CAUSAL else LinformerAttention(D_MODEL, 1, E, F)
    encoder = with_sinusoids(Encoder(ByteVocabulary.size, N, D_MODEL, [attention]))
    return MaskedLanguageModel(encoder).double()


@cache
def start() -> dict[str, Tensor]:
    """The weights before learning, in half precision; the causal model has neither E nor F."""
    with use_rng_state(seeded(4, torch.device("cpu")), torch.device("cpu")):
        return {name: one.half() for name, one in untrained(LINFORMER).state_dict().items()}


@cache
def texts() -> tuple[Tensor, Tensor]:
    """Tokens to learn from, (BYTES,), and unseen texts, (UNSEEN, N + 1)."""
    train, held = streams(docstrings(), ByteVocabulary())
    return train[:BYTES], held.unfold(0, N + 1, N + 1)[:UNSEEN]


def batch(t: int) -> Tensor:
    """The texts of update t, (BATCH, N + 1)."""
    windows = texts()[0].unfold(0, N + 1, 1)
    return windows[torch.arange(t * BATCH, (t + 1) * BATCH) * STRIDE % len(windows)]


@lru_cache(maxsize=8)
def learned(updates: int) -> Learned:
    """Both models after so many updates of Adam."""
    found = Learned({}, {}, {}, {})
    for name in (CAUSAL, LINFORMER):
        model = found.models[name] = untrained(name)
        model.load_state_dict(start(), strict=name == LINFORMER)
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        losses, there, yet = (part.setdefault(name, []) for part in found[1:])
        for t in range(updates + 1):
            if t % EVERY == 0:
                with torch.no_grad():
                    there.append(next_token_loss(model, texts()[1]).item())
                yet.append(written_loss(model, texts()[1], GIVEN))
            if t < updates:
                optimizer.zero_grad()
                loss = next_token_loss(model, batch(t))
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
    return found
