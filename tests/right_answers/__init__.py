"""Right answers of different make, a module for each chapter with exercises.

RIGHT: exercise's id -> at least three right answers that differ in what they are made of (loops, einsum,
    NumPy, float64, a library's function).
SAME: exercise's id -> {mutation: why it is the same function}, of what tests/mutations.py makes of the
    reference and of the solution.
"""

from importlib import import_module

from linformer_from_scratch.exercises import STEMS

MODULES = [import_module(f"{__name__}.{stem}") for stem in STEMS]
RIGHT = {id: answers for module in MODULES for id, answers in module.RIGHT.items()}
SAME = {id: mutations for module in MODULES for id, mutations in module.SAME.items()}
