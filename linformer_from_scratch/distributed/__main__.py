"""See that the ranks of this machine do what chapter 11 shows, with gloo on CPUs and NCCL on GPUs:

torchrun --standalone --nproc-per-node 2 -m linformer_from_scratch.distributed
"""

import sys

from linformer_from_scratch.distributed.experiments import errors
from linformer_from_scratch.ranks import joined, rank, world_size

LIMIT = 1e-10  # of a relative difference in float64


def main() -> None:
    """Compare a layer on shards with the same layer in one process."""
    with joined():
        for shared in (False, True):
            found = errors(seq_len=8 * world_size() + 3, shared=shared)
            worst = max(found.values())
            if not worst < LIMIT:
                raise ValueError(f"rank {rank()} differs by {worst:.1e}, expected less than {LIMIT:.0e}")
            if rank() == 0:
                words = "E = F" if shared else "E and F"
                print(f"{world_size()} ranks, {words}: as one process, output and gradients", flush=True)


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        sys.exit(str(error))
