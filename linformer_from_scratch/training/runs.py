"""A run's folder: its settings and its vocabulary, so that the same command continues the run."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from torch import Tensor

from linformer_from_scratch.common.files import atomic_write
from linformer_from_scratch.data import ByteVocabulary, SubwordVocabulary
from linformer_from_scratch.data.vocabulary import Vocabulary
from linformer_from_scratch.training.checkpoints import newest
from linformer_from_scratch.training.corpora import vocabulary_for
from linformer_from_scratch.training.metrics import METRICS

SETTINGS, VOCABULARY = "settings.json", "vocabulary.json"


def read_settings(folder: Path, names: Iterable[str]) -> dict | None:
    """The settings of the run in a folder; None if no run has begun there.

    Args: names: those that settings must have.
    Raises: ValueError, in one sentence, if the file with that name does not hold the settings of a run.
    """
    path = folder / SETTINGS
    if not path.exists():
        return None
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        settings = None
    if not isinstance(settings, dict) or not settings.keys() >= set(names):
        raise ValueError(f"{path} does not hold the settings of a run; give another --folder")
    return settings if _has_begun(folder) else None


def _has_begun(folder: Path) -> bool:
    """Whether there was an update: a command that failed before the first binds nobody to its settings."""
    lines = folder / METRICS
    return bool(newest(folder)) or (lines.exists() and lines.stat().st_size > 0)


def vocabulary_of(folder: Path, documents: Mapping[str, str], size: int, resumes: bool) -> Vocabulary:
    """The vocabulary of a run: learned when it begins, read when it resumes.

    Raises: ValueError, in one sentence, if vocabulary.json in the folder is something else.
    """
    path = folder / VOCABULARY
    if size != ByteVocabulary.size and path.exists():
        kept = SubwordVocabulary.load(path)  # so that a file of somebody else is never overwritten
        if resumes:
            return kept
    return vocabulary_for(documents, size)


def fingerprint(streams: Iterable[Tensor]) -> str:
    """A hash of all tokens, training and held out: it changes with the text and with the vocabulary."""
    digest = hashlib.sha256()
    for ids in streams:
        digest.update(f"{len(ids)} ".encode())
        digest.update(ids.numpy().data)
    return digest.hexdigest()


def begin(folder: Path, settings: Mapping, vocabulary: Vocabulary) -> None:
    """Write the settings and the vocabulary of a new run.

    Raises: OSError, in one sentence, on a full disk.
    """
    try:
        if isinstance(vocabulary, SubwordVocabulary):
            vocabulary.save(folder / VOCABULARY)
        atomic_write(folder / SETTINGS, json.dumps(settings, indent=1) + "\n")
    except OSError as error:
        raise OSError(error.errno, f"{folder} cannot be written: {error.strerror}") from None
