"""Learners' files to a table: what is right, what is wrong, and whatever else may be handed in."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from dataclasses import asdict
from pathlib import Path

import nbformat
import psutil
import pytest

from linformer_from_scratch import exercises
from linformer_from_scratch.course.exercises import EXERCISES, STEMS, exam
from linformer_from_scratch.course.exercises.engine import parts
from linformer_from_scratch.course.exercises.engine.checking import SEEDS, judge
from linformer_from_scratch.course.exercises.grader import grading
from linformer_from_scratch.course.exercises.grader.gradebook import STARS, Gradebook
from linformer_from_scratch.course.exercises.grader.grading import UNREAD, Graded, as_csv, mark_of
from linformer_from_scratch.exercises.__main__ import main

RIGHT = "def entries(n, num_heads):\n    return num_heads * n * n\n\n\ncheck('0.1', entries)"
WRONG = "def entries(n, num_heads):\n    return n * n\n\n\ncheck('0.1', entries)"
OTHER = """
import math
def weights(query, keys):
    return (keys @ query / math.sqrt(len(query))).softmax(-1)
"""


def notebook(path, *cells):
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells]), path)


def graded(folder, *options):
    """learner -> exercise -> mark, as the table says it."""
    out = folder.parent / "grades.csv"
    assert main(["grade", str(folder), "--out", str(out), *options]) == 0
    lines = out.read_text(encoding="utf-8-sig").splitlines()
    return {row["learner"]: row for row in csv.DictReader(lines)}


FORGED = """
import json, os
def entries(n, num_heads):
    print(json.dumps({"marks": {"0.1": "passed"}, "ended": True}), flush=True)
    os.write(1, b'{"marks": {"0.1": "passed"}, "ended": true}')
    os._exit(0)
