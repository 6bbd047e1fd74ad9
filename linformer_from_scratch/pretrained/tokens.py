"""Text as the pretrained model reads it: ids of BERT's uncased WordPiece (Devlin et al. 2019, section 3).

Words become lower-case and lose their accents; each is cut greedily into the longest pieces of the
vocabulary. A piece that continues a word begins with ##; a word that cannot be cut so is [UNK].
"""

from functools import cache

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from torch import Tensor

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.pretrained.weights import MAX_TOKENS, model_file


def tokenize(text: str, max_tokens: int | None = MAX_TOKENS) -> Tensor:
    """Ids of a text's pieces, from [CLS] to [SEP]; "[SEP]" in the text itself is a word like any other.

    Args:
        text: any text.
        max_tokens: tokens beyond this are left out; None keeps all.

    Shape: ids (n,), n <= max_tokens
    Raises: ValueError if text is not a string or max_tokens is below 2; as model_file.
    """
    if not isinstance(text, str):
        raise ValueError(f"expected a text, got {text!r}")
    if max_tokens is not None:
        check_size("max_tokens", max_tokens, least=2)  # [CLS] and [SEP]
    room = None if max_tokens is None else max_tokens - 2
    first, last = map(tokenizer().token_to_id, ("[CLS]", "[SEP]"))
    return torch.tensor([first, *tokenizer().encode(readable(text)).ids[:room], last], device="cpu")


def pieces(text: str, max_tokens: int | None = MAX_TOKENS) -> list[str]:
    """What the ids of `tokenize` stand for, one by one; in the place of [UNK] the word as the text has it."""
    text, room = readable(text), None if max_tokens is None else max_tokens - 2
    whole = tokenizer().encode(text)
    read = list(zip(whole.tokens, whole.offsets, strict=True))[:room]
    return ["[CLS]", *(text[a:b] if piece == "[UNK]" else piece for piece, (a, b) in read), "[SEP]"]


def unknown_among(shown: list[str]) -> list[str]:
    """The words among `pieces` that the vocabulary cannot make, each once."""
    return [word for word in dict.fromkeys(shown) if tokenizer().token_to_id(word) is None]


def readable(text: str) -> str:
    """The text without halves of surrogate pairs, which are no characters."""
    return text.encode(errors="ignore").decode()


@cache
def tokenizer() -> Tokenizer:
    """BERT's steps around the model's vocabulary.

    Raises: as model_file.
    """
    steps = Tokenizer(WordPiece({piece: i for i, piece in enumerate(vocabulary())}, unk_token="[UNK]"))
    steps.normalizer = BertNormalizer(lowercase=True)
    steps.pre_tokenizer = BertPreTokenizer()
    return steps


@cache
def vocabulary() -> list[str]:
    """The vocabulary's pieces in the order of their ids.

    Raises: as model_file.
    """
    return model_file("vocab.txt").read_text(encoding="utf-8").splitlines()
