"""Files: those of the package, those that a person names, those that are whole or not there; and locks."""

import errno
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import BinaryIO

PACKAGE = Path(str(resources.files("linformer_from_scratch")))  # where it is installed
DATA = PACKAGE / "data" / "shipped"  # text, maps, fitted E and F; README.md there says where from
MOMENT = 0.02  # seconds between two looks at a lock


def expanded(path: str | Path) -> Path:
    """The path of a file or folder that a person names; ~ is their home folder.

    Raises: ValueError if it is empty or no path, FileNotFoundError if there is no such home folder.
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
    """The folder and those above it, unless they are there.

    Raises: OSError, in one sentence: NotADirectoryError if one of them is a file.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
        if there.is_dir():
            raise type(error)(f"{shown(folder)} cannot be made: {error.strerror}") from None
        what = "file" if there.exists() else "link that leads nowhere"
        raise NotADirectoryError(f"{shown(there)} is a {what}, expected a folder") from None


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a file whole: a kill, a full disk or a power cut leaves the old one or none, never half of one.

    Raises: OSError if it cannot be written; nothing is left behind.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{shown(path)} is a folder, expected a file")
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")  # others may write it as well
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
    """Be the only one inside for this path, among all threads and processes.

    What is held is `path.lock`, by the operating system: it lets go when a process ends, however it ends. The
    file that a killed one leaves there holds nobody up.

    Args:
        path: a file, there or not, in a folder that is there.
        wait: seconds to wait while another is inside.

    Raises: BlockingIOError, in one sentence, if another still is; OSError if nothing can be written there.
    """
    lock, end = path.with_name(f"{path.name}.lock"), time.monotonic() + wait
    while (held := _hold(lock)) is None:
        if time.monotonic() >= end:
            raise BlockingIOError(f"{path} is in use by another process; wait until that has ended")
        time.sleep(MOMENT)
    try:
        yield
    finally:
        _let_go(held, lock)


def _hold(lock: Path) -> BinaryIO | None:
    """The open file, held; None if another holds it."""
    while True:
        file = lock.open("ab")
        try:
            _take(file)
            if os.path.samestat(os.fstat(file.fileno()), os.stat(lock)):
                return file
        except FileNotFoundError:
            pass  # whoever held it has removed it: what is held here is no longer the file of that name
        except (BlockingIOError, PermissionError):  # as POSIX says it, and Windows
            file.close()
            return None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                file.close()
                raise
            warnings.warn(f"the disk of {lock} has no locks; see that nobody else writes there", stacklevel=5)
            return file
        file.close()


if sys.platform == "win32":
    import msvcrt

    def _take(file: BinaryIO) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

    def _let_go(file: BinaryIO, lock: Path) -> None:
        file.close()
        with suppress(OSError):  # an open file cannot be removed here: then another has it
            lock.unlink()
else:
    import fcntl

    def _take(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _let_go(file: BinaryIO, lock: Path) -> None:
        with suppress(OSError):
            lock.unlink()
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)  # also of what was forked meanwhile
        file.close()
