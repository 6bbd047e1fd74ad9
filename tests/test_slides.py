"""Decks come from the chapters' cells, open from disk without a network, and every slide of them fits."""

import re
import sys
from concurrent.futures import ThreadPoolExecutor

import kept
import pytest
import slides
from deck_browser import UNTYPESET, dense, dress, empty, far, open_deck, overflow, pale, small, steps, tiny
from deck_fixture import EVERYTHING, QUIZ, code, live, png, prose, result, write
from jupyter_lab import barriers
from lectures import chapters, lecture, minutes, notes, slide_type
from live import wait_until
from nbformat.v4 import new_output
from pypdf import PdfReader

from linformer_from_scratch.course.widgets import CostModel

pytestmark = pytest.mark.slow

CHAPTERS = chapters()
LECTURES = [path for path in CHAPTERS if path.stem != "00_start_here"]  # 00 is the opening of the first one
MATHS = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)

every_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
every_lecture = pytest.mark.parametrize("chapter", LECTURES, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def deck(tmp_path_factory):
    """The deck of the notebook that shows everything."""
    folder = tmp_path_factory.mktemp("everything")
    return slides.build(write(folder, EVERYTHING), folder / "out")


@pytest.fixture(scope="module")
def page(deck):
    """The deck's page as text."""
    return deck.read_text(encoding="utf-8")


@pytest.fixture
def opened(browser, tmp_path):
    """Open the deck of these cells."""
    return lambda *cells: open_deck(browser, slides.build(write(tmp_path, cells), tmp_path / "out"))


# What a deck takes from its notebook.


def test_slides_begin_where_the_notebook_says_and_skipped_cells_are_gone(page):
    assert re.findall(r"<section><div class=\"frame\">\s*<div class=\"prose\"><h\d>(.*?)</h\d>", page) == [
        "09 · Everything",
        "Does it show?",
        "Queries meet keys: $QK^\\top$",
        "Code is read with what it prints",
        "A picture takes the room that is left",
        "A widget leaves its picture, and a way to the live one",
        "A clip plays",
        "A question waits for its answer",
        "Quiz",
    ]
    assert page.count("<section") == page.count("</section>") == 9
    assert "secret_module" not in page


def test_fragments_stay_fragments(page):
    assert page.count('<div class="fragment">') == 3


def test_notes_are_unfolded_and_stand_before_the_fragments(page):
    assert "<p><strong>For the teacher · minute 2</strong></p>\n<p>Ask first.</p>" in page
    assert page.index("Ask first.") < page.index('<div class="fragment">')
    assert page.count('<aside class="notes">') == 9
    assert page.count("<details>") == 5, "only the quiz folds"


@pytest.mark.parametrize(("readers", "told"), [(slides.READERS, True), (slides.READERS[:1], False)])
def test_a_deck_without_a_teacher_among_its_readers_has_no_notes(tmp_path, readers, told):
    page = slides.build(LECTURES[0], tmp_path, readers=readers).read_text(encoding="utf-8")
    assert ("For the teacher ·" in page) is told


def test_the_room_sees_no_prompts_no_warnings_and_no_code_of_cells_that_hide_it(page):
    assert "UserWarning" not in page and "In&nbsp;[" not in page and "explorer" not in page
    assert "in chapter 02, see" in page, "links to other notebooks are plain text"


def test_widgets_show_their_still_pictures_and_link_to_the_live_chapter(page):
    assert slides.WIDGET not in page and "Explorer()" not in page
    link = '<a class="live" href="http://127.0.0.1:8888/lab/tree/chapters/09_everything.ipynb"'
    assert page.count(link) == 2


def test_the_number_that_matters_is_marked():
    text = "n = 64: 2 < 3\nn = 8: 4\n"
    assert slides.printed(text, ["(?<=64: ).*", "^n = 8"]) == (
        "n = 64: <mark>2 &lt; 3</mark>\n<mark>n = 8</mark>: 4\n"
    )


def test_printed_rows_are_the_first_and_those_that_are_wanted():
    table = "      error\n  full  0.0\n window 0.2\n slots  0.3\n"
    assert slides.rows(table, ["full", "slots"]) == (
        "      error\n  full  0.0\n slots  0.3\n… and 1 more in the notebook"
    )
    assert slides.rows(table, []) == table.rstrip()


def test_everything_a_deck_loads_lies_beside_it(page, deck):
    wanted = re.findall(r"<(?:script|link|img|video)\b[^>]*?(?:src|href)=\"([^\"]+)\"", page)
    files = [path for path in wanted if not path.startswith("data:")]
    assert "scenes/media/clip.mp4" in files and "vendor/mathjax/startup.js" in files
    assert [path for path in files if not (deck.parent / path).is_file()] == []


def test_a_missing_clip_is_named_in_one_sentence(tmp_path):
    chapter = write(tmp_path, [prose('## A clip\n\n<video src="scenes/media/lost.mp4"></video>', "slide")])
    with pytest.raises(SystemExit, match=r"^09_everything.ipynb shows scenes/media/lost.mp4, which does"):
        slides.build(chapter, tmp_path / "out")


def test_the_index_lists_the_decks_that_were_built(tmp_path, monkeypatch):
    chapter, out = write(tmp_path, EVERYTHING), tmp_path / "out"
    monkeypatch.setattr(slides, "chapters", lambda: [chapter, tmp_path / "10_unbuilt.ipynb"])
    for path in slides.handouts(slides.build(chapter, out)).values():
        path.touch()
    slides.write_index(out)
    index = (out / "index.html").read_text(encoding="utf-8")
    row = [re.sub(r"<[^>]+>", "", line) for line in index.splitlines() if line.startswith("<td>")]
    assert row == ["09 · Everything", "18", "9", "students teacher "]
    links = re.findall(r'<a href="([^"]+)"', index)
    assert links == ["09_everything.html", "09_everything_students.pdf", "09_everything_teacher.pdf"]


# The command.


@pytest.fixture
def command(tmp_path, monkeypatch):
    """The command on a folder with one chapter: takes the line's words, returns where the decks are."""
    chapter = write(tmp_path, EVERYTHING)
    monkeypatch.setattr(slides, "chapters", lambda: [chapter])
    monkeypatch.setattr(slides, "lend", lambda folder: {})
    for module, name, folder in ((slides, "ROOT", "."), (slides, "OUT", "decks"), (kept, "KEPT", "kept")):
        monkeypatch.setattr(module, name, tmp_path / folder)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["slides.py", *words])
        slides.main()
        return slides.OUT

    return run


