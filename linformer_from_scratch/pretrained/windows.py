"""Linformer with an E for every length: windows of a text, its first and last token alone (chapter 12).

An E that is fitted at fixed positions suits one length. This one is a function of n, with nothing to fit:
slot 0 is [CLS], the last slot [SEP], and proj_dim - 2 windows share the tokens between. Many heads attend
mostly to those two tokens, whose values are short; a mean over neighbours would hide them.
"""

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.common.checks import check_mask, check_size, seen
from linformer_from_scratch.heads import AttentionLayer, real_tokens, split_heads


def windows(lengths: Tensor, proj_dim: int, n: int) -> Tensor:
    """E of each text: row i is the mean of window i; a text of at most proj_dim tokens has a slot for each.

    Token t of a text of m > proj_dim tokens is in window ⌊(t - 1) (proj_dim - 2) / (m - 2)⌋ + 1. Rows of
    slots without a token, and columns of padding, are zero.

    Shape: lengths (batch,) of integers, n: padded length -> (batch, proj_dim, n)
    """
    token, length = torch.arange(n, device=lengths.device), lengths[:, None]
    shared = (token - 1) * (proj_dim - 2) // (length - 2).clamp(min=1) + 1
    slot = torch.where(length > proj_dim, shared, token).masked_fill(token >= length, -1)  # (batch, n)
    members = (slot[:, None] == torch.arange(proj_dim, device=lengths.device)[:, None]).float()
    return members / members.sum(dim=-1, keepdim=True).clamp(min=1)


class WindowAttention(AttentionLayer):
    """Linformer's attention with E = F = `windows` of each text: O(n · proj_dim), nothing to fit.

    head_i = softmax(Q_i (E K_i)ᵀ / √d_head) E V_i          Wang et al. 2020, section 4; E a function of n

    Args:
        d_model, num_heads: as MultiHeadAttention.
        proj_dim: slots, the paper's k.

    Shape: x (batch, n, d_model), padding_mask (batch, n), True = a real token; real tokens come first
        -> (batch, n, d_model)
    Raises: ValueError as AttentionLayer, if proj_dim is below 3, or if padding stands before a real token.
    A text of at most proj_dim tokens gets exact attention. Padding changes nothing.
    """

    def __init__(self, d_model: int, num_heads: int, proj_dim: int):
        super().__init__(d_model, num_heads)
        self.proj_dim = check_size("proj_dim", proj_dim, least=3)  # the first token, a window, the last

    def project(self, x: Tensor, padding_mask: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (batch, num_heads, n, d_head); keys and values (batch, num_heads, proj_dim, d_head)."""
        E = windows(lengths_of(x, padding_mask), self.proj_dim, x.size(1)).to(x.dtype)
        x = real_tokens(x, padding_mask)
        slots = E @ x  # (E X) W = E (X W): one product serves keys and values of all heads
        q, k, v = self.query(x), self.key(slots), self.value(slots)
        return split_heads(q, self.num_heads), split_heads(k, self.num_heads), split_heads(v, self.num_heads)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor | None) -> Tensor:
        """Every query attends to every slot that holds a token."""
        if padding_mask is None:
            padding_mask = torch.ones(q.size(0), q.size(-2), dtype=torch.bool, device=q.device)
        filled = torch.arange(self.proj_dim, device=q.device) < padding_mask.sum(dim=1, keepdim=True)
        if seen(filled.all()):  # which a graph for every n does not see
            return functional.scaled_dot_product_attention(q, k, v)
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=filled[:, None, None])


def lengths_of(x: Tensor, padding_mask: Tensor | None) -> Tensor:
    """How many real tokens each text has. Shape: x (batch, n, …) -> (batch,)

    Raises: ValueError as check_mask, or, except in a graph, if padding stands before a real token.
    """
    check_mask("padding_mask", padding_mask, x)
    if padding_mask is None:
        padding_mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
    lengths = padding_mask.sum(dim=1)
    first = torch.arange(x.size(1), device=x.device) < lengths[:, None]
    if seen((padding_mask != first).any()):
        raise ValueError("padding stands before a real token, expected every text's padding at its end")
    return lengths
