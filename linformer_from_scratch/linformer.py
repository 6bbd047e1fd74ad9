"""Linformer: attention whose keys and values are compressed along the sequence (chapter 06).

P̄ = softmax(Q (E K)ᵀ / √d), Linformer(Q, K, V) = P̄ (F V)          Wang et al. 2020, section 4

E and F are (proj_dim, n): n tokens become proj_dim slots, and P̄ is (n, proj_dim) instead of (n, n).
"""

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.heads import (
    AttentionLayer,
    check_inputs,
    head_by_head,
    merge_heads,
    real_tokens,
    split_heads,
)
from linformer_from_scratch.projections import LearnedProjection, MeanPooling, Projection, project

WORDS = ("learned", "per head", "windows")  # in place of E and F


def linformer_attention(q: Tensor, k: Tensor, v: Tensor, E: Tensor, F: Tensor) -> Tensor:
    """softmax(q (E k)ᵀ / √d) (F v); fewer than seq_len keys use the first columns of E and F.

    Wang et al. 2020, section 4, equation 7.

    Shape: q (..., n, d), k and v (..., m, d), E and F (proj_dim, seq_len) or one per head
        (num_heads, proj_dim, seq_len) -> (..., n, d)
    Raises: ValueError if there are more than seq_len keys.

    >>> linformer_attention(*torch.zeros(3, 5, 4), *torch.zeros(2, 3, 8)).shape
    torch.Size([5, 4])
    """
    given = q, k, v, E, F
    if all(x.dtype == torch.float16 for x in given):  # whose slots would be infinite beyond 65,504
        return linformer_attention(*(x.float() for x in given)).half()
    return scaled_dot_product_attention(q, project(k, E), project(v, F))


