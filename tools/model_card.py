"""Write the model card of the fitted encoder from what was recorded: python -m tools.model_card

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
CORPORA = ("docstrings", "reference")


def card() -> str:
    """The whole card."""
    (fit,) = select(read_rows("12_fits"), way=lengths.SHIPPED_FIT)
    settings = {"undefined": jinja2.StrictUndefined, "trim_blocks": True, "keep_trailing_newline": True}
    text = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    machine = read(RESULTS / "12_seconds.json")["machine"]["processor"]
    facts = {"sha": SHA256["model.safetensors"], "machine": machine, "rank": RANK, "tokens": TOKENS}
    template = jinja2.Environment(**settings).from_string(text)
    return template.render(lengths=lengths, timed=timed, fit=fit, quality=quality, **facts)


def quality(way: str, n: int) -> list[str]:
    """Cosine, with its 95 % interval over more than a hundred passages, and search, of both corpora."""
    cells = []
    for name in CORPORA:
        row, exact = (select(read_rows("12_lengths"), way=one, n=n)[0][name] for one in (way, "exact"))
        cells.append(f"{row['cosine']:.3f} ± {1.96 * row['standard error']:.3f}")
        cells.append(f"{paired_bootstrap(*(1 / torch.tensor(some['ranks']) for some in (row, exact))):+.3f}")
    return cells


if __name__ == "__main__":
    CARD.write_text(card(), encoding="utf-8", newline="\n")
