"""The ledger of claims as a page: every claim with its verdict, to be filtered by verdict and chapter."""

from pathlib import Path

import jinja2

from linformer_from_scratch.course.ledger import KINDS, Claim, kind_of, ledger

TEMPLATE = Path(__file__).parent / "templates" / "ledger.md.j2"


def page() -> str:
    """The page as MyST; without a script all claims stand there."""
    claims = ledger()
    shown = {
        kind: means for kind, means in KINDS.items() if any(kind_of(one.verdict) == kind for one in claims)
    }
    template = jinja2.Environment(autoescape=True).from_string(TEMPLATE.read_text(encoding="utf-8"))
    chapters = sorted({one.chapter for one in claims})
    return template.render(claims=claims, kinds=shown, kind_of=kind_of, chapters=chapters, place=place)


def place(claim: Claim) -> str:
    """Address of the heading above the claim's cell, from the ledger's page."""
    return f"chapters/{claim.link.replace('.ipynb', '.html')}"
