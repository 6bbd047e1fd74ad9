"""Checkpoints: one safetensors file each, written whole or not at all, read without running code."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from linformer_from_scratch.common.files import atomic_write

FORMAT = "linformer_from_scratch.training 2"
KEPT = 2  # the newest, and one to fall back on


class Refused(ValueError):
    """A run cannot go on from this file; the sentence says why."""

    def __init__(self, path: Path, reason: str):
        super().__init__(f"{path.name} is refused: {reason}")


def write(folder: Path, step: int, tensors: Mapping[str, Tensor], config: Mapping) -> None:
    """Write a checkpoint, then remove all older ones but one, and whatever a killed run left unfinished.

    The file gets its name only when all of it is on the disk, so a kill or a full disk leaves the older ones.

    Raises: OSError, in one sentence, if it cannot be written.
    """
    path = folder / f"step-{step:08}.safetensors"
    separate = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}  # even shared ones
    record = json.dumps({"step": step, "config": config})
    try:
        atomic_write(path, save(separate, {"format": FORMAT, "record": record}))
    except OSError as error:
        raise OSError(
            error.errno,
            f"{path.name} cannot be written: {error.strerror}; "
            "earlier checkpoints are kept, free space and start again",
        ) from None
    for old in [other for other in newest(folder) if other <= path][KEPT:]:
        old.unlink()
    for unfinished in folder.glob("*.unfinished"):
        unfinished.unlink()


def newest(folder: Path) -> list[Path]:
    """Checkpoints of a folder, the newest first."""
    paths = [path for path in folder.glob("step-*.safetensors") if re.fullmatch(r"step-\d{8}", path.stem)]
    return sorted(paths, reverse=True)


def read(path: Path) -> tuple[dict[str, Tensor], dict]:
    """Tensors of a checkpoint, and its record: step and config.

    Raises: Refused, in one sentence, if the file is truncated or damaged, or was not written by this trainer.
    """
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        record = json.loads(header.get("record", "{}"))
    except (SafetensorError, OSError, ValueError) as error:
        raise Refused(path, f"it is truncated or damaged ({error})") from None
    if header.get("format") != FORMAT:
        raise Refused(path, "it is not a checkpoint of this trainer")
    if any(name.endswith(".stored") for name in tensors):
        raise Refused(path, "version 1.0 wrote it, and its runs of Linformer cannot be continued")
    return tensors, record


def check_weights(path: Path, tensors: Mapping[str, Tensor], model: nn.Module) -> None:
    """Raise Refused, in one sentence, unless a checkpoint holds weights of this model's names and shapes."""
    expected = {f"model.{name}": tuple(weight.shape) for name, weight in model.state_dict().items()}
    held = {name: tuple(tensor.shape) for name, tensor in tensors.items() if name.startswith("model.")}
    for name in {**expected, **held}:
        if held.get(name) != expected.get(name):
            got, wanted = (shapes.get(name, "no such tensor") for shapes in (held, expected))
            raise Refused(path, f"it holds {got} for {name}, this model has {wanted}")
