"""Write the model card of the fitted encoder from what was recorded: python tools/model_card.py

Its text is model_card.md, in the form that the Hugging Face Hub reads; the numbers are recorded rows.
"""

from pathlib import Path

import jinja2
import torch

from lab import lengths
from linformer_from_scratch.common.rows import read
from linformer_from_scratch.course.recorded import RESULTS, read_rows, select
from linformer_from_scratch.course.recorded import lengths as timed
from linformer_from_scratch.pretrained.adapting import TOKENS
from linformer_from_scratch.pretrained.bootstrap import paired_bootstrap
from linformer_from_scratch.pretrained.sentence_encoder import FITTED, RANK
from linformer_from_scratch.pretrained.weights import SHA256

CARD = FITTED / f"minilm_linformer_k{timed.PROJ_DIM}.md"
NAMES = {  # of the card, and of the rows
    "this model": "windows of n, last layer exact, fitted",
    "this model, int8": "windows of n, last layer exact, fitted, int8",
    "exact, int8": "int8",
    "exact, chunks of 128 averaged": "chunks of 128",
    "exact, 3 of 6 layers, fitted": "three layers, fitted",
}
CORPORA = ("docstrings", "reference")


def card() -> str:
    """The whole card."""
    (fit,) = select(read_rows("12_fits"), way=lengths.SHIPPED_FIT)
    template = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    settings = {"undefined": jinja2.StrictUndefined, "trim_blocks": True, "keep_trailing_newline": True}
    return (
        jinja2.Environment(**settings)
        .from_string(template)
        .render(
            sha=SHA256["model.safetensors"],
            crossover=timed.crossover(),
            names=NAMES,
            quality=quality,
            over_exact=timed.over_exact,
            kept=[n for n in lengths.LENGTHS if n >= timed.crossover()],
            timed=timed.TIMED_AT,
            rounds=lengths.ROUNDS,
            machine=read(RESULTS / "12_seconds.json")["machine"]["processor"],
            rank=RANK,
            numbers=f"{fit['numbers']:,}",
            updates=f"{fit['updates']:,}",
            tokens=f"{TOKENS:,}",
            rate=f"{lengths.CONFIG.learning_rate:g}",
            shortest=lengths.FITS[lengths.SHIPPED_FIT][1],
        )
    )


def quality(way: str, n: int) -> list[str]:
    """Cosine and search of both corpora."""
    cells = []
    for name in CORPORA:
        row, exact = (select(read_rows("12_lengths"), way=one, n=n)[0][name] for one in (way, "exact"))
        cells.append(f"{row['cosine']:.3f} ± {row['standard error']:.3f}")
        cells.append(f"{paired_bootstrap(*(1 / torch.tensor(some['ranks']) for some in (row, exact))):+.3f}")
    return cells


if __name__ == "__main__":
    CARD.write_text(card(), encoding="utf-8", newline="\n")
