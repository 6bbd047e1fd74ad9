"""training/checkpoints.py: a run that was stopped, killed or ran out of disk ends as one that was not."""

import errno
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import test_training as tests
import torch
from safetensors.torch import load_file, save_file
from test_training import classifier, curve, is_the_same_run, lines, names, one_thread, same, trainer_of
from torch import nn

from linformer_from_scratch.common import files, random_state
from linformer_from_scratch.common.files import locked
from linformer_from_scratch.training import checkpoints, metrics, modes, trainer

__all__ = ["one_thread"]  # used by being there
LAST = "step-00000017.safetensors"
FORMAT = {"format": checkpoints.FORMAT}


@pytest.mark.parametrize("until", [1, 6, 16])
def test_a_stopped_run_goes_on_as_if_it_had_not_been(tmp_path, until):
    assert len(trainer_of(tmp_path).train(until=until)) == until
    torch.rand(3)
    assert is_the_same_run(tmp_path)


def test_a_finished_run_stays_as_it_is(tmp_path):
    trainer_of(tmp_path).train()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert is_the_same_run(tmp_path)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_what_a_killed_run_left_half_written_is_written_anew(tmp_path):
    trainer_of(tmp_path).train(until=6)
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    (tmp_path / "step-00000008.safetensors.1.unfinished").write_bytes(b"half")
    assert trainer_of(tmp_path).step == 4
    assert is_the_same_run(tmp_path)
    assert names(tmp_path) == ["metrics.jsonl", "step-00000016.safetensors", LAST]


