"""fields/: readings of sensors, and layers that mix by place or by content, against their definitions."""

import pytest
import torch
from refusals import refusing
from torch import nn
from torch.testing import assert_close

from linformer_from_scratch.fields.mixing import FixedMixing
from linformer_from_scratch.fields.model import SumOf
from linformer_from_scratch.fields.sensors import VALUES, Readings, Sensors, group_means, listener
from linformer_from_scratch.fields.slots import GatedSlots, Slices
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.multihead import MultiHeadAttention

N, D, HEADS = 24, 12, 3


def drawn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def heard(sensors, step=0, size=64):
    return sensors.batches(size)(step)


def test_every_source_is_heard_by_as_many_sensors_in_no_order():
    source_of = Sensors(512, sources=8).source_of
    assert source_of.bincount().tolist() == 8 * [64]
    assert (source_of[1:] == source_of[:-1]).float().mean() < 0.25  # neighbours are no closer than others


def test_a_sensor_hears_a_name_or_a_value_always_the_same_of_both():
    sensors = Sensors(128)
    names, values, *_ = heard(sensors)
    assert torch.equal(names == sensors.names, sensors.hears_values.expand_as(names))
    assert torch.equal(values == VALUES, ~sensors.hears_values.expand_as(names))


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_so_many_names_and_values_are_right(share):
    sensors = Sensors(64, sources=4, names=8, right_name=share, right_value=share, together=True)
    names, values, asked, right = heard(sensors, size=500)
    groups = sensors.source_of
    for g in range(4):  # whoever asks for the name that group g hears most gets the value that it hears most
        name, value = (heard[:, groups == g].mode().values[:, None] for heard in (names, values))
        said = right[asked == name]
        assert (said == value.expand_as(right)[asked == name]).float().mean() > 0.8 * share
    of_first = names[:, groups == 0]
    expected = share + (1 - share) / 8  # a random name may be the right one
    assert (of_first == of_first.mode().values[:, None]).float().mean() == pytest.approx(expected, abs=0.12)


def test_movers_hear_another_source_in_every_input_and_the_others_never():
    sensors = Sensors(64, sources=4, names=8, right_name=1.0, moving=0.25, together=True)
    names, *_ = heard(sensors)
    still = torch.ones(64, dtype=torch.bool).index_fill(0, sensors.movers, False)
    assert still.sum() == 48
    group = sensors.source_of == 0
    alike = (names[:, group & still] == names[:, group & still][:, :1]).all()
    assert alike and not (names[:, group] == names[:, group & still][:, :1]).all()


def test_a_step_gives_the_same_readings_again_and_another_step_others():
    sensors = Sensors(32)
    assert all(torch.equal(a, b) for a, b in zip(heard(sensors), heard(sensors), strict=True))
    assert not torch.equal(heard(sensors)[0], heard(sensors, step=1)[0])


test_a_task_that_cannot_be_is_refused = refusing(
    ({"sources": 17}, "sources is 17"),
    ({"n": 4, "sources": 8}, "sources is 8"),
    ({"moving": 1.5}, "moving is 1.5, expected a share from 0 to 1"),
    by=lambda wrong: Sensors(**wrong),
)


def test_rows_of_groups_average_their_tokens():
    x, groups = drawn(6, 4), torch.tensor([0, 2, 1, 0, 2, 2])
    assert_close((group_means(groups) @ x)[2], x[[1, 4, 5]].mean(0))


def test_a_model_adds_the_place_to_what_a_token_knows():
    sensors = Sensors(16, sources=2, names=4)
    model = listener(sensors, [MultiHeadAttention(D, HEADS)], D)
    batch = heard(sensors, size=2)[:3]
    expected = model.out(model.norm(model.blocks[0](model.known(*batch) + model.place)))
    assert_close(model(*batch), expected)


