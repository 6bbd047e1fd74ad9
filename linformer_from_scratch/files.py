"""Files that are there in full or not at all."""

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that a kill, a full disk or a power cut leaves the old one, or none, never half of one.

    Raises: OSError if it cannot be written; nothing is left behind.
    """
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
