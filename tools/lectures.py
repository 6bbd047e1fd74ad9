"""A chapter as a lecture: its notebook, and with each slide what only the teacher sees.

The notes lie beside the notebooks, chapters/notes/NN_stem.md. The heading of a note names its minute and the
id of the cell that its slide begins with: "## minute 5 · 04-012".
"""

import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

HEADING = re.compile(r"^## minute (\d+) · (\S+)\n", re.MULTILINE)
NOTE = "**For the teacher · minute {}**\n\n{}"
MINUTE = re.compile(r"^\*\*For the teacher · minute (\d+)\*\*")


def slide_type(cell: NotebookNode) -> str:
    """The cell's slideshow mark; empty if it continues what is before it."""
    return cell.metadata.get("slideshow", {}).get("slide_type", "")


def notes(chapter: Path) -> dict[str, str]:
    """Cell that begins a slide -> the teacher's note on that slide; none where no file has them."""
    path = chapter.parent / "notes" / f"{chapter.stem}.md"
    _, *parts = HEADING.split(path.read_text(encoding="utf-8")) if path.exists() else [""]
    return {
        cell: NOTE.format(minute, text.strip())
        for minute, cell, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    }


def lecture(chapter: Path) -> NotebookNode:
    """The notebook of a chapter, with the teacher's note at the end of each slide."""
    notebook, told = nbformat.read(chapter, as_version=4), notes(chapter)
    cells, waiting = [], []
    for cell in notebook.cells:
        if slide_type(cell) in ("slide", "subslide"):
            cells += waiting
            note = {"slideshow": {"slide_type": "notes"}}
            waiting = [new_markdown_cell(told[id], metadata=note) for id in [cell.id] if id in told]
        cells.append(cell)
    notebook.cells = cells + waiting
    return notebook


def minutes(notebook: NotebookNode) -> list[int]:
    """The minutes of a lecture's notes, in order."""
    found = [MINUTE.match(cell.source) for cell in notebook.cells if slide_type(cell) == "notes"]
    return [int(mark[1]) for mark in found if mark]
