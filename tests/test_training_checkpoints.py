"""training/checkpoints.py: a run that was stopped, killed or ran out of disk ends as one that was not."""

import errno
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import warnings
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
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

from linformer_from_scratch.common import files, random_state
from linformer_from_scratch.projections import LearnedProjection
from linformer_from_scratch.training import Config, Trainer, checkpoints, metrics, modes, trainer

__all__ = ["one_thread"]  # used by being there
LAST = "step-00000017.safetensors"
DATA = Path(__file__).parent / "data"


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


TRACED = {module.__file__ for module in (trainer, checkpoints, metrics, modes, random_state)}
SHORT = replace(CONFIG, steps=3, evaluate_every=2, warmup=1)


class CtrlC:
    """Watches the lines that a run comes through; at one of them it does what Ctrl-C does."""

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


def short_run(folder):
    return trainer_of(folder, config=SHORT)


def test_ctrl_c_at_any_line_loses_nothing_that_was_trained(tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    whole = short_run(tmp_path / "whole")
    with CtrlC() as watch:
        whole.train()
    moments = {line: moment for moment, line in enumerate(watch.lines, 1)}
    for moment in moments.values():  # the last time that the run comes through a line
        folder, copy = tmp_path / f"{moment}", tmp_path / f"{moment} again"
        interrupted = short_run(folder)
        with pytest.raises(KeyboardInterrupt), CtrlC(moment):
            interrupted.train()
        shutil.copytree(folder, copy) if folder.exists() else copy.mkdir()
        another = short_run(copy)
        assert another.step == {0: 0, 1: 0, 2: 2, 3: 3}[interrupted.step], "what was due is there"
        for run, place in ((interrupted, folder), (another, copy)):
            run.train()
            last = short_run(place)
            assert last.step == 3 and same(last.model, whole.model) and same(run.model, whole.model)
            assert curve(run.history) == curve(lines(place)) == curve(whole.history)
    signal.signal(signal.SIGINT, before)


def test_a_validation_that_draws_may_be_interrupted_and_what_comes_after_it_killed(tmp_path):
    def noisy(model, x, labels):
        if not model.training and interrupt.pop() if interrupt else False:
            raise KeyboardInterrupt
        return cross_entropy(model, x + torch.randn_like(x), labels)

    def run(folder=None):
        return trainer_of(folder, config=SHORT, loss=noisy)

    interrupt: list[bool] = []
    whole = run()
    whole.train()
    first = run(tmp_path)
    interrupt = [True]
    with pytest.raises(KeyboardInterrupt):
        first.train()
    assert first.step == 2 and not interrupt
    first.train(until=2)  # validates, and dies
    second = run(tmp_path)
    second.train()
    assert curve(second.history) == curve(whole.history) and same(second.model, whole.model)


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
    "text": lambda path: path.write_text("my notes", encoding="utf-8"),
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
    return trainer_of(
        folder, model=model, lr_scale=dict.fromkeys(list(model.parameters())[first : first + 2], 0.1)
    )


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
    with pytest.raises(
        ValueError, match=r"has lr_scale={'0.weight': 0.1, '0.bias': 0.1}, this one lr_scale="
    ):
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


def test_the_same_trainer_goes_on_after_a_full_disk(tmp_path):
    trainer = trainer_of(tmp_path)
    trainer.train(until=6)
    size = (tmp_path / "metrics.jsonl").stat().st_size
    with files_of_at_most(size + 23), pytest.raises(OSError):
        trainer.train()
    trainer.train()
    assert curve(trainer.history) == curve(lines(tmp_path)) == curve(straight().history)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    trainer_of(folder).train()
    return folder


@pytest.fixture
def copied(finished, tmp_path):
    """A folder with a finished run, its checkpoints at steps 16 and 17."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path


def without(*names):
    return lambda tensors, record: [tensors.pop(name) for name in names]


def replaced(name, change):
    return lambda tensors, record: tensors.update({name: change(tensors[name])})


def added(name):
    return lambda tensors, record: tensors.update({name: torch.ones(3)})


def said(**fields):
    return lambda tensors, record: record.update(fields)


def unsaid(name):
    return lambda tensors, record: record.pop(name)


MOMENTS_OF_TWO = [f"optimizer.2.{name}" for name in ("step", "exp_avg", "exp_avg_sq")]
WEIGHT, MOMENT = "model.0.weight", "optimizer.1.exp_avg"
CHANGED = {
    **{f"without {name}": without(name) for name in (*MOMENTS_OF_TWO, WEIGHT, "random.cpu")},
    "moments in another shape": replaced(MOMENT, lambda tensor: tensor[:2]),
    "moments transposed": replaced("optimizer.0.exp_avg", lambda tensor: tensor.mT.contiguous()),
    "moments as one number": replaced(MOMENT, lambda tensor: tensor.sum()),
    "a count of steps as a list": replaced("optimizer.0.step", lambda tensor: tensor[None]),
    "moments of other numbers": replaced(MOMENT, lambda tensor: tensor.double()),
    "moments of integers": replaced(MOMENT, lambda tensor: tensor.int()),
    "weights of other numbers": replaced(WEIGHT, lambda tensor: tensor.half()),
    "weights in another shape": replaced(WEIGHT, lambda tensor: tensor.flatten()),
    "moments of nobody": added("optimizer.99.exp_avg"),
    "a weight of nobody": added("model.9.weight"),
    "something of nobody": added("notes"),
    "half of the random numbers": replaced("random.cpu", lambda tensor: tensor[:99]),
    "random numbers of other numbers": replaced("random.cpu", lambda tensor: tensor.int()),
    "random numbers that are none": replaced("random.cpu", lambda tensor: tensor * 0 + 255),
    **{f"at step {step!r}": said(step=step) for step in (10**9, -1, 0, 16, 18, "17", 17.0, True, None, [17])},
    **{f"with config {value!r}": said(config=value) for value in (None, [], {}, "none", {"steps": "17"})},
    "beyond the last step": said(config={"steps": 9}),
    "without a step": unsaid("step"),
    "without a config": unsaid("config"),
}
RECORDS = ["", "17", "[]", "null", "{", "[" * 100_000, '"step"', '{"step": 17']


def rewritten(path, change, record=None, format=checkpoints.FORMAT):
    """Write a checkpoint changed; with the hash of what it then holds, or in the older format, without."""
    with safe_open(path, "pt") as file:
        found = json.loads(file.metadata()["record"])
    tensors = load_file(path)
    change(tensors, found)
    record = json.dumps(found) if record is None else record
    hashed = {"sha256": checkpoints._hash(tensors, record)} if format == checkpoints.FORMAT else {}
    save_file(tensors, path, {"format": format, "record": record, **hashed})


every_format = pytest.mark.parametrize("format", [checkpoints.FORMAT, checkpoints.OLDER])


def is_refused_and_the_older_one_used(folder):
    with pytest.warns(UserWarning, match=rf"^{LAST} is refused: .*; going on from step 16$"):
        assert trainer_of(folder).step == 16
    (folder / LAST).unlink()
    return is_the_same_run(folder)


@every_format
@pytest.mark.parametrize("kind", CHANGED)
def test_every_field_of_a_checkpoint_is_looked_at(copied, kind, format):
    rewritten(copied / LAST, CHANGED[kind], format=format)
    assert is_refused_and_the_older_one_used(copied)


@every_format
@pytest.mark.parametrize("record", RECORDS)
def test_a_record_that_is_none_is_refused(copied, record, format):
    rewritten(copied / LAST, without(), record, format)
    assert is_refused_and_the_older_one_used(copied)


def test_moments_that_are_all_gone_are_missed(copied):
    rewritten(copied / LAST, without(*MOMENTS_OF_TWO), format=checkpoints.OLDER)
    assert is_refused_and_the_older_one_used(copied)


def test_a_checkpoint_of_the_older_format_is_read(copied):
    rewritten(copied / LAST, without(), format=checkpoints.OLDER)
    assert trainer_of(copied).step == 17 and is_the_same_run(copied)


class Slots(nn.Module):
    """Two E, of which one is slow, between matrices and vectors: they fall into groups of every kind."""

    def __init__(self):
        super().__init__()
        self.into, self.E, self.F = nn.Linear(3, 4), LearnedProjection(7, 2), LearnedProjection(7, 2)
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        x = self.into(x)
        return self.out(self.E(x).tanh() * self.F(x))


def run_of_slots(folder=None, model=None):
    def loss(model, x, y):
        return (model(x) - y).square().mean()

    def batches(i):
        x = torch.randn(5, 7, 3, generator=torch.Generator().manual_seed(i))
        return x, x[:, :2, :1]

    torch.manual_seed(0)
    model = model or Slots()
    config = Config(12, 0.05, warmup=2, weight_decay=0.1, evaluate_every=8)
    return Trainer(model, loss, batches, config, folder=folder, lr_scale={model.F.weight: 0.1}, device="cpu")


def test_a_run_of_version_1_0_goes_on(tmp_path):
    """tests/data/run_of_1_0 was left by that version, which stored √seq_len · E."""
    shutil.copytree(DATA / "run_of_1_0", tmp_path, dirs_exist_ok=True)
    whole, resumed = run_of_slots(), run_of_slots(tmp_path)
    assert resumed.step == 8
    losses = [[record["loss"] for record in run.train()] for run in (resumed, whole)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    torch.testing.assert_close(resumed.model.state_dict(), whole.model.state_dict(), atol=1e-6, rtol=1e-5)


def test_a_run_of_version_1_0_with_another_model_is_refused(tmp_path):
    shutil.copytree(DATA / "run_of_1_0", tmp_path, dirs_exist_ok=True)
    other = Slots()
    other.E = nn.Identity()
    with pytest.raises(ValueError, match=r"has lr_scale=\{'F.stored': 0.1\}, this one"):
        run_of_slots(tmp_path, other)


def test_one_bit_anywhere_is_noticed_or_means_nothing(copied):
    whole, noticed = (copied / LAST).read_bytes(), 0
    for i in range(40):
        place = (i * 7919 + 11) % len(whole)
        (copied / LAST).write_bytes(whole[:place] + bytes([whole[place] ^ 1 << i % 8]) + whole[place + 1 :])
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            trainer = trainer_of(copied)
        assert (trainer.step, len(heard)) == (16, 1) or same(trainer.model, straight().model)
        noticed += len(heard)
    assert noticed > 35


def test_a_parameter_that_never_has_a_gradient_has_no_moments_and_the_run_goes_on(tmp_path):
    def unused():
        model = classifier()
        model.register_parameter("unused", nn.Parameter(torch.ones(3)))
        return model

    trainer_of(tmp_path, model=unused()).train(until=6)
    resumed = trainer_of(tmp_path, model=unused())
    assert resumed.step == 4 and curve(resumed.train()) == curve(straight().history)


LINES = {
    "no JSON": (b"my notes", 3),
    "no object": (b"[3]", 3),
    "no UTF-8": (b"\xff\xfe", 3),
    "too deep": (b"[" * 100_000, 3),
    "empty": (b"", 3),
    "without a step": (b'{"loss": 1.0, "learning_rate": 0.1, "tokens_per_s": 3}', 3),
    "without a loss": (b'{"step": 3, "learning_rate": 0.1, "tokens_per_s": 3}', 3),
    "a step in words": (b'{"step": "3", "loss": 1.0, "learning_rate": 0.1, "tokens_per_s": 3}', 3),
    "a loss in words": (b'{"step": 3, "loss": "low", "learning_rate": 0.1, "tokens_per_s": 3}', 3),
    "step 0": (b'{"step": 0, "loss": 1.0, "learning_rate": 0.1, "tokens_per_s": 3}', 3),
    "step 2 again": (b'{"step": 2, "loss": 1.0, "learning_rate": 0.1, "tokens_per_s": 3}', 3),
    "half a line": (b'{"step": 3, "lo', 3),
}


@pytest.mark.parametrize("kind", LINES)
def test_a_bad_line_of_metrics_is_named_and_the_others_are_kept(copied, kind):
    path, (line, number) = copied / "metrics.jsonl", LINES[kind]
    good = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*good[: number - 1], line, *good[number:], b""]))
    sentence = rf"^line {number} of metrics.jsonl is no record .*; metrics.jsonl has 16 of 17 updates"
    with pytest.warns(UserWarning, match=sentence):
        trainer = trainer_of(copied)
    trainer.train()
    kept = curve(lines(copied))
    assert kept == [record for record in curve(straight().history) if record["step"] != number]


def test_lines_that_two_runs_have_mixed_are_told_apart(copied):
    path = copied / "metrics.jsonl"
    good = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*good[:9], *good[4:]]), encoding="utf-8")
    with pytest.warns(UserWarning, match=r"^line 10 of metrics.jsonl is no record .*and of 4 other lines"):
        trainer_of(copied).train()
    assert curve(lines(copied)) == curve(straight().history)


@pytest.mark.parametrize("kept", [0, 5, None])
def test_metrics_that_are_gone_are_missed(copied, kept):
    path = copied / "metrics.jsonl"
    if kept is None:
        path.unlink()
    else:
        path.write_text(
            "".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:kept]), encoding="utf-8"
        )
    with pytest.warns(UserWarning, match=rf"^metrics.jsonl has {kept or 0} of 17 updates; going on"):
        assert len(trainer_of(copied).history) == (kept or 0)


RUNNING = """
import sys; sys.path.insert(0, sys.argv[1])
import time, test_training_checkpoints as tests
def slow(i):
    print("inside", flush=True)
    time.sleep(60 * (i == 5))
    return tests.batches(i)
tests.torch.set_num_threads(1)
tests.trainer_of(sys.argv[2], batches=slow).train()
"""


def test_two_runs_do_not_share_a_folder_and_the_second_leaves_no_trace(tmp_path):
    words = [sys.executable, "-c", RUNNING, str(Path(__file__).parent), str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=tmp_path.parent) as first:
        for _ in range(6):
            assert first.stdout.readline() == b"inside\n"
        second = trainer_of(tmp_path)
        (tmp_path / "settings.json.1.unfinished").write_text("of the first", encoding="utf-8")
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(BlockingIOError, match=r"metrics.jsonl is in use by another process; wait"):
            second.train()
        assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        first.kill()
    assert is_the_same_run(tmp_path)
    with pytest.raises(ValueError, match=f"{LAST} was written by another since this run stood at step 4"):
        second.train()
    assert is_the_same_run(tmp_path)


def test_a_folder_is_made_only_when_the_run_starts(tmp_path):
    trainer = trainer_of(tmp_path / "deep" / "run")
    trainer.evaluate(trainer.validation)
    assert names(tmp_path) == []
    trainer.train(until=1)
    assert names(tmp_path / "deep" / "run") == ["metrics.jsonl"]


def test_a_folder_that_cannot_be_one_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "notes").write_text("mine", encoding="utf-8")
    for folder in (tmp_path / "notes", tmp_path / "notes" / "run"):
        with pytest.raises(NotADirectoryError, match=r"notes.* is a file, expected a folder$"):
            trainer_of(folder).train()
    assert (tmp_path / "notes").read_text(encoding="utf-8") == "mine"
