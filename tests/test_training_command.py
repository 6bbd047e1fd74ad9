"""python -m linformer_from_scratch.training: one command trains, the same again resumes, one evaluates."""

import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from linformer_from_scratch import data, training
from linformer_from_scratch.data import ByteVocabulary, MaskedBatches, SubwordVocabulary, read_documents
from linformer_from_scratch.training import Config, checkpoints, corpora, runs
from linformer_from_scratch.training.recipes import Recipe

KILLED = 1 if os.name == "nt" else -signal.SIGKILL  # how a process ends that is killed
MODULE = "linformer_from_scratch.training"
SMALL = "--d-model 8 --num-heads 2 --num-layers 1 --seq-len 16 --proj-dim 4 --vocabulary 259 --batch-size 2"
SMALL = f"{SMALL} --steps 7 --warmup 2 --evaluate-every 3 --device cpu".split()
SENTENCE = r"held-out loss at step 7: (\d\.\d{3}) nats per masked token\n"


@pytest.fixture
def text(tmp_path):
    """A text file of the learner's."""
    path = tmp_path / "mine.txt"
    path.write_text(
        "".join(f"Line {i} says that {i} times {i} is {i * i}.\n" for i in range(100)), encoding="utf-8"
    )
    (tmp_path / "short.txt").write_text("A line.\nAnother.\n", encoding="utf-8")
    return path


@pytest.fixture
def command(monkeypatch, capsys, tmp_path):
    """Run the command as python -m does, but in this process: what it printed, and its exit's message."""
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # the command sets it
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["training", *map(str, words)])
        monkeypatch.delitem(sys.modules, f"{MODULE}.__main__", raising=False)  # if imported
        code = None
        try:
            runpy.run_module(MODULE, run_name="__main__")
        except SystemExit as left:
            code = left.code
        out, run.shown = capsys.readouterr()
        return out, code

    return run


def losses(folder):
    records = [
        json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    ]
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
    assert process.wait() == KILLED and 20 < len(losses(folder)) < 150
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


def test_a_projection_keeps_its_own_rate(tmp_path, text, command):
    words = ["--text", text, *SMALL, "--quiet", "--attention", "linformer", "--projection-rate"]
    for rate in ("1", "0.1", "0.1"):
        command("--folder", tmp_path / rate, *words, rate)
    newest = checkpoints.newest(tmp_path / "0.1")[0]
    _, record = checkpoints.read(newest)
    assert record["config"]["lr_scale"] == {"encoder.blocks.0.attention.E.weight": 0.1}
    usual, slow = losses(tmp_path / "1"), losses(tmp_path / "0.1")
    assert usual[0] == slow[0] and usual[-1] != slow[-1]


WRONG = [
    (["--steps", 0], "steps is 0, expected at least 1"),
    (["--learning-rate", 0], "learning_rate is 0.0, expected more than 0"),
    (["--text", "missing.txt"], "there is no file or folder missing.txt"),
    (["--vocabulary", 100], "vocabulary size is 100, expected an integer in 259 … 1000000"),
    (["--seq-len", 100_000], "tokens, expected at least seq_len=100000"),
    (["--sharing", "none", "--projection", "mean"], "mean projections have no matrix for each head"),
    (["--num-heads", 3], "3 heads do not divide d_model=8"),
    (["--learning-rate", "nan"], "learning_rate is nan, expected more than 0 and finite"),
    (["--learning-rate", "1e300"], "learning_rate is 1e+300, expected at most 1000000.0"),
    (["--batch-size", -2], "batch_size is -2, expected at least 1"),
    (["--vocabulary", 10**12], "1000000000000"),
    (["--vocabulary", -5], "-5"),
    (["--seed", 2**64], "seed is 18446744073709551616, expected at most 9223372036854775807"),
    (["--d-model", 10**6], "out of memory"),
    (["--neighbours", 10**9], "out of memory"),
    (["--device", "cuda:99"], "device is 'cuda:99', but PyTorch finds"),
    (["--device", "gpu"], "device is 'gpu', expected cpu, cuda, cuda:0 or mps"),
    (["--wait", "nan"], "wait is nan, expected seconds"),
    (["--text", ""], "text is empty, expected docstrings, a file or a folder"),
    (["--text", "short.txt", "--vocabulary", 300], "expected at least seq_len=16"),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG)
def test_wrong_settings_are_refused_in_one_sentence(tmp_path, text, command, words, sentence):
    out, said = command("--folder", tmp_path / "run", "--text", text, *SMALL, "--quiet", *words)
    assert out == "" and sentence in said and "\n" not in said


