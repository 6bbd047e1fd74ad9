"""The front page: it shows what the encoder finds, paints at once, moves, and is asked; its links lead."""

import math
import re
import runpy
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
import torch
from book import front, site
from book.shelf import Shelf
from jupyter_lab import barriers, open_page
from live import wait_until
from page_scripts import lend, model
from PIL import Image, ImageChops, ImageStat
from torch.nn import functional

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.course import front_page
from linformer_from_scratch.course.ledger import KINDS, by_kind, ledger
from linformer_from_scratch.course.widgets.live import source
from linformer_from_scratch.pretrained.bootstrap import paired_bootstrap
from linformer_from_scratch.pretrained.lengthwise import window_encoder
from linformer_from_scratch.pretrained.network import pool
from linformer_from_scratch.pretrained.sentence_encoder import full_encoder, silent_encoder
from linformer_from_scratch.pretrained.tokens import tokenize
from linformer_from_scratch.pretrained.weights import MAX_TOKENS
from linformer_from_scratch.pretrained.windows import windows

PHONE, LAPTOP = ({"width": 390, "height": 844}, {"width": 1280, "height": 720})  # CSS pixels
AT_FIRST_KB, PAINT_MS = 500, 300  # before anybody acts, from disk, on idle cores
LOADED = 4  # how much slower two test workers may make it
CLOSE = {"rtol": 1e-3, "atol": 1e-3}
OWN = """  Our library opens at nine, except on Mondays! “Größe” 😀 is no dog's word…
You may borrow up to twelve books (at a time). Late returns cost ten cents a day.\x85Is it silent there?
The reading room on the second floor is; laptops are welcome in the café.  Lost your card? No. """
LONG = " ".join(f"Number {i} is a sentence of a text that is too long." for i in range(99))
ASK = "([text, question, k]) => frontPage.ask(text, question, k)"
MANUAL = front_page.texts()[0]
N = len(tokenize(MANUAL.text))
WAYS = [*map(str, front_page.SLOTS), "exact"]  # by the slider's place


def in_a_browser(test):
    """What takes long."""
    return pytest.mark.slow(pytest.mark.browser(test))


every_text = pytest.mark.parametrize("one", front_page.texts(), ids=lambda one: one.name)

# What a side shows: ranks and sentences, and which of them is marked.
LISTS = """() => [...document.querySelectorAll(".experiment ol")].map((list) =>
    [...list.children].map((line) => [line.value, line.textContent, line.classList.contains("answer")]))"""
# Top and bottom of what is lit in each map, in rows of tokens.
LIT = """n => [...document.querySelectorAll(".experiment .seen")].map((map) => {
    const [all, lit] = ["canvas", "i"].map((one) => map.querySelector(one).getBoundingClientRect());
    return [lit.top, lit.bottom].map((y) => Math.round(n * (y - all.top) / all.height));
})"""
TOPS = "all => all.map((one) => one.getBoundingClientRect().top + scrollY)"
DRAWN = """new MutationObserver((_, watch) => {
    if (!document.querySelector(".experiment li")) return;
    window.drawn = performance.now();
    watch.disconnect();
}).observe(document, { childList: true, subtree: true });"""


# The numbers.


@every_text
def test_sentences_and_their_tokens_are_the_text(one):
    lines, ids = front_page.sentences(one.text), tokenize(one.text, None)
    assert " ".join(lines) == one.text and len(ids) <= 512
    for line, (start, end) in zip(lines, front_page.spans(one.text), strict=True):
        assert ids[start:end].tolist() == tokenize(line).tolist()[1:-1]


@every_text
def test_every_question_has_one_sentence_that_answers(one):
    for question in one.questions:
        assert front_page.sentences(one.text)[front_page.answer(one, question)]


def test_a_score_is_the_cosine_of_question_and_sentence_read_within_the_text():
    question, line = 8, 3
    ids, (start, end) = tokenize(MANUAL.text), front_page.spans(MANUAL.text)[line]
    asked = full_encoder().encode(list(MANUAL.questions)[question])
    for way, encoder in {"exact": full_encoder(), "16": window_encoder(16)}.items():
        with torch.no_grad():
            vector = pool(encoder(ids[None])[:, start:end])[0]
        assert front_page.scores(0)[way][question, line] == pytest.approx(float(asked @ vector), abs=1e-5)


