"""What widgets share that show the pretrained model on a text, and take the reader's own. Drawn with text.js.

In a page without a kernel host.js takes the reader's text, within the limits and with the sentences of
`facts["reads"]`.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor

from linformer_from_scratch.course.widgets.live import CannotDraw, LiveWidget, packed
from linformer_from_scratch.pretrained import PretrainedMissing, encode, tokenize
from linformer_from_scratch.pretrained.tokens import pieces, unknown_among

LEAST, MOST = 8, 128  # tokens of the reader's text: fewer have no map worth seeing, more are not shown


def limits(most: int, least: int = 3, *, sends: str, trait: str = "text", **also: Any) -> dict[str, Any]:
    """How a widget takes the reader's text, as a page needs to know it.

    Args:
        most, least: tokens that its picture shows, and needs.
        sends: what the browser is sent, as encoder.js names it.
        trait: which is the text; also: other traits and their values while the reader's is shown.
    """
    size = {"least": least, "most": most, "named": 5}  # tokens, and unknown words
    return size | {
        "sends": sends,
        "trait": trait,
        "also": also,
        "empty": "Your text is empty; type a few words, or choose another one.",
        "short": f"Your text has {{n}} tokens; at least {least} are needed, so make it longer.",
        "cut": f"Your text has {{n}} tokens; this picture shows the first {most}. ",
        "unknown": "Unknown to the model: {words}. ",
    }


LIMITS = limits(MOST, LEAST, sends="heads")
Read = TypeVar("Read", bound=tuple[list[str], Tensor])


class OwnHeads(NamedTuple):
    """What the heads make of the reader's text: its n tokens, and queries, keys and values.

    heads: (3, layers, heads, n, 32), float16.
    """

    tokens: list[str]
    heads: Tensor


class TextWidget(LiveWidget):
    """A widget on a text: one of its menu's, or any other within its limits.

    Attributes:
        reads: the trait that is the text, and its limits.
    """

    helpers: ClassVar[tuple[str, ...]] = ("text",)
    reads: ClassVar[dict[str, Any]] = LIMITS

    def __init__(self, facts: dict[str, Any], data: dict[str, Any], **start):
        super().__init__(**start)
        trait = self.reads["trait"]
        self._sent = facts | {"reads": self.reads}, data
        self._own: dict[str, Any] = {}  # the reader's text -> what was read of it
        self._shown = next(iter(self.choices[trait]))
        self._take()
        self.observe(self._take, trait)

    def read(self, text: str) -> Any:
        """Tokens of the reader's text, and an array to send. Raises: CannotDraw as `read_text`."""
        return read_heads(text)

    @property
    def shown(self) -> str:
        """The text that is shown; one that cannot be read leaves the last in its place."""
        return self._shown

    @property
    def tokens(self) -> list[str]:
        """Of the text that is shown."""
        return self.facts["tokens"][self.shown]

    @property
    def own(self) -> Any:
        """What was read of the reader's text; None while a text of the menu is shown."""
        return self._own.get(self.shown)

    @property
    def refused(self) -> str:
        """Why the text cannot be read, or empty."""
        return self.facts["refused"].get(getattr(self, self.reads["trait"]), "")

    @property
    def words(self) -> str:
        """See `LiveWidget.words`; of a text that cannot be read, why; of the reader's own, first `remark`."""
        return self.refused or ((self.own and self.facts["remark"]) or "") + super().words

    def _take(self, _change=None) -> None:
        """Read the reader's text and send what the model makes of it, or why it cannot be read."""
        trait, refused = self.reads["trait"], {}
        text = getattr(self, trait)
        try:
            if text not in self.choices[trait] and text not in self._own:
                self._own = {text: self.read(text)}
            self._shown = text
        except CannotDraw as reason:
            refused = {text: str(reason)}
        (facts, data), more = self._sent, {"refused": refused, "unknown": [], "remark": ""}
        for own, (tokens, array) in self._own.items():
            unknown = unknown_among(tokens)
            more |= {"unknown": unknown, "remark": remark(len(tokenize(own, None)), unknown, self.reads)}
            facts = facts | {"tokens": facts["tokens"] | {own: tokens}}
            data = data | {own: packed(array, "float16")}
        self.data, self.facts = data, facts | more


def remark(n: int, unknown: list[str], reads: dict[str, Any]) -> str:
    """What a reader should know of a text of n tokens: how many are shown, which words the model lacks."""
    words = ", ".join([*(f"“{word}”" for word in unknown[: reads["named"]]), "…"][: len(unknown)])
    cut = reads["cut"].format(n=f"{n:,}") if n > reads["most"] else ""
    return cut + (words and reads["unknown"].format(words=words))


def read_text(text: str, reads: dict[str, Any], model: Callable[[str, int], Read]) -> Read:
    """What a model makes of a reader's text, up to the most tokens.

    Raises: CannotDraw if the text is empty or short, or if the pretrained model is missing or damaged.
    """
    if not text.strip():
        raise CannotDraw(reads["empty"])
    try:
        n = len(tokenize(text, max_tokens=None))
        if n < reads["least"]:
            raise CannotDraw(reads["short"].format(n=n))
        return model(text, reads["most"])
    except PretrainedMissing as missing:
        raise CannotDraw(f"Only the texts of the menu can be shown: {missing}") from missing
    except ValueError as damaged:
        raise CannotDraw(f"The pretrained model cannot be read: {damaged}") from damaged


def read_heads(text: str) -> OwnHeads:
    """Tokens, queries, keys and values of a text's first tokens. Raises: CannotDraw as `read_text`."""
    return read_text(text, LIMITS, _heads)


def _heads(text: str, most: int) -> OwnHeads:
    encoding = encode(tokenize(text, most))
    heads = torch.stack([encoding.q, encoding.k, encoding.v]).half()
    return OwnHeads(pieces(text, most), heads)
