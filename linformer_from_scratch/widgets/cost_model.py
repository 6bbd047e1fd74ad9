"""Widget 2: what a layer costs, by formula, against the number of tokens, and where the costs cross."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

import torch
from ipywidgets import Dropdown

from linformer_from_scratch.benchmark import copy_ceiling, matmul_ceiling
from linformer_from_scratch.cost import (
    DEVICES,
    Device,
    Sizes,
    Step,
    compress_keys,
    compress_tokens,
    crossover,
    floor_seconds,
    flops,
    full_attention,
    linear_attention,
    stored_bytes,
    tiled_attention,
)
from linformer_from_scratch.plots import EDGE, GREY, INK, KEY, LINES, QUERY, VALUE
from linformer_from_scratch.widgets.canvas import Card
from linformer_from_scratch.widgets.explorer import CannotDraw, Explorer, powers_of_two

LENGTHS = tuple(2**i for i in range(8, 18))  # 256 … 131,072
HERE = "this machine, measured now"
ORDERS: dict[str, Callable[..., list[Step]]] = {
    "E(XW), as in the paper": compress_keys,
    "(EX)W, the cheap order": compress_tokens,
    "(EX)W with E = F": partial(compress_tokens, shared=True),
}
OPERATIONS, SECONDS, STORED = "operations", "floor of the time", "bytes of all results"
COLOURS = {
    "full": QUERY,
    "tiled exact": LINES[3],
    "Linformer": KEY,
    "Linformer, tiled": LINES[6],
    "linear attention": VALUE,
}
UNITS = ("operations", "seconds", "bytes")
OPPONENTS = ("full", "tiled exact")
LEFT, TOP, RIGHT, BOTTOM = 92, 66, 640, 356  # of the plot, CSS pixels
WIDE, NARROW = 5, 2  # a narrow line lies on a wide one where two layers cost the same


class CostModel(Explorer):
    """Operations, floor of the time, or bytes of a layer against n: full, tiled, Linformer, linear attention.

    Args:
        measured: name of a line -> (n, seconds) of points to draw where the time is shown.
        machines: devices to put first into the menu, such as that of a recorded benchmark.
        start: values that controls open with, as in CostModel(n=1024, show="operations").

    Attributes:
        numbers: name of a line -> (operations, seconds, bytes) at the chosen n.
        crossings: "full" and "tiled exact" -> first n at which Linformer is below it, or None.
    """

    def __init__(
        self,
        measured: Mapping[str, Sequence[tuple[int, float]]] | None = None,
        machines: Sequence[Device] = (),
        **start,
    ):
        self.measured = measured or {}
        devices = [(device.name, device) for device in (*machines, *DEVICES)] + [(HERE, None)]
        self.n = powers_of_two("Tokens n", 8, 17, 4096)
        self.proj_dim = powers_of_two("Slots k", 5, 10, 256)
        self.d_model = powers_of_two("d_model", 6, 12, 512)
        self.num_heads = powers_of_two("Heads", 0, 5, 8)
        self.batch = powers_of_two("Batch", 0, 5, 1)
        self.number = Dropdown(options=[("float32", 4), ("16 bit", 2)], description="Numbers")
        self.device = Dropdown(options=devices, description="Device")
        self.order = Dropdown(options=list(ORDERS), description="Linformer")
        self.show = Dropdown(options=[OPERATIONS, SECONDS, STORED], description="Show")
        for name, value in start.items():
            getattr(self, name).value = value
        super().__init__(
            [
                self.show,
                self.n,
                self.proj_dim,
                self.d_model,
                self.num_heads,
                self.batch,
                self.order,
                self.number,
                self.device,
            ]
        )

    @property
    def layers(self) -> dict[str, Callable[[Sizes], list[Step]]]:
        """Name of a line -> its layer; Linformer in the chosen order."""
        ours = ORDERS[self.order.value]
        tiled = partial(ours, fused=True)
        return dict(
            zip(COLOURS, (full_attention, tiled_attention, ours, tiled, linear_attention), strict=True)
        )

    def draw(self):
        """See `Explorer.draw`."""
        if self.d_model.value % self.num_heads.value:
            raise CannotDraw(f"{self.num_heads.value} heads do not divide d_model = {self.d_model.value}.")
        device = self.device.value or this_machine(self.number.value)
        costs = {name: partial(self._cost, layer, device) for name, layer in self.layers.items()}
        values = {name: [cost(n)[self._shown] for n in LENGTHS] for name, cost in costs.items()}
        self.numbers = {name: cost(self.n.value) for name, cost in costs.items()}
        self.crossings = {name: self._crossing(costs["Linformer"], costs[name]) for name in OPPONENTS}
        card = Card(820, 408)
        card.text(16, 22, f"{self.show.value.capitalize()} of one layer", 17, bold=True)
        self._draw_plot(card, values)
        return card.image, self._words(device)

    @property
    def _shown(self) -> int:
        return self.show.index

    def _crossing(self, ours: Callable, theirs: Callable) -> int | None:
        return crossover(lambda n: ours(n)[self._shown], lambda n: theirs(n)[self._shown])

    def _cost(self, layer, device: Device, n: int) -> tuple[float, float, float]:
        b = self.number.value
        sizes = Sizes(n, self.d_model.value, self.num_heads.value, self.proj_dim.value, self.batch.value, b)
        steps = layer(sizes)
        return flops(steps), floor_seconds(steps, device, b), stored_bytes(steps)

    def _draw_plot(self, card: Card, values: dict[str, list[float]]) -> None:
        points = self.measured if self.show.value == SECONDS else {}
        everything = [v for line in values.values() for v in line]
        everything += [seconds for pairs in points.values() for _, seconds in pairs]
        base = 16 if self.show.value == STORED else 10  # 16 MiB, 256 MiB, 4 GiB, …
        low, high = math.floor(math.log(min(everything), base)), math.ceil(math.log(max(everything), base))
        ticks = [float(base) ** i for i in range(low, high + 1)]

        def x(n: float) -> float:
            return LEFT + (math.log2(n) - 8) / 9 * (RIGHT - LEFT)

        def y(value: float) -> float:
            return BOTTOM - (math.log(value, base) - low) / (high - low) * (BOTTOM - TOP)

        grid = [([(LEFT, y(tick)), (RIGHT, y(tick))], EDGE, 1) for tick in ticks]
        crossed = [(n, KEY) for n in self.crossings.values() if n]
        marks = [
            ([(x(n), TOP), (x(n), BOTTOM)], colour, 1.2) for n, colour in [*crossed, (self.n.value, INK)]
        ]
        lines = [
            ([(x(n), y(v)) for n, v in zip(LENGTHS, line, strict=True)], COLOURS[name], width)
            for (name, line), width in zip(values.items(), (WIDE, NARROW, WIDE, NARROW, NARROW), strict=True)
        ]
        card.lines((LEFT, TOP, RIGHT, BOTTOM + 1), [*grid, *marks, *lines])
        for name, pairs in points.items():
            for n, seconds in pairs:
                card.box((x(n) - 5, y(seconds) - 5, x(n) + 5, y(seconds) + 5), COLOURS[name], INK)
        for tick in ticks:
            card.text(LEFT - 8, y(tick), quantity(tick, self.show.value), 14, anchor="rm")
        for (name, met), anchor in zip(self.crossings.items(), ("rm", "lm"), strict=True):
            if met and met in range(LENGTHS[0], LENGTHS[-1] + 1):
                card.text(
                    x(met) + (4 if anchor == "lm" else -4), TOP - 20, f"{name} {met:,}", 14, KEY, anchor
                )
        for n in LENGTHS[::3]:
            card.text(x(n), BOTTOM + 16, f"{n:,}", 14, anchor="mm")
        card.text((LEFT + RIGHT) / 2, BOTTOM + 38, "tokens n", 14, GREY, "mm")
        for name, height in spread_labels({name: y(line[-1]) for name, line in values.items()}).items():
            card.text(RIGHT + 10, height, name, 14, COLOURS[name], bold=True)

    def _words(self, device: Device) -> str:
        parts = []
        for name in (*OPPONENTS, "Linformer", "Linformer, tiled"):
            shown = zip((OPERATIONS, SECONDS, STORED), self.numbers[name], strict=True)
            parts.append(f"{name} {', '.join(quantity(value, what) for what, value in shown)}")
        crossings = ", ".join(
            f"than {name} from n = {n:,} on" if n else f"than {name} never"
            for name, n in self.crossings.items()
        )
        return (
            f"At n = {self.n.value:,} on {device.name}, {self.number.label}: {'; '.join(parts)}. "
            f"Linformer takes fewer {UNITS[self._shown]} {crossings}."
        )


@cache
def this_machine(bytes_per_number: int) -> Device:
    """This machine's ceilings, measured once."""
    dtype = torch.float32 if bytes_per_number == 4 else torch.bfloat16
    return Device("this machine", {bytes_per_number: matmul_ceiling(dtype)}, copy_ceiling())


