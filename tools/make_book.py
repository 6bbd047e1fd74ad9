"""The book: python tools/make_book.py

build/book/ receives every chapter, the worked exercises, the ledger, the glossary, the API reference, a page
for teachers, decks, handouts and clips, as pages that open from disk without a network. No cell is run again.
With REPOSITORY=owner/name, as where the book is published, each chapter leads to Binder and Colab, too.
"""

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
from slides import build_all

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "book"


def main() -> None:
    """Make the book anew."""
    start = time.perf_counter()
    torch.set_num_threads(1)  # the widgets' many small decompositions run fastest so
    course.clear(OUT)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as beside:
        lent = beside.submit(lend, OUT / MODEL)
        shelf, model = gather(Path(folder), OUT), lent.result()
        shelf.close(model | {"folder": f"../../{MODEL}"})
        with pages(Path(folder), OUT):
            furnish(OUT)
            build_all(chapters(), OUT / SLIDES, model | {"folder": f"../{MODEL}"})
    if dead := dead_links([path for path in OUT.rglob("*.html") if path.parent.name != SLIDES]):
        sys.exit(f"a link leads nowhere: {dead[0]}.")
    megabytes = sum(path.stat().st_size for path in OUT.rglob("*")) / 1e6
    print(f"{OUT.relative_to(ROOT)}/index.html: {time.perf_counter() - start:.0f} s, {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
