"""Decks come from the chapters' cells, open from disk without a network, and every slide of them fits."""

import base64
import importlib.util
import io
import re
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from deck_browser import UNTYPESET, open_deck, overflow, steps
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from linformer_from_scratch import plots

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("slides", ROOT / "tools/slides.py")
slides = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(slides)

CHAPTERS = sorted((ROOT / "chapters").glob("[0-9][0-9]_*.ipynb"))
LECTURES = [path for path in CHAPTERS if path.stem != "00_start_here"]  # 00 is the opening of the first one
MATHS = re.compile(r"\$\$.+?\$\$|\$[^$\n]+\$", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)

every_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
every_lecture = pytest.mark.parametrize("chapter", LECTURES, ids=lambda path: path.stem)


# The fixture: one slide for each thing that a chapter may show.


def prose(source, kind=None):
    return marked(new_markdown_cell(source), kind)


def code(source, *outputs, kind=None, tags=()):
    cell = marked(new_code_cell(source, execution_count=1, outputs=list(outputs)), kind)
    cell.metadata.tags = list(tags)
    return cell


def marked(cell, kind):
    if kind:
        cell.metadata.slideshow = {"slide_type": kind}
    return cell


def notes(minute, source):
    return prose(
        f"<details><summary>For the teacher · minute {minute}</summary>\n\n{source}\n\n</details>", "notes"
    )


def result(**data):
    return new_output("execute_result", {key.replace("_", "/"): value for key, value in data.items()})


def widget(**data):
    output = result(text_plain="Explorer()", **data)
    output.data[slides.WIDGET] = {"model_id": "0", "version_major": 2, "version_minor": 0}
    return output


def png(width, height):
    file = io.BytesIO()
    Image.new("RGB", (width, height), plots.QUERY).save(file, "png")
    return base64.b64encode(file.getvalue()).decode()


def question(text):
    options = "".join(
        f"<li>{option}</li>" for option in ("all of it", "none of it", "half of it", "who knows")
    )
    verdicts = "".join(f"<li>No. {'Reasons take room on a slide. ' * 2}</li>" for _ in range(4))
    answer = f'<details><summary>Answer</summary><ol type="a">{verdicts}</ol></details>'
    return f'<details name="quiz"><summary>{text}</summary><ol type="a">{options}</ol>{answer}</details>'


QUIZ = f'<div class="quiz">{"".join(question(f"Question {i}: how much of it?") for i in range(1, 6))}</div>'
TABLE = "<table class='dataframe'><thead><tr><th></th><th>n</th></tr></thead><tbody><tr><th>0</th><td>8</td></tr></tbody></table>"
FEATURES = [
    prose("# 09 · Everything\n\n**Does it show?** · 50 minutes\n\n- one thing;\n- another.", "slide"),
    notes(0, "Say *hello*, and that $n = 8$."),
    code("import secret_module", kind="skip"),
    prose("## Queries meet keys: $QK^\\top$\n\nA <span class='query'>query</span>, a <span class='key'>key</span>.", "slide"),
    prose("$$\\mathrm{softmax}\\Big(\\frac{QK^\\top}{\\sqrt d}\\Big) V$$\n\nCosts `$5` in [chapter 02](02_multihead.ipynb#why), see [arXiv](https://arxiv.org/abs/2006.04768).", "fragment"),
    prose("| $n$ | map |\n| --- | --- |\n| 8 | 64 |", "fragment"),
    notes(2, "Ask first."),
    prose("## Code is read with what it prints", "slide"),
    code(
        "def double(x):\n    return 2 * x  # twice\n\n\n" + f"print(f'{"wide " * 18}', double(21))",
        new_output("stream", name="stdout", text="   n       n×n\n   8        64\n"),
        new_output("stream", name="stderr", text="UserWarning: not for the room"),
        result(text_plain="tensor([0.2500, 0.7500])"),
    ),
    code("table", result(text_html=TABLE, text_plain="   n\n0  8")),
    notes(5, "Wrong answer to expect: 16."),
    prose("## A picture takes the room that is left", "slide"),
    code("plots.heatmaps(...)", result(image_png=png(1400, 1400), text_plain="a map")),
    notes(8, "Look."),
    prose("## A widget leaves its picture, and a way to the live one", "slide"),
    code("explorer = Explorer()\nexplorer", widget(image_png=png(990, 580)), tags=["no-code"]),
    notes(11, "Open it."),
    prose('## A clip plays\n\n<video controls muted loop width="480" src="scenes/media/clip.mp4"></video>\n\n![The last moment of the clip](scenes/media/clip.png)', "slide"),
    notes(15, "Twice."),
    prose("## Quiz", "slide"),
    code('quiz("09")', widget(text_html=QUIZ), tags=["no-code"]),
    notes(18, "Hands up."),
]  # fmt: skip


