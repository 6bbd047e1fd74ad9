"""The reader's own text in pages: it travels, widgets show it with Python's numbers; memory comes back."""

import statistics

import onnxruntime
import psutil
import pytest
import torch
from jupyter_lab import open_page
from live import SCRIPTS, TWO_FRAMES, Live, wait_until
from page_scripts import lend, model

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.course import widgets
from linformer_from_scratch.course.widgets import head_picker, projection_explorer, reading, sentence
from linformer_from_scratch.course.widgets.page import host
from linformer_from_scratch.course.widgets.page import page as page_of
from linformer_from_scratch.course.widgets.reading import OwnHeads
from linformer_from_scratch.course.widgets.sentence import rounded
from linformer_from_scratch.pretrained import SENTENCES, AttentionMaps, attention_maps, tokenize
from linformer_from_scratch.pretrained.tokens import pieces

pytestmark = [pytest.mark.browser, pytest.mark.slow]

OWN = "My dog sleeps all day because it is old, and “Größe” 😀 is no dog’s word."
LONG = "The committee met again on Tuesday and could not agree on the budget for the new bridge. " * 40
FIVE = ("AttentionExplorer", "HeadGallery", "RankSlider", "HeadPicker", "ProjectionExplorer")
FIRST, WAKES, GIVEN_BACK = 5, 20, 100e6  # bytes that twenty wakes may keep beyond what the first five do
LIMITS_S = {128: 1, 512: 5}  # for a text, on a loaded machine
CLOSE = 1e-3
NAP = "encoder.wake().then(() => encoder.read('a text', 128, 'maps')).then(encoder.sleep)"
REFUSED = """Object.defineProperty(window, "sessionStorage", { get() { throw new Error("refused"); } })"""
# Tokens, their titles, and which way the text and the field run.
LISTED = """root => {
    const list = root.querySelector(".lw-text"), words = [...list.children];
    const told = words.filter((word) => word.title === "unknown to the model");
    const ways = [list, root.querySelector("input[type=text]")].map((it) => getComputedStyle(it).direction);
    return [words.map((word) => word.textContent), told.map((word) => word.textContent), ...ways];
}"""
DAMAGED = 'lent["piece_3"] = {"file": "weights.bin", "base64": "AAAA"};'
# Seconds for each text; they begin with different words, so that none is known yet.
SECONDS = """async ([texts, most]) => {
    const seconds = [];
    for (const text of texts) {
        const start = performance.now();
        await encoder.read(text, most, "heads");
        seconds.push((performance.now() - start) / 1000);
    }
    return seconds;
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A page with the five widgets, and the model's scripts beside it."""
    folder = tmp_path_factory.mktemp("own_text")
    shown = [getattr(widgets, name)() for name in FIVE]
    lent = lend(folder / "model") | {"folder": "model"}
    (folder / "page.html").write_text(page_of(shown, model=lent), encoding="utf-8")
    (folder / "next").mkdir()
    page = page_of(shown[:3], model=lent | {"folder": "../model"})
    (folder / "next" / "page.html").write_text(page, encoding="utf-8")
    (folder / "alone.html").write_text(page_of(shown[:1]), encoding="utf-8")
    (folder / "bare.html").write_text(f"<!DOCTYPE html><script>{host(lent)}</script>", encoding="utf-8")
    return folder


@pytest.fixture
def opened(browser, folder):
    """The page, all of it alive."""
    with open_page(browser, 1280, 900, at=folder / "page.html") as page:
        yield page, [Live(page, page.locator(".lw").nth(i)) for i in range(len(FIVE))]
        assert page.outside == []


@pytest.fixture
def graph(monkeypatch):
    """Python's widgets with the page's graph in the place of the exact model; what it makes of a text."""
    session = onnxruntime.InferenceSession(model() / "exact.onnx")

    def heads(text, most):
        ids = tokenize(text, most)
        q, k, v = map(torch.from_numpy, session.run(["q", "k", "v"], {"ids": ids[None].numpy()}))
        return OwnHeads(pieces(text, most), torch.stack([q, k, v]))

    def maps(text, most=sentence.MOST_TOKENS):
        tokens, (q, k, _) = heads(text, most)
        return AttentionMaps(tokens, attention_weights(q, k))

    for module in (reading, head_picker, projection_explorer):
        monkeypatch.setattr(module, "read_heads", lambda text: heads(text, reading.MOST))
    monkeypatch.setattr(sentence, "attention_maps", maps)
    caches = head_picker.analysed, projection_explorer.errors_of
    caches += projection_explorer.stored_head, projection_explorer.real_map, projection_explorer.best_factors
    for cached in caches:
        cached.cache_clear()
    yield maps
    for cached in caches:
        cached.cache_clear()


