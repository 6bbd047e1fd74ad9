"""Real text: what the course ships, and your own files and folders."""

import hashlib
import json
from functools import cache
from pathlib import Path

DATA = Path(__file__).parents[1] / "chapters" / "data"
SHIPPED = DATA / "python_reference.txt"
TEXT_ENDINGS = {".txt", ".md", ".rst", ".py"}  # what is read of a folder


@cache
def shipped_text() -> str:
    """Python's own language reference, about 460 kB of English (PSF licence, see chapters/data/README.md).

    Raises: ValueError if the file is not the one that was shipped.
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
    """Text of a file, or of every .txt, .md, .rst and .py file below a folder, in the order of their names.

    Raises: FileNotFoundError if nothing is there, PermissionError if it may not be read, ValueError if it is
    empty, binary or not UTF-8; the sentence names the file.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file or folder {path}")
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix in TEXT_ENDINGS and file.is_file())
        if not files:
            raise ValueError(f"folder {path} holds no text file ({', '.join(sorted(TEXT_ENDINGS))})")
        return "\n".join(map(_read_file, files))
    return _read_file(path)


def _read_file(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except PermissionError:
        raise PermissionError(f"{path} may not be read; check its permissions") from None
    if b"\0" in raw:
        raise ValueError(f"{path} is binary (byte {raw.index(0)} is zero), expected text")
    try:
        text = raw.decode("utf-8-sig")  # drops a byte order mark
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 (byte {error.start} is 0x{raw[error.start]:02x}); save it as UTF-8"
        ) from None
    if not text.strip():
        raise ValueError(f"{path} is empty, expected text")
    return text.replace("\r\n", "\n")
