"""Two models that learn to write: their updates are PyTorch's, one peeks, none learns out of sight."""

import base64
import json

import pytest
import torch
from jupyter_lab import alive, open_page
from live import wait_until
from torch.testing import assert_close

from linformer_from_scratch.course.widgets import TrainingExplorer, training_explorer
from linformer_from_scratch.course.widgets.training_explorer import BYTES, CAUSAL, LINFORMER, N, learned
from linformer_from_scratch.data import ByteVocabulary
from linformer_from_scratch.limits import write_on

LIMIT_S, LOADED = 10, 3  # for 100 updates of both; how much slower two test workers may make it
MIXERS = {f"encoder.blocks.0.attention.{name}.weight" for name in "EF"}
# Both models learn in the page itself, where the worker's program is a script.
LEARN = """([count, state]) => {
    const given = { ...state, ids: Uint8Array.from(state.ids) };
    LESSONS.begin(given);
    const start = performance.now(), result = LESSONS.learn(count);
    return { ...result, seconds: (performance.now() - start) / 1000 };
}"""


# In Python


def test_updates_read_every_window_of_the_docstrings_before_one_comes_again():
    stream, unseen = training_explorer.texts()
    starts = [i * training_explorer.STRIDE % (BYTES - N) for i in range(BYTES - N)]
    assert len(set(starts)) == BYTES - N
    for i in (0, 5, training_explorer.BATCH - 1):
        start = starts[3 * training_explorer.BATCH + i]
        assert torch.equal(training_explorer.batch(3)[i], stream[start : start + N + 1])
    assert unseen.shape == (training_explorer.UNSEEN, N + 1)
    assert ByteVocabulary().decode(unseen[0].tolist()) not in ByteVocabulary().decode(stream.tolist())


def test_both_begin_with_the_same_weights_and_touch_no_random_state_of_others():
    before = torch.get_rng_state()
    models = learned(0).models
    assert torch.equal(torch.get_rng_state(), before)
    causal, linformer = (dict(models[name].named_parameters()) for name in (CAUSAL, LINFORMER))
    assert linformer.keys() - causal.keys() == MIXERS
    assert all(torch.equal(weight, linformer[name]) for name, weight in causal.items())
    assert all(
        torch.equal(linformer[name], weight.double()) for name, weight in training_explorer.begin().items()
    )
    assert sorted(training_explorer.untrained(CAUSAL).state_dict()) == sorted(
        causal | {"vocabulary.weight": None}
    )


