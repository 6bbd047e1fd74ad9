"""Points, late and partial, and tables for Canvas and Moodle: each has a checker here, from its importer."""

import csv
import io
import os
import re
from datetime import datetime, timedelta

import nbformat
import pytest

from linformer_from_scratch.course.exercises import EXERCISES
from linformer_from_scratch.course.exercises.engine.completion import code_of
from linformer_from_scratch.course.exercises.grader import gradebook
from linformer_from_scratch.course.exercises.grader.gradebook import STARS, Gradebook, moment, roster_in
from linformer_from_scratch.exercises.__main__ import main

RIGHT = "def entries(n, num_heads):\n    return num_heads * n * n\n\n\ncheck('0.1', entries)"
ROSTER = """Student,ID,SIS User ID,SIS Login ID,Section,Email address,File,Submitted
    Points Possible,,,,,,,
"Lovelace, Ada",11,,ada@x.org,A,ada@x.org,,2026-12-01T10:00
Bob,12,,bob,B,bob@x.org,,2026-12-03T00:00
Cy,13,,cy,B,cy@x.org,cyrus,
Dan,14,,dan,B,dan@x.org,,
"""
NUMBER = re.compile(r"\d+(\.\d+)?")


def table(text):
    rows = list(csv.reader(io.StringIO(text)))
    assert len({len(row) for row in rows}) == 1, "every row has every column"
    return rows


def check_canvas(text):
    """What lib/gradebook_importer.rb of Canvas asks of a file; return learner -> points, and all points."""
    header, possible, *learners = table(text)
    assert "Student" in header[0] and "ID" in header[1], "row_has_student_headers?"
    assert re.search(r"SIS\s+User\s+ID", header[2]) and re.search(r"SIS\s+Login\s+ID", header[3])
    assert "Section" in header[4], "last_student_info_column"
    (title,) = header[5:]
    assert title and not re.search("(Current|Final|Override) (Score|Points|Grade|Status)", title)
    assert "Points Possible" in possible[0] and NUMBER.fullmatch(possible[5])
    assert all(any(row[:4]) and NUMBER.fullmatch(row[5]) for row in learners)
    return {row[0]: float(row[5]) for row in learners}, float(possible[5])


def check_moodle(text):
    """What grade/import/csv of Moodle asks of a file; return learner -> percents and feedback."""
    header, *learners = table(text)
    assert len(set(header)) == len(header) and all(header), "one chooses columns by their names"
    assert {"Email address", "ID number", "Username"} & set(header), "a field that maps to a user"
    *_, grade, feedback = header
    assert feedback != grade and all(any(row[:-2]) for row in learners)
    assert all(NUMBER.fullmatch(row[-2]) and float(row[-2]) <= 100 for row in learners), "gradevaluetoobig"
    return {row[0]: (float(row[-2]), row[-1]) for row in learners}


def notebook(path, *cells):
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells]), path)


