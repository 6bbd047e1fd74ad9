"""Notebooks as pages of the book. No code is run: what the cells printed stands in the notebook.

On a page live pictures need no kernel, answers to predictions and exercises are folded, hints stand below
their exercise, and what only the teacher sees is left out or, in the teacher's edition, set apart.
"""

import base64
import os
import re
from html import escape
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from slides import FOLDED, LIVE, WIDGET, handouts, slide_type

from book.shelf import Shelf
from linformer_from_scratch.exercises import EXERCISES
from linformer_from_scratch.widgets.page import again

CHECK = re.compile(r'^check\("(\d+\.\d+)"', re.MULTILINE)
HEADING = re.compile(r"^## (\d+\.\d+) ", re.MULTILINE)
CLIP = re.compile(r'<video ([^>]*)src="([^"]+)\.mp4"')
OURS = "<details><summary>Our version</summary>"
CLOUD = {  # where a chapter of a public repository can be run
    "Binder": "https://mybinder.org/v2/gh/{repository}/HEAD?labpath=chapters/{stem}.ipynb",
    "Colab": "https://colab.research.google.com/github/{repository}/blob/HEAD/chapters/{stem}.ipynb",
}


def chapter_page(path: Path, solution: Path, shelf: Shelf, teacher: bool = False) -> NotebookNode:
    """A chapter as a page.

    Args:
        path: the chapter's notebook.
        solution: the notebook with its worked exercises.
        shelf: receives what the live pictures need.
        teacher: keep what only the teacher sees.
    """
    notebook = nbformat.read(path, as_version=4)
    first, *rest = [cell for cell in notebook.cells if teacher or slide_type(cell) != "notes"]
    below = help_below(rest, solution)
    begun = next(i for i, cell in enumerate(rest) if cell.source.startswith("## "))
    imports = [cell for cell in rest[:begun] if cell.cell_type == "code"]
    cells = [first, new_markdown_cell(ways(path.stem, teacher))]
    cells += [cell for cell in rest[:begun] if cell.cell_type == "markdown"]
    if imports:  # all in one fold
        imports[0].source = "\n\n".join(cell.source for cell in imports)
        fold(imports[0], "hide-input", "the imports")
        cells.append(imports[0])
    for cell in rest[begun:]:
        cells += [cell, *(new_markdown_cell(below[id]) for id in CHECK.findall(cell.source))]
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = prose(cell.source)
        else:
            show(cell, shelf)
    notebook.cells = cells
    if teacher:
        first.source = first.source.replace("\n", ", with the teacher's notes\n", 1)
        notebook.metadata.nosearch = "true"  # its words stand in the reader's edition too
    return notebook


def solution_page(path: Path) -> NotebookNode:
    """The worked exercises of a chapter, each behind "Show"."""
    notebook = nbformat.read(path, as_version=4)
    cells, end = [], []
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and HEADING.match(cell.source):
            cells += [*end, cell, new_markdown_cell("<details class='solution'><summary>Show</summary>")]
            end = [new_markdown_cell("</details>")]
        else:
            cells.append(cell)
    notebook.cells = cells + end
    return notebook


def help_below(cells: list[NotebookNode], solution: Path) -> dict[str, str]:
    """Exercise -> what stands folded below it: its hints; our version where the chapter does not fold it."""
    _, *parts = CHECK.split("\n".join(cell.source for cell in cells))
    worked = {
        id: CHECK.split(cell.source)[0].strip()
        for cell in nbformat.read(solution, as_version=4).cells
        for id in CHECK.findall(cell.source)
    }
    why = f'<a href="../solutions/{solution.stem}.html">Why it works</a>'
    below = {}
    for id, until_the_next in zip(parts[::2], parts[1::2], strict=True):
        hints = EXERCISES[id].hints
        folds = [_folded(f"Hint {i} of {len(hints)}", hint) for i, hint in enumerate(hints, start=1)]
        if OURS not in until_the_next:
            folds.append(_folded("Our version", f"```python\n{worked[id]}\n```\n\n{why}"))
        below[id] = "\n\n".join(folds)
    return below


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def ways(stem: str, teacher: bool) -> str:
    """From a chapter's page to its notebook, its deck and its other edition."""
    deck = Path(f"../slides/{stem}.html")
    lab = "Open in JupyterLab (while <code>make course</code> runs)"
    links = {
        LIVE.format(stem): (lab, "on this machine, at its usual port"),
        f"../notebooks/{stem}.ipynb": ("Download the notebook", "without outputs"),
        f"../solutions/{stem}.html": ("Solutions", "each behind Show"),
        deck.as_posix(): ("Slides", "of the lecture"),
    }
    if teacher:
        links |= {path.as_posix(): (f"Handout: {who}", "PDF") for who, path in handouts(deck).items()}
        links[f"../chapters/{stem}.html"] = ("Reader's edition", "without the notes")
    if repository := os.environ.get("REPOSITORY"):
        for name, url in CLOUD.items():
            links[url.format(repository=repository, stem=stem)] = (f"Open in {name}", "runs elsewhere")
    items = (
        f'<a href="{href}" title="{escape(why)}"{" download" * href.endswith(".ipynb")}>{name}</a>'
        for href, (name, why) in links.items()
    )
    return f'<p class="ways">{" ".join(items)}</p>'


def prose(source: str) -> str:
    """Markdown as the book shows it: the teacher's notes set apart, clips that load when they are played."""
    source = FOLDED.sub(_set_apart, source)
    source = CLIP.sub(r'<video \1preload="none" poster="\2.png" src="\2.mp4"', source)
    source = source.replace("](glossary.md", "](../chapters/glossary.md")
    return source.replace('"scenes/media/', '"../slides/scenes/media/')


def stripped(path: Path) -> str:
    """The notebook without what it printed, to download."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return nbformat.writes(notebook)


def _set_apart(match: re.Match) -> str:
    summary, text = match.groups()
    if not summary.startswith("For the teacher"):
        return match[0]
    return f":::{{admonition}} {summary}\n:class: teacher\n{text.strip()}\n:::"


def fold(cell: NotebookNode, what: str, name: str) -> None:
    """Fold a cell's input or output, as myst-nb does it, under a line that says what is there."""
    cell.metadata.setdefault("tags", []).append(what)
    cell.metadata.mystnb = {"code_prompt_show": f"Show {name}", "code_prompt_hide": f"Hide {name}"}


def show(cell: NotebookNode, shelf: Shelf) -> None:
    """Have a cell show what a page without a kernel can: live pictures, quizzes, answers folded."""
    if "answer" in cell.metadata.get("tags", []):
        fold(cell, "hide-output", "the answer")
    if CHECK.search(cell.source):
        cell.outputs = []  # they say that nobody has tried it yet
    for output in cell.outputs:
        data = output.get("data", {})
        if widget := again(output):
            still = base64.b64decode(data["image/png"])
            output.data = NotebookNode({"text/html": shelf.put(widget, still)})
        elif WIDGET in data:  # a quiz
            output.data = NotebookNode({"text/html": data["text/html"]})
