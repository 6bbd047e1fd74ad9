"""Slots by content: what a token holds decides which slot it goes into, in every input anew (chapter 14).

slot_j = Σ_i w_ij x_i, with weights w that are computed from x, where Linformer's E is the same for every x.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch import heads
from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.heads import AttentionLayer, check_divides, merge_heads, split_heads


class GatedSlots(AttentionLayer):
    """Linformer's queries, slots by content: slot j is a mean of all tokens, by the softmax of their gates.

    The gates of Peng et al. 2022 (ABC, arXiv 2110.02488, section 3.3), without a direction.

    Args:
        d_model: features per token, a multiple of num_heads.
        num_heads: heads of d_model // num_heads features each.
        slots: of every head.

    Shape: x (batch, n, d_model), padding_mask (batch, n) with True = a real token -> as x
    """

    def __init__(self, d_model: int, num_heads: int, slots: int):
        super().__init__(d_model, num_heads)
        d_head = d_model // num_heads
        self.gates = nn.Parameter(torch.randn(num_heads, check_size("slots", slots), d_head) / d_head**0.5)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor | None) -> Tensor:
        """Slots that read the tokens, and queries that read the slots. Shape: as AttentionLayer."""
        scores = self.gates @ k.mT  # (batch, num_heads, slots, n)
        if padding_mask is not None:
            scores = scores.masked_fill(~padding_mask[:, None, None], torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)
        return functional.scaled_dot_product_attention(q, weights @ k, weights @ v)


class Slices(nn.Module):
    """Tokens are dealt to slices, slices attend to one another, each token gets back what its slices hold.

    Wu et al. 2024 (Transolver, arXiv 2402.02366), section 3.2: what a token gets hangs on where it belongs,
    it asks for nothing.

    Args, Shape: as GatedSlots, with slices in place of slots.
    """

    def __init__(self, d_model: int, num_heads: int, slices: int):
        super().__init__()
        d_head = d_model // check_divides("num_heads", num_heads, "d_model", d_model)
        self.num_heads = num_heads
        self.place, self.hold = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.deal = nn.Linear(d_head, check_size("slices", slices))
        nn.init.orthogonal_(self.deal.weight)
        self.temperature = nn.Parameter(torch.full((num_heads, 1, 1), 0.5))
        self.read = nn.ModuleList(nn.Linear(d_head, d_head, bias=False) for _ in range(3))
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Deal, attend, deal back."""
        x = heads.finite_padding(x, padding_mask)
        scores = self.deal(split_heads(self.place(x), self.num_heads)) / self.temperature
        dealt = scores.softmax(dim=-1)  # (batch, num_heads, n, slices)
        if padding_mask is not None:
            dealt = dealt.masked_fill(~padding_mask[:, None, :, None], 0.0)
        slices = dealt.mT @ split_heads(self.hold(x), self.num_heads) / (dealt.sum(dim=-2)[..., None] + 1e-5)
        read = functional.scaled_dot_product_attention(*(linear(slices) for linear in self.read))
        return self.output(merge_heads(dealt @ read))
