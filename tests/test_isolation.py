"""What an attempt changes globally is as before once it has run; what a learner set changes no verdict."""

import builtins
import os
import random
import sys
import warnings

import numpy
import pytest
import torch
from torch.nn import functional

from linformer_from_scratch.course.exercises.engine.checking import Exercise, judge
from linformer_from_scratch.course.exercises.engine.isolation import isolated

EXERCISE = Exercise(  # its gradient at 0 is ∞ · 0
    "9.1", 1, lambda x: (x * 0).sqrt() + x, lambda n: (torch.zeros(2 + n),), (), (), ("x",)
)


def right(x):
    numpy.zeros(2) / 0
    return x.mul(0).sqrt() + x


def detached(x):
    return right(x).detach()


def other(*ignored):
    pass


def attribute(owner, name, value=other):
    return lambda: setattr(owner, name, value), lambda: getattr(owner, name)


GLOBAL = {  # a change, and what shows it
    "dtype": (lambda: torch.set_default_dtype(torch.float64), torch.get_default_dtype),
    "device": (lambda: torch.set_default_device("meta"), torch.get_default_device),
    "threads": (lambda: torch.set_num_threads(3), torch.get_num_threads),
    "gradients": (lambda: torch.set_grad_enabled(False), torch.is_grad_enabled),
    "autocast": (lambda: torch.set_autocast_enabled("cpu", True), lambda: torch.is_autocast_enabled("cpu")),
    "anomaly detection": (lambda: torch.autograd.set_detect_anomaly(True), torch.is_anomaly_enabled),
    "NumPy's errors": (lambda: numpy.seterr(all="raise"), numpy.geterr),
    "random numbers": (lambda: random.seed(5), random.getstate),
    "NumPy's random numbers": (lambda: numpy.random.seed(5), lambda: numpy.random.get_state()[1].tolist()),
    "PyTorch's random numbers": (lambda: torch.manual_seed(5), lambda: torch.get_rng_state().tolist()),
    "warnings": (lambda: warnings.simplefilter("error"), lambda: warnings.filters[:]),
    "working directory": (lambda: os.chdir("/"), os.getcwd),
    "a variable more": (lambda: os.environ.update(ATTEMPT="1"), lambda: dict(os.environ)),
    "a variable less": (lambda: os.environ.pop("PATH", None), lambda: dict(os.environ)),
    "output": attribute(sys, "stdout", None),
    "print": attribute(builtins, "print"),
    "print lost": (lambda: vars(builtins).pop("print", None), lambda: hasattr(builtins, "print")),
    "a name more": (lambda: setattr(torch, "mine", 1), lambda: hasattr(torch, "mine")),
    "torch.isclose": attribute(torch, "isclose", lambda *args, **kwargs: torch.tensor(True)),
    "functional.softmax": attribute(functional, "softmax"),
    "a method of tensors": attribute(torch.Tensor, "softmax"),
}


@pytest.mark.parametrize("name", GLOBAL)
def test_what_an_attempt_changes_is_as_before(name):
    change, read = GLOBAL[name]
    torch.manual_seed(3), numpy.random.seed(3), random.seed(3)
    before, seen = read(), []

    def attempt(x):
        change()
        seen.append(read())
        return x

    verdict = judge(EXERCISE, attempt)
    after = read()  # before anything is compared: pytest too needs what was changed
    assert after == before and seen[0] != before and verdict.status == "failed"


SET = ["dtype", "device", "threads", "gradients", "autocast", "anomaly detection", "NumPy's errors"]


@pytest.mark.parametrize("name", SET)
def test_what_a_learner_has_set_changes_no_verdict_and_stays(name):
    change, read = GLOBAL[name]
    with isolated():
        change()
        own = read()
        verdicts = [judge(EXERCISE, attempt).status for attempt in (right, detached)]
        kept = read() == own
    assert verdicts == ["passed", "failed"] and kept


@pytest.mark.parametrize(
    "around",
    [torch.inference_mode(), torch.device("meta"), torch.autocast("cpu")],
    ids=["inference mode", "meta", "autocast"],
)
def test_what_holds_around_a_check_changes_no_verdict(around):
    with around:
        verdicts = [judge(EXERCISE, attempt).status for attempt in (right, detached)]
    assert verdicts == ["passed", "failed"]


def test_every_call_starts_with_the_same_random_numbers():
    drawn = []

    def attempt(x):
        drawn.append((torch.rand(1).item(), random.random(), numpy.random.rand()))
        return x

    judge(EXERCISE, attempt)
    assert len(drawn) == 4 and len({*drawn}) == 1
