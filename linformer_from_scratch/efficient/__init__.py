"""Linformer's relatives, one small file each: (q, k, v, …) -> output, and the cost beside it (chapter 09)."""

from linformer_from_scratch.efficient.hierarchical import hierarchical_attention as hierarchical_attention
from linformer_from_scratch.efficient.layer import EfficientAttention as EfficientAttention
from linformer_from_scratch.efficient.linear import linear_attention as linear_attention
from linformer_from_scratch.efficient.nystrom import nystrom_attention as nystrom_attention
from linformer_from_scratch.efficient.performer import orthogonal_gaussian as orthogonal_gaussian
from linformer_from_scratch.efficient.performer import performer_attention as performer_attention
from linformer_from_scratch.efficient.sliding_window import (
    sliding_window_attention as sliding_window_attention,
)
from linformer_from_scratch.efficient.sliding_window import window_mask as window_mask
from linformer_from_scratch.efficient.sparse import sparse_attention as sparse_attention
from linformer_from_scratch.efficient.sparse import sparse_mask as sparse_mask
from linformer_from_scratch.efficient.tiled import tiled_attention as tiled_attention
