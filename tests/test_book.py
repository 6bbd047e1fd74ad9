"""The book: every page opens from disk without a network; what is folded, alive or linked is so."""

import json
import re
import statistics
from html import unescape
from io import BytesIO
from pathlib import Path

import nbformat
import pytest
from book import api, links, site
from jupyter_lab import barriers, open_page
from lectures import chapters, notes
from live import Live, wait_until
from page_scripts import lend
from pypdf import PdfReader

from linformer_from_scratch.course import front_page
from linformer_from_scratch.course.exercises import EXERCISES
from linformer_from_scratch.course.exercises.engine.quizzes import bets_of, questions, tally
from linformer_from_scratch.course.glossary import entries
from linformer_from_scratch.course.ledger import by_kind, ledger
from linformer_from_scratch.course.widgets.live import LIVE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
STEMS = [path.stem for path in site.chapters()]
PHONE = (390, 844)  # CSS pixels
AT_FIRST_MB = 2  # what a page may load before anybody touches it
IMG = re.compile(r"<img\b[^>]*>")
NEXT = re.compile(r'class="next-page" href="([^"]+)".*?class="question">(.*?)<', re.DOTALL)
ALT = re.compile(r'\balt="(?![^"]*\.png")[^"]+"')  # its file's name is none
# Of paragraphs that are text alone: characters in a line that is not the last.
CHARACTERS_A_LINE = """all => all.filter((p) => !p.children.length).flatMap((p) => {
    const range = document.createRange();
    range.selectNodeContents(p);
    const widths = [...range.getClientRects()].map((line) => line.width);
    const sum = (some) => some.reduce((one, other) => one + other, 0), n = widths.length;
    return n > 2 ? [p.textContent.length * sum(widths.slice(0, -1)) / (n - 1) / sum(widths)] : [];
})"""
TEXT = "article :is(h1, h2, h3, p, .math svg, div.cell_input pre):visible"
CUT = """(all, width) => all.filter((one) => one.getBoundingClientRect().right > width)
    .filter((one) => !one.closest("table, .lw")).map((one) => one.textContent.slice(0, 80))"""

OWN = "The ferry was late.\nIts captain said sorry, gave tea to all, and then it left with a 😀 on its flag."
TAKES = {"01_attention": 1, "02_multihead": 2, "04_low_rank": 3, "06_linformer": 2, "13_descendants": 0}
SAID = OWN.replace("\n", " "), "Unknown to the model"

every_chapter = pytest.mark.parametrize("stem", STEMS)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The book without its decks, which have tests of their own."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("book")
    site.gather(source, out).close(lend(out / site.MODEL) | {"folder": f"../../{site.MODEL}"})
    with site.pages(source, out):
        site.furnish(out)
    (out / "slides" / "vendor").symlink_to(ROOT / "tools" / "deck" / "vendor", target_is_directory=True)
    return out


def pages(book):
    return [path for path in sorted(book.rglob("*.html")) if "slides" not in path.relative_to(book).parts]


def text_of(book, page):
    return (book / page).read_text(encoding="utf-8")


def notebook(stem, folder="chapters"):
    return nbformat.read(ROOT / folder / f"{stem}.ipynb", as_version=4)


# What stands on the pages.


def test_no_link_is_dead(book):
    ends = ".html", "_students.pdf", "_teacher.pdf"
    decks = {"index.html", *(f"{stem}{end}" for stem in STEMS for end in ends)}
    dead = [line.rpartition(": ") for line in links.dead_links(pages(book))]
    assert [(page, to) for page, _, to in dead if to.partition("slides/")[2] not in decks] == []


def test_every_picture_has_words(book):
    shown = [(page.name, img) for page in pages(book) for img in IMG.findall(page.read_text("utf-8"))]
    assert [(name, img) for name, img in shown if not ALT.search(img)] == [] != shown


def test_every_page_ends_with_its_licence(book):
    assert [page.name for page in pages(book) if 'rel="license"' not in page.read_text("utf-8")] == []


