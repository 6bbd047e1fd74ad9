"""Notebooks as pages of the book. No code is run: what the cells printed stands in the notebook.

A page begins with its question and a live picture; its imports stand at its end. Live pictures need no
kernel. Folded are answers to predictions and exercises, and code that the text does not speak of: that which
the decks leave out, too. Hints stand below their exercise, sentences in brackets beside the text; the
teacher's edition has the notes, set apart.
"""

import base64
import os
import re
from html import escape
from pathlib import Path

import nbformat
from lectures import lecture, slide_type, without_answers
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output
from slides import LIVE, WIDGET, handouts

from book.figures import Figures
from book.shelf import Shelf
from linformer_from_scratch.course.exercises import EXERCISES
from linformer_from_scratch.course.widgets.page import widget_in

CHECK = re.compile(r'^check\("(\d+\.\d+)"', re.MULTILINE)
HEADING = re.compile(r"^## (\d+\.\d+) ", re.MULTILINE)
IN_BRACKETS = re.compile(r"(?:(?<=[.?!])\n\n|(?<![\w\]]))\(([A-Z][^()\n]*(?:\([^()]*\)[^()\n]*)*[.?!])\)")
AS_IT_IS = re.compile(r"(```.*?```|^[|<].*?$)", re.DOTALL | re.MULTILINE)  # code, tables, HTML
SHARED = re.compile(r"(\]\(|href=')(glossary\.md|evidence/)")  # links of a chapter in all its editions
MEDIA = re.compile(r'"((?:\.\./)*)scenes/media/')
UNSPOKEN = "no-code"  # the tag of a cell whose code no deck shows
CLOUD = {  # where a chapter of a public repository can be run
    "Binder": "https://mybinder.org/v2/gh/{repository}/HEAD?labpath=chapters/{stem}.ipynb",
}


def chapter_page(path: Path, solution: Path | None, shelf: Shelf, teacher: bool = False) -> NotebookNode:
    """A chapter as a page.

    Args:
        path: the chapter's notebook.
        solution: the notebook with its worked exercises; None leaves out all that answers them.
        shelf: receives what the live pictures need.
        teacher: keep what only the teacher sees.
    """
    notebook = lecture(path) if teacher else nbformat.read(path, as_version=4)
    if not solution:
        notebook = without_answers(path)
    first, *rest = notebook.cells
    below = help_below(rest, solution)
    imports = [cell for cell in rest if cell.metadata.get("jupyter", {}).get("source_hidden")]
    told = [cell for cell in rest if cell not in imports]
    picture = next(i for i, cell in enumerate(told) if cell.cell_type == "code")
    title, question, aims = first.source.split("\n\n", 2)
    title += ", with the teacher's notes" * teacher
    links = ways(path.stem, teacher, bool(solution))
    cells = [new_markdown_cell(one) for one in (title, question)]
    cells += [*told[: picture + 1], new_markdown_cell(links), new_markdown_cell(aims)]
    for cell in told[picture + 1 :]:
        cells += [cell, *(new_markdown_cell(below[id]) for id in CHECK.findall(cell.source))]
    if imports:  # all in one fold
        imports[0].source = "\n\n".join(cell.source for cell in imports)
        fold(imports[0], "hide-input", "the imports")
        cells.append(imports[0])
    for cell in cells:
        if slide_type(cell) == "notes":
            head, told = cell.source.split("\n\n", 1)
            cell.source = f":::{{admonition}} {head.strip('*')}\n:class: teacher\n{told}\n:::"
    notebook.cells = cells
    return shown(notebook, shelf, str(int(path.stem[:2])))


def shown(notebook: NotebookNode, shelf: Shelf, name: str) -> NotebookNode:
    """A notebook whose cells are as the book shows them; its figures' numbers begin with the name."""
    figures = Figures(name)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = prose(cell.source, figures)
        else:
            show(cell, shelf, figures)
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


