"""A control that is moved again and again: how long a move takes, and that each of them draws."""

import statistics
import time
from itertools import pairwise


def report_moves(record_property, name, widget, control, values):
    """Show the milliseconds of a move after the tests; each must show another picture than the one before."""
    times, pictures = [], [widget.picture.value]
    for value in values:
        start = time.perf_counter()
        control.value = value
        times.append(1e3 * (time.perf_counter() - start))
        pictures.append(widget.picture.value)
    assert all(one != other for one, other in pairwise(pictures)), f"{name}: a move drew nothing new"
    middle, longest = statistics.median(times), max(times)
    record_property(
        "report", f"{name}: {middle:.0f} ms a move (median of {len(times)}, longest {longest:.0f})"
    )
