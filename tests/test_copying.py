"""training/copying.py: which masked tokens could be copied, and the loss on them."""

import pytest
import torch

from linformer_from_scratch.data import IGNORE, MASK, MaskedBatches
from linformer_from_scratch.training.copying import copies, copying_losses

X = IGNORE
CASES = {
    "to the left": ([5, 8, 9, MASK, 7], [X, X, X, 5, X], [[0]]),
    "to the right": ([MASK, 8, 9, 5], [5, X, X, X], [[3]]),
    "twice": ([5, 8, MASK, 8, 5], [X, X, 5, X, X], [[0, 4]]),
    "beside it, on the left": ([5, MASK, 9, 7], [X, 5, X, X], [[]]),
    "beside it, on the right": ([9, MASK, 5, 7], [X, 5, X, X], [[]]),
    "beside it, and elsewhere": ([9, MASK, 5, 7, 5], [X, 5, X, X, X], [[4]]),
    "nowhere": ([9, MASK, 8, 7], [X, 5, X, X], [[]]),
    "only itself, left as it was": ([9, 5, 8, 7], [X, 5, X, X], [[]]),
    "only where it is hidden, too": ([9, MASK, 8, MASK], [X, 5, X, 5], [[], []]),
    "by accident, where another was replaced": ([9, MASK, 8, 5], [X, 5, X, 6], [[3], []]),
}


@pytest.mark.parametrize("case", CASES)
def test_copies_are_where_the_answer_is_to_be_seen(case):
    inputs, targets, expected = CASES[case]
    found = copies(torch.tensor([inputs]), torch.tensor([targets]))
    assert [row.nonzero().flatten().tolist() for row in found] == expected


def test_texts_of_a_batch_do_not_see_each_other():
    inputs, targets = torch.tensor([[MASK, 8, 9], [7, 8, 5]]), torch.tensor([[5, X, X], [X, X, 9]])
    assert not copies(inputs, targets).any()


def test_the_two_losses_and_their_shares_make_the_whole_loss():
    ids = torch.randint(3, 20, (500,), generator=torch.Generator().manual_seed(0))
    batches = [MaskedBatches(ids, 16, 4, 20)(i) for i in range(3)]
    scores = torch.randn(20, 20, generator=torch.Generator().manual_seed(1))

    def model(inputs, where):
        return scores[inputs[where]]  # a bigram of sorts

    found = copying_losses(model, batches)
    sums, counts = {"repeated": 0.0, "new": 0.0}, {"repeated": 0, "new": 0}
    for inputs, targets in batches:
        for text, answers in zip(inputs.tolist(), targets.tolist(), strict=True):
            for i, answer in enumerate(answers):
                if answer != IGNORE:
                    seen = text[: max(0, i - 1)] + text[i + 2 :]
                    kind = "repeated" if answer in seen else "new"
                    sums[kind] -= scores[text[i]].log_softmax(0)[answer].item()
                    counts[kind] += 1
    assert min(counts.values()) > 3
    assert found == pytest.approx({kind: sums[kind] / counts[kind] for kind in sums}, rel=1e-5)
