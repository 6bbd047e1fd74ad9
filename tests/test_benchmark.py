"""benchmark/: seconds and bytes of calls whose cost is known, and a command that loses nothing."""

import copy
import json
import math
import os
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from unittest.mock import Mock

import nbformat
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from linformer_from_scratch import benchmark, cost
from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.benchmark import ceilings, command, matmul_ceiling, peak_bytes, race, spread
from linformer_from_scratch.benchmark import layers as built_layers
from linformer_from_scratch.benchmark import records as files
from linformer_from_scratch.benchmark.command import MINUTES, main, on_a_gpu, parser, to_paste
from linformer_from_scratch.benchmark.layers import FUSED, KEYS_FIRST, PUBLISHED, STORED, TOKENS_FIRST, blocks
from linformer_from_scratch.benchmark.memory import available_bytes
from linformer_from_scratch.benchmark.modes import PASSES, compiled
from linformer_from_scratch.benchmark.published import FLASH_MB, LRA, LRA_MEANS, LRA_TASKS, LRA_XIONG, TABLE_3
from linformer_from_scratch.benchmark.statistics import NOTHING, Interval, coverage, ratio_spread, ratios
from linformer_from_scratch.benchmark.suite import PLANS, jobs
from linformer_from_scratch.common.files import locked
from linformer_from_scratch.common.memory import is_out_of_memory
from linformer_from_scratch.common.rows import provenance
from linformer_from_scratch.course.recorded import benchmark as records

ROOT = Path(__file__).parents[1]

# Time


def test_a_slow_call_takes_longer_and_every_call_has_its_turns():
    turns = []
    calls = {"a": lambda: (turns.append("a"), time.sleep(0.02)), "b": lambda: turns.append("b")}
    seconds = benchmark.samples(calls, rounds=3)
    assert min(seconds["a"]) > 0.019 > max(seconds["b"])
    assert [len(found) for found in seconds.values()] == [3, 3]
    assert sorted(turns) == ["a"] * 4 + ["b"] * 4  # a warm-up, and three rounds


@pytest.mark.parametrize("pauses", [[0.5, 0], [0, 0, 0, 0.5]], ids=["the warm-up", "one slow round of three"])
def test_what_is_slow_once_does_not_count(pauses):
    rounds, pauses = len(pauses) - 1, iter(pauses)
    assert benchmark.median_seconds({"a": lambda: time.sleep(next(pauses))}, rounds)["a"] < 0.25


def test_the_order_of_turns_is_shuffled():
    turns = []
    benchmark.samples({name: lambda name=name: turns.append(name) for name in "abcd"}, rounds=9)
    rounds = {tuple(turns[i : i + 4]) for i in range(0, len(turns), 4)}
    assert len(rounds) > 1 and all(sorted(one) == list("abcd") for one in rounds)


def test_what_comes_before_a_turn_is_not_timed():
    turns = []
    before = lambda: (turns.append("before"), time.sleep(0.05))  # noqa: E731
    seconds = benchmark.samples({"a": lambda: turns.append("a")}, rounds=2, before=before)
    assert turns == ["before", "a"] * 3 and max(seconds["a"]) < 0.04


def test_busy_seconds_leave_out_what_a_call_only_waits():
    calls = {"waits": lambda: time.sleep(0.05), "works": lambda: sum(range(10**6))}
    wall, busy = (benchmark.median_seconds(calls, rounds=3, busy=busy) for busy in (False, True))
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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_operating_system_sees_the_same_peak_in_a_fresh_process_and_nothing_is_written_to_the_terminal():
    fresh = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, check=True, encoding="utf-8")
    q, k, v = torch.randn(3, 4, 2048, 64)
    assert int(fresh.stdout) == pytest.approx(peak_bytes(scaled_dot_product_attention, q, k, v), rel=0.05)
    assert fresh.stderr == ""


# Ceilings


def test_ceilings_count_two_operations_a_multiply_add_and_bytes_both_ways(monkeypatch):
    def some_seconds(calls, rounds, device):
        for call in calls.values():
            call()
        return {name: [(3.0, 0.75), (1.0, 0.5), (2.0, 0.25)] for name in calls}  # the best counts

    monkeypatch.setattr(ceilings, "both_clocks", some_seconds)
    monkeypatch.setitem(ceilings.SIDE, "cpu", 64)
    assert matmul_ceiling() == matmul_ceiling(torch.bfloat16) == 2 * ceilings.SIDE["cpu"] ** 3
    assert benchmark.copy_ceiling(numbers=1009) == 2 * 4 * 1009
    assert matmul_ceiling(busy=True) == 4 * matmul_ceiling()


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


