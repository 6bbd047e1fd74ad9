"""results.py: rows with their provenance, measured once and never lost."""

import json
import math
import os
import signal
import subprocess
import sys
from datetime import date

import pytest
import torch

from linformer_from_scratch.common.files import locked
from linformer_from_scratch.experiments import results
from linformer_from_scratch.experiments.results import Results, mean_and_spread, provenance, read, select

COMMAND = 'python tools/measure.py "all"'


def stop():
    raise KeyboardInterrupt


def never():
    raise AssertionError("it was measured a second time")


def check_provenance(content):
    assert content["command"].startswith("python ")
    date.fromisoformat(content["date"])
    assert content["machine"]["processor"] and content["machine"]["cores"] >= 1
    assert all(content["versions"][name][0].isdigit() for name in ("python", "torch"))


def test_provenance_is_that_of_this_machine():
    found = provenance(COMMAND)
    check_provenance(found)
    assert found["command"] == COMMAND and found["date"] == date.today().isoformat()
    assert found["machine"].keys() == {"processor", "cores", "threads", "gpu"}
    assert (found["machine"]["cores"], found["machine"]["threads"]) == (
        os.cpu_count(),
        torch.get_num_threads(),
    )
    assert (found["machine"]["gpu"] is None) == (not torch.cuda.is_available())
    versions = found["versions"]
    assert (versions["python"], versions["torch"]) == (sys.version.split()[0], torch.__version__)
    assert (versions["driver"] is None) == (versions["cuda"] is None) == (not torch.cuda.is_available())


def test_the_commit_is_that_of_the_checkout_and_none_without_one(monkeypatch):
    run = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, encoding="utf-8"
    )
    if run.returncode:
        assert provenance(COMMAND)["commit"] is None
    else:
        assert provenance(COMMAND)["commit"].removesuffix("-dirty") == run.stdout.strip()
    monkeypatch.setattr(results.subprocess, "run", lambda *_, **__: (_ for _ in ()).throw(OSError))
    assert provenance(COMMAND)["commit"] is None


def test_older_files_are_read_and_newer_ones_refused(tmp_path):
    path, content = tmp_path / "a.json", provenance(COMMAND) | {"rows": []}
    older = {name: value for name, value in content.items() if name not in ("version", "commit")}
    path.write_text(json.dumps(older), encoding="utf-8")
    assert read(path) == older
    path.write_text(json.dumps(content | {"version": results.VERSION + 1}), encoding="utf-8")
    with pytest.raises(
        ValueError, match=f"a.json has layout {results.VERSION + 1}, expected at most {results.VERSION}"
    ):
        read(path)


def test_the_processor_is_named_as_the_system_names_it(monkeypatch):
    lines = "processor : 0\nmodel name\t: A 2: fast\nmodel name\t: B\n"
    monkeypatch.setattr(results.Path, "read_text", lambda *_, **__: lines)
    assert provenance(COMMAND)["machine"]["processor"].startswith("A 2")
    monkeypatch.setattr(results.Path, "read_text", lambda *_, **__: "")
    assert provenance(COMMAND)["machine"]["processor"] == "unknown"


def test_what_is_measured_stands_in_the_file_with_its_provenance(tmp_path):
    path = tmp_path / "inner" / "new.json"
    Results(path, COMMAND).measure({"n": 3, "seed": 0}, lambda: {"loss": 0.5, "curve": [[1, 2.0]]})
    content = read(path)
    assert content.pop("rows") == [{"n": 3, "seed": 0, "loss": 0.5, "curve": [[1, 2.0]]}]
    assert content == provenance(COMMAND)


def test_what_was_measured_is_not_measured_again(tmp_path):
    for _ in range(2):  # in one run, and in the next
        found = Results(tmp_path / "some.json", COMMAND)
        found.measure({"n": 3, "seed": 0}, lambda: {"loss": 0.5})
        found.measure({"n": 3, "seed": 0}, never)
        found.measure({"n": 3, "seed": 1}, lambda: {"loss": 0.25})
    assert [row["loss"] for row in read(tmp_path / "some.json")["rows"]] == [0.5, 0.25]


