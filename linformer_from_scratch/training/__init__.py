"""A small trainer for any model: loss, loop, metrics, checkpoints that survive a kill (chapter 08).

`python -m linformer_from_scratch.training --help` trains, resumes and evaluates from the command line.
"""

from linformer_from_scratch.training.groups import parameter_groups
from linformer_from_scratch.training.loss import (
    accuracy,
    classification_loss,
    masked_accuracy,
    masked_loss,
    mean_over,
)
from linformer_from_scratch.training.trainer import Config, Trainer, learning_rate

__all__ = [
    "Config",
    "Trainer",
    "accuracy",
    "classification_loss",
    "learning_rate",
    "masked_accuracy",
    "masked_loss",
    "mean_over",
    "parameter_groups",
]
