"""Widget 9: relatives of Linformer at one cost, their maps and their errors. Drawn by family_explorer.js."""

from functools import cache
from typing import Any

import torch
import traitlets
from torch import Tensor

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.live import LiveWidget, menu, packed
from linformer_from_scratch.course.widgets.projection_explorer import HEADS, real_map, stored_head
from linformer_from_scratch.efficient import family
from linformer_from_scratch.efficient.family import FAMILY, Relative, effective_map, largest_size
from linformer_from_scratch.efficient.performer import orthogonal_gaussian
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.pretrained import STORED_DIMS, stored_tokens
from linformer_from_scratch.random_projections import relative_error

LEARNED = "Linformer, learned"
NAMES = {relative.name: relative.name for relative in FAMILY} | {LEARNED: f"{LEARNED} on other texts"}
BUDGETS = [2**i for i in range(3, 8)]  # keys per query
N, D = stored_head("5.6").q.shape
KEY_FLOPS = 4 * N * D  # operations of exact attention for each key that a query attends to


class FamilyExplorer(LiveWidget):
    """A real head's map P beside the n×n map that a relative puts in its place, and every relative's error.

    The budget is in keys that a query of exact attention could read for the same operations, rounded.
    """

    title = "What each relative puts in the place of a map"
    controls = ("head", "relative", "budget")

    head = menu(HEADS, opening="5.6")
    relative = menu(NAMES, opening="Nyström")
    budget = traitlets.Enum(BUDGETS, default_value=32).tag(sync=True)

    def __init__(self, **start):
        super().__init__(facts(), data(), **start)

    @property
    def size(self) -> int | None:
        """The largest size of the chosen relative within the budget; None where nothing fits."""
        return affordable(self.relative, self.budget)

    @property
    def P(self) -> Tensor:
        """The head's map, (n, n)."""
        return real_map(self.head)

    @property
    def effective(self) -> Tensor:
        """The map that the chosen relative puts in its place, (n, n); zero where nothing fits the budget."""
        if self.size is None:
            return torch.zeros_like(self.P)
        head = stored_head(self.head)
        return effective_map(members(self.head)[self.relative].build(N, D, self.size), head.q, head.k)

    @property
    def errors(self) -> dict[str, float | None]:
        """Name -> ‖output − exact output‖ / ‖exact output‖; None where nothing fits the budget."""
        return {name: error(self.head, name, affordable(name, self.budget)) for name in NAMES}

    def _words(self) -> str:
        name, size, shown = self.relative, self.size, NAMES[self.relative]
        if size is None:
            return f"{shown} costs {cost(name, None):.0f} keys per query, the budget is {self.budget}."
        unit = members(self.head)[name].size
        sized = f" with {size} {unit}" if unit else ""
        return (
            f"{shown}{sized} costs {cost(name, size):.0f} of {N} keys per query "
            f"and is off by {self.errors[name]:.0%}; "
            f"{(self.effective < -1e-6).double().mean():.0%} of its weights are negative."
        )

    def _figure(self) -> stills.Figure:
        limit, signed = max(0.05, self.P.quantile(0.98).item()), self.effective.min().item() < -1e-6
        shown = {
            "P": stills.heat_map(self.P, f"P: exact, {N} × {N}", limit),
            "effective": stills.heat_map(self.effective, self.relative, limit, signed),
            "errors": stills.error_bars(self.errors, self.relative),
        }
        return stills.board([[*shown]], shown, (12.5, 4.3))


@cache
def members(head: str) -> dict[str, Relative]:
    """The family for a stored head, and Linformer with the E and F that were fitted to this head."""
    learned = stored_head(head).learned

    def fitted(n, d, size):
        return lambda q, k, v: linformer_attention(q, k, v, *learned[size])

    own = Relative(LEARNED, "slots k", fitted, family.linformer_flops, lambda n: STORED_DIMS, False, True)
    return {relative.name: relative for relative in (*FAMILY, own)}


@cache
def affordable(name: str, keys: int) -> int | None:
    """The largest size of a relative that costs no more than reading so many keys per query, rounded."""
    return largest_size(members("5.6")[name], N, D, KEY_FLOPS * (keys + 0.5))


def cost(name: str, size: int | None) -> float:
    """Keys per query that cost as much as a relative of this size, or of the cheapest that there is."""
    relative = members("5.6")[name]
    sizes = relative.sizes(N) if size is None else [size]
    return min(relative.flops(N, D, each) for each in sizes) / KEY_FLOPS


@cache
def error(head: str, name: str, size: int | None) -> float | None:
    """Relative error of a stored head's output; None without a size."""
    if size is None:
        return None
    q, k, v, _ = stored_head(head)
    output = members(head)[name].build(N, D, size)(q, k, v)
    return relative_error(output.flatten(), scaled_dot_product_attention(q, k, v).flatten()).item()


@cache
def facts() -> dict[str, Any]:
    """Tokens; sizes and costs of every relative at each of BUDGETS; errors of the heads there."""
    sizes = {name: [affordable(name, keys) for keys in BUDGETS] for name in NAMES}
    relatives = {
        name: {"unit": members("5.6")[name].size, "sizes": all_, "costs": [cost(name, size) for size in all_]}
        for name, all_ in sizes.items()
    }
    errors = {head: {name: [error(head, name, n) for n in sizes[name]] for name in NAMES} for head in HEADS}
    return {"tokens": stored_tokens("story"), "budgets": BUDGETS, "relatives": relatives, "errors": errors}


@cache
def data() -> dict[str, Any]:
    """What the browser makes maps of: queries and keys; by budget E and F, and Performer's directions."""
    slots, features = (
        [size for keys in BUDGETS if (size := affordable(name, keys))] for name in (LEARNED, "Performer")
    )
    heads = [stored_head(head) for head in HEADS]
    learned = [torch.cat([torch.stack(head.learned[k]) for k in slots], dim=1) for head in heads]
    return {
        "qk": packed(torch.stack([torch.stack([head.q, head.k]) for head in heads]), "float16"),
        "learned": packed(torch.stack(learned), "float16"),
        "omega": packed(torch.cat([orthogonal_gaussian(m, D) for m in features])),
    }
