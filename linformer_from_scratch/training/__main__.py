"""Train, resume and evaluate an encoder: python -m linformer_from_scratch.training --help.

torchrun --standalone --nproc-per-node 2 -m linformer_from_scratch.training … gives each of two ranks half of
every batch.
"""

import argparse
import inspect
import json
import re
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
from linformer_from_scratch.ranks import WAIT, joined, rank
from linformer_from_scratch.training import Config, Trainer, masked_loss
from linformer_from_scratch.training.corpora import judged, streams, vocabulary_for
from linformer_from_scratch.training.recipes import (
    PROJECTIONS,
    SHARING,
    Recipe,
    encoder,
    parameters,
    slow_parameters,
)

SETTINGS, VOCABULARY = "settings.json", "vocabulary.json"  # in the run's folder
NAMES = [
    "text",
    "vocabulary",
    "batch_size",
    *(field.name for part in (Recipe, Config) for field in fields(part)),
]
CHOICES = {"sharing": SHARING, "projection": PROJECTIONS}


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
            found.add_argument(
                option(field.name),
                type=field.type,
                default=field.default,
                choices=CHOICES.get(field.name),
                help=explained(part)[field.name],
            )
    found.add_argument("--device", help="cpu or cuda; a GPU if there is one")
    found.add_argument("--compile", action="store_true", help="compile the model first")
    found.add_argument("--wait", type=float, default=WAIT, help="seconds to wait for another rank")
    found.add_argument("--quiet", action="store_true", help="no progress bar")
    found.add_argument(
        "--evaluate", action="store_true", help="only the held-out loss of the run in the folder"
    )
    return found


def explained(part: type) -> dict[str, str]:
    """What a dataclass's docstring says of its fields: name -> the first line about it."""
    lines = re.findall(r"^ +([\w, ]+): (.*)$", inspect.getdoc(part), re.MULTILINE)
    return {name: text for names, text in lines for name in names.split(", ")}


def option(name: str) -> str:
    """A field's name as an option."""
    return "--" + name.replace("_", "-")


def settings_of(arguments: argparse.Namespace) -> dict:
    """What decides about a run's curve, and so must be the same when it goes on."""
    settings = {name: getattr(arguments, name) for name in NAMES}
    if Path(settings["text"]).exists():  # the same file, from wherever the run goes on
        settings["text"] = str(Path(settings["text"]).resolve())
    return settings


def check_settings(folder: Path, settings: dict) -> None:
    """See that a run which lies in the folder has the same settings."""
    found = read_settings(folder) if (folder / SETTINGS).exists() else settings
    for name, value in settings.items():
        if found[name] != value:
            raise ValueError(
                f"the run in {folder} has {option(name)} {found[name]}, not {value}; give another --folder"
            )


def read_settings(folder: Path) -> dict:
    """The settings of the run in a folder."""
    path = folder / SETTINGS
    if not path.exists():
        raise ValueError(f"there is no run in {folder}; train one first")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if type(found) is not dict or not found.keys() >= set(NAMES):
        raise ValueError(f"{path} does not hold the settings of a run; give another --folder")
    return found


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
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(vocabulary, SubwordVocabulary) and rank() == 0:
        vocabulary.save(path)
    return vocabulary


def trainer_of(arguments: argparse.Namespace, settings: dict) -> Trainer:
    """The run in its folder, at the step where it stands."""
    recipe = Recipe(**{field.name: settings[field.name] for field in fields(Recipe)})
    config = Config(**{field.name: settings[field.name] for field in fields(Config)})
    documents = documents_of(settings["text"])
    vocabulary = vocabulary_of(arguments.folder, documents, settings["vocabulary"])
    train, held = streams(documents, vocabulary)
    size = recipe.seq_len, settings["batch_size"], vocabulary.size
    batches, unseen = MaskedBatches(train, *size, config.seed), judged(held, *size)
    torch.manual_seed(config.seed)
    if rank() == 0 and not (arguments.folder / SETTINGS).exists():
        write_whole(arguments.folder / SETTINGS, json.dumps(settings, indent=1) + "\n")
    model = MaskedLanguageModel(encoder(recipe, vocabulary.size))
    return Trainer(
        model,
        masked_loss,
        batches,
        config,
        unseen,
        arguments.folder,
        device=arguments.device,
        compile=arguments.compile,
        progress=not arguments.quiet,
        slow=slow_parameters(recipe, model),
    )


def main(words: list[str] | None = None) -> None:
    """Run one command, alone or as one of several ranks."""
    arguments = parser().parse_args(words)
    with joined(arguments.device, arguments.wait):
        run(arguments)


def run(arguments: argparse.Namespace) -> None:
    """Train or evaluate; rank 0 says what it did."""
    say = print if rank() == 0 else lambda *_, **__: None
    if arguments.evaluate:
        trainer = trainer_of(arguments, read_settings(arguments.folder))
    else:
        settings = settings_of(arguments)
        check_settings(arguments.folder, settings)
        trainer = trainer_of(arguments, settings)
        say(f"{parameters(trainer.model):,} parameters, {trainer.device}, step {trainer.step}", flush=True)
        trainer.train()
    loss = trainer.evaluate(trainer.validation)
    say(f"held-out loss at step {trainer.step}: {loss:.3f} nats per masked token")


if __name__ == "__main__":
    warnings.formatwarning = lambda message, *_: f"{message}\n"
    try:
        main()
    except ConnectionError:  # said already, while the others could still hear it
        sys.exit(1)
    except (ValueError, OSError, ImportError, FloatingPointError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command goes on from the newest checkpoint")
