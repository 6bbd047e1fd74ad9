"""Widget 10: what a rank sends for one layer's forward pass, and what it holds of a shared text."""

import math

from ipywidgets import Checkbox

from linformer_from_scratch.cost import Sizes
from linformer_from_scratch.distributed.wire import linformer_bytes, ring_bytes, ulysses_bytes
from linformer_from_scratch.plots import EDGE, GREY, INK, KEY, QUERY, VALUE
from linformer_from_scratch.widgets.canvas import Card
from linformer_from_scratch.widgets.cost_model import scaled, spread_labels
from linformer_from_scratch.widgets.explorer import Explorer, powers_of_two

BYTES = 2  # of a number
RING, ULYSSES, LINFORMER = "ring attention", "Ulysses", "Linformer"
# A narrow line and a small dot lie on wide and large ones where two methods send the same.
LOOKS = {RING: (QUERY, 6, 8), ULYSSES: (VALUE, 3.5, 6), LINFORMER: (KEY, 2, 4)}
SHORTEST, LONGEST = 10, 20  # tokens, as powers of two
LEAST, MOST = 3, 11  # of the axis of bytes, as powers of ten
LEFT, TOP, RIGHT, BOTTOM = 84, 78, 370, 318  # of the plot, CSS pixels
ROWS, NUMBERS, END = 522, 719, 817  # of the rows beside it


