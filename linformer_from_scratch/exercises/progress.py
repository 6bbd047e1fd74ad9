"""What has been passed, and which hints were opened: kept in one local file, and nowhere else.

The file is .progress.json in the working directory, or what the environment variable LINFORMER_PROGRESS names.
"""

import contextlib
import html
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from linformer_from_scratch.files import write_whole

FORMAT = "linformer-from-scratch progress 1"  # tells our file from others of the same name


@dataclass
class State:
    """Ids that were passed; id -> number of hints opened."""

    passed: set[str] = field(default_factory=set)
    hints: dict[str, int] = field(default_factory=dict)


_unsaved: dict[Path, State] = {}  # what could not be written, so that hints go on opening


def path() -> Path:
    """Where progress is kept."""
    file = Path(os.environ.get("LINFORMER_PROGRESS") or ".progress.json")
    with contextlib.suppress(OSError):  # the working directory is gone: writing will say so
        file = file.absolute()
    return file


def load() -> State:
    """The state so far; a damaged or foreign file is set aside with a word, and the state is empty."""
    file = path()
    if file in _unsaved:
        return _unsaved[file]
    try:
        text = file.read_text(encoding="utf-8") if file.is_file() else None
        return State() if text is None else parsed(text)
    except OSError as error:
        print(f"Progress cannot be read from {file.name}: {error.strerror}.")
    except (ValueError, RecursionError):
        set_aside(file)
    return State()


def parsed(text: str) -> State:
    """The state in a file's text.

    Raises: ValueError if the text is not what save wrote.
    """
    content = json.loads(text)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError("not a progress file")
    passed, hints = content.get("passed"), content.get("hints")
    if not isinstance(passed, list) or not all(isinstance(id, str) for id in passed):
        raise ValueError("passed is not a list of ids")
    if not isinstance(hints, dict) or not all(type(count) is int and count > 0 for count in hints.values()):
        raise ValueError("hints are not counts")
    return State(set(passed), hints)


def set_aside(file: Path) -> None:
    """Rename a file that is not ours to a name that is free, and say so."""
    i = 1
    while (target := file.with_name(f"{file.name}.set-aside-{i}")).exists():
        i += 1
    try:
        file.rename(target)
        print(f"{file.name} is damaged or not a progress file; it was set aside as {target.name}.")
    except OSError as error:
        print(f"{file.name} is damaged or not a progress file, and cannot be set aside: {error.strerror}.")


def save(state: State) -> None:
    """Write the whole file or nothing: a kill in between leaves the old one."""
    file = path()
    content = {"format": FORMAT, "passed": sorted(state.passed), "hints": state.hints}
    try:
        if file.exists() and not file.is_file():
            raise OSError(None, "not a regular file")
        write_whole(file, json.dumps(content, indent=1, sort_keys=True))
        _unsaved.pop(file, None)
    except OSError as error:
        _unsaved[file] = state
        print(f"Progress is kept in memory only; {file.name} cannot be written: {error.strerror}.")


def record_pass(id: str) -> None:
    """Remember that an exercise was passed."""
    state = load()
    if id not in state.passed:
        state.passed.add(id)
        save(state)


def open_hint(id: str, steps: int) -> int:
    """Open one more hint, up to all steps, and return how many are open."""
    state = load()
    opened = min(state.hints.get(id, 0) + 1, steps)
    if opened != state.hints.get(id):
        state.hints[id] = opened
        save(state)
    return opened


COLUMNS = ("chapter", "passed", "hinted", "open")


class Table:
    """Where the learner stands, a row for each chapter: ids passed, opened a hint for, and neither."""

    def __init__(self, chapters: dict[str, list[str]], state: State):
        self.rows = [(chapter, *sorted_out(ids, state)) for chapter, ids in chapters.items()]
        self.summary = (
            f"{sum(id in state.passed for ids in chapters.values() for id in ids)} of "
            f"{sum(map(len, chapters.values()))} exercises passed"
        )

    def __repr__(self) -> str:
        rows = [COLUMNS, *self.rows]
        widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
        lines = (
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
        )
        return "\n".join([*(line.rstrip() for line in lines), self.summary])

    def _repr_html_(self) -> str:
        rows = _row("th", COLUMNS) + "".join(_row("td", row) for row in self.rows)
        return f"<table>{rows}</table><p>{self.summary}</p>"


def _row(tag: str, cells: tuple[str, ...]) -> str:
    return (
        "<tr>"
        + "".join(f'<{tag} style="text-align: left">{html.escape(cell)}</{tag}>' for cell in cells)
        + "</tr>"
    )


def sorted_out(ids: list[str], state: State) -> tuple[str, str, str]:
    """The ids passed, hinted and open, each as one text."""
    passed = [id for id in ids if id in state.passed]
    hinted = [id for id in ids if id not in state.passed and id in state.hints]
    rest = [id for id in ids if id not in passed and id not in hinted]
    return tuple(" ".join(group) or "–" for group in (passed, hinted, rest))
