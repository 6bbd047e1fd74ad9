"""See that the ranks of this machine do what chapter 11 shows, with gloo on CPUs and NCCL on GPUs:

torchrun --standalone --nproc-per-node 2 -m linformer_from_scratch.distributed
"""

import argparse
import sys
from functools import partial

from linformer_from_scratch.distributed.experiments import encoder_errors, errors
from linformer_from_scratch.training.ranks import device_of_rank, process_group, rank, world_size

LIMIT = 1e-10  # of a relative difference in float64


def main() -> None:
    """Compare a layer on shards with the same layer in one process."""
    argparse.ArgumentParser(
        prog="torchrun --standalone --nproc-per-node 2 -m linformer_from_scratch.distributed",
        description="See that the ranks of this machine compute what one process does.",
    ).parse_args()
    kind = device_of_rank().type  # GPUs where there are some
    with process_group(kind):
        n = 8 * world_size() + 3  # uneven shards
        for what, compare in (
            ("a layer", partial(errors, n, device=kind)),
            ("a layer with E = F", partial(errors, n, shared=True, device=kind)),
            ("an encoder", partial(encoder_errors, n, device=kind)),
        ):
            worst = max(compare().values())
            if not worst < LIMIT:
                raise ValueError(f"rank {rank()} differs by {worst:.1e}, expected less than {LIMIT:.0e}")
            if rank() == 0:
                ranks = "1 rank" if world_size() == 1 else f"{world_size()} ranks"
                print(f"{ranks}, {what}: as one process, with all gradients", flush=True)


if __name__ == "__main__":
    try:
        main()
    except ConnectionError:  # said already, while the others could still hear it
        sys.exit(1)
    except (ValueError, OSError) as error:
        sys.exit(str(error))
