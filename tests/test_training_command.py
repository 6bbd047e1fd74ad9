"""python -m linformer_from_scratch.training: one command trains, the same again resumes, one evaluates."""

import json
import re
import runpy
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import fields

import pytest
import torch

from linformer_from_scratch import data
from linformer_from_scratch.data import ByteVocabulary, MaskedBatches, read_documents
from linformer_from_scratch.training import Config, checkpoints, corpora
from linformer_from_scratch.training.recipes import Recipe

MODULE = "linformer_from_scratch.training"
SMALL = "--d-model 8 --num-heads 2 --num-layers 1 --seq-len 16 --proj-dim 4 --vocabulary 259 --batch-size 2"
SMALL = f"{SMALL} --steps 7 --warmup 2 --evaluate-every 3 --device cpu".split()
SENTENCE = r"held-out loss at step 7: (\d\.\d{3}) nats per masked token\n"


@pytest.fixture
def text(tmp_path):
    """A text file of the learner's."""
    path = tmp_path / "mine.txt"
    path.write_text("".join(f"Line {i} says that {i} times {i} is {i * i}.\n" for i in range(100)))
    return path


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run the command as python -m does, but in this process: what it printed, and its exit's message."""
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # the command sets it
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["training", *map(str, words)])
        code = None
        try:
            runpy.run_module(MODULE, run_name="__main__")
        except SystemExit as left:
            code = left.code
        out, run.shown = capsys.readouterr()
        return out, code

    return run


def losses(folder):
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [(r["step"], r["loss"], r.get("validation_loss")) for r in records]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_trains_resumes_and_evaluates_a_text_of_the_learner(tmp_path, text, command):
    folder = tmp_path / "run"
    trained, code = command("--folder", folder, "--text", text, *SMALL, "--quiet")
    loss = re.fullmatch(r"([\d,]+) parameters, cpu, step 0\n" + SENTENCE, trained)
    assert loss and code is None
    assert [step for step, *_ in losses(folder)] == list(range(1, 8))
    assert f"{losses(folder)[-1][2]:.3f}" == loss[2]
    resumed, _ = command("--folder", folder, "--text", text, *SMALL, "--quiet")
    assert resumed == trained.replace("step 0", "step 7")
    evaluated, _ = command("--folder", folder, "--evaluate", "--device", "cpu")
    assert evaluated == trained.split("\n", 1)[1]


def test_a_process_killed_from_outside_goes_on_with_the_same_command(tmp_path, text, command):
    words = [*SMALL, "--text", str(text), "--quiet", "--steps", "150", "--evaluate-every", "8"]
    command("--folder", tmp_path / "straight", *words)
    folder = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-m", MODULE, "--folder", str(folder), *words], cwd=tmp_path)
    metrics = folder / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and metrics.read_bytes().count(b"\n") > 20):
        time.sleep(0.002)
    process.kill()
    assert process.wait() == -signal.SIGKILL and 20 < len(losses(folder)) < 150
    out, _ = command("--folder", folder, *words)
    step = int(re.search(r"cpu, step (\d+)\n", out)[1])
    assert step >= 16 and step % 8 == 0
    assert losses(folder) == losses(tmp_path / "straight")


def test_a_real_process_says_one_sentence_and_fails(tmp_path, text):
    words = ["--folder", tmp_path / "run", "--text", text, *SMALL, "--quiet", "--num-heads", "3"]
    words = [sys.executable, "-m", MODULE, *map(str, words)]
    ran = subprocess.run(words, capture_output=True, encoding="utf-8", cwd=tmp_path)
    assert ran.returncode == 1 and ran.stdout == ""
    assert ran.stderr.count("\n") == 1 and "8" in ran.stderr and "3" in ran.stderr


def test_a_slow_projection_is_slow_and_goes_on_being_so(tmp_path, text, command):
    words = ["--text", text, *SMALL, "--quiet", "--attention", "linformer", "--projection"]
    for kind in ("windows", "slow", "slow"):
        command("--folder", tmp_path / kind, *words, kind)
    newest = checkpoints.newest(tmp_path / "slow")[0]
    _, record = checkpoints.read(newest)
    assert record["config"]["slow"] == ["encoder.blocks.0.attention.E.weight"]
    windows, slow = losses(tmp_path / "windows"), losses(tmp_path / "slow")
    assert windows[0] == slow[0] and windows[-1] != slow[-1]


WRONG = [
    (["--steps", 0], "steps is 0, expected at least 1"),
    (["--learning-rate", 0], "learning_rate is 0.0, expected more than 0"),
    (["--text", "missing.txt"], "there is no file or folder missing.txt"),
    (["--vocabulary", 100], "a vocabulary of 100 tokens, expected at least 259"),
    (["--seq-len", 100_000], "tokens, expected at least seq_len=100000"),
    (["--sharing", "none", "--projection", "mean"], "mean projections have no matrix for each head"),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG)
def test_wrong_settings_are_refused_in_one_sentence(tmp_path, text, command, words, sentence):
    out, said = command("--folder", tmp_path / "run", "--text", text, *SMALL, "--quiet", *words)
    assert out == "" and sentence in said and "\n" not in said


