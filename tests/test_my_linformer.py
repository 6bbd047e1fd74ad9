"""One learner, from an empty folder to a pretrained encoder with a layer of their own, in real kernels.

The solutions are the learner. Of each chapter those cells are run that solve a part or use one, and what
they need of the cells above.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from linformer_from_scratch.course.exercises import PARTS, STEMS
from linformer_from_scratch.course.exercises.grader.submissions import needed_by

pytestmark = pytest.mark.slow  # nine chapters, each in a kernel of its own

ROOT = Path(__file__).parents[1]
USES = (  # where later cells run what the learner has built
    *("01-096", "01-097", "02-055", "08-136", "08-137", "08-139", "08-140", "08-141"),
    *("09-135", "09-136", "10-114", "10-115", "11-101", "12-118", "13-101"),
)
USING = {id[:2] for id in USES}
SOLVING = {f"{int(exercise.id.split('.')[0]):02}" for exercise in PARTS.values()}


def cells(folder, number):
    path = ROOT / folder / f"{number}_{STEMS[int(number)]}.ipynb"
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def checked(cell):
    """The part that a cell checks."""
    ids = re.findall(r"""^check\(["']([\d.]+)["']""", cell.source, re.MULTILINE)
    return next((name for name, exercise in PARTS.items() if exercise.id in ids), None)


def shortened(number):
    """A chapter with its parts solved: only the cells that solve or use one, and what they need."""
    solved = {checked(cell): cell for cell in cells("solutions", number)}
    before, short = [], []
    for cell in cells("chapters", number):
        part = checked(cell)
        if part or cell.id in USES:
            source = solved[part].source if part else cell.source
            needed = needed_by(ast.parse(source).body, before)
            short += map(nbformat.v4.new_code_cell, ["\n".join(map(ast.unparse, needed)), source])
            before = [statement for statement in before if statement not in needed]
        else:
            before += ast.parse(cell.source).body
    return nbformat.v4.new_notebook(cells=short)


def run(number, folder):
    """What its cells print and return, and the texts of what is shown."""
    notebook = shortened(number)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return "\n".join(o.get("text") or o.get("data", {}).get("text/plain", "") for o in outputs)


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Number -> what that chapter says; "folder" -> where it all happened."""
    folder = tmp_path_factory.mktemp("course") / "chapters"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LINFORMER_PROGRESS", str(folder / ".progress.json"))
        chapters = {number: run(number, folder) for number in sorted(SOLVING | USING)}
    return chapters | {"folder": folder}


def test_every_part_passes_and_is_kept_in_the_order_of_the_course(said):
    for name, exercise in PARTS.items():
        number = f"{int(exercise.id.split('.')[0]):02}"
        assert f"✓ {exercise.id} passed, kept as {name} in my_linformer.py" in said[number]
    text = (said["folder"] / "my_linformer.py").read_text(encoding="utf-8")
    assert re.findall(r"^# ---- part (\w+):", text, re.MULTILINE) == list(PARTS)


def test_the_file_is_a_module(said):
    code = "import my_linformer; print(my_linformer.__doc__.split(':')[0])"
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=said["folder"], capture_output=True, encoding="utf-8")
    assert ran.stdout == "My Linformer\n" and ran.stderr == ""


def test_nothing_of_the_package_stands_in(said):
    for number in USING:
        assert "stands in" not in said[number] and ": yours, " in said[number], number


def test_chapter_08_trains_it(said):
    losses = re.findall(r"held-out loss ([\d.]+) of yours, ([\d.]+) of ours", said["08"])
    assert len(losses) == 5 and all(own == theirs for own, theirs in losses)
    assert float(losses[-1][0]) < float(losses[0][0])


def test_chapter_09_attends_with_its_step(said):
    assert said["09"].strip().endswith("tile by tile and with the whole map: the same output, to 1e-5")


def test_chapter_10_times_it(said):
    ratios = dict(re.findall(r"yours over (.+?): ([\d.]+)", said["10"]))
    assert {"stored maps", "fused exact", "Linformer (EX)W"} <= ratios.keys()
    assert 0.3 < float(ratios["Linformer (EX)W"]) < 3


def test_chapter_11_cuts_it(said):
    agreed = "two ranks and one process agree, to 1e-5: output, gradient of x, gradient of E, gradient of F"
    assert said["11"].splitlines()[-1] == agreed


def test_chapter_12_puts_it_into_the_pretrained_encoder(said):
    said_of = re.findall(r"n = (\d+): the vectors (\w+) with those of the package", said["12"])
    assert said_of == [("512", "agree"), ("128", "agree")]


def test_chapter_13_looks_for_a_leak_in_it(said):
    assert said["13"].splitlines()[-1] == "worst leak for n = 29 … 32: [0.0, 0.0, 0.0, 0.0]"
