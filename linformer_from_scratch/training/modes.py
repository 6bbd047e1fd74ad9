"""Training or evaluation mode: a model that is only looked at stays in the mode it was in."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def keep_modes(model: nn.Module) -> Iterator[None]:
    """On leaving, every part of the model is again in the mode it was in: training or evaluation."""
    before = {part: part.training for part in model.modules()}
    try:
        yield
    finally:
        for part, training in before.items():
            part.training = training


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Inside, the model is in evaluation mode; afterwards it is as it was."""
    with keep_modes(model):
        model.eval()
        yield
