"""Links that lead nowhere, in pages and notebooks, found without a network."""

import json
import re
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r"""<(?:a|link|img|script|video|source)\b[^>]*?\s(?:href|src)=(["'])(.*?)\1""", re.DOTALL)
NAMED = re.compile(r"""\sid=(["'])(.*?)\1""")
MARKDOWN_LINK = re.compile(r"(?<!`)\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
ELSEWHERE = re.compile(r"^(https?:|mailto:|data:|blob:|about:)")


def dead_links(files: list[Path]) -> list[str]:
    """Links of pages, notebooks and markdown to files that are not there, or to headings that those lack."""
    return [
        f"{file}: {link}"
        for file in files
        for link in sorted(links(file))
        if not ELSEWHERE.match(link) and not _leads_somewhere(file, link)
    ]


def links(file: Path) -> frozenset[str]:
    """What a file links to or loads."""
    prose, shown = _told(file)
    bare = CODE.sub("", prose)
    return frozenset(MARKDOWN_LINK.findall(bare)) | {unescape(link[1]) for link in LINK.findall(bare + shown)}


@cache
def anchors(file: Path) -> frozenset[str]:
    """What a link into a file may name: a page's ids; headings as JupyterLab or GitHub names them."""
    prose, shown = _told(file)
    if file.suffix == ".html":
        return frozenset(unescape(match[1]) for match in NAMED.findall(shown))
    titles = HEADING.findall(prose)
    if file.suffix == ".ipynb":
        return frozenset(title.replace(" ", "-") for title in titles)
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)


def _leads_somewhere(file: Path, link: str) -> bool:
    path, _, name = link.partition("#")
    target = (file.parent / unquote(path.partition("?")[0])).resolve() if path else file
    is_whole = not name or target.suffix not in (".html", ".ipynb", ".md")
    return target.exists() and (is_whole or unquote(name) in anchors(target))


def _told(file: Path) -> tuple[str, str]:
    """The markdown of a file, and its HTML: a page is all HTML, and a notebook's cells show some."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".ipynb":
        return ("", text) if file.suffix == ".html" else (text, "")
    cells = json.loads(text)["cells"]
    prose = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    shown = ["".join(o.get("data", {}).get("text/html", "")) for c in cells for o in c.get("outputs", [])]
    return "\n\n".join(prose), "\n".join(shown)
