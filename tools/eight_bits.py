"""Layers that store 8 bits a weight and compute in float32: a quarter of the download, nearly the output.

Each row of a matrix has one scale. The inputs keep all their bits: some tokens have features ten times as
large as others', which 8 bits cannot hold well, and rounding would make one machine's output another's.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

LARGEST = 127  # of a signed byte, with either sign
TINY = 1e-12  # least scale: a row of zeros has none


def rows_in_bytes(x: Tensor) -> tuple[Tensor, Tensor]:
    """Bytes and scales with x ≈ bytes · scales; off by at most half a scale.

    Shape: x (rows, d) -> int8 (rows, d), (rows, 1)
    """
    scales = x.abs().amax(dim=-1, keepdim=True).clamp(min=TINY) / LARGEST
    return (x / scales).round().to(torch.int8), scales


class ByteLinear(nn.Module):
    """A linear layer with a byte for each weight, and a scale for each output.

    Shape: x (…, in_features) -> (…, out_features)
    """

    def __init__(self, layer: nn.Linear):
        super().__init__()
        weight, scales = rows_in_bytes(layer.weight.detach())
        self.register_buffer("weight", weight)
        self.register_buffer("scales", scales)
        self.bias = layer.bias

    def forward(self, x: Tensor) -> Tensor:
        """As nn.Linear; onnxruntime multiplies bytes by scales once, when it loads the graph."""
        return functional.linear(x, self.weight.float() * self.scales, self.bias)


class ByteEmbedding(nn.Module):
    """A table of vectors with a byte for each number, and a scale for each vector.

    Shape: ids (…) of integers -> (…, d)
    """

    def __init__(self, table: nn.Embedding):
        super().__init__()
        weight, scales = rows_in_bytes(table.weight.detach())
        self.register_buffer("weight", weight)
        self.register_buffer("scales", scales)

    def forward(self, ids: Tensor) -> Tensor:
        """Only the vectors that are looked up become float32."""
        return functional.embedding(ids, self.weight).float() * functional.embedding(ids, self.scales)


def in_bytes(module: nn.Module) -> nn.Module:
    """Replace all linear layers inside a module by ByteLinear, and return it."""
    for name, child in module.named_children():
        setattr(module, name, ByteLinear(child) if isinstance(child, nn.Linear) else in_bytes(child))
    return module
