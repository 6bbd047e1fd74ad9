"""A causal Transformer and a Linformer of bytes that learn to write. Drawn by training_explorer.js."""

import math
import re
from functools import cache, lru_cache
from typing import NamedTuple

import torch
import traitlets
from matplotlib.figure import Figure
from torch import Tensor, nn

from linformer_from_scratch.common.random_state import seeded, use_rng_state
from linformer_from_scratch.course import plots
from linformer_from_scratch.course.widgets.live import LiveWidget, packed, source
from linformer_from_scratch.data import ByteVocabulary, docstrings
from linformer_from_scratch.data.vocabulary import SPECIAL
from linformer_from_scratch.encoder import Encoder, MaskedLanguageModel, with_sinusoids
from linformer_from_scratch.limits import next_token_loss, written_loss
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import LearnedProjection, start_at_windows
from linformer_from_scratch.training.corpora import streams

N, D_MODEL, SLOTS = 32, 32, 16  # bytes of a text, features of each, and slots that stand for them
BYTES, UNSEEN = 40_000, 16  # of docstrings to learn from; texts that are kept apart
BATCH, STRIDE = 16, 24_733  # texts in a batch; bytes from one to the next, around and around
RATE, SEED = 0.01, 8  # of Adam; of the weights
GIVEN = (8, 16, 24)  # bytes of an unseen text that are there when the rest isn't yet
EVERY, LEARNED = 5, 100  # updates from one measurement to the next; of the still picture
COUNT, SEES = 40, 24  # bytes that are written, and the last ones that a model then sees
CAUSAL, LINFORMER = "Transformer", "Linformer"
GUESS = math.log(256)  # loss of a blind one


class Learned(NamedTuple):
    """Both models after some updates, and their losses on the way, by name.

    losses: before each update, on its own texts. there, yet: on unseen texts, before the first update and
    after every few: with the whole text in sight, and with its beginning alone.
    """

    models: dict[str, nn.Module]
    losses: dict[str, list[float]]
    there: dict[str, list[float]]
    yet: dict[str, list[float]]


class TrainingExplorer(LiveWidget):
    """Two models learn docstrings while one watches, and write on: one looks back, the other one peeks.

    Attributes:
        begun: what they write on.
        updates: what a reader does in the browser, a multiple of EVERY.
    """

    title = "One learns to write, the other to peek"
    controls = ("begun",)
    helpers = ("errors",)
    updates = 0

    begun = traitlets.Unicode("Return the ").tag(sync=True)

    def __init__(self, **start):
        facts = {"n": N, "slots": SLOTS, "batch": BATCH, "stride": STRIDE, "rate": RATE, "given": GIVEN}
        facts |= {"every": EVERY, "count": COUNT, "sees": SEES, "special": len(SPECIAL), "guess": GUESS}
        facts |= {"there": learned(0).there, "yet": learned(0).yet}
        facts["program"] = "\n".join(map(source, ("maths", "learn", "backwards", "pupils")))
        train, unseen = (packed(ids, "uint8") for ids in texts())
        weights = {name: packed(weight, "float16") for name, weight in begin().items()}
        super().__init__(facts, {"train": train, "unseen": unseen} | weights, **start)

    @property
    def there(self) -> dict[str, list[float]]:
        """See `Learned`."""
        return learned(self.updates).there

    @property
    def yet(self) -> dict[str, list[float]]:
        """See `Learned`."""
        return learned(self.updates).yet

    def _words(self) -> str:
        when = f"After {self.updates} updates" if self.updates else "Before learning"
        there, yet = ([losses[name][-1] for name in (LINFORMER, CAUSAL)] for losses in (self.there, self.yet))
        return (
            f"{when}: where the text is there, the Linformer's loss is {there[0]:.2f} and the "
            f"Transformer's {there[1]:.2f}; where it isn't yet, {yet[0]:.2f} and {yet[1]:.2f}. "
            f"A blind guess has {GUESS:.2f}."
        )

    def _figure(self) -> Figure:
        at, found = range(0, LEARNED + 1, EVERY), learned(LEARNED)
        both = {"sees all": found.there, "start only": found.yet}
        runs = {f"{name}, {when}": (at, both[when][name]) for name in found.models for when in both}
        title = f"{LEARNED} updates: the whole text is in sight, or only its start"
        return plots.learning_curves(runs, "loss of the next byte, nats", title, {"a blind guess": GUESS})


@cache
def texts() -> tuple[Tensor, Tensor]:
    """Tokens to learn from, (BYTES,), and unseen texts, (UNSEEN, N + 1), of lines without their indents."""
    plain = {title: re.sub(r"\s*\n\s*", "\n", text) for title, text in docstrings().items()}
    train, held = streams(plain, ByteVocabulary())
    return train[:BYTES], held.unfold(0, N + 1, N + 1)[:UNSEEN]


def batch(t: int) -> Tensor:
    """The texts of update t, (BATCH, N + 1)."""
    windows = texts()[0].unfold(0, N + 1, 1)
    return windows[torch.arange(t * BATCH, (t + 1) * BATCH) * STRIDE % len(windows)]


def untrained(name: str) -> nn.Module:
    """A model with one block of one head, in double precision."""
    if name == CAUSAL:
        attention: nn.Module = MultiHeadAttention(D_MODEL, 1, causal=True)
    else:
        E, F = (start_at_windows(LearnedProjection(N, SLOTS)) for _ in "EF")
        attention = LinformerAttention(D_MODEL, 1, E, F)
    return MaskedLanguageModel(with_sinusoids(Encoder(ByteVocabulary.size, N, D_MODEL, [attention]))).double()


@cache
def begin() -> dict[str, Tensor]:
    """Weights that both begin with, in half precision; the Transformer has neither E nor F."""
    cpu = torch.device("cpu")
    with use_rng_state(seeded(SEED, cpu), cpu):
        return {name: weight.detach().half() for name, weight in untrained(LINFORMER).named_parameters()}


@lru_cache(maxsize=8)
def learned(updates: int) -> Learned:
    """Both models after so many updates of Adam."""
    found = Learned({}, {}, {}, {})
    for name in (CAUSAL, LINFORMER):
        with torch.random.fork_rng(devices=()):  # what is drawn here is replaced
            model = found.models[name] = untrained(name)
        model.load_state_dict(begin(), strict=False)
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
