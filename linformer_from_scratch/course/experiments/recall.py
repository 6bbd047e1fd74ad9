"""The runs of chapter 12 on associative recall: a value for every key, then all keys again.

The models and their training are those of chapter 09.
"""

from linformer_from_scratch.course.experiments.efficient import FULL, KEYS, MEAN, SLOWLY, grid, solve
from linformer_from_scratch.course.experiments.experiment import Experiment

NAMES = (FULL, SLOWLY, MEAN, "Nyström", "sliding window")
LENGTHS = (64, 128, 256, 512)
WIDTHS = [(n, keys) for keys in (16, 64, 128, 256) for n in LENGTHS if 2 * keys <= n]  # k is at most n / 4
FAILED = [(256, KEYS), (512, 256)]


def recalling(names: tuple[str, ...], sizes: list[tuple[int, int]], **rest: int) -> list[dict]:
    """Settings of runs on recall."""
    return [{"task": "recall"} | settings | rest for settings in grid(names, sizes)]


EXPERIMENTS = [
    Experiment(
        "12_recall",
        "recall at 32 keys a query, n rising",
        recalling(NAMES, [(n, KEYS) for n in LENGTHS]),
        solve,
        __file__,
        seeds=(0,),
    ),
    Experiment(
        "12_width",
        "recall by Linformer, E and F learned slowly, at other k",
        recalling((SLOWLY,), WIDTHS),
        solve,
        __file__,
        seeds=(0,),
    ),
    Experiment(
        "12_longer",
        "two of these that failed, with three times as many updates",
        recalling((SLOWLY,), FAILED, times=3),
        solve,
        __file__,
    ),
]
