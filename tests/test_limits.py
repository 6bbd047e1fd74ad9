"""limits: copying, sharp attention, generating text, shorter texts, and the recorded runs."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.testing import assert_close

from linformer_from_scratch import limits
from linformer_from_scratch.common.rows import Results
from linformer_from_scratch.course import recorded
from linformer_from_scratch.course.recorded.curves import accuracies
from linformer_from_scratch.course.recorded.writers import GIVEN, held_out, writer
from linformer_from_scratch.encoder import Encoder, MaskedLanguageModel
from linformer_from_scratch.limits import copy_error, leak, next_token_loss, write_on, written_loss
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.low_rank import best_rank, frobenius_error, singular_values
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained import stored_heads
from linformer_from_scratch.projections import LearnedProjection, MeanPooling, empty_slots

VOCABULARY = 7


class Says(nn.Module):
    """Scores that are the tokens themselves, shifted: token t says t + shift."""

    def __init__(self, shift):
        super().__init__()
        self.shift = shift

    def forward(self, ids):
        return 3.0 * functional.one_hot((ids + self.shift) % VOCABULARY, VOCABULARY)


def test_a_model_is_evaluated_in_evaluation_mode_and_is_then_in_its_own():
    model, seen = Says(1), []
    model.register_forward_hook(lambda part, *_: seen.append(part.training))
    written_loss(model, torch.ones(2, 5, dtype=torch.long), [1, 4])
    assert model.training and seen == [False, False]


def test_the_loss_is_that_of_the_next_token():
    ids = (torch.arange(5) + torch.tensor([[0], [3]])) % VOCABULARY
    sure = -torch.tensor([0.0] * (VOCABULARY - 1) + [3.0]).log_softmax(dim=0)[-1]
    assert_close(next_token_loss(Says(1), ids), sure)
    assert_close(next_token_loss(Says(2), ids), sure + 3)
    assert written_loss(Says(1), ids, [1, 4]) == pytest.approx(sure.item())


def test_what_is_written_on_is_each_time_the_likeliest_next_token():
    assert write_on(Says(1), torch.tensor([3, 5]), 3).tolist() == [3, 5, 6, 0, 1]


def test_the_linformer_that_comes_along_knows_the_text_before_it_and_writes_worse_than_a_guess():
    unseen, blind = held_out(), math.log(256)
    with torch.no_grad():
        known = {name: next_token_loss(writer(name), unseen).item() for name in ("full, causal", "Linformer")}
    assert known["Linformer"] < 0.05 and written_loss(writer("Linformer"), unseen, GIVEN) > 1.5 * blind
    written = written_loss(writer("full, causal"), unseen, GIVEN)
    assert known["full, causal"] == pytest.approx(written, abs=0.1)


def test_both_losses_are_the_same_where_no_output_depends_on_later_tokens():
    ids = torch.randint(VOCABULARY, (3, 12))
    layer = MultiHeadAttention(8, 2, causal=True)
    causal = MaskedLanguageModel(Encoder(VOCABULARY, 11, 8, [layer])).eval()
    every = range(1, 12)
    assert written_loss(causal, ids, every) == pytest.approx(next_token_loss(causal, ids).item(), rel=1e-5)


@pytest.mark.parametrize("rank", [0, 5, 11])
def test_the_error_of_a_copy_is_that_of_its_best_map(rank):
    copying = torch.eye(11)[torch.randperm(11)].double()
    assert (best_rank(copying, rank) - copying).norm() / copying.norm() == pytest.approx(copy_error(11, rank))
    error = frobenius_error(singular_values(copying), rank) / copying.norm()
    assert error.item() == pytest.approx(copy_error(11, rank))


def test_ranks_that_no_map_has_are_refused():
    with pytest.raises(ValueError, match="rank is 12, expected an integer in 0 … 11"):
        copy_error(11, 12)


def test_errors_by_temperature_are_those_of_the_definitions():
    q, k, v, _ = stored_heads()[1, 5]
    errors = limits.errors_by_temperature(1, 5, 16, [1, 0.25])
    weights = (q @ k.mT / 0.25 / 32**0.5).softmax(dim=-1)
    pooled = MeanPooling(128, 16)
    slots = (q @ pooled(k).mT / 0.25 / 32**0.5).softmax(dim=-1) @ pooled(v)
    for name, output in (("best map of that rank", best_rank(weights, 16) @ v), ("mean pooling", slots)):
        error = (output - weights @ v).norm() / (weights @ v).norm()
        assert errors[name][1] == pytest.approx(error.item(), rel=1e-4)
        assert errors[name][0] < errors[name][1]  # sharper, and so of higher rank
    assert len(errors) == 2


def test_a_leak_is_the_largest_change_before_the_edit():
    before, after = torch.zeros(2, 5, 3)
    after[1, 2], after[3], after[2] = -0.5, 9.0, 7.0
    assert leak(before, after, 2) == 0.5 and leak(before, after, 0) == 0.0 and leak(before, after, 4) == 9.0
    layer, x = MultiHeadAttention(8, 2, causal=True), torch.randn(1, 6, 8)
    edited = x.clone()
    edited[0, 4] += 1
    assert leak(layer(x)[0], layer(edited)[0], 4) == 0.0
    linformer = LinformerAttention(8, 2, LearnedProjection(6, 3), LearnedProjection(6, 3))
    assert leak(linformer(x)[0], linformer(edited)[0], 4) > 1e-3


def test_empty_slots_are_the_windows_behind_the_text():
    E = MeanPooling(12, 4)(torch.eye(12))
    assert [empty_slots(E, n) for n in (1, 3, 4, 10, 12)] == [3, 3, 2, 0, 0]
    assert empty_slots(torch.tensor([[1.0, -1.0], [0.0, 0.0]]), 2) == 1


def record(path, rows):
    fields = ("attention", "n", "seed", "learning_rate", "accuracy")
    found = Results(path, "a command")
    for row in rows:
        size = {"size": row[5] if len(row) > 5 else 16}
        found.add(dict(zip(fields, row, strict=False)) | size)


def test_accuracies_are_by_length_and_seed_of_whoever_was_asked_to_recall(tmp_path, monkeypatch):
    monkeypatch.setattr(recorded, "RESULTS", tmp_path)
    recalled = [("full", 64, 1, 0.5, 0.125), ("full", 64, 0, 0.5, 1.0), ("window", 64, 0, 0.5, 0.25)]
    recalled += [("full", 128, 0, 0.5, 0.5)]
    copied = [("window", 128, 0, 0.5, 0.75), ("stride", 64, 0, 0.5, 1.0), ("full", 128, 0, 0.5, 0.625)]
    copied += [("full", 64, 2, 0.5, 0.5), ("full", 64, 2, 0.25, 0.0), ("full", 64, 3, 0.5, 0.0, 31)]
    record(tmp_path / "12_recall.json", recalled)
    record(tmp_path / "09_copy.json", copied)
    assert accuracies("recall") == {"full": {64: [1.0, 0.125], 128: [0.5]}, "window": {64: [0.25]}}
    assert accuracies("copy") == {"full": {64: [0.5], 128: [0.625]}, "window": {128: [0.75]}}
    assert [*accuracies("copy")["full"]] == [64, 128]


@pytest.mark.parametrize(("task", "lengths"), [("recall", [64, 128, 256, 512]), ("copy", [64, 256])])
def test_recorded_accuracies_are_of_three_seeds_at_the_lengths_that_the_chapter_shows(task, lengths):
    found = accuracies(task)
    assert [*found] == ["full", "Linformer, learned", "Linformer, mean pooling"]
    assert all([*by_n] == lengths for by_n in found.values())
    assert all(len(shares) == 3 for by_n in found.values() for shares in by_n.values())
