"""Is a hidden token to be had by copying? Losses on tokens that stand elsewhere in the text, and on the rest.

In language models without attention, most of what they lack is lacking there (Arora et al. 2023, Zoology,
arXiv 2312.04927: "associative recall").
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.data import IGNORE


def repeated(inputs: Tensor, targets: Tensor) -> Tensor:
    """Which hidden tokens stand, visible, elsewhere in their text, farther than one token away?

    Shape: (batch, n), (batch, n) with IGNORE where nothing is hidden -> (hidden tokens,), in row-major order
    """
    row, column = (targets != IGNORE).nonzero(as_tuple=True)
    same = inputs[row] == targets[row, column][:, None]  # (hidden tokens, n)
    far = (torch.arange(inputs.size(1), device=inputs.device) - column[:, None]).abs() > 1
    return (same & far).any(dim=1)


@torch.no_grad()
def copying_losses(model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Mean loss, in nats per token, on hidden tokens that are repeated in their text, and on the others.

    Args:
        model: a MaskedLanguageModel, in evaluation mode.
        batches: inputs and targets (batch, n) on the model's device.
    """
    losses, copies = [], []
    for inputs, targets in batches:
        hidden = targets != IGNORE
        scores = model(inputs, where=hidden)
        losses.append(functional.cross_entropy(scores, targets[hidden], reduction="none"))
        copies.append(repeated(inputs, targets))
    each, copy = torch.cat(losses), torch.cat(copies)
    return {"repeated": each[copy].mean().item(), "new": each[~copy].mean().item()}
