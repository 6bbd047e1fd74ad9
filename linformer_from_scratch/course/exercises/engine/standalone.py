"""A function or class from a notebook, with what it needs to run by itself: imports, and helpers of its cell."""

import ast
import builtins
import inspect
import linecache
import math
import re
import symtable
import sys
import types
from collections.abc import Callable, Iterator

import numpy
import torch

Statement = ast.stmt


def standalone(attempt: Callable, known: set[str]) -> str:
    """The source of an attempt, its imports in front.

    Args:
        attempt: a function or a class whose source is in a cell or in a file.
        known: names that need no import, because they are defined where the source will go.

    Raises: ValueError, in one sentence, if its source cannot be found, or if it uses a name of another cell.
    """
    code, names = compiled(attempt)
    linecache.checkcache(code.co_filename)  # it may have been edited
    text = "".join(linecache.getlines(code.co_filename))
    statements = ast.parse(text).body
    target = next((s for s in statements if is_definition(s, attempt, code)), None)
    if target is None:
        raise ValueError("it is not written as a def or a class at the left edge of its cell")
    needed = with_helpers(target, statements)
    missing = sorted(used(needed) - {name for s in needed for name in bound(s)} - known - {*vars(builtins)})
    imports = {name: import_of(name, names.get(name)) for name in missing}
    if strangers := [name for name, line in imports.items() if not line]:
        raise ValueError(
            f"it uses {' and '.join(f'`{name}`' for name in strangers)} of another cell; write what it needs into this cell"
        )
    lines = text.splitlines()
    blocks = ["\n".join(lines[first_line(s) - 1 : s.end_lineno]) for s in needed]
    return "\n\n\n".join(["\n".join(sorted(imports.values()))] * bool(imports) + blocks)


def compiled(attempt: Callable) -> tuple[types.CodeType, dict[str, object]]:
    """The code of an attempt, or of a class's first method, and its global names."""
    functions = [*vars(attempt).values()] if isinstance(attempt, type) else [attempt]
    for function in map(inspect.unwrap, functions):
        if type(function) is types.FunctionType:
            return function.__code__, function.__globals__
    raise ValueError("it is neither a function nor a class with methods")


def is_definition(statement: Statement, attempt: Callable, code: types.CodeType) -> bool:
    """Is this where the attempt is defined?"""
    if not isinstance(statement, ast.FunctionDef | ast.ClassDef) or statement.name != attempt.__name__:
        return False
    return first_line(statement) <= code.co_firstlineno <= (statement.end_lineno or 0)


def first_line(statement: Statement) -> int:
    """With its decorators."""
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def with_helpers(target: Statement, statements: list[Statement]) -> list[Statement]:
    """A statement, and all statements of its cell that it needs, in their order."""
    needed = [target]
    for statement in needed:  # grows meanwhile
        names = used([statement])
        needed += [s for s in statements if s not in needed and names & bound(s)]
    return [s for s in statements if s in needed]


def bound(statement: Statement) -> set[str]:
    """The names that a statement binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    names = set()
    for node in ast.walk(statement):
        match node:
            case ast.Name(name, ast.Store()) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                names.add(name)
            case ast.ClassDef(name):
                names.add(name)
            case ast.alias(name, other):
                names.add((other or name).split(".")[0])
    return names


def used(statements: list[Statement]) -> set[str]:
    """The names from outside that statements use, at any depth."""
    text = re.sub(r"\basync ", "", "\n".join(map(ast.unparse, statements)))
    table = symtable.symtable(re.sub(r"\bawait\b", "-", text), "part", "exec")  # 3.14 refuses one at the top
    return {name for scope in tables(table) for name in globals_of(scope)}


def tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """It and all scopes inside."""
    yield table
    for child in table.get_children():
        yield from tables(child)


def globals_of(table: symtable.SymbolTable) -> set[str]:
    """The global names that one scope reads."""
    at_top = table.get_type() == "module"
    return {s.get_name() for s in table.get_symbols() if s.is_referenced() and (at_top or s.is_global())}


def import_of(name: str, value: object) -> str:
    """The line that gives a name its value anywhere; empty where there is none."""
    if isinstance(value, types.ModuleType):
        parent, _, last = value.__name__.rpartition(".")
        if name == last and parent:
            return f"from {parent} import {name}"
        return f"import {value.__name__}" + f" as {name}" * (name != value.__name__)
    own = getattr(value, "__name__", name)
    homes = (sys.modules.get(str(getattr(value, "__module__", None))), math, torch, numpy)
    for home in homes:
        if home is None or home.__name__ == "__main__" or not isinstance(own, str):
            continue
        if value is not None and getattr(home, own, None) is value:
            return f"from {home.__name__} import {own}" + f" as {name}" * (name != own)
    return ""
