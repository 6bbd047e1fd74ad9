"""Every chapter shows what it claims, keeps its predictions closed, and reads well where nothing runs."""

import json
import re
from itertools import takewhile
from pathlib import Path

import nbformat
import pytest
from lectures import chapters, slide_type

from linformer_from_scratch.course.exercises import EXERCISES
from linformer_from_scratch.course.exercises.engine.quizzes import bets_of
from linformer_from_scratch.course.listing import LONGEST, listing
from linformer_from_scratch.course.start_here import PATH
from linformer_from_scratch.course.widgets.live import LIVE

ROOT = Path(__file__).parents[1]
CHAPTERS = chapters()
EVIDENCE = sorted((ROOT / "chapters/evidence").glob("*.ipynb"))
NOTEBOOKS = [*CHAPTERS, *EVIDENCE, *sorted((ROOT / "solutions").glob("*.ipynb"))]
EVERY_CHAPTER = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
EVERY_NOTEBOOK = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: "/".join(path.parts[-2:]))
TIMES_AND_MACHINES = (
    *("perf_counter", "median_seconds", "samples(", "_ceiling(", "step_seconds["),
    *("get_num_threads", "doctor()", "memory_gb()"),
)


def read(path):
    return nbformat.read(path, as_version=4)


def markdown(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(notebook):
    """All text that the cells of a notebook have printed or returned."""
    texts = []
    for output in (output for cell in code(notebook) for output in cell.outputs):
        texts.append(output.get("text", ""))
        texts.extend(str(value) for key, value in output.get("data", {}).items() if key.startswith("text/"))
    return "\n".join(texts)


def test_there_are_chapters():
    assert [path.stem[:2] for path in CHAPTERS] == [f"{i:02}" for i in range(len(CHAPTERS))] != []


@EVERY_NOTEBOOK
def test_no_formula_has_an_underscore_in_its_text(path):
    """JupyterLab shows an error there."""
    assert re.findall(r"\\text\{[^}]*_[^}]*\}", "\n".join(markdown(read(path)))) == []


@EVERY_NOTEBOOK
def test_outputs_are_committed_in_order_and_without_errors(path):
    text = path.read_text(encoding="utf-8")
    nbformat.validate(json.loads(text))
    assert not re.search(r"/home/\w+|/root/|/Users/\w+|C:\\\\", text), "a path of somebody's machine"
    cells = code(read(path))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [out for out in outputs if out.output_type == "error" or out.get("name") == "stderr"]


@EVERY_NOTEBOOK
def test_only_times_and_machines_are_excused_from_comparison(path):
    for cell in code(read(path)):
        excused = {tag for tag in cell.metadata.get("tags", []) if tag.startswith(("nbval", "raises"))}
        if excused:
            assert excused == {"nbval-ignore-output"}
            assert any(reason in cell.source for reason in TIMES_AND_MACHINES), cell.source


PUTS_OFF = re.compile(r"^(?:bet|check)\(", re.MULTILINE)  # the answer


def answer_to(following):
    """The code cells that answer a prediction, given the cells after it; none if a fold of prose answers it.

    They are the first code cells that come, up to the next prose; no bet or exercise is one of them.
    """
    cells = [cell for cell in following if not (cell.cell_type == "code" and PUTS_OFF.search(cell.source))]
    fold = "<details><summary>Answer</summary>"
    start = next(i for i, c in enumerate(cells) if c.cell_type == "code" or c.source.startswith(fold))
    return list(takewhile(lambda cell: cell.cell_type == "code", cells[start:]))


@EVERY_CHAPTER
def test_the_stored_answer_to_a_prediction_is_folded_and_follows_its_question_on_a_slide(path):
    cells = read(path).cells
    answers = []
    for i, cell in enumerate(cells):
        if cell.cell_type == "markdown" and "**Predict.**" in cell.source:
            answers += answer_to(cells[i + 1 :])
            if slide_type(cell) != "skip":
                others = [after for after in cells[i + 1 :] if not after.source.startswith("bet(")]
                then = next(after for after in others if slide_type(after) != "skip")
                assert slide_type(then) in ("fragment", "slide"), f"shown with its question: {then.source}"
    for cell in code(read(path)):
        tagged = "answer" in cell.metadata.get("tags", [])
        hidden = cell.metadata.get("jupyter", {}).get("outputs_hidden", False)
        assert (tagged, hidden) == (cell in answers, cell in answers), cell.source


@EVERY_CHAPTER
def test_a_chapter_opens_with_its_question_and_a_live_picture_and_folds_what_it_imports(path):
    cells = read(path).cells
    picture = next(i for i, cell in enumerate(cells) if cell.get("outputs"))
    assert LIVE in cells[picture].outputs[0].data
    assert len([cell for cell in cells[:picture] if cell.cell_type == "markdown"]) <= 2
    for cell in cells:
        imports = re.match("import |from |# The course's", cell.source) and not cell.get("outputs")
        assert cell.metadata.get("jupyter", {}).get("source_hidden", False) is bool(imports), cell.source


@EVERY_NOTEBOOK
def test_pictures_have_alternative_text_and_come_from_this_repository(path):
    notebook = read(path)
    assert not re.findall(r"""src=\\?["']https?:""", path.read_text(encoding="utf-8"))
    for text in markdown(notebook):
        for alt in re.findall(r"!\[([^\]]*)\]\(", text) + re.findall(r'<img [^>]*alt="([^"]*)"', text):
            assert len(alt) > 20, f"a picture needs alternative text: {text[:60]!r}"
        assert text.count("<img ") == text.count(" alt=")
        for source in re.findall(r"""(?:\]\(|src=["'])([^)"' ]+\.(?:png|mp4|svg|gif|jpg))""", text):
            assert (path.parent / source).exists(), source
    for cell in code(notebook):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                alt = output.metadata.get("image/png", {}).get("alt", "")
                assert len(alt) > 20, f"a picture without alternative text after {cell.source[:60]!r}"


NOT_A_MEASUREMENT = re.compile(
    r"\[[\d.,± %]+\]\([^)]*\)|"  # a link to where it was printed
    r"arXiv:? ?\d{4}\.\d+|sections? [\d.]+|[Ee]xercises? [\d.]+(?: and [\d.]+)?|^#+ .*$|`[^`]*`|\$[^$]*\$",
    re.MULTILINE,
)


@EVERY_CHAPTER
def test_a_number_that_is_a_link_is_printed_where_the_link_leads(path):
    text = "\n".join(markdown(read(path)))
    links = re.findall(r"\[([\d.,± %]+)\]\(((?:evidence/)?\w*)(?:\.ipynb)?#([^)]+)\)", text)
    assert len(links) >= 12 or path.stem[:2] != "00", "the verdict"
    for number, stem, anchor in links:
        cells = read(ROOT / "chapters" / f"{stem or path.stem}.ipynb").cells
        heads = [i for i, cell in enumerate(cells) if re.search(r"^#+ ", cell.source, re.MULTILINE)]
        (at,) = [i for i in heads if f"# {anchor.replace('-', ' ')}" in cells[i].source.replace("-", " ")]
        section = cells[at : min((i for i in heads if i > at), default=len(cells))]
        assert number in shown(nbformat.from_dict({"cells": section})), (number, stem, anchor)


@EVERY_CHAPTER
def test_every_decimal_in_prose_was_printed_by_a_cell(path):
    notebook = read(path)
    printed = shown(notebook)
    for text in markdown(notebook):
        for number in re.findall(r"\d+\.\d+", NOT_A_MEASUREMENT.sub(" ", text)):
            assert number in printed, f"{number} stands in prose and in no output: {text[:80]!r}"


NAMES_WITH_NUMBERS = re.compile(
    r"<[^>]*>|\b(?:chapters?|tables?|figures?) \d+(?:(?:,| and| to) \d+)*|\b(?:19|20)\d\d\b"
    r"|[A-Za-z]+\d+|\b\d+th\b|^\d\. ",
    re.MULTILINE,
)


@pytest.mark.parametrize("folder", ["chapters", "chapters/evidence"])
def test_every_number_in_the_prose_of_the_benchmark_stands_in_its_cells(folder):
    """Not decimals alone: chapter 10 quotes a file, which may be replaced."""
    notebook = read(ROOT / folder / "10_benchmark.ipynb")
    cells = shown(notebook) + "\n".join(cell.source for cell in code(notebook))
    known = set(re.findall(r"\d+(?:\.\d+)?", cells.replace(",", "")))
    lessons = markdown(notebook)[1:-1]
    assert len(lessons) > 20
    for text in lessons:
        plain = NAMES_WITH_NUMBERS.sub(" ", NOT_A_MEASUREMENT.sub(" ", text))
        for number in re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", plain):
            assert number.replace(",", "") in known, f"{number} stands in no cell: {text[:80]!r}"


def minutes(path):
    """How long a chapter takes, counted as CONTRIBUTING.md says."""
    cells = read(path).cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    runs = [cell for cell in cells if cell.cell_type == "code"]
    live = {str(out.data[LIVE]) for cell in runs for out in cell.outputs if LIVE in out.get("data", {})}
    pictures = len(live) + sum(text.count("<video") for text in texts)
    exercises = sum(e.minutes for e in EXERCISES.values() if e.id.split(".")[0] == str(int(path.stem[:2])))
    return sum(len(text.split()) for text in texts) / 200 + len(runs) / 3 + 2 * pictures + exercises + 3


@EVERY_CHAPTER
def test_the_minutes_that_a_chapter_names_are_those_of_its_parts(path):
    said = re.search(r"^\*\*[^*]+\?\*\* · (\d+) minutes$", markdown(read(path))[0], re.MULTILINE)[1]
    assert int(said) == pytest.approx(minutes(path), abs=3), "to the next five"


def test_a_listing_is_the_source_and_fits_a_screen():
    assert listing(read)._repr_markdown_().startswith("```python\ndef read(path):\n    ")
    with pytest.raises(ValueError, match=f"expected at most {LONGEST}"):
        listing(*[read] * 20)


BUDGET = {  # chapter -> words
    **{"00": 1873, "01": 3100, "02": 2750, "03": 2850, "04": 3050, "05": 2900, "06": 4250},
    **{"07": 2500, "08": 4000, "09": 3700, "10": 3150, "11": 3200, "12": 3850, "13": 3900, "14": 3150},
}
NO_WORDS = re.compile(
    r"```.*?```|!\[.*?\]\(.*?\)|\]\([^)]*\)|<[^>]+>", re.DOTALL
)  # code, pictures, addresses, HTML


def words(text):
    return len(re.findall(r"\S*\w\S*", NO_WORDS.sub(" ", text)))


@EVERY_CHAPTER
def test_a_chapter_keeps_to_its_budget_of_words(path):
    assert words("Two words ![none](here.png) `and` three: [of them](there.md), <b>bold</b>") == 7
    assert sum(map(words, markdown(read(path)))) <= BUDGET[path.stem[:2]]


def test_the_main_line_keeps_to_46_000_words():
    assert sum(BUDGET.values()) - BUDGET["11"] <= 46_000, "chapter 11 is an appendix"


@EVERY_CHAPTER
def test_every_prediction_is_a_bet_whose_answer_a_cell_shows(path):
    cells, number = read(path).cells, str(int(path.stem[:2]))
    asked = [cells[i + 1].source for i, cell in enumerate(cells) if "**Predict.**" in cell.source]
    bets = bets_of(path.stem[3:])
    assert asked == [f'bet("{bet.id}")' for bet in bets]
    assert [bet.id for bet in bets] == [f"{number}{letter}" for letter in "abcdefghijkl"[: len(bets)]] != []
    assert [cell.source for cell in code(read(path))].count(f'bets("{path.stem[:2]}")') == 1
    for bet in bets:
        assert 3 <= len(bet.options) <= 4 and len(set(bet.options)) == len(bet.options), bet.id
        assert {bet.right, bet.paper or bet.right, bet.ours or bet.right} <= {*bet.options}, bet.id
        for figure in re.findall(r"\d+\.\d+", bet.right):
            assert figure in shown(read(path)), f"{bet.id}: {figure} is in no output"


def test_the_right_answer_of_a_bet_has_no_favourite_place():
    every = [bet for path in CHAPTERS for bet in bets_of(path.stem[3:])]
    at = [bet.options.index(bet.right) for bet in every]
    assert max(map(at.count, range(3))) < 0.5 * len(every)


@EVERY_CHAPTER
def test_a_reader_in_a_hurry_is_told_how_far_to_read(path):
    (hurry,) = (text for text in markdown(read(path)) if text.startswith("**In a hurry?** "))
    headings = re.findall(r"^#+ (.+)$", "\n".join(markdown(read(path))), re.MULTILINE)
    if path.stem[:2] in PATH:
        assert path.stem[:2] == "00" or any(f"“{heading}”" in hurry for heading in headings), hurry


@EVERY_CHAPTER
def test_beside_a_chapter_lies_its_evidence_and_each_leads_to_the_other(path):
    evidence = path.parent / "evidence" / path.name
    assert markdown(read(evidence))[0].startswith(
        f"# {markdown(read(path))[0].splitlines()[0][2:]}: the evidence"
    )
    assert f"](../{path.name}" in markdown(read(evidence))[0]
    assert f"](evidence/{path.name}" in "\n".join(markdown(read(path)))


def test_the_table_of_the_readme_has_the_minutes_of_the_chapters():
    heads = {path.stem[:2]: markdown(read(path))[0] for path in CHAPTERS}
    said = {number: re.search(r"· (\d+) minutes$", head, re.MULTILINE)[1] for number, head in heads.items()}
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"^\| (\d\d) \|[^|]+\|[^|]+\| (\d+) \|", page, re.MULTILINE)) == said