def test_of_104_questions_slots_and_no_attention_find_nearly_as_many_as_exact_attention():
    found, places = front_page.found(), front_page.all_ranks()
    assert front_page.asked() == 104 == len(places["exact"])
    assert found["exact"] == 86 and found[front_page.SILENT] == 83 and found[front_page.ALONE] == 94
    assert all(84 <= found[way] <= 86 for way in (front_page.SINGLE, *map(str, front_page.SLOTS)))
    single, exact = (1 / places[way] for way in (front_page.SINGLE, "exact"))
    assert paired_bootstrap(single, exact).high < 0  # the count cannot tell it apart, the place can


def test_without_attention_no_token_sees_another():
    ids = tokenize(MANUAL.text)[None, :40]
    edited = ids.clone()
    edited[0, 20] = 1000
    with torch.no_grad():
        moved = (silent_encoder()(ids) != silent_encoder()(edited)).any(dim=-1)[0]
    assert moved.tolist() == [place == 20 for place in range(40)]


def test_sentences_that_score_alike_are_found_at_the_mean_of_their_places():
    one = front_page.texts()[0]
    equal = torch.ones(len(one.questions), len(front_page.sentences(one.text)))
    assert front_page.hits(equal, one) == 0  # of more than twice BEST, none is among the first


def test_with_a_slot_for_each_token_strip_and_square_are_one():
    of_slots, exact = (front_page.vectors(one, MANUAL.text) for one in (window_encoder(N), full_encoder()))
    torch.testing.assert_close(of_slots, exact, rtol=0, atol=1e-5)
    assert torch.equal(windows(torch.tensor([N]), N, N)[0], torch.eye(N))


def test_the_first_layers_strip_is_what_the_encoder_with_slots_computes():
    maps = front_page.maps()
    assert maps["exact"].shape == (N, N)
    for k in front_page.SLOTS:
        assert maps[str(k)].shape == (N, k)
        torch.testing.assert_close(maps[str(k)].sum(dim=-1), torch.ones(N))
    assert front_page.shaded(maps["16"]).max() == front_page.SHADES - 1


def test_the_map_of_the_course_has_every_chapter_once_and_the_heading_counts_the_ledger():
    told = site.written() | {"solutions": True}
    shown = [one["stem"] for chapters in told["acts"].values() for one in chapters]
    assert sorted(shown) == [path.stem for path in site.chapters()] and shown[-1] == "11_distributed"
    kinds = by_kind(ledger())
    assert told["verdict"].startswith(f"{len(ledger())} claims tested: {len(kinds['wrong'])} wrong, ")
    assert front.COUNTED.keys() <= KINDS.keys()


def test_where_it_is_published_a_link_to_it_shows_a_picture(monkeypatch):
    image = 'property=og:image: "https://owner.github.io/name/_static/front/preview.png"'
    for repository in ("", "Owner/name"):
        monkeypatch.setenv("REPOSITORY", repository)
        page = site.filled(site.HERE / "pages" / "index.md", site.written() | {"solutions": True})
        assert ("og:image" in page) == (image in page) == bool(repository)


def test_the_readmes_picture_is_small_moves_for_six_seconds_and_begins_with_the_whole_square():
    with Image.open(front.PICTURE) as moving:
        ms, widths = 0, []
        for place in range(moving.n_frames):
            moving.seek(place)
            moving.load()
            ms += moving.info["duration"]
            widths.append(orange(moving))
    assert front.PICTURE.stat().st_size < 700_000 and 5500 < ms <= 6500
    assert widths[0] == max(widths) > 4 * widths[-1]
    readme = (site.ROOT / "README.md").read_text("utf-8")
    assert f"({front.PICTURE.relative_to(site.ROOT).as_posix()})" in readme


def orange(picture):
    """How many pixels of the strip's colour it has where maps stand, between the lists."""
    pixels = np.asarray(picture.convert("RGB").crop((470, 0, 725, picture.height))).astype(int)
    return int((pixels[..., 0] - pixels[..., 2] > 40).sum())


