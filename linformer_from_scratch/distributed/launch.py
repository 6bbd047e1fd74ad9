"""Ranks from inside a notebook: processes that live no longer than the call that started them."""

import logging
import multiprocessing
import os
import pickle
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import distributed
from torch.multiprocessing.spawn import ProcessException, start_processes

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.common.ranks import MOMENT

MOST = 256  # ranks of one machine
# PyTorch's threads do not survive a fork: on Linux ranks are forked from a process that has loaded PyTorch,
# has done nothing else, and ends with this one.
START = "forkserver" if sys.platform == "linux" else "spawn"
if START == "forkserver":
    multiprocessing.get_context(START).set_forkserver_preload(["linformer_from_scratch.distributed"])
logging.getLogger("torch.multiprocessing.spawn").setLevel(logging.ERROR)  # it warns of ranks that it ends


def launch(function: Callable, ranks: int, *arguments: object) -> list:
    """Call a function in several new processes and return their results, by rank.

    Each computes with one thread, as under torchrun. They start afresh, so the function must be defined in a
    module, and arguments and results must be picklable; each rank has a copy of the arguments.
    Each is one of several ranks once it enters ranks.process_group.
    When the call ends, by a result, a failure or an interrupt, so do the processes.

    Raises: ValueError if ranks is no integer in 1 … 256, or if the function or its arguments cannot be
        pickled. RuntimeError with the first failed rank's own sentence.
    """
    ranks = check_size("ranks", ranks, most=MOST)
    work = _pickled((function, arguments), "a function defined in a module, and picklable arguments")
    store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # any free port
    environment = {
        **os.environ,
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the ranks meet at the store that the launcher holds
        "TORCHELASTIC_RESTART_COUNT": "0",
    }
    with tempfile.TemporaryDirectory() as folder:
        started = start_processes(_work, (environment, work, folder), ranks, join=False, start_method=START)
        try:
            while not started.join(grace_period=MOMENT):
                pass
        except ProcessException as error:
            why = str(error).splitlines()[-1].removeprefix("RuntimeError: ")  # of _work's
            raise RuntimeError(f"rank {error.error_index} of {ranks} failed: {why}") from None
        finally:
            for process in started.processes:
                process.kill()
                process.join()
        return [pickle.loads(Path(folder, str(number)).read_bytes()) for number in range(ranks)]


def _work(number: int, environment: dict[str, str], work: bytes, folder: str) -> None:
    """What each process does: call the function, and leave its result in the folder."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt ends a rank even while it waits for others
    threading.Thread(target=_end_with_launcher, daemon=True).start()
    os.environ.clear()
    os.environ.update(environment, RANK=str(number), LOCAL_RANK=str(number))
    torch.set_num_threads(1)
    try:
        function, arguments = pickle.loads(work)
        result = _pickled(function(*arguments), "a picklable result")
    except BaseException as error:  # SystemExit as well: the rank has no result
        time.sleep(MOMENT if number else 0)  # where all fail alike, rank 0 is the first to say so
        raise RuntimeError(_sentence(error)) from None
    Path(folder, str(number)).write_bytes(result)


def _end_with_launcher() -> None:
    launcher = multiprocessing.parent_process()
    assert launcher is not None
    launcher.join()
    os._exit(1)


def _pickled(value: object, expected: str) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception as error:  # whatever an object's own pickling raises
        raise ValueError(f"ranks are other processes, expected {expected}; got {_sentence(error)}") from None


def _sentence(error: BaseException) -> str:
    """An error's name and message in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
