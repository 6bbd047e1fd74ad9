"""The engine, on one small exercise: right answers pass, everything else is refused in one sentence."""

import functools
import html
import math
from dataclasses import replace

import numpy
import pytest
import torch
from torch import nn

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.course import exercises
from linformer_from_scratch.course.exercises import check, hint
from linformer_from_scratch.course.exercises.engine.checking import SEEDS, Exercise, Refused, judge

SIZES = ((5, 7, 3), (3, 2, 11), (1, 5, 2), (4, 4, 6))


def attend(q, k):
    return scaled_dot_product_attention(q, k, k)


def draw(seed):
    n, m, d = SIZES[seed]
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, n, d, generator=generator), torch.randn(2, m, d, generator=generator)


def unscaled(q, k):
    """Divide by √d."""
    return (q @ k.mT).softmax(-1) @ k


def transpose_missing(q, k):
    """Turn the keys round."""
    return (q @ k).softmax(-1) @ k


def keys_changed(q, k):
    """Do not write into k."""
    k.mul_(2)
    return attend(q, k / 2)


def queries_detached(q, k):
    """Let the queries learn too."""
    return attend(q.detach(), k)


MISTAKES = (unscaled, transpose_missing, keys_changed, queries_detached)
EXERCISE = Exercise("9.1", 5, attend, draw, MISTAKES, ("Nudge.", "Shape.", "Code."), ("q", "k"))


def exercise(reference, *draws, gradients=()):
    return Exercise("9.2", 1, reference, lambda seed: draws[seed % len(draws)], (), (), gradients)


def message(attempt, exercise=EXERCISE):
    result = judge(exercise, attempt)
    assert result.status == "failed"
    return result.message


def test_another_way_to_the_same_values_and_gradients_passes():
    def written_out(q, k):
        return torch.einsum("bnd,bmd->bnm", q, k).div(q.size(-1) ** 0.5).softmax(-1) @ k

    assert judge(EXERCISE, functools.partial(written_out)).status == "passed"


def cell(source):
    """A function made as in a notebook's cell, whose file is its own."""
    names = {"__name__": "__main__", "torch": torch}
    exec(compile(source, f"<cell {hash(source)}>", "exec"), names)
    return names["attempt"]


class Unfinished(torch.autograd.Function):
    pass  # PyTorch raises a NotImplementedError of its own


@pytest.mark.parametrize(
    "attempt",
    [cell("def attempt(q, k):\n    raise NotImplementedError('later')"), lambda q, k: Unfinished.apply(q)],
)
def test_errors_that_only_look_like_a_stub_are_failures(attempt):
    assert message(attempt).startswith("Raised NotImplementedError: ")


def test_a_stub_of_another_cell_is_not_this_attempt():
    helper = cell("def attempt(q, k):\n    raise NotImplementedError")
    names = {"__name__": "__main__", "helper": helper}
    exec(compile("def attempt(q, k):\n    return helper(q, k)", "<another cell>", "exec"), names)
    assert message(names["attempt"]).startswith("Raised NotImplementedError at line 2 of your cell")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_known_mistake_gets_its_own_sentence(mistake):
    assert message(mistake) == mistake.__doc__


def test_a_known_mistake_is_known_in_other_words_and_whatever_its_gradients():
    def attempt(q, k):
        return torch.einsum("bnm,bmd->bnd", torch.einsum("bnd,bmd->bnm", q, k).softmax(-1), k)

    assert message(attempt) == message(lambda q, k: attempt(q, k).detach()) == unscaled.__doc__


def test_half_a_mistake_is_not_that_mistake():
    def attempt(q, k):
        return unscaled(q, k) if len(q[0]) > 1 else attend(q, k) + 1

    assert message(attempt).startswith("Largest difference")


