"""One process among several: ranks and their groups, with PyTorch (chapter 11).

torchrun, or distributed.launch, starts the same program several times; each process has a rank. Without them
there is one process, rank 0 of 1, and every function here says so or does nothing.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from itertools import count

import torch
from torch import Tensor, distributed
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from linformer_from_scratch.common.checks import check_size

Group = distributed.ProcessGroup | None
TIMES = count()  # that this process has joined the others; each time they meet under another name
WAIT = 60.0  # seconds for a rank that is missing, or late; one that dies is noticed at once
MOMENT = 0.1  # seconds for gloo to let go of its last tensors: a group freed before can wait for ever
GRACE = 3.0  # seconds in which the rank that failed can say why, before those that lost it end as well
ASKED = 1.0  # seconds in which a rank that lives says so, when others ask who is there
NOTHING = "nothing"  # what a rank holds of a name that only others have
MOST = 10**6  # ranks, and seconds of waiting


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
    if number < 0:  # so PyTorch says that it is not
        raise ValueError(f"rank {distributed.get_rank()} is not in the group that it was asked to work with")
    return number


def device_of_rank(device: str | None = None) -> torch.device:
    """The device of this process: a GPU each where there are GPUs, else the CPU; or the one that is named.

    Raises: ValueError, in one sentence, if there is no such device here.
    """
    name = device or ("cuda" if torch.cuda.is_available() else "cpu")
    found = _device_here(name)
    if name == "cuda" and "LOCAL_RANK" in os.environ:
        return torch.device("cuda", _number("LOCAL_RANK", 0, MOST))
    return found


def _device_here(name: str) -> torch.device:
    """See that PyTorch finds such a device."""
    counts = {"cpu": lambda: 1, "mps": torch.mps.device_count, "xpu": torch.xpu.device_count}
    counts["cuda"] = lambda: torch.cuda.device_count() if torch.cuda.is_available() else 0
    try:
        found = torch.device(name)
        count = counts[found.type]()
    except (RuntimeError, KeyError):
        raise ValueError(f"device is {name!r}, expected cpu, cuda, cuda:0 or mps") from None
    if (found.index or 0) >= count:
        raise ValueError(f"device is {name!r}, but PyTorch finds {count} of kind {found.type} here")
    return found


@contextmanager
def process_group(device: str | None = None, wait: float = WAIT) -> Iterator[None]:
    """Join the processes that were started with this one, by NCCL on GPUs and gloo on CPUs; leave at the end.

    Tested with gloo alone: NCCL was never run.

    Args:
        device: as device_of_rank.
        wait: seconds to wait for the others, here and in every exchange.

    Raises: in one sentence, ValueError if what torchrun sets is missing or out of its range, TimeoutError if
        the others do not come, OSError if this one cannot come, ConnectionError if one is lost, with its
        number; that last sentence is printed at once, since whoever started the ranks may end this one.
    """
    if not 0 < wait <= MOST:
        raise ValueError(f"wait is {wait}, expected seconds, more than 0 and at most {MOST}")
    if distributed.is_initialized() or not {"RANK", "WORLD_SIZE"} & os.environ.keys():
        yield
        return
    expected = _number("WORLD_SIZE", 1, MOST)
    own = _number("RANK", 0, expected - 1)
    found = device_of_rank(device)
    if found.type not in ("cpu", "cuda"):
        raise ValueError(f"ranks work on cpu or cuda, not on {found.type}")
    if found.type == "cuda":
        torch.cuda.set_device(_gpu_of_rank(found, own))
    store = _meet("nccl" if found.type == "cuda" else "gloo", own, expected, wait)
    try:
        with _answering(store, own):
            yield
            _wait_to_leave(store, expected)
    except RuntimeError as error:
        what = _what_happened(error, wait, store, expected)
        if what is None:
            raise
        sentence = f"rank {own} of {expected} {what}; start the same command again"
        print(sentence, file=sys.stderr, flush=True)
        time.sleep(GRACE)
        raise ConnectionError(sentence) from error
    finally:
        time.sleep(MOMENT)
        distributed.destroy_process_group()


def _number(name: str, least: int, most: int) -> int:
    """What torchrun sets in the environment."""
    text = os.environ.get(name)
    if text is None or not (text.isascii() and text.isdigit() and least <= int(text[:20]) <= most):
        raise ValueError(
            f"{name} is {'not set' if text is None else repr(text)}, expected an integer from {least} to "
            f"{most}; torchrun sets it in the environment of every rank"
        )
    return int(text)


def _gpu_of_rank(device: torch.device, own: int) -> int:
    """The number of this rank's GPU, if there is such a GPU."""
    number = _number("LOCAL_RANK", 0, MOST) if device.index is None else device.index
    there = torch.cuda.device_count()
    if number >= there:
        raise ValueError(
            f"rank {own} wants GPU {number} of {there}; start as many ranks as there are GPUs, or use the CPU"
        )
    return number


