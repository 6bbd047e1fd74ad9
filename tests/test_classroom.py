"""What a class gets holds no answer: every file is opened, those inside wheels and handouts, too."""

import ast
import html
import inspect
import io
import json
import re
import sys
import textwrap
import zipfile
from pathlib import Path

import classroom
import nbformat
import pytest
from lectures import chapters, without_answers
from pypdf import PdfReader

from linformer_from_scratch.common.files import PACKAGE
from linformer_from_scratch.course.exercises import EXERCISES
from linformer_from_scratch.course.exercises.engine.standalone import bound, used

ROOT = Path(__file__).parents[1]
CHECK = re.compile(r'^check\("(\d+\.\d+)"', re.MULTILINE)
OURS = re.compile(r"<summary>Our version</summary>\s*```python\n(.*?)```", re.DOTALL)
TAG = re.compile(r"<[^>]*>")
TOLD = {"6.7"}  # chapter 06 shows the layer, cell 06-168, and then asks to write it with the listing closed


def squeezed(text):
    """Without comments and white space, its quotation marks alike."""
    return re.sub(r"\s+", "", re.sub(r"#[^\n]*", "", text)).replace("'", '"')


def bodies(source):
    """Those of all functions that do anything, apart from a class's __init__, which exercises give."""
    lines = source.splitlines()
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef) and function.name != "__init__":
            body = function.body[bool(ast.get_docstring(function)) :]
            text = "\n".join(lines[body[0].lineno - 1 : function.end_lineno]) if body else ""
            yield squeezed(text)


