"""Widget 3: a map rebuilt from its first r singular values, beside what is lost. Drawn by rank_slider.js."""

import math
from functools import cache
from typing import Any, NamedTuple

import torch
import traitlets
from torch import Tensor

from linformer_from_scratch import pretrained
from linformer_from_scratch.common.random_state import permutations
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.live import CannotDraw, Number, menu, packed
from linformer_from_scratch.course.widgets.reading import LIMITS, TextWidget
from linformer_from_scratch.low_rank import decompose, rebuild, singular_values, softmax_map, stable_rank
from linformer_from_scratch.pretrained import NUM_HEADS, NUM_LAYERS, STORY, encode, random_weights, tokenize
from linformer_from_scratch.pretrained.tokens import vocabulary

N = 128  # tokens of the story
PERIOD = 32  # after how many tokens the text of the induction map repeats itself
PRESETS = {
    "head": "a head of a real model",
    "untrained": "the same network with random weights (first head of the layer)",
    "shuffled": "the real head, each row's weights shuffled",
    "random": "random softmax",
    "local": "local: attends to its neighbours",
    "induction": "induction: attends to what followed last time",
}
OF_A_TEXT = "head", "shuffled"  # maps that the reader's own text has, too


class RankSlider(TextWidget):
    """P, its best approximation of rank r, their difference, and all singular values."""

    title = "A map rebuilt from its first r singular values"
    controls = ("preset", "text", "rank", "temperature", "layer", "head")
    libraries = ("d3", "ml_matrix")
    reads = LIMITS | {"also": {"preset": "head"}}

    preset = menu(PRESETS)
    text = traitlets.Unicode("").tag(sync=True, choices={"": "the story"})
    rank = traitlets.Int(8, min=1, max=N).tag(sync=True)
    temperature = Number(1.0, min=0.1, max=10.0).tag(sync=True)
    layer = traitlets.Int(1, min=1, max=NUM_LAYERS).tag(sync=True)
    head = traitlets.Int(5, min=1, max=NUM_HEADS).tag(sync=True)

    def __init__(self, **start):
        super().__init__(facts(), data(), **start)

    @property
    def own(self) -> Any:
        """See `TextWidget.own`; None while a map is shown that is not of it."""
        return super().own if self.preset in OF_A_TEXT else None

    @property
    def P(self) -> Tensor:
        """The map, (n, n)."""
        return (self._scores() / self.temperature).softmax(dim=-1)

    def _scores(self) -> Tensor:
        if self.own is None:
            return scores(self.preset, self.layer, self.head)
        q, k, _ = self.own.heads[:, self.layer - 1, self.head - 1]
        return of_head(q, k, shuffled=self.preset == "shuffled")

    @property
    def terms(self) -> int:
        """How many singular values make up the map: the chosen rank, or all of a smaller map."""
        return min(self.rank, len(self.P))

    @property
    def rebuilt(self) -> Tensor:
        """Its best approximation of the chosen rank, (n, n)."""
        return rebuild(*decompose(self.P), self.terms)

    @property
    def sigma(self) -> Tensor:
        """Singular values of P, largest first, (n,)."""
        return singular_values(self.P)

    @property
    def error(self) -> tuple[float, float]:
        """‖P − P_r‖ measured on the maps: Frobenius norm, spectral norm."""
        difference = self.P - self.rebuilt
        return difference.norm().item(), torch.linalg.matrix_norm(difference, 2).item()

    def _words(self) -> str:
        frobenius, _ = self.error
        return (
            f"Rank {self.terms} of {len(self.P)} loses {frobenius / self.P.norm():.0%} of the map (Frobenius "
            f"error {frobenius:.4f}), and no map of that rank loses less."
        )

    def _figure(self) -> stills.Figure:
        limit = max(0.05, self.P.quantile(0.98).item())
        n, best, title = len(self.P), self.rebuilt, f"its best map of rank {self.terms}"
        shown = {
            "P": stills.heat_map(self.P, f"P: {n} × {n} tokens", limit),
            "rebuilt": stills.heat_map(best, title, limit, signed=True),
            "difference": stills.heat_map(self.P - best, "the difference", limit, signed=True),
            "spectrum": stills.spectrum(self.sigma, self.terms),
        }
        return stills.board([["P", "rebuilt", "difference"], ["spectrum"] * 3], shown, (10, 5.6), (3, 1.3))


