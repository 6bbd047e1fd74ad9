"""python -m linformer_from_scratch.exercises grade FOLDER --out grades.csv: learners' notebooks to a table."""

import argparse
import sys
from pathlib import Path

from linformer_from_scratch.course.exercises.engine.checking import exam_seeds
from linformer_from_scratch.course.exercises.grader import examiner, grading

MEBIBYTE = 2**20
LEAST = 256


def main(arguments: list[str] | None = None) -> int:
    """Grade a folder; the exit code is 1 where there is nothing to grade or nowhere to write, 130 if interrupted."""
    parser = argparse.ArgumentParser(prog="python -m linformer_from_scratch.exercises")
    commands = parser.add_subparsers(dest="command", required=True)
    grade = commands.add_parser(
        "grade",
        help="a folder of learners' notebooks, or of their my_linformer.py, to a table of learner × exercise",
        description=f"{grading.__doc__}\n{examiner.__doc__}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    grade.add_argument("folder", type=Path, help="it holds a file or a folder for each learner")
    grade.add_argument("--out", type=Path, default=Path("grades.csv"), help="the table (default: grades.csv)")
    grade.add_argument("--seconds", type=float, default=120, help="for one file (default: 120)")
    grade.add_argument("--memory", type=int, default=2048, help="MiB for one file (default: 2048)")
    grade.add_argument(
        "--exam",
        type=int,
        metavar="NUMBER",
        help="draw other sizes and signs as well; another number, another exam",
    )
    options = parser.parse_args(arguments)
    if not options.seconds > 0:
        grade.error(f"argument --seconds: got {options.seconds:g}, expected more than 0")
    if options.memory < LEAST:
        grade.error(f"argument --memory: got {options.memory}, expected at least {LEAST}")
    try:
        exam_seeds(options.exam or 0)
    except ValueError as error:
        grade.error(f"argument --exam: {error}")
    try:
        learners = grading.grade_folder(
            options.folder, options.out, options.seconds, options.memory * MEBIBYTE, options.exam
        )
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"Stopped; what was graded until then is in {options.out}.", file=sys.stderr)
        return 130
    print(f"{learners} learner{'s' * (learners != 1)} in {options.out}")
    return 0
