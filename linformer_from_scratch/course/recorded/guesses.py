"""What chapter 08's three models said of the same masks while they trained: 08_guesses, in words."""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from linformer_from_scratch.course.recorded import read_rows
from linformer_from_scratch.data import IGNORE, MASK, SubwordVocabulary, docstrings
from linformer_from_scratch.training.corpora import streams, validation_batches, vocabulary_for

NAMES = {"full": "Transformer", "linformer": "Linformer", "none": "no attention"}
N, BATCH, VOCABULARY = 128, 16, 1000  # of the recorded runs; the first batch is recorded whole
NUMBERS = "①②③④⑤⑥⑦⑧⑨"


class Guess(NamedTuple):
    """A model's likeliest token for a mask, per cent for it, and whether it is right."""

    token: str
    percent: int
    right: bool


def watched() -> dict[str, dict]:
    """The recorded run of each model, by its name in pictures."""
    rows = {row["attention"]: row for row in read_rows("08_guesses")}
    return {name: rows[attention] for attention, name in NAMES.items()}


class MaskedText:
    """One of the first 16 held-out texts, and what the models said of its masks.

    Args: piece: which text, from 0.
    Attributes: answers: of the masks, in their order.
    Raises: ValueError if there is no such text.
    """

    def __init__(self, piece: int):
        if not 0 <= piece < BATCH:
            raise ValueError(f"piece is {piece}, expected 0 to {BATCH - 1}")
        inputs, targets = _batch()
        hidden = (inputs == MASK) & (targets != IGNORE)
        self.ids, places = inputs[piece].tolist(), hidden[piece]
        self.places = places.nonzero().flatten().tolist()
        self.answers = [spelled(i) for i in targets[piece][places].tolist()]
        self.first = int(hidden[:piece].sum())  # of its masks among those of the batch

    def shown(self, numbered: Sequence[int] = (), until: int = N) -> str:
        """The first tokens as a model sees them: a ▢ for each mask, and numbers for some of them."""
        mark = {self.places[mask]: NUMBERS[i] for i, mask in enumerate(numbered)}
        ids = enumerate(self.ids[:until])
        return "".join(mark.get(at, "▢") if i == MASK else _vocabulary().decode([i]) for at, i in ids)

    def guesses(self, mask: int, moments: Sequence[int]) -> dict[str, list[Guess]]:
        """What each model took for likeliest after so many updates, each a recorded moment."""
        found: dict[str, list[Guess]] = {}
        for name, row in watched().items():
            recorded = dict(row["guesses"])
            likeliest = [recorded[moment][self.first + mask][1] for moment in moments]
            said = [(spelled(token), percent) for token, percent in likeliest]
            found[name] = [Guess(token, share, token == self.answers[mask]) for token, share in said]
        return found


def spelled(token: int) -> str:
    """A token in quotes, with a sign for a line's end."""
    return "“" + _vocabulary().decode([token]).replace("\n", "⏎") + "”"


@cache
def _vocabulary() -> SubwordVocabulary:
    made = vocabulary_for(docstrings(), VOCABULARY)
    assert isinstance(made, SubwordVocabulary)
    return made


@cache
def _batch() -> tuple[Tensor, Tensor]:
    """The inputs and targets of which guesses are recorded, on the CPU."""
    _, held = streams(docstrings(), _vocabulary())
    with torch.device("cpu"):
        return validation_batches(held, N, BATCH, VOCABULARY)[0]
