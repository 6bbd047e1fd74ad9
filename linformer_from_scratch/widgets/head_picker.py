"""Widget 4: how many directions each head of the pretrained model needs, on real text."""

from functools import cache

import torch
from ipywidgets import Dropdown, FloatSlider, IntSlider
from torch import Tensor

from linformer_from_scratch.data import documents
from linformer_from_scratch.low_rank import (
    cumulative_spectrum,
    identity_map,
    rank_at,
    singular_values,
    softmax_map,
    stable_rank,
)
from linformer_from_scratch.plots import EDGE, GREY, INK, KEY, QUERY, VALUE
from linformer_from_scratch.pretrained import (
    NUM_HEADS,
    NUM_LAYERS,
    PretrainedMissing,
    attention_maps,
    encode,
    random_weights,
    tokenize,
)
from linformer_from_scratch.widgets.canvas import Card, tint
from linformer_from_scratch.widgets.explorer import CannotDraw, Explorer

N = 256  # tokens
CELL, GRID_LEFT, GRID_TOP = (31, 30), 50, 90  # of the table of heads, CSS pixels
MAP, MAP_LEFT, MAP_TOP = 256, 450, 66
PLOT = (772, 66, 982, 322)  # of the cumulative spectra
TEXTS = 6  # documents to choose from