@pytest.mark.parametrize(("words", "sentence"), WRONG)
def test_wrong_settings_leave_nothing_and_then_the_right_ones_have_the_folder(
    tmp_path, text, command, words, sentence
):
    folder = tmp_path / "run"
    command("--folder", folder, "--text", text, *SMALL, "--quiet", *words)
    assert not folder.exists()
    assert command("--folder", folder, "--text", text, *SMALL, "--quiet")[1] is None
    _, said = command("--folder", folder, "--text", text, *SMALL, "--quiet", *words)
    assert said and "nan, not nan" not in said


SUBWORDS = [*SMALL, "--quiet", "--vocabulary", "300"]


def test_what_a_refused_command_left_behind_does_not_bind_the_next(tmp_path, text, command):
    folder, whole = tmp_path / "run", tmp_path / "whole"
    command("--folder", whole, "--text", text, *SUBWORDS)
    folder.mkdir()
    other = SubwordVocabulary(["quite another text " * 50], 268)
    other.save(folder / "vocabulary.json")
    settings = json.loads((whole / "settings.json").read_text(encoding="utf-8"))
    (folder / "settings.json").write_text(json.dumps(settings | {"num_heads": 3}), encoding="utf-8")
    _, said = command("--folder", folder, "--evaluate", "--device", "cpu")
    assert said == f"there is no run in {folder}; train one first"
    assert command("--folder", folder, "--text", text, *SUBWORDS)[1] is None
    for name in ("vocabulary.json", "settings.json"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()
    assert losses(folder) == losses(whole)


def test_a_vocabulary_of_somebody_else_is_not_written_over(tmp_path, text, command):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "vocabulary.json").write_text('["my words"]', encoding="utf-8")
    _, said = command("--folder", folder, "--text", text, *SUBWORDS)
    assert "vocabulary.json is no vocabulary of subwords" in said and names(folder) == ["vocabulary.json"]


def test_a_text_that_was_edited_is_noticed(tmp_path, text, command):
    folder = tmp_path / "run"
    command("--folder", folder, "--text", text, *SUBWORDS)
    whole, before = (
        text.read_text(encoding="utf-8"),
        {path.name: path.read_bytes() for path in folder.iterdir()},
    )
    sentence = rf"the text of the run in {folder} has changed: its SHA-256 is \w{{16}}…, expected \w{{16}}…; "
    for edited in (whole.replace("7", "8", 1), whole + "More.\n", whole.replace("\n", " \n", 1)):
        text.write_text(edited, encoding="utf-8")
        for words in (["--text", text, *SUBWORDS], ["--evaluate", "--device", "cpu"]):
            _, said = command("--folder", folder, *words)
            assert re.match(sentence, said)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    text.write_text(whole, encoding="utf-8")
    assert command("--folder", folder, "--text", text, *SUBWORDS)[1] is None


def test_another_vocabulary_is_noticed(tmp_path, text, command):
    folder = tmp_path / "run"
    command("--folder", folder, "--text", text, *SUBWORDS)
    own = (folder / "vocabulary.json").read_bytes()
    for size, sentence in [
        (290, "vocabulary.json, or what is held out, of the run in"),
        (310, "at most 300"),
    ]:
        SubwordVocabulary(
            ["quite another text, and words of its own; " + text.read_text(encoding="utf-8")], size
        ).save(folder / "vocabulary.json")
        _, said = command("--folder", folder, "--text", text, *SUBWORDS)
        assert sentence in said and "\n" not in said
    (folder / "vocabulary.json").unlink()  # learned again, it is the same
    assert command("--folder", folder, "--text", text, *SUBWORDS)[1] is None
    (folder / "vocabulary.json").write_bytes(own)
    assert command("--folder", folder, "--text", text, *SUBWORDS)[1] is None


def test_an_older_run_without_hashes_goes_on_with_a_word(tmp_path, text, command):
    folder = tmp_path / "run"
    command("--folder", folder, "--text", text, *SUBWORDS)
    settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
    kept = {name: value for name, value in settings.items() if not name.endswith("sha256")}
    assert len(kept) == len(settings) - 2
    (folder / "settings.json").write_text(json.dumps(kept), encoding="utf-8")
    sentence = "settings.json has no hash of the text: nobody knows whether it is still the same"
    with pytest.warns(UserWarning, match=sentence):
        out, said = command("--folder", folder, "--text", text, *SUBWORDS)
    assert said is None and "step 7" in out


def test_a_hash_is_of_every_title_text_and_token_and_of_their_order():
    texts = [
        {"a": "1", "b": "2"},
        {"b": "2", "a": "1"},
        {"a": "12", "b": ""},
        {"a": "1", "c": "2"},
        {"a": "1"},
    ]
    sides = [([3, 4], [5]), ([4, 3], [5]), ([3], [4, 5]), ([3, 4], [6]), ([3, 4, 5], [])]
    found = [
        tuple(runs.hashes(text, tuple(map(torch.tensor, side))).values()) for text in texts for side in sides
    ]
    assert len(set(found)) == len(found) == 25
    assert len({text for text, _ in found}) == len({tokens for _, tokens in found}) == 5