# In a browser.


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """The front page and the model, without most of what it leads to."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("book")
    told = site.written() | {"solutions": True}
    for name in ("index.md", "ledger.md"):
        (source / name).write_text(site.filled(site.HERE / "pages" / name, told), encoding="utf-8")
    (source / "chapters").mkdir()
    front.write(out / "_static" / "front")
    Shelf(out / "_static" / "live", "").close(lend(out / site.MODEL) | {"folder": f"../../{site.MODEL}"})
    command = [sys.executable, "-m", "sphinx", "-Q", "-c", str(site.HERE), str(source), str(out)]
    subprocess.run(command, check=True)
    return out / "index.html"


@pytest.fixture
def page(index, browser):
    """The front page, which stands still; it must not complain."""
    with open_page(browser, 1280, 720) as page:
        page.emulate_media(reduced_motion="reduce")
        page.goto(index.as_uri())
        wait_until(lambda: page.locator(".experiment li").count(), "sentences")
        yield page
        assert (page.outside, page.complaints) == ([], [])


@in_a_browser
def test_both_sides_show_the_best_sentences_and_where_the_answer_comes(page):
    lines, scores = front_page.sentences(MANUAL.text), front_page.recorded()["scores"]
    for question in [front_page.OPENING[0], *list(MANUAL.questions)[9:13]]:
        row, answer = list(MANUAL.questions).index(question), front_page.answer(MANUAL, question)
        for k in (16, 4, 128):
            page.get_by_label("Slots k").fill(str(front_page.SLOTS.index(k)))
            for seen, way in zip(page.evaluate(LISTS), ("exact", str(k)), strict=True):
                order = sorted(range(len(lines)), key=lambda i, way=way, row=row: -scores[way][row][i])
                shown = order[:3] if answer in order[:3] else [*order[:3], answer]
                marks = [" ✓" if i == answer else "." for i in shown]
                ranked = [(order.index(i) + 1, mark, i) for i, mark in zip(shown, marks, strict=True)]
                said = [[rank, f"{rank}{mark} {lines[i]}", i == answer] for rank, mark, i in ranked]
                assert seen == said, (question, k)
        press(page, "Next question")
    assert page.locator(".experiment li").first.aria_snapshot().count('img "the answer"') == 1


@in_a_browser
def test_one_sentence_says_what_happens_as_it_happens(page):
    slider, says = page.get_by_label("Slots k"), page.locator(".happens [role=status]")
    for question in (front_page.OPENING[0], "How do I make the machine stay on longer?"):
        page.get_by_label("Ask").fill(question)
        row = list(MANUAL.questions).index(question)
        places = {way: int(front_page.ranks(front_page.scores(0)[way], MANUAL)[row]) for way in WAYS}
        for at, way in enumerate(WAYS):
            slider.fill(str(at))
            before, after, k = places["exact"], places[way], N if way == "exact" else way
            moved = f"{'falls' if after > before else 'rises'} from {nth(before)} to {nth(after)}"
            kept = f"With {k} slots the answer {moved if after != before else f'stays {nth(after)}'}."
            one = f"With a slot for each token, strip and square are one: the answer is {nth(after)} in both."
            assert says.inner_text() == (one if way == "exact" else kept)
            assert slider.get_attribute("aria-valuetext") == f"{k} slots, answer {nth(after)}"
    exact, slots = page.evaluate(LISTS)
    assert exact == slots and says.get_attribute("aria-live") == "polite"


def nth(rank):
    """A place in words."""
    return ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"][rank - 1]


@in_a_browser
def test_a_sentence_its_rows_and_a_rows_word_belong_together(page):
    lines, spans = front_page.sentences(MANUAL.text), front_page.spans(MANUAL.text)
    named = page.locator(".named")
    answer = front_page.answer(MANUAL, front_page.OPENING[0])
    assert page.evaluate(LIT, N) == [list(spans[answer])] * 2
    second = page.locator(".exact li").nth(1)
    second.hover()
    (place,) = (i for i, line in enumerate(lines) if second.inner_text().endswith(line))
    assert page.evaluate(LIT, N) == [list(spans[place])] * 2 != [list(spans[answer])] * 2
    shown = page.locator(".experiment li").all_inner_texts()
    pointed = [line for line in shown if line.endswith(lines[place])]
    assert page.locator("li.pointed").all_inner_texts() == pointed
    tokens = front_page.recorded()["tokens"]
    (at,) = (i for i in range(2, N) if tokens[i - 2 : i + 1] == ["des", "##cal", "##ing"])
    (place,) = (i for i, (start, end) in enumerate(spans) if start <= at < end)
    for side in (".exact", ".slots"):
        box = page.locator(f"{side} canvas").bounding_box()  # right of it is the square that the strip was
        page.mouse.move(box["x"] + 150, box["y"] + (at + 0.5) / N * box["height"])
        assert page.evaluate(LIT, N) == [list(spans[place])] * 2
        assert named.inner_text() == f"“descaling”: {lines[place]}"
    page.mouse.move(2, 2)
    assert named.inner_text() == "" and page.evaluate(LIT, N) == [list(spans[answer])] * 2


@in_a_browser
def test_the_address_keeps_what_is_asked_and_shows_it_again(page, index, browser):
    page.get_by_label("Ask").fill("Is it safe for kids?")
    page.get_by_label("Slots k").fill("0")
    wait_until(lambda: "k=4" in page.evaluate("location.href"), "the address")
    with open_page(browser, at=page.url) as other:
        wait_until(lambda: other.locator(".experiment li").count(), "sentences")
        assert other.get_by_label("Ask").input_value() == "Is it safe for kids?"
        assert other.locator(".experiment output").inner_text() == "4"
        assert other.evaluate(LISTS) == page.evaluate(LISTS)
    page.locator("textarea").fill(OWN)
    wait_until(lambda: "text=" in page.evaluate("location.href"), "the address")
    with open_page(browser, at=page.url) as other:
        other.locator(".seconds").get_by_text("Nobody has recorded").wait_for()
        assert other.locator("textarea").input_value() == page.locator("textarea").input_value()
    page.locator("textarea").fill(LONG)
    empty = f"{index.as_uri()}#"  # it promises nothing
    wait_until(lambda: page.evaluate("location.href") == empty, "an empty address")


@in_a_browser
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_the_first_screen_has_question_maps_handle_and_answers_and_nothing_below_moves(page, size):
    page.set_viewport_size(size)
    firsts = [".experiment [name=question]", ".happens", ".exact .seen", ".slots .seen", ".handle"]
    for first in (*firsts, ".exact li >> nth=0", ".slots li >> nth=0"):
        box = page.locator(first).bounding_box()
        lines = 20 if "li" in first else box["height"]
        assert box["y"] >= 0 and box["y"] + lines <= size["height"], first
    below, tops = page.locator(".experiment :is(ol, .seen), .tally, .verdicts"), set()
    for at in reversed(range(len(WAYS))):
        page.get_by_label("Slots k").fill(str(at))
        tops.add(tuple(below.evaluate_all(TOPS)))
    page.locator("textarea").fill(OWN)
    tops.add(tuple(below.evaluate_all(TOPS)))
    wake(page)
    page.locator(".seconds").get_by_text("On this machine").wait_for()
    tops.add(tuple(below.evaluate_all(TOPS)))
    longest = "One run on this machine: 0.00 s exactly, 0.00 s through slots. Cut at 512 of 1,234 tokens."
    for said in ("", longest):
        page.locator(".seconds").evaluate("(line, said) => { line.textContent = said }", said)
        tops.add(tuple(below.evaluate_all(TOPS)))
    assert len(tops) == 1


@in_a_browser
def test_tab_reaches_the_question_before_the_list_of_pages(page):
    for _ in range(4):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "question":
            break
    else:
        raise AssertionError("four stops, and no question")
    assert page.locator(".sidebar-drawer").bounding_box()["x"] == 0


@in_a_browser
def test_the_readmes_picture_is_this_page(index, browser):
    tool = runpy.run_path(str(site.ROOT / "chapters" / "scenes" / "front_page.py"))
    with open_page(browser, 1280, 800, at=index) as page:
        drawn = tool["frames"](page)
    with Image.open(tool["PICTURE"]) as moving:
        for place, (now, _) in ((0, drawn[0]), (moving.n_frames - 1, drawn[-1])):
            moving.seek(place)
            assert moving.size == now.size, "run python chapters/scenes/front_page.py"
            apart = ImageStat.Stat(ImageChops.difference(moving.convert("RGB"), now)).mean
            assert max(apart) < 4, "run python chapters/scenes/front_page.py"


@in_a_browser
def test_it_is_there_at_once_small_and_moves_unless_one_wants_it_still(index, browser, record_property):
    with open_page(browser, 1280, 720) as page:
        page.add_init_script(DRAWN)
        page.goto(index.as_uri())
        output = page.locator(".experiment output")
        wait_until(lambda: output.inner_text() == "16", "the strip to grow thin")
        drawn = page.evaluate("drawn")
        assert drawn < LOADED * PAINT_MS
        assert (page.outside, page.complaints) == ([], [])
        page.emulate_media(reduced_motion="reduce")
        page.goto(index.as_uri())
        wait_until(lambda: page.locator(".experiment li").count(), "sentences")
        assert output.inner_text() == "16"
    kilobytes = sum(file.stat().st_size for file in page.files) / 1000
    record_property("report", f"front page: {kilobytes:.0f} kB, drawn after {drawn:.0f} ms")
    assert any(file.name == "host.js" for file in page.files) and kilobytes < AT_FIRST_KB


def python_finds(way, text, question):
    """Scores of the sentences and the map, by the page's own graphs."""
    ids = tokenize(text, MAX_TOKENS)
    n, (layer, head) = len(ids), front_page.HEAD
    E = {} if way == "exact" else {"E": windows(torch.tensor([n]), min(way, n), n)[0].numpy()}
    graph = onnxruntime.InferenceSession(model() / ("slots.onnx" if E else "exact.onnx"))
    hidden, q, k = map(torch.from_numpy, graph.run(["hidden", "q", "k"], {"ids": ids[None].numpy(), **E}))
    spans = [(start, min(end, n - 1)) for start, end in front_page.spans(text) if start < n - 1]
    vectors = functional.normalize(torch.stack([hidden[0, a:b].mean(0) for a, b in spans]), dim=-1)
    exact = onnxruntime.InferenceSession(model() / "exact.onnx")
    (asked,) = exact.run(["vector"], {"ids": tokenize(question)[None].numpy()})
    shades = front_page.shaded(attention_weights(q[layer, head], k[layer, head]))
    return spans, (vectors @ torch.from_numpy(asked[0])).numpy(), shades.numpy().ravel()