# Statistics


def test_spread_and_ratio_are_those_of_the_rounds():
    assert spread([5, 1, 3, 2, 100, 4]) == (2, 3.5, 5)
    assert spread([7.0]) == (7, 7, 7)
    assert ratios([1, 20, 3], [2, 40, 12]) == [0.5, 0.5, 0.25]  # a slow round is slow for both
    assert benchmark.ratio([1, 20, 3], [2, 40, 12]) == 0.5
    assert ratio_spread([1, 20, 3, 4, 5, 6], [2, 40, 12, 8, 10, 12]) == (0.5, 0.5, 0.5)


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


def test_how_likely_an_interval_holds_the_true_median():
    assert coverage(7, 1) == 112 / 128 and coverage(7, 2) == 70 / 128
    assert coverage(1, 0) == 0 and coverage(2, 0) == 0.5  # between two draws: one on either side
    inside = 0
    for coins in product((0, 1), repeat=5):  # 1: the round lies above the true median
        inside += 1 < sum(coins) < 4  # two at least on either side, so inside without one at either end
    assert coverage(5, 1) == inside / 2**5


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
    assert benchmark.measured_crossover([1, 2, 4], ours, theirs) == (length and pytest.approx(length))


NO_NUMBERS = {
    "rounds is 0": lambda: benchmark.median_seconds({"a": int}, rounds=0),
    "got 0 samples": lambda: spread([]),
    "got 2 and 3 samples": lambda: benchmark.ratio([1, 2], [1, 2, 3]),
    "left out at either end": lambda: coverage(2, 1),
    "2 lengths, 1 and 2 times": lambda: benchmark.measured_crossover([1, 2], [1], [1, 1]),
    "a time of nan, expected": lambda: benchmark.measured_crossover([1, 2], [1, math.nan], [1, 1]),
}


@pytest.mark.parametrize("message", NO_NUMBERS)
def test_what_gives_no_number_is_refused(message):
    with pytest.raises(ValueError, match=message):
        NO_NUMBERS[message]()


# Layers


def test_layers_that_are_compared_do_the_same():
    torch.manual_seed(0)
    built = {name: build() for name, build in built_layers.layers(101, 24, 3, 17).items()}
    built[STORED].load_state_dict(built[FUSED].state_dict())
    for name in (KEYS_FIRST, PUBLISHED):
        built[name].load_state_dict(built[TOKENS_FIRST].state_dict())
    x = torch.randn(2, 101, 24)
    for one, other in ((STORED, FUSED), (KEYS_FIRST, TOKENS_FIRST), (PUBLISHED, TOKENS_FIRST)):
        torch.testing.assert_close(built[one](x), built[other](x), atol=1e-5, rtol=1e-4)


def test_each_does_what_its_name_says():
    built = built_layers.layers(512, 64, 2, 16)
    stored, fused = (built[name]().requires_grad_(False) for name in (STORED, FUSED))
    x = torch.randn(1, 512, 64)
    assert peak_bytes(stored, x) > 2 * 2 * 512 * 512 * 4 > peak_bytes(fused, x)  # two maps a head, or none
    kinds = [f"{k}, {kind}" for k in (128, 256, 512) for kind in ("stored maps", "fused")]
    assert [*blocks(1024, 64, 2)] == [STORED, FUSED, *kinds]
    attention = blocks(512, 64, 2)["256, fused"]().attention
    assert attention.E is attention.F and attention.E.weight.shape == (256, 512)


def test_linformers_take_the_products_in_the_order_of_their_names():
    sizes = cost.Sizes(64, 24, 3, 16)
    built = built_layers.layers(64, 24, 3, 16)
    for name, steps in (
        (PUBLISHED, cost.compress_keys(sizes)),
        (KEYS_FIRST, cost.compress_keys(sizes, fused=True)),
        (TOKENS_FIRST, cost.compress_tokens(sizes, fused=True)),
        (built_layers.SHARED, cost.compress_tokens(sizes, fused=True, shared=True)),
    ):
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            built[name]()(torch.randn(1, 64, 24))
        assert counter.get_total_flops() == cost.flops(steps)


