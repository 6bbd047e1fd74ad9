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

from linformer_from_scratch.common.tables import aligned
from linformer_from_scratch.cost import Sizes
from linformer_from_scratch.distributed import experiments
from linformer_from_scratch.distributed.ranks import device_of_rank, process_group, rank, world_size
from linformer_from_scratch.distributed.wire import linformer_bytes
from linformer_from_scratch.pretrained.weights import D_MODEL, INSTALL, MAX_TOKENS, NUM_HEADS, model_folder

LIMITS = {torch.float64: 1e-10, torch.float32: 1e-4}  # of a relative difference
SHORT = 9  # tokens of the second text that the sentence encoder gets
ROWS = {
    "layers": "that exchange their slots",
    "tokens n": "of a text, padding included",
    "d_model": "features of a token",
    "heads": "of a layer",
    "slots k": "of a layer",
    "batch": "texts",
    "numbers": "their type",
    "error, outputs": "the largest against one process, over all ranks, divided by the largest number",
    "error, gradients": "the same",
    "bytes sent": "by rank 0 in a forward pass, gloo's headers included (counted with gloo on Linux only)",
    "bytes by formula": "of the sums over ranks",
    "ms, forward": "of rank 0's part, with its exchanges",
    "ms, bytes alone": "what the formula's bytes take at the measured speed; each exchange waits as well",
}
PRINTED = f"""
For a layer, a layer with E = F, an encoder, and the pretrained sentence encoder where it is installed:
{"".join(f"  {name:18}{meaning}{chr(10)}" for name, meaning in ROWS.items())}\
Below the table: what a sum of one number takes, and the speed of a sum of 8 MB.
The exit code is 1 if an error is too large. NCCL, which GPUs use, was never run.
"""


class Compared(NamedTuple):
    """One row: its sizes, the layers that exchange, whether E = F, numbers of what kind.

    errors: () -> name -> error; forward: () -> this rank's forward pass.
    """

    sizes: Sizes
    layers: int
    shared: bool
    errors: Callable[[], dict[str, float]]
    forward: Callable[[], Callable[[], object]]
    dtype: torch.dtype = torch.float64


def comparisons(device: str) -> dict[str, Compared]:
    """All rows by name, for the ranks that are there."""
    n = 8 * world_size() + 3  # uneven shards
    small = Sizes(n, 20, 5, 7, batch=2, bytes_per_number=8)
    rows = {}
    for name, shared in {"a layer": False, "a layer with E = F": True}.items():
        compare = partial(experiments.errors, n, shared=shared, device=device)
        forward = partial(experiments.layer_forward, n, shared, device)
        rows[name] = Compared(small, 1, shared, compare, forward)
    compare = partial(experiments.encoder_errors, n, device=device)
    rows["an encoder"] = Compared(small, 2, True, compare, partial(experiments.encoder_forward, n, device))
    if model_folder() is not None:
        sizes = Sizes(MAX_TOKENS, D_MODEL, NUM_HEADS, experiments.SLOTS, batch=2)
        real = MAX_TOKENS, SHORT
        compare = partial(experiments.sentence_errors, real=real, device=device)
        forward = partial(experiments.sentence_forward, real, device)
        rows["sentence encoder"] = Compared(sizes, 6, False, compare, forward, torch.float32)
    return rows


def row_of(name: str, one: Compared, bytes_per_s: float | None) -> list[str]:
    """What is printed of a comparison.

    Raises: ValueError if this rank is further from one process than rounding explains.
    """
    errors = one.errors()
    worst, limit = max(errors.values()), LIMITS[one.dtype]
    if not worst < limit:
        raise ValueError(f"rank {rank()} differs by {worst:.1e} in {name}, expected less than {limit:.0e}")
    gradients = {label for label in errors if label.startswith("gradient")}
    largest = [
        experiments.largest_over_ranks(max(errors[label] for label in labels))
        for labels in (errors.keys() - gradients, gradients)
    ]
    seconds, sent = experiments.measured(one.forward())
    formula = one.layers * linformer_bytes(one.sizes, world_size(), one.shared)
    s = one.sizes
    return [
        *(f"{size:,}" for size in (one.layers, s.n, s.d_model, s.num_heads, s.proj_dim, s.batch)),
        str(one.dtype).removeprefix("torch."),
        *(f"{error:.0e}" for error in largest),
        "not counted" if sent is None else f"{sent:,}",
        f"{formula:,.0f}",
        f"{1e3 * seconds:.2f}",
        "none" if bytes_per_s is None else f"{1e3 * formula / bytes_per_s:.3f}",
    ]


def one_number(kind: str) -> float:
    """Seconds of the smallest all-reduce: what an exchange waits, however few bytes; 0 for one process."""
    if world_size() == 1:
        return 0.0
    number = torch.zeros(1, device=device_of_rank(kind))
    return experiments.measured(partial(distributed.all_reduce, number))[0]


def headline(kind: str) -> str:
    """Who compared what, and how close they are."""
    if world_size() == 1:
        return f"one process, {kind}, compared with itself; start ranks with torchrun, as --help says"
    limits = " or ".join(
        f"{limit:.0e} ({str(dtype).removeprefix('torch.')})" for dtype, limit in LIMITS.items()
    )
    return f"{world_size()} ranks, {distributed.get_backend()}, {kind}: all errors are below {limits}"


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
        speed = experiments.bytes_per_second(kind) if world_size() > 1 else None
        rows = {name: row_of(name, one, speed) for name, one in comparisons(kind).items()}
        wait = one_number(kind)
        if rank() > 0:
            return
        print(headline(kind))
        print(aligned("", [*rows], dict(zip(ROWS, zip(*rows.values(), strict=True), strict=True)), "s"))
        if speed:
            print(f"a sum of one number over the ranks takes {1e3 * wait:.3f} ms")
            megabytes = experiments.LARGE / 1e6
            print(f"a rank sends {speed / 1e6:,.0f} MB/s during an all-reduce of {megabytes:.0f} MB")
        if "sentence encoder" in rows:
            print(
                f"the sentence encoder has Linformer layers; its texts have {MAX_TOKENS} and {SHORT} tokens"
            )
        else:
            print(f"the sentence encoder is not installed: {INSTALL}")


if __name__ == "__main__":
    try:
        main()
    except ConnectionError:  # said already, while the others could still hear it
        sys.exit(1)
    except (ValueError, OSError) as error:
        sys.exit(str(error))
