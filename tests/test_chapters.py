"""Every chapter keeps the rhythm, shows what it claims, and reads well where nothing can be run."""

import json
import re
from itertools import takewhile
from pathlib import Path

import nbformat
import pytest
from slides import slide_type, slides

ROOT = Path(__file__).parents[1]
CHAPTERS = sorted((ROOT / "chapters").glob("[0-9][0-9]_*.ipynb"))
NOTEBOOKS = CHAPTERS + sorted((ROOT / "solutions").glob("*.ipynb"))
EXCUSES = {"nbval-ignore-output"}  # the only way out of strict comparison, for times and machines:
REASONS = (
    "perf_counter",
    "median_seconds",
    "samples(",
    "_ceiling(",
    "get_num_threads",
    "doctor()",
    "memory_gb()",
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


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_keeps_the_rhythm(path):
    number, texts = path.stem[:2], markdown(read(path))
    title = texts[0]
    assert title.startswith(f"# {number} · ")
    assert re.search(r"^\*\*[^*]+\?\*\* · \d+ minutes$", title, re.M), "one question, and the minutes"
    assert len(re.findall(r"^- ", title, re.M)) == 3 and "You need" in title
    everything = "\n".join(texts)
    assert everything.count("**Predict.**") >= 2
    assert f'quiz("{number}")' in "\n".join(cell.source for cell in code(read(path)))
    (summary,) = [text for text in texts if text.startswith("## Summary")]
    assert len(re.findall(r"^\d\. ", summary, re.M)) == 5
    assert "### Further reading" in texts[-1]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_notebook_keeps_to_its_format(path):
    nbformat.validate(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_outputs_are_committed_in_order_and_without_errors(path):
    cells = code(read(path))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [
        output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"
    ]
    assert "widgets" not in read(path).metadata


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_nine_cells_in_ten_show_what_they_did(path):
    cells = [cell for cell in code(read(path)) if not cell.source.startswith(("import", "from"))]
    silent = [cell.source for cell in cells if not cell.outputs]
    assert len(silent) <= len(cells) / 10, silent


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_cells_are_short(path):
    own = code(read(path))[1:]  # the first is the same in all chapters
    cells = [cell for cell in own if "whole" not in cell.metadata.get("tags", [])]
    lengths = sorted(len(re.findall(r"^.*\S", cell.source, re.MULTILINE)) for cell in cells)
    assert lengths[len(lengths) // 2] <= 4 and lengths[-1] <= 15


FOLDED_ANSWER = "<details><summary>Answer</summary>"


def answer_to(following):
    """The code cells that answer a prediction, given the cells after it; none if a fold of prose answers it.

    They are the first code cells that come, up to the next prose; an exercise on the way is none of them.
    """
    cells = [cell for cell in following if not (cell.cell_type == "code" and "check(" in cell.source)]
    starts = (i for i, c in enumerate(cells) if c.cell_type == "code" or c.source.startswith(FOLDED_ANSWER))
    return list(takewhile(lambda cell: cell.cell_type == "code", cells[next(starts) :]))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_prediction_stays_a_prediction(path):
    """Its stored answer is folded in the notebook; a slide that asks shows no more until a key is pressed."""
    cells = [cell for cell in read(path).cells if slide_type(cell) != "notes"]
    answers = []
    for i, cell in enumerate(cells):
        if cell.cell_type == "markdown" and "**Predict.**" in cell.source:
            answers += answer_to(cells[i + 1 :])
            if slide_type(cell) != "skip":
                then = next(after for after in cells[i + 1 :] if slide_type(after) != "skip")
                assert slide_type(then) in ("fragment", "slide"), f"shown with its question: {then.source}"
    for cell in code(read(path)):
        tagged = "answer" in cell.metadata.get("tags", [])
        hidden = cell.metadata.get("jupyter", {}).get("outputs_hidden", False)
        assert (tagged, hidden) == (cell in answers, cell in answers), cell.source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_exercises_come_in_the_order_of_their_numbers(path):
    numbers = [
        float(id) for cell in code(read(path)) for id in re.findall(r'^check\("([\d.]+)"', cell.source, re.M)
    ]
    assert numbers and numbers == sorted(set(numbers))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_what_a_slide_marks_is_printed_once(path):
    for cell in code(read(path)):
        for mark in cell.metadata.get("slideshow", {}).get("mark", []):
            printed = "".join(
                out.get("text", "") or out.get("data", {}).get("text/plain", "") for out in cell.outputs
            )
            assert len(re.findall(mark, printed, re.MULTILINE)) == 1, f"{mark} in {printed}"


RAW = re.compile(r"tensor\(|torch\.Size|(?<!\w)[\[({]['\"]|[\[(](?:True|False)\b")


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_slides_show_sentences_and_tables_and_no_raw_values(path):
    """A value that Python would merely repeat says nothing to a room: it is printed with what it means."""
    for cell in (cell for slide in slides(read(path)) for cell in slide if cell.cell_type == "code"):
        for output in cell.outputs:
            assert set(output.get("data", {})) != {"text/plain"}, f"a bare value: {cell.source}"
            assert not RAW.search(output.get("text", "")), f"a raw value is printed: {cell.source}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_pictures_have_alternative_text_and_come_from_this_repository(path):
    notebook = read(path)
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
    r"arXiv:? ?\d{4}\.\d+|sections? [\d.]+|[Ee]xercises? [\d.]+(?: and [\d.]+)?|^#+ .*$|`[^`]*`|\$[^$]*\$",
    re.MULTILINE,
)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
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


def test_every_number_in_the_prose_of_the_benchmark_stands_in_its_cells():
    """Not decimals alone: chapter 10 quotes a file, which may be replaced."""
    notebook = read(ROOT / "chapters/10_benchmark.ipynb")
    cells = shown(notebook) + "\n".join(cell.source for cell in code(notebook))
    known = set(re.findall(r"\d+(?:\.\d+)?", cells.replace(",", "")))
    lessons = [text for text in markdown(notebook)[1:-1] if "For the teacher" not in text]
    assert len(lessons) > 20
    for text in lessons:
        plain = NAMES_WITH_NUMBERS.sub(" ", NOT_A_MEASUREMENT.sub(" ", text))
        for number in re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", plain):
            assert number.replace(",", "") in known, f"{number} stands in no cell: {text[:80]!r}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_only_times_and_machines_are_excused_from_comparison(path):
    for cell in code(read(path)):
        excused = [tag for tag in cell.metadata.get("tags", []) if tag.startswith(("nbval", "raises"))]
        if excused:
            assert set(excused) <= EXCUSES
            assert any(reason in cell.source for reason in REASONS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_machine_and_no_address_outside_stands_in_a_notebook(path):
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"/home/\w+|/root/|/Users/\w+|C:\\\\", text)
    assert not re.findall(r"""src=\\?["']https?:""", text)
