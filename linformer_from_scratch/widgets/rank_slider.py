"""Widget 3: a map rebuilt from its first r singular values, beside what is lost."""

from functools import cache

import torch
from ipywidgets import Dropdown, FloatLogSlider, IntSlider
from torch import Tensor

from linformer_from_scratch.data import documents
from linformer_from_scratch.low_rank import (
    decompose,
    entropy_rank,
    frobenius_error,
    rebuild,
    softmax_map,
    spectral_error,
    stable_rank,
)
from linformer_from_scratch.plots import EDGE, GREY, INK, KEY, QUERY
from linformer_from_scratch.pretrained import NUM_HEADS, NUM_LAYERS, PretrainedMissing, attention_maps
from linformer_from_scratch.widgets.canvas import Card
from linformer_from_scratch.widgets.explorer import CannotDraw, Explorer

N = 128  # tokens: one decomposition takes some 15 ms
PERIOD = 32  # after how many tokens the text of the induction map repeats itself
REAL = "a head of a real model"
PRESETS = (REAL, "random softmax", "local: reads its neighbours", "induction: reads what followed last time")
SIDE, LEFT, TOP, STEP = 240, 24, 58, 300  # of the three maps, CSS pixels
PLOT_TOP, PLOT_HEIGHT = 354, 90
SMALLEST = 1e-12  # a weight of zero counts as this


class RankSlider(Explorer):
    """P, its best approximation of rank r, their difference, and all singular values.

    Attributes:
        P, rebuilt: (n, n) each.
        sigma: singular values of P, largest first.
        error: ‖P − P_r‖ measured on the maps, in the Frobenius norm and in the spectral norm.
    """

    def __init__(self):
        wide = {"width": "824px"}
        self.preset = Dropdown(options=PRESETS, description="Map", layout=wide)
        self.rank = IntSlider(8, 1, N, description="Rank r")
        self.temperature = FloatLogSlider(1, min=-1, max=1, step=0.1, description="Temperature")
        self.layer = IntSlider(1, 1, NUM_LAYERS, description="Layer")
        self.head = IntSlider(5, 1, NUM_HEADS, description="Head")
        self._decomposed = None
        super().__init__([self.preset, self.rank, self.temperature, self.layer, self.head])

    def draw(self):
        """See `Explorer.draw`."""
        self._decompose()
        rank = self.rank.value
        self.rebuilt = rebuild(self._u, self.sigma, self._vt, rank)
        difference = self.P - self.rebuilt
        self.error = difference.norm().item(), torch.linalg.matrix_norm(difference, 2).item()
        card = Card(LEFT + 3 * STEP, PLOT_TOP + PLOT_HEIGHT + 44)
        strongest = max(0.05, self.P.quantile(0.999).item())  # a few outliers may be darker
        self._draw_map(card, 0, f"P: {N} × {N} tokens", self.P, (0, strongest))
        self._draw_map(card, 1, f"its best map of rank {rank}", self.rebuilt, (0, strongest))
        self._draw_map(
            card, 2, "the difference: red + · blue −", difference, (-strongest, strongest), "RdBu_r"
        )
        self._draw_spectrum(card)
        return card.image, self._numbers()

    def _decompose(self) -> None:
        state = self.preset.value, self.temperature.value, self.layer.value, self.head.value
        if state == self._decomposed:
            return
        scores = preset_scores(self.preset.value, self.layer.value - 1, self.head.value - 1)
        self.P = (scores / self.temperature.value).softmax(dim=-1)
        self._u, self.sigma, self._vt = decompose(self.P)
        self._decomposed = state

    def _draw_map(self, card: Card, column: int, title: str, values: Tensor, limits, colours="Blues") -> None:
        x = LEFT + column * STEP
        card.text(x, 24, title, 16, bold=True)
        card.text(x, 46, "queries down, keys across", 14, GREY)
        card.heatmap((x, TOP, x + SIDE, TOP + SIDE), values, limits, colours)
        card.box((x, TOP, x + SIDE, TOP + SIDE), outline=EDGE)

    def _draw_spectrum(self, card: Card) -> None:
        rank, right = self.rank.value, LEFT + 2 * STEP + SIDE
        card.text(LEFT, PLOT_TOP - 38, "Singular values σ₁, σ₂, …", 16, bold=True)
        card.text(LEFT, PLOT_TOP - 16, "height: square root of σ, so that small ones show", 14, GREY)
        card.text(right, PLOT_TOP - 38, "kept", 16, QUERY, "rm", bold=True)
        card.text(right, PLOT_TOP - 16, "lost, the first of them is the spectral error", 14, KEY, "rm")
        floor, width = PLOT_TOP + PLOT_HEIGHT, (right - LEFT) / N
        for i, height in enumerate((self.sigma / self.sigma[0]).clamp(min=0).sqrt().tolist()):
            x, colour = LEFT + i * width, QUERY if i < rank else KEY
            card.box(
                (x + 0.5, floor - max(1, height * (PLOT_HEIGHT - 8)), x + width - 0.5, floor), fill=colour
            )
        card.box((LEFT, floor, right, floor + 1), fill=INK)
        for i in (1, 32, 64, 96, 128):
            card.text(LEFT + (i - 0.5) * width, floor + 16, str(i), 14, anchor="mm")
        card.text((LEFT + right) / 2, floor + 34, "index of the singular value", 14, GREY, "mm")

    def _numbers(self) -> str:
        rank, (frobenius, spectral) = self.rank.value, self.error
        bound, first_lost = frobenius_error(self.sigma, rank).item(), spectral_error(self.sigma, rank).item()
        lost = "σ" + "".join("₀₁₂₃₄₅₆₇₈₉"[int(digit)] for digit in str(rank + 1))
        return (
            f"Rank {rank} of {N}: Frobenius error {frobenius:.4f}, root of the lost σ² {bound:.4f}; "
            f"spectral error {spectral:.4f}, {lost if rank < N else 'nothing lost'} {first_lost:.4f}. "
            f"In the Frobenius norm {frobenius / self.P.norm():.0%} of the map is lost. "
            f"Stable rank {stable_rank(self.sigma):.1f}, entropy rank {entropy_rank(self.sigma):.1f}."
        )


def preset_scores(preset: str, layer: int, head: int) -> Tensor:
    """Scores whose softmax is the preset's map, (N, N).

    Raises: CannotDraw for the real head if the pretrained model is missing.
    """
    i = torch.arange(N)
    distance = i[:, None] - i
    if preset == REAL:
        return real_maps()[layer, head].clamp(min=SMALLEST).log()
    if preset == PRESETS[1]:
        return softmax_map(N, torch.Generator().manual_seed(0)).log()
    if preset == PRESETS[2]:
        return -distance.abs() / 2.0
    return 6.0 * (distance == PERIOD - 1)  # the token after the same token, one period ago


@cache
def real_maps() -> Tensor:
    """Maps of the pretrained model on the first tokens of the first document that is long enough.

    Shape: (layers, heads, N, N)
    Raises: CannotDraw if the pretrained model is missing.
    """
    text = next(text for text in documents().values() if len(text) > 8 * N)
    try:
        return attention_maps(text, N).weights
    except PretrainedMissing as missing:
        raise CannotDraw(f"This map needs the pretrained model: {missing}") from missing