def _meet(backend: str, own: int, expected: int, wait: float) -> distributed.Store:
    """Begin the group of all ranks; return the store by which they met."""
    port = _number("MASTER_PORT", 1, 2**16 - 1)
    address = os.environ.get("MASTER_ADDR")
    if not address:
        raise ValueError("MASTER_ADDR is not set, expected the address of rank 0's machine; torchrun sets it")
    where = f"{address}:{port}"
    late = (
        f"rank {own} waited {wait:g} s for {expected} ranks and not all came; start them all with the same "
        f"address, {where} here, and the same number of ranks"
    )
    try:
        with _ended_after(2 * wait + GRACE, late):  # twice: the address is awaited, then the ranks
            store = distributed.PrefixStore(f"time {next(TIMES)}", _store(own, expected, where, wait))
            limit = timedelta(seconds=wait)
            distributed.init_process_group(backend, store=store, rank=own, world_size=expected, timeout=limit)
        return store
    except RuntimeError as error:
        why = " ".join(str(error).split())
        if "timed out" in why.lower() or "timeout" in why:
            raise TimeoutError(late) from None
        if "EADDRINUSE" in why:
            why = "another program holds this port, choose another one"
        raise OSError(f"rank {own} could not meet {expected} ranks at {where}: {why}") from None


def _wait_to_leave(store: distributed.Store, expected: int) -> None:
    """Let the others read what was sent last: who leaves first cuts them off."""
    try:
        if store.add("left", 1) == expected:
            store.set("all", "left")
        store.wait(["all"], timedelta(seconds=GRACE))
    except RuntimeError:  # some are not coming, and will say why
        pass


@cache
def _store(own: int, expected: int, where: str, wait: float) -> distributed.Store:
    """The store by which the ranks find each other; kept, since others may still read it later."""
    return next(distributed.rendezvous("env://", timeout=timedelta(seconds=wait)))[0]


@contextmanager
def _ended_after(seconds: float, sentence: str) -> Iterator[None]:
    """End this process with a sentence, if what it does has not ended by then and cannot be interrupted.

    That happens where a stranger holds the address, takes the connection and says nothing.
    """

    def end():
        print(sentence, file=sys.stderr, flush=True)
        os._exit(1)

    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _what_happened(error: RuntimeError, wait: float, store: distributed.Store, expected: int) -> str | None:
    """What to say of an exchange that failed because of another rank; None if there is another reason."""
    if any(sign in str(error) for sign in ("closed by peer", "reset by peer", "Broken pipe")):
        return f"has lost {_names(_missing(store, expected, least=1))}"
    if "Timed out" in str(error):
        return f"has waited {wait:g} s for {_names(_missing(store, expected, least=0))}"
    return None


def _names(missing: list[int]) -> str:
    if not missing:
        return "another rank"
    numbers = " and ".join(map(str, missing))
    return f"rank{'s' if len(missing) > 1 else ''} {numbers}"


