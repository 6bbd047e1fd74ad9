"""Widget 5: what a random projection does to lengths, beside the lemma. Drawn by jl_explorer.js."""

import math
from functools import cache
from typing import Any

import torch
import traitlets
from torch import Tensor

from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.live import LiveWidget, Number, packed
from linformer_from_scratch.random_projections import failure_bound, gaussian_projection, needed_dim

SAMPLES, SEEDS = 500, 10  # vectors in the histogram; random projections
DIMS = [2**i for i in range(3, 10)]  # that are kept
LENGTHS = [2**i for i in range(6, 13)]  # numbers in a vector
NUMBERS = [10**i for i in range(7)]  # vectors at once
BINS, REACH = 48, 1.2  # of the histogram: from −REACH to +REACH
CURVE = torch.linspace(-REACH, REACH, 4 * BINS + 1, dtype=torch.float64)


class JLExplorer(LiveWidget):
    """Measured distortions of squared lengths beside the bound, and the k that the bound asks for."""

    title = "What a random projection does to lengths"
    controls = ("proj_dim", "n", "epsilon", "vectors", "seed")

    proj_dim = traitlets.Enum(DIMS, default_value=64).tag(sync=True)
    n = traitlets.Enum(LENGTHS, default_value=1024).tag(sync=True)
    epsilon = Number(0.3, min=0.05, max=0.95).tag(sync=True)
    vectors = traitlets.Enum(NUMBERS, default_value=1000).tag(sync=True)
    seed = traitlets.Int(0, min=0, max=SEEDS - 1).tag(sync=True)

    def __init__(self, **start):
        facts = {"dims": DIMS, "lengths": LENGTHS, "numbers": NUMBERS, "bins": BINS, "reach": REACH}
        super().__init__(facts, data(), **start)

    @property
    def distortions(self) -> Tensor:
        """‖Rx‖² / ‖x‖² − 1 of SAMPLES vectors under one R, (SAMPLES,)."""
        return distortions_of(self.n, self.seed)[DIMS.index(self.proj_dim)].double()

    @property
    def counts(self) -> Tensor:
        """Vectors in each bin, those beyond its ends in the last ones, (BINS,)."""
        place = (self.distortions.clamp(-REACH, REACH) + REACH) / (2 * REACH) * BINS
        return place.long().clamp(max=BINS - 1).bincount(minlength=BINS)

    @property
    def expected(self) -> Tensor:
        """Vectors on average in a bin around each point of CURVE, (len(CURVE),).

        By the density of a mean of k squares of normal numbers.
        """
        square, half = (1 + CURVE).clamp(min=0), self.proj_dim / 2
        logarithm = (half - 1) * square.log() + half * (math.log(half) - square) - math.lgamma(half)
        return SAMPLES * 2 * REACH / BINS * logarithm.exp()

    @property
    def shares(self) -> list[float]:
        """Share of the vectors off by ε or more, for each of DIMS."""
        outside = distortions_of(self.n, self.seed).double().abs() >= self.epsilon
        return outside.double().mean(dim=1).tolist()

    @property
    def outside(self) -> float:
        """Share of the vectors off by ε or more."""
        return self.shares[DIMS.index(self.proj_dim)]

    @property
    def bounds(self) -> list[float]:
        """The lemma's bound for one vector, for each of DIMS."""
        return [failure_bound(k, self.epsilon) for k in DIMS]

    @property
    def bound(self) -> float:
        """What the lemma allows for one vector; above 1 it says nothing."""
        return failure_bound(self.proj_dim, self.epsilon)

    @property
    def asked(self) -> list[int]:
        """The same as `needed` for each of NUMBERS."""
        return [needed_dim(vectors, self.epsilon) for vectors in NUMBERS]

    @property
    def needed(self) -> int:
        """Slots for which N vectors are within ε with a chance of at least one half."""
        return needed_dim(self.vectors, self.epsilon)

    def _words(self) -> str:
        bound = f"{self.bound:.2%}" if self.bound <= 1 else f"{self.bound:.0%}, which says nothing"
        verdict = "fewer than" if self.needed < self.n else "not fewer than"
        return (
            f"With k = {self.proj_dim} of n = {self.n:,}, {self.outside:.1%} of the vectors are off by "
            f"{self.epsilon:.2f} or more; the lemma allows {bound}. For {self.vectors:,} vectors at once it "
            f"asks for k = {self.needed:,}, {verdict} the n = {self.n:,} there are."
        )

    def _figure(self) -> stills.Figure:
        middles = -REACH + (torch.arange(BINS) + 0.5) * 2 * REACH / BINS
        shares = dict(zip(DIMS, self.shares, strict=True))
        bounds = {k: failure_bound(k, self.epsilon) for k in range(DIMS[0], DIMS[-1] + 1)}
        shown = {
            "lengths": stills.distortions(middles, self.counts, (CURVE, self.expected), self.epsilon),
            "tails": stills.tails(shares, bounds, self.proj_dim),
            "slots": stills.needed(NUMBERS, self.asked, self.n, self.vectors),
        }
        return stills.board([[*shown]], shown, (13, 4))


@cache
def distortions_of(n: int, seed: int) -> Tensor:
    """Distortions of SAMPLES vectors of n numbers under one R, cut to its first k rows for each k of DIMS.

    Shape: (len(DIMS), SAMPLES), float16
    """
    y = squares(n, seed)
    return torch.stack([y[:, :k].mean(dim=-1) - 1 for k in DIMS]).half()


def squares(n: int, seed: int) -> Tensor:
    """Squared coordinates of Rx for each of SAMPLES vectors x of length 1, times k: their mean is ‖Rx‖².

    Shape: (SAMPLES, k), with the largest k of DIMS
    """
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(SAMPLES, n, generator=generator, dtype=torch.float32)
    R = gaussian_projection(DIMS[-1], n, generator)
    return DIMS[-1] * (x @ R.mT).square() / x.square().sum(dim=-1, keepdim=True)


@cache
def data() -> dict[str, Any]:
    """The distortions under every projection, (lengths, seeds, dims, SAMPLES)."""
    distortions = [torch.stack([distortions_of(n, seed) for seed in range(SEEDS)]) for n in LENGTHS]
    return {"distortions": packed(torch.stack(distortions), "float16")}
