"""One process among several: ranks and their groups, on PyTorch's own engine (chapter 11).

torchrun, or distributed.launch, starts the same program several times; each process has a rank. Without them
there is one process, rank 0 of 1, and every function here says so or does nothing.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
from torch import Tensor, distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

Group = distributed.ProcessGroup | None
WAIT = 60.0  # seconds for a rank that is missing, or late; one that dies is noticed at once
MOMENT = 0.1  # seconds for gloo to let go of its last tensors: a group freed before can wait for ever
GRACE = 3.0  # seconds in which the rank that failed can say why, before those that lost it end as well


def rank(group: Group = None) -> int:
    """Of this process in a group; by default among all."""
    return distributed.get_rank(group) if distributed.is_initialized() else 0


def world_size(group: Group = None) -> int:
    """How many processes a group has; by default all."""
    return distributed.get_world_size(group) if distributed.is_initialized() else 1


def device_of_rank(device: str | None = None) -> torch.device:
    """The device of this process: a GPU each where there are GPUs, else the CPU; or the one that is named."""
    name = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if name == "cuda" and "LOCAL_RANK" in os.environ:
        name = f"cuda:{os.environ['LOCAL_RANK']}"
    return torch.device(name)


@contextmanager
def joined(device: str | None = None, wait: float = WAIT) -> Iterator[None]:
    """Join the processes that were started with this one, by NCCL on GPUs and gloo on CPUs; leave at the end.

    Args:
        device: as device_of_rank.
        wait: seconds to wait for the others, here and in every exchange.

    Raises: in one sentence, TimeoutError if they do not come, ConnectionError if one is lost; that sentence
        is printed at once, since whoever started the ranks may end this one.
    """
    if "RANK" not in os.environ or distributed.is_initialized():
        yield
        return
    found, expected = device_of_rank(device), int(os.environ["WORLD_SIZE"])
    if found.type == "cuda":
        if found.index >= torch.cuda.device_count():
            raise ValueError(
                f"rank {os.environ['RANK']} wants GPU {found.index} of {torch.cuda.device_count()}; start as "
                "many ranks as there are GPUs, or use the CPU"
            )
        torch.cuda.set_device(found)
    try:
        backend = "nccl" if found.type == "cuda" else "gloo"
        distributed.init_process_group(backend, timeout=timedelta(seconds=wait))
    except distributed.DistError as error:
        if "timed out" not in str(error).lower():
            raise
        raise TimeoutError(
            f"rank {os.environ['RANK']} waited {wait:g} s for {expected} ranks and not all came; start them "
            "all with the same address and the same number of ranks"
        ) from None
    try:
        yield
    except RuntimeError as error:
        what = _what_happened(error, wait)
        if what is None:
            raise
        sentence = f"rank {rank()} of {expected} {what}; start the same command again"
        print(sentence, file=sys.stderr, flush=True)
        time.sleep(GRACE)
        raise ConnectionError(sentence) from error
    finally:
        time.sleep(MOMENT)
        distributed.destroy_process_group()


def _what_happened(error: RuntimeError, wait: float) -> str | None:
    """Of an exchange that failed because of another rank; None if it failed for another reason."""
    if any(sign in str(error) for sign in ("closed by peer", "reset by peer", "Broken pipe")):
        return "has lost another rank"
    if "Timed out" in str(error):
        return f"has waited {wait:g} s for another rank"
    return None


def mesh(sequence: int = 1) -> DeviceMesh:
    """All ranks as a table: a row of `sequence` ranks shares its texts, every row has other texts.

    Its two groups are mesh["data"], a column, and mesh["sequence"], a row.

    Raises: ValueError if the ranks do not make whole rows.
    """
    ranks = world_size()
    if sequence < 1 or ranks % sequence:
        raise ValueError(f"{ranks} ranks were started, expected a multiple of sequence={sequence}")
    kind = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    return init_device_mesh(kind, (ranks // sequence, sequence), mesh_dim_names=("data", "sequence"))


def agree(group: Group = None, **values: object) -> None:
    """See that all ranks of a group hold the same: before an exchange that would else hang or crash.

    It takes two small exchanges of its own.

    Raises: ValueError on every rank, with what two of them hold.
    """
    if world_size(group) == 1:
        return
    found: list[dict] = [{}] * world_size(group)
    distributed.all_gather_object(found, values, group)
    for name, first in found[0].items():
        for other, theirs in enumerate(found):
            if theirs.get(name) != first:
                a, b = (i if group is None else distributed.get_global_rank(group, i) for i in (0, other))
                raise ValueError(
                    f"the ranks disagree on {name}: rank {a} has {first}, rank {b} has {theirs.get(name)}; "
                    "expected the same"
                )


def shares(whole: int, parts: int) -> list[int]:
    """Cut whole things into parts that differ by one at most, the larger first.

    Raises: ValueError if some part would be empty.
    """
    if not 1 <= parts <= whole:
        raise ValueError(f"{whole} cannot be cut into {parts} parts of at least 1")
    return [whole // parts + (i < whole % parts) for i in range(parts)]


def mean_over_ranks(value: float) -> float:
    """Mean of a number over all ranks."""
    if world_size() == 1:
        return value
    total = torch.tensor(value, dtype=torch.float64, device=_device_of_group())
    distributed.all_reduce(total)
    return total.item() / world_size()


def share_of(batch: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], float]:
    """This rank's rows of a batch, and their weight in the mean over ranks that gives the mean of all rows.

    Raises: ValueError if there are fewer rows than ranks.
    """
    rows, ranks = len(batch[0]), world_size()
    if rows < ranks:
        raise ValueError(f"a batch of {rows} rows cannot be shared by {ranks} ranks")
    own = shares(rows, ranks)
    mine = tuple(tensor.split(own)[rank()] for tensor in batch)
    return mine, len(mine[0]) * ranks / rows


def _device_of_group() -> torch.device:
    return torch.device("cuda" if distributed.get_backend() == "nccl" else "cpu")
