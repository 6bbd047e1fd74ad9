"""Linformer's layer on shards of the sequence: as one process, one exchange, bytes that n does not change."""

import re
import subprocess
import sys
from functools import cache, partial

import pytest
import ranks_at_work as work
import torch
from refusals import refusing

from linformer_from_scratch.cost import DEVICES, Sizes
from linformer_from_scratch.distributed import experiments, launch, plan, wire
from linformer_from_scratch.distributed.__main__ import ROWS
from linformer_from_scratch.distributed.sequence import SequenceParallelAttention, shard, sharded_parameters
from linformer_from_scratch.encoder import Classifier, Encoder, NoAttention
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained.texts import TextEncoder
from linformer_from_scratch.projections import LearnedProjection, MeanPooling

EXACT = 1e-10  # in float64, of the largest number
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a connection's bytes")
counts = pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])


@cache
def at_work(count):
    return launch(work.everything, count)


@counts
def test_shards_compute_what_one_process_does_with_all_gradients(count):
    compared = ["n = 11", "a token a rank", "E = F", "a matrix a head", "shard of padding"]
    compared += ["batches of several sizes", "encoder", "one screen"]
    for results in at_work(count):
        for what in compared:
            errors = results[what].values()
            assert len(errors) >= 2 and all(error < EXACT for error in errors), (what, results[what])
        assert [*results["one screen"]] == ["W_Q", "W_K", "W_V", "W_O", "E", "F"]
        assert {"gradient of x", "gradient of W_K", "gradient of E"} <= {*results["n = 11"]}


def test_rows_are_shared_out():
    for results, own in zip(at_work(2), (range(4), range(4, 7)), strict=True):
        assert [x.tolist() for x in results["share"]] == [[*own], [i + 10 for i in own]]
        assert results["mean"] == (0 + 1) / 2


@counts
def test_slots_of_ones_own_may_be_summed_over_shards_but_not_divided_by_their_tokens(count):
    for results in at_work(count):
        right, divided = results["own layers"]
        assert {*right} == {*divided} and max(right.values()) < 1e-5 < 0.1 < max(divided.values())


@counts
def test_a_layer_exchanges_once_forward_and_once_backward(count):
    once = {"c10d.allreduce_": 1}
    passes = {"first": {"c10d.allgather_": 2, **once}, "forward": once, "backward": once}
    assert all(results["exchanges"] == {11: passes, 64: passes} for results in at_work(count))


@LINUX
@counts
def test_the_bytes_on_the_wire_are_those_of_the_formula_and_do_not_depend_on_n(count):
    for results in at_work(count):
        assert results["sent"][64] == results["sent"][512]
        headers = results["sent"][512] - wire.linformer_bytes(Sizes(512, 64, 1, 16), count)
        assert 0 < headers < 2000  # gloo's own, whatever is sent, and the number beside the slots
        for n, sent in results["sent shared"].items():
            assert sent == headers + wire.linformer_bytes(Sizes(n, 64, 1, 16), count, shared=True)


@pytest.mark.slow
def test_rows_of_ranks_train_on_texts_of_their_own():
    for results in at_work(4):
        assert all(error < EXACT for error in results["rows and columns"].values())


def test_batches_that_differ_are_refused_whenever_they_come():
    sentence = "the ranks disagree on batch: rank 0 has 3, rank 1 has 2; expected the same"
    assert all(results["batches"] == [sentence] * 3 for results in at_work(2))


