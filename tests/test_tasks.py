"""tasks.py: every answer stands in the text, once, where the task says; and the runs recorded on them."""

import json
from dataclasses import replace

import family_runs as tool
import limits_runs
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from linformer_from_scratch.course import results
from linformer_from_scratch.data import IGNORE, tasks
from linformer_from_scratch.data.tasks import BLANK, VALUES, VOCAB_SIZE
from linformer_from_scratch.efficient.blocks import whole_blocks
from linformer_from_scratch.encoder import sinusoids

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


def test_recall_names_every_key_twice_and_asks_for_the_value_that_stood_behind_it():
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
def test_a_batch_is_a_function_of_seed_and_step(task):
    def batch(seed, step):
        return getattr(tasks, task)(8, 4, seed)(step)[0]

    assert torch.equal(batch(1, 2), batch(1, 2))
    assert not torch.equal(batch(1, 2), batch(1, 3)) and not torch.equal(batch(1, 2), batch(0, 2))


@every_task
def test_no_two_seeds_share_a_batch(task):
    """Of any size and sign; steps beyond those of any run too."""
    seeds, steps = [0, 1, 2, -1, 2**32, 2**70], [0, 1, 5, 1_000_003, 2 * 1_000_003, 10**9, 2**32, 2**32 + 1]
    batches = [getattr(tasks, task)(24, 3, seed)(step) for seed in seeds for step in steps]
    found = {tuple(batch[0].flatten().tolist()) for batch in batches}
    assert len(found) == len(seeds) * len(steps)


@every_task
def test_a_seed_that_is_no_integer_and_an_empty_batch_are_refused(task):
    with pytest.raises(ValueError, match=r"seed and step are 2\.0 and 0, expected two integers"):
        getattr(tasks, task)(8, 4, 2.0)(0)
    for batch in (0, -3, 2.5):
        with pytest.raises(ValueError, match=f"batch is {batch}, expected an integer of at least 1"):
            getattr(tasks, task)(8, batch)


@pytest.mark.parametrize(
    ("task", "n"), [("needle", 1), ("copy", 0), ("copy", 7), ("recall", 0), ("recall", 6), ("copy", 8.0)]
)
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


# The recorded runs


@pytest.mark.parametrize("task", tool.LENGTHS)
def test_every_recorded_row_is_one_that_the_tool_measures_and_none_is_missing(task):
    recorded = results.read_rows(f"09_{task}")
    wanted = [what for what, _ in tool.jobs(task, sorted({row["seed"] for row in recorded}))]
    found = [{name: row[name] for name in ("attention", "n", "size", "seed")} for row in recorded]
    assert sorted(map(json.dumps, found)) == sorted(map(json.dumps, wanted))


@pytest.mark.parametrize("task", tool.LENGTHS)
def test_recorded_curves_end_with_the_accuracy_and_stop_early_only_when_nothing_is_wrong(task):
    for row in results.read_rows(f"09_{task}"):
        updates = [point[0] for point in row["curve"]]
        step = tool.CONFIG.steps // 10
        assert updates == list(range(step, updates[-1] + 1, step))
        assert row["curve"][-1][1] == row["accuracy"]
        assert updates[-1] == tool.CONFIG.steps or row["accuracy"] == 1


@pytest.mark.parametrize("n", [64, 128, 256, 512])
@pytest.mark.parametrize("name", [tool.MEAN, *tool.OTHERS, tool.FITTING])
def test_every_relative_costs_what_the_tool_says(name, n):
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        tool.attention(name, n)(torch.randn(1, n, tool.D_MODEL))
    attending = counter.get_total_flops() - 8 * n * tool.D_MODEL**2  # without Q, K, V and the output
    keys = attending / tool.NUM_HEADS / (4 * n * tool.D_HEAD)
    dearer = {tool.FITTING: 34.1, "linear": 32.5}.get(name, 32)
    assert 24 < keys <= dearer or (name == "two levels" and n == 512 and 32 < keys < 48)


@pytest.mark.parametrize("n", [64, 128, 256, 512])
def test_every_linformer_has_the_slots_of_mean_pooling(n):
    for name in (tool.LEARNED, tool.SLOW):
        assert tool.attention(name, n).E.proj_dim == tool.size_of(tool.MEAN, n)


@pytest.mark.parametrize("n", [64, 128, 256, 512])
def test_only_the_fitting_stride_divides_the_distance_of_a_copy(n):
    fits = {
        name: (n // 2) % whole_blocks(n, tool.size_of(name, n)) == 0
        for name in (tool.FITTING, "strided + global")
    }
    assert fits == {tool.FITTING: True, "strided + global": False}


def test_only_the_slow_linformer_has_slow_parameters(monkeypatch):
    found = {}

    class Spy(tool.Trainer):
        def __init__(self, *args, lr_scale, **rest):
            super().__init__(*args, lr_scale=lr_scale, **rest)
            found[name] = len(self.lr_scale)

    monkeypatch.setattr(tool, "Trainer", Spy)
    monkeypatch.setattr(tool, "CONFIG", replace(tool.CONFIG, steps=10))
    for name in (tool.LEARNED, tool.SLOW):
        tool.run("needle", name, 64, seed=0)
    assert found == {tool.LEARNED: 0, tool.SLOW: 2 * tool.NUM_LAYERS}
    longer = tool.run("needle", tool.LEARNED, 64, seed=0, times=3)
    assert [updates for updates, _ in longer["curve"]] == list(range(3, 31, 3))


@pytest.mark.parametrize("name", tool.NAMES)
def test_every_model_answers_where_it_is_asked(name):
    inputs, targets = tasks.copy(64, 2)(0)
    model = tool.model_for("copy", name, 64)
    assert model(inputs, where=targets != IGNORE).shape == (2 * 32, VOCAB_SIZE)
    assert 0 <= tool.accuracy(model, tasks.copy(64, 2), 2) <= 1


@pytest.mark.parametrize("word", [*limits_runs.EXPERIMENTS, "writing"])
def test_recorded_runs_of_the_limits_are_those_that_the_tool_measures(word):
    wanted = [what for what, _ in limits_runs.jobs(word)]
    found = results.read_rows(f"12_{word}")
    assert [{name: row[name] for name in wanted[0]} for row in found] == wanted
