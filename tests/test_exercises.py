"""Every exercise: the reference passes, every known mistake hears its own sentence, the chapter asks it."""

import re
from pathlib import Path

import nbformat
import pytest
import torch

from linformer_from_scratch.exercises import CHAPTERS, EXERCISES, check, hint
from linformer_from_scratch.exercises.engine import SEEDS

ROOT = Path(__file__).parents[1]
MISTAKES = [(id, mistake) for id, exercise in EXERCISES.items() for mistake in exercise.mistakes]
every_exercise = pytest.mark.parametrize("id", EXERCISES)


def sentence(function):
    return " ".join(function.__doc__.split())


def cells(folder, chapter):
    (path,) = (ROOT / folder).glob(f"{chapter}_*.ipynb")
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def output_text(cell):
    return "".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)


@every_exercise
def test_the_reference_passes(id):
    assert check(id, EXERCISES[id].reference).status == "passed"


@every_exercise
def test_the_stub_is_not_yet_attempted(id):
    def stub(*arguments):
        raise NotImplementedError

    result = check(id, stub)
    assert (result.status, result.message) == ("open", f"{id} not yet attempted")


def filled(id, number):
    """Something of the right type and shape, but all the same number."""

    def attempt(*arguments):
        right = EXERCISES[id].reference(*arguments)
        return torch.full_like(right, number) if isinstance(right, torch.Tensor) else type(right)(0)

    return attempt


@every_exercise
def test_answers_without_thought_fail(id):
    attempts = [filled(id, 0.0), filled(id, 1.0), filled(id, float("nan")), lambda *arguments: None]
    attempts += [
        lambda *arguments: arguments,
        lambda *arguments: arguments[0],
        lambda: 1,
        lambda *arguments: "text",
    ]
    for attempt in attempts:
        assert check(id, attempt).status == "failed"


@pytest.mark.parametrize(("id", "mistake"), MISTAKES, ids=lambda value: getattr(value, "__name__", value))
def test_every_mistake_hears_its_own_sentence(id, mistake):
    result = check(id, mistake)
    assert (result.status, result.message) == ("failed", sentence(mistake))


@every_exercise
def test_an_exercise_is_complete(id):
    exercise = EXERCISES[id]
    assert exercise.id == id and exercise.question and exercise.trains
    assert exercise.difficulty in (1, 2, 3) and 1 <= exercise.minutes <= 15
    assert len(exercise.hints) == 3 and all(exercise.hints)
    sentences = [sentence(mistake) for mistake in exercise.mistakes]
    assert len(set(sentences)) == len(sentences) >= 4


@every_exercise
def test_draws_are_repeatable_and_differ(id):
    draws = [repr(EXERCISES[id].draw(seed)) for seed in SEEDS]
    assert draws == [repr(EXERCISES[id].draw(seed)) for seed in SEEDS]
    assert len(set(draws)) == len(draws)


@every_exercise
def test_hints_open_one_at_a_time(id, monkeypatch, tmp_path):
    monkeypatch.setenv("LINFORMER_PROGRESS", str(tmp_path / "progress.json"))
    assert [hint(id).opened for _ in range(4)] == [1, 2, 3, 3]


@every_exercise
def test_it_stands_once_in_its_chapter_unsolved_and_is_solved_in_its_solution(id):
    call = f'check("{id}"'
    (asked,) = [cell for cell in cells("chapters", f"{id[:-2]:0>2}") if call in cell.source]
    assert "raise NotImplementedError" in asked.source and output_text(asked) == f"○ {id} not yet attempted"
    (solved,) = [cell for cell in cells("solutions", f"{id[:-2]:0>2}") if call in cell.source]
    assert output_text(solved) == f"✓ {id} passed"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_asks_its_exercises_with_their_difficulty_and_minutes(chapter):
    (path,) = (ROOT / "chapters").glob(f"{chapter}_*.ipynb")
    text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells)
    asked = re.findall(r"^### Exercise ([\d.]+) · (★+) · (\d+) minutes$", text, re.MULTILINE)
    expected = [(e.id, "★" * e.difficulty, str(e.minutes)) for e in CHAPTERS[chapter].EXERCISES]
    assert asked == expected
    assert chapter == "00" or 4 <= len(asked) <= 6


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_quiz_has_one_right_answer_a_question_and_explains_every_option(chapter):
    questions = CHAPTERS[chapter].QUIZ
    assert 4 <= len(questions) <= 6
    for question in questions:
        assert sum(option.right for option in question.options) == 1 and len(question.options) >= 3
        assert all(len(option.explanation) > 15 for option in question.options)
    places = [[option.right for option in question.shuffled()].index(True) for question in questions]
    assert len(set(places)) > 1, "the right answer always stands in the same place"
