"""Attention maps of the pretrained encoder: computed for any text, stored for a few sentences."""

import json
from typing import NamedTuple

from safetensors.torch import load_file
from torch import Tensor

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.common.files import DATA
from linformer_from_scratch.pretrained.encoding import encode
from linformer_from_scratch.pretrained.tokens import pieces, tokenize
from linformer_from_scratch.pretrained.weights import MAX_TOKENS, PretrainedMissing

MAPS_FILE = DATA / "minilm_maps.safetensors"  # of SENTENCES; their tokens are beside it, in a .json
STORY = (  # 128 tokens, the first text of every picture that shows one
    "The bank raised its rates because it expected inflation to rise. Anna heard of it on the ferry. She did "
    "not trust the bank. She took her savings home in a red bag and hid it in the oven, where no thief would "
    "look. Her brother came home hungry. He turned the oven on and fed the parrot, which says every night: "
    "one egg, one egg, one egg. Tonight it said: red bag, red bag, red bag. The parrot is older than the "
    "bank, and it is never wrong. He ran. The bag was lost, but not her savings, since Anna keeps them in "
    "coins."
)
SENTENCES = (  # their maps are stored, and so available without the package; the last is not of the story
    "The bank raised its rates because it expected inflation to rise.",
    "She took her savings home in a red bag and hid it in the oven, where no thief would look.",
    "He turned the oven on and fed the parrot, which says every night: one egg, one egg, one egg.",
    "Tonight it said: red bag, red bag, red bag.",
    "The bag was lost, but not her savings, since Anna keeps them in coins.",
    "She gave him the book, and he gave her the pen.",
)


class AttentionMaps(NamedTuple):
    """How much every token of a text attends to every other.

    tokens: n strings, from [CLS] to [SEP]; a piece that continues a word begins with ##;
        a word that the vocabulary cannot make is as the text has it.
    weights: (layers, heads, n, n), float32, each row sums to one.
    """

    tokens: list[str]
    weights: Tensor


def attention_maps(text: str, max_tokens: int = MAX_TOKENS) -> AttentionMaps:
    """Attention maps of any text, by layer and head; longer texts are cut at max_tokens.

    Without the package, the maps of SENTENCES come from a small file.

    Raises: ValueError if text is empty or max_tokens outside 3 … 512; PretrainedMissing without the package.
    """
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"expected a text of at least one word, got {text!r}")
    check_size("max_tokens", max_tokens, 3, MAX_TOKENS)
    try:
        weights = encode(tokenize(text, max_tokens)).weights
        return AttentionMaps(pieces(text, max_tokens), weights)
    except PretrainedMissing:
        if text in SENTENCES and len(stored_maps()[text].tokens) <= max_tokens:
            return stored_maps()[text]
        raise


def stored_maps() -> dict[str, AttentionMaps]:
    """The stored maps (float16) of SENTENCES, each row scaled to sum to one again."""
    tokens = json.loads(MAPS_FILE.with_suffix(".json").read_text(encoding="utf-8"))["tokens"]
    weights = {sentence: rounded.float() for sentence, rounded in load_file(MAPS_FILE).items()}
    return {s: AttentionMaps(tokens[s], weights[s] / weights[s].sum(-1, keepdim=True)) for s in SENTENCES}
