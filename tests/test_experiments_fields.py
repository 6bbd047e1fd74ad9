"""Chapter 14's tasks and layers: physics against what is known of it, and every layer on every task."""

import numpy as np
import pytest
import torch
from numpy.polynomial import legendre
from scipy.sparse.linalg import spsolve
from torch.testing import assert_close

from lab import fields, flow
from lab.arms import ARMS, D_MODEL, PairWeights, Place, from_shuffled, from_windows, tiles
from lab.electrodes import Electrodes, positions, potential
from lab.regions import Regions
from linformer_from_scratch.common.rows import select


@pytest.mark.parametrize("side", [16, 32])
def test_the_flow_through_one_kind_of_rock_is_known(side):
    matrix = flow.stiffness(np.full((side, side), 3.0))
    assert abs(matrix - matrix.T).max() == 0
    u = spsolve(matrix, np.ones(side**2) / side**2)
    assert 3 * u.max() == pytest.approx(
        0.07367, rel=0.01
    )  # of the unit square (Timoshenko and Goodier, 1951)


def test_little_flows_through_a_wall_of_tight_rock():
    rock = np.full((16, 16), 100.0)
    rock[:, 7:9] = 0.001
    inflow = np.zeros((16, 16))
    inflow[8, 2] = 1.0
    u = spsolve(flow.stiffness(rock), inflow.ravel()).reshape(16, 16)
    assert u[:, 10:].max() < 0.01 * u[:, :7].max()


def test_a_dipole_on_the_axis_has_the_potential_of_its_series():
    depth, cosines = 0.6, np.linspace(-1, 1, 9)
    electrodes = np.stack([np.sqrt(1 - cosines**2), 0 * cosines, cosines], axis=1)
    degrees = np.arange(80)
    terms = np.where(degrees > 0, (2 * degrees + 1) * depth ** np.maximum(degrees - 1.0, 0), 0)
    towards = torch.tensor([0.0, 0.0, 1.0])
    found = potential(torch.tensor(electrodes, dtype=torch.float32), depth * towards, towards)
    wanted = torch.tensor(legendre.legval(cosines, terms), dtype=torch.float32)
    assert_close(found, wanted, atol=1e-3, rtol=1e-3)


def test_electrodes_stand_on_a_head_and_hear_every_source_alike_loud():
    assert_close(positions().norm(dim=1), torch.ones(345), atol=1e-3, rtol=0)
    task = Electrodes(noise=0.0)
    assert_close(task.heard.square().mean(0), torch.ones(8))
    signals, asked, right = task.batches(4)(0)
    sent = torch.linalg.pinv(task.heard / 8**0.5) @ signals  # (4, sources, samples)
    names, values = task.codes
    for text in range(4):
        name, value = asked[text, 0], right[text, 0]
        wanted = (names[name] + values[value]) / 2**0.5
        assert (sent[text] - wanted).norm(dim=1).min() < 1e-2


def test_a_point_is_to_say_the_value_of_its_region():
    where, heard, right = Regions(200, right_value=1.0).batches(3)(0)
    assert torch.equal(heard, right)
    near = torch.cdist(where[..., :2], where[..., :2]) < 0.02
    same = right[:, :, None] == right[:, None]
    assert same[near].float().mean() > 0.9 > 2 * same.float().mean()


def test_tiles_are_squares_of_the_grid():
    tile = tiles(Place(64, 4, side=8)).view(8, 8)
    assert tile.unique().tolist() == [0, 1, 2, 3] and (tile[:4, :4] == 0).all() and (tile[4:, :4] == 2).all()


@pytest.mark.parametrize(
    ("task", "arm"), [(task, arm) for task in ("sensors", "regions") for arm in fields.arms_of(task)]
)
def test_a_layer_can_be_trained_on_a_task(task, arm):
    torch.set_num_threads(1)
    made = fields.TASKS[task](64, 0)
    model = fields.build(made, arm, 0)
    before = [p.detach().clone() for p in model.parameters()]
    told = fields.trained(made, model, 5, 1e-3, 0)
    assert len(told["curve"]) == fields.PARTS and 0 <= told["score"] <= 1
    assert any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize("arm", [*fields.EXTRA_OF_A_GRID, fields.U_NET, "convolution", "E and F"])
def test_a_layer_can_be_trained_on_the_flow(arm, monkeypatch):
    monkeypatch.setattr("lab.points.TRAINING", 20)
    monkeypatch.setattr("lab.points.UNSEEN", 20)
    made = fields.of_flow(16**2, 0)
    assert fields.trained(made, fields.build(made, arm, 0), 5, 1e-3, 0)["score"] < 2


def test_weights_for_pairs_are_sums_over_keys_and_values():
    layer, x = PairWeights(5), torch.randn(2, 5, D_MODEL)
    q, k, v = layer.query(x), layer.key(x), layer.value(x)
    summed = torch.einsum("bif,bsf,st,btg->big", q, k, layer.C.weight, v)
    assert_close(layer(x), layer.output(summed), atol=1e-4, rtol=1e-4)


def test_shuffled_windows_are_windows_of_another_order():
    windows = from_windows(Place(12, 3)).weight.detach()
    shuffled, again, deeper = (from_shuffled(Place(12, 3, depth)).weight.detach() for depth in (0, 0, 1))
    assert_close(shuffled.sort(1).values, windows.sort(1).values)
    assert_close(shuffled.sum(0), windows.sum(0))  # every place is in one slot
    assert torch.equal(shuffled, again) and not torch.equal(shuffled, deeper)
    assert not torch.equal(shuffled, windows)


def test_updates_and_rates_are_those_that_were_measured():
    (row,) = select(fields.recorded("14_seconds"), task="sensors", n=1024)
    middle = sorted(row["seconds"]["E and F"])[len(row["seconds"]["E and F"]) // 2]
    assert fields.updates_in(40, "sensors", "E and F", 1024) == round(40 / middle)
    rates = select(fields.recorded("14_rates"), task="sensors", arm="E and F")
    assert fields.best_rate("sensors", "E and F") == max(rates, key=lambda row: row["score"])["rate"]
    with pytest.raises(ValueError, match="14_rates has 0 rows of 'U-Net' on 'sensors', expected 3"):
        fields.best_rate("sensors", "U-Net")


def test_every_layer_that_is_compared_has_a_name():
    assert {arm for task in fields.TASKS for arm in fields.arms_of(task)} == {*ARMS, fields.U_NET}
