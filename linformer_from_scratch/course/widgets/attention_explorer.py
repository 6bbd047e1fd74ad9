"""Widget 1: what one token of a real sentence attends to. Drawn by attention_explorer.js."""

import torch
from torch import Tensor

from linformer_from_scratch.attention import attention_entropy
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.live import Number
from linformer_from_scratch.course.widgets.sentence import RESTS, SentenceWidget


class AttentionExplorer(SentenceWidget):
    """Pick a query token, a layer and a head; see the weights, the map they are one row of, and the entropy.

    Temperature T shows softmax(scores / T): at 1 the head as it is, below sharper, above flatter.
    """

    title = "What one token attends to"
    controls = ("sentence", "query", "temperature", "layer", "head")

    temperature = Number(1.0, min=0.1, max=10.0).tag(sync=True)

    @property
    def map(self) -> Tensor:
        """The chosen head's at the chosen temperature, (n, n)."""
        return reheat(super().map, self.temperature)

    @property
    def entropy(self) -> float:
        """Entropy of the weights in bits."""
        return attention_entropy(self.weights).item()

    @property
    def elsewhere(self) -> Tensor:
        """The largest weight that the query token gives to another word in each head, (layers, heads).

        Not counted are itself, [CLS] and [SEP]; at temperature 1.
        """
        rests = [i for i, token in enumerate(self.tokens) if token in RESTS or i == self.place]
        return self.maps[..., self.place, :].index_fill(-1, torch.tensor(rests), 0).amax(dim=-1)

    def _words(self) -> str:
        n, tokens = len(self.tokens), self.tokens
        return (
            f"“{tokens[self.place]}” attends to “{tokens[self.strongest]}” most: "
            f"weight {self.weights.max():.2f}. "
            f"Its attention is as spread out as if {2**self.entropy:.1f} of the {n} tokens shared it equally."
        )

    def _figure(self) -> stills.Figure:
        heat = "" if self.temperature == 1 else f", temperature {self.temperature:.2f}"
        title = f"Layer {self.layer}, head {self.head}{heat}: what “{self.tokens[self.place]}” attends to"
        reading = stills.reading(self.tokens, self.map, self.place, title)
        return stills.board([["reading"]], {"reading": reading}, (10.5, 5.7))


def reheat(weights: Tensor, temperature: float) -> Tensor:
    """The weights that the same scores give at another temperature.

    softmax(log P / T) = softmax(scores / T), since log P differs from the scores by a constant in each row.
    """
    return (weights.log() / temperature).softmax(dim=-1)
