"""Widget 2: what a layer costs, by formula, against the number of tokens. Drawn by cost_model.js."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import torch
import traitlets

from linformer_from_scratch import cost
from linformer_from_scratch.benchmark import copy_ceiling, matmul_ceiling, measured_crossover
from linformer_from_scratch.cost import DEVICES, Device, Sizes, Step, compress_tokens, crossover, flops
from linformer_from_scratch.course import plots
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.growth import Letters, letters, quantity, table
from linformer_from_scratch.course.widgets.live import CannotDraw, LiveWidget, menu

LENGTHS = [2**i * quarters // 4 for i in range(8, 17) for quarters in (4, 5, 6, 7)] + [2**17]  # 256 … 131,072
HERE = "the machine that ran this notebook"
ORDERS: dict[str, Callable[..., list[Step]]] = {
    "E(XW)": cost.compress_keys,
    "(EX)W": compress_tokens,
    "E = F": partial(compress_tokens, shared=True),
}
ORDER_NAMES = ("E(XW), as in the paper", "(EX)W, the cheap order", "(EX)W with E = F")
SHOWN = {"operations": "operations", "bytes": "bytes of all results", "seconds": "floor of the time"}
NUMBERS = {"float32": 4, "16 bit": 2}  # bytes of each
LINES = {  # name -> place of its colour, width
    "full": (0, 7),
    "tiled exact": (3, 4),
    "Linformer": (1, 6),
    "Linformer, tiled": (6, 3),
    "linear attention": (2, 1.5),
}
OPPONENTS, OURS = ("full", "tiled exact"), ("Linformer", "Linformer, tiled")
UNITS: dict[str, dict[str, float]] = {
    "operations": {"MFLOP": 1e6, "GFLOP": 1e9, "TFLOP": 1e12, "PFLOP": 1e15},
    "seconds": {"µs": 1e-6, "ms": 1e-3, "s": 1, "ks": 1e3},
    "bytes": {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40},
}
BASES = {"operations": 10, "seconds": 10, "bytes": 16}  # of the axis: 16 MiB, 256 MiB, 4 GiB, …


class CostModel(LiveWidget):
    """Operations, floor of the time, or bytes of a layer against n: full, tiled, Linformer, linear attention.

    Args:
        measured: name of a line -> (n, seconds) of points to draw where the time is shown.
        machines: devices to put first into the menu, such as that of a recorded benchmark.
        wall: draw full attention alone, as its text doubles.
        start: values that controls open with, as in CostModel(n=1024, show="seconds").

    Attributes:
        pays: n from which Linformer's measured time lies below exact attention's, in two digits; or None.
    """

    title = "What a layer costs"
    helpers = ("growth",)
    controls = ("show", "n", "proj_dim", "d_model", "num_heads", "batch", "order", "number", "device")

    show = menu(SHOWN)
    n = traitlets.Int(4096, min=LENGTHS[0], max=LENGTHS[-1]).tag(sync=True)
    proj_dim = traitlets.Int(256, min=32, max=1024).tag(sync=True)
    d_model = traitlets.Int(512, min=64, max=4096).tag(sync=True)
    num_heads = traitlets.Int(8, min=1, max=32).tag(sync=True)
    batch = traitlets.Int(1, min=1, max=32).tag(sync=True)
    order = menu(dict(zip(ORDERS, ORDER_NAMES, strict=True)))
    number = menu({name: name for name in NUMBERS})
    device = traitlets.Unicode(DEVICES[0].name).tag(sync=True)

    def __init__(
        self,
        measured: Mapping[str, Sequence[Sequence[float]]] | None = None,
        machines: Sequence[Device | Mapping[str, Any]] = (),
        wall: bool = False,
        **start,
    ):
        self.measured = {name: [list(point) for point in points] for name, points in (measured or {}).items()}
        self.wall, self.lines = wall, {"full": LINES["full"]} if wall else LINES
        if unknown := self.measured.keys() - LINES.keys():
            raise ValueError(f"no line is named {', '.join(unknown)}; there are {', '.join(LINES)}")
        self.pays = measured_pays(self.measured)
        self.devices = {device.name: device for device in (*map(device_of, machines), *DEVICES)}
        super().__init__(**{"device": next(iter(self.devices))} | start)
        self._offer()

    @traitlets.validate("device")
    def _known(self, proposal):
        if proposal.value not in (*self.devices, HERE):
            known = f"{proposal.value!r} among {', '.join(self.devices)}"
            raise traitlets.TraitError(f"no device {known}; machines=[…] adds others")
        return proposal.value

    @traitlets.observe("device")
    def _measure(self, change):
        if self.device == HERE and HERE not in self.devices:
            self.devices[HERE] = this_machine()
            self._offer()

    def _offer(self) -> None:
        self.choices = {**self.menus(), "device": {name: name for name in (*self.devices, HERE)}}
        devices = {name: device._asdict() for name, device in self.devices.items()}
        known = {"measured": self.measured, "devices": devices, "lines": self.lines, "pays": self.pays}
        self.facts = constants() | known

    def arguments(self) -> dict[str, Any]:
        """See `LiveWidget.arguments`; what was measured comes along."""
        machines = [device._asdict() for device in self.devices.values() if device not in DEVICES]
        more = {"measured": self.measured, "machines": machines, "wall": self.wall}
        return super().arguments() | {name: value for name, value in more.items() if value}

    def cost(self, name: str, n: int) -> tuple[float, float, float]:
        """Operations, seconds and bytes of one line at n tokens.

        Raises: CannotDraw if the heads do not divide d_model, or the device has no ceiling for such numbers.
        """
        steps, device = self._layer(name, n), self.devices[self.device]
        if self._bytes not in device.flops_per_s:
            raise CannotDraw(f"{device.name} has no ceiling for {self.number} numbers.")
        return flops(steps), cost.floor_seconds(steps, device, self._bytes), cost.stored_bytes(steps)

    @property
    def costs(self) -> dict[str, tuple[float, float, float]]:
        """Name of a line -> (operations, seconds, bytes) at the chosen n."""
        return {name: self.cost(name, self.n) for name in self.lines}

    @property
    def curves(self) -> dict[str, list[float]]:
        """Name of a line -> what is shown at each of LENGTHS."""
        return {name: [self._shown(name, n) for n in LENGTHS] for name in self.lines}

    @property
    def crossings(self) -> dict[str, int]:
        """ "full", "tiled exact" -> first n at which Linformer is below it; left out if it never is."""
        ours, theirs = partial(self._shown, "Linformer"), () if self.wall else OPPONENTS
        first = {name: crossover(ours, partial(self._shown, name)) for name in theirs}
        return {name: n for name, n in first.items() if n}

    @property
    def rows(self) -> dict[str, tuple[str, int]]:
        """Of the bars, words -> name of a line and n: every line at the chosen n; the wall's as n doubles."""
        if self.wall:
            return {f"n = {n:,}": ("full", n) for n in (self.n, 2 * self.n, 4 * self.n)}
        return {name: (name, self.n) for name in self.lines}

    @property
    def shares(self) -> dict[str, list[float]]:
        """Words of a bar -> what is shown of each of its steps."""
        return {words: [share for share, _ in self._shares(*row)] for words, row in self.rows.items()}

    def _words(self) -> str:
        said = f"At n = {self.n:,} on {self.device}, {self.number}: full {self._said('full', self.n)}"
        if self.wall:
            more = self._shown("full", 2 * self.n) / self._shown("full", self.n)
            return f"{said}. Twice the text takes {self._said('full', 2 * self.n)}, {more:.1f} times as much."
        crossings = self.crossings
        less = ", ".join(
            f"than {name} {f'from n = {crossings[name]:,} on' if name in crossings else 'at no length'}"
            for name in OPPONENTS
        )
        words = f"{said}, Linformer {self._said('Linformer', self.n)}. Linformer takes less {less}."
        return f"{words} {self._measured}." if self._measured else words

    def _figure(self) -> stills.Figure:
        points = self.measured if self.show == "seconds" else {}
        values = [*self.curves.values(), *([y for _, y in pairs] for pairs in points.values())]
        colours = {name: plots.LINES[place] for name, (place, _) in self.lines.items()}
        rows = {
            words: (colours[row[0]], self._said(*row), self._shares(*row)) for words, row in self.rows.items()
        }
        curves = partial(
            plots.draw_growth,
            title=self._measured or f"{SHOWN[self.show].capitalize()} of one layer",
            lengths=LENGTHS,
            curves=self.curves,
            looks={name: (colours[name], width) for name, (_, width) in self.lines.items()},
            ticks={tick: quantity(tick, UNITS[self.show]) for tick in ticks(values, BASES[self.show])},
            n=self.n,
            dots={name: self._shown(name, self.n) for name in self.lines},
            points=points,
            marks={f"{name} {n:,}": n for name, n in self.crossings.items()},
            pays=self.pays if self._measured else None,
        )
        title = f"{'As the text doubles' if self.wall else f'At n = {self.n:,}'}; strong: grows with n²"
        shown: dict[str, stills.Drawing] = {"curves": curves, "bars": stills.shares(rows, title)}
        return stills.board([[*shown]], shown, (11, 4.6), widths=(3, 2))

    @property
    def _measured(self) -> str:
        """From which n on Linformer pays, as it was measured."""
        is_shown = self.pays and self.show == "seconds" and not self.wall
        return f"Measured, Linformer pays from about n = {self.pays:,.0f} on" if is_shown else ""

    @property
    def _bytes(self) -> int:
        return NUMBERS[self.number]

    def _layer(self, name: str, n: int) -> list[Step]:
        if self.d_model % self.num_heads:
            raise CannotDraw(f"{self.num_heads} heads do not divide d_model = {self.d_model}.")
        sizes = Sizes(n, self.d_model, self.num_heads, self.proj_dim, self.batch, self._bytes)
        return layers(self.order)[name](sizes)

    def _shown(self, name: str, n: int) -> float:
        return self.cost(name, n)[list(UNITS).index(self.show)]

    def _said(self, name: str, n: int) -> str:
        return quantity(self._shown(name, n), UNITS[self.show])

    def _shares(self, name: str, n: int) -> list[tuple[float, bool]]:
        """What is shown of each step, and whether it grows with n²."""
        device, shares = self.devices[self.device], []
        for step, formula in zip(self._layer(name, n), formulas(self.order)[name], strict=True):
            computing = step.flops / device.flops_per_s[self._bytes], "flops"
            moving = step.moved / device.bytes_per_s, "moved"
            amounts = {"operations": (step.flops, "flops"), "bytes": (step.result, "result")}
            value, kind = (amounts | {"seconds": max(computing, moving)})[self.show]
            shares.append((value, any(power == 2 for _, power, *_ in formula[kind])))
        return shares


