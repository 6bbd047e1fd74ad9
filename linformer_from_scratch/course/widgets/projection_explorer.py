"""Widget 6: what several kinds of E and F make of a real attention map. Drawn by projection_explorer.js."""

from functools import cache, lru_cache
from itertools import product
from typing import Any

import torch
import traitlets
from torch import Tensor

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.course import plots
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.live import menu, packed
from linformer_from_scratch.course.widgets.reading import TextWidget, read_heads
from linformer_from_scratch.low_rank import decompose
from linformer_from_scratch.pretrained import STORED_DIMS, StoredHead, stored_heads, stored_tokens
from linformer_from_scratch.projections import GaussianProjection, MeanPooling
from linformer_from_scratch.random_projections import relative_error

HEADS = {  # layer.head -> what a menu shows
    "4.2": "layer 4, head 2: takes “it” to “bank”",
    "5.6": "the gist head: layer 5, head 6",
    "1.5": "layer 1, head 5: attends to its neighbours",
    "1.3": "the previous-token head: layer 1, head 3",
}
LEARNED, MEAN, STRIDED, GAUSSIAN, BEST = "learned", "mean", "strided", "gaussian", "best"
KINDS = {
    LEARNED: "learned on other texts",
    MEAN: "mean pooling",
    STRIDED: "every n/k-th token",
    GAUSSIAN: "Gaussian",
    BEST: "map of rank k nearest to P (needs P)",
}
SHORT = dict(zip(KINDS, ("learned", "mean pooling", "every n/k-th", "Gaussian", "nearest to P"), strict=True))