def test_what_ranks_do_not_share_is_refused_on_every_rank_before_it_is_summed():
    first, second = (dict(results["refused"]) for results in at_work(2))
    outside = first.pop("other group"), second.pop("other group")
    assert outside == (None, "rank 1 is not a member of this group") and first == second
    expected = {
        "layer proj_dim": "proj_dim: rank 0 has 3, rank 1 has 5; expected the same",
        "layer dtype": "dtype: rank 0 has torch.float64, rank 1 has torch.float32",
        "layer shared": "sharing: rank 0 has E and F, rank 1 has E = F",
        "layer matrices": "matrices: rank 0 has 1, rank 1 has 5",
        "layer gradients": "gradients: rank 0 has True, rank 1 has False",
        "model proj_dim": "E.weight: rank 0 has (3, 11) of torch.float64, learned, rank 1 has (5, 11)",
        "model num_heads": "num_heads: rank 0 has 5, rank 1 has 4; expected the same",
        "model numbers": "the numbers of query.weight: rank 0 has checksum",
        "model frozen": "F.weight: rank 0 has (3, 11) of torch.float64, learned, rank 1 has (3, 11)",
        "name": "step: rank 0 has 4, rank 1 has nothing",
    }
    for what, sentence in expected.items():
        assert first[what].startswith(f"the ranks disagree on {sentence}"), what
    assert first["layer nothing"] is None and first["nan"] is None
    assert first["too few"] == "a text of 1 tokens cannot be shared by 2 ranks"
    assert first["sum"] == ([[0, 2, 4], [6, 8, 10]], [[0, 1, 2], [3, 4, 5]])  # they are still together


# Without other ranks


@pytest.mark.parametrize("what", [experiments.errors, experiments.encoder_errors])
def test_one_process_is_a_layer_with_one_shard(what):
    assert max(what(11).values()) < EXACT


def test_the_formulas_by_hand():
    s = Sizes(131_072, 1024, 16, 256, bytes_per_number=2)
    assert wire.linformer_bytes(s, 8) == 4 * 256 * 1024 * 2 * 7 / 8 == 1_835_008
    assert wire.linformer_bytes(s, 8, shared=True) == 917_504
    assert wire.ulysses_bytes(s, 8) == 4 * 131_072 * 1024 * 2 * 7 / 64 == 117_440_512
    assert wire.ring_bytes(s, 8) == 2 * 131_072 * 1024 * 2 * 7 / 8 == 469_762_048
    assert wire.ring_bytes(s, 8, group=4) == 469_762_048 / 4
    three = Sizes(131_072, 1024, 16, 256, batch=3, bytes_per_number=2)
    for formula in (wire.linformer_bytes, wire.ulysses_bytes, wire.ring_bytes):
        assert formula(s, 1) == 0 and formula(three, 8) == 3 * formula(s, 8)


def some_linformer(kind=LinformerAttention, E=LearnedProjection):
    return kind(8, 2, E(11, 3), E(11, 3))


def test_a_cut_model_keeps_its_ties_its_mode_and_what_is_frozen_and_only_its_first_layer_checks():
    layer = some_linformer().eval()
    layer.F.weight.requires_grad_(False)
    encoder = Encoder(30, 11, 8, [layer, layer, LinformerAttention(8, 2, layer.E, layer.E)]).eval()
    encoder.positions.weight.requires_grad_(False)
    parts = shard(encoder)
    first, second, third = (block.attention for block in parts.blocks)
    assert type(first) is type(third) is SequenceParallelAttention and not third.training
    assert second is first and third.E is third.F is first.E and first.E.weight is not layer.E.weight
    assert [one.weight.requires_grad for one in (first.E, first.F, parts.positions)] == [True, False, False]
    assert (first.add_up.check, third.add_up.check) == (True, False)
    own = [id(one.weight) for one in (first.E, first.F, parts.positions)]
    assert sorted(map(id, sharded_parameters(parts))) == sorted(own)
    assert type(layer) is LinformerAttention and encoder.blocks[0].attention is layer  # untouched


def test_a_shard_takes_exactly_the_tokens_of_its_columns():
    layer = shard(some_linformer())
    for n in (10, 12):
        with pytest.raises(ValueError, match=f"this shard has {n} tokens and 11 columns of E; pad the text"):
            layer(torch.randn(1, n, 8))
    with pytest.raises(NotImplementedError, match="needs the whole text"):
        layer.definition(torch.randn(1, 11, 8))


class NoSlots(LinformerAttention):
    """Inherits what may be cut, and changes it."""


def encoder(attention=None, **options):
    return Encoder(30, 11, 8, [some_linformer(), attention or NoAttention()], **options)


