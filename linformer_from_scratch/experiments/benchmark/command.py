"""Measure everything that chapter 10 shows, on one device, in one call.

Rows are written as they come. After an interrupt, --resume goes on with the rows that are missing.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from linformer_from_scratch.benchmark.suite import PLANS, Job, Plan, jobs, plan_for
from linformer_from_scratch.common.files import expanded, locked, make_folder
from linformer_from_scratch.experiments.benchmark.budget import Budget
from linformer_from_scratch.experiments.benchmark.check import check_file
from linformer_from_scratch.experiments.benchmark.commands import COMMAND
from linformer_from_scratch.experiments.benchmark.records import check_row, read
from linformer_from_scratch.experiments.results import RESULTS, Results, provenance


class Parser(argparse.ArgumentParser):
    """A command line that says in one sentence what is wrong with it."""

    def error(self, message: str):
        """Raises: ValueError."""
        raise ValueError(message)


def parser() -> Parser:
    """The command line."""
    found = Parser(COMMAND, description="Measure everything that chapter 10 shows, on one device.")
    found.add_argument("--device", choices=[*PLANS], default="cuda" if torch.cuda.is_available() else "cpu")
    found.add_argument("--out", type=Path, required=True, help="the file for the rows, JSON")
    found.add_argument("--resume", action="store_true", help="go on with a file that is there")
    found.add_argument(
        "--minutes", type=_minutes, help="leave out what would take longer, longest texts first"
    )
    found.add_argument("--rounds", type=_count, help="turns of each variant")
    found.add_argument("--longest", type=_count, help="leave out texts of more tokens")
    found.add_argument("--threads", type=_threads, help="threads of the CPU")
    return found


def main(words: list[str] | None = None, plans: Mapping[str, Plan] = PLANS) -> int:
    """Measure; 0 if all went well, 1 if refused or a row failed, 130 if interrupted."""
    try:
        arguments = parser().parse_args(words)
        _check_device(arguments.device)
        plan = _shortened(plan_for(arguments.device, plans), arguments)
        arguments.out = expanded(arguments.out)
        _check_out(arguments.out, arguments.resume)
        make_folder(arguments.out.parent)
        with locked(arguments.out.with_name(f"{arguments.out.name}.run")):  # the file itself is, row by row
            return _run(arguments, plan)
    except OSError as error:
        return _refuse(f"{error.filename or '--out'}: {error.strerror}" if error.strerror else str(error))
    except ValueError as error:
        return _refuse(str(error))


def _run(arguments: argparse.Namespace, plan: Plan) -> int:
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    results = Results(arguments.out, _command(arguments))
    if arguments.out.exists():
        read(arguments.out)  # no row is taken over unseen
        _check_origin(results, _command(arguments))
    results.check_writable()
    budget, wanted = Budget(arguments.minutes), list(jobs(plan))
    if arguments.minutes:
        wanted.sort(key=lambda job: job[0].get("n", 0))  # what is left out are the longest texts
    try:
        failed, left = _measure(results, wanted, budget)
    except KeyboardInterrupt:
        print(f"Interrupted: {len(results.content['rows'])} rows are in {results.path}; --resume goes on.")
        return 130
    if left:
        spent = f"{arguments.minutes:g} minutes are spent"
        print(f"{spent}, {left} of {len(wanted)} rows are left out; --resume goes on.")
    if not failed and not left:
        _check(results.path, plan)
    return 1 if failed else 0


def _measure(results: Results, wanted: list[Job], budget: Budget) -> tuple[int, int]:
    """Measure what is missing; return how many rows failed, and how many are left out."""
    failed = left = 0
    for row in results.content["rows"]:
        budget.learn(row)
    for i, (what, call) in enumerate(wanted, start=1):
        print(f"{i:3} of {len(wanted)}", *(f"{name}={value}" for name, value in what.items()), flush=True)
        if results.has(what):
            continue
        if not budget.allows(what):
            left += 1
            continue
        start = time.monotonic()
        try:
            row = check_row(what | call())
        except Exception as error:  # one row less; the others go on
            failed += 1
            print(f"no row: {str(error) or type(error).__name__}", file=sys.stderr)
            continue
        budget.learn(row, time.monotonic() - start)
        results.add(row)
    return failed, left


def _check(path: Path, plan: Plan) -> None:
    """See that the file can be shown, and say where."""
    rows = check_file(path, [what for what, _ in jobs(plan)], plan.rounds)["rows"]
    print(f"{path}: {len(rows)} rows, complete", end="")
    print(f": put it at {RESULTS / 'gpu.json'}, then: make refresh ONLY=10" if plan.device == "cuda" else "")


def _check_device(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device is cuda, and PyTorch finds no GPU here; --device cpu works everywhere")


def _check_out(out: Path, resume: bool) -> None:
    if os.path.lexists(out) and not out.is_file():  # a link that leads nowhere among them
        raise ValueError(f"--out is {out}, which is {'a folder' if out.is_dir() else 'no file'}; name a file")
    if out.exists() and not resume:
        raise ValueError(f"{out} is there already; --resume goes on with it")


def _check_origin(results: Results, command: str) -> None:
    """Rows of one file come from one machine, one program and one command."""
    now = provenance(command)
    for field in ("command", "commit", "machine", "versions"):
        if results.content.get(field) != now[field]:
            before = results.content.get(field)
            found = f"{field} {before}, now it is {now[field]}"
            raise ValueError(f"{results.path.name} was measured with {found}; choose another --out")


def _shortened(plan: Plan, arguments: argparse.Namespace) -> Plan:
    longest = arguments.longest or max(plan.lengths)
    if longest < min(plan.lengths):
        raise ValueError(f"--longest is {longest}, and the shortest text has {min(plan.lengths)} tokens")
    shorter: dict[str, Any] = {
        name: tuple(n for n in getattr(plan, name) if n <= longest) for name in ("table", "lengths", "modes")
    }
    return replace(plan, rounds=arguments.rounds or plan.rounds, **shorter)


def _command(arguments: argparse.Namespace) -> str:
    """The options that decide about the rows, with the file's name in place of its path."""
    words = [COMMAND, "--device", arguments.device, "--out", arguments.out.name]
    for name in ("rounds", "longest", "threads"):
        if getattr(arguments, name):
            words += [f"--{name}", str(getattr(arguments, name))]
    return " ".join(words)


def _count(word: str, most: float = math.inf) -> int:
    try:
        found = int(word)
    except ValueError:
        found = 0
    if not 1 <= found <= most:
        expected = "of at least 1" if most == math.inf else f"from 1 to {most}"
        raise argparse.ArgumentTypeError(f"got {word[:60]}, expected a whole number {expected}")
    return found


def _threads(word: str) -> int:
    return _count(word, os.cpu_count() or 1)


def _minutes(word: str) -> float:
    try:
        found = float(word)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"got {word[:60]}, expected minutes, more than 0 and finite")
    return found


def _refuse(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
