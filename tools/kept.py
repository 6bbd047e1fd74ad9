"""What takes long to make, and is made of a few things, is kept in build/kept from one build to the next."""

import hashlib
import shutil
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

from linformer_from_scratch.common.files import PACKAGE, locked

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "kept"
LIMIT_S = 600  # for another process that makes the same
# What the pretrained encoder's output depends on; the hash of its weights is there, too.
ENCODER = [path for room in (".", "common", "pretrained") for path in (PACKAGE / room).glob("*.py")]


def kept(
    name: str, made_of: list[Path], make: Callable[[Path], object], packages: Iterable[str] = ()
) -> Path:
    """The folder that `make` fills, anew when a file or a package that it is made of has changed."""
    digest = hashlib.sha256(" ".join(map(version, packages)).encode())
    for path in sorted(path for path in made_of if path.is_file()):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    folder = KEPT / name / digest.hexdigest()[:16]
    KEPT.mkdir(parents=True, exist_ok=True)
    with locked(KEPT / name, LIMIT_S):
        if not folder.exists():
            shutil.rmtree(folder.parent, ignore_errors=True)
            unfinished = folder.with_name("unfinished")  # what an interrupted `make` leaves
            unfinished.mkdir(parents=True)
            make(unfinished)
            unfinished.rename(folder)
    return folder
