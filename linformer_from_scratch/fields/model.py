"""One encoder for every field: what a token knows, where it stands, and any layers (chapter 14)."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from linformer_from_scratch.encoder import Block


class FieldModel(nn.Module):
    """x = known + place, then the blocks, then a LayerNorm and a linear layer.

    Args:
        known: what each token knows, as features: any module, inputs -> (batch, n, d_model).
        attentions: a layer for each block, as `encoder` describes them.
        n: tokens; each place has a learned vector.
        d_model: features per token.
        outputs: numbers per token.

    Shape: what `known` takes -> (batch, n, outputs)
    """

    def __init__(self, known: nn.Module, attentions: Sequence[nn.Module], n: int, d_model: int, outputs: int):
        super().__init__()
        self.known = known
        self.place = nn.Parameter(torch.randn(n, d_model) / math.sqrt(d_model))
        self.blocks = nn.ModuleList(Block(d_model, attention) for attention in attentions)
        self.norm, self.out = nn.LayerNorm(d_model), nn.Linear(d_model, outputs)

    def forward(self, *inputs: Tensor) -> Tensor:
        """One block after another."""
        x = self.known(*inputs) + self.place
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x))


class SumOf(nn.Module):
    """The sum of what several modules make of an input each, divided by the root of their number.

    Args: parts: one for each input, such as an Embedding for ids and a Linear for numbers.
    """

    def __init__(self, *parts: nn.Module):
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Shape: one input for each part -> (batch, n, d_model)."""
        known = [part(x) for part, x in zip(self.parts, inputs, strict=True)]
        return torch.stack(known).sum(dim=0) / math.sqrt(len(known))
