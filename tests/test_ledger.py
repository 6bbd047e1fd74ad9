"""ledger.py: each claim is settled by a cell that prints its numbers; all places give the same verdict."""

import functools
import html
import re

import nbformat
import pytest
import yaml
from lectures import chapters

from linformer_from_scratch.course import ledger as room
from linformer_from_scratch.course import scoreboard
from linformer_from_scratch.course.ledger import CHAPTERS, KINDS, LedgerTable, by_kind, kind_of, ledger, place

CONTENT = yaml.safe_load(room.CLAIMS.read_text(encoding="utf-8"))
FIELDS = {"id", "claim", "source", "verdict", "found", "chapter", "cell", "tolerance", "setup"}
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
every_entry = pytest.mark.parametrize("entry", CONTENT, ids=lambda entry: entry["id"])


@functools.cache
def read(page):
    return nbformat.read(CHAPTERS / f"{page}.ipynb", as_version=4)


def page_of(entry):
    """The notebook in which the entry's cell stands: the chapter, or its evidence page."""
    return read(place(entry["chapter"], entry["cell"])[0])


def place_of(notebook, tag):
    (place,) = [i for i, cell in enumerate(notebook.cells) if tag in cell.metadata.get("tags", [])]
    return place


def section(notebook, tag):
    """The cells under the heading that a tagged cell stands under."""
    place, headings = place_of(notebook, tag), []
    for i, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown" and re.search(r"^#", cell.source, re.MULTILINE):
            headings.append(i)
    first = max(i for i in headings if i < place)
    return notebook.cells[first : min((i for i in headings if i > place), default=len(notebook.cells))]


def printed(cells):
    """What code cells put out, as text."""
    outputs = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    return "\n".join(out.get("text") or out.get("data", {}).get("text/plain", "") for out in outputs)


def numbers(text):
    return [number.replace(",", "") for number in NUMBER.findall(text)]


def stands_in(number, text):
    """Whether a text has the number, or one that rounds to it at its digits."""
    half = 0.5 * 10.0 ** -len(number.partition(".")[2]) + 1e-9 if "." in number else 0
    return any(abs(float(other) - float(number)) <= half for other in numbers(text))


def missing_numbers(sentence, cells):
    """Numbers of a sentence that its cells do not give.

    They print it, or name it as a setting in their code; whole numbers may stand in their prose as well.
    """
    code = printed(cells) + "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    missing = [number for number in numbers(sentence) if not stands_in(number, code)]
    return [number for number in missing if "." in number or not stands_in(number, prose)]


@every_entry
def test_each_claim_is_settled_by_one_cell_that_shows_something(entry):
    assert set(entry) == FIELDS and all(entry.values())
    kind_of(entry["verdict"])  # of the seven, or an error
    notebook = page_of(entry)
    cell = notebook.cells[place_of(notebook, entry["cell"])]
    assert cell.cell_type == "code" and cell.outputs
    assert "nbval-ignore-output" not in cell.metadata.tags and "nbval-skip" not in cell.metadata.tags


@every_entry
def test_the_numbers_that_were_found_are_printed_in_their_section(entry):
    found, cells = entry["found"], section(page_of(entry), entry["cell"])
    assert missing_numbers(found, cells) == []
    assert "no number: " in found or any(stands_in(number, printed(cells)) for number in numbers(found))


def test_a_number_that_no_cell_gives_is_missed():
    output = nbformat.v4.new_output("stream", text="0.4321 of 1,024\n")
    code = nbformat.v4.new_code_cell("eps = 0.5", outputs=[output])
    cells = [code, nbformat.v4.new_markdown_cell("n = 512, 0.7")]
    assert missing_numbers("At n = 512, ε = 0.5 it is 0.43 of 1,024.", cells) == []
    assert missing_numbers("At n = 256 it is 0.44, not 0.7.", cells) == ["256", "0.44", "0.7"]


def test_the_tables_of_the_chapters_and_the_ledger_give_the_same_verdicts():
    verdicts = []
    for path in sorted(CHAPTERS.glob("*.ipynb")):
        text = "\n".join(cell.source for cell in read(path.stem).cells if cell.cell_type == "markdown")
        rows = re.findall(r"^\| ([\w-]+) \| .* \| \*\*([^*|]+)\*\* \|$", text, re.MULTILINE)
        verdicts += [(claim, path.stem, verdict) for claim, verdict in rows]
    assert sorted(verdicts) == sorted((claim.id, claim.chapter, claim.verdict) for claim in ledger())


