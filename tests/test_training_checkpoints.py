"""training/checkpoints.py: a run that was stopped, killed or ran out of disk ends as one that was not."""

import errno
import math
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_training import (
    CLASSES,
    CONFIG,
    HIDDEN,
    batches,
    classifier,
    cross_entropy,
    curve,
    is_the_same_run,
    lines,
    names,
    one_thread,
    same,
    straight,
    trainer_of,
)
from torch import nn

from linformer_from_scratch import files

__all__ = ["one_thread"]  # used by being there
LAST = "step-00000017.safetensors"


@pytest.mark.parametrize("until", [1, 4, 6, 16])
def test_a_stopped_run_goes_on_as_if_it_had_not_been(tmp_path, until):
    assert len(trainer_of(tmp_path).train(until=until)) == until
    torch.rand(3)
    assert is_the_same_run(tmp_path)


def test_a_finished_run_stays_as_it_is(tmp_path):
    trainer_of(tmp_path).train()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert is_the_same_run(tmp_path)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_half_a_line_of_metrics_is_written_anew(tmp_path):
    trainer_of(tmp_path).train(until=6)
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    assert trainer_of(tmp_path).step == 4
    assert is_the_same_run(tmp_path)


MOMENTS = [  # each in a new process: the call at which it kills itself; fsync halves the file before it
    *(("batches", 2), ("fsync", 1), ("batches", 6), ("fsync", 2), ("replace", 2), ("replace", 3)),
    *(("unlink", 1), ("batches", 4), ("fsync", 3), ("batches", 1)),
]
PARENT = """
import multiprocessing, sys
sys.path.insert(0, sys.argv[1])
import test_training_checkpoints as tests
tests.trainer_of().train(until=1)  # what this imports, each process then has
for moment in [*tests.MOMENTS, None]:
    process = multiprocessing.get_context("fork").Process(target=tests.live, args=(sys.argv[2], moment))
    process.start(), process.join()
    print(process.exitcode, end=" ")
"""


def live(folder, moment):
    """A run that ends with SIGKILL at a moment."""
    calls = []
    torch.set_num_threads(1)

    def dying(name, function):
        def call(*args, **kwargs):
            if moment and moment[0] == name:
                calls.append(name)
                if len(calls) == moment[1]:
                    if name == "fsync":
                        os.ftruncate(args[0], os.fstat(args[0]).st_size // 2)
                    os.kill(os.getpid(), 9)
            return function(*args, **kwargs)

        return call

    files.os.fsync = dying("fsync", os.fsync)
    Path.replace, Path.unlink = dying("replace", Path.replace), dying("unlink", Path.unlink)
    trainer_of(folder, batches=dying("batches", batches)).train()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_run_killed_at_any_moment_ends_with_the_same_curve_and_weights(tmp_path):
    words = [sys.executable, "-W", "error::UserWarning", "-c", PARENT, str(Path(__file__).parent)]
    ran = subprocess.run([*words, str(tmp_path)], capture_output=True, encoding="utf-8", cwd=tmp_path)
    assert ran.stdout.split() == ["-9"] * len(MOMENTS) + ["0"], ran.stderr
    assert curve(lines(tmp_path)) == curve(straight().history)
    assert is_the_same_run(tmp_path) and names(tmp_path)[1:] == [
        "step-00000016.safetensors",
        LAST,
    ]


class Payload:
    def __reduce__(self):
        return Path.touch, (Path("executed"),)


def of_another_model(path):
    other = path.parent / "other"
    trainer_of(other, model=classifier(hidden=2 * HIDDEN)).train()
    (other / LAST).replace(path)
    shutil.rmtree(other)


def of_a_deeper_model(path):
    other = path.parent / "other"
    trainer_of(other, model=nn.Sequential(*classifier(), nn.Linear(CLASSES, CLASSES))).train()
    (other / LAST).replace(path)
    shutil.rmtree(other)


REFUSED = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("my notes"),
    "safetensors of somebody else": lambda path: save_file({"x": torch.ones(2)}, path),
    "without our header": lambda path: save_file(load_file(path), path),
    "a pickle": lambda path: torch.save(Payload(), path),
    "a bare pickle": lambda path: torch.save(Payload(), path, _use_new_zipfile_serialization=False),
    "another model": of_another_model,
    "a deeper model": of_a_deeper_model,
}
for kept in (1, 9, 500, 3000, -1):
    REFUSED[f"cut at {kept}"] = lambda path, kept=kept: path.write_bytes(path.read_bytes()[:kept])


every_kind = pytest.mark.parametrize("kind", REFUSED)


