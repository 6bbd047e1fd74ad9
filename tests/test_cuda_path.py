"""The CUDA path, run where there is no GPU: on a stand-in that is held against the real torch.cuda."""

import ast
import gc
import inspect
import socket
from dataclasses import replace
from functools import partial
from pathlib import Path

import cuda_stand_in
import pytest
import torch
from cuda_stand_in import NAMES, StandIn
from torch import nn

from linformer_from_scratch.benchmark import modes, peak_bytes, samples, suite
from linformer_from_scratch.benchmark.layers import FUSED, STORED
from linformer_from_scratch.benchmark.race import race
from linformer_from_scratch.benchmark.suite import PLANS, jobs
from linformer_from_scratch.course import start_here
from linformer_from_scratch.distributed import ranks
from linformer_from_scratch.exercises.engine.checking import isolated
from linformer_from_scratch.experiments import results
from linformer_from_scratch.experiments.benchmark import records
from linformer_from_scratch.experiments.benchmark.command import main
from linformer_from_scratch.experiments.results import RESULTS, provenance, select
from linformer_from_scratch.training import Config, Trainer

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the compiler's own
PACKAGE = Path(__file__).parents[1] / "linformer_from_scratch"
TINY = replace(
    PLANS["cuda"],
    block={"d_model": 24, "num_heads": 2},
    table=(256,),
    tokens=256,
    lengths=(64, 256),
    modes=(64,),
    layer={"d_model": 16, "num_heads": 2, "proj_dim": 8},
    texts=2,
    encoder=suite.ENCODER | {"seq_len": 16, "d_model": 16, "num_layers": 1, "proj_dim": 8},
    rounds=1,
    side=256,
    numbers=2**12,
    flushed=1,
)


@pytest.fixture(scope="module", autouse=True)
def small():
    """Sizes of the machine that a CPU has done at once; what is compiled is run as it is."""
    threads, disable = torch.get_num_threads(), torch._dynamo.config.disable
    torch.set_num_threads(1)
    gc.freeze()  # races collect what is no more; what is there before them need not be looked at
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(results, "sources", lambda *_: {})  # reads every file of the package
        patched.setattr(results, "changed", lambda *_: [])
        torch._dynamo.config.disable = True
        yield
    torch._dynamo.config.disable = disable
    modes.can_compile.cache_clear()
    gc.unfreeze()
    torch.set_num_threads(threads)


@pytest.fixture
def gpu():
    with StandIn() as found:
        yield found


# The stand-in is like the real one


def parameters(of):
    return {name: parameter for name, parameter in inspect.signature(of).parameters.items() if name != "self"}


def public_methods(of):
    return [name for name in vars(of) if not name.startswith("_")]


def test_names_and_signatures_are_those_of_torch_cuda():
    assert len(NAMES) > 20
    gpu, pairs = StandIn(), []
    for name in NAMES:
        ours, real = getattr(gpu, name), getattr(torch.cuda, name)
        assert callable(ours) and callable(real)
        assert inspect.isclass(ours) == inspect.isclass(real), name
        if ours is not real:
            pairs.append((name, ours, real))
        if inspect.isclass(ours) and ours is not real:
            pairs += [
                (f"{name}.{one}", getattr(ours, one), getattr(real, one)) for one in public_methods(ours)
            ]
    for name, ours, real in pairs:
        ours, real = parameters(ours), parameters(real)
        assert [*ours] == [known for known in real if known in ours], f"{name}: {[*ours]}, {[*real]}"
        for parameter in ours:
            assert ours[parameter].default == real[parameter].default, f"{name}({parameter})"
            assert ours[parameter].kind == real[parameter].kind, f"{name}({parameter})"
        for other in real.keys() - ours.keys():  # newer versions may take more
            assert (
                real[other].default is not inspect.Parameter.empty
                or real[other].kind == real[other].VAR_KEYWORD
            )


