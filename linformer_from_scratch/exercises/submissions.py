"""What a learner hands in: the attempts in a notebook, or in my_linformer.py, each with what it needs to run.

Of a notebook only those statements are run on which an attempt depends: imports, helpers, numbers. Trainings,
pictures and widgets between them are not.
"""

import ast
import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager

from linformer_from_scratch.exercises import EXERCISES, PARTS, parts
from linformer_from_scratch.exercises.standalone import bound, used

CHECK = re.compile(r"""^check\(\s*["']([\d.]+)["']""", re.MULTILINE)
Attempt = Callable[[], object]  # makes the attempt; raises what running its cells raises


def attempts(path: Path) -> Iterator[tuple[str, Attempt]]:
    """An exercise's id and what was written for it, for all that a file has.

    Raises: ValueError, in one sentence, if the file is neither a notebook nor Python text.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError("it is damaged: not text") from None
    if path.suffix == ".py":
        return of_parts(text)
    try:
        cells = json.loads(text)["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ValueError("it is damaged: not a notebook") from None
    return of_cells(sources)


def of_parts(text: str) -> Iterator[tuple[str, Attempt]]:
    """Those of my_linformer.py."""
    for part in parts.parsed(text)[1]:
        if part.part in PARTS:
            yield PARTS[part.part].id, partial(parts.loaded, text, part.part)


def of_cells(sources: list[str]) -> Iterator[tuple[str, Attempt]]:
    """Those of a notebook's code cells."""
    before: list[ast.stmt] = []
    plain = TransformerManager()
    for source in sources:
        try:
            statements = ast.parse(plain.transform_cell(source)).body
        except (SyntaxError, ValueError, RecursionError) as error:
            for id in CHECK.findall(source):
                yield id, partial(raise_again, error)
            continue
        for statement in statements:
            for id, attempt in checks(statement):
                yield id, partial(made, needed_by([ast.Expr(attempt)], before), attempt)
            before.append(statement)


def checks(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Id and attempt of the calls check("6.1", attempt) in a statement that is no definition."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "check":
            id, attempt = node.args if len(node.args) == 2 else (None, None)
            if attempt and isinstance(id, ast.Constant) and id.value in EXERCISES:
                yield str(id.value), attempt


def needed_by(statements: list[ast.stmt], before: list[ast.stmt]) -> list[ast.stmt]:
    """The earlier statements on which some depend, in their order: of each name the last that sets it.

    What a function looks up may be set after it; what is changed by a method alone, as in append, is not seen.
    """
    sets = [bound(statement) | changed(statement) for statement in before]
    wanted = {(name, len(before)) for name in used(statements)}
    done: set[tuple[str, int]] = set()
    needed: set[int] = set()
    while wanted - done:
        done.add(look_up := (wanted - done).pop())
        name, end = look_up
        place = next((i for i in reversed(range(end)) if name in sets[i]), None)
        if place is not None:
            needed.add(place)
            later = isinstance(before[place], ast.FunctionDef | ast.ClassDef)
            names = used([before[place]]) | changed(before[place])
            wanted |= {(other, len(before) if later else place) for other in names}
    return [before[i] for i in sorted(needed)]


def changed(statement: ast.stmt) -> set[str]:
    """The names whose value a statement changes and does not replace, as in x += 1 and x[0] = 1."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.AugAssign):
        targets = [statement.target]
    elif isinstance(statement, ast.Assign):
        targets = [
            target for target in statement.targets if isinstance(target, ast.Subscript | ast.Attribute)
        ]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def made(needed: list[ast.stmt], attempt: ast.expr) -> object:
    """An attempt, after the statements that it needs."""
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(ast.Module(body=needed, type_ignores=[]), "<notebook>", "exec"), names)
    return eval(compile(ast.Expression(attempt), "<notebook>", "eval"), names)


def raise_again(error: Exception) -> object:
    """Raise what reading a cell raised."""
    raise error
