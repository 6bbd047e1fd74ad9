"""python -m linformer_from_scratch.exercises grade FOLDER --out grades.csv: learners' notebooks to a table."""

import argparse
import sys
from pathlib import Path

from linformer_from_scratch.course.exercises.engine.checking import exam_seeds
from linformer_from_scratch.course.exercises.grader import examiner, gradebook, grading

MEBIBYTE = 2**20
LEAST = 256


def main(arguments: list[str] | None = None) -> int:
    """Grade a folder; the exit code is 1 where there is nothing to grade or nowhere to write, 130 if interrupted."""
    parser = argparse.ArgumentParser(prog="python -m linformer_from_scratch.exercises")
    commands = parser.add_subparsers(dest="command", required=True)
    grade = commands.add_parser(
        "grade",
        help="a folder of learners' notebooks, or of their my_linformer.py, to a table of learner × exercise",
        description=f"{grading.__doc__}\n{gradebook.__doc__}\n{examiner.__doc__}",
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
    grade.add_argument("--points", type=Path, metavar="FILE", help="points, if not an exercise's stars")
    grade.add_argument("--partial", type=float, default=0, help="share for a named mistake (default: 0)")
    grade.add_argument("--roster", type=Path, metavar="FILE", help="the class, for Canvas and Moodle")
    grade.add_argument("--due", metavar="TIME", help="the deadline, as in 2026-12-01T23:59")
    grade.add_argument("--late-percent", type=float, default=10, help="off for a day late (default: 10)")
    grade.add_argument("--title", default="Linformer", help="in Canvas and Moodle (default: Linformer)")
    options = parser.parse_args(arguments)
    if not options.seconds > 0:
        grade.error(f"argument --seconds: got {options.seconds:g}, expected more than 0")
    if options.memory < LEAST:
        grade.error(f"argument --memory: got {options.memory}, expected at least {LEAST}")
    for name, value, most in (("partial", options.partial, 1), ("late-percent", options.late_percent, 100)):
        if not 0 <= value <= most:
            grade.error(f"argument --{name}: got {value:g}, expected 0 to {most}")
    try:
        exam_seeds(options.exam or 0)
    except ValueError as error:
        grade.error(f"argument --exam: {error}")
    try:
        points = gradebook.points_in(options.points) if options.points else gradebook.STARS
        roster = gradebook.roster_in(options.roster) if options.roster else {}
        due = gradebook.moment(options.due) if options.due else None
        book = gradebook.Gradebook(points, roster, options.partial, due, options.late_percent, options.title)
        limits = options.seconds, options.memory * MEBIBYTE
        learners = grading.grade_folder(options.folder, options.out, *limits, options.exam, book)
    except ValueError as error:
        grade.error(str(error))
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"Stopped; what was graded until then is in {options.out}.", file=sys.stderr)
        return 130
    print(f"{len(learners)} learner{'s' * (len(learners) != 1)} in {options.out}")
    if strangers := [name for name in learners if roster and name not in roster]:
        print(f"not in the roster: {', '.join(strangers)}")
    unread = ("damaged", "no notebook")
    if lacking := [name for name, one in learners.items() if any(why in one.note() for why in unread)]:
        print(f"nothing handed in, or a file that cannot be read: {', '.join(lacking)}")
    return 0