@every_chapter
def test_only_the_teachers_edition_has_the_notes(book, stem):
    told = len(notes(site.CHAPTERS / f"{stem}.ipynb"))
    assert text_of(book, f"chapters/{stem}.html").count("For the teacher ·") == 0
    assert len(re.findall(r'class="teacher admonition', text_of(book, f"teacher/{stem}.html"))) == told > 0


@every_chapter
def test_answers_are_folded(book, stem):
    page = text_of(book, f"chapters/{stem}.html")
    tagged = [cell for cell in notebook(stem).cells if "answer" in cell.metadata.get("tags", [])]
    answers = sum(bool(cell.outputs) for cell in tagged)
    assert page.count('<p class="collapsed admonition-title">Show the answer</p>') == answers
    assert "<details open" not in page


@every_chapter
def test_exercises_have_their_hints_and_our_version_folded(book, stem):
    page = text_of(book, f"chapters/{stem}.html")
    ours = [one for id, one in EXERCISES.items() if f"{int(id.split('.')[0]):02}" == stem[:2]]
    assert page.count("<summary>Hint 1 of ") == len(ours) > 0
    assert page.count("<summary>Hint ") == sum(len(one.hints) for one in ours)
    assert page.count("<summary>Our version</summary>") >= len(ours)
    assert "not yet attempted" not in page
    folded = "<details class='solution'><summary>Show</summary>"
    assert text_of(book, f"solutions/{stem}.html").count(folded) == len(ours)
    assert f": {', '.join(one.id for one in ours)}</p>" in text_of(book, "solutions.html")
    minutes = sum(one.minutes for one in ours)
    assert f"<td><p>{len(ours)}</p></td>\n<td><p>{minutes}</p></td>" in text_of(book, "teachers.html")


@every_chapter
def test_figures_are_numbered_in_their_order_and_have_words_below(book, stem):
    cells = notebook(stem).cells
    shown = sum("image/png" in one.get("data", {}) for cell in cells for one in cell.get("outputs", []))
    clips = sum(cell.source.count("<video ") for cell in cells)
    page = text_of(book, f"chapters/{stem}.html")
    captions = re.findall(rf"<strong>Figure {int(stem[:2])}\.(\d+)</strong> (\S)", page)
    assert [int(number) for number, _ in captions] == list(range(1, shown + clips + 1))


@every_chapter
def test_the_next_page_is_the_next_chapter_with_its_question(book, stem):
    following = STEMS[STEMS.index(stem) + 1 :]
    page = text_of(book, f"chapters/{stem}.html")
    href, question = NEXT.search(page).groups()
    if following:
        asked = re.search(r"\*\*(.+?)\*\*", notebook(following[0]).cells[0].source)[1]
        assert (href, unescape(question)) == (f"{following[0]}.html", asked)
    else:
        assert href == "../use.html"


@every_chapter
def test_a_chapter_leads_to_its_notebook_which_has_no_outputs(book, stem):
    ways = re.search('<p class="ways">(.*?)</p>', text_of(book, f"chapters/{stem}.html"))[1].split("</a> ")
    assert f'href="../notebooks/{stem}.ipynb" title="without outputs" download' in ways[0]
    lab, why = f'href="http://127.0.0.1:8888/lab/tree/chapters/{stem}.ipynb"', ", while make course runs"
    assert [lab in way for way in ways] == [why in way for way in ways] == [way is ways[-1] for way in ways]
    cells = json.loads(text_of(book, f"notebooks/{stem}.ipynb"))["cells"]
    assert [cell["source"] for cell in cells] and not any(cell.get("outputs") for cell in cells)


@pytest.mark.parametrize(
    ("stem", "name", "home"),
    [
        ("06_linformer", "LinformerAttention", "linformer"),
        ("08_training", "Trainer", "training.trainer"),
        ("09_efficient_attention", "nystrom_attention", "efficient.nystrom"),
    ],
)
def test_names_in_a_chapter_lead_to_the_reference(book, stem, name, home):
    room, full = home.partition(".")[0], f"linformer_from_scratch.{home}.{name}"
    assert f'<a class="api" href="../api/{room}.html#{full}">' in text_of(book, f"chapters/{stem}.html")
    assert f'id="{full}"' in text_of(book, f"api/{room}.html")


