"""Widget 10: what a rank sends for one layer's forward pass, and what it holds. Drawn by wire_explorer.js."""

from functools import cache, partial
from typing import Any

import traitlets

from linformer_from_scratch.cost import Sizes
from linformer_from_scratch.course import plots
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.growth import GrowthWidget, Letters, letters, quantity, table
from linformer_from_scratch.distributed.wire import linformer_bytes, ring_bytes, ulysses_bytes

BYTES = 2  # of a number
RING, ULYSSES, LINFORMER = "ring attention", "Ulysses", "Linformer"
LENGTHS = [2**i for i in range(10, 21)]
TICKS = [10**i for i in range(3, 12)]  # of the axis: 1 kB … 100 GB
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
in_bytes = partial(quantity, units=UNITS)


def power(first: int, last: int, opening: int) -> traitlets.Enum:
    """A control that is a power of two, and opens with one."""
    return traitlets.Enum([2**i for i in range(first, last + 1)], default_value=opening).tag(sync=True)


class WireExplorer(GrowthWidget):
    """Bytes that each of P ranks sends against n: ring attention, Ulysses, Linformer; and what it holds.

    One layer's forward pass over one text, in 16 bit.
    """

    title = "What a rank sends, and what it holds"
    controls = ("ranks", "n", "proj_dim", "d_model", "shared")
    lengths = LENGTHS
    lines = {RING: (0, 6), ULYSSES: (2, 3.5), LINFORMER: (1, 2)}  # noqa: RUF012

    ranks = power(1, 8, 8)
    n = power(10, 20, 2**17)
    proj_dim = power(6, 10, 256)
    d_model = power(8, 12, 1024)
    shared = traitlets.Bool(False).tag(sync=True)

    def __init__(self, **start):
        super().__init__(facts(), **start)

    @property
    def curves(self) -> dict[str, list[float]]:
        """See `GrowthWidget.curves`."""
        return {name: [self._sent(n)[name] for n in LENGTHS] for name in self.lines}

    @property
    def sent(self) -> dict[str, float]:
        """Method -> bytes that a rank sends at the chosen n."""
        return self._sent(self.n)

    @property
    def exchanges(self) -> dict[str, int]:
        """Method -> how many exchanges that is."""
        return {RING: self.ranks - 1, ULYSSES: 4, LINFORMER: 1}

    @property
    def above(self) -> dict[str, int]:
        """ "ring attention" and "Ulysses" -> n above which they send more than Linformer."""
        sent = self.sent
        return {name: round(self.n * sent[LINFORMER] / sent[name]) for name in (RING, ULYSSES)}

    @property
    def tokens(self) -> int:
        """How many tokens a rank holds."""
        return self.n // self.ranks

    @property
    def token_bytes(self) -> int:
        """Bytes of their features."""
        return self.tokens * self.d_model * BYTES

    @property
    def matrix_bytes(self) -> int:
        """Bytes of a rank's columns of E and F; with E = F they are held once."""
        return (1 if self.shared else 2) * self.proj_dim * self.tokens * BYTES

    def _words(self) -> str:
        sent, least = self.sent, max(self.above.values())
        here = "as here" if self.n > least else "but not here"
        others = [
            f"{name} {in_bytes(sent[name])}, {times(sent[name] / sent[LINFORMER])}" for name in self.above
        ]
        return (
            f"{self.n:,} tokens on {self.ranks} ranks, a layer's forward pass: Linformer sends "
            f"{in_bytes(sent[LINFORMER])} whatever n; {'; '.join(others)}. "
            f"Linformer sends less than both above n = {least:,}, {here}. "
            f"A rank's {self._matrices}, {in_bytes(self.matrix_bytes)}, do grow with n."
        )

    def _figure(self) -> stills.Figure:
        sent, passes = self.sent, "pass" if self.ranks == 2 else "passes"
        kinds = {RING: passes, ULYSSES: "all-to-alls", LINFORMER: "all-reduce"}
        bars = {
            f"sends: {name}": (self.colours[name], sent[name], f" in {self.exchanges[name]} {kinds[name]}")
            for name in self.lines
        }
        bars[f"holds: {self.tokens:,} tokens"] = plots.GREY, self.token_bytes, ""
        bars[f"holds: {self._matrices}"] = plots.GREY, self.matrix_bytes, ""
        rows = {
            name: (colour, in_bytes(size) + words, [(size, True)])
            for name, (colour, size, words) in bars.items()
        }
        shares = stills.shares(rows, f"Bytes of a rank at n = {self.n:,}")
        marks = {f"{name} {n:,}": n for name, n in self.above.items()}
        title = "What a rank sends in one layer, forward"
        return self.beside(title, TICKS, UNITS, shares, 4.4, dots=sent, marks=marks)

    @property
    def _matrices(self) -> str:
        return "columns of E = F" if self.shared else "columns of E and F"

    def _sent(self, n: int) -> dict[str, float]:
        sizes = Sizes(n, self.d_model, proj_dim=self.proj_dim, bytes_per_number=BYTES)
        return sends(sizes, self.ranks, self.shared)


def sends(sizes: Sizes, ranks: Any, shared: bool) -> dict[str, Any]:
    """Method -> bytes that a rank sends; formulas of them, where sizes and ranks are letters."""
    return {
        RING: ring_bytes(sizes, ranks),
        ULYSSES: ulysses_bytes(sizes, ranks),
        LINFORMER: linformer_bytes(sizes, ranks, shared),
    }


@cache
def facts() -> dict[str, Any]:
    """What the browser needs to know; the letters of formulas are those of Sizes, and the ranks."""
    *sizes, ranks = letters(7)
    formulas = {
        name: {method: table(formula) for method, formula in sends(Letters(*sizes), ranks, shared).items()}
        for name, shared in (("apart", False), ("shared", True))
    }
    axes = {"lengths": LENGTHS, "ticks": TICKS, "units": UNITS, "lines": WireExplorer.lines}
    return {"formulas": formulas, "bytes": BYTES} | axes


def times(ratio: float) -> str:
    """A ratio of powers of two in words: 4 times as much, just as much, 1/4 as much."""
    if ratio == 1:
        return "just as much"
    return f"{ratio:,.0f} times as much" if ratio > 1 else f"1/{1 / ratio:,.0f} as much"
