"""A chapter as a lecture: its notebook, and with each slide what only the teacher sees.

The notes lie beside the notebooks, chapters/notes/NN_stem.md. The heading of a note names its minute and the
id of the cell that its slide begins with: "## minute 5 · 04-012".
"""

import ast
import re
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from linformer_from_scratch.course.exercises.engine.standalone import bound, used

CHAPTERS = Path(__file__).resolve().parents[1] / "chapters"
HEADING = re.compile(r"^## minute (\d+) · (\S+)\n", re.MULTILINE)
NOTE = "**For the teacher · minute {}**\n\n{}"
OURS = re.compile(r"<details><summary>Our version</summary>.*?</details>\s*", re.DOTALL)
SOLUTIONS = re.compile(r"`solutions/[^`]*`")
HELD = "*The whole on one screen, which answers exercises of this chapter, is in your teacher's copy.*"
MINUTE = re.compile(r"^\*\*For the teacher · minute (\d+)\*\*")


def chapters() -> list[Path]:
    """The chapters' notebooks, in order."""
    return sorted(CHAPTERS.glob("[0-9][0-9]_*.ipynb"))


def numbered(paths: list[Path], numbers: list[str]) -> list[Path]:
    """The files of these numbers, such as 04, or all where there is none; exits if there is no such file."""
    if unknown := set(numbers) - {path.name[:2] for path in paths}:
        sys.exit(f"no name begins with {min(unknown)}; names look like {paths[0].name}")
    return [path for path in paths if not numbers or path.name[:2] in numbers]


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


def without_answers(chapter: Path) -> NotebookNode:
    """A chapter as a class gets it: no version of ours, and nothing whole that later cells do not need."""
    notebook = nbformat.read(chapter, as_version=4)
    for cell in notebook.cells:
        cell.source = SOLUTIONS.sub("your teacher's copy", OURS.sub("", cell.source))
    for i, cell in enumerate(notebook.cells):
        if "whole" in cell.metadata.get("tags", []):
            later = [ast.parse(one.source) for one in notebook.cells[i + 1 :] if one.cell_type == "code"]
            names = set().union(*map(bound, ast.parse(cell.source).body))
            if not names & used([statement for module in later for statement in module.body]):
                notebook.cells[i] = new_markdown_cell(HELD, id=cell.id, metadata=cell.metadata)
    notebook.cells = [cell for cell in notebook.cells if cell.source]
    return notebook


def minutes(notebook: NotebookNode) -> list[int]:
    """The minutes of a lecture's notes, in order."""
    return [int(minute) for cell in notebook.cells for minute in MINUTE.findall(cell.source)]
