"""Linformer (Wang et al. 2020, arXiv 2006.04768), built up from softmax: one module a chapter.

>>> from linformer_from_scratch import LearnedProjection, LinformerAttention
>>> E = LearnedProjection(seq_len=512, proj_dim=128)
>>> layer = LinformerAttention(d_model=384, num_heads=12, E=E, F=E)  # (batch, n, 384) -> the same
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linformer_from_scratch.efficient import EfficientAttention as EfficientAttention
    from linformer_from_scratch.linformer import LinformerAttention as LinformerAttention
    from linformer_from_scratch.linformer import linformer_attention as linformer_attention
    from linformer_from_scratch.multihead import MultiHeadAttention as MultiHeadAttention
    from linformer_from_scratch.projections import LearnedProjection as LearnedProjection

    __version__: str

MODULES = {
    "EfficientAttention": "efficient",
    "LearnedProjection": "projections",
    "LinformerAttention": "linformer",
    "MultiHeadAttention": "multihead",
    "linformer_attention": "linformer",
}
__all__ = [*MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    """Load a layer when it is asked for: PyTorch takes seconds to import, the package alone none."""
    if name == "__version__":
        return import_module("importlib.metadata").version("linformer-from-scratch")
    if name in MODULES:
        return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