def test_a_verdict_is_of_one_of_seven_kinds_and_a_condition_is_named():
    assert len(KINDS) == 7
    assert kind_of("only if E and F are the same permutation") == "only if" and kind_of("wrong") == "wrong"
    for wrong in ("disputed", "only if ", "wrong if n = 3"):
        with pytest.raises(ValueError, match=f"got the verdict '{wrong}', expected wrong, right"):
            kind_of(wrong)


def test_a_link_leads_to_the_heading_above_the_cell():
    for claim in ledger():
        path, _, anchor = claim.link.partition("#")
        notebook = read(path.removesuffix(".ipynb"))
        cells, place = notebook.cells, place_of(notebook, f"claim-{claim.id}")
        above = "\n".join(cell.source for cell in cells[:place] if cell.cell_type == "markdown")
        assert re.findall(r"^#+ (.*)$", above, re.MULTILINE)[-1].replace(" ", "-") == anchor != ""


def test_the_table_shows_every_claim_under_its_kind_with_its_link():
    claims = ledger()
    parts = LedgerTable(claims)._repr_html_().split("<tr><th colspan='5'")[1:]
    for part, (kind, group) in zip(parts, by_kind(claims).items(), strict=True):
        assert f"{kind.capitalize()} ({len(group)}): " in part and part.count("<a href=") == len(group)
        for claim in group:
            for text in (claim.claim, claim.source, claim.verdict, claim.found, claim.setup, claim.link):
                assert html.escape(text) in part
    assert len(repr(LedgerTable(claims)).splitlines()) == len(claims) == len(CONTENT)


def test_the_last_chapter_shows_the_ledger_as_it_is():
    (table,) = [cell for cell in read("12_limits").cells if cell.source == "LedgerTable(ledger())"]
    assert table.outputs[0].data["text/html"] == LedgerTable(ledger())._repr_html_()


def test_a_claim_without_its_cell_is_an_error_and_without_notebooks_it_names_its_chapter(
    tmp_path, monkeypatch
):
    entry = {**CONTENT[0], "cell": "claim-nowhere"}
    monkeypatch.setattr(room, "CLAIMS", tmp_path / "claims.yml")
    room.CLAIMS.write_text(yaml.safe_dump([entry]), encoding="utf-8")
    with pytest.raises(ValueError, match=f"no cell of {entry['chapter']} has the tag claim-nowhere"):
        ledger()
    monkeypatch.setattr(room, "CHAPTERS", tmp_path / "chapters")
    assert [claim.link for claim in ledger()] == [f"{entry['chapter']}.ipynb"]


# The scoreboard: a line or two a chapter, and the cell that prints their numbers.

LINES = yaml.safe_load(scoreboard.ROWS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line['chapter']}-{line['cell']}")
def test_the_scoreboard_shows_what_a_cell_of_its_chapter_prints(line):
    (path,) = CHAPTERS.glob(f"{line['chapter']}_*.ipynb")
    (cell,) = [cell for cell in read(path.stem).cells if cell.id == line["cell"]]
    shown = numbers(line["exact"] + " " + line["linformer"])
    assert shown and all(stands_in(number, printed([cell])) for number in shown)


def test_every_chapter_has_its_line_and_shows_it(capsys):
    stems = [path.stem for path in chapters()]
    assert sorted({line["chapter"] for line in LINES}) == [stem[:2] for stem in stems]
    for stem in stems:
        (cell,) = [cell for cell in read(stem).cells if cell.source == f'scoreboard("{stem[:2]}")']
        scoreboard.scoreboard(stem[:2])
        assert capsys.readouterr().out == printed([cell])
        assert len(printed([cell]).splitlines()) == 1 + sum(line["chapter"] == stem[:2] for line in LINES)
        assert max(map(len, printed([cell]).splitlines())) <= 100
    with pytest.raises(ValueError, match="got chapter '77', expected one of 00, 01"):
        scoreboard.scoreboard("77")
