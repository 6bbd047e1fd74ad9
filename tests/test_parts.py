"""What passes as a part is kept in my_linformer.py, stands there by itself, and is what yours() gives."""

import linecache
import math
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from linformer_from_scratch.course.exercises import EXERCISES, PARTS, check, yours
from linformer_from_scratch.course.exercises.engine import parts
from linformer_from_scratch.course.exercises.engine.standalone import standalone
from linformer_from_scratch.course.exercises.grader.submissions import attempts

ATTENTION = """
def attend(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(-1).nan_to_num(0.0) @ v
"""
LINFORMER = """
def compressed(q, k, v, E, F):
    return attend(q, E[..., : k.size(-2)] @ k, F[..., : v.size(-2)] @ v)
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("LINFORMER_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "my_linformer.py"


@pytest.fixture
def cell():
    """Runs a cell as a notebook does: its source is known to linecache, its names to the later cells."""
    names = {"__name__": "__main__", "math": math}

    def run(source):
        path = f"<cell {len(names)} {hash(source)}>"
        linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
        exec(compile(source, path, "exec"), names)
        return names

    return run


NOT_KEPT = " passed, not kept in my_linformer.py: "


def test_what_passes_is_kept_with_its_imports_and_given_by_yours(file, cell, capsys):
    result = check("1.6", cell(ATTENTION)["attend"])
    assert result.message == "1.6 passed, kept as attention in my_linformer.py"
    assert file.read_text(encoding="utf-8") == (
        f"{parts.HEAD}\n\n# ---- part attention: attend ----\n\nimport math\n\n{ATTENTION}"
    )
    mine = yours("attention")
    assert capsys.readouterr().out == "attention: yours, attend of my_linformer.py\n"
    x = torch.randn(2, 3, 4)
    torch.testing.assert_close(mine(x, x, x), PARTS["attention"].reference(x, x, x))


def test_the_package_stands_in_where_a_part_is_open(file, capsys):
    assert yours("attention") is PARTS["attention"].reference
    said = "attention: exercise 1.6 is open, the package's scaled_dot_product_attention stands in\n"
    assert capsys.readouterr().out == said
    assert yours("attention", quiet=True) and capsys.readouterr().out == ""
    with pytest.raises(ValueError, match="there is no part 'wheels'; the parts are attention, multi_head"):
        yours("wheels")


def test_what_fails_and_what_is_the_packages_own_is_not_kept(file):
    check("1.6", lambda q, k, v, mask=None: v)
    check("1.6", PARTS["attention"].reference)
    check("0.1", EXERCISES["0.1"].reference)
    assert not file.exists()


@pytest.mark.parametrize(
    ("module", "ours"), [("linformer_from_scratch.attention", True), ("linformer_from_scratch_ana", False)]
)
def test_the_packages_own_is_what_is_in_the_package_and_nothing_else(file, cell, module, ours):
    attempt = cell(ATTENTION)["attend"]
    attempt.__module__ = module
    said = "1.6 passed" if ours else "1.6 passed, kept as attention in my_linformer.py"
    assert check("1.6", attempt).message == said
    assert file.exists() is not ours


def test_a_part_solved_again_replaces_the_old_one_which_stays_as_a_comment(file, cell):
    check("1.6", cell(ATTENTION)["attend"])
    first = file.read_text(encoding="utf-8")
    check("1.6", cell(ATTENTION)["attend"])
    assert file.read_text(encoding="utf-8") == first, "the same once more changes nothing"
    for name in ("second", "third"):
        check("1.6", cell(ATTENTION.replace("attend", name))[name])
    text = file.read_text(encoding="utf-8")
    assert text.count("# ---- part ") == 1 and "# ---- part attention: third ----" in text
    places = ["def third", "# ---- before ----", "# def second", "# ---- before ----", "# def attend"]
    found = [text.index(place) for place in places[:3]] + [text.rindex(place) for place in places[3:]]
    assert found == sorted(found) and len({*found}) == 5
    for line in ATTENTION.splitlines():
        assert line in text, "no line is lost"
    assert yours("attention").__name__ == "third"


def test_parts_stand_in_the_order_of_the_course_and_lines_between_them_stay(file, cell):
    given = "from linformer_from_scratch.attention import scaled_dot_product_attention as attend"
    cell(given)
    check("6.1", cell(LINFORMER)["compressed"])
    text = file.read_text(encoding="utf-8")
    assert given in text
    file.write_text(f"# mine\n{text}\nNOTE = 'below'\n", encoding="utf-8")
    check("1.6", cell(ATTENTION)["attend"])
    text = file.read_text(encoding="utf-8")
    assert text.startswith("# mine\n") and "NOTE = 'below'" in text
    assert text.index("part attention") < text.index("part linformer_attention")


def test_a_part_may_use_an_earlier_part(file, cell):
    check("1.6", cell(ATTENTION)["attend"])
    result = check("6.1", cell(LINFORMER)["compressed"])
    assert result.message.endswith("kept as linformer_attention in my_linformer.py")
    assert file.read_text(encoding="utf-8").count("def attend") == 1
    assert yours("linformer_attention").__globals__["attend"].__name__ == "attend"


def test_a_name_of_another_cell_is_named(file, cell):
    cell("SCALE = 1.0\ndef score(q, k):\n    return SCALE * q @ k.mT / math.sqrt(q.size(-1))")
    source = ATTENTION.replace("q @ k.mT / math.sqrt(q.size(-1))", "score(q, k) * SCALE")
    result = check("1.6", cell(source)["attend"])
    assert result.status == "passed"
    uses = "it uses `SCALE` and `score` of another cell; write what it needs into this cell"
    assert result.message == f"1.6{NOT_KEPT}{uses}"
    assert not file.exists()


def test_what_was_kept_before_stays_where_the_new_one_cannot_stand_alone(file, cell):
    cell("SCALE = 1.0")
    check("1.6", cell(ATTENTION)["attend"])
    before = file.read_text(encoding="utf-8")
    said = check("1.6", cell(ATTENTION.replace("/ math", "* SCALE / math"))["attend"]).message
    assert said.endswith("write what it needs into this cell; the answer of before stays there")
    assert file.read_text(encoding="utf-8") == before


def test_helpers_and_imports_of_the_same_cell_come_along(file, cell):
    source = (
        "from math import inf as never\nimport math\n\nSCALE = 1.0\nUNUSED = 2\n\n\n"
        "def score(q, k):\n    return SCALE * q @ k.mT / math.sqrt(q.size(-1))\n\n"
        + ATTENTION.replace("q @ k.mT / math.sqrt(q.size(-1))", "score(q, k)").replace("-math.inf", "-never")
    )
    assert "kept as attention" in check("1.6", cell(source)["attend"]).message
    text = file.read_text(encoding="utf-8")
    assert "SCALE = 1.0" in text and "def score" in text and "UNUSED" not in text
    assert text.index("import inf as never") < text.index("SCALE = 1.0") < text.index("def attend")


CLASS = """
class Doubling(nn.Linear):
    size: int = WIDTH

    @decorated
    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(super().forward(x)) * np.float32(2)
