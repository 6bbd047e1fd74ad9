"""The book: python tools/make_book.py

build/book/ receives every chapter, the worked exercises, the ledger, the glossary, the API reference, a page
for teachers, decks, handouts and clips, as pages that open from disk without a network. No cell is run again.
--no-solutions leaves out what answers exercises, the teacher's edition, and the notes.
With REPOSITORY=owner/name, as where the book is published, each chapter leads to Binder, too.
"""

import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import course
import torch
from book.links import dead_links
from book.site import MODEL, SLIDES, furnish, gather, pages
from lectures import chapters
from page_scripts import lend
from slides import NO_SOLUTIONS, READERS, build_all

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "book"


def make(out: Path, solutions: bool = True) -> None:
    """Make the book anew, in a folder that is emptied first."""
    start = time.perf_counter()
    torch.set_num_threads(1)  # the widgets' many small decompositions run fastest so
    course.clear(out)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as beside:
        lent = beside.submit(lend, out / MODEL)
        shelf, model = gather(Path(folder), out, solutions), lent.result()
        shelf.close(model | {"folder": f"../../{MODEL}"})
        with pages(Path(folder), out):
            furnish(out, solutions)
            readers = READERS if solutions else READERS[:1]
            build_all(chapters(), out / SLIDES, model | {"folder": f"../{MODEL}"}, readers)
    shutil.rmtree(out.parent / "jupyter_execute")  # notebooks that nobody has run
    if dead := dead_links([path for path in out.rglob("*.html") if path.parent.name != SLIDES]):
        sys.exit(f"a link leads nowhere: {dead[0]}.")
    megabytes = sum(path.stat().st_size for path in out.rglob("*")) / 1e6
    print(f"{os.path.relpath(out)}/index.html: {time.perf_counter() - start:.0f} s, {megabytes:.0f} MB")


if __name__ == "__main__":
    make(OUT, NO_SOLUTIONS not in sys.argv)
