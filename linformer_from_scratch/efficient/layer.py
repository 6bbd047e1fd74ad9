"""Multi-head self-attention around any relative (chapter 09)."""

from collections.abc import Callable

from torch import Tensor

from linformer_from_scratch.common.checks import graph_is_written
from linformer_from_scratch.heads import AttentionLayer


class EfficientAttention(AttentionLayer):
    """head_i = attend(Q_i, K_i, V_i), concatenated and mixed as in chapter 02.

    Args:
        d_model: features per token, a multiple of num_heads.
        num_heads: heads of d_model // num_heads features each.
        attend: (q, k, v), each (batch, num_heads, n, d_head) -> as v; a function or a module.

    Shape: x (batch, n, d_model) -> (batch, n, d_model)
    Raises: ValueError if num_heads does not divide d_model, if x has another shape, or if a token is padding:
        the relatives here have no rule for it, and a graph, which sees none, takes no padding_mask.
    """

    def __init__(self, d_model: int, num_heads: int, attend: Callable[[Tensor, Tensor, Tensor], Tensor]):
        super().__init__(d_model, num_heads)
        self.relative = attend

    def attend(self, q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor | None) -> Tensor:
        """As the relative does, where no token is padding."""
        if padding_mask is not None and graph_is_written():
            raise ValueError("got a padding_mask, expected None: a graph cannot see that no token is padding")
        if padding_mask is not None and not padding_mask.all():
            raise ValueError(f"{(~padding_mask).sum()} tokens are padding, expected 0")
        return self.relative(q, k, v)
