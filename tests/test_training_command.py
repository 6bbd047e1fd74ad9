"""python -m linformer_from_scratch.training: one command trains, the same again resumes, one evaluates."""

import json
import re
import warnings
from dataclasses import fields
from unittest.mock import Mock

import pytest
import torch
from test_training import lines, names

from linformer_from_scratch import data, training
from linformer_from_scratch.common.files import locked
from linformer_from_scratch.data import ByteVocabulary, MaskedBatches, SubwordVocabulary, read_documents
from linformer_from_scratch.training import Config, checkpoints, corpora, runs
from linformer_from_scratch.training.recipes import Recipe

MODULE = "linformer_from_scratch.training"
SMALL = "--d-model 8 --num-heads 2 --num-layers 1 --seq-len 16 --proj-dim 4 --vocabulary 259 --batch-size 2"
SMALL = f"{SMALL} --steps 7 --warmup 2 --evaluate-every 3 --device cpu".split()
SENTENCE = r"held-out loss at step 7: (\d\.\d{3}) nats per masked token\n"


@pytest.fixture
def text(tmp_path):
    """A text file of the learner's."""
    path = tmp_path / "mine.txt"
    lines = [f"Line {i} says that {i} times {i} is {i * i}.\n" for i in range(100)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path):
    """Where a run is kept."""
    return tmp_path / "run"


@pytest.fixture
def command(monkeypatch, as_module, tmp_path):
    """Run the command: what it printed, and its exit's message; `shown`: its errors and its bar."""
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # the command sets it
    monkeypatch.chdir(tmp_path)

    def run(*words):
        code, out, run.shown = as_module(MODULE, *words)
        return out, code

    return run


def settings(folder):
    return json.loads((folder / "settings.json").read_text(encoding="utf-8"))


def losses(folder):
    return [(r["step"], r["loss"], r.get("validation_loss")) for r in lines(folder)]


def test_trains_resumes_and_evaluates_a_text_of_the_learner(folder, text, command):
    trained, code = command("--folder", folder, "--text", text, *SMALL, "--quiet")
    loss = re.fullmatch(r"([\d,]+) parameters, cpu, step 0\n" + SENTENCE, trained)
    assert loss and code is None
    assert [step for step, *_ in losses(folder)] == list(range(1, 8))
    assert f"{losses(folder)[-1][2]:.3f}" == loss[2]
    resumed, _ = command("--folder", folder, "--text", text, *SMALL, "--quiet")
    assert resumed == trained.replace("step 0", "step 7")
    evaluated, _ = command("--folder", folder, "--evaluate", "--device", "cpu")
    assert evaluated == trained.split("\n", 1)[1]


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
    (["--learning-rate", "nan"], "learning_rate is nan, expected at least 0"),
    (["--text", "missing.txt"], "there is no file or folder missing.txt"),
    (["--folder", "mine.txt"], "mine.txt is a file, expected a folder"),
    (["--evaluate"], "run; train one first"),
    (["--text", ""], "text is empty, expected docstrings, a file or a folder"),
    (["--vocabulary", 100], "vocabulary size is 100, expected an integer in 259 … 1000000"),
    (["--seq-len", 100_000], "tokens, expected at least seq_len=100000"),
    (["--sharing", "none", "--projection", "mean"], "mean projections have no matrix for each head"),
    (["--num-heads", 3], "3 heads do not divide d_model=8"),
    (["--attention", "other"], "attention is 'other', expected one of linformer, full, none"),
    (["--attention", "full+none"], "attention full+none is for 2 layers, expected 1"),
    (["--d-model", 10**6], "out of memory"),
    (["--device", "gpu"], "device is 'gpu', expected cpu, cuda, cuda:0 or mps"),
]


@pytest.mark.parametrize(("words", "sentence"), WRONG)
def test_wrong_settings_are_refused_in_one_sentence_and_leave_nothing(
    tmp_path, text, command, words, sentence
):
    out, said = command("--folder", tmp_path / "run", "--text", text, *SMALL, "--quiet", *words)
    assert out == "" and sentence in said and "\n" not in said
    assert not (tmp_path / "run").exists()


