"""See that the ranks of this machine do what chapter 11 shows, with gloo on CPUs and NCCL on GPUs:

torchrun --standalone --nproc-per-node 2 -m linformer_from_scratch.distributed

NCCL was never run: the course was made without a machine of several GPUs.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial

from torch import distributed

from linformer_from_scratch.common.ranks import device_of_rank, process_group, rank, world_size
from linformer_from_scratch.common.tables import aligned
from linformer_from_scratch.cost import Sizes
from linformer_from_scratch.distributed import experiments
from linformer_from_scratch.distributed.wire import linformer_bytes

LIMIT = 1e-10  # of a relative difference, in float64
ROWS = {
    "error, outputs": "the largest of rank 0 against one process, divided by the largest number",
    "error, gradients": "the same",
    "bytes sent": "by rank 0 in a forward pass, gloo's headers included (counted with gloo on Linux only)",
    "bytes by formula": "of the sums over ranks",
    "ms, forward": "of rank 0's part, with its exchanges",
}
PRINTED = f"""
For a layer, a layer with E = F, and an encoder of two layers:
{"".join(f"  {name:18}{meaning}{chr(10)}" for name, meaning in ROWS.items())}\
The exit code is 1 if an error on any rank is too large. NCCL, which GPUs use, was never run.
"""


def row_of(
    name: str, errors: dict[str, float], forward: Callable[[], object], formula: float
) -> tuple[str, ...]:
    """What is printed of a comparison with one process.

    Raises: ValueError if this rank is further from one process than rounding explains.
    """
    if not (worst := max(errors.values())) < LIMIT:
        raise ValueError(f"rank {rank()} differs by {worst:.1e} in {name}, expected less than {LIMIT:.0e}")
    gradients = max(error for label, error in errors.items() if label.startswith("gradient"))
    outputs = max(error for label, error in errors.items() if not label.startswith("gradient"))
    seconds, sent = experiments.measured(forward)
    counted = "not counted" if sent is None else f"{sent:,}"
    return f"{outputs:.0e}", f"{gradients:.0e}", counted, f"{formula:,.0f}", f"{1e3 * seconds:.2f}"


def main() -> None:
    """Compare what ranks compute with what one process does, and print errors, bytes and times."""
    argparse.ArgumentParser(
        prog="torchrun --standalone --nproc-per-node 2 -m linformer_from_scratch.distributed",
        description="See that the ranks of this machine compute what one process does.",
        epilog=PRINTED,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    kind = device_of_rank().type  # GPUs where there are some
    with process_group(kind):
        ranks = world_size()
        n = 8 * ranks + 3  # uneven shards
        send = partial(linformer_bytes, Sizes(n, 20, 5, 7, batch=2, bytes_per_number=8), ranks)
        rows = {}
        for name, shared in {"a layer": False, "a layer with E = F": True}.items():
            errors = experiments.errors(n, shared=shared, device=kind)
            rows[name] = row_of(name, errors, experiments.layer_forward(n, shared, kind), send(shared))
        errors, forward = experiments.encoder_errors(n, device=kind), experiments.encoder_forward(n, kind)
        rows["an encoder"] = row_of("an encoder", errors, forward, 2 * send(True))
        if rank() > 0:
            return
        if ranks == 1:
            print(f"one process, {kind}, compared with itself; start ranks with torchrun, as --help says")
        else:
            print(f"{ranks} ranks, {distributed.get_backend()}, {kind}: all errors are below {LIMIT:.0e}")
        title = f"float64, 2 texts of {n} tokens"
        print(aligned(title, [*rows], dict(zip(ROWS, zip(*rows.values(), strict=True), strict=True)), "s"))


if __name__ == "__main__":
    try:
        main()
    except ConnectionError:  # said already, while the others could still hear it
        sys.exit(1)
    except (ValueError, OSError) as error:
        sys.exit(str(error))
