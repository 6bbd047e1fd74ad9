"""A deck in a real browser, opened from disk: its page, every step of it, and what leaves the slide."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from jupyter_lab import open_page
from playwright.sync_api import Browser, Page

WIDTH, HEIGHT, FOOT = 1280, 720, 50  # CSS pixels; the foot belongs to the slide's number
LABEL = 12 * 110 / 72  # pixels: type of the labels in a picture of plots.py

HELPERS = """
  const isDrawn = (element) => element.checkVisibility({visibilityProperty: true})
    && !element.closest("aside, mjx-assistive-mml") && !element.parentElement.closest("svg");
  const hasText = (element) =>
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
"""

# What the current slide shows beyond its edges, in its foot or beneath a picture, and what its box cuts off.
OVERFLOW = """([width, height, foot]) => {
  const rows = (text) => {  // a line of text can stick out of the box of its own element
    const range = document.createRange();
    range.selectNodeContents(text);
    return [...range.getClientRects()];
  };
  const boxes = (element) => {
    const texts = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
    const all = [element.getBoundingClientRect(), ...texts.flatMap(rows)];
    return all.filter((box) => box.width && box.height);
  };
  const leaves = (element) => {
    const bottom = height - (element.matches(".live") ? 0 : foot);
    return boxes(element).some(
      (box) => box.left < 0 || box.top < 0 || box.right > width || box.bottom > bottom + 0.5);
  };
  const isCut = (element) => getComputedStyle(element).overflow !== "visible"
    && !element.matches("img, video, svg")
    && (element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight);
  const pictures = [...Reveal.getCurrentSlide().querySelectorAll(".frame :is(img, video)")]
    .filter((picture) => isDrawn(picture) && !picture.closest(".live-widget"))
    .map((picture) => picture.getBoundingClientRect());
  const isBeside = (text) => {  // words of a chart that stick out of it, and of the widget that cuts them off
    const [box, room] = [text, text.closest(".lw")].map((it) => it.getBoundingClientRect());
    return text.checkVisibility() && box.width && (box.left < room.left || box.right > room.right);
  };
  const isBeneath = (element) => element.matches(".prose :is(p, li)") && pictures.some((picture) =>
    rows(element).some((row) => row.right > picture.left + 1 && row.left < picture.right
      && row.bottom > picture.top && row.top < picture.bottom));
  const name = (element) => `<${element.tagName.toLowerCase()}> ${element.textContent.trim().slice(0, 40)}`;
  const shown = [...Reveal.getCurrentSlide().querySelectorAll(".frame *")];
  const isSaid = (element) => element.matches(".lw-hidden, .lw-handle > :is(label, output)");  // not seen
  const beside = shown.filter((element) => element.matches(".lw svg text") && isBeside(element));
  const cut = beside.map((text) => `${name(text)} is cut off`);
  return cut.concat(shown.filter((element) => isDrawn(element) && !isSaid(element)).flatMap((element) => [
    ...(leaves(element) ? [`${name(element)} leaves the slide`] : []),
    ...(isCut(element) ? [`${name(element)} is cut off`] : []),
    ...(isBeneath(element) ? [`${name(element)} lies beneath a picture`] : []),
  ]));
}"""

# Text of the current slide whose contrast with its ground is below what reading needs.
PALE = """(least) => {
  const linear = (part) => part <= 10 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ([red, green, blue]) =>
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const ground = (element) => {
    const [red, green, blue, alpha = 1] = parts(getComputedStyle(element).backgroundColor);
    return alpha === 1 ? [red, green, blue] : ground(element.parentElement);
  };
  const contrast = (element) => {
    const both = [parts(getComputedStyle(element).color), ground(element)].map(luminance);
    return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
  };
  return [...document.querySelectorAll("section.present .frame *, .slide-number *")]
    .filter((element) => isDrawn(element) && hasText(element) && contrast(element) < least)
    .map((element) => `${element.textContent.trim().slice(0, 40)}: ${contrast(element).toFixed(2)}`);
}"""

# Text of the current slide that is smaller than the last row can read, in pixels of the slide.
SMALL = """([where, least]) => {
  const scale = Reveal.getScale();
  const size = (element) => {
    const own = parseFloat(getComputedStyle(element).fontSize);
    const {a, b} = element.getScreenCTM?.() ?? {a: scale, b: 0};  // of a turned text both
    return (own * Math.hypot(a, b)) / scale;
  };
  return [...document.querySelectorAll(`section.present ${where} :not(.lw-hidden)`)]
    .filter((element) => element.checkVisibility() && hasText(element) && size(element) < least - 0.05)
    .filter((element) => !element.closest("aside, mjx-assistive-mml"))
    .map((element) => `${element.textContent.trim().slice(0, 40)}: ${size(element).toFixed(1)}`);
}"""

# Pictures of the current slide whose labels are too small; label: their pixels in a picture of its own size.
FAR = """([label, least]) => [...Reveal.getCurrentSlide().querySelectorAll("img")]
  .filter((it) => isDrawn(it) && !it.closest(".live-widget")).map((it) => {
    const {width, height} = it.getBoundingClientRect();
    return (label * Math.min(width / it.naturalWidth, height / it.naturalHeight)) / Reveal.getScale();
  }).filter((size) => size < least).map((size) => `a picture with labels of ${size.toFixed(1)}`)"""

# Whether the current slide, all steps of it, is empty below its middle.
EMPTY = """(middle) => {
  const shown = [...Reveal.getCurrentSlide().querySelectorAll(".frame *")].filter((it) => it.checkVisibility()
    && !it.closest("aside, .live") && (hasText(it) || it.matches("img, video, canvas, svg, mjx-container")));
  const lowest = Math.max(...shown.map((it) => it.getBoundingClientRect().bottom)) / Reveal.getScale();
  return lowest < middle ? [`nothing below ${Math.round(lowest)}`] : [];
}"""

# What the current slide shows more of than a room takes in: lines, pictures, printed rows.
DENSE = """([lines, rows]) => {
  const slide = Reveal.getCurrentSlide(), scale = Reveal.getScale();
  const shown = (names) => [...slide.querySelectorAll(names)].filter(isDrawn);
  const linesOf = (element) => {
    const {height} = element.getBoundingClientRect();
    return Math.round(height / scale / parseFloat(getComputedStyle(element).lineHeight));
  };
  const share = (element) => element.getBoundingClientRect().width / scale / 1180;  // of a whole line
  const prose = shown(".frame .prose :is(p, li):not(:has(p, li, [display=true])):not(.argument *)");
  const grown = slide.querySelector(".frame").style.getPropertyValue("--grow") || 1;  // type: lines are short
  const read = Math.round(prose.reduce((sum, it) => sum + (linesOf(it) * share(it)) / grown, 0));
  const pictures = shown(".frame :is(img, video, .live-widget)").length;
  const printed = shown(".frame pre:not(.code pre)").map((it) => it.textContent.trim().split("\\n").length);
  const titles = shown(".frame :is(h2, h3)").map(linesOf);
  return [
    ...(read > lines ? [`${read} lines of prose`] : []),
    ...(pictures > 1 ? [`${pictures} pictures`] : []),
    ...printed.filter((row) => row > rows).map((row) => `${row} printed rows`),
    ...(titles.some((row) => row > 1) ? ["a title of two lines"] : []),
  ];
}"""

# Formulas that stand in prose as dollars.
UNTYPESET = """() => {
  const prose = document.querySelector(".slides").cloneNode(true);
  prose.querySelectorAll("code, pre, mjx-container, script").forEach((other) => other.remove());
  return prose.textContent.match(/\\$[^$\\n]+\\$/g) ?? [];
}"""

DRESSED = """(theme) =>
  [...document.querySelectorAll("section.present .lw")].every((it) => it.style.colorScheme === theme)"""


@contextmanager
def open_deck(browser: Browser, deck: Path, query: str = "") -> Iterator[Page]:
    """The deck's page, typeset; `page.outside` and `page.complaints` collect what goes wrong from then on."""
    with open_page(browser, WIDTH, HEIGHT, at=deck.as_uri() + query) as page:
        page.wait_for_function("window.Reveal && Reveal.isReady()")
        page.evaluate("MathJax.startup.promise")
        yield page


