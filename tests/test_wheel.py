"""The package works where nothing else of the repository is: its wheel, unpacked in an empty folder."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close

from linformer_from_scratch.pretrained.sentence_encoder import fitted_encoder
from linformer_from_scratch.pretrained.weights import model_folder

ROOT = Path(__file__).parents[1]
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "linformer_from_scratch")

USE = """
import pkgutil
from importlib import import_module
from pathlib import Path

import linformer_from_scratch as package

for module in pkgutil.walk_packages(package.__path__, "linformer_from_scratch."):
    if not module.name.endswith("__main__"):
        import_module(module.name)

from linformer_from_scratch import data, widgets
from linformer_from_scratch.course import files
from linformer_from_scratch.exercises import check
from linformer_from_scratch.attention import causal_mask
from linformer_from_scratch.course.ledger import ledger
from linformer_from_scratch.pretrained import SENTENCES, attention_maps, stored_heads
from linformer_from_scratch.course.results import RESULTS, read_rows

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
def installed(tmp_path_factory):
    """A folder with the package as its wheel carries it."""
    sources, wheels, folder = (tmp_path_factory.mktemp(name) for name in ("sources", "wheels", "installed"))
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, sources / name)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    run = subprocess.run([*command, "-w", wheels, sources], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    (wheel,) = wheels.iterdir()
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def test_every_file_of_the_package_is_in_the_wheel(installed):
    def of(folder):
        found = (folder / "linformer_from_scratch").rglob("*")
        return {str(p.relative_to(folder)) for p in found if p.is_file() and "__pycache__" not in p.parts}

    assert of(installed) == of(ROOT)


def run_beside(installed, code, folder):
    """What a program prints that finds the wheel's package first."""
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", code]
    environment = os.environ | {"PYTHONPATH": path}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_a_wheel_needs_nothing_else_of_the_repository(installed, tmp_path):
    """Every module imports; text, rows, claims and maps are read; widgets draw; exercises check."""
    said = run_beside(installed, USE, tmp_path)
    assert Path(said.splitlines()[-1]).is_relative_to(installed)


def test_the_fitted_encoder_comes_with_the_wheel(installed, tmp_path):
    if model_folder() is None:  # found by its path: nothing of its code is imported
        pytest.skip("the pretrained model is not installed")
    example = next(block for block in blocks(ROOT / "README.md") if "fitted_encoder" in block)
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


def blocks(path):
    """The Python of a page."""
    return re.findall(r"```python\n(.+?)```", path.read_text(encoding="utf-8"), re.DOTALL)
