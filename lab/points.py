"""Models of a flow, point by point: an encoder around any layer, and a U-Net."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from lab import flow
from lab.regions import waves
from linformer_from_scratch.common.random_state import integers
from linformer_from_scratch.data import generator_of
from linformer_from_scratch.fields.model import FieldModel

TRAINING, UNSEEN, HELD_OUT = 4000, 100, 10**9  # fields; the draw of the unseen ones
KNOWN = 36  # numbers that a point knows

Batches = Callable[[int], tuple[Tensor, ...]]


def features(given: Tensor) -> Tensor:
    """What a point knows: rock and inflow of the 3 × 3 points around it, and where it is.

    Shape: (count, 2, side, side) -> (count, side², 18 + 18)
    """
    side = given.size(-1)
    around = functional.unfold(functional.pad(given, (1, 1, 1, 1)), 3).mT
    at = (torch.arange(side) + 0.5) / side
    where = torch.stack(torch.meshgrid(at, at, indexing="ij"), dim=-1).flatten(0, 1)
    return torch.cat([around, waves(where).expand(len(given), -1, -1)], dim=-1)


class Flow:
    """Batches of points, with the pressure to be found and its mean over all fields, in units of its spread.

    Args:
        side: of the grid.
        sources: as flow.fields.
        pool: which draw of the fields to train on.
    """

    def __init__(self, side: int, sources: int, pool: int):
        self.given, u = map(torch.from_numpy, flow.fields(side, TRAINING, sources, pool))
        self.seen = map(torch.from_numpy, flow.fields(side, UNSEEN, sources, HELD_OUT))
        self.mean, self.spread, self.u = u.mean(dim=0), u.std(), u

    def batches(self, size: int, seed: int) -> Batches:
        """step -> features (size, n, 36), mean and pressure (size, n)."""

        def batch(step: int) -> tuple[Tensor, ...]:
            some = integers(generator_of(seed, step), 0, len(self.u), size)
            return self.points(self.given[some], self.u[some])

        return batch

    def unseen(self, size: int) -> list[tuple[Tensor, ...]]:
        """Batches of fields that no run trains on."""
        parts = (some.split(size) for some in self.seen)
        return [self.points(*pair) for pair in zip(*parts, strict=True)]

    def points(self, given: Tensor, u: Tensor) -> tuple[Tensor, ...]:
        """What a model is given of some fields."""
        mean, u = ((y / self.spread).flatten(1) for y in (self.mean.expand_as(u), u))
        return features(given), mean, u


def relative_error(model: nn.Module, x: Tensor, mean: Tensor, u: Tensor) -> Tensor:
    """‖found − u‖ / ‖u‖, the mean over fields."""
    return ((model(x) + mean - u).norm(dim=1) / u.norm(dim=1)).mean()


class PointModel(FieldModel):
    """An encoder of points. Args: attentions: a layer for each block. Shape: (batch, n, 36) -> (batch, n)"""

    def __init__(self, n: int, attentions: Sequence[nn.Module], d_model: int):
        super().__init__(nn.Linear(KNOWN, d_model), attentions, n, d_model, 1)

    def forward(self, *inputs: Tensor) -> Tensor:
        """One number for each point."""
        return super().forward(*inputs).squeeze(-1)


class UNet(nn.Module):
    """Three levels of a grid, down and up again (Ronneberger et al. 2015, arXiv 1505.04597)."""

    def __init__(self, side: int, width: int = 32):
        super().__init__()
        self.side = side
        widths = [width, 2 * width, 4 * width]
        pairs = pairwise([KNOWN, *widths])
        self.down = nn.ModuleList(self._level(a, b) for a, b in pairs)
        self.up = nn.ModuleList(self._level(a + b, a) for a, b in pairwise(widths))
        self.out = nn.Conv2d(width, 1, 1)

    @staticmethod
    def _level(inputs: int, width: int) -> nn.Module:
        parts: list[nn.Module] = []
        for features in (inputs, width):
            parts += [nn.Conv2d(features, width, 3, padding=1), nn.GroupNorm(8, width), nn.GELU()]
        return nn.Sequential(*parts)

    def forward(self, x: Tensor) -> Tensor:
        """Shape: (batch, n, 36) -> (batch, n)."""
        x = x.mT.unflatten(2, (self.side, self.side))
        kept = []
        for i, level in enumerate(self.down):
            x = level(functional.avg_pool2d(x, 2) if i else x)
            kept.append(x)
        for level, beside in zip(reversed(self.up), reversed(kept[:-1]), strict=True):
            x = level(torch.cat([functional.interpolate(x, scale_factor=2.0), beside], dim=1))
        return self.out(x).flatten(1)
