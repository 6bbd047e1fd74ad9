"""The learner's own Linformer: what passes as a part is kept in my_linformer.py, and later chapters run it.

The file is beside the record of progress. It is plain Python, one part after another in the order of the course,
and its owner may edit it: lines between the parts stay. A part that is solved again replaces the earlier answer, which
stays below it as a comment.
"""

import linecache
import re
import tokenize
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from linformer_from_scratch.common.files import atomic_write, locked
from linformer_from_scratch.course.exercises.engine import checking, progress
from linformer_from_scratch.course.exercises.engine.checking import RAISED, Exercise, described_error, judge
from linformer_from_scratch.course.exercises.engine.isolation import isolated
from linformer_from_scratch.course.exercises.engine.standalone import standalone

NAME = "my_linformer.py"
HEAD = '''"""My Linformer: the parts that I have written, in the order of the course.

A part comes here when its check passes; later chapters run it with yours("…"). The answer of before stays below the
new one, as a comment.
"""
'''
MARK = re.compile(r"^# ---- part (\w+): (\w+) ----$", re.MULTILINE)
BEFORE = "# ---- before ----"


@dataclass(frozen=True)
class Part:
    """One part of the file: which one, the name that it defines, and its code."""

    part: str
    name: str
    code: str
    before: str = ""  # earlier answers, as comments

    def text(self) -> str:
        """What the file has of it."""
        return f"# ---- part {self.part}: {self.name} ----\n\n{self.with_before(self.code.strip())}\n"

    def with_before(self, text: str) -> str:
        """A text, and the earlier answers below it."""
        return f"{text}\n\n\n{BEFORE}\n{self.before}" if self.before else text

    def replaced_by(self, new: "Part") -> "Part":
        """The new part, with this one below as a comment."""
        comment = "\n".join(f"# {line}".rstrip() for line in self.code.strip().splitlines())
        return replace(new, before=self.with_before(comment))


def path() -> Path:
    """Where the learner's parts are kept."""
    return progress.path().with_name(NAME)


def parsed(text: str) -> tuple[str, list[Part]]:
    """The lines above the parts, and the parts."""
    head, *rest = MARK.split(text)
    parts = []
    for part, name, body in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        code, _, before = body.partition(BEFORE)
        parts.append(Part(part, name, code.strip(), before.strip()))
    return head, parts


def written(head: str, parts: list[Part]) -> str:
    """The text of the file."""
    return "\n\n".join([head.strip() + "\n", *(part.text() for part in parts)])


def keep(exercise: Exercise, attempt: Callable, order: list[str]) -> str:
    """Add an attempt that has passed to the file, and say in a few words whether it is kept.

    Args: order: the parts in the order of the course.
    """
    file = path()
    try:
        with locked(file, progress.PATIENCE):
            before, encoding = text_of(file)
            head, parts = parsed(before)
            text = with_part(head, parts, exercise, attempt, order)
            if text != written(head, parts):
                atomic_write(file, text.encode(encoding))
        return f"kept as {exercise.part} in {NAME}"
    except UnicodeEncodeError as error:
        return f"not kept in {NAME}: it is in {encoding}, which has no {error.object[error.start]!r}; save it in UTF-8"
    except ValueError as error:
        stays = "; the answer of before stays there" if exercise.part in kept() else ""
        return f"not kept in {NAME}: {error}{stays}"
    except OSError as error:
        return f"not kept in {NAME}: {error.strerror or error}"
    finally:
        linecache.cache.pop(str(file), None)  # from now on lines are those of the file


def with_part(head: str, parts: list[Part], exercise: Exercise, attempt: Callable, order: list[str]) -> str:
    """The text of the file with one more part, which passes when it is run from there.

    Raises: ValueError, in one sentence, if it does not run by itself.
    """
    place = order.index(exercise.part)
    earlier = [part for part in parts if part.part in order[:place]]
    code = standalone(attempt, {part.name for part in earlier})
    new = Part(exercise.part, attempt.__name__, code)
    for i, old in enumerate(parts):
        if old.part == new.part:
            if (old.name, old.code) != (new.name, new.code):
                parts = [*parts[:i], old.replaced_by(new), *parts[i + 1 :]]
            break
    else:
        at = max((parts.index(part) + 1 for part in earlier), default=0)
        parts = [*parts[:at], new, *parts[at:]]
    text = written(head, parts)
    try:
        alone = loaded(text, exercise.part)
    except RAISED as error:
        raise ValueError(f"that file cannot be run ({described_error(error)})") from error
    result = judge(exercise, alone)
    if alone is None or result.status != "passed":
        raise ValueError(f"alone in a file it does not pass; {result.message}")
    if not gives_tensors(exercise, alone):
        raise ValueError(
            "it returns other arrays than tensors, and later chapters go on with what it returns"
        )
    return text


def gives_tensors(exercise: Exercise, attempt: Callable) -> bool:
    """Does it return a tensor wherever the reference does?"""
    with isolated():
        got, expected = (
            checking.tensors(checking.observe(exercise, function, exercise.trial(0)).value)
            for function in (attempt, exercise.reference)
        )
    return len(got) == len(expected)


def text_of(file: Path) -> tuple[str, str]:
    """Text and encoding of the file, or of a new one; a file that is not text is set aside with a word.

    Raises: OSError if it can be neither read nor set aside.
    """
    try:
        return read(file) if file.exists() else (HEAD, "utf-8")
    except (UnicodeDecodeError, SyntaxError):
        progress.set_aside(file, f"{file.name} is not text")
        return HEAD, "utf-8"


def read(file: Path) -> tuple[str, str]:
    """Text and encoding of a file as Python finds them: by its byte order mark or its line `# coding: …`.

    Raises: OSError, or UnicodeDecodeError or SyntaxError if Python cannot read it either.
    """
    with tokenize.open(file) as opened:
        return opened.read(), opened.encoding


def loaded(text: str, part: str) -> Callable | None:
    """What a part defines, run with all that is above it; None if the file does not have it.

    Raises: whatever running it raises.
    """
    for mark in MARK.finditer(text):
        if mark[1] == part:
            end = MARK.search(text, mark.end())
            file = str(path())
            names: dict = {"__name__": Path(NAME).stem, "__file__": file}
            lines = text.splitlines(keepends=True)
            linecache.cache[file] = len(text), None, lines, file  # what is run is quoted
            exec(compile(text[: end.start() if end else None], file, "exec"), names)
            return names[mark[2]]
    return None


def load(exercise: Exercise) -> tuple[Callable, str]:
    """The learner's part, or the package's while it is open; and the line that says which."""
    theirs = f"the package's {exercise.reference.__name__} stands in"
    try:
        own = loaded(read(path())[0], exercise.part) if path().exists() else None
        linecache.cache.pop(str(path()), None)  # it may be edited
    except RAISED as error:
        why = f"{NAME} cannot be run ({described_error(error)}); {theirs}"
        return exercise.reference, f"{exercise.part}: {why}"
    if own is None:
        return exercise.reference, f"{exercise.part}: exercise {exercise.id} is open, {theirs}"
    return own, f"{exercise.part}: yours, {own.__name__} of {NAME}"


def kept() -> set[str]:
    """The parts that the learner's file has."""
    try:
        return {part.part for part in parsed(read(path())[0])[1]}
    except (OSError, UnicodeDecodeError, SyntaxError):
        return set()
