"""tables.py: columns stay columns."""

from math import nan

from linformer_from_scratch.course.tables import aligned


def test_a_table_is_aligned_and_shows_what_is_missing():
    text = aligned("tokens n", [512, 131072], {"a": [0.5, nan], "a long name": [12.25, 1.0]}, ".2f")
    assert text.splitlines() == [
        "tokens n         512  131,072",
        "a               0.50        –",
        "a long name    12.25     1.00",
    ]


def test_headings_may_be_words():
    assert aligned("", ["forward"], {"a": [0.5]}, ".0%") == "   forward\na      50%"
