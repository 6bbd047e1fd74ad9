"""benchmark/: seconds and bytes of calls whose cost is known, and a command that loses nothing."""

import gc
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import nbformat
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from linformer_from_scratch import cost
from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.benchmark import (
    ceilings,
    copy_ceiling,
    flush,
    matmul_ceiling,
    measured_crossover,
    median_seconds,
    modes,
    peak_bytes,
    race,
    ratio,
    samples,
    spread,
    suite,
)
from linformer_from_scratch.benchmark.layers import (
    FUSED,
    KEYS_FIRST,
    PUBLISHED,
    SHARED,
    STORED,
    TOKENS_FIRST,
    blocks,
    layers,
    packages,
)
from linformer_from_scratch.benchmark.modes import PASSES, compiled
from linformer_from_scratch.benchmark.published import (
    FLASH_LENGTHS,
    FLASH_MB,
    LRA,
    LRA_MEANS,
    LRA_TASKS,
    LRA_XIONG,
    TABLE_3,
)
from linformer_from_scratch.benchmark.statistics import NOTHING, Interval, coverage, ratio_spread, ratios
from linformer_from_scratch.benchmark.suite import PLANS, jobs
from linformer_from_scratch.common.files import locked
from linformer_from_scratch.experiments import results
from linformer_from_scratch.experiments.benchmark import budget, records
from linformer_from_scratch.experiments.benchmark.check import check_file
from linformer_from_scratch.experiments.benchmark.command import main, parser
from linformer_from_scratch.experiments.benchmark.commands import MINUTES, on_a_gpu, to_paste
from linformer_from_scratch.experiments.results import provenance

ROOT = Path(__file__).parents[1]

# Time


def test_a_slow_call_takes_longer_and_every_call_has_its_turns():
    turns = []
    calls = {
        name: lambda name=name, s=s: (turns.append(name), time.sleep(s))
        for name, s in (("a", 0.02), ("b", 0))
    }
    seconds = samples(calls, rounds=3)
    assert min(seconds["a"]) > 0.019 > max(seconds["b"])
    assert [len(found) for found in seconds.values()] == [3, 3]
    assert sorted(turns) == ["a"] * 4 + ["b"] * 4  # a warm-up, and three rounds


@pytest.mark.parametrize("pauses", [[0.2, 0], [0, 0, 0, 0.3]], ids=["the warm-up", "one slow round of three"])
def test_what_is_slow_once_does_not_count(pauses):
    rounds, pauses = len(pauses) - 1, iter(pauses)
    assert median_seconds({"a": lambda: time.sleep(next(pauses))}, rounds)["a"] < 0.05


def test_the_order_of_turns_is_shuffled():
    turns = []
    samples({name: lambda name=name: turns.append(name) for name in "abcd"}, rounds=9)
    rounds = {tuple(turns[i : i + 4]) for i in range(0, len(turns), 4)}
    assert len(rounds) > 1 and all(sorted(one) == list("abcd") for one in rounds)


def test_what_comes_before_a_turn_is_not_timed():
    turns = []
    before = lambda: (turns.append("before"), time.sleep(0.05))  # noqa: E731
    seconds = samples({"a": lambda: turns.append("a")}, rounds=2, before=before)
    assert turns == ["before", "a"] * 3 and max(seconds["a"]) < 0.04


def test_flushing_writes_more_than_caches_hold():
    assert flush()().nbytes >= 2**28


def test_no_rounds_are_refused():
    with pytest.raises(ValueError, match="rounds is 0"):
        median_seconds({"a": int}, rounds=0)


def test_busy_seconds_leave_out_what_a_call_only_waits():
    calls = {"waits": lambda: time.sleep(0.05), "works": lambda: sum(range(10**6))}
    wall, busy = median_seconds(calls, rounds=3), median_seconds(calls, rounds=3, busy=True)
    assert wall["waits"] >= 0.05 > 10 * busy["waits"]
    assert busy["works"] > busy["waits"]


# Bytes


def test_the_peak_counts_what_was_held_at_once():
    def call(x):
        y = x + 1  # 4,000 bytes
        del y
        return torch.zeros(3000)  # 12,000 bytes, the result

    held = torch.zeros(1000)
    assert peak_bytes(call, held) == 12_000
    assert peak_bytes(lambda: (held + 1) + (held + 2)) == 12_000  # two terms and their sum
    assert peak_bytes(lambda: held.view(10, 100)) == 0


FRESH = """
import torch
from pathlib import Path
from linformer_from_scratch.attention import scaled_dot_product_attention as attention
from linformer_from_scratch.benchmark import peak_bytes
peak_bytes(torch.ones, 9)
def kilobytes(name):
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
if Path("/proc/self/clear_refs").exists():
    q, k, v = torch.randn(3, 4, 2048, 64)
    attention(q[:, :64], k[:, :64], v[:, :64])  # what is loaded once
    Path("/proc/self/clear_refs").write_text("5", "utf-8")  # the high-water mark begins anew
    before = kilobytes("VmRSS")
    attention(q, k, v)
    print(1024 * (kilobytes("VmHWM") - before))
"""


