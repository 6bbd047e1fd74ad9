"""One process among several: ranks and their groups, with PyTorch (chapter 11).

torchrun, or distributed.launch, starts the same program several times; each process has a rank. Without them
there is one process, rank 0 of 1, and every function here says so or does nothing.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from itertools import count

import torch
from torch import Tensor, distributed

Group = distributed.ProcessGroup | None
JOIN_COUNTER = count()  # groups that this process has joined: each needs keys of its own in the store
WAIT = 60.0  # seconds for a rank that is missing, or late; one that dies is noticed at once
LONGEST = 10**6  # seconds of waiting
MOMENT = 0.1  # seconds for gloo to let go of its last tensors: a group freed before can wait for ever
GRACE = 3.0  # seconds in which the rank that failed can say why, before those that lost it end as well
NOTHING = "nothing"  # what a rank holds of a name that only others have


def rank(group: Group = None) -> int:
    """This process's rank in a group; by default among all.

    Raises: ValueError if it is not in the group.
    """
    return _if_inside(distributed.get_rank(group)) if distributed.is_initialized() else 0


def world_size(group: Group = None) -> int:
    """How many processes a group has; by default all.

    Raises: ValueError if this process is not in the group.
    """
    return _if_inside(distributed.get_world_size(group)) if distributed.is_initialized() else 1


def _if_inside(number: int) -> int:
    if number < 0:  # PyTorch's answer to a process outside the group
        raise ValueError(f"rank {distributed.get_rank()} is not a member of this group")
    return number


def device_of_rank(device: str | None = None) -> torch.device:
    """The device of this process: a GPU each where there are GPUs, else the CPU; or the one that is named.

    Raises: ValueError, in one sentence, if there is no such device here.
    """
    name = device or ("cuda" if torch.cuda.is_available() else "cpu")
    counts = {"cpu": 1, "cuda": torch.cuda.device_count() if torch.cuda.is_available() else 0}
    counts |= {"mps": torch.mps.device_count(), "xpu": torch.xpu.device_count()}
    try:
        own = torch.device(name)
        available = counts[own.type]
    except (RuntimeError, KeyError):
        raise ValueError(f"device is {name!r}, expected cpu, cuda, cuda:0 or mps") from None
    if (own.index or 0) >= available:
        raise ValueError(f"device is {name!r}, but PyTorch finds {available} of kind {own.type} here")
    if name != "cuda" or "LOCAL_RANK" not in os.environ:
        return own
    number = int(os.environ["LOCAL_RANK"])
    if number >= available:
        raise ValueError(
            f"rank {os.environ.get('RANK')} wants GPU {number} of {available}; "
            "start as many ranks as there are GPUs, or use the CPU"
        )
    return torch.device("cuda", number)


@contextmanager
def process_group(device: str | None = None, wait: float = WAIT) -> Iterator[None]:
    """Join the processes that were started with this one, by NCCL on GPUs and gloo on CPUs; leave at the end.

    Tested with gloo alone: NCCL was never run.

    Args:
        device: as device_of_rank.
        wait: seconds to wait for the others, here and in every exchange.

    Raises: in one sentence, ValueError if what torchrun sets is missing, TimeoutError if the others do not
        come, OSError if this one cannot come, ConnectionError if one is lost; that last sentence is printed
        at once, since whoever started the ranks may end this one.
    """
    if not 0 < wait <= LONGEST:
        raise ValueError(f"wait is {wait}, expected seconds, more than 0 and at most {LONGEST}")
    if distributed.is_initialized() or not {"RANK", "WORLD_SIZE"} & os.environ.keys():
        yield
        return
    own_device = device_of_rank(device)
    if own_device.type not in ("cpu", "cuda"):
        raise ValueError(f"ranks work on cpu or cuda, not on {own_device.type}")
    if own_device.type == "cuda":
        torch.cuda.set_device(own_device)
    store = _join("nccl" if own_device.type == "cuda" else "gloo", timedelta(seconds=wait))
    own, ranks = rank(), world_size()
    try:
        yield
        _wait_to_leave(store, ranks)
    except RuntimeError as error:
        what = _what_happened(str(error), wait)
        if what is None:
            raise
        other = f"rank {1 - own}" if ranks == 2 else "another rank"
        sentence = f"rank {own} of {ranks} {what} {other}; start the same command again"
        print(sentence, file=sys.stderr, flush=True)
        time.sleep(GRACE)
        raise ConnectionError(sentence) from error
    finally:
        time.sleep(MOMENT)
        distributed.destroy_process_group()


def _join(backend: str, wait: timedelta) -> distributed.Store:
    """Begin the group of all ranks; return the store by which they met."""
    place = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
    try:
        store, own, ranks = _rendezvous(place, wait)
        store = distributed.PrefixStore(f"group {next(JOIN_COUNTER)}", store)
        distributed.init_process_group(backend, store=store, rank=own, world_size=ranks, timeout=wait)
    except RuntimeError as error:
        why = str(error).partition("\n")[0]
        kind = TimeoutError if "timed out" in why.lower() else OSError
        raise kind(f"this rank could not join the others at {place}: {why}") from None
    return store


@cache
def _rendezvous(place: str, wait: timedelta) -> tuple[distributed.Store, int, int]:
    """The store by which the ranks find each other; kept, since others may still read it later."""
    return next(distributed.rendezvous("env://", timeout=wait))


def _wait_to_leave(store: distributed.Store, ranks: int) -> None:
    """Let the others read what was sent last: who leaves first cuts them off."""
    with suppress(RuntimeError):  # some are not coming, and will say why
        if store.add("left", 1) == ranks:
            store.set("all", "left")
        store.wait(["all"], timedelta(seconds=GRACE))


def _what_happened(error: str, wait: float) -> str | None:
    """What gloo's error says of another rank; None if the reason is a different one."""
    if any(sign in error for sign in ("closed by peer", "reset by peer", "Broken pipe")):
        return "has lost"
    return f"has waited {wait:g} s for" if "Timed out" in error else None


