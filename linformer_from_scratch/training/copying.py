"""Could a masked token be copied? Losses on tokens that occur elsewhere in the text, and on the rest.

Most of what language models without attention lose, they lose on the former (Arora et al. 2023, Zoology,
arXiv 2312.04927: "associative recall").
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.data import IGNORE


def copies(inputs: Tensor, targets: Tensor) -> Tensor:
    """Where in its text each masked token occurs again, visibly and more than one token away.

    Shape: (batch, n), (batch, n) with IGNORE where nothing is masked -> bool (masked tokens, n), masked
        tokens in row-major order
    """
    row, column = (targets != IGNORE).nonzero(as_tuple=True)
    same = inputs[row] == targets[row, column][:, None]
    far = (torch.arange(inputs.size(1), device=inputs.device) - column[:, None]).abs() > 1
    return same & far


@torch.no_grad()
def copying_losses(model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Mean loss, in nats per token, on masked tokens that have copies in their text, and on the others.

    Args:
        model: a MaskedLanguageModel, in evaluation mode.
        batches: inputs and targets (batch, n) on the model's device.
    """
    losses, repeats = [], []
    for inputs, targets in batches:
        masked = targets != IGNORE
        scores = model(inputs, where=masked)
        losses.append(functional.cross_entropy(scores, targets[masked], reduction="none"))
        repeats.append(copies(inputs, targets).any(dim=1))
    each, repeated = torch.cat(losses), torch.cat(repeats)
    return {"repeated": each[repeated].mean().item(), "new": each[~repeated].mean().item()}