def test_an_existing_file_keeps_its_provenance(tmp_path):
    Results(tmp_path / "some.json", COMMAND).measure({"n": 3}, dict)
    again = Results(tmp_path / "some.json", "another")
    again.measure({"n": 5}, dict)
    assert read(tmp_path / "some.json")["command"] == COMMAND
    assert read(tmp_path / "some.json")["rows"] == [{"n": 3}, {"n": 5}]


def test_rows_stay_when_a_later_call_raises(tmp_path):
    found = Results(tmp_path / "some.json", COMMAND)
    found.measure({"n": 3}, lambda: {"loss": 0.5})
    before = (tmp_path / "some.json").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        found.measure({"n": 5}, stop)
    assert (tmp_path / "some.json").read_bytes() == before
    found.measure({"n": 5}, lambda: {"loss": 0.25})
    assert len(read(tmp_path / "some.json")["rows"]) == 2


def test_nothing_is_written_before_something_is_measured(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        Results(tmp_path / "some.json", COMMAND).measure({}, stop)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="kills with a signal")
@pytest.mark.parametrize("moment", ["measuring", "writing"])
def test_a_killed_run_goes_on_where_it_was(tmp_path, moment):
    path = tmp_path / "some.json"
    code = f"""
import os, signal
from pathlib import Path
from linformer_from_scratch.experiments.results import Results
found = Results(Path({str(path)!r}), {COMMAND!r})
found.measure({{"n": 3}}, lambda: {{"loss": 0.5}})
kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if {moment!r} == "writing":
    os.fsync = kill
found.measure({{"n": 5}}, dict if os.fsync is kill else kill)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    assert read(path)["rows"] == [{"n": 3, "loss": 0.5}]
    resumed = Results(path, COMMAND)
    resumed.measure({"n": 3}, never)
    resumed.measure({"n": 5}, lambda: {"loss": 0.25})
    assert len(read(path)["rows"]) == 2


def test_the_file_has_one_row_a_line(tmp_path):
    found = Results(tmp_path / "some.json", COMMAND)
    for n in (3, 5):
        found.measure({"n": n}, dict)
    lines = (tmp_path / "some.json").read_text(encoding="utf-8").splitlines()
    assert [line.rstrip(",") for line in lines if line.startswith('{"n"')] == ['{"n": 3}', '{"n": 5}']


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("not json", "Expecting value"),
        ('{"command": "x", "date"', "Expecting"),
        ("\xff", "utf-8"),
        ("[]", "no command"),
        ("null", "no command"),
        ('{"command": "", "date": "", "machine": {}, "rows": []}', "no versions"),
        ('{"command": "", "date": "", "machine": {}, "versions": {}}', "no rows"),
        (
            '{"command": "", "date": "", "machine": {}, "versions": {}, "rows": null}',
            "rows is None, expected list",
        ),
        (
            '{"command": "", "date": "", "machine": {}, "versions": {}, "rows": [{}, 5]}',
            "row 2 is 5, expected dict",
        ),
        (
            '{"command": "", "date": "", "machine": [], "versions": {}, "rows": []}',
            "machine is \\[\\], expected dict",
        ),
        (
            '{"command": 5, "date": "", "machine": {}, "versions": {}, "rows": []}',
            "command is 5, expected str",
        ),
        ('{"command": "", "date": "", "machine": {}, "versions": {}, "rows": [{"x": NaN}]}', "number NaN"),
        (
            '{"command": "", "date": "", "machine": {}, "versions": {}, "rows": [{"x": 1e999}]}',
            "number 1e999",
        ),
        (
            '{"command": "", "date": "", "machine": {}, "versions": {}, "rows": [], "version": "2"}',
            "version is '2'",
        ),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_foreign_file_is_refused_by_name_and_left_alone(tmp_path, content, reason):
    path = tmp_path / "foreign.json"
    path.write_bytes(content.encode("latin-1"))
    for call in (read, lambda path: Results(path, COMMAND)):
        with pytest.raises(ValueError, match=rf"^foreign.json is no result file: .*{reason}"):
            call(path)
    assert path.read_bytes() == content.encode("latin-1")


def test_two_who_write_into_one_file_keep_each_other_s_rows(tmp_path):
    one, other = (Results(tmp_path / "some.json", COMMAND) for _ in range(2))
    one.measure({"n": 3}, dict)
    other.measure({"n": 5}, dict)
    one.measure({"n": 7}, dict)
    assert read(tmp_path / "some.json")["rows"] == [{"n": 3}, {"n": 5}, {"n": 7}]
    one.measure({"n": 5}, never)


def test_a_number_that_could_not_be_read_again_is_not_written(tmp_path):
    found = Results(tmp_path / "some.json", COMMAND)
    found.measure({"n": 3}, dict)
    before = (tmp_path / "some.json").read_bytes()
    with pytest.raises(ValueError, match="not JSON compliant"):
        found.measure({"n": 5}, lambda: {"loss": math.nan})
    assert (tmp_path / "some.json").read_bytes() == before
    found.measure({"n": 7}, dict)
    assert read(tmp_path / "some.json")["rows"] == [{"n": 3}, {"n": 7}]


def test_whether_rows_can_be_written_is_seen_before_and_leaves_nothing(tmp_path):
    found = Results(tmp_path / "inner" / "some.json", COMMAND)
    found.check_writable()
    assert os.listdir(tmp_path / "inner") == []
    found.measure({"n": 3}, dict)
    before = found.path.read_bytes()
    found.check_writable()
    assert os.listdir(tmp_path / "inner") == ["some.json"] and found.path.read_bytes() == before
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        Results(tmp_path / "file" / "some.json", COMMAND).check_writable()


def test_what_a_killed_writer_left_goes_and_a_neighbour_s_stays(tmp_path):
    for name in ("some.json.1.unfinished", "other.json.1.unfinished"):
        (tmp_path / name).touch()
    Results(tmp_path / "some.json", COMMAND).measure({"n": 3}, dict)
    assert sorted(os.listdir(tmp_path)) == ["other.json.1.unfinished", "some.json"]


def test_rows_are_those_of_a_recorded_file(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    Results(tmp_path / "some.json", COMMAND).measure({"n": 3}, dict)
    Results(tmp_path / "some.json", COMMAND).measure({"n": 5}, dict)
    assert results.read_rows("some") == [{"n": 3}, {"n": 5}]
    assert results.read_rows("some", n=5) == [{"n": 5}] and results.read_rows("some", n=7) == []


def test_select_wants_every_field():
    rows = [{"n": 3, "seed": 0}, {"n": 3, "seed": 1}, {"n": 5, "seed": 0}, {"seed": 0}]
    assert select(rows, n=3, seed=0) == rows[:1] and select(rows, n=3) == rows[:2]
    assert select(rows, n=7) == [] and select(rows) == rows


def test_mean_and_spread_by_hand():
    assert mean_and_spread([2.0, 4.0, 9.0]) == (5.0, pytest.approx(math.sqrt((9 + 1 + 16) / 2)))
    assert mean_and_spread([1.0, 3.0]) == (2.0, pytest.approx(math.sqrt(2)))
    mean, spread = mean_and_spread([7.0])
    assert mean == 7.0 and math.isnan(spread)


def test_every_recorded_file_is_whole():
    for path in sorted(results.RESULTS.glob("*.json")):
        content = read(path)
        check_provenance(content)
        assert content["rows"], path.name
        assert all(type(row) is dict for row in content["rows"]), path.name
        assert json.dumps(content, allow_nan=False), path.name


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """A result file of a tool in a repository of its own; rewrite the tool, and its code has changed."""
    tool = tmp_path / "tools" / "measure.py"
    tool.parent.mkdir()
    tool.write_text("A = 1\n", encoding="utf-8")
    for name, function in (("sources", results.sources), ("changed", results.changed)):
        monkeypatch.setattr(results, name, lambda *found, function=function: function(*found, tmp_path))
    monkeypatch.setattr(results, "ROOT", tmp_path)
    path = tmp_path / "some.json"
    Results(path, COMMAND).measure({"n": 3}, dict)
    return path, tool


def test_a_file_whose_code_changed_is_not_gone_on_with(measured):
    path, tool = measured
    assert results.outdated(read(path)) == []
    Results(path, COMMAND).measure({"n": 3}, never)
    tool.write_text("A = 2\n", encoding="utf-8")
    assert results.outdated(read(path)) == ["tools/measure.py"]
    with pytest.raises(ValueError, match=r"some.json was measured with other code \(tools/measure.py\)"):
        Results(path, COMMAND)


def test_rows_may_stand_for_a_reason_which_the_file_keeps(measured):
    path, tool = measured
    tool.write_text("B = 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="got no reason"):
        results.accept(path, " ")
    assert results.accept(path, "renamed") == ["tools/measure.py"]
    assert results.accept(path, "renamed") == []  # once
    content = read(path)
    (accepted,) = content["accepted"]
    assert (accepted["changed"], accepted["why"]) == (["tools/measure.py"], "renamed")
    assert content["rows"] == [{"n": 3}] and Results(path, COMMAND).content == content


def test_a_new_command_stands_in_the_file_and_the_old_one_with_the_reason(measured):
    path, tool = measured
    newer = tool.with_name("newer.py")
    newer.write_text("A = 1\n", encoding="utf-8")
    assert results.outdated(read(path), newer) == ["tools/newer.py", "tools/measure.py"]
    assert results.accept(path, "moved", "python newer", newer) == ["tools/newer.py", "tools/measure.py"]
    content = read(path)
    assert content["command"] == "python newer" and [*content["sources"]] == ["tools/newer.py"]
    assert content["accepted"][0]["command"] == COMMAND and content["rows"] == [{"n": 3}]
    assert results.outdated(content, newer) == []
    Results(path, "python newer", newer).measure({"n": 5}, dict)
    newer.write_text("A = 2\n", encoding="utf-8")
    results.accept(path, "renamed", "python newer", newer)
    assert "command" not in read(path)["accepted"][1]


def test_nothing_is_accepted_while_another_writes(measured, monkeypatch):
    path, tool = measured
    tool.write_text("B = 1\n", encoding="utf-8")
    monkeypatch.setattr(results, "WAIT", 0.0)
    before = path.read_bytes()
    with locked(path), pytest.raises(BlockingIOError, match=r"some\.json is in use"):
        results.accept(path, "renamed")
    assert path.read_bytes() == before


def test_the_code_of_a_new_file_is_hashed_once(measured, tmp_path, monkeypatch):
    count = []
    hashing = results.sources
    monkeypatch.setattr(results, "sources", lambda *found: count.append(1) or hashing(*found))
    monkeypatch.setattr(results, "changed", lambda *_: pytest.fail("it was hashed again"))
    Results(tmp_path / "new.json", COMMAND).measure({"n": 3}, dict)
    assert len(count) == 1


def test_a_row_that_another_has_measured_meanwhile_is_not_measured_again(tmp_path):
    one, other = (Results(tmp_path / "some.json", COMMAND) for _ in range(2))
    other.measure({"n": 3}, lambda: {"loss": 0.5})
    one.measure({"n": 3}, never)
    assert one.rows() == [{"n": 3, "loss": 0.5}] and one.has({"n": 3}) and not one.has({"n": 5})


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python tools/curves.py all --seeds 1", "tools/curves.py"),
        (
            "python -m linformer_from_scratch.benchmark --out a",
            "linformer_from_scratch/benchmark/__main__.py",
        ),
        ("python tools/nowhere.py", None),
        ("make tea", None),
    ],
)
def test_a_command_names_the_file_that_measures(command, expected):
    assert results.program(command) == (expected and results.ROOT / expected)
