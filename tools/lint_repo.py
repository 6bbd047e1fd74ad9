"""What the repository says about itself is true: python tools/lint_repo.py

Links between its pages lead somewhere, `make` commands in prose are targets of the Makefile, the tree in
CONTRIBUTING.md exists, and every direct dependency is pinned. Prints what is wrong, a line each.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import course
from book.links import dead_links

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("*.md", "linformer_from_scratch/data/shipped/*.md", "tools/book/pages/*.md")
LINKED = (
    *PAGES[:2],
    *("tools/book/pages/elsewhere.md", "tools/book/pages/use.md", "chapters/*.md", "chapters/notes/*.md"),
    *("chapters/*.ipynb", "chapters/evidence/*.ipynb", "solutions/*.ipynb"),
)


def files(patterns: tuple[str, ...]) -> list[Path]:
    """Files of the repository."""
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def text_of(name: str) -> str:
    """A file of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


def unknown_commands(targets: set[str]) -> Iterator[str]:
    """`make` commands in code of pages that are no targets of the Makefile."""
    for page in files(PAGES):
        for command in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            if command not in targets:
                yield f"{page.name}: `make {command}` is not a target of the Makefile"


def missing_in_tree(page: str) -> Iterator[str]:
    """Paths in the tree of CONTRIBUTING.md that do not exist."""
    folder = ""
    for line in page.split("## Tree")[1].split("```")[1].strip("\n").splitlines():
        name = line.split()[0]
        if not line.startswith("  "):
            folder = name if name.endswith("/") else ""
            name = name.removeprefix(folder)
        if not (ROOT / folder / name).exists():
            yield f"CONTRIBUTING.md: {folder}{name} stands in the tree and does not exist"


def without_pin(constraints: str) -> Iterator[str]:
    """Direct dependencies that constraints.txt does not pin; ruff's version where a commit runs another."""
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", constraints, re.MULTILINE))
    project = tomllib.loads(text_of("pyproject.toml"))
    optional = [*project["project"]["optional-dependencies"], *project["dependency-groups"]]
    needs = [need for name in optional for need in course.needs(name)]
    for requirement in project["project"]["dependencies"] + needs:
        name = re.split(r"[\[<>=]", requirement)[0]
        if name not in pinned:
            yield f"constraints.txt: {name} is missing; its first line says how it is made"
    if f"rev: v{pinned.get('ruff')}" not in text_of(".pre-commit-config.yaml"):
        yield f".pre-commit-config.yaml: rev is not v{pinned.get('ruff')}, the ruff of constraints.txt"


def problems() -> Iterator[str]:
    """All that is not as it says."""
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE))
    yield from (f"a link leads nowhere: {link}" for link in dead_links(files(LINKED)))
    yield from unknown_commands(targets)
    yield from missing_in_tree(text_of("CONTRIBUTING.md"))
    yield from without_pin(text_of("constraints.txt"))
    version = tomllib.loads(text_of("pyproject.toml"))["project"]["version"]
    if f"version: {version}\n" not in text_of("CITATION.cff"):
        yield f"CITATION.cff: the version is not {version}, that of pyproject.toml"


if __name__ == "__main__":
    sys.exit("\n".join(problems()) or 0)