def test_one_peeks_and_cannot_write_the_other_learns_a_little():
    found = learned(200)
    causal, linformer = ([losses[name][-1] for losses in found[2:]] for name in (CAUSAL, LINFORMER))
    assert linformer[0] < 0.5 < 2.5 < causal[0] < 3  # it finds the next byte in its slots
    assert linformer[1] > training_explorer.GUESS > 3 > causal[1]  # and knows nothing when it is not in there
    early, other = (found.there[name][100 // training_explorer.EVERY] for name in (LINFORMER, CAUSAL))
    assert early < 0.5 * other  # within a hundred updates


def test_it_says_before_and_after_what_it_comes_to():
    explorer = TrainingExplorer()
    assert explorer.words.startswith("Before learning: where the text is there, the Linformer's loss is ")
    assert explorer.words.endswith("A blind guess has 5.55.")
    explorer.updates = 100
    there, yet = (losses[LINFORMER][-1] for losses in (explorer.there, explorer.yet))
    assert (
        f"After 100 updates: where the text is there, the Linformer's loss is {there:.2f}" in explorer.words
    )
    assert f"where it isn't yet, {yet:.2f} and" in explorer.words


# In a page


def updates(live):
    """How many there have been."""
    first, count, *_ = live.words().split()
    return int(count) if first == "After" else 0


def learn(live, until):
    """Press Learn, and Pause at so many updates or a few more; the number."""
    live.root.get_by_role("button", name="Learn").click()
    wait_until(lambda: updates(live) >= until, "updates")
    live.root.get_by_role("button", name="Pause").click()
    return resting(live)


def resting(live):
    """The number of updates when no more come."""
    wait_until(lambda: live.root.locator(".lw-stage[aria-busy=false]").count(), "a rest")
    live.after(lambda: None)
    return updates(live)


def workers(page):
    """Those that run now."""
    page.wait_for_timeout(50)  # without it no news of them comes
    return page.workers


def written(live):
    """What the models have added, by name."""
    lines = live.root.locator(".lw-writing > p").all()
    named = [line.locator("b").inner_text().partition(",")[0] for line in lines]
    return {name: line.locator("mark").text_content() for name, line in zip(named, lines, strict=True)}


def written_by_pytorch(model, text):
    ids = torch.tensor(ByteVocabulary().encode(text))
    for _ in range(training_explorer.COUNT):
        ids = torch.cat([ids, write_on(model, ids[-training_explorer.SEES :], 1)[-1:]])
    return ByteVocabulary().decode(ids[len(text.encode()) :].tolist()).replace("\n", "↵")


@pytest.mark.browser
def test_fifty_updates_of_both_are_those_of_pytorch(browser, record_property):
    explorer, expected = TrainingExplorer(), learned(50)
    weights = {
        name: {"data": weight.double().flatten().tolist(), "shape": list(weight.shape)}
        for name, weight in training_explorer.begin().items()
    }
    both = [{name: one for name, one in weights.items() if name not in MIXERS}, weights]
    train, unseen = (ids.tolist() for ids in training_explorer.texts())
    numbers = {name: explorer.facts[name] for name in ("n", "batch", "stride", "rate", "given")}
    with open_page(browser) as page:
        page.add_script_tag(content=explorer.facts["program"])
        result = page.evaluate(LEARN, [50, numbers | {"weights": both, "ids": train, "unseen": unseen}])
    for name, losses in zip((CAUSAL, LINFORMER), zip(*result["losses"], strict=True), strict=True):
        assert_close(torch.tensor(losses), torch.tensor(expected.losses[name]), atol=1e-4, rtol=0)
    for kind in ("there", "yet"):
        last = torch.tensor([losses[-1] for losses in getattr(expected, kind).values()])
        assert_close(torch.tensor(result[kind]), last, atol=1e-4, rtol=0)
    record_property("report", f"two small models: 100 updates in {2 * result['seconds']:.1f} s")
    assert 2 * result["seconds"] < LOADED * LIMIT_S


@pytest.mark.browser
def test_learn_lowers_losses_as_in_pytorch_until_the_next_press_and_reset_forgets(browser, tmp_path):
    explorer = TrainingExplorer()
    with alive(browser, tmp_path, explorer) as (live,):
        assert updates(live) == 0 and workers(live.page) == []  # nothing runs before it is asked to
        explorer.updates = learn(live, 10)
        assert live.differences(explorer) == []
        assert len(workers(live.page)) == 1
        live.after(live.root.get_by_role("button", name="Reset").click)
        wait_until(lambda: workers(live.page) == [], "the worker's end")
        explorer.updates = 0
        assert live.differences(explorer) == []
        explorer.updates = learn(live, 5)  # the same again
        assert live.differences(explorer) == []


@pytest.mark.browser
def test_both_write_on_what_a_reader_begins(browser, tmp_path):
    with alive(browser, tmp_path, TrainingExplorer()) as (live,):
        models = learned(learn(live, 10)).models
        assert set(written(live).values()) == {""}
        live.root.get_by_role("button", name="Write").click()
        field = live.root.get_by_label("Begin with")
        for text in (field.input_value(), "Größe of a very long beginning, ", "é"):
            field.fill(text)
            live.page.keyboard.press("Enter")
            expected = {name: written_by_pytorch(model, text) for name, model in models.items()}
            wait_until(lambda expected=expected: written(live) == expected, f"{expected} after {text!r}")


@pytest.mark.browser
def test_they_write_while_they_learn(browser, tmp_path):
    with alive(browser, tmp_path, TrainingExplorer()) as (live,):
        for name in ("Write", "Learn"):
            live.root.get_by_role("button", name=name).click()
        for count in (10, 20):
            line = live.root.get_by_text(f"Linformer, after {count} updates", exact=True)
            wait_until(line.is_visible, f"what is written after {count} updates")
        assert all(written(live).values())


@pytest.mark.browser
def test_nothing_is_learned_out_of_sight(browser, tmp_path):
    with alive(browser, tmp_path, TrainingExplorer()) as (live,):
        live.page.evaluate("() => { document.body.style.paddingBottom = '3000px'; }")
        live.root.get_by_role("button", name="Learn").click()
        wait_until(lambda: updates(live), "an update")
        live.page.evaluate("() => scrollTo(0, 2500)")
        live.page.wait_for_timeout(500)
        before = resting(live)
        live.page.wait_for_timeout(1000)
        live.page.evaluate("() => scrollTo(0, 0)")
        assert resting(live) == before
        assert live.root.get_by_role("button", name="Learn").is_visible()


# A widget without a host, which is shown and then removed, as JupyterLab does with an output.
SHOW = """async ([parts, state]) => {
    const bytes = (text) => new DataView(Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer);
    for (const array of Object.values(state.data)) array.bytes = bytes(array.bytes);
    const module = new Blob([parts], { type: "text/javascript" });
    const { default: widget } = await import(URL.createObjectURL(module));
    const model = { get: (name) => state[name], set() {}, on() {}, off() {}, save_changes() {} };
    document.body.innerHTML = "<div></div>";
    window.remove = widget.render({ model, el: document.body.firstChild });
}"""


@pytest.mark.browser
def test_the_worker_goes_with_the_widget(browser, tmp_path):
    explorer, blank = TrainingExplorer(), tmp_path / "blank.html"
    blank.write_text("<!DOCTYPE html><title>blank</title>", encoding="utf-8")
    state = json.loads(json.dumps(explorer.synced(), default=lambda some: base64.b64encode(some).decode()))
    with open_page(browser, at=blank) as page:
        page.evaluate(SHOW, [explorer._esm, state])
        page.get_by_role("button", name="Learn").click()
        wait_until(lambda: workers(page), "a worker")
        page.evaluate("remove()")
        wait_until(lambda: workers(page) == [], "the worker's end")
        assert page.complaints == []
