"""Whoever has written the same function is right, and whoever changed one sign of it is not."""

import ast
import inspect
import sys
from functools import cache
from pathlib import Path

import nbformat
import pytest
from mutations import mutants
from right_answers import RIGHT, SAME, WRONG

from linformer_from_scratch.course.exercises import EXERCISES, STEMS
from linformer_from_scratch.course.exercises.engine.checking import SEEDS, exam_seeds, judge

ROOT = Path(__file__).parents[1]
BY_ID = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES.keys())
EXAM = [seed for seed in exam_seeds(0) if seed not in SEEDS]  # the draws that only an exam has


def test_every_exercise_has_three_right_answers_and_one_more_of_either_kind():
    assert all(len(RIGHT[id]) >= 3 and len(RIGHT[id]) + len(WRONG[id]) >= 4 for id in EXERCISES)


@BY_ID
def test_right_answers_of_different_make_are_accepted(exercise):
    for answer in RIGHT[exercise.id]:
        assert judge(exercise, answer).message == f"{exercise.id} passed", answer


@BY_ID
def test_answers_that_are_nearly_right_are_refused_and_not_mistaken_for_another(exercise):
    """On the course's draws, which an exam has too; the sentence is of none of the mistakes in the bank."""
    for answer in WRONG[exercise.id]:
        result = judge(exercise, answer)
        assert result.status == "failed", answer
        assert result.message not in map(inspect.getdoc, exercise.mistakes), answer


@BY_ID
def test_an_exam_draws_other_sizes(exercise):
    in_course = {sizes(exercise.draw(seed)) for seed in SEEDS}
    in_exam = [sizes(exercise.draw(seed)) for seed in EXAM]
    assert sum(drawn not in in_course for drawn in in_exam) >= 6
    assert len(set(in_exam)) >= 6


def sizes(value):
    """Shapes of tensors and values of numbers, of nested draws."""
    if isinstance(value, dict):
        value = tuple(value.items())
    if isinstance(value, list | tuple):
        return tuple(map(sizes, value))
    return tuple(value.shape) if hasattr(value, "shape") else value


@pytest.mark.slow
@BY_ID
def test_they_are_accepted_in_an_exam(exercise):
    for answer in (exercise.reference, *RIGHT[exercise.id]):
        assert judge(exercise, answer, EXAM).message == f"{exercise.id} passed", answer


@pytest.mark.slow
@BY_ID
def test_mistakes_are_refused_in_an_exam(exercise):
    for mistake in exercise.mistakes:
        assert judge(exercise, mistake, EXAM).status == "failed", mistake.__name__


@pytest.mark.slow
@BY_ID
def test_one_sign_changed_is_refused(exercise):
    same = SAME.get(exercise.id, {})
    survived, seen = [], set()
    for source, names in (of_the_reference(exercise), of_the_solution(exercise)):
        for label, text in mutants(source):
            seen.add(label)
            accepted = judge(exercise, compiled(text, names)).status == "passed"
            if label in same:
                assert accepted, f"{label} is refused: not the same function"
            elif accepted:
                survived.append(label)
    assert survived == [] and same.keys() <= seen


def of_the_reference(exercise):
    """Its source, and the names that it sees."""
    reference = inspect.unwrap(exercise.reference)
    return inspect.getsource(reference), dict(vars(sys.modules[reference.__module__]))


@cache
def solved(number):
    """exercise's id -> its definition in the solutions, and the names that are defined around them."""
    path = ROOT / "solutions" / f"{number:02}_{STEMS[number]}.ipynb"
    names, definitions, sources = {"__name__": f"solution_{number}"}, {}, {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                definitions[node.name] = ast.unparse(node)
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom | ast.Assign):
                exec(ast.unparse(node), names)
            elif isinstance(node, ast.Expr) and ast.unparse(node).startswith("check("):
                id, attempt = node.value.args
                sources[id.value] = definitions[attempt.id]
    return sources, names


def of_the_solution(exercise):
    """The same of what solutions/ has."""
    sources, names = solved(int(exercise.id.split(".")[0]))
    return sources[exercise.id], dict(names)


def compiled(source, names):
    """The function or class that a source defines."""
    exec(source, names)
    return names[ast.parse(source).body[-1].name]
