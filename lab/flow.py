"""Darcy flow through two kinds of rock, on a grid: −∇ · (a ∇u) = f, u = 0 on the edge.

The benchmark of neural operators (Li et al. 2021, arXiv 2010.08895, section 5.2): a is 12 or 3, by the sign
of a smooth random field. Solved by finite volumes and a sparse direct solver, exact but for the grid.
"""

import math
from functools import cache

import numpy as np
from scipy.sparse import csc_array, diags_array
from scipy.sparse.linalg import spsolve

from lab.experiment import BUILD

ROCK = 12.0, 3.0
WIDTH = 0.04  # of a source, in sides of the square


@cache
def fields(side: int, count: int, sources: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rock, inflow and pressure, computed once and kept.

    Args:
        sources: so many sources or sinks at random places; 0 for an inflow of 1 everywhere.

    Shape: (count, 2, side, side): rock as ±1, and inflow; (count, side, side), pressure
    """
    path = BUILD / "fields" / f"flow-{side}-{count}-{sources}-{seed}.npz"
    if not path.exists():
        draw = np.random.default_rng(seed)
        pairs = [_one(draw, side, sources) for _ in range(count)]
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(
            path,
            given=np.stack([given for given, _ in pairs], dtype=np.float32),
            u=np.stack([u for _, u in pairs], dtype=np.float32),
        )
    with np.load(path) as stored:
        return stored["given"], stored["u"]


def _one(draw: np.random.Generator, side: int, sources: int) -> tuple[np.ndarray, np.ndarray]:
    rock = np.where(smooth(draw, side) > 0, *ROCK)
    inflow = np.ones((side, side)) if not sources else _sources(draw, side, sources)
    u = spsolve(stiffness(rock), inflow.ravel() / side**2).reshape(side, side)
    return np.stack([(rock - np.mean(ROCK)) / (ROCK[0] - np.mean(ROCK)), inflow]), u


def smooth(draw: np.random.Generator, side: int) -> np.ndarray:
    """A Gaussian field with covariance (−Δ + 9)⁻², periodic. Shape: (side, side)."""
    k = np.fft.fftfreq(side, 1 / side)
    spectrum = math.pi**2 * (k[:, None] ** 2 + k**2) + 9
    return np.fft.ifft2(np.fft.fft2(draw.standard_normal((side, side))) / spectrum).real


def _sources(draw: np.random.Generator, side: int, count: int) -> np.ndarray:
    at = (np.arange(side) + 0.5) / side
    total = np.zeros((side, side))
    for _ in range(count):
        (x, y), sign = draw.uniform(0.1, 0.9, 2), draw.choice([-1.0, 1.0])
        total += sign * np.exp(-((at[:, None] - x) ** 2 + (at - y) ** 2) / (2 * WIDTH**2))
    return total


def stiffness(rock: np.ndarray) -> csc_array:
    """The matrix of −∇ · (a ∇u): flow between neighbours through the harmonic mean of their rocks."""
    side = len(rock)
    down = 2 / (1 / rock[:-1] + 1 / rock[1:])
    right = np.zeros((side, side))
    right[:, :-1] = 2 / (1 / rock[:, :-1] + 1 / rock[:, 1:])
    own = np.zeros((side, side))
    own[:-1] += down
    own[1:] += down
    own += right
    own[:, 1:] += right[:, :-1]
    for edge in ((0,), (-1,), (slice(None), 0), (slice(None), -1)):
        own[edge] += 2 * rock[edge]  # half a cell away, u is 0
    beside, below = -right.ravel()[:-1], -down.ravel()
    return diags_array([own.ravel(), beside, beside, below, below], offsets=[0, 1, -1, side, -side]).tocsc()
