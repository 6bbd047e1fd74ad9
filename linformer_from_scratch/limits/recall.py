"""Recall and copying at a fixed k: what recorded models reach, and why no map of low rank copies."""

import math

from linformer_from_scratch.course.results import read_rows

RECORDED = {"recall": "12_recall", "copy": "09_copy"}  # the file of a task's runs


def accuracies(task: str) -> dict[str, dict[int, list[float]]]:
    """What recorded models of about 32 keys a query reach: name -> n -> share of right answers, by seed.

    Those that were asked to recall, at the rate at which they were.

    Args: task: "recall" or "copy".
    """
    recalled = read_rows(RECORDED["recall"])
    rows = read_rows(RECORDED[task], learning_rate=recalled[0]["learning_rate"])
    found: dict[str, dict[int, list[float]]] = {row["attention"]: {} for row in recalled}
    for row in sorted(rows, key=lambda row: (row["n"], row["seed"])):
        if row["attention"] in found:
            found[row["attention"]].setdefault(row["n"], []).append(row["accuracy"])
    return found


def copy_error(n: int, rank: int) -> float:
    """‖Π − the best map of that rank‖ / ‖Π‖ for a permutation Π of n tokens: all its singular values are 1.

    Frobenius norm (Eckart and Young 1936).

    Raises: ValueError if rank does not lie in 0 … n.
    """
    if not 0 <= rank <= n:
        raise ValueError(f"rank is {rank}, expected 0 … n={n}")
    return math.sqrt(1 - rank / n)
