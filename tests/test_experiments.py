"""experiments: declared once, measured once, and recorded as declared."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from statistics import fmean

import pytest
import torch

from lab import __main__ as command
from lab import training
from lab.__main__ import EXPERIMENTS, commits_since
from lab.efficient import FULL, LEARNED, LOWER, MEAN, RATE
from lab.experiment import Experiment, measure, row_file
from linformer_from_scratch.common.files import locked
from linformer_from_scratch.common.rows import read
from linformer_from_scratch.course.recorded import RESULTS, read_rows

ROOT = Path(__file__).parents[1]
PACKAGE = "linformer_from_scratch"


@pytest.fixture(autouse=True)
def threads_as_they_were():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def double(n, seed):
    return {"double": 2 * n}


@pytest.fixture
def toy():
    return Experiment("99_toy", "a toy", [{"n": n} for n in (3, 5, 7)], double, seeds=(0, 1))


# Measuring


def test_rows_are_those_of_the_grid_for_every_seed_in_its_order(toy, tmp_path, capsys):
    measure(replace(toy, threads=2), tmp_path)
    wanted = [{"n": n, "seed": seed, "double": 2 * n} for seed in (0, 1) for n in (3, 5, 7)]
    content = read(tmp_path / "99_toy.json")
    assert content["rows"] == wanted
    assert capsys.readouterr().out.splitlines() == [f"99_toy [{row}]" for row in wanted]
    assert content["command"] == "python -m lab 99_toy"
    assert content["machine"]["threads"] == 2
    assert replace(toy, seeds=None).settings() == [{"n": 3}, {"n": 5}, {"n": 7}]


def test_only_what_is_missing_is_measured(toy, tmp_path):
    measured = []
    counting = replace(toy, measure=lambda n, seed: measured.append((n, seed)) or double(n, seed))
    measure(replace(counting, seeds=(1,)), tmp_path)
    assert counting.missing(tmp_path) == [{"n": n, "seed": 0} for n in (3, 5, 7)]
    measure(counting, tmp_path)
    measure(counting, tmp_path)
    assert measured == [(3, 1), (5, 1), (7, 1), (3, 0), (5, 0), (7, 0)]
    assert counting.missing(tmp_path) == []


def test_a_row_that_another_process_measures_is_left_to_it(toy, tmp_path, capsys):
    one = replace(toy, grid=[{"n": 3}], seeds=(0,), measure=lambda **_: pytest.fail("it was measured twice"))
    with locked(row_file(tmp_path / "99_toy.json", {"n": 3, "seed": 0})):
        measure(one, tmp_path)
    assert capsys.readouterr().out == "99_toy {'n': 3, 'seed': 0}: another process measures it\n"


# The command


def test_a_bad_name_gets_one_sentence_with_those_that_are_known_and_nothing_is_measured():
    with pytest.raises(SystemExit, match=r"^there is no experiment 'nothing', expected one of 06_lengths, "):
        command.main(["08_size", "nothing"])


def test_seeds_of_an_experiment_that_has_none_are_refused():
    with pytest.raises(SystemExit, match=r"^08_speed has no seeds, expected no --seeds$"):
        command.main(["08_speed", "--seeds", "3"])


def git(folder, *words):
    identity = "-c", "user.name=A", "-c", "user.email=a@example.org"
    run = subprocess.run(["git", "-C", str(folder), *identity, *words], capture_output=True, check=True)
    return run.stdout.decode().strip()


def test_a_listing_says_how_many_commits_changed_the_file_since(tmp_path, monkeypatch):
    folder, commits = tmp_path / "lab", []
    folder.mkdir()
    git(tmp_path, "init", "--quiet")
    for name in ("recall.py", "recall.py", "other.py", "recall.py"):
        (folder / name).write_text(f"{len(commits)}", encoding="utf-8")
        git(tmp_path, "add", "--all")
        git(tmp_path, "commit", "--quiet", "--message", name)
        commits.append(git(tmp_path, "describe", "--always"))
    found = [commits_since(commit, folder / "recall.py") for commit in (f"{commits[0]}-dirty", *commits[1:])]
    one = "\n  1 commit to lab/recall.py since"
    assert found == ["\n  2 commits to lab/recall.py since", one, one, ""]
    unknown = "\n  git does not know its commit, "
    assert commits_since(None, folder / "recall.py") == ""
    assert commits_since("0123abc", folder / "recall.py") == f"{unknown}0123abc"
    monkeypatch.setenv("PATH", "")
    assert commits_since(commits[0], folder / "recall.py") == unknown + commits[0]


@pytest.mark.slow
def test_without_a_name_all_are_listed_and_none_is_measured(capsys):
    command.main([])
    listed = re.findall(r"^(\S+) +(?:(\d+) of )?(\d+) rows  ", capsys.readouterr().out, re.MULTILINE)
    rows = {path.stem: len(read(path)["rows"]) for path in RESULTS.glob("*.json")}
    assert {name: int(wanted) for name, _, wanted in listed} == rows
    assert all(there in ("", wanted) for _, there, wanted in listed)


SHORTER = {  # chapter 09's needles are looked for in the shortest text, for a moment only
    "STEPS, RATE, WARMUP = 4000,": "STEPS, RATE, WARMUP = 20,",
    "LENGTHS = (64, 256)": "LENGTHS = (64,)",
    "SEEDS = (0, 1, 2)": "SEEDS = (0,)",
    "NAMES = (FULL, LEARNED, MEAN, *OTHERS, FITTING)": "NAMES = (FULL,)",
}


@pytest.mark.slow
def test_the_command_in_a_file_measures_it(tmp_path):
    ignored = shutil.ignore_patterns("*.json", "shipped", "__pycache__", "build")
    for room in (PACKAGE, "lab"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=ignored)
    declared = tmp_path / "lab" / "efficient.py"
    text = declared.read_text(encoding="utf-8")
    for before, after in SHORTER.items():
        assert text.count(before) == 1
        text = text.replace(before, after)
    declared.write_text(text, encoding="utf-8")
    words = EXPERIMENTS["09_needle"].command.removeprefix("python ").split()
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])  # first
    subprocess.run([sys.executable, *words], cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, check=True)
    path = tmp_path / PACKAGE / "course" / "recorded" / "09_needle.json"
    content = read(path)
    assert content["command"] == EXPERIMENTS["09_needle"].command
    assert list(path.parent.glob("*.json*")) == [path]
    settings = [(row["attention"], row["n"], row["learning_rate"]) for row in content["rows"]]
    assert settings == [(FULL, 64, RATE), (MEAN, 64, RATE), (LEARNED, 64, LOWER)]
    assert [point[0] for point in content["rows"][0]["curve"]] == [*range(2, 21, 2)]


@pytest.fixture
def short(tmp_path, monkeypatch):
    """Chapter 08's runs end after four updates, in a folder of their own."""
    for name, value in {"RUNS": tmp_path, "STEPS": 4, "JUDGEMENTS": 2}.items():
        monkeypatch.setattr(training, name, value)
    torch.set_num_threads(1)
    return tmp_path / "size"


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_killed_training_run_goes_on_from_its_checkpoint_with_the_losses_it_had(short, monkeypatch):
    whole = four_updates()
    shutil.rmtree(short)
    steps = []

    class Killed(training.Trainer):
        def _update(self):
            steps.append(self.step)
            if len(steps) == 4:
                raise KeyboardInterrupt
            return super()._update()

    monkeypatch.setattr(training, "Trainer", Killed)
    with pytest.raises(KeyboardInterrupt):
        four_updates()
    for _ in range(2):  # goes on from step 2; then it is finished
        assert four_updates()["curve"] == whole["curve"] and steps == [0, 1, 2, 3, 2, 3]