def layers(order: str) -> dict[str, Callable[[Sizes], list[Step]]]:
    """Name of a line -> its layer; Linformer in one of ORDERS."""
    ours = ORDERS[order]
    return {
        "full": cost.full_attention,
        "tiled exact": cost.tiled_attention,
        "Linformer": ours,
        "Linformer, tiled": partial(ours, fused=True),
        "linear attention": cost.linear_attention_steps,
    }


@cache
def formulas(order: str) -> dict[str, list[dict[str, Any]]]:
    """Name of a line -> its steps: name, and tables of operations, bytes moved and bytes of the result.

    Letters: n, d_model, num_heads, proj_dim, batch, bytes_per_number.
    """
    sizes, kinds = Letters(*letters(6)), ("flops", "moved", "result")

    def tables(step: Step) -> dict[str, Any]:
        return {"name": step.name} | {kind: table(getattr(step, kind)) for kind in kinds}

    return {name: [*map(tables, layer(sizes))] for name, layer in layers(order).items()}


@cache
def constants() -> dict[str, Any]:
    """What the browser needs to know whatever is chosen."""
    fixed = {"opponents": OPPONENTS, "lengths": LENGTHS, "units": UNITS, "bases": BASES, "bytes": NUMBERS}
    return fixed | {"formulas": {order: formulas(order) for order in ORDERS}}


