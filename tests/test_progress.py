"""progress.py: one local file, written whole or not at all, never a traceback."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from linformer_from_scratch.common.files import locked
from linformer_from_scratch.course.exercises import CHAPTERS, EXERCISES, check, hint, progress, reset
from linformer_from_scratch.course.exercises.engine import progress as kept
from linformer_from_scratch.course.exercises.engine.overview import Overview
from linformer_from_scratch.course.exercises.engine.progress import (
    State,
    load,
    open_hint,
    record_pass,
    remember,
)

PASSED = EXERCISES["0.1"].reference
ROOT = Path(__file__).parents[1]


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "kept.json"
    monkeypatch.setenv("LINFORMER_PROGRESS", str(path))
    return path


def test_the_file_may_lie_at_home(home, monkeypatch):
    monkeypatch.setenv("LINFORMER_PROGRESS", "~/kept.json")
    assert check("0.1", PASSED).status == "passed"
    assert (home / "kept.json").is_file()


def test_bets_stay_beside_progress_and_a_file_of_an_earlier_edition_has_none(file):
    record_pass("0.1")
    content = json.loads(file.read_text())
    assert content.pop("bets") == {}
    file.write_text(json.dumps(content))
    for answer in ("yes", "no"):
        remember(State(bets={"0a": answer}))
    assert reset("0.1").status == "open"
    assert load() == State(bets={"0a": "no"})
    file.write_text(json.dumps(content | {"bets": {"0a": 1}}))
    assert load() == State() and len(list(file.parent.glob("*set-aside*"))) == 1


@pytest.fixture
def course(tmp_path, monkeypatch):
    """The folder of a course, and the working directory in one elsewhere."""
    monkeypatch.delenv("LINFORMER_PROGRESS")
    monkeypatch.setattr(kept, "CHAPTERS", tmp_path / "course" / "chapters")
    kept.CHAPTERS.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return kept.CHAPTERS


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_chapters_are_those_of_the_course():
    assert (kept.CHAPTERS / "00_start_here.ipynb").is_file()


def test_without_a_name_the_file_lies_beside_the_chapters(course):
    check("0.1", PASSED)
    assert files(course) == [".progress.json"] and files(Path()) == []


def test_without_chapters_the_file_lies_in_the_working_directory(course):
    course.rmdir()
    check("0.1", PASSED)
    assert files(Path()) == [".progress.json"] and files(course.parent) == []


MANY = """
import sys
from linformer_from_scratch.course.exercises.engine.progress import open_hint, record_pass
sys.stdin.readline()
for i in range(40):
    record_pass(f"{sys.argv[1]}.{i}")
    open_hint(sys.argv[1], 100)
