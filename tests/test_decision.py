"""decision.py: three cases lead to advice; every cell and every number that an advice names is there."""

import html
import inspect
import json
import re
from itertools import product
from pathlib import Path

import pytest

from linformer_from_scratch.benchmark import published
from linformer_from_scratch.course import decision
from linformer_from_scratch.course.decision import A100, CPU, H200, Case, changes, decide, evidence, rules
from linformer_from_scratch.course.recorded import benchmark as records

CHAPTERS = Path(__file__).parents[1] / "chapters"
CELL_ID = re.compile(r"\b\d\d-\d{3}\b")
NUMBER = re.compile(r"\d[\d,_]*(?:\.\d+)?")
FLAGS = (False, True)
PRODUCT = product((512, 8192), FLAGS, FLAGS, (CPU, decision.V100, A100, H200), (1, decision.SEVERAL))
CASES = [Case(n, 64, *flags, device, machines) for n, *flags, device, machines in PRODUCT]


def numbers(text):
    """The numbers of a text, without commas and zeros at their ends: "2,048", "1.50" -> {"2048", "1.5"}."""
    text = re.sub(r"[AHV]\d00", "", text)  # names of devices
    found = {re.sub("[,_]", "", one).rstrip(".") for one in NUMBER.findall(text)}
    return {re.sub(r"(\.\d*?)0+$", r"\1", one).rstrip(".") for one in found}


@pytest.fixture(scope="module")
def cells():
    """Id -> all that a cell says: its source, its outputs, and how its pictures are described."""
    texts = {}
    for path in sorted(CHAPTERS.rglob("[0-9][0-9]_*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            said = ["".join(cell["source"])]
            for output in cell.get("outputs", []):
                said += map("".join, (output.get("text", ""), output.get("data", {}).get("text/plain", "")))
                said.append(json.dumps(output.get("metadata", {}), ensure_ascii=False))
            texts[cell["id"]] = "\n".join(said)
    return texts


# Three cases, cold.


def test_a_search_with_512_tokens_on_a_cpu_needs_no_linformer():
    advice = decide(Case(n=512))
    assert advice.take == "fused exact attention, as it is"
    assert advice.from_n == 1
    assert "not" not in advice.reach
    assert {"12-124", "12-096", "10-094"} <= {one.cell for one in advice.evidence}


def test_contracts_are_cut_for_their_gist_and_read_exactly_for_a_clause():
    gist, clause = decide(Case(n=8192)), decide(Case(n=8192, exact_recall=True))
    assert gist.take.startswith("chunks, encoded exactly")
    assert gist.from_n == 513
    assert "not" not in gist.reach
    assert clause.take == "fused exact attention"


def test_a_genome_of_a_million_tokens_leads_to_what_is_not_known():
    advice = decide(Case(n=2**20, device=H200, machines=8))
    assert advice.take.endswith("in chunks, each encoded on one machine")
    assert "not known" in advice.why and "on one machine" in advice.reach
    assert f"on the {CPU} it pays from n = 2,048 on" in advice.time
    assert "n = 1,048,576 was not tested" in decide(Case(n=2**20)).reach


# What an advice names is there.


@pytest.mark.parametrize("piece", evidence().values(), ids=lambda one: one.cell or one.source)
def test_evidence_is_a_cell_or_a_source_and_its_numbers_stand_there(piece, cells):
    assert piece.cell or piece.source
    there = cells[piece.cell] if piece.cell else ""
    there += inspect.getsource(published) if piece.source else ""
    assert numbers(piece.shows) <= numbers(there)


def test_a_place_names_the_heading_above_its_cell_and_its_address_leads_there():
    piece = evidence()["cpu"]
    assert piece.place == "chapter 10, “How large must n be before it's worth it?”"
    assert piece.address == "10_benchmark.ipynb#How-large-must-n-be-before-it's-worth-it?"
    assert evidence()["zoology"].address == ""


def test_without_the_notebooks_a_place_is_its_chapter(tmp_path, monkeypatch):
    monkeypatch.setattr(decision, "CHAPTERS", tmp_path)
    piece = decision.Evidence("not asked for before", "12-999", "Somebody 2026")
    assert (piece.place, piece.address) == ("chapter 12; Somebody 2026", "")


def test_numbers_of_every_advice_are_the_cases_own_or_stand_in_its_evidence(cells):
    content = records.recorded_cpu()
    recorded = {str(row["texts"]) for row in content["rows"] if row["part"] == "table 3"}
    recorded.add(str(content["machine"]["cores"]))
    for case in CASES:
        advice = decide(case)
        there = "\n".join(cells[one.cell] for one in advice.evidence if one.cell)
        if any(one.source for one in advice.evidence):
            there += inspect.getsource(published)
        said = " ".join((advice.take, advice.time, advice.why, advice.reach, advice.runner_up))
        own = numbers(f"{case.n} {case.batch} {case.machines}")
        assert numbers(said) <= numbers(there) | own | recorded, case


def test_the_length_on_the_cpu_is_the_one_that_chapter_10_prints(cells):
    (printed,) = re.findall(r"against fused exact, k =   256: from n = ([\d,]+)", cells["10-094"])
    assert f"from n = {printed} on" in decision.devices()[CPU].since


# The table.


def test_every_rule_has_a_case_and_whoever_writes_or_looks_up_never_gets_slots_or_chunks():
    assert {decision.rule_of(case).need for case in CASES} == {rule.need for rule in rules()}
    for case in CASES:
        if case.causal or case.exact_recall:
            assert decision.rule_of(case).kind in ("exact", "ring"), case


def test_what_would_change_the_advice():
    assert changes(Case(n=512))["causal exact attention, fused"] == ["with causal on"]
    split = changes(Case(n=2**20, machines=8))
    (ring,) = (words for take, words in split.items() if "ring" in take)
    assert ring == ["with causal on", "with exact look-up on"]
    assert ["on one machine"] in split.values()
    assert ["from n = 513 on"] in changes(Case(n=512)).values()
    assert ["below n = 513"] in changes(Case(n=513)).values()
    assert not any(decide(case).take in changes(case) for case in CASES)


def test_reach_says_what_was_not_timed_and_not_tried():
    clause = {"n": 8192, "exact_recall": True}
    assert "Nothing was timed at n = 8,192" in decide(Case(**clause)).reach
    assert "Nothing was timed" not in decide(Case(**clause, device=A100)).reach
    assert "At most 2 texts at a time were timed, not 4." in decide(Case(batch=4)).reach
    assert decide(Case(batch=2)).reach == decide(Case()).reach


REFUSED = {
    "n is 0, expected at least 1": {"n": 0},
    "causal is 1, expected bool": {"causal": 1},
    f"device is 'TPU', expected one of {CPU}, ": {"device": "TPU"},
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_case_that_cannot_be_is_refused_in_one_sentence(words):
    with pytest.raises(ValueError, match=f"^{words}"):
        Case(**REFUSED[words])


def test_the_table_shows_every_rule_with_its_evidence():
    shown = html.unescape(decision.DecisionTable()._repr_html_())
    for rule in rules():
        assert rule.need in shown and rule.take in shown and rule.reach in shown
        for one in rule.evidence:
            assert one.shows in shown and one.place in shown
            assert not one.cell or f"<a href='{one.address}'>" in html.unescape(shown)
    assert "{" not in shown and not CELL_ID.search(shown)
    assert len(repr(decision.DecisionTable()).splitlines()) == len(rules())
