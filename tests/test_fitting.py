"""fitting.py: where an answer is known it is reached, and heads do not disturb each other."""

import pytest
import torch
from refusals import refusing
from torch.testing import assert_close

from linformer_from_scratch import fitting
from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.fitting import fit_projections, linformer_output, relative_errors, starting_pair
from linformer_from_scratch.linformer import linformer_attention

HEADS, TEXTS, N, D, SLOTS = 3, 11, 14, 5, 7  # windows of two tokens
SHUFFLED = [(5 * i) % N for i in range(N)]


def texts(*sizes, seed=0):
    """q, k, v."""
    return torch.randn(3, *sizes, N, D, generator=torch.Generator().manual_seed(seed))


def error(qkv, E, F):
    return relative_errors(linformer_output(*qkv, E, F), scaled_dot_product_attention(*qkv))


def twins(seed):
    """Keys and values that come in pairs of neighbours, so that windows of two average equal ones."""
    q, k, v = texts(HEADS, TEXTS, seed=seed)
    return q, *(x[..., ::2, :].repeat_interleave(2, dim=-2) for x in (k, v))


def test_windows_answer_exactly_where_they_average_equal_tokens():
    E, F = starting_pair(twins(0)[1], SLOTS)
    assert error(twins(0), E, F).max() < 1e-5  # each pair of keys counts twice, in every row alike


@pytest.mark.slow
def test_a_fit_from_random_numbers_finds_what_windows_know():
    before = error(twins(1), *fit_projections(*twins(0), SLOTS, "random", updates=0))
    after = error(twins(1), *fit_projections(*twins(0), SLOTS, "random", updates=1500, rate=0.03))
    assert (before > 0.9).all()
    assert (after < 0.05).all()


def test_windows_are_left_for_what_they_average_badly():
    far = [x.roll(3, dims=-2)[..., torch.tensor(SHUFFLED), :] for x in twins(0)]
    unseen = [x.roll(3, dims=-2)[..., torch.tensor(SHUFFLED), :] for x in twins(1)]
    before, after = (error(unseen, *fit_projections(*far, SLOTS, updates=u, rate=0.03)) for u in (0, 300))
    assert (before > 0.3).all()
    assert (after < before / 3).all()


def test_as_many_slots_as_tokens_keep_full_attention_on_unseen_texts():
    E, F = fit_projections(*texts(2, 64), N, updates=0)
    assert_close(E, torch.eye(N).expand(2, N, N))  # windows of one token
    assert_close(error(texts(2, 64, seed=1), E, F), torch.zeros(2))
    fitted = fit_projections(*texts(2, 64), N, updates=300)
    assert (error(texts(2, 64, seed=1), *fitted) < 0.1).all()


def test_no_update_keeps_the_start():
    q, k, v = texts(HEADS, TEXTS)
    for start in fitting.STARTS:
        begun = starting_pair(k, SLOTS, start, torch.Generator().manual_seed(5))
        assert_close(fit_projections(q, k, v, SLOTS, start, updates=0, seed=5), begun)


def test_a_random_start_is_drawn_with_variance_one_over_n():
    k = torch.zeros(40, TEXTS, 50, D)
    E, F = starting_pair(k, 20, "random", torch.Generator().manual_seed(0))
    for one in (E, F):
        assert one.var().item() == pytest.approx(1 / 50, rel=0.03)  # 40,000 numbers
    assert not torch.equal(E, F)


def test_a_head_is_fitted_alone_as_among_others_whatever_its_size():
    q, k, v = texts(HEADS, TEXTS)
    v[1] *= 100
    together = fit_projections(q, k, v, SLOTS, updates=20)
    alone = fit_projections(q[1], k[1], v[1] / 100, SLOTS, updates=20)
    for one, other in zip(together, alone, strict=True):
        assert_close(one[1], other, atol=1e-4, rtol=0)


def test_a_step_is_the_rate_over_the_root_of_n():
    q, k, v = texts(HEADS, TEXTS)
    E, F = fit_projections(q, k, v, SLOTS, updates=1, rate=0.02)
    windows, _ = starting_pair(k, SLOTS)
    for one in (E, F):  # Adam's first step has the size of the rate
        assert (one - windows).abs().median().item() == pytest.approx(0.02 / N**0.5, rel=1e-3)


def test_seeds_differ_and_repeat():
    first, again, other = (fit_projections(*texts(HEADS, TEXTS), SLOTS, updates=3, seed=s) for s in (1, 1, 2))
    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0], other[0])


def test_shapes_with_and_without_heads_and_precision():
    for heads in ((), (2,), (2, 3)):
        q, k, v = texts(*heads, TEXTS).double()
        E, F = fit_projections(q, k, v, SLOTS, updates=2)
        assert E.shape == F.shape == (*heads, SLOTS, N)
        assert (E.dtype, E.requires_grad) == (torch.float64, False)
        assert linformer_output(q, k, v, E, F).shape == q.shape


def test_the_output_is_linformers_text_by_text():
    q, k, v = texts(HEADS, TEXTS)
    E, F = torch.randn(2, HEADS, SLOTS, N, generator=torch.Generator().manual_seed(1))
    found = linformer_output(q, k, v, E, F)
    for h, t in ((0, 0), (2, 10)):
        assert_close(found[h, t], linformer_attention(q[h, t], k[h, t], v[h, t], E[h], F[h]))


def test_relative_errors_by_hand():
    exact = torch.tensor([[[3.0, 0.0]], [[0.0, 4.0]]])  # a head, two texts of one token: 25 in all
    assert relative_errors(torch.zeros(2, 1, 2), exact).item() == 1
    assert relative_errors(torch.tensor([3.0, 0.0]), exact).item() == pytest.approx(1.0)  # 9 + 16 of 25
    assert relative_errors(exact + torch.tensor([0.0, 1.0]), exact).item() == pytest.approx((2 / 25) ** 0.5)


test_wrong_arguments_get_one_sentence = refusing(
    ({"start": "zeros"}, "start is 'zeros', expected one of windows, random"),
    ({"updates": -1}, "updates is -1, expected an integer of at least 0"),
    ({"rate": -0.5}, "rate is -0.5, expected at least 0"),
    by=lambda change: fit_projections(*texts(HEADS, TEXTS), SLOTS, **change),
)
