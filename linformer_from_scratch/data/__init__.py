"""Real text to batches: documents, a vocabulary, a held-out part, masks (chapter 08).

text: the texts of this course, and your own files and folders · public: larger corpora by name ·
vocabulary: text to token ids · batches: token ids to deterministic batches.
"""

from linformer_from_scratch.data.batches import IGNORE as IGNORE
from linformer_from_scratch.data.batches import LabelledBatches as LabelledBatches
from linformer_from_scratch.data.batches import MaskedBatches as MaskedBatches
from linformer_from_scratch.data.batches import generator_of as generator_of
from linformer_from_scratch.data.batches import mask_tokens as mask_tokens
from linformer_from_scratch.data.batches import pad as pad
from linformer_from_scratch.data.batches import split as split
from linformer_from_scratch.data.batches import stream as stream
from linformer_from_scratch.data.public import public_documents as public_documents
from linformer_from_scratch.data.text import docstrings as docstrings
from linformer_from_scratch.data.text import documents as documents
from linformer_from_scratch.data.text import read_documents as read_documents
from linformer_from_scratch.data.text import shipped_text as shipped_text
from linformer_from_scratch.data.vocabulary import MASK as MASK
from linformer_from_scratch.data.vocabulary import PAD as PAD
from linformer_from_scratch.data.vocabulary import ByteVocabulary as ByteVocabulary
from linformer_from_scratch.data.vocabulary import SubwordVocabulary as SubwordVocabulary
