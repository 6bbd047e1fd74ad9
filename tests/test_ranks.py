"""Ranks: who they are, what each gets, and what they say when one is missing or different."""

import json
import os
import pickle
import re
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import ranks_at_work as work
import torch
from torch.testing import assert_close

from linformer_from_scratch.distributed import launch, ranks
from linformer_from_scratch.distributed.launch import _done as done

IMPORT = "from linformer_from_scratch.distributed.ranks import process_group"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
posix = pytest.mark.skipif(os.name != "posix", reason="ends or stops a rank with a signal")
SECONDS = 60  # "within seconds" on a machine that does other things as well


@pytest.mark.parametrize(
    "whole, parts, expected", [(7, 3, [3, 2, 2]), (8, 4, [2] * 4), (5, 1, [5]), (4, 4, [1] * 4)]
)
def test_shares_differ_by_one_at_most(whole, parts, expected):
    assert ranks.shares(whole, parts) == expected


@pytest.mark.parametrize("whole, parts", [(3, 4), (3, 0), (0, 1)])
def test_no_share_is_empty(whole, parts):
    with pytest.raises(ValueError, match=f"{whole} cannot be cut into {parts} parts"):
        ranks.shares(whole, parts)


def test_without_torchrun_there_is_one_process():
    assert (ranks.rank(), ranks.world_size(), ranks.mean_over_ranks(0.25)) == (0, 1, 0.25)
    with ranks.process_group():
        assert not torch.distributed.is_initialized()
    ranks.assert_same_across_ranks(anything=object())
    batch = torch.arange(5), torch.arange(5) + 1
    mine = ranks.share_of(batch)
    assert mine[0].tolist() == batch[0].tolist() and mine[1].tolist() == batch[1].tolist()


@pytest.mark.parametrize(
    "local, named, expected", [("1", "cuda", "cuda:1"), ("1", "cpu", "cpu"), (None, "cuda", "cuda")]
)
def test_every_rank_has_a_gpu_of_its_own(monkeypatch, local, named, expected):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if local:
        monkeypatch.setenv("LOCAL_RANK", local)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert ranks.device_of_rank(named) == torch.device(expected)


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("gpu", "device is 'gpu', expected cpu, cuda, cuda:0 or mps"),
        ("meta", "device is 'meta', expected cpu, cuda, cuda:0 or mps"),
        ("cuda:x", "device is 'cuda:x', expected cpu, cuda, cuda:0 or mps"),
        ("cuda:2", "device is 'cuda:2', but PyTorch finds 2 of kind cuda here"),
        ("cpu:1", "device is 'cpu:1', but PyTorch finds 1 of kind cpu here"),
        ("mps", "device is 'mps', but PyTorch finds 0 of kind mps here"),
    ],
)
def test_a_device_that_is_not_there_is_refused_with_both_numbers(monkeypatch, named, sentence):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.mps, "device_count", lambda: 0)
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        ranks.device_of_rank(named)


def test_without_a_gpu_cuda_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device is 'cuda', but PyTorch finds 0 of kind cuda"):
        ranks.device_of_rank("cuda")


def test_more_ranks_than_gpus_are_refused(monkeypatch):
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    sentence = "rank 1 wants GPU 1 of 1; start as many ranks as there are GPUs"
    with pytest.raises(ValueError, match=sentence), ranks.process_group("cuda"):
        pass


ADDRESS = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29513"}
SET_WRONGLY = [
    ({"RANK": "0"}, "WORLD_SIZE is not set, expected an integer from 1 to"),
    ({"WORLD_SIZE": "2"}, "RANK is not set, expected an integer from 0 to 1;"),
    ({"RANK": "two", "WORLD_SIZE": "2"}, "RANK is 'two', expected an integer from 0 to 1;"),
    ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK is '2', expected an integer from 0 to 1;"),
    ({"RANK": "-1", "WORLD_SIZE": "2"}, "RANK is '-1', expected an integer from 0 to 1;"),
    ({"RANK": "", "WORLD_SIZE": "2"}, "RANK is '', expected"),
    ({"RANK": "²", "WORLD_SIZE": "9"}, "RANK is '²', expected"),
    ({"RANK": "0", "WORLD_SIZE": "0"}, "WORLD_SIZE is '0', expected an integer from 1 to"),
    ({"RANK": "0", "WORLD_SIZE": "1" + 9999 * "0"}, "WORLD_SIZE is '10+', expected"),
    ({"RANK": "0", "WORLD_SIZE": "2"} | ADDRESS | {"MASTER_PORT": None}, "MASTER_PORT is not set, expected"),
    ({"RANK": "0", "WORLD_SIZE": "2"} | ADDRESS | {"MASTER_ADDR": None}, "MASTER_ADDR is not set, expected"),
    ({"RANK": "0", "WORLD_SIZE": "2"} | ADDRESS | {"MASTER_PORT": "http"}, "'http', expected .* 1 to 65535;"),
    ({"RANK": "0", "WORLD_SIZE": "2"} | ADDRESS | {"MASTER_PORT": "65536"}, "'65536', expected .* to 65535;"),
]


