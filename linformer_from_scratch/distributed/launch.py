"""Ranks from inside a notebook, on torchrun's own engine."""

import logging
import os
import signal
from collections.abc import Callable
from unittest.mock import patch

from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

SIGNALS = [
    getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT") if hasattr(signal, name)
]


def launch(function: Callable, ranks: int, *arguments: object) -> list:
    """Call a function in several new processes and return what each gave, by rank.

    Each computes with one thread, as under torchrun. They start anew, so the function must stand in a module,
    and arguments and results must be picklable.
    Each is one of several ranks once it enters ranks.joined.

    Raises: RuntimeError with the first failed rank's own sentence.
    """
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=ranks,
        run_id="linformer_from_scratch",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",  # any free port
        start_method="spawn",
        max_restarts=0,
        monitor_interval=0.1,
    )
    talkative = logging.getLogger("torch")
    level, handlers = talkative.level, {sign: signal.getsignal(sign) for sign in SIGNALS}
    talkative.setLevel(logging.CRITICAL)  # the failure is told below, once
    try:
        with patch.dict(os.environ, {"OMP_NUM_THREADS": "1"}):
            found = elastic_launch(config, function)(*arguments)
    except ChildFailedError as error:
        number, failure = error.get_first_failure()
        raise RuntimeError(f"rank {number} of {ranks} failed: {_said(failure)}") from None
    finally:
        talkative.setLevel(level)
        for sign, handler in handlers.items():  # the engine leaves its own, which a notebook's kernel dies of
            if handler is not None:
                signal.signal(sign, handler)
    return [found[i] for i in range(ranks)]


def _said(failure: ProcessFailure) -> str:
    if isinstance(failure.message, dict):
        return failure.message["message"]
    if failure.exitcode < 0:
        return failure.message  # which signal killed it
    return "it could not begin or not hand over its result; can the function be imported, the result pickled?"
