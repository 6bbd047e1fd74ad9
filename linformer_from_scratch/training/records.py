"""The recorded runs of chapter 08: find them, and read off what they reached."""

import torch
from torch import Tensor

from linformer_from_scratch.course.results import mean_and_spread, read_rows


def recorded(experiment: str, **differing: object) -> list[dict]:
    """Rows of a recorded experiment: Linformer at k = 32 with one learned E for all, but for what differs.

    Other attentions carry the same words, which mean nothing to them: recorded("size", attention="full").
    """
    settings = {"attention": "linformer", "proj_dim": 32, "sharing": "layerwise", "projection": "learned"}
    return read_rows(f"08_{experiment}", **settings | differing)


def curves_of(rows: list[dict]) -> tuple[list[int], list[list[float]]]:
    """Updates, and the held-out losses of every run."""
    updates = [point[0] for point in rows[0]["curve"]]
    return updates, [[point[1] for point in row["curve"]] for row in rows]


def final_loss(rows: list[dict]) -> tuple[float, float]:
    """Mean and standard deviation over runs of the last held-out loss."""
    return mean_and_spread([row["curve"][-1][1] for row in rows])


def mean_curve(rows: list[dict]) -> Tensor:
    """Updates, and the held-out loss averaged over runs. Shape: (points, 2)."""
    updates, losses = curves_of(rows)
    return torch.stack([torch.tensor(updates), torch.tensor(losses).mean(dim=0)], dim=1)


def updates_until(curve: Tensor, loss: float) -> float:
    """Updates after which the curve first is at or below a loss, straight between its points; -1 if never."""
    before = None
    for updates, found in curve.tolist():
        if found <= loss:
            if before is None:
                return updates
            share = (before[1] - loss) / (before[1] - found)
            return before[0] + share * (updates - before[0])
        before = updates, found
    return -1.0
