"""The claims ledger, the tagged cells and the prose say the same."""

import re
from pathlib import Path

import nbformat
import pytest
import yaml

from linformer_from_scratch.course.ledger import CLAIMS, VERDICTS

CHAPTERS = Path(__file__).parents[1] / "chapters"
LEDGER = yaml.safe_load(CLAIMS.read_text(encoding="utf-8"))
FIELDS = {"id", "claim", "source", "verdict", "chapter", "cell", "tolerance", "setup"}


def read(stem):
    return nbformat.read(CHAPTERS / f"{stem}.ipynb", as_version=4)


def tagged(notebook, tag):
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]


@pytest.mark.parametrize("entry", LEDGER, ids=lambda entry: entry["id"])
def test_each_claim_is_complete_and_settled_by_one_cell_that_shows_something(entry):
    assert set(entry) == FIELDS and all(entry.values())
    assert entry["verdict"] in VERDICTS
    assert entry["cell"] == f"claim-{entry['id']}"
    (cell,) = tagged(read(entry["chapter"]), entry["cell"])
    assert cell.cell_type == "code" and cell.outputs
    assert "nbval-ignore-output" not in cell.metadata.tags and "nbval-skip" not in cell.metadata.tags


def test_ids_are_unique():
    ids = [entry["id"] for entry in LEDGER]
    assert len(ids) == len(set(ids))


def test_the_ledger_is_complete():
    """The paper's theorems, figures, tables and additional techniques; the notes' claims a to t."""
    paper = {"theorem-1", "theorem-2", "figure-1", "figure-2", "table-1", "table-2", "table-3"}
    figure_3 = {"figure-3a", "figure-3c", "figure-3d"}  # 3b is 3a at another length
    techniques = {"figure-3c", "nonuniform-k", "pooling"}  # section 4: sharing, k by layer, other projections
    ids = {entry["id"] for entry in LEDGER}
    assert ids >= paper | figure_3 | techniques | set("abcdefghijklmnopqrst")


def test_prose_and_ledger_give_the_same_verdicts():
    said = {}
    for path in sorted(CHAPTERS.glob("*.ipynb")):
        text = "\n".join(cell.source for cell in read(path.stem).cells if cell.cell_type == "markdown")
        for claim, verdict in re.findall(r"\*\*Claim ([\w-]+): ([^*]+?)\.\*\*", text):
            assert claim not in said, f"claim {claim} is settled twice"
            said[claim] = (path.stem, verdict)
    assert said == {entry["id"]: (entry["chapter"], entry["verdict"]) for entry in LEDGER}


def test_every_tagged_cell_stands_in_the_ledger():
    tags = {
        tag
        for path in CHAPTERS.glob("*.ipynb")
        for cell in read(path.stem).cells
        for tag in cell.metadata.get("tags", [])
        if tag.startswith("claim-")
    }
    assert tags == {entry["cell"] for entry in LEDGER}
