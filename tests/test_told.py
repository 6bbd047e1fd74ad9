"""Every chapter is one story, defines its terms before it uses them, and says truly how long it takes."""

import re
from pathlib import Path

import nbformat
import pytest
from slides import slide_type

from linformer_from_scratch.course.glossary import PAGE, Entry, definition, entries, page
from linformer_from_scratch.course.listing import LONGEST, listing
from linformer_from_scratch.exercises import EXERCISES

CHAPTERS = sorted((Path(__file__).parents[1] / "chapters").glob("[0-9][0-9]_*.ipynb"))
BY_CHAPTER = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
MOVES = ["need", "guess", "test", "mechanism", "open question"]
MOVE = re.compile(rf"^## .+\n\n\*The ({'|'.join(MOVES)})\b[^*]*\*$", re.MULTILINE)
OUTSIDE = (  # sections that tell no part of the story
    *("Quiz", "Summary", "What we checked", "Appendix"),
    *("How to read a chapter", "Is this machine ready?", "Notation", "The course, chapter"),
)
WORDS_A_MINUTE, SECONDS_A_CELL, MINUTES_A_PICTURE, MINUTES_OF_A_QUIZ = 200, 20, 2, 3


def read(path):
    return nbformat.read(path, as_version=4)


def told(path):
    """(place, text) of what learners read: no teacher's notes."""
    cells = enumerate(read(path).cells)
    return [
        (i, cell.source) for i, cell in cells if cell.cell_type == "markdown" and slide_type(cell) != "notes"
    ]


@BY_CHAPTER
def test_a_chapter_is_one_story_in_five_moves(path):
    """Need, guess, test, mechanism, open question: each section says in a line which it is."""
    heads = [text for _, text in told(path) if text.startswith("## ")]
    sections = [text for text in heads if not text.removeprefix("## ").startswith(OUTSIDE)]
    without = [text.splitlines()[0] for text in sections if not MOVE.match(text)]
    assert not without, "sections that do not say where in the story they stand"
    labels = [MOVE.match(text)[1] for text in sections]
    assert sorted({*labels}, key=labels.index) == MOVES


@BY_CHAPTER
def test_a_chapter_ends_with_what_its_reader_can_do_and_a_link_onward(path):
    texts = [text for _, text in told(path)]
    (able,) = [text for text in texts if text.startswith("### What you can now do")]
    assert len(re.findall(r"^- ", able, re.MULTILINE)) == 3
    assert texts.index(able) > [text.startswith("## Summary") for text in texts].index(True)
    after = CHAPTERS[CHAPTERS.index(path) + 1 :]
    if after:
        assert re.search(rf"\[{after[0].stem[:2]} · [^]]+\]\({after[0].name}\)", texts[-1])


@pytest.mark.parametrize("path", CHAPTERS[1:], ids=lambda path: path.stem)
def test_what_a_chapter_built_is_seen_whole_on_one_screen(path):
    (cell,) = [cell for cell in read(path).cells if "whole" in cell.metadata.get("tags", [])]
    shown = "\n".join(out.get("data", {}).get("text/plain", "") for out in cell.outputs)
    code = shown if "listing(" in cell.source else cell.source
    assert 5 < len(code.splitlines()) <= LONGEST


def minutes(path):
    """How long a chapter takes: reading, running and looking, and the exercises' own minutes."""
    cells = read(path).cells
    words = sum(len(text.split()) for _, text in told(path))
    code = [cell for cell in cells if cell.cell_type == "code"]
    pictures = sum("widget-view" in str([*out.get("data", {})]) for cell in code for out in cell.outputs)
    pictures += sum(text.count("<video") for _, text in told(path)) - 1  # the quiz is a widget as well
    exercises = sum(e.minutes for e in EXERCISES.values() if e.id.split(".")[0] == str(int(path.stem[:2])))
    spent = words / WORDS_A_MINUTE + len(code) * SECONDS_A_CELL / 60 + pictures * MINUTES_A_PICTURE
    return spent + exercises + MINUTES_OF_A_QUIZ