def wake(page):
    page.get_by_role("button", name="Wake the model").first.click()
    page.locator(".lw input[type=text]:visible").first.wait_for()


def type_in(live, text):
    """Type a text into a widget, and wait until it is read or refused."""
    field = live.root.locator("input[type=text]")
    field.fill(text)
    field.press("Enter")
    settle(live)


def settle(live):
    live.page.evaluate(TWO_FRAMES)
    wait_until(lambda: "The model reads" not in live.words(), "the text to be read")


def shown_in(live):
    """The text that a widget's field holds, once it is read."""
    settle(live)
    return live.root.locator("input[type=text]").input_value()


def widgets_of(page):
    return [Live(page, root) for root in page.locator(".lw").all()]


def test_five_widgets_show_the_readers_text_with_the_numbers_of_the_same_graph_in_python(opened, graph):
    page, all_five = opened
    wake(page)
    type_in(all_five[2], OWN)
    for live in all_five:
        assert shown_in(live) == OWN and live.root.locator(".lw-refused").count() == 0
        assert live.words().startswith("Unknown to the model: “😀”. ")
        assert live.differences(live.as_python(), CLOSE) == []
    explorer = all_five[-1]
    for kind in ("mean", "strided", "gaussian"):
        explorer.root.get_by_label("E and F").select_option(widgets.projection_explorer.KINDS[kind])
        assert explorer.differences(explorer.as_python(), CLOSE) == []
    assert page.complaints == []


def test_the_maps_are_close_to_those_of_the_exact_model(graph):
    exact = rounded(attention_maps(OWN)).weights.float()
    assert (graph(OWN).weights - exact).abs().sum(dim=-1).mean() / 2 < 0.05


def test_limits_and_refusals_are_those_of_python(opened):
    page, (explorer, _, slider, *_) = opened
    wake(page)
    for text in ("", " ", "hi", "\u200b", "constructor", LONG):
        for live in (explorer, slider):
            type_in(live, text)
            python = live.as_python()
            assert live.words().startswith(python.refused or python.facts["remark"]), text
            assert live.root.locator(".lw-refused").count() == bool(python.refused)
    assert f"tokens; this picture shows the first {sentence.MOST_TOKENS}. “" in explorer.words()
    assert f"tokens; this picture shows the first {reading.MOST}. Rank" in slider.words()
    slider.root.get_by_label("Map", exact=True).select_option("random softmax")
    page.evaluate(TWO_FRAMES)
    assert slider.words().startswith("Rank") and slider.as_python().words.startswith("Rank")
    explorer.root.get_by_label("Sentence").select_option(index=0)
    page.evaluate(TWO_FRAMES)
    assert explorer.root.get_by_placeholder("its first 40 tokens are shown").input_value() == ""
    assert page.complaints == []


@pytest.mark.parametrize("text", SCRIPTS)
def test_every_script_runs_its_way_and_unknown_words_are_shown_as_they_are(opened, graph, text):
    page, (explorer, _, slider, *_) = opened
    wake(page)
    type_in(explorer, text)
    assert shown_in(slider) == text
    tokens, unknown, *ways = slider.root.evaluate(LISTED)
    assert tokens == pieces(text) and list(dict.fromkeys(unknown)) == SCRIPTS[text]
    assert explorer.root.locator(".lw-words bdi").first.inner_text() == SCRIPTS[text][0]
    assert ways == 2 * ["rtl" if text[0] in "مש" else "ltr"]
    for live in (explorer, slider):
        assert live.differences(live.as_python(), CLOSE) == []


def test_a_text_travels_from_page_to_page_until_it_is_forgotten(opened, folder):
    page, (first, *_) = opened
    wake(page)
    type_in(first, OWN)
    page.goto((folder / "next" / "page.html").as_uri())
    all_three = widgets_of(page)
    for live in all_three:  # the model wakes by itself
        wait_until(lambda live=live: shown_in(live) == OWN, "the text")
        assert live.words().startswith("Unknown to the model: “😀”. ")
    before = all_three[0].root.get_by_label("Sentence").evaluate("it => it.selectedIndex")
    all_three[0].root.get_by_label("Sentence").select_option(index=1)
    page.evaluate(TWO_FRAMES)
    assert before > 1 and shown_in(all_three[1]) == OWN != shown_in(all_three[0])
    page.get_by_role("button", name="Forget my text").first.click()
    for live, kind in zip(all_three, FIVE, strict=False):
        assert shown_in(live) != OWN and "your own" not in live.root.inner_text()
        chosen = {"sentence": SENTENCES[1]} if live is all_three[0] else {}
        assert live.words() == getattr(widgets, kind)(**chosen).words
    page.reload()
    page.locator(".lw input[type=text]:visible").first.wait_for()
    assert all(shown_in(live) != OWN for live in widgets_of(page))
    page.goto((folder / "bare.html").as_uri())
    page.evaluate("encoder.sleep()")
    page.goto((folder / "page.html").as_uri())
    assert widgets_of(page)[0].root.get_by_role("button", name="Wake the model").is_visible()
    assert page.complaints == []


