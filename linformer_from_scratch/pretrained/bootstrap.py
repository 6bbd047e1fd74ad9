"""Is one search better than another? A bootstrap over the queries that both were asked."""

from typing import NamedTuple

import torch
from torch import Tensor

from linformer_from_scratch.common.random_state import integers


class Difference(NamedTuple):
    """A mean difference, and the ends of its 95 % interval."""

    low: float
    mean: float
    high: float

    def __format__(self, spec: str) -> str:
        """The mean, then both ends in brackets."""
        return f"{self.mean:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"


def paired_bootstrap(scores: Tensor, others: Tensor, draws: int = 10_000, seed: int = 0) -> Difference:
    """How much higher are scores than others on average over the queries, and how certain is that?

    Queries are drawn with replacement, as many as there are, and each brings both of its scores; the interval
    holds the middle 95 % of the mean differences of all draws (percentiles: Efron and Tibshirani 1993,
    chapter 13). Where several runs answered the same queries, runs are drawn in the same way. Both count
    as independent of each other. With zeros as others, it is the mean of the scores.

    Shape: two of (queries,) or (runs, queries)
    Raises: ValueError unless both have one shape, with at least one query.
    """
    if scores.shape != others.shape or scores.dim() not in (1, 2) or not scores.numel():
        got = f"{tuple(scores.shape)} and {tuple(others.shape)}"
        raise ValueError(f"scores are {got}, expected two of one shape, (queries,) or (runs, queries)")
    by_query = (scores.double() - others.double()).reshape(-1, scores.size(-1))  # (runs, queries)
    runs, queries = by_query.shape
    generator = torch.Generator().manual_seed(seed)
    of_queries = integers(generator, 0, queries, draws, queries)
    by_run = by_query[:, of_queries].mean(dim=-1)  # (runs, draws)
    means = by_run.gather(0, integers(generator, 0, runs, runs, draws)).mean(dim=0)
    low, high = means.quantile(by_query.new_tensor([0.025, 0.975]))
    return Difference(low.item(), by_query.mean().item(), high.item())
