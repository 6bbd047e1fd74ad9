"""Long real texts: three manuals as Debian packages them, read page by page.

They are not shipped: `apt-get install python3.11-doc postgresql-doc-15 rust-doc` puts them on the machine
that records. What is parsed is kept in build/pages.json.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bs4 import BeautifulSoup, Tag

from lab.experiment import BUILD
from linformer_from_scratch.common.files import atomic_write
from linformer_from_scratch.data.batches import held_out

DOCS, PARSED = Path("/usr/share/doc"), BUILD / "pages.json"
INSTALL = "apt-get install python3.11-doc postgresql-doc-15 rust-doc"
RUST = "book edition-guide embedded-book nomicon reference rust-by-example rustc rustdoc unstable-book"
MANUALS = {  # its folder below DOCS, and the folders of its pages
    "Python": (
        "python3.11/html",
        "c-api distributing extending faq howto installing library reference tutorial using whatsnew",
    ),
    "PostgreSQL": ("postgresql-doc-15/html", "."),
    "Rust": ("rust-doc/html", RUST),
}
WHOLE_BOOKS = ("print.html", "toc.html")  # of Rust: every page of a book again
PARAGRAPHS = ["p", "pre", "h1", "h2", "h3", "h4", "h5", "li", "dt", "dd", "td", "th"]
NUMBER = re.compile(r"^(?:Chapter |Appendix )?(?:[A-Z]?\d*\.)+\d*\s*")  # of a chapter
SHINGLE = 8  # words
COPIED = 0.5  # share of a page's shingles that another page holds too: from there on it is a copy
SHARE = 0.4  # of the pages, held out
WORDS = 40  # a shorter page is none


class Page(NamedTuple):
    """One page of a manual. title: its first heading. paragraphs: all the rest, in its order."""

    manual: str
    name: str
    title: str
    paragraphs: list[str]


@cache
def pages() -> tuple[Page, ...]:
    """All pages, in the reading order of each manual, copies left out.

    Raises: FileNotFoundError if the manuals are not installed.
    """
    if not PARSED.exists():
        found = [page for manual in MANUALS for page in parsed(manual)]
        atomic_write(PARSED, json.dumps(without_copies(found)))
    return tuple(Page(*page) for page in json.loads(PARSED.read_text(encoding="utf-8")))


def split_pages() -> tuple[list[Page], list[Page]]:
    """Pages to learn from, and those held out, drawn by their names."""
    kept = set(held_out([page.name for page in pages()], SHARE))
    sides: tuple[list[Page], list[Page]] = [], []
    for page in pages():
        sides[page.name in kept].append(page)
    return sides


def parsed(manual: str) -> list[Page]:
    """The pages of one manual, each after the one that links to it as the next."""
    folder, parts = MANUALS[manual]
    root = DOCS / folder
    if not root.exists():
        raise FileNotFoundError(f"{root} is missing; install the manuals: {INSTALL}")
    files = sorted(file for part in parts.split() for file in (root / part).rglob("*.html"))
    files = [file.resolve() for file in files if file.name not in WHOLE_BOOKS]
    found: dict[Path, Page] = {}
    after: dict[Path, Path] = {}
    for file in files:
        soup = BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")
        link = soup.select_one("link[rel~=next], a[rel~=next]")
        if link:
            after[file] = (file.parent / str(link["href"]).partition("#")[0]).resolve()
        page = parse(soup, manual, file.relative_to(root.resolve()).as_posix())
        if page:
            found[file] = page
    return [found[file] for file in in_order(files, after) if file in found]


def in_order(files: Sequence[Path], after: dict[Path, Path]) -> Iterator[Path]:
    """Every file once, and after it the one that it names as the next, where that is still to come."""
    first = [file for file in files if file not in {*after.values()}]
    waiting = dict.fromkeys([*first, *files])
    while waiting:
        file: Path | None = next(iter(waiting))
        while file in waiting:
            del waiting[file]
            yield file
            file = after.get(file)


def parse(soup: BeautifulSoup, manual: str, name: str) -> Page | None:
    """A page's title and paragraphs; None if it has no title, or hardly a word."""
    body = soup.select_one("main, [role=main]") or soup.body
    if body is None:
        return None
    for part in body.select("script, style, nav, .headerlink, .navheader, .navfooter, .toc, .contents"):
        part.decompose()
    title = body.select_one("h1, h2")
    if title is None:
        return None
    words = text_of(title)
    title.decompose()
    blocks = [block for block in body.find_all(PARAGRAPHS) if not block.find_parent(PARAGRAPHS)]
    paragraphs = [text for text in map(text_of, blocks) if text]
    if not words or len(" ".join(paragraphs).split()) < WORDS:
        return None
    return Page(manual, name, words, paragraphs)


def text_of(tag: Tag) -> str:
    """Its words; of a heading, without the number of the chapter."""
    words = " ".join(tag.get_text(" " if tag.name in ("li", "dd", "td") else "").split())
    return NUMBER.sub("", words) if tag.name in ("h1", "h2") else words


def without_copies(found: Sequence[Page]) -> list[Page]:
    """Those of which less than half of all runs of eight words stand in an earlier page."""
    holders: dict[int, list[int]] = {}
    kept: list[Page] = []
    for page in found:
        runs = shingles(page)
        shared = Counter(i for run in runs for i in holders.get(run, ()))
        if runs and max(shared.values(), default=0) < COPIED * len(runs):
            for run in runs:
                holders.setdefault(run, []).append(len(kept))
            kept.append(page)
    return kept


def shingles(page: Page) -> set[int]:
    """Hashes of a page's runs of SHINGLE words."""
    words = re.findall(r"\w+", " ".join(page.paragraphs).lower())
    runs = (" ".join(words[i : i + SHINGLE]) for i in range(len(words) - SHINGLE + 1))
    return {int(hashlib.blake2b(run.encode(), digest_size=8).hexdigest(), 16) for run in runs}