class HeadPicker(Explorer):
    """Rank at a threshold for every head; one head's map and its cumulative spectrum against baselines.

    Attributes:
        ranks: (layers, heads), how many singular values make up the threshold's share of their sum.
        map: the chosen head's map, (n, n).
        spectra: name -> cumulative spectrum (n,) of what is drawn.
    """

    def __init__(self):
        self.text = Dropdown(options=list(long_documents()), description="Text")
        self.share = FloatSlider(0.9, min=0.5, max=0.99, step=0.01, description="Threshold")
        self.layer = IntSlider(2, 1, NUM_LAYERS, description="Layer")
        self.head = IntSlider(1, 1, NUM_HEADS, description="Head")
        super().__init__([self.text, self.share, self.layer, self.head])

    def draw(self):
        """See `Explorer.draw`."""
        maps, sigma, untrained = analysed(self.text.value)
        layer, head = self.layer.value - 1, self.head.value - 1
        self.ranks = rank_at(sigma, self.share.value)
        self.map, self.sigma = maps[layer, head], sigma[layer, head]
        self.spectra = {
            "this head": cumulative_spectrum(self.sigma),
            "untrained": cumulative_spectrum(untrained[layer, head]),
            "random softmax": baseline(softmax_map),
            "identity": baseline(identity_map),
        }
        card = Card(1006, 434)
        self._draw_heads(card)
        card.text(MAP_LEFT, 24, f"Layer {layer + 1}, head {head + 1}", 17, bold=True)
        card.text(MAP_LEFT, 48, "queries down, keys across", 14, GREY)
        strongest = max(0.05, self.map.quantile(0.999).item())
        box = (MAP_LEFT, MAP_TOP, MAP_LEFT + MAP, MAP_TOP + MAP)
        card.heatmap(box, self.map, (0, strongest))
        card.box(box, outline=EDGE)
        card.text(MAP_LEFT, MAP_TOP + MAP + 18, f"darkest: weights from {strongest:.2f}", 14, GREY)
        self._draw_spectra(card)
        return card.image, self._numbers()

    def _draw_heads(self, card: Card) -> None:
        card.text(14, 24, f"How many σ make up {self.share.value:.0%} of their sum", 17, bold=True)
        card.text(14, 48, f"layers down, heads across; {N} would be all", 14, GREY)
        width, height = CELL
        for head in range(NUM_HEADS):
            card.text(GRID_LEFT + (head + 0.5) * width, GRID_TOP - 14, str(head + 1), 14, anchor="mm")
        for layer, ranks in enumerate(self.ranks.tolist()):
            y = GRID_TOP + layer * height
            card.text(GRID_LEFT - 8, y + height / 2, str(layer + 1), 14, anchor="rm")
            for head, rank in enumerate(ranks):
                x = GRID_LEFT + head * width
                card.box((x, y, x + width, y + height), fill=tint(QUERY, rank / N), outline=EDGE)
                colour = "white" if rank > 0.6 * N else INK
                card.text(x + width / 2, y + height / 2, str(rank), 14, colour, "mm")
        x, y = GRID_LEFT + (self.head.value - 1) * width, GRID_TOP + (self.layer.value - 1) * height
        card.box((x - 1, y - 1, x + width + 1, y + height + 1), outline=KEY, width=3)

    def _draw_spectra(self, card: Card) -> None:
        left, top, right, bottom = PLOT
        card.text(left - 46, 24, "Sum of the first r", 17, bold=True)
        card.text(left - 46, 48, "share of the sum of all", 14, GREY)
        styles = {
            "this head": (QUERY, 3),
            "untrained": (VALUE, 2),
            "random softmax": (KEY, 2),
            "identity": (GREY, 2),
        }
        lines = []
        for share in (0, 0.5, 1):
            y = bottom - share * (bottom - top)
            lines.append(([(left, y), (right, y)], EDGE, 1))
            card.text(left - 8, y, f"{share:.0%}", 14, anchor="rm")
        x = torch.linspace(left, right, N + 1)
        for name, (colour, width) in styles.items():
            sums = bottom - torch.cat([torch.zeros(1), self.spectra[name]]) * (bottom - top)
            lines.append((torch.stack([x, sums], dim=1).tolist(), colour, width))
        y = bottom - self.share.value * (bottom - top)
        lines.append(([(left, y), (right, y)], INK, 1))
        card.lines((left, top - 4, right, bottom + 2), lines)
        for r in (0, N // 2, N):
            card.text(left + r / N * (right - left), bottom + 16, str(r), 14, anchor="mm")
        card.text((left + right) / 2, bottom + 36, "r", 14, GREY, "mm")
        for i, (name, (colour, _)) in enumerate(styles.items()):
            row, column = divmod(i, 2)
            card.text(left - 46 + 148 * column, bottom + 62 + 22 * row, name, 15, colour, bold=True)

    def _numbers(self) -> str:
        layer, head = self.layer.value, self.head.value
        rank, share = self.ranks[layer - 1, head - 1].item(), self.share.value
        means = ", ".join(f"{mean:.0f}" for mean in self.ranks.float().mean(dim=1).tolist())
        others = ", ".join(
            f"{name} {1 + int((spectrum[:-1] < share).sum())}"
            for name, spectrum in self.spectra.items()
            if name != "this head"
        )
        return (
            f"Layer {layer}, head {head}: {rank} of {N} singular values make up {share:.0%} of their sum "
            f"({others}); stable rank {stable_rank(self.sigma):.1f}. Mean over the heads of layers 1 to "
            f"{NUM_LAYERS}: {means}; smallest {self.ranks.min()}, largest {self.ranks.max()}."
        )


@cache
def long_documents() -> dict[str, str]:
    """The first shipped documents with at least N tokens: title -> text."""
    long = ((title, text) for title, text in documents().items() if len(text) > 6 * N)
    return dict(pair for pair, _ in zip(long, range(TEXTS), strict=False))


@cache
def analysed(title: str) -> tuple[Tensor, Tensor, Tensor]:
    """Maps (layers, heads, n, n) of a document, their singular values, and those of the untrained network.

    Raises: CannotDraw if the pretrained model is missing.
    """
    text = long_documents()[title]
    try:
        maps = attention_maps(text, N).weights
        untrained = encode(tokenize(text, N), random_weights(seed=0)).weights
    except PretrainedMissing as missing:
        raise CannotDraw(f"This picture needs the pretrained model: {missing}") from missing
    return maps, singular_values(maps), singular_values(untrained)


@cache
def baseline(make) -> Tensor:
    """Cumulative spectrum of a map to compare with, (n,)."""
    return cumulative_spectrum(singular_values(make(N, torch.Generator().manual_seed(0))))