def test_a_class_of_five_is_graded_for_canvas_and_for_moodle(tmp_path, capsys):
    folder, roster, points = tmp_path / "class", tmp_path / "roster.csv", tmp_path / "points.csv"
    roster.write_text(ROSTER, encoding="utf-8-sig")
    points.write_text("exercise;points\n*;0\n0.1;4\n1.1;2.5\n", encoding="utf-8")
    notebook(folder / "lovelaceada_11_99_00.ipynb", RIGHT, f"# {code_of(['0.1', '1.1'], EXERCISES)}")
    notebook(folder / "Bob" / "00.ipynb", RIGHT.replace("num_heads * n * n", "n * n"))
    (folder / "cyrus.ipynb").write_text('{"cells": [', encoding="utf-8")
    notebook(folder / "eve.ipynb", RIGHT)
    options = ["--roster", str(roster), "--points", str(points), "--title", "Week 1 (4711)"]
    options += ["--due", "2026-12-01T23:59", "--partial", "0.5"]
    assert main(["grade", str(folder), "--out", str(tmp_path / "grades.csv"), *options]) == 0
    said = capsys.readouterr().out
    assert "not in the roster: eve\nnothing handed in, or a file that cannot be read: Cy, Dan\n" in said

    canvas, possible = check_canvas((tmp_path / "grades_canvas.csv").read_text(encoding="utf-8"))
    assert canvas == {"Lovelace, Ada": 4, "Bob": 1.6, "Cy": 0, "Dan": 0} and possible == 6.5
    moodle = check_moodle((tmp_path / "grades_moodle.csv").read_text(encoding="utf-8"))
    assert {name: percents for name, (percents, _) in moodle.items()} == {
        "ada@x.org": 61.54,
        "bob@x.org": 24.62,
        "cy@x.org": 0,
        "dan@x.org": 0,
    }
    assert moodle["bob@x.org"][1].startswith(
        "1.6 of 6.5 points, 20 % off for 2 days late · 0.1: You counted one head's map."
    )
    assert moodle["dan@x.org"][1] == "0 of 6.5 points · nothing was graded"
    assert moodle["cy@x.org"][1].startswith("0 of 6.5 points · cyrus.ipynb: it is damaged: not a notebook")

    text = (tmp_path / "grades.csv").read_text(encoding="utf-8-sig")
    notes = {row["learner"]: row["note"] for row in csv.DictReader(io.StringIO(text))}
    assert notes == {
        "Lovelace, Ada": "completion code: names, not passing here: 1.1",
        "Bob": "",
        "Cy": "cyrus.ipynb: it is damaged: not a notebook",
        "Dan": "no notebook and no Python file",
        "eve": "not in the roster",
    }


@pytest.mark.parametrize(
    ("marks", "late", "points"),
    [
        ({"0.1": "passed", "1.1": "passed"}, 0, 6),
        ({"0.1": "passed", "1.1": "open"}, 0, 4),
        ({"0.1": "one_map", "1.1": "failed"}, 0, 1),
        ({"0.1": "not looked at", "1.1": "one_unscaled"}, 0, 0.5),
        ({"0.1": "passed"}, 3, 1.6),
        ({"0.1": "passed"}, 9, 0),
        ({"5.1": "passed"}, 0, 0),
    ],
)
def test_points_are_whole_partial_late_or_none(marks, late, points):
    book = Gradebook({"0.1": 4, "1.1": 2, "5.1": 0}, {}, partial=0.25, late_percent=20)
    assert book.score(marks, late)[:2] == (points, round(100 * points / 6, 2))


def test_feedback_says_what_the_learner_was_told_and_what_is_open():
    said = Gradebook({"0.1": 1, "1.1": 1, "1.2": 1}, {}).score({"0.1": "one_map", "1.1": "failed"}, 0)[2]
    assert re.fullmatch(r"0 of 3 points · 0\.1: You counted one .+ · 1\.1: not passed · open: 1\.2", said)


def test_a_day_that_has_begun_is_late_whatever_says_when(tmp_path):
    file = tmp_path / "ada.ipynb"
    file.touch()
    due = moment("2026-12-01T23:59")
    for hours, days in ((-1, 0), (0, 0), (1, 1), (24, 1), (25, 2)):
        when = due + timedelta(hours=hours)
        os.utime(file, (when.timestamp(), when.timestamp()))
        said = {"ada": {"Submitted": when.isoformat()}, "bob": {"Submitted": ""}}
        assert Gradebook(STARS, said, due=due).days_late("bob", [file]) == days
        os.utime(file)
        assert Gradebook(STARS, said, due=due).days_late("ada", [file]) == days
    assert Gradebook(STARS, {}).days_late("ada", [file]) == 0
    assert Gradebook(STARS, {}, due=due).days_late("ada", []) == 0
    assert moment("2026-12-01T23:59+05:00") == datetime.fromisoformat("2026-12-01T18:59+00:00")


