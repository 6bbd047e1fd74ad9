"""Every exercise: right answers pass, and nothing that is wrong does; every quiz; what the notebooks show."""

import inspect
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import nbformat
import pytest
import torch
from torch import Tensor

from linformer_from_scratch import exercises
from linformer_from_scratch.course.exercises import CHAPTERS, EXERCISES, STEMS, check
from linformer_from_scratch.course.exercises.engine import checking
from linformer_from_scratch.course.exercises.engine.checking import SEEDS, call, judge, observe, tensors
from linformer_from_scratch.course.exercises.engine.quizzes import questions
from linformer_from_scratch.course.exercises.grader.submissions import of_cells

ROOT = Path(__file__).parents[1]
BY_ID = pytest.mark.parametrize("exercise", EXERCISES.values(), ids=EXERCISES.keys())


@BY_ID
def test_the_data_is_complete(exercise):
    assert isinstance(exercise, checking.Exercise) and re.fullmatch(r"\d+\.\d+", exercise.id)
    assert 0 < exercise.minutes <= 30
    assert len(exercise.hints) == 3 and len({*exercise.hints}) == 3 and all(exercise.hints)
    last = exercise.hints[-1]
    assert "…" in last or not last.startswith("return"), "no hint is the whole answer"
    sentences = [checking.sentence_of(mistake) for mistake in exercise.mistakes]
    assert len(sentences) >= 4 and len({*sentences}) == len(sentences)
    for text in sentences:
        assert len(text) > 20 and "\n" not in text and text.endswith((".", "?"))


def test_ids_count_up_within_their_chapter():
    for number, chapter in CHAPTERS.items():
        ids = [exercise.id for exercise in chapter]
        assert ids == [f"{int(number)}.{i}" for i in range(1, len(ids) + 1)]
    assert sum(map(len, CHAPTERS.values())) == len(EXERCISES)


@BY_ID
def test_the_reference_passes(exercise):
    assert check(exercise.id, exercise.reference).message == f"{exercise.id} passed"


def instead(exercise, change):
    """An attempt that returns change(what the reference returns, the arguments); of a class, its forward."""
    reference = exercise.reference
    if not isinstance(reference, type):
        return lambda *args: change(reference(*args), args)

    class Instead(reference):
        def forward(self, *args):
            return change(super().forward(*args), args)

    return Instead


def not_implemented(*ignored):
    raise NotImplementedError


@BY_ID
def test_the_stub_is_not_yet_attempted(exercise):
    result = check(exercise.id, instead(exercise, not_implemented))
    assert result.message == f"{exercise.id} not yet attempted"


@pytest.fixture
def quick(monkeypatch):
    """Makes an exercise of which each mistake runs once a draw, however many attempts it is compared with."""
    seen = {}

    def once(exercise, function, draw):
        key = (function, *map(id, draw.values()))
        if key not in seen or function not in exercise.mistakes:
            seen[key] = observe(exercise, function, draw)
        return seen[key]

    monkeypatch.setattr(checking, "observe", once)
    return cache(lambda exercise: replace(exercise, draw=cache(exercise.draw)))


@BY_ID
def test_a_trivial_answer_fails(exercise, quick):
    inputs = 1 if isinstance(exercise.reference, type) else len(exercise.draw(0))
    answers = [lambda _, args, i=i: args[i] for i in range(inputs)]
    for answer in [*answers, lambda *_: None, lambda right, _: filled(right, 0)]:
        assert judge(quick(exercise), instead(exercise, answer)).status == "failed"


def filled(value, number):
    """The same shape and type as a value of the reference, every entry the same number."""
    if isinstance(value, Tensor):
        return torch.full_like(value, number)
    if isinstance(value, list | tuple):
        return type(value)(filled(item, number) for item in value)
    return type(value)(number)


def changed_values(value, change):
    if isinstance(value, list | tuple):
        return type(value)(changed_values(item, change) for item in value)
    return change(value) if isinstance(value, Tensor) else value


def returns_tensors(exercise):
    return bool(tensors(observe(exercise, exercise.reference, exercise.trial(0)).value))


CHANGES = {
    "an axis more, which broadcasts": lambda value: value[None],
    "a little more": lambda value: value + 1e-2 if value.is_floating_point() else ~value,
    "turned round": lambda value: value.flip(-1) if value.dim() else -value,
}


@BY_ID
@pytest.mark.parametrize("name", CHANGES)
def test_right_values_changed_a_little_fail(exercise, name):
    if not returns_tensors(exercise):
        return
    attempt = instead(exercise, lambda right, _: changed_values(right, CHANGES[name]))
    assert check(exercise.id, attempt).status == "failed"


