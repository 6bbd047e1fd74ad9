"""experiments: declared once, measured once, and recorded as declared."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from linformer_from_scratch.experiments import __main__ as command
from linformer_from_scratch.experiments import runner, training
from linformer_from_scratch.experiments.efficient import FULL, LEARNED, LOWER, RATE
from linformer_from_scratch.experiments.experiment import Experiment
from linformer_from_scratch.experiments.registry import EXPERIMENTS, find
from linformer_from_scratch.experiments.results import RESULTS, read, read_rows
from linformer_from_scratch.experiments.sources import sources

ROOT = Path(__file__).parents[1]
PACKAGE = "linformer_from_scratch"
every_experiment = pytest.mark.parametrize("name", EXPERIMENTS)


@pytest.fixture(autouse=True)
def threads_as_they_were():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def double(n, seed):
    return {"double": 2 * n}


@pytest.fixture
def toy():
    return Experiment("99_toy", "a toy", [{"n": n} for n in (3, 5, 7)], double, __file__, seeds=(0, 1))


# The runner


def test_rows_are_those_of_the_grid_for_every_seed_in_its_order(toy, tmp_path, capsys):
    runner.measure(toy, tmp_path)
    wanted = [{"n": n, "seed": seed, "double": 2 * n} for seed in (0, 1) for n in (3, 5, 7)]
    assert read(tmp_path / "99_toy.json")["rows"] == wanted
    assert capsys.readouterr().out.splitlines() == [f"99_toy [{row}]" for row in wanted]


def test_without_seeds_the_grid_is_all_there_is(toy):
    assert replace(toy, seeds=None).settings() == [{"n": 3}, {"n": 5}, {"n": 7}]


def test_a_file_says_its_command_its_threads_and_the_code_that_measured_it(toy, tmp_path):
    torch.set_num_threads(1)
    runner.measure(replace(toy, threads=2), tmp_path)
    content = read(tmp_path / "99_toy.json")
    assert content["command"] == "python -m linformer_from_scratch.experiments 99_toy"
    assert content["machine"]["threads"] == 2
    assert content["sources"] == sources(Path(__file__)) and next(iter(content["sources"])) in __file__


def test_only_what_is_missing_is_measured(toy, tmp_path):
    measured = []
    counting = replace(toy, measure=lambda n, seed: measured.append((n, seed)) or double(n, seed))
    runner.measure(replace(counting, seeds=(1,)), tmp_path)
    assert runner.missing(counting, tmp_path) == [{"n": n, "seed": 0} for n in (3, 5, 7)]
    runner.measure(counting, tmp_path)
    runner.measure(counting, tmp_path)
    assert measured == [(3, 1), (5, 1), (7, 1), (3, 0), (5, 0), (7, 0)]
    assert runner.missing(counting, tmp_path) == []


TOY = """
import os, sys, time
from pathlib import Path
from linformer_from_scratch.experiments.experiment import Experiment
from linformer_from_scratch.experiments.runner import measure

folder, killed = Path(sys.argv[1]), sys.argv[2:] == ["killed"]

def double(n):
    with (folder / "measured").open("a", encoding="utf-8") as file:
        file.write(f"{n}\\n")
    if killed and n == 7:
        os.kill(os.getpid(), 9)
    time.sleep(0.2)
    return {"double": 2 * n}