def code_of(path):
    return [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def answers():
    """Bodies, and which exercises they answer: solutions, references, and what chapters fold as ours."""
    for chapter in chapters():
        for source in code_of(ROOT / "solutions" / chapter.name):
            yield from ((body, id) for id in CHECK.findall(source) for body in bodies(source))
        for cell in nbformat.read(chapter, as_version=4).cells:
            yield from ((body, "ours") for code in OURS.findall(cell.source) for body in bodies(code))
    for id, exercise in EXERCISES.items():
        yield from ((body, id) for body in bodies(textwrap.dedent(inspect.getsource(exercise.reference))))


def sentences():
    """What solutions say in words, beside their code."""
    for chapter in chapters():
        for cell in nbformat.read(ROOT / "solutions" / chapter.name, as_version=4).cells[1:]:
            if cell.cell_type == "markdown":
                told = (words(one) for one in re.split(r"(?<=[.?!:])\s+", cell.source))
                yield from (one for one in told if len(one) > 50)


def words(text):
    """Without white space and what Markdown marks."""
    return re.sub(r"[\s`*$]", "", text)


ANSWERS, SENTENCES = [*answers()], [*sentences()]


def texts(name, data):
    """All that can be read in a file, or in the files inside it: where, what."""
    end = Path(name).suffix
    if end in (".whl", ".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for inside in archive.namelist():
                yield from texts(f"{name}!{inside}", archive.read(inside))
    elif end == ".pdf":
        yield name, "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(data)).pages)
    else:
        text = data.decode("utf-8", errors="replace")
        yield name, text
        if end == ".ipynb":
            yield name, "\n".join(strings(json.loads(text)))
        if end in (".js", ".json"):
            yield name, text.replace("\\n", "\n").replace('\\"', '"')
        if end in (".html", ".js"):
            yield name, html.unescape(TAG.sub("", text))


def strings(part):
    """All texts of a notebook, the lines of a cell together, and what they show where they are HTML."""
    if isinstance(part, dict):
        part = list(part.values())
    if isinstance(part, list):
        whole = ["".join(part)] if part and all(isinstance(one, str) for one in part) else []
        return whole + [text for one in part for text in strings(one)]
    return [part, html.unescape(TAG.sub("", part))] if isinstance(part, str) else []


def answered(name, data):
    """Where in a file which exercises are answered."""
    for where, text in texts(name, data):
        code, told = squeezed(text), words(text)
        yield from ((where, id) for answer, id in ANSWERS if answer and answer in code)
        yield from ((where, one) for one in SENTENCES if one in told)


def test_every_exercise_has_an_answer_that_would_be_found():
    assert {*EXERCISES} < {id for _, id in ANSWERS} and len(SENTENCES) > 100
    for chapter in chapters():
        notebook = (ROOT / "solutions" / chapter.name).read_bytes()
        asked = {id for source in code_of(chapter) for id in CHECK.findall(source)}
        assert asked <= {id for _, id in answered("it.ipynb", notebook)}, "our own look sees them there"


@pytest.mark.parametrize("chapter", chapters(), ids=lambda path: path.stem)
def test_a_chapter_for_a_class_asks_all_answers_nothing_and_still_runs(chapter):
    before, after = nbformat.read(chapter, as_version=4), without_answers(chapter)
    left = {id for _, id in answered("it.ipynb", nbformat.writes(after).encode())}
    assert left == (TOLD if chapter.stem == "06_linformer" else set())
    assert "solutions/" not in nbformat.writes(after)
    assert all("Our version" not in cell.source for cell in after.cells)
    code = [cell.source for cell in after.cells if cell.cell_type == "code"]
    assert CHECK.findall("\n".join(code)) == CHECK.findall("\n".join(code_of(chapter))) != []
    kept, all_of_it = ([s for one in some for s in ast.parse(one).body] for some in (code, code_of(chapter)))
    given, once = (set().union(*map(bound, some)) for some in (kept, all_of_it))
    assert used(kept) - given <= used(all_of_it) - once, "no cell uses what was taken out"
    assert len(after.cells) > 0.9 * len(before.cells)


@pytest.mark.slow
def test_no_student_file_but_the_package_holds_an_answer_and_the_teachers_hold_all(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["classroom.py", "--out", str(tmp_path)])
    classroom.main()
    student, archive = tmp_path / "student", tmp_path / "teacher.zip"
    files = [path for path in student.rglob("*") if path.is_file()]
    ends = {path.suffix for path in files}
    assert {".ipynb", ".html", ".js", ".whl"} <= ends and sorted(tmp_path.iterdir()) == [student, archive]
    assert {"README.md", "book", "chapters"} == {path.name for path in student.iterdir()}
    looked_at = ((path.relative_to(student).as_posix(), path.read_bytes()) for path in files)
    found = {one for name, data in looked_at for one in answered(name, data)}

    wheel = {(where.partition("!")[2], id) for where, id in found if ".whl!" in where}
    modules = {Path(inspect.getsourcefile(inspect.unwrap(one.reference))) for one in EXERCISES.values()}
    assert {where for where, _ in wheel} == {path.relative_to(PACKAGE.parent).as_posix() for path in modules}
    elsewhere = {(Path(where).stem, id) for where, id in found if ".whl!" not in where}
    assert elsewhere == {("06_linformer", id) for id in TOLD}
    for path in files:
        if path.suffix == ".html" and path.parent.name in ("chapters", "slides"):
            page = path.read_text(encoding="utf-8")
            assert "For the teacher ·" not in page and "Our version" not in page
    assert not [path for path in files if "teacher" in path.name or "solutions" in path.name]
    hints = (student / "book" / "chapters" / "06_linformer.html").read_text(encoding="utf-8")
    assert hints.count("<summary>Hint 1 of ") == 7

    with zipfile.ZipFile(archive) as whole:
        names = {*whole.namelist()}
        assert {"points.csv", "roster.csv", "book/teachers.html", "book/teacher/06_linformer.html"} <= names
        pages = [f"book/solutions/{path.stem}.html" for path in chapters()]
        assert {*EXERCISES} <= {id for page in pages for _, id in answered(page, whole.read(page))}
        assert {f"solutions/{path.name}" for path in chapters()} <= names


def test_a_folder_with_something_in_it_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "mine.txt").touch()
    monkeypatch.setattr(sys, "argv", ["classroom.py", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="has 1 files and folders; expected an empty folder"):
        classroom.main()
    assert [*tmp_path.iterdir()] == [tmp_path / "mine.txt"]