def ticks(curves: Iterable[Iterable[float]], base: int) -> list[float]:
    """Powers of a base around all that is drawn."""
    values = [value for curve in curves for value in curve]
    low, high = math.floor(math.log(min(values), base)), math.ceil(math.log(max(values), base))
    return [float(base) ** i for i in range(low, high + 1)]


def measured_pays(measured: Mapping[str, Sequence[Sequence[float]]]) -> float | None:
    """See `CostModel`: of both the fastest that was measured, where they have lengths in common."""
    fastest = ([name for name in names if name in measured][-1:] for names in (OURS, OPPONENTS))
    ours, theirs = ({int(n): s for name in names for n, s in measured[name]} for names in fastest)
    lengths = sorted(ours.keys() & theirs.keys())
    n = lengths and measured_crossover(lengths, *([times[n] for n in lengths] for times in (ours, theirs)))
    return float(f"{n:.2g}") if n else None


def device_of(machine: Device | Mapping[str, Any]) -> Device:
    """A machine; also one that was a dict in `CostModel.arguments`, whose numbers JSON turns into strings."""
    fields = machine if isinstance(machine, Mapping) else machine._asdict()
    ceilings = {int(bytes_): per_s for bytes_, per_s in fields["flops_per_s"].items()}
    return Device(fields["name"], ceilings, fields["bytes_per_s"])


@cache
def this_machine() -> Device:
    """This machine's ceilings, measured once."""
    products = {4: matmul_ceiling(torch.float32), 2: matmul_ceiling(torch.bfloat16)}
    return Device(HERE, products, copy_ceiling())
