"""A small trainer for any model: loss, loop, metrics, checkpoints that survive a kill (chapter 08).

`python -m linformer_from_scratch.training --help` trains, resumes and evaluates from the command line.
"""

from linformer_from_scratch.training.groups import parameter_groups as parameter_groups
from linformer_from_scratch.training.loss import accuracy as accuracy
from linformer_from_scratch.training.loss import classification_loss as classification_loss
from linformer_from_scratch.training.loss import masked_accuracy as masked_accuracy
from linformer_from_scratch.training.loss import masked_loss as masked_loss
from linformer_from_scratch.training.loss import mean_over as mean_over
from linformer_from_scratch.training.trainer import Config as Config
from linformer_from_scratch.training.trainer import Trainer as Trainer
from linformer_from_scratch.training.trainer import learning_rate as learning_rate