@pytest.fixture(scope="module")
def fresh():
    """What a new process prints: the operating system's peak alone, where it says one."""
    return subprocess.run(
        [sys.executable, "-c", FRESH], capture_output=True, text=True, check=True, encoding="utf-8"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_operating_system_sees_the_same_peak_in_a_fresh_process(fresh):
    q, k, v = torch.randn(3, 4, 2048, 64)
    assert int(fresh.stdout) == pytest.approx(peak_bytes(scaled_dot_product_attention, q, k, v), rel=0.05)


def test_measuring_bytes_writes_nothing_to_the_terminal(fresh):
    assert fresh.stderr == "" and fresh.stdout.strip("0123456789\n") == ""


# Ceilings


def test_ceilings_count_two_operations_a_multiply_add_and_bytes_both_ways(monkeypatch):
    def some_seconds(calls, rounds, device):
        for call in calls.values():
            call()
        return {name: [(3.0, 0.75), (1.0, 0.5), (2.0, 0.25)] for name in calls}  # the best counts

    monkeypatch.setattr(ceilings, "both_clocks", some_seconds)
    monkeypatch.setitem(ceilings.SIDE, "cpu", 64)
    assert matmul_ceiling() == matmul_ceiling(torch.bfloat16) == 2 * ceilings.SIDE["cpu"] ** 3
    assert copy_ceiling() == 2 * 4 * ceilings.NUMBERS["cpu"]
    assert matmul_ceiling(busy=True) == 4 * matmul_ceiling() and copy_ceiling(busy=True) == 4 * copy_ceiling()


@pytest.mark.parametrize(("rate", "side"), [(1e11, 2048), (3e9, ceilings.SMALL)])
def test_a_large_product_that_would_take_long_is_not_made(monkeypatch, rate, side):
    def some_seconds(calls, rounds, device):
        (product,) = calls.values()
        seconds = 2 * product().size(0) ** 3 / rate
        return {"product": [(seconds, seconds)] * rounds}

    made = []
    product = ceilings._product
    monkeypatch.setattr(ceilings, "both_clocks", some_seconds)
    monkeypatch.setattr(ceilings, "_product", lambda side, *given: made.append(side) or product(side, *given))
    assert matmul_ceiling() == pytest.approx(rate) and made == [ceilings.SMALL, side]


def test_ceilings_are_operations_and_bytes_over_seconds_on_the_wall():
    a, b = torch.randn(2, 512, 512)
    with FlopCounterMode(display=False) as counter:
        a @ b
    source = torch.rand(2**20)
    target = torch.ones_like(source)
    for counted, call, ceiling in (
        (counter.get_total_flops(), lambda: a @ b, partial(matmul_ceiling, side=512)),
        (source.nbytes + target.nbytes, lambda: target.copy_(source), partial(copy_ceiling, numbers=2**20)),
    ):
        seconds = []
        for _ in range(15):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
        assert 1 / 3 < ceiling() * min(seconds) / counted < 3  # the best of some rounds, here and there


# Statistics


def test_spread_and_ratio_are_those_of_the_rounds():
    assert spread([5, 1, 3, 2, 100, 4]) == (2, 3.5, 5)
    assert spread([7.0]) == (7, 7, 7)
    assert ratio([1, 20, 3], [2, 40, 12]) == 0.5  # 1/2, 1/2, 1/4: a slow round is slow for both
    with pytest.raises(ValueError, match="got 0 samples"):
        spread([])
    with pytest.raises(ValueError, match="got 2 and 3 samples"):
        ratio([1, 2], [1, 2, 3])


SEVEN = [3.68, 1.72, 2.42, 1.59, 2.92, 2.39, 1.91]  # one ratio of the file that the course brings, by round


def test_of_seven_rounds_the_interval_leaves_out_the_smallest_and_the_largest_and_most_of_the_second():
    found = spread(SEVEN)
    second, third, middle, *_, sixth, _ = sorted(SEVEN)[1:]
    fifth = sorted(SEVEN)[4]
    assert found.middle == middle == 2.39
    assert found.low == pytest.approx(second + 0.2 * (third - second))
    assert found.high == pytest.approx(sixth - 0.2 * (sixth - fifth))
    assert f"{found:.1f}" == "2.4 (1.8–2.8)"


def test_an_interval_says_what_cannot_be_told_apart():
    assert spread(SEVEN).holds(2.0) and not spread(SEVEN).holds(1.7) and not spread(SEVEN).holds(3.0)
    assert Interval(0.9, 1.3, 1.8).holds(1) and Interval(1.0, 1.3, 1.8).holds(1)
    assert f"{NOTHING:.1f}" == "–" and not NOTHING.holds(1)


def test_ratios_are_taken_in_a_round_before_anything_is_left_out():
    ours, theirs = [1.0, 20.0, 3.0, 4.0, 5.0, 6.0], [2.0, 40.0, 12.0, 8.0, 10.0, 12.0]  # a slow second round
    assert ratios(ours, theirs) == [0.5, 0.5, 0.25, 0.5, 0.5, 0.5]
    assert ratio_spread(ours, theirs) == (0.5, 0.5, 0.5)
    with pytest.raises(ValueError, match="got 2 and 3 samples"):
        ratio_spread([1, 2], [1, 2, 3])


def test_how_likely_an_interval_holds_the_true_median():
    assert coverage(7, 1) == 112 / 128 and coverage(7, 2) == 70 / 128
    assert coverage(1, 0) == 0 and coverage(2, 0) == 0.5  # between two draws: one on either side
    inside = 0
    for coins in product((0, 1), repeat=5):  # 1: the round lies above the true median
        inside += 1 < sum(coins) < 4  # two at least on either side, so inside without one at either end
    assert coverage(5, 1) == inside / 2**5
    for rounds, left_out in ((7, 4), (2, 1), (3, -1), (0, 0)):
        with pytest.raises(ValueError, match="left out at either end"):
            coverage(rounds, left_out)


@pytest.mark.parametrize(
    ("ours", "theirs", "length"),
    [
        ([4, 4, 4], [1, 4, 16], 2.0),
        ([2, 2, 2], [1, 4, 16], 2**0.5),  # halfway on log axes
        ([1, 1, 1], [2, 2, 2], 1.0),  # always
        ([3, 3, 3], [2, 2, 2], None),  # never
        ([1, 3, 1], [2, 2, 9], 2 * 2 ** (math.log(1.5) / math.log(1.5 * 9))),  # the last crossing counts
    ],
)
def test_crossovers_lie_straight_between_points_on_log_axes(ours, theirs, length):
    assert measured_crossover([1, 2, 4], ours, theirs) == (length and pytest.approx(length))


@pytest.mark.parametrize("ours", [[1], [1, math.nan], [1, math.inf], [1, 0]])
def test_a_crossover_of_times_that_are_none_is_refused(ours):
    with pytest.raises(ValueError, match="expected"):
        measured_crossover([1, 2], ours, [1, 1])


# Layers


@pytest.mark.parametrize("n", [64, 100])
def test_layers_that_are_compared_do_the_same(n):
    torch.manual_seed(0)
    found = {name: build() for name, build in layers(n, d_model=24, num_heads=3, proj_dim=16).items()}
    found[STORED].load_state_dict(found[FUSED].state_dict())
    for name in (KEYS_FIRST, PUBLISHED):
        found[name].load_state_dict(found[TOKENS_FIRST].state_dict())
    x = torch.randn(2, n, 24)
    for one, other in ((STORED, FUSED), (KEYS_FIRST, TOKENS_FIRST), (PUBLISHED, TOKENS_FIRST)):
        torch.testing.assert_close(found[one](x), found[other](x), atol=1e-5, rtol=1e-4)


def test_each_does_what_its_name_says():
    stored, fused = (layers(512, 64, 2, 16)[name]().requires_grad_(False) for name in (STORED, FUSED))
    x = torch.randn(1, 512, 64)
    assert peak_bytes(stored, x) > 2 * 2 * 512 * 512 * 4 > peak_bytes(fused, x)  # two maps a head, or none
    kinds = [f"{k}, {kind}" for k in (128, 256, 512) for kind in ("stored maps", "fused")]
    assert [*blocks(1024, 64, 2)] == [STORED, FUSED, *kinds]
    attention = blocks(512, 64, 2)["256, fused"]().attention
    assert attention.E is attention.F and attention.E.weight.shape == (256, 512)


def test_linformers_take_the_products_in_the_order_of_their_names():
    sizes = cost.Sizes(64, 24, 3, 16)
    built = layers(64, 24, 3, 16)
    for name, steps in (
        (PUBLISHED, cost.compress_keys(sizes)),
        (KEYS_FIRST, cost.compress_keys(sizes, fused=True)),
        (TOKENS_FIRST, cost.compress_tokens(sizes, fused=True)),
        (SHARED, cost.compress_tokens(sizes, fused=True, shared=True)),
    ):
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            built[name]()(torch.randn(1, 64, 24))
        assert counter.get_total_flops() == cost.flops(steps)


@pytest.mark.parametrize("name", ["linformer", "linformer-pytorch"])
def test_packages_take_the_same_input(name):
    found = {full.split()[0]: build for full, build in packages(64, 24, 3, 16).items()}
    if name not in found:
        pytest.skip(f"{name} is not installed")
    assert found[name]()(torch.randn(2, 64, 24)).shape == (2, 64, 24)


def test_passes_run_what_they_say():
    layer, x = torch.nn.Linear(3, 3), torch.randn(5, 3)
    assert PASSES["forward"](layer, x)().grad_fn is None
    seen = []
    layer.weight.register_hook(seen.append)
    torch.manual_seed(0)
    upstream = torch.randn(5, 3)
    torch.manual_seed(0)
    PASSES["forward + backward"](layer, x)()
    torch.testing.assert_close(seen[0], upstream.mT @ x)
    assert layer.weight.grad is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
def test_compiled_layers_give_the_same():
    layer, x = torch.nn.Linear(3, 2), torch.randn(5, 3)
    torch.testing.assert_close(compiled(layer, x)(), layer(x).detach())


def test_without_a_compiler_of_the_system_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(modes, "compiled", lambda *_: 1 / 0)
    assert modes.can_compile.__wrapped__("cpu") is False


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_recorded_graph_keeps_its_layer_and_gives_the_same():
    layer, x = torch.nn.Linear(64, 64).cuda(), torch.randn(5, 64, device="cuda")
    expected, replay = layer(x), modes.graph(layer, x)
    del layer
    gc.collect()
    torch.cuda.empty_cache()
    torch.randn(1000, 1000, device="cuda")
    torch.testing.assert_close(replay(), expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_is_timed_to_the_end_and_its_peak_counted():
    x = torch.randn(4096, 4096, device="cuda")
    one, ten = (
        samples({"": call}, 5, "cuda")[""] for call in (lambda: x @ x, lambda: [x @ x for _ in range(10)])
    )
    assert 7 < spread(ten)[1] / spread(one)[1] < 13
    assert peak_bytes(lambda: x + 1, device="cuda") == x.nbytes


# Races


def test_who_runs_out_of_memory_is_named_and_the_others_go_on():
    variants = {
        "asks for too much": lambda: lambda: torch.empty(2**60),
        "is known to need too much": lambda: pytest.fail("it was built"),
        "fits": lambda: lambda: torch.ones(1000),
    }
    found = race.race(variants, rounds=3, needs={"is known to need too much": 2**60}, flushed=1)
    assert found["out_of_memory"] == [*variants][:2]
    assert found["bytes"] == {"fits": 4000}
    assert len(found["seconds"]["fits"]) == len(found["busy"]["fits"]) == 3


def test_other_errors_are_not_taken_for_a_lack_of_memory():
    with pytest.raises(RuntimeError, match="shapes"):
        race.race({"wrong": lambda: lambda: torch.ones(2, 3) @ torch.ones(2, 3)}, rounds=1, flushed=1)


def test_nobody_fits():
    assert race.race({"a": lambda: lambda: torch.empty(2**60)}, rounds=1, flushed=1)["seconds"] == {}


# The suite and its rows


@pytest.mark.parametrize("device", PLANS)
def test_every_job_is_one_row_of_its_own(device):
    whats = [json.dumps(what, sort_keys=True) for what, _ in jobs(PLANS[device])]
    assert len(whats) == len(set(whats)) > 20
    assert {json.loads(what)["part"] for what in whats} == {
        "ceiling",
        "table 3",
        "layer",
        "mode",
        "attention",
        "step",
    }


def test_a_gpu_is_asked_for_the_whole_of_table_3():
    assert PLANS["cuda"].table == tuple(TABLE_3)
    for n, by_k in TABLE_3.items():
        assert {int(name.split(",")[0]) for name in [*blocks(n, 12, 2)][2:]} == set(by_k)


def test_published_tables_have_a_number_for_each_length():
    assert {len(numbers) for numbers in FLASH_MB.values()} == {len(FLASH_LENGTHS)}


GOOD = {
    "part": "layer", "n": 8, "texts": 1, "pass": "forward", "dtype": "float32",
    "seconds": {"a": [1.0, 2.0], "b": [2.0, 2.0]}, "busy": {}, "bytes": {"a": 4, "b": 2},
    "out_of_memory": ["c"],
}  # fmt: skip


def test_what_is_read_off_a_row():
    assert records.check_row(GOOD) is GOOD
    assert records.speedup(GOOD, of="b", over="a") == pytest.approx((0.6, 0.75, 0.9))  # rounds 1/2 and 2/2
    assert records.slowdown(GOOD, of="b", over="a") == pytest.approx((1.2, 1.5, 1.8))
    assert records.times(GOOD, "a") == pytest.approx((1.2, 1.5, 1.8))
    assert records.surely(GOOD, of="b", over="a") == 0.6  # a fifth of the way from 0.5 to 1
    assert records.saving(GOOD, of="b", over="a") == 2
    assert records.median(GOOD, "a") == 1.5
    for missing in (
        records.surely(GOOD, "a", "c"),
        records.speedup(GOOD, "a", "c").middle,
        records.slowdown(GOOD, "a", "c").middle,
        records.times(GOOD, "c").middle,
        records.saving(GOOD, "c", "a"),
        records.median(GOOD, "c"),
    ):
        assert math.isnan(missing)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": "8"}, "n is '8', expected int"),
        ({"pass": None}, "pass is None, expected str"),
        ({"seconds": {"a": [1.0], "b": [1.0, 2.0]}}, "'a': 1, 'b': 2"),
        ({"seconds": {"a": [1.0, math.nan], "b": [1.0, 2.0]}}, "the number NaN"),
        ({"seconds": {"a": [1.0, 0.0], "b": [1.0, 2.0]}}, "the sample 0.0"),
        ({"bytes": {"c": 4}}, r"bytes of \['c'\], expected \['a', 'b'\]"),
        ({"part": "ceiling", "kind": "copy"}, "per_second is None, expected float"),
        ({"part": "ceiling", "kind": "copy", "per_second": -1.0}, "the sample -1.0"),
    ],
)
def test_a_row_that_is_not_as_it_should_be_is_refused_with_the_file_s_name(tmp_path, change, message):
    path = tmp_path / "some.json"
    path.write_text(json.dumps(provenance("a command") | {"rows": [GOOD, GOOD | change]}), encoding="utf-8")
    with pytest.raises(ValueError, match=f"some.json.*{message}"):
        records.read(path)


