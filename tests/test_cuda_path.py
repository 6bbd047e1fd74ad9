"""The benchmark's CUDA path, run where there is no GPU: on a stand-in for torch.cuda."""

import gc
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from cuda_stand_in import NAME, StandIn

from linformer_from_scratch.benchmark import modes, peak_bytes, records, samples, suite
from linformer_from_scratch.benchmark.command import main
from linformer_from_scratch.benchmark.suite import PLANS, jobs, plan_for
from linformer_from_scratch.course import recorded
from linformer_from_scratch.course.recorded import select

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # the compiler's
PACKAGE = Path(__file__).parents[1] / "linformer_from_scratch"
SIZES = {"block": {"d_model": 24, "num_heads": 2}, "layer": {"d_model": 16, "num_heads": 2, "proj_dim": 8}}
SIZES["encoder"] = suite.ENCODER | {"seq_len": 16, "d_model": 16, "num_layers": 1, "proj_dim": 8}
LENGTHS = {"table": (256,), "tokens": 256, "lengths": (256,), "modes": (64,), "texts": 2}
TINY = replace(PLANS["cuda"], **SIZES, **LENGTHS, rounds=1, side=256, numbers=2**12, flushed=1)


def test_every_name_that_is_said_of_torch_cuda_is_there():
    texts = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    used = {name for text in texts for name in re.findall(r"torch\.cuda\.(\w+)", text)}
    names = used | {*StandIn().names}
    assert len(names) > 20 and [name for name in names if not hasattr(torch.cuda, name)] == []


def test_tensors_of_two_devices_do_not_meet_and_afterwards_torch_is_as_it_was():
    before = {name: getattr(torch.cuda, name) for name in StandIn().names}
    with StandIn():
        x, y = torch.ones(3, device="cuda"), torch.ones(3)
        assert (2 * x).is_cuda and x.device == torch.device("cuda:0") and not y.is_cuda and y.to(x).is_cuda
        with pytest.raises(RuntimeError, match="on the same device"):
            x + y
    assert {name: getattr(torch.cuda, name) for name in before} == before
    assert torch.ones(2).device.type == "cpu"


def test_a_gpu_is_waited_for_before_its_clock_is_read_and_its_peak_is_counted():
    with StandIn() as gpu:
        x = torch.randn(64, 64, device="cuda")
        assert peak_bytes(lambda: x + 1, device="cuda") == x.nbytes
        seconds = samples({"a": lambda: x @ x}, rounds=3, device="cuda")["a"]
        assert len(seconds) == 3 and all(0 < s < 1 for s in seconds) and gpu.waits >= 8


def test_a_gpu_that_only_emulates_bfloat16_is_measured_in_float16():
    for bf16, dtype in ((True, "bfloat16"), (False, "float16")):
        with StandIn(bf16=bf16):
            assert plan_for("cuda").dtype == dtype


@pytest.fixture
def run():
    """The command on the stand-in, with what is compiled run as it is."""
    modes.can_compile.cache_clear()

    def run(path):
        with StandIn() as gpu:
            return main(["--device", "cuda", "--out", str(path)], {"cuda": TINY}), gpu

    gc.freeze()  # races collect garbage: what is there before them need not be looked at
    with torch._dynamo.config.patch(disable=True):
        yield run
    gc.unfreeze()
    modes.can_compile.cache_clear()


def test_the_whole_command_runs_on_a_gpu_checks_its_file_and_says_where_to_put_it(run, tmp_path, capsys):
    path = tmp_path / "gpu.json"
    code, gpu = run(path)
    said = capsys.readouterr()
    assert code == 0, said.err
    assert gpu.allocated == 0  # nothing is held when it is done
    content, wanted = records.read(path), [what for what, _ in jobs(TINY)]
    assert [records.what_of(row) for row in content["rows"]] == wanted and content["machine"]["gpu"] == NAME
    for row in select(content["rows"], part="mode"):
        assert row["seconds"].keys() == {"eager", "compiled", "graph"} and "graph" not in row["bytes"]
    (step,) = select(content["rows"], part="step")
    assert step["bytes"]["Linformer"] > 0 == step["bytes"]["making the batch"]
    assert ("cuda", torch.bfloat16, True) in gpu.autocasts
    assert f"{len(wanted)} rows, complete: put it at {recorded.RESULTS / 'gpu.json'}, then: make" in said.out
