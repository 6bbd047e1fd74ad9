"""Recorded experiments: list them, or measure their missing rows.

Without a name nothing is measured, for all of them take many hours: they are listed, with how many rows are
recorded. With names, their missing rows are measured, one after another; if it is killed, the same command
goes on.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from lab.experiment import COMMAND
from lab.registry import EXPERIMENTS, find
from lab.runner import measure, missing
from linformer_from_scratch.common.rows import read
from linformer_from_scratch.course.recorded import RESULTS


def main(words: Sequence[str] | None = None) -> None:
    """List or measure."""
    arguments = parser().parse_args(words)
    try:
        if arguments.names:
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
    return words


def measure_all(names: Sequence[str], seeds: Sequence[int] | None) -> None:
    """Measure what is missing of some experiments."""
    for experiment in find(names):
        if seeds and experiment.seeds is None:
            raise ValueError(f"{experiment.name} has no seeds, expected no --seeds")
        measure(replace(experiment, seeds=tuple(seeds)) if seeds else experiment)


def recorded() -> list[str]:
    """Names of the recorded files: those of the experiments, and of the benchmark."""
    return sorted(path.stem for path in RESULTS.glob("*.json"))


def line(name: str) -> str:
    """Rows and subject of an experiment, or of another file."""
    experiment = EXPERIMENTS.get(name)
    if experiment:
        wanted, about = len(experiment.settings()), experiment.about
        rows = f"{wanted - len(missing(experiment))} of {wanted} rows"
    else:
        content = read(RESULTS / f"{name}.json")
        rows, about = f"{len(content['rows'])} rows", content["command"]
    return f"{name:12} {rows:>14}  {about}"


if __name__ == "__main__":
    main()
