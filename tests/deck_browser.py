"""A deck in a real browser, opened from disk: every step of every slide, and what is wrong with what it shows."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

WIDTH, HEIGHT, FOOT = 1280, 720, 50  # CSS pixels; the foot is for the slide's number
LOCAL = ("file:", "data:", "blob:")

# What is visible in the current slide and leaves the page, or is cut off inside its own box.
OVERFLOW = """([width, height, foot]) => {
  const slide = Reveal.getCurrentSlide(), found = [];
  const name = (element) => `<${element.tagName.toLowerCase()}> ${element.textContent.trim().slice(0, 40)}`;
  const outside = (box, bottom) => box.width * box.height > 0 &&
    (box.left < -0.5 || box.top < -0.5 || box.right > width + 0.5 || box.bottom > bottom + 0.5);
  const drawn = (element) => element.checkVisibility({visibilityProperty: true, contentVisibilityAuto: true})
    && !element.closest('aside, mjx-assistive-mml') && !element.parentElement.closest('svg');
  for (const element of [...slide.querySelectorAll('*')].filter(drawn)) {
    const bottom = element.matches('.frame, .live') ? height : height - foot;
    const text = document.createRange();
    text.selectNodeContents(element);
    const boxes = [element.getBoundingClientRect()];
    if ([...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()))
      boxes.push(...text.getClientRects());
    if (boxes.some((box) => outside(box, bottom))) found.push(`${name(element)} leaves the slide`);
    const style = getComputedStyle(element);
    if (style.overflow !== 'visible' && style.textOverflow !== 'ellipsis' && !element.matches('img, video, svg')
        && (element.scrollWidth > element.clientWidth + 1 || element.scrollHeight > element.clientHeight + 1))
      found.push(`${name(element)} is cut off`);
  }
  return found;
}"""


@contextmanager
def open_deck(chromium: str, deck: Path, query: str = "") -> Iterator[tuple[Page, list[str]]]:
    """The deck's page, typeset, and the list of what goes wrong: requests that leave, errors in the console."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.set_default_timeout(30_000)
        wrong = []
        page.on("request", lambda request: request.url.startswith(LOCAL) or wrong.append(request.url))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "console", lambda message: message.type in ("error", "warning") and wrong.append(message.text)
        )
        page.goto(deck.as_uri() + query)
        page.wait_for_function("window.Reveal && Reveal.isReady()")
        page.evaluate("MathJax.startup.promise")
        yield page, wrong
        browser.close()


def steps(page: Page) -> Iterator[str]:
    """Walk from the first slide to the last, stopping at every fragment and at every open question.

    Yields the address of the step, such as "3" for the third slide or "3.1" after its first fragment.
    """
    while True:
        where = page.evaluate("(({h, f}) => f >= 0 ? `${h + 1}.${f + 1}` : `${h + 1}`)(Reveal.getIndices())")
        yield where
        questions = page.locator("section.present details[name]")
        for i in range(questions.count()):
            for name in ("question", "answer"):
                questions.nth(i).locator("summary").nth(int(name == "answer")).evaluate("(it) => it.click()")
                yield f"{where}, {name} {i + 1}"
            questions.nth(i).evaluate("(it) => it.open = false")
        if page.evaluate("Reveal.isLastSlide() && !Reveal.availableFragments().next"):
            return
        page.evaluate("Reveal.next()")


def overflow(page: Page) -> list[str]:
    """What leaves the current slide or is cut off in it, in words."""
    return page.evaluate(OVERFLOW, [WIDTH, HEIGHT, FOOT])