# What is recorded


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_recorded_rows_are_those_of_the_grid_each_once_and_none_is_missing(name):
    settings, rows = EXPERIMENTS[name].settings(), read_rows(name)
    counts = Counter(json.dumps(what) for row in rows for what in settings if what.items() <= row.items())
    assert counts == Counter(map(json.dumps, settings)) and len(rows) == len(settings) > 0
    assert EXPERIMENTS[name].threads == read(RESULTS / f"{name}.json")["machine"]["threads"]


def test_the_command_in_a_file_names_its_experiment_or_is_that_of_the_benchmark():
    found = {path.stem: read(path)["command"] for path in RESULTS.glob("*.json")}
    for name in EXPERIMENTS:
        assert found.pop(name).split()[-1] == name
    assert all(command.startswith("python -m linformer_from_scratch.benchmark") for command in found.values())


# What is recorded, measured again


LEARNED_SOON = {"09_needle": 64, "09_copy": 64, "12_recall": 64, "13_recall": 256}  # and n
UNFITTED = ("exact", "one slot", "E and F at fixed places")  # encoders as they come
TOLERANCES = {
    # Another processor or kernel adds up in another order, and every update carries that on: a model finds
    # the answer some hundred updates sooner or later, and in the end gives a few more of a hundred, or fewer.
    # So the end is compared. A bug leaves a model at chance, which is a third at most.
    "accuracy": 0.05,
    # Nothing is trained. Another order of adding moves a cosine in its sixth decimal; four are recorded.
    "cosine": 1e-3,
    # The same, but two passages that are almost equally close may change places: four of 200 that were first.
    "reciprocal rank": 0.01,
}


def cheap_rows():
    """Experiment and row, of those that take five to twenty seconds of one core."""
    found = [(name, row) for name, n in LEARNED_SOON.items() for row in read_rows(name, n=n)]
    found = [(name, row) for name, row in found if row["curve"][-1][0] <= 400]  # updates
    from_nothing = read_rows("08_finetune", attention="linformer", pretrained=False)
    short = [row for row in read_rows("12_lengths", n=64) if row["way"] in UNFITTED]
    return [*found, *(("08_finetune", row) for row in from_nothing), *(("12_lengths", row) for row in short)]


def due(week):
    """Two rows at all times, and three whose turn it is in this week of the year: all of them in 16 weeks."""
    wanted = {"12_lengths": {"n": 64, "way": UNFITTED[-1]}, "13_recall": {"kind": "full", "seed": 0}}
    always = [(name, read_rows(name, **what)[0]) for name, what in wanted.items()]
    others = [one for one in cheap_rows() if one not in always]
    return [*always, *others[week % 16 :: 16]]


def numbers(row):
    """What is compared of a row: accuracies, or cosines and mean reciprocal ranks of two corpora."""
    found = {("accuracy", where): row[where] for where in {"accuracy", "training_accuracy"} & row.keys()}
    if "curve" in row:
        found["accuracy", "curve"] = row["curve"][-1][1]
    for corpus in {"docstrings", "reference"} & row.keys():
        found["cosine", corpus] = row[corpus]["cosine"]
        found["reciprocal rank", corpus] = fmean(1 / rank for rank in row[corpus]["ranks"])
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "row"), due(date.today().isocalendar().week))
def test_a_row_that_is_measured_again_is_the_recorded_one(name, row):
    torch.set_num_threads(1)
    (settings,) = [some for some in EXPERIMENTS[name].settings() if some.items() <= row.items()]
    recorded, again = numbers(row), numbers(EXPERIMENTS[name].measure(**settings))
    off = {what for what in recorded if abs(recorded[what] - again[what]) > TOLERANCES[what[0]]}
    assert recorded and not off, {what: (recorded[what], again[what]) for what in off}
