"""What chapter 10 measures: which variants and sizes, in which order. Every job is one row.

ceiling    operations of a large product and bytes of a large copy, per second
table 3    a block of RoBERTa-base's size, at every n and k of the paper's table 3 that is asked for
layer      one attention layer: full, Linformer in both orders, linear attention, packages people install
mode       the same layers step by step, compiled, and as a recorded graph
attention  attention alone, in the sizes of FlashAttention's authors
step       a training step of chapter 08's encoder
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.benchmark.ceilings import copy_ceiling, matmul_ceiling
from linformer_from_scratch.benchmark.layers import DTYPES, FUSED, STORED, Builders, blocks, layers, packages
from linformer_from_scratch.benchmark.modes import PASSES, can_compile, compiled, forward, graph
from linformer_from_scratch.benchmark.race import Make, race
from linformer_from_scratch.benchmark.timing import FLUSH_BYTES
from linformer_from_scratch.common.random_state import integers
from linformer_from_scratch.data import MaskedBatches
from linformer_from_scratch.encoder import MaskedLanguageModel
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.projections import project
from linformer_from_scratch.training import Config, Trainer, masked_loss
from linformer_from_scratch.training.recipes import Recipe, encoder

Job = tuple[dict, Callable[[], dict]]  # what is measured, and the call that does
ROBERTA = {"d_model": 768, "num_heads": 12}  # the size of the paper's model
HEADS = {"num_heads": 8, "d_head": 64}  # Dao et al. 2022, appendix E
ENCODER = {"seq_len": 512, "d_model": 128, "num_heads": 4, "num_layers": 4, "proj_dim": 128}
VOCABULARY = 1000  # tokens, as in chapter 08
MAPS = {"forward": 2, "forward + backward": 3}  # that are held at once where maps are stored


@dataclass(frozen=True)
class Plan:
    """How much is measured, so that a GPU and a CPU both finish within minutes.

    Args:
        device: "cpu" or "cuda".
        dtype: of inputs and weights, a key of DTYPES.
        block: d_model and num_heads of table 3's blocks.
        table: lengths of table 3.
        tokens: in a batch of table 3; max(1, tokens // n) texts.
        lengths: of layers and of attention alone.
        modes: lengths at which layers are compiled.
        layer: d_model, num_heads and proj_dim of a layer.
        texts: in a batch of attention alone.
        encoder: sizes of the encoder that is trained.
        rounds: turns of each variant.
        side, numbers: of the ceilings' matrices, and of what is copied; None: large enough for the device.
        flushed: bytes written before each turn.
    """

    device: str
    dtype: str
    block: Mapping[str, int]
    table: tuple[int, ...]
    tokens: int
    lengths: tuple[int, ...]
    modes: tuple[int, ...]
    layer: Mapping[str, int]
    texts: int
    encoder: Mapping[str, Any]
    rounds: int
    side: int | None = None
    numbers: int | None = None
    flushed: int = FLUSH_BYTES


PLANS = {
    "cpu": Plan(
        device="cpu",
        dtype="float32",
        block=ROBERTA,
        table=(512, 1024, 2048, 4096),
        tokens=1024,
        lengths=(128, 256, 512, 1024, 2048, 4096),
        modes=(512, 2048),
        layer={"d_model": 512, "num_heads": 8, "proj_dim": 256},
        texts=1,
        encoder=ENCODER,
        rounds=7,
    ),
    "cuda": Plan(
        device="cuda",
        dtype="bfloat16",
        block=ROBERTA,
        table=tuple(2**i for i in range(9, 17)),
        tokens=2**16,
        lengths=tuple(2**i for i in range(7, 18)),
        modes=(1024, 16384),
        layer={"d_model": 1024, "num_heads": 16, "proj_dim": 256},
        texts=16,
        encoder=ENCODER,
        rounds=10,
    ),
}


def plan_for(device: str, plans: Mapping[str, Plan] = PLANS) -> Plan:
    """The plan of a device; in float16 on a GPU that only emulates bfloat16."""
    plan = plans[device]
    if device == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return replace(plan, dtype="float16")
    return plan


def jobs(plan: Plan) -> Iterator[Job]:
    """All rows of a plan; within each part the short texts first."""
    for part in (_ceilings, _table_3, _layers, _modes, _attention, _step):
        yield from part(plan)


def _ceilings(plan: Plan) -> Iterator[Job]:
    for dtype in dict.fromkeys(("float32", plan.dtype)):
        what = {"part": "ceiling", "kind": "matmul", "dtype": dtype}
        yield what, partial(_per_second, matmul_ceiling, DTYPES[dtype], device=plan.device, side=plan.side)
    what = {"part": "ceiling", "kind": "copy"}
    yield what, partial(_per_second, copy_ceiling, device=plan.device, numbers=plan.numbers)


def _per_second(ceiling: Callable[..., float], *of: torch.dtype, **options: Any) -> dict:
    return {"per_second": ceiling(*of, **options)}


def _table_3(plan: Plan) -> Iterator[Job]:
    for n, direction in product(plan.table, PASSES):
        what = _what("table 3", plan, n, max(1, plan.tokens // n), direction, plan.block)
        yield what, partial(_race, plan, what, blocks(n, **plan.block))


def _layers(plan: Plan) -> Iterator[Job]:
    for n, direction in product(plan.lengths, PASSES):
        what = _what("layer", plan, n, 1, direction, plan.layer)
        yield what, partial(_race, plan, what, layers(n, **plan.layer) | packages(n, **plan.layer))


def _modes(plan: Plan) -> Iterator[Job]:
    for n in plan.modes:
        for name, build in layers(n, **plan.layer).items():
            what = _what("mode", plan, n, 1, "forward", plan.layer) | {"layer": name}
            yield what, partial(_race_modes, plan, what, build)


def _attention(plan: Plan) -> Iterator[Job]:
    for n in plan.lengths:
        what = _what("attention", plan, n, plan.texts, "forward", HEADS | {"proj_dim": min(n // 8, 256)})
        yield what, partial(_race_attention, plan, what)


def _step(plan: Plan) -> Iterator[Job]:
    what = _what("step", plan, plan.encoder["seq_len"], 16, "training step", plan.encoder)
    if plan.dtype == "float16":  # a GPU that only emulates bfloat16: the trainer keeps 32 bit
        what["dtype"] = "float32"
    yield what, lambda: _race_steps(plan, what)


def _what(part: str, plan: Plan, n: int, texts: int, direction: str, sizes: Mapping[str, int]) -> dict:
    return {"part": part, "n": n, "texts": texts, "pass": direction, "dtype": plan.dtype, **sizes}


def _race(plan: Plan, what: dict, builders: Builders) -> dict:
    """Layers in one direction."""
    x = _random(plan, what["texts"], what["n"], what["d_model"])
    way = PASSES[what["pass"]]
    variants = {name: lambda build=build: way(_built(build, x), x) for name, build in builders.items()}
    return _race_by(plan, variants, _needs(plan, what))


def _race_modes(plan: Plan, what: dict, build: Callable[[], nn.Module]) -> dict:
    """One layer in every mode, forward. A graph's memory is its own; no bytes are given for it."""
    torch.compiler.reset()  # what was compiled for another layer may be taken for this one
    x = _random(plan, what["texts"], what["n"], what["d_model"])
    modes = {"eager": forward} | ({"compiled": compiled} if can_compile(plan.device) else {})
    modes |= {"graph": graph} if plan.device == "cuda" else {}
    variants = {mode: lambda way=way: way(_built(build, x), x) for mode, way in modes.items()}
    row = _race_by(plan, variants)
    row["bytes"].pop("graph", None)
    return row


def _race_attention(plan: Plan, what: dict) -> dict:
    """Attention alone: queries, keys and values are given, and so are E and F."""
    n, sizes = what["n"], (what["texts"], what["num_heads"], what["n"], what["d_head"])
    q, k, v = (_random(plan, *sizes) for _ in range(3))
    E, F = (_random(plan, what["proj_dim"], n) / n**0.5 for _ in range(2))
    variants = {
        STORED: lambda: lambda: scaled_dot_product_attention(q, k, v),
        FUSED: lambda: lambda: functional.scaled_dot_product_attention(q, k, v),
        "Linformer": lambda: lambda: linformer_attention(q, k, v, E, F),
        "Linformer, fused": lambda: (
            lambda: functional.scaled_dot_product_attention(q, project(k, E), project(v, F))
        ),
    }
    return _race_by(plan, variants, _needs(plan, what))


def _race_steps(plan: Plan, what: dict) -> dict:
    """A training step of chapter 08's encoder, and the making of its batch."""
    ids = integers(torch.Generator(), 3, VOCABULARY, 2**16)
    batches = MaskedBatches(ids, what["n"], what["texts"], VOCABULARY)

    def step(attention: str) -> Callable[[], object]:
        model = MaskedLanguageModel(encoder(Recipe(attention, **plan.encoder), VOCABULARY))
        trainer = Trainer(model, masked_loss, batches, Config(steps=10**6), device=plan.device)
        return lambda: trainer.train(trainer.step + 1)

    variants = {FUSED: lambda: step("full"), "Linformer": lambda: step("linformer")}
    return _race_by(plan, variants | {"making the batch": lambda: lambda: batches(0)})


def _race_by(plan: Plan, variants: Mapping[str, Make], needs: Mapping[str, int] | None = None) -> dict:
    return race(variants, plan.rounds, plan.device, needs, plan.flushed)


def _built(build: Callable[[], nn.Module], x: Tensor) -> nn.Module:
    """A layer for x, its random weights drawn on x's device: on a CPU that takes seconds for a long text."""
    with torch.device(x.device):
        return build().to(x)


def _random(plan: Plan, *shape: int) -> Tensor:
    return torch.randn(shape, device=plan.device, dtype=DTYPES[plan.dtype])


def _needs(plan: Plan, what: dict) -> dict[str, int]:
    """Bytes of the maps that one variant stores; a GPU reports by itself that it has no more."""
    if plan.device == "cuda":
        return {}
    one = what["texts"] * what["num_heads"] * what["n"] ** 2 * DTYPES[plan.dtype].itemsize
    return {STORED: MAPS[what["pass"]] * one}
