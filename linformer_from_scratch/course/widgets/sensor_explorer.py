"""Sensors around four hidden sources, and E and F that learn who hears whom. Drawn by sensor_explorer.js."""

import math
from functools import cache, lru_cache
from statistics import fmean
from typing import NamedTuple

import torch
import traitlets
from torch import Tensor

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.common.random_state import integers, normal, permutations, uniform
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.live import LiveWidget, packed
from linformer_from_scratch.linformer import linformer_attention

LENGTHS, DIMS, NAMES = (64, 128, 256), (4, 8, 16), 8
MOST, ROWS = LENGTHS[-1], DIMS[-1]
SOURCES = ((0.26, 0.3), (0.72, 0.24), (0.77, 0.74), (0.3, 0.78))  # across and down, of a plane
WIDE = 1.6  # times as wide as high
INPUTS, RIGHT = 400, 0.8  # that are drawn, then come again; share of what is heard right
SHARP, RATE, SMALL = 8.0, 0.002, 0.1  # β; of Adam; times 1/√n is how large E and F begin
LAST, LEARNED = 10, 120  # inputs of a mean; updates of the still picture
SLOTS, ONE, EXACT = "E and F", "one slot", "exact"
KINDS = {"sent": "uint8", "heard": "uint8", "places": "float32", "start": "float16"}
Moved = tuple[tuple[int, tuple[float, float]], ...]  # sensors that stand elsewhere


class Learned(NamedTuple):
    """E and F (slots, n), and the share of right answers before each update and after the last."""

    E: Tensor
    F: Tensor
    right: list[float]


class SensorExplorer(LiveWidget):
    """Each sensor hears the name or the value of the nearest source; a head has to learn which ones belong.

    Attributes:
        updates, moved: what a reader does in the browser: updates of E and F, and sensors that they moved
            before, to a place (across, down).
    """

    title = "Which sensors hear the same source?"
    controls = ("n", "proj_dim")
    helpers = ("learn", "errors")

    n = traitlets.Enum(LENGTHS, default_value=128).tag(sync=True)
    proj_dim = traitlets.Enum(DIMS, default_value=16).tag(sync=True)
    updates, moved = 0, Moved()

    def __init__(self, **start):
        facts = {"lengths": LENGTHS, "dims": DIMS, "names": NAMES, "sources": SOURCES, "wide": WIDE}
        facts |= {"last": LAST, "sharp": SHARP, "rate": RATE, "small": SMALL}
        sent = {name: packed(array, KINDS[name]) for name, array in drawn().items()}
        super().__init__(facts, sent, **start)

    @property
    def E(self) -> Tensor:
        """What mixes keys, (proj_dim, n)."""
        return learned(self.n, self.proj_dim, self.updates, self.moved).E

    @property
    def F(self) -> Tensor:
        """What mixes values, (proj_dim, n)."""
        return learned(self.n, self.proj_dim, self.updates, self.moved).F

    @property
    def mix(self) -> Tensor:
        """Parts of four colours for every sensor, (n, 4): see `mix`."""
        return mix(self.E, self.F, places(self.n, self.moved))

    @property
    def curves(self) -> dict[str, list[float]]:
        """See `curves`."""
        return curves(self.n, self.proj_dim, self.updates, self.moved)

    @property
    def right(self) -> dict[str, float]:
        """Share of right answers in the last inputs: through the slots, through one, with exact attention."""
        return {name: means[-1] for name, means in self.curves.items()}

    def _words(self) -> str:
        when = f"After {self.updates} updates" if self.updates else "Before learning"
        ours, one, exact = self.right.values()
        return (
            f"{when}, {self.n} sensors with {self.proj_dim} slots answer {ours:.0%} right; with one slot "
            f"{one:.0%}, with exact attention {exact:.0%}, by a guess {1 / NAMES:.1%}."
        )

    def _figure(self) -> stills.Figure:
        at, shown = places(self.n, self.moved), {}
        means = curves(self.n, self.proj_dim, LEARNED, self.moved)
        for name, updates in (("before", 0), ("after", LEARNED)):
            E, F, _ = learned(self.n, self.proj_dim, updates, self.moved)
            title = f"After {updates} updates: {means[SLOTS][updates]:.0%} right"
            shown[name] = stills.sensors(at * torch.tensor([WIDE, 1]), mix(E, F, at), title)
        shown["curves"] = stills.right_answers(means, 1 / NAMES)
        return stills.board([["before", "after", "curves"]], shown, (12, 3.4), widths=(3, 3, 2))


