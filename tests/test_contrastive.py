"""contrastive.py: batches of pages, the loss over all queries, and the places at which pages are found."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from linformer_from_scratch.pretrained import contrastive
from linformer_from_scratch.pretrained.adapting import adapt
from linformer_from_scratch.pretrained.contrastive import ContrastiveLoss, PageBatches, cosines_of, ranks_of
from linformer_from_scratch.training import Config


@pytest.fixture
def by_length(monkeypatch):
    """Pages whose first token, 0 to 8, is what both of their queries ask for."""
    monkeypatch.setattr(contrastive, "TOKENS", 12)
    vectors = functional.normalize(torch.randn(9, 4, generator=torch.Generator().manual_seed(0)), dim=-1)
    ids = torch.arange(9)[:, None]
    return {n: contrastive.Searched(ids.expand(-1, n), torch.stack([vectors, vectors])) for n in (3, 6)}


class Table(nn.Module):
    """The vector of a page is looked up by its first token, and mapped linearly."""

    def __init__(self, vectors):
        super().__init__()
        self.vectors, self.linear = vectors, nn.Linear(4, 4)
        with torch.no_grad():
            self.linear.weight.copy_(torch.eye(4))
            self.linear.bias.zero_()

    def embed(self, ids):
        return functional.normalize(self.linear(self.vectors[ids[:, 0]]), dim=-1)


def test_a_batch_has_pages_of_one_length_and_about_as_many_tokens(by_length):
    batches = PageBatches(by_length, seed=0)
    seen = set()
    for step in range(40):
        ids, places = batches(step)
        n = ids.size(1)
        seen.add(n)
        assert len(ids) == 12 // n and len(places.unique()) == len(ids)
        assert torch.equal(ids, by_length[n].ids[places])
    assert seen == {3, 6}
    assert all(torch.equal(a, b) for a, b in zip(batches(5), PageBatches(by_length, 0)(5), strict=True))
    assert any(not torch.equal(batches(i)[1], PageBatches(by_length, 1)(i)[1]) for i in range(5))


def test_the_loss_is_the_cross_entropy_among_the_queries_of_all_pages(by_length):
    vectors = by_length[3].queries[0]
    ids, places = by_length[3].ids[[2, 7]], torch.tensor([2, 7])
    by_hand = []
    for place in (2, 7):
        scores = (vectors @ vectors[place] / 0.05).tolist()
        by_hand.append(math.log(sum(map(math.exp, scores))) - scores[place])
    found = ContrastiveLoss(by_length)(Table(vectors), ids, places).item()
    assert found == pytest.approx(sum(by_hand) / 2, rel=1e-4)
    other = ContrastiveLoss(by_length)(Table(vectors), ids, torch.tensor([3, 7])).item()
    assert other > sum(by_hand) / 2 + 1


def test_of_a_page_with_several_vectors_the_nearest_counts():
    queries = functional.normalize(torch.randn(2, 5, 4), dim=-1)
    parts = functional.normalize(torch.randn(3, 6, 4), dim=-1)
    found = cosines_of(parts, queries)
    assert found.shape == (2, 3, 5)
    for kind, page, query in ((0, 0, 0), (1, 2, 4)):
        by_hand = max(float(part @ queries[kind, query]) for part in parts[page])
        assert found[kind, page, query].item() == pytest.approx(by_hand, abs=1e-6)
    torch.testing.assert_close(cosines_of(parts[:, 0], queries), parts[:, 0] @ queries.mT)


def test_a_fit_brings_pages_to_their_queries_and_leaves_the_callers_random_state(by_length):
    vectors = by_length[3].queries[0]
    model, state = Table(vectors.roll(1, dims=0)), torch.get_rng_state()
    loss, batches = ContrastiveLoss(by_length), PageBatches(by_length, seed=0)
    losses = adapt(model, loss, batches, 2, Config(60, 0.05, warmup=1, weight_decay=0.0))
    assert sum(losses[-10:]) < 0.8 * sum(losses[:10])
    assert torch.equal(torch.get_rng_state(), state)


def test_ranks_count_who_scores_higher():
    scores = torch.tensor([[0.1, 0.5, 0.3], [0.9, 0.2, 0.2]])
    assert ranks_of(scores, [2, 0]).tolist() == [2, 1]
    assert ranks_of(scores, torch.tensor([0, 1])).tolist() == [3, 2.5]


def test_pages_that_score_alike_share_the_mean_of_their_places():
    scores = torch.tensor([[0.0, 0.0, 0.0, 0.0], [2.0, 1.0, 1.0, 0.0]])
    assert ranks_of(scores, [3, 1]).tolist() == [2.5, 2.5]  # whoever finds nothing is not first
    scores[1, 3] = torch.nan
    with pytest.raises(ValueError, match="1 of 8 scores are NaN, expected numbers"):
        ranks_of(scores, [3, 1])
