"""Training or evaluation: a model that is only looked at stays in the mode in which it was."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def as_it_was(model: nn.Module) -> Iterator[None]:
    """Restore every part of the model, on leaving, to the mode that it was in: training or evaluation."""
    before = {part: part.training for part in model.modules()}
    try:
        yield
    finally:
        for part, training in before.items():
            part.training = training


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Inside, the model is in evaluation mode; after it, as it was."""
    with as_it_was(model):
        model.eval()
        yield
