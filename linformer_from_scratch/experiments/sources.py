"""What a clip or a recorded result came from: hashes of the code that made it, file by file."""

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from linformer_from_scratch.common.files import PACKAGE

ROOT = PACKAGE.parent  # of the repository
DIGITS = 12  # of a hash
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def sources(path: Path, root: Path = ROOT) -> dict[str, str]:
    """Hashes of a file below a root, and of all of ours that it imports or that those import.

    Comments and docstrings do not count: words may change where no number does.

    Returns: path from the root -> hash of the code; the file itself comes first.
    """
    root, hashes, waiting = root.resolve(), {}, [path.resolve()]
    while waiting:
        file = waiting.pop(0)
        name = file.relative_to(root).as_posix()
        if name not in hashes:
            text = file.read_text(encoding="utf-8")
            hashes[name] = digest(text)
            waiting += imported(file, root)
    return hashes


def changed(recorded: dict[str, str], path: Path, root: Path = ROOT) -> list[str]:
    """Files whose code is not the recorded one, those that came or went among them."""
    now = sources(path, root)
    return [name for name in {**now, **recorded} if now.get(name) != recorded.get(name)]


def imported(path: Path, root: Path) -> Iterator[Path]:
    """Files of ours that a file imports, wherever in it; of a package its __init__.py."""
    for name in imported_names(path.read_text(encoding="utf-8")):
        parts = name.split(".")
        for i in range(1, len(parts) + 1):  # importing a.b runs a/__init__.py first
            place = "/".join(parts[:i])
            folder = root if parts[0] == PACKAGE.name else path.parent  # tools and scenes import each other
            files = folder / f"{place}.py", folder / place / "__init__.py"
            yield from (file.resolve() for file in files if file.exists())


@cache
def imported_names(text: str) -> list[str]:
    """Dotted names that a program imports; `from a import b` may mean the module a.b, so both are named.

    Imports under `if TYPE_CHECKING:` are left out: they never run.
    """
    names, tree = [], ast.parse(text)
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


@cache
def digest(text: str) -> str:
    """The hash of a program's code."""
    return hashlib.sha256(code(text).encode()).hexdigest()[:DIGITS]


def code(text: str) -> str:
    """A program without its docstrings, comments and blank lines."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            words = slice(node.body[0].lineno - 1, node.body[0].end_lineno)
            lines[words] = [""] * len(lines[words])
    return "\n".join(line.rstrip() for line in lines if line.strip())
