"""Widget 1b: all heads of one layer of a pretrained model side by side, on a sentence the learner types."""

import math

import torch

from linformer_from_scratch.attention import attention_entropy
from linformer_from_scratch.plots import EDGE, INK
from linformer_from_scratch.pretrained import NUM_HEADS
from linformer_from_scratch.widgets.canvas import Card
from linformer_from_scratch.widgets.sentence import SentenceExplorer, cell_size, draw_map, outline_row

COLUMNS, SMALL, STEP = 4, 112, (134, 148)  # small maps: how many in a row, side, distances
MAP, LEFT, TOP, BOTTOM = 350, 664, 108, 36  # the large map: side, place, room below
SMALL_LEFT, SMALL_TOP = 18, 62
RESTS = ("[CLS]", "[SEP]")
CHOSEN = "#E9EDF3"  # behind the small map that is enlarged


class HeadGallery(SentenceExplorer):
    """Twelve heads on one sentence: small maps of a layer, one of them enlarged, one query's row outlined.

    Args:
        sentence: what it opens with; the first preset if None.

    Attributes:
        entropies: mean entropy of each head's rows in bits, 12 numbers.
    """

    @property
    def map(self) -> torch.Tensor:
        """The chosen head's map, (n, n)."""
        return self.heads[self.head.value - 1]

    @property
    def shares(self) -> dict[str, float]:
        """What a token of the chosen head gives on average to neighbours, itself, and [CLS] and [SEP]."""
        rests = [i for i, token in enumerate(self.tokens) if token in RESTS]
        return {
            "the previous token": self.map.diagonal(-1).mean().item(),
            "itself": self.map.diagonal().mean().item(),
            "the next token": self.map.diagonal(1).mean().item(),
            "[CLS] and [SEP]": self.map[:, rests].sum(dim=-1).mean().item(),
        }

    def draw(self):
        """See `Explorer.draw`."""
        self.read_sentence()
        self.entropies = attention_entropy(self.heads).mean(dim=-1).tolist()
        n = len(self.tokens)
        pitch = cell_size(n, MAP)
        bottom = max(TOP + n * pitch + BOTTOM, SMALL_TOP + 3 * STEP[1])
        card = Card(round(LEFT + n * pitch + 40), round(bottom))
        card.text(SMALL_LEFT, 22, f"Layer {self.layer.value}, all heads", 17, bold=True)
        card.text(LEFT - 104, 22, f"Head {self.head.value}", 17, bold=True)
        for i in range(NUM_HEADS):
            row, column = divmod(i, COLUMNS)
            self._draw_small(card, SMALL_LEFT + column * STEP[0], SMALL_TOP + row * STEP[1], i)
        draw_map(card, LEFT, TOP, pitch, self.tokens, self.map, self.query.value)
        return card.image, self._numbers()

    def _draw_small(self, card: Card, x: float, y: float, i: int) -> None:
        chosen = i + 1 == self.head.value
        if chosen:
            card.box((x - 8, y - 24, x + SMALL + 8, y + SMALL + 8), fill=CHOSEN, outline=INK, width=2)
        card.text(x, y - 11, f"head {i + 1}", 14, bold=chosen)
        card.text(x + SMALL, y - 11, f"{self.entropies[i]:.1f} bits", 13, anchor="rm")
        card.heatmap((x, y, x + SMALL, y + SMALL), self.heads[i])
        card.box((x, y, x + SMALL, y + SMALL), outline=EDGE)
        outline_row(card, x, y, SMALL, self.query.value, len(self.tokens), width=1.5)

    def _numbers(self) -> str:
        layer, head, query = self.layer.value, self.head.value, self.query.value
        strongest = int(self.map[query].argmax())
        shares = ", ".join(f"{share:.0%} to {where}" for where, share in self.shares.items())
        return (
            f"Layer {layer}, head {head}: “{self.tokens[query]}” reads “{self.tokens[strongest]}” most, "
            f"weight {self.map[query, strongest]:.2f}. Mean entropy {self.entropies[head - 1]:.2f} bits "
            f"of at most {math.log2(len(self.tokens)):.2f}. On average a token gives {shares}."
        )