def test_a_name_has_one_vector_whether_it_is_heard_or_asked_for():
    known = Readings(Sensors(16, sources=2, names=4), D)
    names, values, asked = (torch.tensor([[i]]) for i in (3, VALUES, 3))
    vector = known(names, values, asked)[0, 0]
    assert_close(vector[: D // 2], vector[D // 2 :])
    nothing = known(torch.tensor([[4]]), values, asked)[0, 0]
    assert nothing[: D // 2].any() and not nothing[D // 2 :].any()


def test_a_sum_is_divided_by_the_root_of_its_parts():
    x = drawn(2, 5, D)
    assert_close(SumOf(nn.Identity(), nn.Identity())(x, 3 * x), 4 * x / 2**0.5)


def test_fixed_mixing_is_the_same_sum_of_places_in_every_input():
    mixing, x = FixedMixing(N, 5), drawn(2, N, D)
    there = torch.einsum("kn,bnd->bkd", mixing.there.weight, x) + mixing.there.bias[:, None]
    hidden = torch.nn.functional.gelu(there)
    expected = torch.einsum("nk,bkd->bnd", mixing.back.weight, hidden) + mixing.back.bias[:, None]
    assert_close(mixing(x), expected)


def test_slots_by_content_follow_a_token_wherever_it_stands():
    layer, x, order = GatedSlots(D, HEADS, 4), drawn(2, N, D), torch.randperm(N)
    assert_close(layer(x)[:, order], layer(x[:, order]))
    gates, k = layer.gates, layer.project(x)[1]
    assert_close((gates @ k.mT).softmax(-1).sum(-1), torch.ones(2, HEADS, 4))


def test_slots_by_content_are_means_by_the_softmax_of_their_gates():
    layer, x = GatedSlots(D, 1, 2), drawn(1, N, D)
    q, k, v = (some[0, 0] for some in layer.project(x))
    slots = [(layer.gates[0, j] @ k.T).softmax(0) for j in range(2)]
    keys, values = (torch.stack([weights @ some for weights in slots]) for some in (k, v))
    expected = layer.output((q @ keys.T / D**0.5).softmax(-1) @ values)
    assert_close(layer(x)[0], expected)


def test_a_token_gets_back_what_its_slices_hold():
    layer, x = Slices(D, 1, 2), drawn(1, N, D)
    dealt = (layer.deal(layer.place(x[0])) / layer.temperature[0]).softmax(-1)
    slices = torch.stack([(dealt[:, [j]] * layer.hold(x[0])).sum(0) / dealt[:, j].sum() for j in range(2)])
    q, k, v = (read(slices) for read in layer.read)
    expected = layer.output(dealt @ ((q @ k.T / D**0.5).softmax(-1) @ v))
    assert_close(layer(x)[0], expected, atol=1e-4, rtol=1e-4)


def test_a_head_learns_whom_each_sensor_hears_from_answers_alone():
    sensors = Sensors(128, sources=4, names=8)
    E, F = (drawn(16, 128).roll(i).div(128**0.5).requires_grad_() for i in (0, 7))
    optimizer = torch.optim.Adam([E, F], lr=0.01)
    for step in range(100):
        names, values, asked, right = heard(sensors, step, size=1)
        sized = (asked, 8), (names, 9), (values, 17), (right, 16)
        q, k, v, wanted = (one_hot(some[0], size) for some, size in sized)
        answers = linformer_attention(30 * q, k[:, :8], v[:, :16], E, F)
        optimizer.zero_grad()
        (answers - wanted).square().sum().backward()
        optimizer.step()
        share = (answers.argmax(-1) == right[0]).float().mean()
    assert share > 0.9
    assert alike(E.detach(), sensors) > 0.4 > alike(drawn(16, 128), sensors)


def alike(E, sensors):
    """How far apart the sources' mean columns are, in spreads of the columns of one source."""
    groups = [E[:, ~sensors.hears_values & (sensors.source_of == g)] for g in range(sensors.sources)]
    means = torch.stack([some.mean(1) for some in groups])
    return means.std(0).norm() / torch.stack([some.std(1) for some in groups]).mean(0).norm()


def one_hot(ids, size):
    return torch.nn.functional.one_hot(ids, size).float()
