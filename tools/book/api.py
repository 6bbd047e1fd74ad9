"""The API reference: a page for each room of the package, with every public name and its docstring.

All of it is read from the source; nothing is imported.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docutils.nodes import make_id

from linformer_from_scratch.common.files import PACKAGE
from linformer_from_scratch.exercises import STEMS

# Data, not code to call: exercises with their mistakes and answers, experiments with their grids.
LEFT_OUT = {f"exercises.{stem}" for stem in STEMS} | {"course.experiments"}
SECTION = re.compile(r"^([A-Z][A-Za-z ]*):(?:\s+(.*))?$")
SECTIONS = ("Args", "Attributes", "Returns", "Raises", "Shape", "Cost", "Yields")
ITEM = re.compile(r"^(\*{0,2}\w[\w, *]*): (.*)$")
WELCOME = """
Every public name of the package ``linformer_from_scratch``, from its docstrings: shapes, units, errors,
sources. Names in the chapters' code lead here.
"""
LINES = "=-~^"  # beneath a heading, by its depth
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@cache
def modules() -> list[str]:
    """Dotted names in the package of all that the reference shows; packages before what they hold."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        left_out = any(name == out or name.startswith(f"{out}.") for out in LEFT_OUT)
        if name and path.stem != "__main__" and not left_out:
            found.append(name)
    return sorted(found)


def rooms() -> dict[str, list[str]]:
    """Room -> its modules, the room itself first."""
    found: dict[str, list[str]] = {}
    for name in modules():
        found.setdefault(name.partition(".")[0], []).append(name)
    return found


@cache
def public(module: str) -> list[Definition]:
    """Functions and classes that a module defines for others."""
    found = [node for node in parsed(module)[0].body if isinstance(node, Definition) and node.name[0] != "_"]
    return list(
        {node.name: node for node in found}.values()
    )  # of overloads the last, which has the docstring


def home_of(module: str, name: str) -> str | None:
    """The module that defines a name which another may offer; None where the reference lacks it."""
    if module in modules() and name in {one.name for one in public(module)}:
        return module
    return dict(_taken_in(module)).get(name)


def address(module: str, name: str) -> str:
    """Where the reference tells of a name, from the folder of the reference."""
    return f"{module.partition('.')[0]}.html#{anchor(module, name)}"


def anchor(module: str, name: str) -> str:
    """The anchor of a name on the page of its room; a class and a function may differ by a capital only."""
    return make_id(f"{'class' if name[0].isupper() else 'def'} {module}.{name}")


@cache
def parsed(module: str) -> tuple[ast.Module, list[str]]:
    """The program of a module, and its lines."""
    place = PACKAGE.joinpath(*module.split("."))
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    text = path.read_text(encoding="utf-8")
    return ast.parse(text), text.splitlines()


