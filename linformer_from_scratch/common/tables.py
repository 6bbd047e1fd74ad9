"""Numbers in columns, to be printed."""

from collections.abc import Iterable, Mapping
from typing import Any


def aligned(
    corner: str, columns: Iterable[object], rows: Mapping[str, Iterable[Any]], form: str = ".1f"
) -> str:
    """A table as text: on each line a name and its numbers, "–" where a number is nan.

    Args:
        corner: what the columns are; it stands above the names.
        columns: their headings; integers get their commas.
        rows: name -> a number for each column, or an object with the same format codes, such as an Interval.
        form: how numbers are written, such as ".2f" or ".0%".
    """
    headings = [f"{column:,}" if type(column) is int else str(column) for column in columns]
    cells = {name: ["–" if x != x else format(x, form) for x in row] for name, row in rows.items()}
    width = max(map(len, [*headings, *(cell for row in cells.values() for cell in row)])) + 2
    left = max(map(len, [corner, *rows]))
    lines = [(corner, headings), *cells.items()]
    return "\n".join(name.ljust(left) + "".join(cell.rjust(width) for cell in row) for name, row in lines)
