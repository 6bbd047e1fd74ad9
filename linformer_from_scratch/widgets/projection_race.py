"""Widget 7: how the error of a head's output falls with k, for every kind of E and F."""

import math
from functools import cache

import torch
from ipywidgets import Dropdown, IntSlider, SelectionRangeSlider

from linformer_from_scratch.cost import fit_exponent
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.low_rank import rebuild
from linformer_from_scratch.plots import EDGE, GREY, INK, LINES
from linformer_from_scratch.pretrained import STORED_DIMS, stored_heads
from linformer_from_scratch.random_projections import gaussian_projection, relative_error, theorem_1_map
from linformer_from_scratch.widgets.canvas import Card, tint
from linformer_from_scratch.widgets.explorer import Explorer
from linformer_from_scratch.widgets.projection_explorer import (
    GAUSSIAN,
    HEADS,
    LEARNED,
    MEAN,
    STRIDED,
    projections,
    real_map,
)

THEOREM, BEST = "theorem 1: P RᵀR V (needs P)", "best rank k (needs P)"
RANDOM = GAUSSIAN, THEOREM  # the kinds that differ from seed to seed
COLOURS = dict(
    zip((LEARNED, MEAN, STRIDED, GAUSSIAN, THEOREM, BEST), (*LINES[:4], LINES[5], INK), strict=True)
)
PLOT = (70, 30, 520, 330)  # CSS pixels
LOW, HIGH = 0.02, 20.0  # of the error axis


class ProjectionRace(Explorer):
    """Relative error of a real head's output against k; random kinds between their 10th and 90th percentile.

    Attributes:
        dims: the k of the curves.
        errors: kind -> (seeds, len(dims)); one row where nothing is drawn at random.
        slope: fitted exponent of the theorem's median error; 1/√k has −0.5.
    """

    def __init__(self):
        self.head = Dropdown(options=HEADS, description="Map", layout={"width": "824px"})
        options = [(str(k), k) for k in STORED_DIMS]
        self.dims_range = SelectionRangeSlider(options=options, index=(0, 5), description="Range of k")
        self.seeds = IntSlider(10, 1, 20, description="Seeds")
        super().__init__([self.head, self.dims_range, self.seeds])

    def draw(self):
        """See `Explorer.draw`."""
        first, last = self.dims_range.value
        self.dims = [k for k in STORED_DIMS if first <= k <= last]
        self.errors = {
            kind: torch.tensor([[error(self.head.value, kind, k, seed) for k in self.dims] for seed in seeds])
            for kind in COLOURS
            for seeds in [range(self.seeds.value if kind in RANDOM else 1)]
        }
        medians = self.errors[THEOREM].median(dim=0).values.tolist()
        self.slope = fit_exponent(self.dims, medians) if len(self.dims) > 1 else math.nan
        return self._card().image, self._words()

    def _card(self) -> Card:
        card = Card(850, 392)
        left, top, right, bottom = PLOT
        card.text(left - 46, 12, "Error of the head's output", 17, bold=True)
        ticks = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20]
        lines = [([self._at(self.dims[0], t), self._at(self.dims[-1], t)], EDGE, 1.0) for t in ticks]
        for kind, errors in self.errors.items():
            if len(errors) > 1:
                band = errors.quantile(torch.tensor([0.1, 0.9]), dim=0)
                for edge in band.tolist():
                    lines.append((self._path(edge), tint(COLOURS[kind], 0.4), 1.5))
            lines.append((self._path(errors.median(dim=0).values.tolist()), COLOURS[kind], 3))
        card.lines((left, top, right, bottom + 1), lines)
        for tick in ticks:
            label = f"≤ {tick:.0%}" if tick == LOW else f"{tick:.0%}"
            card.text(left - 8, self._at(self.dims[0], tick)[1], label, 14, anchor="rm")
        for k in self.dims:
            card.text(self._at(k, 1)[0], bottom + 16, str(k), 14, anchor="mm")
        card.text((left + right) / 2, bottom + 38, "slots k", 14, GREY, "mm")
        for i, (kind, errors) in enumerate(self.errors.items()):
            y = top + 16 + 44 * i
            card.box((right + 30, y - 3, right + 52, y + 3), fill=COLOURS[kind])
            card.text(right + 62, y, kind, 15, COLOURS[kind], bold=True)
            first, last = errors.median(dim=0).values[[0, -1]].tolist()
            card.text(
                right + 62,
                y + 20,
                f"{first:.0%} at k = {self.dims[0]}, {last:.0%} at {self.dims[-1]}",
                14,
                GREY,
            )
        return card

    def _at(self, k: int, error: float) -> tuple[float, float]:
        left, top, right, bottom = PLOT
        across = math.log(k / self.dims[0]) / max(math.log(2), math.log(self.dims[-1] / self.dims[0]))
        up = math.log(min(max(error, LOW), HIGH) / LOW) / math.log(HIGH / LOW)
        return left + across * (right - left), bottom - up * (bottom - top)

    def _path(self, errors: list[float]) -> list[tuple[float, float]]:
        points = [self._at(k, error) for k, error in zip(self.dims, errors, strict=True)]
        return points if len(points) > 1 else [points[0], (points[0][0] + 6, points[0][1])]

    def _words(self) -> str:
        slope = "needs two k" if math.isnan(self.slope) else f"is k to the power {self.slope:.2f}"
        at = {kind: errors.median(dim=0).values[-1].item() for kind, errors in self.errors.items()}
        tokens, draws = len(stored_heads()[self.head.value].q), self.seeds.value
        return (
            f"At k = {self.dims[-1]} of {tokens} tokens: learned {at[LEARNED]:.0%}, mean pooling "
            f"{at[MEAN]:.0%}, Gaussian {at[GAUSSIAN]:.0%} (median of {draws}), best rank k {at[BEST]:.0%}; "
            f"answering zero would be 100 %. The theorem's error {slope}; 1/√k would be −0.50."
        ).replace("power -", "power −")


@cache
def error(layer_and_head: tuple[int, int], kind: str, k: int, seed: int) -> float:
    """‖approximate output − exact output‖ / ‖exact output‖ of a stored head."""
    head, (P, decomposed) = stored_heads()[layer_and_head], real_map(layer_and_head)
    if kind == THEOREM:
        R = gaussian_projection(k, len(P), torch.Generator().manual_seed(seed))
        output = theorem_1_map(P, R) @ head.v
    elif kind == BEST:
        output = rebuild(*decomposed, k) @ head.v
    else:
        output = linformer_attention(head.q, head.k, head.v, *projections(kind, head, k, seed))
    return relative_error(output.flatten(), (P @ head.v).flatten()).item()
