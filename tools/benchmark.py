"""Time and memory of Linformer beside full attention and the package people install: make benchmark

One run for each length and number of threads, every layer in shuffled turns. It prints ratios of medians
within a run, since machines are shared and noisy, and peaks of PyTorch's own allocator. First the layer,
then a whole training step of an encoder.
"""

import os
from collections.abc import Callable

import torch
from torch import Tensor, nn

from linformer_from_scratch.benchmark import matmul_ceiling, median_seconds, peak_bytes
from linformer_from_scratch.cost import Sizes, compress_tokens, flops
from linformer_from_scratch.data import MaskedBatches
from linformer_from_scratch.encoder import MaskedLanguageModel
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import LearnedProjection
from linformer_from_scratch.training import Config, Trainer, masked_loss
from linformer_from_scratch.training.recipes import Recipe, encoder

BATCH, D_MODEL, NUM_HEADS, PROJ_DIM = 4, 512, 8, 256
LENGTHS, ROUNDS = (1024, 4096), 5
STEP = {"seq_len": 512, "d_model": 128, "num_heads": 4, "num_layers": 4, "proj_dim": 128}  # of the encoder
STEP_BATCH, VOCABULARY = 16, 1000
FULL, PACKAGE = "full, fused", "package linformer"


def layers(n: int) -> dict[str, nn.Module]:
    """The layers to compare, for texts of n tokens; the package only where it is installed."""
    E, F = (LearnedProjection(n, PROJ_DIM) for _ in range(2))
    per_head = [LearnedProjection(n, PROJ_DIM, NUM_HEADS) for _ in range(2)]
    found = {
        FULL: MultiHeadAttention(D_MODEL, NUM_HEADS),
        "Linformer": LinformerAttention(D_MODEL, NUM_HEADS, E, F),
        "Linformer, E = F": LinformerAttention(D_MODEL, NUM_HEADS, E, E),
        "Linformer, E and F per head": LinformerAttention(D_MODEL, NUM_HEADS, *per_head),
    }
    try:
        from linformer import LinformerSelfAttention
    except ImportError:
        return found
    return found | {PACKAGE: LinformerSelfAttention(D_MODEL, n, k=PROJ_DIM, heads=NUM_HEADS)}


def forward(layer: nn.Module, x: Tensor) -> Callable[[], Tensor]:
    """A call that runs the layer without gradients."""
    return torch.no_grad()(lambda: layer(x))


def forward_and_backward(layer: nn.Module, x: Tensor) -> Callable[[], None]:
    """A call that runs the layer and takes gradients of its input and of its weights."""

    def call() -> None:
        layer(x.detach().requires_grad_()).sum().backward()
        layer.zero_grad()

    return call


def compare(n: int, threads: int) -> None:
    """Print one table: a row for each layer."""
    torch.set_num_threads(threads)
    x, found = torch.randn(BATCH, n, D_MODEL), layers(n)
    print(
        f"\nn = {n:,}, {threads} thread{'s' * (threads > 1)}; time as a share of {FULL!r}, and of {PACKAGE!r}"
    )
    print(f"{'':28} {'forward':>16} {'with backward':>18} {'peak MiB':>16}")
    passes = [
        {name: way(layer, x) for name, layer in found.items()} for way in (forward, forward_and_backward)
    ]
    seconds = [median_seconds(calls, ROUNDS) for calls in passes]
    for name in found:
        shares = [f"{took[name] / took[FULL]:.2f}  {of_package(took, name)}" for took in seconds]
        peaks = [f"{peak_bytes(calls[name]) / 2**20:.0f}" for calls in passes]
        print(f"{name:28} {shares[0]:>16} {shares[1]:>18} {', '.join(peaks):>16}", flush=True)
    sizes = Sizes(n, batch=BATCH, d_model=D_MODEL, num_heads=NUM_HEADS, proj_dim=PROJ_DIM)
    floor = flops(compress_tokens(sizes)) / matmul_ceiling()
    print(f"Linformer forward: products alone would take {floor / seconds[0]['Linformer']:.2f} of its time")


def compare_steps(threads: int) -> None:
    """Print Linformer's share of the time and memory of a training step, and the share of loading a batch."""
    torch.set_num_threads(threads)
    ids = torch.randint(3, VOCABULARY, (2**16,))
    batches = MaskedBatches(ids, STEP["seq_len"], STEP_BATCH, VOCABULARY)
    calls = {"loading": lambda: batches(0)}
    for attention in ("full", "linformer"):
        model = MaskedLanguageModel(encoder(Recipe(attention, **STEP), VOCABULARY))
        trainer = Trainer(model, masked_loss, batches, Config(steps=10**6), device="cpu")
        calls[attention] = lambda trainer=trainer: trainer.train(trainer.step + 1)
    seconds = median_seconds(calls, ROUNDS)
    peaks = {name: peak_bytes(calls[name]) / 2**20 for name in ("full", "linformer")}
    print(
        f"\nTraining step, {STEP}, batch {STEP_BATCH}, {threads} thread{'s' * (threads > 1)}\n"
        f"Linformer takes {seconds['linformer'] / seconds['full']:.2f} of the time of full attention, fused, "
        f"peaks {peaks['linformer']:.0f} and {peaks['full']:.0f} MiB; "
        f"loading the batch takes {seconds['loading'] / seconds['linformer']:.5f} of Linformer's step",
        flush=True,
    )


def of_package(seconds: dict[str, float], name: str) -> str:
    """A layer's time as a share of the package's."""
    return f"{seconds[name] / seconds[PACKAGE]:.2f}" if PACKAGE in seconds else "–"


if __name__ == "__main__":
    torch.manual_seed(0)
    for length in LENGTHS:
        for threads in sorted({1, os.cpu_count()}, reverse=True):
            compare(length, threads)
    for threads in sorted({1, os.cpu_count()}, reverse=True):
        compare_steps(threads)
