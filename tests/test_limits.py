"""limits.py: what a text that is there, and one yet to be written, lose."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

from linformer_from_scratch.encoder import Encoder, MaskedLanguageModel
from linformer_from_scratch.limits import next_token_loss, written_loss
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import LearnedProjection

VOCABULARY = 7


class Says(nn.Module):
    """Scores that are the tokens themselves, shifted: token t says t + shift."""

    def __init__(self, shift):
        super().__init__()
        self.shift = shift

    def forward(self, ids):
        return 3.0 * functional.one_hot((ids + self.shift) % VOCABULARY, VOCABULARY)


def test_the_loss_is_that_of_the_next_token():
    ids = (torch.arange(5) + torch.tensor([[0], [3]])) % VOCABULARY
    sure = -torch.tensor([0.0] * (VOCABULARY - 1) + [3.0]).log_softmax(dim=0)[-1]
    assert_close(next_token_loss(Says(1), ids), sure)
    assert_close(next_token_loss(Says(2), ids), sure + 3)
    assert written_loss(Says(1), ids, [1, 4]) == pytest.approx(sure.item())


def model(attention):
    torch.manual_seed(0)
    return MaskedLanguageModel(Encoder(VOCABULARY, 11, 8, [attention])).eval()


def test_both_losses_are_one_where_no_output_depends_on_later_tokens():
    ids = torch.randint(VOCABULARY, (3, 12))
    causal = model(MultiHeadAttention(8, 2, causal=True))
    every = range(1, 12)
    assert written_loss(causal, ids, every) == pytest.approx(next_token_loss(causal, ids).item(), rel=1e-5)


@pytest.mark.parametrize(
    "attention",
    [MultiHeadAttention(8, 2), LinformerAttention(8, 2, LearnedProjection(11, 4), LearnedProjection(11, 4))],
    ids=lambda layer: type(layer).__name__,
)
def test_they_differ_where_the_future_is_mixed_in(attention):
    ids = torch.randint(VOCABULARY, (3, 12))
    seeing = model(attention)
    difference = written_loss(seeing, ids, range(1, 12)) - next_token_loss(seeing, ids).item()
    assert abs(difference) > 1e-3
