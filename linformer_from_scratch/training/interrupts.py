"""Ctrl-C never separates what belongs together: a step's weights, its number, its line, its checkpoint."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Inside, Ctrl-C has to wait. (Python delivers it to the main thread only.)"""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    received: list[tuple] = []
    before = signal.signal(signal.SIGINT, lambda *arguments: received.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if callable(before):
            for arguments in received:
                before(*arguments)