def test_an_unknown_number_is_refused_in_one_sentence(command):
    with pytest.raises(SystemExit, match=r"^no name begins with 77; names look like 09_everything.ipynb$"):
        command("09", "77")


def test_without_a_chromium_one_line_says_that_handouts_are_left_out(command, monkeypatch, capsys):
    monkeypatch.setattr(slides, "find_chromium", lambda: None)
    out = command("09")
    assert capsys.readouterr().out.splitlines() == [slides.NO_CHROMIUM, "1 deck: decks/index.html"]
    names = {path.name for path in out.glob("*.*")}
    assert names == {"09_everything.html", "index.html", "deck.css", "bets.js"}


@pytest.mark.browser
def test_students_and_teacher_get_a_handout_each_kept_while_its_deck_is_as_it_was(command, monkeypatch):
    with ThreadPoolExecutor(1) as other:  # a thread can drive one browser, and this one's may be at work
        out = other.submit(command).result()
        monkeypatch.setattr(slides, "print_handouts", lambda *_: pytest.fail("printed again"))
        assert other.submit(command).result() == out
    handouts = [PdfReader(path).pages for path in slides.handouts(out / "09_everything.html").values()]
    assert [len(pages) for pages in handouts] == [9, 9]
    students, teacher = (squeezed("".join(page.extract_text() for page in pages)) for pages in handouts)
    for text in ("Predict. How much is 6 · 7?", "5. How much of it?", "a part of it", "$5"):
        assert squeezed(text) in students and squeezed(text) in teacher, text
    for text in ("For the teacher", "Wrong answer to expect", "forty-two", "So it is not 13", "6 * 7", "✓"):
        assert squeezed(text) not in students and squeezed(text) in teacher, text
    assert "Reasons" not in teacher and "Answer" not in teacher, "a mark is the quiz's answer"


def squeezed(text):
    """A text without its spaces: a PDF has none at the ends of lines."""
    return "".join(text.split())


