"""Measure everything that chapter 10 shows, on one device, in one call.

Rows are written as they come. After an interrupt, --resume goes on with the rows that are missing.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import torch

from linformer_from_scratch.benchmark.records import check_row
from linformer_from_scratch.benchmark.suite import PLANS, Job, jobs
from linformer_from_scratch.results import Results, provenance

COMMAND = "python -m linformer_from_scratch.benchmark"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(COMMAND, description=__doc__)
    found.add_argument("--device", choices=[*PLANS], default="cuda" if torch.cuda.is_available() else "cpu")
    found.add_argument("--out", type=Path, required=True, help="the file for the rows, JSON")
    found.add_argument("--resume", action="store_true", help="go on with a file that is there")
    found.add_argument("--rounds", type=int, help="turns of each variant")
    found.add_argument("--longest", type=int, help="leave out texts of more tokens")
    found.add_argument("--threads", type=int, help="threads of the CPU")
    return found


def main(words: list[str] | None = None) -> int:
    """Measure; 0 if all rows are in the file, 1 if some failed, 2 if refused, 130 if interrupted."""
    arguments = parser().parse_args(words)
    if arguments.device == "cuda" and not torch.cuda.is_available():
        return _refuse("--device is cuda, and PyTorch finds no GPU here; --device cpu works everywhere")
    if arguments.out.exists() and not arguments.resume:
        return _refuse(f"{arguments.out} is there already; --resume goes on with it")
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    plan = _shortened(PLANS[arguments.device], arguments)
    torch.manual_seed(0)
    try:
        results = Results(arguments.out, _command(arguments))
        _check_origin(results, _command(arguments))
    except ValueError as error:
        return _refuse(str(error))
    return _measure(results, list(jobs(plan)))


def _measure(results: Results, wanted: list[Job]) -> int:
    failed = 0
    try:
        for i, (what, call) in enumerate(wanted, start=1):
            print(f"{i:3} of {len(wanted)}", *(f"{name}={value}" for name, value in what.items()), flush=True)
            try:
                results.measure(what, lambda what=what, call=call: check_row(what | call()))
            except (RuntimeError, ValueError) as error:  # one row less; the others go on
                failed += 1
                print(f"no row: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"Interrupted: {len(results.content['rows'])} rows are in {results.path}; --resume goes on.")
        return 130
    return 1 if failed else 0


def _check_origin(results: Results, command: str) -> None:
    """Rows of one file come from one machine, one program and one command."""
    now = provenance(command)
    for field in ("command", "commit", "machine", "versions"):
        if results.content.get(field) != now[field]:
            before = results.content.get(field)
            found = f"{field} {before}, now it is {now[field]}"
            raise ValueError(f"{results.path.name} was measured with {found}; choose another --out")


def _shortened(plan, arguments: argparse.Namespace):
    longest = arguments.longest or max(plan.lengths)
    shorter = {
        name: tuple(n for n in getattr(plan, name) if n <= longest) for name in ("table", "lengths", "modes")
    }
    return replace(plan, rounds=arguments.rounds or plan.rounds, **shorter)


def _command(arguments: argparse.Namespace) -> str:
    """What was typed, with a file's name in place of its path."""
    words = [COMMAND, "--device", arguments.device, "--out", arguments.out.name]
    for name in ("rounds", "longest", "threads"):
        if getattr(arguments, name):
            words += [f"--{name}", str(getattr(arguments, name))]
    return " ".join(words)


def _refuse(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
