"""Widget 9: what each relative of Linformer reads, what it costs, and how far off it is, at one budget."""

from functools import cache

from ipywidgets import Dropdown

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.efficient.family import (
    FAMILY,
    Relative,
    effective_map,
    largest_size,
    linformer_flops,
)
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.plots import EDGE, GREY, INK, KEY, QUERY
from linformer_from_scratch.pretrained import STORED_DIMS, stored_heads
from linformer_from_scratch.random_projections import relative_error
from linformer_from_scratch.widgets.canvas import Card
from linformer_from_scratch.widgets.explorer import CannotDraw, Explorer, powers_of_two
from linformer_from_scratch.widgets.projection_explorer import HEADS, real_map

LEARNED = "Linformer, learned on other texts"
NAMES = (*(relative.name for relative in FAMILY), LEARNED)
SIDE, LEFT, TOP, STEP, ROW = 240, 24, 58, 280, 26  # CSS pixels
BARS, ZERO, HUNDRED = LEFT + 2 * STEP, LEFT + 2 * STEP + 186, 80  # where bars begin; pixels of 100 %


class FamilyExplorer(Explorer):
    """A real head's map P beside the n×n map that a relative puts in its place, and every relative's error.

    The budget is in keys that a query of exact attention could read for the same operations, rounded.

    Attributes:
        size: of the chosen relative, the largest within the budget.
        P, effective: (n, n) both.
        errors: name -> ‖output − exact output‖ / ‖exact output‖, None where nothing fits the budget.
    """

    def __init__(self):
        self.head = Dropdown(options=HEADS, description="Map", layout={"width": "824px"})
        self.relative = Dropdown(options=NAMES, value="Nyström", description="Relative")
        self.budget = powers_of_two("Keys a query", 3, 7, 32)
        super().__init__([self.head, self.relative, self.budget])

    def draw(self):
        """See `Explorer.draw`."""
        place, name, keys = self.head.value, self.relative.value, self.budget.value
        head, relative = stored_heads()[place], members(place)[name]
        n, d = head.q.shape
        size = affordable(place, name, keys)
        if size is None:
            least = min(relative.flops(n, d, other) for other in relative.sizes(n)) / (4 * n * d)
            raise CannotDraw(f"{name} costs as much as reading {least:.0f} keys, the budget is {keys}.")
        self.size = size
        self.P, _ = real_map(place)
        self.effective = effective_map(relative.build(n, d, self.size), head.q, head.k)
        self.errors = {other: error(place, other, affordable(place, other, keys)) for other in NAMES}
        return self._card().image, self._words(relative, n, d)

    def _card(self) -> Card:
        card = Card(BARS + 430, TOP + SIDE + 24)
        limit = max(0.05, self.P.quantile(0.98).item())
        maps = (("exact", self.P), (_short(self.relative.value), self.effective))
        for column, (title, values) in enumerate(maps):
            x = LEFT + column * STEP
            card.text(x, 24, title, 16, bold=True)
            card.text(x, 46, "queries down, keys across", 14, GREY)
            box = (x, TOP, x + SIDE, TOP + SIDE)
            card.heatmap(box, values, (-limit, limit), "RdBu_r")
            card.box(box, outline=EDGE)
        card.text(BARS, 24, "Error of the output at this budget", 16, bold=True)
        for i, (name, found) in enumerate(self.errors.items()):
            y, chosen = TOP + 10 + ROW * i, name == self.relative.value
            card.text(BARS, y, _short(name), 14, bold=chosen)
            if found is not None:
                end = ZERO + HUNDRED * min(found, 2)
                card.box((ZERO, y - 8, end, y + 8), fill=KEY if chosen else QUERY)
            said = "too dear" if found is None else f"{found:.0%}"
            card.text(ZERO + 2 * HUNDRED + 62, y, said, 14, GREY if found is None else INK, "rm", bold=chosen)
        across = ZERO + HUNDRED
        card.box((across, TOP - 4, across + 1, TOP + ROW * len(self.errors)), fill=GREY)
        card.text(across, TOP + ROW * len(self.errors) + 8, "answering zero", 14, GREY, "mm")
        return card

    def _words(self, relative: Relative, n: int, d: int) -> str:
        cost = relative.flops(n, d, self.size) / (4 * n * d)
        sized = f" with {self.size} {relative.size}" if relative.size else ""
        return (
            f"{relative.name}{sized} costs as much as reading {cost:.0f} of {n} keys a query. "
            f"Its output is off by {self.errors[relative.name]:.0%}. "
            f"{(self.effective < -1e-6).double().mean():.0%} of its weights are negative."
        )


def _short(name: str) -> str:
    return name.removesuffix(" on other texts")


@cache
def members(place: tuple[int, int]) -> dict[str, Relative]:
    """The family for a stored head, and Linformer with the E and F that were fitted to this head."""
    head = stored_heads()[place]

    def fitted(n, d, size):
        return lambda q, k, v: linformer_attention(q, k, v, *head.learned[size])

    learned = Relative(LEARNED, "slots k", fitted, linformer_flops, lambda n: STORED_DIMS, False, True)
    return {relative.name: relative for relative in (*FAMILY, learned)}


@cache
def affordable(place: tuple[int, int], name: str, keys: int) -> int | None:
    """The largest size of a relative that costs no more than reading so many keys a query, rounded."""
    n, d = stored_heads()[place].q.shape
    return largest_size(members(place)[name], n, d, 4 * n * d * (keys + 0.5))


@cache
def error(place: tuple[int, int], name: str, size: int | None) -> float | None:
    """Relative error of a stored head's output; None without a size."""
    if size is None:
        return None
    q, k, v, _ = stored_heads()[place]
    output = members(place)[name].build(*q.shape, size)(q, k, v)
    return relative_error(output.flatten(), scaled_dot_product_attention(q, k, v).flatten()).item()