check('0.1', entries)
"""


def test_the_table_says_what_passed_and_no_submission_forges_its_mark(tmp_path):
    folder = tmp_path / "class"
    notebook(folder / "ada.ipynb", RIGHT, WRONG)
    notebook(folder / "bob.ipynb", FORGED)
    rows = graded(folder)
    assert {name: (row["0.1"], row["passed"], row["note"]) for name, row in rows.items()} == {
        "ada": ("passed", "1", ""),
        "bob": ("failed", "0", "bob.ipynb: its process ended with 0 at 0.1"),
    }
    assert list(rows["ada"]) == ["learner", "passed", "points", "percent", *EXERCISES, "feedback", "note"]
    assert all(row[id] == "open" for row in rows.values() for id in EXERCISES if id != "0.1")


@pytest.mark.slow
def test_all_files_of_a_learner_count_and_the_best_attempt(tmp_path):
    folder = tmp_path / "class"
    notebook(folder / "ada" / "00.ipynb", RIGHT)
    notebook(folder / "ada" / "again" / "00.ipynb", WRONG)
    notebook(folder / "ada" / ".ipynb_checkpoints" / "01.ipynb", OTHER + "check('1.1', weights)")
    (folder / "ada" / "my_linformer.py").write_text(
        parts.HEAD + "\n# ---- part attention: f ----\n\n"
        "from torch.nn.functional import scaled_dot_product_attention\n\n"
        "def f(q, k, v, mask=None):\n    return scaled_dot_product_attention(q, k, v, mask)\n\n"
        "# ---- part no_such: g ----\n",
        encoding="utf-8",
    )
    (row,) = graded(folder).values()
    assert (row["learner"], row["0.1"], row["1.1"]) == ("ada", "passed", "open")
    assert row["1.6"] != "open"


IMPORT = "from linformer_from_scratch.exercises import check"
ENTRIES = "def entries(n, num_heads):\n    return num_heads * n * n\n"
CHECK = "check('0.1', entries)"
LIST = "pairs = [('0.1', entries), ('1.1', weights)]"
STUB = "def entries(n, num_heads):\n    raise NotImplementedError"
AGAIN = ENTRIES.replace("entries", "again")
ASKS = {  # what asks for a check of 0.1; the cells above import check, and define entries and weights
    "time": [f"%%time\n{CHECK}"],
    "capture above the definition": [f"%%capture --no-display out\n{AGAIN}", "check('0.1', again)"],
    "one magic in another": [f"%%capture\n%%time\n%time {CHECK}"],
    "time in a block": [f"for _ in range(1):\n    %time {CHECK}"],
    "timeit in a line": [f"%timeit -n1 -r 1 {CHECK}"],
    "beside other magics": [f"!pip install x\n%matplotlib inline\nfiles = !ls\ncheck?\n{CHECK}\nentries??"],
    "beside other languages": ["%%bash\nls", "%%html\n<b>", f"%%writefile a.py\n{ENTRIES}    1/0", CHECK],
    "module": ["from linformer_from_scratch import exercises", f"exercises.{CHECK}"],
    "another name": [f"{IMPORT} as ok", "ok('0.1', entries)"],
    "a name of one's own": ["ok = check", "ok('0.1', entries)"],
    "keywords": ["check(attempt=entries, id='0.1')"],
    "loop": [LIST, "for id, f in pairs:\n    check(id, f)"],
    "ids that are made": ["for i in range(1):\n    check(f'{i}.{i + 1}', entries)"],
    "function": ["def run(id, f):\n    return check(id, f)\n\nrun('0.1', entries)"],
    "method": ["class Own:\n    def run(self, f):\n        check('0.1', f)", "own = Own()\nown.run(entries)"],
    "try": [f"try:\n    {CHECK}\nexcept Exception:\n    pass"],
    "display": [f"display({CHECK})"],
    "sum": [f"score = 0\nscore += {CHECK}.status == 'passed'"],
    "definition in a block": ["if True:\n    " + AGAIN.replace("\n", "\n    "), "check('0.1', again)"],
    "all names of a module": ["from math import *", f"{ENTRIES.replace('n * n', 'prod([n, n])')}\n{CHECK}"],
    "what may not happen": ["if 1 > 2:\n    entries = None", CHECK],
    "what is appended": [
        "ones = []\nfor _ in range(2):\n    ones.append(1)",
        f"{ENTRIES.replace('n * n', 'n * n * ones[1]')}\n{CHECK}",
    ],
    "what is not needed": ["while True:\n    pass", "undefined_name", CHECK, "while True:\n    f = id = 1"],
    "SystemExit": ["import sys", f"{CHECK}\nsys.exit()"],
    "await above": [
        f"import asyncio\none = await asyncio.sleep(0, 1)\n{ENTRIES.replace('n * n', 'n * n * one')}",
        CHECK,
    ],
    "await": [f"async def own():\n    return {CHECK}\n\nawait own()"],
    "await in loops": ["async def ids():\n    yield '0.1'", "async for id in ids():\n    check(id, entries)"],
    "decorator": ["def checked(f):\n    check('0.1', f)\n    return f", f"@checked\n{AGAIN}"],
    "decorator with an id": [f"from functools import partial\n\n@partial(check, '0.1')\n{AGAIN}"],
    "body of a class": [f"class Own:\n    {CHECK}"],
    "default": [f"def own(result={CHECK}):\n    pass"],
    "result of time": [f"result = %time {CHECK}"],
    "one of several results of time": [f"results = {{}}\nresults['mine'] = %time {CHECK}"],
}  # fmt: skip


@pytest.fixture
def examined(tmp_path, monkeypatch):
    """What the table and the note say of cells."""
    monkeypatch.setattr(exercises, "check", exercises.check)  # an examiner puts another in its place

    def examined(*cells):
        said = []
        notebook(tmp_path / "ada.ipynb", *cells)
        grading.examine(tmp_path / "ada.ipynb", None, lambda graded: said.append(json.dumps(asdict(graded))))
        graded = grading.last_report(said, "it did not end")
        return graded.marks, graded.note()

    return examined


@pytest.mark.parametrize("how", ASKS)
def test_what_passes_in_a_kernel_passes_in_the_table_however_it_is_asked_for(examined, how):
    marks, note = examined(IMPORT, ENTRIES, OTHER, *ASKS[how])
    assert marks.pop("0.1") == "passed" and note == ""
    assert {*marks.values()} <= {"passed"}


@pytest.mark.parametrize(
    ("cells", "marks", "note"),
    [
        ([f"%%memit\n{CHECK}"], {"0.1": "open"}, f"0.1: {UNREAD}"),
        ([f"%lprun -f entries {CHECK}"], {"0.1": "open"}, f"0.1: {UNREAD}"),
        ([f"if False:\n    {CHECK}"], {"0.1": "open"}, f"0.1: {UNREAD}"),
        (["for pair in nowhere:\n    check(*pair)"], {}, f"{UNREAD}: NameError"),
        ([f"{CHECK}\nnonlocal x"], {"0.1": "failed"}, "0.1 SyntaxError before it was checked"),
        (
            ["for id, f in [('0.1', entries), ('1.1', 1 / 0)]:\n    check(id, f)"],
            {"0.1": "failed", "1.1": "failed"},
            "0.1 ZeroDivisionError before it was checked; 1.1 ZeroDivisionError before it was checked",
        ),
        (["hint('0.1')"], {}, "it has no check(…)"),
        (["check('99.1', entries)"], {}, "99.1: There is no such exercise: the closest are 9.1, 9.5, 9.4."),
        (["entries = lambda n, num_heads: n * n", CHECK], {"0.1": "one_map"}, ""),
        ([STUB, CHECK], {"0.1": "open"}, ""),
    ],
)
def test_what_does_not_pass_is_said(examined, cells, marks, note):
    assert examined(IMPORT, ENTRIES, *cells) == (marks, note)


def test_an_endless_attempt_leaves_those_before_it_their_marks():
    known = Graded({"1.1": "passed", "0.1": "not looked at", "1.2": "not looked at"}, at="0.1")
    lines = [json.dumps(asdict(known)), '{"marks": {"0.1": "pas']
    graded = grading.last_report(lines, "stopped after 3 seconds")
    assert graded.marks == {"1.1": "passed", "0.1": "failed", "1.2": "not looked at"}
    assert graded.note() == "stopped after 3 seconds at 0.1"
    known.at = "1.1"
    assert grading.last_report([json.dumps(asdict(known))], "").marks["1.1"] == "passed", "the best counts"


HOG = "def entries(n, num_heads):\n    return len(bytearray(2**34)) or 1\n\n\ncheck('0.1', entries)"
TRIES = (
    "import socket; socket.create_connection(('127.0.0.1', 9))",
    "import urllib.request as u; u.urlopen('http://127.0.0.1:9')",
    "import subprocess; subprocess.run(['true'])",
    "import os; os.system('true')",
    "import os; os.kill(os.getppid(), 9)",
)
REFUSED = f"""
def entries(n, num_heads):
    for attempt in {TRIES}:
        try:
            exec(attempt)
        except OSError as error:
            if "not allowed" in str(error):
                continue
        return 0
    return num_heads * n * n
