"""The quiz: clicking explains, and without a kernel everything can still be read."""

import subprocess
import sys

import pytest

from linformer_from_scratch.exercises import CHAPTERS, quiz


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_choice_opens_its_own_explanation(chapter):
    view = quiz(chapter)
    for box, question in zip(view.children, CHAPTERS[chapter].QUIZ, strict=True):
        _, buttons, answer = box.children
        assert buttons.value is None and answer.value == ""
        for option in question.options:
            buttons.value = option
            assert answer.value.startswith("Right." if option.right else "No.")
            assert option.explanation.split("<")[0].split("'")[0][:20] in answer.value


def test_on_paper_and_as_html_every_option_can_be_read():
    bundle = quiz("01")._repr_mimebundle_()
    assert bundle == quiz("01")._repr_mimebundle_() | {
        key: value for key, value in bundle.items() if "widget" in key
    }
    for question in CHAPTERS["01"].QUIZ:
        assert question.text in bundle["text/plain"]
        assert all(option.text in bundle["text/plain"] for option in question.options)
    assert bundle["text/html"].count('<details name="quiz">') == len(CHAPTERS["01"].QUIZ)
    assert bundle["text/plain"].splitlines()[-1].startswith("Answers: 1")


def test_two_quizzes_are_independent():
    first, second = quiz("00"), quiz("00")
    buttons = first.children[0].children[1]
    buttons.value = buttons.options[0][1]
    assert second.children[0].children[1].value is None


def test_an_unknown_chapter_is_answered_with_the_known_ones():
    assert "no quiz '77'; there are 00, 01, 02" in repr(quiz("77"))


def test_checking_does_not_load_ipywidgets():
    code = "import sys, linformer_from_scratch.exercises; print('ipywidgets' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
    )
