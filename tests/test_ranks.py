"""Ranks: who they are, what each gets, and what they say when one is missing or different."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
import ranks_at_work as work
import torch
from test_training import lines
from torch.testing import assert_close

from linformer_from_scratch.common import ranks
from linformer_from_scratch.distributed import launch

posix = pytest.mark.skipif(os.name != "posix", reason="ends or stops a rank with a signal")
SECONDS = 60  # "within seconds" on a machine that does other things as well


def test_without_torchrun_there_is_one_process():
    assert (ranks.rank(), ranks.world_size(), ranks.mean_over_ranks(0.25)) == (0, 1, 0.25)
    with ranks.process_group():
        assert not torch.distributed.is_initialized()
    ranks.assert_same_across_ranks(anything=object())
    (own,) = ranks.share_of((torch.arange(5),))
    assert own.tolist() == [0, 1, 2, 3, 4]


# Devices


@pytest.fixture
def two_gpus(monkeypatch):
    """As far as PyTorch says."""
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


def test_every_rank_has_a_gpu_of_its_own(two_gpus, monkeypatch):
    assert ranks.device_of_rank("cuda") == torch.device("cuda")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert (ranks.device_of_rank().index, ranks.device_of_rank("cpu").type) == (1, "cpu")
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(ValueError, match="wants GPU 2 of 2; start as many ranks as there are GPUs"):
        ranks.device_of_rank("cuda")


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("gpu", "device is 'gpu', expected cpu, cuda, cuda:0 or mps"),
        ("meta", "device is 'meta', expected cpu, cuda, cuda:0 or mps"),
        ("cuda:2", "device is 'cuda:2', but PyTorch finds 2 of kind cuda here"),
    ],
)
def test_a_device_that_is_not_there_is_refused_with_both_numbers(two_gpus, named, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        ranks.device_of_rank(named)


# Joining the others


def set_environment(monkeypatch, **values):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in values.items():
        monkeypatch.setenv(name, value)


def test_what_torchrun_has_not_set_is_named(monkeypatch):
    set_environment(monkeypatch, RANK="0")
    with pytest.raises(ValueError, match="variable WORLD_SIZE expected, but not set"), ranks.process_group():
        pass


@pytest.mark.parametrize("wait", [0, float("nan"), 1e300])
def test_a_wait_takes_a_number_of_seconds(wait):
    sentence = re.escape(f"wait is {wait}, expected seconds")
    with pytest.raises(ValueError, match=sentence), ranks.process_group(wait=wait):
        pass


def test_a_rank_does_not_wait_for_ever_for_one_that_never_comes(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    set_environment(monkeypatch, RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    start = time.monotonic()
    sentence = f"^this rank could not join the others at 127.0.0.1:{port}: .*[^\n]*$"
    with pytest.raises(TimeoutError, match=sentence), ranks.process_group("cpu", wait=0.3):
        pass
    assert time.monotonic() - start < SECONDS and not torch.distributed.is_initialized()


def test_a_port_that_another_program_holds_is_named(monkeypatch):
    with socket.create_server(("", 0)) as taken:
        port = str(taken.getsockname()[1])
        set_environment(monkeypatch, RANK="0", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        with pytest.raises(OSError, match=f"at 127.0.0.1:{port}: .*EADDRINUSE"), ranks.process_group("cpu"):
            pass


# Launching, and what is said when a rank fails


def failure_of(function, count=1, *arguments):
    with pytest.raises(RuntimeError) as caught:
        launch(function, count, *arguments)
    return str(caught.value)


@pytest.mark.parametrize("count", [0, True, 257])
def test_launch_takes_a_number_of_ranks(count):
    with pytest.raises(ValueError, match=f"ranks is {count!r}, expected an integer in 1 … 256"):
        launch(work.fails, count)


@pytest.mark.parametrize(
    ("function", "arguments", "got"),
    [(lambda: 1, (), "<lambda>"), (work.changes, (threading.Lock(),), "lock")],
)
def test_what_cannot_go_to_another_process_is_refused_before_one_starts(function, arguments, got):
    with pytest.raises(ValueError, match=f"expected a function defined in a module, .*; got .*{got}"):
        launch(function, 2, *arguments)


def test_ranks_have_copies_and_the_environment_that_their_launcher_has_at_the_moment(monkeypatch):
    numbers = torch.zeros(3)
    assert launch(work.changes, 1, numbers)[0].tolist() == [1] * 3 and numbers.tolist() == [0] * 3
    monkeypatch.setenv("SET_BY_THE_LAUNCHER", "now")
    monkeypatch.delenv("PYTHONUTF8")  # which conftest.py has set
    assert launch(os.getenv, 1, "SET_BY_THE_LAUNCHER") == ["now"]
    assert launch(os.getenv, 1, "PYTHONUTF8") == [None]


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (work.fails, "ArithmeticError"),
        (sys.exit, "SystemExit"),
        (work.nothing_to_pickle, "ValueError: .*expected a picklable result; got .*<lambda>.*"),
    ],
)
def test_however_a_function_ends_its_rank_says_so_in_one_line(function, sentence):
    assert re.fullmatch(f"rank 0 of 1 failed: {sentence}", failure_of(function))


def test_a_rank_that_fails_ends_the_others_and_is_named():
    start = time.monotonic()
    sentence = "rank 1 of 2 failed: ValueError: this shard has 5 tokens and 4 columns of E; pad the text"
    assert failure_of(work.too_long, 2).startswith(sentence)
    assert time.monotonic() - start < SECONDS


@posix
def test_a_killed_rank_is_named_by_launch_at_once():
    start = time.monotonic()
    assert failure_of(work.dies, 3, 2) == "rank 2 of 3 failed: process 2 terminated with signal SIGKILL"
    assert time.monotonic() - start < SECONDS


@pytest.mark.slow
@pytest.mark.parametrize(("count", "lost"), [(2, "rank 1"), (4, "another rank")])
def test_every_rank_that_lost_another_says_so(count, lost):
    others = range(count - 1)
    sentences = [f"rank {i} of {count} has lost {lost}; start the same command again" for i in others]
    assert launch(work.lost, count) == [*sentences, None]


@posix
@pytest.mark.slow
def test_a_rank_that_is_stopped_is_named_and_ended():
    sentence = "rank 0 of 2 failed: ConnectionError: rank 0 of 2 has waited 2 s for rank 1; start"
    assert failure_of(work.stopped, 2).startswith(sentence)


@pytest.mark.slow
def test_ranks_may_be_started_by_ranks():
    assert launch(work.ranks_of_ranks, 1) == [[[2.0, 2.0]] * 2]


INTERRUPTED = f"""
import signal, sys; sys.path.insert(0, {str(Path(work.__file__).parent)!r})
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it otherwise
from pathlib import Path; import ranks_at_work as work; from linformer_from_scratch.distributed import launch
launch(work.sleeps, 2, Path(sys.argv[1]))
"""


@posix
@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_launcher_that_is_interrupted_or_killed_leaves_no_rank_behind(sign, tmp_path):
    words = [sys.executable, "-c", INTERRUPTED, str(tmp_path)]
    job = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while job.poll() is None and len(list(tmp_path.iterdir())) < 2:
        time.sleep(0.05)
    pids = [int(path.name) for path in tmp_path.iterdir()]
    if sign == signal.SIGINT:
        os.killpg(job.pid, sign)  # as a terminal and Jupyter do, to the ranks as well
    else:
        job.kill()
    errors = job.communicate(timeout=SECONDS)[1].splitlines()
    assert len(pids) == 2 and errors[-1:] == (["KeyboardInterrupt"] if sign == signal.SIGINT else [])
    gone_at = time.monotonic() + SECONDS
    while any(map(alive, pids)) and time.monotonic() < gone_at:
        time.sleep(0.05)
    assert not any(map(alive, pids))


def alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


# Two ranks do one thing after another


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the run lies that two ranks begin; in folder 0 there is a checkpoint already."""
    made = tmp_path_factory.mktemp("ranks")
    work.train(4, 1, made / "0", until=4)
    return made


