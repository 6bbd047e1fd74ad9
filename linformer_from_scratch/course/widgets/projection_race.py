"""Widget 7: the error of a head's output against k, by kind of E and F. Drawn by projection_race.js."""

import math
from functools import cache

import torch
import traitlets
from torch import Tensor

from linformer_from_scratch.cost import fit_exponent
from linformer_from_scratch.course import plots
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.live import LiveWidget, menu, packed
from linformer_from_scratch.course.widgets.projection_explorer import (
    BEST,
    GAUSSIAN,
    HEADS,
    LEARNED,
    MEAN,
    SHORT,
    STRIDED,
    effective,
    output_error,
    real_map,
)
from linformer_from_scratch.pretrained import STORED_DIMS, stored_tokens
from linformer_from_scratch.random_projections import gaussian_projection, theorem_1_map

THEOREM = "theorem"
NAMES = SHORT | {THEOREM: "theorem 1"}
RANDOM = GAUSSIAN, THEOREM  # the kinds that differ from seed to seed
LOOKS = dict(zip(NAMES, (0, 1, 2, 3, 7, 5), strict=True))  # kind -> its colour's place in plots.LINES
DRAWS = 20  # seeds


class ProjectionRace(LiveWidget):
    """Relative error of a head's output against k; random kinds between their 10th and 90th percentile."""

    title = "Race them yourself: which E, how many slots?"
    controls = ("head", "first", "last", "seeds")
    helpers = ("errors",)

    head = menu(HEADS)
    first = traitlets.Enum(STORED_DIMS, default_value=STORED_DIMS[0]).tag(sync=True)
    last = traitlets.Enum(STORED_DIMS, default_value=STORED_DIMS[-1]).tag(sync=True)
    seeds = traitlets.Int(10, min=1, max=DRAWS).tag(sync=True)

    def __init__(self, **start):
        looks = {kind: {"line": line, "dashed": kind == BEST} for kind, line in LOOKS.items()}
        known = {"n": len(stored_tokens()), "dims": [*STORED_DIMS], "names": NAMES, "looks": looks}
        data = {"errors": packed(torch.stack([all_errors(name) for name in HEADS]))}
        super().__init__(known | {"random": [*RANDOM], "theorem": THEOREM}, data, **start)

    @property
    def dims(self) -> list[int]:
        """The k from one end to the other, whichever is the smaller."""
        low, high = sorted((self.first, self.last))
        return [k for k in STORED_DIMS if low <= k <= high]

    @property
    def errors(self) -> dict[str, Tensor]:
        """Kind -> (seeds, len(dims)), one row where nothing is drawn at random."""
        chosen = [STORED_DIMS.index(k) for k in self.dims]
        return {
            kind: errors[: self.seeds if kind in RANDOM else 1, chosen]
            for kind, errors in zip(NAMES, all_errors(self.head), strict=True)
        }

    @property
    def medians(self) -> dict[str, Tensor]:
        """Kind -> (len(dims),)."""
        return {kind: errors.median(dim=0).values for kind, errors in self.errors.items()}

    @property
    def low(self) -> dict[str, Tensor]:
        """Random kind -> (len(dims),), the 10th percentile."""
        return {kind: self.errors[kind].quantile(0.1, dim=0) for kind in RANDOM}

    @property
    def high(self) -> dict[str, Tensor]:
        """Random kind -> (len(dims),), the 90th percentile."""
        return {kind: self.errors[kind].quantile(0.9, dim=0) for kind in RANDOM}

    @property
    def slope(self) -> float:
        """Fitted exponent of the theorem's median error over the chosen k; 1/√k has −0.5; nan for one k."""
        return fit_exponent(self.dims, self.medians[THEOREM].tolist()) if len(self.dims) > 1 else math.nan

    def _words(self) -> str:
        slope = "Pick two k to see how theorem 1's error falls."
        if not math.isnan(self.slope):
            slope = f"Theorem 1's error goes like k to the power {self.slope:z.2f}."
        at = {kind: median[-1].item() for kind, median in self.medians.items()}
        return (
            f"Through {self.dims[-1]} slots of {len(stored_tokens())} tokens: learned {at[LEARNED]:.0%}, "
            f"mean pooling {at[MEAN]:.0%}, every n/k-th token {at[STRIDED]:.0%}, "
            f"Gaussian {at[GAUSSIAN]:.0%} (median of {self.seeds}). Silence would be 100%. {slope}"
        ).replace("power -", "power −")

    def _figure(self) -> stills.Figure:
        low, high = self.low, self.high
        lines = {
            NAMES[kind]: (median, plots.LINES[LOOKS[kind]], 3, "--" if kind == BEST else "-")
            for kind, median in self.medians.items()
        }
        bands = {NAMES[kind]: (low[kind], high[kind]) for kind in RANDOM}
        return stills.board([["errors"]], {"errors": stills.errors(self.dims, lines, bands=bands)}, (9, 4.6))


@cache
def all_errors(name: str) -> Tensor:
    """Error of a head's output by kind, seed and STORED_DIMS; the same for all seeds where none is drawn."""
    errors = [[[error(name, kind, k, seed) for k in STORED_DIMS] for seed in seeds(kind)] for kind in NAMES]
    return torch.stack([torch.tensor(rows).expand(DRAWS, -1) for rows in errors])


def seeds(kind: str) -> range:
    """The seeds in which a kind differs."""
    return range(DRAWS if kind in RANDOM else 1)


def error(name: str, kind: str, k: int, seed: int) -> float:
    """‖approximate output − exact output‖ / ‖exact output‖ of a head."""
    if kind != THEOREM:
        return output_error(effective(kind, name, k, seed), name)
    P = real_map(name)
    R = gaussian_projection(k, len(P), torch.Generator().manual_seed(seed))
    return output_error(theorem_1_map(P, R.double()), name)