@pytest.mark.parametrize(("words", "sentence"), WRONG)
def test_after_wrong_settings_the_right_ones_may_have_the_folder(tmp_path, text, command, words, sentence):
    command("--folder", tmp_path / "run", "--text", text, *SMALL, "--quiet", *words)
    _, said = command("--folder", tmp_path / "run", "--text", text, *SMALL, "--quiet")
    assert said is None


@pytest.mark.parametrize(("name", "choice"), [("--projection", "windows"), ("--sharing", "layerwise")])
def test_words_that_are_no_choice_are_refused_with_the_choices(tmp_path, command, name, choice):
    assert command(name, "other") == ("", 2) and choice in command.shown.splitlines()[-1]
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("other", "attention is 'other', expected one of linformer, full, none"),
        ("full+linformer+full", "attention full+linformer+full is for 3 layers, expected 2"),
    ],
)
def test_attention_has_a_known_word_for_each_layer(tmp_path, text, command, words, said):
    assert command("--folder", tmp_path / "run", "--text", text, "--attention", words)[1] == said
    assert not (tmp_path / "run").exists()


def test_other_settings_are_refused_with_both_values(tmp_path, text, command):
    folder = tmp_path / "run"
    words = ["--folder", folder, "--text", text, *SMALL, "--quiet"]
    command(*words)
    before = losses(folder)
    for name, value, old in [("--d-model", 4, 8), ("--steps", 9, 7), ("--batch-size", 3, 2)]:
        _, said = command(*words, name, value)
        assert said == f"the run in {folder} has {name} {old}, not {value}; give another --folder"
    assert losses(folder) == before


def test_one_side_of_the_text_trains_and_the_other_judges(tmp_path, text, command, monkeypatch):
    seen = {}

    class Batches(MaskedBatches):
        def __init__(self, ids, seq_len, batch_size, vocab_size, seed=0):
            seen["trained"], seen["seed"] = ids, seed
            super().__init__(ids, seq_len, batch_size, vocab_size, seed)

    def watched(ids, *sizes):
        seen["judged"] = ids
        return judged(ids, *sizes)

    judged = corpora.judged
    monkeypatch.setattr(corpora, "judged", watched)
    monkeypatch.setattr(data, "MaskedBatches", Batches)
    command("--folder", tmp_path / "run", "--text", text, *SMALL, "--quiet", "--seed", 5)
    train, held = corpora.streams(read_documents(text), ByteVocabulary())
    assert torch.equal(seen["trained"], train) and torch.equal(seen["judged"], held) and seen["seed"] == 5


def test_there_is_nothing_to_evaluate_where_no_run_is(tmp_path, command):
    _, said = command("--folder", tmp_path / "none", "--evaluate")
    assert said == f"there is no run in {tmp_path / 'none'}; train one first"
    assert names(tmp_path) == []


def test_files_of_others_in_the_folder_are_left_alone(tmp_path, text, command):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    _, said = command("--folder", folder, "--text", text, *SMALL, "--quiet")
    assert said is None and (folder / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("content", ["", "[1]", "my settings", "{}", '{"colour": "red"}'])
def test_settings_of_somebody_else_are_refused_by_name(tmp_path, text, command, content):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "settings.json").write_text(content)
    for words in (["--text", text, *SMALL, "--quiet"], ["--evaluate"]):
        out, said = command("--folder", folder, *words)
        assert out == "" and str(folder) in said and "\n" not in said
    assert (folder / "settings.json").read_text() == content and names(folder) == ["settings.json"]


def test_subwords_are_learned_once_and_kept_with_the_run(tmp_path, text, command):
    folder = tmp_path / "run"
    words = ["--folder", folder, "--text", text, *SMALL, "--quiet", "--vocabulary", 300]
    first, _ = command(*words)
    kept = (folder / "vocabulary.json").read_bytes()
    assert command(*words)[0] == first.replace("step 0", "step 7")
    assert (folder / "vocabulary.json").read_bytes() == kept
    (folder / "vocabulary.json").write_text("{")
    _, said = command(*words)
    assert "vocabulary.json is no vocabulary of subwords" in said


def test_evaluating_changes_no_file_of_the_run(tmp_path, text, command):
    folder = tmp_path / "run"
    command("--folder", folder, "--text", text, *SMALL, "--quiet")
    (folder / "step-00000007.safetensors").unlink()  # as a run that is at step 7, its checkpoint at 6
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    out, _ = command("--folder", folder, "--evaluate", "--device", "cpu")
    assert "held-out loss at step 6" in out
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_the_bar_is_shown_unless_quiet(tmp_path, text, command):
    command("--folder", tmp_path / "loud", "--text", text, *SMALL)
    assert all(word in command.shown for word in ("7/7", "loss=", "tokens_per_s="))
    command("--folder", tmp_path / "quiet", "--text", text, *SMALL, "--quiet")
    assert command.shown == ""


def test_help_lists_every_setting(command):
    out, code = command("--help")
    listed = set(re.findall(r"^  --([a-z-]+)", out.partition("\noptions:")[2], re.MULTILINE))
    assert (
        code == 0 and {f.name.replace("_", "-") for part in (Recipe, Config) for f in fields(part)} <= listed
    )


@pytest.mark.parametrize(("name", "default"), [("d-model", "64"), ("learning-rate", "0.004")])
def test_help_shows_the_default(command, name, default):
    out, _ = command("--help")
    assert re.search(rf"^  --{name} .*\s+.*\(default: {default}\)", out, re.MULTILINE)
