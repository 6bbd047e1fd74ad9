"""Widget 4: how many directions each head of the pretrained model needs. Drawn by head_picker.js."""

from functools import cache, lru_cache
from typing import Any, NamedTuple

import torch
import traitlets
from torch import Tensor

from linformer_from_scratch import pretrained
from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.live import CannotDraw, Number, packed
from linformer_from_scratch.course.widgets.rank_slider import fixed_numbers
from linformer_from_scratch.course.widgets.reading import TextWidget, read_heads
from linformer_from_scratch.data import documents
from linformer_from_scratch.low_rank import (
    cumulative_spectrum,
    rank_at,
    singular_values,
    softmax_map,
    stable_rank,
)
from linformer_from_scratch.pretrained import NUM_HEADS, NUM_LAYERS, STORY, encode, random_weights, tokenize

N, BLOCK = 128, 2  # tokens; neighbours that share a row and a column of the map that is shown
TEXTS = {
    "": "the story",
    "assignment": "the Python reference on assignment",
    "the": f"the word “the”, {N - 2} times",
}


class HeadPicker(TextWidget):
    """Rank at a threshold for every head; one head's map and its cumulative spectrum against baselines."""

    title = "How many singular values each head needs"
    controls = ("text", "share", "layer", "head")
    libraries = ("d3", "ml_matrix")

    text = traitlets.Unicode("").tag(sync=True, choices=TEXTS)
    share = Number(0.9, min=0.5, max=0.99).tag(sync=True)
    layer = traitlets.Int(2, min=1, max=NUM_LAYERS).tag(sync=True)
    head = traitlets.Int(1, min=1, max=NUM_HEADS).tag(sync=True)

    def __init__(self, **start):
        super().__init__(facts(), data(), **start)

    @property
    def heads(self) -> "Heads":
        """What the heads do with the text that is shown."""
        return analysed(self.shown)

    @property
    def ranks(self) -> Tensor:
        """How many singular values make up the share of their sum, (layers, heads)."""
        return rank_at(self.heads.sigma.double(), self.share)

    @property
    def map(self) -> Tensor:
        """How much neighbouring queries of the chosen head attend to neighbouring keys, on average.

        BLOCK of them are neighbours; in the reader's own text each token stands alone. Each row sums to one
        but for rounding.
        """
        return (self.heads.maps[self.layer - 1, self.head - 1] / 255.0).double().square()

    @property
    def sigma(self) -> Tensor:
        """Singular values of the chosen head's map, largest first, (n,)."""
        return self.heads.sigma[self.layer - 1, self.head - 1].double()

    @property
    def spectra(self) -> dict[str, Tensor]:
        """Cumulative spectra by name, (n,) each; the untrained network has not read the reader's own text."""
        n, untrained = len(self.sigma), self.heads.untrained
        drawn = {
            "this head": self.sigma,
            "untrained": None if untrained is None else untrained[self.layer - 1],
            "random softmax": random_sigma(n),
            "identity": torch.ones(n),
        }
        return {name: cumulative_spectrum(some.double()) for name, some in drawn.items() if some is not None}

    def _words(self) -> str:
        ranks, n = self.ranks, len(self.sigma)
        means = ", ".join(f"{mean:.0f}" for mean in ranks.double().mean(dim=1).tolist())
        needed = {name: 1 + int((sums[:-1] < self.share).sum()) for name, sums in self.spectra.items()}
        here = needed.pop("this head")
        others = ", ".join(f"{name} {rank}" for name, rank in needed.items())
        return (
            f"Layer {self.layer}, head {self.head}: {here} of {n} singular values make up {self.share:.0%} "
            f"of their sum ({others}); stable rank {stable_rank(self.sigma):.1f}. Mean over the heads of "
            f"layers 1 to {NUM_LAYERS}: {means}; smallest {ranks.min()}, largest {ranks.max()}."
        )

    def _figure(self) -> stills.Figure:
        limit = max(0.05, self.map.quantile(0.99).item())
        layer, head, n = self.layer, self.head, len(self.sigma)
        size, title = n // len(self.map), f"How many σ make up {self.share:.0%}"
        note = f"{size} queries down, {size} keys across"
        shown = {
            "heads": stills.heads(self.ranks, title, n, (layer - 1, head - 1)),
            "map": stills.heat_map(self.map, f"Layer {layer}, head {head}", limit, note=note),
            "spectra": stills.cumulative(self.spectra, self.share),
        }
        return stills.board([[*shown]], shown, (13, 4.4), widths=(1.15, 1, 1))


class Heads(NamedTuple):
    """The model's heads on one text, rounded as the browser receives them.

    blocks: strings of neighbouring tokens.
    maps: square roots of the weights in blocks of tokens, 255 for 1, (layers, heads, blocks, blocks).
    sigma: singular values of the maps of n tokens, float16, (layers, heads, n).
    untrained: the same of the first head of each layer before training, (layers, n), or None.
    """

    blocks: list[str]
    maps: Tensor
    sigma: Tensor
    untrained: Tensor | None


@lru_cache(maxsize=8)
def analysed(text: str) -> Heads:
    """What the heads do with one of TEXTS, or with the reader's.

    Raises: CannotDraw as read_heads.
    """
    if text not in TEXTS:
        tokens, (q, k, _) = read_heads(text)
        own = attention_weights(q.float(), k.float())
        return Heads(tokens, 255 * own.sqrt(), singular_values(own).half(), None)
    read = {"": STORY, "the": "the " * N}.get(text) or documents()[text]
    try:
        tokens, weights = pretrained.attention_maps(read, N)
        untrained = encode(tokenize(read, N), random_weights(seed=0)).weights[:, 0]
    except pretrained.PretrainedMissing as missing:
        raise CannotDraw(f"This picture needs the pretrained model: {missing}") from missing
    return Heads(
        [" ".join(tokens[i : i + BLOCK]) for i in range(0, N, BLOCK)],
        (255 * in_blocks(weights).sqrt()).round().to(torch.uint8),
        singular_values(weights).half(),
        singular_values(untrained).half(),
    )


def in_blocks(maps: Tensor) -> Tensor:
    """How much BLOCK neighbouring queries attend to BLOCK neighbouring keys, on average.

    Shape: (..., n, n) -> (..., n / BLOCK, n / BLOCK)
    """
    return maps.unflatten(-1, (-1, BLOCK)).sum(dim=-1).unflatten(-2, (-1, BLOCK)).mean(dim=-2)


@cache
def random_sigma(n: int = N) -> Tensor:
    """Singular values of a random softmax, (n,), float16; of the reader's text, as RankSlider has it."""
    if n == N:
        return singular_values(softmax_map(N, torch.Generator().manual_seed(0))).half()
    return singular_values(fixed_numbers()["random"][:n, :n].double().softmax(dim=-1)).half()


@cache
def facts() -> dict[str, Any]:
    """Blocks of tokens of each text, or why there are none."""
    try:
        return {"tokens": {text: analysed(text).blocks for text in TEXTS}}
    except CannotDraw as reason:
        return {"tokens": {text: [] for text in TEXTS}, "missing": str(reason)}


@cache
def data() -> dict[str, Any]:
    """Singular values and maps of all heads, text after text; none without the pretrained model."""
    if "missing" in facts():
        return {}
    drawn = {"random": random_sigma(), "scores": fixed_numbers()["random"]}
    sent = {name: packed(numbers, "float16") for name, numbers in drawn.items()}
    for name, dtype in (("maps", "uint8"), ("sigma", "float16"), ("untrained", "float16")):
        sent[name] = packed(torch.stack([getattr(analysed(text), name) for text in TEXTS]), dtype)
    return sent
