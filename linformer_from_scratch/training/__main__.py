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

from linformer_from_scratch.benchmark.memory import is_out_of_memory
from linformer_from_scratch.common.files import expanded
from linformer_from_scratch.data import MaskedBatches, docstrings, public_documents, read_documents
from linformer_from_scratch.data.public import HUB
from linformer_from_scratch.distributed.ranks import WAIT, assert_same_across_ranks, process_group, rank
from linformer_from_scratch.encoder import MaskedLanguageModel
from linformer_from_scratch.training import Config, Trainer, masked_loss, runs
from linformer_from_scratch.training.corpora import streams, validation_batches
from linformer_from_scratch.training.recipes import (
    PROJECTIONS,
    SHARING,
    Recipe,
    encoder,
    lr_scale,
    parameters,
)
from linformer_from_scratch.training.settings import LARGEST, check_ranges, setting


@dataclass(frozen=True)
class Material:
    """What a run learns from.

    Raises: ValueError if a number is out of its range, or there is no text.
    """

    text: str = setting("docstrings", f"docstrings, a file, a folder, {', '.join(HUB)}")
    vocabulary: int = setting(1000, "tokens; 259 for bytes")
    batch_size: int = setting(16, "windows of seq-len tokens", least=1, most=LARGEST)

    def __post_init__(self):
        check_ranges(self)
        if not self.text:
            raise ValueError("text is empty, expected docstrings, a file or a folder")


PARTS = Material, Recipe, Config
KINDS = {field.name: field.type for part in PARTS for field in fields(part)}
KNOWN = "docstrings", *HUB  # a file of that name is ./docstrings
CHOICES = {"sharing": SHARING, "projection": PROJECTIONS}


def parser() -> argparse.ArgumentParser:
    """The command line; its defaults and its words are those of the settings."""
    found = argparse.ArgumentParser(
        prog="python -m linformer_from_scratch.training",
        description="Train an encoder to fill in masked tokens. The same command again resumes a run.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    found.add_argument("--folder", type=Path, default=Path("runs/linformer"), help="metrics and checkpoints")
    for part in PARTS:
        for field in fields(part):
            found.add_argument(
                option(field.name),
                type=field.type,
                default=field.default,
                choices=CHOICES.get(field.name),
                help=field.metadata["help"],
            )
    found.add_argument("--device", help="cpu, cuda or mps; a GPU if there is one")
    found.add_argument("--compile", action="store_true", help="compile the model first")
    found.add_argument("--wait", type=float, default=WAIT, help="seconds to wait for another rank")
    found.add_argument("--quiet", action="store_true", help="no progress bar")
    found.add_argument(
        "--evaluate", action="store_true", help="only the held-out loss of the run in the folder"
    )
    return found


def option(name: str) -> str:
    """A field's name as an option."""
    return "--" + name.replace("_", "-")


def asked_for(arguments: argparse.Namespace) -> tuple[Material, Recipe, Config]:
    """The settings that decide about a run's curve, which must not change when it goes on."""
    asked = {name: getattr(arguments, name) for name in KINDS}
    if asked["text"] not in KNOWN and asked["text"] and (text := expanded(asked["text"])).exists():
        asked["text"] = str(text.resolve())  # the same file, from wherever the run goes on
    return parts_of(asked)


def parts_of(settings: dict) -> tuple[Material, Recipe, Config]:
    """The parts that the settings, given by name, belong to."""

    def named(part: type) -> dict:
        return {field.name: settings[field.name] for field in fields(part)}

    return Material(**named(Material)), Recipe(**named(Recipe)), Config(**named(Config))


def check_same(folder: Path, kept: dict, asked: dict) -> None:
    """See that a run which lies in the folder has the same settings."""
    for name, value in asked.items():
        if kept[name] != value:
            raise ValueError(
                f"the run in {folder} has {option(name)} {kept[name]}, not {value}; give another --folder"
            )


def check_name(folder: Path) -> None:
    """See that checkpoints in a folder can be read again: safetensors opens paths in UTF-8 only."""
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise ValueError(f"--folder is {str(folder)!r}, expected a name in UTF-8") from None


def documents_of(text: str) -> dict[str, str]:
    """Documents by a name or a path."""
    if text == "docstrings":
        return docstrings()
    try:
        return public_documents(text) if text in HUB else read_documents(text)
    except ConnectionError as error:  # of the network, not of another rank
        raise OSError(str(error)) from None


def run_of(arguments: argparse.Namespace) -> tuple[Trainer, Callable[[], None]]:
    """The run in its folder, at the step where it stands, and what is to be done when it begins."""
    folder, asked = expanded(arguments.folder), None if arguments.evaluate else asked_for(arguments)
    check_name(folder)
    kept = runs.read_settings(folder, KINDS)
    parts = asked or (parts_of(kept) if kept else None)
    if parts is None:
        raise ValueError(f"there is no run in {folder}; train one first")
    material, recipe, config = parts
    settings = {name: value for part in parts for name, value in asdict(part).items()}
    if kept:
        check_same(folder, kept, settings)
    documents = documents_of(material.text)
    vocabulary = runs.vocabulary_of(folder, documents, material.vocabulary, going_on=bool(kept))
    sides = streams(documents, vocabulary)
    found = runs.hashes(documents, sides)
    assert_same_across_ranks(**(settings | found | {"text": None}))  # wherever it lies: its hash counts
    unknown = runs.check_hashes(folder, kept, found) if kept else None
    if unknown and rank() == 0:
        warnings.warn(unknown, stacklevel=1)
    size = recipe.seq_len, material.batch_size, vocabulary.size
    batches, unseen = MaskedBatches(sides[0], *size, config.seed), validation_batches(sides[1], *size)
    torch.manual_seed(config.seed)
    model = MaskedLanguageModel(encoder(recipe, vocabulary.size))
    trainer = Trainer(
        model,
        masked_loss,
        batches,
        config,
        unseen,
        folder,
        device=arguments.device,
        compile=arguments.compile,
        progress=not arguments.quiet,
        lr_scale=lr_scale(recipe, model),
    )

    def begin():
        if not kept:
            runs.begin(folder, settings | found, vocabulary)
        print(f"{parameters(model):,} parameters, {trainer.device}, step {trainer.step}", flush=True)

    return trainer, begin


def main(words: list[str] | None = None) -> None:
    """Run one command, alone or as one of several ranks."""
    arguments = parser().parse_args(words)
    with process_group(arguments.device, arguments.wait):
        run(arguments)


def run(arguments: argparse.Namespace) -> None:
    """Train or evaluate; rank 0 says what it did."""
    trainer, begin = run_of(arguments)
    if not arguments.evaluate:
        trainer.train(begin=begin)
    loss = trainer.evaluate(trainer.validation)
    if rank() == 0:
        print(f"held-out loss at step {trainer.step}: {loss:.3f} nats per masked token")


def sentence_of(error: Exception) -> str:
    """What a learner is told, in one line."""
    if not is_out_of_memory(error):
        return " ".join(str(error).split())
    return (
        f"out of memory ({' '.join(str(error).split()) or 'Python'}); take a smaller --batch-size (with more "
        "--accumulation an update stays as large), --seq-len, --d-model or --num-layers"
    )


if __name__ == "__main__":
    warnings.formatwarning = lambda message, *_: f"{message}\n"
    try:
        main()
    except ConnectionError:  # said already, while the others could still hear it
        sys.exit(1)
    except (ValueError, OSError, ImportError, FloatingPointError) as error:
        sys.exit(sentence_of(error))
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        sys.exit(sentence_of(error))
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on from the newest checkpoint")