MOMENTS = [  # each in a new process: the call at which it kills itself; fsync halves the file before it
    *(("batches", 2), ("fsync", 1), ("batches", 6), ("fsync", 2), ("replace", 2), ("replace", 3)),
    *(("unlink", 1), ("batches", 4), ("fsync", 3), ("batches", 1)),
]
PARENT = """
import multiprocessing, sys
assert sys.platform != "win32"
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
    trainer_of(folder, batches=dying("batches", tests.batches)).train()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_run_killed_at_any_moment_ends_with_the_same_curve_and_weights(tmp_path):
    words = [sys.executable, "-W", "error::UserWarning", "-c", PARENT, str(Path(__file__).parent)]
    ran = subprocess.run([*words, str(tmp_path)], capture_output=True, encoding="utf-8", cwd=tmp_path)
    assert ran.stdout.split() == ["-9"] * len(MOMENTS) + ["0"], ran.stderr
    assert curve(lines(tmp_path)) == curve(tests.straight().history)
    assert is_the_same_run(tmp_path) and names(tmp_path)[1:] == ["step-00000016.safetensors", LAST]


TRACED = {module.__file__ for module in (trainer, checkpoints, metrics, modes, random_state)}
SHORT = replace(tests.CONFIG, steps=3, evaluate_every=2, warmup=1)


class CtrlC:
    """Watches the lines that a run passes; at one of them it does what Ctrl-C does."""

    def __init__(self, moment=None):
        self.moment, self.lines = moment, []

    def __enter__(self):
        sys.settrace(self)
        return self

    def __exit__(self, *error):
        sys.settrace(None)

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename not in TRACED:
            return None
        if event == "line":
            self.lines.append((frame.f_code.co_filename, frame.f_lineno))
            if len(self.lines) == self.moment:
                signal.raise_signal(signal.SIGINT)
        return self


@pytest.fixture
def python_handles_ctrl_c():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.slow)])
def test_ctrl_c_at_any_line_loses_nothing_that_was_trained(tmp_path, python_handles_ctrl_c, every):
    whole = trainer_of(tmp_path / "whole", config=SHORT)
    with CtrlC() as watch:
        whole.train()
    last_times = {line: moment for moment, line in enumerate(watch.lines, 1)}
    for moment in [*last_times.values()][::every]:
        folder = tmp_path / f"{moment}"
        interrupted = trainer_of(folder, config=SHORT)
        with pytest.raises(KeyboardInterrupt), CtrlC(moment):
            interrupted.train()
        copy = tmp_path / f"{moment} copy"
        shutil.copytree(folder, copy) if folder.exists() else copy.mkdir()
        resumed = trainer_of(copy, config=SHORT)
        assert resumed.step == {0: 0, 1: 0, 2: 2, 3: 3}[interrupted.step], "the checkpoint that was due"
        for run in (interrupted, resumed):  # in the same program, and in a new one
            run.train()
            last = trainer_of(run.folder, config=SHORT)
            assert last.step == 3 and same(last.model, whole.model) and same(run.model, whole.model)
            assert curve(run.history) == curve(lines(run.folder)) == curve(whole.history)


class Payload:
    def __reduce__(self):
        return Path.touch, (Path("executed"),)


def of_another_model(path):
    tensors = trainer_of(model=classifier(hidden=2 * tests.HIDDEN)).model.state_dict()
    record = json.dumps({"step": 17, "config": asdict(tests.CONFIG)})
    save_file({f"model.{name}": w for name, w in tensors.items()}, path, {**FORMAT, "record": record})


def of_version_1_0(path):
    save_file(load_file(path) | {"model.E.stored": torch.ones(3)}, path, FORMAT)


REFUSED = [
    ("it is truncated or damaged", lambda path: path.write_bytes(path.read_bytes()[:500])),
    ("it is truncated or damaged", lambda path: torch.save(Payload(), path)),
    ("it is not a checkpoint of this trainer", lambda path: save_file({"x": torch.ones(2)}, path)),
    (r"it holds \(22, 5\) for model.0.weight, this model has \(11, 5\)", of_another_model),
    ("version 1.0 wrote it", of_version_1_0),
]


@pytest.mark.parametrize(("reason", "spoil"), REFUSED)
def test_a_checkpoint_that_cannot_be_used_is_refused_by_name_and_the_older_one_used(
    tmp_path, monkeypatch, reason, spoil
):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    trainer_of(run).train()
    spoil(run / LAST)
    with pytest.warns(UserWarning, match=rf"^{LAST} is refused: {reason}.*; going on from step 16$"):
        assert trainer_of(run).step == 16
    (run / "step-00000016.safetensors").unlink()
    before = (run / "metrics.jsonl").read_bytes()
    with pytest.raises(ValueError, match=rf"^{LAST} is refused: .*; there is no other in .*remove it"):
        trainer_of(run)
    assert (run / "metrics.jsonl").read_bytes() == before and names(tmp_path) == ["run"]


def test_another_configuration_is_refused_with_both_values(tmp_path):
    trainer_of(tmp_path).train(until=4)
    with pytest.raises(ValueError, match=r"has learning_rate=0.05, this one learning_rate=0.5;"):
        trainer_of(tmp_path, config=replace(tests.CONFIG, learning_rate=0.5))


def slow_run(folder=None, first=0):
    model = classifier()
    weights = list(model.parameters())[first : first + 2]
    return trainer_of(folder, model=model, lr_scale=dict.fromkeys(weights, 0.1))


def test_a_run_with_slow_parameters_goes_on_as_if_it_had_not_stopped(tmp_path):
    slow_run(tmp_path).train(until=6)
    whole = slow_run()
    whole.train()
    resumed = slow_run(tmp_path)
    assert resumed.step == 4 and curve(resumed.train()) == curve(whole.history)
    assert same(resumed.model, whole.model)
    assert curve(whole.history) != curve(tests.straight().history)
    with pytest.raises(ValueError, match=r"has lr_scale={'0.weight': 0.1, '0.bias': 0.1}, this one"):
        slow_run(tmp_path, first=1)


def test_a_parameter_that_never_has_a_gradient_does_not_keep_a_run_from_going_on(tmp_path):
    def unused():
        model = classifier()
        model.register_parameter("unused", nn.Parameter(torch.ones(3)))
        return model

    trainer_of(tmp_path, model=unused()).train(until=6)
    resumed = trainer_of(tmp_path, model=unused())
    assert resumed.step == 4 and curve(resumed.train()) == curve(tests.straight().history)


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
    sentence = "step-00000008.safetensors cannot be written: .*; earlier checkpoints are kept, free space"
    with files_of_at_most(4096), pytest.raises(OSError, match=sentence) as raised:
        trainer_of(tmp_path).train()
    assert raised.value.errno == errno.EFBIG and "\n" not in str(raised.value)
    assert names(tmp_path) == ["metrics.jsonl", "step-00000004.safetensors"]
    assert (tmp_path / "step-00000004.safetensors").read_bytes() == before
    assert is_the_same_run(tmp_path)


def test_metrics_on_a_full_disk_are_one_sentence_and_the_same_trainer_goes_on_later(tmp_path):
    trainer = trainer_of(tmp_path)
    trainer.train(until=6)
    size = (tmp_path / "metrics.jsonl").stat().st_size
    sentence = "metrics.jsonl cannot be written: .*; the checkpoints are kept, free space and start again$"
    with files_of_at_most(size + 23), pytest.raises(OSError, match=sentence):
        trainer.train()
    trainer.train()
    assert curve(trainer.history) == curve(lines(tmp_path)) == curve(tests.straight().history)


def infinite_loss(model, x, labels):
    return tests.cross_entropy(model, x, labels) * math.inf


def nan_gradient(model, x, labels):
    return tests.cross_entropy(model, x, labels) + (model[0].weight * 0).abs().sqrt().sum()


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
    others = ["notes.txt", "step-1.safetensors", "step-final.safetensors"]
    for name in others:
        (tmp_path / name).write_text("mine", encoding="utf-8")
    assert is_the_same_run(tmp_path)
    assert names(tmp_path) == sorted([*others, "metrics.jsonl", "step-00000016.safetensors", LAST])
    assert {(tmp_path / name).read_text(encoding="utf-8") for name in others} == {"mine"}


def test_refused_files_do_not_push_out_what_is_written(tmp_path):
    trainer_of(tmp_path).train(until=4)
    for step in (90000000, 90000001):
        (tmp_path / f"step-{step}.safetensors").write_text("mine", encoding="utf-8")
    with pytest.warns(UserWarning, match="going on from step 4"):
        trainer_of(tmp_path).train(until=8)
    assert "step-00000008.safetensors" in names(tmp_path)


@pytest.mark.parametrize("line", [b"my notes", b"[3]", b'{"loss": 1.0}', b'{"step": 2}', b""])
def test_a_damaged_line_of_metrics_is_missed_and_the_others_are_kept(tmp_path, line):
    trainer_of(tmp_path).train()
    path = tmp_path / "metrics.jsonl"
    good = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*good[:2], line, *good[3:], b""]))
    with pytest.warns(UserWarning, match=r"^metrics.jsonl has 16 of 17 updates; going on from step 17$"):
        trainer_of(tmp_path).train()
    assert curve(lines(tmp_path)) == [r for r in curve(tests.straight().history) if r["step"] != 3]


def test_two_trainers_do_not_share_a_folder(tmp_path):
    trainer_of(tmp_path).train(until=4)
    second = trainer_of(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    in_use = pytest.raises(BlockingIOError, match=r"metrics.jsonl is in use by another process; wait")
    with locked(tmp_path / "metrics.jsonl"), in_use:
        second.train()
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    trainer_of(tmp_path).train()
    with pytest.raises(ValueError, match=f"{LAST} was written by another trainer since .*, at step 4; make"):
        second.train()
    assert is_the_same_run(tmp_path)


def test_a_folder_is_made_only_when_the_run_starts(tmp_path):
    trainer = trainer_of(tmp_path / "deep" / "run")
    trainer.evaluate(trainer.validation)
    assert names(tmp_path) == []
    trainer.train(until=1)
    assert names(tmp_path / "deep" / "run") == ["metrics.jsonl"]