def help_below(cells: list[NotebookNode], solution: Path | None) -> dict[str, str]:
    """Exercise -> what stands folded below it: its hints; our version where the chapter does not fold it."""
    _, *parts = CHECK.split("\n".join(cell.source for cell in cells))
    worked = {
        id: CHECK.split(cell.source)[0].strip()
        for cell in (nbformat.read(solution, as_version=4).cells if solution else [])
        for id in CHECK.findall(cell.source)
    }
    below = {}
    for id, until_the_next in zip(parts[::2], parts[1::2], strict=True):
        hints = EXERCISES[id].hints
        folds = [_folded(f"Hint {i} of {len(hints)}", hint) for i, hint in enumerate(hints, start=1)]
        if solution and "<summary>Our version</summary>" not in until_the_next:
            why = f'<a href="../solutions/{solution.stem}.html">Why it works</a>'
            folds.append(_folded("Our version", f"```python\n{worked[id]}\n```\n\n{why}"))
        below[id] = "\n\n".join(folds)
    return below


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def ways(stem: str, teacher: bool, solutions: bool) -> str:
    """From a chapter's page to its notebook, its deck and its other edition."""
    deck = Path(f"../slides/{stem}.html")
    links = {
        f"../notebooks/{stem}.ipynb": ("Download the notebook", "without outputs"),
        f"../solutions/{stem}.html": ("Solutions", "each behind Show"),
        deck.as_posix(): ("Slides", "of the lecture"),
    }
    if not solutions:
        del links[f"../solutions/{stem}.html"]
    if teacher:
        links |= {path.as_posix(): (f"Handout: {who}", "PDF") for who, path in handouts(deck).items()}
        links[f"../chapters/{stem}.html"] = ("Reader's edition", "without the notes")
    if repository := os.environ.get("REPOSITORY"):
        for name, url in CLOUD.items():
            links[url.format(repository=repository, stem=stem)] = (f"Open in {name}", "runs elsewhere")
    links[LIVE.format(stem)] = ("Open in JupyterLab, while make course runs", "on this machine")
    items = (
        f'<a href="{href}" title="{escape(why)}"{" download" * href.endswith(".ipynb")}>{name}</a>'
        for href, (name, why) in links.items()
    )
    return f'<p class="ways">{" ".join(items)}</p>'


def prose(source: str, figures: Figures) -> str:
    """Markdown as the book shows it: brackets beside the text, clips as figures."""
    parts = AS_IT_IS.split(source)
    parts[::2] = [IN_BRACKETS.sub(r' <span class="aside">\1</span>', part) for part in parts[::2]]
    source = SHARED.sub(r"\1../chapters/\2", figures.clips("".join(parts)))
    return MEDIA.sub(r'"\1../slides/scenes/media/', source)


def fold(cell: NotebookNode, what: str, name: str) -> None:
    """Fold a cell, its input or its output, as myst-nb does it, under a line that says what is there."""
    cell.metadata.setdefault("tags", []).append(what)
    cell.metadata.mystnb = {"code_prompt_show": f"Show {name}", "code_prompt_hide": f"Hide {name}"}


def show(cell: NotebookNode, shelf: Shelf, figures: Figures) -> None:
    """Have a cell show what a page without a kernel can: figures, live ones too, quizzes; fold the rest."""
    tags = cell.metadata.get("tags", [])
    if "answer" in tags:
        fold(cell, "hide-cell" if UNSPOKEN in tags else "hide-output", "the answer")
    elif cell.source.startswith("bet("):
        tags.append("remove-input")
    elif UNSPOKEN in tags:
        fold(cell, "hide-input", "the code")
    if CHECK.search(cell.source):
        cell.outputs = []  # they say that nobody has tried it yet
    if cell.source.startswith("bets("):  # bets.js says it here
        cell.outputs = [new_output("display_data", {"text/html": "<p class='bets' role='status'></p>"})]
    for output in cell.outputs:
        data = output.get("data", {})
        if widget := widget_in(output):
            still = base64.b64decode(data["image/png"])
            html = figures.live(shelf.put(widget, still), escape(widget.title))
            output.data = NotebookNode({"text/html": html})
        elif WIDGET in data:  # a quiz or a bet
            output.data = NotebookNode({"text/html": data["text/html"]})
        elif "text/html" in data and not data["text/html"].startswith("<p"):  # the ledger, or other advice
            table = SHARED.sub(r"\1../chapters/\2", data["text/html"])
            data["text/html"] = f'<div class="long">{table}</div>'
        elif "image/png" in data:
            figures.picture(cell, output.metadata["image/png"]["alt"])
