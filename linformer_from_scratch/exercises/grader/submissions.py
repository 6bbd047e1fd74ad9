"""What a learner hands in: what asks for a check in a notebook, or the parts of my_linformer.py, ready to be run.

Of a notebook only those statements are run that ask for a check, and those on which they depend: imports, helpers,
numbers. Trainings, pictures and widgets between them are not.
"""

import ast
import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from IPython.core.getipython import get_ipython
from IPython.core.inputtransformer2 import TransformerManager
from IPython.display import display

from linformer_from_scratch import exercises
from linformer_from_scratch.exercises import EXERCISES, PARTS
from linformer_from_scratch.exercises.engine import parts
from linformer_from_scratch.exercises.engine.standalone import bound, used

Run = Callable[[], object]  # asks exercises.check; raises what its cells raise
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
MAGICS = ("time", "timeit", "prun", "capture")  # those of IPython that run Python where the cell stands


class Unread(Exception):
    """Nobody knows here what runs it."""


def attempts(path: Path) -> Iterator[tuple[list[str], Run]]:
    """What asks for a check, with the ids that it names, as far as they stand there.

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


def of_parts(text: str) -> Iterator[tuple[list[str], Run]]:
    """Those of my_linformer.py."""
    for part in parts.parsed(text)[1]:
        if part.part in PARTS:
            yield [PARTS[part.part].id], partial(check_part, text, part.part)


def check_part(text: str, part: str) -> None:
    """Ask for a check of one of them."""
    exercises.check(PARTS[part].id, parts.loaded(text, part))


def of_cells(sources: list[str]) -> Iterator[tuple[list[str], Run]]:
    """Those of a notebook's code cells. What cannot be read is there with its ids, and raises why."""
    before: list[ast.stmt] = []
    asking = {"check"}  # the names by which a check may be asked for
    for source in sources:
        try:
            statements, unread = read(source)
            for statement in statements:
                asking |= (imported := imports_of_check(statement))
                at_once = [statement]
                if isinstance(statement, DEFINITIONS):
                    at_once = [ast.Expr(decorator) for decorator in statement.decorator_list]
                if asks(at_once, asking):
                    needed = [*needed_by([statement], before), statement]
                    yield ids_of(reversed(needed)), partial(run, needed)
                may_ask = bound(statement) if asks([statement], asking) else set()
                asking = asking - bound(statement) | may_ask | imported
                before.append(statement)
        except (SyntaxError, ValueError, RecursionError) as error:
            if calls(source, asking):
                yield ids_in(source), partial(raise_again, error)
            continue
        for text in unread:
            if calls(text, asking):
                yield ids_in(text), partial(raise_again, Unread())


