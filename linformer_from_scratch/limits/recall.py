"""Recall and copying at a fixed k: what recorded models reach, and why no map of low rank copies."""

import math

from linformer_from_scratch.course.results import read_rows, select

RECORDED = {"recall": "12_recall", "copy": "09_copy"}  # the file of a task's runs


def accuracies(task: str) -> dict[str, dict[int, float]]:
    """What recorded models of about 32 keys a query reach: name -> n -> share of answers that are right.

    Args: task: "recall" or "copy".
    """
    rows = read_rows(RECORDED[task], seed=0)
    names = dict.fromkeys(row["attention"] for row in read_rows(RECORDED["recall"]))
    return {name: {row["n"]: row["accuracy"] for row in select(rows, attention=name)} for name in names}


def copy_error(n: int, rank: int) -> float:
    """‖Π − the best map of that rank‖ / ‖Π‖ for a permutation Π of n tokens: all its singular values are 1.

    Frobenius norm (Eckart and Young 1936).

    Raises: ValueError if rank does not lie in 0 … n.
    """
    if not 0 <= rank <= n:
        raise ValueError(f"rank is {rank}, expected 0 … n={n}")
    return math.sqrt(1 - rank / n)