class WireExplorer(Explorer):
    """Bytes that each of P ranks sends against n: ring attention, Ulysses, Linformer; and what it holds.

    One layer's forward pass over one text, in 16 bit.

    Attributes:
        sent: method -> bytes that a rank sends at the chosen n.
        exchanges: method -> how many exchanges that is.
        above: "ring attention" and "Ulysses" -> n above which they send more than Linformer.
        tokens: that a rank holds.
        matrix_bytes: of its columns of E and F; with E = F they are held once.
    """

    def __init__(self):
        self.ranks = powers_of_two("Ranks P", 1, 8, 8)
        self.n = powers_of_two("Tokens n", SHORTEST, LONGEST, 2**17)
        self.proj_dim = powers_of_two("Slots k", 6, 10, 256)
        self.d_model = powers_of_two("d_model", 8, 12, 1024)
        self.shared = Checkbox(False, description="E = F")
        super().__init__([self.ranks, self.n, self.proj_dim, self.d_model, self.shared])

    def draw(self):
        """See `Explorer.draw`."""
        n, ranks = self.n.value, self.ranks.value
        self.sent = self._sent(n)
        self.exchanges = {RING: ranks - 1, ULYSSES: 4, LINFORMER: 1}
        ours = self.sent[LINFORMER]
        self.above = {name: round(n * ours / self.sent[name]) for name in (RING, ULYSSES)}
        self.tokens = n // ranks
        matrices = 1 if self.shared.value else 2
        self.matrix_bytes = matrices * self.proj_dim.value * self.tokens * BYTES
        card = Card(830, 372)
        self._draw_plot(card)
        self._draw_rows(card)
        return card.image, self._words()

    def _sent(self, n: int) -> dict[str, float]:
        sizes = Sizes(n, self.d_model.value, proj_dim=self.proj_dim.value, bytes_per_number=BYTES)
        ranks = self.ranks.value
        return {
            RING: ring_bytes(sizes, ranks),
            ULYSSES: ulysses_bytes(sizes, ranks),
            LINFORMER: linformer_bytes(sizes, ranks, self.shared.value),
        }

    def _draw_plot(self, card: Card) -> None:
        card.text(LEFT - 68, 22, "What a rank sends in one layer, forward", 17, bold=True)
        lengths = [2**i for i in range(SHORTEST, LONGEST + 1)]
        curves = [self._sent(n) for n in lengths]

        def at(n: float, sent: float) -> tuple[float, float]:
            across = (math.log2(n) - SHORTEST) / (LONGEST - SHORTEST)
            up = (math.log10(sent) - LEAST) / (MOST - LEAST)
            return LEFT + across * (RIGHT - LEFT), BOTTOM - up * (BOTTOM - TOP)

        ticks, n = [10**i for i in range(LEAST, MOST + 1)], self.n.value
        lines = [([at(lengths[0], tick), at(lengths[-1], tick)], EDGE, 1.0) for tick in ticks]
        lines.append(([at(n, ticks[0]), at(n, ticks[-1])], INK, 1.2))
        for name, (colour, width, _) in LOOKS.items():
            points = [at(n, sent[name]) for n, sent in zip(lengths, curves, strict=True)]
            lines.append((points, colour, width))
        card.lines((LEFT - 1, TOP - 1, RIGHT + 1, BOTTOM + 1), lines)
        for name, (colour, _, reach) in LOOKS.items():
            x, y = at(n, self.sent[name])
            card.box((x - reach, y - reach, x + reach, y + reach), colour, INK)
        card.text(at(n, 1)[0], TOP - 18, f"n = {n:,}", 14, anchor="mm")
        for tick in ticks:
            card.text(LEFT - 14, at(lengths[0], tick)[1], in_bytes(tick), 14, anchor="rm")
        for length in lengths[::5]:
            card.text(at(length, 1)[0], BOTTOM + 18, f"{length:,}", 14, anchor="mm")
        card.text((LEFT + RIGHT) / 2, BOTTOM + 40, "tokens n", 14, GREY, "mm")
        ends = {name: at(lengths[-1], sent)[1] for name, sent in curves[-1].items()}
        for name, height in spread_labels(ends).items():
            card.text(RIGHT + 14, height, name, 14, LOOKS[name][0], bold=True)

    def _draw_rows(self, card: Card) -> None:
        ranks = self.ranks.value
        card.text(ROWS, 22, "A rank holds", 17, bold=True)
        matrices = "columns of E = F" if self.shared.value else "columns of E and F"
        rows = {"tokens, n / P": f"{self.tokens:,}", matrices: in_bytes(self.matrix_bytes)}
        for i, (what, value) in enumerate(rows.items()):
            card.text(ROWS, 54 + 26 * i, what, 15)
            card.text(END, 54 + 26 * i, value, 15, anchor="rm", bold=True)
        card.text(ROWS, 136, "and sends", 17, bold=True)
        kinds = {RING: "pass" if ranks == 2 else "passes", ULYSSES: "all-to-alls", LINFORMER: "all-reduce"}
        for i, (name, sent) in enumerate(self.sent.items()):
            y = 168 + 26 * i
            card.text(ROWS, y, name, 15, LOOKS[name][0], bold=True)
            card.text(NUMBERS, y, in_bytes(sent), 15, anchor="rm", bold=True)
            card.text(END, y, f"{self.exchanges[name]} {kinds[name]}", 14, anchor="rm")
        notes = "The first two are exact, Linformer is not.", f"Ulysses needs {ranks} heads or more."
        for i, note in enumerate(notes):
            card.text(ROWS, 266 + 22 * i, note, 14, GREY)

    def _words(self) -> str:
        n, ours = self.n.value, self.sent[LINFORMER]
        others = [
            f"{name} {in_bytes(self.sent[name])}, {times(self.sent[name] / ours)}" for name in self.above
        ]
        least = max(self.above.values())
        here = "as here" if n > least else "but not here"
        matrices = "columns of E = F" if self.shared.value else "columns of E and F"
        return (
            f"{n:,} tokens on {self.ranks.value} ranks, a layer's forward pass: Linformer sends "
            f"{in_bytes(ours)} whatever n; {'; '.join(others)}. Linformer sends less than both above "
            f"n = {least:,}, {here}. A rank's {matrices}, {in_bytes(self.matrix_bytes)}, do grow with n."
        )


def in_bytes(value: float) -> str:
    """A number of bytes in three digits with its unit: 1.84 MB."""
    return scaled(value, (1, 1e3, 1e6, 1e9), ("B", "kB", "MB", "GB"))


def times(ratio: float) -> str:
    """A ratio of powers of two in words: 4 times as much, just as much, 1/4 as much."""
    if ratio == 1:
        return "just as much"
    return f"{ratio:,.0f} times as much" if ratio > 1 else f"1/{1 / ratio:,.0f} as much"
