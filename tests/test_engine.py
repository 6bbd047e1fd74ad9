"""The engine: whatever an attempt is or does, the answer is one sentence, never a traceback, never a pass."""

import random

import numpy as np
import pytest
import torch

from linformer_from_scratch.exercises import check, hint, progress, store
from linformer_from_scratch.exercises.engine import Exercise, judge


def scale(x, factor):
    return x * factor


def forgot(x, factor):
    """Multiply by the factor."""
    return x.clone()


def added(x, factor):
    """Multiply, do not add."""
    return x + factor


def draw(seed):
    n = (5, 3, 1, 7)[seed]
    return torch.randn(n, 2, generator=torch.Generator().manual_seed(seed)), seed + 2


EXERCISE = Exercise("9.1", "Scale x.", 1, 1, "nothing", scale, draw, (forgot, added), ("a", "b", "c"))


class Odd:
    """Everything one may ask of it raises."""

    @property
    def __class__(self):
        raise RuntimeError("no class")

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    __hash__ = None

    def __repr__(self):
        raise RuntimeError("no words")


def in_place(x, factor):
    x *= factor
    return x.clone()


def reshaped(x, factor):
    result = x * factor
    x.unsqueeze_(0)
    return result


def endless(x, factor):
    return endless(x, factor)


def stops(x, factor):
    raise KeyboardInterrupt


def leaves(x, factor):
    raise SystemExit(0)


def generates(x, factor):
    yield x * factor


FAULTS = {
    "is no function": (7, "expected the function itself, got an int"),
    "returns nothing": (lambda x, factor: None, "returns None: is the return line missing?"),
    "returns a list": (lambda x, factor: (x * factor).tolist(), "returns a list, expected a Tensor"),
    "returns an array": (
        lambda x, factor: (x * factor).detach().numpy(),
        "returns a ndarray, expected a Tensor",
    ),
    "returns an odd thing": (lambda x, factor: Odd(), "returns an Odd, expected a Tensor"),
    "returns a generator": (generates, "returns a generator, expected a Tensor"),
    "would broadcast": (lambda x, factor: (x * factor)[:1], r"returns shape (1, 2), expected (5, 2)"),
    "has another dtype": (
        lambda x, factor: (x * factor).double(),
        "returns dtype torch.float64, expected torch.float32",
    ),
    "is complex": (lambda x, factor: (x * factor) + 0j, "returns dtype torch.complex64"),
    "has NaN": (lambda x, factor: x * factor * torch.nan, "returns NaN at index (0, 0)"),
    "is a little off": (lambda x, factor: x * factor + 0.01, "of shape (5, 2), expected"),
    "has no gradient": (lambda x, factor: (x * factor).detach(), "the gradient does not reach argument 1"),
    "has half a gradient": (
        lambda x, factor: x * factor / 2 + (x * factor / 2).detach(),
        "gradient is wrong at argument 1",
    ),
    "changes its input": (in_place, "changes argument 1 in place: work on a copy"),
    "changes its input's shape": (reshaped, "changes argument 1 in place"),
    "raises": (lambda x, factor: x / [], "it raises TypeError"),
    "takes too few": (lambda x: x, "it raises TypeError"),
    "never ends": (endless, "it raises RecursionError"),
    "is interrupted": (stops, "stopped before it returned"),
    "exits": (leaves, "it raises SystemExit"),
    "is not implemented by PyTorch": (lambda x, factor: torch.ones(2, device="meta").item(), "it raises"),
    "is a class": (dict, "it raises"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_attempt_that(name):
    attempt, words = FAULTS[name]
    result = judge(EXERCISE, attempt)
    assert result.status == "failed" and words in result.message
    assert "\n" not in result.message and "Traceback" not in result.message
    assert result.message in repr(result) and "<div" in result._repr_html_()


def test_the_line_that_raised_is_shown():
    def attempt(x, factor):
        return x @ x

    message = judge(EXERCISE, attempt).message
    assert message.endswith("of your cell: return x @ x") and "RuntimeError" in message


def test_a_number_is_compared_as_a_number():
    counting = Exercise("9.2", "", 1, 1, "", lambda n: 2 * n, lambda seed: (seed + 1,), (), ())
    assert judge(counting, lambda n: n + n).status == "passed"
    assert judge(counting, lambda n: 2.0 * n).status == "passed"
    assert "returns 2, expected 4, for the arguments (2,)" in judge(counting, lambda n: 2).message
    assert judge(counting, lambda n: True).status == "failed"
    assert "returns a Tensor, expected an int" in judge(counting, lambda n: torch.tensor(2 * n)).message
    assert judge(counting, lambda n: float("nan")).status == "failed"


def test_a_fault_on_one_odd_draw_is_a_fault():
    assert judge(EXERCISE, lambda x, factor: x * (factor if len(x) > 1 else 1)).status == "failed"


def test_stub_and_torchs_own_not_implemented_error_differ():
    def torchs(x, factor):
        raise NotImplementedError("no kernel for this")

    assert judge(EXERCISE, torchs).status == "failed"


def test_nothing_global_is_disturbed():
    def greedy(x, factor):
        torch.manual_seed(1)
        np.random.seed(1)
        random.seed(1)
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        return x * factor

    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    judge(EXERCISE, greedy)
    assert torch.equal(states[0], torch.get_rng_state())
    assert (states[1] == np.random.get_state()[1]).all() and states[2] == random.getstate()
    assert torch.is_grad_enabled() and torch.get_default_dtype() == torch.float32


def test_an_unknown_exercise_is_answered_with_the_known_ones():
    result = check("9.9", scale)
    assert result.status == "failed" and "no exercise '9.9'; there are 0.1, 1.1" in result.message
    assert "no exercise '9.9'" in repr(hint("9.9"))


@pytest.fixture
def record(tmp_path, monkeypatch):
    monkeypatch.setenv("LINFORMER_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "progress.json"


def test_progress_counts_passed_hinted_and_open(record):
    check("0.1", lambda n, num_heads: num_heads * n * n)
    hint("1.1")
    assert [line.split() for line in progress().lines[1:3]] == [["00", "1", "0", "0"], ["01", "0", "1", "5"]]


def test_a_failed_attempt_later_takes_nothing_back(record):
    check("0.1", lambda n, num_heads: num_heads * n * n)
    check("0.1", lambda n, num_heads: 0)
    assert store.load()["0.1"]["passed"]


@pytest.mark.parametrize("content", [b"{ not json", b"[1, 2]", b'{"1.1": 3}', b"\xff\xfe\0"])
def test_a_damaged_or_foreign_file_is_set_aside_with_a_word(record, capsys, content):
    record.write_bytes(content)
    assert progress().lines[1].split() == ["00", "0", "0", "1"]
    assert "progress.json.damaged" in capsys.readouterr().out
    assert record.with_name("progress.json.damaged").read_bytes() == content and not record.exists()


def test_where_nothing_can_be_written_checks_go_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LINFORMER_PROGRESS", str(tmp_path / "no such folder" / "progress.json"))
    assert check("0.1", lambda n, num_heads: num_heads * n * n).status == "passed"
    assert "progress is not kept" in capsys.readouterr().out