@pytest.mark.browser
@pytest.mark.parametrize("readers", [slides.READERS, ("students",)])
def test_a_lecturer_counts_hands_and_a_reader_places_bets(browser, tmp_path, readers):
    deck = slides.build(write(tmp_path, EVERYTHING), tmp_path / "out", readers=readers)
    with open_deck(browser, deck) as page:
        page.evaluate("Reveal.slide(7)")
        first, second = page.locator(".bet button").all()
        for keys in ([], [], ["Shift"]):
            second.click(modifiers=keys)
        first.click()
        hands, pressed = page.locator(".bet [data-hands='1']"), page.locator(".bet [aria-pressed=true]")
        assert (hands.count(), pressed.count()) == ((2, 0) if "teacher" in readers else (0, 1))
        assert page.locator(".answer").is_hidden()


# The chapters as lectures.


@every_lecture
def test_a_lecture_has_twelve_to_twenty_slides(chapter):
    assert 12 <= len(slides.slides(lecture(chapter))) <= 20


@every_chapter
def test_every_slide_begins_with_its_claim_and_has_its_note_and_no_note_is_lost(chapter):
    shown = slides.slides(lecture(chapter))
    assert [first.source for first, *_ in shown if not re.match(r"##? \S", first.source)] == []
    told = [[cell.source for cell in slide if slide_type(cell) == "notes"] for slide in shown]
    assert told == [[note] for note in notes(chapter).values()] != []


@every_chapter
def test_minutes_go_forward_and_end_by_fifty(chapter):
    marks = minutes(lecture(chapter))
    assert marks[0] == 0 and marks[-1] <= 50
    assert marks == sorted(set(marks)), "a minute stands twice, or time runs backwards"


# In the browser.


CLIPS_PLAY = """[...document.querySelectorAll("section.present video")].every((it) => it.currentTime > 1.7)"""
LOOKS = {"too much": overflow, "small": small, "tiny": tiny, "dense": dense}
CROWDED = {("09_efficient_attention", "3")}  # eight maps, a question and its answer leave the labels no room
FORMULAS = ":is(.prose, aside) mjx-container:not(.argument *)"
LOST_PICTURES = """() => [...document.images].filter((it) => !it.naturalWidth).map((it) => it.alt)"""
# The lowest edge of what a page of the handout shows above its notes.
LOWEST = """() => Math.max(...[...document.querySelectorAll(".frame :is(p, li, pre, img, table)")].map(
  (it) => it.getBoundingClientRect().bottom - it.closest(".pdf-page").getBoundingClientRect().top))"""
CUT_NOTES = """() => [...document.querySelectorAll(".speaker-notes-pdf")]
  .filter((it) => it.scrollHeight > it.clientHeight).map((it) => it.textContent)"""


def formulas(chapter):
    """How many formulas the shown prose has, notes included."""
    cells = [cell for slide in slides.slides(lecture(chapter)) for cell in slide]
    prose = [CODE.sub("", cell.source) for cell in cells if cell.cell_type == "markdown"]
    return sum(len(MATHS.findall(text)) for text in prose)


def assert_presentable(browser, chapter, deck):
    """Walk every step of a deck and hold against it whatever a room would stumble over; return the steps."""
    walked, wrong = [], {}
    with open_deck(browser, deck) as page:
        for where in steps(page):
            walked.append(where)
            seen = {name: look(page) for name, look in LOOKS.items()}
            for theme in ("dark", "light"):
                dress(page, theme)
                seen |= {f"pale, {theme}": pale(page)}
            if where.isdigit():  # the slide before its steps
                seen |= {"barriers": barriers(page, "light"), "far": far(page), "empty": empty(page)}
            if (chapter.stem, where) in CROWDED:
                assert seen.pop("far")
            wrong |= {(where, name): found for name, found in seen.items() if found}
            page.wait_for_function(CLIPS_PLAY)
        assert wrong == {}
        shown = slides.slides(lecture(chapter))
        summaries = [slide for slide in shown if slides.heading(slide) == "Summary"]  # on two slides
        assert sum(where.isdigit() for where in walked) == 1 + len(shown) + len(summaries)
        assert page.locator(FORMULAS).count() == formulas(chapter)
        assert page.locator("mjx-merror").count() == 0
        assert page.evaluate(UNTYPESET) == []
        assert page.evaluate(LOST_PICTURES) == []
        assert page.outside == [] and page.complaints == []
    return walked


@pytest.mark.browser
def test_the_deck_that_shows_everything_is_presentable(browser, deck):
    walked = assert_presentable(browser, deck.parents[1] / "09_everything.ipynb", deck)
    assert {"1", "3", "3.1", "3.2", "8.1", "9", "9, question 5", "9, answer 5"} <= set(walked)