def test_the_glossary_and_the_ledger_are_whole(book):
    glossary, page = text_of(book, "chapters/glossary.html"), text_of(book, "ledger.html")
    assert all(f"<td><p>{entry.term}</p></td>" in glossary for entry in entries() if entry.term.isalpha())
    assert re.findall(r'<tr id="claim-([\w-]+)"', page) == [claim.id for claim in ledger()]


def test_a_docstring_of_ours_becomes_fields_and_blocks():
    said = "Softmax of *q* k.\n\nArgs:\n    q: queries, (n, d),\n        on any device\nRaises: ValueError."
    fields = ":Args:\n\n   - ``q``: queries, (n, d),\n     on any device\n\n:Raises: ValueError.\n"
    example = "\n>>> softmax_of(q * k)\ntensor([[1.]])\n"
    read = "Softmax of \\*q\\* k.\n\n\n" + fields + example
    assert "\n".join(api.restructured((said + "\n" + example).splitlines())) == read


# In a browser, on a phone.


@pytest.mark.browser
def test_every_page_opens_alone_fits_a_phone_and_has_no_serious_barrier(book, browser):
    with open_page(browser, *PHONE) as page:
        for path in pages(book):
            page.goto(path.as_uri())
            assert (path.name, width(page), page.outside, page.complaints) == (path.name, PHONE[0], [], [])
            assert (path.name, barriers(page, "light")) == (path.name, [])


@pytest.mark.browser
@every_chapter
def test_a_chapter_read_to_its_end_is_alive_and_whole(book, browser, stem):
    cells = notebook(stem).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    kinds = [output["data"][LIVE]["widget"] for output in outputs if LIVE in output.get("data", {})]
    with open_page(browser, *PHONE, at=book / "chapters" / f"{stem}.html") as page:
        widgets = page.locator(".live-widget")
        assert widgets.count() == len(kinds)
        for widget in widgets.all():
            widget.scroll_into_view_if_needed()
            moves(page, Live(page, widget.locator(".lw")))
        page.mouse.click(5, PHONE[1] / 2)
        page.mouse.wheel(0, 9)
        page.wait_for_timeout(300)  # a second one would be there by now
        assert page.locator(".lw").count() == len(kinds), "one live picture in each place"
        for question in page.locator(".quiz > details").all():
            answers(question)
        assert page.locator(".quiz > details").count() == len(questions(stem[3:]))
        formulas = page.locator(".math").count()
        if formulas:
            page.locator(".math").first.scroll_into_view_if_needed()
            wait_until(lambda: page.locator("mjx-container").count() >= formulas, "typeset formulas")
        assert width(page) == PHONE[0] and page.locator(TEXT).evaluate_all(CUT, PHONE[0]) == []
        assert (page.outside, page.complaints) == ([], [])


@pytest.mark.browser
@every_chapter
def test_bets_are_kept_and_told_as_a_notebook_tells_them(book, browser, stem):
    bets = bets_of(stem[3:])
    with open_page(browser, at=book / "chapters" / f"{stem}.html") as page:
        line = page.locator("p.bets")
        assert line.text_content() == tally(bets, {})
        for row in page.locator(".bet").all()[1:]:
            row.locator("button").first.click()
        page.reload()
        pressed = page.locator(".bet [aria-pressed=true]").all_text_contents()
        assert pressed == [bet.options[0] for bet in bets[1:]]
        assert line.text_content() == tally(bets, {bet.id: bet.options[0] for bet in bets[1:]})


