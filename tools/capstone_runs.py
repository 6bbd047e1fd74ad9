"""Put Linformer into MiniLM as chapter 12 shows it: python tools/capstone_runs.py

Writes course/recorded/12_capstone.json, a row for each way and k, and the fitted E and F to
build/capstone. What stands in the file is not measured again. Some ten minutes a row on one core; what is
quick comes first.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from linformer_from_scratch.benchmark import median_seconds, peak_bytes
from linformer_from_scratch.benchmark.layers import FUSED, STORED, StoredMaps
from linformer_from_scratch.course.results import RESULTS, Results, select
from linformer_from_scratch.data import docstrings, documents, split
from linformer_from_scratch.limits.capstone import embed_all, fit, passages, retention
from linformer_from_scratch.pretrained import MAX_TOKENS, NUM_HEADS, NUM_LAYERS, sentence_encoder
from linformer_from_scratch.projections import LearnedProjection, MeanPooling, start_at_windows
from linformer_from_scratch.training.recipes import projection_weights

FITTED = Path(__file__).resolve().parents[1] / "build" / "capstone"
WIDTHS = (128, 32, 64, 256)
UPDATES = 200  # of E and F, then as many of all weights; mean pooling gets both together
RATE_EF, RATE_ALL = 3e-4, 1e-4


class Texts:
    """Passages to fit on, and two sets to judge by: docstrings held out, and the language reference."""

    def __init__(self):
        learned, held_out = split(docstrings())
        self.train, _ = passages(learned)
        self.teacher = sentence_encoder.full_encoder()
        self.held_out = {"docstrings": passages(held_out), "reference": passages(documents())}
        self.expected = {name: embed_all(self.teacher, ids) for name, (ids, _) in self.held_out.items()}

    def judge(self, model: sentence_encoder.SentenceEncoder) -> dict:
        """What a model keeps, on either set."""
        return {
            name: {what: round(x, 4) for what, x in retention(model, *found, self.expected[name]).items()}
            for name, found in self.held_out.items()
        }

    def fitted(self, model, parameters: list, updates: int, rate: float) -> dict:
        """Fit, then judge."""
        start = time.perf_counter()
        losses = fit(model, parameters, self.teacher, self.train, updates, rate)
        last = sum(losses[-20:]) / 20
        row = {"updates": updates, "rate": rate, "loss": round(last, 4)}
        return row | {"seconds": round(time.perf_counter() - start)} | self.judge(model)


def fresh(k: int) -> sentence_encoder.SentenceEncoder:
    """Linformer with E and F to be learned, from windows on."""
    return sentence_encoder.linformer_encoder(lambda: start_at_windows(LearnedProjection(MAX_TOKENS, k)))


def pooled(k: int) -> sentence_encoder.SentenceEncoder:
    """Linformer with mean pooling."""
    return sentence_encoder.linformer_encoder(lambda: MeanPooling(MAX_TOKENS, k))


def fit_projections(texts: Texts, k: int) -> dict:
    """Fit E and F alone, and keep them."""
    model = fresh(k)
    row = texts.fitted(model, projection_weights(model), UPDATES, RATE_EF)
    FITTED.mkdir(parents=True, exist_ok=True)
    save_file(sentence_encoder.projections(model), FITTED / f"k{k}.safetensors")
    return row


def fit_all(texts: Texts, k: int) -> dict:
    """Go on from the fitted E and F with all weights."""
    if not (FITTED / f"k{k}.safetensors").exists():  # recorded before, and since removed
        fit_projections(texts, k)
    model = fresh(k)
    model.load_state_dict(load_file(FITTED / f"k{k}.safetensors"), strict=False)
    return texts.fitted(model, list(model.parameters()), UPDATES, RATE_ALL)


def fit_pooled(texts: Texts, k: int) -> dict:
    """Mean pooling kept, all weights fitted for as many updates as the other two together."""
    model = pooled(k)
    return texts.fitted(model, list(model.parameters()), 2 * UPDATES, RATE_ALL)


def compared() -> dict[str, sentence_encoder.SentenceEncoder]:
    """The encoders whose time and memory are compared."""
    sizes = sentence_encoder.D_MODEL, NUM_HEADS
    exact = {
        STORED: sentence_encoder.SentenceEncoder(StoredMaps(*sizes) for _ in range(NUM_LAYERS)),
        FUSED: sentence_encoder.full_encoder(),
    }
    return exact | {f"Linformer, k = {k}": fresh(k) for k in sorted(WIDTHS)}


@torch.no_grad()
def costs() -> dict:
    """Of one forward pass of four texts of 512 tokens: median seconds and bytes at the peak, name -> both."""
    ids, encoders = passages(split(docstrings())[1])[0][:4], compared()
    seconds = median_seconds({name: partial(encoder, ids) for name, encoder in encoders.items()}, rounds=15)
    return {
        name: {"seconds": round(seconds[name], 4), "bytes": peak_bytes(encoder, ids)}
        for name, encoder in encoders.items()
    }


def ship(k: int) -> None:
    """Put fitted E and F where the course finds them, in half precision."""
    found = {name: tensor.half() for name, tensor in load_file(FITTED / f"k{k}.safetensors").items()}
    about = {"model": "all-MiniLM-L6-v2", "seq_len": str(MAX_TOKENS), "proj_dim": str(k)}
    save_file(found, sentence_encoder.FITTED / f"minilm_linformer_k{k}.safetensors", metadata=about)


WAYS: dict[str, tuple[Callable[[Texts, int], dict], tuple[int, ...]]] = {  # and the values of k
    "one slot": (lambda texts, k: texts.judge(pooled(k)), (1,)),  # every query reads the same mean
    "mean pooling": (lambda texts, k: texts.judge(pooled(k)), WIDTHS),
    "E and F": (fit_projections, WIDTHS),
    "best rank": (lambda texts, k: texts.judge(sentence_encoder.best_rank_encoder(k)), (32, 128)),
    "E and F, then all": (fit_all, WIDTHS),
    "mean pooling, all": (fit_pooled, (128,)),
}


def main() -> None:
    """Measure all that is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--costs", action="store_true", help="only time and memory, to 12_costs.json")
    parser.add_argument("--ship", type=int, metavar="K", help="only put the fitted E and F into the course")
    arguments = parser.parse_args()
    if arguments.ship:
        return ship(arguments.ship)
    if arguments.costs:
        results = Results(RESULTS / "12_costs.json", "python tools/capstone_runs.py --costs")
        return results.measure({"batch": 4, "n": MAX_TOKENS}, lambda: {"costs": costs()})
    results, texts = Results(RESULTS / "12_capstone.json", "python tools/capstone_runs.py"), Texts()
    results.measure({"way": "exact", "k": MAX_TOKENS}, lambda: texts.judge(texts.teacher))
    for way, (measure, widths) in WAYS.items():
        for k in widths:
            results.measure({"way": way, "k": k}, lambda measure=measure, k=k: measure(texts, k))
            print(*select(results.content["rows"], way=way, k=k), flush=True)


if __name__ == "__main__":
    main()
