"""Scaled dot-product attention: every query meets every key (chapter 01).

    Attention(Q, K, V) = softmax(Q Kᵀ / √d) V          Vaswani et al. 2017, section 3.2.1

Masks are boolean, True = may attend, as in torch.nn.functional.scaled_dot_product_attention.

>>> attention_weights(torch.zeros(1, 4), torch.zeros(2, 4))  # equal scores
tensor([[0.5000, 0.5000]])
>>> scaled_dot_product_attention(torch.zeros(1, 4), torch.zeros(2, 4), torch.eye(2))
tensor([[0.5000, 0.5000]])
"""

import math

import torch
from torch import Tensor

from linformer_from_scratch.common.checks import check_size


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(q kᵀ / √d): each row sums to one.

    A query that may attend to nobody gets a row of zeros. Its softmax would be 0/0; zeros say "nobody was
    attended to", keep gradients finite, and are what PyTorch's fused function returns.

    Shape: q (..., n, d), k (..., m, d), mask broadcastable to (..., n, m) -> (..., n, m)
    Raises: ValueError if q and k differ in d or are not floating point, or if the mask is no boolean tensor,
        lies on another device, or does not fit.
    """
    check_features(q, k)
    _check_mask(mask, q, k)
    if q.dtype == k.dtype == torch.float16:  # whose scores would be infinite beyond 65,504
        return attention_weights(q.float(), k.float(), mask).half()
    scores = (q / math.sqrt(q.size(-1))) @ k.mT  # (..., n, d) @ (..., d, m) -> (..., n, m)
    if mask is None:
        return scores.softmax(dim=-1)
    nobody = ~mask.any(dim=-1, keepdim=True)  # rows with no key to attend to: all of -inf would be 0/0
    masked = scores.new_full((), -math.inf).where(~nobody, 0.0)  # exp(-inf) = 0
    return torch.where(mask, scores, masked).softmax(dim=-1).masked_fill(nobody, 0.0)


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mix the values by the attention weights: softmax(q kᵀ / √d) v.

    Shape: q (..., n, d), k (..., m, d), v (..., m, d_v), mask broadcastable to (..., n, m) -> (..., n, d_v)
    Raises: ValueError if q and k differ in d, if k and v differ in m, or if the mask does not fit.
    """
    if k.size(-2) != v.size(-2):
        raise ValueError(f"k has {k.size(-2)} tokens, v has {v.size(-2)}; every key needs one value")
    return attention_weights(q, k, mask) @ v  # (..., n, m) @ (..., m, d_v) -> (..., n, d_v)


def causal_mask(n: int, device: torch.device | None = None) -> Tensor:
    """Token i may attend to tokens 0 … i: True on and below the diagonal.

    Shape: (n, n), on PyTorch's default device unless another is given
    Raises: ValueError if n is not a positive integer.

    >>> causal_mask(3).int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    n = check_size("n", n)
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def padding_mask(lengths: Tensor, n: int) -> Tensor:
    """True at the real tokens of each sample, False at its padding.

    As a mask on keys it needs axes for heads and queries: padding_mask(lengths, n)[:, None, None, :].

    Args:
        lengths: real tokens of each sample, integers from 0 to n.
        n: tokens of the padded batch.

    Shape: lengths (batch,) -> (batch, n)
    Raises: ValueError if lengths is not a row of integers, if one lies outside 0 … n, or if n is no integer.

    >>> padding_mask(torch.tensor([1, 3]), n=3).int().tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    n = check_size("n", n, least=0)
    if not isinstance(lengths, Tensor):
        raise ValueError(f"lengths is a {type(lengths).__name__}, expected a Tensor of integers (batch,)")
    whole = not (lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool)
    if lengths.dim() != 1 or not whole:
        raise ValueError(f"lengths is {lengths.dtype} {tuple(lengths.shape)}, expected integers (batch,)")
    lengths = lengths.long()  # small integer types cannot be compared with a larger n
    if ((lengths < 0) | (lengths > n)).any():
        raise ValueError(f"lengths go from {lengths.min()} to {lengths.max()}; they must lie in 0 … n={n}")
    return torch.arange(n, device=lengths.device) < lengths[:, None]


def attention_entropy(weights: Tensor) -> Tensor:
    """Entropy of each row of weights in bits: 0 where one key gets all, log2(m) where m keys share alike.

    Shape: (..., n, m), rows summing to one -> (..., n)

    >>> attention_entropy(torch.full((1, 4), 0.25)).round()
    tensor([2.])
    """
    return torch.special.entr(weights).sum(dim=-1) / math.log(2)  # entr(w) = -w ln w, and 0 at w = 0


def check_features(q: Tensor, k: Tensor) -> None:
    """Raise ValueError unless q and k are floating point and have the same number of features."""
    if q.size(-1) != k.size(-1):
        raise ValueError(
            f"q has {q.size(-1)} features, k has {k.size(-1)}; a dot product needs the same number"
        )
    if not (q.is_floating_point() and k.is_floating_point()):
        raise ValueError(f"q is {q.dtype}, k is {k.dtype}; expected floating-point numbers")


def _check_mask(mask: Tensor | None, q: Tensor, k: Tensor) -> None:
    """Raise ValueError unless mask is None, or boolean and broadcastable to the scores of q and k."""
    if mask is None:
        return
    if not isinstance(mask, Tensor):
        raise ValueError(f"mask is a {type(mask).__name__}, expected a Tensor or None")
    if mask.dtype != torch.bool:
        raise ValueError(f"mask has dtype {mask.dtype}, expected torch.bool (True: may attend)")
    if mask.device != q.device:
        raise ValueError(f"mask is on {mask.device}, q is on {q.device}")
    scores = *torch.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.size(-2), k.size(-2)
    fits = mask.dim() <= len(scores) and all(
        m in (1, s) for m, s in zip(reversed(mask.shape), reversed(scores), strict=False)
    )
    if not fits:
        raise ValueError(f"mask has shape {tuple(mask.shape)}, which does not fit scores {scores}")