def read(source: str) -> tuple[list[ast.stmt], list[str]]:
    """The statements of a cell, and the texts of the magics that are not read.

    Raises: SyntaxError or ValueError where a kernel does, RecursionError.
    """
    text = TransformerManager().transform_cell(source)
    compile(text, "<notebook>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    magics = Magics()
    return ast.fix_missing_locations(magics.visit(ast.parse(text))).body, magics.unread


class Magics(ast.NodeTransformer):
    """In the place of magics, the Python that they run; None in the place of those that are not read."""

    def __init__(self):
        self.unread: list[str] = []

    def visit_Expr(self, statement: ast.Expr) -> ast.AST | list[ast.stmt]:
        """A magic that stands by itself may run several statements."""
        code = self.run_by(statement.value)
        return self.generic_visit(statement) if code is None else code or ast.Pass()

    def visit_Call(self, call: ast.Call) -> ast.AST:
        """One whose value is used, as in x = %time f()."""
        code = self.run_by(call)
        if code is None:
            return self.generic_visit(call)
        return code[0].value if len(code) == 1 and isinstance(code[0], ast.Expr) else ast.Constant(None)

    def run_by(self, call: ast.expr) -> list[ast.stmt] | None:
        """What it runs; None where it is no magic."""
        match call:
            case ast.Call(ast.Attribute(ast.Call(ast.Name("get_ipython")), how), args):
                texts = [str(word.value) for word in args if isinstance(word, ast.Constant)]
                name, line, cell = (*texts, "", "", "")[:3]
                if name not in MAGICS:
                    self.unread += texts
                    return []
                code = code_in(line) if how == "run_line_magic" or name == "timeit" else ""
                statements, unread = read(f"{code}\n{cell}")
                self.unread += unread
                return statements
        return None


def code_in(line: str) -> str:
    """The Python in the line of a magic, after its options."""
    while line:
        with suppress(SyntaxError, ValueError):
            if ast.parse(line) and not line.startswith("-"):
                return line
        line = line.partition(" ")[2].lstrip()
    return ""


def asks(statements: list[ast.stmt], asking: set[str]) -> bool:
    """May they ask for a check, or may what they define?"""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return not asking.isdisjoint(names) or any(
        isinstance(node, ast.Attribute) and node.attr == "check" for node in nodes
    )


def imports_of_check(statement: ast.stmt) -> set[str]:
    """The names that a statement imports the check by."""
    imports = (node for node in ast.walk(statement) if isinstance(node, ast.ImportFrom))
    names = (alias for node in imports if node.module == exercises.__name__ for alias in node.names)
    return {alias.asname or alias.name for alias in names if alias.name == "check"}


def calls(text: str, asking: set[str]) -> bool:
    """Does a text that is not read call one of these names, or hand it on?"""
    return any(re.search(rf"\b{name}\s*[(,]", text) for name in asking)


def ids_of(statements: Iterable[ast.stmt]) -> list[str]:
    """The ids of exercises that statements name, in their order, each once."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [id for id in dict.fromkeys(texts) if id in EXERCISES]


def ids_in(text: str) -> list[str]:
    """Those that a text names that is not read."""
    return [id for id in dict.fromkeys(re.findall(r"""["']([\d.]+)["']""", text)) if id in EXERCISES]


def needed_by(statements: list[ast.stmt], before: list[ast.stmt]) -> list[ast.stmt]:
    """The earlier statements on which some depend, in their order: of each name the last that sets it.

    What a function looks up may be set after it; what a function that is called changes is not seen.
    """
    modules = {name for statement in before if isinstance(statement, ast.Import) for name in bound(statement)}
    sets = [bound(statement) | changed(statement) - modules for statement in before]
    wanted = {(name, len(before)) for statement in statements for name in read_by(statement)}
    done: set[tuple[str, int]] = set()
    needed = {i for i, s in enumerate(before) if isinstance(s, ast.ImportFrom) and s.names[0].name == "*"}
    while wanted - done:
        done.add(look_up := (wanted - done).pop())
        name, end = look_up
        place = next((i for i in reversed(range(end)) if name in sets[i]), None)
        if place is not None:
            needed.add(place)
            later = isinstance(before[place], DEFINITIONS)
            wanted |= {(other, len(before) if later else place) for other in read_by(before[place])}
    return [before[i] for i in sorted(needed)]


def read_by(statement: ast.stmt) -> set[str]:
    """The names whose value matters to a statement."""
    return used([statement]) | changed(statement)


def changed(statement: ast.stmt) -> set[str]:
    """The names whose value a statement changes, and may not replace, as in x += 1, x[0] = 1, x.append(1)."""
    if isinstance(statement, DEFINITIONS):
        return set()
    targets: list[ast.expr] = []
    for node in ast.walk(statement):
        match node:
            case ast.AugAssign(target) | ast.Expr(ast.Call(ast.Attribute() as target)):
                targets.append(target)
            case ast.Assign(several):
                targets += [target for target in several if isinstance(target, ast.Subscript | ast.Attribute)]
    names = {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    maybe = hasattr(statement, "body")  # what stands in if, for, try or with may not happen
    return names | bound(statement) if maybe else names


def run(statements: list[ast.stmt]) -> None:
    """Run statements as a kernel does that has run nothing yet."""
    names = {"__name__": "__main__", "check": exercises.check, "display": display, "get_ipython": get_ipython}
    module = ast.Module(body=statements, type_ignores=[])
    awaited = eval(compile(module, "<notebook>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if awaited is not None:
        asyncio.run(awaited)


def raise_again(error: Exception) -> None:
    """Raise what reading a cell raised."""
    raise error
