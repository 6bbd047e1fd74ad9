"""What published models keep of a text, from their cards in models.yml (chapter 13)."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from linformer_from_scratch.course.content import read_yaml


@dataclass(frozen=True)
class Layers:
    """Layers of a model that are alike.

    count: of them. attends_to: what a query does. window: tokens that it attends to besides.
    ratio: tokens of an entry that is kept; 0 where nothing grows with the text.
    makers: layers that keep entries, which the others share; all by default.
    size, bits: numbers of an entry, and bits of each.
    index: numbers of a key that is only for choosing; index_ratio: tokens of one, as of an entry by default.
    block: tokens that are chosen together.
    state: numbers that are kept whatever the length.
    """

    count: int
    attends_to: str
    ratio: int = 0
    window: int = 0
    makers: int | None = None
    size: int = 512
    bits: float = 16
    index: int = 0
    index_bits: float = 16
    index_ratio: int = 0
    block: int = 0
    state: int = 0

    @property
    def entries(self) -> float:
        """Entries that a token adds, over all layers."""
        makers = self.count if self.makers is None else self.makers
        return makers / self.ratio if self.ratio else 0.0

    def bytes_per_token(self, bits: float | None = None) -> float:
        """Bytes that a token adds, as published or at so many bits for each number."""
        keys = self.ratio / (self.index_ratio or self.ratio or 1)  # of the index, for an entry
        entry = self.size * (bits or self.bits) + keys * self.index * (bits or self.index_bits)
        return self.entries * entry / 8


@dataclass(frozen=True)
class Card:
    """A model. published: bytes of a token, or how much smaller than another's; or why there is no figure."""

    name: str
    date: str
    source: str
    layers: list[Layers]
    published: dict[str, Any] = field(default_factory=dict)
    unpublished: str = ""

    def bytes_per_token(self, bits: float | None = None) -> float:
        """Bytes that a token adds to the cache: windows and states, which do not grow, are not counted."""
        return sum(some.bytes_per_token(bits) for some in self.layers)


@cache
def cards() -> dict[str, Card]:
    """All cards, by name."""
    found = read_yaml(Path(__file__).with_suffix(".yml"))
    return {one["name"]: Card(**one | {"layers": [Layers(**it) for it in one["layers"]]}) for one in found}
