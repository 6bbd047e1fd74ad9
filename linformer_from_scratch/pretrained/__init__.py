"""A real pretrained encoder, all-MiniLM-L6-v2: what its heads read, and how it does with Linformer inside.

weights.py finds the model, tokens.py is its tokenizer, network.py runs it around any attention.
encoding.py and maps.py show what its heads do; sentence_encoder.py puts Linformer into them (chapter 12):
windows.py is an E for every length, low_rank_updates.py what was fitted, lengthwise.py the encoder to use,
texts.py its `encode`. capstone.py fits E and F at one length, adapting.py at every length, contrastive.py to
pages and their queries; bootstrap.py says whether one search is better than another.
"""

from linformer_from_scratch.pretrained.encoding import encode as encode
from linformer_from_scratch.pretrained.maps import SENTENCES as SENTENCES
from linformer_from_scratch.pretrained.maps import STORY as STORY
from linformer_from_scratch.pretrained.maps import AttentionMaps as AttentionMaps
from linformer_from_scratch.pretrained.maps import attention_maps as attention_maps
from linformer_from_scratch.pretrained.maps import stored_maps as stored_maps
from linformer_from_scratch.pretrained.stored import STORED_DIMS as STORED_DIMS
from linformer_from_scratch.pretrained.stored import STORED_HEADS as STORED_HEADS
from linformer_from_scratch.pretrained.stored import StoredHead as StoredHead
from linformer_from_scratch.pretrained.stored import stored_heads as stored_heads
from linformer_from_scratch.pretrained.stored import stored_tokens as stored_tokens
from linformer_from_scratch.pretrained.tokens import tokenize as tokenize
from linformer_from_scratch.pretrained.weights import INSTALL as INSTALL
from linformer_from_scratch.pretrained.weights import MAX_TOKENS as MAX_TOKENS
from linformer_from_scratch.pretrained.weights import NUM_HEADS as NUM_HEADS
from linformer_from_scratch.pretrained.weights import NUM_LAYERS as NUM_LAYERS
from linformer_from_scratch.pretrained.weights import PretrainedMissing as PretrainedMissing
from linformer_from_scratch.pretrained.weights import model_weights as model_weights
from linformer_from_scratch.pretrained.weights import random_weights as random_weights