def write(folder: Path) -> None:
    """Write a page for each room, and the list of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for room, inside in rooms().items():
        text = "\n".join(line for name in inside for line in _module(name, room))
        (folder / f"{room}.rst").write_text(text, encoding="utf-8")
    listed = [f":doc:`{room}`\n   {escaped(_docstring(parsed(room)[0])[0])}\n" for room in rooms()]
    tree = [".. toctree::", "   :hidden:", "", *(f"   {room}" for room in rooms()), ""]
    text = "\n".join([*_heading("API reference", "="), WELCOME, *tree, *listed])
    (folder / "index.rst").write_text(text, encoding="utf-8")


def _module(name: str, room: str) -> Iterator[str]:
    depth = 0 if name == room else 1
    yield from _heading(f"``{name}``", LINES[depth])
    yield from restructured(_docstring(parsed(name)[0]))
    if links := [f"`{short} <{address(home, short)}>`__" for short, home in _taken_in(name)]:
        yield f"To import from ``{PACKAGE.name}.{name}``: {', '.join(links)}.\n"
    for node in public(name):
        yield from _definition(node, name, node.name, depth + 1)


def _definition(node: Definition, module: str, name: str, depth: int) -> Iterator[str]:
    yield from ["", f".. _{anchor(module, name)}:", "", *_heading(f"``{name}``", LINES[depth])]
    yield from [
        ".. code-block:: python",
        "",
        *(f"   {line}" for line in signature(node, parsed(module)[1])),
        "",
    ]
    yield from restructured(_docstring(node))
    for inner in node.body if isinstance(node, ast.ClassDef) else []:
        if isinstance(inner, FUNCTIONS) and inner.name[0] != "_" and ast.get_docstring(inner):
            yield from _definition(inner, module, f"{name}.{inner.name}", depth + 1)


def signature(node: Definition, lines: list[str]) -> list[str]:
    """How a definition begins, as its source says it: of a class with its constructor or its fields."""
    if isinstance(node, FUNCTIONS):
        return _begins(node, lines)
    fields = [lines[one.lineno - 1 : one.end_lineno] for one in node.body if isinstance(one, ast.AnnAssign)]
    makers = [
        _begins(one, lines) for one in node.body if isinstance(one, FUNCTIONS) and one.name == "__init__"
    ]
    return [*_begins(node, lines), *(line for part in makers or fields for line in part)]


def _begins(node: Definition, lines: list[str]) -> list[str]:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return lines[first - 1 : max(node.lineno, node.body[0].lineno - 1)]


def _taken_in(package: str) -> Iterator[tuple[str, str]]:
    """What a package takes in from its modules: name, and the module that defines it."""
    for node in parsed(package)[0].body if PACKAGE.joinpath(*package.split(".")).is_dir() else []:
        if isinstance(node, ast.ImportFrom) and node.module.startswith(f"{PACKAGE.name}.{package}."):
            home = node.module.removeprefix(f"{PACKAGE.name}.")
            offered = {one.name for one in public(home)} if home in modules() else set()
            yield from ((alias.name, home) for alias in node.names if alias.name in offered)


def _docstring(node: ast.AST) -> list[str]:
    return (ast.get_docstring(node) or "").splitlines() or [""]


def _heading(text: str, line: str) -> list[str]:
    return [text, line * len(text), ""]


def escaped(text: str) -> str:
    """Plain words as reStructuredText reads them literally; `code` stays code."""
    parts = re.split(
        r"(`[^`]+`)", re.sub(r"(?<=\S) {3,}", " · ", text)
    )  # a source stands apart from its formula
    return "".join(
        f"``{part.strip('`')}``" if i % 2 else re.sub(r"([\\*_|`<>])", r"\\\1", part)
        for i, part in enumerate(parts)
    )


def restructured(lines: list[str]) -> list[str]:
    """A docstring of ours as reStructuredText: sections become fields, indented lines a block."""
    found: list[str] = []
    section = ""
    for line in lines:
        match = SECTION.match(line)
        if match and match[1] in SECTIONS:
            section = match[1]
            found += ["", f":{section}: {escaped(match[2] or '')}".rstrip(), *([] if match[2] else [""])]
        elif not line.strip():
            found.append("")
        elif section and line.startswith(" "):
            found.append(_within(line, found))
        elif line.startswith(" "):
            found += [f"   {line}"] if _is_indented(found) else ["::", "", f"   {line}"]
        else:
            found += ["", escaped(line)] if section or _is_indented(found) else [escaped(line)]
            section = ""
    return [*found, ""]


def _is_indented(lines: list[str]) -> bool:
    return bool(lines) and lines[-1].startswith("   ")


def _within(line: str, before: list[str]) -> str:
    """A line of a section: an item, or what goes on with the item or the words before it."""
    item = ITEM.match(line.strip()) if len(line) - len(line.lstrip()) == 4 else None
    if item:
        return f"   - ``{item[1]}``: {escaped(item[2])}"
    goes_on = before[-1].startswith(("   - ", "     "))
    return ("     " if goes_on else "   ") + escaped(line.strip())