def test_points_begin_with_the_stars_and_the_last_row_counts(tmp_path):
    assert Gradebook(STARS, {}).points == {id: one.stars for id, one in EXERCISES.items()}
    file = tmp_path / "points.csv"
    file.write_text("exercise,points\n6.*,0\n6.1,2.5\n", encoding="utf-8")
    changed = {id: n for id, n in gradebook.points_in(file).items() if n != STARS[id]}
    assert changed == {id: 0 for id in EXERCISES if id.startswith("6.")} | {"6.1": 2.5}


ADA = {"Student": "Lovelace, Ada", "ID": "11", "Email address": "Ada@x.org"}


@pytest.mark.parametrize(
    ("name", "learner"),
    [
        ("lovelaceada_11_99_06_linformer", "ada"),  # as Canvas names what it lets one download
        ("lovelaceada_LATE_11_99_06_linformer", "ada"),
        ("Zoë Łoś_123_assignsubmission_file", "zoe"),  # as Moodle does
        ("ada@x.org", "ada"),
        ("mine", "cy"),
        ("cy", "cy"),  # nobody's: its own name
        ("111", "111"),
    ],
)
def test_a_file_is_found_by_a_whole_name_between_underscores(name, learner):
    others = {"zoe": {"Student": "Zoe\u0308 Łos\u0301"}, "cy": {"Student": "Cy C", "File": "mine"}}
    roster = {"ada": ADA} | others
    assert Gradebook(STARS, roster).owner(name) == learner


@pytest.mark.parametrize("last", ["Last name", "Surname"])
def test_moodles_export_is_a_roster(tmp_path, last):
    file = tmp_path / "roster.csv"
    file.write_text(f"First name\t{last}\tEmail address\nAda\tLovelace\tada@x.org\n", encoding="utf-8")
    assert roster_in(file)["Ada Lovelace"]["Email address"] == "ada@x.org"


COLUMNS = "expected columns exercise and points, as in 6.1"
BAD = {  # what is written -> options, what is said
    "exercise,points\n99.1,2\n": (["--points"], f"'99.1', points '2'; {COLUMNS} or 6.*, and 2.5"),
    "exercise,points\n6.1,-1\n": (["--points"], "got exercise '6.1', points '-1'"),
    "exercise,points\n*,0\n": (["--points"], "leaves 0 points in all; expected more"),
    "name,points\n6.1,1\n": (["--points"], "got exercise '', points '1'"),
    "name\nAda\n": (["--roster"], "has 0 learners; expected a column Student, or First name and Surname"),
    "Student\nAda\nAda\n": (["--roster"], "has Ada twice; expected another name for each learner"),
    "Student,File\nAda,ada\nBob,ada\n": (["--roster"], "ada may be of Ada or Bob; expected one"),
    "Student\n\xe9": (["--roster"], "is not text in UTF-8; expected what spreadsheets call CSV UTF-8"),
    "Student,Submitted\nada,soon\n": (["--due", "2026-12-01", "--roster"], "got the time 'soon'; expected"),
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_table_gets_one_sentence_before_anything_is_graded(tmp_path, capsys, text):
    notebook(tmp_path / "class" / "ada.ipynb", RIGHT)
    file = tmp_path / "table.csv"
    file.write_bytes(text.encode("latin-1"))
    options, sentence = BAD[text]
    with pytest.raises(SystemExit):
        main(["grade", str(tmp_path / "class"), "--out", str(tmp_path / "grades.csv"), *options, str(file)])
    said = capsys.readouterr().err.splitlines()[-1]
    assert sentence in said and "Traceback" not in said
    assert not (tmp_path / "grades.csv").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--partial", "2"], "argument --partial: got 2, expected 0 to 1"),
        (["--late-percent", "-1"], "argument --late-percent: got -1, expected 0 to 100"),
        (["--due", "tomorrow"], "got the time 'tomorrow'; expected one such as 2026-12-01T23:59"),
    ],
)
def test_a_bad_option_gets_one_sentence(tmp_path, capsys, options, sentence):
    with pytest.raises(SystemExit):
        main(["grade", str(tmp_path), *options])
    assert sentence in capsys.readouterr().err