def assert_same_across_ranks(group: Group = None, **values: object) -> None:
    """Raise unless all ranks of a group hold the same values, before an exchange that would hang or crash.

    It takes two small exchanges of its own.

    Raises: ValueError on every rank, with what two of them hold.
    """
    if world_size(group) == 1:
        return
    held: list[dict] = [{}] * world_size(group)
    distributed.all_gather_object(held, values, group)
    for name in {name: None for one in held for name in one}:  # in order, on every rank the same
        first = held[0].get(name, NOTHING)
        for other, one in enumerate(held):
            theirs = one.get(name, NOTHING)
            if theirs != first and repr(theirs) != repr(first):  # nan is not equal to itself
                a, b = (i if group is None else distributed.get_global_rank(group, i) for i in (0, other))
                raise ValueError(
                    f"the ranks disagree on {name}: rank {a} has {first}, rank {b} has {theirs}; "
                    "expected the same"
                )


def own_part(x: Tensor, group: Group = None, dim: int = 1) -> Tensor:
    """This rank's part of a tensor that is cut along its tokens, such as ids (batch, n).

    Sizes of parts differ by one at most, the larger first.

    Raises: ValueError if there are fewer tokens than ranks.
    """
    if x.size(dim) < world_size(group):
        raise ValueError(f"a text of {x.size(dim)} tokens cannot be shared by {world_size(group)} ranks")
    return x.tensor_split(world_size(group), dim)[rank(group)]


def mean_over_ranks(value: float) -> float:
    """Mean of a number over all ranks."""
    if world_size() == 1:
        return value
    device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    total = torch.tensor(value, dtype=torch.float64, device=device)
    distributed.all_reduce(total)
    return total.item() / world_size()


def share_of(batch: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """This rank's rows of a batch.

    Raises: ValueError if there are fewer rows than ranks.
    """
    rows, ranks = len(batch[0]), world_size()
    if rows < ranks:
        raise ValueError(f"a batch of {rows} rows cannot be shared by {ranks} ranks")
    return tuple(own_part(tensor, dim=0) for tensor in batch)
