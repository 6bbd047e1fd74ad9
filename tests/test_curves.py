"""recorded/curves.py: the runs that are asked for, and what is read off them."""

import pytest
import torch

from lab.training import EXPERIMENTS
from linformer_from_scratch.common.rows import Results
from linformer_from_scratch.course import recorded as results
from linformer_from_scratch.course.recorded import curves
from linformer_from_scratch.course.recorded.curves import ahead, kept, mean_curve, recorded, updates_until

USUAL = {"attention": "linformer", "proj_dim": 32, "sharing": "layerwise", "projection": "windows"}
USUAL["projection_rate"] = 1.0
ROWS = [
    {"seed": 0, "curve": [[100, 6.0], [200, 4.0], [300, 3.5]]},
    {"seed": 1, "curve": [[100, 5.0], [200, 4.5], [300, 2.5]]},
]


@pytest.mark.parametrize(
    "other", [{"attention": "full"}, {"proj_dim": 16}, {"sharing": "none"}, {"projection": "mean"}]
)
def test_the_usual_linformer_is_found_but_for_what_differs(tmp_path, monkeypatch, other):
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    some = Results(tmp_path / "08_some.json", "a command")
    for what in (USUAL, USUAL | other, USUAL | other | {"seed": 1}):
        some.measure({"n": 8, **what}, dict)
    assert recorded("some") == [{"n": 8, **USUAL}]
    assert recorded("some", **other) == [{"n": 8, **USUAL, **other}, {"n": 8, **USUAL, **other, "seed": 1}]
    assert recorded("some", n=9) == []


def test_held_out_losses_of_every_run():
    assert curves.curves_of(ROWS) == ([100, 200, 300], [[6.0, 4.0, 3.5], [5.0, 4.5, 2.5]])
    assert curves.final_loss(ROWS) == (3.0, pytest.approx(12.706 * 0.5))
    assert mean_curve(ROWS).tolist() == [[100, 5.5], [200, 4.25], [300, 3.0]]


def test_runs_are_compared_with_those_of_their_own_seed():
    def runs(*losses):
        return [{"seed": seed, "curve": [[1, 9.0], [2, loss]]} for seed, loss in enumerate(losses)][::-1]

    full, none = runs(2.0, 3.0), runs(4.0, 4.0)
    assert ahead(full, none) == (1.5, pytest.approx(12.706 * 0.5)) and ahead(ROWS, ROWS) == (0, 0)
    assert kept(runs(3.0, 3.75), full, none) == (0.375, pytest.approx(12.706 * 0.125))
    assert kept(full, full, none) == (1, 0) and kept(none, full, none) == (0, 0)
    assert kept(runs(3.0)[:1], full, none)[0] == 0.5  # a seed that is missing counts for nothing


def test_a_curve_reaches_a_loss_straight_between_its_points_and_the_first_time_counts():
    reached = {5.5: 100, 6.0: 100, 4.25: 200, 4.875: 150, 3.625: 250, 3.0: 300, 2.9: -1}
    assert {loss: updates_until(mean_curve(ROWS), loss) for loss in reached} == reached
    curve = torch.tensor([[0.0, 3.0], [10.0, 1.0], [20.0, 3.0], [30.0, 0.0]])
    assert updates_until(curve, 2.0) == 5


def test_recorded_runs_ran_to_their_end_and_were_judged_on_the_same_text():
    judged = {}
    others = ("08_copying", "08_finetune", "08_speed")
    trained = [each.name for each in EXPERIMENTS if each.name not in others]
    for row in (row for name in trained for row in results.read_rows(name)):
        updates = [point[0] for point in row["curve"]]
        assert updates == sorted(set(updates)) and updates[-1] == row["steps"] and len(updates) >= 10
        moving = [tuple(point[1:]) for point in row["curve"][:-1]]  # at the end the rate is nearly 0
        assert len(set(moving)) == len(moving)  # each point its own losses
        text = row["seq_len"], row["training_tokens"]
        known = judged.setdefault(text, row["baselines"])
        assert {name: known.get(name, loss) for name, loss in row["baselines"].items()} == row["baselines"]
    assert len(judged) == 3  # two lengths, and a sixteenth of the text
