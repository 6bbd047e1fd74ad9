"""Answers unlike all that the exercises' authors thought of are judged rightly."""

import inspect

import pytest
from held_out import RIGHT, WRONG

from linformer_from_scratch.course.exercises import EXERCISES
from linformer_from_scratch.course.exercises.engine.checking import exam_seeds, judge


def names(answers):
    return [f"{id} {getattr(answer, '__name__', type(answer).__name__)}" for id, answer in answers]


def test_every_exercise_has_one():
    assert sorted(id for id, _ in RIGHT + WRONG) == sorted(EXERCISES)


@pytest.mark.parametrize(("id", "answer"), RIGHT, ids=names(RIGHT))
def test_a_right_answer_in_unusual_form_is_accepted_in_the_course_and_in_an_exam(id, answer):
    assert judge(EXERCISES[id], answer, exam_seeds(0)).message == f"{id} passed"


@pytest.mark.parametrize(("id", "answer"), WRONG, ids=names(WRONG))
def test_an_answer_that_is_nearly_right_is_refused_and_not_mistaken_for_another(id, answer):
    """On the course's draws, which an exam has too; the sentence is of none of the mistakes in the bank."""
    result = judge(EXERCISES[id], answer)
    assert result.status == "failed"
    assert result.message not in map(inspect.getdoc, EXERCISES[id].mistakes)
