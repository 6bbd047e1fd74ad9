"""The capstone of chapter 12: Linformer put into MiniLM, fitted to what the exact model says.

Fitted E and F are kept in build/capstone. Some ten minutes a row on one core; what is quick comes first.
"""

import time
from collections.abc import Callable
from functools import cache, partial

import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from lab.experiment import BUILD, Experiment
from linformer_from_scratch.benchmark import median_seconds, peak_bytes
from linformer_from_scratch.benchmark.layers import FUSED, STORED, StoredMaps
from linformer_from_scratch.common.files import atomic_write
from linformer_from_scratch.data import docstrings, documents, split
from linformer_from_scratch.pretrained import MAX_TOKENS, NUM_HEADS, NUM_LAYERS, sentence_encoder
from linformer_from_scratch.pretrained.capstone import ChunkEncoder, embed_all, fit, passages, retention
from linformer_from_scratch.pretrained.sentence_encoder import SentenceEncoder
from linformer_from_scratch.projections import LearnedProjection, MeanPooling, start_at_windows
from linformer_from_scratch.training.recipes import projection_weights

FITTED = BUILD / "capstone"
WIDTHS = (128, 32, 64, 256)
CHUNK = 128  # tokens, the [CLS] and [SEP] of a chunk not counted
UPDATES = 200  # of E and F, then as many of all weights; mean pooling gets both together
RATE_EF, RATE_ALL = 3e-4, 1e-4
BATCH = 4  # texts of the forward pass that is timed


class Texts:
    """Passages to fit on, and two sets to judge by: docstrings held out, and the language reference."""

    def __init__(self) -> None:
        learned, held_out = split(docstrings())
        self.train, _ = passages(learned)
        self.teacher = sentence_encoder.full_encoder()
        self.held_out = {"docstrings": passages(held_out), "reference": passages(documents())}
        self.expected = {name: embed_all(self.teacher, ids) for name, (ids, _) in self.held_out.items()}

    def judge(self, model: SentenceEncoder | ChunkEncoder) -> dict:
        """What a model keeps, on either set."""
        return {
            name: {
                what: round(x, 4) if isinstance(x, float) else x
                for what, x in retention(model, *texts_and_pairs, self.expected[name]).items()
            }
            for name, texts_and_pairs in self.held_out.items()
        }

    def fitted(self, model: SentenceEncoder, some: list[nn.Parameter], updates: int, rate: float) -> dict:
        """Fit some parameters, then judge."""
        start = time.perf_counter()
        losses = fit(model, some, self.teacher, self.train, updates, rate)
        last = sum(losses[-20:]) / 20
        row = {"updates": updates, "rate": rate, "loss": round(last, 4)}
        return row | {"seconds": round(time.perf_counter() - start)} | self.judge(model)


@cache
def texts() -> Texts:
    """The same for all ways; embedding them takes minutes."""
    return Texts()


def fresh(k: int) -> SentenceEncoder:
    """Linformer with E and F to be learned, from windows on."""
    return sentence_encoder.linformer_encoder(lambda: start_at_windows(LearnedProjection(MAX_TOKENS, k)))


def pooled(k: int) -> SentenceEncoder:
    """Linformer with mean pooling."""
    return sentence_encoder.linformer_encoder(lambda: MeanPooling(MAX_TOKENS, k))


def fit_projections(k: int) -> dict:
    """Fit E and F alone, and keep them."""
    model = fresh(k)
    row = texts().fitted(model, projection_weights(model), UPDATES, RATE_EF)
    FITTED.mkdir(parents=True, exist_ok=True)
    atomic_write(FITTED / f"k{k}.safetensors", save(sentence_encoder.projections(model)))
    return row


def fitted_projections(k: int) -> dict[str, Tensor]:
    """The fitted E and F by their names in the model; fitted again where they have been removed since."""
    path = FITTED / f"k{k}.safetensors"
    if not path.exists():
        fit_projections(k)
    return load_file(path)


def fit_all(k: int) -> dict:
    """Go on from the fitted E and F with all weights."""
    model = fresh(k)
    model.load_state_dict(fitted_projections(k), strict=False)
    return texts().fitted(model, list(model.parameters()), UPDATES, RATE_ALL)


def fit_pooled(k: int) -> dict:
    """Mean pooling kept, all weights fitted for as many updates as the other two together."""
    model = pooled(k)
    return texts().fitted(model, list(model.parameters()), 2 * UPDATES, RATE_ALL)


WAYS: dict[str, tuple[Callable[[int], dict], tuple[int, ...]]] = {  # and the values of k
    "exact": (lambda k: texts().judge(texts().teacher), (MAX_TOKENS,)),
    "one slot": (lambda k: texts().judge(pooled(k)), (1,)),  # every query reads the same mean
    "chunks": (lambda k: texts().judge(ChunkEncoder(texts().teacher, k)), (CHUNK,)),
    "mean pooling": (lambda k: texts().judge(pooled(k)), WIDTHS),
    "E and F": (fit_projections, WIDTHS),
    "E and F, as shipped": (lambda k: texts().judge(sentence_encoder.fixed_encoder()), (128,)),
    "best rank": (lambda k: texts().judge(sentence_encoder.best_rank_encoder(k)), (32, 128)),
    "E and F, then all": (fit_all, WIDTHS),
    "mean pooling, all": (fit_pooled, (128,)),
}


def retained(way: str, k: int) -> dict:
    """What is kept of the exact model in one of the ways."""
    measure, _ = WAYS[way]
    return measure(k)


def compared() -> dict[str, SentenceEncoder | ChunkEncoder]:
    """The encoders whose time and memory are compared."""
    sizes = sentence_encoder.D_MODEL, NUM_HEADS
    fused = sentence_encoder.full_encoder()
    exact: dict[str, SentenceEncoder | ChunkEncoder] = {
        STORED: SentenceEncoder(StoredMaps(*sizes) for _ in range(NUM_LAYERS)),
        FUSED: fused,
        f"fused exact, chunks of {CHUNK}": ChunkEncoder(fused, CHUNK),
    }
    return exact | {f"Linformer, k = {k}": fresh(k) for k in sorted(WIDTHS)}


@torch.no_grad()
def costs(batch: int, n: int) -> dict:
    """Of one batch's vectors: median seconds and bytes at the peak, name -> both."""
    _, held_out = split(docstrings())
    ids, encoders = passages(held_out, n)[0][:batch], compared()
    calls = {name: partial(encoder.embed, ids) for name, encoder in encoders.items()}
    seconds = median_seconds(calls, rounds=15)
    taken = {}
    for name, call in calls.items():
        taken[name] = {"seconds": round(seconds[name], 4), "bytes": peak_bytes(call)}
    return {"costs": taken}


GRID = [{"way": way, "k": k} for way, (_, widths) in WAYS.items() for k in widths]
BATCHES = [{"batch": BATCH, "n": MAX_TOKENS}]
EXPERIMENTS = [
    Experiment("12_capstone", "MiniLM with Linformer inside: what it keeps, each way and k", GRID, retained),
    Experiment("12_costs", "its time and memory; let nothing else run", BATCHES, costs, threads=2),
]
