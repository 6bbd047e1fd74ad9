"""Real text as documents: what the course ships, and your own files and folders."""

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

    A file without form feeds is cut into ten parts of about equal length, at ends of lines; where it has a
    single line, between words, and a single word between letters. So is a folder's only file.

    Raises: as read_text.
    """
    texts = {title: text for title, text in _read(path).items() if text.strip()}
    if len(texts) > 1:
        return texts
    ((title, text),) = texts.items()
    found = _parts(title, text) if "\f" in text else {}
    return found if len(found) > 1 else _tenths(title, text)


def read_text(path: str | Path) -> str:
    """Text of a file, or of every .md, .py, .rst and .txt file below a folder, in the order of their paths.

    Hidden folders are left out: they hold copies (.ipynb_checkpoints) and other people's files (.venv). Links
    are followed, but a file that is reached in several ways is read once.

    Raises: FileNotFoundError if nothing is there, PermissionError if it may not be read, ValueError if it is
    empty, binary, not UTF-8 or no file, OSError if the disk fails. The sentence names the file; nothing of a
    folder is returned without the rest.
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
    found = expanded(path)
    try:
        if found.is_dir():
            files = {title_of(file, found): file for file in _text_files(found)}
            texts = {title: _read_file(files[title]) for title in sorted(files, key=order_of)}
        else:
            texts = {found.name: _read_file(found)}
    except FileNotFoundError as error:
        raise FileNotFoundError(f"there is no file or folder {shown(error.filename)}") from None
    except PermissionError as error:
        raise PermissionError(f"{shown(error.filename)} may not be read; check its permissions") from None
    except OSError as error:
        raise OSError(f"{shown(error.filename or found)} cannot be read: {error.strerror}") from None
    if not texts:
        raise ValueError(
            f"folder {shown(found)} holds no text file ({', '.join(TEXT_ENDINGS)}) outside hidden folders"
        )
    if not any(map(str.strip, texts.values())):
        raise ValueError(f"{shown(found)} is empty, expected text")
    return texts


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
            title = next(free for j in count(i) if (free := f"{name}, part {j}") not in found)
            body = block
        found[title] = body
    return found


def _tenths(name: str, text: str) -> dict[str, str]:
    """Ten parts of about equal length, the blank ones left out."""
    for pieces_of in (_lines, _words, str):
        pieces = pieces_of(text)
        cuts = [len(pieces) * i // PARTS for i in range(PARTS + 1)]
        parts = ["".join(pieces[start:stop]) for start, stop in pairwise(cuts)]
        found = {f"{name}, part {i} of {PARTS}": part for i, part in enumerate(parts, 1) if part.strip()}
        if len(found) > 1:
            break
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _words(text: str) -> list[str]:
    return re.split(r"(?<=\s)(?=\S)", text)  # each with the blanks after it


def _text_files(folder: Path) -> list[Path]:
    """Every text file below a folder and below the folders linked there; one with several links, once."""
    found: dict[str, Path] = {}  # real path -> the path that is told
    entered = {str(above) for above in Path(os.path.realpath(folder)).parents}  # a link upwards is a circle
    tops = [folder]
    for top in tops:  # grows by the linked folders that are met
        files = []
        for parent, subfolders, names in os.walk(top, onerror=_raise):
            real = os.path.realpath(parent)
            if real in entered:
                subfolders.clear()  # what stands there is entered next
                continue
            entered.add(real)
            subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
            tops += [path for name in subfolders if (path := Path(parent, name)).is_symlink()]
            files += [Path(parent, name) for name in sorted(names) if name.lower().endswith(TEXT_ENDINGS)]
        for file in sorted(files, key=os.path.islink):  # a file before the links to it
            found.setdefault(os.path.realpath(file), file)
    return list(found.values())


def _raise(error: OSError) -> None:
    raise error  # os.walk would leave out a folder that it may not read


def _read_file(path: Path) -> str:
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
        raise ValueError(f"{shown(path)} is neither a file nor a folder, expected text")
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
