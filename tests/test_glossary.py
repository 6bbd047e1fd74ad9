"""glossary.py: every term is defined once, in one sentence, before a chapter uses it."""

import re

import nbformat
import pytest
from lectures import chapters

from linformer_from_scratch.course.glossary import PAGE, Entry, definition, entries, page

ENTRIES = entries()
BESIDE = re.compile(  # formulas, links, code, titles in italics, tables of chapters
    r"\$\$[^$]*\$\$|\$[^$]*\$|\[[^]]*\]\([^)]*\)|`[^`]*`|(?<!\*)\*[^*\n]+\*(?!\*)|^\| \d\d \|.*$",
    re.MULTILINE,
)
NO_USE = ("## Notation", "### Further reading")


def prose(path):
    """(place of the cell, text) in which a term counts as used; the first cell is the title."""
    cells = list(enumerate(nbformat.read(path, as_version=4).cells))[1:]
    told = [(i, c.source) for i, c in cells if c.cell_type == "markdown"]
    return [(i, BESIDE.sub(" ", text)) for i, text in told if not text.startswith(NO_USE)]


PROSE = {path.stem: prose(path) for path in chapters()}


def used_before(entry, chapters):
    """Where a term is used before the cell that defines it; the heading right above that cell may name it."""
    term = re.escape(entry.term)
    plural = rf"{re.escape(entry.term[:-1])}ies" if entry.term.endswith("y") else rf"{term}e?s"
    word = re.compile(rf"\b(?:{term}|{plural})\b", re.IGNORECASE)
    every = [(stem, i, text) for stem, texts in sorted(chapters.items()) for i, text in texts]
    before = [one for one in every if one[:2] < (entry.chapter, entry.cell)]
    if before and before[-1][0] == entry.chapter and before[-1][2].startswith("## "):
        before.pop()
    return [f"{stem}, cell {i}: {text[:60]!r}" for stem, i, text in before if word.search(text)]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.chapter[:2]}-{entry.term}")
def test_a_term_is_defined_once_and_before_it_is_used(entry):
    assert used_before(entry, PROSE) == []
    assert [other.term.lower() for other in ENTRIES].count(entry.term.lower()) == 1


def test_a_term_used_too_early_is_found():
    entry = Entry("slot", "A **slot** is one of k.", "06_linformer", 4)
    early = {"05_random": [(9, "Two slots.")], "06_linformer": [(3, "## A slot?"), (4, "A **slot**")]}
    assert used_before(entry, early) == ["05_random, cell 9: 'Two slots.'"]


def test_the_glossary_page_is_that_of_the_chapters():
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(ENTRIES), "run: python -m linformer_from_scratch.course.glossary"


def test_a_definition_is_the_one_sentence_with_the_term_in_bold():
    text = "## Head\n\nFirst. A **stable rank** counts; it\nis soft. Last.\n\n- The **slot**, too."
    assert definition("stable rank", text) == "A **stable rank** counts; it is soft."
    assert definition("slot", text) == "The **slot**, too."
    with pytest.raises(ValueError, match=r"got 0 sentences with \*\*rank\*\*, expected 1"):
        definition("rank", text)
    with pytest.raises(ValueError, match="got 2 sentences"):
        definition("slot", text + " A **slot** again.")