def with_bias():
    layer = some_linformer()
    layer.value = torch.nn.Linear(8, 8)
    return layer


READS_ALL = "^blocks.1.attention is a {}, whose tokens may read all others"


test_what_cannot_be_cut_is_refused_by_its_name = refusing(
    (lambda: encoder(MultiHeadAttention(8, 2)), READS_ALL.format("MultiHeadAttention")),
    (lambda: encoder(some_linformer(NoSlots)), READS_ALL.format("NoSlots")),
    (lambda: encoder(shard(some_linformer())), READS_ALL.format("SequenceParallelAttention")),
    (lambda: encoder(torch.nn.Linear(8, 8)), READS_ALL.format("Linear")),  # of an unknown kind
    (lambda: MultiHeadAttention(8, 2), "^the model is a MultiHeadAttention, whose tokens may read"),
    (with_bias, "^a layer's value has a bias, which every rank would add to the slots"),
    (
        lambda: torch.nn.Sequential(NoAttention(), LearnedProjection(11, 4)),
        "^no layer sums over ranks what 1",
    ),
    (lambda: some_linformer(E=MeanPooling), "^got a MeanPooling, expected a LearnedProjection"),
    (lambda: some_linformer(SequenceParallelAttention, MeanPooling), "^got a MeanPooling, expected"),
    (lambda: encoder(neighbours=1), "^a convolution over 3 tokens crosses the edges of shards"),
    (lambda: Classifier(encoder(), 2), "^a Classifier takes a mean over tokens of all ranks"),
    (TextEncoder, "^a TextEncoder takes a mean over tokens of all ranks"),
    by=lambda make: shard(make()),
)


MILLION = Sizes(2**20, 1024, 16, 256, bytes_per_number=2)


def test_a_plan_by_hand():
    (device,) = (device for device in DEVICES if device.name == "H200")
    eight = plan.plan(MILLION, 8, device)
    assert (eight.tokens, eight.matrix_bytes, eight.token_bytes) == (131_072, 2**27, 2**28)
    assert eight.sent_bytes == 1_835_008
    assert eight.wire_seconds == 1_835_008 / 450e9 + 14 * 2e-6
    assert eight.exact_seconds == (8 * 2**20 * 2**20 + 4 * 2**40 * 2**10) / 8 / 989e12
    assert eight.ring_seconds == 7 * 2**29 / 450e9 + 7 * 2e-6
    operations = 4 * 2**17 * 2**20 + 4 * 256 * 2**20 + 8 * 2**17 * 256 * 2**10
    assert operations / 989e12 < eight.seconds < 3 * operations / 989e12
    assert eight.feed_forward_seconds == 16 * 2**17 * 2**20 / 989e12
    assert eight.linformer_total == eight.seconds + eight.wire_seconds
    assert eight.ring_total == eight.exact_seconds > eight.ring_seconds
    assert eight._replace(ring_seconds=9.0).ring_total == 9.0
    alone = plan.plan(MILLION, 1, device)
    assert (alone.wire_seconds, alone.ring_seconds) == (0, 0)
    with pytest.raises(ValueError, match="7 ranks do not divide n=1048576"):
        plan.plan(MILLION, 7, device)


def test_a_plan_reads_the_weights_of_a_feed_forward_part_for_few_tokens_as_well():
    few = plan.plan(Sizes(8, 1024, 16, 256, bytes_per_number=2), 8, DEVICES[-1])
    assert few.feed_forward_seconds == pytest.approx(2 * (4 * 2**20 + 5 * 2**10) * 2 / 4.8e12)


@pytest.mark.parametrize(
    ("way", "eight_machines", "milliseconds"),
    [("flat ring", (0, 126), 0.630), ("ring", (112, 14), 0.294), ("tree", (14, 6), 0.058)],
)
def test_a_sum_takes_nvlink_within_a_machine_of_eight_and_hops_by_hand(way, eight_machines, milliseconds):
    assert (plan.hops(1, way), plan.hops(8, way), plan.hops(64, way)) == ((0, 0), (14, 0), eight_machines)
    assert plan.sum_seconds(0, 64, way) == pytest.approx(1e-3 * milliseconds)
    many = plan.plan(MILLION, 64, DEVICES[-1], way)
    assert many.wire_seconds == pytest.approx(1e-3 * milliseconds + many.sent_bytes / 50e9)
    assert [plan.wire_of(ranks).bytes_per_s for ranks in (1, 8, 9, 64)] == [450e9, 450e9, 50e9, 50e9]
    with pytest.raises(ValueError, match="way is 'star', expected 'flat ring', 'ring' or 'tree'"):
        plan.hops(8, "star")


