"""Decks from the chapters' own cells: python tools/slides.py [--no-solutions] [01 02 …]

The notebooks' slideshow metadata says which cells a deck shows (see CONTRIBUTING.md). build/slides/ receives
a page for each deck with all that it needs beside it, so that it opens from disk without a network. Where a
Chromium is installed, two handouts as PDF: one for students without notes and answers, one for the teacher.
--no-solutions makes decks for students: without the notes, and with their handout alone.
"""

import base64
import re
import shutil
import struct
import sys
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import jinja2
import torch
from chromium import find_chromium
from kept import kept
from lectures import chapters, lecture, minutes, numbered, slide_type, without_answers
from nbconvert import SlidesExporter
from nbconvert.filters import ansi2html
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook
from page_scripts import lend

from linformer_from_scratch.course.widgets.page import embedded, scripts, widget_in

ROOT = Path(__file__).resolve().parents[1]
BETS = ROOT / "tools" / "book" / "static" / "bets.js"  # of the book, too
DECK = Path(__file__).resolve().parent / "deck"
OUT = ROOT / "build" / "slides"
LIVE = "http://127.0.0.1:8888/lab/tree/chapters/{}.ipynb"  # where `make course` serves a chapter
READERS = ("students", "teacher")  # each has a handout of its own
NO_SOLUTIONS = "--no-solutions"
WIDGET = "application/vnd.jupyter.widget-view+json"
FOLDED = re.compile(r"<details><summary>(.*?)</summary>(.*)</details>", re.DOTALL)
QUESTION = re.compile(r"^\*\*(.+?\?)\*\*", re.MULTILINE)  # of a chapter, on its first slide
ENDS = "What we checked", "Quiz"  # behind the argument
WHOLE = "The whole argument, made of the titles of the slides. The strip below each slide leads to its steps."
MINUTES = re.compile(r" · \d+ minutes$")  # that reading a chapter takes; a lecture is shorter
POINT = re.compile(r"^(?=\d\. )", re.MULTILINE)  # of a numbered list
WIDE = 1.91  # of a picture: from here on it stands below the text, not beside it
LOCAL_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)[^)]*\)")  # leads nowhere in a deck
MEDIA = re.compile(r"""(?:!\[[^\]]*\]\(|src=["'])(?!https?:|data:)([^)"']+)""")
NO_CHROMIUM = "no Chromium found, so handouts are left out (set CHROMIUM to its path, or install one)"


def slides(notebook: NotebookNode) -> list[list[NotebookNode]]:
    """The cells of each slide; skipped cells are left out. Empty if the notebook has no slides."""
    grouped = []
    for cell in notebook.cells:
        kind = slide_type(cell)
        if kind in ("slide", "subslide"):
            grouped.append([])
        if kind != "skip" and grouped:
            grouped[-1].append(cell)
    return grouped


def heading(cells: list[NotebookNode]) -> str:
    """What the first cell is headed: the claim of a slide, the title of a notebook."""
    return cells[0].source.splitlines()[0].lstrip("# ")


def argument(notebook: NotebookNode) -> NotebookNode:
    """A slide with the whole argument: the chapter's question, and the claims that lead to its answer."""
    first, *others = slides(notebook)
    steps = []
    for number, slide in enumerate(takewhile(lambda slide: heading(slide) not in ENDS, others), 2):
        steps.append(f'<li><a href="#/{number}">\n\n{heading(slide)}\n\n</a></li>')
    asked = QUESTION.search(first[0].source)
    source = f'## {asked[1] if asked else heading(first)}\n\n<ol class="argument">\n{"".join(steps)}\n</ol>'
    return new_markdown_cell(source, metadata={"slideshow": {"slide_type": "slide"}})


def halves(slide: list[NotebookNode]) -> list[list[NotebookNode]]:
    """A list of points on two slides under the same heading."""
    first, *rest = slide
    lead, *points = POINT.split(first.source)
    middle = (len(points) + 1) // 2
    first.source, second = ("".join([lead, *half]) for half in (points[:middle], points[middle:]))
    return [[first, *rest], [new_markdown_cell(second, metadata={"slideshow": {"slide_type": "slide"}})]]


