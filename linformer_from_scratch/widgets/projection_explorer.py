"""Widget 6: what several kinds of E and F make of a real attention map. Drawn by projection_explorer.js."""

from functools import cache, partial
from typing import Any

import torch
import traitlets
from matplotlib.figure import Figure
from torch import Tensor

from linformer_from_scratch import plots
from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.low_rank import decompose
from linformer_from_scratch.pretrained import STORED_DIMS, StoredHead, stored_heads, stored_tokens
from linformer_from_scratch.projections import GaussianProjection, MeanPooling
from linformer_from_scratch.random_projections import relative_error
from linformer_from_scratch.widgets.live import LiveWidget, menu, packed

HEADS = {  # layer.head -> what a menu shows
    "5.6": "layer 5, head 6: reads the whole text",
    "1.5": "layer 1, head 5: reads its neighbourhood",
    "1.3": "layer 1, head 3: reads the token before",
    "4.2": "layer 4, head 2: reads what a word refers to",
}
LEARNED, MEAN, STRIDED, GAUSSIAN, BEST = "learned", "mean", "strided", "gaussian", "best"
KINDS = {
    LEARNED: "learned on other texts",
    MEAN: "mean pooling",
    STRIDED: "every n/k-th token",
    GAUSSIAN: "Gaussian",
    BEST: "best map of rank k (needs P itself)",
}
SHORT = {
    LEARNED: "learned",
    MEAN: "mean pooling",
    STRIDED: "every n/k-th",
    GAUSSIAN: "Gaussian",
    BEST: "best of rank k",
}


class ProjectionExplorer(LiveWidget):
    """A real map P beside Linformer's P̄ and the n×n map P̄F that it amounts to, with E and F above."""

    title = "What E and F make of a real map"
    controls = ("head", "kind", "proj_dim", "slot")
    helpers = ("errors",)

    head = menu(HEADS)
    kind = menu(KINDS)
    proj_dim = traitlets.Enum(STORED_DIMS, default_value=16).tag(sync=True)
    slot = traitlets.Int(5, min=1, max=max(STORED_DIMS)).tag(sync=True)

    def __init__(self, **start):
        super().__init__(**start)
        self.facts = {"tokens": stored_tokens(), "dims": [*STORED_DIMS], "short": SHORT}
        self.data = data()

    @property
    def P(self) -> Tensor:
        """The head's map, (n, n)."""
        return real_map(self.head)

    @property
    def E(self) -> Tensor:
        """What mixes keys, (proj_dim, n)."""
        return projections(self.kind, self.head, self.proj_dim)[0]

    @property
    def F(self) -> Tensor:
        """What mixes values, (proj_dim, n)."""
        return projections(self.kind, self.head, self.proj_dim)[1]

    @property
    def P_bar(self) -> Tensor:
        """What each query reads of each slot, (n, proj_dim)."""
        return strip(self.kind, self.head, self.proj_dim)

    @property
    def effective(self) -> Tensor:
        """P̄F, (n, n)."""
        return effective(self.kind, self.head, self.proj_dim)

    @property
    def error(self) -> float:
        """‖P̄FV − PV‖ / ‖PV‖, so that an output of zeros has error 1."""
        return self.errors[self.kind][STORED_DIMS.index(self.proj_dim)].item()

    @property
    def errors(self) -> dict[str, Tensor]:
        """Kind -> error of this head's output for each of STORED_DIMS."""
        return dict(zip(KINDS, measured()[0][[*HEADS].index(self.head)], strict=True))

    @property
    def row(self) -> int:
        """The slot that is looked at, counted from 1; the last one where k is smaller than `slot`."""
        return min(self.slot, self.proj_dim)

    @property
    def words(self) -> str:
        """See `LiveWidget.words`."""
        k, row, sums = self.proj_dim, self.row, self.effective.sum(dim=-1)
        negative, rank = (self.effective < 0).double().mean(), map_rank(self.effective)
        best = self.errors[BEST][STORED_DIMS.index(k)]
        E, F = self.E[row - 1], self.F[row - 1]
        most = int(E.abs().argmax())
        return (
            f"k = {k} slots for {len(self.P)} tokens. The rows of P̄F sum to {sums.min():z.2f} … "
            f"{sums.max():z.2f}, {negative:.0%} of its entries are negative, its rank is {rank}. "
            f"The head's output is off by {self.error:.0%} "
            f"(best map of rank {k}: {best:.0%}; answering zero: 100%). "
            f"Slot {row}: E weighs “{stored_tokens()[most]}” most, {E[most]:z.2f}; F gives it {F[most]:z.2f}."
        ).replace("-", "−")

    def figure(self) -> Figure:
        """See `LiveWidget.figure`."""
        n, k, best = len(self.P), self.proj_dim, self.kind == BEST
        limit = max(0.05, self.P.quantile(0.98).item())
        mixer = partial(plots.draw_map, signed=True, note="slots down, tokens across", query=self.row - 1)
        shown = {
            name: partial(mixer, values=matrix, title=title, limit=matrix.abs().max().item())
            for name, matrix in (("E", self.E), ("F", self.F))
            for title in [f"{f'Vᵀ in place of {name}' if best else name}: {k} × {n}"]
        }
        shown["P"] = partial(plots.draw_map, values=self.P, title=f"P: {n} × {n}", limit=limit)
        shown["P̄"] = partial(
            plots.draw_map,
            values=self.P_bar,
            title=f"{'UΣ' if best else 'P̄'}: {n} × {k}",
            limit=self.P_bar.abs().quantile(0.98).item(),
            signed=best,
            note="slots across",
            tall=n / k,
        )
        title = "UΣVᵀ: the best map" if best else "P̄F: what it amounts to"
        shown["P̄F"] = partial(plots.draw_map, values=self.effective, title=title, limit=limit, signed=True)
        shown["errors"] = partial(
            plots.draw_errors,
            dims=STORED_DIMS,
            errors={SHORT[kind]: values for kind, values in self.errors.items()},
            looks={SHORT[kind]: self._look(kind) for kind in KINDS},
            k=k,
        )
        layout = [["E", ".", "F", "errors"], ["P", "P̄", "P̄F", "errors"]]
        return plots.board(layout, shown, (11.6, 5.2), (1, 2.6), (2, 1, 2, 1.5))

    def _look(self, kind: str) -> tuple[str, float, str]:
        style = "--" if kind == BEST else "-"
        if kind == self.kind:
            return plots.QUERY, 3.5, style
        return (plots.INK if kind == BEST else plots.GREY), 1.5, style


