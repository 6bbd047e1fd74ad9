"""Widget 9 in Python: its numbers are those of the package's own functions."""

from itertools import product

import pytest
from jupyter_lab import alive
from torch.testing import assert_close

from linformer_from_scratch.attention import attention_weights, scaled_dot_product_attention
from linformer_from_scratch.course.widgets import FamilyExplorer
from linformer_from_scratch.course.widgets.family_explorer import BUDGETS, NAMES, members
from linformer_from_scratch.course.widgets.projection_explorer import HEADS, stored_head
from linformer_from_scratch.pretrained import stored_tokens


def choose(relative, budget=128, head="5.6"):
    return FamilyExplorer(head=head, relative=relative, budget=budget), stored_head(head)


@pytest.mark.parametrize("place", HEADS)
@pytest.mark.parametrize("name", NAMES)
def test_the_map_in_its_place_gives_the_error_that_is_said(name, place):
    explorer, head = choose(name, head=place)
    exact = scaled_dot_product_attention(head.q, head.k, head.v)
    error = ((explorer.effective @ head.v - exact).norm() / exact.norm()).item()
    assert explorer.errors[name] == pytest.approx(error, abs=1e-6)
    assert f"off by {explorer.errors[name]:.0%};" in explorer.words
    assert_close(explorer.P, attention_weights(head.q, head.k))


def test_every_relative_stays_within_the_budget_and_its_next_size_would_not():
    for (name, relative), keys in product(members("5.6").items(), (32, 128)):
        if name == "tiled exact" and keys < 128:
            continue
        explorer, head = choose(name, budget=keys)
        n, d = head.q.shape
        assert round(relative.flops(n, d, explorer.size) / (4 * n * d)) <= keys
        larger = [size for size in relative.sizes(n) if size > explorer.size]
        assert all(relative.flops(n, d, size) > 4 * n * d * (keys + 0.5) for size in larger)


def test_what_does_not_fit_is_said_with_both_numbers_and_reads_nothing():
    explorer, _ = choose("tiled exact", budget=8)
    assert explorer.words == "tiled exact costs 128 keys per query, the budget is 8."
    assert explorer.size is None and not explorer.effective.any()
    cheapest = choose("two levels", budget=8)[0].words  # of the sizes that there are
    assert cheapest == "two levels costs 23 keys per query, the budget is 8."
    assert explorer.errors["two levels"] is None and explorer.errors["Nyström"] > 0
    assert explorer.still()


def test_the_browser_is_told_every_size_cost_and_error():
    facts = FamilyExplorer().facts
    for name, (i, budget), head in product(NAMES, enumerate(BUDGETS), HEADS):
        explorer, _ = choose(name, budget, head)
        assert facts["relatives"][name]["sizes"][i] == explorer.size
        assert facts["errors"][head][name][i] == explorer.errors[name]
        assert f"costs {facts['relatives'][name]['costs'][i]:.0f} " in explorer.words
    assert facts["tokens"] == stored_tokens("story")


def test_the_still_is_drawn_from_the_same_numbers():
    explorer = FamilyExplorer()
    _, own, errors = explorer.figure().axes
    assert_close(own.images[0].get_array().data, explorer.effective.numpy())
    both = zip(errors.get_yticklabels(), errors.patches, strict=True)
    bars = {name.get_text(): bar.get_width() for name, bar in both}
    assert bars == {name: min(error or 0, 2) for name, error in explorer.errors.items()}
    assert [*bars.values()] == [*sorted(bars.values())[1:], 0] and [*bars][-1] == "tiled exact"


@pytest.mark.slow
@pytest.mark.browser
def test_bars_stand_in_the_order_of_their_errors_and_keys_walk_along_them(browser, tmp_path):
    explorer = FamilyExplorer()
    with alive(browser, tmp_path, explorer) as (live,):
        for budget in (32, 128):
            explorer.budget = budget
            errors = {name: 9 if error is None else error for name, error in explorer.errors.items()}
            ranked = sorted(NAMES, key=errors.get)
            bars = live.root.locator(".lw-ranking > label")
            rows = [[name, "too dear" if errors[name] == 9 else f"{errors[name]:.0%}"] for name in ranked]
            assert [bar.locator("span, b").all_inner_texts() for bar in bars.all()] == rows
            live.after(lambda: [live.controls()["Keys per query"].press("ArrowRight") for _ in range(2)])
        live.after(bars.first.click)
        live.after(lambda: live.page.keyboard.press("ArrowDown"))
        assert live.as_python().relative == ranked[1]