class ProjectionExplorer(TextWidget):
    """A real map P beside Linformer's P̄ and the n×n map P̄F that it amounts to, with E and F above."""

    title = "What E and F make of a real map"
    controls = ("proj_dim", "kind", "head", "text", "query", "matrices")
    libraries = ("d3", "ml_matrix")
    helpers = ("text", "errors", "learn", "flow", "matrices")

    head = menu(HEADS)
    text = traitlets.Unicode("").tag(sync=True, choices={"": "the story"})
    kind = menu(KINDS)
    proj_dim = traitlets.Enum(STORED_DIMS, default_value=16).tag(sync=True)
    query = traitlets.Int(8, min=1, max=128).tag(sync=True)
    matrices = traitlets.Bool(False).tag(sync=True)

    def __init__(self, **start):
        facts = {"tokens": {"": stored_tokens("story")}, "dims": [*STORED_DIMS], "short": SHORT}
        super().__init__(facts, data(), **start)

    @property
    def dims(self) -> list[int]:
        """See `dims_of`."""
        return dims_of(len(self.tokens))

    @property
    def k(self) -> int:
        """Slots: as many as are chosen, or the most of a short text."""
        return min(self.proj_dim, self.dims[-1])

    @property
    def P(self) -> Tensor:
        """The head's map, (n, n)."""
        return real_map(self.head, self.shown)

    @property
    def E(self) -> Tensor:
        """What mixes keys, (proj_dim, n)."""
        return projections(self.kind, self.head, self.k, text=self.shown)[0]

    @property
    def F(self) -> Tensor:
        """What mixes values, (proj_dim, n)."""
        return projections(self.kind, self.head, self.k, text=self.shown)[1]

    @property
    def P_bar(self) -> Tensor:
        """How much each query attends to each slot, (n, proj_dim)."""
        return strip(self.kind, self.head, self.k, text=self.shown)

    @property
    def effective(self) -> Tensor:
        """P̄F, (n, n)."""
        return effective(self.kind, self.head, self.k, text=self.shown)

    @property
    def error(self) -> float:
        """‖P̄FV − PV‖ / ‖PV‖, so that an output of zeros has error 1."""
        return self.errors[self.kind][self.dims.index(self.k)].item()

    @property
    def errors(self) -> dict[str, Tensor]:
        """Kind -> error of this head's output for each of `dims`."""
        return dict(zip(KINDS, errors_of(self.head, self.shown), strict=True))

    @property
    def place(self) -> int:
        """Which token is the query; one in the middle where the text is shorter than `query`."""
        n = len(self.tokens)
        return (self.query if self.query <= n else n // 2) - 1

    def _words(self) -> str:
        k, at, tokens = self.k, self.place, self.tokens
        exact, got = self.P[at], self.effective[at]
        most, other = int(exact.argmax()), int(got.abs().argmax())
        best = self.errors[BEST][self.dims.index(k)]
        words = (
            f"With k = {k} slots for {len(tokens)} tokens, the head's output is off by {self.error:.0%}; "
            f"the map of rank {k} nearest to P is off by {best:.0%}. "
            f"“{tokens[at]}” attends most to “{tokens[most]}”, {exact[most]:z.2f}; "
            f"through the slots it gets most from “{tokens[other]}”, {got[other]:z.2f}."
        )
        if self.matrices:
            sums, negative = self.effective.sum(dim=-1), (self.effective < 0).double().mean()
            words += (
                f" The rows of P̄F sum to {sums.min():z.2f} … {sums.max():z.2f}, "
                f"{negative:.0%} of its entries are negative, its rank is {map_rank(self.effective)}."
            )
        return words.replace("-", "−")

    def _figure(self) -> stills.Figure:
        n, k, best = len(self.P), self.k, self.kind == BEST
        limit = max(0.05, self.P.quantile(0.98).item())
        shown = {"P": stills.heat_map(self.P, f"P: {n} × {n}", limit)}
        for name, matrix in (("E", self.E), ("F", self.F)):
            title = f"{f'Vᵀ in place of {name}' if best else name}: {k} × {n}"
            strongest = matrix.abs().max().item()
            shown[name] = stills.heat_map(matrix, title, strongest, True, note="slots down, tokens across")
        title, strongest = f"{'UΣ' if best else 'P̄'}: {n} × {k}", self.P_bar.abs().quantile(0.98).item()
        shown["P̄"] = stills.heat_map(self.P_bar, title, strongest, best, note="slots across", tall=n / k)
        title = "UΣVᵀ: nearest to P" if best else "P̄F: what it amounts to"
        shown["P̄F"] = stills.heat_map(self.effective, title, limit, signed=True)
        lines = {SHORT[kind]: (values, *self._look(kind)) for kind, values in self.errors.items()}
        shown["errors"] = stills.errors(self.dims, lines, k)
        layout = [["E", ".", "F", "errors"], ["P", "P̄", "P̄F", "errors"]]
        return stills.board(layout, shown, (11.6, 5.2), (1, 2.6), (2, 1, 2, 1.5))

    def _look(self, kind: str) -> tuple[str, float, str]:
        style = "--" if kind == BEST else "-"
        if kind == self.kind:
            return plots.QUERY, 3.5, style
        return (plots.INK if kind == BEST else plots.GREY), 1.5, style


def dims_of(n: int) -> list[int]:
    """Those of STORED_DIMS that are at most half of n."""
    return [k for k in STORED_DIMS if 2 * k <= n]


@cache
def stored_head(name: str, text: str = "") -> StoredHead:
    """A head by its name in HEADS, in float64, on the story or the reader's, where E and F are cut."""
    layer, head = map(int, name.split("."))
    q, k, v, learned = stored_heads("story")[layer, head]
    if text:
        q, k, v = read_heads(text).heads[:, layer - 1, head - 1]
        learned = {size: (E[:, : len(q)], F[:, : len(q)]) for size, (E, F) in learned.items()}
    doubled: dict[int, tuple[Tensor, ...]] = {
        size: (E.double(), F.double()) for size, (E, F) in learned.items()
    }
    return StoredHead(q.double(), k.double(), v.double(), doubled)


@cache
def real_map(name: str, text: str = "") -> Tensor:
    """A head's map, (n, n)."""
    head = stored_head(name, text)
    return attention_weights(head.q, head.k)


@cache
def best_factors(name: str, text: str = "") -> tuple[Tensor, Tensor]:
    """U diag(σ), (n, 64), and Vᵀ, (64, n): k columns of the one times k rows of the other are the best map.

    A text of fewer tokens has fewer of both. In the precision in which they are sent.
    """
    u, sigma, vt = decompose(real_map(name, text))
    most = max(STORED_DIMS)
    largest = vt.gather(-1, vt.abs().argmax(dim=-1, keepdim=True))  # above zero, to settle the signs
    left, right = u * sigma * largest.T.sign(), vt * largest.sign()
    return left[:, :most].half().double(), right[:most].half().double()


def projections(kind: str, name: str, k: int, text: str = "") -> tuple[Tensor, Tensor]:
    """E and F of a kind for a head, (k, n) each; the learned ones were fitted to this head on other texts."""
    n = len(stored_head(name, text).q)
    if kind == LEARNED:
        E, F = stored_head(name, text).learned[k]
        return E, F
    if kind == GAUSSIAN:
        size = len(stored_tokens("story"))
        E, F = (GaussianProjection(size, k, i).weight.half().double()[:, :n] for i in range(2))
        return E, F
    if kind == BEST:
        E = best_factors(name, text)[1][:k]
    else:
        eye = torch.eye(n, dtype=torch.float64)
        E = MeanPooling(n, k)(eye) if kind == MEAN else eye[torch.arange(k) * n // k]
    return E, E


def strip(kind: str, name: str, k: int, text: str = "") -> Tensor:
    """P̄, (n, k); of the best map of rank k, what stands in its place."""
    if kind == BEST:
        return best_factors(name, text)[0][:, :k]
    head = stored_head(name, text)
    return attention_weights(head.q, projections(kind, name, k, text)[0] @ head.k)


def effective(kind: str, name: str, k: int, text: str = "") -> Tensor:
    """P̄F, (n, n): the map that stands in the place of P."""
    return strip(kind, name, k, text) @ projections(kind, name, k, text)[1]


def output_error(approximate: Tensor, name: str, text: str = "") -> float:
    """‖approximate V − PV‖ / ‖PV‖ of a map (n, n) in the place of a head's own."""
    v = stored_head(name, text).v
    return relative_error((approximate @ v).flatten(), (real_map(name, text) @ v).flatten()).item()


def map_rank(approximate: Tensor) -> int:
    """Rank of a map; singular values below 1e-5 of the largest count as zero."""
    return int(torch.linalg.matrix_rank(approximate, rtol=1e-5))


@lru_cache(maxsize=8)
def errors_of(name: str, text: str) -> Tensor:
    """Error of a head's output, by kind and `dims_of` the text."""
    if not text:
        return measured()[0][[*HEADS].index(name)]
    dims = dims_of(len(real_map(name, text)))
    of = [[output_error(effective(kind, name, k, text=text), name, text) for k in dims] for kind in KINDS]
    return torch.tensor(of)


@cache
def measured() -> tuple[Tensor, Tensor]:
    """Error of the output and rank of P̄F, by head, kind and STORED_DIMS."""
    maps = [(name, effective(kind, name, k)) for name, kind, k in product(HEADS, KINDS, STORED_DIMS)]
    errors, ranks = [output_error(some, name) for name, some in maps], [map_rank(some) for _, some in maps]
    shape = len(HEADS), len(KINDS), len(STORED_DIMS)
    return torch.tensor(errors).view(shape), torch.tensor(ranks).view(shape)


@cache
def data() -> dict[str, Any]:
    """All that the browser computes maps from; E and F of all k lie below each other."""
    heads = [stored_head(name) for name in HEADS]
    factors = [best_factors(name) for name in HEADS]
    errors, ranks = measured()
    return {
        "qkv": packed(torch.stack([torch.stack([head.q, head.k, head.v]) for head in heads]), "float16"),
        "learned": packed(torch.stack([_stacked(LEARNED, name) for name in HEADS]), "float16"),
        "gaussian": packed(_stacked(GAUSSIAN, "4.2"), "float16"),  # the same for every head
        "left": packed(torch.stack([left for left, _ in factors]), "float16"),
        "right": packed(torch.stack([right for _, right in factors]), "float16"),
        "errors": packed(errors),
        "ranks": packed(ranks, "uint8"),
    }


def _stacked(kind: str, name: str) -> Tensor:
    """E and F for all of STORED_DIMS, (2, their sum, n)."""
    return torch.cat([torch.stack(projections(kind, name, k)) for k in STORED_DIMS], dim=1)
