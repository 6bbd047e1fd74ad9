"""Widget 12: it says what decide says, in Python and in the page; a map to drag on; links to the evidence."""

import pytest
from jupyter_lab import open_page
from live import Live

from linformer_from_scratch.course import decision
from linformer_from_scratch.course.decision import A100, CPU, H200, KINDS, V100, Case, decide
from linformer_from_scratch.course.widgets import DecisionExplorer
from linformer_from_scratch.course.widgets.page import page as page_of

STATES = [
    {},
    {"batch": 2},
    {"n": 64, "batch": 256, "machines": 64},
    {"n": 1024, "device": V100},
    {"n": 2048, "device": A100, "batch": 32},
    {"n": 8192},
    {"n": 8192, "exact_recall": True},
    {"n": 2**20, "device": H200},
    {"n": 2**20, "device": H200, "machines": 8},
    {"n": 2**20, "machines": 2, "causal": True},
    {"causal": True, "device": H200},
]
# Of each widget: heading -> the lines beneath it.
DETAILS = """() => {
    const lines = (part) => [...part.querySelectorAll("dd")].map((line) => line.textContent);
    const part = (one) => [one.querySelector("dt").textContent, lines(one)];
    const parts = (widget) => [...widget.querySelectorAll(".lw-advice > div")];
    const details = (widget) => Object.fromEntries(parts(widget).map(part));
    return [...document.querySelectorAll(".lw")].map(details);
}"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A page with a widget for each state."""
    path = tmp_path_factory.mktemp("decisions") / "page.html"
    path.write_text(page_of([DecisionExplorer(**state) for state in STATES]), encoding="utf-8")
    return path


def test_it_opens_on_512_tokens_on_the_cpu():
    explorer = DecisionExplorer()
    assert explorer.state() == dict(zip(explorer.controls, (512, 1, 1, CPU, False, False), strict=True))
    assert explorer.words == (
        "512 tokens, one text at a time, CPU of the course, one machine: take fused exact attention, "
        "as it is. With 512 tokens slots save little time or none, and they may change the vectors."
    )


@pytest.mark.parametrize("state", STATES, ids=str)
def test_it_says_what_decide_says(state):
    explorer, advice = DecisionExplorer(**state), decide(Case(**state))
    assert f"take {advice.take}. {advice.why}" in explorer.words
    assert explorer.details["For which n"] == [advice.span]
    assert explorer.details["Where Linformer would save time"] == [advice.time]
    assert explorer.details["How far that reaches"] == [advice.reach]
    assert explorer.details["Runner-up"] == [advice.runner_up]
    assert len(explorer.details["What says so"]) == len(advice.evidence)
    assert explorer.from_n == advice.from_n


@pytest.mark.parametrize("state", STATES, ids=str)
def test_the_map_shows_for_each_task_and_n_what_is_advised_and_where_it_was_tried(state):
    explorer = DecisionExplorer(**state)
    for row, taken, tried in zip(explorer.cells, explorer.taken, explorer.tried, strict=True):
        for case, kind, known in zip(row, taken, tried, strict=True):
            rule = decision.rule_of(case)
            assert KINDS[kind] == rule.kind
            assert known == bool(rule.tested and rule.tested[0] <= case.n <= rule.tested[1])
    assert explorer.case in {case for row in explorer.cells for case in row}


@pytest.mark.slow
@pytest.mark.browser
def test_the_page_says_what_python_says(browser, file):
    with open_page(browser, 1280, 900, at=file) as page:
        for i, state in enumerate(STATES):
            assert Live(page, page.locator(".lw").nth(i)).differences(DecisionExplorer(**state)) == []
        seen = page.evaluate(DETAILS)
        assert seen == [DecisionExplorer(**state).details for state in STATES]
        takes = [f"Take {decide(Case(**state)).take}." for state in STATES]
        assert page.locator(".lw-advised figcaption b").all_text_contents() == takes
        assert page.locator(".lw a").count() == 0
        assert page.complaints == []


@pytest.fixture
def live(browser, file):
    """The first widget of the page."""
    with open_page(browser, 1280, 900, at=file) as page:
        yield Live(page, page.locator(".lw").first)


@pytest.mark.slow
@pytest.mark.browser
def test_a_drag_on_the_map_sets_n_and_task(live):
    mouse, box = live.page.mouse, live.root.locator(".lw-stage svg").bounding_box()
    mouse.move(box["x"] + 20, box["y"] + 60)
    mouse.down()
    mouse.move(box["x"] + box["width"] - 30, box["y"] + 60, steps=5)
    assert "1,048,576 tokens" in live.words() and "take chunks" in live.words()
    mouse.move(box["x"] + box["width"] - 30, box["y"] + 180, steps=5)
    mouse.up()
    assert live.as_python().state() == DecisionExplorer(n=2**20, causal=True).state()


@pytest.mark.slow
@pytest.mark.browser
def test_arrow_keys_move_the_dot_from_task_to_task(live):
    steps = {"ArrowDown": {"exact_recall": True}, "ArrowRight": {"n": 1024, "exact_recall": True}}
    for key, state in (steps | {"ArrowUp": {"n": 1024}}).items():
        live.root.get_by_role("slider", name="Tokens n").focus()
        live.page.keyboard.press(key)
        assert live.as_python().state() == DecisionExplorer(**state).state()


@pytest.mark.slow
@pytest.mark.browser
def test_pointing_at_a_place_shows_its_evidence_and_leaves_the_dot(live):
    box, before = live.root.locator(".lw-stage svg").bounding_box(), live.words()
    live.after(lambda: live.page.mouse.move(box["x"] + box["width"] - 30, box["y"] + 60))
    seen = live.page.evaluate(DETAILS)[0]
    assert seen == DecisionExplorer(n=2**20).details and live.words() == before
    said = [live.root.locator(f"figcaption {part}").inner_text() for part in ("b", ".lw-tip")]
    assert said == [f"Take {decide(Case(n=2**20)).take}.", "the gist: search, classify, n = 1,048,576"]


@pytest.mark.slow
@pytest.mark.browser
def test_in_a_notebook_a_place_is_a_link_to_the_heading_of_its_cell(browser, file):
    address = "http://course.invalid/12_limits.ipynb"
    with open_page(browser, 1280, 900) as page:
        page.route(address, lambda route: route.fulfill(path=file, content_type="text/html"))
        page.goto(address)
        links = Live(page, page.locator(".lw").first).root.locator("a")
        assert links.last.text_content() == "chapter 10, “How large must n be before it's worth it?”"
        place = "10_benchmark.ipynb#How-large-must-n-be-before-it's-worth-it?"
        assert links.last.evaluate("it => it.href") == f"http://course.invalid/{place}"
