"""Sentence encoders with Linformer for texts of every length: fitted, judged and timed (chapter 12).

What is fitted is kept in build/lengths, and a fit that was stopped goes on. Half an hour a fit on one core.
"""

import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn
from torch.nn import functional

from lab.experiment import BUILD, Experiment, every, rounded
from linformer_from_scratch.benchmark import samples
from linformer_from_scratch.common.files import atomic_write
from linformer_from_scratch.course.recorded.lengths import PROJ_DIM, SHIPPED, TIMED_AT
from linformer_from_scratch.data import docstrings, documents, split
from linformer_from_scratch.heads import AttentionLayer
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained import MAX_TOKENS, NUM_HEADS, NUM_LAYERS, capstone, sentence_encoder
from linformer_from_scratch.pretrained.adapting import Crops, VectorLoss, adapt
from linformer_from_scratch.pretrained.capstone import ChunkEncoder, embed_all, mean_cosine, passages
from linformer_from_scratch.pretrained.lengthwise import window_encoder
from linformer_from_scratch.pretrained.low_rank_updates import learned, load_updates
from linformer_from_scratch.pretrained.network import SentenceEncoder
from linformer_from_scratch.pretrained.texts import MARKS
from linformer_from_scratch.pretrained.weights import D_MODEL
from linformer_from_scratch.pretrained.windows import windows
from linformer_from_scratch.projections import LearnedProjection, MeanPooling, start_at
from linformer_from_scratch.training import Config

FITTED = BUILD / "lengths"
LAST = NUM_LAYERS - 1
THREE = (1, 3, LAST)  # layers of the smaller encoder, counted from 0
LENGTHS = (64, 128, 256, 384, 512)
PASSAGES = 200  # of each corpus, at most
MORE_AND_MORE = [(count, 1.0) for count in (0, 1, 4, 16, 32, 64, 128, 256)]
SMALLER = [(0, factor) for factor in (0.9, 0.8, 0.7, 0.6)]
RESTING = [  # tokens, the slots of [CLS] and [SEP]; how many slots hold nothing, a factor in their place
    {"n": n, "ends": ends, "empty": empty, "factor": factor}
    for n, ends, both in (
        (MAX_TOKENS, "shared", MORE_AND_MORE + SMALLER),
        (MAX_TOKENS, "alone", MORE_AND_MORE[:6] + SMALLER),
        (MAX_TOKENS, "alone, fitted", MORE_AND_MORE[:5] + SMALLER[:1]),
        (256, "shared", [(0, 1.0), (32, 1.0), (0, 0.7)]),
    )
    for empty, factor in both
]
BATCH, ROUNDS = 4, 21  # texts that are timed, and how often
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


SHIPPED_FIT = "windows, last layer exact"  # the one that comes with the course
FITS = {  # how each begins, the shortest text it is fitted on, and the blocks that are compared
    SHIPPED_FIT: (lambda: window_encoder(PROJ_DIM, (LAST,)), PROJ_DIM + 1, range(NUM_LAYERS)),
    "three layers": (three_layers, 8, THREE),
    "windows": (lambda: window_encoder(PROJ_DIM), PROJ_DIM + 1, range(NUM_LAYERS)),
}


def fit(way: str) -> dict:
    """Fit an encoder, and keep what it learned."""
    begin, shortest, blocks = FITS[way]
    model, teacher = begin(), sentence_encoder.full_encoder()
    crops = Crops(split(docstrings())[0].values(), shortest)
    loss, folder = VectorLoss(teacher, blocks), FITTED / f"{way} run"
    losses = adapt(model, loss, crops, sentence_encoder.RANK, CONFIG, folder)
    atomic_write(FITTED / f"{way}.safetensors", save(learned(model)))
    first, last = (torch.tensor(some).mean().item() for some in (losses[:20], losses[-100:]))
    numbers = sum(tensor.numel() for tensor in learned(model).values())
    return {"updates": len(losses), "numbers": numbers, "first loss": round(first, 4), "loss": round(last, 4)}


def updates(way: str) -> dict[str, Tensor]:
    """What was learned, by name; fitted now if it is not there."""
    path = FITTED / f"{way}.safetensors"
    if not path.exists():
        fit(way)
    return load_file(path)


def fitted(way: str) -> SentenceEncoder:
    """A fitted encoder."""
    model = FITS[way][0]()
    load_updates(model, sentence_encoder.RANK, updates(way))
    return model.eval()


@cache
def texts(n: int) -> dict[str, tuple[Tensor, Tensor, Tensor]]:
    """Held-out passages of n tokens of both corpora, which follow each other, and their exact vectors."""
    teacher, corpora = sentence_encoder.full_encoder(), {}
    for name, some in {"docstrings": split(docstrings())[1], "reference": documents()}.items():
        ids, pairs = passages(some, n)
        ids, pairs = ids[:PASSAGES], pairs[(pairs < PASSAGES).all(dim=1)]
        corpora[name] = ids, pairs, embed_all(teacher, ids)
    return corpora


