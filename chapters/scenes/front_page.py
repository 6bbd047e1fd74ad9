"""The picture that the README begins with: python chapters/scenes/front_page.py, after make book.

The front page of build/book, whose strip is pulled thin while the answer falls: six seconds.
"""

import io
import os
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

CHAPTERS = Path(__file__).resolve().parents[1]
PICTURE = CHAPTERS / "front_page.webp"
PAGE = CHAPTERS.parent / "build" / "book" / "index.html"
ALONE = """.experiment { padding: 0.7rem }
.experiment :is(.own, .wake, .tally, form button) { display: none }
.experiment canvas { transition-duration: 60s !important }"""
MOVED = """share => document.getAnimations().filter((one) => one instanceof CSSTransition).forEach((one) => {
    one.pause();
    one.currentTime = 60000 * share;
})"""
SHARES = (0.3, 0.6, 0.85)  # of a move, that are shown of it
MOVE_MS, STAY_MS, END_MS = 50, 560, 1740


def frames(page: Page) -> list[tuple[Image.Image, int]]:
    """What an open front page shows, from all slots to the fewest, and for how many ms each frame stays."""
    page.add_style_tag(content=ALONE)
    slider, shown = page.get_by_label("Slots k"), []
    for place in reversed(range(int(slider.get_attribute("max")) + 1)):
        slider.fill(str(place))
        slider.blur()
        for share in (*SHARES, 1):
            page.evaluate(MOVED, share)
            png = page.locator(".experiment").screenshot()
            shown.append((Image.open(io.BytesIO(png)).convert("RGB"), STAY_MS if share == 1 else MOVE_MS))
    return [*shown[len(SHARES) : -1], (shown[-1][0], END_MS)]


def main() -> None:
    """Write the picture."""
    if not PAGE.exists():
        sys.exit("The picture shows a page of the book: run `make book` first.")
    with sync_playwright() as playwright:
        chromium = shutil.which(os.environ.get("CHROMIUM", "chromium"))
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(PAGE.as_uri())
        (first, *others), ms = zip(*frames(page), strict=True)
        browser.close()
    first.save(
        PICTURE, save_all=True, append_images=others, duration=ms, loop=0, quality=70, minimize_size=True
    )


if __name__ == "__main__":
    main()
