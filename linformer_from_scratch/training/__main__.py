"""Train, resume and evaluate an encoder: python -m linformer_from_scratch.training --help."""

import argparse
import json
import sys
import warnings
from dataclasses import fields
from pathlib import Path

import torch

from linformer_from_scratch.data import (
    ByteVocabulary,
    MaskedBatches,
    SubwordVocabulary,
    docstrings,
    public_documents,
    read_documents,
)
from linformer_from_scratch.data.public import HUB
from linformer_from_scratch.encoder import MaskedLanguageModel
from linformer_from_scratch.files import write_whole
from linformer_from_scratch.training import Config, Trainer, masked_loss
from linformer_from_scratch.training.recipes import (
    KINDS,
    SHARING,
    Recipe,
    encoder,
    judged,
    parameters,
    streams,
    vocabulary_for,
)

SETTINGS, VOCABULARY = "settings.json", "vocabulary.json"  # in the run's folder
CHOICES = {"attention": ("linformer", "full", "none"), "sharing": SHARING, "projection": tuple(KINDS)}


def parser() -> argparse.ArgumentParser:
    """The command line; its defaults are those of Recipe and Config."""
    found = argparse.ArgumentParser(
        prog="python -m linformer_from_scratch.training",
        description="Train an encoder to fill in masked tokens. The same command again resumes a run.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    found.add_argument("--folder", type=Path, default=Path("runs/linformer"), help="metrics and checkpoints")
    found.add_argument("--text", default="docstrings", help=f"docstrings, a file, a folder, {', '.join(HUB)}")
    found.add_argument("--vocabulary", type=int, default=1000, help="tokens; 259 for bytes")
    found.add_argument("--batch-size", type=int, default=16, help="windows of seq-len tokens")
    for part in (Recipe, Config):
        for field in fields(part):
            choices = CHOICES.get(field.name)
            found.add_argument(option(field.name), type=field.type, default=field.default, choices=choices)
    found.add_argument("--device", help="cpu or cuda; a GPU if there is one")
    found.add_argument("--compile", action="store_true", help="compile the model first")
    found.add_argument("--quiet", action="store_true", help="no progress bar")
    found.add_argument(
        "--evaluate", action="store_true", help="only the held-out loss of the run in the folder"
    )
    return found


def option(name: str) -> str:
    """A field's name as an option."""
    return "--" + name.replace("_", "-")


def settings_of(arguments: argparse.Namespace) -> dict:
    """What decides about a run's curve, and so must be the same when it goes on."""
    names = ["text", "vocabulary", "batch_size"] + [f.name for part in (Recipe, Config) for f in fields(part)]
    return {name: getattr(arguments, name) for name in names}


def keep_settings(folder: Path, settings: dict) -> None:
    """Write the settings of a new run; of an old one, see that they are the same."""
    path = folder / SETTINGS
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(settings, indent=1) + "\n")
    found = read_settings(folder)
    for name, value in settings.items():
        if found.get(name) != value:
            raise ValueError(
                f"the run in {folder} has {option(name)} {found.get(name)}, not {value}; "
                "give another --folder"
            )


def read_settings(folder: Path) -> dict:
    """The settings of the run in a folder."""
    path = folder / SETTINGS
    if not path.exists():
        raise ValueError(f"there is no run in {folder}; train one first")
    return json.loads(path.read_text(encoding="utf-8"))


def documents_of(text: str) -> dict[str, str]:
    """Documents by a name or a path."""
    if text == "docstrings":
        return docstrings()
    return public_documents(text) if text in HUB else read_documents(text)


def vocabulary_of(folder: Path, documents: dict[str, str], size: int) -> SubwordVocabulary | ByteVocabulary:
    """The vocabulary of the run, learned once and kept in its folder."""
    path = folder / VOCABULARY
    if path.exists():
        return SubwordVocabulary.load(path)
    vocabulary = vocabulary_for(documents, size)
    if isinstance(vocabulary, SubwordVocabulary):
        vocabulary.save(path)
    return vocabulary


def trainer_of(arguments: argparse.Namespace, settings: dict) -> Trainer:
    """The run in its folder, at the step where it stands."""
    documents = documents_of(settings["text"])
    vocabulary = vocabulary_of(arguments.folder, documents, settings["vocabulary"])
    train, held = streams(documents, vocabulary)
    recipe = Recipe(**{field.name: settings[field.name] for field in fields(Recipe)})
    config = Config(**{field.name: settings[field.name] for field in fields(Config)})
    size = recipe.seq_len, settings["batch_size"], vocabulary.size
    torch.manual_seed(config.seed)
    return Trainer(
        MaskedLanguageModel(encoder(recipe, vocabulary.size)),
        masked_loss,
        MaskedBatches(train, *size, config.seed),
        config,
        judged(held, *size),
        arguments.folder,
        device=arguments.device,
        compile=arguments.compile,
        progress=not arguments.quiet,
    )


def main(words: list[str] | None = None) -> None:
    """Run one command."""
    arguments = parser().parse_args(words)
    if arguments.evaluate:
        trainer = trainer_of(arguments, read_settings(arguments.folder))
    else:
        keep_settings(arguments.folder, settings_of(arguments))
        trainer = trainer_of(arguments, settings_of(arguments))
        print(f"{parameters(trainer.model):,} parameters, {trainer.device}, step {trainer.step}", flush=True)
        trainer.train()
    loss = trainer.evaluate(trainer.validation)
    print(f"held-out loss at step {trainer.step}: {loss:.3f} nats per masked token")


if __name__ == "__main__":
    warnings.formatwarning = lambda message, *_: f"{message}\n"
    try:
        main()
    except (ValueError, OSError, ImportError, FloatingPointError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on from the newest checkpoint")
