"""Widget 6: what E and F make of a real attention map, for several kinds of E and F."""

from functools import cache

import torch
from ipywidgets import Dropdown
from torch import Tensor

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.low_rank import decompose, rebuild
from linformer_from_scratch.plots import EDGE, GREY, KEY, VALUE
from linformer_from_scratch.pretrained import StoredHead, stored_heads
from linformer_from_scratch.projections import GaussianProjection, MeanPooling
from linformer_from_scratch.random_projections import relative_error
from linformer_from_scratch.widgets.canvas import Card
from linformer_from_scratch.widgets.explorer import Explorer, powers_of_two

HEADS = {  # menu entry -> layer and head
    "layer 5, head 6: reads the whole text": (5, 6),
    "layer 1, head 5: reads its neighbourhood": (1, 5),
    "layer 1, head 3: reads the token before": (1, 3),
    "layer 4, head 2: reads what a word refers to": (4, 2),
}
LEARNED, MEAN, STRIDED, GAUSSIAN, BEST = KINDS = (
    "learned on other texts",
    "mean pooling",
    "every n/k-th token",
    "Gaussian",
    "best map of rank k (needs P itself)",
)
SIDE, LEFT, TOP, STEP, SECOND = 240, 24, 58, 300, 330  # of the maps, CSS pixels


class ProjectionExplorer(Explorer):
    """A real map P beside Linformer's P̄ and the n×n map P̄F that it amounts to, with E and F beneath.

    Attributes:
        P: (n, n). E, F: (k, n). P_bar: (n, k). effective: (n, n), P̄F.
        error: ‖P̄FV − PV‖ / ‖PV‖, so that an output of zeros has error 1.
    """

    def __init__(self):
        wide = {"width": "824px"}
        self.head = Dropdown(options=HEADS, description="Map", layout=wide)
        self.kind = Dropdown(options=KINDS, description="E and F")
        self.proj_dim = powers_of_two("Slots k", 1, 6, 16)
        super().__init__([self.head, self.kind, self.proj_dim])

    def draw(self):
        """See `Explorer.draw`."""
        head, k = stored_heads()[self.head.value], self.proj_dim.value
        self.P, (u, sigma, vt) = real_map(self.head.value)
        if self.kind.value == BEST:
            self.P_bar, self.E, self.F = u[:, :k] * sigma[:k], vt[:k], vt[:k]
        else:
            self.E, self.F = projections(self.kind.value, head, k)
            self.P_bar = attention_weights(head.q, self.E @ head.k)
        self.effective = self.P_bar @ self.F
        exact = (self.P @ head.v).flatten()
        self.error = relative_error((self.effective @ head.v).flatten(), exact).item()
        self.best = relative_error((rebuild(u, sigma, vt, k) @ head.v).flatten(), exact).item()
        return self._card().image, self._words()

    def _card(self) -> Card:
        n, k = len(self.P), self.proj_dim.value
        card = Card(LEFT + 3 * STEP, SECOND + 2 * 46 + 8)
        limit = max(0.05, self.P.quantile(0.98).item())
        self._map(card, 0, f"P: {n} × {n}", "queries down, keys across", self.P, (0, limit), "Blues")
        strip = self.P_bar.abs().quantile(0.98).item()
        slots = f"queries down, {k} slots across"
        self._map(card, 1, f"P̄: {n} × {k}", slots, self.P_bar, (-strip, strip), "RdBu_r", SIDE * k / n)
        title = "P̄F: what it amounts to"
        self._map(card, 2, title, "red + · blue −", self.effective, (-limit, limit), "RdBu_r")
        for row, (name, matrix, colour) in enumerate((("E", self.E, KEY), ("F", self.F, VALUE))):
            top = SECOND + row * 50
            card.text(LEFT, top + 10, f"{name}: {k} × {n}", 16, colour, bold=True)
            card.text(LEFT, top + 30, "slots down, tokens across", 14, GREY)
            box = (LEFT + 220, top, LEFT + 2 * STEP + SIDE, top + 40)
            strongest = max(1e-3, matrix.abs().max().item())
            card.heatmap(box, matrix, (-strongest, strongest), "RdBu_r")
            card.box(box, outline=EDGE)
        return card

    def _map(self, card, column, title, axes, values, limits, colours, width=SIDE) -> None:
        x = LEFT + column * STEP
        card.text(x, 24, title, 16, bold=True)
        card.text(x, 46, axes, 14, GREY)
        box = (x, TOP, x + max(4, width), TOP + SIDE)
        card.heatmap(box, values, limits, colours)
        card.box(box, outline=EDGE)

    def _words(self) -> str:
        k, sums = self.proj_dim.value, self.effective.sum(dim=-1)
        negative = (self.effective < 0).double().mean()
        rank = torch.linalg.matrix_rank(self.effective, rtol=1e-5)
        return (
            f"k = {k} slots for {len(self.P)} tokens. The rows of P̄F sum to {sums.min():.2f} … "
            f"{sums.max():.2f}, {negative:.0%} of its entries are negative, its rank is {rank}. "
            f"The head's output is off by {self.error:.0%} "
            f"(best map of rank {k}: {self.best:.0%}; answering zero: 100 %)."
        ).replace("-", "−")


def projections(kind: str, head: StoredHead, k: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """E and F of a kind, (k, n) each; the learned ones were fitted to this head on other texts."""
    n = len(head.q)
    if kind == LEARNED:
        return head.learned[k]
    if kind == GAUSSIAN:
        return GaussianProjection(n, k, 2 * seed).weight, GaussianProjection(n, k, 2 * seed + 1).weight
    E = MeanPooling(n, k)(torch.eye(n)) if kind == MEAN else torch.eye(n)[:: n // k]
    return E, E


@cache
def real_map(layer_and_head: tuple[int, int]) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """A stored head's map (n, n) and its singular value decomposition."""
    head = stored_heads()[layer_and_head]
    P = attention_weights(head.q, head.k)
    return P, decompose(P)
