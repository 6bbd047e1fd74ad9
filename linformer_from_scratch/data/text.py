"""Real text as documents: what the course ships, and your own files and folders."""

import hashlib
import json
import os
from functools import cache
from itertools import pairwise
from pathlib import Path

from linformer_from_scratch.files import DATA

SHIPPED = DATA / "python_reference.txt"
DOCSTRINGS = DATA / "python_docstrings.txt"
PARTS = 10  # of a text that is one document
TEXT_ENDINGS = (".md", ".py", ".rst", ".txt")  # what is read of a folder


@cache
def shipped_text() -> str:
    """Python's own language reference, about 460 kB of English (PSF licence, see data/shipped/README.md).

    Raises: FileNotFoundError if the file is gone, ValueError if it is not the one that was shipped.
    """
    return _checked(SHIPPED)


@cache
def documents() -> dict[str, str]:
    """The language reference cut into its documents: title -> text."""
    return _cut(shipped_text())


@cache
def docstrings() -> dict[str, str]:
    """Docstrings of Python's standard library, about 1.6 MB of English: module -> text (PSF licence).

    Raises: as shipped_text.
    """
    return _cut(_checked(DOCSTRINGS))


def read_documents(path: str | Path) -> dict[str, str]:
    """Documents of your own, title -> text: a folder's files, or a file's parts between form feeds.

    A file without form feeds is cut into ten parts of about equal length, at ends of lines.

    Raises: as read_text.
    """
    path = Path(path).expanduser()
    if path.is_dir():
        read_text(path)  # raises, with its sentence, unless every file can be read
        texts = {str(file.relative_to(path)): _read_file(file) for file in _text_files(path)}
        return {title: text for title, text in texts.items() if text.strip()}
    text = read_text(path)
    if "\f" in text:
        return _parts(path.name, text)
    lines = text.splitlines(keepends=True)
    cuts = [len(lines) * i // PARTS for i in range(PARTS + 1)]
    parts = ["".join(lines[start:stop]) for start, stop in pairwise(cuts)]
    return {f"{path.name}, part {i} of {PARTS}": part for i, part in enumerate(parts, 1) if part.strip()}


def read_text(path: str | Path) -> str:
    """Text of a file, or of every .md, .py, .rst and .txt file below a folder, in the order of their paths.

    Hidden folders are left out: they hold copies (.ipynb_checkpoints) and other people's files (.venv).

    Raises: FileNotFoundError if nothing is there, PermissionError if it may not be read, ValueError if it is
    empty, binary or not UTF-8. The sentence names the file; nothing of a folder is returned without the rest.
    """
    path = Path(path).expanduser()
    try:
        files = _text_files(path) if path.is_dir() else [path]
        text = "\n".join(map(_read_file, files))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"there is no file or folder {error.filename}") from None
    except PermissionError as error:
        raise PermissionError(f"{error.filename} may not be read; check its permissions") from None
    if not files:
        raise ValueError(f"folder {path} holds no text file ({', '.join(TEXT_ENDINGS)})")
    if not text.strip():
        raise ValueError(f"{path} is empty, expected text")
    return text


def _checked(path: Path) -> str:
    text = read_text(path)
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["sha256"]
    found = hashlib.sha256(text.encode()).hexdigest()
    if found != expected:
        raise ValueError(f"{path.name} has SHA-256 {found}, expected {expected}; restore the file")
    return text


def _cut(text: str) -> dict[str, str]:
    blocks = text.split("\f")[1:]  # a form feed stands before each title
    return dict(block.split("\n", 1) for block in blocks)


def _parts(name: str, text: str) -> dict[str, str]:
    """Between form feeds, under their first lines; where such a title is empty or taken, under a number."""
    found: dict[str, str] = {}
    for i, block in enumerate(filter(str.strip, text.split("\f")), 1):
        title, _, body = block.partition("\n")
        if not title.strip() or not body.strip() or title in found:
            title, body = f"{name}, part {i}", block
        found[title] = body
    return found


def _text_files(folder: Path) -> list[Path]:
    files = []
    for parent, subfolders, names in os.walk(folder, onerror=_raise):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]  # these are entered next
        files += [Path(parent, name) for name in names if name.lower().endswith(TEXT_ENDINGS)]
    return sorted(files)


def _raise(error: OSError) -> None:
    raise error  # os.walk would leave out a folder that it may not read


def _read_file(path: Path) -> str:
    raw = path.read_bytes()
    if b"\0" in raw:
        raise ValueError(f"{path} is binary (byte {raw.index(0)} is zero), expected text")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 (byte {error.start} is 0x{raw[error.start]:02x}); save it as UTF-8"
        ) from None
    return text.removeprefix("\ufeff").replace("\r\n", "\n")  # no byte order mark, no Windows line ends
