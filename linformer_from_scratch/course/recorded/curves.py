"""Recorded runs of models that learn (chapters 08, 09, 12): find them, and read off what they reached."""

import torch
from torch import Tensor

from linformer_from_scratch.course.recorded import mean_and_interval, read_rows

RECALLED = {"recall": "12_recall", "copy": "09_copy"}  # the file of a task's runs


def recorded(experiment: str, **differing: object) -> list[dict]:
    """Rows of a recorded experiment: Linformer at k = 32 with one learned E for all, but for what differs.

    Other attentions carry the same words, which mean nothing to them: recorded("size", attention="full").
    """
    settings = {"attention": "linformer", "proj_dim": 32, "sharing": "layerwise", "projection": "windows"}
    return read_rows(f"08_{experiment}", **settings | {"projection_rate": 1.0} | differing)


def curves_of(rows: list[dict]) -> tuple[list[int], list[list[float]]]:
    """Updates, and the held-out losses of every run."""
    updates = [point[0] for point in rows[0]["curve"]]
    return updates, [[point[1] for point in row["curve"]] for row in rows]


def final_loss(rows: list[dict]) -> tuple[float, float]:
    """Mean over runs of the last held-out loss, and its 95 % interval, as mean_and_interval."""
    return mean_and_interval([row["curve"][-1][1] for row in rows])


def ahead(rows: list[dict], others: list[dict]) -> tuple[float, float]:
    """By how much lower some runs end than others of the same seeds: mean and interval, in nats."""
    losses, of_others = _last_by_seed(rows), _last_by_seed(others)
    return mean_and_interval([of_others[seed] - loss for seed, loss in losses.items()])


def kept(rows: list[dict], full: list[dict], none: list[dict]) -> tuple[float, float]:
    """Which share of what full attention gains over none some runs gain: mean and interval over seeds."""
    losses, low, high = (_last_by_seed(some) for some in (rows, full, none))
    return mean_and_interval([(high[s] - loss) / (high[s] - low[s]) for s, loss in losses.items()])


def _last_by_seed(rows: list[dict]) -> dict[int, float]:
    return {row["seed"]: row["curve"][-1][1] for row in rows}


def mean_curve(rows: list[dict]) -> Tensor:
    """Updates, and the held-out loss averaged over runs. Shape: (points, 2)."""
    updates, losses = curves_of(rows)
    return torch.stack([torch.tensor(updates), torch.tensor(losses).mean(dim=0)], dim=1)


def updates_until(curve: Tensor, loss: float) -> float:
    """Updates after which the curve first is at or below a loss, straight between its points; -1 if never."""
    before = None
    for updates, value in curve.tolist():
        if value <= loss:
            if before is None:
                return updates
            share = (before[1] - loss) / (before[1] - value)
            return before[0] + share * (updates - before[0])
        before = updates, value
    return -1.0


def accuracies(task: str) -> dict[str, dict[int, list[float]]]:
    """What recorded models of about 32 keys a query reach: name -> n -> share of right answers, by seed.

    Those that were asked to recall, with as many slots and at the rate at which they were.

    Args: task: "recall" or "copy".
    """
    recalled = read_rows(RECALLED["recall"])
    rows = read_rows(RECALLED[task], learning_rate=recalled[0]["learning_rate"])
    slots = {row["attention"]: row["size"] for row in recalled}  # the same at every n
    reached: dict[str, dict[int, list[float]]] = {name: {} for name in slots}
    for row in sorted(rows, key=lambda row: (row["n"], row["seed"])):
        if slots.get(row["attention"]) == row["size"]:
            reached[row["attention"]].setdefault(row["n"], []).append(row["accuracy"])
    return reached
