"""Text to token ids and back: bytes, or subwords learned from a text."""

from collections.abc import Iterable
from pathlib import Path

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.common.files import atomic_write, expanded, shown

PAD, MASK, END = range(3)  # padding; a token to be guessed; the end of a document
SPECIAL = ("<pad>", "<mask>", "<end>")
LARGEST = 1_000_000  # tokens; a larger number is a slip, and would take up memory before any piece is found


class ByteVocabulary:
    """Every byte of UTF-8 is a token: 256 of them after the three special ones, and nothing to learn."""

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

    Raises: ValueError if size is not an integer from 259 to 1,000,000.
    """

    def __init__(self, texts: Iterable[str], size: int):
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        size = check_size("vocabulary size", size, ByteVocabulary.size, LARGEST)
        self._tokenizer = Tokenizer(models.BPE())
        self._tokenizer.encode_special_tokens = True  # "<mask>" in a text is six letters
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self._tokenizer.decoder = decoders.ByteLevel()
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

        Raises: ValueError, with the file's name, if it is not such a file.
        """
        from tokenizers import Tokenizer

        path, vocabulary = expanded(path), cls.__new__(cls)
        try:
            vocabulary._tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"{shown(path)} is not a vocabulary of subwords: {error}") from None
        vocabulary._tokenizer.encode_special_tokens = True  # the file does not keep it
        if [vocabulary._tokenizer.token_to_id(name) for name in SPECIAL] != [PAD, MASK, END]:
            raise ValueError(
                f"{shown(path)} is not a vocabulary of this course: it has no {', '.join(SPECIAL)}"
            )
        return vocabulary


Vocabulary = ByteVocabulary | SubwordVocabulary
