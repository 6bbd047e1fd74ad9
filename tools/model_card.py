"""Write the model card of the fitted encoder from what was recorded: python tools/model_card.py

Its text is model_card.md, in the form that the Hugging Face Hub reads; the numbers are recorded rows.
"""

from pathlib import Path

import torch

from linformer_from_scratch.course.numbers_of_advice import over_exact
from linformer_from_scratch.experiments import lengths
from linformer_from_scratch.experiments.results import RESULTS, read, read_rows, select
from linformer_from_scratch.limits.adapting import TOKENS
from linformer_from_scratch.limits.bootstrap import paired_bootstrap
from linformer_from_scratch.pretrained.sentence_encoder import FITTED, RANK
from linformer_from_scratch.pretrained.weights import SHA256

CARD = FITTED / f"minilm_linformer_k{lengths.PROJ_DIM}.md"
NAMES = {  # of the card, and of the rows
    "this model": "windows of n, last layer exact, fitted",
    "this model, int8": "windows of n, last layer exact, fitted, int8",
    "exact, int8": "int8",
    "exact, chunks of 128 averaged": "chunks of 128",
    "exact, 3 of 6 layers, fitted alike": "three layers, fitted",
}
CORPORA = ("docstrings", "reference")
QUALITY = [f"{name}: {what}" for name in CORPORA for what in ("cosine", "search")]

TEMPLATE = Path(__file__).with_suffix(".md")


def card() -> str:
    """The whole card."""
    (fit,) = select(read_rows("12_fits"), way=lengths.KEEPER)
    return TEMPLATE.read_text(encoding="utf-8").format(
        sha=SHA256["model.safetensors"],
        crossover=lengths.crossover(),
        kept=table(["n", *QUALITY], kept()),
        machine=read(RESULTS / "12_seconds.json")["machine"]["processor"],
        time=table(["n", *NAMES], times()),
        instead=table(["", "time", *QUALITY], instead()),
        rank=RANK,
        numbers=f"{fit['numbers']:,}",
        updates=f"{fit['updates']:,}",
        tokens=TOKENS,
        rate=lengths.CONFIG.learning_rate,
        shortest=lengths.FITS[lengths.KEEPER][1],
    )


def kept() -> list[list[str]]:
    """A line for each length."""
    at = [n for n in lengths.LENGTHS if n >= lengths.crossover()]
    return [[str(n), *quality(NAMES["this model"], n)] for n in at]


def quality(way: str, n: int) -> list[str]:
    """Cosine and search of both corpora."""
    cells = []
    for name in CORPORA:
        row, exact = (select(read_rows("12_lengths"), way=one, n=n)[0][name] for one in (way, "exact"))
        cells.append(f"{row['cosine']:.3f} ± {row['standard error']:.3f}")
        cells.append(f"{paired_bootstrap(*(1 / torch.tensor(some['ranks']) for some in (row, exact))):+.3f}")
    return cells


def times() -> list[list[str]]:
    """A line for each length that was timed."""
    at = sorted(row["n"] for row in read_rows("12_seconds"))
    return [[str(n), *(f"{over_exact(way, n):.2f}" for way in NAMES.values())] for n in at]


def instead() -> list[list[str]]:
    """A line for each way, at 512 tokens."""
    return [[name, f"{over_exact(way, 512):.2f}", *quality(way, 512)] for name, way in NAMES.items()]


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    CARD.write_text(card(), encoding="utf-8", newline="\n")
