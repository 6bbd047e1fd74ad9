"""The package works where nothing else of the repository is: its wheel, and chapters alone with it."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import nbformat
import pytest
import torch
import wheel
from course import python_of
from lectures import chapters, numbered
from nbformat.v4 import new_code_cell
from test_elsewhere import STILL, WIDGET_VIEW, sentence
from torch.testing import assert_close

from linformer_from_scratch.course.widgets.live import LIVE
from linformer_from_scratch.pretrained.sentence_encoder import fitted_encoder
from linformer_from_scratch.pretrained.weights import model_folder

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
CHAPTERS = ROOT / "chapters"
PAGE = ROOT / "tools/book/pages/use.md"

USE = """
import pkgutil
from importlib import import_module
from pathlib import Path

import linformer_from_scratch as package

for module in pkgutil.walk_packages(package.__path__, "linformer_from_scratch."):
    if not module.name.endswith("__main__"):
        import_module(module.name)

from linformer_from_scratch import data
from linformer_from_scratch.course import widgets
from linformer_from_scratch.common import files
from linformer_from_scratch.course.exercises import check
from linformer_from_scratch.attention import causal_mask
from linformer_from_scratch.course.ledger import ledger
from linformer_from_scratch.pretrained import SENTENCES, attention_maps, stored_heads
from linformer_from_scratch.course.recorded import RESULTS, read_rows

assert files.PACKAGE == Path(package.__file__).parent
assert data.documents() and data.docstrings() and ledger() and stored_heads()
assert all(read_rows(path.stem) for path in RESULTS.glob("*.json")) and len([*RESULTS.iterdir()]) > 10
assert attention_maps(SENTENCES[0]).tokens
for name in widgets.__all__:
    assert getattr(widgets, name)().still().startswith(b"\\x89PNG"), name
assert check("1.1", causal_mask).status == "failed"
print(package.__file__)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel."""
    return wheel.build(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """A folder with the package as its wheel carries it."""
    folder = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(built).extractall(folder)
    return folder


def test_every_file_of_the_package_is_in_the_wheel(installed):
    def of(folder):
        found = (folder / "linformer_from_scratch").rglob("*")
        return {str(p.relative_to(folder)) for p in found if p.is_file() and "__pycache__" not in p.parts}

    assert of(installed) == of(ROOT)


def test_the_wheel_is_as_large_as_the_page_says(built):
    (said,) = re.findall(r"takes ([\d.]+) MB", PAGE.read_text(encoding="utf-8"))
    assert built.stat().st_size / 1e6 == pytest.approx(float(said), abs=0.15) and float(said) < 7


def run_beside(installed, code, folder):
    """What a program prints that finds the wheel's package first."""
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", code]
    environment = os.environ | {"PYTHONPATH": path}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_a_wheel_needs_nothing_else_of_the_repository(installed, tmp_path):
    """Every module imports; text, rows, claims and maps are read; widgets draw; exercises check."""
    said = run_beside(installed, USE, tmp_path)
    assert Path(said.splitlines()[-1]).is_relative_to(installed)


def test_the_fitted_encoder_comes_with_the_wheel(installed, tmp_path):
    if model_folder() is None:  # found by its path: nothing of its code is imported
        pytest.skip("the pretrained model is not installed")
    example = next(block for block in blocks(PAGE) if "fitted_encoder(" in block)
    code = example + "\nprint(vectors.tolist())"
    answer, vectors = run_beside(installed, code, tmp_path).splitlines()
    assert answer == "The bank raised its rates."
    texts = ["Rates rose.", "The bank raised its rates.", "The cat chased its own tail."]
    assert_close(torch.tensor(json.loads(vectors)), fitted_encoder(128).encode(texts), atol=1e-6, rtol=0)