def steps(page: Page) -> Iterator[str]:
    """Walk from the first slide to the last, stopping at every fragment, question and answer.

    Yields where the walk is: "3" is the third slide, "3.1" the same after its first fragment.
    """
    while True:
        where = page.evaluate("(({h, f}) => f >= 0 ? `${h + 1}.${f + 1}` : `${h + 1}`)(Reveal.getIndices())")
        yield where
        for number, question in enumerate(page.locator("section.present details[name]").all(), 1):
            for name, fold in zip(("question", "answer"), question.locator("summary").all(), strict=True):
                fold.evaluate("(it) => it.click()")
                yield f"{where}, {name} {number}"
            question.evaluate("(it) => it.open = false")
        if page.evaluate("Reveal.isLastSlide() && !Reveal.availableFragments().next"):
            return
        page.evaluate("Reveal.next()")


def dress(page: Page, theme: str) -> None:
    """Make the deck "dark" or "light", and wait until the slide's widgets are drawn so."""
    page.evaluate("(theme) => dress(theme === 'dark')", theme)
    page.wait_for_function(DRESSED, arg=theme)
    page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")


def look(page: Page, script: str, argument: object) -> list[str]:
    """What a script finds on the current slide, in words."""
    return page.evaluate(f"(argument) => {{ {HELPERS} return ({script})(argument); }}", argument)


overflow = partial(look, script=OVERFLOW, argument=[WIDTH, HEIGHT, FOOT])  # shown beyond its edges
pale = partial(look, script=PALE, argument=4.5)  # texts whose contrast is below what reading needs
small = partial(look, script=SMALL, argument=[".lw", 18])  # texts of live widgets that are hard to read
tiny = partial(look, script=SMALL, argument=[".frame", 14])  # texts of any kind that nobody can read
far = partial(look, script=FAR, argument=[LABEL, 14])  # the same in pictures
empty = partial(look, script=EMPTY, argument=HEIGHT / 2)
dense = partial(look, script=DENSE, argument=[8, 7])  # more prose or printed rows than a room takes in
