"""Measure what chapter 12 shows of recall and copying: python tools/limits_runs.py recall width

Each word is a file chapters/results/12_WORD.json, a row for each run. A run that stands in the file
already is not measured again. The models and their training are those of tools/family_runs.py.

recall  a value for every key, then all keys again: at 32 keys a query, n rising, three seeds
copy    the same models copy: seeds 1 and 2; seed 0 is in 09_copy.json
width   recall by Linformer, E and F learned slowly, at other k
"""

import argparse
from collections.abc import Iterator
from functools import partial
from itertools import product

import torch
from family_runs import FULL, KEYS, MEAN, SLOW, run, size_of

from linformer_from_scratch.results import RESULTS, Results, select

NAMES = (FULL, SLOW, MEAN, "Nyström", "sliding window")
LENGTHS = (64, 128, 256, 512)
EXPERIMENTS = {  # task, seeds, attentions, keys
    "recall": ("recall", (0, 1, 2), NAMES, (KEYS,)),
    "copy": ("copy", (1, 2), NAMES, (KEYS,)),
    "width": ("recall", (0,), (SLOW,), (16, 64, 128)),
}


def jobs(word: str) -> Iterator[tuple[dict, partial]]:
    """What is measured, and the calls that do; k is at most half of n."""
    task, seeds, names, budgets = EXPERIMENTS[word]
    for seed, keys, n, name in product(seeds, budgets, LENGTHS, names):
        if 2 * keys <= n:
            what = {"task": task, "attention": name, "n": n, "size": size_of(name, n, keys), "seed": seed}
            yield what, partial(run, task, name, n, seed, keys)


def main() -> None:
    """Measure the experiments named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("experiments", nargs="+", choices=EXPERIMENTS)
    torch.set_num_threads(1)
    for word in parser.parse_args().experiments:
        results = Results(RESULTS / f"12_{word}.json", f"python tools/limits_runs.py {word}")
        for what, call in jobs(word):
            results.measure(what, call)
            print(*select(results.content["rows"], **what), flush=True)


if __name__ == "__main__":
    main()
