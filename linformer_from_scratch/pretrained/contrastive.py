"""Fit an encoder of long pages so that each page lies where its queries do (chapter 12).

Queries are short and read by the pretrained model as it comes; their vectors never change, so every page is
compared with the queries of all pages at once.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.common.random_state import integers, permutations
from linformer_from_scratch.data import generator_of

TEMPERATURE = 0.05  # of the cosines
TOKENS = 8192  # in an update


class Searched(NamedTuple):
    """Pages of one length, and the unit vectors of what they are looked up by.

    ids: (pages, n). queries: (kinds, pages, d), one of each kind for each page.
    """

    ids: Tensor
    queries: Tensor


class PageBatches:
    """Pages of one length, drawn for each update: batches for the Trainer.

    Args:
        by_length: pages by their number of tokens; every length is as likely.
        seed: decides which are drawn.

    Shape: step -> ids (pages, n), places (pages,) among those of that length
    """

    def __init__(self, by_length: Mapping[int, Searched], seed: int):
        self.pages, self.seed = list(by_length.values()), seed

    def __call__(self, step: int) -> tuple[Tensor, Tensor]:
        """The batch of one update, the same for the same step."""
        draw = generator_of(self.seed, step)
        ids = self.pages[int(integers(draw, 0, len(self.pages)))].ids
        places = permutations(draw, len(ids))[: max(1, TOKENS // ids.size(1))]
        return ids[places], places


class ContrastiveLoss:
    """Which of all queries are this page's? Cross entropy over cosines, the mean over kinds of query.

    With every other page's query as a negative (van den Oord et al. 2018, arXiv 1807.03748, section 2.3).

    Args: by_length: as PageBatches.
    Shape: ids (pages, n), places (pages,) -> (); the model's `embed` gives what cosines_of takes.
    """

    def __init__(self, by_length: Mapping[int, Searched]):
        self.by_length = by_length

    def __call__(self, model: Any, ids: Tensor, places: Tensor) -> Tensor:
        """The loss of one batch."""
        queries = self.by_length[ids.size(1)].queries.to(ids.device)
        cosines = cosines_of(model.embed(ids).float(), queries)  # (kinds, pages of the batch, all pages)
        targets = places.expand(len(queries), -1)
        return functional.cross_entropy((cosines / TEMPERATURE).flatten(0, 1), targets.flatten())


def cosines_of(pages: Tensor, queries: Tensor) -> Tensor:
    """How near each page is to each query; of a page with several vectors, the nearest.

    Shape: unit vectors, pages (pages, d) or (pages, parts, d), queries (..., queries, d)
        -> (..., pages, queries)
    """
    parts = pages if pages.dim() == 3 else pages[:, None]
    return torch.einsum("ptd,...qd->...ptq", parts, queries).amax(dim=-2)


def ranks_of(scores: Tensor, wanted: Sequence[int] | Tensor) -> Tensor:
    """At which place each search finds what it wants, 1 for the best.

    Pages that score alike share the mean of their places.

    Shape: scores (searches, pages), wanted (searches,) -> (searches,)
    Raises: ValueError if a score is no number, which has no place.
    """
    if scores.isnan().any():
        raise ValueError(f"{scores.isnan().sum()} of {scores.numel()} scores are NaN, expected numbers")
    own = scores.gather(1, torch.as_tensor(wanted)[:, None])
    better, as_good = (scores > own).sum(dim=1), (scores >= own).sum(dim=1)
    return (better + 1 + as_good) / 2
