"""The whole book: pages gathered from the repository, made by Sphinx, and what lies beside them."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jinja2
import nbformat
import wheel
from lectures import CHAPTERS, chapters, without_answers
from nbconvert.preprocessors import ClearOutputPreprocessor

from book import api, front, teaching
from book.notebooks import chapter_page, shown, solution_page
from book.shelf import Shelf
from linformer_from_scratch.course.glossary import entries
from linformer_from_scratch.course.ledger import KINDS, by_kind, kind_of, ledger

STILL = re.compile(r'<img [^>]*src="scenes/media/(\w+)\.png" alt="([^"]+)"')  # of a clip
ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
MEDIA = Path("scenes", "media")  # beside the chapters; in the book beside the decks, which play them too
WHEELS = "wheel"
MODEL = "model"
SLIDES = "slides"
TEACHERS = ("teachers.md", "solutions.md")
CARD = "linformer_from_scratch/data/shipped/minilm_linformer_k128.md"
COPIED = "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", CARD
COPIED += "chapters/glossary.md", "chapters/map.png", "chapters/fields.webp"


def gather(source: Path, out: Path, solutions: bool = True) -> Shelf:
    """Write what Sphinx reads: the repository's notebooks and pages, in the repository's folders.

    Args:
        source: receives them.
        out: the book's folder; receives what the live pictures need, on the shelf that is returned open.
        solutions: with those, and the pages for teachers.
    """
    shelf = Shelf(out / "_static" / "live", "../_static/live")
    for folder in ("chapters/evidence", "teacher", "solutions"):
        (source / folder).mkdir(parents=True)
    for path in chapters():
        solution = ROOT / "solutions" / path.name
        page = chapter_page(path, solution if solutions else None, shelf)
        nbformat.write(page, source / "chapters" / path.name)
        if solutions:
            nbformat.write(chapter_page(path, solution, shelf, teacher=True), source / "teacher" / path.name)
            nbformat.write(solution_page(solution), source / "solutions" / path.name)
    shelf.url = f"../{shelf.url}"  # from a folder further down
    for path in sorted((CHAPTERS / "evidence").glob("*.ipynb")):
        page = shown(nbformat.read(path, as_version=4), shelf, f"E{int(path.stem[:2])}")
        nbformat.write(page, source / "chapters" / "evidence" / path.name)
    for name in COPIED:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    api.write(source / "api")
    front.write(out / "_static" / "front")
    told = written() | {"solutions": solutions}
    for path in (HERE / "pages").glob("*.md"):
        if not solutions and path.name in TEACHERS:
            continue
        (source / path.name).write_text(filled(path, told), encoding="utf-8")
    return shelf


def filled(path: Path, told: dict[str, object]) -> str:
    """A page of the book, filled with what `written` gives."""
    text = as_in_the_book(path.read_text(encoding="utf-8"))
    return jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text).render(told)


def written() -> dict[str, object]:
    """What the pages are filled with: two sections of the README, plans, decks, clips."""
    lessons = [teaching.lesson(path) for path in chapters()]
    cells = [(path.stem, cell) for path in chapters() for cell in nbformat.read(path, as_version=4).cells]
    text = as_in_the_book((ROOT / "README.md").read_text(encoding="utf-8"))
    title, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    readme = dict(zip(parts[::2], parts[1::2], strict=True))  # heading -> what stands below it
    return {
        "title": title.split("\n", 1)[0],
        "worth": readme["So, should you use it?"],
        **front.told(readme["Chapters"]),
        "lessons": lessons,
        "one_day": teaching.one_day(lessons),
        "four_weeks": [[one for one in lessons if one.stem[:2] in week] for week in teaching.FOUR_WEEKS],
        "titles": {one.stem: one.title for one in lessons},
        "clips": [(name, stem, alt) for stem, cell in cells for name, alt in STILL.findall(cell.source)],
        "claims": ledger(),
        "kinds": {kind: KINDS[kind] for kind in by_kind(ledger())},
        "kind_of": kind_of,
        "e_and_f": next(entry.sentence for entry in entries() if entry.term == "projections E and F"),
    }


def as_in_the_book(text: str) -> str:
    """A page of the repository whose links lead to what the book has."""
    here = f' (<a href="{WHEELS}/{wheel.name()}" download>{wheel.name()}</a>)'
    text = text.replace("<!-- here -->", here).replace("(../../../", "(")
    return text.replace("(linformer_from_scratch/course/claims.yml)", "(ledger.md)")


@contextmanager
def pages(source: Path, out: Path) -> Iterator[None]:
    """Have Sphinx make the pages of what was gathered, while something else is done.

    Exits if Sphinx warns of anything, such as a link that leads nowhere.
    """
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", str(HERE)]
    with subprocess.Popen([*command, "-d", str(source / "_doctrees"), str(source), str(out)]) as sphinx:
        yield
    if sphinx.returncode:
        sys.exit("Sphinx has warned: its lines stand above.")


def furnish(out: Path, solutions: bool = True) -> None:
    """Put beside the pages the clips that they play, and what one downloads: notebooks and the wheel."""
    wheel.build(out / WHEELS)
    shutil.copytree(CHAPTERS / MEDIA, out / SLIDES / MEDIA)
    (out / "notebooks").mkdir(parents=True)
    for path in chapters():
        whole = nbformat.read(path, as_version=4) if solutions else without_answers(path)
        notebook, _ = ClearOutputPreprocessor().preprocess(whole, {})
        nbformat.write(notebook, out / "notebooks" / path.name)
