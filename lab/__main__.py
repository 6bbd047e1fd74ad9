"""Recorded experiments: list them, or measure their missing rows.

Without a name nothing is measured, for all of them take many hours: they are listed, with how many rows are
recorded, and how many commits have changed the file of `lab` that declares them since; what it imports is not
looked at. With names, their missing rows are measured, one after another; if it is killed, the same command
goes on.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import lab
from lab.experiment import COMMAND, measure
from linformer_from_scratch.common.rows import first_line, read
from linformer_from_scratch.course.recorded import RESULTS

FOUND = [import_module(f"lab.{one.name}") for one in iter_modules(lab.__path__) if one.name != "__main__"]
DECLARED = sorted((one.name, one, module) for module in FOUND for one in getattr(module, "EXPERIMENTS", ()))
EXPERIMENTS = {name: one for name, one, _ in DECLARED}
FILES = {name: Path(str(module.__file__)) for name, _, module in DECLARED}


def main(words: Sequence[str] | None = None) -> None:
    """List or measure."""
    parser = argparse.ArgumentParser(
        prog=COMMAND, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as 12_recall")
    parser.add_argument("--seeds", type=int, nargs="+", help="others than those that are declared")
    arguments = parser.parse_args(words)
    try:
        if arguments.names:
            measure_all(arguments.names, arguments.seeds)
        else:
            recorded = (path.stem for path in RESULTS.glob("*.json"))  # the benchmark's file, too
            print("\n".join(map(line, sorted({*EXPERIMENTS, *recorded}))))
    except (ValueError, OSError) as error:
        sys.exit(str(error))


def measure_all(names: Sequence[str], seeds: Sequence[int] | None) -> None:
    """Measure what is missing of some experiments.

    Raises: ValueError, before anything is measured, for a name that is not known, and for seeds of an
        experiment that has none.
    """
    for name in names:
        if name not in EXPERIMENTS:
            raise ValueError(f"there is no experiment {name!r}, expected one of {', '.join(EXPERIMENTS)}")
        if seeds and EXPERIMENTS[name].seeds is None:
            raise ValueError(f"{name} has no seeds, expected no --seeds")
    for name in names:
        measure(replace(EXPERIMENTS[name], seeds=tuple(seeds)) if seeds else EXPERIMENTS[name])


def line(name: str) -> str:
    """Rows and subject of an experiment, or of another file; below, what has changed since."""
    path = RESULTS / f"{name}.json"
    content = read(path) if path.exists() else {}
    if name not in EXPERIMENTS:
        return f"{name:16} {len(content['rows']):>9} rows  {content['command']}"
    wanted, missing = (len(some) for some in (EXPERIMENTS[name].settings(), EXPERIMENTS[name].missing()))
    rows = f"{name:16} {f'{wanted - missing} of {wanted}':>9} rows  {EXPERIMENTS[name].about}"
    return rows + commits_since(content.get("commit"), FILES[name])


def commits_since(commit: str | None, file: Path) -> str:
    """A line that says how many commits have changed a file; empty for none, and without a commit."""
    since = f"{(commit or '').removesuffix('-dirty')}.."
    count = first_line("git", "-C", str(file.parent), "rev-list", "--count", since, "--", file.name)
    if not commit or count == "0":
        return ""
    if count is None:
        return f"\n  git does not know its commit, {commit}"
    return f"\n  {count} commit{'s' * (count != '1')} to {file.parent.name}/{file.name} since"


if __name__ == "__main__":
    main()
