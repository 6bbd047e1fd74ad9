"""Widget 1: what one token of a real sentence reads from the others, in one head of a pretrained model."""

import math

import torch
from ipywidgets import FloatLogSlider

from linformer_from_scratch.attention import attention_entropy
from linformer_from_scratch.plots import INK, KEY, QUERY
from linformer_from_scratch.widgets.canvas import Card, shorten, swing, text_width, tint
from linformer_from_scratch.widgets.sentence import LABEL, SentenceExplorer, cell_size, draw_map, token_size

MAP = 364  # side of the map where the tokens leave it room
TOP, BOTTOM = 108, 36  # above and below the map
BARS, KEYS, LEFT = 60, 172, 562  # x of the end of a bar of weight 1, of the keys, of the map
PRINTED = 0.05  # weights from here on have their number printed


class AttentionExplorer(SentenceExplorer):
    """Pick a query token, a layer and a head; see the weights, the map they are one row of, and the entropy.

    Temperature T shows softmax(scores / T): at 1 the head as it is, below sharper, above flatter.

    Args:
        sentence: what it opens with; the first preset if None.

    Attributes:
        map: the chosen head's map at the chosen temperature, (n, n).
    """

    def __init__(self, sentence: str | None = None):
        self.temperature = FloatLogSlider(
            1, min=-1, max=1, step=0.05, description="Temperature", readout_format=".2f"
        )
        super().__init__(sentence, [self.temperature])

    @property
    def weights(self) -> torch.Tensor:
        """What the query token reads from each key, (n,)."""
        return self.map[self.query.value]

    @property
    def entropy(self) -> float:
        """Entropy of the weights in bits."""
        return attention_entropy(self.weights).item()

    def draw(self):
        """See `Explorer.draw`."""
        self.read_sentence()
        self.map = reheat(self.heads[self.head.value - 1], self.temperature.value)
        n = len(self.tokens)
        pitch = cell_size(n, MAP)
        card = Card(round(LEFT + n * pitch + 40), round(TOP + n * pitch + BOTTOM))
        card.text(16, 22, f"Layer {self.layer.value} · head {self.head.value}", 17, bold=True)
        card.text(16, 48, f"temperature {self.temperature.value:.2f}")
        draw_weights(card, pitch, self.tokens, self.weights.tolist(), self.query.value)
        draw_map(card, LEFT, TOP, pitch, self.tokens, self.map, self.query.value)
        return card.image, self._numbers()

    def _numbers(self) -> str:
        strongest = int(self.weights.argmax())
        n = len(self.tokens)
        return (
            f"“{self.tokens[self.query.value]}” reads “{self.tokens[strongest]}” most: "
            f"weight {self.weights[strongest]:.2f}. "
            f"Entropy {self.entropy:.2f} bits of at most log₂ {n} = {math.log2(n):.2f}."
        )


def reheat(weights: torch.Tensor, temperature: float) -> torch.Tensor:
    """The weights that the same scores give at another temperature.

    softmax(log P / T) = softmax(scores / T), since log P differs from the scores by a constant in each row.
    """
    return (weights.log() / temperature).softmax(dim=-1)


def draw_weights(card: Card, pitch: float, tokens: list[str], weights: list[float], query: int) -> None:
    """Bars, keys, and a line from each key to the query token, as thick and as dark as its weight."""
    size = token_size(pitch)
    words = [shorten(token, size, LABEL) for token in tokens]
    middles = [TOP + (i + 0.5) * pitch for i in range(len(tokens))]
    draw_lines(card, size, words, weights, middles, query)
    card.text(KEYS - 8, TOP - 14, "weight", 14, KEY, "rm")
    card.text(KEYS, TOP - 14, "keys ↓", 14, KEY)
    for word, weight, y in zip(words, weights, middles, strict=True):
        most = weight == max(weights)
        card.text(KEYS, y, word, size, KEY if most else INK, bold=most)
        bar = KEYS - 8 - (KEYS - 8 - BARS) * weight
        card.box((bar, y - 0.3 * pitch, KEYS - 8, y + 0.3 * pitch), fill=KEY)
        if weight >= PRINTED:
            card.text(bar - 6, y, f"{weight:.2f}", size, anchor="rm")


def draw_lines(
    card: Card, size: float, words: list[str], weights: list[float], middles: list[float], query: int
) -> None:
    """A line from each key to the query token, the heaviest on top."""
    x, y = LEFT - 18 - text_width(words[query], size, bold=True), middles[query]
    lines = []
    for i in sorted(range(len(words)), key=weights.__getitem__):
        start = KEYS + 8 + text_width(words[i], size, weights[i] == max(weights)), middles[i]
        lines.append((swing(start, (x, y)), tint(KEY, 0.15 + 0.85 * weights[i] ** 0.5), 1 + 11 * weights[i]))
    card.lines((KEYS, TOP, LEFT, middles[-1] + middles[0] - TOP), lines)
    card.box((x - 3, y - 3, x + 3, y + 3), fill=QUERY)