@pytest.mark.browser
def test_the_readers_text_goes_from_the_front_page_through_the_chapters_until_it_is_forgotten(book, browser):
    with open_page(browser, 1280, 720, at=book / "index.html") as page:
        page.get_by_role("button", name="Wake the model").click()
        page.locator("textarea").fill(OWN)
        page.locator(".seconds").get_by_text("On this machine").wait_for()
        for stem, takes in TAKES.items():
            page.goto((book / "chapters" / f"{stem}.html").as_uri())
            for widget in page.locator(".live-widget").all():
                widget.scroll_into_view_if_needed()
                live = Live(page, widget.locator(".lw"))
                if (field := live.root.locator("input[type=text]")).count():
                    wait_until(
                        lambda it=field, live=live: (it.input_value(), live.words()[:20]) == SAID, stem
                    )
            assert page.locator(".lw input[type=text]").count() == takes
        page.goto((book / "index.html").as_uri())
        wait_until(lambda: page.locator("textarea").input_value() == OWN, "the text")
        page.get_by_role("button", name="Forget my text").click()
        assert page.locator("textarea").input_value() == front_page.texts()[0].text
        page.goto((book / "chapters" / "01_attention.html").as_uri())
        page.locator(".live-widget").first.scroll_into_view_if_needed()
        page.locator(".lw input[type=text]:visible").first.wait_for()  # the model is awake again
        assert page.get_by_role("button", name="Forget my text").count() == 0
        assert (page.outside, page.complaints) == ([], [])


def width(page):
    """What a page needs, in CSS pixels; its text has a frame of its own, which would scroll."""
    frames = ("html", ".content")
    return max(page.locator(frame).evaluate("frame => frame.scrollWidth") for frame in frames)


def moves(page, live):
    """A live picture's first control, or its first button, changes its line of numbers."""
    before = live.words()
    if not live.controls():
        live.root.get_by_role("button", name="Learn").click()
        return wait_until(lambda: live.words() != before, "other words")
    name, control = next(iter(live.controls().items()))
    for move in live.moves(name, control).values():
        live.after(move)
        if live.words() != before:
            return
    raise AssertionError(f"{name} moves nothing")


def answers(question):
    """A click on an option says whether it is right, and why; one option is right."""
    options = question.locator("li > button")
    for option in options.all():
        option.click()
    said = question.locator("li > p").all_inner_texts()
    assert len(said) == options.count() > 1 and all(len(reason) > 2 for reason in said)
    assert sum(reason.startswith("✓") for reason in said) == question.locator("li.right").count() == 1


@pytest.mark.browser
def test_little_is_loaded_before_anybody_moves(book, browser):
    with open_page(browser, at=book / "chapters" / f"{STEMS[-1]}.html") as page:
        page.wait_for_timeout(200)
    assert 0.1 < sum(file.stat().st_size for file in page.files) / 1e6 < AT_FIRST_MB


@pytest.mark.browser
def test_the_ledger_is_filtered_by_verdict_and_chapter(book, browser):
    kinds = by_kind(ledger())
    with open_page(browser, at=book / "ledger.html") as page:
        rows = page.locator(".ledger tbody tr:visible")
        assert rows.count() == len(ledger())
        page.get_by_label("Verdict").select_option("wrong")
        assert rows.count() == len(kinds["wrong"])
        page.get_by_label("Chapter").select_option("06")
        expected = [claim.id for claim in kinds["wrong"] if claim.chapter.startswith("06")]
        assert rows.count() == len(expected) > 0
        assert page.locator("form.filter output").inner_text() == f"{len(expected)} of {len(ledger())} claims"
        assert page.complaints == []


@pytest.mark.browser
def test_a_link_lands_where_it_leads_though_the_page_grows(book, browser):
    with open_page(browser, *PHONE) as page:
        last = {claim.chapter: f"chapters/{claim.link.replace('.ipynb', '.html')}" for claim in ledger()}
        for link in last.values():
            page.goto("about:blank")
            page.goto(f"{book.as_uri()}/{link}")
            page.wait_for_timeout(600)  # formulas and live pictures come
            top = page.locator(":target").bounding_box()["y"]
            assert 0 <= top < PHONE[1] / 4, link


