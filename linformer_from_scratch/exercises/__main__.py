"""The command `python -m linformer_from_scratch.exercises grade FOLDER`: learners' notebooks to a table."""

import sys

from linformer_from_scratch.course.exercises.grader.command import main

if __name__ == "__main__":
    sys.exit(main())