@cache
def stored_head(name: str) -> StoredHead:
    """A head by its name in HEADS, in float64."""
    layer, head = name.split(".")
    q, k, v, learned = stored_heads()[int(layer), int(head)]
    doubled: dict[int, tuple[Tensor, ...]] = {
        size: (E.double(), F.double()) for size, (E, F) in learned.items()
    }
    return StoredHead(q.double(), k.double(), v.double(), doubled)


@cache
def real_map(name: str) -> Tensor:
    """A head's map, (n, n)."""
    head = stored_head(name)
    return attention_weights(head.q, head.k)


@cache
def best_factors(name: str) -> tuple[Tensor, Tensor]:
    """U diag(σ), (n, 64), and Vᵀ, (64, n): k columns of the one times k rows of the other are the best map.

    In the precision in which they are sent.
    """
    u, sigma, vt = decompose(real_map(name))
    most = max(STORED_DIMS)
    largest = vt.gather(-1, vt.abs().argmax(dim=-1, keepdim=True))  # above zero, to settle the signs
    left, right = u * sigma * largest.T.sign(), vt * largest.sign()
    return left[:, :most].half().double(), right[:most].half().double()


def projections(kind: str, name: str, k: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """E and F of a kind for a head, (k, n) each; the learned ones were fitted to this head on other texts."""
    n = len(stored_tokens())
    if kind == LEARNED:
        E, F = stored_head(name).learned[k]
        return E, F
    if kind == GAUSSIAN:
        E, F = (GaussianProjection(n, k, 2 * seed + i).weight.half().double() for i in range(2))
        return E, F
    eye = torch.eye(n, dtype=torch.float64)
    E = {MEAN: MeanPooling(n, k)(eye), STRIDED: eye[:: n // k], BEST: best_factors(name)[1][:k]}[kind]
    return E, E


def strip(kind: str, name: str, k: int, seed: int = 0) -> Tensor:
    """P̄, (n, k); of the best map of rank k, what stands in its place."""
    if kind == BEST:
        return best_factors(name)[0][:, :k]
    head = stored_head(name)
    return attention_weights(head.q, projections(kind, name, k, seed)[0] @ head.k)


def effective(kind: str, name: str, k: int, seed: int = 0) -> Tensor:
    """P̄F, (n, n): the map that stands in the place of P."""
    return strip(kind, name, k, seed) @ projections(kind, name, k, seed)[1]


def output_error(approximate: Tensor, name: str) -> float:
    """‖approximate V − PV‖ / ‖PV‖ of a map (n, n) in the place of a head's own."""
    v = stored_head(name).v
    return relative_error((approximate @ v).flatten(), (real_map(name) @ v).flatten()).item()


def map_rank(approximate: Tensor) -> int:
    """Rank of a map; singular values below 1e-5 of the largest count as zero."""
    return int(torch.linalg.matrix_rank(approximate, rtol=1e-5))


@cache
def measured() -> tuple[Tensor, Tensor]:
    """Error of the output and rank of P̄F, by head, kind and STORED_DIMS."""
    maps = [[[effective(kind, name, k) for k in STORED_DIMS] for kind in KINDS] for name in HEADS]
    errors = [
        [[output_error(approximate, name) for approximate in row] for row in kinds]
        for name, kinds in zip(HEADS, maps, strict=True)
    ]
    ranks = [[[map_rank(approximate) for approximate in row] for row in kinds] for kinds in maps]
    return torch.tensor(errors), torch.tensor(ranks)


@cache
def data() -> dict[str, Any]:
    """All that the browser computes maps from; E and F of all k lie below each other."""
    heads = [stored_head(name) for name in HEADS]
    factors = [best_factors(name) for name in HEADS]
    errors, ranks = measured()
    return {
        "qkv": packed(torch.stack([torch.stack([head.q, head.k, head.v]) for head in heads]), "float16"),
        "learned": packed(torch.stack([_stacked(LEARNED, name) for name in HEADS]), "float16"),
        "gaussian": packed(_stacked(GAUSSIAN, "5.6"), "float16"),  # the same for every head
        "left": packed(torch.stack([left for left, _ in factors]), "float16"),
        "right": packed(torch.stack([right for _, right in factors]), "float16"),
        "errors": packed(errors),
        "ranks": packed(ranks, "uint8"),
    }


def _stacked(kind: str, name: str) -> Tensor:
    """E and F for all of STORED_DIMS, (2, their sum, n)."""
    return torch.cat([torch.stack(projections(kind, name, k)) for k in STORED_DIMS], dim=1)
