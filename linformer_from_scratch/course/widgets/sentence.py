"""What the widgets on a real sentence share: choosing it, its maps, its query. Drawn with sentence.js."""

from functools import cache
from typing import Any, ClassVar

import traitlets
from torch import Tensor

from linformer_from_scratch.course.widgets.live import CannotDraw, LiveWidget, packed
from linformer_from_scratch.pretrained import (
    NUM_HEADS,
    NUM_LAYERS,
    SENTENCES,
    AttentionMaps,
    PretrainedMissing,
    attention_maps,
    stored_maps,
    tokenize,
)

MOST_TOKENS = 40  # more would be too small to read
OPENING_WORDS = ("it", "he", "is", "two")  # of the presets: words that attend to something worth seeing
RESTS = ("[CLS]", "[SEP]")  # marks that stand for no word
EMPTY = "The sentence is empty; type at least one word, or choose a preset."
LONG = f"The sentence has {{n}} tokens; up to {MOST_TOKENS} can be shown, so make it shorter."
LIMITS = {  # as reading.limits
    "trait": "sentence",
    "sends": "maps",
    "least": 0,
    "most": MOST_TOKENS,
    "empty": EMPTY,
    "short": "",
    "long": LONG,
}
SMALLEST = 2**-24  # of float16: no weight of a softmax is zero, so none becomes zero on its way


class SentenceWidget(LiveWidget):
    """Attention maps of a sentence: a preset or the learner's own, a query token, a layer and a head.

    Args:
        sentence: a preset, which needs no pretrained model, or any other of at most MOST_TOKENS tokens.
        start: as for `LiveWidget`. query=None, or one beyond the sentence, is a word worth seeing.
    """

    controls: ClassVar[tuple[str, ...]] = ("sentence", "query", "layer", "head")
    helpers = ("text", "sentence")

    sentence = traitlets.Unicode(SENTENCES[0]).tag(sync=True, choices={one: one for one in SENTENCES})
    query = traitlets.Int(None, min=0, max=MOST_TOKENS - 1, allow_none=True).tag(sync=True)
    layer = traitlets.Int(4, min=1, max=NUM_LAYERS).tag(sync=True)  # in layer 4, head 2 …
    head = traitlets.Int(2, min=1, max=NUM_HEADS).tag(sync=True)  # … pronouns attend to their noun

    def __init__(self, sentence: str = SENTENCES[0], **start):
        super().__init__(sentence=sentence, **start)
        self._known = presets()  # and the learner's own
        self._shown = self._known[SENTENCES[0]]
        self._take()
        self.observe(self._take, "sentence")

    @property
    def tokens(self) -> list[str]:
        """From [CLS] to [SEP]; an empty, long or unreadable sentence leaves those of the last one."""
        return self._shown.tokens

    @property
    def place(self) -> int:
        """Which of the tokens is the query."""
        if self.query is None or self.query >= len(self.tokens):
            return opening_query(self.tokens)
        return self.query

    @property
    def maps(self) -> Tensor:
        """Maps of all heads, rounded as the browser receives them, (layers, heads, n, n)."""
        weights = self._shown.weights.double()
        return weights / weights.sum(dim=-1, keepdim=True)

    @property
    def map(self) -> Tensor:
        """The chosen head's, (n, n)."""
        return self.maps[self.layer - 1, self.head - 1]

    @property
    def weights(self) -> Tensor:
        """How much the query token attends to each key, (n,)."""
        return self.map[self.place]

    @property
    def strongest(self) -> int:
        """Which key the query token attends to most; the first of equals."""
        return self.weights.tolist().index(self.weights.max())

    @property
    def refused(self) -> str:
        """Why the sentence cannot be read, or empty."""
        return self.facts["refused"].get(self.sentence, "")

    def _take(self, _change=None) -> None:
        """Read the sentence and send its maps, or why it cannot be read."""
        refused = {}
        try:
            if self.sentence not in self._known:
                self._known = presets() | {self.sentence: rounded(read_maps(self.sentence))}
            self._shown = self._known[self.sentence]
        except CannotDraw as reason:
            refused = {self.sentence: str(reason)}
        self.data = {sentence: packed(maps.weights, "float16") for sentence, maps in self._known.items()}
        self.facts = facts(self._known) | {"refused": refused}


@cache
def presets() -> dict[str, AttentionMaps]:
    """The stored maps of SENTENCES."""
    return {sentence: rounded(maps) for sentence, maps in stored_maps().items()}


def facts(known: dict[str, AttentionMaps]) -> dict[str, Any]:
    """Tokens of each sentence, the words to look at first, which tokens stand for no word, and the limits."""
    tokens = {sentence: maps.tokens for sentence, maps in known.items()}
    return {"tokens": tokens, "openings": OPENING_WORDS, "rests": RESTS, "reads": LIMITS}


def rounded(maps: AttentionMaps) -> AttentionMaps:
    """The same maps in float16."""
    return AttentionMaps(maps.tokens, maps.weights.clamp_min(SMALLEST).half())


def read_maps(sentence: str) -> AttentionMaps:
    """Tokens and maps of a sentence short enough to be seen.

    Raises: CannotDraw if it is empty or too long, or if the pretrained model is missing or damaged.
    """
    if not sentence.strip():
        raise CannotDraw(EMPTY)
    try:
        maps = attention_maps(sentence)
    except PretrainedMissing as missing:
        raise CannotDraw(f"Only the presets can be shown: {missing}") from missing
    except ValueError as damaged:
        raise CannotDraw(f"The pretrained model cannot be read: {damaged}") from damaged
    if len(maps.tokens) > MOST_TOKENS:
        n = len(tokenize(sentence, max_tokens=None))
        raise CannotDraw(LONG.format(n=n))
    return maps


def opening_query(tokens: list[str]) -> int:
    """Where to look first in a sentence: at a word worth seeing, or at the middle."""
    return next((tokens.index(word) for word in OPENING_WORDS if word in tokens), len(tokens) // 2)
