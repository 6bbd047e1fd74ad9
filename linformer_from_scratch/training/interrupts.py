"""Ctrl-C between what belongs together: the weights of a step, its number, its line and its checkpoint."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Inside, Ctrl-C has to wait. Only the main thread hears it."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    heard: list[tuple] = []
    before = signal.signal(signal.SIGINT, lambda *said: heard.append(said))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if callable(before):
            for said in heard:
                before(*said)
