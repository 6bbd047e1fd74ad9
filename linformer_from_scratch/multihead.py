"""Multi-head attention: several small attentions side by side (chapter 02).

head_i = Attention(X W_i^Q, X W_i^K, X W_i^V)
MultiHead(X) = Concat(head_1, …, head_h) W^O          Vaswani et al. 2017, section 3.2.2
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.attention import causal_mask, scaled_dot_product_attention


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Cut the features into heads; every head keeps all n tokens.

    Shape: x (batch, n, d_model) -> (batch, num_heads, n, d_model // num_heads)
    Raises: ValueError if num_heads does not divide d_model.
    """
    check_divides(num_heads, x.size(-1), "d_model")
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads' features side by side again: the inverse of split_heads.

    Shape: x (batch, num_heads, n, d_head) -> (batch, n, num_heads * d_head)
    """
    return x.transpose(1, 2).flatten(-2)


class MultiHeadAttention(nn.Module):
    """Multi-head self-attention, with fewer key/value heads if you ask for them.

    head_i = softmax(Q_i K_jᵀ / √d_head) V_j, j = i // (num_heads / num_kv_heads)
    Vaswani et al. 2017, section 3.2.2; num_kv_heads=1 is multi-query attention (Shazeer 2019),
    1 < num_kv_heads < num_heads is grouped-query attention (Ainslie et al. 2023).

    Args:
        d_model: features per token, a multiple of num_heads.
        num_heads: query heads of d_model // num_heads features each.
        num_kv_heads: key and value heads, a divisor of num_heads; as many as num_heads by default.
        causal: token i attends to tokens 0 … i only.

    Shape: x (batch, n, d_model), padding_mask (batch, n) with True = a real token -> (batch, n, d_model)
    Raises: ValueError if heads do not divide evenly, or if x or padding_mask have another shape.
    A query that may attend to nobody reads zeros, so its output is the bias of `output`.
    """

    def __init__(self, d_model: int, num_heads: int, num_kv_heads: int | None = None, causal: bool = False):
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check_divides(num_heads, d_model, "d_model")
        check_divides(num_kv_heads, num_heads, "num_heads")
        d_kv = d_model // num_heads * num_kv_heads
        self.num_heads, self.num_kv_heads, self.causal = num_heads, num_kv_heads, causal
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_kv, bias=False)
        self.value = nn.Linear(d_model, d_kv, bias=False)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Attend with PyTorch's fused kernel, which never stores the n×n maps."""
        check_inputs(x, padding_mask, self.query.in_features)
        q, k, v = self.project(x)
        only_causal = self.causal and padding_mask is None  # the kernel needs no stored mask for this
        mask = None if only_causal else self.mask(x, padding_mask)
        grouped = self.num_kv_heads < self.num_heads
        heads = functional.scaled_dot_product_attention(
            q, k, v, mask, is_causal=only_causal, enable_gqa=grouped
        )
        return self.output(merge_heads(heads))

    def definition(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """The same output, one head after another as in the paper: slow, and easy to check by eye."""
        check_inputs(x, padding_mask, self.query.in_features)
        q, k, v = self.project(x)
        mask = self.mask(x, padding_mask)
        group = self.num_heads // self.num_kv_heads  # query heads that share one key/value head
        heads = [
            scaled_dot_product_attention(q[:, [i]], k[:, [i // group]], v[:, [i // group]], mask)
            for i in range(self.num_heads)
        ]
        return self.output(merge_heads(torch.cat(heads, dim=1)))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (batch, num_heads, n, d_head), keys and values (batch, num_kv_heads, n, d_head)."""
        q = split_heads(self.query(x), self.num_heads)
        k = split_heads(self.key(x), self.num_kv_heads)
        v = split_heads(self.value(x), self.num_kv_heads)
        return q, k, v

    def mask(self, x: Tensor, padding_mask: Tensor | None) -> Tensor | None:
        """Who may attend to whom, broadcastable to (batch, num_heads, n, n); None where everybody may."""
        causal = causal_mask(x.size(1)).to(x.device) if self.causal else None
        if padding_mask is None:
            return causal
        keys = padding_mask[:, None, None, :]  # nobody may attend to a padded key
        return keys if causal is None else keys & causal


def check_divides(parts: int, whole: int, name: str) -> None:
    """Raise ValueError if that many heads do not divide the features."""
    if parts < 1 or whole % parts:
        raise ValueError(f"{parts} heads do not divide {name}={whole}")


def check_inputs(x: Tensor, padding_mask: Tensor | None, d_model: int) -> None:
    """Raise ValueError if x is not (batch, n, d_model), or padding_mask not boolean and (batch, n)."""
    if x.dim() != 3 or x.size(-1) != d_model:
        raise ValueError(f"x has shape {tuple(x.shape)}, expected (batch, n, {d_model})")
    if padding_mask is not None and (padding_mask.shape != x.shape[:2] or padding_mask.dtype != torch.bool):
        raise ValueError(
            f"padding_mask is {padding_mask.dtype} {tuple(padding_mask.shape)}, "
            f"expected torch.bool {tuple(x.shape[:2])}"
        )
