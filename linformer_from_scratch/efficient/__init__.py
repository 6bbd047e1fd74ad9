"""Linformer's relatives, one small file each: (q, k, v, …) -> output, and the cost beside it (chapter 09)."""

from linformer_from_scratch.efficient.hierarchical import hierarchical_attention
from linformer_from_scratch.efficient.layer import EfficientAttention
from linformer_from_scratch.efficient.linear import linear_attention
from linformer_from_scratch.efficient.nystrom import nystrom_attention
from linformer_from_scratch.efficient.performer import orthogonal_gaussian, performer_attention
from linformer_from_scratch.efficient.sliding_window import sliding_window_attention, window_mask
from linformer_from_scratch.efficient.sparse import sparse_attention, sparse_mask
from linformer_from_scratch.efficient.tiled import tiled_attention

__all__ = [
    "EfficientAttention",
    "hierarchical_attention",
    "linear_attention",
    "nystrom_attention",
    "orthogonal_gaussian",
    "performer_attention",
    "sliding_window_attention",
    "sparse_attention",
    "sparse_mask",
    "tiled_attention",
    "window_mask",
]
