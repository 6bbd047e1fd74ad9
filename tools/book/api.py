"""The API reference: a page for each room of the package, made by autodoc from signatures and docstrings."""

import ast
import re
from importlib import import_module
from pathlib import Path

import nbformat

from linformer_from_scratch.common.files import PACKAGE
from linformer_from_scratch.course.exercises import STEMS

SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Shape|Cost|Yields):(?:\s+(.*))?$")
ITEM = re.compile(r"^(\*{0,2}\w[\w, *]*): (.*)$")
WELCOME = """
API reference
=============

Every public name of the package ``linformer_from_scratch``, from its docstrings: shapes, units, errors,
sources. Names in the chapters' code lead here.

.. toctree::
   :hidden:

"""


def rooms() -> dict[str, list[str]]:
    """Room -> the dotted names of its modules, the room itself first; without exercises and their answers."""
    modules: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = [part for part in path.relative_to(PACKAGE).with_suffix("").parts if part != "__init__"]
        exercises = parts[:2] == ["course", "exercises"] and parts[-1] in STEMS
        command = path.stem == "__main__" or parts == ["examine"]  # imported, the latter is its function
        if parts and not command and not exercises:
            modules.setdefault(parts[0], []).append(".".join(parts))
    return {room: sorted(names) for room, names in sorted(modules.items())}


def write(folder: Path) -> None:
    """Write a page for each room, and the list of them."""
    folder.mkdir(parents=True, exist_ok=True)
    index = WELCOME + "".join(f"   {room}\n" for room in rooms()) + "\n"
    for room, names in rooms().items():
        pages = [_section(name, "=" if name == room else "-") for name in names]
        (folder / f"{room}.rst").write_text("\n".join(pages), encoding="utf-8")
        first_line = (import_module(f"{PACKAGE.name}.{room}").__doc__ or "").partition("\n")[0]
        index += f":doc:`{room}`\n   {escaped(first_line)}\n\n"
    (folder / "index.rst").write_text(index, encoding="utf-8")


def _section(name: str, line: str) -> str:
    """A module's heading, its members, and what else one may import from it."""
    full = f"{PACKAGE.name}.{name}"
    module, title = import_module(full), f"``{name}``"
    text = f"{title}\n{line * len(title)}\n\n.. automodule:: {full}\n\n"
    as_itself = re.findall(r"\b(\w+) as \1\b", Path(module.__file__).read_text(encoding="utf-8"))
    offered = [getattr(module, short, None) for short in getattr(module, "__all__", as_itself)]
    links = [f":py:obj:`~{full_name(one)}`" for one in offered if full_name(one) and one.__module__ != full]
    return text + (f"To import from ``{full}``: {', '.join(links)}.\n\n" if links else "")


def full_name(thing: object) -> str:
    """Where a function or a class is defined, as the reference names it; empty for anything else."""
    name = getattr(thing, "__qualname__", "")
    return f"{thing.__module__}.{name}" if name and hasattr(thing, "__module__") else ""


def used(notebook: Path) -> dict[str, str]:
    """What a notebook imports from the package: name -> full name in the reference."""
    names = {}
    for cell in nbformat.read(notebook, as_version=4).cells:
        for node in ast.walk(ast.parse(cell.source)) if cell.cell_type == "code" else []:
            if isinstance(node, ast.ImportFrom) and node.module.startswith(f"{PACKAGE.name}."):
                for alias in node.names:
                    names[alias.name] = full_name(getattr(import_module(node.module), alias.name, None))
    return names


def process_docstring(app, what, name, thing, options, lines: list[str]) -> None:
    """Autodoc's hook: a docstring of ours becomes reStructuredText."""
    lines[:] = restructured(lines)


def imported(app, what, name, thing, skip, options) -> bool | None:
    """Autodoc's hook: pass over what a module imports, which autodoc would study, and then leave out."""
    home = app.env.current_document.autodoc_module
    return True if what == "module" and getattr(thing, "__module__", home) != home else None


def escaped(text: str) -> str:
    """Plain words as reStructuredText reads them literally; `code` stays code."""
    text = re.sub(r"(?<=\S) {3,}", " · ", text)  # a source stands apart from its formula
    parts = re.split(r"(`[^`]+`)", text)
    parts[1::2] = [f"``{part.strip('`')}``" for part in parts[1::2]]
    parts[::2] = [re.sub(r"([\\*_|`<>])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)


def restructured(lines: list[str]) -> list[str]:
    """A docstring of ours as reStructuredText: sections are fields, indented lines a block; examples stay."""
    text: list[str] = []
    section = ""
    example = False
    for line in lines:
        goes_on = bool(text) and text[-1].startswith("   ")
        example = line.startswith(">>>") or (example and bool(line.strip()))
        if example:
            text.append(line)
            section = ""
        elif match := SECTION.match(line):
            section = match[1]
            text += ["", f":{section}: {escaped(match[2] or '')}".rstrip(), *([] if match[2] else [""])]
        elif not line.strip():
            text.append("")
        elif section and line.startswith(" "):
            text.append(_within(line, text))
        elif line.startswith(" "):
            text += [f"   {line}"] if goes_on else ["::", "", f"   {line}"]
        else:
            text += ["", escaped(line)] if section or goes_on else [escaped(line)]
            section = ""
    return [*text, ""]


def _within(line: str, before: list[str]) -> str:
    """A line of a section: an item, or what goes on with the item or the words before it."""
    item = ITEM.match(line.strip()) if len(line) - len(line.lstrip()) == 4 else None
    if item:
        return f"   - ``{item[1]}``: {escaped(item[2])}"
    goes_on = before[-1].startswith(("   - ", "     "))
    return ("     " if goes_on else "   ") + escaped(line.strip())
