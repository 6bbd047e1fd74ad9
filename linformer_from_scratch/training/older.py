"""Checkpoints of version 1.0, in which `stored` was √seq_len · E: their runs can go on."""

from contextlib import suppress

import torch
from torch import Tensor, nn

from linformer_from_scratch.training.groups import unit_of

POWERS = {"exp_avg": -1, "exp_avg_sq": -2}  # of E's unit, in AdamW's moments of its gradient


def as_now(
    tensors: dict[str, Tensor], config: dict, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[dict[str, Tensor], dict]:
    """Tensors and configuration of a checkpoint, as they are written now.

    Moments are named by the place of their parameter in the optimizer. E used to stand there among the
    parameters of the same decay and scale, and has a group of its own now.
    """
    if any(name.endswith(".stored") for name in tensors):
        with suppress(LookupError, ValueError):  # another model's: checkpoints.check will say so
            return _converted(tensors, config, model, optimizer)
    return tensors, config


def _converted(
    tensors: dict[str, Tensor], config: dict, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[dict[str, Tensor], dict]:
    scales = {_renamed(name): scale for name, scale in config.get("lr_scale", {}).items()}
    units = unit_of(model)
    kinds: dict[tuple[bool, float], list[nn.Parameter]] = {}
    for name, p in model.named_parameters():
        decays = p.dim() > 1 and config["weight_decay"] > 0
        kinds.setdefault((decays, scales.get(name, 1.0)), []).append(p)
    before = [p for some in kinds.values() for p in some]
    now = [p for group in optimizer.param_groups for p in group["params"]]
    places = {p: place for place, p in enumerate(now)}
    named = dict(model.named_parameters(prefix="model", remove_duplicate=False))
    found = {}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition(".")
        if kind == "optimizer":
            place, _, moment = rest.partition(".")
            p = before[int(place)]
            found[f"optimizer.{places[p]}.{moment}"] = tensor * units.get(p, 1.0) ** POWERS.get(moment, 0)
        elif name.endswith(".stored"):
            found[_renamed(name)] = tensor * units[named[_renamed(name)]]
        else:
            found[name] = tensor
    return found, config | ({"lr_scale": scales} if scales else {})


def _renamed(name: str) -> str:
    return name.removesuffix("stored") + "weight" if name.split(".")[-1] == "stored" else name
