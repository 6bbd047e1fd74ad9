"""Recorded rows, a file for each experiment, and how chapters read them.

curves: learning curves. guesses: masks that are filled while models train. benchmark: times and bytes.
lengths: sentence encoders timed. writers: models that write.
"""

from linformer_from_scratch.common.files import PACKAGE
from linformer_from_scratch.common.rows import mean_and_interval as mean_and_interval
from linformer_from_scratch.common.rows import read
from linformer_from_scratch.common.rows import select as select

RESULTS = PACKAGE / "course" / "recorded"


def read_rows(name: str, **wanted: object) -> list[dict]:
    """Rows of a recorded file, filtered by select: read_rows("08_size", proj_dim=32)."""
    return select(read(RESULTS / f"{name}.json")["rows"], **wanted)
