"""Electrodes on a head: real geometry and a formula of physics (chapter 14).

Sources at fixed places in a sphere, one dipole each, emit other signals in every input; every electrode
hears a blur of them all. The positions are those of the 10-05 system (Oostenveld and Praamstra 2001).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from linformer_from_scratch.common.random_state import integers, normal, permutations, uniform
from linformer_from_scratch.data import generator_of
from linformer_from_scratch.fields.sensors import VALUES

POSITIONS = Path(__file__).with_name("electrodes.tsv")
DEPTHS = 0.5, 0.85  # of the sources, in radii of the head


def positions() -> Tensor:
    """Of the electrodes. Shape: (345, 3)"""
    return torch.tensor(np.loadtxt(POSITIONS, usecols=(1, 2, 3), dtype=np.float32))


def potential(electrodes: Tensor, place: Tensor, moment: Tensor) -> Tensor:
    """On the surface of a conducting unit sphere, of a dipole inside, in units of 1 / (4π · conductivity).

    V(r) = p · [2 (r − s) / d³ + (r + (r − s) / d) / (1 − r · s + d)], d = |r − s|       Brody et al. 1973

    Shape: electrodes (n, 3), place s and moment p (3,) -> (n,)
    """
    apart = electrodes - place
    d = apart.norm(dim=-1, keepdim=True)
    along = electrodes @ place
    return (2 * apart / d**3 + (electrodes + apart / d) / (1 - along[:, None] + d)) @ moment


@dataclass(frozen=True)
class Electrodes:
    """The task: as Sensors, with signals that add up in place of readings.

    A source sends the sum of two codes, of its name and of its value, each of `samples` random numbers.

    Args:
        sources, names: as Sensors.
        samples: of a signal.
        noise: its size beside that of what an electrode hears, 1.
        places: which draw of the sources and of the codes.
    """

    sources: int = 8
    names: int = 16
    samples: int = 16
    noise: float = 1.0
    places: int = 123

    @cached_property
    def heard(self) -> Tensor:
        """How loud an electrode hears a source, from the mean of all; of size 1. Shape: (n, sources)"""
        draw = torch.Generator().manual_seed(self.places)
        where, moment = normal(draw, 2, self.sources, 3)
        low, high = DEPTHS
        depth = low + (high - low) * uniform(draw, self.sources, 1)
        where = depth * where / where.norm(dim=-1, keepdim=True)
        electrodes = positions()
        columns = torch.stack(
            [potential(electrodes, *pair) for pair in zip(where, moment, strict=True)], dim=-1
        )
        columns = columns - columns.mean(dim=0)
        return columns / columns.square().mean(dim=0).sqrt()

    @cached_property
    def codes(self) -> tuple[Tensor, Tensor]:
        """Of the names and of the values. Shape: (names, samples), (VALUES, samples)"""
        draw = torch.Generator().manual_seed(self.places + 1)
        return normal(draw, self.names, self.samples), normal(draw, VALUES, self.samples)

    def batches(self, size: int, seed: int = 0) -> Callable[[int], tuple[Tensor, Tensor, Tensor]]:
        """step -> signals (size, n, samples), names asked for and their values (size, n)."""
        (of_names, of_values), heard = self.codes, self.heard

        def batch(step: int) -> tuple[Tensor, Tensor, Tensor]:
            draw = generator_of(seed, step)
            names = permutations(draw, size, self.names)[:, : self.sources]
            values = integers(draw, 0, VALUES, size, self.sources)
            asked = integers(draw, 0, self.sources, size, len(heard))
            sent = (of_names[names] + of_values[values]) / math.sqrt(2)  # (size, sources, samples)
            signals = heard @ sent / math.sqrt(self.sources)
            signals = signals + self.noise * normal(draw, *signals.shape)
            return signals, names.gather(1, asked), values.gather(1, asked)

        return batch