def press(page, name):
    page.get_by_role("button", name=name).click()


def wake(page):
    """Wake the page's model."""
    press(page, "Wake the model")
    page.get_by_role("button", name="Put it to sleep").wait_for()


@in_a_browser
def test_the_readers_text_is_found_in_as_python_finds_in_it(page):
    question = "What is the fine for a book that comes back late?"
    wake(page)
    for text, k in ((OWN, 8), (OWN, 128), (OWN, math.inf), (LONG, 16)):
        found = page.evaluate(ASK, [text, question, k])
        assert found["sentences"] == front_page.sentences(text)[: len(found["spans"])]
        for half, key in zip(found["halves"], ("exact", k), strict=True):
            spans, scores, shades = python_finds(key, text, question)
            assert list(map(tuple, found["spans"])) == spans
            np.testing.assert_allclose(half["scores"], scores, **CLOSE)
            assert np.argsort(half["scores"]).tolist() == np.argsort(scores).tolist()
            differs = np.abs(np.subtract(half["weights"], shades, dtype=int))
            assert differs.max() <= 1 and differs.mean() < 0.01


@in_a_browser
def test_awake_it_answers_what_one_types_and_asleep_again_what_was_recorded(page):
    lines, says = front_page.sentences(OWN), page.locator(".seconds")
    ask, text = page.get_by_label("Ask"), page.locator("textarea")
    wake(page)
    says.get_by_text("On this machine").wait_for()
    text.fill(OWN)
    ask.fill("What is the fine?")
    wait_until(lambda: any("ten cents" in line[1] for line in page.evaluate(LISTS)[0]), "an answer")
    page.get_by_label("Slots k").fill("1")
    wait_until(lambda: page.locator(".experiment output").inner_text() == "8", "eight slots")
    exact, slots = (python_finds(way, OWN, "What is the fine?")[1] for way in ("exact", 8))
    for seen, scores in zip(page.evaluate(LISTS), (exact, slots), strict=True):
        best = np.argsort(-scores)
        wanted = [*best[:3], *([] if np.argmax(exact) in best[:3] else [np.argmax(exact)])]
        assert [line[1].partition(" ")[2] for line in seen] == [lines[i] for i in wanted]
    text.fill(LONG)
    says.get_by_text("cut at 512").wait_for()
    for field, refusal in ((ask, "The question is empty"), (text, "The text is empty")):
        ask.fill("Who?")
        field.fill("")
        says.get_by_text(refusal).wait_for()
    press(page, "Put it to sleep")
    says.get_by_text("Nobody has recorded").wait_for()
    press(page, "Back to our text")
    wait_until(lambda: page.locator(".experiment.unanswered").count() == 0, "what was recorded")
    assert text.input_value() == MANUAL.text
    wait_until(lambda: page.workers == [], "the model's end")


