"""See that the ranks of this machine do what chapter 11 shows, with gloo on CPUs and NCCL on GPUs:

torchrun --standalone --nproc-per-node 2 -m linformer_from_scratch.distributed

NCCL was never run: the course was made without a machine of several GPUs.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import distributed

from linformer_from_scratch.cost import Sizes
from linformer_from_scratch.course.tables import aligned
from linformer_from_scratch.distributed import experiments
from linformer_from_scratch.distributed.wire import linformer_bytes
from linformer_from_scratch.pretrained.weights import D_MODEL, INSTALL, MAX_TOKENS, NUM_HEADS, model_folder
from linformer_from_scratch.training.ranks import device_of_rank, process_group, rank, world_size

LIMITS = {torch.float64: 1e-10, torch.float32: 1e-4}  # of a relative difference
PRINTED = """
For a layer, a layer with E = F, an encoder, and the pretrained sentence encoder where it is installed:
  largest error    of outputs and of gradients, against one process, over all ranks
  bytes sent       by rank 0 in a forward pass, as the system counts them (gloo on Linux), beside the formula
  ms, forward      of rank 0's part, with its exchanges
  ms, exchange     of the formula's bytes, at least, at the speed measured of an all-reduce of 8 MB
The exit code is 1 if an error is too large. NCCL, which GPUs use, was never run.
"""


class Compared(NamedTuple):
    """One row: what is compared, its sizes, numbers of what kind, and the layers that exchange.

    errors: () -> name -> error; forward: () -> this rank's forward pass.
    """

    what: str
    sizes: Sizes
    dtype: torch.dtype
    layers: int
    shared: bool
    errors: Callable[[], dict[str, float]]
    forward: Callable[[], Callable[[], object]]


def comparisons(device: str) -> list[Compared]:
    """All rows, for the ranks that are there."""
    n = 8 * world_size() + 3  # uneven shards
    small = Sizes(n, 20, 5, 7, batch=2, bytes_per_number=8)
    rows = [
        Compared(
            "a layer with E = F" if shared else "a layer",
            small,
            torch.float64,
            1,
            shared,
            partial(experiments.errors, n, shared=shared, device=device),
            partial(experiments.layer_forward, n, shared, device),
        )
        for shared in (False, True)
    ]
    rows.append(
        Compared(
            "an encoder",
            small,
            torch.float64,
            2,
            True,
            partial(experiments.encoder_errors, n, device=device),
            partial(experiments.encoder_forward, n, device),
        )
    )
    if model_folder() is not None:
        sizes = Sizes(MAX_TOKENS, D_MODEL, NUM_HEADS, experiments.SLOTS, batch=2)
        real = (MAX_TOKENS, 9)
        rows.append(
            Compared(
                "sentence encoder",
                sizes,
                torch.float32,
                6,
                False,
                partial(experiments.sentence_errors, real=real, device=device),
                partial(experiments.sentence_forward, real, device),
            )
        )
    return rows


def row_of(one: Compared, bytes_per_s: float | None) -> list[str]:
    """What is printed of a comparison.

    Raises: ValueError if this rank is further from one process than rounding explains.
    """
    errors = one.errors()
    worst, limit = max(errors.values()), LIMITS[one.dtype]
    if not worst < limit:
        raise ValueError(
            f"rank {rank()} differs by {worst:.1e} in {one.what}, expected less than {limit:.0e}"
        )
    gradients = {name for name in errors if name.startswith("gradient")}
    found = [
        experiments.largest_over_ranks(max(errors[name] for name in names))
        for names in (errors.keys() - gradients, gradients)
    ]
    seconds, sent = experiments.measured(one.forward())
    formula = one.layers * linformer_bytes(one.sizes, world_size(), one.shared)
    s = one.sizes
    return [
        *(f"{size:,}" for size in (s.n, s.d_model, s.num_heads, s.proj_dim, s.batch)),
        str(one.dtype).removeprefix("torch."),
        *(f"{error:.0e}" for error in found),
        "not counted" if sent is None else f"{sent:,}",
        f"{formula:,.0f}",
        f"{1e3 * seconds:.2f}",
        "none" if bytes_per_s is None else f"{1e3 * formula / bytes_per_s:.3f}",
    ]


NAMES = (
    "tokens n",
    "d_model",
    "heads",
    "slots k",
    "batch",
    "numbers",
    "error of outputs",
    "error of gradients",
    "bytes sent",
    "bytes by formula",
    "ms, forward",
    "ms, exchange at least",
)


def main() -> None:
    """Compare what ranks compute with what one process does, and print sizes, errors, bytes and times."""
    argparse.ArgumentParser(
        prog="torchrun --standalone --nproc-per-node 2 -m linformer_from_scratch.distributed",
        description="See that the ranks of this machine compute what one process does.",
        epilog=PRINTED,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    kind = device_of_rank().type  # GPUs where there are some
    with process_group(kind):
        count = world_size()
        backend = distributed.get_backend() if count > 1 else "no exchange"
        speed = experiments.bytes_per_second(kind) if count > 1 else None
        rows = {one.what: row_of(one, speed) for one in comparisons(kind)}
        if rank() > 0:
            return
        print(
            f"{count} rank{'s' if count > 1 else ''}, {backend}, {kind}: as one process, with all gradients"
        )
        print(aligned("", [*rows], dict(zip(NAMES, zip(*rows.values(), strict=True), strict=True)), "s"))
        if speed:
            print(
                f"an all-reduce of {experiments.LARGE / 1e6:.0f} MB sends {speed / 1e6:,.0f} MB/s from a rank"
            )
        if "sentence encoder" not in rows:
            print(f"the sentence encoder is not installed: {INSTALL}")


if __name__ == "__main__":
    try:
        main()
    except ConnectionError:  # said already, while the others could still hear it
        sys.exit(1)
    except (ValueError, OSError) as error:
        sys.exit(str(error))
