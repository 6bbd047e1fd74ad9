"""Files: those of the package, paths that a person types, writes that are whole or did not happen, locks."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path

from filelock import FileLock, Timeout

PACKAGE = Path(str(resources.files("linformer_from_scratch")))  # where it is installed
DATA = PACKAGE / "data" / "shipped"  # text, maps, fitted E and F; README.md there says where from
MOMENT = 0.02  # seconds between two attempts to take a lock


def expanded(path: str | Path) -> Path:
    """The path that a person typed; ~ is their home folder.

    Raises: ValueError if it is empty or not a path, FileNotFoundError if there is no such home folder.
    """
    if not str(path) or "\0" in str(path):
        raise ValueError(f"the path is {str(path)!r}, expected that of a file or folder")
    try:
        return Path(path).expanduser()
    except RuntimeError:  # ~nobody
        raise FileNotFoundError(f"there is no home folder for {shown(path)}") from None


def shown(path: str | Path) -> str:
    """A path on one line that any screen can show, even if its name is not UTF-8."""
    return str(path) if str(path).isprintable() else repr(str(path))


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, where they are missing.

    Raises: OSError, in one sentence: NotADirectoryError if one of them is a file.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        nearest = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
        if nearest.is_dir():
            raise type(error)(f"{shown(folder)} cannot be made: {error.strerror}") from None
        what = "file" if nearest.exists() else "link that leads nowhere"
        raise NotADirectoryError(f"{shown(nearest)} is a {what}, expected a folder") from None


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a file whole: a kill, a full disk or a power cut leaves the old file or none, never half a file.

    Raises: OSError if it cannot be written; nothing is left behind.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{shown(path)} is a folder, expected a file")
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")  # another process may write it, too
    try:
        with unfinished.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@contextmanager
def locked(path: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock of this path: one thread of one process at a time.

    The operating system holds the lock, on `path.lock`: free as soon as its process ends, however it ends.

    Args:
        path: a file, which need not exist, in a folder that does.
        wait: seconds to wait while another holds the lock.

    Raises: BlockingIOError, in one sentence, if another still holds it; OSError if the folder is read-only.
    """
    file = path.with_name(f"{path.name}.lock")
    lock = FileLock(file, timeout=wait, poll_interval=MOMENT)
    try:
        lock.acquire()
    except Timeout:
        raise BlockingIOError(f"{path} is in use by another process; wait until that has ended") from None
    try:
        yield
    finally:
        with suppress(OSError):  # Windows does not remove an open file; release() does it there
            file.unlink()
        lock.release()