def write(folder, *cells):
    """A notebook of these cells, with a clip beside it."""
    media = folder / "scenes" / "media"
    media.mkdir(parents=True, exist_ok=True)
    for suffix in (".mp4", ".png"):
        shutil.copy(ROOT / f"chapters/scenes/media/01_attention{suffix}", media / f"clip{suffix}")
    path = folder / "09_everything.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    return path


@pytest.fixture(scope="module")
def deck(tmp_path_factory):
    """The deck that shows everything, built."""
    folder = tmp_path_factory.mktemp("everything")
    return slides.build(write(folder, *FEATURES), folder / "out")


@pytest.fixture(scope="module")
def page(deck):
    """Its page as text."""
    return deck.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Where the chapters' decks are built."""
    return tmp_path_factory.mktemp("decks")


# What a deck takes from its notebook.


def test_slides_begin_where_the_notebook_says_and_skipped_cells_are_gone(page):
    assert re.findall(r"<section><div class=\"frame\">\s*<div class=\"prose\"><h\d>(.*?)</h\d>", page) == [
        "09 · Everything",
        "Queries meet keys: $QK^\\top$",
        "Code is read with what it prints",
        "A picture takes the room that is left",
        "A widget leaves its picture, and a way to the live one",
        "A clip plays",
        "Quiz",
    ]
    assert page.count("<section") == page.count("</section>") == 7
    assert "secret_module" not in page


def test_fragments_stay_fragments(page):
    assert page.count('<div class="fragment">') == 2


def test_notes_are_unfolded_and_stand_before_the_fragments(page):
    assert "<p><strong>For the teacher · minute 2</strong></p>\n<p>Ask first.</p>" in page
    assert page.index("Ask first.") < page.index('<div class="fragment">')
    assert page.count('<aside class="notes">') == 7
    assert page.count("<details>") == 5, "only the quiz folds"


def test_the_room_sees_no_prompts_and_no_warnings(page):
    assert "UserWarning" not in page
    assert "In&nbsp;[" not in page and "In [1]" not in page


def test_no_code_shows_only_the_output(page):
    assert "explorer" not in page
    assert "heatmaps" in page


def test_widgets_show_their_still_pictures_and_link_to_the_live_cell(page):
    assert slides.WIDGET not in page and "Explorer()" not in page
    link = '<a class="live" href="http://localhost:8888/lab/tree/chapters/09_everything.ipynb"'
    assert page.count(link) == 2


def test_links_to_other_notebooks_are_plain_text(page):
    assert "in chapter 02, see" in page
    assert 'href="https://arxiv.org/abs/2006.04768"' in page


def test_everything_a_deck_loads_lies_beside_it(page, deck):
    wanted = re.findall(r"<(?:script|link|img|video)\b[^>]*?(?:src|href)=\"([^\"]+)\"", page)
    files = [path for path in wanted if not path.startswith("data:")]
    assert "scenes/media/clip.mp4" in files and "vendor/mathjax/tex-svg.js" in files
    assert [path for path in files if not (deck.parent / path).is_file()] == []


def test_bundled_libraries_come_with_their_licences(deck):
    for name in ("reveal/LICENSE", "reveal/LICENSE-marked.md", "reveal/LICENSE-fitty", "mathjax/LICENSE"):
        assert "ermi" in (deck.parent / "vendor" / name).read_text(encoding="utf-8"), name


def test_a_missing_clip_is_named_in_one_sentence(tmp_path):
    chapter = write(tmp_path, prose("## A clip\n\n<video src='scenes/media/lost.mp4'></video>", "slide"))
    with pytest.raises(
        slides.SlidesError, match=r"^09_everything.ipynb shows scenes/media/lost.mp4, which does"
    ):
        slides.build(chapter, tmp_path / "out")