def uses_of_cuda(path):
    """Every NAME of torch.cuda.NAME in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "torch.cuda":
            yield node.attr
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch.cuda"):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom) and node.module == "torch":
            assert "cuda" not in [alias.name for alias in node.names], f"{path.name}: say torch.cuda"


def test_whatever_the_course_uses_of_torch_cuda_the_stand_in_has():
    files = [*PACKAGE.rglob("*.py"), *(PACKAGE.parent / "tools").glob("*.py")]
    used = {name: path for path in files for name in uses_of_cuda(path)}
    assert len(used) > 15
    missing = {name: path.name for name, path in used.items() if name not in NAMES}
    assert not missing


def test_afterwards_torch_is_as_it_was():
    before = {name: getattr(torch.cuda, name) for name in NAMES}, torch.autocast
    with StandIn():
        assert torch.cuda.is_available()
    assert ({name: getattr(torch.cuda, name) for name in NAMES}, torch.autocast) == before
    assert torch.ones(2).device.type == "cpu"


def test_tensors_say_where_they_are_and_those_of_two_devices_do_not_meet(gpu):
    x, y = torch.ones(3, device="cuda"), torch.ones(3)
    assert (x.device, x.is_cuda, (2 * x).device.type, y.is_cuda) == (
        torch.device("cuda:0"),
        True,
        "cuda",
        False,
    )
    assert nn.Linear(3, 2).to(x).weight.is_cuda and nn.Linear(3, 2).cuda()(x).is_cuda
    with torch.device("cuda"):
        assert nn.Linear(3, 2).weight.is_cuda
    assert not x.cpu().is_cuda and y.to("cuda").is_cuda and y.to(x).is_cuda and not y.is_cuda
    assert torch.equal(y.copy_(x + 1), torch.full((3,), 2.0))
    for call in (lambda: x + y, lambda: nn.Linear(3, 2)(x), lambda: torch.stack([x, y])):
        with pytest.raises(RuntimeError, match="on the same device"):
            call()
    with pytest.raises(TypeError, match=r"Use Tensor\.cpu"):
        x.numpy()


def test_gradients_lie_where_their_weights_lie(gpu):
    layer = nn.Linear(3, 2).cuda()
    layer(torch.ones(5, 3, device="cuda")).sum().backward()
    assert layer.weight.grad.is_cuda and layer.weight.grad.eq(5).all()


def test_times_are_read_after_the_gpu_was_waited_for(gpu):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(end)
    start.record()
    end.record()
    with pytest.raises(RuntimeError, match="must be completed"):
        start.elapsed_time(end)
    torch.cuda.synchronize()
    assert 0 <= start.elapsed_time(end) < 1e3
    untimed = torch.cuda.Event()
    untimed.record()
    torch.cuda.synchronize()
    with pytest.raises(ValueError, match="enable_timing"):
        start.elapsed_time(untimed)


def test_memory_is_counted_and_ends():
    with StandIn(memory=1000):
        x = torch.zeros(200, dtype=torch.uint8, device="cuda")
        held = x[10:]
        del x
        assert torch.cuda.memory_allocated() == 200  # the view holds it
        with pytest.raises(torch.cuda.OutOfMemoryError, match="801 bytes; 200 of 1000"):
            torch.zeros(801, dtype=torch.uint8, device="cuda")
        (held.to(torch.int16) + 1).sum()
        assert torch.cuda.max_memory_allocated() == 200 + 2 * 2 * 190
        del held
        assert torch.cuda.memory_allocated() == 0 and torch.cuda.mem_get_info() == (1000 - 960, 1000)
        torch.cuda.empty_cache()
        assert torch.cuda.mem_get_info() == (1000, 1000)


def test_random_numbers_of_the_gpu_are_its_own(gpu):
    cpu, there = torch.get_rng_state(), torch.cuda.get_rng_state()
    first = torch.randn(3, device="cuda")
    assert torch.equal(torch.get_rng_state(), cpu)
    torch.cuda.set_rng_state(there)
    assert torch.equal(torch.randn(3, device="cuda"), first)
    torch.manual_seed(5)
    assert not torch.equal(torch.cuda.get_rng_state(), there)


# Graphs


def test_a_graph_is_recorded_on_another_stream_and_replayed_on_the_same_memory(gpu):
    layer, x = nn.Linear(7, 3).cuda(), torch.randn(5, 7, device="cuda")
    replay = modes.graph(layer, x)
    assert torch.equal(replay(), layer(x))
    x.copy_(torch.randn(5, 7))
    assert torch.equal(replay(), layer(x))


def test_a_graph_keeps_its_layer(gpu):
    layer, x = nn.Linear(7, 3).cuda(), torch.randn(5, 7, device="cuda")
    expected, replay = layer(x).detach(), modes.graph(layer, x)
    del layer
    gc.collect()
    assert torch.equal(replay(), expected)


def recorded(call, stream=None):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        output = call()
    return graph, output


def test_what_a_real_graph_does_not_allow_is_not_allowed(gpu):
    x = torch.ones(3, device="cuda")
    graph, output = recorded(partial(torch.mul, x, 2))
    assert output.isnan().all()  # recorded is not run
    graph.replay()
    assert output.eq(2).all()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        torch.cuda.CUDAGraph().replay()
    for call in (x.sum().item, torch.cuda.synchronize, x.nonzero, x.cpu, torch.ones(3).cuda):
        with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
            recorded(call)
    with pytest.raises(RuntimeError, match="non-default stream"):
        recorded(x.sum, stream=torch.cuda.default_stream())
    del x, call
    with pytest.raises(RuntimeError, match="memory that was freed"):
        graph.replay()


# Measuring


def test_events_measure_and_the_peak_is_that_of_the_gpu(gpu):
    x = torch.randn(64, 64, device="cuda")
    assert peak_bytes(lambda: x + 1, device="cuda") == x.nbytes
    seconds = samples({"a": lambda: x @ x}, rounds=3, device="cuda")["a"]
    assert len(seconds) == 3 and all(0 < found < 1 for found in seconds)
    assert gpu.synchronized >= 8  # before each turn, and before it is read


def test_who_runs_out_in_a_later_round_is_dropped_and_lets_go_of_its_memory():
    with StandIn(memory=10_000) as gpu:
        turns, seen = iter(range(10)), []

        def grows():
            weights = torch.zeros(1000, device="cuda")
            return lambda: [weights, torch.zeros(2000 if next(turns) == 4 else 10, device="cuda")]

        variants = {"grows": grows, "fits": lambda: lambda: seen.append(gpu.allocated)}
        found = race(variants, 4, "cuda", flushed=1)
        assert (found["out_of_memory"], [*found["bytes"]]) == (["grows"], ["fits"])
        assert {name: len(s) for name, s in found["seconds"].items()} == {"fits": 4}
        assert seen[0] > 4000 > seen[-1]


def test_what_clears_the_caches_is_there_before_a_gpu_is_full():
    def full():
        weights = torch.zeros(230, device="cuda")  # 920 bytes: the GPU has 1,000
        return lambda: weights

    with StandIn(memory=1000):
        assert race({"full": full}, 1, "cuda", flushed=100)["out_of_memory"] == ["full"]


# The whole command


def run(*words, plan=TINY, memory=2**33, **options):
    with StandIn(memory, **options) as gpu:
        modes.can_compile.cache_clear()
        return main(["--device", "cuda", *map(str, words)], {"cuda": plan}), gpu


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The file of the whole command, and what it says."""
    path = tmp_path_factory.mktemp("gpu") / "gpu.json"
    with pytest.MonkeyPatch.context() as patched:
        said = []
        patched.setattr("builtins.print", lambda *words, **_: said.append(" ".join(map(str, words))))
        code, gpu = run("--out", path)
    assert code == 0, [line for line in said if " of " not in line]
    assert gpu.allocated == 0  # nothing is held when it is done
    return path, said


