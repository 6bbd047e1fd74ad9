"""Measure everything that chapter 10 shows, on one device, in one call.

Rows are written as they come. After an interrupt, --resume goes on with the rows that are missing.
"""

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from linformer_from_scratch.benchmark.records import check_file, check_row, read
from linformer_from_scratch.benchmark.suite import PLANS, Job, Plan, jobs, plan_for
from linformer_from_scratch.common.files import PACKAGE, expanded, locked, make_folder
from linformer_from_scratch.common.rows import Results, provenance

COMMAND = "python -m linformer_from_scratch.benchmark"
GPU_FILE = "build/benchmark_gpu.json"  # in the course's folder
MINUTES = 8
TURNS = 3  # of each variant, beside its rounds: set up, weighed, warmed up


def on_a_gpu(folder: str = "") -> str:
    """The command that measures on a GPU; the course lies in the folder."""
    return f"{COMMAND} --device cuda --minutes {MINUTES} --out {folder}{GPU_FILE} --resume"


def to_paste() -> str:
    """Three lines for a machine with a GPU and nothing else but Python; in a notebook, each after a `!`."""
    return "\n".join(
        [
            "git clone ADDRESS course          # where you have the course from; or copy its folder there",
            "pip install -e course linformer linformer-pytorch     # keeps the PyTorch that is there",
            on_a_gpu("course/"),
        ]
    )


def parser() -> argparse.ArgumentParser:
    """The command line."""
    words = argparse.ArgumentParser(
        COMMAND, description="Measure everything that chapter 10 shows, on one device."
    )
    words.add_argument("--device", choices=[*PLANS], default="cuda" if torch.cuda.is_available() else "cpu")
    words.add_argument("--out", type=Path, required=True, help="the file for the rows, JSON")
    words.add_argument("--resume", action="store_true", help="go on with an existing file")
    words.add_argument(
        "--minutes", type=minutes, help="leave out what would take longer, longest texts first"
    )
    words.add_argument("--rounds", type=count, help="turns of each variant")
    words.add_argument("--longest", type=count, help="leave out texts of more tokens")
    words.add_argument("--threads", type=count, help="threads of the CPU")
    return words


def count(word: str) -> int:
    """A whole number from the command line, at least 1."""
    if int(word) < 1:
        raise argparse.ArgumentTypeError(f"got {word}, expected a whole number of at least 1")
    return int(word)


def minutes(word: str) -> float:
    """Minutes from the command line, more than 0."""
    if not float(word) > 0:
        raise argparse.ArgumentTypeError(f"got {word}, expected minutes, more than 0")
    return float(word)


def main(words: list[str] | None = None, plans: Mapping[str, Plan] = PLANS) -> int:
    """Measure; 0 if all went well, 1 if refused or a row failed, 130 if interrupted."""
    arguments = parser().parse_args(words)
    try:
        if arguments.device == "cuda" and not torch.cuda.is_available():
            raise ValueError("PyTorch finds no GPU here; --device cpu works everywhere")
        plan = _shortened(plan_for(arguments.device, plans), arguments)
        out = arguments.out = expanded(arguments.out)
        if out.is_dir():
            raise ValueError(f"--out is {out}, which is a folder; name a file")
        if out.exists() and not arguments.resume:
            raise ValueError(f"{out} is there already; --resume goes on with it")
        make_folder(out.parent)
        with locked(out.with_name(f"{out.name}.run")):  # two runs at once would slow each other down
            return _run(arguments, plan)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace, plan: Plan) -> int:
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    results = Results(arguments.out, _command(arguments))
    if arguments.out.exists():
        read(arguments.out)  # no row is kept unchecked
        _check_origin(results, _command(arguments))
    results.add()  # a file that cannot be written is found out before anything is measured
    wanted = list(jobs(plan))
    if arguments.minutes:
        wanted.sort(key=lambda job: job[0].get("n", 0))  # what is left out are the longest texts
    try:
        failed, left = _measure(results, wanted, Budget(arguments.minutes))
    except KeyboardInterrupt:
        print(f"Interrupted: {len(results.rows())} rows are in {results.path}; --resume goes on.")
        return 130
    if left:
        spent = f"{arguments.minutes:g} minutes are spent"
        print(f"{spent}, {left} of {len(wanted)} rows are left out; --resume goes on.")
    if not failed and not left:
        _check(results.path, plan)
    return 1 if failed else 0


def _measure(results: Results, wanted: list[Job], budget: "Budget") -> tuple[int, int]:
    """Measure what is missing; return how many rows failed, and how many are left out."""
    failed = left = 0
    for row in results.rows():
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
    rows = check_file(path, [what for what, _ in jobs(plan)])["rows"]
    print(f"{path}: {len(rows)} rows, complete", end="")
    place = PACKAGE / "course/recorded/gpu.json"
    print(f": put it at {place}, then: make refresh ONLY=10" if plan.device == "cuda" else "")


def _check_origin(results: Results, command: str) -> None:
    """Rows of one file come from one machine, one program and one command."""
    now = provenance(command)
    for field in ("command", "commit", "machine", "versions"):
        before = results.content.get(field)
        if before != now[field]:
            raise ValueError(
                f"{results.path.name} was measured with {field} {before}, now it is {now[field]}; "
                "choose another --out"
            )


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


class Budget:
    """Minutes for all jobs together. None is no limit.

    A job is expected to take as long to build as the last one of its kind, and (n / its n)² as long to
    compute. The first of a kind begins if there is any time left.
    """

    def __init__(self, minutes: float | None):
        self.end = None if minutes is None else time.monotonic() + 60 * minutes
        self._before: dict[tuple, tuple[int, float, float]] = {}

    def allows(self, what: dict) -> bool:
        """Whether a job should finish in time."""
        if self.end is None:
            return True
        n, building, computing = self._before.get(_kind(what), (0, 0.0, 0.0))
        growth = (what["n"] / n) ** 2 if n else 0.0
        return building + growth * computing < self.end - time.monotonic()

    def learn(self, row: dict, seconds: float | None = None) -> None:
        """Remember what a job took; None where only its row is known."""
        variants = [samples for samples in row.get("seconds", {}).values() if samples]
        computing = sum(sum(samples) * (len(samples) + TURNS) / len(samples) for samples in variants)
        building = 0.0 if seconds is None else max(0.0, seconds - computing)
        self._before[_kind(row)] = row.get("n", 0), building, computing


def _kind(what: dict) -> tuple:
    return tuple(what.get(field) for field in ("part", "kind", "pass", "layer"))