def test_tables_and_lines_are_read_off_the_rows():
    block = GOOD | {"part": "table 3", "n": 512, "out_of_memory": []}
    names = STORED, FUSED, "128, fused", "128, stored maps"
    block["seconds"] = dict(zip(names, ([6.0], [3.0], [2.0], [4.0]), strict=True))
    block["bytes"] = dict(zip(names, (8, 2, 4, 4), strict=True))
    longer = block | {"n": 1024, "out_of_memory": [STORED]}
    longer |= {"seconds": {FUSED: [8.0], names[2]: [2.0]}, "bytes": {FUSED: 2, names[2]: 4}}
    other = block | {"pass": "forward + backward"}
    rows = [longer, block, other]
    times = records.table_3(rows, records.speedup, STORED, "forward")
    assert [*times] == [512, 1024] and math.isnan(times[1024][128].middle)
    assert times[512] == {128: spread([3.0])}
    over_fused = records.table_3(rows, records.speedup, FUSED, "forward")
    assert over_fused == {512: {128: spread([1.5])}, 1024: {128: spread([4.0])}}
    assert records.table_3(rows, records.saving, FUSED, "forward + backward") == {512: {128: 0.5}}
    published = records.table_3(rows, records.speedup, STORED, "forward", "stored maps")
    assert published == {512: {128: spread([1.5])}, 1024: {}}
    lengths, found = records.lines(rows, "table 3", "forward", records.peak)
    assert lengths == [512, 1024] and [*found] == [*names]
    assert found[FUSED] == [2, 2] and found[STORED][0] == 8 and math.isnan(found[STORED][1])
    assert records.lines(rows, "table 3", "forward", records.median)[1][names[2]] == [2.0, 2.0]


