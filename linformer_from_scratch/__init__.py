"""Linformer (Wang et al. 2020, arXiv 2006.04768), built up from softmax: one module a chapter.

>>> from linformer_from_scratch import LinformerAttention
>>> layer = LinformerAttention(d_model=384, num_heads=12, seq_len=512, proj_dim=128)  # (batch, n, 384)
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linformer_from_scratch.converters import from_fairseq as from_fairseq
    from linformer_from_scratch.converters import from_linformer as from_linformer
    from linformer_from_scratch.converters import from_linformer_pytorch as from_linformer_pytorch
    from linformer_from_scratch.efficient import EfficientAttention as EfficientAttention
    from linformer_from_scratch.linformer import LinformerAttention as LinformerAttention
    from linformer_from_scratch.linformer import linformer_attention as linformer_attention
    from linformer_from_scratch.multihead import MultiHeadAttention as MultiHeadAttention
    from linformer_from_scratch.projections import LearnedProjection as LearnedProjection
    from linformer_from_scratch.promises import assert_keeps as assert_keeps
    from linformer_from_scratch.promises import examine as examine

    __version__: str

MODULES = {
    **{"EfficientAttention": "efficient", "LearnedProjection": "projections"},
    **{"LinformerAttention": "linformer", "MultiHeadAttention": "multihead"},
    **dict.fromkeys(("assert_keeps", "examine"), "promises"),
    **dict.fromkeys(("from_fairseq", "from_linformer", "from_linformer_pytorch"), "converters"),
    "linformer_attention": "linformer",
}
__all__ = [*MODULES, "__version__"]
LAB = "lab, beside the package; recorded rows are in linformer_from_scratch.course.recorded"
MOVED = {  # until the next version
    **{name: f"{__name__}.course.{name}" for name in ("plots", "diagrams")},
    **dict.fromkeys(("experiments", "course.experiments"), LAB),
    "course.results": "linformer_from_scratch.course.recorded",
    **{f"course.{name}": f"{__name__}.common.{name}" for name in ("checks", "files", "tables")},
    **dict.fromkeys(("training.ranks", "distributed.ranks"), "linformer_from_scratch.common.ranks"),
    "training.randomness": "linformer_from_scratch.common.random_state",
    "training.records": "linformer_from_scratch.course.recorded.curves",
    "limits.decision": "linformer_from_scratch.course.decision",
    **{f"limits.{name}": f"{__name__}.pretrained.{name}" for name in ("adapting", "bootstrap")},
    **{f"limits.{name}": f"{__name__}.pretrained.{name}" for name in ("capstone", "contrastive")},
}


def __getattr__(name: str) -> Any:
    """Load a layer when it is asked for: PyTorch takes seconds to import, the package alone none."""
    if name == "__version__":
        return import_module("importlib.metadata").version("linformer-from-scratch")
    if name in MODULES:
        return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Moved(MetaPathFinder):
    """Asked last, for a module that is nowhere: says where it is now.

    Its errors have no `name`: of one that has, `from … import` says nothing.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> None:
        package, _, name = fullname.partition(".")
        room, _, rest = name.partition(".")
        if package != __name__:
            return
        for old, new in MOVED.items():
            if name == old or name.startswith(f"{old}."):
                raise ModuleNotFoundError(f"{__name__}.{old} has moved to {new}")
        if room in ("exercises", "widgets") and rest:
            raise ModuleNotFoundError(f"{fullname} has moved to {__name__}.course.{name}")


sys.meta_path.append(_Moved())