@pytest.mark.parametrize("name", ["linformer", "linformer-pytorch"])
def test_packages_take_the_same_input(name):
    builders = {full.split()[0]: build for full, build in built_layers.packages(64, 24, 3, 16).items()}
    if name not in builders:
        pytest.skip(f"{name} is not installed")
    assert builders[name]()(torch.randn(2, 64, 24)).shape == (2, 64, 24)


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


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Skipping")  # the compiler's own
def test_compiled_layers_give_the_same():
    layer, x = torch.nn.Linear(3, 2), torch.randn(5, 3)
    torch.testing.assert_close(compiled(layer, x)(), layer(x).detach())


def test_without_a_compiler_of_the_system_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(benchmark.modes, "compiled", lambda *_: 1 / 0)
    assert benchmark.modes.can_compile.__wrapped__("cpu") is False


# Races


def test_who_runs_out_of_memory_is_named_and_the_others_go_on():
    variants = {
        "asks for too much": lambda: lambda: torch.empty(2**60),
        "is known to need too much": lambda: pytest.fail("it was built"),
        "fits": lambda: lambda: torch.ones(1000),
    }
    row = race.race(variants, rounds=3, needs={"is known to need too much": 2**60}, flushed=1)
    assert row["out_of_memory"] == [*variants][:2]
    assert row["bytes"] == {"fits": 4000}
    assert len(row["seconds"]["fits"]) == len(row["busy"]["fits"]) == 3


# The suite and its rows


@pytest.mark.parametrize("device", PLANS)
def test_every_job_is_one_row_of_its_own(device):
    whats = [json.dumps(what, sort_keys=True) for what, _ in jobs(PLANS[device])]
    assert len(whats) == len(set(whats)) > 20
    parts = {json.loads(what)["part"] for what in whats}
    assert parts == {"ceiling", "table 3", "layer", "mode", "attention", "step"}


def test_a_gpu_is_asked_for_the_whole_of_table_3():
    assert PLANS["cuda"].table == tuple(TABLE_3)
    for n, by_k in TABLE_3.items():
        assert {int(name.split(",")[0]) for name in [*blocks(n, 12, 2)][2:]} == set(by_k)


GOOD = {
    "part": "layer", "n": 8, "texts": 1, "pass": "forward", "dtype": "float32",
    "seconds": {"a": [1.0, 2.0], "b": [2.0, 2.0]}, "busy": {}, "bytes": {"a": 4, "b": 2},
    "out_of_memory": ["c"],
}  # fmt: skip