def test_crossings_and_floors_of_recorded_layers():
    sizes = {"part": "layer", "d_model": 16, "num_heads": 2, "proj_dim": 4, "bytes": {"a": 1, "b": 1}}
    short = GOOD | sizes | {"n": 8, "seconds": {"a": [2.0], "b": [1.0]}}
    middle = GOOD | sizes | {"n": 16, "seconds": {"a": [2.0], "b": [4.0]}}
    longest = GOOD | sizes | {"n": 32, "seconds": {"a": [2.0]}, "bytes": {"a": 1}, "out_of_memory": ["b"]}
    ceilings = [
        {"part": "ceiling", "kind": "matmul", "dtype": "float32", "per_second": 3e9},
        {"part": "ceiling", "kind": "copy", "per_second": 1e9},
    ]
    rows = [longest, middle, short]
    assert records.crossing(rows, "forward", "a", "b") == pytest.approx(3 * (8 * 2**0.5,))
    assert records.crossing(rows, "forward", "b", "a") is None
    found = records.ratios(rows, "layer", "forward", records.speedup, "a", "b")
    assert found[:2] == [(0.5,) * 3, (2.0,) * 3] and math.isnan(found[2].middle)
    content = {"machine": {"gpu": None, "processor": "P"}, "rows": rows + ceilings}
    expected = [cost.Sizes(n, 16, 2, 4) for n in (8, 16, 32)]
    device = cost.Device("P", {4: 3e9}, 1e9)
    assert records.floors(content, cost.compress_tokens, shared=True) == [
        cost.floor_seconds(cost.compress_tokens(size, shared=True), device) for size in expected
    ]


