"""What widgets share that show the pretrained model on a text, and take the reader's own. Drawn with text.js.

In a page without a kernel host.js takes the reader's text, within the limits that `facts["reads"]` says.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor

from linformer_from_scratch.course.widgets.live import CannotDraw, LiveWidget, packed
from linformer_from_scratch.pretrained import PretrainedMissing, encode, tokenize
from linformer_from_scratch.pretrained.tokens import vocabulary

LEAST, MOST = 8, 128  # tokens of the reader's text: fewer have no map worth seeing, more are not read
LIMITS = {  # what a page needs to know to read a text as `read_text` does
    "trait": "text",
    "sends": "heads",
    "least": LEAST,
    "most": MOST,
    "empty": "The text is empty; type a few words, or choose another one.",
    "short": f"The text has {{n}} tokens; at least {LEAST} are needed, so make it longer.",
    "long": "",  # would refuse what is longer
}
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
    def own(self) -> Any:
        """What was read of the reader's text; None while a text of the menu is shown."""
        return self._own.get(self.shown)

    @property
    def refused(self) -> str:
        """Why the text cannot be read, or empty."""
        return self.facts["refused"].get(getattr(self, self.reads["trait"]), "")

    @property
    def words(self) -> str:
        """See `LiveWidget.words`; of a text that cannot be read, why."""
        return self.refused or super().words

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
        facts, data = self._sent
        tokens = facts["tokens"] | {own: tokens for own, (tokens, _) in self._own.items()}
        self.data = data | {own: packed(array, "float16") for own, (_, array) in self._own.items()}
        self.facts = facts | {"tokens": tokens, "refused": refused}


def read_text(text: str, limits: dict[str, Any], model: Callable[[str], Read], others: str) -> Read:
    """What a model makes of a reader's text; others: what can be shown without it.

    Raises: CannotDraw if the text is empty, short or long, or if the pretrained model is missing or damaged.
    """
    if not text.strip():
        raise CannotDraw(limits["empty"])
    try:
        n = len(tokenize(text, max_tokens=None))
        if (
            refusal := limits["short"]
            if n < limits["least"]
            else limits["long"]
            if n > limits["most"]
            else ""
        ):
            raise CannotDraw(refusal.format(n=n))
        return model(text)
    except PretrainedMissing as missing:
        raise CannotDraw(f"Only the {others} can be shown: {missing}") from missing
    except ValueError as damaged:
        raise CannotDraw(f"The pretrained model cannot be read: {damaged}") from damaged


def read_heads(text: str) -> OwnHeads:
    """Tokens, queries, keys and values of a text's first tokens. Raises: CannotDraw as `read_text`."""
    return read_text(text, LIMITS, _heads, "texts of the menu")


def _heads(text: str) -> OwnHeads:
    ids = tokenize(text, MOST)
    encoding = encode(ids)
    heads = torch.stack([encoding.q, encoding.k, encoding.v]).half()
    return OwnHeads([vocabulary()[i] for i in ids.tolist()], heads)