@in_a_browser
def test_the_edge_of_the_strip_is_a_handle_up_to_the_whole_square(page):
    handle, said = page.locator(".handle"), page.locator(".experiment output")
    box, strip = handle.bounding_box(), page.locator(".slots canvas").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(strip["x"] + strip["height"], box["y"])
    assert said.inner_text() == str(N)
    exact, slots = (page.locator(f"{side} canvas").bounding_box() for side in (".exact", ".slots"))
    assert slots | {"x": 0} == exact | {"x": 0}
    page.mouse.move(strip["x"] + 64 * strip["height"] / N, box["y"])
    assert said.inner_text() == "64"
    page.mouse.up()
    page.keyboard.press("ArrowLeft")
    assert said.inner_text() == "32"


@in_a_browser
def test_the_pages_windows_are_pythons(browser):
    with open_page(browser) as page:
        page.add_script_tag(content=source("maths"))
        for n, k in ((2, 2), (3, 4), (4, 4), (5, 4), (9, 3), (99, 16), (511, 128), (512, 4)):
            seen = page.evaluate("([n, k]) => [...windows(n, k)]", [n, k])
            assert torch.equal(torch.tensor(seen).view(k, n), windows(torch.tensor([n]), k, n)[0]), (n, k)


@in_a_browser
def test_where_a_script_of_the_model_is_missing_it_says_so_and_shows_what_was_recorded(page):
    page.set_viewport_size(PHONE)
    page.route("**/piece_2.js", lambda route: route.abort())
    press(page, "Wake the model")
    page.get_by_text("model/piece_2.js did not load").wait_for()
    page.get_by_label("Ask").fill("Who?")
    page.locator(".seconds").get_by_text("Nobody has recorded an answer").wait_for()
    press(page, "Next question")
    wait_until(lambda: page.locator(".experiment.unanswered").count() == 0, "what was recorded")
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    page.complaints.clear()  # the browser's, of the script


@in_a_browser
def test_every_claim_is_a_sentence_that_leads_to_its_line_and_no_wrong_one_is_cut(page):
    page.set_viewport_size(PHONE)
    claims = page.locator(".verdicts a")
    links = claims.evaluate_all("all => all.map((one) => [one.getAttribute('href'), one.textContent])")
    assert sorted(links) == sorted([f"ledger.html#claim-{claim.id}", claim.claim] for claim in ledger())
    cut = claims.evaluate_all("all => all.map((one) => one.scrollWidth > one.clientWidth)")
    wrong = len(by_kind(ledger())["wrong"])
    assert not any(cut[:wrong]) and any(cut[wrong:])
    claims.first.click()
    wait_until(lambda: page.locator("tr:target").count() == 1, "its line")
    assert re.search(r"ledger.html#claim-\w+", page.url)


@in_a_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barrier_asleep_or_awake(page, scheme):
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme=scheme)
    assert barriers(page, scheme) == []
    wake(page)
    page.locator("textarea").fill(OWN)
    page.locator(".seconds").get_by_text("On this machine").wait_for()
    assert barriers(page, scheme) == []
