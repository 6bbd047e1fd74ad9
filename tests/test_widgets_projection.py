"""Widgets 6, 7 and 8 moved from Python: their numbers are those of the package's own functions."""

import pytest
from moves import report_moves
from torch.testing import assert_close

from linformer_from_scratch.attention import attention_weights, scaled_dot_product_attention
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.low_rank import best_rank
from linformer_from_scratch.pretrained import STORED_DIMS, stored_heads
from linformer_from_scratch.widgets import LengthExplorer, ProjectionExplorer, ProjectionRace
from linformer_from_scratch.widgets.length_explorer import SEQ_LEN
from linformer_from_scratch.widgets.projection_explorer import BEST, GAUSSIAN, HEADS, KINDS, LEARNED, MEAN
from linformer_from_scratch.widgets.projection_race import THEOREM


def state(widget):
    return widget.picture.value, widget.words


def off_by(output, exact):
    return ((output - exact).norm() / exact.norm()).item()


@pytest.mark.parametrize("place", HEADS.values())
@pytest.mark.parametrize("kind", KINDS)
def test_the_effective_map_gives_the_output_of_linformer(place, kind):
    explorer, head = ProjectionExplorer(), stored_heads()[place]
    explorer.head.value, explorer.kind.value = place, kind
    for k in (2, 16, 64):
        explorer.proj_dim.value = k
        exact = scaled_dot_product_attention(head.q, head.k, head.v)
        if kind == BEST:
            expected = best_rank(explorer.P, k) @ head.v
        else:
            expected = linformer_attention(head.q, head.k, head.v, explorer.E, explorer.F)
        assert_close(explorer.effective @ head.v, expected, atol=1e-4, rtol=0)
        assert explorer.error == pytest.approx(off_by(expected, exact), abs=1e-4)
        assert explorer.P_bar.shape == (len(head.q), k)
        assert f"{explorer.error:.0%}" in explorer.words


def test_the_map_is_that_of_the_head():
    explorer = ProjectionExplorer()
    for place in HEADS.values():
        explorer.head.value = place
        assert_close(explorer.P, attention_weights(stored_heads()[place].q, stored_heads()[place].k))


def test_learned_projections_beat_random_and_pooled_ones_on_the_head_they_open_with():
    explorer, errors = ProjectionExplorer(), {}
    for kind in KINDS:
        explorer.kind.value = kind
        errors[kind] = explorer.error
    assert errors[BEST] < errors[LEARNED] < errors[MEAN] < 1 < errors[GAUSSIAN]


def test_the_race_shows_the_errors_of_every_kind():
    race = ProjectionRace()
    head, place = stored_heads()[race.head.value], race.head.value
    exact = scaled_dot_product_attention(head.q, head.k, head.v)
    assert race.dims == [*STORED_DIMS]
    for i, k in enumerate(race.dims):
        learned = linformer_attention(head.q, head.k, head.v, *head.learned[k])
        assert race.errors[LEARNED][0, i] == pytest.approx(off_by(learned, exact), abs=1e-4)
    assert race.errors[GAUSSIAN].shape == (race.seeds.value, len(race.dims))
    assert race.errors[MEAN].shape == (1, len(race.dims))
    assert place == race.head.value


def test_the_theorem_falls_about_like_one_over_root_k():
    race = ProjectionRace()
    race.seeds.value = 20
    for place in HEADS.values():
        race.head.value = place
        assert -0.65 < race.slope < -0.3
    assert f"{abs(race.slope):.2f}" in race.words


def test_a_single_k_has_no_slope_and_says_so():
    race = ProjectionRace()
    race.dims_range.index = (2, 2)
    assert race.dims == [STORED_DIMS[2]] and "needs two k" in race.words
    race.dims_range.index = (1, 4)
    assert race.dims == [*STORED_DIMS[1:5]] and "needs two k" not in race.words


def test_an_edit_moves_the_past_in_linformer_and_not_in_causal_attention():
    explorer = LengthExplorer()
    explorer.n.value = SEQ_LEN
    for token in (1, 9, SEQ_LEN):
        explorer.token.value = token
        causal, linformer = explorer.moved.values()
        assert (causal[: token - 1] == 0).all() and causal[token - 1] > 0
        assert (linformer > 1e-6).all()
        assert f"Of {token - 1} earlier outputs, 0 move in causal attention, {token - 1} in" in explorer.words
    assert THEOREM not in explorer.words


def test_shorter_inputs_score_less_and_longer_ones_are_refused():
    explorer = LengthExplorer()
    spreads = []
    for n in (SEQ_LEN, 12, 3):
        explorer.n.value = n
        spreads.append(explorer.spread)
        assert all(len(moved) == n for moved in explorer.moved.values())
    assert spreads == sorted(spreads, reverse=True)
    before = explorer.picture.value
    explorer.n.value = SEQ_LEN + 2
    assert (
        explorer.words
        == f"ValueError: input has {SEQ_LEN + 2} tokens; E and F were built for seq_len={SEQ_LEN}"
    )
    assert explorer.picture.value == before


MOVES = {
    ProjectionExplorer: {"head": (4, 2), "kind": MEAN, "proj_dim": 4},
    ProjectionRace: {"head": (1, 5), "dims_range": (4, 32), "seeds": 3},
    LengthExplorer: {"n": 13, "token": 5},
}


@pytest.mark.parametrize("widget", MOVES)
def test_every_control_changes_its_own_picture_and_numbers_only(widget):
    explorer, twin = widget(), widget()
    untouched = state(twin)
    assert len(MOVES[widget]) == len(explorer.children[0].children)
    for name, value in MOVES[widget].items():
        before = state(explorer)
        getattr(explorer, name).value = value
        picture, words = state(explorer)
        assert picture != before[0], name
        assert words != before[1] or name == "seeds", name  # medians of few seeds may print alike
    assert state(twin) == untouched


@pytest.mark.parametrize("widget", MOVES)
def test_report_of_milliseconds_a_move(widget, record_property):
    explorer = widget()
    control = {ProjectionExplorer: "proj_dim", ProjectionRace: "seeds", LengthExplorer: "token"}[widget]
    values = (2, 8, 16, 4, 8, 2, 16, 4)
    report_moves(record_property, widget.__name__, explorer, getattr(explorer, control), values)
