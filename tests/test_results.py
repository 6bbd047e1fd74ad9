"""rows.py: rows with their provenance, measured once and never lost."""

import json
import math
import os
import signal
import subprocess
import sys
from datetime import date

import pytest
import torch

from linformer_from_scratch.common import rows as results
from linformer_from_scratch.common.rows import STUDENT, Results, provenance, read
from linformer_from_scratch.course import recorded
from linformer_from_scratch.course.recorded import mean_and_interval, select

COMMAND = 'python tools/measure.py "all"'
WHOLE = {"command": "", "date": "", "machine": {}, "versions": {}, "rows": []}


def stop():
    raise KeyboardInterrupt


def never():
    raise AssertionError("it was measured a second time")


def test_provenance_is_that_of_this_machine():
    origin = provenance(COMMAND)
    machine, versions = origin["machine"], origin["versions"]
    assert origin["command"] == COMMAND and origin["date"] == date.today().isoformat()
    assert (machine["cores"], machine["threads"]) == (os.cpu_count(), torch.get_num_threads())
    assert machine["processor"] and (machine["gpu"] is None) == (not torch.cuda.is_available())
    assert (versions["python"], versions["torch"]) == (sys.version.split()[0], torch.__version__)


def test_a_commit_is_clean_until_code_changes(tmp_path):
    def git(*words):
        subprocess.run(["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=b", *words], check=True)

    code, rows = tmp_path / "code.py", tmp_path / "inner" / "recorded" / "some.json"
    rows.parent.mkdir(parents=True)
    git("init", "-q")
    for file in (code, rows):
        file.write_text("before")
    git("add", "-A")
    git("commit", "-qm", "both")
    clean = results._commit(rows.parent)
    rows.write_text("a row more")
    assert results._commit(tmp_path) == results._commit(rows.parent) == clean
    code.write_text("after")
    assert results._commit(rows.parent) == f"{clean}-dirty"


def test_without_git_there_is_no_commit(monkeypatch):
    monkeypatch.setattr(results.subprocess, "run", lambda *_, **__: (_ for _ in ()).throw(OSError))
    assert provenance(COMMAND)["commit"] is None


def test_a_file_has_its_provenance_and_one_row_a_line(tmp_path):
    path = tmp_path / "inner" / "new.json"
    file = Results(path, COMMAND)
    file.measure({"n": 3, "seed": 0}, lambda: {"loss": 0.5, "curve": [[1, 2.0]]})
    file.measure({"n": 5}, dict)
    content = read(path)
    assert content.pop("rows") == [{"n": 3, "seed": 0, "loss": 0.5, "curve": [[1, 2.0]]}, {"n": 5}]
    assert content == provenance(COMMAND)
    assert len([line for line in path.read_text(encoding="utf-8").splitlines() if line[:4] == '{"n"']) == 2


def test_a_row_that_is_added_later_says_what_is_no_longer_as_the_file_says(tmp_path, monkeypatch):
    path = tmp_path / "some.json"
    Results(path, COMMAND).measure({"n": 3}, dict)
    first = provenance(COMMAND)
    later = first | {"commit": "another", "machine": first["machine"] | {"processor": "another"}}
    monkeypatch.setattr(results, "provenance", lambda command: later | {"command": command})
    Results(path, COMMAND).measure({"n": 5}, dict)
    differing = {field: later[field] for field in ("commit", "machine")}
    assert read(path) == first | {"rows": [{"n": 3}, {"n": 5, "provenance": differing}]}


def test_what_was_measured_is_not_measured_again(tmp_path):
    for command in (COMMAND, "another"):  # in one run, and in the next
        file = Results(tmp_path / "some.json", command)
        file.measure({"n": 3, "seed": 0}, lambda: {"loss": 0.5})
        file.measure({"n": 3, "seed": 0}, never)
        file.measure({"n": 3, "seed": 1}, lambda: {"loss": 0.25})
    content = read(tmp_path / "some.json")
    assert [row["loss"] for row in content["rows"]] == [0.5, 0.25] and content["command"] == COMMAND


