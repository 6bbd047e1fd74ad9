"""The ledger of claims as a table: what is said, our verdict, what we found, and where."""

import html
import json
from collections.abc import Iterable
from typing import NamedTuple

from linformer_from_scratch.common.files import PACKAGE
from linformer_from_scratch.course.content import read_yaml

CLAIMS = PACKAGE / "course" / "claims.yml"
CHAPTERS = PACKAGE.parent / "chapters"  # not there where the package alone is installed
LEFT = "style='text-align: left'"
ONLY_IF = "only if"
KINDS = {  # of verdict, and what each means
    "wrong": "the algebra or a definition says otherwise",
    "right": "the algebra, or a count, says so too",
    ONLY_IF: "holds under the condition that the verdict names",
    "reproduced": "measured here, and found again",
    "reproduced at smaller scale": "the effect is there, on something smaller than the source's",
    "not reproduced": "measured here, and not found",
    "not testable here": "what we can run does not decide it",
}


class Claim(NamedTuple):
    """One line of the ledger.

    claim: as its source words it.
    verdict: one of KINDS; "only if" with its condition.
    found: what the course found, in a sentence with its numbers.
    setup: how far that reaches: lengths, seeds, model.
    link: to the heading under which the cell stands, as JupyterLab and GitHub make them.
    """

    id: str
    claim: str
    source: str
    verdict: str
    found: str
    setup: str
    chapter: str
    link: str


def kind_of(verdict: str) -> str:
    """Of which of the KINDS a verdict is.

    Raises: ValueError if it is of none, or says "only if" without a condition.
    """
    if verdict.startswith(f"{ONLY_IF} ") and verdict.removeprefix(ONLY_IF).strip():
        return ONLY_IF
    if verdict in KINDS and verdict != ONLY_IF:
        return verdict
    raise ValueError(
        f"got the verdict {verdict!r}, expected {', '.join(KINDS)} with a condition where it is due"
    )


def ledger() -> list[Claim]:
    """All claims, in the order of their chapters.

    Raises: ValueError if a claim's cell is missing from its notebook.
    """
    content = read_yaml(CLAIMS)
    entries = sorted(content, key=lambda entry: entry["chapter"])
    written = [field for field in Claim._fields if field != "link"]
    return [
        Claim(**{field: entry[field] for field in written}, link=link(entry["chapter"], entry["cell"]))
        for entry in entries
    ]


def by_kind(claims: Iterable[Claim]) -> dict[str, list[Claim]]:
    """Claims by the kind of their verdict, in the order of KINDS; kinds without a claim are left out.

    Raises: ValueError if a verdict is of no kind.
    """
    groups: dict[str, list[Claim]] = {kind: [] for kind in KINDS}
    for claim in claims:
        groups[kind_of(claim.verdict)].append(claim)
    return {kind: of_kind for kind, of_kind in groups.items() if of_kind}


class LedgerTable:
    """Claims by the kind of their verdict: a table with links in a notebook, lines of text elsewhere."""

    def __init__(self, claims: list[Claim]):
        self.claims = claims

    def __repr__(self) -> str:
        claims = [claim for of_kind in by_kind(self.claims).values() for claim in of_kind]
        return "\n".join(f"{claim.id}: {claim.verdict} ({claim.chapter})" for claim in claims)

    def _repr_html_(self) -> str:
        columns = ("", "claim", "verdict", "what we found", "chapter")
        head = "".join(f"<th {LEFT}>{name}</th>" for name in columns)
        rows = "".join(_group(kind, claims) for kind, claims in by_kind(self.claims).items())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _group(kind: str, claims: list[Claim]) -> str:
    title = f"{kind.capitalize()} ({len(claims)}): {KINDS[kind]}"
    return f"<tr><th colspan='5' {LEFT}>{html.escape(title)}</th></tr>" + "".join(map(_row, claims))


def _row(claim: Claim) -> str:
    cells = (
        html.escape(claim.id),
        f"{html.escape(claim.claim)} <small>({html.escape(claim.source)})</small>",
        f"<b>{html.escape(claim.verdict)}</b>",
        f"{html.escape(claim.found)} <small>({html.escape(claim.setup)})</small>",
        f"<a href='{html.escape(claim.link)}'>{claim.chapter[:2]}</a>",
    )
    return "<tr>" + "".join(f"<td {LEFT}>{cell}</td>" for cell in cells) + "</tr>"


def link(chapter: str, name: str) -> str:
    """Address of the heading above the cell of this id or tag; of the chapter where there are no notebooks.

    Raises: ValueError if there is no such cell.
    """
    page, heading = place(chapter, name)
    return f"{page}.ipynb#{heading.replace(' ', '-')}" if heading else f"{page}.ipynb"


def place(chapter: str, name: str) -> tuple[str, str]:
    """Page and heading of the cell of this id or tag: of the chapter, or of its evidence page.

    The heading is empty where there are no notebooks.

    Raises: ValueError if there is no such cell.
    """
    if not CHAPTERS.is_dir():
        return chapter, ""
    for page in (chapter, f"evidence/{chapter}"):
        if (path := CHAPTERS / f"{page}.ipynb").exists():
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            if heading := _heading_above(cells, name):
                return page, heading
    raise ValueError(f"no cell of {chapter} has the tag {name}, nor the id")


def _heading_above(cells: list[dict], name: str) -> str:
    heading = ""
    for cell in cells:
        if cell["cell_type"] == "markdown":
            headings = [line for line in "".join(cell["source"]).splitlines() if line.startswith("#")]
            heading = headings[-1].lstrip("# ") if headings else heading
        if name in (cell["id"], *cell["metadata"].get("tags", [])):
            return heading
    return ""
