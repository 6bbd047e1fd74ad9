"""Multi-head attention: several small attentions side by side (chapter 02).

head_i = Attention(X W_i^Q, X W_i^K, X W_i^V)
MultiHead(X) = Concat(head_1, …, head_h) W^O          Vaswani et al. 2017, section 3.2.2
"""

from torch import Tensor
from torch.nn import functional

from linformer_from_scratch import heads
from linformer_from_scratch.attention import causal_mask
from linformer_from_scratch.heads import AttentionLayer, check_inputs, finite_padding, merge_heads


class MultiHeadAttention(AttentionLayer):
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
    A query that may attend to nobody gets zeros, so its output is the bias of `output`.

    >>> MultiHeadAttention(d_model=12, num_heads=3)(torch.zeros(2, 5, 12)).shape
    torch.Size([2, 5, 12])
    """

    def __init__(self, d_model: int, num_heads: int, num_kv_heads: int | None = None, causal: bool = False):
        super().__init__(d_model, num_heads, num_kv_heads)
        self.causal = causal

    def attend(self, q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor | None) -> Tensor:
        """By PyTorch's fused kernel, which never stores the n×n maps."""
        only_causal = self.causal and padding_mask is None  # the kernel needs no stored mask for this
        mask = None if only_causal else self.mask(q, padding_mask)
        grouped = self.num_kv_heads < self.num_heads
        return functional.scaled_dot_product_attention(
            q, k, v, mask, is_causal=only_causal, enable_gqa=grouped
        )

    def definition(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """The same output, one head after another as in the paper: slow, and easy to check by eye."""
        check_inputs(x, padding_mask, self.query.in_features)
        x = finite_padding(x, padding_mask)
        return self.output(merge_heads(heads.head_by_head(*self.project(x), self.mask(x, padding_mask))))

    def mask(self, x: Tensor, padding_mask: Tensor | None) -> Tensor | None:
        """Which keys each query of x (…, n, features) may read: (batch or 1, 1, n or 1, n); None: all."""
        causal = causal_mask(x.size(-2), x.device) if self.causal else None
        if padding_mask is None:
            return causal
        keys = padding_mask[:, None, None, :]  # nobody may attend to a padded key
        return keys if causal is None else keys & causal
