"""A real pretrained encoder, all-MiniLM-L6-v2: what its heads read, and how it does with Linformer inside.

weights.py finds the model, tokens.py is its tokenizer, network.py runs it around any attention.
encoding.py and maps.py show what its heads do; sentence_encoder.py puts Linformer into them (chapter 12):
windows.py is an E for every length, low_rank_updates.py what was fitted, lengthwise.py the encoder to use,
texts.py its `encode`.
"""

from linformer_from_scratch.pretrained.encoding import Encoding, encode
from linformer_from_scratch.pretrained.maps import SENTENCES, AttentionMaps, attention_maps, stored_maps
from linformer_from_scratch.pretrained.stored import (
    STORED_DIMS,
    STORED_HEADS,
    StoredHead,
    stored_heads,
    stored_tokens,
)
from linformer_from_scratch.pretrained.tokens import tokenize
from linformer_from_scratch.pretrained.weights import (
    INSTALL,
    MAX_TOKENS,
    NUM_HEADS,
    NUM_LAYERS,
    PretrainedMissing,
    model_weights,
    random_weights,
)

__all__ = [
    "INSTALL",
    "MAX_TOKENS",
    "NUM_HEADS",
    "NUM_LAYERS",
    "SENTENCES",
    "STORED_DIMS",
    "STORED_HEADS",
    "AttentionMaps",
    "Encoding",
    "PretrainedMissing",
    "StoredHead",
    "attention_maps",
    "encode",
    "model_weights",
    "random_weights",
    "stored_heads",
    "stored_maps",
    "stored_tokens",
    "tokenize",
]
