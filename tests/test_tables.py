"""tables.py: columns stay columns."""

from math import nan

from linformer_from_scratch.benchmark.statistics import NOTHING, Interval
from linformer_from_scratch.common.tables import aligned


def test_a_table_is_aligned_and_shows_what_is_missing():
    text = aligned("tokens n", [512, 131072], {"a": [0.5, nan], "a long name": [12.25, 1.0]}, ".2f")
    assert text.splitlines() == [
        "tokens n         512  131,072",
        "a               0.50        –",
        "a long name    12.25     1.00",
    ]


def test_headings_may_be_words():
    assert aligned("", ["forward"], {"a": [0.5]}, ".0%") == "   forward\na      50%"


def test_an_interval_writes_itself():
    text = aligned("n", [8, 16, 32], {"a": [Interval(1.0, 2.0, 3.0), NOTHING, nan]})
    assert text.splitlines()[1] == "a  2.0 (1.0–3.0)              –              –"
