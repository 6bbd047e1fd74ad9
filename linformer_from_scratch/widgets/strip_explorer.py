"""Linformer at first sight: a real attention map, and the strip in its place. Drawn by strip_explorer.js."""

from functools import cache, partial
from typing import Any

import torch
import traitlets
from matplotlib.figure import Figure
from torch import Tensor

from linformer_from_scratch import plots
from linformer_from_scratch.pretrained import STORED_DIMS
from linformer_from_scratch.widgets.live import LiveWidget, menu, packed
from linformer_from_scratch.widgets.projection_explorer import HEADS, LEARNED, real_map, strip

DARKEST = 0.98  # the share of the weights that the colour scale covers


class StripExplorer(LiveWidget):
    """A real map P, n×n, beside the n×k strip that Linformer computes for the same head."""

    title = "A real attention map, and Linformer's strip"
    controls = ("head", "proj_dim")

    head = menu(HEADS)
    proj_dim = traitlets.Enum(STORED_DIMS, default_value=16).tag(sync=True)

    def __init__(self, **start):
        super().__init__(**start)
        self.facts = {"dims": [*STORED_DIMS]}
        self.data = data()

    @property
    def P(self) -> Tensor:
        """The head's map, (n, n)."""
        return real_map(self.head)

    @property
    def P_bar(self) -> Tensor:
        """What each token reads of each summary, (n, proj_dim); E was learned on other texts."""
        return strip(LEARNED, self.head, self.proj_dim)

    @property
    def words(self) -> str:
        """See `LiveWidget.words`."""
        n, k = self.P_bar.shape
        return (
            f"{HEADS[self.head].capitalize()}. Attention: {n} × {n} = {n * n:,} numbers; "
            f"the strip: {n} × {k} = {n * k:,}, {n // k} times fewer."
        )

    def figure(self) -> Figure:
        """See `LiveWidget.figure`."""
        shown = {}
        for name, values, kind, note in (
            ("P", self.P, "attention", "down: who reads; across: who is read"),
            ("P̄", self.P_bar, "strip", "across: summaries"),
        ):
            n, k = values.shape
            labels: dict[str, Any] = {"title": f"{kind}: {n} × {k}", "note": note}
            shown[name] = partial(plots.draw_map, values=values, limit=limit(values), tall=n / k, **labels)
        return plots.board([[*shown]], shown, (8, 4.2), widths=(1, 1))


def limit(weights: Tensor) -> float:
    """The weight that is drawn darkest."""
    return max(0.05, weights.quantile(DARKEST).item())


@cache
def data() -> dict[str, Any]:
    """The maps of all heads, and their strips for all k side by side."""
    strips = [torch.cat([strip(LEARNED, name, k) for k in STORED_DIMS], dim=1) for name in HEADS]
    return {
        "maps": packed(torch.stack([real_map(name) for name in HEADS])),
        "strips": packed(torch.stack(strips)),
    }