measure(Experiment("99_toy", "a toy", [{"n": n} for n in (3, 5, 7, 11)], double, __file__), folder)
"""


def toy_rows(folder):
    return [(row["n"], row["double"]) for row in read(folder / "99_toy.json")["rows"]]


@pytest.fixture
def repository(tmp_path):
    """The package in a repository of its own, without recorded rows."""
    ignored = shutil.ignore_patterns("recorded", "shipped", "__pycache__", "build")
    shutil.copytree(ROOT / PACKAGE, tmp_path / PACKAGE, ignore=ignored)
    (tmp_path / PACKAGE / "experiments" / "recorded").mkdir()
    return tmp_path


def inside(repository, *words):
    """Run a Python there that finds this package first."""
    path = os.pathsep.join([str(repository), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        cwd=repository,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


@pytest.fixture
def toy_program(repository):
    (repository / "toy.py").write_text(TOY, encoding="utf-8")
    return lambda *words: inside(repository, "toy.py", repository, *words)


@pytest.mark.skipif(os.name != "posix", reason="kills with a signal")
def test_a_killed_run_goes_on_and_nothing_is_lost_or_measured_twice(repository, toy_program):
    run = toy_program("killed")
    run.communicate()
    assert run.returncode == -signal.SIGKILL and toy_rows(repository) == [(3, 6), (5, 10)]
    run = toy_program()
    _, said = run.communicate()
    assert run.returncode == 0, said
    assert toy_rows(repository) == [(3, 6), (5, 10), (7, 14), (11, 22)]
    assert (repository / "measured").read_text(encoding="utf-8").split() == ["3", "5", "7", "7", "11"]


def test_two_at_once_share_the_rows(repository, toy_program):
    runs = [toy_program() for _ in range(2)]
    for run in runs:
        _, said = run.communicate()
        assert run.returncode == 0, said
    assert sorted(toy_rows(repository)) == [(3, 6), (5, 10), (7, 14), (11, 22)]
    assert sorted(map(int, (repository / "measured").read_text(encoding="utf-8").split())) == [3, 5, 7, 11]


def test_a_row_that_another_measures_is_left_to_it(toy, tmp_path, capsys):
    one = replace(toy, grid=[{"n": 3}], seeds=(0,))
    inner = threading.Thread(target=runner.measure, args=(replace(one, measure=double), tmp_path))

    def meanwhile(n, seed):
        inner.start()
        inner.join()
        return double(n, seed)

    runner.measure(replace(one, measure=meanwhile), tmp_path)
    first, second = capsys.readouterr().out.splitlines()
    assert first == "99_toy {'n': 3, 'seed': 0}: another measures it"
    assert second == "99_toy [{'n': 3, 'seed': 0, 'double': 6}]"
    assert len(read(tmp_path / "99_toy.json")["rows"]) == 1


# The command


def test_a_bad_name_gets_one_sentence_with_those_that_are_known():
    with pytest.raises(
        SystemExit, match=r"^there is no experiment '12_recal', expected one of 08_size, "
    ) as refused:
        command.main(["12_recal"])
    assert all(name in str(refused.value) for name in EXPERIMENTS) and "\n" not in str(refused.value)


def test_a_bad_name_keeps_the_good_ones_from_being_measured():
    with pytest.raises(ValueError, match="'nothing'"):
        find(["08_size", "nothing"])


def test_seeds_of_an_experiment_that_has_none_are_refused():
    with pytest.raises(SystemExit, match=r"^08_speed has no seeds, expected no --seeds$"):
        command.main(["08_speed", "--seeds", "3"])


def test_without_a_name_all_are_listed_and_none_is_measured(capsys):
    command.main([])
    listed = re.findall(r"^(\S+) +(?:(\d+) of )?(\d+) rows  ", capsys.readouterr().out, re.MULTILINE)
    rows = {path.stem: len(read(path)["rows"]) for path in RESULTS.glob("*.json")}
    assert {name: int(wanted) for name, _, wanted in listed} == rows
    assert all(there in ("", wanted) for _, there, wanted in listed)


def rewrite(path, before, after):
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, after), encoding="utf-8")


@pytest.fixture
def small(repository):
    """The command where chapter 09's needles are looked for in the shortest text, for a moment only."""
    declared = repository / PACKAGE / "experiments" / "efficient.py"
    rewrite(declared, "STEPS, RATE, WARMUP = 4000,", "STEPS, RATE, WARMUP = 20,")
    rewrite(declared, "LENGTHS = (64, 256)", "LENGTHS = (64,)")
    rewrite(declared, "SEEDS = (0, 1, 2)", "SEEDS = (0,)")
    rewrite(declared, "NAMES = (FULL, LEARNED, MEAN, *OTHERS, FITTING)", "NAMES = (FULL,)")
    command = EXPERIMENTS["09_needle"].command.removeprefix("python ").split()

    def run(*words):
        run = inside(repository, *command[:2], *words)
        said, wrong = run.communicate()
        return said if run.returncode == 0 else wrong

    return run, command[2], declared, repository / PACKAGE / "experiments" / "recorded" / "09_needle.json"