@BY_ID
def test_right_values_of_another_type_pass(exercise):
    """In float64 everywhere; where no gradient is asked for, as NumPy's arrays and as lists too."""
    ways = [Tensor.double] if exercise.gradients else [Tensor.double, Tensor.numpy, Tensor.tolist]
    for way in ways:

        def written(value, way=way):
            return value if way is Tensor.double and value.dtype == torch.bool else way(value)

        attempt = instead(exercise, lambda right, _, written=written: changed_values(right, written))
        assert check(exercise.id, attempt).status == "passed", way


@BY_ID
def test_right_values_without_their_gradients_fail_where_they_are_asked_for(exercise):
    result = check(exercise.id, instead(exercise, lambda right, _: changed_values(right, Tensor.detach)))
    if exercise.gradients:
        assert "gradient" in result.message
    else:
        assert result.status == "passed"


@BY_ID
def test_every_argument_whose_gradient_is_asked_for_is_drawn_and_needed(exercise):
    trials = [exercise.trial(seed) for seed in SEEDS]
    for name in exercise.gradients:
        assert any(tensor.is_floating_point() for drawn in trials for tensor in tensors(drawn[name]))


def text_of_exercise(exercise):
    """The cell of the chapter that asks for it; its first line is the heading."""
    texts = [cell.source for cell in cells("chapters", exercise) if cell.cell_type == "markdown"]
    (text,) = [text for text in texts if text.startswith(f"### Exercise {exercise.id} ")]
    return text


@BY_ID
def test_a_heading_says_how_hard_how_long_and_which_part(exercise):
    part = f" · part: {exercise.part}" if exercise.part else ""
    heading = f"### Exercise {exercise.id} · {exercise.stars * '★'} · {exercise.minutes} minutes{part}"
    assert text_of_exercise(exercise).splitlines()[0] == heading and exercise.stars in (1, 2, 3)


def test_the_first_chapter_says_for_all_that_gradients_are_compared():
    said = re.findall(
        r"[Gg]radients(?: with respect to [^.]*)? are compared",
        "\n".join(map(text_of_exercise, EXERCISES.values())),
    )
    assert said == [] and "its gradients are compared, too" in (
        ROOT / "chapters/00_start_here.ipynb"
    ).read_text("utf-8")


def is_floating(value):
    return isinstance(value, Tensor) and value.is_floating_point()


@BY_ID
def test_right_values_that_cost_the_inputs_fail(exercise):
    def ruin(right, args):
        result = changed_values(right, Tensor.clone)
        for tensor in filter(is_floating, args):
            tensor.data.zero_()
        return result

    if exercise.use is call and any(map(is_floating, exercise.draw(0))):
        assert "in place" in check(exercise.id, instead(exercise, ruin)).message


@BY_ID
def test_every_mistake_is_refused_with_its_own_sentence(exercise, quick):
    verdicts = {mistake: judge(quick(exercise), mistake) for mistake in exercise.mistakes}
    assert {result.status for result in verdicts.values()} == {"failed"}
    assert {m.__name__ for m, said in verdicts.items() if said.message != checking.sentence_of(m)} == set()


def sizes(draw):
    """The sizes of all axes of all tensors, the numbers, and what else is drawn as text."""
    plain = [str(value) if isinstance(value, dict | list | tuple) else value for value in draw]
    return [size for value in plain for size in (value.shape if isinstance(value, Tensor) else [value])]


@BY_ID
def test_draws_differ_and_some_sizes_are_odd(exercise):
    drawn = [sizes(exercise.draw(seed)) for seed in SEEDS]
    assert len({str(numbers) for numbers in drawn}) == len(SEEDS)
    numbers = [size for some in drawn for size in some if not isinstance(size, str)]
    assert not numbers or any(number % 2 for number in numbers)
    first = [sizes(exercise.draw(seed)[:1]) for seed in SEEDS]
    assert sum(len({*shape}) == len(shape) for shape in first) >= 2, "no axis can be taken for another"
    first, second = tensors(exercise.draw(1)), tensors(exercise.draw(1))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True)), "the same seed, the same draw"


# Quizzes


@pytest.mark.parametrize("number", CHAPTERS)
def test_a_quiz_has_four_to_six_questions_every_option_explained(number):
    asked = questions(STEMS[int(number)])
    assert 4 <= len(asked) <= 6
    assert len({question.text for question in asked}) == len(asked)
    for question in asked:
        options = question.options
        assert 3 <= len(options) <= 6 and sum(option.right for option in options) == 1
        assert len({option.text for option in options}) == len(options)
        assert len({option.explanation for option in options}) == len(options)
        assert all(len(option.explanation) > 10 for option in options)


