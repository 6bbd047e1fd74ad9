"""What Linformer cannot do, each as an experiment (chapter 12)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


def next_token_loss(model: nn.Module, ids: Tensor) -> Tensor:
    """Loss of a language model that sees a whole text at once: at each token, of the next one, in nats.

    That is the loss of a text yet to be written only if no output depends on later tokens (Vaswani et al.
    2017, section 3.2.3).

    Args: model: ids (batch, n) -> scores of the vocabulary (batch, n, vocab_size).
    Shape: ids (batch, n) -> ()
    """
    scores = model(ids[:, :-1])
    return functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())


@torch.no_grad()
def written_loss(model: nn.Module, ids: Tensor, lengths: Sequence[int]) -> float:
    """The same where the rest of the text is not there yet: given the first tokens only, of the next one.

    Args: lengths: how many tokens are given, each at least 1 and less than n.
    Shape: ids (batch, n) -> a number, the mean over texts and lengths
    """
    model.eval()
    losses = [functional.cross_entropy(model(ids[:, :length])[:, -1], ids[:, length]) for length in lengths]
    return torch.stack(losses).mean().item()
