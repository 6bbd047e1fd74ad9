"""Text to token ids and back: bytes, or subwords learned from a text."""

import json
from collections.abc import Iterable
from pathlib import Path

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.common.files import atomic_write, expanded, shown

PAD, MASK, END = range(3)  # padding; a token to be guessed; the end of a document
SPECIAL = ("<pad>", "<mask>", "<end>")
LARGEST = 1_000_000  # tokens; a number of more digits is a slip, and would be room taken before any is found


class ByteVocabulary:
    """Every byte of UTF-8 is a token: 256 of them after the three special ones, nothing to learn."""

    size = len(SPECIAL) + 256

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        return [byte + len(SPECIAL) for byte in text.encode()]

    def decode(self, ids: Iterable[int]) -> str:
        """The text again; special tokens are left out, broken characters become �."""
        return bytes(i - len(SPECIAL) for i in ids if i >= len(SPECIAL)).decode(errors="replace")


class SubwordVocabulary:
    """Frequent pieces of words, found by byte-pair encoding with the library `tokenizers`.

    Sennrich et al. 2016; on bytes, as GPT-2, so that no text is unknown.

    Args:
        texts: what to learn the pieces from; only the training texts.
        size: how many tokens, the three special ones and 256 bytes included. A short text may give fewer.

    Raises: ValueError if size is no integer from 259 to 1,000,000.
    """

    def __init__(self, texts: Iterable[str], size: int):
        from tokenizers import pre_tokenizers, trainers

        size = check_size("vocabulary size", size, ByteVocabulary.size, LARGEST)
        self._tokenizer = _untrained()
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=list(SPECIAL),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        self._tokenizer.train_from_iterator(texts, trainer)

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return self._tokenizer.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text again; special tokens are left out."""
        return self._tokenizer.decode(list(ids), skip_special_tokens=True)

    def save(self, path: str | Path) -> None:
        """Write the pieces as JSON."""
        atomic_write(expanded(path), self._tokenizer.to_str(pretty=True))

    @classmethod
    def load(cls, path: str | Path) -> "SubwordVocabulary":
        """Read what save wrote.

        Raises: ValueError, with the file's name, if it is not such a file or loses a part of some text.
        """
        from tokenizers import Tokenizer

        path, vocabulary = expanded(path), cls.__new__(cls)
        try:
            vocabulary._tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"{shown(path)} is no vocabulary of subwords: {error}") from None
        try:
            _check(vocabulary._tokenizer)
        except ValueError as error:
            raise ValueError(f"{shown(path)} is no vocabulary of this course: {error}") from None
        vocabulary._tokenizer.encode_special_tokens = True  # the file does not keep it
        return vocabulary


def _untrained():
    """A tokenizer that has its settings and no pieces."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.encode_special_tokens = True  # "<mask>" in a text is six letters
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _check(tokenizer) -> None:
    """Raise ValueError unless every text is encoded whole, in tokens from 0 to size - 1."""
    from tokenizers import pre_tokenizers

    if tuple(map(tokenizer.id_to_token, range(len(SPECIAL)))) != SPECIAL:
        raise ValueError(f"its first tokens are not {SPECIAL}")
    pieces = tokenizer.get_vocab()
    if sorted(pieces.values()) != list(range(len(pieces))):
        raise ValueError(f"its {len(pieces)} tokens are not numbered from 0 to {len(pieces) - 1}")
    bytes_known = len(pieces.keys() & set(pre_tokenizers.ByteLevel.alphabet()))
    if bytes_known < 256:
        raise ValueError(f"it has {bytes_known} of 256 bytes")
    blank = _untrained()
    blank.add_special_tokens(list(SPECIAL))
    for name, expected in _settings(blank).items():
        found = _settings(tokenizer)[name]
        if found != expected:
            raise ValueError(f"its {name} is {found}, expected {expected}")


def _settings(tokenizer) -> dict:
    """The tokenizer's settings, by name, that decide besides its pieces how a text is split and joined."""
    told = json.loads(tokenizer.to_str())
    told |= told.pop("model")
    return {name: value for name, value in told.items() if name not in ("vocab", "merges")}