def test_the_command_in_a_file_measures_it(small):
    run, name, _, path = small
    run(name)
    content = read(path)
    assert content["command"] == EXPERIMENTS["09_needle"].command and os.listdir(path.parent) == [path.name]
    found = [(row["attention"], row["n"], row["learning_rate"]) for row in content["rows"]]
    assert found == [(FULL, 64, RATE), (LEARNED, 64, LOWER)]
    assert [point[0] for point in content["rows"][0]["curve"]] == [*range(2, 21, 2)]
    assert next(iter(content["sources"])).endswith("experiments/efficient.py")
    before = path.read_bytes()
    assert run(name).count("\n") == 2 and path.read_bytes() == before
    assert re.search(r"^09_needle +2 of 2 rows  one marked token", run(), re.MULTILINE)


def test_rows_of_other_code_are_left_alone_until_a_reason_is_given(small):
    run, name, declared, path = small
    rewrite(declared, "KEYS = 32", "KEYS = 33")
    older = {
        "command": "python tools/older.py",
        "date": "",
        "machine": {},
        "versions": {},
        "rows": [{"n": 3}],
    }
    path.write_text(json.dumps(older), encoding="utf-8")
    before = path.read_bytes()
    refusal = run(name)
    assert refusal.startswith("09_needle.json was measured with other code") and refusal.count("\n") == 1
    assert f"{name} --accept WHY" in refusal
    assert re.search(r"^09_needle  .*\n +changed since: \S+/efficient.py$", run(), re.MULTILINE)
    assert run(name, "--accept", " ").startswith("got no reason") and path.read_bytes() == before
    assert run("--accept", "renamed").startswith("09_needle: stands, though changed since: ")
    content = read(path)
    (accepted,) = content["accepted"]
    assert (accepted["why"], accepted["command"]) == ("renamed", older["command"])
    assert content["rows"] == older["rows"] and content["command"] == EXPERIMENTS[name].command
    assert "changed since" not in run() and run("--accept", "again") == "09_needle: current\n"


@pytest.fixture
def short(tmp_path, monkeypatch):
    """Chapter 08's runs end after four updates, in a folder of their own."""
    for name, value in {"RUNS": tmp_path, "STEPS": 4, "JUDGEMENTS": 2}.items():
        monkeypatch.setattr(training, name, value)
    torch.set_num_threads(1)
    return tmp_path / "size"


def test_a_run_whose_checkpoints_were_removed_is_trained_again_to_the_same_weights(short):
    recipe = asdict(training.LINFORMER)
    before = torch.get_rng_state()
    assert [point[0] for point in four_updates()["curve"]] == [2, 4]
    found = training.weights_of(training.LINFORMER, 3, "model.")
    (folder,) = short.iterdir()
    kept = (folder / "metrics.jsonl").read_bytes()
    found_again = training.weights_of(training.LINFORMER, 3, "model.")
    assert (folder / "metrics.jsonl").read_bytes() == kept  # read, not trained
    shutil.rmtree(short)
    torch.set_rng_state(before)
    trained_again = training.weights_of(training.LINFORMER, 3, "model.")
    for name, tensor in found.items():
        assert torch.equal(tensor, found_again[name]) and torch.equal(tensor, trained_again[name])
    copied = training.copying(seed=3, **recipe)
    assert copied.keys() == {"repeated", "new", "in_windows"}
    assert 0.9 < copied["in_windows"] <= 1  # where it began


