"""Ranks: who they are, what each gets, and what they say when one is missing or different."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest
import ranks_at_work as work
import torch
from torch.testing import assert_close

from linformer_from_scratch import ranks
from linformer_from_scratch.distributed import launch

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
    with ranks.joined():
        assert not torch.distributed.is_initialized()
    ranks.agree(anything=object())
    batch = torch.arange(5), torch.arange(5) + 1
    mine, weight = ranks.share_of(batch)
    assert mine[0].tolist() == batch[0].tolist() and mine[1].tolist() == batch[1].tolist() and weight == 1


@pytest.mark.parametrize(
    "local, named, expected", [("1", "cuda", "cuda:1"), ("1", "cpu", "cpu"), (None, "cuda", "cuda")]
)
def test_every_rank_has_a_gpu_of_its_own(monkeypatch, local, named, expected):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    if local:
        monkeypatch.setenv("LOCAL_RANK", local)
    assert ranks.device_of_rank(named) == torch.device(expected)


def test_more_ranks_than_gpus_are_refused(monkeypatch):
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    sentence = "rank 1 wants GPU 1 of 1; start as many ranks as there are GPUs"
    with pytest.raises(ValueError, match=sentence), ranks.joined("cuda"):
        pass


FAILURES = [
    (
        work.disagree,
        2,
        "ValueError: the ranks disagree on step: rank 0 has 40, rank 1 has 0; expected the same",
    ),
    (work.wrong_mesh, 2, "ValueError: 2 ranks were started, expected a multiple of sequence=4"),
    (
        work.too_long,
        2,
        "rank 1 of 2 failed: ValueError: this shard has 5 tokens and 4 columns of E; pad the text",
    ),
    (work.late, 2, "rank 0 of 2 failed: ConnectionError: rank 0 of 2 has waited 2 s for another rank"),
    (work.die, 2, r"rank 1 of 2 failed: Signal 9 \(SIGKILL\)"),
    (work.nothing_to_pickle, 1, "can the function be imported, the result pickled"),
]


@pytest.mark.parametrize(
    "function, count, sentence", FAILURES, ids=lambda value: getattr(value, "__name__", None)
)
def test_what_is_wrong_is_said_within_seconds(function, count, sentence):
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=sentence) as caught:
        launch(function, count)
    assert time.monotonic() - start < SECONDS and "\n" not in str(caught.value)


def test_a_notebook_keeps_its_handlers_of_signals_and_its_threads():
    before = [signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM)]
    threads = os.environ.get("OMP_NUM_THREADS")
    assert launch(work.threads, 1) == [1]
    assert [signal.getsignal(sign) for sign in (signal.SIGINT, signal.SIGTERM)] == before
    assert os.environ.get("OMP_NUM_THREADS") == threads


def test_a_rank_that_lost_another_says_so():
    first, second = launch(work.lost, 2)
    assert first == "rank 0 of 2 has lost another rank; start the same command again" and second is None


def test_a_rank_does_not_wait_for_ever_for_one_that_never_comes(tmp_path):
    code = "from linformer_from_scratch.ranks import joined\nwith joined('cpu', wait=2): pass"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    alone = {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    start = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **alone}, capture_output=True, text=True
    )
    assert ran.returncode == 1 and time.monotonic() - start < SECONDS
    said = ran.stderr.strip().splitlines()[-1]
    assert said.startswith("TimeoutError: rank 0 waited 2 s for 2 ranks and not all came; start them")


@pytest.mark.parametrize("rows, accumulation", [(4, 1), (5, 2)])
def test_ranks_train_as_one_process_does(rows, accumulation):
    _, alone, weights, _ = work.train(rows, accumulation)
    for begun, history, found, count in launch(work.train, 2, rows, accumulation):
        assert (begun, count) == (0, 2)
        assert_close(found, weights)
        for ours, theirs in zip(history, alone, strict=True):
            assert ours["learning_rate"] == theirs["learning_rate"]
            assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
            assert ours.get("validation_loss", 0) == pytest.approx(theirs.get("validation_loss", 0), rel=1e-5)


def test_a_run_of_two_ranks_goes_on_with_three_and_with_one(tmp_path):
    _, straight, weights, _ = work.train(7, 1)
    launch(work.train, 2, 7, 1, tmp_path, 5)  # its last checkpoint is that of step 4
    for count, until, expected in ((3, 9, 4), (1, None, 8)):
        found = launch(work.train, count, 7, 1, tmp_path, until)
        assert [begun for begun, *_ in found] == [expected] * count
    _, history, last, _ = found[0]
    assert_close(last, weights)
    assert [r["step"] for r in history] == [r["step"] for r in straight] == list(range(1, 13))
    assert [r["loss"] for r in history] == pytest.approx([r["loss"] for r in straight], rel=1e-5)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == list(range(1, 13))


def test_ranks_that_do_not_see_the_same_checkpoint_are_refused(tmp_path):
    work.train(4, 1, tmp_path / "0", until=4)
    with pytest.raises(RuntimeError, match="disagree on step: rank 0 has 4, rank 1 has 0; expected the same"):
        launch(work.train_apart, 2, tmp_path)


def test_more_ranks_than_rows_are_refused():
    with pytest.raises(RuntimeError, match="a batch of 1 rows cannot be shared by 2 ranks"):
        launch(work.train, 2, 1, 1)


TRAIN = "--d-model 8 --num-heads 2 --num-layers 1 --seq-len 16 --proj-dim 4 --vocabulary 259 --batch-size 5"
TRAIN = f"-m linformer_from_scratch.training {TRAIN} --warmup 2 --device cpu --quiet".split()
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]


def losses(folder):
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_torchrun_trains_and_a_killed_rank_ends_the_job_and_loses_nothing(tmp_path):
    words = [*TRAIN, "--steps", "200", "--evaluate-every", "10", "--folder", str(tmp_path / "run")]
    job = subprocess.Popen(
        [*TORCHRUN, "2", *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
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
    again = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True)
    step = int(re.search(r"cpu, step (\d+)\n", again.stdout)[1])
    assert step >= 20 and step % 10 == 0
    words[-1] = str(tmp_path / "straight")
    straight = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True)
    assert straight.stdout.splitlines()[-1] == again.stdout.splitlines()[-1]
    assert losses(tmp_path / "run") == pytest.approx(losses(tmp_path / "straight"), rel=1e-4)
    assert len(losses(tmp_path / "run")) == 200


def pid_of_rank(number, parent):
    """Which child of torchrun is that rank, by its environment."""
    (child,) = (p for p in psutil.Process(parent).children() if p.environ().get("RANK") == str(number))
    return child.pid