def arranged(notebook: NotebookNode) -> list[list[NotebookNode]]:
    """The slides as a deck has them: behind the question the whole argument, and the summary on two."""
    shown = slides(notebook)
    if shown and shown[0][0].source.startswith("# "):
        first = shown[0][0]  # the question alone, without the chapter's aims and minutes
        first.source = MINUTES.sub("", "\n\n".join(first.source.split("\n\n")[:2]))
        notes = new_markdown_cell(WHOLE, metadata={"slideshow": {"slide_type": "notes"}})
        shown.insert(1, [argument(notebook), notes])
    return [part for slide in shown for part in (halves(slide) if heading(slide) == "Summary" else [slide])]


def media(notebook: NotebookNode) -> set[str]:
    """Paths of the clips and pictures that the deck's prose shows, relative to the notebook."""
    prose = [cell.source for slide in slides(notebook) for cell in slide if cell.cell_type == "markdown"]
    return {path for source in prose for path in MEDIA.findall(source)}


def as_deck(notebook: NotebookNode, stem: str, model: dict[str, Any] | None = None) -> NotebookNode:
    """The notebook as its deck shows it: slides only, notes unfolded, widgets that live without a kernel."""
    kinds, cells = {}, []  # a set of kinds would have no order
    for first, *rest in arranged(notebook):
        notes = [cell for cell in rest if slide_type(cell) == "notes"]
        # Notes stand before the fragments: inside one, the speaker's view would show them only with it.
        cells += [first, *notes, *(cell for cell in rest if cell not in notes)]
    for cell in cells:
        if cell.cell_type == "markdown":
            source = LOCAL_LINK.sub(r"\1", FOLDED.sub(r"**\1**\n\2", cell.source))
            cell.source = source.replace("<video ", "<video data-autoplay ")
        if cell.cell_type == "code":
            cell.source = cell.source.replace("\n\n\n", "\n\n")  # a slide has no room for two empty lines
            shows = cell.metadata.get("slideshow", {})
            cell.metadata.marks = shows.get("mark", [])
            widgets = [output for output in cell.outputs if WIDGET in output.get("data", {})]
            cell.metadata.live = widgets and not cell.source.startswith("bet(")
            for output in cell.outputs:
                if "text" in output:
                    output.text = rows(output.text, shows.get("rows", []))
                if widget := widget_in(output):
                    output.data["text/html"] = embedded(widget)
                    kinds[type(widget)] = None
    program = scripts(kinds, model) if kinds else ""
    facts = {"title": heading(notebook.cells), "live": LIVE.format(stem), "scripts": program}
    return new_notebook(cells=cells, metadata=facts)


def rows(text: str, wanted: list[str]) -> str:
    """The first printed row and those that begin with what is wanted; without a wish, all."""
    first, *others = text.rstrip().splitlines() or [""]
    kept = [row for row in others if not wanted or row.strip().startswith(tuple(wanted))]
    left = len(others) - len(kept)
    return "\n".join([first, *kept, *([f"… and {left} more in the notebook"] if left else [])])


def printed(text: str, marks: list[str]) -> str:
    """Printed text as HTML; the number that matters, what the regular expressions match, stands out."""
    for mark in marks:
        text = re.sub(mark, "\ue000\\g<0>\ue001", text, flags=re.MULTILINE)  # characters that no text has
    return ansi2html(text).replace("\ue000", "<mark>").replace("\ue001", "</mark>")


def is_wide(png: str) -> bool:
    """Whether a picture, PNG in base64, is much wider than high."""
    width, height = struct.unpack(">II", base64.b64decode(png[:32])[16:24])
    return width > WIDE * height


