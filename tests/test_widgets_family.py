"""Widget 9 moved from Python: its numbers are those of the package's own functions."""

import time
from itertools import product

import pytest
from torch.testing import assert_close

from linformer_from_scratch.attention import attention_weights, scaled_dot_product_attention
from linformer_from_scratch.efficient import nystrom_attention, sliding_window_attention, tiled_attention
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.pretrained import stored_heads
from linformer_from_scratch.widgets import FamilyExplorer
from linformer_from_scratch.widgets.family_explorer import LEARNED, NAMES, members
from linformer_from_scratch.widgets.projection_explorer import HEADS


def choose(name, budget=128, place=(5, 6)):
    explorer = FamilyExplorer()
    explorer.budget.value, explorer.head.value, explorer.relative.value = budget, place, name
    return explorer, stored_heads()[place]


@pytest.mark.parametrize("place", HEADS.values())
@pytest.mark.parametrize("name", NAMES)
def test_the_map_in_its_place_gives_the_error_that_is_said(name, place):
    explorer, head = choose(name, place=place)
    exact = scaled_dot_product_attention(head.q, head.k, head.v)
    error = ((explorer.effective @ head.v - exact).norm() / exact.norm()).item()
    assert explorer.errors[name] == pytest.approx(error, abs=1e-4)
    assert f"off by {explorer.errors[name]:.0%}" in explorer.words
    assert_close(explorer.P, attention_weights(head.q, head.k))


@pytest.mark.parametrize(
    ("name", "budget", "output"),
    [
        ("sliding window", 64, lambda head, size: sliding_window_attention(head.q, head.k, head.v, size)),
        ("Nyström", 128, lambda head, size: nystrom_attention(head.q, head.k, head.v, size)),
        (LEARNED, 64, lambda head, size: linformer_attention(head.q, head.k, head.v, *head.learned[size])),
        (LEARNED, 128, lambda head, size: linformer_attention(head.q, head.k, head.v, *head.learned[size])),
        ("tiled exact", 128, lambda head, size: tiled_attention(head.q, head.k, head.v)),
    ],
)
def test_a_relative_of_the_size_that_is_said(name, budget, output):
    explorer, head = choose(name, budget)
    assert_close(explorer.effective @ head.v, output(head, explorer.size), atol=1e-4, rtol=0)


def test_every_relative_stays_within_the_budget_and_its_next_size_would_not():
    for (name, relative), keys in product(members((5, 6)).items(), (32, 128)):
        if name == "tiled exact" and keys < 128:
            continue
        explorer, head = choose(name, budget=keys)
        n, d = head.q.shape
        assert round(relative.flops(n, d, explorer.size) / (4 * n * d)) <= keys
        larger = [size for size in relative.sizes(n) if size > explorer.size]
        assert all(relative.flops(n, d, size) > 4 * n * d * (keys + 0.5) for size in larger)


def test_what_does_not_fit_is_said_with_both_numbers_and_the_picture_stays():
    explorer, _ = choose("Nyström", budget=8)
    picture = explorer.picture.value
    explorer.relative.value = "tiled exact"
    assert explorer.words == "tiled exact costs as much as reading 128 keys, the budget is 8."
    assert explorer.picture.value == picture
    assert explorer.errors["two levels"] is None


def test_linear_attention_fits_where_its_cost_is_the_budget_rounded():
    explorer, _ = choose("linear", budget=32)
    assert 0 < explorer.errors["linear"] < 1
    assert "linear costs as much as reading 32 of 128 keys" in explorer.words
    explorer.budget.value = 16
    assert explorer.words == "linear costs as much as reading 32 keys, the budget is 16."


def test_only_nystrom_and_linformer_have_negative_weights():
    for name in NAMES:
        explorer, _ = choose(name)
        negative = " 0% of its weights are negative" not in explorer.words
        assert negative == (name in ("Nyström", LEARNED))


def test_a_move_takes_less_than_a_tenth_of_a_second():
    explorer, _ = choose("Nyström", budget=16)
    for budget in (32, 64, 128):
        start = time.process_time()
        explorer.budget.value = budget
        assert time.process_time() - start < 0.2  # both cores' time; a tenth of a second on the clock