@pytest.mark.browser
def test_the_search_answers_while_one_types_and_leads_to_a_section_of_a_chapter(book, browser):
    with open_page(browser, at=book / "chapters" / "00_start_here.html") as page:
        page.keyboard.press("/")
        page.keyboard.type("one row of E")
        found = page.locator(".found a:visible")
        wait_until(found.count, "a result")
        said = found.first.inner_text()
        assert "One row of E makes one slot" in said and "mixes the keys" in said
        assert found.first.locator("b mark").all_inner_texts() == ["One", "row", "E", "one"]
        folders = [link.get_attribute("href").split("/")[-2] for link in found.all()]
        assert "solutions" in folders and "teacher" not in folders
        kinds = page.locator(".found .kind").all_inner_texts()
        assert kinds[0] == "Chapters" and sorted(kinds) == sorted({*kinds})
        ground = "one => getComputedStyle(one).backgroundColor"
        before = found.first.evaluate(ground)
        page.keyboard.press("ArrowDown")
        assert found.first.evaluate(ground) != before, "one sees which result Enter opens"
        page.keyboard.press("Enter")
        page.wait_for_url("**/chapters/06_linformer.html#*")
        assert page.locator(":target h2").inner_text().startswith("One row of E")
        assert (page.outside, page.complaints) == ([], [])


@pytest.mark.browser
@pytest.mark.parametrize(
    ("asked", "place", "among"),
    [
        ("low-rank", "chapters/04_low_rank.html#low-rank", 1),
        ("what is attention", "chapters/01_attention.html#attention", 1),
        ("exercise 6.1 solution", "solutions/06_linformer.html#linformer-attention", 1),
        ("train on my own data", "use.html#train-on-your-own-text", 2),
        ("attenton", "chapters/01_attention.html#attention", 1),
    ],
)
def test_the_search_leads_to_what_a_question_means(book, browser, asked, place, among):
    with open_page(browser, at=f"{book.as_uri()}/search.html?q={asked}") as page:
        found = page.locator("article .found a")
        wait_until(found.count, "a result")
        first = [link.get_attribute("href") for link in found.all()[:among]]
        assert any(f"{book.as_uri()}/{place}" in address for address in first), first
        said = page.locator("article .found [role=status]").inner_text()
        assert ("with “attention”" in said) is (asked == "attenton"), said


@pytest.mark.browser
def test_the_page_of_the_search_shows_what_its_address_asks_for(book, browser):
    with open_page(browser, at=f"{book.as_uri()}/search.html?q=xyzzy") as page:
        wait_until(page.get_by_text("Sections found: 0").count, "an answer")
        page.locator("article input").fill("mean pooling")
        wait_until(page.locator("article .found a").count, "a result")
        assert page.get_by_role("heading", name="Find it in a minute").count() == 1
        assert page.complaints == []


@pytest.mark.browser
def test_j_and_k_move_by_section_and_are_letters_where_one_writes(book, browser):
    with open_page(browser, at=book / "chapters" / "06_linformer.html") as page:
        headings, seen = page.locator("article h2"), []
        for key in "jjjk":
            page.keyboard.press(key)
            tops = headings.evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
            seen.append(next(i for i, top in enumerate(tops) if top > -2))
        assert seen == [0, 1, 2, 1]
        before = page.evaluate("scrollY")
        page.keyboard.press("/")
        page.keyboard.type("jk")
        assert page.evaluate("[scrollY, document.activeElement.value]") == [before, "jk"]


@pytest.mark.browser
def test_tab_comes_to_the_text_before_the_list_of_pages(book, browser):
    where = "document.activeElement.closest('a.skip-to-content, article, .sidebar-drawer')?.className"
    with open_page(browser, at=book / "chapters" / "06_linformer.html") as page:
        seen = [page.keyboard.press("Tab") or page.evaluate(where) for _ in range(9)]
        assert "skip-to-content" in seen[0] and seen[-7:] == [""] * 7, seen  # the article has no class
        box = page.locator(".sidebar-drawer").bounding_box()
        assert box["x"] == 0 and box["width"] < page.locator("article").bounding_box()["x"]


