"""Fit a trained network by small changes: W + B A, whose rank is that of B and A (Hu et al. 2021, LoRA).

The pretrained W stays as it is; B and A are learned and stored, 2 · d · rank numbers in place of d².
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize


class LowRankUpdate(nn.Module):
    """W + B A. B starts as zeros, so W starts as it was (Hu et al. 2021, arXiv 2106.09685, section 4.1).

    Args:
        d_out, d_in: shape of W.
        rank: of the change.

    Shape: W (d_out, d_in) -> as W
    """

    def __init__(self, d_out: int, d_in: int, rank: int):
        super().__init__()
        self.A = nn.Parameter(torch.randn(rank, d_in) / math.sqrt(d_in))
        self.B = nn.Parameter(torch.zeros(d_out, rank))

    def forward(self, weight: Tensor) -> Tensor:
        """The weight that the layer computes with."""
        return weight + self.B @ self.A


def add_updates(model: nn.Module, rank: int) -> list[nn.Parameter]:
    """Give every linear layer a LowRankUpdate; return what is learned: those, all biases, all LayerNorms.

    Everything else is frozen. The model's output stays the same. Layers that share a weight: one for each.
    Raises: ValueError, with the model as before, if a weight is computed, as by weight_norm or an update.
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear) and not isinstance(module.weight, nn.Parameter):
            raise ValueError(f"{name}.weight is a {type(module.weight).__name__}, expected a Parameter")
    model.requires_grad_(False)
    for module in list(model.modules()):
        if isinstance(module, nn.Linear):
            with module.weight.device:
                update = LowRankUpdate(module.out_features, module.in_features, rank).to(module.weight.dtype)
            parametrize.register_parametrization(module, "weight", update)
            if module.bias is not None:
                module.bias.requires_grad_(True)
        elif isinstance(module, nn.LayerNorm):
            module.requires_grad_(True)
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def learned(model: nn.Module) -> dict[str, Tensor]:
    """The parameters that add_updates leaves trainable, by name: what the file of a fitted model holds."""
    return {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}


def load_updates(model: nn.Module, rank: int, updates: dict[str, Tensor]) -> None:
    """Apply the updates that an equal model has learned: W becomes W + B A, and stays a plain matrix.

    A matrix of its own: what shared W, such as the embedding of a decoder's output, keeps W.
    Raises: ValueError if `updates` is not what `learned` returns for such a model; as add_updates.
    """
    add_updates(model, rank)
    expected = {name: tensor.shape for name, tensor in learned(model).items()}
    if {name: tensor.shape for name, tensor in updates.items()} != expected:
        raise ValueError(
            f"got {len(updates)} tensors, expected the {len(expected)} of updates of rank {rank}"
        )
    model.load_state_dict({name: tensor.float() for name, tensor in updates.items()}, strict=False)
    for module in list(model.modules()):
        if isinstance(module, nn.Linear):
            updated = nn.Parameter(module.weight.detach())
            parametrize.remove_parametrizations(module, "weight", leave_parametrized=False)
            module.weight = updated
    model.requires_grad_(True)
