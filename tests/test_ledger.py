"""ledger.py: every claim once, with its verdict and a link to where it is settled."""

import html
import re
from pathlib import Path

import nbformat
import pytest
import yaml

from linformer_from_scratch.course import ledger as room
from linformer_from_scratch.course.ledger import KINDS, LedgerTable, by_kind, kind_of, ledger

CHAPTERS = Path(__file__).parents[1] / "chapters"
CONTENT = yaml.safe_load(room.CLAIMS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def claims():
    return ledger()


def test_every_claim_stands_in_it_once_in_the_order_of_the_chapters(claims):
    assert sorted(claim.id for claim in claims) == sorted(entry["id"] for entry in CONTENT)
    assert [claim.chapter for claim in claims] == sorted(claim.chapter for claim in claims)
    by_id = {entry["id"]: entry for entry in CONTENT}
    for claim in claims:
        written = {field: value for field, value in claim._asdict().items() if field != "link"}
        assert written == {field: by_id[claim.id][field] for field in written}


def test_a_verdict_is_of_one_of_seven_kinds_and_a_condition_is_named():
    assert len(KINDS) == 7
    assert [kind_of(kind) for kind in KINDS if kind != "only if"] == [
        kind for kind in KINDS if kind != "only if"
    ]
    assert kind_of("only if E = F is a permutation") == "only if"
    for wrong in ("disputed", "only if", "only if ", "only iffy", "wrong if n = 3", "Right", ""):
        with pytest.raises(ValueError, match=f"got the verdict '{wrong}', expected wrong, right"):
            kind_of(wrong)


def test_claims_stand_by_kind_every_one_once(claims):
    groups = by_kind(reversed(claims))
    assert list(groups) == [kind for kind in KINDS if any(kind_of(claim.verdict) == kind for claim in claims)]
    assert sorted(claim for group in groups.values() for claim in group) == sorted(claims)
    assert all(kind_of(claim.verdict) == kind for kind, group in groups.items() for claim in group)
    assert by_kind([]) == {}
    with pytest.raises(ValueError, match="disputed"):
        by_kind([claims[0]._replace(verdict="disputed")])


def test_no_kind_is_a_heap(claims):
    """A verdict that half of the claims share tells a reader nothing."""
    assert max(len(group) for group in by_kind(claims).values()) <= len(claims) / 2


def test_a_link_leads_to_the_heading_above_the_cell(claims):
    for claim in claims:
        path, _, anchor = claim.link.partition("#")
        cells = nbformat.read(CHAPTERS / path, as_version=4).cells
        (place,) = [i for i, cell in enumerate(cells) if f"claim-{claim.id}" in cell.metadata.get("tags", [])]
        above = "\n".join(cell.source for cell in cells[:place] if cell.cell_type == "markdown")
        heading = re.findall(r"^#+ (.*)$", above, re.MULTILINE)[-1]
        assert heading.replace(" ", "-") == anchor != ""


def test_the_table_shows_every_claim_under_its_kind_with_its_link(claims):
    page, groups = LedgerTable(claims)._repr_html_(), by_kind(claims)
    assert page.count("<a href=") == len(claims) and page.count("<tr>") == 1 + len(groups) + len(claims)
    parts = page.split("<tr><th colspan='5'")[1:]
    for part, (kind, group) in zip(parts, groups.items(), strict=True):
        assert f"{kind.capitalize()} ({len(group)}): " in part
        for claim in group:
            for shown in (claim.claim, claim.source, claim.verdict, claim.found, claim.setup, claim.link):
                assert html.escape(shown) in part
    assert len(repr(LedgerTable(claims)).splitlines()) == len(claims)
    odd = LedgerTable([claims[0]._replace(claim="a < b & c", found="<i>")])._repr_html_()
    assert "a &lt; b &amp; c" in odd and "&lt;i&gt;" in odd


def test_the_last_chapter_shows_the_ledger_as_it_is(claims):
    cells = nbformat.read(CHAPTERS / "12_limits.ipynb", as_version=4).cells
    (table,) = [cell for cell in cells if cell.source == "LedgerTable(ledger())"]
    assert table.outputs[0].data["text/html"] == LedgerTable(claims)._repr_html_()
    (counts,) = [cell for cell in cells if cell.cell_type == "code" and "by_kind(ledger())" in cell.source]
    for kind, group in by_kind(claims).items():
        assert re.search(rf"^ *{len(group)} {kind} *: {KINDS[kind]}$", counts.outputs[0].text, re.MULTILINE)


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
    assert all(claim.link == f"{claim.chapter}.ipynb" for claim in ledger())
