"""A sentence encoder that reads short texts exactly and long ones through Linformer's slots (chapter 12)."""

import json
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import Tensor

from linformer_from_scratch.common.checks import check_ids
from linformer_from_scratch.common.files import atomic_write, expanded, make_folder, shown
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained.network import SentenceEncoder
from linformer_from_scratch.pretrained.texts import TextEncoder
from linformer_from_scratch.pretrained.weights import D_MODEL, NUM_HEADS, NUM_LAYERS, VOCAB_SIZE
from linformer_from_scratch.pretrained.windows import WindowAttention, lengths_of

CONFIG, WEIGHTS = "config.json", "model.safetensors"
BASE = "sentence-transformers/all-MiniLM-L6-v2"


class Layout(NamedTuple):
    """All of an encoder besides its weights.

    proj_dim: slots of its Linformer layers.
    exact_layers: layers that keep exact attention, counted from 0.
    crossover: from this number of tokens on, a text goes through Linformer.
    """

    proj_dim: int
    exact_layers: tuple[int, ...]
    crossover: int


def window_encoder(proj_dim: int, exact_layers: tuple[int, ...] = ()) -> SentenceEncoder:
    """Linformer with windows for each text's length, and exact attention in some layers, counted from 0.

    Raises: ValueError if there is no such layer; as WindowAttention and SentenceEncoder.
    """
    unknown = set(exact_layers) - set(range(NUM_LAYERS))
    if unknown:
        raise ValueError(f"exact_layers holds {min(unknown)}, expected layers from 0 to {NUM_LAYERS - 1}")
    sizes = D_MODEL, NUM_HEADS
    return SentenceEncoder(
        MultiHeadAttention(*sizes) if i in exact_layers else WindowAttention(*sizes, proj_dim)
        for i in range(NUM_LAYERS)
    )


class LengthwiseEncoder(TextEncoder):
    """Exact attention for texts below the crossover, Linformer's slots from there on.

    Args:
        layout: see Layout. Both networks start from the pretrained weights.

    Shape of embed: ids (batch, n) with n <= 512, padding_mask (batch, n), True = a real token -> (batch, 384)
    Raises: ValueError as SentenceEncoder, or if the crossover is below proj_dim: such texts have empty slots.
    A text's vector does not depend on what else is in its batch.
    It cannot be traced or exported: `exact` and `linformer`, its two networks, can.
    """

    def __init__(self, layout: Layout):
        super().__init__()
        if layout.crossover < layout.proj_dim:
            raise ValueError(f"crossover is {layout.crossover}, expected at least proj_dim={layout.proj_dim}")
        self.layout = layout
        self.exact = window_encoder(layout.proj_dim, tuple(range(NUM_LAYERS)))
        self.linformer = window_encoder(layout.proj_dim, layout.exact_layers)
        self.linformer.tokens, self.linformer.positions = self.exact.tokens, self.exact.positions

    def forward(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """As embed."""
        return self.embed(ids, padding_mask)

    def embed(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """A unit vector per text, by the network for its length. Shape: (batch, 384)."""
        exporting = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)  # before torch 2.7
        if torch.jit.is_tracing() or exporting():
            raise NotImplementedError(
                "which network reads a text depends on its length, which a graph cannot ask: trace or export "
                f"`exact` (below {self.layout.crossover} tokens) and `linformer` (from there on)"
            )
        check_ids(ids, VOCAB_SIZE)
        long = lengths_of(ids, padding_mask) >= self.layout.crossover
        if long.all() or not long.any():
            return (self.linformer if long.any() else self.exact).embed(ids, padding_mask)
        assert padding_mask is not None  # otherwise all texts had one length
        vectors = torch.empty(len(ids), D_MODEL, device=ids.device, dtype=self.exact.tokens.weight.dtype)
        for network, rows in ((self.exact, ~long), (self.linformer, long)):
            n = int(padding_mask[rows].sum(dim=1).max())  # without the columns in which no text has a token
            vectors[rows] = network.embed(ids[rows, :n], padding_mask[rows, :n])
        return vectors

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the weights (safetensors) and the layout (JSON) into a folder, which is made if need be.

        Raises: ValueError if the weights are not plain tensors, as after quantisation; OSError if they cannot
            be written there.
        """
        folder = expanded(folder)
        if not all(isinstance(weights, Tensor) for weights in self.state_dict().values()):
            raise ValueError("some weights are not plain tensors; save an encoder before it is quantised")
        make_folder(folder)
        try:
            save_model(self, str(folder / WEIGHTS))
        except SafetensorError as error:
            raise OSError(f"{shown(folder / WEIGHTS)} cannot be written: {error}") from None
        write_layout(self.layout, folder / CONFIG)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> "LengthwiseEncoder":
        """The encoder that save_pretrained wrote into a folder, in float32 and on the CPU.

        Raises: FileNotFoundError if a file is missing, ValueError if one is damaged; as SentenceEncoder.
        """
        folder = expanded(folder)
        for name in (CONFIG, WEIGHTS):
            if not (folder / name).is_file():
                raise FileNotFoundError(f"{folder} holds no {name}, expected what save_pretrained wrote")
        encoder = cls(read_layout(folder / CONFIG))
        try:
            load_model(encoder, str(folder / WEIGHTS))
        except Exception as error:  # safetensors raises its own, PyTorch RuntimeError
            why = " ".join(str(error).split())[:200]
            raise ValueError(f"{folder / WEIGHTS} does not hold this encoder's weights: {why}") from None
        return encoder.eval()


def write_layout(layout: Layout, path: Path) -> None:
    """Write a layout as JSON, with the name of the model that it is based on."""
    atomic_write(path, json.dumps({"base_model": BASE, **layout._asdict()}, indent=2) + "\n")


def read_layout(path: Path) -> Layout:
    """The layout that a JSON file holds.

    Raises: ValueError if it holds something else.
    """
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        layout = Layout(config["proj_dim"], tuple(config["exact_layers"]), config["crossover"])
        if {type(x) for x in (layout.proj_dim, *layout.exact_layers, layout.crossover)} != {int}:
            raise TypeError("not all of them are integers")
        return layout
    except (ValueError, KeyError, TypeError) as error:
        expected = ", ".join(Layout._fields)
        raise ValueError(f"{path} is not a layout: {error!r}; expected JSON with {expected}") from None
