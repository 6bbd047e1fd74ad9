"""What the book's search looks through: sections with their sentences, in a script: no page fetches."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from linformer_from_scratch.course.glossary import entries
from linformer_from_scratch.course.ledger import ledger

FILE = Path("_static", "sections.js")
# What a page's address begins with -> where its sections stand among what is found.
KINDS = {"chapters/": "Chapters", "solutions/": "Solutions", "api/": "Reference", "": "To look up"}
LEFT_OUT = re.compile(r"(index|search|clips|ledger|.*glossary|solutions|[A-Z]+)$|teacher")
EXERCISE = re.compile(r"^(\d+\.\d+ · )")  # that a solution solves
SENTENCE = re.compile(r"(?<=[.?!:])\s+(?=[A-Z“])")
MARKS = re.compile(r"<[^>]*>|\\[a-zA-Z]+|[{}\\$]|\*\*")  # of HTML, TeX and Markdown
Found = tuple[str, str, str, str, list[str]]  # kind, address, page, heading, sentences


def collect(app: Sphinx, doctree: nodes.document) -> None:
    """Sphinx's hook for a page that it has read: note its sections."""
    page = app.env.docname
    app.env.metadata[page]["sections"] = [] if LEFT_OUT.match(page) else [*sections(doctree, page)]


def write(app: Sphinx, exception: Exception | None) -> None:
    """Sphinx's hook at its end: write the sections of all pages."""
    if exception:
        return
    found = [one for page in sorted(app.env.found_docs) for one in app.env.metadata[page]["sections"]]
    for claim in ledger():
        address, verdict = f"ledger.html#claim-{claim.id}", f"{claim.verdict}: {claim.found}"
        found.append(("To look up", address, "Claim", claim.claim, [verdict]))
    for entry in entries():
        sentence = MARKS.sub("", entry.sentence)
        found.append(("To look up", "chapters/glossary.html", "Glossary", entry.term, [sentence]))
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    Path(app.outdir, FILE).write_text(f"window.sections = {text};\n", encoding="utf-8")


def sections(doctree: nodes.document, page: str) -> Iterator[Found]:
    """Each section of a page, and in the reference each name, with the sentences that are its own."""
    kind = next(KINDS[start] for start in KINDS if page.startswith(start))
    title = doctree.next_node(nodes.title).astext()
    for home in doctree.findall(lambda node: isinstance(node, nodes.section | addnodes.desc)):
        head = home.next_node(nodes.Titular) if isinstance(home, nodes.section) else home[0]
        name = EXERCISE.sub(r"Exercise \1", head.get("fullname") or head.astext())
        ids = (home if isinstance(home, nodes.section) else head)["ids"]
        blocks = [block for block in home.findall(_is_block) if _home(block) is home]
        words = [MARKS.sub("", block.astext().replace("\\times", "×")) for block in blocks]
        sentences = [one for text in words for one in SENTENCE.split(" ".join(text.split())) if one]
        yield kind, f"{page}.html#{ids[0]}" if ids else f"{page}.html", title, name, sentences


def _is_block(node: nodes.Node) -> bool:
    """Whether a node is a whole row of a table or a paragraph elsewhere, and no note of docutils."""
    is_part = isinstance(node.parent, nodes.entry | nodes.system_message)
    return isinstance(node, nodes.row) or (isinstance(node, nodes.paragraph) and not is_part)


def _home(node: nodes.Node) -> nodes.Node:
    """The section or the name of the reference that a node stands in."""
    while not isinstance(node, nodes.section | addnodes.desc):
        node = node.parent
    return node