# What the notebooks show


@cache
def notebook(folder, number):
    return nbformat.read(ROOT / folder / f"{number}_{STEMS[int(number)]}.ipynb", as_version=4).cells


def cells(folder, exercise):
    """The cells of the notebook that belongs to an exercise."""
    return notebook(folder, f"{int(exercise.id.split('.')[0]):02}")


def cells_that_check(folder, exercise):
    call = re.compile(rf"""^check\(["']{re.escape(exercise.id)}["'],""", re.MULTILINE)
    return [cell for cell in cells(folder, exercise) if cell.cell_type == "code" and call.search(cell.source)]


def text_of(cell):
    return "\n".join(output.get("data", {}).get("text/plain", "") for output in cell.outputs)


@BY_ID
def test_every_exercise_stands_in_its_chapter_once_as_a_stub(exercise):
    (cell,) = cells_that_check("chapters", exercise)
    assert re.search(r"^ +raise NotImplementedError$", cell.source, re.MULTILINE)
    assert f"{exercise.id} not yet attempted" in text_of(cell)


def parameters(function):
    return [name for name in inspect.signature(function).parameters if name != "self"]


@BY_ID
def test_a_stub_takes_the_arguments_of_the_reference(exercise):
    (cell,) = cells_that_check("chapters", exercise)
    if isinstance(exercise.reference, type):
        for method in ("__init__", "forward"):
            (stub,) = re.findall(rf"^    def {method}\(self, (.*)\)", cell.source, re.MULTILINE)
            names = parameters(getattr(exercise.reference, method))
            assert argument_names(stub) == names[: len(argument_names(stub))]
    else:
        (stub,) = re.findall(r"^def \w+\((.*)\)", cell.source, re.MULTILINE)
        names = parameters(exercise.reference)
        assert argument_names(stub) == (names[: len(exercise.draw(0))] if exercise.use is call else names)


def argument_names(text):
    return [name.split(":")[0].split("=")[0].strip() for name in text.split(",")]


@pytest.mark.parametrize("number", CHAPTERS)
def test_the_solutions_pass_as_they_say(number, monkeypatch, tmp_path):
    """What is committed below each cell; its cells run in one namespace, each from a file of its own."""
    answers, names = [], {"__name__": "__main__"}
    monkeypatch.setattr(exercises, "check", lambda *asked: answers.append(repr(check(*asked))))
    solved = [cell for cell in notebook("solutions", number) if cell.cell_type == "code"]
    for i, cell in enumerate(solved):
        (file := tmp_path / f"{i}.py").write_text(cell.source, encoding="utf-8")
        exec(compile(cell.source, file, "exec"), names)
    assert answers == [text_of(cell) for cell in solved if cell.outputs]
    passed = [f"✓ {exercise.id} passed" for exercise in CHAPTERS[number]]
    assert [answer.split(",")[0] for answer in answers] == passed


FOLD = r"<details><summary>Our version</summary>\n\n```python\n(.*?)\n```\n\n</details>"


@pytest.mark.parametrize("number", CHAPTERS)
def test_what_is_folded_as_our_version_can_be_pasted_over_the_stub(number, monkeypatch):
    """It passes the check of the exercise above it, with what the cells above it define."""
    before, id, attempts = [], None, {}
    monkeypatch.setattr(exercises, "check", attempts.__setitem__)
    for cell in notebook("chapters", number):
        if cell.cell_type == "code":
            before.append(cell.source)
            id = next(iter(re.findall(r"^check\(\"([\d.]+)\"", cell.source, re.MULTILINE)), id)
        elif "Our version" in cell.source:
            (block,) = re.findall(FOLD, cell.source, re.DOTALL)
            name = re.findall(r"^(?:def|class) (\w+)", block, re.MULTILINE)[-1]
            *_, (_, run) = of_cells([*before, f"{block}\ncheck('{id}', {name})"])
            run()
            assert judge(EXERCISES[id], attempts[id]).status == "passed", id


@pytest.mark.slow
def test_a_python_that_leaves_out_the_sentences_is_refused():
    command = [sys.executable, "-OO", "-c", "import linformer_from_scratch.exercises"]
    said = subprocess.run(command, capture_output=True, encoding="utf-8").stderr
    assert said.splitlines()[-1].startswith("ImportError: python -OO, or PYTHONOPTIMIZE=2, leaves out")