def test_a_crossing_is_as_sure_as_the_ratios_around_it():
    layer = {"part": "layer", "bytes": {"a": 1, "b": 1}, "out_of_memory": []}
    short = GOOD | layer | {"n": 8, "seconds": {"a": [4.0, 4.0, 4.0], "b": [1.0, 1.0, 1.0]}}
    ends = GOOD | layer | {"n": 128, "seconds": {"a": [1.0, 1.0, 1.0], "b": [2.0, 4.0, 8.0]}}
    low, middle, high = records.crossing([short, ends], "forward", "a", "b")
    assert middle == pytest.approx(32)  # halfway from 4 to 1/4 on log axes
    early, late = 0.4 * 1 / 4 + 0.6 / 8, 0.4 / 4 + 0.6 / 2  # 20th and 80th percentile of a / b at the end
    for found, share in ((low, early), (high, late)):
        assert found == pytest.approx(8 * 16 ** (math.log(4) / math.log(4 / share)))
    unsure = GOOD | layer | {"n": 128, "seconds": {"a": [1.0, 1.0, 1.0], "b": [2.0, 4.0, 0.1]}}
    assert records.crossing([short, unsure], "forward", "a", "b").high == math.inf


def test_a_recorded_machine_is_a_device_of_the_cost_model():
    ceilings = [
        {"part": "ceiling", "kind": "matmul", "dtype": "float32", "per_second": 5.0},
        {"part": "ceiling", "kind": "matmul", "dtype": "bfloat16", "per_second": 9.0},
        {"part": "ceiling", "kind": "copy", "per_second": 2.0},
    ]
    device = records.device_of({"machine": {"gpu": "A GPU", "processor": "P"}, "rows": ceilings})
    assert device == ("A GPU", {4: 5.0, 2: 9.0}, 2.0)


def test_a_gpu_s_file_is_found_when_it_is_added_and_no_other_is_taken_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr(records.results, "RESULTS", tmp_path)
    row = {"part": "ceiling", "kind": "copy", "per_second": 2.0}
    on_gpu = provenance("a command")
    on_gpu["machine"] = on_gpu["machine"] | {"gpu": "A GPU"}
    (tmp_path / "10_cpu.json").write_text(
        json.dumps(provenance("a command") | {"rows": [row]}), encoding="utf-8"
    )
    (tmp_path / "08_other.json").write_text(json.dumps(on_gpu | {"rows": [{"loss": 1.0}]}), encoding="utf-8")
    assert records.recorded_gpu() is None
    assert records.ceiling(records.recorded_cpu()["rows"], "copy") == 2
    (tmp_path / "a_gpu.json").write_text(json.dumps(on_gpu | {"rows": [row]}), encoding="utf-8")
    assert records.recorded_gpu()["machine"]["gpu"] == "A GPU"


def test_the_file_that_the_course_brings_holds_every_row_of_its_plan():
    content = records.recorded_cpu()
    wanted = [what for what, _ in jobs(PLANS["cpu"])]
    assert len(content["rows"]) == len(wanted)
    assert all(any(what.items() <= row.items() for row in content["rows"]) for what in wanted)
    assert {len(s) for row in content["rows"] for s in row.get("seconds", {}).values()} == {
        PLANS["cpu"].rounds
    }


def test_chapter_10_shows_a_gpu_s_file_once_it_is_there(tmp_path, monkeypatch, capsys):
    cells = nbformat.read(ROOT / "chapters/10_benchmark.ipynb", as_version=4).cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    needed = "import math", "import aligned", "overview("
    wanted = [source for source in sources if any(words in source for words in needed)]
    assert len(wanted) == 4
    content = records.recorded_cpu()
    command = content["command"].replace("cpu", "cuda")
    on_gpu = content | {"machine": content["machine"] | {"gpu": "A GPU"}, "command": command}
    out_of_memory = {"seconds": {}, "busy": {}, "bytes": {}, "out_of_memory": [STORED]}
    on_gpu["rows"] = [row | out_of_memory if row.get("n") == 4096 else row for row in content["rows"]]
    (tmp_path / "gpu.json").write_text(json.dumps(on_gpu), encoding="utf-8")
    monkeypatch.setattr(records.results, "RESULTS", tmp_path)
    names = {"content": content}
    for source in wanted:
        exec(source, names)
    assert names["gpu"]["machine"]["gpu"] == "A GPU"
    exec("overview(gpu)", names)
    assert "faster than fused exact, k =" in capsys.readouterr().out


# The command


TINY = {"d_model": 16, "num_heads": 2, "proj_dim": 8}
SMALL = replace(
    PLANS["cpu"],
    table=(),
    lengths=(32, 64),
    modes=(),
    layer=TINY,
    encoder=TINY | {"seq_len": 32, "num_layers": 1},
    rounds=1,
    side=256,
    numbers=2**16,
    flushed=1,
)


@pytest.fixture
def small(monkeypatch):
    """The command with layers so small that all is measured in seconds."""
    monkeypatch.setattr(results, "sources", lambda *_: {})  # reads every file of the package
    monkeypatch.setattr(results, "changed", lambda *_: [])
    monkeypatch.setitem(PLANS, "cpu", SMALL)
    return SMALL


def test_the_command_writes_every_row_and_refuses_to_write_over_a_file(small, tmp_path, capsys):
    words = ["--device", "cpu", "--out", str(tmp_path / "new" / "b.json"), "--longest", "32"]
    assert main(words) == 0
    content = records.read(tmp_path / "new" / "b.json")
    assert [row["part"] for row in content["rows"]] == ["ceiling"] * 2 + ["layer"] * 2 + ["attention", "step"]
    assert content["command"].endswith("--device cpu --out b.json --longest 32")
    capsys.readouterr()
    assert main(words) == 1
    assert "b.json is there already; --resume goes on with it" in capsys.readouterr().err


def test_the_file_may_lie_at_home(small, home):
    assert main(["--device", "cpu", "--out", "~/new/b.json", "--longest", "32"]) == 0
    assert records.read(home / "new" / "b.json")["command"].endswith("--out b.json --longest 32")