def scores(preset: str, layer: int, head: int) -> Tensor:
    """Scores whose softmax is the preset's map, (N, N), in float64; layer and head are counted from 1.

    Raises: CannotDraw if it needs the pretrained model, which is missing.
    """
    i = torch.arange(N)
    distance = i[:, None] - i
    if preset == "random":
        return fixed_numbers()["random"].double()
    if preset == "local":
        return -distance.abs().double() / 2
    if preset == "induction":
        return 6.0 * (distance == PERIOD - 1).double()  # the token after the same token, one period ago
    heads = real_heads()
    q, k = heads.untrained[:, layer - 1] if preset == "untrained" else heads.trained[:, layer - 1, head - 1]
    return of_head(q, k, shuffled=preset == "shuffled")


def of_head(q: Tensor, k: Tensor, *, shuffled: bool = False) -> Tensor:
    """Scores of a head, or those with each row's in the order drawn for it: (…, n, d) twice -> (…, n, n)."""
    real = q.double() @ k.double().mT / math.sqrt(q.size(-1))
    if not shuffled:
        return real
    order = fixed_numbers()["order"].long()[: len(q)]
    return real.gather(-1, order[order < len(q)].view(len(q), -1))


class RealHeads(NamedTuple):
    """What the maps of the pretrained model are made of, on one text, in float16.

    tokens: N strings. trained: queries and keys (2, layers, heads, N, 32).
    untrained: the same of the first head of each layer before training, (2, layers, N, 32).
    """

    tokens: list[str]
    trained: Tensor
    untrained: Tensor


@cache
def real_heads() -> RealHeads:
    """Heads on the story.

    Raises: CannotDraw if the pretrained model is missing.
    """
    try:
        ids = tokenize(STORY)
        trained, untrained = encode(ids), encode(ids, random_weights(seed=0))
    except pretrained.PretrainedMissing as missing:
        raise CannotDraw(f"This map needs the pretrained model: {missing}") from missing
    return RealHeads(
        [vocabulary()[i] for i in ids.tolist()],
        torch.stack([trained.q, trained.k]).half(),
        torch.stack([untrained.q, untrained.k])[:, :, 0].half(),
    )


@cache
def fixed_numbers() -> dict[str, Tensor]:
    """What is drawn at random: scores (N, N), and an order of the keys for each row (N, N)."""
    generator = torch.Generator().manual_seed(0)
    random = softmax_map(N, generator).log().half()
    return {"random": random, "order": permutations(generator, N, N).to(torch.uint8)}


@cache
def facts() -> dict[str, Any]:
    """Tokens and period, or why the real heads are missing."""
    try:
        return {"period": PERIOD, "tokens": {"": real_heads().tokens}}
    except CannotDraw as reason:
        return {"period": PERIOD, "tokens": {"": []}, "missing": str(reason)}


@cache
def data() -> dict[str, Any]:
    """All that the browser computes maps from; without the pretrained model, the maps that need none."""
    numbers = fixed_numbers()
    sent = {"random": packed(numbers["random"], "float16"), "order": packed(numbers["order"], "uint8")}
    if "missing" in facts():
        return sent
    heads = real_heads()
    maps = of_head(*heads.trained).softmax(dim=-1)
    return sent | {
        "queries": packed(heads.trained[0], "float16"),
        "keys": packed(heads.trained[1], "float16"),
        "untrained": packed(heads.untrained, "float16"),
        "stable": packed(stable_rank(singular_values(maps))),
    }