def build(
    chapter: Path, out: Path, model: dict[str, Any] | None = None, readers: tuple[str, ...] = READERS
) -> Path:
    """Write the deck of a chapter, and what it needs, into a folder; return the deck's page.

    model: as in `page.host`; readers: without a teacher among them, the deck has no notes.

    Exits if the deck shows a clip or a picture that is not there.
    """
    notebook = (lecture if "teacher" in readers else without_answers)(chapter)
    for path in media(notebook):
        if not (chapter.parent / path).exists():
            sys.exit(f"{chapter.name} shows {path}, which does not exist.")
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(chapter.parent / path, out / path)
    shutil.copytree(DECK / "vendor", out / "vendor", dirs_exist_ok=True)
    shutil.copy(DECK / "deck.css", out)
    shutil.copy(BETS, out)
    exporter = SlidesExporter(
        template_name="deck",
        extra_template_basedirs=[str(DECK.parent)],
        exclude_anchor_links=True,
        filters={"printed": printed, "is_wide": is_wide},
    )
    page, _ = exporter.from_notebook_node(as_deck(notebook, chapter.stem, model))
    deck = out / f"{chapter.stem}.html"
    deck.write_text(page, encoding="utf-8")
    for old in handouts(deck).values():
        old.unlink(missing_ok=True)  # it belonged to the deck before this one
    return deck


def handouts(deck: Path) -> dict[str, Path]:
    """Where the handout of a deck lies, for each of its readers."""
    return {reader: deck.with_name(f"{deck.stem}_{reader}.pdf") for reader in READERS}


def write_index(out: Path) -> None:
    """Write index.html: the decks that lie in the folder, with minutes, slides and handouts."""
    decks = []
    for chapter in (chapter for chapter in chapters() if (out / f"{chapter.stem}.html").exists()):
        notebook, deck = lecture(chapter), out / f"{chapter.stem}.html"
        facts = {"title": heading(notebook.cells), "minutes": minutes(notebook)[-1]}
        facts["slides"] = deck.read_text(encoding="utf-8").count("<section>")
        found = {reader: path.name for reader, path in handouts(deck).items() if path.exists()}
        decks.append({"page": deck.name, "handouts": found} | facts)
    template = jinja2.Environment(autoescape=True).from_string((DECK / "decks.html.j2").read_text("utf-8"))
    (out / "index.html").write_text(template.render(decks=decks), encoding="utf-8")


def write_handouts(decks: list[Path], out: Path, chromium: str, readers: tuple[str, ...]) -> None:
    """Lay the handouts of each deck as PDF beside its page; those of a deck that has not changed are kept."""
    from playwright.sync_api import sync_playwright  # decks without handouts do not need it

    look = [*DECK.rglob("*.*"), *out.glob("scenes/media/*.png")]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        printing = browser.new_page()
        for deck in decks:
            make = partial(print_handouts, deck, printing, readers)
            folder = kept(f"handouts-{deck.stem}{NO_SOLUTIONS * (len(readers) < 2)}", [deck, *look], make)
            shutil.copytree(folder, out, dirs_exist_ok=True)
        browser.close()


def print_handouts(deck: Path, page: Any, readers: tuple[str, ...], folder: Path) -> None:
    """Print the handouts of a deck into a folder, with a page of a browser."""
    for reader in readers:
        path = handouts(deck)[reader]
        page.goto(f"{deck.as_uri()}?print-pdf={reader}")
        page.evaluate("MathJax.startup.promise")
        page.wait_for_selector(".pdf-page")
        page.pdf(path=folder / path.name, prefer_css_page_size=True, print_background=True, tagged=True)


def build_all(
    chapters: list[Path], out: Path, model: dict[str, Any], readers: tuple[str, ...] = READERS
) -> None:
    """Write decks, handouts, and the list of the decks that lie in the folder; model: as in `page.host`."""
    torch.set_num_threads(1)  # the widgets' many small decompositions run fastest so
    decks = [build(path, out, model, readers) for path in chapters]
    if chromium := find_chromium():
        write_handouts(decks, out, chromium, readers)
    else:
        print(NO_CHROMIUM)
    write_index(out)


def main() -> None:
    """Build the decks of the chapters named on the command line, or of all."""
    chosen = numbered(chapters(), [one for one in sys.argv[1:] if one != NO_SOLUTIONS])
    readers = READERS[:1] if NO_SOLUTIONS in sys.argv else READERS
    build_all(chosen, OUT, lend(OUT / "model") | {"folder": "model"}, readers)
    print(f"{len(chosen)} deck{'s' * (len(chosen) > 1)}: {(OUT / 'index.html').relative_to(ROOT)}")


if __name__ == "__main__":
    main()
