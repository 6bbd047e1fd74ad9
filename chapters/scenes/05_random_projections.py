"""Clip of chapter 05: 24 points, their distances before and after a random projection."""

import torch
from look import *
from manim import *

from linformer_from_scratch.random_projections import gaussian_projection

POINTS, EPSILON, SIDE = 24, 0.2, 4.6


class RandomProjections(Story):
    """The more dimensions are kept, the closer distances stay to the true ones, however many there were."""

    def construct(self) -> None:
        """True distance across, projected distance up; the diagonal, a band of ± 20 %, and one dot a pair."""
        axes = Axes((0, 2, 1), (0, 2, 1), SIDE, SIDE, axis_config={"color": INK, "include_ticks": False})
        axes.move_to([-2.6, 0.55, 0])
        band = Polygon(*(axes.c2p(x, y) for x, y in corners()), color=GRID, fill_opacity=0.5, stroke_width=0)
        diagonal = Line(axes.c2p(0, 0), axes.c2p(1.6, 1.6), color=INK, stroke_width=2)
        names = VGroup(
            words("true distance", size=24).next_to(axes, DOWN, buff=0.12),
            words("projected", size=24).rotate(PI / 2).next_to(axes, LEFT, buff=0.12),
        )
        dots, facts = self.cloud(axes, 1000, 2)
        start = f"{POINTS} points in 1,000 dimensions, thrown down to 2 at random."
        self.step(start, FadeIn(band, axes, names, diagonal, dots, facts), pause=1.2)
        steps = [
            (1000, k, f"Keep {k} random mixtures: the distances tighten around the diagonal.", 1.5)
            for k in (10, 100, 400)
        ]
        steps.append((10_000, 400, "Ten times as many dimensions, the same 400 mixtures: no worse.", 2.5))
        for n, proj_dim, caption, pause in steps:
            cloud, news = self.cloud(axes, n, proj_dim)
            self.step(caption, Transform(dots, cloud), exchange(facts, news), pause=pause)
            facts = news

    def cloud(self, axes: Axes, n: int, proj_dim: int) -> tuple[VGroup, VGroup]:
        """One dot for each pair of points, and the numbers beside them."""
        generator = torch.Generator().manual_seed(proj_dim)
        spread = torch.linspace(0.1, 1.1, POINTS)[:, None]  # near and far from the middle
        x = spread * torch.randn(POINTS, n, generator=generator) / n**0.5
        true = torch.pdist(x)
        after = torch.pdist(x @ gaussian_projection(proj_dim, n, generator).mT)
        pairs = zip(true.tolist(), after.clamp(max=2).tolist(), strict=True)
        dots = VGroup(*(Dot(axes.c2p(*pair), 0.035, color=QUERY) for pair in pairs))
        within = ((after / true - 1).abs() <= EPSILON).double().mean()
        lines = (
            f"from {n:,}",
            f"to {proj_dim:,} dimensions",
            f"{within:.0%} of the pairs",
            f"within ± {EPSILON:.0%}",
        )
        facts = VGroup(*(words(line, KEY if i > 1 else INK, 32) for i, line in enumerate(lines)))
        return dots, facts.arrange(DOWN, aligned_edge=LEFT, buff=0.3).move_to([3.6, 0.8, 0])


def corners() -> list[tuple[float, float]]:
    """Corners of the band around the diagonal."""
    return [(0, 0), (1.6, 1.6 * (1 - EPSILON)), (1.6, 1.6 * (1 + EPSILON))]