def surroundings():
    return [signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM)], dict(os.environ)


@pytest.fixture(scope="module")
def two(folder):
    """What two ranks return; the launcher keeps its handlers of signals and its environment."""
    before = surroundings()
    returned = launch(work.together, 2, folder)
    assert before == surroundings()
    return returned


def test_every_rank_computes_with_one_thread(two):
    assert [one["threads"] for one in two] == [1, 1]


def test_what_ranks_are_refused_every_rank_is_told_and_they_can_go_on(two):
    for one in two:
        assert one["apart"] == "the ranks disagree on step: rank 0 has 4, rank 1 has 0; expected the same"
        assert one["rows"] == "a batch of 1 rows cannot be shared by 2 ranks"
        assert one["sum"] == 2


def test_the_command_trains_on_two_ranks_of_which_one_speaks(two, folder):
    first, second = (one["printed"] for one in two)
    assert re.fullmatch(r"[\d,]+ parameters, cpu, step 0\nheld-out loss at step 3: .*\n", first)
    assert second == "" and len(lines(folder / "command")) == 3


def test_ranks_train_as_one_process_does(two):
    _, alone, weights, _ = work.train(5, 2)
    for begun, history, last, count in (one["trained"] for one in two):
        assert (begun, count) == (0, 2)
        assert_close(last, weights)
        for ours, theirs in zip(history, alone, strict=True):
            assert ours["learning_rate"] == theirs["learning_rate"]
            assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
            assert ours.get("validation_loss", 0) == pytest.approx(theirs.get("validation_loss", 0), rel=1e-5)


def test_a_run_of_two_ranks_goes_on_with_one(two, folder):
    assert [one["begun"][0] for one in two] == [0, 0]
    _, straight, weights, _ = work.train(7, 1)
    begun, history, last, count = work.train(7, 1, folder / "run")
    assert (begun, count) == (4, 1)
    assert_close(last, weights)
    assert [r["loss"] for r in history] == pytest.approx([r["loss"] for r in straight], rel=1e-5)
    assert [record["step"] for record in lines(folder / "run")] == list(range(1, 13))