def test_an_interrupt_keeps_the_rows_and_resume_measures_the_rest(small, tmp_path, capsys, monkeypatch):
    words = ["--device", "cpu", "--out", str(tmp_path / "b.json")]
    turns = []

    def interrupted(*arguments):
        turns.append(arguments)
        if len(turns) == 3:
            raise KeyboardInterrupt
        return race.race(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr("linformer_from_scratch.benchmark.suite.race", interrupted)
        assert main(words) == 130
    assert "4 rows are in" in capsys.readouterr().out
    kept = records.read(tmp_path / "b.json")["rows"]
    assert main([*words, "--resume"]) == 0
    rows = records.read(tmp_path / "b.json")["rows"]
    assert rows[:4] == kept and len(rows) == len(list(jobs(small)))


def test_rows_of_another_origin_are_not_mixed_into_a_file(small, tmp_path, capsys):
    words = ["--device", "cpu", "--out", str(tmp_path / "b.json"), "--longest", "32"]
    assert main(words) == 0
    before = (tmp_path / "b.json").read_text(encoding="utf-8")
    assert main([*words, "--resume"]) == 0 and main([*words, "--resume", "--rounds", "3"]) == 1
    assert "measured with command" in capsys.readouterr().err
    (tmp_path / "b.json").write_text(before.replace('"gpu": null', '"gpu": "A GPU"'), encoding="utf-8")
    assert main([*words, "--resume"]) == 1
    assert "'A GPU'" in capsys.readouterr().err


def test_a_job_that_fails_costs_its_own_row_only(small, tmp_path, capsys, monkeypatch):
    def broken(*_):
        raise RuntimeError("no such kernel")

    words = ["--device", "cpu", "--out", str(tmp_path / "b.json"), "--longest", "32"]
    with monkeypatch.context() as patched:
        patched.setattr(suite, "_race_attention", broken)
        assert main(words) == 1
    assert "no row: no such kernel" in capsys.readouterr().err
    assert main([*words, "--resume"]) == 0
    parts = [row["part"] for row in records.read(tmp_path / "b.json")["rows"]]
    assert parts.count("attention") == 1 and len(parts) == 6


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_benchmark_keeps_its_rows(tmp_path):
    path = tmp_path / "b.json"
    plan = replace(SMALL, rounds=20_000)  # a row of minutes, once it is begun
    code = f"""
from linformer_from_scratch.experiments.benchmark.command import main
from linformer_from_scratch.benchmark.suite import Plan
main(["--device", "cpu", "--out", {str(path)!r}], {{"cpu": {plan!r}}})
"""
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        said = [run.stdout.readline() for _ in range(3)]  # two ceilings, and a layer that is not done
    finally:
        run.send_signal(signal.SIGKILL)
        run.communicate()
    assert all(said)
    assert [row["part"] for row in records.read(path)["rows"]] == ["ceiling"] * 2


def test_the_help_is_there_without_docstrings():
    path = Path(sys.modules[main.__module__].__file__)
    code = compile(
        path.read_text(encoding="utf-8"), path, "exec", dont_inherit=True, optimize=2
    )  # python -OO
    exec(code, names := {"__name__": "without_docstrings"})
    said = names["parser"]().format_help()
    assert "Measure everything that chapter 10 shows" in said and "turns of each variant" in said


def test_a_device_that_is_not_there_and_a_foreign_file_are_refused_in_one_sentence(tmp_path, capsys):
    if not torch.cuda.is_available():
        assert main(["--device", "cuda", "--out", str(tmp_path / "b.json")]) == 1
        assert "PyTorch finds no GPU here" in capsys.readouterr().err
    (tmp_path / "b.json").write_text("{}", encoding="utf-8")
    assert main(["--device", "cpu", "--out", str(tmp_path / "b.json"), "--resume"]) == 1
    assert capsys.readouterr().err == "b.json is no result file: it has no command\n"


def test_the_published_long_range_tables_have_the_means_that_were_published():
    means = {name: round(sum(row) / len(LRA_TASKS), 2) for name, row in LRA.items()}
    assert means == LRA_MEANS | {"Sinkhorn": 51.48}  # the published one is not the mean of its row
    again = {name: round(sum(row) / len(LRA_TASKS), 2) for name, row in LRA_XIONG.items()}
    assert again == {"Transformer": 58.77, "Linformer": 55.59}


# What nobody should type, and what files should not hold


NOT_COUNTS = ("0", "-1", "1.5", "nan", "x", "", "1e3", "9" * 5000, "0x10", "½")
WORDS = [
    *([f"--{name}={word}"] for name in ("rounds", "longest", "threads") for word in NOT_COUNTS),
    *([f"--minutes={word}"] for word in ("0", "-1", "nan", "inf", "x", "", "-inf", "1e999")),
    *(["--device", word] for word in ("mps", "gpu", "CPU", "cuda:0", "cpu,cuda", "", "xla", "cpu ")),
    ["--threads", str(10**9)],
    ["--longest", "127"],
    ["--fast"],
    ["more"],
    ["--resume=yes"],
]


@pytest.mark.parametrize("words", WORDS, ids=lambda words: " ".join(words)[:30])
def test_a_wrong_word_is_one_sentence_and_nothing_is_measured(tmp_path, capsys, words):
    assert main(["--device", "cpu", "--out", str(tmp_path / "b.json"), *words]) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and len(said.err) < 300
    assert os.listdir(tmp_path) == []


def test_without_a_file_to_write_nothing_is_measured(capsys):
    assert main(["--device", "cpu"]) == 1
    assert capsys.readouterr().err == "the following arguments are required: --out\n"


PLACES = ["", ".", "/", "/dev/null", "/dev/full", "/proc/b.json", "/proc/new/b.json", "/sys/b.json"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and /dev")
@pytest.mark.parametrize("place", [*PLACES, "file/b.json", "folder", "x" * 300, "pipe", "loop"])
@pytest.mark.parametrize("resume", [[], ["--resume"]], ids=["new", "resumed"])
def test_where_no_file_can_be_nothing_is_measured(small, tmp_path, monkeypatch, capsys, place, resume):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("folder").mkdir()
    os.mkfifo("pipe")
    Path("loop").symlink_to("loop")
    before = sorted(os.listdir())
    assert main(["--device", "cpu", "--out", place, *resume]) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    assert sorted(os.listdir()) == before and Path("/dev/full").is_char_device()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_closed_is_found_out_before_anything_is_measured(tmp_path, capsys):
    tmp_path.chmod(0o500)
    assert main(["--device", "cpu", "--out", str(tmp_path / "b.json")]) == 1
    said = capsys.readouterr()
    assert said.out == "" and "Permission denied" in said.err
    tmp_path.chmod(0o700)


def test_a_full_disk_is_found_out_before_anything_is_measured(tmp_path, capsys, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(["--device", "cpu", "--out", str(tmp_path / "b.json")]) == 1
    said = capsys.readouterr()
    assert said.out == "" and "No space left on device" in said.err and os.listdir(tmp_path) == []


def test_a_disk_that_fills_up_costs_one_row_and_says_so(small, tmp_path, capsys, monkeypatch):
    words = ["--device", "cpu", "--out", str(tmp_path / "b.json"), "--longest", "32"]
    fsync, turns = os.fsync, []

    def full(number):
        turns.append(number)
        if len(turns) == 3:  # the look whether it can be written, one row, and another
            raise OSError(28, "No space left on device")
        fsync(number)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        assert main(words) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert len(records.read(tmp_path / "b.json")["rows"]) == 1
    assert main([*words, "--resume"]) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"rows": None}, {"rows": {}}, {"rows": "[]"}, {"rows": [None]}, {"rows": [[]]}, {"rows": ["x"]},
        {"rows": [{}]}, {"machine": None}, {"machine": []}, {"versions": 3}, {"command": None},
        {"date": 2026},
        {"version": "1"}, {"version": None}, {"version": 99}, {"version": [1]},
        {"rows": [{"part": "ceiling", "kind": "copy", "per_second": "banana"}]},
        {"rows": [{"part": "ceiling", "kind": "copy", "per_second": math.nan}]},
        {"rows": [{"part": "ceiling", "kind": "copy", "per_second": 1.0}] * 2},
    ],
    ids=lambda change: str(change)[:40],
)  # fmt: skip
def test_a_file_with_a_wrong_part_is_named_and_not_resumed(small, tmp_path, capsys, change):
    path = tmp_path / "b.json"
    words = ["--device", "cpu", "--out", str(path), "--longest", "32"]
    command = f"python -m linformer_from_scratch.benchmark {' '.join([*words[:3], 'b.json', *words[4:]])}"
    path.write_text(json.dumps(provenance(command) | {"rows": []} | change), encoding="utf-8")
    before = path.read_bytes()
    assert main([*words, "--resume"]) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and said.err.startswith("b.json")
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["", "{", "[" * 10**5, "1e400", "\0", "9" * 5000])
def test_a_file_that_is_no_json_is_named_and_left_alone(tmp_path, capsys, text):
    (tmp_path / "b.json").write_text(text, encoding="utf-8")
    assert main(["--device", "cpu", "--out", str(tmp_path / "b.json"), "--resume"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("b.json is no result file: ") and said.count("\n") == 1
    assert (tmp_path / "b.json").read_text(encoding="utf-8") == text


def test_two_runs_do_not_write_into_one_file(small, tmp_path, capsys):
    words = ["--device", "cpu", "--out", str(tmp_path / "b.json"), "--longest", "32"]
    with locked(tmp_path / "b.json.run"):
        assert main(words) == 1
    said = capsys.readouterr()
    assert said.out == "" and "in use by another process" in said.err and said.err.count("\n") == 1
    assert main(words) == 0


def test_what_a_killed_run_left_unfinished_is_cleaned_up_and_a_neighbour_s_is_not(small, tmp_path):
    words = ["--device", "cpu", "--out", str(tmp_path / "b[1].json"), "--longest", "32"]
    for name in ("b[1].json.123.unfinished", "c.json.5.unfinished", "b1.json.7.unfinished"):
        (tmp_path / name).touch()
    assert main(words) == 0
    kept = ["b1.json.7.unfinished", "b[1].json", "c.json.5.unfinished"]
    assert sorted(os.listdir(tmp_path)) == kept


# A limit of time


def test_a_budget_leaves_out_what_would_take_longer(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(budget.time, "monotonic", lambda: now[0])
    limit = budget.Budget(minutes=1)
    what = {"part": "layer", "pass": "forward", "n": 128}
    assert limit.allows(what)
    limit.learn(
        what | {"seconds": {"a": [1.0, 1.0], "b": [0.5, 0.5]}}, seconds=9.5
    )  # 7.5 s computing, 2 building
    assert limit.allows(what | {"n": 256}) and not limit.allows(what | {"n": 512})  # 32 s, 122 s
    assert limit.allows(what | {"n": 512, "pass": "backward"})  # another kind
    now[0] = 60.0
    assert not limit.allows({"part": "step"}) and budget.Budget(None).allows(what)


def test_what_a_budget_leaves_out_is_said_and_resume_measures_it(small, tmp_path, capsys, monkeypatch):
    words = ["--device", "cpu", "--out", str(tmp_path / "b.json")]
    with monkeypatch.context() as patched:
        patched.setattr(budget.Budget, "allows", lambda _, what: what.get("n", 0) < 64)
        assert main([*words, "--minutes", "8"]) == 0
    said = capsys.readouterr().out
    assert (
        "8 minutes are spent, 3 of 9 rows are left out; --resume goes on." in said and "complete" not in said
    )
    short = records.read(tmp_path / "b.json")["rows"]
    assert {row.get("n") for row in short} == {None, 32}
    assert main([*words, "--minutes", "9", "--resume"]) == 0
    assert "9 rows, complete" in capsys.readouterr().out
    assert records.read(tmp_path / "b.json")["rows"][:6] == short


def test_by_its_floors_a_gpu_of_2020_is_done_in_eight_minutes():
    plan, per_second, bytes_per_second = PLANS["cuda"], 312e12, 1.5e12  # an A100: bfloat16, and its memory
    turns, seconds = plan.rounds + budget.TURNS, 0.0
    for what in (what for what, _ in jobs(plan) if what["part"] in ("table 3", "layer", "attention")):
        heads, d_head = what["num_heads"], what.get("d_head") or what["d_model"] // what["num_heads"]
        maps = what["texts"] * heads * what["n"] ** 2
        stored = 8 * maps * 2 / bytes_per_second if 4 * maps < 40e9 else 0.0  # else it does not fit
        passes = 3.5 if "backward" in what["pass"] else 1
        seconds += turns * passes * (4 * maps * d_head / per_second + stored)
    assert seconds * 2 < MINUTES * 60  # half of the best speed


def test_the_makefile_and_the_chapter_say_the_command_that_a_gpu_is_measured_with():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"$(BIN)/{on_a_gpu()}\n" in makefile
    assert parser().parse_args(on_a_gpu().split()[3:]).minutes == MINUTES
    cells = nbformat.read(ROOT / "chapters/10_benchmark.ipynb", as_version=4).cells
    (cell,) = [cell for cell in cells if cell.cell_type == "code" and "to_paste()" in cell.source]
    assert "".join(output.text for output in cell.outputs) == to_paste() + "\n"
    assert on_a_gpu("course/") in to_paste()


# The file that a GPU's owner sends


@pytest.fixture
def complete(tmp_path):
    """A file as the course brings it, and what is wanted of it."""
    content = records.recorded_cpu()
    wanted = [what for what, _ in jobs(PLANS["cpu"])]

    def checked(change=lambda rows: None):
        rows = json.loads(json.dumps(content["rows"]))
        change(rows)
        (tmp_path / "b.json").write_text(json.dumps(content | {"rows": rows}), encoding="utf-8")
        return check_file(tmp_path / "b.json", wanted, PLANS["cpu"].rounds)

    return checked


def too_fast(rows):
    for found in rows[-3]["seconds"].values():
        found[:] = [s / 1e3 for s in found]


def fewer(rows):
    for field in ("seconds", "busy"):
        for found in rows[2][field].values():
            found.pop()


def without_opponent(rows):
    for field in ("seconds", "busy", "bytes"):
        del rows[2][field][FUSED]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.pop(), "1 of 43 rows are missing, the first is {'part': 'step'"),
        (lambda rows: rows.append(rows[4] | {"n": 77}), "'n': 77.* is not asked for"),
        (lambda rows: rows[0].update(per_second=3.0), r"matmul is 3 per second, expected 1e\+06 to 1e\+17"),
        (without_opponent, "lacks fused exact"),
        (lambda rows: rows[2]["bytes"].update({STORED: 5}), "held 5 bytes, expected 25,165,824 or more"),
        (fewer, "6 rounds, expected 7"),
        (too_fast, "attention, n = 2,048, forward: stored maps took .* s, expected .* or more"),
        (lambda rows: rows.append(rows[0]), "row 44: it is the second of"),
    ],
    ids=["missing", "foreign", "ceiling", "no opponent", "bytes", "rounds", "too fast", "twice"],
)  # fmt: skip
def test_a_file_is_checked_before_it_is_passed_on(complete, change, message):
    assert len(complete()["rows"]) == 43
    with pytest.raises(ValueError, match=rf"^b\.json.*{message}"):
        complete(change)


