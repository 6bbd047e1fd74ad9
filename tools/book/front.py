"""What the front page is made of: the recorded experiment, the verdicts, the map of the course."""

import json
import os
import re
from pathlib import Path

from kept import ENCODER, ROOT, kept
from PIL import Image

from linformer_from_scratch.common.files import PACKAGE
from linformer_from_scratch.course import front_page
from linformer_from_scratch.course.ledger import by_kind, ledger
from linformer_from_scratch.course.start_here import ACTS, PATH
from linformer_from_scratch.course.widgets.page import in_text

CHAPTER = re.compile(r"^\| (\d\d) \| \[(.+)\]\(chapters/(\w+)\.ipynb\) \| (.+) \| (\d+) \|$", re.MULTILINE)
PICTURE = (
    ROOT / "chapters" / "front_page.webp"
)  # of this page, which moves; chapters/scenes/front_page.py makes it
COLUMNS = "number", "name", "stem", "question", "minutes"  # of a chapter in the README's table
# Kind of verdict -> how the heading counts it.
COUNTED = {"wrong": "wrong", "only if": "true only under a condition", "not reproduced": "not reproduced"}


def told(chapters: str) -> dict[str, object]:
    """What the page is filled with; chapters: the README's section of that name."""
    kinds, one = by_kind(ledger()), front_page.texts()[0]
    counts = [f"{len(kinds[kind])} {words}" for kind, words in COUNTED.items() if kind in kinds]
    return {
        "verdicts": kinds,
        "verdict": f"{sum(map(len, kinds.values()))} claims tested: {', '.join(counts)}",
        "acts": acts(chapters),
        "path": PATH,
        "text": one.text,
        "question": front_page.OPENING[0],
        "slots": front_page.SLOTS,
        "found": json.loads(recorded())["found"],
        "address": address(os.environ.get("REPOSITORY", "")),
    }


def address(repository: str) -> str:
    """Where GitHub shows the book of owner/name: what is previewed elsewhere needs whole addresses."""
    owner, _, name = repository.partition("/")
    return f"https://{owner.lower()}.github.io/{name}/" if name else ""


def acts(chapters: str) -> dict[str, list[dict[str, str]]]:
    """Act of the course -> its chapters."""
    by_number = {row[0]: dict(zip(COLUMNS, row, strict=True)) for row in CHAPTER.findall(chapters)}
    return {act: [by_number[name[:2]] for name in names] for act, names in ACTS.items()}


def recorded() -> str:
    """What the experiment shows before anything is loaded, as JSON; kept, for its readings take seconds."""
    made_of = [*(PACKAGE / "course").glob("front_page.*"), Path(__file__), *ENCODER]
    return (kept("front", made_of, record, ["torch"]) / "recorded.json").read_text(encoding="utf-8")


def record(folder: Path) -> None:
    """Read the texts, and write what was found."""
    shown = front_page.recorded()
    shown["maps"] = {way: front_page.shaded(one).numpy().tobytes() for way, one in front_page.maps().items()}
    text = json.dumps(shown, separators=(",", ":"), default=in_text)
    (folder / "recorded.json").write_text(text, encoding="utf-8")


def write(folder: Path) -> None:
    """Write the script with what was recorded, and the picture that links to the page are shown with."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recorded.js").write_text(f"window.recorded = {recorded()};", encoding="utf-8")
    with Image.open(PICTURE) as moving:
        moving.seek(moving.n_frames - 1)
        moving.convert("RGB").save(folder / "preview.png")
