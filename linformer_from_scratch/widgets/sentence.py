"""What the widgets on a real sentence share: choosing it, reading its maps, drawing a map with its tokens."""

from collections.abc import Sequence

from ipywidgets import Dropdown, IntSlider, SelectionSlider, Text, Widget
from numpy.typing import ArrayLike

from linformer_from_scratch.plots import EDGE, INK, KEY, QUERY
from linformer_from_scratch.pretrained import (
    NUM_HEADS,
    NUM_LAYERS,
    SENTENCES,
    AttentionMaps,
    PretrainedMissing,
    attention_maps,
    tokenize,
)
from linformer_from_scratch.widgets.canvas import Card, shorten, text_width
from linformer_from_scratch.widgets.explorer import COLUMN, CannotDraw, Explorer

MOST_TOKENS = 40  # more would be too small to read
LAYER, HEAD = 4, 2  # a head in which pronouns read the noun they stand for
OPENING_WORDS = ("it", "he", "is", "two")  # of the presets: words that read something worth seeing
OWN = "your own sentence"
LABEL = 96  # width kept for a token beside a map, CSS pixels


class SentenceExplorer(Explorer):
    """Attention maps of a sentence: a preset or the learner's own, a query token, a layer and a head.

    Args:
        sentence: what it opens with; the first preset if None.
        controls: further controls of the subclass.
    """

    def __init__(self, sentence: str | None = None, controls: Sequence[Widget] = ()):
        wide = {"width": f"{2 * COLUMN + 4}px"}
        options = [*zip(SENTENCES, SENTENCES, strict=True), (OWN, "")]  # (what is shown, value)
        self.preset = Dropdown(options=options, description="Preset", layout=wide)
        self.sentence = Text(SENTENCES[0], description="Sentence", layout=wide, continuous_update=False)
        self.query = SelectionSlider(options=[("", 0)], description="Query token")
        self.layer = IntSlider(LAYER, 1, NUM_LAYERS, description="Layer")
        self.head = IntSlider(HEAD, 1, NUM_HEADS, description="Head")
        self.tokens: list[str] = []
        self._sentence_read = None
        self.preset.observe(self._take_preset, "value")
        super().__init__([self.preset, self.sentence, self.query, self.layer, self.head, *controls])
        if sentence is not None:
            self.sentence.value = sentence

    @property
    def heads(self):
        """Attention maps of all heads of the chosen layer, (heads, n, n)."""
        return self._maps[self.layer.value - 1]

    def read_sentence(self) -> None:
        """Take the maps of the sentence in the field, if it is a new one; `draw` begins with this."""
        sentence = self.sentence.value
        if sentence == self._sentence_read:
            return
        self.preset.value = sentence if sentence in SENTENCES else ""
        tokens, self._maps = read_maps(sentence)
        word = self.tokens[self.query.value] if self.tokens else None
        self.query.options = [(token, i) for i, token in enumerate(tokens)]
        self.query.value = opening_query(tokens, word)
        self.tokens, self._sentence_read = tokens, sentence

    def _take_preset(self, change) -> None:
        if change.new:
            self.sentence.value = change.new


def read_maps(sentence: str) -> AttentionMaps:
    """Tokens and maps of a sentence short enough to be seen.

    Raises: CannotDraw if it is empty or too long, or if the pretrained model is missing or damaged.
    """
    if not sentence.strip():
        raise CannotDraw("The sentence is empty; type at least one word, or choose a preset.")
    try:
        maps = attention_maps(sentence)
    except PretrainedMissing as missing:
        raise CannotDraw(f"Only the presets can be shown: {missing}") from missing
    except ValueError as damaged:
        raise CannotDraw(f"The pretrained model cannot be read: {damaged}") from damaged
    if len(maps.tokens) > MOST_TOKENS:
        n = len(tokenize(sentence, max_tokens=None))
        raise CannotDraw(
            f"The sentence has {n} tokens; up to {MOST_TOKENS} can be shown, so make it shorter."
        )
    return maps


def opening_query(tokens: list[str], word: str | None) -> int:
    """Where to look first in a sentence: at the word looked at before, at one worth seeing, or the middle."""
    return next((tokens.index(w) for w in (word, *OPENING_WORDS) if w in tokens), len(tokens) // 2)


def cell_size(n: int, side: float) -> float:
    """Side of one of the n cells that fill `side`, but no smaller or larger than can be read; CSS pixels."""
    return min(max(side / n, 14), 40)


def token_size(pitch: float) -> float:
    """Size of the letters of tokens that stand so far apart, CSS pixels."""
    return min(16, round(0.75 * pitch, 1))


def draw_map(
    card: Card, x: float, y: float, pitch: float, tokens: list[str], weights: ArrayLike, query: int
) -> None:
    """Draw a map (n, n) at (x, y) in cells of pitch × pitch, with tokens, axes, scale and the query's row."""
    n, size = len(tokens), token_size(pitch)
    side = n * pitch
    card.heatmap((x, y, x + side, y + side), weights)
    card.box((x, y, x + side, y + side), outline=EDGE)
    outline_row(card, x, y, side, query, n, width=2)
    for i, token in enumerate(tokens):
        chosen = i == query
        card.text(
            x - 8,
            y + (i + 0.5) * pitch,
            shorten(token, size, LABEL),
            size,
            QUERY if chosen else INK,
            "rm",
            chosen,
        )
        card.slanted(x + (i + 0.5) * pitch, y - 6, shorten(token, size, LABEL), size)
    card.text(x - 8, y - 14, "queries ↓", 14, QUERY, "rm")
    card.text(x + side, y + side + 18, "keys →", 14, KEY, "rm")
    draw_scale(card, x, y + side + 11)


def outline_row(card: Card, x: float, y: float, side: float, query: int, n: int, width: float) -> None:
    """Outline the query's row of a map (n, n) whose sides are `side` CSS pixels long."""
    top, bottom = y + query * side / n, y + (query + 1) * side / n
    card.box((x - width, top - width / 2, x + side + width, bottom + width / 2), None, QUERY, width)


def draw_scale(card: Card, x: float, y: float) -> None:
    """What the shades of a map mean: white is 0, the darkest blue 1."""
    card.text(x, y + 7, "0", 14)
    left = x + text_width("0", 14) + 5
    card.heatmap((left, y, left + 90, y + 14), [[i / 90 for i in range(91)]])
    card.text(left + 95, y + 7, "1", 14)