def test_a_page_that_comes_back_as_it_was_left_takes_up_what_has_changed(opened):
    page, (first, *_) = opened
    wake(page)
    page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))")
    page.get_by_role("button", name="Wake the model").first.wait_for()
    page.evaluate("own => sessionStorage.setItem('linformer', JSON.stringify({ own, isAwake: true }))", OWN)
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    wait_until(lambda: shown_in(first) == OWN, "the text")


def test_where_storage_is_refused_a_text_is_shown_in_this_page_alone(browser, folder):
    with open_page(browser) as page:
        page.add_init_script(REFUSED)
        page.goto((folder / "next" / "page.html").as_uri())
        wake(page)
        first, second, _ = widgets_of(page)
        type_in(first, OWN)
        assert shown_in(second) == OWN
        page.reload()
        assert widgets_of(page)[0].root.get_by_role("button", name="Wake the model").is_visible()
        assert page.complaints == []


def test_a_page_without_the_model_says_where_ones_own_text_works(browser, folder):
    with open_page(browser, at=folder / "alone.html") as page:
        live = Live(page, page.locator(".lw"))
        assert "works in the book" in live.root.locator(".lw-control", has_text="Your own").inner_text()
        assert live.root.locator("input[type=text]:visible, .lw-wide button:visible").count() == 0


def test_waking_can_be_stopped_and_what_fails_is_said_in_a_sentence(browser, folder):
    with open_page(browser, at=folder / "page.html") as page:
        live = Live(page, page.locator(".lw").nth(0))
        row = live.root.locator(".lw-control", has_text="Your own")
        row.get_by_role("button", name="Wake").click()
        row.get_by_role("progressbar").wait_for()
        row.get_by_role("button", name="Stop").click()
        assert row.get_by_role("progressbar").count() == 0 and page.workers == []
        page.route("**/piece_3.js", lambda route: route.fulfill(body=DAMAGED))
        row.get_by_role("button", name="Wake").click()
        row.get_by_text("model/piece_3.js holds 15 characters, expected 4194315").wait_for()
        page.unroute("**/piece_3.js")
        page.route("**/piece_2.js", lambda route: route.abort())
        row.get_by_role("button", name="Wake").click()
        row.get_by_text("model/piece_2.js did not load").wait_for()
        page.unroute("**/piece_2.js")
        wake(page)


def test_the_seconds_for_128_and_512_tokens(browser, folder, record_property):
    with open_page(browser, at=folder / "bare.html") as page:
        page.evaluate("encoder.wake()")
        for n, limit in LIMITS_S.items():
            seconds = page.evaluate(SECONDS, [[f"{i} {LONG}" for i in range(5)], n])
            ms = 1000 * statistics.median(seconds)
            record_property("report", f"page's model: {n} tokens in {ms:.0f} ms")
            assert min(seconds) <= limit


def test_twenty_wakes_give_their_memory_back(browser, folder, record_property):
    """Bytes of all of the browser's processes, after the first wakes and after twenty more."""
    with open_page(browser, at=folder / "bare.html") as page:
        session = page.context.new_cdp_session(page)
        kept = []
        for _ in range(FIRST + WAKES):
            page.evaluate(NAP)
            session.send("HeapProfiler.collectGarbage")
            kept.append(memory_of_the_browser())
        assert page.workers == [] and page.complaints == []
    more = kept[-1] - kept[FIRST - 1]
    record_property("report", f"page's model: {more / 1e6:+.0f} MB after {WAKES} wakes")
    assert more <= GIVEN_BACK


def memory_of_the_browser():
    """Bytes that no other process shares."""
    own = psutil.Process().children(recursive=True)
    return sum(one.memory_full_info().uss for one in own if "chrom" in one.name())


def test_leaving_the_page_ends_the_worker(browser, folder):
    with open_page(browser, at=folder / "bare.html") as page:
        page.evaluate("encoder.wake()")
        assert len(page.workers) == 1
        page.goto((folder / "alone.html").as_uri())
        wait_until(lambda: page.workers == [], "the worker to end")