def int8(model: SentenceEncoder) -> nn.Module:
    """The weights of all linear layers in 8 bits, a scale for each row; activations as they come."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this part of PyTorch will move to another package
        how = {nn.Linear: torch.ao.quantization.per_channel_dynamic_qconfig}
        return torch.ao.quantization.quantize_dynamic(model, how)


def pooled(n: int, k: int) -> SentenceEncoder:
    """Windows of n tokens in which the first and the last are not alone."""
    return sentence_encoder.linformer_encoder(lambda: MeanPooling(n, min(n, k)))


def resting(n: int, empty: int, ends: str) -> SentenceEncoder:
    """Slots of windows, and besides some that hold nothing: rows of E that are zero.

    Args: ends: "shared" where [CLS] and [SEP] share their slots with neighbours, "alone" where they do not,
        "alone, fitted" for what comes with the course, its last layer exact.
    """
    shared = MeanPooling(n, PROJ_DIM)(torch.eye(n))
    E = shared if ends == "shared" else windows(torch.tensor([n]), PROJ_DIM, n)[0]
    E = functional.pad(E, (0, 0, 0, empty))

    def layer() -> AttentionLayer:
        both = (start_at(LearnedProjection(n, len(E)), E) for _ in range(2))
        return LinformerAttention(D_MODEL, NUM_HEADS, *both)

    if ends != "alone, fitted":
        return SentenceEncoder(layer() for _ in range(NUM_LAYERS))
    last = MultiHeadAttention(D_MODEL, NUM_HEADS)
    model = SentenceEncoder([*(layer() for _ in range(LAST)), last])
    fitted = load_file(sentence_encoder.FITTED / f"minilm_linformer_k{PROJ_DIM}.safetensors")
    load_updates(model, sentence_encoder.RANK, fitted)
    return model


@torch.no_grad()
def rest(n: int, empty: int, ends: str, factor: float) -> dict:
    """Cosines to the exact vectors with slots that hold nothing: their mean, and its standard error.

    Args: factor: what attention finds is multiplied by it: a control, since slots that hold nothing make it
        smaller as well.
    """
    model, row = resting(n, empty, ends), {}
    for block in model.blocks:
        block.get_parameter("attention.output.weight").mul_(factor)
    for name, (ids, _, expected) in texts(n).items():
        row[name] = [*cosine_and_error(embed_all(model, ids), expected)]
    return row


def cosine_and_error(vectors: Tensor, expected: Tensor) -> tuple[float, float]:
    """The mean cosine, and its standard error, passages counted as independent."""
    cosines = (vectors * expected).sum(dim=-1)
    return round(cosines.mean().item(), 4), round(cosines.std().item() / len(cosines) ** 0.5, 4)


WAYS: dict[str, Callable[[int], Any]] = {  # name -> the encoder for texts of n tokens
    "exact": lambda n: sentence_encoder.full_encoder(),
    "one slot": lambda n: pooled(n, 1),
    "E and F at fixed places": lambda n: sentence_encoder.fixed_encoder(),
    "windows of n, ends not alone": lambda n: pooled(n, PROJ_DIM),
    "windows of n": lambda n: window_encoder(PROJ_DIM),
    "windows of n, last layer exact": lambda n: window_encoder(PROJ_DIM, (LAST,)),
    "windows of n, fitted": lambda n: fitted("windows"),
    "windows of n, last layer exact, fitted": lambda n: fitted(SHIPPED_FIT),
    "chunks of 128": lambda n: ChunkEncoder(sentence_encoder.full_encoder(), PROJ_DIM - MARKS),
    "three layers, fitted": lambda n: fitted("three layers"),
    "int8": lambda n: int8(sentence_encoder.full_encoder()),
    "windows of n, last layer exact, fitted, int8": lambda n: int8(fitted(SHIPPED_FIT)),
}


def retained(way: str, n: int) -> dict:
    """What a way keeps of the exact encoder's vectors and searches, on both corpora.

    cosine: mean to the exact vectors, and its standard error. ranks: at which a search with each passage
    finds the one that follows it.
    """
    model, row = WAYS[way](n), {}
    for name, (ids, pairs, expected) in texts(n).items():
        vectors = embed_all(model, ids)
        cosine, error = cosine_and_error(vectors, expected)
        ranks = capstone.following_ranks(vectors, pairs).tolist()
        row[name] = {"cosine": cosine, "standard error": error, "ranks": ranks}
    return row


def retained_by_layer(layer: int) -> dict:
    """As retained, of windows in one layer alone: where exact attention matters. Cosines at 512 tokens."""
    model = window_encoder(PROJ_DIM, tuple(i for i in range(NUM_LAYERS) if i != layer))
    return {
        name: round(mean_cosine(embed_all(model, ids), expected), 4)
        for name, (ids, _, expected) in texts(MAX_TOKENS).items()
    }


UNFITTED: dict[str, Callable[[], Any]] = {  # time does not depend on what was fitted
    "three layers, fitted": three_layers,
    f"{SHIPPED}, fitted, int8": lambda: int8(window_encoder(PROJ_DIM, (LAST,))),
}
AS_THEY_ARE = ("exact", "E and F at fixed places", "windows of n", SHIPPED, "chunks of 128", "int8")


@torch.no_grad()
def seconds(n: int) -> dict:
    """Of a batch of texts of n tokens: seconds of every encoder in every round, in shuffled turns."""
    (ids,) = Crops(split(docstrings())[1].values(), n, n)(0)
    ids = ids[:1].expand(BATCH, -1).contiguous()
    encoders = {name: WAYS[name](n) for name in AS_THEY_ARE}
    encoders |= {name: make().eval() for name, make in UNFITTED.items()}
    found = samples({name: partial(model.embed, ids) for name, model in encoders.items()}, ROUNDS)
    return {"seconds": rounded(found)}


EXPERIMENTS = [
    Experiment("12_fits", "encoders fitted to the exact one, texts of every length", every(way=FITS), fit),
    Experiment("12_layers", "windows in one layer of six", every(layer=range(NUM_LAYERS)), retained_by_layer),
    Experiment("12_lengths", "what encoders keep, by length", every(n=LENGTHS, way=WAYS), retained),
    Experiment("12_rest", "slots that hold nothing, beside those that do", RESTING, rest),
    Experiment("12_seconds", "of encoders; let nothing else run", every(n=TIMED_AT), seconds, threads=2),
]