def test_a_cpu_s_file_of_a_machine_with_a_gpu_is_not_taken_for_the_gpu_s(tmp_path, monkeypatch):
    content = records.recorded_cpu()
    there = content | {"machine": content["machine"] | {"gpu": "A GPU"}}
    (tmp_path / "mine.json").write_text(json.dumps(there), encoding="utf-8")
    monkeypatch.setattr(records.results, "RESULTS", tmp_path)
    assert records.recorded_gpu() is None
    assert records.device_of(there).name == content["machine"]["processor"]


def test_who_runs_out_of_memory_in_a_later_round_is_named_and_the_others_keep_their_rounds():
    turns = iter(range(9))

    def grows():
        if next(turns) == 4:  # set up, weighed, warmed up, a round, and the next
            raise MemoryError
        return torch.ones(10)

    found = race.race({"grows": lambda: grows, "fits": lambda: lambda: torch.ones(1000)}, rounds=5, flushed=1)
    assert found["out_of_memory"] == ["grows"] and found["bytes"] == {"fits": 4000}
    assert {name: len(s) for name, s in found["seconds"].items()} == {"fits": 5} and found["busy"].keys() == {
        "fits"
    }


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError(
            "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"
        ),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
    ids=str,
)
def test_a_lack_of_memory_is_known_by_each_of_its_names(error):
    def lacks():
        raise error

    assert race.race({"a": lambda: lacks}, rounds=1, flushed=1)["out_of_memory"] == ["a"]
    with pytest.raises(type(error)):
        samples({"a": lacks}, rounds=1)


