"""Layers that store 8 bits a weight and compute in float32: a quarter of the download, nearly the output.

Each row of a matrix has one scale. The inputs keep all their bits: some tokens have features ten times as
large as others', which 8 bits cannot hold well, and rounding would make one machine's output another's.
"""

from torch import Tensor, int8, nn
from torch.nn import functional

LARGEST = 127  # of a signed byte, with either sign
TINY = 1e-12  # least scale: a row of zeros has none


class Bytes(nn.Module):
    """A layer's weights as bytes · scales, a scale for each row; off by at most half a scale."""

    def __init__(self, layer: nn.Linear | nn.Embedding):
        super().__init__()
        weight = layer.weight.detach()
        scales = weight.abs().amax(dim=-1, keepdim=True).clamp(min=TINY) / LARGEST
        self.register_buffer("weight", (weight / scales).round().to(int8))
        self.register_buffer("scales", scales)
        self.bias = getattr(layer, "bias", None)


class ByteLinear(Bytes):
    """A linear layer. Shape: x (…, in_features) -> (…, out_features)"""

    def forward(self, x: Tensor) -> Tensor:
        """As nn.Linear; onnxruntime multiplies bytes by scales once, when it loads the graph."""
        return functional.linear(x, self.weight.float() * self.scales, self.bias)


class ByteEmbedding(Bytes):
    """A table of vectors. Shape: ids (…) of integers -> (…, d)"""

    def forward(self, ids: Tensor) -> Tensor:
        """Only the vectors that are looked up become float32."""
        return functional.embedding(ids, self.weight).float() * functional.embedding(ids, self.scales)


def in_bytes(module: nn.Module) -> nn.Module:
    """Replace all linear layers inside a module by ByteLinear, and return it."""
    for name, child in module.named_children():
        setattr(module, name, ByteLinear(child) if isinstance(child, nn.Linear) else in_bytes(child))
    return module