def test_a_fresh_deck_removes_the_handout_of_the_old_one(tmp_path):
    chapter = write(tmp_path, prose("# 09 · A", "slide"))
    old = slides.build(chapter, tmp_path).with_suffix(".pdf")
    old.touch()
    slides.build(chapter, tmp_path)
    assert not old.exists()


def test_the_deck_has_the_colours_of_the_pictures():
    css = (ROOT / "tools/deck/deck.css").read_text(encoding="utf-8")
    for name in ("query", "key", "value", "ink"):
        assert f"--{name}: {getattr(plots, name.upper())};" in css


def test_the_index_lists_the_decks_that_were_built(tmp_path):
    chapter = write(tmp_path, *FEATURES)
    other = tmp_path / "10_unbuilt.ipynb"
    slides.build(chapter, tmp_path).with_suffix(".pdf").touch()
    slides.write_index([chapter, other], tmp_path)
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    row = [re.sub(r"<[^>]+>", "", line) for line in index.splitlines() if line.startswith("<td>")]
    assert row == ["09 · Everything", "18", "7", "PDF"]
    assert 'href="09_everything.html"' in index and 'href="09_everything.pdf"' in index


# The command.


@pytest.fixture
def command(tmp_path, monkeypatch):
    """`slides.main` on a folder with one chapter; takes the command line's words, returns the decks' folder."""
    write(tmp_path, *FEATURES)
    monkeypatch.setattr(slides, "ROOT", tmp_path)
    monkeypatch.setattr(slides, "CHAPTERS", tmp_path)
    monkeypatch.setattr(slides, "OUT", tmp_path / "build" / "slides")

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["slides.py", *words])
        slides.main()
        return slides.OUT

    return run


def test_an_unknown_number_is_refused_in_one_sentence(command):
    with pytest.raises(
        SystemExit, match="^no chapter with slides begins with 77; names look like 01_attention"
    ):
        command("77")


def test_without_a_chromium_one_line_says_that_handouts_are_left_out(command, monkeypatch, capsys):
    monkeypatch.setattr(slides, "find_chromium", lambda: None)
    out = command("09")
    assert capsys.readouterr().out.splitlines() == [slides.NO_CHROMIUM, "1 deck: build/slides/index.html"]
    assert sorted(path.name for path in out.iterdir() if path.suffix in (".html", ".pdf")) == [
        "09_everything.html",
        "index.html",
    ]


@pytest.mark.browser
def test_the_handout_has_a_page_for_each_slide(command):
    handout = command() / "09_everything.pdf"
    assert len(re.findall(rb"/Type\s*/Page\b", handout.read_bytes())) == 7


# The chapters as lectures.


def read(chapter):
    return nbformat.read(chapter, as_version=4)


@every_lecture
def test_a_lecture_has_twelve_to_eighteen_slides(chapter):
    assert 12 <= len(slides.slides(read(chapter))) <= 18


@every_chapter
def test_every_slide_begins_with_its_claim_and_has_notes(chapter):
    for first, *rest in slides.slides(read(chapter)):
        assert re.match(r"##? \S", first.source), f"no heading: {first.source[:60]!r}"
        found = [cell.source for cell in rest if slides.slide_type(cell) == "notes"]
        assert len(found) == 1 and slides.MINUTE.search(found[0]), f"notes of {first.source[:60]!r}"


@every_chapter
def test_minutes_go_forward_and_end_by_fifty(chapter):
    marks = slides.minutes(read(chapter))
    assert marks[0] == 0 and marks[-1] <= 50
    assert marks == sorted(set(marks)), "a minute stands twice, or time runs backwards"


@every_chapter
def test_every_widget_leaves_a_picture_or_a_page(chapter):
    for cell in read(chapter).cells:
        for output in cell.get("outputs", []):
            if slides.WIDGET in output.get("data", {}):
                assert {"image/png", "text/html"} & set(output.data), cell.source


# In the browser.


def formulas(notebook):
    """How many formulas the shown prose has, notes included."""
    cells = [cell for slide in slides.slides(notebook) for cell in slide if cell.cell_type == "markdown"]
    return sum(len(MATHS.findall(CODE.sub("", cell.source))) for cell in cells)


