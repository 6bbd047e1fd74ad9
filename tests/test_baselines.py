"""baselines.py: counts by hand, and a slow loop over every guessed token."""

import math

import pytest
import torch
from torch.testing import assert_close

from linformer_from_scratch.data import IGNORE, MASK, PAD, mask_tokens
from linformer_from_scratch.data.baselines import bag_of_words, bag_scores, baseline_losses, bigram, unigram

VOCAB, BATCH, SEQ_LEN = 7, 5, 11
TEXT = torch.tensor([3, 4, 3, 5, 3, 4])


def random_ids(*shape, low=3):
    return torch.randint(low, VOCAB, shape, generator=torch.Generator().manual_seed(1))


def test_unigram_by_hand():
    assert_close(unigram(TEXT, VOCAB).exp(), torch.tensor([1, 1, 1, 4, 3, 2, 1]) / 13)


def test_bigram_by_hand():
    """After 3: 4 twice and 5 once, two kinds, so (count + 2 unigram) / (3 + 2)."""
    found = bigram(TEXT, VOCAB).exp()
    assert_close(found[3], torch.tensor([2, 2, 2, 8, 26 + 6, 13 + 4, 2]) / 65)
    assert_close(found[4], torch.tensor([1, 1, 1, 13 + 4, 3, 2, 1]) / 26)  # 3 once: one kind
    assert_close(found[5], found[4])
    assert_close(found[6], torch.tensor([1, 1, 1, 4, 3, 2, 1]) / 13)  # never seen


@pytest.mark.parametrize("text", [TEXT, random_ids(211)])
def test_every_row_sums_to_one_and_nothing_is_impossible(text):
    for logs in (unigram(text, VOCAB)[None], bigram(text, VOCAB)):
        assert_close(logs.exp().sum(-1), torch.ones(len(logs)))
        assert logs.isfinite().all()


def test_losses_equal_a_slow_loop():
    text, generator = random_ids(503), torch.Generator().manual_seed(2)
    batches = [mask_tokens(random_ids(BATCH, SEQ_LEN, low=2), VOCAB, generator) for _ in range(3)]
    batches.append((torch.full((2, SEQ_LEN), 4), torch.full((2, SEQ_LEN), 5)))  # edges are guessed too
    p, after = unigram(text, VOCAB).exp().tolist(), bigram(text, VOCAB).exp().tolist()
    losses = {"unigram": [], "bigram": [], "both neighbours": [], "neighbours and itself": []}
    for inputs, targets in batches:
        for row, answers in zip(inputs.tolist(), targets.tolist(), strict=True):
            for i in range(1, SEQ_LEN - 1):
                if answers[i] != IGNORE:
                    both = [after[row[i - 1]][t] * after[t][row[i + 1]] for t in range(VOCAB)]
                    losses["unigram"].append(-math.log(p[answers[i]]))
                    losses["bigram"].append(-math.log(after[row[i - 1]][answers[i]]))
                    losses["both neighbours"].append(-math.log(both[answers[i]] / sum(both)))
                    # of ten chosen tokens eight are masked, one is drawn from four real ones, one stays
                    random_or_mask = {MASK: 0.8, **dict.fromkeys(range(3, VOCAB), 0.1 / 4)}
                    kept = [random_or_mask.get(row[i], 0) + 0.1 * (row[i] == t) for t in range(VOCAB)]
                    seen = [x * y for x, y in zip(both, kept, strict=True)]
                    losses["neighbours and itself"].append(-math.log(seen[answers[i]] / sum(seen)))
    expected = {name: sum(found) / len(found) for name, found in losses.items()}
    assert baseline_losses(text, batches, VOCAB) == pytest.approx(expected, abs=1e-5)


def test_losses_leave_the_targets_as_they_were():
    batch = random_ids(BATCH, SEQ_LEN), random_ids(BATCH, SEQ_LEN)
    before = batch[1].clone()
    baseline_losses(TEXT, [batch], VOCAB)
    assert torch.equal(batch[1], before)


def test_a_token_beyond_the_vocabulary_is_refused():
    for some in (torch.tensor([3, 7]), torch.tensor([3, 7, 1])):
        for count in (unigram, bigram):
            with pytest.raises(ValueError, match="got token 7, expected 0 … 6"):
                count(some, VOCAB)


@pytest.mark.parametrize("batches", [[], [(torch.full((2, 3), 4), torch.tensor([[3, IGNORE, 3]] * 2))]])
def test_batches_that_ask_for_nothing_have_no_loss(batches):
    with pytest.raises(ValueError, match="0 targets have two neighbours, expected at least 1"):
        baseline_losses(TEXT, batches, VOCAB)


IDS = torch.tensor([[3, 4, 3, PAD], [5, PAD, PAD, PAD], [4, 4, PAD, PAD]])
LABELS = torch.tensor([1, 0, 1])


def test_bag_of_words_by_hand():
    prior, words = bag_of_words(IDS, LABELS, 6, 2)
    assert_close(prior.exp(), torch.tensor([2, 3]) / 5)
    by_hand = torch.tensor([1, 1, 1, 1, 1, 2]) / 7, torch.tensor([1, 1, 1, 3, 4, 1]) / 11
    assert_close(words.exp(), torch.stack(by_hand))


def test_bag_scores_by_hand():
    scores = bag_scores(torch.tensor([[4, 5, 4, PAD]]), *bag_of_words(IDS, LABELS, 6, 2))
    by_hand = [[2 / 5 * (1 / 7) * (2 / 7) * (1 / 7), 3 / 5 * (4 / 11) * (1 / 11) * (4 / 11)]]
    assert_close(scores.exp(), torch.tensor(by_hand))


def test_padding_counts_nothing():
    more = torch.cat([IDS, torch.full((3, 5), PAD)], dim=1)
    assert_close(bag_of_words(more, LABELS, 6, 2), bag_of_words(IDS, LABELS, 6, 2))
    bag = bag_of_words(IDS, LABELS, 6, 2)
    assert_close(bag_scores(more, *bag), bag_scores(IDS, *bag))


def test_a_class_without_texts_has_a_flat_bag():
    _, words = bag_of_words(IDS, LABELS, 6, 3)
    assert_close(words[2].exp(), torch.full((6,), 1 / 6))


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="3 texts and 2 labels; need equal counts"):
        bag_of_words(IDS, LABELS[:2], 6, 2)
    with pytest.raises(ValueError, match="got token 1, expected 0 … 0"):
        bag_of_words(IDS, LABELS, 6, 1)
