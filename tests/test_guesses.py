"""lab/guesses.py: which masks are filled, and what covering their copies does; and the record in words."""

import pytest
import torch
from torch import nn

from lab import guesses
from linformer_from_scratch.course.recorded.curves import recorded
from linformer_from_scratch.course.recorded.guesses import NAMES, MaskedText, watched
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


# What is recorded


def test_the_runs_are_those_of_the_chapters_first_picture():
    rates = {"linformer": 0.1}
    for attention, name in NAMES.items():
        rate = rates.get(attention, 1.0)
        (long,) = recorded("longer", attention=attention, seq_len=128, projection_rate=rate, seed=0)
        assert watched()[name]["curve"][-1] == [6000, pytest.approx(long["curve"][-1][1], abs=0.01)]


def test_a_text_shows_its_masks_and_every_model_has_a_guess_for_each():
    text = MaskedText(8)
    assert text.answers[3:8] == ["“ module”", "“r”", "“ver”", "“able”", "“age”"]
    assert "Return a T①a▢s▢ object for the given pack②." in text.shown([4, 7])
    assert text.shown(until=3).count("\n") == 2
    guesses_of = text.guesses(7, [20, 6000])
    assert list(guesses_of) == list(NAMES.values())
    assert [said.right for said in guesses_of["Transformer"]] == [False, True]
    assert sum(len(MaskedText(piece).answers) for piece in range(16)) == len(
        watched()["Linformer"]["guesses"][0][1]
    )


def test_a_text_that_is_not_recorded_is_refused():
    with pytest.raises(ValueError, match="piece is 16, expected 0 to 15"):
        MaskedText(16)
