"""tasks.py: every answer is in the text, once, where the task says; and the runs recorded on them."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from lab import efficient as declared
from lab import recall
from linformer_from_scratch.course.recorded import read_rows
from linformer_from_scratch.data import IGNORE, tasks
from linformer_from_scratch.data.tasks import BLANK, FIRST_HELD_OUT, VALUES, VOCAB_SIZE, validation_batches
from linformer_from_scratch.efficient.blocks import whole_blocks
from linformer_from_scratch.encoder import sinusoids
from linformer_from_scratch.training import masked_accuracy

OF_RECALL = ["12_recall", "12_width", "12_start", "12_rate"]
every_task = pytest.mark.parametrize("task", ["needle", "copy", "recall"])


def test_the_needle_is_the_only_marked_token_and_its_value_is_asked_for_at_the_end():
    inputs, targets = tasks.needle(12, batch=500)(3)
    marked = (inputs >= VALUES) & (inputs < BLANK)
    assert (marked.sum(dim=1) == 1).all() and not marked[:, -1].any()
    assert torch.equal(targets[:, -1], inputs[marked] - VALUES)
    assert (targets[:, :-1] == IGNORE).all() and (inputs[:, -1] == BLANK).all()
    assert marked[:, :-1].any(dim=0).all()  # it may stand anywhere before the end
    assert set(targets[:, -1].tolist()) == set(range(VALUES))


def test_a_copy_asks_in_the_second_half_for_the_first():
    inputs, targets = tasks.copy(10, batch=300)(3)
    assert torch.equal(targets[:, 5:], inputs[:, :5])
    assert (targets[:, :5] == IGNORE).all() and (inputs[:, 5:] == BLANK).all()
    assert set(inputs[:, :5].flatten().tolist()) == set(range(VALUES)) and BLANK < VOCAB_SIZE


def test_recall_names_every_key_twice_and_asks_for_the_value_that_followed_it():
    inputs, targets = tasks.recall(24, batch=300)(3)
    keys, values = inputs[:, :12:2], inputs[:, 1:12:2]
    assert torch.equal(keys.sort().values, (VOCAB_SIZE + torch.arange(6)).expand(300, -1))
    again, asked = inputs[:, 12::2], targets[:, 13::2]
    assert torch.equal(again.sort().values, keys.sort().values) and not torch.equal(again, keys)
    assert (inputs[:, 13::2] == BLANK).all() and set(values.flatten().tolist()) == set(range(VALUES))
    for row in range(300):
        told = dict(zip(keys[row].tolist(), values[row].tolist(), strict=True))
        assert [told[key] for key in again[row].tolist()] == asked[row].tolist()
    assert (targets[:, :13] == IGNORE).all() and (targets[:, 12::2] == IGNORE).all()
    assert tasks.vocab_size("recall", 24) == VOCAB_SIZE + 6 == inputs.max() + 1
    assert tasks.vocab_size("copy", 24) == VOCAB_SIZE


@every_task
def test_no_two_seeds_share_a_batch(task):
    """Of any size and sign; steps beyond those of any run too."""
    seeds, steps = [0, 1, 2, -1, 2**32, 2**70], [0, 1, 5, 1_000_003, 2 * 1_000_003, 10**9, 2**32, 2**32 + 1]
    batches = [getattr(tasks, task)(24, 3, seed)(step) for seed in seeds for step in steps]
    different = {tuple(batch[0].flatten().tolist()) for batch in batches}
    assert len(different) == len(seeds) * len(steps)


@every_task
def test_a_seed_that_is_no_integer_an_empty_batch_and_one_token_are_refused(task):
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        getattr(tasks, task)(8, 4, 2.0)(0)
    with pytest.raises(ValueError, match="batch is 0, expected an integer of at least 1"):
        getattr(tasks, task)(8, 0)
    with pytest.raises(ValueError, match="n is 1, expected an integer of at least 2"):
        getattr(tasks, task)(1, 4)


@pytest.mark.parametrize(("task", "n"), [("copy", 7), ("recall", 6), ("copy", 8.0)])
def test_impossible_lengths_are_refused(task, n):
    with pytest.raises(ValueError, match=f"n is {n}, expected"):
        getattr(tasks, task)(n, 4)


def test_a_shift_of_sinusoids_is_a_rotation():
    positions = sinusoids(40, 6).double()
    shift = torch.linalg.lstsq(positions[:-3], positions[3:])
    assert torch.dist(positions[:-3] @ shift.solution, positions[3:]) < 1e-5
    assert torch.allclose(positions.square().sum(dim=1), torch.tensor(3.0).double())
    angles = torch.atan2(positions[1, 0::2], positions[1, 1::2])  # by which one token further turns a pair
    assert angles.tolist() == pytest.approx([1, 10_000 ** (-1 / 3), 10_000 ** (-2 / 3)], rel=1e-4)


def test_accuracy_counts_only_what_is_asked_over_all_batches():
    class SaysTheToken(torch.nn.Module):
        def forward(self, ids, where):
            assert not self.training
            return torch.nn.functional.one_hot(ids, 7)[where].float()

    ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
    targets = torch.tensor([[1, 0, IGNORE], [IGNORE, 5, IGNORE]])
    batches = [(ids, targets), (ids[:1], targets[:1].where(ids[:1] == 1, IGNORE))]
    model = SaysTheToken()
    assert masked_accuracy(model, batches) == pytest.approx(3 / 4)  # 1, 5 and 1 again, but not 2 for 0
    assert model.training


# The recorded runs


@pytest.mark.parametrize("name", [f"09_{task}" for task in ("needle", "copy", "once")] + OF_RECALL)
def test_recorded_curves_end_with_the_accuracy_and_stop_early_only_when_nothing_is_wrong(name):
    for row in read_rows(name):
        updates, steps = [point[0] for point in row["curve"]], declared.STEPS
        assert updates == list(range(steps // 10, updates[-1] + 1, steps // 10))
        assert row["curve"][-1][1] == row["accuracy"]
        assert updates[-1] == steps or row["accuracy"] == 1


@pytest.mark.parametrize("n", [64, 512])
@pytest.mark.parametrize("name", [declared.MEAN, *declared.OTHERS, declared.FITTING])
def test_every_relative_costs_what_its_declaration_says(name, n):
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        declared.attention_layer(name, n, declared.size_of(name, n))(torch.randn(1, n, declared.D_MODEL))
    attending = counter.get_total_flops() - 8 * n * declared.D_MODEL**2  # without Q, K, V and the output
    keys = attending / declared.NUM_HEADS / (4 * n * declared.D_HEAD)
    dearer = {declared.FITTING: 34.1, "linear": 32.5}.get(name, 32)
    assert 24 < keys <= dearer or (name == "two levels" and n == 512 and 32 < keys < 48)


def test_few_facts_stand_at_random_places_among_noise_that_nobody_asks_for():
    inputs, targets = tasks.scattered_recall(40, 3, 50)(0)
    told, asked = inputs[:, :34], inputs[:, 34:]
    row, place = (told >= VOCAB_SIZE).nonzero(as_tuple=True)
    assert (row.bincount() == 3).all() and (place % 2 == 0).all() and len(place.unique()) == 17
    assert (told[row, place].view(50, 3).sort().values == VOCAB_SIZE + torch.arange(3)).all()
    value_of = told[row, place + 1].new_zeros(50, 3)
    value_of[row, told[row, place] - VOCAB_SIZE] = told[row, place + 1]
    assert (value_of < VALUES).all()
    noise = told.clone().index_put_((row, place), torch.tensor(VALUES))
    noise = noise.index_put_((row, place + 1), torch.tensor(VALUES))
    assert (noise >= VALUES).all() and (noise < 2 * VALUES).all()
    assert (asked[:, ::2].sort().values == VOCAB_SIZE + torch.arange(3)).all()
    assert (asked[:, 1::2] == tasks.BLANK).all() and (targets[:, :34] == IGNORE).all()
    assert torch.equal(targets[:, 35::2], value_of.gather(1, asked[:, ::2] - VOCAB_SIZE))


def test_facts_that_nobody_asks_for_stand_in_place_of_the_noise():
    inputs, targets = tasks.scattered_recall(40, 3, 50, unasked=True)(0)
    keys, values, asked = inputs[:, :34:2] - VOCAB_SIZE, inputs[:, 1:34:2], inputs[:, 34::2] - VOCAB_SIZE
    assert (keys.sort().values == torch.arange(17)).all() and (values < VALUES).all()
    assert all(len(some.unique()) == 3 for some in asked) and len(asked.unique()) == 17
    value_of = torch.zeros(50, 17, dtype=torch.long).scatter(1, keys, values)
    assert torch.equal(targets[:, 35::2], value_of.gather(1, asked)) and (targets[:, :34] == IGNORE).all()


def test_with_as_many_facts_as_there_is_room_for_it_is_recall():
    for own, other in zip(tasks.scattered_recall(64, 16, 4, 7)(3), tasks.recall(64, 4, 7)(3), strict=True):
        assert torch.equal(own, other)
    with pytest.raises(ValueError, match="facts is 17, expected an integer in 1 … 16"):
        tasks.scattered_recall(64, 17, 4)
    with pytest.raises(ValueError, match="n is 63, expected an even number"):
        tasks.scattered_recall(63, 3, 4)


@pytest.mark.parametrize("n", [64, 512])
def test_learned_E_and_F_and_mean_pooling_have_the_same_slots_and_the_same_first_numbers(n):
    models = {}
    for name in (declared.LEARNED, declared.MEAN):
        torch.manual_seed(3)
        models[name] = declared.model_for("recall", name, n, declared.KEYS // 2).eval()
        models[name].after = torch.rand(1)
    inputs, _ = tasks.recall(n, 4)(0)
    learned, pooled = (model(inputs) for model in models.values())
    assert torch.allclose(learned, pooled, atol=1e-5)
    assert len({model.after.item() for model in models.values()}) == 1  # nothing was drawn for E and F


def test_slots_that_begin_at_the_values_hold_them_one_by_one():
    inputs, _ = tasks.recall(64, 1)(0)
    layer = declared.attention_layer(declared.AT_VALUES, 64, 16)
    for E in (layer.E, layer.F):
        assert torch.allclose(E(inputs[0, :, None].float())[:, 0], inputs[0, 1:32:2].float())
    assert (inputs[0, 1:32:2] < VALUES).all() and (inputs[0, :32:2] >= VOCAB_SIZE).all()


@pytest.mark.parametrize("n", [64, 512])
def test_only_the_fitting_stride_divides_the_distance_of_a_copy(n):
    for name, fits in ((declared.FITTING, True), ("strided + global", False)):
        assert ((n // 2) % whole_blocks(n, declared.size_of(name, n)) == 0) is fits


@pytest.mark.slow
def test_a_run_has_the_rate_and_the_updates_that_its_row_names(monkeypatch):
    found = []

    class Spy(declared.Trainer):
        def __init__(self, *args, **rest):
            super().__init__(*args, **rest)
            found.append(self.config)

    monkeypatch.setattr(declared, "Trainer", Spy)
    size = declared.size_of(declared.MEAN, 64)
    run = declared.solve("needle", declared.LEARNED, 64, size, 0, learning_rate=2e-3, steps=20)
    assert [updates for updates, _ in run["curve"]] == [*range(2, 21, 2)]
    assert [(config.learning_rate, config.steps) for config in found] == [(2e-3, 20)]


@pytest.mark.slow
def test_a_trained_model_is_read_through_slots_with_nothing_else_changed(monkeypatch):
    monkeypatch.setattr(declared, "STEPS", 10)
    monkeypatch.setattr(recall, "masked_accuracy", lambda model, _: models.append(model.state_dict()) or 0.5)
    models = []
    row = recall.transplanted(64, 16, seed=0)
    read = {declared.AT_VALUES: 0.5, declared.LEARNED: 0.5}
    assert row["accuracies"] == read | {declared.FULL: row["curve"][-1][1]}
    at_values, at_windows = models
    assert at_values.keys() == at_windows.keys()
    changed = [name for name in at_values if not torch.equal(at_values[name], at_windows[name])]
    assert len(changed) == 2 * declared.NUM_LAYERS
    assert all(name.endswith((".E.weight", ".F.weight")) for name in changed)


def test_facts_are_recalled_by_a_model_that_knows_shorter_texts(monkeypatch):
    begun, train = [], recall.train
    monkeypatch.setattr(recall, "GROWN", {64: (2, 10), 128: (2, 10), 1024: (1, 10)})
    monkeypatch.setattr(recall, "LONGEST", 128)
    quarter, among = recall.Facts(lambda n: n // 4, 64), recall.Facts(lambda n: 16, 128, True, recall.FULL, 2)
    monkeypatch.setattr(recall, "FACTS", {"16": among, "n / 4": quarter})

    def trained(model, batches, *settings):
        begun.append((model.encoder.tokens.weight.detach().clone(), model, (batches(0)[1] >= 0).sum()))
        return train(model, batches, *settings)

    monkeypatch.setattr(recall, "train", trained)
    assert [*recall.facts_among_noise("n / 4", seed=0)["curves"]] == [64]
    curves = recall.facts_among_noise("16", seed=0)["curves"]
    assert [*curves] == [64, 128] and curves[128][-1][0] == 20  # updates
    _, (_, shorter, _), (tokens, _, asked) = begun
    assert torch.equal(tokens, shorter.encoder.tokens.weight) and asked == 2 * 16


@every_task
def test_a_run_is_judged_by_batches_that_none_trains_on(task):
    batches = getattr(tasks, task)(24, 3, seed=1)
    unseen = validation_batches(batches, 2)
    assert declared.Config.__dataclass_fields__["steps"].metadata["most"] < FIRST_HELD_OUT
    for i, (inputs, targets) in enumerate(unseen):
        again = batches(10**9 + i)  # those that judged the recorded runs
        assert torch.equal(inputs, again[0]) and torch.equal(targets, again[1])


@pytest.mark.parametrize("name", declared.NAMES)
def test_every_model_answers_where_it_is_asked(name):
    inputs, targets = tasks.copy(64, 2)(0)
    model = declared.model_for("copy", name, 64, declared.size_of(name, 64))
    assert model(inputs, where=targets != IGNORE).shape == (2 * 32, VOCAB_SIZE)