"""


def test_imports_are_found_for_every_kind_of_name(cell):
    names = cell(
        "import numpy as np\nimport torch.nn.functional as functional\nfrom torch import Tensor, nn\n"
        "from functools import cache as decorated\nfrom math import pi as WIDTH"
    )
    with pytest.raises(ValueError, match="uses `WIDTH` of another cell"):  # whose value, pi, has no such name
        standalone(cell(CLASS)["Doubling"], set())
    del names["Doubling"]
    names["pi"] = names.pop("WIDTH")
    source = standalone(cell(CLASS.replace("WIDTH", "pi"))["Doubling"], set())
    assert source.startswith(
        "from functools import cache as decorated\nfrom math import pi\nfrom torch import Tensor\n"
        "from torch import nn\nfrom torch.nn import functional\nimport numpy as np\n\n\n"
    )


def test_a_part_that_returns_no_tensors_passes_and_is_not_kept(file, cell):
    cell("import torch")
    source = """
def tile(largest, total, mixed, scores, values):
    new = scores.amax(-1, keepdim=True).maximum(largest)
    shrink, e = (largest - new).exp(), (scores - new).exp()
    return new.numpy(), shrink * total + e.sum(-1, keepdim=True), shrink * mixed + e @ values
"""
    why = "it returns other arrays than tensors, and later chapters go on with what it returns"
    assert check("9.5", cell(source)["tile"]).message == f"9.5{NOT_KEPT}{why}"
    assert "kept as" in check("9.5", cell(source.replace(".numpy()", ""))["tile"]).message


NOT_WRITTEN = {
    "partial(whole)": "neither a function nor a class with methods",
    "lambda *qkvm: whole(*qkvm)": "not written as a def or a class at the left edge of its cell",
}


@pytest.mark.parametrize("value", NOT_WRITTEN)
def test_what_is_not_written_as_a_definition_is_not_kept(file, cell, value):
    cell("from functools import partial")
    source = f"{ATTENTION.replace('attend', 'whole')}\nattend = {value}\n"
    said = check("1.6", cell(source)["attend"]).message
    assert said == f"1.6{NOT_KEPT}it is {NOT_WRITTEN[value]}"


@pytest.mark.parametrize("damage", ["def attend(:\n", "1 / 0\n", "raise SystemExit\n"])
def test_a_file_that_cannot_be_run_is_named_and_the_package_stands_in(file, cell, capsys, damage):
    check("1.6", cell(ATTENTION)["attend"])
    file.write_text(damage + file.read_text(encoding="utf-8"), encoding="utf-8")
    assert yours("attention") is PARTS["attention"].reference
    said = capsys.readouterr().out
    assert said.startswith("attention: my_linformer.py cannot be run (") and said.count("\n") == 1
    before = file.read_text(encoding="utf-8")
    check("1.6", cell(ATTENTION.replace("attend", "again"))["again"])
    assert all(line in file.read_text(encoding="utf-8") for line in before.splitlines()), "no line is lost"


@pytest.mark.parametrize(
    ("encoding", "head"),
    [
        ("utf-8-sig", "# André\n"),
        ("latin-1", "# coding: latin-1\n# André\n"),
        ("cp1251", "# coding: cp1251\n# Аня\n"),
    ],
)
def test_a_file_is_read_and_written_as_python_reads_it(file, cell, capsys, encoding, head):
    check("1.6", cell(ATTENTION)["attend"])
    file.write_bytes((head + file.read_text(encoding="utf-8")).replace("…", "...").encode(encoding))
    assert yours("attention").__name__ == "attend" and parts.kept() == {"attention"}
    said = check("6.1", cell(LINFORMER)["compressed"]).message
    assert said.endswith("kept as linformer_attention in my_linformer.py")
    assert capsys.readouterr().out.startswith("attention: yours")
    assert file.read_bytes().decode(encoding).startswith(head)
    assert [ids for ids, run in attempts(file)] == [["1.6"], ["6.1"]]


def test_the_line_that_is_quoted_is_one_that_was_run(file, cell):
    check("1.6", cell(ATTENTION)["attend"])
    mine = yours("attention", quiet=True)
    not_here = ATTENTION.replace("    return", "    if __name__ != '__main__':\n        1 / 0\n    return")
    assert "of my_linformer.py: `1 / 0`" in check("1.6", cell(not_here)["attend"]).message
    with pytest.raises(TypeError) as raised:
        mine(*torch.ones(3, 2, 2), mask=0.5)
    assert traceback.extract_tb(raised.tb)[-1].line == "scores = scores.masked_fill(~mask, -math.inf)"


def test_what_was_edited_is_what_is_kept_and_quoted(file, cell):
    check("1.6", cell(ATTENTION)["attend"])
    yours("attention", quiet=True)
    for edit in ("    scores = 1 * ", "    1 / 0\n    scores = "):
        text = file.read_text(encoding="utf-8").replace("    scores = ", edit, 1)
        file.write_text(text, encoding="utf-8")
        names = {"__name__": "my_linformer"}
        exec(compile(text, str(file), "exec"), names)
        said = check("1.6", names["attend"]).message
        assert ("1 / 0" in edit) == ("of my_linformer.py: `1 / 0`" in said)
        assert edit in file.read_text(encoding="utf-8").partition("# ---- before")[0]


def test_a_letter_that_a_file_cannot_hold_is_said(file, cell):
    file.write_text("# coding: ascii\n", encoding="ascii")
    said = check("1.6", cell(ATTENTION.replace("    return", "    # …\n    return"))["attend"]).message
    assert said.endswith("not kept in my_linformer.py: it is in ascii, which has no '…'; save it in UTF-8")


def test_a_file_that_is_no_text_is_set_aside(file, cell, capsys):
    file.write_bytes(b"\xff\xfe\x00")
    assert yours("attention") is PARTS["attention"].reference
    assert "kept as" in check("1.6", cell(ATTENTION)["attend"]).message
    assert (file.parent / "my_linformer.py.set-aside-1").read_bytes() == b"\xff\xfe\x00"


def test_a_folder_that_cannot_be_written_is_said(file, cell, monkeypatch):
    monkeypatch.setenv("LINFORMER_PROGRESS", str(file.parent / "no_folder" / "progress.json"))
    (file.parent / "no_folder").touch()
    said = check("1.6", cell(ATTENTION)["attend"]).message
    assert said.startswith(f"1.6{NOT_KEPT}")


def test_two_kernels_that_keep_at_once_lose_nothing(file, cell):
    cell("from linformer_from_scratch.attention import scaled_dot_product_attention as whole")
    one = cell(ATTENTION)["attend"]
    other = cell(LINFORMER.replace("attend(", "whole("))["compressed"]
    both = {"attention": one, "linformer_attention": other}
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: parts.keep(PARTS[name], both[name], list(PARTS)), both))
    assert parts.kept() == {*both}


def test_the_parts_are_these_in_this_order():
    named = "attention multi_head_attention linformer_attention linformer_layer block training_loop"
    assert list(PARTS) == [*named.split(), "online_softmax", "block_slots", "block_attention"]
    ids = [exercise.id for exercise in PARTS.values()]
    assert ids == ["1.6", "2.3", "6.1", "6.7", "8.2", "8.4", "9.5", "13.1", "13.3"]
