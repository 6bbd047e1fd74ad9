"""The glossary: every term with the sentence that defines it, taken from the chapters.

A markdown cell that defines terms names them in its metadata, `"defines": ["stable rank"]`, and has each in
bold in the one sentence that defines it. `python -m linformer_from_scratch.course.glossary` writes the page.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from linformer_from_scratch.common.files import atomic_write
from linformer_from_scratch.course.ledger import CHAPTERS

PAGE = CHAPTERS / "glossary.md"
NOTATION = """
| here | means | in code |
| --- | --- | --- |
| $n$ | tokens | `n`, `seq_len` for the length a layer is built for |
| $d_{model}$ | features of a token | `d_model` |
| $h$ | heads | `num_heads` |
| $d$ | features of one head | `d_head` |
| $k$ | Linformer's projected length | `proj_dim`; in code `k` is always the keys |
| $Q, K, V$ | queries, keys, values, n×d | `q, k, v` |
| $E, F$ | Linformer's projections, shape (k, n) | `E`, `F` |
| $P$ | softmax(QKᵀ/√d), the attention map, n×n | `P` |
| $\\bar P$ | softmax(Q(EK)ᵀ/√d), n×k | `P_bar` |
| a ± b | a mean and its 95 % interval (Student's t): with three seeds, b is 2.5 standard deviations | |
"""
SENTENCE_ENDS = re.compile(r"(?:(?<=[.?!])|(?<=[.?!]\)))\s+(?=[A-Z\"“$*(\[])")


class Entry(NamedTuple):
    """A term, the sentence that defines it, and where that stands.

    chapter: the notebook's stem.
    cell: the place of the cell in its notebook, from 0.
    """

    term: str
    sentence: str
    chapter: str
    cell: int


def entries(paths: Iterable[Path] | None = None) -> list[Entry]:
    """All terms in the order in which the chapters define them.

    Raises: ValueError if a term does not stand in bold in exactly one sentence of its cell.
    """
    terms = []
    for path in sorted(CHAPTERS.glob("[0-9][0-9]_*.ipynb")) if paths is None else paths:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for place, cell in enumerate(cells):
            for term in cell["metadata"].get("defines", []):
                terms.append(Entry(term, definition(term, "".join(cell["source"])), path.stem, place))
    return terms


def definition(term: str, text: str) -> str:
    """The one sentence of a text that has the term in bold.

    Raises: ValueError if there is none, or more than one.
    """
    blocks = re.split(r"\n\s*\n|\n(?=[-#|]|\d+\. )", text)
    sentences = [sentence for block in blocks for sentence in SENTENCE_ENDS.split(" ".join(block.split()))]
    bold = re.compile(rf"\*\*{re.escape(term)}\*\*", re.IGNORECASE)
    defining = [sentence.removeprefix("- ") for sentence in sentences if bold.search(sentence)]
    if len(defining) != 1:
        raise ValueError(f"got {len(defining)} sentences with **{term}**, expected 1 that defines it")
    return defining[0]


def page(terms: Iterable[Entry]) -> str:
    """The glossary as markdown: terms in alphabetical order, each with a link to its chapter."""
    rows = [
        f"| {entry.term} | {entry.sentence} | [{entry.chapter[:2]}]({entry.chapter}.ipynb) |"
        for entry in sorted(terms, key=lambda entry: entry.term.lower())
    ]
    about = "The letters, the same everywhere; then every term as the chapter that introduces it defines it."
    head = ["# Glossary", "", about, NOTATION, "| term | what it means | chapter |", "| --- | --- | --- |"]
    return "\n".join([*head, *rows, ""])


if __name__ == "__main__":
    atomic_write(PAGE, page(entries()))
