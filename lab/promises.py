"""Which promises do attention layers keep that people install, and ours (chapter 12)?"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor, nn

from lab.experiment import Experiment, every
from linformer_from_scratch.benchmark.layers import packages
from linformer_from_scratch.descendants.layer import CompressedAttention
from linformer_from_scratch.efficient import EfficientAttention
from linformer_from_scratch.efficient.family import FAMILY
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import LearnedProjection
from linformer_from_scratch.promises import examine

N, D_MODEL, HEADS, SLOTS = SIZES = 128, 64, 4, 32
HEAVY, SPARSE, WINDOW = 8, 4, 8  # tokens in a block of either kind, and in the window
CAUSAL = {"causal": True}


def installed(name: str) -> nn.Module:
    """A Linformer from the package index, as chapter 10 times it."""
    return packages(*SIZES)[f"{name} {version(name)}"]()


def causal_linformer() -> nn.Module:
    """Of linformer-pytorch, whose MHAttention gets its mask from here."""
    Linformer = import_module("linformer_pytorch").Linformer
    sizes = {"nhead": HEADS, "depth": 1, "include_ff": False, "dropout": 0.0}
    return Linformer(N, D_MODEL, SLOTS, causal=True, **sizes)


def relative(name: str) -> nn.Module:
    """One of chapter 09's."""
    (one,) = (one for one in FAMILY if one.name == name)
    return EfficientAttention(D_MODEL, HEADS, one.build(N, D_MODEL // HEADS, SLOTS))


def linformer() -> nn.Module:
    """Ours, with a learned E and F."""
    return LinformerAttention(D_MODEL, HEADS, *(LearnedProjection(N, SLOTS) for _ in "EF"))


def deepseek(kind: str) -> nn.Module:
    """Attention of transformers' DeepSeek-V4, with weights drawn at random; some have none otherwise."""
    peer = import_module("transformers.models.deepseek_v4.modeling_deepseek_v4")
    config = peer.DeepseekV4Config(
        hidden_size=D_MODEL,
        head_dim=D_MODEL // HEADS,
        num_attention_heads=HEADS,
        q_lora_rank=SLOTS,
        o_groups=2,
        o_lora_rank=D_MODEL // HEADS,
        num_hidden_layers=1,
        layer_types=[kind],
        sliding_window=WINDOW,
        index_n_heads=3,
        index_head_dim=D_MODEL // HEADS,
        index_topk=4,
        compress_rates={"heavily_compressed_attention": HEAVY, "compressed_sparse_attention": SPARSE},
        partial_rotary_factor=0.5,
        attn_implementation="eager",
    )
    layer = peer.DeepseekV4Attention(config, 0)
    for weight in layer.parameters():
        nn.init.normal_(weight, std=0.2)
    return layer


def call_deepseek(layer: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """With the positions and the mask that its model gives it."""
    masks = import_module("transformers.masking_utils")
    peer = import_module("transformers.models.deepseek_v4.modeling_deepseek_v4")
    places = torch.arange(x.size(1)).expand(len(x), -1)
    rotary = peer.DeepseekV4RotaryEmbedding(layer.config)
    angles = {kind: rotary(x, position_ids=places, layer_type=kind) for kind in ("main", "compress")}
    given = {"config": layer.config, "inputs_embeds": x, "attention_mask": mask, "position_ids": places}
    seen = masks.create_sliding_window_causal_mask(**given, cache=None)
    return layer(x, angles, places, seen)[0]


V4 = CAUSAL | {"call": call_deepseek}
LAYERS: dict[str, tuple[str, Callable[[], nn.Module], dict[str, Any]]] = {
    "nn.MultiheadAttention": ("torch", partial(nn.MultiheadAttention, D_MODEL, HEADS, batch_first=True), {}),
    "our multi-head attention": ("", partial(MultiHeadAttention, D_MODEL, HEADS), {}),
    "our Linformer": ("", linformer, {}),
    "our slots that wait": ("", partial(CompressedAttention, D_MODEL, HEADS, HEAVY, WINDOW), CAUSAL),
    "our Nyström": ("", partial(relative, "Nyström"), {}),
    "our Performer": ("", partial(relative, "Performer"), {}),
    "linformer": ("linformer", partial(installed, "linformer"), {}),
    "linformer-pytorch": ("linformer-pytorch", partial(installed, "linformer-pytorch"), {}),
    "linformer-pytorch, causal=True": ("linformer-pytorch", causal_linformer, CAUSAL),
    "DeepSeek-V4, heavily compressed": (
        "transformers",
        partial(deepseek, "heavily_compressed_attention"),
        V4,
    ),
    "DeepSeek-V4, sparse": ("transformers", partial(deepseek, "compressed_sparse_attention"), V4),
}


def measure(layer: str) -> dict:
    """What an examination finds: promise -> how it came out, and in words."""
    package, make, options = LAYERS[layer]
    torch.manual_seed(0)
    report = examine(make(), D_MODEL, N, **options)
    found = {name: [verdict.status, verdict.words] for name, verdict in report.verdicts.items()}
    return {"version": f"{package} {version(package)}" if package else "", "promises": found}


EXPERIMENTS = [
    Experiment("12_promises", "which promises attention layers keep", every(layer=LAYERS), measure),
]
