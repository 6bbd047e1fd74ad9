"""Multi-head self-attention around any relative (chapter 09)."""

from collections.abc import Callable

from torch import Tensor, nn

from linformer_from_scratch.multihead import check_divides, check_inputs, merge_heads, split_heads


class EfficientAttention(nn.Module):
    """head_i = attend(Q_i, K_i, V_i), concatenated and mixed as in chapter 02.

    Args:
        d_model: features per token, a multiple of num_heads.
        num_heads: heads of d_model // num_heads features each.
        attend: (q, k, v), each (batch, num_heads, n, d_head) -> as v; a function or a module.

    Shape: x (batch, n, d_model) -> (batch, n, d_model)
    Raises: ValueError if num_heads does not divide d_model, if x has another shape, or if a token is padding:
        the relatives here have no rule for it.
    """

    def __init__(self, d_model: int, num_heads: int, attend: Callable[[Tensor, Tensor, Tensor], Tensor]):
        super().__init__()
        check_divides(num_heads, d_model, "d_model")
        self.num_heads, self.attend = num_heads, attend
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Shape: (batch, n, d_model) -> (batch, n, d_model)."""
        check_inputs(x, padding_mask, self.query.in_features)
        if padding_mask is not None and not padding_mask.all():
            raise ValueError(f"{(~padding_mask).sum()} tokens are padding, expected 0")
        q, k, v = (split_heads(project(x), self.num_heads) for project in (self.query, self.key, self.value))
        return self.output(merge_heads(self.attend(q, k, v)))
