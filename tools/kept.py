"""What takes long to make, and is made of a few things, is kept in build/kept from one build to the next."""

import hashlib
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from linformer_from_scratch.common.files import locked

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "kept"
LIMIT_S = 600  # for another process that makes the same
ENCODER = (  # what the pretrained encoder's output depends on
    "linformer_from_scratch/attention.py",
    "linformer_from_scratch/encoder.py",
    "linformer_from_scratch/heads.py",
    "linformer_from_scratch/pretrained/*.py",  # the hash of its weights, too
)


def kept(name: str, made_of: list[bytes], make: Callable[[Path], object]) -> Path:
    """The folder that `make` fills: anew if what it is made of has changed, or it was not filled to the end."""
    digest = hashlib.sha256()
    for one in made_of:
        digest.update(hashlib.sha256(one).digest())
    folder = KEPT / name / digest.hexdigest()[:16]
    KEPT.mkdir(parents=True, exist_ok=True)
    with locked(KEPT / name, LIMIT_S):
        if not folder.exists():
            shutil.rmtree(folder.parent, ignore_errors=True)
            unfinished = folder.with_name("unfinished")
            unfinished.mkdir(parents=True)
            make(unfinished)
            unfinished.rename(folder)
    return folder


def contents(*patterns: str) -> list[bytes]:
    """What files of the repository hold, for `made_of`."""
    return [path.read_bytes() for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def versions(*packages: str) -> list[bytes]:
    """Versions of installed packages, for `made_of`."""
    return [f"{package} {version(package)}".encode() for package in packages]
