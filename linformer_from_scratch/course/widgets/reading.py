"""What widgets share that show the model's heads on a text, and take the reader's own. Drawn with text.js.

In a page without a kernel host.js takes the reader's text, within the limits that `facts["reads"]` says.
"""

from typing import Any, ClassVar, NamedTuple

import torch
import traitlets
from torch import Tensor

from linformer_from_scratch.course.widgets.live import CannotDraw, LiveWidget, packed
from linformer_from_scratch.pretrained import PretrainedMissing, encode, tokenize
from linformer_from_scratch.pretrained.tokens import vocabulary

LEAST, MOST = 8, 128  # tokens of the reader's text: fewer have no map worth seeing, more are not read
EMPTY = "The text is empty; type a few words, or choose another one."
SHORT = f"The text has {{n}} tokens; at least {LEAST} are needed, so make it longer."


class OwnHeads(NamedTuple):
    """What the heads make of the reader's text: its n tokens, and queries, keys and values.

    heads: (3, layers, heads, n, 32), float16.
    """

    tokens: list[str]
    heads: Tensor


class TextWidget(LiveWidget):
    """A widget on heads of the pretrained model.

    text: one of the menu's, or any other, of which at most MOST tokens are read.
    """

    helpers: ClassVar[tuple[str, ...]] = ("text",)
    text: traitlets.Unicode

    def __init__(self, facts: dict[str, Any], data: dict[str, Any], **start):
        super().__init__(**start)
        self._sent = facts | {"reads": limits()}, data
        self._own: OwnHeads | None = None
        self._shown = next(iter(self.choices["text"]))
        self._take()
        self.observe(self._take, "text")

    @property
    def shown(self) -> str:
        """The text that is shown; one that cannot be read leaves the last in its place."""
        return self._shown

    @property
    def own(self) -> OwnHeads | None:
        """The heads on the reader's text; None while a text of the menu is shown."""
        return self._own

    @property
    def refused(self) -> str:
        """Why the text cannot be read, or empty."""
        return self.facts["refused"].get(self.text, "")

    def _take(self, _change=None) -> None:
        """Read the reader's text and send what the heads make of it, or why it cannot be read."""
        (facts, data), refused = self._sent, {}
        try:
            self._own = None if self.text in self.choices["text"] else read_heads(self.text)
            self._shown = self.text
        except CannotDraw as reason:
            refused = {self.text: str(reason)}
        if self._own is not None:
            facts = facts | {"tokens": facts["tokens"] | {self.shown: self._own.tokens}}
            data = data | {self.shown: packed(self._own.heads, "float16")}
        self.data, self.facts = data, facts | {"refused": refused}


def limits() -> dict[str, Any]:
    """What a page needs to know to read a text as read_heads does; `long` would refuse what is longer."""
    return {
        "trait": "text",
        "sends": "heads",
        "least": LEAST,
        "most": MOST,
        "empty": EMPTY,
        "short": SHORT,
        "long": "",
    }


def read_heads(text: str) -> OwnHeads:
    """Tokens, queries, keys and values of a text's first tokens.

    Raises: CannotDraw if there are too few, or if the pretrained model is missing or damaged.
    """
    if not text.strip():
        raise CannotDraw(EMPTY)
    try:
        ids = tokenize(text, MOST)
        encoding = encode(ids)
        tokens = [vocabulary()[i] for i in ids.tolist()]
    except PretrainedMissing as missing:
        raise CannotDraw(f"Only the texts of the menu can be shown: {missing}") from missing
    except ValueError as damaged:
        raise CannotDraw(f"The pretrained model cannot be read: {damaged}") from damaged
    if len(tokens) < LEAST:
        raise CannotDraw(SHORT.format(n=len(tokens)))
    return OwnHeads(tokens, torch.stack([encoding.q, encoding.k, encoding.v]).half())
