"""Points of a plane in regions that lie elsewhere in every input: groups by content (chapter 14)."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from linformer_from_scratch.common.random_state import integers, permutations, uniform
from linformer_from_scratch.data import generator_of
from linformer_from_scratch.fields.sensors import VALUES

WAVES = 4  # frequencies of each coordinate


def waves(where: Tensor) -> Tensor:
    """Coordinates, and sines and cosines of them, from half a wave on. Shape: (..., 2) -> (..., 18)"""
    parts = [f(math.pi * 2**i * where) for i in range(WAVES) for f in (torch.sin, torch.cos)]
    return torch.cat([where, *parts], dim=-1)


@dataclass(frozen=True)
class Regions:
    """n points anywhere in the unit square, each of the region whose centre is nearest, ever anew.

    Each region has a value; a point hears its own region's, with noise, and is to say it.

    Args:
        n: points, in random order.
        regions: centres.
        right_value: share of the values that are heard right.
    """

    n: int = 1024
    regions: int = 8
    right_value: float = 0.3

    def batches(self, size: int, seed: int = 0) -> Callable[[int], tuple[Tensor, Tensor, Tensor]]:
        """step -> coordinates as waves (size, n, 18), values as heard and right ones (size, n)."""

        def batch(step: int) -> tuple[Tensor, Tensor, Tensor]:
            draw = generator_of(seed, step)
            where, centres = uniform(draw, size, self.n, 2), uniform(draw, size, self.regions, 2)
            value_of = permutations(draw, size, VALUES)[:, : self.regions]  # all different
            right = value_of.gather(1, torch.cdist(where, centres).argmin(dim=-1))
            heard = uniform(draw, size, self.n) < self.right_value
            return waves(where), right.where(heard, integers(draw, 0, VALUES, size, self.n)), right

        return batch
