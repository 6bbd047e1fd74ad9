"""Checkpoints: one safetensors file each, written whole or not at all, read without running code."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from linformer_from_scratch.files import write_whole

FORMAT = "linformer_from_scratch.training 1"
KEPT = 2  # the newest, and one to fall back on


def write(folder: Path, step: int, tensors: Mapping[str, Tensor], record: Mapping) -> Path:
    """Write a checkpoint; remove all but the newest two, and what a killed run left unfinished.

    The file gets its name only when all of it lies on the disk: a kill or a full disk leaves the older ones.

    Raises: OSError, in one sentence, if it cannot be written.
    """
    path = folder / f"step-{step:08}.safetensors"
    header = {"format": FORMAT, "record": json.dumps({"step": step, **record})}
    whole = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}  # shared ones, too
    try:
        write_whole(path, save(whole, header))
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


def read(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> tuple[dict[str, Tensor], dict]:
    """Tensors and record of a checkpoint.

    Without shapes, any model's is read.

    Raises: ValueError, in one sentence with the file's name, if it is truncated or damaged, was not written
        here, or does not hold a model with tensors of these shapes.
    """
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                raise ValueError(f"{path.name} is refused: it is no checkpoint of this trainer")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path.name} is refused: it is truncated or damaged ({error})") from None
    for name, shape in shapes.items():
        found = tuple(tensors[name].shape) if name in tensors else "nothing"
        if found != shape:
            raise ValueError(f"{path.name} is refused: it holds {found} for {name}, this model has {shape}")
    unknown = [name for name in tensors if name.startswith("model.") and name not in shapes]
    if shapes and unknown:
        raise ValueError(f"{path.name} is refused: it holds {unknown[0]}, this model has no such tensor")
    return tensors, json.loads(header["record"])


def readable(folder: Path, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[dict, dict] | ValueError]:
    """What read gives for each checkpoint, the newest first; for a refused one, the refusal."""
    for path in newest(folder):
        try:
            yield read(path, shapes)
        except ValueError as refusal:
            yield refusal
