"""The scoreboard: the number that each chapter adds to what is known, exact attention beside Linformer."""

from linformer_from_scratch.common.files import PACKAGE
from linformer_from_scratch.course.content import read_yaml

ROWS = PACKAGE / "course" / "scoreboard.yml"


def scoreboard(chapter: str) -> None:
    """Print the lines of a chapter, such as "06".

    Raises: ValueError if the scoreboard has no line of that chapter.
    """
    content = read_yaml(ROWS)
    rows = [row for row in content if row["chapter"] == chapter]
    if not rows:
        known = ", ".join(sorted({row["chapter"] for row in content}))
        raise ValueError(f"got chapter {chapter!r}, expected one of {known}")
    print(f"{'':2}  {'':52} {'exact':>15} {'Linformer':>18}")
    for row in rows:
        print(f"{chapter}  {row['what']:52} {row['exact']:>15} {row['linformer']:>18}")
