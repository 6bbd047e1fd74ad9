"""Widgets 6, 7 and 8 in Python: their numbers are those of the package's own functions."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.cost import fit_exponent
from linformer_from_scratch.course.widgets import (
    LengthExplorer,
    ProjectionExplorer,
    ProjectionRace,
    StripExplorer,
)
from linformer_from_scratch.course.widgets.length_explorer import CAUSAL, LINFORMER, SEQ_LEN, numbers
from linformer_from_scratch.course.widgets.live import CannotDraw
from linformer_from_scratch.course.widgets.projection_explorer import (
    BEST,
    GAUSSIAN,
    HEADS,
    KINDS,
    LEARNED,
    MEAN,
    STRIDED,
    projections,
)
from linformer_from_scratch.course.widgets.projection_race import NAMES, RANDOM, THEOREM
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.low_rank import best_rank
from linformer_from_scratch.pretrained import STORED_DIMS, stored_heads, stored_tokens


def head_of(name):
    layer, number = map(int, name.split("."))
    return stored_heads("story")[layer, number]


def off_by(output, exact):
    return ((output - exact).norm() / exact.norm()).item()


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_effective_map_gives_the_output_of_linformer(name, kind):
    head = head_of(name)
    exact = scaled_dot_product_attention(head.q, head.k, head.v)
    for k in (2, 16, 64):
        explorer = ProjectionExplorer(head=name, kind=kind, proj_dim=k)
        if kind == BEST:
            expected = best_rank(explorer.P, k).float() @ head.v
        else:
            expected = linformer_attention(head.q, head.k, head.v, explorer.E.float(), explorer.F.float())
        assert_close(explorer.effective.float() @ head.v, expected, atol=2e-3, rtol=0)  # factors in float16
        assert explorer.error == pytest.approx(off_by(expected, exact), abs=1e-3)
        assert explorer.P_bar.shape == (len(head.q), k)
        assert f"off by {explorer.error:.0%}" in explorer.words


def test_the_kinds_are_what_they_are_called():
    learned = projections(LEARNED, "4.2", 8)
    assert_close(learned[1].float(), head_of("4.2").learned[8][1])
    pooled, _ = projections(MEAN, "4.2", 8)
    assert_close(pooled[2], ((torch.arange(128) // 16) == 2).double() / 16)
    strided, _ = projections(STRIDED, "4.2", 8)
    assert strided.nonzero().tolist() == [[slot, 16 * slot] for slot in range(8)]
    E, F = projections(GAUSSIAN, "4.2", 64)
    assert E.std().item() == pytest.approx(128**-0.5, rel=0.05)
    assert not torch.equal(E, F)


def test_learned_projections_beat_random_and_pooled_ones_on_the_head_they_open_with():
    errors = {kind: ProjectionExplorer(kind=kind).error for kind in KINDS}
    assert errors[BEST] < errors[LEARNED] < errors[MEAN] < 1 < errors[GAUSSIAN]


def test_the_words_name_what_the_query_attends_to_exactly_and_through_the_slots():
    explorer, tokens = ProjectionExplorer(kind=STRIDED, proj_dim=4, query=37), stored_tokens("story")
    exact, got = explorer.P[36], explorer.effective[36]
    assert got.nonzero().flatten().tolist() == [0, 32, 64, 96]
    assert f"“bag” attends most to “{tokens[int(exact.argmax())]}”, {exact.max():.2f}" in explorer.words
    assert f"it gets most from “{tokens[int(got.argmax())]}”, {got.max():.2f}." in explorer.words
    assert "rank" not in explorer.words.partition("“bag”")[2]
    explorer.matrices = True
    assert "its rank is 4." in explorer.words


def test_the_square_grows_with_the_square_of_the_text_and_the_strip_with_the_text():
    once, twice = StripExplorer(n=4096), StripExplorer(n=8192)
    assert once.memory == {"square": 4 * 12 * 4096**2, "strip": 4 * 12 * 4096 * 256}
    for kind, factor in (("square", 4), ("strip", 2)):
        assert twice.memory[kind] == factor * once.memory[kind]
        assert twice.work[kind] == factor * once.work[kind]
    even = StripExplorer(n=1024, proj_dim=512)  # EK and FV cost as much as the strip: even at n = 2k
    assert even.work["square"] == even.work["strip"]


def test_the_race_shows_the_errors_of_every_kind():
    race, head = ProjectionRace(), head_of(next(iter(HEADS)))
    exact = scaled_dot_product_attention(head.q, head.k, head.v)
    assert race.dims == [*STORED_DIMS]
    for i, k in enumerate(race.dims):
        learned = linformer_attention(head.q, head.k, head.v, *head.learned[k])
        assert race.errors[LEARNED][0, i] == pytest.approx(off_by(learned, exact), abs=1e-4)
    assert race.errors[GAUSSIAN].shape == race.errors[THEOREM].shape == (race.seeds, len(race.dims))
    assert race.errors[MEAN].shape == (1, len(race.dims))
    assert list(race.errors) == list(race.medians) == list(NAMES)


@pytest.mark.parametrize("seeds", [1, 4, 11])
def test_the_band_holds_eight_of_ten_draws_and_the_median_is_torchs(seeds):
    race = ProjectionRace(seeds=seeds)
    for kind in RANDOM:
        drawn = race.errors[kind]
        assert len(drawn) == seeds
        assert_close(race.medians[kind], drawn.sort(dim=0).values[(seeds - 1) // 2])
        low, high = np.quantile(drawn.numpy(), [0.1, 0.9], axis=0)
        np.testing.assert_allclose(race.low[kind], low, rtol=1e-6)
        np.testing.assert_allclose(race.high[kind], high, rtol=1e-6)


def test_the_theorem_falls_about_like_one_over_root_k():
    for name in HEADS:
        race = ProjectionRace(head=name, seeds=20)
        assert -0.65 < race.slope < -0.3
        assert race.slope == pytest.approx(fit_exponent(race.dims, race.medians[THEOREM].tolist()))
        assert f"power −{abs(race.slope):.2f}" in race.words


def test_an_edit_moves_the_past_in_linformer_and_not_in_causal_attention():
    for token in (1, 9, SEQ_LEN):
        explorer = LengthExplorer(n=SEQ_LEN, token=token)
        assert (explorer.moved[CAUSAL][: token - 1] == 0).all() and explorer.moved[CAUSAL][token - 1] > 0
        assert (explorer.moved[LINFORMER] > 1e-6).all()
        expected = f"Of {token - 1} earlier outputs, 0 move in causal attention, {token - 1} in"
        assert explorer.words.startswith(expected)


def test_the_spread_is_that_of_the_scores_with_the_first_columns_of_E():
    drawn = numbers()
    (q, k, _), n = drawn.qkv, 5
    slots = torch.einsum("sn,nd->sd", drawn.E[:, :n], k[:n])
    scores = torch.einsum("nd,sd->ns", q[:n], slots) / 32**0.5
    assert LengthExplorer(n=n).spread == pytest.approx(scores.std(correction=0).item())


def test_shorter_inputs_score_less_and_longer_ones_are_refused():
    spreads = []
    for n in (SEQ_LEN, 12, 3):
        explorer = LengthExplorer(n=n)
        spreads.append(explorer.spread)
        assert explorer.spread == explorer.spreads[n - 1]
        assert all(len(moved) == n for moved in explorer.moved.values())
    assert spreads == sorted(spreads, reverse=True)
    explorer.n = SEQ_LEN + 2
    said = f"ValueError: input has {SEQ_LEN + 2} tokens; E and F were built for seq_len={SEQ_LEN}"
    assert explorer.caption() == said
    with pytest.raises(CannotDraw):
        explorer.figure()