MUTATED = {
    "no object": lambda found: [found],
    "nothing": lambda found: {},
    "a size in words": lambda found: found | {"d_model": "8"},
    "a size as a list": lambda found: found | {"d_model": [8]},
    "a size that is true": lambda found: found | {"num_layers": True},
    "a size with a fraction": lambda found: found | {"num_layers": 1.5},
    "a rate in words": lambda found: found | {"learning_rate": "high"},
    "no text": lambda found: found | {"text": None},
    "without a text": lambda found: {name: value for name, value in found.items() if name != "text"},
    "another text": lambda found: found | {"text": "short.txt"},
    "other heads": lambda found: found | {"num_heads": 3},
    "a size of 0": lambda found: found | {"batch_size": 0},
    "another hash": lambda found: found | {"text_sha256": "0" * 64},
    "a hash that is none": lambda found: found | {"tokens_sha256": 3},
    "another width": lambda found: found | {"d_model": 16},
    "another length": lambda found: found | {"steps": 8},
    "another kind": lambda found: found | {"sharing": "sometimes"},
}


@pytest.mark.parametrize("kind", MUTATED)
def test_settings_that_were_changed_are_refused_in_one_sentence(tmp_path, text, command, kind):
    folder = tmp_path / "run"
    command("--folder", folder, "--text", text, *SMALL, "--quiet")
    found = MUTATED[kind](json.loads((folder / "settings.json").read_text(encoding="utf-8")))
    (folder / "settings.json").write_text(json.dumps(found), encoding="utf-8")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for words in (["--text", text, *SMALL, "--quiet"], ["--evaluate", "--device", "cpu"]):
        out, said = command("--folder", folder, *words)
        assert out == "" and isinstance(said, str) and "\n" not in said
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_run_whose_settings_are_gone_is_not_written_over(tmp_path, text, command):
    folder = tmp_path / "run"
    words = ["--folder", folder, "--text", text, *SMALL, "--quiet"]
    command(*words)
    (folder / "settings.json").unlink()
    for gone in ("", "step-00000007.safetensors", "step-00000006.safetensors"):
        (folder / gone).unlink() if gone else None
        before = names(folder)
        assert "is there, but no settings.json; give another --folder" in command(*words)[1]
        assert names(folder) == before


def test_two_commands_in_one_folder_are_told_apart(tmp_path, text, command):
    folder = tmp_path / "run"
    words = ["--folder", folder, "--text", text, *SMALL, "--quiet", "--steps", 10**6]
    process = subprocess.Popen([sys.executable, "-m", MODULE, *map(str, words)], cwd=tmp_path)
    try:
        while process.poll() is None and not (folder / "metrics.jsonl").exists():
            time.sleep(0.002)
        out, said = command(*words)
    finally:
        process.kill()  # it would train for ever beside the tests that follow
    assert process.wait() == KILLED
    sentence = "metrics.jsonl is in use by another process; wait until that has ended"
    assert out == "" and said == f"{folder}/{sentence}"
    steps = [step for step, *_ in losses(folder)]
    assert steps == list(range(1, len(steps) + 1))


@pytest.mark.parametrize("left_out", ["nothing", "step-*"])
def test_a_run_that_has_begun_meanwhile_is_not_written_over(tmp_path, text, command, monkeypatch, left_out):
    folder, whole = tmp_path / "run", tmp_path / "whole"
    command("--folder", whole, "--text", text, *SMALL, "--quiet", "--steps", 8)

    def meanwhile(*sizes):
        shutil.copytree(whole, folder, ignore=shutil.ignore_patterns(left_out))
        seen.update({path.name: path.read_bytes() for path in folder.iterdir()})
        return judged(*sizes)

    seen, judged = {}, corpora.validation_batches
    monkeypatch.setattr(corpora, "validation_batches", meanwhile)
    _, said = command("--folder", folder, "--text", text, *SMALL, "--quiet")
    assert "\n" not in said and seen == {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["notes", "notes/run"])
def test_a_folder_that_is_a_file_is_refused(tmp_path, text, command, name):
    (tmp_path / "notes").write_text("mine", encoding="utf-8")
    out, said = command("--folder", tmp_path / name, "--text", text, *SMALL, "--quiet")
    assert out == "" and said == f"{tmp_path / 'notes'} is a file, expected a folder"


