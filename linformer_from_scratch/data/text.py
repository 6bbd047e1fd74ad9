"""Real text as documents: the texts of this course, and your own files and folders."""

import hashlib
import json
import os
import re
import stat
import unicodedata
from functools import cache
from itertools import count, pairwise
from pathlib import Path, PurePath

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
    """Documents of your own, title -> text: a folder's files, or a file's parts between form feeds.

    A file without form feeds, or a folder's only file, is cut into ten parts of about equal length: at ends
    of lines; if it has a single line, between words; if it has a single word, between letters.

    Raises: as read_text.
    """
    texts = {title: text for title, text in _read(path).items() if text.strip()}
    if len(texts) > 1:
        return texts
    ((title, text),) = texts.items()
    parts = _parts(title, text) if "\f" in text else {}
    return parts if len(parts) > 1 else _tenths(title, text)


def read_text(path: str | Path) -> str:
    """Text of a file, or of every .md, .py, .rst and .txt file below a folder, in the order of their paths.

    Hidden folders are left out: they hold copies (.ipynb_checkpoints) and other people's files (.venv). Links
    are followed, but a file that is reached in several ways is read once.

    Raises: FileNotFoundError if the path does not exist, PermissionError if it may not be read, ValueError if
    it is empty, binary, not UTF-8 or not a file, OSError if the disk fails. The message names the file; a
    folder is read whole or not at all.
    """
    return "\n".join(_read(path).values())


def title_of(file: PurePath, folder: PurePath) -> str:
    """A file's path below its folder, written in the same way on every system."""
    return file.relative_to(folder).as_posix()


def order_of(title: str) -> tuple[list[str], str]:
    """The key by which titles are sorted: folder by folder, the same on every system."""
    return unicodedata.normalize("NFC", title).split("/"), title


def _read(path: str | Path) -> dict[str, str]:
    """Text of a file, or of each of a folder's: title -> text, in the order of the paths."""
    given = expanded(path)
    try:
        if given.is_dir():
            files = {title_of(file, given): file for file in _text_files(given)}
            texts = {title: _read_file(files[title]) for title in sorted(files, key=order_of)}
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
    if not any(map(str.strip, texts.values())):
        raise ValueError(f"{shown(given)} is empty, expected text")
    return texts


def _checked(path: Path) -> str:
    text = read_text(path)
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["sha256"]
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest != expected:
        raise ValueError(f"{path.name} has SHA-256 {digest}, expected {expected}; restore the file")
    return text


def _cut(text: str) -> dict[str, str]:
    blocks = text.split("\f")[1:]  # a form feed stands before each title
    return dict(block.split("\n", 1) for block in blocks)


def _parts(name: str, text: str) -> dict[str, str]:
    """Parts between form feeds, titled by their first line, or by a number where that is empty or taken."""
    parts: dict[str, str] = {}
    for i, block in enumerate(filter(str.strip, text.split("\f")), 1):
        title, _, body = block.partition("\n")
        if not title.strip() or not body.strip() or title in parts:
            title = next(free for j in count(i) if (free := f"{name}, part {j}") not in parts)
            body = block
        parts[title] = body
    return parts


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
    """Every text file below a folder, links followed; one that is reached in several ways, once."""
    files: dict[str, Path] = {}  # real path -> the path under which it is first reached
    entered = {str(above) for above in Path(os.path.realpath(folder)).parents}  # a link upwards is a circle
    for parent, subfolders, names in os.walk(folder, onerror=_raise, followlinks=True):
        real = os.path.realpath(parent)
        if real in entered:
            subfolders.clear()
            continue
        entered.add(real)
        subfolders[:] = [path.name for path in _links_last(parent, subfolders) if path.name[0] != "."]
        for path in _links_last(parent, names):
            if path.name.lower().endswith(TEXT_ENDINGS):
                files.setdefault(os.path.realpath(path), path)
    return list(files.values())


def _links_last(parent: str, names: list[str]) -> list[Path]:
    return sorted((Path(parent, name) for name in names), key=lambda path: (path.is_symlink(), path.name))


def _raise(error: OSError) -> None:
    raise error  # os.walk would leave out a folder that it may not read


def _read_file(path: Path) -> str:
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
        raise ValueError(f"{shown(path)} is neither a file nor a folder")
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
