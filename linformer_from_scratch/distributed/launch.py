"""Ranks from inside a notebook: processes that live no longer than the call that started them."""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple

import torch
from torch import distributed

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.distributed.ranks import GRACE

MOST = 256  # ranks of one machine
# PyTorch's threads do not survive a fork: on Linux ranks are forked from a process that has loaded PyTorch,
# has done nothing else, and ends with this one.
if sys.platform == "linux":
    NEW = multiprocessing.get_context("forkserver")
    NEW.set_forkserver_preload(["torch", "linformer_from_scratch.distributed.ranks"])
else:
    NEW = multiprocessing.get_context("spawn")


class _Rank(NamedTuple):
    number: int
    process: BaseProcess
    answers: Connection


def launch(function: Callable, ranks: int, *arguments: object) -> list:
    """Call a function in several new processes and return what each gave, by rank.

    Each computes with one thread, as under torchrun. They start anew, so the function must stand in a module,
    and arguments and results must be picklable; each rank has a copy of the arguments.
    Each is one of several ranks once it enters ranks.process_group.
    When the call ends, by a result, a failure or an interrupt, so do the processes; a rank that lingers after
    its result is ended after some seconds.

    Raises: ValueError if ranks is no integer in 1 … 256, or if the function or its arguments cannot be
        pickled. RuntimeError with the first failed rank's own sentence.
    """
    ranks = check_size("ranks", ranks, most=MOST)
    work = _packed(function, arguments)
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # any free port
    started: list[_Rank] = []
    patience = 0.0
    try:
        for number in range(ranks):
            started.append(_start(number, ranks, store.port, work))
        found = _results(started)
        patience = GRACE
        return found
    finally:
        _end(started, patience)


def _packed(function: Callable, arguments: tuple) -> bytes:
    try:
        return pickle.dumps((function, arguments))
    except Exception as error:  # whatever an object's own pickling raises
        raise ValueError(
            "ranks are other processes: a function must stand in a module, its arguments must be picklable; "
            f"got {_sentence(error)}"
        ) from None


def _start(number: int, ranks: int, port: int, work: bytes) -> _Rank:
    environment = {
        **os.environ,
        "RANK": number,
        "LOCAL_RANK": number,
        "WORLD_SIZE": ranks,
        "LOCAL_WORLD_SIZE": ranks,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "TORCHELASTIC_USE_AGENT_STORE": True,  # the ranks meet at the store that the launcher holds
        "TORCHELASTIC_RESTART_COUNT": 0,
    }
    try:
        answers, answer = NEW.Pipe(duplex=False)
        texts = {name: str(value) for name, value in environment.items()}
        process = NEW.Process(target=_work, args=(texts, answer, work))
        process.start()
    except (OSError, EOFError) as error:
        why = getattr(error, "strerror", None) or "the process that is forked has ended"
        raise RuntimeError(f"rank {number} of {ranks} could not be started: {why}") from None
    answer.close()  # the rank has its own
    return _Rank(number, process, answers)


def _results(started: list[_Rank]) -> list:
    """What the ranks gave, or the sentence of the first that failed."""
    found, missing = {}, list(started)
    while missing:
        wait([sign for rank in missing for sign in (rank.answers, rank.process.sentinel)])
        for rank in list(missing):
            ended = not rank.process.is_alive()  # asked first: what it gave before it ended lies in the pipe
            if not (rank.answers.poll() or ended):
                continue
            result, failure = _answer(rank)
            if failure:
                raise RuntimeError(f"rank {rank.number} of {len(started)} failed: {failure}")
            found[rank.number] = result
            missing.remove(rank)
    return [found[number] for number in range(len(started))]


def _answer(rank: _Rank) -> tuple[object, str | None]:
    """The rank's result, or what went wrong."""
    try:
        answer = rank.answers.recv_bytes()
    except (EOFError, OSError):
        return None, _how_it_ended(rank.process)
    try:
        return pickle.loads(answer)
    except Exception as error:
        return None, f"its result cannot be read here: {_sentence(error)}"


def _how_it_ended(process: BaseProcess) -> str:
    """How a process ended that gave no answer."""
    process.join(GRACE)
    code = process.exitcode
    if code is None:
        return "it lives, but will not answer"
    if code < 0:
        return f"Signal {-code} ({signal.Signals(-code).name}) ended it"
    return f"it ended with exit code {code} and without a result"


def _end(started: list[_Rank], patience: float) -> None:
    """Give all processes together some seconds, then leave none."""
    until = time.monotonic() + patience
    try:
        for rank in started:
            rank.process.join(max(0.0, until - time.monotonic()))
    finally:
        for rank in started:
            rank.process.kill()
        for rank in started:
            rank.process.join()
            rank.answers.close()


def _work(environment: dict[str, str], answer: Connection, work: bytes) -> None:
    """What each process does: call the function, send back its result."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the launcher's, who ends its ranks
    threading.Thread(target=_end_with_launcher, daemon=True).start()
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    answer.send_bytes(_done(work))


def _end_with_launcher() -> None:
    launcher = multiprocessing.parent_process()
    if launcher is not None:
        launcher.join()
        os._exit(1)


def _done(work: bytes) -> bytes:
    """The pickled pair of a result and None, or of None and what went wrong."""
    trouble = "it cannot read what it was given: "
    try:
        function, arguments = pickle.loads(work)
        trouble = ""
        result = function(*arguments)
        trouble = "its result cannot be pickled: "
        return pickle.dumps((result, None))
    except BaseException as error:  # SystemExit as well: the rank has no result
        return pickle.dumps((None, trouble + _sentence(error)))


def _sentence(error: BaseException) -> str:
    """An error's name and message in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
