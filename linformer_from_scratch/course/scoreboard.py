"""The scoreboard: the number that each chapter adds to what is known, exact attention beside Linformer."""

from linformer_from_scratch.common.files import PACKAGE
from linformer_from_scratch.course.content import read_yaml

ROWS = PACKAGE / "course" / "scoreboard.yml"


def scoreboard(chapter: str) -> None:
    """Print the lines up to a chapter, such as "06".

    Raises: ValueError if the scoreboard has no line of that chapter.
    """
    rows = read_yaml(ROWS)
    if all(row["chapter"] != chapter for row in rows):
        known = ", ".join(sorted({row["chapter"] for row in rows}))
        raise ValueError(f"got chapter {chapter!r}, expected one of {known}")
    print(f"{'':2}  {'':52} {'exact':>15} {'Linformer':>18}")
    for row in sorted(rows, key=lambda row: row["chapter"]):
        if row["chapter"] <= chapter:
            print(f"{row['chapter']}  {row['what']:52} {row['exact']:>15} {row['linformer']:>18}")
