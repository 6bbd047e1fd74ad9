"""Widgets 6 and 8 in Python: their numbers are those of the package's own functions."""

import pytest
import torch
from torch.testing import assert_close

from linformer_from_scratch.attention import causal_mask, scaled_dot_product_attention
from linformer_from_scratch.course.widgets import LeakExplorer, ProjectionExplorer, StripExplorer
from linformer_from_scratch.course.widgets.leak_explorer import HEAD, SLOTS, WORDS
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
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.low_rank import best_rank
from linformer_from_scratch.pretrained import stored_heads, stored_tokens


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


@pytest.mark.parametrize("token", [1, 8, WORDS])
def test_an_edit_moves_the_past_through_slots_and_not_in_exact_attention(token):
    explorer, head = LeakExplorer(token=token), head_of(HEAD)
    exact, through = explorer.moved.values()
    assert (exact[: token - 1] == 0).all() and exact[token - 1] > 0.01
    assert (through > 1e-4).all()
    said = "Before it 0 of the {0} answers move in exact attention, and {0} of the {0}".format(token - 1)
    assert said in explorer.words
    line, (E, F) = slice(1, WORDS + 1), head.learned[SLOTS]
    answers = []
    for source in (token, token + WORDS):  # what the edited word is read from
        k, v = head.k.clone(), head.v.clone()
        k[token], v[token] = head.k[source], head.v[source]
        answers.append(scaled_dot_product_attention(head.q[line], k[line], v[line], causal_mask(WORDS)))
        slots = E[:, line] @ k[line], F[:, line] @ v[line]
        answers.append(scaled_dot_product_attention(head.q[line][-1:], *slots))  # the last sees all slots
    moved = (answers[2] - answers[0]).norm(dim=-1) / answers[0].norm(dim=-1)
    assert_close(exact.float(), moved, atol=1e-3, rtol=0)
    assert through[-1].item() == pytest.approx(off_by(answers[3], answers[1]), abs=1e-3)
