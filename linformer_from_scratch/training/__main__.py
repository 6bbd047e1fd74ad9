"""Train, resume and evaluate an encoder: python -m linformer_from_scratch.training --help.

torchrun --standalone --nproc-per-node 2 -m linformer_from_scratch.training … gives each of two ranks half of
every batch.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch

from linformer_from_scratch.common.files import expanded
from linformer_from_scratch.common.memory import is_out_of_memory
from linformer_from_scratch.common.ranks import WAIT, assert_same_across_ranks, process_group, rank
from linformer_from_scratch.data import MaskedBatches, docstrings, public_documents, read_documents
from linformer_from_scratch.data.public import HUB
from linformer_from_scratch.encoder import MaskedLanguageModel
from linformer_from_scratch.training import Config, Trainer, masked_loss, recipes, runs
from linformer_from_scratch.training.corpora import streams, validation_batches
from linformer_from_scratch.training.recipes import Recipe
from linformer_from_scratch.training.settings import LARGEST, check_ranges, setting


@dataclass(frozen=True)
class DataSettings:
    """What a run learns from.

    Raises: ValueError if a number is out of its range, or there is no text.
    """

    text: str = setting("docstrings", f"docstrings, a file, a folder, {', '.join(HUB)}")
    vocabulary: int = setting(1000, "tokens; 259 for bytes")
    batch_size: int = setting(16, "windows of seq-len tokens", least=1, most=LARGEST)

    def __post_init__(self) -> None:
        check_ranges(self)
        if not self.text:
            raise ValueError("text is empty, expected docstrings, a file or a folder")


PARTS = DataSettings, Recipe, Config  # together, the settings that decide a run's curve
NAMES = [field.name for part in PARTS for field in fields(part)]
CORPORA = "docstrings", *HUB  # a file of that name is ./docstrings
CHOICES = {"sharing": recipes.SHARING, "projection": recipes.PROJECTIONS}
TOKENS = "tokens_sha256"  # a hash of the run's tokens, kept with its settings


def parser() -> argparse.ArgumentParser:
    """The command line; its defaults and explanations are those of the settings."""
    command = argparse.ArgumentParser(
        prog="python -m linformer_from_scratch.training",
        description="Train an encoder to fill in masked tokens. The same command again resumes a run.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    command.add_argument("--folder", type=Path, default="runs/linformer", help="metrics and checkpoints")
    for part in PARTS:
        for field in fields(part):
            command.add_argument(
                option(field.name),
                type=field.type,
                default=field.default,
                choices=CHOICES.get(field.name),
                help=field.metadata["help"],
            )
    command.add_argument("--device", help="cpu, cuda or mps; a GPU if there is one")
    command.add_argument("--compile", action="store_true", help="compile the model first")
    command.add_argument("--wait", type=float, default=WAIT, help="seconds to wait for another rank")
    command.add_argument("--quiet", action="store_true", help="no progress bar")
    command.add_argument(
        "--evaluate", action="store_true", help="only the held-out loss of the run in the folder"
    )
    return command


def option(name: str) -> str:
    """A setting's name on the command line."""
    return "--" + name.replace("_", "-")


def requested(arguments: argparse.Namespace) -> dict:
    """The settings on the command line, by name."""
    settings = {name: getattr(arguments, name) for name in NAMES}
    if settings["text"] not in CORPORA and settings["text"]:
        path = expanded(settings["text"])
        if path.exists():
            settings["text"] = str(path.resolve())  # the same file, from whichever folder the run is resumed
    return settings


def parts_of(settings: dict) -> tuple[DataSettings, Recipe, Config]:
    """The three parts of the settings.

    Raises: ValueError, in one sentence, if one is out of its range.
    """
    data, recipe, config = ({field.name: settings[field.name] for field in fields(part)} for part in PARTS)
    return DataSettings(**data), Recipe(**recipe), Config(**config)


def check_same(folder: Path, kept: dict, settings: dict) -> None:
    """See that the run in the folder has these settings."""
    for name, value in settings.items():
        if kept[name] != value:
            raise ValueError(
                f"the run in {folder} has {option(name)} {kept[name]}, not {value}; give another --folder"
            )


def documents_of(text: str) -> dict[str, str]:
    """Documents by the name of a corpus, or by a path."""
    if text == "docstrings":
        return docstrings()
    try:
        return public_documents(text) if text in HUB else read_documents(text)
    except ConnectionError as error:  # of the network, not of another rank
        raise OSError(str(error)) from None


def prepare(arguments: argparse.Namespace) -> tuple[Trainer, Callable[[], None]]:
    """The run in its folder, new or resumed, and what to do when it begins to train."""
    folder = expanded(arguments.folder)
    kept = runs.read_settings(folder, NAMES)
    wanted = kept if arguments.evaluate else requested(arguments)
    if wanted is None:
        raise ValueError(f"there is no run in {folder}; train one first")
    data, recipe, config = parts_of(wanted)
    settings = asdict(data) | asdict(recipe) | asdict(config)
    if kept:
        check_same(folder, kept, settings)
    documents = documents_of(data.text)
    vocabulary = runs.vocabulary_of(folder, documents, data.vocabulary, resumes=bool(kept))
    train, held_out = streams(documents, vocabulary)
    settings[TOKENS] = runs.fingerprint((train, held_out))
    assert_same_across_ranks(**(settings | {"text": None}))  # wherever it is: its tokens count
    if kept and kept.get(TOKENS, settings[TOKENS]) != settings[TOKENS]:
        raise ValueError(
            f"the text or the {runs.VOCABULARY} of the run in {folder} has changed since it began; "
            "restore it, or give another --folder"
        )
    size = recipe.seq_len, data.batch_size, vocabulary.size
    batches = MaskedBatches(train, *size, config.seed)
    validation = validation_batches(held_out, *size)
    torch.manual_seed(config.seed)
    model = MaskedLanguageModel(recipes.encoder(recipe, vocabulary.size))
    trainer = Trainer(
        model,
        masked_loss,
        batches,
        config,
        validation,
        folder,
        device=arguments.device,
        compile=arguments.compile,
        progress=not arguments.quiet,
        lr_scale=recipes.lr_scale(recipe, model),
    )

    def begin() -> None:
        if not kept:
            runs.begin(folder, settings, vocabulary)
        print(f"{recipes.parameters(model):,} parameters, {trainer.device}, step {trainer.step}", flush=True)

    return trainer, begin


def main(words: list[str] | None = None) -> None:
    """Run one command, alone or as one of several ranks."""
    arguments = parser().parse_args(words)
    with process_group(arguments.device, arguments.wait):
        trainer, begin = prepare(arguments)
        if not arguments.evaluate:
            trainer.train(begin=begin)
        loss = trainer.evaluate(trainer.validation)
        if rank() == 0:
            print(f"held-out loss at step {trainer.step}: {loss:.3f} nats per masked token")


def sentence_of(error: Exception) -> str:
    """What a learner is told, in one line."""
    message = " ".join(str(error).split())
    if not is_out_of_memory(error):
        return message
    return (
        f"out of memory ({message or 'Python'}); take a smaller --batch-size (with more --accumulation an "
        "update stays as large), --seq-len, --d-model or --num-layers"
    )


if __name__ == "__main__":
    warnings.formatwarning = lambda message, *_: f"{message}\n"
    try:
        main()
    except ConnectionError:  # printed already, while the other ranks could still hear it
        sys.exit(1)
    except (ValueError, OSError, ImportError, FloatingPointError) as error:
        sys.exit(sentence_of(error))
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        sys.exit(sentence_of(error))
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command continues from the newest checkpoint")