@pytest.mark.skipif(os.name == "nt", reason="names are UTF-16 there")
def test_a_folder_whose_checkpoints_could_not_be_read_again_is_refused(tmp_path, text, command):
    folder = Path(os.fsdecode(os.fsencode(tmp_path / "run") + b"\xff"))
    out, said = command("--folder", folder, "--text", text, *SMALL, "--quiet")
    assert out == "" and "\n" not in said and not folder.exists()
    assert "expected a name in UTF-8" in said and said.isprintable()


def test_a_full_disk_at_the_start_is_one_sentence_and_binds_nobody(tmp_path, text, command, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    folder = tmp_path / "run"
    with monkeypatch.context() as there:
        there.setattr("os.fsync", full)
        out, said = command("--folder", folder, "--text", text, *SUBWORDS)
        assert out == "" and said == f"[Errno 28] {folder} cannot be written: No space left on device"
        assert names(folder) == []
    assert command("--folder", folder, "--text", text, *SMALL, "--quiet")[1] is None


def test_a_corpus_that_cannot_be_fetched_is_said(tmp_path, command, monkeypatch):
    def offline(name):
        raise ConnectionError(f"{name} cannot be fetched")

    monkeypatch.setattr(data, "public_documents", offline)
    assert command("--text", "imdb", "--device", "cpu") == ("", "imdb cannot be fetched")
    assert names(tmp_path) == []


def test_text_and_folder_may_lie_at_home(home, text, command):
    text = text.rename(home / text.name)
    assert command(*SMALL, "--quiet", "--folder", "~/run", "--text", f"~/{text.name}")[1] is None
    assert json.loads((home / "run" / "settings.json").read_text(encoding="utf-8"))["text"] == str(text)


def test_a_known_name_is_not_a_folder_that_happens_to_be_called_so(tmp_path, text, command, monkeypatch):
    (tmp_path / "docstrings").write_text(text.read_text(encoding="utf-8"), encoding="utf-8")
    short = {f"part {i}": part for i, part in enumerate(text.read_text(encoding="utf-8").split(".")[:20])}
    monkeypatch.setattr(data, "docstrings", lambda: short)
    words = [*SMALL, "--quiet", "--folder"]
    assert command(*words, tmp_path / "known")[1] is None
    assert command(*words, tmp_path / "mine", "--text", "./docstrings")[1] is None
    kept = [
        json.loads((tmp_path / name / "settings.json").read_text(encoding="utf-8"))["text"]
        for name in ("known", "mine")
    ]
    assert kept == ["docstrings", str(tmp_path / "docstrings")]


@pytest.mark.parametrize(
    "error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 9 GiB")]
)
def test_out_of_memory_is_one_sentence_and_a_smaller_batch_may_have_the_folder(
    tmp_path, text, command, monkeypatch, error
):
    def too_much(*_):
        raise error

    words = ["--folder", tmp_path / "run", "--text", text, *SMALL, "--quiet"]
    with monkeypatch.context() as there:
        there.setattr(training, "masked_loss", too_much)
        _, said = command(*words, "--batch-size", 200)
    assert said.startswith("out of memory (") and "smaller --batch-size" in said and "\n" not in said
    assert command(*words)[1] is None


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

    judged = corpora.validation_batches
    monkeypatch.setattr(corpora, "validation_batches", watched)
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
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    _, said = command("--folder", folder, "--text", text, *SMALL, "--quiet")
    assert said is None and (folder / "notes.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("content", ["", "[1]", "my settings", "{}", '{"colour": "red"}'])
def test_settings_of_somebody_else_are_refused_by_name(tmp_path, text, command, content):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "settings.json").write_text(content, encoding="utf-8")
    for words in (["--text", text, *SMALL, "--quiet"], ["--evaluate"]):
        out, said = command("--folder", folder, *words)
        assert out == "" and str(folder) in said and "\n" not in said
    assert (folder / "settings.json").read_text(encoding="utf-8") == content and names(folder) == [
        "settings.json"
    ]


def test_subwords_are_learned_once_and_kept_with_the_run(tmp_path, text, command):
    folder = tmp_path / "run"
    words = ["--folder", folder, "--text", text, *SMALL, "--quiet", "--vocabulary", 300]
    first, _ = command(*words)
    kept = (folder / "vocabulary.json").read_bytes()
    assert command(*words)[0] == first.replace("step 0", "step 7")
    assert (folder / "vocabulary.json").read_bytes() == kept
    (folder / "vocabulary.json").write_text("{", encoding="utf-8")
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


def test_help_is_there_without_docstrings(tmp_path):
    words = [sys.executable, "-OO", "-m", MODULE, "--help"]
    ran = subprocess.run(words, capture_output=True, encoding="utf-8", cwd=tmp_path)
    assert ran.returncode == 0 and "updates of the weights" in ran.stdout and ran.stderr == ""
