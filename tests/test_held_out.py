"""Answers that were written from the exercises' texts alone are judged rightly, in course and exam."""

import pytest
from held_out import RIGHT, WRONG

from linformer_from_scratch.exercises import EXERCISES
from linformer_from_scratch.exercises.engine.checking import exam_seeds, judge


def judged(id, answer):
    """On the course's draws and on those of an exam."""
    return judge(EXERCISES[id], answer, exam_seeds(0))


@pytest.mark.parametrize("id", EXERCISES)
def test_right_answers_in_unusual_form_are_accepted(id):
    answers = [answer for other, answer in RIGHT if other == id]
    assert answers
    for answer in answers:
        result = judged(id, answer)
        assert result.status == "passed", f"{answer}: {result.message}"


@pytest.mark.parametrize("id", EXERCISES)
def test_answers_that_are_wrong_by_little_are_refused(id):
    answers = [(answer, why) for other, answer, why in WRONG if other == id]
    assert answers
    for answer, why in answers:
        assert judged(id, answer).status == "failed", f"{answer}: {why}"
