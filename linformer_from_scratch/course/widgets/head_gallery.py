"""Widget 1b: all heads of a layer of a pretrained model side by side. Drawn by head_gallery.js."""

import math

from torch import Tensor

from linformer_from_scratch.attention import attention_entropy
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.sentence import RESTS, SentenceWidget
from linformer_from_scratch.pretrained import NUM_HEADS

COLUMNS = 4  # of the small maps in the still


class HeadGallery(SentenceWidget):
    """Twelve heads on one sentence: small maps of a layer, one of them enlarged, one query's row outlined."""

    title = "Twelve heads on one sentence"

    @property
    def entropies(self) -> Tensor:
        """Mean entropy of each head's rows in bits, (layers, heads)."""
        return attention_entropy(self.maps).mean(dim=-1)

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

    def _words(self) -> str:
        layer, head, tokens = self.layer, self.head, self.tokens
        shares = ", ".join(f"{share:.0%} to {where}" for where, share in self.shares.items())
        return (
            f"Layer {layer}, head {head}: “{tokens[self.place]}” attends to “{tokens[self.strongest]}” most, "
            f"weight {self.weights.max():.2f}. Mean entropy {self.entropies[layer - 1, head - 1]:.2f} bits "
            f"of at most {math.log2(len(tokens)):.2f}. On average a token gives {shares}."
        )

    def _figure(self) -> stills.Figure:
        small = [f"head {head}" for head in range(1, NUM_HEADS + 1)]
        layout = [small[i : i + COLUMNS] + ["large"] * COLUMNS for i in range(0, NUM_HEADS, COLUMNS)]
        bits = self.entropies[self.layer - 1]
        shown = {
            name: stills.heat_map(values, f"{name} · {of:.1f} bits", 1, note="", query=self.place)
            for name, values, of in zip(small, self.maps[self.layer - 1], bits, strict=True)
        }
        title = f"Layer {self.layer}, head {self.head}"
        shown["large"] = stills.heat_map(self.map, title, 1, tokens=self.tokens, query=self.place)
        return stills.board(layout, shown, (14, 6.2))