@BY_CHAPTER
def test_the_minutes_of_a_chapter_are_those_of_its_parts(path):
    said = re.search(r"\?\*\* · (\d+) minutes$", told(path)[0][1], re.MULTILINE)[1]
    assert int(said) == pytest.approx(minutes(path), abs=3), "to the next five"
    assert int(said) % 5 == 0


ENTRIES = entries()
NO_PROSE = [  # formulas, links, code, titles in italics, tables of chapters
    *(r"\$\$[^$]*\$\$", r"\$[^$]*\$", r"\[[^]]*\]\([^)]*\)", r"`[^`]*`", r"(?<!\*)\*[^*\n]+\*(?!\*)"),
    r"^\| \d\d \|.*$",
]
BESIDE = re.compile("|".join(NO_PROSE), re.MULTILINE)


def reading(path):
    """(place, text) in which a term counts as used: no title, no links, code or titles of others."""
    plain = [(i, BESIDE.sub(" ", text)) for i, text in told(path)[1:] if "### Further reading" not in text]
    return [(i, text) for i, text in plain if not text.startswith(("## Notation", "### What you can now do"))]


READING = {path.stem: reading(path) for path in CHAPTERS}


def used_before(entry, readings):
    """Where a term is used before the cell that defines it; the heading right above that cell may name it."""
    plural = (
        rf"{re.escape(entry.term[:-1])}ies" if entry.term.endswith("y") else rf"{re.escape(entry.term)}e?s"
    )
    word = re.compile(rf"\b(?:{re.escape(entry.term)}|{plural})\b", re.IGNORECASE)
    before = [(stem, i, text) for stem, texts in sorted(readings.items()) for i, text in texts]
    before = [place for place in before if place[:2] < (entry.chapter, entry.cell)]
    if before and before[-1][0] == entry.chapter and before[-1][2].startswith("## "):
        before.pop()
    return [
        f"{stem}, cell {i}: {word.search(text)[0]} in {text[:60]!r}"
        for stem, i, text in before
        if word.search(text)
    ]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.chapter[:2]}-{entry.term}")
def test_a_term_is_defined_before_it_is_used_and_once(entry):
    assert used_before(entry, READING) == []
    assert [other.term.lower() for other in ENTRIES].count(entry.term.lower()) == 1
    assert len(entry.sentence.split()) <= 45


def test_a_term_used_too_early_is_found():
    entry = Entry("slot", "A **slot** is one of k.", "06_linformer", 4)
    texts = {
        "05_random": [(9, "Two slots.")],
        "06_linformer": [(3, "The slot."), (4, "A **slot**"), (5, "slot")],
    }
    assert [said.split(":")[0] for said in used_before(entry, texts)] == [
        "05_random, cell 9",
        "06_linformer, cell 3",
    ]
    assert used_before(entry, {"00_start": [(1, "Slotted, one by one.")]}) == []
    assert used_before(entry, {"06_linformer": [(3, "## What is a slot?"), (4, "A **slot**")]}) == []


def test_each_chapter_defines_terms_of_its_own():
    for path in CHAPTERS:
        assert sum(entry.chapter == path.stem for entry in ENTRIES) >= 4, path.stem


def test_the_glossary_is_the_chapters_own():
    assert PAGE.read_text(encoding="utf-8") == page(ENTRIES), (
        "python -m linformer_from_scratch.course.glossary"
    )


def test_a_definition_is_the_one_sentence_with_the_term_in_bold():
    text = "## Head\n\nFirst. A **stable rank** counts; it\nis soft. Last.\n\n- The **slot**, too."
    assert definition("stable rank", text) == "A **stable rank** counts; it is soft."
    assert definition("slot", text) == "The **slot**, too."
    with pytest.raises(ValueError, match=r"got 0 sentences with \*\*rank\*\*, expected 1"):
        definition("rank", text)
    with pytest.raises(ValueError, match="got 2 sentences"):
        definition("slot", text + " A **slot** again.")


def test_a_listing_is_the_source_and_fits_a_screen():
    assert repr(listing(used_before)).startswith("def used_before(entry, readings):\n    ")
    assert listing(used_before)._repr_markdown_().startswith("```python\ndef used_before")
    with pytest.raises(ValueError, match="expected at most 40"):
        listing(used_before, minutes, reading, told, test_a_chapter_is_one_story_in_five_moves, definition)
