"""The first cell of every chapter: it says what is missing, and readies other pages for live pictures."""

import ast
import json
import sys
import tomllib
import types
from pathlib import Path

import pytest
from IPython.core.formatters import DisplayFormatter
from lectures import chapters

from linformer_from_scratch.course import elsewhere
from linformer_from_scratch.course.elsewhere import STILL, WIDGET_VIEW
from linformer_from_scratch.course.exercises import quiz
from linformer_from_scratch.course.widgets import RankSlider

ROOT = Path(__file__).parents[1]
CHAPTERS = chapters()


def first_cell(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return next(cell for cell in cells if cell["cell_type"] == "code")


CELL = "".join(first_cell(CHAPTERS[0])["source"])


def sentence():
    """What the cell says where the package is missing."""
    (call,) = (node.exc for node in ast.walk(ast.parse(CELL)) if isinstance(node, ast.Raise))
    return ast.literal_eval(call.args[0])


@pytest.fixture
def shell(monkeypatch):
    """A notebook's way of showing things."""
    monkeypatch.delenv("KAGGLE_KERNEL_RUN_TYPE", raising=False)
    shell = types.SimpleNamespace(display_formatter=DisplayFormatter())
    monkeypatch.setattr(elsewhere, "get_ipython", lambda: shell)
    return shell


def shown(shell, widget):
    data, metadata = shell.display_formatter.format(widget)
    return {*data}, {*metadata}


def test_all_chapters_begin_with_the_same_cell_which_no_deck_shows():
    assert len(CHAPTERS) == 15
    for path in CHAPTERS:
        cell = first_cell(path)
        assert "".join(cell["source"]) == CELL, path.stem
        assert (cell["id"], cell["outputs"]) == (f"{path.stem[:2]}-here", [])
        assert cell["metadata"]["slideshow"] == {"slide_type": "skip"}


def test_the_cell_names_the_wheel_of_this_version_and_the_python_it_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    file = f"{project['name'].replace('-', '_')}-{project['version']}-py3-none-any.whl"
    assert f'%pip install "{file}[course]" ' in sentence()
    assert f"Python {project['requires-python'].removeprefix('>=')} or newer" in sentence()


def test_without_the_package_one_sentence_is_all(monkeypatch):
    monkeypatch.setitem(sys.modules, elsewhere.__name__, None)
    with pytest.raises(ModuleNotFoundError) as raised:
        exec(CELL, {})
    assert str(raised.value) == sentence() and raised.value.__suppress_context__


def test_on_ones_own_machine_nothing_is_done_and_nothing_said(shell, capsys):
    before = shown(shell, RankSlider())
    exec(CELL, {})
    assert shown(shell, RankSlider()) == before and WIDGET_VIEW in before[0]
    assert capsys.readouterr() == ("", "")


def test_colab_is_told_once_that_its_page_may_load_widgets(shell, monkeypatch, capsys):
    told = []
    output = types.SimpleNamespace(enable_custom_widget_manager=lambda: told.append("widgets"))
    monkeypatch.setitem(sys.modules, "google.colab", types.SimpleNamespace(output=output))
    monkeypatch.setitem(sys.modules, "google.colab.output", output)
    exec(CELL, {})
    assert told == ["widgets"] and capsys.readouterr() == ("", "")


def test_on_kaggle_live_pictures_stand_still_and_a_quiz_is_as_it_was(shell, monkeypatch, capsys):
    before = shown(shell, RankSlider()), shown(shell, quiz("04"))
    monkeypatch.setenv("KAGGLE_KERNEL_RUN_TYPE", "Interactive")
    exec(CELL, {})
    kinds, metadata = before[0]
    assert shown(shell, RankSlider()) == (kinds - {WIDGET_VIEW}, metadata) and "image/png" in kinds
    assert shown(shell, quiz("04")) == before[1] and WIDGET_VIEW in before[1][0]
    assert capsys.readouterr().out == f"{STILL}\n"


def test_outside_a_notebook_there_is_nothing_to_show(monkeypatch, capsys):
    monkeypatch.setenv("KAGGLE_KERNEL_RUN_TYPE", "Interactive")
    elsewhere.prepare()
    assert capsys.readouterr() == ("", "")