def assert_presentable(chromium, deck, notebook):
    """Walk every step of a deck, and hold all that a room would stumble over against it."""
    with open_deck(chromium, deck) as page:
        seen = {}
        for where in steps(page):
            seen[where] = overflow(page)
            page.wait_for_function(
                "[...document.querySelectorAll('section.present video')].every((clip) => clip.currentTime > 0.2)"
            )
        assert {where: found for where, found in seen.items() if found} == {}
        assert sum(where.isdigit() for where in seen) == len(slides.slides(notebook))
        assert page.locator(".prose mjx-container, aside mjx-container").count() == formulas(notebook)
        assert page.locator("mjx-merror").count() == 0
        assert page.evaluate(UNTYPESET) == []
        assert page.evaluate("[...document.images].filter((image) => !image.naturalWidth).length") == 0
        assert page.outside == [] and page.complaints == []
    return list(seen)


@pytest.mark.browser
def test_the_deck_that_shows_everything_is_presentable(chromium, deck):
    walked = assert_presentable(chromium, deck, new_notebook(cells=FEATURES))
    assert {"1", "2", "2.1", "2.2", "7", "7, question 5", "7, answer 5"} <= set(walked)


@pytest.mark.browser
@every_chapter
def test_every_chapter_is_presentable(chromium, chapter, out):
    assert_presentable(chromium, slides.build(chapter, out), read(chapter))


FITS = "## It fits\n\n- one line"
TOO_MUCH = {
    "too many lines": prose("## Tall\n\n" + "- one more line\n" * 20, "slide"),
    "a line into the foot": prose(
        "## Foot\n\n<div style='position: absolute; top: 655px'>low</div>", "slide"
    ),
    "a wide box": prose("## Wide\n\n<div style='width: 1300px'>wide</div>", "slide"),
    "a line that cannot break": prose(f"## Unbroken\n\n{'unbroken' * 20}", "slide"),
    "text that sticks out of its box": prose(
        f"## Out\n\n<div style='width: 100px; white-space: nowrap'>{'out ' * 80}</div>", "slide"
    ),
    "a box that hides the rest": prose(
        f"## Cut\n\n<div style='height: 40px; overflow: hidden'>{'cut ' * 200}</div>", "slide"
    ),
    "a fragment that does not fit": [prose(FITS, "slide"), prose("- one more line\n" * 20, "fragment")],
    "a picture without room": [
        prose("## Small\n\n" + "- one more line\n" * 9, "slide"),
        code("picture", result(image_png=png(800, 800))),
    ],
}


@pytest.mark.browser
@pytest.mark.parametrize("cells", TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_does_not_fit_is_found(chromium, tmp_path, cells):
    cells = cells if isinstance(cells, list) else [cells]
    deck = slides.build(write(tmp_path, prose(FITS, "slide"), *cells), tmp_path)
    with open_deck(chromium, deck) as page:
        found = [overflow(page) for _ in steps(page)]
    assert found[0] == [] and found[-1] != []


@pytest.mark.browser
def test_what_a_slide_asks_from_elsewhere_is_found(chromium, tmp_path):
    source = "## Out\n\n<img src='http://example.invalid/a.png' alt='a'>"
    deck = slides.build(write(tmp_path, prose(source, "slide")), tmp_path)
    with open_deck(chromium, deck) as page:
        assert page.outside == ["http://example.invalid/a.png"]


@pytest.mark.browser
def test_the_speaker_sees_the_notes(chromium, deck):
    with open_deck(chromium, deck) as page:
        with page.expect_popup() as popup:
            page.keyboard.press("s")
        notes = popup.value.locator(".speaker-controls-notes .value")
        notes.get_by_text("minute 0").wait_for()
        page.keyboard.press("ArrowRight")
        notes.get_by_text("Ask first.").wait_for()


@pytest.mark.browser
def test_the_handout_shows_stills_for_clips_and_every_note_whole(chromium, deck):
    with open_deck(chromium, deck, "?print-pdf") as page:
        page.wait_for_selector(".pdf-page")
        assert page.locator("video").is_hidden()
        assert page.get_by_alt_text("The last moment of the clip").is_visible()
        low = "(items) => Math.max(...items.map((it) => it.getBoundingClientRect().bottom - it.closest('.pdf-page').getBoundingClientRect().top))"
        assert page.locator(".pdf-page .frame :is(p, li, pre, img, table)").evaluate_all(low) <= 720
        assert page.locator(".speaker-notes-pdf").count() == 7
        assert page.locator(".speaker-notes-pdf").evaluate_all(
            "(notes) => notes.every((it) => it.scrollHeight <= it.clientHeight)"
        )
        assert page.outside == [] and page.complaints == []
