"""Widget 10: what ranks send each other for one layer's forward pass. Drawn by wire_explorer.js."""

from functools import cache, partial
from typing import Any

import traitlets

from linformer_from_scratch.cost import Sizes
from linformer_from_scratch.course.plots import LINES
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.growth import Letters, letters, quantity, table
from linformer_from_scratch.course.widgets.live import LiveWidget
from linformer_from_scratch.distributed.wire import linformer_bytes, ring_bytes, ulysses_bytes

BYTES = 2  # of a number
RING, ULYSSES, LINFORMER = "ring attention", "Ulysses", "Linformer"
COLOURS = {RING: 0, ULYSSES: 2, LINFORMER: 1}  # places in plots.LINES
WAYS = {RING: "round", ULYSSES: "across", LINFORMER: "inwards"}
LENGTHS = [2**i for i in range(10, 21)]
MOST_DRAWN = 16  # ranks
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
in_bytes = partial(quantity, units=UNITS)


def power(first: int, last: int, opening: int) -> traitlets.Enum:
    """A control that is a power of two, and opens with one."""
    return traitlets.Enum([2**i for i in range(first, last + 1)], default_value=opening).tag(sync=True)


class WireExplorer(LiveWidget):
    """P ranks in a circle, and arrows as thick as what they send: ring attention, Ulysses, Linformer.

    One layer's forward pass over one text, in 16 bit.
    """

    title = "What travels between the ranks"
    controls = ("ranks", "n", "proj_dim", "d_model", "shared")
    helpers = ("growth",)

    ranks = power(1, 8, 8)
    n = power(10, 20, 2**17)
    proj_dim = power(6, 10, 256)
    d_model = power(8, 12, 1024)
    shared = traitlets.Bool(False).tag(sync=True)

    def __init__(self, **start):
        super().__init__(facts(), **start)

    @property
    def sent(self) -> dict[str, float]:
        """Method -> bytes that a rank sends."""
        sizes = Sizes(self.n, self.d_model, proj_dim=self.proj_dim, bytes_per_number=BYTES)
        return sends(sizes, self.ranks, self.shared)

    @property
    def above(self) -> dict[str, int]:
        """ "ring attention" and "Ulysses" -> n above which they send more than Linformer."""
        sent = self.sent
        return {name: round(self.n * sent[LINFORMER] / sent[name]) for name in (RING, ULYSSES)}

    @property
    def matrix_bytes(self) -> int:
        """Bytes of a rank's columns of E and F; with E = F they are held once."""
        return (1 if self.shared else 2) * self.proj_dim * self.n // self.ranks * BYTES

    def _words(self) -> str:
        sent, least = self.sent, max(self.above.values())
        here = "as here" if self.n > least else "but not here"
        ring, ulysses = (times(sent[name] / sent[LINFORMER]) for name in self.above)
        return (
            f"{self.n:,} tokens on {self.ranks} ranks: Linformer sends {in_bytes(sent[LINFORMER])}, "
            f"{RING} {ring}, {ULYSSES} {ulysses}. "
            f"Linformer sends less than both above n = {least:,}, {here}."
        )

    def _figure(self) -> stills.Figure:
        along = self.sent | {ULYSSES: self.sent[ULYSSES] / (self.ranks - 1)}  # bytes on one arrow
        count, widest = min(self.ranks, MOST_DRAWN), self.sent[RING] * LENGTHS[-1] / self.n
        shown = {
            name: stills.wires(
                f"{name}: {in_bytes(self.sent[name])}", how, count, LINES[COLOURS[name]], along[name] / widest
            )
            for name, how in WAYS.items()
        }
        return stills.board([[*shown]], shown, (12, 4.2))


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
    more = {"lengths": LENGTHS, "bytes": BYTES, "units": UNITS, "lines": COLOURS, "ways": WAYS}
    return {"formulas": formulas, "most_drawn": MOST_DRAWN} | more


def times(ratio: float) -> str:
    """A ratio of powers of two in words: 4 times as much, just as much, 1/4 as much."""
    if ratio == 1:
        return "just as much"
    return f"{ratio:,.0f} times as much" if ratio > 1 else f"1/{1 / ratio:,.0f} as much"
