"""Real text as documents: the texts of this course, and your own files and folders."""

import hashlib
import json
import os
import re
import unicodedata
from functools import cache
from itertools import pairwise
from pathlib import Path

from linformer_from_scratch.common.files import DATA, expanded, shown

SHIPPED = DATA / "python_reference.txt"
DOCSTRINGS = DATA / "python_docstrings.txt"
PARTS = 10  # of a single document
TEXT_ENDINGS = (".md", ".py", ".rst", ".txt")  # files that are read in a folder


@cache
def shipped_text() -> str:
    """Python's own language reference, about 460 kB of English (PSF licence, see data/shipped/README.md).

    Raises: FileNotFoundError if the file is gone, ValueError if it has been changed.
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
    """Documents of your own: every .md, .py, .rst and .txt file below a folder; path in it -> text.

    A single file, or a folder's only one, is cut into ten parts of about equal length: at ends of lines; if
    it has a single line, between words; if it has a single word, between letters.

    Hidden folders are left out, since they hold copies (.ipynb_checkpoints) and other people's files (.venv),
    and so are links to folders.

    Raises: FileNotFoundError if the path does not exist, PermissionError if it may not be read, ValueError if
    it is empty, binary or not UTF-8, OSError if the disk fails. The message names the file; a
    folder is read whole or not at all.
    """
    given = expanded(path)
    try:
        if given.is_dir():
            files = {file.relative_to(given).as_posix(): file for file in _text_files(given)}
            texts = {title: _read_file(files[title]) for title in sorted(files, key=_order)}
        else:
            texts = {given.name: _read_file(given)}
    except FileNotFoundError as error:
        raise FileNotFoundError(f"there is no file or folder {shown(error.filename)}") from None
    except OSError as error:
        raise type(error)(f"{shown(error.filename or given)} cannot be read: {error.strerror}") from None
    if not texts:
        raise ValueError(
            f"folder {shown(given)} holds no text file ({', '.join(TEXT_ENDINGS)}) outside hidden folders"
        )
    texts = {title: text for title, text in texts.items() if text.strip()}
    if not texts:
        raise ValueError(f"{shown(given)} is empty, expected text")
    return texts if len(texts) > 1 else _tenths(*texts.popitem())


def _order(title: str) -> tuple[list[str], str]:
    """Folder by folder, the same on every system."""
    return unicodedata.normalize("NFC", title).split("/"), title


def _checked(path: Path) -> str:
    text = _read_file(path)
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["sha256"]
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest != expected:
        raise ValueError(f"{path.name} has SHA-256 {digest}, expected {expected}; restore the file")
    return text


def _cut(text: str) -> dict[str, str]:
    blocks = text.split("\f")[1:]  # a form feed stands before each title
    return dict(block.split("\n", 1) for block in blocks)


def _tenths(name: str, text: str) -> dict[str, str]:
    """Ten parts of about equal length, the blank ones left out."""
    words = re.split(r"(?<=\s)(?=\S)", text)  # each with the blanks after it
    for pieces in (text.splitlines(keepends=True), words, list(text)):
        cuts = [len(pieces) * i // PARTS for i in range(PARTS + 1)]
        parts = ["".join(pieces[start:stop]) for start, stop in pairwise(cuts)]
        titled = {f"{name}, part {i} of {PARTS}": part for i, part in enumerate(parts, 1) if part.strip()}
        if len(titled) > 1:
            break
    return titled


def _text_files(folder: Path) -> list[Path]:
    """Every text file below a folder."""
    files: list[Path] = []
    for parent, subfolders, names in os.walk(folder, onerror=_raise):
        subfolders[:] = [name for name in subfolders if name[0] != "."]
        files += [Path(parent, name) for name in names if name.lower().endswith(TEXT_ENDINGS)]
    return files


def _raise(error: OSError) -> None:
    raise error  # os.walk would leave out a folder that it may not read


def _read_file(path: Path) -> str:
    raw = path.read_bytes()
    if b"\0" in raw:
        raise ValueError(f"{shown(path)} is binary (byte {raw.index(0)} is zero), expected text")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{shown(path)} is not UTF-8 (byte {error.start} is 0x{raw[error.start]:02x}); save it as UTF-8"
        ) from None
    return text.removeprefix("\ufeff").replace("\r\n", "\n")  # no byte order mark, no Windows line ends
