"""Widget 10: its numbers are worked out by hand, and its words stay true on short texts."""

from itertools import product

import pytest
import traitlets
from jupyter_lab import alive
from test_widgets_cost import put

from linformer_from_scratch.cost import Sizes
from linformer_from_scratch.course.widgets import WireExplorer
from linformer_from_scratch.course.widgets.wire_explorer import facts, in_bytes, sends, times

ENDS = [
    {"ranks": ranks, "n": n, "proj_dim": k, "d_model": d, "shared": shared}
    for ranks, n, k, d, shared in product((2, 256), (1024, 2**20), (64, 1024), (256, 4096), (False, True))
]


@pytest.mark.parametrize(
    ("ranks", "n", "k", "d", "shared", "sent", "matrix_bytes", "above"),
    [
        (8, 131072, 256, 1024, False, (469762048, 117440512, 1835008), 16777216, (512, 2048)),
        (256, 1024, 1024, 4096, True, (16711680, 130560, 16711680), 8192, (1024, 131072)),
    ],
)
def test_what_a_rank_sends_and_holds_by_hand(ranks, n, k, d, shared, sent, matrix_bytes, above):
    explorer = WireExplorer(ranks=ranks, n=n, proj_dim=k, d_model=d, shared=shared)
    assert explorer.sent == dict(zip(("ring attention", "Ulysses", "Linformer"), sent, strict=True))
    assert explorer.matrix_bytes == matrix_bytes
    assert explorer.above == dict(zip(("ring attention", "Ulysses"), above, strict=True))


def test_the_tables_that_the_browser_gets_are_the_formulas():
    sizes, ranks = Sizes(n=13 * 17, d_model=33, num_heads=11, proj_dim=7, batch=5, bytes_per_number=2), 17
    values = 13 * 17, 33, 11, 7, 5, 2, ranks
    for shared, tables in zip((False, True), facts()["formulas"].values(), strict=True):
        for name, sent in sends(sizes, ranks, shared).items():
            assert put(tables[name], values) == pytest.approx(sent, rel=1e-12)


def test_only_powers_of_two_are_taken():
    for control in ("ranks", "n", "proj_dim", "d_model"):
        with pytest.raises(traitlets.TraitError):
            WireExplorer(**{control: 1000})


def test_where_the_curves_cross_the_words_turn():
    explorer = WireExplorer(n=2048)
    assert "Ulysses just as much" in explorer.words
    assert "less than both above n = 2,048, but not here" in explorer.words
    explorer.n = 4096
    assert "less than both above n = 2,048, as here" in explorer.words


def test_words_are_true_at_the_ends_of_every_control():
    for values in ENDS:
        explorer = WireExplorer(**values)
        ours, theirs = explorer.sent["Linformer"], [explorer.sent[name] for name in explorer.above]
        assert ("as here" in explorer.words) == (ours < min(theirs)), values
        assert ("but not here" in explorer.words) == (ours >= min(theirs)), values


def test_the_still_draws_every_rank_and_prints_what_it_sends():
    ring, ulysses, linformer = WireExplorer(ranks=8).figure().axes
    titles = ["ring attention: 470 MB", "Ulysses: 117 MB", "Linformer: 1.84 MB"]
    assert [axis.texts[-1].get_text() for axis in (ring, ulysses, linformer)] == titles
    assert [len(axis.texts) for axis in (ring, linformer)] == [9, 9]  # arrows, and the title
    assert len(ulysses.lines) == 8 * 7 / 2 + 1  # between all pairs; the last are the ranks
    assert all(len(axis.lines[-1].get_xdata()) == 8 for axis in (ring, ulysses, linformer))


def test_bytes_have_three_digits_and_a_unit_and_ratios_are_in_words():
    assert [in_bytes(b) for b in (512, 32768, 17112760320)] == ["512 B", "32.8 kB", "17.1 GB"]
    assert (times(2048), times(1), times(0.25)) == ("2,048 times as much", "just as much", "1/4 as much")


@pytest.mark.browser
def test_the_page_says_what_python_says_at_the_ends_of_every_control(browser, tmp_path):
    explorers = [WireExplorer(**values) for values in ENDS[::7]]  # each control at both of its ends
    with alive(browser, tmp_path, *explorers) as seen:
        for live, explorer in zip(seen, explorers, strict=True):
            assert live.differences(explorer) == []


# Of each circle: how many boxes, and how wide its arrows are in units.
DRAWN = """root => [...root.querySelectorAll(".lw-wires svg")].map((svg) => [
    svg.querySelectorAll("rect").length,
    ...new Set([...svg.querySelectorAll("[fill=none]")].map((path) => +path.getAttribute("stroke-width"))),
])"""


@pytest.mark.browser
def test_an_arrow_is_as_thick_as_its_bytes_and_never_thinner_than_a_hair(browser, tmp_path):
    explorers = [WireExplorer(n=2**20), WireExplorer(n=2**19, ranks=256)]
    with alive(browser, tmp_path, *explorers) as seen:
        (ring, ulysses, linformer), many = (live.root.evaluate(DRAWN) for live in seen)
        said = [line.split("\n")[0] for line in seen[0].root.locator(".lw-wires p").all_inner_texts()]
    assert ring == [8, 28] and linformer == [8, 0.4]
    assert ulysses == [8, pytest.approx(28 / 4 / 7)]  # a quarter of the ring's bytes, to seven others
    assert [boxes for boxes, *_ in many] == [16, 16, 16] and many[0][1] == 14
    assert said == ["ring attention", "Ulysses", "Linformer"]
