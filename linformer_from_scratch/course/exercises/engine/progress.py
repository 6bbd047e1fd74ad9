"""What has been passed, which hints were opened and what was bet: kept in one local file, and nowhere else.

The file is .progress.json in the course's folder chapters/, wherever Python was started; without that folder, as
where the package alone is installed, in the working directory. The environment variable LINFORMER_PROGRESS names
another.
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from linformer_from_scratch.common.files import PACKAGE, atomic_write, expanded, locked

FORMAT = "linformer-from-scratch progress 1"  # tells our file from others of the same name
NAME = ".progress.json"
CHAPTERS = PACKAGE.parent / "chapters"
PATIENCE = 10  # seconds to wait for another kernel that writes


@dataclass
class State:
    """Ids that were passed; id -> number of hints opened; bet -> the answer chosen."""

    passed: set[str] = field(default_factory=set)
    hints: dict[str, int] = field(default_factory=dict)
    bets: dict[str, str] = field(default_factory=dict)

    def __or__(self, other: "State") -> "State":
        hints = self.hints | {one: max(count, self.hints.get(one, 0)) for one, count in other.hints.items()}
        return State(self.passed | other.passed, hints, self.bets | other.bets)

    def without(self, exercise: str) -> "State":
        """A state that does not know of one exercise."""
        hints = {one: n for one, n in self.hints.items() if one != exercise}
        return State(self.passed - {exercise}, hints, self.bets)


_unsaved: dict[Path, State] = {}  # what could not be written, so that hints go on opening


def path() -> Path:
    """Where progress is kept."""
    file = Path(os.environ.get("LINFORMER_PROGRESS") or (CHAPTERS if CHAPTERS.is_dir() else Path()) / NAME)
    with suppress(OSError):  # there is no such home, or no working directory: writing will say so
        file = expanded(file).absolute()
    return file


def load() -> State:
    """The state so far: what is in the file, and what could not be written."""
    file = path()
    unsaved = _unsaved.get(file, State())
    try:
        return read(file) | unsaved
    except OSError as error:
        print(f"Progress cannot be read from {file.name}: {error.strerror or error}.")
    return unsaved


def remember(news: State) -> None:
    """Add to what is kept. Other kernels may do so too: reading, adding and writing are one step."""
    known = load()
    if known | news == known:
        return
    file = path()
    news = _unsaved.get(file, State()) | news
    try:
        with locked(file, PATIENCE):
            write(file, read(file) | news)
        _unsaved.pop(file, None)
    except OSError as error:
        _unsaved[file] = news
        print(f"Progress is kept in memory only; {file.name} cannot be written: {error.strerror or error}.")


def record_pass(exercise: str) -> None:
    """Remember that an exercise was passed."""
    remember(State({exercise}))


def open_hint(exercise: str, steps: int) -> int:
    """Open one more hint, up to all steps, and return how many are open."""
    opened = min(load().hints.get(exercise, 0) + 1, steps)
    remember(State(hints={exercise: opened}))
    return opened


def forget(exercise: str) -> bool:
    """Let an exercise be open again, its hints closed; was anything known of it?"""
    known = load()
    if known == known.without(exercise):
        return False
    file = path()
    _unsaved[file] = _unsaved.get(file, State()).without(exercise)
    try:
        with locked(file, PATIENCE):
            write(file, read(file).without(exercise))
    except OSError as error:
        reason = error.strerror or error
        print(f"{exercise} stays as it was in {file.name}, which cannot be written: {reason}.")
    return True


def read(file: Path) -> State:
    """The state in a file; a damaged or foreign one is set aside with a word, and the state is empty.

    Raises: OSError if it can be neither read nor set aside.
    """
    try:
        return parsed(file.read_text(encoding="utf-8")) if file.is_file() else State()
    except (ValueError, RecursionError):
        set_aside(file, f"{file.name} is damaged or not a progress file")
        return State()


def parsed(text: str) -> State:
    """The state in a file's text.

    Raises: ValueError, or RecursionError, if the text is not what `write` wrote.
    """
    content = json.loads(text)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError("not a progress file")
    passed, hints = content.get("passed"), content.get("hints")
    if not isinstance(passed, list) or not all(isinstance(one, str) for one in passed):
        raise ValueError("passed is not a list of ids")
    if not isinstance(hints, dict) or not all(type(count) is int and count > 0 for count in hints.values()):
        raise ValueError("hints are not counts")
    bets = content.get("bets", {})  # files of earlier editions have none
    if not isinstance(bets, dict) or not all(isinstance(answer, str) for answer in bets.values()):
        raise ValueError("bets are not answers")
    return State(set(passed), hints, bets)


def write(file: Path, state: State) -> None:
    """Write the whole file or nothing: a kill in between leaves the old one.

    Raises: OSError if it cannot be written.
    """
    if file.exists() and not file.is_file():
        raise OSError(None, "not a regular file")
    content = {"format": FORMAT, "passed": sorted(state.passed), "hints": state.hints, "bets": state.bets}
    atomic_write(file, json.dumps(content, indent=1, sort_keys=True))


def set_aside(file: Path, why: str) -> None:
    """Rename a file to a name that is free, and say so.

    Raises: OSError if it cannot be renamed.
    """
    i = 1
    while (target := file.with_name(f"{file.name}.set-aside-{i}")).exists():
        i += 1
    try:
        file.rename(target)
    except OSError as error:
        raise OSError(f"{why}, and cannot be set aside: {error.strerror}") from error
    print(f"{why}; it was set aside as {target.name}.")