@pytest.mark.browser
@pytest.mark.parametrize("size", [(1280, 720), PHONE])
def test_a_long_table_in_a_chapter_scrolls_in_its_own_box(book, browser, size):
    with open_page(browser, *size, at=book / "chapters" / "12_limits.html") as page:
        boxes = page.locator(".long").evaluate_all(
            "all => all.map((one) => [one.scrollHeight, one.clientHeight, one.tabIndex])"
        )
        assert len(boxes) == 2 and all(whole > size[1] > seen and tab == 0 for whole, seen, tab in boxes)


@pytest.mark.browser
@pytest.mark.parametrize("across", [1100, 1400, 1600])
def test_no_chapter_is_wider_than_its_window(book, browser, across):
    with open_page(browser, across, at=book / "chapters/00_start_here.html") as page:
        assert page.evaluate("document.documentElement.scrollWidth") == across


@pytest.mark.browser
def test_a_line_of_text_has_65_to_75_characters(book, browser):
    with open_page(browser, at=book / "chapters" / "06_linformer.html") as page:
        page.evaluate("document.fonts.ready")
        lengths = page.locator("article section > p").evaluate_all(CHARACTERS_A_LINE)
        assert len(lengths) > 15 and 65 <= statistics.median(lengths) <= 75


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
@pytest.mark.parametrize("size", [(1280, 720), PHONE])
def test_the_first_screen_has_the_question_a_live_picture_and_a_line_to_try(book, browser, path, size):
    with open_page(browser, *size, at=book / "chapters" / f"{path.stem}.html") as page:
        page.locator(".lw").first.wait_for()
        for part, share in (("article h1 + p", 1), (".lw-hint", 1), (".lw-stage", 0.4)):
            box = page.locator(part).first.bounding_box()
            assert box["y"] + share * box["height"] <= size[1], part
        if code := page.get_by_text("Show the imports").all():
            assert code[0].bounding_box()["y"] > 10 * size[1]


@pytest.mark.browser
def test_the_list_of_pages_has_decks_use_and_teaching_without_scrolling(book, browser):
    with open_page(browser, at=book / "chapters" / "06_linformer.html") as page:
        for name in ("13 · Descendants", "Decks and handouts", "Use it", "Teach from it", "Glossary"):
            box = page.locator(".sidebar-tree").get_by_role("link", name=name, exact=True).bounding_box()
            assert box["y"] + box["height"] <= 800, name


@pytest.mark.browser
@pytest.mark.parametrize("name", ["chapters/06_linformer.html", "ledger.html", "search.html?q=slot"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_barrier_in_either_dress(book, browser, name, scheme):
    with open_page(browser) as page:
        page.emulate_media(color_scheme=scheme)
        page.goto(f"{book.as_uri()}/{name}")
        wait_until(lambda: "search" not in name or page.locator("article .found a").count(), "a result")
        assert barriers(page, scheme) == []


@pytest.mark.browser
@pytest.mark.parametrize("name", ["chapters/06_linformer.html", "clips.html"])
def test_print_shows_stills_and_hides_what_only_a_screen_can_do(book, browser, name):
    with open_page(browser, at=book / name) as page:
        page.emulate_media(media="print")
        assert not page.locator(".ways").is_visible() and not page.locator("article video").first.is_visible()
        assert page.locator("figure.clip > img").first.is_visible()


@pytest.mark.browser
def test_a_chapter_printed_freshly_opened_has_its_formulas_and_its_pictures(book, browser):
    with open_page(browser, at=book / "chapters" / "06_linformer.html") as page:
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("script#mathjax").count() == 1 and page.locator("img[loading=lazy]").count() == 0
        page.reload()
        missing = "[...document.images].filter((one) => !one.complete).length"
        missing += " + document.querySelectorAll('.math:not(:has(mjx-container))').length"
        wait_until(lambda: page.evaluate(missing) == 0, "all that was not set")
        told = "".join(leaf.extract_text() for leaf in PdfReader(BytesIO(page.pdf())).pages)
        assert "One row of E makes one slot" in told and "\\(" not in told
