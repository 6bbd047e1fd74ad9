"""The runs of chapter 12 on writing: language models of the docstrings' bytes that predict the next one."""

import torch
from torch import Tensor, nn

from lab.experiment import Experiment, every
from linformer_from_scratch.course.recorded.writers import GIVEN, SEQ_LEN, WRITERS, held_out, untrained
from linformer_from_scratch.data import ByteVocabulary, docstrings, generator_of
from linformer_from_scratch.limits.writing import next_token_loss, written_loss
from linformer_from_scratch.training import Config, Trainer
from linformer_from_scratch.training.corpora import streams

CONFIG = Config(steps=3000, learning_rate=3e-3, warmup=100)


def losses_of_writer(attention: str, seed: int, config: Config = CONFIG) -> dict:
    """Train one language model; ten times on the way both losses on held-out text."""
    return {"curve": trained_writer(attention, seed, config)[1]}


def trained_writer(attention: str, seed: int, config: Config = CONFIG) -> tuple[nn.Module, list[list[float]]]:
    """The model, and its curve: updates, loss with the whole text in sight, loss of a text to be written."""
    torch.manual_seed(seed)
    train, _ = streams(docstrings(), ByteVocabulary())
    texts, unseen = train.unfold(0, SEQ_LEN + 1, 1), held_out()
    model = untrained(attention)

    def batches(step: int) -> tuple[Tensor]:
        return (texts[torch.randint(len(texts), (16,), generator=generator_of(seed, step))],)

    trainer = Trainer(model, next_token_loss, batches, config, device="cpu")
    curve, tenth = [], config.steps // 10
    for until in range(tenth, config.steps + 1, tenth):
        trainer.train(until)
        losses = trainer.evaluate([(unseen,)]), written_loss(model, unseen, GIVEN)
        curve.append([until, *(round(loss, 4) for loss in losses)])
    return model, curve


ABOUT = "the next byte: with the whole text in sight, and yet to be written"
GRID = every(attention=WRITERS)
EXPERIMENTS = [Experiment("12_writing", ABOUT, GRID, losses_of_writer, seeds=(0, 1, 2))]