def test_the_cards_example_runs_as_printed(installed, tmp_path):
    if model_folder() is None:
        pytest.skip("the pretrained model is not installed")
    (example,) = blocks(ROOT / "linformer_from_scratch/data/shipped/minilm_linformer_k128.md")
    assert "tensor([[1.0" in run_beside(installed, example, tmp_path)


def environment(folder):
    """The Python of a new virtual environment with all that this one has, but for what it only links to.

    A .pth file names the folder of packages; what lies there as .pth, as the repository's does, is not read.
    """
    venv.create(folder, symlinks=os.name != "nt")
    site = sysconfig.get_path("purelib", "venv", {"base": str(folder)})
    packages = sysconfig.get_path("purelib"), sysconfig.get_path("platlib")
    Path(site, "packages.pth").write_text("\n".join(packages), encoding="utf-8")
    return python_of(folder)


def pip(python, *words):
    """What pip prints that works on another environment, without a network and without settings."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    command = [sys.executable, "-m", "pip", "--python", python, *words, "--no-index", "--no-input"]
    variables |= {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    run = subprocess.run(list(map(str, command)), env=variables, capture_output=True, encoding="utf-8")
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module")
def without(tmp_path_factory):
    """The Python of an environment that has everything but the package."""
    return environment(tmp_path_factory.mktemp("without"))


def test_a_chapter_that_installs_the_wheel_first_runs_alone_in_an_empty_folder_as_on_kaggle(built, tmp_path):
    """No cell fails. Its live pictures are stills there; its quiz is not. All chapters: `make test-wheel`."""
    page = PAGE.with_name("elsewhere.md").read_text(encoding="utf-8")
    (line,) = re.findall('%pip install .+? @ ADDRESS"', page)
    notebook = nbformat.read(CHAPTERS / "01_attention.ipynb", as_version=4)
    notebook.cells.insert(0, new_code_cell(line.replace("ADDRESS", built.as_uri())))
    nbformat.write(notebook, tmp_path / "01_attention.ipynb")
    (tmp_path / "empty").mkdir()
    variables = {"KAGGLE_KERNEL_RUN_TYPE": "Interactive", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    python = environment(tmp_path / "bare")
    notebook = wheel.run_alone(tmp_path / "01_attention.ipynb", python, tmp_path / "empty", **variables)
    outputs = [output for cell in notebook.cells[1:] for output in cell.get("outputs", [])]
    assert outputs[0].text == f"{STILL}\n"
    shown = [{*output.get("data", {})} for output in outputs]
    live = [kinds for kinds in shown if LIVE in kinds]
    assert live and all(WIDGET_VIEW not in kinds and "image/png" in kinds for kinds in live)
    assert sum(WIDGET_VIEW in kinds for kinds in shown) == 1


def test_the_command_runs_the_chapters_that_it_is_given():
    found = [numbered(chapters(), numbers) for numbers in (["06", "01"], [])]
    assert [path.stem for path in found[0]] == ["01_attention", "06_linformer"] and len(found[1]) == 15
    with pytest.raises(SystemExit, match=r"^no name begins with 44; names look like 00_start_here.ipynb$"):
        numbered(chapters(), ["01", "44"])


def test_without_the_package_a_chapter_stops_at_its_first_cell_and_says_so(without, tmp_path):
    with pytest.raises(SystemExit) as raised:
        wheel.run_alone(CHAPTERS / "01_attention.ipynb", without, tmp_path)
    assert str(raised.value).startswith("01_attention.ipynb: ") and str(raised.value).endswith(sentence())


def test_pip_keeps_what_is_there(without, built):
    """Told to install the wheel with all that it needs, it would install the wheel."""
    report = json.loads(pip(without, "install", "--dry-run", "--quiet", "--report", "-", built))
    assert [item["metadata"]["name"] for item in report["install"]] == ["linformer-from-scratch"]


def blocks(path):
    """The Python of a page."""
    return re.findall(r"```python\n(.+?)```", path.read_text(encoding="utf-8"), re.DOTALL)