def test_an_interrupted_call_costs_its_own_row_only(tmp_path):
    file = Results(tmp_path / "some.json", COMMAND)
    with pytest.raises(KeyboardInterrupt):
        file.measure({}, stop)
    assert os.listdir(tmp_path) == []
    file.measure({"n": 3}, lambda: {"loss": 0.5})
    before = file.path.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        file.measure({"n": 5}, stop)
    assert file.path.read_bytes() == before


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills with a signal")
@pytest.mark.parametrize("moment", ["measuring", "writing"])
def test_a_killed_run_goes_on_where_it_was(tmp_path, moment):
    path = tmp_path / "some.json"
    code = f"""
import os, signal
from pathlib import Path
from linformer_from_scratch.common.rows import Results
file = Results(Path({str(path)!r}), {COMMAND!r})
file.measure({{"n": 3}}, lambda: {{"loss": 0.5}})
kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if {moment!r} == "writing":
    os.fsync = kill
file.measure({{"n": 5}}, dict if os.fsync is kill else kill)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    assert read(path)["rows"] == [{"n": 3, "loss": 0.5}]
    resumed = Results(path, COMMAND)
    resumed.measure({"n": 3}, never)
    resumed.measure({"n": 5}, lambda: {"loss": 0.25})
    assert len(read(path)["rows"]) == 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("not json", "Expecting value"),
        ("[]", r"it is \[\], expected a dict"),
        (json.dumps(WHOLE | {"rows": None}), "its rows is None, expected a list"),
        (json.dumps(WHOLE | {"rows": [{}, 5]}), "its row 2 is 5, expected a dict"),
        (json.dumps(WHOLE | {"rows": [{"x": math.nan}]}), "it contains NaN, expected finite numbers"),
    ],
)
def test_a_foreign_file_is_refused_by_name_and_left_alone(tmp_path, content, reason):
    path = tmp_path / "foreign.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"^foreign.json is not a result file: .*{reason}"):
        Results(path, COMMAND)
    assert path.read_text(encoding="utf-8") == content


def test_two_who_write_into_one_file_keep_each_other_s_rows(tmp_path):
    one, other = (Results(tmp_path / "some.json", COMMAND) for _ in range(2))
    one.measure({"n": 3}, dict)
    other.measure({"n": 5}, dict)
    one.measure({"n": 7}, dict)
    assert read(tmp_path / "some.json")["rows"] == [{"n": 3}, {"n": 5}, {"n": 7}]
    one.measure({"n": 5}, never)


def test_a_number_that_could_not_be_read_again_is_not_written(tmp_path):
    file = Results(tmp_path / "some.json", COMMAND)
    with pytest.raises(ValueError, match="not JSON compliant"):
        file.measure({"n": 5}, lambda: {"loss": math.nan})
    assert os.listdir(tmp_path) == []


def test_whether_rows_can_be_written_is_seen_before_any_is_measured(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        Results(tmp_path / "file" / "some.json", COMMAND).add()
    Results(tmp_path / "some.json", COMMAND).add()
    assert read(tmp_path / "some.json")["rows"] == []


def test_what_a_killed_writer_left_goes_and_a_neighbour_s_stays(tmp_path):
    for name in ("a[1].json.1.unfinished", "a1.json.1.unfinished"):
        (tmp_path / name).touch()
    Results(tmp_path / "a[1].json", COMMAND).measure({"n": 3}, dict)
    assert sorted(os.listdir(tmp_path)) == ["a1.json.1.unfinished", "a[1].json"]


def test_rows_of_a_recorded_file_are_selected_by_every_field(tmp_path, monkeypatch):
    monkeypatch.setattr(recorded, "RESULTS", tmp_path)
    rows = [{"n": 3, "seed": 0}, {"n": 3, "seed": 1}, {"n": 5, "seed": 0}, {"seed": 0}]
    Results(tmp_path / "some.json", COMMAND).add(*rows)
    assert recorded.read_rows("some", n=3, seed=0) == rows[:1] and recorded.read_rows("some") == rows
    assert select(rows, n=3) == rows[:2] and select(rows, n=7) == []


def test_the_interval_of_a_mean_by_hand():
    assert mean_and_interval([2.0, 4.0, 9.0]) == (5.0, pytest.approx(4.303 * math.sqrt(13 / 3)))
    mean, about = mean_and_interval([7.0])
    assert mean == 7.0 and math.isnan(about)
    with pytest.raises(ValueError, match="got 22 values, expected at most 21"):
        mean_and_interval([1.0] * 22)


@pytest.mark.parametrize("freedom", range(1, 21))
def test_95_of_100_values_of_students_t_lie_within_its_points(freedom):
    within = torch.linspace(-STUDENT[freedom - 1], STUDENT[freedom - 1], 100_001, dtype=torch.float64)
    density = torch.distributions.StudentT(float(freedom)).log_prob(within).exp()
    assert torch.trapezoid(density, within).item() == pytest.approx(0.95, abs=1e-4)


def test_every_recorded_file_is_whole():
    for path in sorted(recorded.RESULTS.glob("*.json")):
        content = read(path)
        assert content["rows"] and content["machine"]["processor"], path.name
        for origin in (content, *(content | row.get("provenance", {}) for row in content["rows"])):
            clean = not (origin["commit"] or "").endswith("-dirty")
            assert clean or date.fromisoformat(origin["date"]) < date(2026, 11, 28), path.name
