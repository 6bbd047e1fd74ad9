"""Every link between chapters, solutions, glossary, ledger and pages leads somewhere; offline."""

from pathlib import Path

import pytest
from book.links import anchors, dead_links, links

ROOT = Path(__file__).parents[1]
FILES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("chapters/*.ipynb")),
    *sorted(ROOT.glob("solutions/*.ipynb")),
    ROOT / "chapters" / "glossary.md",
    ROOT / "tools" / "book" / "pages" / "elsewhere.md",
    *sorted(ROOT.glob("linformer_from_scratch/data/shipped/*.md")),
]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
def test_links_lead_somewhere(file):
    assert dead_links([file]) == []


def test_many_links_were_followed():
    assert sum(len(links(file)) for file in FILES) > 100


@pytest.mark.parametrize(
    "link",
    ["](gone.md)", "](other.ipynb#No-such-heading)", "](other.md#other)", "\n\n<img src='gone.png' alt=''>"],
)
def test_a_dead_link_is_found(tmp_path, link):
    (tmp_path / "other.ipynb").write_text(
        '{"cells": [{"cell_type": "markdown", "source": "## A heading"}]}', encoding="utf-8"
    )
    (tmp_path / "other.md").write_text("# Another\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(f"[a{link} and [b](other.ipynb#A-heading), [c](other.md#another)", encoding="utf-8")
    assert len(dead_links([page])) == 1


def test_a_link_in_code_is_not_one(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("`x[0](gone)` and\n```python\ncheck[1](gone)\n```\n", encoding="utf-8")
    assert dead_links([page]) == [] and anchors(page) == frozenset()