@pytest.mark.parametrize(
    "change",
    [
        {"n": True}, {"n": 0}, {"n": 8.0}, {"texts": -1}, {"dtype": "int8"}, {"d_model": "x", "n": -1},
        {"d_model": None}, {"d_model": [1]}, {"part": 5}, {"seconds": None}, {"seconds": []},
        {"seconds": {"a": "banana", "b": "banana"}}, {"seconds": {"a": ["banana", 1.0], "b": [1.0, 1.0]}},
        {"seconds": {"a": [], "b": []}}, {"seconds": {"a": [True, 1.0], "b": [1.0, 1.0]}},
        {"seconds": {"a": None, "b": None}}, {"seconds": {"a": [[1.0], 1.0], "b": [1.0, 1.0]}},
        {"seconds": {}, "bytes": {}, "out_of_memory": []}, {"seconds": {"a": [1.0, -1.0], "b": [1.0, 1.0]}},
        {"busy": {"z": [1.0]}}, {"busy": {"a": [-1.0]}}, {"busy": {"a": "x"}}, {"busy": None},
        {"bytes": {"a": "4"}}, {"bytes": {"a": -4}}, {"bytes": {"a": 1.5}}, {"bytes": {"a": None}},
        {"out_of_memory": ["a"]}, {"out_of_memory": [1]}, {"out_of_memory": "c"}, {"out_of_memory": [None]},
        {"part": "ceiling", "kind": "copy", "per_second": "banana"},
        {"part": "ceiling", "kind": "copy", "per_second": True},
    ],
    ids=str,
)  # fmt: skip
def test_a_row_of_other_kinds_is_refused_in_a_sentence(change):
    with pytest.raises(ValueError, match=r"^a row.* (expected|are out of memory)") as found:
        records.check_row(GOOD | change)
    assert len(str(found.value)) < 200
