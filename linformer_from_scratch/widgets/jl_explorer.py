"""Widget 5: what a random projection does to lengths, and how many slots the lemma asks for."""

import math
from functools import lru_cache

import torch
from ipywidgets import FloatSlider, IntSlider, SelectionSlider
from torch import Tensor

from linformer_from_scratch.plots import EDGE, GREY, INK, KEY, QUERY
from linformer_from_scratch.random_projections import failure_bound, gaussian_projection, needed_dim
from linformer_from_scratch.widgets.canvas import Card
from linformer_from_scratch.widgets.explorer import Explorer, powers_of_two

SAMPLES, LARGEST = 500, 512  # vectors in the histogram; the most dimensions kept
BINS, RANGE = 48, 1.2  # of the histogram: from −RANGE to +RANGE
HISTOGRAM, NEEDED = (40, 66, 440, 316), (540, 66, 790, 316)  # the two plots, CSS pixels
DECADES = 6  # of vectors on the right


class JLExplorer(Explorer):
    """Measured distortions of squared lengths beside the bound, and the k that the bound asks for.

    Attributes:
        distortions: (SAMPLES,), ‖Rx‖² / ‖x‖² − 1 of that many vectors under one R.
        outside: share of them off by ε or more.
        bound: what the lemma allows for one vector; above 1 it says nothing.
        needed: slots for which N vectors are within ε with a chance of at least one half.
    """

    def __init__(self):
        self.proj_dim = powers_of_two("Keep k", 3, 9, 64)
        self.n = powers_of_two("Dimension n", 6, 12, 1024)
        self.epsilon = FloatSlider(0.3, min=0.05, max=0.95, step=0.05, description="ε")
        self.vectors = SelectionSlider(
            options=[(f"{10**i:,}", 10**i) for i in range(DECADES + 1)], value=1000, description="Vectors N"
        )
        self.seed = IntSlider(0, 0, 20, description="Dice")
        super().__init__([self.proj_dim, self.n, self.epsilon, self.vectors, self.seed])

    def draw(self):
        """See `Explorer.draw`."""
        k, epsilon = self.proj_dim.value, self.epsilon.value
        self.distortions = squares(self.n.value, self.seed.value)[:, :k].mean(dim=-1) - 1
        self.outside = (self.distortions.abs() >= epsilon).double().mean().item()
        self.bound = failure_bound(k, epsilon)
        self.needed = needed_dim(self.vectors.value, epsilon)
        card = Card(850, 372)
        self._draw_histogram(card)
        self._draw_needed(card)
        return card.image, self._words()

    def _draw_histogram(self, card: Card) -> None:
        left, top, right, bottom = HISTOGRAM
        card.text(left, 22, f"Squared lengths of {SAMPLES} vectors: off by", 17, bold=True)
        card.text(left, 46, "blue: within ε · orange: outside", 14, GREY)
        edges = torch.linspace(-RANGE, RANGE, BINS + 1)
        counts = torch.histc(self.distortions.clamp(-RANGE, RANGE), BINS, -RANGE, RANGE)
        width, tallest = (right - left) / BINS, counts.max().item()
        for i, count in enumerate(counts.tolist()):
            middle = (edges[i] + edges[i + 1]).item() / 2
            colour = KEY if abs(middle) >= self.epsilon.value else QUERY
            x = left + i * width
            card.box(
                (x + 0.5, bottom - count / tallest * (bottom - top - 8), x + width - 0.5, bottom), colour
            )
        card.box((left, bottom, right, bottom + 1), fill=INK)
        for off in (-1, -0.5, 0, 0.5, 1):
            x = left + (off + RANGE) / (2 * RANGE) * (right - left)
            card.text(x, bottom + 16, f"{off:+.0%}".replace("-", "−").replace("+0%", "0"), 14, anchor="mm")
        for sign in (-1, 1):
            x = left + (sign * self.epsilon.value + RANGE) / (2 * RANGE) * (right - left)
            card.box((x - 0.75, top, x + 0.75, bottom), fill=INK)
        card.text((left + right) / 2, bottom + 38, "‖Rx‖² / ‖x‖² − 1", 14, GREY, "mm")

    def _draw_needed(self, card: Card) -> None:
        left, top, right, bottom = NEEDED
        card.text(left - 46, 22, "Slots the bound asks for", 17, bold=True)
        card.text(left - 46, 46, "for N vectors within ε, with a chance of ½ at least", 14, GREY)

        def point(vectors: float, slots: float) -> tuple[float, float]:
            x = left + math.log10(vectors) / DECADES * (right - left)
            return x, bottom - math.log10(slots) / DECADES * (bottom - top)

        numbers = [10**i for i in range(DECADES + 1)]
        lines = [([point(1, 10**i), point(10**DECADES, 10**i)], EDGE, 1.0) for i in range(DECADES + 1)]
        n = self.n.value
        lines.append(([point(1, n), point(10**DECADES, n)], GREY, 2))
        lines.append(([point(N, needed_dim(N, self.epsilon.value)) for N in numbers], KEY, 2.5))
        card.lines((left, top, right, bottom + 1), lines)
        x, y = point(self.vectors.value, self.needed)
        card.box((x - 5, y - 5, x + 5, y + 5), KEY, INK)
        for i in range(0, DECADES + 1, 2):
            card.text(left - 8, point(1, 10**i)[1], f"{10**i:,}", 14, anchor="rm")
            card.text(point(10**i, 1)[0], bottom + 16, f"{10**i:,}", 14, anchor="mm")
        card.text(*point(10**DECADES, 1.6 * n), f"k = n = {n:,}", 14, GREY, "rm", bold=True)
        card.text(*point(10**DECADES, 10**1.5), "asked for", 14, KEY, "rm", bold=True)
        card.text((left + right) / 2, bottom + 38, "vectors N", 14, GREY, "mm")

    def _words(self) -> str:
        bound = f"{self.bound:.2%}" if self.bound <= 1 else f"{self.bound:.0%}, which says nothing"
        n, N = self.n.value, self.vectors.value
        verdict = "fewer than" if self.needed < n else "not fewer than"
        k, epsilon = self.proj_dim.value, self.epsilon.value
        spread, formula = self.distortions.std(), math.sqrt(2 / k)
        return (
            f"k = {k} of n = {n:,}: {self.outside:.1%} are off by {epsilon:.2f} or more; the lemma's bound "
            f"for one vector is {bound}. Spread {spread:.3f}, √(2/k) = {formula:.3f}. For {N:,} vectors at "
            f"once the bound asks for k = {self.needed:,}: {verdict} the n = {n:,} there are."
        )


@lru_cache(maxsize=8)
def squares(n: int, seed: int) -> Tensor:
    """LARGEST squared coordinates of Rx for each of SAMPLES unit vectors, times k: their mean is ‖Rx‖².

    Shape: (SAMPLES, LARGEST)
    """
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(SAMPLES, n, generator=generator, dtype=torch.float32)
    R = gaussian_projection(LARGEST, n, generator)
    return LARGEST * (x @ R.mT).square() / x.square().sum(dim=-1, keepdim=True)