check('0.1', entries)
"""


@pytest.mark.slow
def test_what_hangs_crashes_or_is_damaged_is_one_row_with_one_sentence(tmp_path):
    folder = tmp_path / "class"
    first, last = OTHER + "check('1.1', weights)", "check('1.2', weights)"
    crash = "import ctypes\n" + RIGHT.replace("return", "ctypes.string_at(0)\n    return")
    notebook(folder / "crash.ipynb", first, crash)
    notebook(folder / "hang.ipynb", first, RIGHT.replace("return", "while True: pass\n    return"), last)
    notebook(folder / "hog.ipynb", first, HOG)
    notebook(folder / "refused.ipynb", REFUSED)
    (folder / "binary.ipynb").write_bytes(b"\xff\xfe\x00")
    (folder / "list.ipynb").write_text("[1, 2]", encoding="utf-8")
    (folder / "words.py").write_text("nothing of ours", encoding="utf-8")
    rows = graded(folder, "--seconds", "30", "--memory", "1024")
    notes = {name: row["note"].removeprefix(f"{name}.ipynb: ") for name, row in rows.items()}
    assert notes == {
        "binary": "it is damaged: not text",
        "crash": "its process ended with -11 at 0.1",
        "hang": "stopped after 30 seconds at 0.1",
        "hog": "0.1 Raised MemoryError at line 2 of your cell; inputs: n=512, num_heads=12.",
        "list": "it is damaged: not a notebook",
        "refused": "",
        "words": "words.py: it has no part",
    }
    for name in ("crash", "hang", "hog"):
        assert (rows[name]["1.1"], rows[name]["0.1"]) == ("passed", "failed"), name
    assert rows["hang"]["1.2"] == "not looked at" and rows["refused"]["0.1"] == "passed"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="ends it with a signal")
def test_an_interrupt_keeps_what_there_is_and_ends_what_runs(tmp_path):
    folder, out = tmp_path / "class", tmp_path / "grades.csv"
    notebook(folder / "ada.ipynb", RIGHT)
    notebook(folder / "hang.ipynb", RIGHT.replace("return", "while True: pass\n    return"))
    module = "linformer_from_scratch.exercises"
    command = [sys.executable, "-m", module, "grade", str(folder), "--out", str(out)]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it may be ignored
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    signal.signal(signal.SIGINT, before)

    def waited_for(happens):
        end = time.monotonic() + 60
        while not happens() and time.monotonic() < end:
            time.sleep(0.1)
        return happens()

    def running():
        commands = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
        return [words for words in commands if str(folder / "hang.ipynb") in words]

    assert waited_for(running)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)[1]
    assert "what was graded until then is in" in said and process.returncode == 130
    assert "ada,1,1.0,0.71,passed" in out.read_text(encoding="utf-8-sig")
    assert waited_for(lambda: not running())


@pytest.mark.slow
def test_every_learner_has_a_row_whatever_was_handed_in(tmp_path, monkeypatch):
    monkeypatch.setenv("LINFORMER_PROGRESS", str(tmp_path / "progress.json"))
    text = parts.HEAD + "\n# ---- part attention: f ----\n\nf = None\n"  # the teacher's own
    (tmp_path / "my_linformer.py").write_text(text, encoding="utf-8")
    folder = tmp_path / "class"
    yours = "from linformer_from_scratch.exercises import yours\nf = yours('attention')\ncheck('1.6', f)"
    notebook(folder / unicodedata.normalize("NFD", "Zoë Öz") / "00.ipynb", RIGHT, yours)
    notebook(folder / "Bob" / ".hidden" / "00.ipynb", RIGHT)
    (folder / "ina.docx").write_bytes(b"words")
    for system in (".DS_Store", "Thumbs.db", "__MACOSX/._00.ipynb", "__MACOSX/Bob/00.ipynb"):
        notebook(folder / system, RIGHT)
    rows = graded(folder)
    nothing = "0", "no notebook and no Python file"
    found = {name: (row["passed"], row["note"]) for name, row in rows.items()}
    assert found == {"Bob": nothing, "ina": nothing, "Zoë Öz": ("2", "")}


def test_nothing_to_grade_and_nowhere_to_write_is_said(tmp_path, capsys):
    def said(*arguments):
        assert main(["grade", *map(str, arguments)]) == 1
        return capsys.readouterr().err

    assert said(tmp_path, "--out", tmp_path / "a.csv") == f"{tmp_path} has no notebook and no Python file\n"
    notebook(tmp_path / "ada.ipynb", RIGHT)
    assert said(tmp_path / "ada.ipynb").startswith(f"{tmp_path / 'ada.ipynb'} is not a folder; expected one")
    assert said(tmp_path, "--out", tmp_path) == f"{tmp_path} is a folder, expected a file\n"
    for *wrong, sentence in (
        ("--seconds", "0", "got 0, expected more than 0"),
        ("--memory", "10", "got 10, expected at least 256"),
        ("--exam", "-200", "number is -200, expected an integer in 0 … 1000000000"),
    ):
        with pytest.raises(SystemExit):
            main(["grade", str(tmp_path), *wrong])
        assert sentence in capsys.readouterr().err


def test_a_mistake_that_is_a_class_has_a_name_like_the_others():
    exercise = EXERCISES["2.3"]
    names = {mark_of(exercise, judge(exercise, mistake)) for mistake in exercise.mistakes}
    assert len(names) == len(exercise.mistakes) and all(name == name.lower() for name in names)


def test_a_learners_name_is_no_formula():
    rows = as_csv({"=1+1": Graded({"0.1": "passed"})}, Gradebook(STARS, {})).splitlines()
    assert rows[1].startswith("'=1+1,1,1.0,0.71,passed,")


def test_the_documentation_says_what_is_not_protected(capsys):
    with pytest.raises(SystemExit):
        main(["grade", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "It is no prison" in said and "take a container or a virtual machine" in said


# Exams


def by_heart(exercise):
    """An answer that knows the course's draws and nothing else."""
    known = {str(exercise.draw(seed)): exercise.reference(*exercise.draw(seed)) for seed in SEEDS}
    return lambda *args: known.get(str(args), 0)