def four_updates():
    return training.pretrain("size", 3, 4, training.RATE, **asdict(training.LINFORMER))


def test_a_killed_training_run_goes_on_from_its_checkpoint_with_the_losses_it_had(short, monkeypatch):
    whole = four_updates()
    shutil.rmtree(short)
    steps = []

    class Killed(training.Trainer):
        def train(self, until):
            steps.append(self.step)
            if len(steps) == 2:
                raise KeyboardInterrupt
            return super().train(until)

    monkeypatch.setattr(training, "Trainer", Killed)
    with pytest.raises(KeyboardInterrupt):
        four_updates()
    assert four_updates()["curve"] == whole["curve"] and steps == [0, 2, 2]
    assert four_updates()["curve"] == whole["curve"] and steps == [0, 2, 2]  # it is finished


def test_losses_that_cannot_be_had_any_more_are_not_made_up(short):
    four_updates()
    (folder,) = short.iterdir()
    (folder / training.CURVE).unlink()
    with pytest.raises(ValueError, match="has no losses of step 2: remove it to train again"):
        four_updates()


# What is recorded


@every_experiment
def test_recorded_rows_are_those_of_the_grid_each_once_and_none_is_missing(name):
    settings, rows = EXPERIMENTS[name].settings(), read_rows(name)
    found = Counter(json.dumps(what) for row in rows for what in settings if what.items() <= row.items())
    assert found == Counter(map(json.dumps, settings)) and len(rows) == len(settings) > 0


def test_every_recorded_file_is_of_an_experiment_or_of_the_benchmark():
    found = {path.stem: read(path)["command"] for path in RESULTS.glob("*.json")}
    assert set(EXPERIMENTS) <= set(found)
    others = [command for name, command in found.items() if name not in EXPERIMENTS]
    assert all(command.startswith("python -m linformer_from_scratch.benchmark") for command in others)


def test_the_command_in_a_file_is_the_one_to_type():
    found = {name: read(RESULTS / f"{name}.json")["command"] for name in EXPERIMENTS}
    assert found == {name: experiment.command for name, experiment in EXPERIMENTS.items()}


def test_rows_come_from_the_code_as_it_stands_or_say_why_they_stand():
    """With `python -m linformer_from_scratch.experiments --accept WHY`."""
    names = [path.stem for path in RESULTS.glob("*.json")]
    assert {name: command.changed_since(name) for name in names if command.changed_since(name)} == {}


def test_threads_are_those_that_the_rows_were_measured_with():
    for name, experiment in EXPERIMENTS.items():
        assert experiment.threads == read(RESULTS / f"{name}.json")["machine"]["threads"], name


@pytest.mark.parametrize(
    ("changed", "of", "not_of"),
    [
        (
            "limits/capstone.py",
            ["12_capstone", "12_costs"],
            ["12_recall", "12_writing", "09_copy", "08_size"],
        ),
        ("limits/writing.py", ["12_writing"], ["12_recall", "09_copy", "08_size"]),
        ("experiments/capstone.py", ["12_capstone", "12_costs"], ["12_recall", "08_size"]),
        (
            "experiments/efficient.py",
            ["09_needle", "09_copy", "12_recall"],
            ["08_size", "12_capstone"],
        ),
        ("data/tasks.py", ["09_needle", "12_slots"], ["08_size", "12_writing", "12_capstone"]),
        ("training/trainer.py", [*EXPERIMENTS], []),
        ("experiments/runner.py", [], [*EXPERIMENTS]),
    ],
)
def test_a_changed_file_matters_to_the_experiments_that_use_it(changed, of, not_of):
    used = {name: sources(Path(experiment.file)) for name, experiment in EXPERIMENTS.items()}
    assert [name for name in of if f"{PACKAGE}/{changed}" not in used[name]] == []
    assert [name for name in not_of if f"{PACKAGE}/{changed}" in used[name]] == []