def test_training_memory_by_hand():
    vectors = 2**20 * 1024 * 2
    matrix = 256 * 2**20 * 16
    assert plan.training_bytes(MILLION, layers=1) == 2 * matrix + vectors
    assert plan.training_bytes(MILLION, layers=12, ranks=8) == 12 * (2 * matrix + vectors) / 8
    assert plan.training_bytes(MILLION, layers=12, matrices=1) == matrix + 12 * vectors
    assert plan.training_bytes(MILLION, layers=12, kept=0) == 12 * 2 * matrix
    assert plan.training_bytes(MILLION, layers=12, kept=17) == 12 * (2 * matrix + 17 * vectors)
    assert plan.longest_text(MILLION, 24, 141e9, matrices=1) == 141e9 // (256 * 16 + 24 * 2048)
    on_eight = plan.longest_text(MILLION, 24, 141e9, ranks=8, kept=17)
    assert on_eight == 8 * 141e9 // (24 * (512 * 16 + 17 * 2048))


@LINUX
@pytest.mark.slow
def test_the_command_compares_the_ranks_of_a_machine():
    """The command as chapter 11 gives it."""
    words = "-m torch.distributed.run --standalone --nproc-per-node 3 -m linformer_from_scratch.distributed"
    out = subprocess.run([sys.executable, *words.split()], capture_output=True, text=True, check=True).stdout
    assert out.startswith("3 ranks, gloo, cpu: all errors are below 1e-10\nfloat64, 2 texts of 27 tokens")
    sent, formula = (
        [int(number.replace(",", "")) for number in re.search(f"\n{name}(.*)", out)[1].split()]
        for name in ("bytes sent", "bytes by formula")
    )
    assert formula[0] == pytest.approx(wire.linformer_bytes(Sizes(27, 20, 5, 7, 2, 8), 3), abs=1)
    assert formula[2] == pytest.approx(2 * formula[1], abs=1)  # two layers
    assert all(0 < one - expected < 2500 for one, expected in zip(sent, formula, strict=True))


@pytest.fixture
def command(as_module):
    """Run the command: its exit's message, and what it printed."""
    return partial(as_module, "linformer_from_scratch.distributed")


def test_the_command_alone_is_one_rank_and_gives_the_encoder_two_layers(command, monkeypatch):
    monkeypatch.setattr(wire, "linformer_bytes", lambda *_: 8.0)
    code, out, err = command()
    assert re.search(r"\nbytes by formula +8 +8 +16\n", out)
    assert (code, err) == (None, "") and out.startswith("one process, cpu, compared with itself; start")
    assert re.search(r"\nbytes sent( +0){3}\n", out)


def test_the_command_ends_with_an_error_that_is_too_large(command, monkeypatch):
    monkeypatch.setattr(experiments, "errors", lambda n, **_: {"output": 1e-3, "gradient of x": 0.0})
    assert command()[0] == "rank 0 differs by 1.0e-03 in a layer, expected less than 1e-10"


def test_the_command_says_what_it_prints_and_in_one_sentence_what_is_wrong(command, monkeypatch):
    code, out, _ = command("--help")
    assert code == 0 and all(word in out for word in (*ROWS, "NCCL", "never run"))
    code, _, err = command("--ranks", "4")
    assert code == 2 and err.endswith("unrecognized arguments: --ranks 4\n")
    monkeypatch.setenv("RANK", "3")
    sentence, out, err = command()
    assert sentence.endswith("WORLD_SIZE expected, but not set") and "\n" not in sentence
    assert (out, err) == ("", "")