def test_what_is_read_off_a_row():
    assert files.check_row(GOOD) is GOOD
    assert records.speedup(GOOD, of="b", over="a") == pytest.approx((0.6, 0.75, 0.9))  # rounds 1/2 and 2/2
    assert records.slowdown(GOOD, of="b", over="a") == pytest.approx((1.2, 1.5, 1.8))
    assert records.times(GOOD, "a") == pytest.approx((1.2, 1.5, 1.8))
    assert records.surely(GOOD, of="b", over="a") == 0.6  # a fifth of the way from 0.5 to 1
    assert records.saving(GOOD, of="b", over="a") == 2
    missing = records.speedup(GOOD, "a", "c"), records.slowdown(GOOD, "a", "c"), records.times(GOOD, "c")
    assert all(math.isnan(interval.middle) for interval in missing)
    assert math.isnan(records.surely(GOOD, "a", "c")) and math.isnan(records.saving(GOOD, "c", "a"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": "8"}, "row 2: its n is '8', expected int"),
        ({"seconds": {"a": [1.0], "b": [1.0, 2.0]}}, "'a': 1, 'b': 2.* expected equal, non-zero counts"),
        ({"seconds": {"a": [1.0, 0.0], "b": [1.0, 2.0]}}, "a has the samples .*, expected finite numbers"),
        ({"seconds": {"a": "banana", "b": [1.0, 2.0]}}, "a has the samples 'banana', expected"),
        ({"part": "ceiling", "kind": "copy"}, "per_second is None, expected float"),
        ({"part": "ceiling", "kind": "copy", "per_second": -1.0}, r"copy has the samples \[-1.0\]"),
        ({}, "row 2 is the second of"),
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


def test_crossings_and_floors_of_recorded_layers():
    sizes = {"part": "layer", "d_model": 16, "num_heads": 2, "proj_dim": 4, "bytes": {"a": 1, "b": 1}}
    short = GOOD | sizes | {"n": 8, "seconds": {"a": [2.0], "b": [1.0]}}
    middle = GOOD | sizes | {"n": 16, "seconds": {"a": [2.0], "b": [4.0]}}
    longest = GOOD | sizes | {"n": 32, "seconds": {"a": [2.0]}, "bytes": {"a": 1}, "out_of_memory": ["b"]}
    copying = {"part": "ceiling", "kind": "copy", "per_second": 1e9}
    ceilings = [copying, copying | {"kind": "matmul", "dtype": "float32", "per_second": 3e9}]
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


def test_a_gpu_s_file_is_found_when_it_is_added_and_no_other_is_taken_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr(records.recorded, "RESULTS", tmp_path)
    row = {"part": "ceiling", "kind": "copy", "per_second": 2.0}
    on_gpu = provenance("a command")
    on_gpu["machine"] = on_gpu["machine"] | {"gpu": "A GPU"}
    on_cpu = on_gpu | {"command": "a command --device cpu"}  # of a machine that has a GPU too

    def write(name, origin, row):
        (tmp_path / name).write_text(json.dumps(origin | {"rows": [row]}), encoding="utf-8")

    write("10_cpu.json", provenance("a command"), row)
    write("08_other.json", on_gpu, {"loss": 1.0})
    write("mine.json", on_cpu, row)
    assert records.recorded_gpu() is None
    assert records.recorded_cpu()["rows"] == [row]
    write("a_gpu.json", on_gpu, row)
    assert records.recorded_gpu()["machine"]["gpu"] == "A GPU"


def test_the_file_that_the_course_brings_has_the_rounds_of_its_plan():
    rows = records.recorded_cpu()["rows"]
    assert {len(s) for row in rows for s in row.get("seconds", {}).values()} == {PLANS["cpu"].rounds}


def test_the_evidence_page_shows_a_gpu_s_file_once_it_is_there(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    cells = nbformat.read(ROOT / "chapters/evidence/10_benchmark.ipynb", as_version=4).cells
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
    monkeypatch.setattr(records.recorded, "RESULTS", tmp_path)
    names = {"content": content}
    for source in wanted:
        exec(source, names)
    assert names["gpu"]["machine"]["gpu"] == "A GPU"
    exec("overview(gpu)", names)
    assert "faster than fused exact, k =" in capsys.readouterr().out


# The command


TINY = {"d_model": 16, "num_heads": 2, "proj_dim": 8}
ENCODER = TINY | {"seq_len": 32, "num_layers": 1}
QUICK = {"rounds": 1, "side": 256, "numbers": 2**16, "flushed": 1}
SMALL = replace(PLANS["cpu"], table=(), lengths=(32, 64), modes=(), layer=TINY, encoder=ENCODER, **QUICK)


@pytest.fixture
def measure(monkeypatch, tmp_path, capsys):
    """Run the command, with layers so small that all is measured in a second: its exit, and what it said."""
    monkeypatch.setattr(
        "linformer_from_scratch.common.rows.first_line", lambda *_: "a commit"
    )  # whatever is edited meanwhile
    monkeypatch.setitem(PLANS, "cpu", SMALL)
    monkeypatch.chdir(tmp_path)

    def run(*words):
        try:
            code = main(["--device", "cpu", "--out", "b.json", *words])
        except SystemExit as left:
            code = left.code
        return code, *capsys.readouterr()

    return run


SHORT = "--longest", "32"


def test_the_command_writes_every_row(measure):
    assert measure(*SHORT, "--out", "new/b.json")[0] == 0
    content = records.read(Path("new/b.json"))
    assert [row["part"] for row in content["rows"]] == ["ceiling"] * 2 + ["layer"] * 2 + ["attention", "step"]
    assert content["command"].endswith("--device cpu --out b.json --longest 32")


def test_an_interrupt_keeps_the_rows_and_resume_measures_the_rest(measure, monkeypatch):
    turns = []

    def interrupted(*arguments):
        turns.append(arguments)
        if len(turns) == 3:
            raise KeyboardInterrupt
        return race.race(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(benchmark.suite, "race", interrupted)
        code, out, _ = measure()
    assert code == 130 and "4 rows are in" in out
    kept = records.read(Path("b.json"))["rows"]
    assert measure("--resume")[0] == 0
    rows = records.read(Path("b.json"))["rows"]
    assert rows[:4] == kept and len(rows) == len(list(jobs(SMALL)))


def test_rows_of_another_origin_are_not_mixed_into_a_file(measure):
    assert measure(*SHORT)[0] == 0
    before = Path("b.json").read_text(encoding="utf-8")
    assert measure(*SHORT, "--resume")[0] == 0
    code, _, err = measure(*SHORT, "--resume", "--rounds", "3")
    assert code == 1 and "measured with command" in err
    Path("b.json").write_text(before.replace('"gpu": null', '"gpu": "A GPU"'), encoding="utf-8")
    code, _, err = measure(*SHORT, "--resume")
    assert code == 1 and "'A GPU'" in err


def test_a_job_that_fails_costs_its_own_row_only(measure, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(benchmark.suite, "_race_attention", Mock(side_effect=RuntimeError("no such kernel")))
        code, _, err = measure(*SHORT)
    assert code == 1 and "no row: no such kernel" in err
    assert measure(*SHORT, "--resume")[0] == 0
    parts = [row["part"] for row in records.read(Path("b.json"))["rows"]]
    assert parts.count("attention") == 1 and len(parts) == 6


REFUSED = {
    "--rounds 0": "argument --rounds: got 0, expected a whole number of at least 1\n",
    "--threads x": "argument --threads: invalid count value: 'x'\n",
    "--minutes nan": "argument --minutes: got nan, expected minutes, more than 0\n",
    "--device gpu": "argument --device: invalid choice: 'gpu' (choose from ",
    "--longest 31": "--longest is 31, and the shortest text has 32 tokens\n",
    "--out folder --resume": "--out is folder, which is a folder; name a file\n",
    "--out file/b.json --resume": "file is a file, expected a folder\n",
    "--out= --resume": "--out is ., which is a folder; name a file\n",
    "--out file": "file is there already; --resume goes on with it\n",
    "--out file --resume": "file is not a result file: its command is None, expected a str\n",
    "--device cuda": "PyTorch finds no GPU here; --device cpu works everywhere\n",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_measured_is_refused_in_one_sentence(measure, tmp_path, monkeypatch, words):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    (tmp_path / "file").write_text("{}", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    code, out, err = measure(*words.split())
    said = err.split("error: ")[-1]  # after the usage
    assert code and out == "" and said.startswith(REFUSED[words]) and said.count("\n") == 1
    assert {*os.listdir()} == {"file", "folder"}


def test_two_runs_do_not_write_into_one_file(measure):
    with locked(Path("b.json.run")):
        code, out, err = measure(*SHORT)
    assert code == 1 and out == "" and "in use by another process" in err and err.count("\n") == 1
    assert measure(*SHORT)[0] == 0


def test_published_megabytes_of_what_is_tiled_or_has_slots_grow_with_n():
    flash, linformer = FLASH_MB["FlashAttention"], FLASH_MB["Linformer"][2:]  # of k = 256
    assert all(abs(later - 2 * some) <= 1 for some, later in pairwise(flash))
    assert all(later - 12 == 2 * (some - 12) for some, later in pairwise(linformer))


def test_the_published_long_range_tables_have_the_means_that_were_published():
    means = {name: round(sum(row) / len(LRA_TASKS), 2) for name, row in LRA.items()}
    assert means == LRA_MEANS | {"Sinkhorn": 51.48}  # the published one is not the mean of its row
    again = {name: round(sum(row) / len(LRA_TASKS), 2) for name, row in LRA_XIONG.items()}
    assert again == {"Transformer": 58.77, "Linformer": 55.59}


# A limit of time


def test_a_budget_leaves_out_what_would_take_longer(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(command.time, "monotonic", lambda: now[0])
    limit = command.Budget(minutes=1)
    what = {"part": "layer", "pass": "forward", "n": 128}
    assert limit.allows(what)
    row = what | {"seconds": {"a": [1.0, 1.0], "b": [0.5, 0.5]}}
    limit.learn(row, seconds=9.5)  # 7.5 s computing, 2 building
    assert limit.allows(what | {"n": 256}) and not limit.allows(what | {"n": 512})  # 32 s, 122 s
    assert limit.allows(what | {"n": 512, "pass": "backward"})  # another kind
    now[0] = 60.0
    assert not limit.allows({"part": "step"}) and command.Budget(None).allows(what)


def test_what_a_budget_leaves_out_is_said_and_resume_measures_it(measure, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(command.Budget, "allows", lambda _, what: what.get("n", 0) < 64)
        code, said, _ = measure("--minutes", "8")
    assert code == 0 and "complete" not in said
    assert "8 minutes are spent, 3 of 9 rows are left out; --resume goes on." in said
    short = records.read(Path("b.json"))["rows"]
    assert {row.get("n") for row in short} == {None, 32}
    code, said, _ = measure("--minutes", "9", "--resume")
    assert code == 0 and "9 rows, complete" in said
    assert records.read(Path("b.json"))["rows"][:6] == short


def test_the_makefile_and_the_evidence_page_say_the_command_that_a_gpu_is_measured_with():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"$(BIN)/{on_a_gpu()}\n" in makefile
    assert parser().parse_args(on_a_gpu().split()[3:]).minutes == MINUTES
    cells = nbformat.read(ROOT / "chapters/evidence/10_benchmark.ipynb", as_version=4).cells
    (cell,) = [cell for cell in cells if cell.cell_type == "code" and "to_paste()" in cell.source]
    assert "".join(output.text for output in cell.outputs) == to_paste() + "\n"
    assert on_a_gpu("course/") in to_paste()


# The file that a GPU's owner sends


def too_fast(rows):
    for found in rows[-3]["seconds"].values():
        found[:] = [s / 1e3 for s in found]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.pop(), "1 of 43 rows are missing, the first is {'part': 'step'"),
        (lambda rows: rows[0].update(per_second=3.0), r"matmul is 3 per second, expected 1e\+06 to 1e\+17"),
        (lambda rows: rows[2]["bytes"].update({STORED: 5}), "held 5 bytes, expected 25,165,824 or more"),
        (too_fast, "attention, n = 2,048, forward: stored maps took .* s, expected .* or more"),
    ],
    ids=["missing", "ceiling", "bytes", "too fast"],
)
def test_a_file_is_checked_before_it_is_passed_on(tmp_path, change, message):
    content, path = copy.deepcopy(records.recorded_cpu()), tmp_path / "b.json"
    wanted = [what for what, _ in jobs(PLANS["cpu"])]
    path.write_text(json.dumps(content), encoding="utf-8")
    assert len(files.check_file(path, wanted)["rows"]) == 43
    change(content["rows"])
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"^b\.json.*{message}"):
        files.check_file(path, wanted)


def test_who_runs_out_of_memory_in_a_later_round_is_named_and_the_others_keep_their_rounds():
    turns = iter(range(9))

    def grows():
        if next(turns) == 4:  # set up, weighed, warmed up, a round, and the next
            raise MemoryError
        return torch.ones(10)

    found = race.race({"grows": lambda: grows, "fits": lambda: lambda: torch.ones(1000)}, rounds=5, flushed=1)
    assert found["out_of_memory"] == ["grows"] and found["bytes"] == {"fits": 4000}
    assert {name: len(s) for name, s in found["seconds"].items()} == {"fits": 5}
    assert found["busy"].keys() == {"fits"}


LACKS = (
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
)


def test_a_lack_of_memory_is_known_by_each_of_its_names():
    assert all(map(is_out_of_memory, LACKS)) and not is_out_of_memory(RuntimeError("shapes differ"))


def test_the_command_is_behind_the_door_of_the_room(as_module):
    code, out, _ = as_module("linformer_from_scratch.benchmark", "--help")
    assert code == 0 and "--resume" in out


def test_available_bytes_are_what_the_system_says(monkeypatch):
    text = "MemTotal:       24000000 kB\nMemFree:         3000000 kB\nMemAvailable:   11000000 kB\n"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: text)
    assert available_bytes() == 11_000_000 * 1024
