"""Sentence encoders with Linformer for texts of every length: fitted, judged and timed (chapter 12).

What is fitted is kept in build/lengths, and a fit that was stopped goes on. Half an hour a fit on one core.
"""

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from linformer_from_scratch.course.experiments.experiment import BUILD, Experiment
from linformer_from_scratch.course.files import atomic_write
from linformer_from_scratch.data import docstrings, split
from linformer_from_scratch.limits.adapting import Crops, VectorLoss, adapt
from linformer_from_scratch.pretrained import NUM_LAYERS, sentence_encoder
from linformer_from_scratch.pretrained.low_rank_updates import learned, load_updates
from linformer_from_scratch.pretrained.network import SentenceEncoder
from linformer_from_scratch.training import Config

KEPT = BUILD / "lengths"
PROJ_DIM, RANK = 128, 16
LAST = NUM_LAYERS - 1
THREE = (1, 3, LAST)  # layers of the smaller encoder, counted from 0
CONFIG = Config(steps=1000, learning_rate=1e-3, warmup=50, weight_decay=0.0, evaluate_every=100)


class Skipped(nn.Module):
    """A block that was taken out. Shape: x -> x"""

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """What comes in."""
        return x


def three_layers() -> SentenceEncoder:
    """Exact attention, every other block taken out."""
    model = sentence_encoder.full_encoder()
    for i in set(range(NUM_LAYERS)) - set(THREE):
        model.blocks[i] = Skipped()
    return model


FITS = {  # how each begins, the shortest text it is fitted on, and the blocks that are compared
    "windows, last layer exact": (
        lambda: sentence_encoder.window_encoder(PROJ_DIM, exact=[LAST]),
        PROJ_DIM + 1,
        range(NUM_LAYERS),
    ),
    "three layers": (three_layers, 8, THREE),
    "windows": (lambda: sentence_encoder.window_encoder(PROJ_DIM), PROJ_DIM + 1, range(NUM_LAYERS)),
}


def fit(way: str) -> dict:
    """Fit an encoder, and keep what it learned."""
    begin, shortest, blocks = FITS[way]
    model, teacher = begin(), sentence_encoder.full_encoder()
    crops = Crops(split(docstrings())[0].values(), shortest)
    losses = adapt(model, VectorLoss(teacher, blocks), crops, RANK, CONFIG, KEPT / f"{way} run")
    atomic_write(KEPT / f"{way}.safetensors", save(learned(model)))
    first, last = (torch.tensor(some).mean().item() for some in (losses[:20], losses[-100:]))
    numbers = sum(tensor.numel() for tensor in learned(model).values())
    return {"updates": len(losses), "numbers": numbers, "first loss": round(first, 4), "loss": round(last, 4)}


def fitted(way: str) -> SentenceEncoder:
    """A fitted encoder; fitted now if it is not there."""
    path = KEPT / f"{way}.safetensors"
    if not path.exists():
        fit(way)
    model = FITS[way][0]()
    load_updates(model, RANK, load_file(path))
    return model.eval()


EXPERIMENTS = [
    Experiment(
        "12_fits",
        "sentence encoders fitted to the exact one on texts of every length",
        [{"way": way} for way in FITS],
        fit,
        __file__,
    ),
]