class LinformerAttention(AttentionLayer):
    """Multi-head self-attention in O(n · proj_dim) time and memory, not O(n²).

    head_i = softmax(Q_i (E K_i)ᵀ / √d_head) F V_i          Wang et al. 2020, section 4

    Args:
        d_model: features per token, a multiple of num_heads.
        num_heads: heads of d_model // num_heads features each.
        E, F: projections of the sequence axis to proj_dim slots, from `projections`. Pass one object as both
            E and F for key-value sharing, and the same object to every layer for layerwise sharing.
            Give torch.func.functional_call `tie_weights=False` then: without it, the weights that it was
            given stay in what is shared (PyTorch's issue 164759).
            Or words, with seq_len and proj_dim: "learned" (one matrix for all heads), "per head" (one for
            each), "windows" (fixed means); F="E" shares. F is another of E's kind by default.
        seq_len, proj_dim: longest input in tokens, and slots, where E or F is a word.
        dropout: share of the attention weights set to zero while training, as in nn.MultiheadAttention.

    Shape: x (batch, n, d_model) with n <= seq_len, padding_mask (batch, n) with True = a real token
        -> (batch, n, d_model)
    Raises: ValueError if num_heads does not divide d_model, if E or F is neither a Projection nor such a
        word, if they differ in their sizes, if dropout is not in 0 … 1, if x or padding_mask have another
        shape, or if x has more than seq_len tokens.
    Not causal: every slot mixes the whole sequence, the future included.
    E and F see padding as zeros: neither its content nor how much of it follows changes a real output.
    A text shorter than seq_len uses their first columns; no way to rescale those was worth an option
    (chapter 06, evidence).

    >>> E = LearnedProjection(seq_len=512, proj_dim=128)
    >>> LinformerAttention(64, 4, E, E)(torch.zeros(1, 300, 64)).shape
    torch.Size([1, 300, 64])
    >>> LinformerAttention(64, 4, seq_len=512, proj_dim=128).F.weight.shape
    torch.Size([128, 512])
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        E: Projection | str = "learned",
        F: Projection | str | None = None,
        *,
        seq_len: int | None = None,
        proj_dim: int | None = None,
        dropout: float = 0.0,
    ):
        super().__init__(d_model, num_heads)
        if not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
            raise ValueError(f"dropout is {dropout!r}, expected a share from 0 to 1")
        self.dropout = dropout
        sizes = seq_len, proj_dim, num_heads
        F = E if F is None and isinstance(E, str) else F
        E = _projection("E", E, *sizes)
        F = E if isinstance(F, str) and F == "E" else _projection("F", F, *sizes)
        if (E.seq_len, E.proj_dim) != (F.seq_len, F.proj_dim):
            raise ValueError(
                f"E takes {E.seq_len} tokens to {E.proj_dim} slots, F {F.seq_len} to {F.proj_dim}; "
                "expected the same sizes"
            )
        self.E, self.F = E, F

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Compress keys and values to slots, let every query read every slot, mix the heads."""
        check_inputs(x, padding_mask, self.query.in_features)
        x = real_tokens(x, padding_mask)  # padding is zeros, so no slot holds any of it
        q = self.split(self.query(x))  # (batch, num_heads, n, d_head)
        k, v = self.slots(x)  # E K and F V, (batch, num_heads, proj_dim, d_head) each
        heads = self.attend(q, k, v, padding_mask)  # softmax(Q (E K)ᵀ / √d_head) F V, as q
        return self.output(merge_heads(heads))  # (batch, n, d_model)

    def slots(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Compressed keys and values, E K and F V, in the cheaper order.

        (E X) W = E (X W) where E commutes: compressing first leaves proj_dim rows for W instead of n.

        Shape: x (batch, n, d_model) -> two of (batch, num_heads, proj_dim, d_head)
        """
        if not (self.E.commutes and self.F.commutes):
            return self.E(self.split(self.key(x))), self.F(self.split(self.value(x)))  # E (X W)
        for_keys = self.E(x)
        for_values = for_keys if self.F is self.E else self.F(x)
        return self.split(self.key(for_keys)), self.split(self.value(for_values))  # (E X) W

    def attend(self, q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor | None) -> Tensor:
        """Every query attends to every slot, by PyTorch's fused kernel; no mask: no slot holds padding."""
        if k.size(-2) != v.size(-2):  # E or F was replaced; the kernel would read beyond the smaller one
            raise ValueError(f"E gives {k.size(-2)} slots, F {v.size(-2)}; expected the same number")
        dropout = self.dropout if self.training else 0.0
        return functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout)

    def definition(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """The same output, without dropout, one head after another: slow, and easy to check by eye."""
        check_inputs(x, padding_mask, self.query.in_features)
        q, k, v = self.project(real_tokens(x, padding_mask))
        return self.output(merge_heads(head_by_head(q, self.E(k), self.F(v))))

    def split(self, x: Tensor) -> Tensor:
        """Shape: (batch, n, d_model) -> (batch, num_heads, n, d_head)."""
        return split_heads(x, self.num_heads)


def _projection(
    name: str, given: Projection | str | None, seq_len: int | None, proj_dim: int | None, num_heads: int
) -> Projection:
    """E or F as it was given, or made from the word that was."""
    if isinstance(given, Projection):
        if seq_len not in (None, given.seq_len) or proj_dim not in (None, given.proj_dim):
            own = f"{name} takes {given.seq_len} tokens to {given.proj_dim} slots"
            raise ValueError(f"{own}, expected no others; got seq_len={seq_len}, proj_dim={proj_dim}")
        return given
    if not isinstance(given, str) or given not in WORDS:
        got = repr(given) if given is None or isinstance(given, str) else f"a {type(given).__name__}"
        words = ", ".join([*WORDS, *"E" * (name == "F")])
        raise ValueError(f"{name} is {got}, expected a Projection from `projections`, or one of {words}")
    if seq_len is None or proj_dim is None:
        raise ValueError(f"{name} is {given!r} with seq_len={seq_len}, proj_dim={proj_dim}; expected both")
    if given == "windows":
        return MeanPooling(seq_len, proj_dim)
    return LearnedProjection(seq_len, proj_dim, num_heads if given == "per head" else None)
