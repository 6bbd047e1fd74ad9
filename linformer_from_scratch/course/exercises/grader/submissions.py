"""What a learner hands in: what asks for a check in a notebook, or the parts of my_linformer.py, ready to be run.

Of a notebook only those statements are run that ask for a check, and those on which they depend: imports, helpers,
numbers. Trainings, pictures and widgets between them are not.
"""

import ast
import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager
from IPython.display import display

from linformer_from_scratch import exercises
from linformer_from_scratch.course.exercises import EXERCISES, PARTS
from linformer_from_scratch.course.exercises.engine import parts
from linformer_from_scratch.course.exercises.engine.standalone import bound, used

Run = (
    Callable[[], object] | None
)  # asks exercises.check, raises what its cells raise; None if it cannot be read
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
PYTHON_BELOW = re.compile(r"\s*%%(time|timeit|prun|capture)\b.*\n")  # what these magics run
PYTHON_BEHIND = re.compile(r"^(\s*(?:[\w.,\[\]'\" ]+= *)?)%time(?:it)? +(?:-\w+ ?\d* +)*", re.MULTILINE)
MAGIC = re.compile(r"\A\s*%%[\s\S]*|^\s*(?:[\w.,\[\]'\" ]+= *)?%.*", re.MULTILINE)  # all others
AWAITING = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # as kernels do


def attempts(path: Path) -> Iterator[tuple[list[str], Run]]:
    """What asks for a check, with the ids of exercises that it names.

    Raises: ValueError, in one sentence, if the file is neither a notebook nor Python text.
    """
    try:
        text = parts.read(path)[0] if path.suffix == ".py" else path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, SyntaxError):
        raise ValueError("it is damaged: not text") from None
    if path.suffix == ".py":
        return of_parts(text)
    try:
        cells = json.loads(text)["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, LookupError, TypeError):
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
    """Those of a notebook's code cells. A cell that cannot be read is among them, and raises why."""
    before: list[ast.stmt] = []
    asking = {"check"}  # the names by which a check may be asked for
    for source in sources:
        try:
            statements, magics = read(source)
        except (SyntaxError, ValueError):
            if calls(source, asking):
                yield ids_in(source), partial(read, source)
            continue
        for statement in statements:
            if asks(statement, asking):
                if any(asks(part, asking) for part in at_once(statement)):
                    needed = [*needed_by([statement], before), statement]
                    yield ids_of(reversed(needed)), partial(run, needed)
                asking |= bound(statement)
            asking |= imported(statement)
            before.append(statement)
        for text in magics:
            if calls(text, asking):
                yield ids_in(text), None


def read(source: str) -> tuple[list[ast.stmt], list[str]]:
    """The statements of a cell, and the texts of magics that cannot be read.

    Raises: SyntaxError or ValueError where a kernel does.
    """
    while magic := PYTHON_BELOW.match(source):
        source = source[magic.end() :]
    source = PYTHON_BEHIND.sub(r"\1", source)
    text = TransformerManager().transform_cell(source)
    compile(text, "<notebook>", "exec", AWAITING)
    return ast.parse(text).body, MAGIC.findall(source)


def at_once(statement: ast.stmt) -> list[ast.AST]:
    """What of a statement runs where it stands: not the body of a function."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [*statement.decorator_list, statement.args]
        case ast.ClassDef():
            body = chain.from_iterable(map(at_once, statement.body))
            return [*statement.decorator_list, *statement.bases, *statement.keywords, *body]
    return [statement]


def asks(statement: ast.AST, asking: set[str]) -> bool:
    """May it ask for a check, or may what it defines?"""
    return any(
        (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in asking)
        or (isinstance(node, ast.Attribute) and node.attr == "check")
        for node in ast.walk(statement)
    )


def imported(statement: ast.stmt) -> set[str]:
    """The names by which a statement imports the check."""
    if not isinstance(statement, ast.ImportFrom) or statement.module != exercises.__name__:
        return set()
    return {alias.asname or alias.name for alias in statement.names if alias.name == "check"}


def calls(text: str, asking: set[str]) -> bool:
    """Does a text that cannot be read call one of these names, or pass it on?"""
    return any(re.search(rf"\b{name}\s*[(,]", text) for name in asking)


def ids_of(statements: Iterable[ast.stmt]) -> list[str]:
    """The ids of exercises that statements name, in their order, each once."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [text for text in dict.fromkeys(texts) if text in EXERCISES]


def ids_in(text: str) -> list[str]:
    """Those that a text names that cannot be read."""
    return [found for found in dict.fromkeys(re.findall(r"""["']([\d.]+)["']""", text)) if found in EXERCISES]


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
    maybe = hasattr(statement, "body")  # what is inside if, for, try or with may not happen
    return names | bound(statement) if maybe else names


class NoIPython:
    """Stands in for IPython: shell commands, magics and everything else do nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args: None


def run(statements: list[ast.stmt]) -> None:
    """Run statements as a new kernel does."""
    names = {"__name__": "__main__", "check": exercises.check, "display": display, "get_ipython": NoIPython}
    code = compile(ast.Module(body=statements, type_ignores=[]), "<notebook>", "exec", AWAITING)
    if awaited := eval(code, names):
        asyncio.run(awaited)