def test_the_whole_command_runs_on_a_gpu(measured):
    path, _ = measured
    content, wanted = records.read(path), [what for what, _ in jobs(TINY)]
    assert [records.what_of(row) for row in content["rows"]] == wanted
    assert content["machine"]["gpu"] == cuda_stand_in.NAME
    assert not any(row.get("out_of_memory") for row in content["rows"])
    for row in select(content["rows"], part="mode"):
        assert row["seconds"].keys() == {"eager", "compiled", "graph"} and "graph" not in row["bytes"]
    assert {row["dtype"] for row in content["rows"] if "dtype" in row} == {"float32", "bfloat16"}
    (step,) = select(content["rows"], part="step")
    assert step["bytes"]["Linformer"] > 0 == step["bytes"]["making the batch"]


def test_it_checks_its_own_file_and_says_where_to_put_it(measured):
    path, said = measured
    rows = len(list(jobs(TINY)))
    assert f"{path}: {rows} rows, complete" in "".join(said)
    assert f"put it at {RESULTS / 'gpu.json'}, then: make refresh ONLY=10" in "".join(said)


def test_a_gpu_that_only_emulates_bfloat16_is_measured_in_float16(tmp_path):
    plan = replace(TINY, table=(), lengths=(64,), modes=())
    code, gpu = run("--out", tmp_path / "t4.json", plan=plan, bf16=False)
    assert code == 0
    rows = records.read(tmp_path / "t4.json")["rows"]
    assert {row.get("dtype") for row in rows if row["part"] != "step"} == {None, "float32", "float16"}
    (step,) = select(rows, part="step")
    assert step["dtype"] == "float32" and not any(enabled for *_, enabled in gpu.autocasts)