def quantity(value: float, what: str) -> str:
    """A number with its unit in three digits: 4.3 GFLOP, 1.2 ms, 512 MiB."""
    if what == SECONDS:
        return scaled(value, (1e-6, 1e-3, 1, 1e3), ("µs", "ms", "s", "ks"))
    if what == STORED:
        return scaled(value, (2**10, 2**20, 2**30, 2**40), ("KiB", "MiB", "GiB", "TiB"))
    return scaled(value, (1e6, 1e9, 1e12, 1e15), ("MFLOP", "GFLOP", "TFLOP", "PFLOP"))


def scaled(value: float, scales: Sequence[float], units: Sequence[str]) -> str:
    """The value in the largest unit that leaves at least 1."""
    scale, unit = next(
        ((s, u) for s, u in zip(scales[::-1], units[::-1], strict=True) if value >= s), (scales[0], units[0])
    )
    number = value / scale
    return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"


def spread_labels(heights: Mapping[str, float], distance: float = 18) -> dict[str, float]:
    """Heights at least so far apart, from the top down, as near to the wanted ones as that allows."""
    placed: dict[str, float] = {}
    for name, height in sorted(heights.items(), key=lambda pair: pair[1]):
        placed[name] = max([height, *(other + distance for other in placed.values())])
    return placed
