"""Real text to batches: documents, a vocabulary, a held-out part, masks (chapter 08).

text: the texts of this course, and your own files and folders · public: larger corpora by name ·
vocabulary: text to token ids · batches: token ids to deterministic batches.
"""

from linformer_from_scratch.data.batches import (
    IGNORE,
    LabelledBatches,
    MaskedBatches,
    generator_of,
    held_out,
    mask_tokens,
    pad,
    split,
    stream,
)
from linformer_from_scratch.data.public import public_documents
from linformer_from_scratch.data.text import docstrings, documents, read_documents, shipped_text
from linformer_from_scratch.data.vocabulary import END, MASK, PAD, ByteVocabulary, SubwordVocabulary

__all__ = [
    "END",
    "IGNORE",
    "MASK",
    "PAD",
    "ByteVocabulary",
    "LabelledBatches",
    "MaskedBatches",
    "SubwordVocabulary",
    "docstrings",
    "documents",
    "generator_of",
    "held_out",
    "mask_tokens",
    "pad",
    "public_documents",
    "read_documents",
    "shipped_text",
    "split",
    "stream",
]