@contextmanager
def _answering(store: distributed.Store, own: int) -> Iterator[None]:
    """Meanwhile a thread waits to be asked whether this rank is there, and answers once."""
    asked = f"asked {own}"

    def answer(store: distributed.Store) -> None:
        with suppress(RuntimeError):  # the store has gone
            if store.get(asked) == b"there?":
                store.set(f"{own} is there", "")

    connection = store.clone()  # type: ignore[attr-defined]  # PyTorch's stub lacks it; a connection of its own, on which it may wait
    connection.set_timeout(timedelta(seconds=MOST))
    threading.Thread(target=answer, args=(connection,), daemon=True).start()
    yield
    with suppress(RuntimeError):  # what fails stays there for others to ask, until its process ends
        store.set(asked, "has left")


def _missing(store: distributed.Store, expected: int, least: int) -> list[int]:
    """Ranks that do not answer, at least so many; who has answered others before it ended is none of them."""
    missing, until = list(range(expected)), time.monotonic() + ASKED
    try:
        for number in missing:
            store.set(f"asked {number}", "there?")
        while len(missing) > least and time.monotonic() < until:
            missing = [number for number in missing if not store.check([f"{number} is there"])]
            time.sleep(MOMENT / 10)
        return missing
    except RuntimeError:  # rank 0 holds the store, unless whoever started the ranks does
        return [] if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" else [0]


def mesh(sequence: int = 1) -> DeviceMesh:
    """All ranks as a table: a row of `sequence` ranks shares its texts, every row has other texts.

    Its two groups are mesh["data"], a column, and mesh["sequence"], a row.

    Raises: ValueError if the ranks do not make whole rows.
    """
    ranks = world_size()
    if ranks % check_size("sequence", sequence):
        raise ValueError(f"{ranks} ranks were started, expected a multiple of sequence={sequence}")
    if not distributed.is_initialized():
        raise ValueError("one process alone makes no mesh; start ranks with torchrun, and join them")
    return init_device_mesh(
        _device_of_group().type, (ranks // sequence, sequence), mesh_dim_names=("data", "sequence")
    )


def assert_same_across_ranks(group: Group = None, **values: object) -> None:
    """Raise unless all ranks of a group hold the same values, before an exchange that would hang or crash.

    It takes two small exchanges of its own.

    Raises: ValueError on every rank, with what two of them hold.
    """
    if world_size(group) == 1:
        return
    found: list[dict] = [{}] * world_size(group)
    distributed.all_gather_object(found, values, group)
    for name in {name: None for held in found for name in held}:  # in order, on every rank the same
        first = found[0].get(name, NOTHING)
        for other, held in enumerate(found):
            theirs = held.get(name, NOTHING)
            if theirs != first and repr(theirs) != repr(first):  # nan is not equal to itself
                a, b = (i if group is None else distributed.get_global_rank(group, i) for i in (0, other))
                raise ValueError(
                    f"the ranks disagree on {name}: rank {a} has {first}, rank {b} has {theirs}; "
                    "expected the same"
                )


def shares(whole: int, parts: int) -> list[int]:
    """Cut whole things into parts that differ by one at most, the larger first.

    Raises: ValueError if some part would be empty.
    """
    if not 1 <= parts <= whole:
        raise ValueError(f"{whole} cannot be cut into {parts} parts of at least 1")
    return [whole // parts + (i < whole % parts) for i in range(parts)]


def own_part(x: Tensor, group: Group = None, dim: int = 1) -> Tensor:
    """This rank's part of a tensor that is cut along its tokens, such as ids (batch, n)."""
    return x.split(shares(x.size(dim), world_size(group)), dim)[rank(group)]


def mean_over_ranks(value: float) -> float:
    """Mean of a number over all ranks."""
    if world_size() == 1:
        return value
    total = torch.tensor(value, dtype=torch.float64, device=_device_of_group())
    distributed.all_reduce(total)
    return total.item() / world_size()


def share_of(batch: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """This rank's rows of a batch.

    Raises: ValueError if there are fewer rows than ranks.
    """
    rows, ranks = len(batch[0]), world_size()
    if rows < ranks:
        raise ValueError(f"a batch of {rows} rows cannot be shared by {ranks} ranks")
    own = shares(rows, ranks)
    return tuple(tensor.split(own)[rank()] for tensor in batch)


def _device_of_group() -> torch.device:
    return torch.device("cuda" if distributed.get_backend() == "nccl" else "cpu")