BUT = "The values are right, but"
GENERIC = {
    "shape": (lambda q, k: attend(q, k)[:, 1:], "Got shape (2, 4, 3), expected (2, 5, 3)"),
    "broadcast": (lambda q, k: attend(q, k)[:1], "Got shape (1, 5, 3), expected (2, 5, 3)"),
    "truths": (lambda q, k: attend(q, k) > 0, "Got True and False, expected numbers"),
    "complex": (lambda q, k: attend(q, k) + 0j, "Got dtype torch.complex64, expected real numbers"),
    "device": (lambda q, k: attend(q, k).to("meta"), "Got device meta, expected cpu"),
    "sparse": (lambda q, k: attend(q, k).to_sparse(), "Got layout torch.sparse_coo, expected torch.strided"),
    "None": (lambda q, k: None, "Returned None (is the return line missing?), expected a tensor of shape"),
    "ragged": (lambda q, k: [[1.0], [1.0, 2.0]], "Returned a list of length 2, expected a tensor of shape"),
    "number": (lambda q, k: 0.5, "Returned 0.5 (float), expected a tensor of shape (2, 5, 3)"),
    "objects": (lambda q, k: numpy.full((2, 5, 3), None), "Got dtype object, expected real numbers"),
    "input": (lambda q, k: q, "Largest difference"),
    "NaN": (lambda q, k: attend(q, k).index_fill(1, torch.tensor(3), math.nan), "NaN at index (0, 3, 0)"),
    "infinite": (lambda q, k: attend(q, k) / 0, "Largest difference inf at index (0, 0, 0): got "),
    "one entry": (lambda q, k: attend(q, k) + spike(q), "Largest difference 0.001 at index (1, 2, 0): got "),
    "in place": (lambda q, k: attend(q, k) + 0 * k.add_(1).sum(), "You changed argument k in place"),
    "shape in place": (lambda q, k: (attend(q, k), q.unsqueeze_(0))[0], "You changed argument q in place"),
    "a little": (lambda q, k: (attend(q + 0, k), q.mul_(1 + 1e-6))[0], "You changed argument q in place"),
    "through data": (lambda q, k: (attend(q, k), q.data.zero_())[0], "You changed argument q in place"),
    "gradient cut": (lambda q, k: attend(q, k.detach()), f"{BUT} no gradient flows to k: "),
    "all cut": (lambda q, k: attend(q, k).detach(), f"{BUT} no gradient flows to q and k: "),
    "gradient": (lambda q, k: attend(q, k) + 0.1 * (q - q.detach()), f"{BUT} the gradient of q is not: "),
    "raises": (lambda q, k: Raising.apply(q, k), f"{BUT} the backward pass raised SystemExit: no way"),
    "NumPy": (lambda q, k: q.numpy(), "Gradients are compared in this exercise, so stay with PyTorch at "),
}


def spike(q):
    zeros = torch.zeros_like(q)
    zeros[1, 2, 0] = 1e-3
    return zeros


class Raising(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k):
        return attend(q, k)

    @staticmethod
    def backward(ctx, upstream):
        raise SystemExit("no way back")


@pytest.mark.parametrize("name", GENERIC)
def test_what_is_wrong_is_said_with_both_sides(name):
    attempt, beginning = GENERIC[name]
    said = message(attempt)
    assert said.startswith(beginning)
    assert said.endswith("; inputs: q (2, 5, 3), k (2, 7, 3).")
    assert "\n" not in said


