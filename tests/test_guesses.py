"""lab/guesses.py: which masks are filled, and what covering their copies does to a guess."""

import pytest
import torch
from torch import nn

from lab import guesses
from linformer_from_scratch.data import IGNORE, MASK

INPUTS = torch.tensor([[7, MASK, 5, 6, 4, 5, MASK, 9], [8, 4, 8, MASK, 3, 9, 5, MASK]])
TARGETS = torch.full_like(INPUTS, IGNORE)
TARGETS[0, 1], TARGETS[0, 4], TARGETS[0, 6], TARGETS[1, 3] = 5, 4, 6, 8  # the second is no mask
TARGETS[1, 7] = 6


class Frequent(nn.Module):
    """Every place gets the counts of the visible tokens of its text as scores."""

    def forward(self, ids):
        counts = nn.functional.one_hot(ids, 10).sum(1).float()
        counts[:, MASK] = 0
        return counts[:, None].expand(-1, ids.size(1), -1)


def test_only_what_is_hidden_is_guessed_and_a_copy_beside_it_does_not_count():
    row, column, answer, there = guesses.masks(INPUTS, TARGETS)
    assert [*zip(row.tolist(), column.tolist(), strict=True)] == [(0, 1), (0, 6), (1, 3), (1, 7)]
    assert answer.tolist() == [5, 6, 8, 6]
    assert [places.nonzero().flatten().tolist() for places in there] == [[5], [3], [0], []]


def test_shares_right_and_guesses_follow_the_scores():
    assert guesses.shares_right(Frequent(), [(INPUTS, TARGETS)]) == pytest.approx([2 / 3, 0], abs=1e-4)
    first, *_ = guesses.guesses(Frequent(), [(INPUTS, TARGETS)])
    assert first[1][0] == 5 and first[0] == first[1][1] > first[2][1]


def test_covering_copies_hurts_a_model_that_counts_them_and_no_blind_one():
    found = guesses.covered(Frequent(), [(INPUTS, TARGETS)])
    assert found["copies"] > found["nothing"] and found["others"] != found["copies"]
    blind = guesses.covered(lambda ids: torch.zeros(*ids.shape, 10), [(INPUTS, TARGETS)])
    assert len({*blind.values()}) == 1
