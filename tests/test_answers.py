"""answers.py, in a live kernel: every answer is seen once, wherever in its cell it was asked for."""

import nbformat
import pytest
from nbclient import NotebookClient

from linformer_from_scratch.course.exercises import check
from linformer_from_scratch.course.exercises.engine import answers

SETUP = """
from linformer_from_scratch.course.exercises import check, hint, progress, quiz

def right(n, num_heads):
    return num_heads * n * n

def wrong(n, num_heads):
    return n
"""
PASSED, FAILED = "✓ 0.1 passed", "✗ 0.1 · "
SHOWN, RETURNED = ("display_data", PASSED), ("execute_result", PASSED)
CELLS = {  # source, and what is seen: the kind of output and how its text begins
    "last": ("check('0.1', right)", [("execute_result", PASSED)]),
    "not last": ("check('0.1', right)\nn = 1", [("display_data", PASSED)]),
    "before another value": ("check('0.1', right)\n7", [("execute_result", "7"), ("display_data", PASSED)]),
    "two": ("check('0.1', right)\ncheck('0.1', wrong)", [SHOWN, ("execute_result", FAILED)]),
    "in a loop": ("for f in (right, wrong):\n    check('0.1', f)", [SHOWN, ("display_data", FAILED)]),
    "assigned": ("result = check('0.1', right)", [("display_data", PASSED)]),
    "assigned and last": ("result = check('0.1', right)\nresult", [("execute_result", PASSED)]),
    "asked for again": ("result", [("execute_result", PASSED)]),
    "printed": ("print(check('0.1', right))", [("stream", PASSED)]),
    "before an error": ("check('0.1', right)\n1 / 0", [("error", ""), ("display_data", PASSED)]),
    "no such exercise": ("check('99.1', right)\nn = 1", [("display_data", "✗ 99.1 · There is no such")]),
    "a hint": ("hint('0.1')\nn = 1", [("display_data", "Hints for 0.1")]),
    "a quiz": ("quiz('00')\nn = 1", [("display_data", "Quiz 00")]),
    "progress": ("progress()\ncheck('0.1', right)", [("display_data", "00_start_here"), RETURNED]),
    "nothing": ("n = 1", []),
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """All cells, run one after the other in one kernel."""
    sources = SETUP, *(source for source, _ in CELLS.values())
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, sources)))
    path = str(tmp_path_factory.mktemp("kernel"))
    return NotebookClient(notebook, allow_errors=True, resources={"metadata": {"path": path}}).execute()


def begins(output):
    text = output.get("data", {}).get("text/plain", output.get("text", ""))
    return output.output_type, text


@pytest.mark.parametrize("name", CELLS)
def test_an_answer_is_seen_once(notebook, name):
    expected = CELLS[name][1]
    outputs = [begins(output) for output in notebook.cells[1 + list(CELLS).index(name)].outputs]
    assert [kind for kind, _ in outputs] == [kind for kind, _ in expected]
    for (_, text), (_, beginning) in zip(outputs, expected, strict=True):
        assert text.startswith(beginning)


def test_what_is_shown_late_is_shown_in_full(notebook):
    cells = (notebook.cells[1 + list(CELLS).index(name)] for name in ("last", "not last"))
    last, late = (cell.outputs[0].data for cell in cells)
    assert last == late and "<b>✓</b>" in late["text/html"]


def test_outside_of_notebooks_an_answer_is_a_value_and_nothing_is_printed(capsys):
    result = check("0.1", lambda n, num_heads: n)
    assert capsys.readouterr().out == "" and answers._unseen == []
    assert repr(result) == result.as_text() and result._repr_html_() == result.as_html()