def test_the_line_that_raised_is_quoted():
    def attempt(q, k):
        zero = len(q) - 2
        return q / (1 // zero)

    where = f"at line {attempt.__code__.co_firstlineno + 2} of test_engine.py: `return q / (1 // zero)`"
    error = "Raised ZeroDivisionError: integer division or modulo by zero"
    assert message(attempt).startswith(f"{error} {where}")


def test_the_deepest_line_of_the_learner_is_quoted_and_it_cannot_end_the_notebook():
    said = message(lambda q, k: raising(SystemExit(3))(q, k))
    assert said.startswith("Raised SystemExit: 3 at line ")
    assert "`raise error`" in said and "lambda" not in said


def test_the_line_is_the_learners_own_where_pytorch_raises():
    said = message(lambda q, k: torch.cat([q, k]))
    assert "Sizes of tensors must match" in said and "torch.cat([q, k])" in said


def test_a_wrong_number_of_arguments_is_told_the_arguments():
    said = message(lambda q: q)
    assert "takes 1 positional argument but 2 were given when called with 2 arguments (q, k)" in said


class Yes(torch.Tensor):
    """Equal to everything."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return True


def raising(error):
    def attempt(q, k):
        raise error

    return attempt


def endless(q, k):
    return endless(q, k)


def generator(q, k):
    yield attend(q, k)


ANY_WAY = [
    *(None, "attend", torch.ones(2, 5, 3), nn.Linear, nn.Linear(3, 3), print, endless, generator),
    *(lambda: None, lambda q, k, v: q, lambda q, k: attend(q, k).as_subclass(Yes), lambda q, k: "no"),
    *(lambda q, k: lambda: q, lambda q, k: torch.empty(10**15)),
    *map(raising, [SystemExit(1), MemoryError(), BaseException("base"), StopIteration()]),
    *map(raising, [ValueError("two\nlines"), ValueError("long" * 1000)]),
]


@pytest.mark.parametrize("attempt", ANY_WAY, ids=lambda attempt: getattr(attempt, "__name__", "object"))
def test_an_attempt_may_be_wrong_in_any_way(attempt):
    said = message(attempt)
    assert said and said.isprintable() and len(said) < 600


def test_gradients_that_vanish_under_equal_weights_are_asked_for():
    """The rows of a softmax sum to one, so a constant upstream gradient would see nothing."""
    softmax = exercise(lambda x: x.softmax(-1), (torch.arange(6.0).view(2, 3),), gradients=("x",))
    said = message(lambda x: x.softmax(-1).detach() + 0 * x, softmax)
    assert said.startswith(f"{BUT} no gradient flows to x")


def test_an_interrupted_attempt_is_not_run_again():
    calls = []

    def attempt(q, k):
        calls.append(1)
        raise KeyboardInterrupt

    assert message(attempt) == "Stopped before it returned." and len(calls) == 1


def test_one_odd_draw_is_enough_to_fail():
    assert "inputs: q (2, 1, 2)" in message(lambda q, k: attend(q, k).squeeze(1))


def test_several_values_are_compared_one_by_one():
    both = exercise(lambda q: (q + 1, (2, True)), (torch.ones(3),), gradients=("q",))
    assert judge(both, lambda q: (1 + q, (2, True))).status == "passed"
    assert judge(both, lambda q: [q + 1, [2.0, True]]).status == "passed"
    said = message(lambda q: (q + 1, (2, False)), both)
    assert said.startswith("Value 2 of 2: Value 2 of 2: Got False (bool), expected True")
    assert message(lambda q: (q + 1,), both).startswith("Returned 1 values, expected 2")
    assert "no gradient flows to q" in message(lambda q: ((q + 1).detach(), (2, True)), both)


def test_a_list_of_inputs_must_stay_as_it_was():
    parts = [torch.ones(2), torch.zeros(3)]
    joined = exercise(lambda parts: torch.cat(parts), (parts,), gradients=("parts",))
    assert judge(joined, torch.cat).status == "passed"
    said = message(lambda parts: torch.cat([parts.pop(0), *parts]), joined)
    assert said.startswith("You changed argument parts")
    said = message(lambda parts: torch.cat([p.detach() for p in parts]), joined)
    assert said.startswith(f"{BUT} no gradient flows to parts[0] and parts[1]")


def test_rows_for_a_tuple_and_a_list_of_rows_for_a_tensor_have_gradients():
    both = exercise(lambda x: (2 * x, x.square()), (torch.arange(3.0),), gradients=("x",))
    assert judge(both, lambda x: torch.stack([2 * x, x**2])).status == "passed"
    assert "gradient of x is not" in message(lambda x: torch.stack([2 * x, x * x.detach()]), both)
    double = exercise(lambda x: 2 * x, (torch.rand(3, 4),), gradients=("x",))
    assert judge(double, lambda x: [2 * row for row in x]).status == "passed"
    assert "no gradient" in message(lambda x: [2 * row.detach() for row in x], double)


def test_rounding_where_the_true_gradient_is_zero_is_no_mistake():
    def one(x):
        return (3 * x).softmax(-1).sum(-1)

    constant = exercise(one, (torch.arange(6.0).view(2, 3),), gradients=("x",))
    assert judge(constant, lambda x: (x * 3 + 1).softmax(-1).sum(-1)).status == "passed"
    assert "gradient" in message(lambda x: one(x) + 1e-4 * (x - x.detach()).sum(-1), constant)


def test_a_class_is_told_its_own_error():
    def build(kind, x):
        return kind()(x)

    class Doubles(nn.Module):
        def forward(self, x):
            return 2 * x

    class Takes(nn.Module):
        def forward(self):
            return 0

    doubles = replace(exercise(Doubles, (torch.ones(3),)), use=build)
    assert judge(doubles, Doubles).status == "passed"
    said = message(Takes, doubles)
    assert said.startswith("Raised TypeError: test_a_class_is_told_its_own_error.<locals>.Takes")
    assert "when called with" not in said


def test_what_the_use_of_an_attempt_finds_wrong_is_said_in_its_words():
    def checked(kind, x):
        if not hasattr(kind, "size"):
            raise Refused("the class has no size")
        return x

    sized = replace(exercise(Sized, (torch.ones(3),)), use=checked)
    assert judge(sized, Sized).status == "passed"
    assert message(object, sized) == "the class has no size; inputs: x (3,)."


class Sized:
    size = 3


def test_of_a_class_half_written_it_says_what_is_open():
    class Half:
        def __init__(self):
            self.made = True

        def first(self):
            return 1

        def second(self):
            raise NotImplementedError

    class Stub(Half):
        def first(self):
            raise NotImplementedError

        def second(self):
            raise NotImplementedError

    both = replace(exercise(Sized, (torch.ones(3),)), use=lambda kind, x: kind is Sized or kind().second())
    assert judge(both, Half).message == "9.2 not yet attempted: second still to be written"
    assert judge(both, Stub).message == "9.2 not yet attempted"


@pytest.mark.parametrize("size", [0, 1e-8, 1e-6])
@pytest.mark.parametrize("own", [0, 1e-8, 1e-6])
def test_what_kernels_leave_of_a_true_gradient_of_zero_decides_nothing(size, own):
    """The reference's kernel may leave some rounding where another leaves none, and the other way round."""

    def leaving(rounding):
        return lambda q, k: q + 0 * k if q.dtype is torch.float64 else q + rounding * (k - k.detach())

    one = exercise(leaving(size), (torch.ones(1, 3), torch.ones(1, 3)), gradients=("q", "k"))
    assert judge(one, leaving(own)).status == "passed"
    assert "no gradient flows to q" in message(lambda q, k: q.detach() + 0 * k, one)
    assert "gradient of k is not" in message(lambda q, k: q + 1e-3 * (k - k.detach()), one)
    assert "gradient of k is not: NaN" in message(lambda q, k: q + 0 * (k - k.detach()).sqrt(), one)


def test_gradients_are_asked_for_only_where_the_exercise_says_so():
    total = exercise(lambda x, w: (x * w).sum(-1), (torch.ones(2, 3), torch.arange(3.0)), gradients=("x",))
    assert judge(total, lambda x, w: x @ w.detach()).status == "passed"
    assert "no gradient flows to x: " in message(lambda x, w: x.detach() @ w, total)
    assert judge(replace(total, gradients=()), lambda x, w: x.numpy() @ w.numpy()).status == "passed"


def test_results_show_themselves_as_text_and_html():
    results = [judge(EXERCISE, attempt) for attempt in (attend, unscaled, raising(NotImplementedError()))]
    shown = ["✓ 9.1 passed", "✗ 9.1 · Divide by √d.", "○ 9.1 not yet attempted"]
    assert [repr(result) for result in results] == shown
    for result in (*results, judge(EXERCISE, raising(ValueError("<b>")))):
        page = result._repr_html_()
        assert html.escape(result.message) in page
        assert "color:" not in page.replace("border-", "") and "background" not in page  # the page's own


@pytest.mark.parametrize(
    "id, names",
    [("1.99", "1.1, 1.2"), ("99.1", "the closest are"), (attend, "an id is text"), ([], "an id is")],
)
def test_an_unknown_id_is_told_the_known_ones(id, names):
    for result in (check(id, "1.1"), hint(id)):
        assert result.status == "failed" and names in result.message and "There is no such" in result.message


def test_check_and_hint_find_the_exercise(monkeypatch):
    monkeypatch.setitem(exercises.EXERCISES, "9.1", EXERCISE)
    assert check("9.1", attend).status == "passed"
    assert [repr(hint("9.1")).count("\n") for _ in range(4)] == [2, 3, 4, 4]
    assert repr(hint("9.1")).endswith("3. Code.\nThat was the last one; solutions/ has the answer.")


def test_every_draw_is_used():
    seeds = []
    counting = replace(EXERCISE, draw=lambda seed: seeds.append(seed) or draw(seed))
    judge(counting, attend)
    assert seeds == list(SEEDS)