@cache
def drawn() -> dict[str, Tensor]:
    """All that is random: where sensors stand, what E and F begin with, and the inputs.

    sent: names and values of the sources, in each input. heard: a number for each sensor: 16 times the source
    that it asks for, plus what it hears: one of NAMES at random, or NAMES for what is right.
    """
    draw = torch.Generator().manual_seed(14)
    spots = uniform(draw, 1, 2)
    while len(spots) < MOST:  # of some places the one that is farthest from all others
        some = uniform(draw, 12, 2)
        spots = torch.cat([spots, some[_apart(some, spots).amin(dim=1).argmax()][None]])
    sent = permutations(draw, INPUTS, 2, NAMES)[..., : len(SOURCES)]
    asked, wrong = (integers(draw, 0, size, INPUTS, MOST) for size in (len(SOURCES), NAMES))
    heard = 16 * asked + wrong.where(uniform(draw, INPUTS, MOST) >= RIGHT, NAMES)
    start = normal(draw, 2, ROWS, MOST).half().double()
    return {"sent": sent, "heard": heard, "places": spots.double(), "start": start}


def _apart(some: Tensor, others: Tensor) -> Tensor:
    """Distances of places, (some, others)."""
    wide = torch.tensor([WIDE, 1])
    return torch.cdist(some * wide, others * wide)


def places(n: int, moved: Moved = ()) -> Tensor:
    """Where the sensors stand, (n, 2)."""
    at = drawn()["places"][:n].clone()
    for sensor, place in moved:
        at[sensor] = torch.tensor(place)
    return at


def hears(at: Tensor) -> Tensor:
    """The source that each of the sensors at these places hears, (n,)."""
    return _apart(at, torch.tensor(SOURCES).double()).argmin(dim=1)


def readings(t: int, at: Tensor) -> tuple[Tensor, ...]:
    """q, keys, v and wanted of input t, (n, NAMES) each: even sensors hear names, odd ones values."""
    names, values = drawn()["sent"][t % INPUTS]
    codes = drawn()["heard"][t % INPUTS, : len(at)]
    asked, heard, source = codes // 16, codes % 16, hears(at)
    one_hot, odd = torch.eye(NAMES + 1, NAMES, dtype=torch.float64), torch.arange(len(at)) % 2 == 1
    keys, v = (
        torch.where(heard < NAMES, heard, sent[source]).masked_fill(hidden, NAMES)
        for sent, hidden in ((names, odd), (values, ~odd))
    )
    return SHARP * one_hot[names[asked]], one_hot[keys], one_hot[v], one_hot[values[asked]]


def share_right(output: Tensor, wanted: Tensor) -> float:
    """Share of the rows whose largest number stands where it should; of equal ones the first counts."""
    most = output.amax(dim=1, keepdim=True)
    answers = (output >= most - 1e-9 * most.abs()).double().argmax(dim=1)
    return (answers == wanted.argmax(dim=1)).double().mean().item()


def curves(n: int, slots: int, updates: int, moved: Moved = ()) -> dict[str, list[float]]:
    """Running means of right answers by update: through the slots, through one, with exact attention."""
    lines = {SLOTS: learned(n, slots, updates, moved).right, ONE: learned(n, 1, updates, moved).right}
    lines[EXACT] = exactly_right(n, updates, moved)
    ends = range(1, updates + 2)
    return {name: [fmean(line[max(0, t - LAST) : t]) for t in ends] for name, line in lines.items()}


@lru_cache(maxsize=32)
def exactly_right(n: int, updates: int, moved: Moved = ()) -> list[float]:
    """Share of right answers of exact attention, on the same inputs."""
    inputs = (readings(t, places(n, moved)) for t in range(updates + 1))
    return [share_right(scaled_dot_product_attention(q, k, v), wanted) for q, k, v, wanted in inputs]


@lru_cache(maxsize=32)
def learned(n: int, slots: int, updates: int, moved: Moved = ()) -> Learned:
    """E and F after so many updates, an input each."""
    start = SMALL * drawn()["start"][:, :slots, :n] / math.sqrt(n)
    E, F = (one.clone().requires_grad_() for one in start)
    optimizer, at, right = torch.optim.Adam([E, F], lr=RATE), places(n, moved), []
    for t in range(updates + 1):
        q, keys, v, wanted = readings(t, at)
        output = linformer_attention(q, keys, v, E, F)
        right.append(share_right(output, wanted))
        if t < updates:
            optimizer.zero_grad()
            ((output - wanted).square().sum() / wanted.square().sum()).backward()
            optimizer.step()
    return Learned(E.detach(), F.detach(), right)


def mix(E: Tensor, F: Tensor, at: Tensor) -> Tensor:
    """Parts of the colours of the plane's corners, (n, 4): a sensor is as the places that EᵀF ties it to.

    EᵀF has a row for each sensor that hears names, a column for each that hears values.
    """
    names, values = (some - some.mean(dim=0) for some in (E.T[::2], F.T[1::2]))
    x, y = (2 * at - 1).T
    plane = torch.stack([x, y, x * y], dim=1)
    tied = torch.empty_like(plane)
    tied[::2], tied[1::2] = names @ (values.T @ plane[1::2]), values @ (names.T @ plane[::2])
    corners = torch.tensor([[-1, -1, 1], [1, -1, -1], [1, 1, 1], [-1, 1, -1]]).double()
    parts = (1 + 3**0.5 * (tied / tied.norm(dim=1, keepdim=True)) @ corners.T).clamp(min=0).square()
    return parts / parts.sum(dim=1, keepdim=True)
