"""A run's folder: what the run was asked for, and its vocabulary, so that the same command goes on."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from linformer_from_scratch.common.files import atomic_write
from linformer_from_scratch.data import ByteVocabulary, SubwordVocabulary
from linformer_from_scratch.training.checkpoints import newest
from linformer_from_scratch.training.corpora import vocabulary_for
from linformer_from_scratch.training.metrics import METRICS

SETTINGS, VOCABULARY = "settings.json", "vocabulary.json"
TEXT, TOKENS = "text_sha256", "tokens_sha256"  # settings that nobody asks for; older runs have none


def begun(folder: Path) -> Path | None:
    """What a run has left in a folder: a checkpoint, or the line of an update."""
    lines = folder / METRICS
    found = newest(folder) + ([lines] if lines.exists() and lines.stat().st_size else [])
    return found[0] if found else None


def read_settings(folder: Path, kinds: Mapping[str, Any]) -> dict | None:
    """The settings of the run in a folder; None if no run has begun there.

    Args: kinds: name -> type of what settings hold.
    Raises: ValueError, in one sentence, if the folder is a file, or its settings are not those of a run.
    """
    path, left = folder / SETTINGS, begun(folder)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, expected a folder")
    if not path.exists():
        if left:
            raise ValueError(f"{left} is there, but no {SETTINGS}; give another --folder")
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        found = None
    if type(found) is not dict or not all(_is_a(kind, found.get(name)) for name, kind in kinds.items()):
        raise ValueError(f"{path} does not hold the settings of a run; give another --folder")
    return found if left else None


def _is_a(kind: type, value: object) -> bool:
    return type(value) is kind or (kind is float and type(value) is int)


def vocabulary_of(
    folder: Path, documents: Mapping[str, str], size: int, going_on: bool
) -> SubwordVocabulary | ByteVocabulary:
    """The vocabulary of a run: learned once, and read when the run goes on.

    Raises: ValueError, in one sentence, if there is another one in the folder.
    """
    path = folder / VOCABULARY
    if size == ByteVocabulary.size or not path.exists():
        return vocabulary_for(documents, size)
    found = SubwordVocabulary.load(path)  # nobody else's file is written over
    if not going_on:
        return vocabulary_for(documents, size)
    if found.size > size:
        raise ValueError(
            f"{path} has {found.size} tokens, expected at most {size}; restore it, or give another --folder"
        )
    return found


def hashes(documents: Mapping[str, str], streams: tuple[Tensor, ...]) -> dict[str, str]:
    """Hashes of the text, and of its training and held-out tokens."""
    text, tokens = hashlib.sha256(), hashlib.sha256()
    for document in documents.items():
        text.update(json.dumps(document).encode())
    for ids in streams:
        tokens.update(f"{len(ids)} ".encode())
        tokens.update(ids.numpy().data)
    return {TEXT: text.hexdigest(), TOKENS: tokens.hexdigest()}


def check_hashes(folder: Path, kept: Mapping, found: Mapping[str, str]) -> str | None:
    """See that text and vocabulary are still those of the run; a sentence if it has no hash of them.

    Raises: ValueError, in one sentence, with both hashes.
    """
    if TEXT not in kept or TOKENS not in kept:
        return f"{folder / SETTINGS} has no hash of the text: nobody knows whether it is still the same"
    what = {TEXT: "text", TOKENS: f"{VOCABULARY}, or what is held out,"}
    for name in (TEXT, TOKENS):
        if kept[name] != found[name]:
            raise ValueError(
                f"the {what[name]} of the run in {folder} has changed: its SHA-256 is {found[name][:16]}…, "
                f"expected {str(kept[name])[:16]}…; restore it, or give another --folder"
            )
    return None


def begin(folder: Path, settings: Mapping, vocabulary: SubwordVocabulary | ByteVocabulary) -> None:
    """Write what the run was asked for, and its vocabulary.

    Raises: ValueError if another run has begun there meanwhile; OSError, in one sentence, on a full disk.
    """
    if begun(folder):
        raise ValueError(f"another run has begun in {folder}; give another --folder")
    try:
        if isinstance(vocabulary, SubwordVocabulary):
            vocabulary.save(folder / VOCABULARY)
        atomic_write(folder / SETTINGS, json.dumps(settings, indent=1) + "\n")
    except OSError as error:
        raise OSError(error.errno, f"{folder} cannot be written: {error.strerror}") from None
