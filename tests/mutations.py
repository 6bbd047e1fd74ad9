"""A function with one sign changed: a comparison, a plus or minus, a product, or a number by one."""

import ast
import copy
import textwrap
from collections.abc import Iterator

OTHER = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
}  # fmt: skip


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """What was changed, as "expression -> expression", and the source with that change.

    Left alone are guards (an `if` that only raises, a call of `check_…`), docstrings and annotations.
    """
    tree = ast.parse(textwrap.dedent(source))
    count = len(list(places(tree)))
    for i in range(count):
        for step in (0, 1):
            changed = copy.deepcopy(tree)
            node = list(places(changed))[i]
            before = ast.unparse(node)
            if mutate(node, step):
                after = ast.unparse(node)
                nth = sum(ast.unparse(other) == before for other in list(places(tree))[:i])
                label = f"{before} -> {after}" + f" ({nth + 1})" * bool(nth)
                yield label, ast.unparse(changed)


def places(node: ast.AST) -> Iterator[ast.AST]:
    """All that can be changed, from the top to the bottom."""
    if isinstance(node, ast.If) and all(isinstance(line, ast.Raise) for line in node.body):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("check_"):
        return
    for name, field in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in field if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST):
                if isinstance(child, ast.Compare | ast.BinOp | ast.AugAssign | ast.UnaryOp | ast.Constant):
                    yield child
                yield from places(child)


def mutate(node: ast.AST, step: int) -> bool:
    """Change one sign in place; False where this node has no such change."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        node.value += (1, -1)[step]
    elif step:
        return False
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER:
        node.ops[0] = OTHER[type(node.ops[0])]()
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OTHER:
        node.op = OTHER[type(node.op)]()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node.op = ast.UAdd()
    else:
        return False
    return True
