"""The claims ledger, the tagged cells and the prose say the same."""

import functools
import re
from pathlib import Path

import nbformat
import pytest
import yaml

from linformer_from_scratch.course.ledger import CLAIMS, kind_of

CHAPTERS = Path(__file__).parents[1] / "chapters"
LEDGER = yaml.safe_load(CLAIMS.read_text(encoding="utf-8"))
FIELDS = {"id", "claim", "source", "verdict", "found", "chapter", "cell", "tolerance", "setup"}
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


@functools.cache
def read(stem):
    return nbformat.read(CHAPTERS / f"{stem}.ipynb", as_version=4)


def tagged(notebook, tag):
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]


def section(notebook, tag):
    """The cells under the heading that a tagged cell stands under."""
    (place,) = [i for i, cell in enumerate(notebook.cells) if tag in cell.metadata.get("tags", [])]
    headings = [
        i
        for i, cell in enumerate(notebook.cells)
        if cell.cell_type == "markdown" and re.search(r"^#", cell.source, re.MULTILINE)
    ]
    first = max(i for i in headings if i < place)
    return notebook.cells[first : min((i for i in headings if i > place), default=len(notebook.cells))]


def printed(cells):
    """What code cells put out, as text."""
    outputs = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    return "\n".join(out.get("text") or out.get("data", {}).get("text/plain", "") for out in outputs)


def numbers(text):
    return [found.replace(",", "") for found in NUMBER.findall(text)]


def stands_in(number, text):
    """Whether a text has the number, or one that rounds to it at its digits."""
    half = 0.5 * 10.0 ** -len(number.partition(".")[2])
    exact = not number.count(".")
    return any(abs(float(other) - float(number)) <= (0 if exact else half + 1e-9) for other in numbers(text))


def missing_numbers(found, cells):
    """Numbers of a sentence that its cells do not give.

    They print it, or name it as a setting in their code; whole numbers may stand in their prose as well.
    """
    code = printed(cells) + "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return [
        number
        for number in numbers(found)
        if not stands_in(number, code) and ("." in number or not stands_in(number, prose))
    ]


@pytest.mark.parametrize("entry", LEDGER, ids=lambda entry: entry["id"])
def test_each_claim_is_complete_and_settled_by_one_cell_that_shows_something(entry):
    assert set(entry) == FIELDS and all(entry.values())
    kind_of(entry["verdict"])  # of the seven, or an error
    assert entry["cell"] == f"claim-{entry['id']}"
    (cell,) = tagged(read(entry["chapter"]), entry["cell"])
    assert cell.cell_type == "code" and cell.outputs
    assert "nbval-ignore-output" not in cell.metadata.tags and "nbval-skip" not in cell.metadata.tags


@pytest.mark.parametrize("entry", LEDGER, ids=lambda entry: entry["id"])
def test_what_was_found_is_one_sentence_with_numbers_that_its_section_prints(entry):
    found, cells = entry["found"], section(read(entry["chapter"]), entry["cell"])
    assert found.endswith(".") and not re.search(r"[.!?] [A-Z]", found)
    if "no number: " in found:  # and why
        assert not numbers(found)
        return
    assert missing_numbers(found, cells) == []
    assert any(stands_in(number, printed(cells)) for number in numbers(found))


def test_a_number_that_no_cell_gives_is_missed():
    said = nbformat.v4.new_output("stream", text="0.4321 of 1,024\n")
    cells = [
        nbformat.v4.new_code_cell("eps = 0.5", outputs=[said]),
        nbformat.v4.new_markdown_cell("n = 512, 0.7"),
    ]
    assert missing_numbers("At n = 512, ε = 0.5 it is 0.43 of 1,024.", cells) == []
    assert missing_numbers("At n = 256 it is 0.44 of 1,024.", cells) == ["256", "0.44"]
    assert missing_numbers("It is 0.7.", cells) == ["0.7"]  # in prose alone: printed by nobody


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