@pytest.mark.browser
@every_chapter
def test_every_chapter_is_presentable_and_its_teachers_handout_is_whole(browser, chapter, tmp_path):
    """Seconds for a deck: formulas are set, and every step of it is looked at as a room would see it."""
    out, deck = tmp_path, slides.build(chapter, tmp_path)
    files = [deck, out / "deck.css", *(out / path for path in slides.media(lecture(chapter)))]
    files += [path for path in (out / "vendor").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 6e6
    assert_presentable(browser, chapter, deck)
    with open_deck(browser, deck, "?print-pdf=teacher") as page:
        page.wait_for_selector(".pdf-page")
        assert page.evaluate(LOWEST) <= 720 and page.evaluate(CUT_NOTES) == []
        assert page.outside == [] and page.complaints == []


WHERE = "Reveal.getIndices().h"
FITS, NEXT = prose("## It fits\n\n- one line", "slide"), prose("## Next", "slide")
MANY_LINES = "- one more line\n" * 20
CUT = f"<div style='height: 40px; overflow: hidden'>{'cut ' * 200}</div>"
BENEATH = f"<p style='max-width: none'>{'one more word ' * 9}</p>"
TOO_MUCH = {
    "too many lines": [prose(f"## Tall\n\n{MANY_LINES}", "slide")],
    "a box that hides the rest": [prose(f"## Cut\n\n{CUT}", "slide")],
    "prose beneath a picture": [
        prose(f"## Beneath\n\n{BENEATH}", "slide"),
        code("picture", result(image_png=png(800, 600)), tags=["no-code"]),
    ],
    "a fragment": [prose("## Step by step", "slide"), prose(MANY_LINES, "fragment")],
    "a picture without room": [
        prose("## Small\n\n" + "- one more line\n" * 9, "slide"),
        code("picture", result(image_png=png(800, 800))),
    ],
}


@pytest.mark.browser
def test_what_does_not_fit_is_found_and_what_fits_is_not_complained_about(opened):
    with opened(FITS, *(cell for cells in TOO_MUCH.values() for cell in cells)) as page:
        leaving = {where: overflow(page) for where in steps(page)}
    begun = str([*TOO_MUCH].index("a fragment") + 2)  # this slide is too much only with its fragment
    assert leaving.pop("1") == leaving.pop(begun) == []
    assert len(leaving) == len(TOO_MUCH) and [where for where, found in leaving.items() if not found] == []


@pytest.mark.browser
def test_what_a_room_does_not_take_in_is_listed(opened):
    much = prose("## A " + "very " * 20 + "long title\n\n" + "- one more line\n" * 9, "slide")
    with opened(FITS, much, code("n", new_output("stream", name="stdout", text="n 1\n" * 8))) as page:
        listed = ["9 lines of prose", "8 printed rows", "a title of two lines"]
        assert [dense(page) for _ in steps(page)] == [[], listed]


FONT = "getComputedStyle(document.querySelector('section.present .frame')).fontSize"


@pytest.mark.browser
def test_text_alone_is_set_as_large_as_its_slide_has_room_and_a_pair_of_maps_takes_all_of_it(opened):
    full, pair = prose(f"## Full\n\n{MANY_LINES[: 10 * 16]}", "slide"), result(image_png=png(846, 441))
    maps = [prose("## Two maps", "slide"), code("heatmaps", pair, tags=["no-code"])]
    with opened(FITS, full, *maps) as page:
        sizes = [page.evaluate(FONT) for _ in steps(page)]
        assert [sizes[0], sizes[2]] == ["35.1px", "22px"] and 27 <= float(sizes[1][:-2]) < 35
        assert page.locator("img").bounding_box()["height"] > 540
        assert far(page) == empty(page) == overflow(page) == []


@pytest.mark.browser
def test_an_empty_half_and_type_that_nobody_can_read_are_found(opened):
    little = prose("## Little\n\n<p style='font-size: 13px'>so little</p>", "slide")
    maps = [
        prose("## Far\n\n" + "- one more line\n" * 6, "slide"),
        code("maps", result(image_png=png(900, 900))),
    ]
    with opened(prose("## Nothing", "slide"), little, *maps) as page:
        found = [[*empty(page), *tiny(page), *far(page)] for _ in steps(page)]
    assert found[0] == ["nothing below 80"] and found[1] == ["so little: 13.0"]
    assert re.match(r"a picture with labels of \d\.", found[2][0]) and len(found[2]) == 1


@pytest.mark.browser
def test_every_slide_says_where_in_the_argument_one_is(browser, deck):
    with open_deck(browser, deck) as page:
        page.keyboard.press("m")
        assert page.evaluate(WHERE) == 1
        claims = ["Code is read with what it prints", "A picture takes the room that is left"]
        assert [one.strip() for one in page.locator(".argument a").all_inner_texts()][1:3] == claims
        page.get_by_role("link", name=claims[1]).first.click()
        assert page.evaluate(WHERE) == 4
        strip = page.get_by_role("navigation", name="Steps")
        assert strip.locator("[aria-current=step]").get_attribute("title") == claims[1]
        strip.get_by_role("link", name="Quiz").click()
        wait_until(lambda: page.evaluate(WHERE) == 8, "the quiz")


@pytest.mark.browser
def test_d_turns_the_deck_dark_and_back(browser, deck):
    with open_deck(browser, deck) as page:
        papers = []
        for _ in range(3):
            papers.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            page.keyboard.press("d")
        assert papers[0] == papers[2] != papers[1]


@pytest.mark.browser
def test_the_speaker_sees_the_notes(browser, deck):
    with open_deck(browser, deck) as page:
        with page.expect_popup() as popup:
            page.keyboard.press("s")
        notes = popup.value.locator(".speaker-controls-notes .value")
        notes.get_by_text("minute 0").wait_for()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        notes.get_by_text("Ask first.").wait_for()


BUTTON = '<button onclick="this.dataset.pressed = 1">Play</button>'
CONTROLS = f'<div class="live-widget"><input type="range">{BUTTON}</div>'


@pytest.mark.browser
def test_keys_pressed_in_a_widget_do_not_turn_the_page_until_escape(opened):
    with opened(prose(f"## Move it\n\n{CONTROLS}", "slide"), NEXT) as page:
        page.keyboard.press("Tab")
        for key in ("ArrowRight", "ArrowDown", "PageUp", "End"):
            page.keyboard.press(key)
        assert page.locator("input").input_value() == "100"
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        page.locator("button[data-pressed]").wait_for()
        assert page.evaluate(WHERE) == 0
        page.keyboard.press("Escape")
        page.keyboard.press("PageDown")
        assert page.evaluate(WHERE) == 1


@pytest.mark.browser
def test_a_widget_lives_in_its_deck_as_the_cell_left_it(opened):
    shown = code("CostModel()", live(CostModel(n=8192)), tags=["no-code"])
    with opened(prose("## Turn the dials", "slide"), shown, NEXT) as page:
        words = page.locator(".lw-words")
        words.get_by_text("At n = 8,192").wait_for()
        assert page.locator(".live-widget img").count() == 0
        tokens = page.get_by_label("Tokens n", exact=True)
        tokens.focus()
        page.keyboard.press("ArrowRight")
        words.get_by_text("At n = 10,240").wait_for()
        tokens.click(position={"x": 2, "y": 10})
        words.get_by_text("At n = 10,240").wait_for(state="detached")
        assert page.evaluate(WHERE) == 0
        assert (overflow(page), pale(page), small(page)) == ([], [], [])
        page.keyboard.press("Escape")
        page.keyboard.press("PageDown")
        assert page.evaluate(WHERE) == 1
        assert page.outside == [] and page.complaints == []


@pytest.mark.browser
def test_after_a_click_on_a_question_the_keys_turn_the_pages_and_with_tab_space_opens_it(opened):
    with opened(prose(f"## Quiz\n\n{QUIZ}", "slide"), NEXT) as page:
        page.locator("summary").first.click()
        page.keyboard.press("Space")
        assert page.evaluate(WHERE) == 1
        page.keyboard.press("ArrowLeft")
        page.locator("summary").first.focus()
        page.keyboard.press("Space")
        page.locator("details:not([open])").first.wait_for()
        assert page.evaluate(WHERE) == 0


@pytest.mark.browser
@pytest.mark.parametrize(("reader", "notes"), [("students", 0), ("teacher", 9)])
def test_a_handout_shows_stills_for_clips_and_all_options(browser, deck, reader, notes):
    with open_deck(browser, deck, f"?print-pdf={reader}") as page:
        page.wait_for_selector(".pdf-page")
        assert page.locator("video").is_hidden()
        assert page.get_by_alt_text("The last moment of the clip").is_visible()
        assert page.locator("summary + ol:visible").count() == 5, "the options of each question, no reasons"
        assert page.locator(".speaker-notes-pdf:visible").count() == notes
