"""The ledger of claims as a table: what the paper and popular notes say, the verdict, where it is settled."""

import html
import json
from typing import NamedTuple

import yaml

from linformer_from_scratch.course.files import PACKAGE

CLAIMS = PACKAGE / "course" / "claims.yml"
CHAPTERS = PACKAGE.parent / "chapters"  # not there where the package alone is installed
VERDICTS = ("reproduced", "reproduced smaller", "disputed", "not testable here")


class Claim(NamedTuple):
    """One line of the ledger.

    link: to the heading under which the cell stands, as JupyterLab and GitHub make them.
    """

    id: str
    claim: str
    source: str
    verdict: str
    chapter: str
    link: str
    setup: str


def ledger() -> list[Claim]:
    """All claims, in the order of their chapters.

    Raises: ValueError if a claim's cell is missing from its notebook.
    """
    content = yaml.safe_load(CLAIMS.read_text(encoding="utf-8"))
    entries = sorted(content, key=lambda entry: entry["chapter"])
    return [
        Claim(
            **{field: entry[field] for field in ("id", "claim", "source", "verdict", "chapter")},
            link=_link(entry["chapter"], entry["cell"]),
            setup=entry["setup"],
        )
        for entry in entries
    ]


class LedgerTable:
    """Claims as a table with links, in a notebook; as lines of text elsewhere."""

    def __init__(self, claims: list[Claim]):
        self.claims = claims

    def __repr__(self) -> str:
        return "\n".join(f"{claim.id}: {claim.verdict} ({claim.chapter})" for claim in self.claims)

    def _repr_html_(self) -> str:
        head = "".join(
            f"<th style='text-align: left'>{name}</th>" for name in ("", "claim", "verdict", "chapter")
        )
        rows = "".join(map(_row, self.claims))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(claim: Claim) -> str:
    cells = (
        html.escape(claim.id),
        f"{html.escape(claim.claim)} <small>({html.escape(claim.source)})</small>",
        f"<b>{claim.verdict}</b><br><small>{html.escape(claim.setup)}</small>",
        f"<a href='{html.escape(claim.link)}'>{claim.chapter[:2]}</a>",
    )
    return "<tr>" + "".join(f"<td style='text-align: left'>{cell}</td>" for cell in cells) + "</tr>"


def _link(chapter: str, tag: str) -> str:
    """Address of the heading above a tagged cell; of the chapter alone where there are no notebooks."""
    notebook = CHAPTERS / f"{chapter}.ipynb"
    if not CHAPTERS.is_dir():
        return notebook.name
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    heading = ""
    for cell in cells:
        if cell["cell_type"] == "markdown":
            found = [line for line in "".join(cell["source"]).splitlines() if line.startswith("#")]
            heading = found[-1].lstrip("# ") if found else heading
        if tag in cell["metadata"].get("tags", []):
            return f"{notebook.name}#{heading.replace(' ', '-')}"
    raise ValueError(f"no cell of {chapter} has the tag {tag}")