"""


@pytest.mark.slow
def test_two_kernels_at_once_keep_all_passes(file):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
    kernels = [subprocess.Popen([sys.executable, "-c", MANY, name], **pipes) for name in "12"]
    for kernel in kernels:
        kernel.stdin.write("go\n"), kernel.stdin.flush()
    assert [kernel.communicate() for kernel in kernels] == [("", None)] * 2
    assert load().passed == {f"{name}.{i}" for name in "12" for i in range(40)}
    assert load().hints == {"1": 40, "2": 40}
    assert files(file.parent) == ["kept.json"]


def test_while_another_kernel_writes_a_pass_is_kept_in_memory(file, monkeypatch, capsys):
    monkeypatch.setattr(kept, "PATIENCE", 0)
    with locked(file):
        record_pass("0.1")
        assert "kept in memory only" in capsys.readouterr().out and load().passed == {"0.1"}
    record_pass("1.1")
    assert json.loads(file.read_text(encoding="utf-8"))["passed"] == ["0.1", "1.1"]


@pytest.mark.slow
def test_what_is_kept_survives_a_new_kernel(file):
    check("0.1", PASSED), hint("1.1"), hint("1.1"), hint("1.2")
    code = "from linformer_from_scratch.exercises import progress; print(progress())"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert seen.stdout.strip() == repr(progress())
    assert load() == State({"0.1"}, {"1.1": 2, "1.2": 1})


def test_only_a_pass_is_a_pass(file):
    def stub(n, num_heads):
        raise NotImplementedError

    assert check("0.1", stub).status == "open"
    assert check("0.1", lambda n, num_heads: n).status == "failed"
    assert not file.exists()
    check("0.1", PASSED), check("0.1", stub)
    assert load().passed == {"0.1"}, "passed once is passed"


def test_hints_open_one_by_one_and_the_last_stays(file):
    assert [open_hint("1.1", 3) for _ in range(5)] == [1, 2, 3, 3, 3]
    open_later, opened = State(hints={"1.1": 1}), State(hints={"1.1": 2})
    assert open_later | opened == opened | open_later == opened
    assert [repr(hint("1.2")).count("\n") for _ in range(4)] == [2, 3, 4, 4]


def exercises(*parts, chapter=1):
    """Exercises of 5, 6, … minutes, of which nothing else counts."""
    known, numbered = EXERCISES["0.1"], enumerate(parts, start=1)
    return tuple(replace(known, id=f"{chapter}.{i}", minutes=4 + i, part=part) for i, part in numbered)


CHAPTERS_OF_TWO = {"01_first": exercises("", "wheel", ""), "02_last": exercises("cart", chapter=2)}


def test_the_overview_shows_bars_parts_what_is_next_and_minutes():
    shown = Overview(CHAPTERS_OF_TWO, State({"1.1", "1.2"}, {"1.3": 2}), {"wheel"})
    assert repr(shown) == (
        "01_first  ██████░░░░  2 of 3  1.3 (2 hints)\n"
        "02_last   ░░░░░░░░░░  0 of 1  2.1\n"
        "my_linformer.py: ● wheel  ○ cart\n"
        "next: 1.3, 7 minutes, in 01_first.ipynb\n"
        "2 of 4 exercises passed, 11 of 23 minutes"
    )
    page = shown._repr_html_()
    assert all(f">{cell}</td>" in page for cell in ("01_first", "██████░░░░", "2 of 3", "1.3 (2 hints)"))
    assert '<a href="01_first.ipynb">1.3, 7 minutes</a>' in page and "11 of 23 minutes" in page


def test_the_overview_of_all_that_is_done():
    shown = repr(Overview(CHAPTERS_OF_TWO, State({"1.1", "1.2", "1.3", "2.1"}), {"wheel", "cart"}))
    assert "○" not in shown and "next: nothing is open" in shown and "23 of 23 minutes" in shown


def test_every_exercise_stands_in_the_overview(file):
    for number in CHAPTERS:
        assert f"\n{number}_" in "\n" + repr(progress())
    assert all(f" {id}" in repr(progress()) for id in EXERCISES)
    (target,) = re.findall(r'href="(.*?)"', progress()._repr_html_())
    assert (ROOT / "chapters" / target).is_file()


def test_reset_opens_one_exercise_again_and_no_other(file):
    check("0.1", PASSED), record_pass("1.1"), hint("0.1"), hint("1.2")
    assert repr(reset("0.1")) == "○ 0.1 is open again"
    assert load() == State({"1.1"}, {"1.2": 1})
    assert repr(reset("0.1")) == "○ 0.1 was open already"
    assert repr(reset("1.2")) == "○ 1.2 is open again" and load() == State({"1.1"})
    assert reset("77.1").status == "failed"
    check("0.1", PASSED)
    assert load().passed == {"0.1", "1.1"}


def test_reset_works_where_nothing_can_be_written(file, monkeypatch, capsys):
    monkeypatch.setenv("LINFORMER_PROGRESS", str(below_a_file(file)))
    check("0.1", PASSED)
    reset("0.1")
    assert load() == State()
    assert "stays as it was in kept.json, which cannot be written" in capsys.readouterr().out


FORMAT = b'{"format": "linformer-from-scratch progress 1", '
BAD = {
    "empty": b"",
    "cut off": FORMAT + b'"passed": ["0.',
    "binary": b"\xff\xfe\x00",
    "foreign": b'{"passed": ["0.1"], "hints": {}}',
    "no ids": FORMAT + b'"passed": [1], "hints": {}}',
    "no counts": FORMAT + b'"passed": [], "hints": {"0.1": -1}}',
}


@pytest.mark.parametrize("name", BAD)
def test_a_damaged_or_foreign_file_is_set_aside_with_a_word(file, capsys, name):
    file.write_bytes(BAD[name])
    assert load() == State()
    assert capsys.readouterr().out == (
        "kept.json is damaged or not a progress file; it was set aside as kept.json.set-aside-1.\n"
    )
    assert (file.parent / "kept.json.set-aside-1").read_bytes() == BAD[name]
    record_pass("0.1")
    assert load().passed == {"0.1"} and capsys.readouterr().out == ""


def test_a_second_bad_file_overwrites_no_first(file):
    for content in ("one", "two"):
        file.write_text(content, encoding="utf-8")
        load()
    assert sorted(path.read_text(encoding="utf-8") for path in file.parent.iterdir()) == ["one", "two"]


def below_a_file(file):
    (file.parent / "no_folder").touch()
    return file.parent / "no_folder" / "kept.json"


def a_folder(file):
    file.mkdir()
    return file


@pytest.mark.parametrize("place", [below_a_file, a_folder])
def test_where_nothing_can_be_written_one_line_says_so_and_checks_go_on(file, monkeypatch, capsys, place):
    monkeypatch.setenv("LINFORMER_PROGRESS", str(place(file)))
    assert check("0.1", PASSED).status == "passed"
    said = capsys.readouterr().out
    assert said.startswith("Progress is kept in memory only; kept.json cannot be written: ")
    assert said.count("\n") == 1 and not said.endswith("None.\n")
    assert [repr(hint("1.1")).count("\n") for _ in range(3)] == [2, 3, 4], "hints still open one by one"
    assert "1 of " in repr(progress())


def test_what_could_not_be_written_is_written_with_the_next_pass(file, monkeypatch, capsys):
    place = below_a_file(file)
    monkeypatch.setenv("LINFORMER_PROGRESS", str(place))
    record_pass("0.1")
    place.parent.unlink(), place.parent.mkdir()
    record_pass("1.1")
    assert json.loads(place.read_text(encoding="utf-8"))["passed"] == ["0.1", "1.1"]
    place.unlink()
    assert load() == State(), "from here on the file is the truth again"
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_is_no_regular_file_is_neither_read_nor_replaced(file, capsys):
    os.mkfifo(file)
    record_pass("0.1")
    assert file.is_fifo() and "cannot be written: not a regular file" in capsys.readouterr().out


def test_a_working_directory_that_is_gone_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("LINFORMER_PROGRESS")
    monkeypatch.setattr(kept, "CHAPTERS", tmp_path / "none")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert check("0.1", PASSED).status == "passed"
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("read_text", "Progress cannot be read from kept.json: Permission denied.\n"),
        ("rename", "is damaged or not a progress file, and cannot be set aside: Permission denied."),
    ],
)
def test_what_can_be_neither_read_nor_set_aside_stays_and_is_one_line(file, monkeypatch, capsys, what, said):
    file.write_text("x", encoding="utf-8")
    monkeypatch.setattr(type(file), what, Mock(side_effect=PermissionError(13, "Permission denied")))
    assert load() == State() and said in capsys.readouterr().out
    record_pass("0.1")
    assert file.read_bytes() == b"x" and load().passed == {"0.1"}


def test_a_kill_while_writing_leaves_the_old_file(file, monkeypatch, capsys):
    record_pass("0.1")
    before = file.read_bytes()
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
    record_pass("1.1")
    assert file.read_bytes() == before and [path.name for path in file.parent.iterdir()] == ["kept.json"]
    assert "No space left on device" in capsys.readouterr().out
