"""Recorded experiments: list them, or measure their missing rows.

Without a name nothing is measured, for all of them take many hours: they are listed, with how many rows are
recorded and which code has changed since. With names, their missing rows are measured, one after another;
if it is killed, the same command goes on. Rows that were measured with other code are not added to: move
their file away to measure all again, or, if no number can have changed, say why with --accept; the file
keeps the reason.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from linformer_from_scratch.experiments.experiment import COMMAND
from linformer_from_scratch.experiments.registry import EXPERIMENTS, find
from linformer_from_scratch.experiments.results import RESULTS, accept, outdated, read
from linformer_from_scratch.experiments.runner import measure, missing


def main(words: Sequence[str] | None = None) -> None:
    """List, measure or accept."""
    arguments = parser().parse_args(words)
    try:
        if arguments.accept is not None:
            accept_all(arguments.names or recorded(), arguments.accept)
        elif arguments.names:
            measure_all(arguments.names, arguments.seeds)
        else:
            print("\n".join(map(line, dict.fromkeys([*EXPERIMENTS, *recorded()]))))
    except (ValueError, OSError) as error:
        sys.exit(str(error))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    words = argparse.ArgumentParser(
        prog=COMMAND, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    words.add_argument("names", nargs="*", metavar="NAME", help="such as 12_recall")
    words.add_argument("--seeds", type=int, nargs="+", help="others than those that are declared")
    words.add_argument("--accept", metavar="WHY", help="keep rows though code has changed since")
    return words


def measure_all(names: Sequence[str], seeds: Sequence[int] | None) -> None:
    """Measure what is missing of some experiments."""
    for experiment in find(names):
        if seeds and experiment.seeds is None:
            raise ValueError(f"{experiment.name} has no seeds, expected no --seeds")
        measure(replace(experiment, seeds=tuple(seeds)) if seeds else experiment)


def accept_all(names: Sequence[str], why: str) -> None:
    """Keep the rows of some files."""
    for name in names:
        experiment = EXPERIMENTS.get(name)
        command = (experiment.command, Path(experiment.file)) if experiment else ()
        files = accept(RESULTS / f"{name}.json", why, *command)
        print(f"{name}: {'kept, though changed since: ' + ', '.join(files) if files else 'current'}")


def recorded() -> list[str]:
    """Names of the recorded files: those of the experiments, and of the benchmark."""
    return sorted(path.stem for path in RESULTS.glob("*.json"))


def line(name: str) -> str:
    """Rows and subject of an experiment, or of another file; under it, which code has changed."""
    experiment = EXPERIMENTS.get(name)
    if experiment:
        wanted, about = len(experiment.settings()), experiment.about
        rows = f"{wanted - len(missing(experiment))} of {wanted} rows"
    else:
        content = read(RESULTS / f"{name}.json")
        rows, about = f"{len(content['rows'])} rows", content["command"]
    files = "".join(f"\n{'':28} changed since: {file}" for file in changed_since(name))
    return f"{name:12} {rows:>14}  {about}{files}"


def changed_since(name: str) -> list[str]:
    """Files whose code has changed since the rows were measured; none where there are no rows yet."""
    path, experiment = RESULTS / f"{name}.json", EXPERIMENTS.get(name)
    return outdated(read(path), Path(experiment.file) if experiment else None) if path.exists() else []


if __name__ == "__main__":
    main()
