"""bootstrap.py: an interval of a paired difference is as wide as theory says and holds the truth as often."""

import pytest
import torch

from linformer_from_scratch.pretrained.bootstrap import Difference, paired_bootstrap


def drawn(count, seed):
    return torch.randn(2, count, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def test_the_interval_is_that_of_normal_theory_where_that_holds():
    scores, others = drawn(400, 0)
    others = scores + 0.1 * others - 0.03  # what both have in common takes no part
    found = paired_bootstrap(scores, others)
    error = (scores - others).std(correction=0).item() / 20
    assert found.mean == pytest.approx((scores - others).mean().item())
    assert found.low == pytest.approx(found.mean - 1.96 * error, abs=0.1 * error)
    assert found.high == pytest.approx(found.mean + 1.96 * error, abs=0.1 * error)


def test_runs_are_drawn_as_well_as_queries():
    scores, zeros = drawn(300, 2)[0].expand(3, -1), torch.zeros(3, 300).double()
    alone = paired_bootstrap(scores[0], zeros[0])
    assert paired_bootstrap(scores, zeros).mean == pytest.approx(alone.mean)
    width = alone.high - alone.low
    same = paired_bootstrap(scores, zeros)
    assert same.high - same.low == pytest.approx(width, rel=0.05)  # runs that agree add nothing
    apart = paired_bootstrap(scores + torch.tensor([[-1.0], [0.0], [1.0]]), zeros)
    assert apart.mean == pytest.approx(alone.mean) and apart.high - apart.low > 4 * width


def test_it_has_a_sign_repeats_itself_and_is_written_with_its_ends():
    scores, others = drawn(50, 1)
    one, other = paired_bootstrap(scores, others), paired_bootstrap(others, scores)
    assert (one.low, one.mean, one.high) == pytest.approx((-other.high, -other.mean, -other.low))
    assert one == paired_bootstrap(scores, others) != paired_bootstrap(scores, others, seed=1)
    assert f"{Difference(-0.25, 0.0, 0.5):+.2f}" == "+0.00 [-0.25, +0.50]"


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((0,), (0,)), ((2, 2, 2), (2, 2, 2))])
def test_scores_of_other_queries_are_refused(shapes):
    scores, others = map(torch.zeros, shapes)
    with pytest.raises(ValueError, match=r"^scores are \(.*\) and \(.*\), expected two of one shape"):
        paired_bootstrap(scores, others)