def test_memory_that_ends_in_the_middle_costs_only_who_needs_it(tmp_path, capsys):
    plan = replace(TINY, table=(), modes=())
    maps = 2 * 8 * 256**2 * 2  # bytes of all maps at n = 256 in 16 bit; two are held at once
    assert run("--out", tmp_path / "b.json", plan=plan, memory=5 * maps // 2)[0] == 0
    rows = records.read(tmp_path / "b.json")["rows"]
    lost = [(row["part"], row["n"], row["out_of_memory"]) for row in rows if row.get("out_of_memory")]
    assert lost == [("attention", 256, [STORED])] and len(rows) == len(list(jobs(plan)))
    (row,) = select(rows, part="attention", n=256)
    assert row["seconds"].keys() == row["bytes"].keys() == {FUSED, "Linformer", "Linformer, fused"}
    assert "rows, complete" in capsys.readouterr().out


def test_an_interrupt_keeps_its_rows_and_resume_measures_the_rest(tmp_path, monkeypatch, capsys):
    plan = replace(TINY, table=(), lengths=(64,), modes=())
    turns = []

    def interrupted(*arguments):
        turns.append(arguments)
        if len(turns) == 2:
            raise KeyboardInterrupt
        return race(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(suite, "race", interrupted)
        assert run("--out", tmp_path / "b.json", plan=plan)[0] == 130
    assert "4 rows are in" in capsys.readouterr().out
    kept = records.read(tmp_path / "b.json")["rows"]
    assert run("--out", tmp_path / "b.json", "--resume", plan=plan)[0] == 0
    rows = records.read(tmp_path / "b.json")["rows"]
    assert rows[:4] == kept and len(rows) == len(list(jobs(plan)))


def test_chapter_10_shows_the_file(measured, tmp_path, monkeypatch, capsys):
    import nbformat

    cells = nbformat.read(PACKAGE.parent / "chapters/10_benchmark.ipynb", as_version=4).cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    needed = "import math", "import aligned", "overview("
    monkeypatch.setattr(records.results, "RESULTS", tmp_path)
    (tmp_path / "gpu.json").write_bytes(measured[0].read_bytes())
    names = {"content": records.read(measured[0])}
    for source in sources:
        if any(words in source for words in needed):
            exec(source, names)
    assert names["gpu"]["machine"]["gpu"] == cuda_stand_in.NAME
    exec("overview(gpu)", names)
    said = capsys.readouterr().out
    assert "faster than fused exact, k =" in said and "n = 256" in said
    assert records.device_of(names["gpu"]).name == cuda_stand_in.NAME


def test_a_gpu_that_is_full_of_others_says_so_and_loses_nothing(tmp_path, capsys):
    plan = replace(TINY, table=(), lengths=(64,), modes=())
    assert run("--out", tmp_path / "b.json", plan=plan, memory=2000)[0] == 1
    assert "no row: CUDA out of memory" in capsys.readouterr().err
    assert run("--out", tmp_path / "b.json", "--resume", plan=plan)[0] == 0


# Around it


def test_provenance_names_the_gpu(gpu):
    found = provenance("a command")
    assert found["machine"]["gpu"] == cuda_stand_in.NAME
    assert found["versions"]["cuda"] == torch.version.cuda


def test_the_doctor_names_the_gpu(gpu):
    assert f"GPU: {cuda_stand_in.NAME}, 8 GiB" in "\n".join(start_here._device())


def test_exercises_are_isolated_from_the_gpu_s_random_numbers_too(gpu):
    before = torch.cuda.get_rng_state()
    with isolated():
        torch.randn(3, device="cuda")
    assert torch.equal(torch.cuda.get_rng_state(), before)


def trainer(folder, device="cuda", steps=6):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
    torch.manual_seed(1)
    batches = [(torch.randn(5, 4),) for _ in range(steps)]
    config = Config(steps=steps, warmup=1, learning_rate=0.1, evaluate_every=2)
    loss = lambda model, x: model(x).square().mean()  # noqa: E731
    return Trainer(model, loss, batches.__getitem__, config, batches[:1], folder, device=device)


def test_a_trainer_goes_on_bit_by_bit_with_the_gpu_s_dropout(gpu, tmp_path):
    whole = trainer(tmp_path / "whole")
    whole.train()
    trainer(tmp_path / "parts").train(until=4)
    torch.randn(7, device="cuda")  # somebody else draws meanwhile
    again = trainer(tmp_path / "parts")
    assert again.step == 4
    again.train()
    for one, other in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert one.is_cuda and torch.equal(one, other)
    assert gpu.autocasts[-1] == ("cuda", torch.bfloat16, True)


def test_ranks_with_gpus_speak_nccl(monkeypatch):
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    address = {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(port),
    }
    for name, value in address.items():
        monkeypatch.setenv(name, value)
    with StandIn(count=1) as gpu:
        with ranks.process_group():
            assert gpu.backend == "nccl" and ranks.world_size() == 1
            assert ranks._device_of_group().type == "cuda" and ranks.device_of_rank() == torch.device(
                "cuda:0"
            )
        monkeypatch.setenv("LOCAL_RANK", "1")
        with pytest.raises(ValueError, match="rank 0 wants GPU 1 of 1"), ranks.process_group():
            pass
