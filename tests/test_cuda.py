"""What only a GPU can show: layers, training, measuring and random numbers on cuda agree with the CPU's."""

import gc
from dataclasses import replace

import pytest
import torch
from test_cuda_path import TINY
from torch import nn
from torch.testing import assert_close

from linformer_from_scratch.benchmark import modes, peak_bytes, records, samples, spread
from linformer_from_scratch.benchmark.command import main
from linformer_from_scratch.benchmark.race import race
from linformer_from_scratch.benchmark.suite import jobs
from linformer_from_scratch.course.exercises.engine.checking import isolated
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import LearnedProjection
from linformer_from_scratch.training import Config, Trainer

pytestmark = pytest.mark.cuda
N, D_MODEL, NUM_HEADS, PROJ_DIM = 29, 33, 3, 7
LAYERS = {
    "full": lambda: MultiHeadAttention(D_MODEL, NUM_HEADS),
    "Linformer": lambda: LinformerAttention(
        D_MODEL, NUM_HEADS, LearnedProjection(N, PROJ_DIM), LearnedProjection(N, PROJ_DIM)
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_gives_on_a_gpu_what_it_gives_on_the_cpu_and_so_do_its_gradients(name):
    torch.manual_seed(0)
    layer, x = LAYERS[name](), torch.randn(5, N, D_MODEL)
    mask = torch.arange(N) < torch.tensor([N, 23, 11, 3, 1])[:, None]
    outputs = {}
    for device in ("cpu", "cuda"):
        layer.to(device).zero_grad()
        y = layer(x.to(device), mask.to(device))
        y.square().mean().backward()
        outputs[device] = [y.cpu()[mask], *(p.grad.cpu() for p in layer.parameters())]
    assert_close(outputs["cuda"], outputs["cpu"], atol=1e-5, rtol=1e-4)


def trainer(folder):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 11), nn.Dropout(0.5), nn.Linear(11, 1))
    torch.manual_seed(1)
    batches = [(torch.randn(7, 5),) for _ in range(6)]
    config = Config(steps=6, warmup=1, learning_rate=0.1, evaluate_every=2)

    def loss(model, x):
        return model(x).square().mean()

    return Trainer(model, loss, batches.__getitem__, config, batches[:1], folder, device="cuda")


def test_a_trainer_goes_on_bit_by_bit_with_the_gpu_s_dropout(tmp_path):
    whole = trainer(tmp_path / "whole")
    before = torch.cuda.get_rng_state()
    whole.train()
    assert torch.equal(torch.cuda.get_rng_state(), before)  # the caller's random numbers go on too
    trainer(tmp_path / "parts").train(until=4)
    torch.randn(3, device="cuda")  # somebody else draws meanwhile
    again = trainer(tmp_path / "parts")
    assert again.step == 4
    again.train()
    for one, other in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert one.is_cuda and torch.equal(one, other)


def test_exercises_are_isolated_from_the_gpu_s_random_numbers():
    torch.randn(3, device="cuda")
    before = torch.cuda.get_rng_state()
    with isolated():
        torch.randn(3, device="cuda")
    assert torch.equal(torch.cuda.get_rng_state(), before)


def test_a_gpu_is_timed_to_the_end_and_its_peak_counted():
    x = torch.randn(4096, 4096, device="cuda")
    calls = {1: lambda: x @ x, 10: lambda: [x @ x for _ in range(10)]}
    seconds = {times: spread(each).middle for times, each in samples(calls, 5, "cuda").items()}
    assert 7 < seconds[10] / seconds[1] < 13
    assert peak_bytes(lambda: x + 1, device="cuda") == x.nbytes


def test_what_does_not_fit_is_named_and_what_fits_goes_on():
    variants = {
        "too large": lambda: lambda: torch.empty(2**45, device="cuda"),
        "fits": lambda: lambda: torch.ones(1024, device="cuda"),
    }
    row = race(variants, 3, "cuda", flushed=1)
    assert row["out_of_memory"] == ["too large"] and row["bytes"] == {"fits": 4096}


def test_a_recorded_graph_keeps_its_layer_and_reads_its_input_again():
    layer, x = nn.Linear(67, 31).cuda(), torch.randn(5, 67, device="cuda")
    with torch.no_grad():
        expected, replay = layer(x), modes.graph(layer, x)
        assert_close(replay(), expected)
        x.mul_(2)
        expected = layer(x)
    del layer
    gc.collect()
    torch.cuda.empty_cache()
    torch.randn(1000, 1000, device="cuda")  # would take the layer's memory if that were free
    assert_close(replay(), expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the compiler's own
def test_the_benchmark_measures_every_row_of_a_tiny_plan(tmp_path, capsys):
    plan = replace(TINY, side=1024, numbers=2**20, table=(), lengths=(256,))
    code = main(["--device", "cuda", "--out", str(tmp_path / "gpu.json")], {"cuda": plan})
    said = capsys.readouterr()
    assert code == 0, said.err
    content = records.read(tmp_path / "gpu.json")
    assert len(content["rows"]) == len(list(jobs(plan))) and "rows, complete" in said.out
    assert content["machine"]["gpu"] == torch.cuda.get_device_name()
