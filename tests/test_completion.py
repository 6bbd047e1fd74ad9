"""A completion code says what has passed, and a grader sees whether it is what passes."""

import pytest

from linformer_from_scratch.course.exercises import EXERCISES
from linformer_from_scratch.course.exercises.engine.completion import code_of, compared
from linformer_from_scratch.course.exercises.engine.progress import record_pass
from linformer_from_scratch.exercises import progress

CODE = code_of(["1.2", "0.1"], EXERCISES)


def test_progress_gives_one_line_in_the_course_s_order_that_depends_on_the_list_alone():
    record_pass("1.2")
    record_pass("0.1")
    assert progress(code=True) == CODE and CODE.startswith("linformer-passed:0.1,1.2:")
    assert "\n" not in CODE and code_of(["0.1"], EXERCISES) != CODE


@pytest.mark.parametrize(
    ("text", "passed", "said"),
    [
        (f'"text/plain": ["\'{CODE}\'"]', ["0.1", "1.2"], "names what passes"),
        (f"{code_of(['0.1'], EXERCISES)} {CODE}", ["0.1", "1.2"], "names what passes"),  # the last one counts
        (CODE, ["0.1"], "names, not passing here: 1.2"),
        (CODE, ["0.1", "6.1"], "names, not passing here: 1.2; lacks: 6.1"),
        (CODE, ["0.1", "1.2", "6.1"], "lacks: 6.1"),
        (CODE.replace("1.2", "1.2,6.1"), ["0.1", "1.2", "6.1"], "changed"),
        (CODE.replace("0.1,", ""), ["1.2"], "changed"),
        (code_of([], EXERCISES), [], "names what passes"),
    ],
)
def test_the_grader_sees_whether_a_code_is_what_passes(text, passed, said):
    assert compared(text, passed, EXERCISES) == [f"completion code: {said}"]


def test_where_there_is_no_code_nothing_is_said():
    assert compared("linformer-passed: 0.1", ["0.1"], EXERCISES) == []
