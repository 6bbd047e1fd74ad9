"""quizzes.py: an explanation for every option, by keyboard and mouse, on paper and without a kernel."""

import subprocess
import sys

import pytest
from ipywidgets import HTML, RadioButtons, Widget

from linformer_from_scratch.course.exercises import bet, bets, quiz
from linformer_from_scratch.course.exercises.engine import quizzes
from linformer_from_scratch.course.exercises.engine import quizzes as module
from linformer_from_scratch.course.exercises.engine.quizzes import Bet, Option, Question, as_text, tally

THREE = Option("1 & 1", "No: 2."), Option("3", "Yes: it is.", True), Option("2", "It is 2.")
TWO = Option("sum to one", "Yes: softmax.", True), Option("sum to n", "No: to one.")
QUESTIONS = Question("A < B?", THREE), Question("Rows?", TWO)


def parts(widget, kind):
    """All widgets of a kind below this one."""
    own = [widget] if type(widget) is kind else []
    return own + [part for child in getattr(widget, "children", ()) for part in parts(child, kind)]


def test_a_question_has_exactly_one_right_option():
    for rights in (0, 2):
        options = tuple(Option(str(i), "Why.", i < rights) for i in range(3))
        with pytest.raises(ValueError, match=f"{rights} options are right, expected 1"):
            Question("?", options)


def test_a_number_without_quotes_is_no_option():
    with pytest.raises(ValueError, match="got 128, expected a text: put it in quotes"):
        Question("How many?", (Option("512", "No.", True), Option(128, "Yes.")))


def test_every_option_shows_its_own_explanation():
    widget = module.quiz_widget("07", QUESTIONS)
    for question, choices, box in zip(QUESTIONS, parts(widget, RadioButtons), widget.children, strict=True):
        answer = parts(box, HTML)[-1]
        assert choices.value is None and answer.value == ""
        for option in question.options:
            choices.value = option
            assert option.explanation in answer.value
            assert ("✓" in answer.value) is option.right and ("✗" in answer.value) is not option.right


def test_the_order_of_options_is_fixed_and_does_not_give_the_right_one_away():
    options = (Option("right", "Yes.", True), Option("a", "No."), Option("b", "No."))
    questions = [Question(str(i), options) for i in range(30)]
    places = [[option.right for option in question.shuffled()].index(True) for question in questions]
    assert places == [[option.right for option in question.shuffled()].index(True) for question in questions]
    assert all(5 <= places.count(place) <= 15 for place in range(3))
    assert [option.text for option in QUESTIONS[0].shuffled()] == ["2", "1 & 1", "3"], "in every process"


def test_on_paper_the_answers_come_last():
    assert as_text("07", QUESTIONS) == (
        "Quiz 07\n\n"
        "1. A < B?\n   a) 2\n   b) 1 & 1\n   c) 3\n\n"
        "2. Rows?\n   a) sum to n\n   b) sum to one\n\n"
        "Answers\n1 c. Yes: it is.\n2 b. Yes: softmax."
    )


def test_html_hides_every_explanation_behind_a_click():
    page = quizzes.as_html(QUESTIONS)
    asked, hidden = page.split("<details>", 1)
    assert "A &lt; B?" in asked and "1 &amp; 1" in asked and "Yes: it is." not in asked
    assert all(text in hidden for text in ("No: 2.", "Yes: it is.", "It is 2."))
    assert page.count("<details>") == len(QUESTIONS) and page.count("✓") == len(QUESTIONS)


def test_the_bundle_is_constant_but_for_the_live_view():
    first, second = (module.quiz_widget("07", QUESTIONS)._repr_mimebundle_() for _ in range(2))
    view = "application/vnd.jupyter.widget-view+json"
    assert first.pop(view) != second.pop(view)
    assert (
        first == second == {"text/plain": as_text("07", QUESTIONS), "text/html": quizzes.as_html(QUESTIONS)}
    )


@pytest.mark.parametrize("chapter", ["99", "", 0, None])
def test_an_unknown_chapter_is_told_the_known_ones(chapter):
    said = repr(quiz(chapter))
    assert "There is no such quiz" in said and "00, 01" in said and "\n" not in said


# Bets.

NINE = Bet("9a", ("1", "2", "3", "4"), "3", paper="1", ours="3")
TEN = Bet("9b", ("up", "down"), "up", paper="up")


def test_a_bet_is_placed_once_for_every_kernel_and_may_be_changed_but_tells_nothing(
    tmp_path, monkeypatch, capsys
):
    def told(*chapter):
        bets(*chapter)
        return capsys.readouterr().out

    monkeypatch.setenv("LINFORMER_PROGRESS", str(tmp_path / "kept.json"))
    assert told("00") == "No bet placed yet, of 3.\n"
    for chosen in (2, 0):
        (choices,) = parts(bet("0c"), RadioButtons)
        choices.value = choices.options[chosen]
        again = bet("0c")
        assert parts(again, RadioButtons)[0].value == choices.options[chosen]
        assert parts(again, HTML)[-1].value == "", "the cell answers"
    assert told("00").endswith("won 0; a coin wins 0.3; the paper's claim wins 0 of 1, you 0 of these.\n")
    assert told().partition("bets")[2] == told("00").partition("bets")[2]
    assert int(told().split()[4]) > 3, "of all chapters"


def test_bets_are_told_against_a_coin_the_paper_and_our_own():
    assert tally([NINE, TEN], {}) == "No bet placed yet, of 2."
    assert tally([NINE, TEN], {"9a": "7", "8a": "3"}) == "No bet placed yet, of 2."
    assert tally([NINE, TEN], {"9a": "3"}) == (
        "You placed 1 of 2 bets and won 1; a coin wins 0.2; the paper's claim wins 0 of 1, you 1 of these; "
        "what we wrote down before the run wins 1 of 1, you 1 of these."
    )
    assert tally([TEN, NINE], {"9a": "1", "9b": "up"}) == (
        "You placed 2 of 2 bets and won 1; a coin wins 0.8; the paper's claim wins 1 of 2, you 1 of these; "
        "what we wrote down before the run wins 1 of 1, you 0 of these."
    )


@pytest.mark.parametrize("id", ["9z", "", 0, None])
def test_an_unknown_bet_is_told_how_they_are_numbered(id):
    assert "There is no such bet" in repr(bet(id)) and 'bet("6a")' in repr(bet(id))


def test_bets_of_an_unknown_chapter_are_told_the_known_ones(capsys):
    assert "There is no such chapter: the chapters are 00, 01, " in repr(bets("77"))
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_widgets_are_loaded_only_where_a_quiz_is_shown():
    code = "import sys, linformer_from_scratch.exercises as e; print('ipywidgets' in sys.modules);"
    code += "e.quiz('00'); print('ipywidgets' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, encoding="utf-8")
    assert run.stdout.split() == ["False", "True"]


@pytest.fixture(autouse=True)
def close_widgets():
    yield
    Widget.close_all()
