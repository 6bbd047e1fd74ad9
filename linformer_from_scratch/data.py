"""Real text: what the course ships, and your own files and folders."""

import hashlib
import json
import os
from functools import cache
from pathlib import Path

DATA = Path(__file__).parents[1] / "chapters" / "data"
SHIPPED = DATA / "python_reference.txt"
TEXT_ENDINGS = (".md", ".py", ".rst", ".txt")  # what is read of a folder


@cache
def shipped_text() -> str:
    """Python's own language reference, about 460 kB of English (PSF licence, see chapters/data/README.md).

    Raises: FileNotFoundError if the file is gone, ValueError if it is not the one that was shipped.
    """
    text = read_text(SHIPPED)
    expected = json.loads(SHIPPED.with_suffix(".json").read_text(encoding="utf-8"))["sha256"]
    found = hashlib.sha256(text.encode()).hexdigest()
    if found != expected:
        raise ValueError(f"{SHIPPED.name} has SHA-256 {found}, expected {expected}; restore the file")
    return text


@cache
def documents() -> dict[str, str]:
    """The shipped text cut into its documents: title -> text."""
    blocks = shipped_text().split("\f")[1:]  # a form feed stands before each title
    return dict(block.split("\n", 1) for block in blocks)


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
