"""The command `python -m linformer_from_scratch.benchmark`: measure everything that chapter 10 shows."""

import sys

from linformer_from_scratch.benchmark.command import main

if __name__ == "__main__":
    sys.exit(main())