SUBWORDS = [*SMALL, "--quiet", "--vocabulary", "300"]


def test_what_a_refused_command_left_does_not_bind_the_next_and_files_of_others_stay(tmp_path, text, command):
    folder, whole = tmp_path / "run", tmp_path / "whole"
    command("--folder", whole, "--text", text, *SUBWORDS)
    folder.mkdir()
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    SubwordVocabulary(["quite another text " * 50], 268).save(folder / "vocabulary.json")
    other = settings(whole) | {"num_heads": 3}
    (folder / "settings.json").write_text(json.dumps(other), encoding="utf-8")
    _, said = command("--folder", folder, "--evaluate", "--device", "cpu")
    assert said == f"there is no run in {folder}; train one first"
    assert command("--folder", folder, "--text", text, *SUBWORDS)[1] is None
    for name in ("vocabulary.json", "settings.json"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()
    assert losses(folder) == losses(whole) and (folder / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_a_text_that_was_edited_is_noticed(folder, text, command):
    command("--folder", folder, "--text", text, *SUBWORDS)
    original = text.read_text(encoding="utf-8")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    text.write_text(original.replace("7", "8", 1), encoding="utf-8")
    for words in (["--text", text, *SUBWORDS], ["--evaluate", "--device", "cpu"]):
        _, said = command("--folder", folder, *words)
        assert said.startswith(f"the text or the vocabulary.json of the run in {folder} has changed since")
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    text.write_text(original, encoding="utf-8")
    assert command("--folder", folder, "--text", text, *SUBWORDS)[1] is None


def test_another_vocabulary_is_noticed(folder, text, command):
    command("--folder", folder, "--text", text, *SUBWORDS)
    other = SubwordVocabulary(["quite another text, and words of its own; " * 9], 290)
    other.save(folder / "vocabulary.json")
    _, said = command("--folder", folder, "--text", text, *SUBWORDS)
    assert said.startswith(f"the text or the vocabulary.json of the run in {folder} has changed since")
    (folder / "vocabulary.json").unlink()  # learned again, it is the same
    assert command("--folder", folder, "--text", text, *SUBWORDS)[1] is None


def test_a_fingerprint_is_of_every_token_and_of_where_the_held_out_ones_begin():
    sides = ([3, 4], [5]), ([4, 3], [5]), ([3], [4, 5]), ([3, 4], [6]), ([3, 4, 5], [])
    assert len({runs.fingerprint(map(torch.tensor, pair)) for pair in sides}) == len(sides)


def test_settings_that_were_changed_by_hand_are_refused_in_one_sentence(folder, text, command):
    command("--folder", folder, "--text", text, *SMALL, "--quiet")
    whole = settings(folder)
    for change in ({"d_model": "8"}, {"steps": 8}, {"sharing": "sometimes"}):
        (folder / "settings.json").write_text(json.dumps(whole | change), encoding="utf-8")
        out, said = command("--folder", folder, "--evaluate", "--device", "cpu")
        assert out == "" and next(iter(change)) in said and "\n" not in said


def test_two_commands_in_one_folder_are_told_apart(folder, text, command):
    folder.mkdir()
    with locked(folder / "metrics.jsonl"):
        out, said = command("--folder", folder, "--text", text, *SMALL, "--quiet")
    sentence = "metrics.jsonl is in use by another process; wait until that has ended"
    assert out == "" and said == f"{folder}/{sentence}"


def test_a_full_disk_at_the_start_is_one_sentence_and_binds_nobody(folder, text, command, monkeypatch):
    with monkeypatch.context() as there:
        there.setattr("os.fsync", Mock(side_effect=OSError(28, "No space left on device")))
        out, said = command("--folder", folder, "--text", text, *SUBWORDS)
        assert out == "" and said == f"[Errno 28] {folder} cannot be written: No space left on device"
        assert names(folder) == []
    assert command("--folder", folder, "--text", text, *SMALL, "--quiet")[1] is None


def test_a_corpus_that_cannot_be_fetched_is_said(tmp_path, command, monkeypatch):
    monkeypatch.setattr(data, "public_documents", Mock(side_effect=ConnectionError("it cannot be fetched")))
    assert command("--text", "imdb", "--device", "cpu") == ("", "it cannot be fetched")
    data.public_documents.assert_called_once_with("imdb")
    assert names(tmp_path) == []


def test_text_and_folder_may_lie_at_home(home, text, command):
    text = text.rename(home / text.name)
    assert command(*SMALL, "--quiet", "--folder", "~/run", "--text", f"~/{text.name}")[1] is None
    assert settings(home / "run")["text"] == str(text)


def test_a_known_name_is_not_a_folder_that_happens_to_be_called_so(tmp_path, text, command, monkeypatch):
    known = text.rename(tmp_path / "docstrings").read_text(encoding="utf-8").split(".")[:20]
    monkeypatch.setattr(data, "docstrings", lambda: dict(zip(map(str, range(20)), known, strict=True)))
    words = [*SMALL, "--quiet", "--folder"]
    assert command(*words, tmp_path / "known")[1] is None
    assert command(*words, tmp_path / "mine", "--text", "./docstrings")[1] is None
    kept = [settings(tmp_path / name)["text"] for name in ("known", "mine")]
    assert kept == ["docstrings", str(tmp_path / "docstrings")]


def test_out_of_memory_is_one_sentence_and_a_smaller_batch_may_have_the_folder(
    tmp_path, text, command, monkeypatch
):
    def too_much(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 9 GiB")

    words = ["--folder", tmp_path / "run", "--text", text, *SMALL, "--quiet"]
    with monkeypatch.context() as there:
        there.setattr(training, "masked_loss", too_much)
        _, said = command(*words, "--batch-size", 200)
    assert said.startswith("out of memory (") and "smaller --batch-size" in said and "\n" not in said
    assert command(*words)[1] is None


def test_a_word_that_is_no_choice_is_refused_with_the_choices(tmp_path, command):
    assert command("--projection", "other") == ("", 2) and "windows" in command.shown.splitlines()[-1]
    assert names(tmp_path) == []


def test_other_settings_are_refused_with_both_values(folder, text, command):
    words = ["--folder", folder, "--text", text, *SMALL, "--quiet"]
    command(*words)
    before = losses(folder)
    _, said = command(*words, "--d-model", 4)
    assert said == f"the run in {folder} has --d-model 8, not 4; give another --folder"
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


@pytest.mark.parametrize("content", ["my settings", '{"colour": "red"}'])
def test_settings_of_somebody_else_are_refused_by_name(folder, text, command, content):
    folder.mkdir()
    (folder / "settings.json").write_text(content, encoding="utf-8")
    for words in (["--text", text, *SMALL, "--quiet"], ["--evaluate"]):
        out, said = command("--folder", folder, *words)
        assert out == "" and said.startswith(f"{folder}/settings.json does not hold the settings of a run")
    assert (folder / "settings.json").read_text(encoding="utf-8") == content
    assert names(folder) == ["settings.json"]


def test_a_vocabulary_of_somebody_else_is_not_written_over(folder, text, command):
    folder.mkdir()
    (folder / "vocabulary.json").write_text('["my words"]', encoding="utf-8")
    _, said = command("--folder", folder, "--text", text, *SUBWORDS)
    assert "vocabulary.json is not a vocabulary of subwords" in said and names(folder) == ["vocabulary.json"]


def test_evaluating_changes_no_file_of_the_run(folder, text, command):
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


def test_help_lists_every_setting_and_its_default(command):
    out, code = command("--help")
    listed = set(re.findall(r"^  --([a-z-]+)", out.partition("\noptions:")[2], re.MULTILINE))
    every = {field.name.replace("_", "-") for part in (Recipe, Config) for field in fields(part)}
    assert code == 0 and every <= listed
    assert re.search(r"^  --learning-rate .*\s+.*\(default: 0.004\)", out, re.MULTILINE)
