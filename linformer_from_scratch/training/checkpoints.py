"""Checkpoints: one safetensors file each, written whole or not at all, read without running code."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from linformer_from_scratch.common.files import atomic_write

FORMAT = "linformer_from_scratch.training 2"
OLDER = "linformer_from_scratch.training 1"  # without a hash of what it holds
KEPT = 2  # the newest, and one to fall back on


class Refused(ValueError):
    """A file is no checkpoint from which this run can go on; the sentence says why."""


def write(folder: Path, step: int, tensors: Mapping[str, Tensor], record: Mapping) -> Path:
    """Write a checkpoint; remove all but the newest two, and what a killed run left unfinished.

    The file gets its name only when all of it lies on the disk: a kill or a full disk leaves the older ones.

    Raises: OSError, in one sentence, if it cannot be written.
    """
    path = folder / f"step-{step:08}.safetensors"
    whole = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}  # shared ones, too
    said = json.dumps({"step": step, **record})
    try:
        atomic_write(path, save(whole, {"format": FORMAT, "record": said, "sha256": _hash(whole, said)}))
    except OSError as error:
        kept = newest(folder)
        last = f"{kept[0].name} is kept" if kept else "there is no earlier one"
        raise OSError(
            error.errno,
            f"{path.name} cannot be written: {error.strerror}; {last}, free space and start again",
        ) from None
    for old in [found for found in newest(folder) if found <= path][KEPT:]:
        old.unlink()
    for left in folder.glob("*.unfinished"):  # by a run that was killed
        left.unlink()
    return path


def newest(folder: Path) -> list[Path]:
    """Checkpoints of a folder, the newest first."""
    found = [path for path in folder.glob("step-*.safetensors") if re.fullmatch(r"step-\d{8}", path.stem)]
    return sorted(found, reverse=True)


def read(path: Path) -> tuple[dict[str, Tensor], dict]:
    """Tensors of a checkpoint, and its record: step, config, SHA-256 of all it holds (None in older ones).

    Raises: Refused, in one sentence with the file's name, if it is truncated or damaged, or was not
        written here.
    """
    with _refusing(path):
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            if header.get("format") not in (FORMAT, OLDER):
                raise ValueError("it is no checkpoint of this trainer")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        text = header.get("record", "")
        found = _hash(tensors, text) if header["format"] == FORMAT else None
        if found and found != header.get("sha256"):
            raise ValueError(f"it is damaged: its SHA-256 is {found}, expected {header.get('sha256')}")
        return tensors, _record(text, path) | {"sha256": found}


def check(path: Path, tensors: Mapping[str, Tensor], record: Mapping, expected: Mapping[str, Tensor]) -> None:
    """See that a checkpoint holds what this model and its optimizer need, and nothing else.

    Args: expected: tensors in the shapes and dtypes of those that it must hold.
    Raises: Refused, in one sentence with the file's name, if it does not.
    """
    if record["sha256"]:  # nothing has got lost: moments that are not there never were
        expected = _without_unmoved(expected, tensors)
    with _refusing(path):
        for name, like in expected.items():
            wanted: object = tuple(like.shape)
            found: object = tuple(tensors[name].shape) if name in tensors else "nothing"
            if found == wanted:
                wanted, found = like.dtype, tensors[name].dtype
            if found != wanted:
                raise ValueError(f"it holds {found} for {name}, this model has {wanted}")
        for name in tensors:
            if name not in expected and not name.startswith("random."):
                raise ValueError(f"it holds {name}, this model has no such tensor")
        try:
            torch.Generator().set_state(tensors["random.cpu"])
        except RuntimeError as error:
            raise ValueError(f"its random.cpu is no state of random numbers ({error})") from None


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    try:
        yield
    except (SafetensorError, OSError) as error:
        raise Refused(f"{path.name} is refused: it is truncated or damaged ({error})") from None
    except ValueError as why:
        raise Refused(f"{path.name} is refused: {why}") from None


def _record(text: str, path: Path) -> dict:
    """What stands beside the tensors: step and config."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if type(found) is not dict:
        raise ValueError("its record is no JSON object")
    step, config, name = found.get("step"), found.get("config"), int(path.stem.rpartition("-")[2])
    if type(step) is not int or step != name:
        raise ValueError(f"its record has step {step!r}, its name {name}")
    if type(config) is not dict or type(config.get("steps")) is not int:
        raise ValueError("its record has no config of a run")
    if not 0 < step <= config["steps"]:
        raise ValueError(f"it is at step {step}, its run has {config['steps']}")
    return found


def _without_unmoved(expected: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The optimizer's state without the moments of parameters that never had a gradient."""
    moved = {_parameter(name) for name in tensors}
    return {name: like for name, like in expected.items() if _parameter(name) in {None, *moved}}


def _parameter(name: str) -> str | None:
    """The parameter to which these moments belong."""
    kind, number, *_ = [*name.split("."), ""]
    return number if kind == "optimizer" else None


def _hash(tensors: Mapping[str, Tensor], record: str) -> str:
    """Hash of all that a checkpoint holds, since a damaged number still has the right shape."""
    found = hashlib.sha256(record.encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()