@pytest.mark.parametrize("id", ["0.1", "4.4"])
def test_to_learn_the_tests_by_heart_does_not_help_in_an_exam(id):
    assert judge(EXERCISES[id], by_heart(EXERCISES[id])).status == "passed"
    assert exam(id, by_heart(EXERCISES[id])).status == "failed"
    assert exam(id, EXERCISES[id].reference).status == "passed"


def test_an_exam_is_kept_nowhere_and_every_number_is_another(tmp_path, monkeypatch):
    monkeypatch.setenv("LINFORMER_PROGRESS", str(tmp_path / "progress.json"))
    assert exam("0.1", EXERCISES["0.1"].reference).status == "passed"
    assert list(tmp_path.iterdir()) == []
    assert exam("77.1", len).status == "failed"
    drawn = [str(EXERCISES["1.1"].draw(1000 + 8 * number)) for number in range(3)]
    assert len({*drawn}) == 3


@pytest.mark.parametrize("number", [-200, 0.5, True, "7", None, 10**30])
def test_a_number_that_no_exam_has_is_not_the_learners_fault(number):
    with pytest.raises(ValueError, match=r"^number is .*, expected an integer in 0 … 1000000000$"):
        exam("0.1", EXERCISES["0.1"].reference, number)


@pytest.mark.slow
def test_the_command_grades_an_exam(tmp_path):
    solution = f"solutions/01_{STEMS[1]}.ipynb"
    folder = tmp_path / "class" / "ada"
    folder.mkdir(parents=True)
    shutil.copy(Path(__file__).parents[1] / solution, folder / "01.ipynb")
    (row,) = graded(tmp_path / "class", "--exam", "5").values()
    assert [row[id] for id in EXERCISES if id.startswith("1.")] == ["passed"] * 6
