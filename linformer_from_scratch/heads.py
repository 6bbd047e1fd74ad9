"""What all attention layers share: heads are split off, attend, and are merged again (chapter 02).

head_i = attend(X W_i^Q, X W_i^K, X W_i^V)
Layer(X) = Concat(head_1, …, head_h) W^O          Vaswani et al. 2017, section 3.2.2
"""

from typing import SupportsIndex

import torch
from torch import Tensor, nn

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.common.checks import check_mask, check_size


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Cut the features into heads; every head keeps all n tokens.

    Shape: x (batch, n, d_model) -> (batch, num_heads, n, d_model // num_heads)
    Raises: ValueError if x has not 3 axes, or num_heads does not divide d_model.

    >>> split_heads(torch.zeros(2, 5, 12), num_heads=3).shape
    torch.Size([2, 3, 5, 4])
    """
    _check_axes(x, 3, "batch, n, d_model")
    num_heads = check_divides("num_heads", num_heads, "d_model", x.size(-1))
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """Put the heads' features side by side again: the inverse of split_heads.

    Shape: x (batch, num_heads, n, d_head) -> (batch, n, num_heads * d_head)
    Raises: ValueError if x has not 4 axes.

    >>> merge_heads(torch.zeros(2, 3, 5, 4)).shape
    torch.Size([2, 5, 12])
    """
    _check_axes(x, 4, "batch, num_heads, n, d_head")
    return x.transpose(1, 2).flatten(-2)


def head_by_head(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """One head after another, as the paper writes it: slow, and easy to check by eye.

    Shape: q (batch, num_heads, n, d_head), k and v (batch, num_kv_heads, m, d_head) -> as q

    >>> head_by_head(*torch.zeros(3, 2, 3, 5, 4)).shape
    torch.Size([2, 3, 5, 4])
    """
    group = q.size(1) // k.size(1)  # query heads that share one key/value head
    heads = [
        scaled_dot_product_attention(q[:, [i]], k[:, [i // group]], v[:, [i // group]], mask)
        for i in range(q.size(1))
    ]
    return torch.cat(heads, dim=1)


class AttentionLayer(nn.Module):
    """Project, split, attend, merge: the layer that each kind of attention completes with its `attend`.

    Args:
        d_model: features per token, a multiple of num_heads.
        num_heads: query heads of d_model // num_heads features each.
        num_kv_heads: key and value heads, a divisor of num_heads; as many as num_heads by default.

    Shape: x (batch, n, d_model), padding_mask (batch, n) with True = a real token -> (batch, n, d_model)
    Raises: ValueError if heads do not divide evenly, or if x or padding_mask have another shape.
    NaN or infinity in padding reaches no real token, and no gradient.

    >>> [x.size(1) for x in AttentionLayer(12, 6, 2).project(torch.zeros(1, 5, 12))]
    [6, 2, 2]
    """

    def __init__(self, d_model: int, num_heads: int, num_kv_heads: int | None = None):
        super().__init__()
        d_model = check_size("d_model", d_model)
        num_heads = check_divides("num_heads", num_heads, "d_model", d_model)
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        num_kv_heads = check_divides("num_kv_heads", num_kv_heads, "num_heads", num_heads)
        d_kv = d_model // num_heads * num_kv_heads
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_kv, bias=False)
        self.value = nn.Linear(d_model, d_kv, bias=False)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Let all heads attend, and mix their outputs."""
        check_inputs(x, padding_mask, self.query.in_features)
        x = finite_padding(x, padding_mask)
        heads = self.attend(*self.project(x, padding_mask), padding_mask)
        return self.output(merge_heads(heads))

    def project(self, x: Tensor, padding_mask: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (batch, num_heads, n, d_head), keys and values (batch, num_kv_heads, n, d_head)."""
        q = split_heads(self.query(x), self.num_heads)
        k = split_heads(self.key(x), self.num_kv_heads)
        v = split_heads(self.value(x), self.num_kv_heads)
        return q, k, v

    def attend(self, q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor | None) -> Tensor:
        """The output of every head. Shape: as `project` returns them -> (batch, num_heads, n, d_head)."""
        raise NotImplementedError(f"{type(self).__name__} does not say how its heads attend")


def check_divides(name: str, parts: SupportsIndex, of: str, whole: int) -> int:
    """The parts as an int. Raises ValueError if they are not a positive integer that divides the whole."""
    parts = check_size(name, parts)
    if whole % parts:
        raise ValueError(f"{parts} heads do not divide {of}={whole}")
    return parts


def check_inputs(x: Tensor, padding_mask: Tensor | None, d_model: int) -> None:
    """Raise ValueError unless x is (batch, n, d_model) and padding_mask None, or boolean and (batch, n)."""
    if not isinstance(x, Tensor):
        raise ValueError(f"x is a {type(x).__name__}, expected a Tensor (batch, n, {d_model})")
    if x.dim() != 3 or x.size(-1) != d_model:
        raise ValueError(f"x has shape {tuple(x.shape)}, expected (batch, n, {d_model})")
    check_mask("padding_mask", padding_mask, x)


def finite_padding(x: Tensor, padding_mask: Tensor | None) -> Tensor:
    """x with zeros in place of NaN and infinity in padding, which no weight of 0 takes out. Shape: as x.

    >>> finite_padding(torch.tensor([[[1.0], [torch.nan]]]), torch.tensor([[True, False]])).flatten()
    tensor([1., 0.])
    """
    return x if padding_mask is None else x.where(padding_mask[..., None] | x.isfinite(), 0.0)


def real_tokens(x: Tensor, padding_mask: Tensor | None) -> Tensor:
    """x with zeros in place of padding, which then adds nothing to a slot. Shape: as x.

    Raises: ValueError as check_mask.

    >>> real_tokens(torch.ones(1, 3, 1), torch.tensor([[True, True, False]])).flatten()
    tensor([1., 1., 0.])
    """
    check_mask("padding_mask", padding_mask, x)
    return x if padding_mask is None else x.masked_fill(~padding_mask[..., None], 0.0)


def _check_axes(x: Tensor, expected: int, names: str) -> None:
    if x.dim() != expected:
        raise ValueError(f"x has {x.dim()} axes, expected {expected} ({names})")
