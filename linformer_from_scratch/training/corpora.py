"""From documents to what a run learns from, and what it is validated on."""

from collections.abc import Mapping

import torch
from torch import Tensor

from linformer_from_scratch.data import ByteVocabulary, MaskedBatches, SubwordVocabulary, pad, split, stream
from linformer_from_scratch.data.vocabulary import Vocabulary

PACKAGES = ("tkinter", "idlelib", "email", "distutils", "asyncio", "xml", "importlib", "lib2to3")
SHORTEST = 32  # tokens of a passage
VALIDATION, VALIDATION_SEED = 32, 1_000_000  # batches, and the seed of their windows and masks


def vocabulary_for(documents: Mapping[str, str], size: int) -> Vocabulary:
    """Subwords of the training documents; bytes for a size of 259."""
    if size == ByteVocabulary.size:
        return ByteVocabulary()
    learned, _ = split(documents)
    return SubwordVocabulary(learned.values(), size)


def streams(documents: dict[str, str], vocabulary: Vocabulary) -> tuple[Tensor, Tensor]:
    """Tokens of the training documents, and of those held out. Shape: (tokens,) each."""
    learned, held_out = split(documents)
    return stream(learned.values(), vocabulary), stream(held_out.values(), vocabulary)


def validation_batches(
    ids: Tensor, seq_len: int, batch_size: int, vocab_size: int
) -> list[tuple[Tensor, Tensor]]:
    """Held-out batches, with the same windows and masks for every model."""
    batches = MaskedBatches(ids, seq_len, batch_size, vocab_size, VALIDATION_SEED)
    return [batches(i) for i in range(VALIDATION)]


def passages(
    documents: dict[str, str], vocabulary: Vocabulary, seq_len: int
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Pieces of the PACKAGES' modules, and which package each is from: for training, and held out.

    Shape: (ids (pieces, seq_len) padded, labels (pieces,)) each
    """
    learned, held_out = split(documents)
    return _pieces(learned, vocabulary, seq_len), _pieces(held_out, vocabulary, seq_len)


def _pieces(documents: dict[str, str], vocabulary: Vocabulary, seq_len: int) -> tuple[Tensor, Tensor]:
    rows, labels = [], []
    for title, text in documents.items():
        package, ids = title.partition(".")[0], vocabulary.encode(text)
        if package in PACKAGES:
            pieces = [ids[i : i + seq_len] for i in range(0, len(ids), seq_len)]
            long_enough = [piece for piece in pieces if len(piece) >= SHORTEST]
            rows += long_enough
            labels += [PACKAGES.index(package)] * len(long_enough)
    return pad(rows, seq_len), torch.tensor(labels, dtype=torch.long, device="cpu")