def set_environment(monkeypatch, values):
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in values.items():
        if value is not None:
            monkeypatch.setenv(name, value)


@pytest.mark.parametrize("values, sentence", SET_WRONGLY)
def test_what_torchrun_sets_is_checked_before_anybody_waits(monkeypatch, values, sentence):
    set_environment(monkeypatch, values)
    with pytest.raises(ValueError, match=sentence), ranks.process_group("cpu"):
        pass


@pytest.mark.parametrize("wait", [0, -1, float("nan"), float("inf"), 1e300])
def test_a_wait_takes_a_number_of_seconds(wait):
    with (
        pytest.raises(ValueError, match=re.escape(f"wait is {wait}, expected seconds")),
        ranks.process_group(wait=wait),
    ):
        pass


@pytest.mark.parametrize("local, what", [(None, "not set"), ("one", "'one'"), ("-1", "'-1'"), ("", "''")])
def test_a_rank_on_gpus_must_know_which_is_its_own(monkeypatch, local, what):
    set_environment(monkeypatch, {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": local} | ADDRESS)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with (
        pytest.raises(ValueError, match=f"LOCAL_RANK is {what}, expected an integer"),
        ranks.process_group("cuda"),
    ):
        pass


def test_ranks_cannot_share_out_work_on_other_devices(monkeypatch):
    set_environment(monkeypatch, {"RANK": "0", "WORLD_SIZE": "2"} | ADDRESS)
    monkeypatch.setattr(ranks, "device_of_rank", torch.device)
    with pytest.raises(ValueError, match="ranks work on cpu or cuda, not on mps"), ranks.process_group("mps"):
        pass


def test_a_port_in_use_and_an_address_where_nobody_is_are_named(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        set_environment(monkeypatch, {"RANK": "0"} | place)
        sentence = f"rank 0 could not meet 2 ranks at 127.0.0.1:{port}: another program holds this port"
        with pytest.raises(OSError, match=sentence), ranks.process_group("cpu"):
            pass
    set_environment(monkeypatch, {"RANK": "1"} | place)
    sentence = f"rank 1 waited 0.3 s for 2 ranks and not all came; .* 127.0.0.1:{port} here"
    with pytest.raises(TimeoutError, match=sentence), ranks.process_group("cpu", wait=0.3):
        pass
    assert not torch.distributed.is_initialized()


def test_a_stranger_who_holds_the_port_and_says_nothing_holds_up_nobody():
    code = f"{IMPORT}\nwith process_group('cpu', wait=0.3): pass"
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = str(silent.getsockname()[1])
        place = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        words = [sys.executable, "-c", code]
        ran = subprocess.run(
            words,
            env={**os.environ, **place},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            encoding="utf-8",
        )
    assert ran.returncode == 1
    (said,) = ran.stderr.splitlines()
    assert said.startswith("rank 1 waited 0.3 s for 2 ranks") and f"127.0.0.1:{port}" in said


FAILURES = {
    work.too_long: "rank 1 of 2 failed: ValueError: this shard has 5 tokens and 4 columns of E; pad the text",
    work.late: "rank 0 of 2 failed: ConnectionError: rank 0 of 2 has waited 2 s for another rank",
    work.nothing_to_pickle: "rank [01] of 2 failed: its result cannot be pickled: .*<lambda>",
}
if os.name == "posix":
    FAILURES[work.die] = r"rank 1 of 2 failed: Signal 9 \(SIGKILL\)"


@pytest.fixture(scope="module")
def lonely():
    """What becomes of ranks whose others fail, each in ranks of its own; they wait more than they compute."""
    start = time.monotonic()
    with ThreadPoolExecutor() as threads:
        told = {function: threads.submit(failure_of, function, 2) for function in FAILURES}
        lost = threads.submit(launch, work.lost, 2)
    assert time.monotonic() - start < SECONDS
    return {function: found.result() for function, found in told.items()} | {"lost": lost.result()}


@pytest.mark.parametrize("function", FAILURES, ids=lambda function: function.__name__)
def test_what_is_wrong_is_said_within_seconds(lonely, function):
    assert re.match(f"^{FAILURES[function]}[^\n]*$", lonely[function])


def test_a_rank_that_lost_another_says_so(lonely):
    first, second = lonely["lost"]
    assert first == "rank 0 of 2 has lost rank 1; start the same command again" and second is None


KILLED = f"""
import sys; sys.path.insert(0, {str(Path(work.__file__).parent)!r})
import ranks_at_work as work
work.dies(int(sys.argv[1]))
"""


@posix
def test_a_killed_rank_is_named_by_every_other(tmp_path):
    """Slow for its real processes, which no launcher ends; rank 0 is no neighbour of rank 2 of 4."""
    script = tmp_path / "killed.py"
    script.write_text(KILLED, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    place = {**os.environ, "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    words = [sys.executable, script, "2"]
    jobs = [
        subprocess.Popen(
            words, env={**place, "RANK": str(i)}, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        )
        for i in range(4)
    ]
    said = [job.communicate(timeout=SECONDS)[1].splitlines() for job in jobs]
    assert [job.returncode for job in jobs] == [1, 1, -signal.SIGKILL, 1]
    for number in (0, 1, 3):
        assert f"rank {number} of 4 has lost rank 2; start the same command again" in said[number]


@pytest.mark.parametrize("launcher_holds_it, missing", [("True", []), (None, [0])])
def test_a_store_that_has_gone_with_its_rank_names_it(monkeypatch, launcher_holds_it, missing):
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    if launcher_holds_it:
        monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", launcher_holds_it)

    def gone(*arguments):
        raise RuntimeError("Connection reset by peer")

    assert ranks._missing(types.SimpleNamespace(set=gone), 3, least=1) == missing


@posix
def test_launch_and_torchrun_name_a_killed_rank(tmp_path):
    """Slow for its real processes; torchrun ends the others, who may have said before whom they lost."""
    assert failure_of(work.dies, 3, 2) == "rank 2 of 3 failed: Signal 9 (SIGKILL) ended it"
    script = tmp_path / "killed.py"
    script.write_text(KILLED, encoding="utf-8")
    words = [*TORCHRUN, "3", "--monitor-interval", "1", script, "2"]
    err = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, encoding="utf-8").stderr
    assert set(re.findall(r"has lost ([^;]*);", err)) <= {"rank 2"}
    assert re.search(r"Root Cause.*rank +: 2 .*Signal 9 \(SIGKILL\)", err, re.DOTALL)


@posix
def test_a_rank_that_is_stopped_is_named_and_one_that_is_late_is_not(lonely):
    assert failure_of(work.stopped, 2).startswith(
        "rank 0 of 2 failed: ConnectionError: rank 0 of 2 has waited 2 s for rank 1; start"
    )
    assert "has waited 2 s for another rank; start" in lonely[work.late]


@pytest.mark.parametrize("count", [0, -1, 2.5, True, "2", 257, 10**6])
def test_launch_takes_a_number_of_ranks(count):
    with pytest.raises(ValueError, match=f"ranks is {count!r}, expected an integer in 1 … 256"):
        launch(work.threads, count)


@pytest.mark.parametrize(
    "function, arguments, got",
    [
        (lambda: 1, (), "<lambda>"),
        (work.changes, (threading.Lock(),), "lock"),
        (work.changes, (sys,), "module"),
    ],
)
def test_what_cannot_go_to_another_process_is_refused_before_one_starts(function, arguments, got):
    with pytest.raises(ValueError, match=f"a function must stand in a module, .*; got .*{got}"):
        launch(function, 2, *arguments)


def here_only():
    """Pretends to stand in a module that only this process has."""


here_only.__module__ = "here_only"
sys.modules["here_only"] = types.ModuleType("here_only")
sys.modules["here_only"].here_only = here_only

SENTENCES = [
    (work.leaves_with, (0,), "SystemExit: 0"),
    (work.leaves_with, ("no\nmore",), "SystemExit: no more"),
    (work.fails, (), "ArithmeticError"),
    (work.fails, ("",), "KeyError: ''"),
    (os.mkdir, ("/nowhere\n/at all",), "FileNotFoundError: [Errno 2] No such file or directory"),
    (work.nothing_to_pickle, (), "its result cannot be pickled: AttributeError: Can't"),
]


@pytest.mark.parametrize("function, arguments, sentence", SENTENCES)
def test_however_a_function_ends_its_rank_says_so_in_one_line(function, arguments, sentence):
    result, said = pickle.loads(done(pickle.dumps((function, arguments))))
    assert result is None and said.startswith(sentence) and "\n" not in said


WITHOUT_A_WORD = [
    (work.vanishes, "it ended with exit code 0 and without a result"),
    (work.crashes, "Signal 11 (SIGSEGV) ended it"),
    (here_only, "it cannot read what it was given: ModuleNotFoundError"),
]


def test_ranks_may_be_started_by_threads_several_at_a_time_and_by_ranks():
    """And what a rank could not say itself is said; RANK is set in the nested ones before they begin."""
    numbers = torch.zeros(3)
    with ThreadPoolExecutor(5) as threads:
        nested = threads.submit(launch, work.ranks_of_ranks, 1)
        changed = threads.submit(launch, work.changes, 1, numbers)
        told = {sentence: threads.submit(failure_of, function) for function, sentence in WITHOUT_A_WORD}
    assert nested.result() == [[[2.0, 2.0]] * 2]
    assert changed.result()[0].tolist() == [1.0] * 3 and numbers.tolist() == [0.0] * 3  # a copy
    for sentence, found in told.items():
        assert found.result().startswith(f"rank 0 of 1 failed: {sentence}") and "\n" not in found.result()


def failure_of(function, ranks=1, *arguments):
    with pytest.raises(RuntimeError) as caught:
        launch(function, ranks, *arguments)
    return str(caught.value)


INTERRUPTED = f"""
import signal, sys; sys.path.insert(0, {str(Path(work.__file__).parent)!r})
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background is deaf to it
from pathlib import Path; import ranks_at_work as work; from linformer_from_scratch.distributed import launch
launch(work.sleeps, 2, Path(sys.argv[1]))
"""


@posix
def test_an_interrupt_leaves_no_rank_behind_and_neither_does_a_kill(tmp_path):
    """Slow for its six processes: whoever launches dies in earnest, and ranks must notice by themselves."""
    signs = {signal.SIGINT: "KeyboardInterrupt", signal.SIGKILL: ""}
    jobs = {}
    for sign in signs:
        (tmp_path / sign.name).mkdir()
        words = [sys.executable, "-c", INTERRUPTED, str(tmp_path / sign.name)]
        jobs[sign] = subprocess.Popen(
            words, stderr=subprocess.PIPE, text=True, start_new_session=True, encoding="utf-8"
        )
    for sign, last in signs.items():
        pids = begun(tmp_path / sign.name, jobs[sign])
        if sign == signal.SIGINT:
            os.killpg(jobs[sign].pid, sign)  # as a terminal and Jupyter do, to the ranks as well
        else:
            jobs[sign].send_signal(sign)
        said = jobs[sign].communicate(timeout=SECONDS)[1].splitlines()
        assert said[-1:] == [last][: len(said)] and sum("Traceback" in line for line in said) == len(said[:1])
        gone_at = time.monotonic() + SECONDS
        while any(map(alive, pids)) and time.monotonic() < gone_at:
            time.sleep(0.05)
        assert not any(map(alive, pids))


def begun(folder, job):
    """Process numbers of both ranks, once they work."""
    while job.poll() is None and len(list(folder.iterdir())) < 2:
        time.sleep(0.05)
    return [int(path.name) for path in folder.iterdir()]


def alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_rank_does_not_wait_for_ever_for_one_that_never_comes(monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    place = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    set_environment(monkeypatch, place)
    start = time.monotonic()
    sentence = "^rank 0 waited 0.3 s for 2 ranks and not all came; start them all"
    with pytest.raises(TimeoutError, match=sentence), ranks.process_group("cpu", wait=0.3):
        pass
    assert time.monotonic() - start < SECONDS and not torch.distributed.is_initialized()


def test_ranks_have_the_environment_that_their_launcher_has_at_the_moment(monkeypatch):
    for value in ("first", "second", None):
        if value:
            monkeypatch.setenv("SET_BY_THE_LAUNCHER", value)
        else:
            monkeypatch.delenv("SET_BY_THE_LAUNCHER")
        assert launch(os.getenv, 1, "SET_BY_THE_LAUNCHER") == [value]


# Two ranks do one thing after another


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the run lies that two ranks begin."""
    return tmp_path_factory.mktemp("ranks")


def surroundings():
    return [signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM)], dict(os.environ)


@pytest.fixture(scope="module")
def two(folder):
    """What two ranks give, and the launcher's surroundings before and after."""
    before = surroundings()
    return launch(work.together, 2, folder), before, surroundings()


def test_a_notebook_keeps_its_handlers_of_signals_and_its_threads(two):
    found, before, after = two
    assert before == after
    assert [one["threads"] for one in found] == [1, 1]


REFUSALS = {
    "steps": "the ranks disagree on step: rank 0 has 40, rank 1 has 0; expected the same",
    "mesh": "2 ranks were started, expected a multiple of sequence=4",
    "rows": "a batch of 1 rows cannot be shared by 2 ranks",
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_ranks_are_refused_every_rank_is_told_and_they_can_go_on(two, what):
    assert [one[what] for one in two[0]] == [REFUSALS[what]] * 2
    assert [one["sum"] for one in two[0]] == [2.0, 2.0]


@pytest.mark.parametrize("rows, accumulation", [(4, 1), (5, 2)])
def test_ranks_train_as_one_process_does(two, rows, accumulation):
    _, alone, weights, _ = work.train(rows, accumulation)
    for begun, history, found, count in (one["trained"][rows, accumulation] for one in two[0]):
        assert (begun, count) == (0, 2)
        assert_close(found, weights)
        for ours, theirs in zip(history, alone, strict=True):
            assert ours["learning_rate"] == theirs["learning_rate"]
            assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
            assert ours.get("validation_loss", 0) == pytest.approx(theirs.get("validation_loss", 0), rel=1e-5)


def test_a_run_of_two_ranks_goes_on_with_three_and_with_one(two, folder):
    assert [one["begun"][0] for one in two[0]] == [0, 0]
    _, straight, weights, _ = work.train(7, 1)
    three = launch(work.train, 3, 7, 1, folder / "run", 9)
    assert [begun for begun, *_ in three] == [4] * 3
    begun, history, last, count = work.train(7, 1, folder / "run")
    assert (begun, count) == (8, 1)
    assert_close(last, weights)
    assert [r["step"] for r in history] == [r["step"] for r in straight] == list(range(1, 13))
    assert [r["loss"] for r in history] == pytest.approx([r["loss"] for r in straight], rel=1e-5)
    lines = (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, 13))


def test_ranks_that_do_not_see_the_same_checkpoint_are_refused(tmp_path):
    work.train(4, 1, tmp_path / "0", until=4)
    with pytest.raises(RuntimeError, match="disagree on step: rank 0 has 4, rank 1 has 0; expected the same"):
        launch(work.train_apart, 2, tmp_path)


TRAIN = "--d-model 8 --num-heads 2 --num-layers 1 --seq-len 16 --proj-dim 4 --vocabulary 259 --batch-size 5"
TRAIN = f"-m linformer_from_scratch.training {TRAIN} --warmup 2 --device cpu --quiet".split()


def losses(folder):
    return [
        json.loads(line)["loss"]
        for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    ]


@posix
def test_torchrun_trains_and_a_killed_rank_ends_the_job_and_loses_nothing(tmp_path, monkeypatch, capsys):
    """Slow for its real processes: no other test sees torchrun end a job whose rank has died."""
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # the command sets it
    words = [*TRAIN, "--steps", "200", "--evaluate-every", "10", "--folder", str(tmp_path / "run")]
    job = subprocess.Popen(
        [*TORCHRUN, "2", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    metrics = tmp_path / "run" / "metrics.jsonl"
    while job.poll() is None and not (metrics.exists() and metrics.read_bytes().count(b"\n") > 30):
        time.sleep(0.01)
    os.kill(pid_of_rank(1, job.pid), 9)
    start = time.monotonic()
    out, err = job.communicate(timeout=SECONDS)
    assert job.returncode == 1 and time.monotonic() - start < SECONDS
    assert re.search(r"Root Cause.*rank +: 1 .*Signal 9 \(SIGKILL\)", err, re.DOTALL)
    assert out.count("parameters, cpu, step 0") == 1  # rank 0 speaks, rank 1 does not
    monkeypatch.chdir(tmp_path)
    run_here(monkeypatch, words)
    again = capsys.readouterr().out
    step = int(re.search(r"cpu, step (\d+)\n", again)[1])
    assert step >= 20 and step % 10 == 0
    run_here(monkeypatch, [*words[:-1], str(tmp_path / "straight")])
    assert capsys.readouterr().out.splitlines()[-1] == again.splitlines()[-1]
    assert losses(tmp_path / "run") == pytest.approx(losses(tmp_path / "straight"), rel=1e-4)
    assert len(losses(tmp_path / "run")) == 200


def run_here(monkeypatch, words):
    """python -m of a package, in this process."""
    _, package, *rest = words
    monkeypatch.setattr(sys, "argv", [package, *rest])
    monkeypatch.delitem(sys.modules, f"{package}.__main__", raising=False)  # if another test has imported it
    runpy.run_module(package, run_name="__main__")


def pid_of_rank(number, parent):
    """Which child of torchrun is that rank, by its environment."""
    (child,) = (p for p in psutil.Process(parent).children() if p.environ().get("RANK") == str(number))
    return child.pid
