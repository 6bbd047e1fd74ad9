"""BlockExplorer: its states read what the edits say, and its words say what they read."""

import pytest
import torch
from torch.testing import assert_close

from linformer_from_scratch.course.widgets import block_explorer
from linformer_from_scratch.course.widgets.block_explorer import EDITS, HEADS, errors, memory, reading, tokens

N = len(tokens())
every_edit = pytest.mark.parametrize("edit", EDITS)
every_head = pytest.mark.parametrize("head", HEADS)


@every_head
@every_edit
def test_from_the_first_edit_on_nobody_reads_the_future(edit, head):
    ahead = reading(edit, head).effective.triu(1).abs().max()
    assert ahead > 0 if edit == "0" else ahead == 0


@every_head
@every_edit
def test_weights_sum_to_one_where_there_is_anything_to_read(edit, head):
    sums = reading(edit, head).effective.sum(dim=1)
    empty = 3 if edit == "1" else 0  # a block has four tokens
    assert_close(sums, torch.cat([torch.zeros(empty), torch.ones(N - empty)]))


@every_edit
def test_how_many_slots_and_tokens_a_query_reads(edit):
    slots, near, *_ = (part > 0 for part in reading(edit, "5.6"))
    most = {"0": (6, 0), "1": (6, 0), "2": (6, 4), "3": (6, 4), "4": (3, 4), "5": (3, 4), "6": (0, 8)}
    assert (slots.sum(dim=1).max(), near.sum(dim=1).max()) == most[edit]


def test_a_slot_of_small_blocks_mixes_the_block_before_as_well():
    mix = reading("4", "4.2").mix > 0
    assert mix.sum(dim=1).tolist() == [2, *11 * [4]]
    assert mix[3].nonzero().flatten().tolist() == [4, 5, 6, 7]


def test_what_a_layer_keeps_by_hand():
    """Keys and values of 12 heads of 32 features, for tokens or slots; at last 32 numbers for each."""
    counts = {"exact": 24, "0": 24, "1": 6, "2": 6 + 4, "3": 6 + 4, "4": 12 + 4}
    assert {edit: memory(edit) for edit in counts} == {edit: n * 2 * 12 * 32 for edit, n in counts.items()}
    assert memory("5") == (12 + 4) * 32
    assert memory("6") == (24 + 6) * 32


@every_head
def test_the_block_that_is_chosen_scored_best(head):
    now = reading("6", head)
    for t in range(7, N):  # two blocks have ended
        ended = (t + 1) // 4
        best = now.scores[t, :ended].argmax().item()
        assert now.scores[t, best] in (0, 1) and not now.scores[t, ended:].any()
        far = {*range(4 * best, 4 * best + 4)} | {*range(t - 3, t + 1)}
        assert {*now.tokens[t].nonzero().flatten().tolist()} == far


@every_head
def test_the_window_lowers_the_error(head):
    by_edit = dict(zip(EDITS, errors(head).tolist(), strict=True))
    assert by_edit["2"] < by_edit["1"] and by_edit["5"] == by_edit["4"] < by_edit["0"]


def test_the_map_that_it_opens_with_is_not_blank():
    opened = block_explorer.BlockExplorer().figure().axes[-1].images[0]
    darkest = opened.get_clim()[1]
    assert darkest == 1 / 4  # a token's share where a query attends to its block of four alone
    shades = opened.get_array() / darkest
    assert (shades > 0.1).mean() > 0.5