@every_kind
def test_a_checkpoint_that_is_none_is_refused_by_name(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    trainer_of(tmp_path).train()
    REFUSED[kind](tmp_path / LAST)
    with pytest.warns(UserWarning, match=rf"^{LAST} is refused: .*; going on from step 16$"):
        trainer_of(tmp_path).train()
    assert is_the_same_run(tmp_path) and "executed" not in names(tmp_path)


@every_kind
def test_when_no_checkpoint_is_left_nothing_is_overwritten(tmp_path, kind):
    trainer_of(tmp_path).train()
    (tmp_path / "step-00000016.safetensors").unlink()
    REFUSED[kind](tmp_path / LAST)
    before = (tmp_path / "metrics.jsonl").read_bytes()
    with pytest.raises(ValueError, match=rf"^{LAST} is refused: .*; there is no other in .*remove it"):
        trainer_of(tmp_path)
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize(("name", "value"), [("learning_rate", 0.5), ("steps", 18), ("seed", 3)])
def test_another_configuration_is_refused_with_both_values(tmp_path, name, value):
    trainer_of(tmp_path).train(until=4)
    with pytest.raises(ValueError, match=f"has {name}={getattr(CONFIG, name)}, this one {name}={value};"):
        trainer_of(tmp_path, config=replace(CONFIG, **{name: value}))


def slow_run(folder=None, first=0):
    model = classifier()
    return trainer_of(folder, model=model, slow=list(model.parameters())[first : first + 2])


def test_a_run_with_slow_parameters_goes_on_as_if_it_had_not_stopped(tmp_path):
    slow_run(tmp_path).train(until=6)
    whole = slow_run()
    whole.train()
    resumed = slow_run(tmp_path)
    assert resumed.step == 4 and curve(resumed.train()) == curve(whole.history)
    assert same(resumed.model, whole.model)
    assert curve(whole.history) != curve(straight().history)


@pytest.mark.parametrize("other", [{"first": 1}, None])
def test_other_slow_parameters_are_refused_with_both(tmp_path, other):
    slow_run(tmp_path).train(until=4)
    with pytest.raises(ValueError, match=r"has slow=\['0.weight', '0.bias'\], this one slow="):
        slow_run(tmp_path, **other) if other else trainer_of(tmp_path)


@contextmanager
def files_of_at_most(size):
    """What a full disk does, by the operating system's own limit."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_keeps_the_older_checkpoint_and_the_run_goes_on_later(tmp_path):
    trainer_of(tmp_path).train(until=5)
    before = (tmp_path / "step-00000004.safetensors").read_bytes()
    sentence = r"step-00000008.safetensors cannot be written: .*; step-00000004.safetensors is kept, free "
    with files_of_at_most(4096), pytest.raises(OSError, match=sentence) as raised:
        trainer_of(tmp_path).train()
    assert raised.value.errno == errno.EFBIG and "\n" not in str(raised.value)
    assert names(tmp_path) == ["metrics.jsonl", "step-00000004.safetensors"]
    assert (tmp_path / "step-00000004.safetensors").read_bytes() == before
    assert is_the_same_run(tmp_path)


def test_a_disk_full_from_the_start_says_that_nothing_is_kept(tmp_path):
    with files_of_at_most(4096), pytest.raises(OSError, match="there is no earlier one"):
        trainer_of(tmp_path).train()
    assert names(tmp_path) == ["metrics.jsonl"] and is_the_same_run(tmp_path)


def test_metrics_on_a_full_disk_are_one_sentence_and_the_run_goes_on_later(tmp_path):
    trainer = trainer_of(tmp_path)
    trainer.train(until=6)
    size = (tmp_path / "metrics.jsonl").stat().st_size
    sentence = "metrics.jsonl cannot be written: .*; the checkpoints are kept, free space and start again$"
    with files_of_at_most(size + 23), pytest.raises(OSError, match=sentence):
        trainer.train()
    assert is_the_same_run(tmp_path)


def infinite_loss(model, x, labels):
    return cross_entropy(model, x, labels) * math.inf


def nan_gradient(model, x, labels):
    return cross_entropy(model, x, labels) + (model[0].weight * 0).abs().sqrt().sum()


@pytest.mark.parametrize(("bad", "what"), [(infinite_loss, "loss"), (nan_gradient, "gradient")])
def test_what_is_not_finite_stops_the_run_before_the_weights(tmp_path, bad, what):
    trainer = trainer_of(tmp_path)
    trainer.train(until=8)
    trainer.loss = bad
    with pytest.raises(FloatingPointError, match=rf"^the {what} is not finite at step 9, .*those of step 8;"):
        trainer.train()
    assert same(trainer.model, trainer_of(tmp_path).model), "exactly those of the checkpoint"
    assert is_the_same_run(tmp_path)


def test_only_the_newest_two_checkpoints_are_kept_and_nothing_of_others_is_touched(tmp_path):
    others = ["notes.txt", "step-1.safetensors", "step-final.safetensors", "step-00000001.txt"]
    for name in others:
        (tmp_path / name).write_text("mine")
    assert is_the_same_run(tmp_path)
    assert names(tmp_path) == sorted([*others, "metrics.jsonl", "step-00000016.safetensors", LAST])
    assert {(tmp_path / name).read_text() for name in others} == {"mine"}


def test_refused_files_do_not_push_out_what_is_written(tmp_path):
    trainer_of(tmp_path).train(until=4)
    for step in (90000000, 90000001):
        (tmp_path / f"step-{step}.safetensors").write_text("mine")
    with pytest.warns(UserWarning, match="going on from step 4"):
        trainer_of(tmp_path).train(until=8)
    assert "step-00000008.safetensors" in names(tmp_path)


def test_the_same_trainer_goes_on_after_a_full_disk(tmp_path):
    trainer = trainer_of(tmp_path)
    trainer.train(until=6)
    size = (tmp_path / "metrics.jsonl").stat().st_size
    with files_of_at_most(size + 23), pytest.raises(OSError):
        trainer.train()
    trainer.train()
    assert curve(trainer.history) == curve(lines(tmp_path)) == curve(straight().history)
