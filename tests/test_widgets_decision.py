"""Widget 12: it says what decide says, in Python and in the page; a map to drag on; links to the evidence."""

import pytest
from jupyter_lab import alive, open_page
from live import Live

from linformer_from_scratch.course import decision
from linformer_from_scratch.course.decision import A100, H200, KINDS, V100, Case, decide
from linformer_from_scratch.course.widgets import DecisionExplorer

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


@pytest.mark.parametrize("state", STATES, ids=str)
def test_it_says_what_decide_says(state):
    explorer, advice = DecisionExplorer(**state), decide(Case(**state))
    assert explorer.words.endswith(f"take {advice.take}.")
    assert explorer.details["Why"] == [advice.why]
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
def test_the_page_says_what_python_says(browser, tmp_path):
    explorers = [DecisionExplorer(**state) for state in STATES]
    with alive(browser, tmp_path, *explorers) as seen:
        for live, explorer in zip(seen, explorers, strict=True):
            assert live.differences(explorer) == []
        page = seen[0].page
        assert page.evaluate(DETAILS) == [explorer.details for explorer in explorers]
        takes = [f"Take {explorer.advice.take}." for explorer in explorers]
        assert page.locator(".lw-advised figcaption b").all_text_contents() == takes
        assert page.locator(".lw a").count() == 0


@pytest.fixture
def live(browser, tmp_path):
    """The widget as it opens."""
    with alive(browser, tmp_path, DecisionExplorer()) as (explorer,):
        yield explorer


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
def test_in_a_notebook_a_place_is_a_link_to_the_heading_of_its_cell(browser, tmp_path, live):
    address = "http://course.invalid/12_limits.ipynb"
    with open_page(browser, 1280, 900) as page:
        page.route(address, lambda route: route.fulfill(path=tmp_path / "page.html"))
        page.goto(address)
        links = Live(page, page.locator(".lw").first).root.locator("a")
        assert links.last.text_content() == "chapter 10, “How large must n be before it's worth it?”"
        place = "10_benchmark.ipynb#How-large-must-n-be-before-it's-worth-it?"
        assert links.last.evaluate("it => it.href") == f"http://course.invalid/{place}"
