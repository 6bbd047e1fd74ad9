"""ledger.py: every claim once, with its verdict and a link to where it is settled."""

import re
from pathlib import Path

import nbformat
import pytest
import yaml

from linformer_from_scratch.course import ledger as room
from linformer_from_scratch.course.ledger import VERDICTS, LedgerTable, ledger

CHAPTERS = Path(__file__).parents[1] / "chapters"
CONTENT = yaml.safe_load(room.CLAIMS.read_text(encoding="utf-8"))


def test_every_claim_stands_in_it_once_in_the_order_of_the_chapters():
    claims = ledger()
    assert sorted(claim.id for claim in claims) == sorted(entry["id"] for entry in CONTENT)
    assert [claim.chapter for claim in claims] == sorted(claim.chapter for claim in claims)
    by_id = {entry["id"]: entry for entry in CONTENT}
    for claim in claims:
        assert claim.verdict == by_id[claim.id]["verdict"] and claim.verdict in VERDICTS
        assert claim.claim == by_id[claim.id]["claim"] and claim.setup == by_id[claim.id]["setup"]


def test_a_link_leads_to_the_heading_above_the_cell():
    for claim in ledger():
        path, _, anchor = claim.link.partition("#")
        cells = nbformat.read(CHAPTERS / path, as_version=4).cells
        (place,) = [i for i, cell in enumerate(cells) if f"claim-{claim.id}" in cell.metadata.get("tags", [])]
        above = "\n".join(cell.source for cell in cells[:place] if cell.cell_type == "markdown")
        heading = re.findall(r"^#+ (.*)$", above, re.MULTILINE)[-1]
        assert heading.replace(" ", "-") == anchor != ""


def test_the_table_shows_every_claim_with_its_link():
    claims = ledger()
    page = LedgerTable(claims)._repr_html_()
    assert page.count("<tr>") == len(claims) + 1 == page.count("<a href=") + 1
    assert all(f"<b>{claim.verdict}</b>" in page for claim in claims)
    assert len(repr(LedgerTable(claims)).splitlines()) == len(claims)
    odd = LedgerTable([claims[0]._replace(claim="a < b & c")])._repr_html_()
    assert "a &lt; b &amp; c" in odd


def test_a_claim_without_its_cell_is_an_error(tmp_path, monkeypatch):
    entry = {**CONTENT[0], "cell": "claim-nowhere"}
    claims = tmp_path / "claims.yml"
    claims.write_text(yaml.safe_dump([entry]), encoding="utf-8")
    monkeypatch.setattr(room, "CLAIMS", claims)
    name = f"{entry['chapter']}.ipynb"
    (tmp_path / name).write_bytes((CHAPTERS / name).read_bytes())
    monkeypatch.setattr(room, "CHAPTERS", tmp_path)
    with pytest.raises(ValueError, match=f"no cell of {entry['chapter']} has the tag claim-nowhere"):
        ledger()


def test_without_the_notebooks_claims_name_their_chapters(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "CHAPTERS", tmp_path / "chapters")
    assert [claim.link for claim in ledger()] == [f"{claim.chapter}.ipynb" for claim in ledger()]
