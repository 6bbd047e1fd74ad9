"""What the widgets on a real sentence share: choosing it, its maps, its query. Drawn with sentence.js."""

from functools import cache
from typing import ClassVar

import traitlets
from torch import Tensor

from linformer_from_scratch import pretrained
from linformer_from_scratch.course.widgets.live import packed
from linformer_from_scratch.course.widgets.reading import TextWidget, limits, read_text
from linformer_from_scratch.pretrained import NUM_HEADS, NUM_LAYERS, SENTENCES, AttentionMaps, attention_maps

MOST_TOKENS = 40  # more would be too small to see
OPENING_WORDS = ("it", "them", "egg", "he")  # of the presets: words that attend to something worth seeing
RESTS = ("[CLS]", "[SEP]")  # marks that stand for no word
LIMITS = limits(MOST_TOKENS, sends="maps", trait="sentence", query=None)  # each has its own query
SMALLEST = 2**-24  # of float16: no weight of a softmax is zero, so none becomes zero on its way


class SentenceWidget(TextWidget):
    """Attention maps of a sentence: a preset or the learner's own, a query token, a layer and a head.

    Args:
        sentence: a preset, which needs no pretrained model, or any other, of which MOST_TOKENS are shown.
        start: as for `LiveWidget`. query=None, or one beyond the sentence, is a word worth seeing.
    """

    controls: ClassVar[tuple[str, ...]] = ("sentence", "query", "layer", "head")
    helpers = ("text", "sentence")
    reads = LIMITS

    sentence = traitlets.Unicode(SENTENCES[0]).tag(sync=True, choices={one: one for one in SENTENCES})
    query = traitlets.Int(None, min=0, max=MOST_TOKENS - 1, allow_none=True).tag(sync=True)
    layer = traitlets.Int(4, min=1, max=NUM_LAYERS).tag(sync=True)  # in layer 4, head 2 …
    head = traitlets.Int(2, min=1, max=NUM_HEADS).tag(sync=True)  # … pronouns attend to their noun

    def __init__(self, sentence: str = SENTENCES[0], **start):
        tokens = {preset: maps.tokens for preset, maps in presets().items()}
        data = {preset: packed(maps.weights, "float16") for preset, maps in presets().items()}
        facts = {"tokens": tokens, "openings": OPENING_WORDS, "rests": RESTS}
        super().__init__(facts, data, sentence=sentence, **start)

    def read(self, text: str) -> AttentionMaps:
        """See `TextWidget.read`."""
        return rounded(read_text(text, LIMITS, attention_maps))

    @property
    def place(self) -> int:
        """Which of the tokens is the query."""
        if self.query is None or self.query >= len(self.tokens):
            return opening_query(self.tokens)
        return self.query

    @property
    def maps(self) -> Tensor:
        """Maps of all heads, rounded as the browser receives them, (layers, heads, n, n)."""
        weights = (self.own or presets()[self.shown]).weights.double()
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


@cache
def presets() -> dict[str, AttentionMaps]:
    """The stored maps of SENTENCES."""
    return {sentence: rounded(maps) for sentence, maps in pretrained.stored_maps().items()}


def rounded(maps: AttentionMaps) -> AttentionMaps:
    """The same maps in float16."""
    return AttentionMaps(maps.tokens, maps.weights.clamp_min(SMALLEST).half())


def opening_query(tokens: list[str]) -> int:
    """Where to look first in a sentence: at a word worth seeing, or at the middle."""
    return next((tokens.index(word) for word in OPENING_WORDS if word in tokens), len(tokens) // 2)
