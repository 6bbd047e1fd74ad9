"""Whatever an attempt does: afterwards everything global is as it was before."""

import builtins
import contextlib
import copy
import decimal
import gc
import locale
import logging
import math
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import types
import warnings

import numpy
import pytest
import torch
from torch import nn, overrides
from torch.nn import functional
from torch.nn.modules import module
from torch.utils import _python_dispatch
from torch.utils.flop_counter import FlopCounterMode

from linformer_from_scratch.exercises.engine import isolation
from linformer_from_scratch.exercises.engine.checking import Exercise, judge

EXERCISE = Exercise(
    "9.1", "Double.", 1, 1, "?", lambda x: x * 2, lambda seed: (torch.arange(3.0 + seed),), (), ()
)
ROOT = Exercise(  # its gradient at 0 is ∞ · 0
    "9.2", "Root.", 1, 1, "?", lambda x: (x * 0).sqrt(), lambda seed: (torch.zeros(2 + seed),), (), ()
)


def attribute(owner, name, value):
    return lambda: setattr(owner, name, value), lambda: getattr(owner, name)


def other_handler(*args):
    pass


CHANGES = {  # what an attempt does, and what shows it
    "deterministic algorithms": (
        lambda: torch.use_deterministic_algorithms(True),
        torch.are_deterministic_algorithms_enabled,
    ),
    "warnings for deterministic algorithms": (
        lambda: torch.use_deterministic_algorithms(True, warn_only=True),
        torch.is_deterministic_algorithms_warn_only_enabled,
    ),
    "matmul precision": (
        lambda: torch.set_float32_matmul_precision("medium"),
        torch.get_float32_matmul_precision,
    ),
    "anomaly mode": (lambda: torch.autograd.set_detect_anomaly(True), torch.is_anomaly_enabled),
    "anomaly mode without NaN": (
        lambda: torch.autograd.set_detect_anomaly(True, check_nan=False),
        torch.is_anomaly_check_nan_enabled,
    ),
    "flush denormal": (lambda: torch.set_flush_denormal(True), lambda: torch.tensor(1e-40).mul(1).item()),
    "dtype": (lambda: torch.set_default_dtype(torch.float64), torch.get_default_dtype),
    "device": (lambda: torch.set_default_device("meta"), lambda: torch.ones(1).device),
    "threads": (lambda: torch.set_num_threads(3), torch.get_num_threads),
    "gradients": (lambda: torch.set_grad_enabled(False), torch.is_grad_enabled),
    "gradients never switched on again": (lambda: torch.no_grad().__enter__(), torch.is_grad_enabled),
    "inference mode": (
        lambda: kept(torch.inference_mode()).__enter__(),
        torch.is_inference_mode_enabled,
    ),
    "autocast": (lambda: torch.autocast("cpu").__enter__(), lambda: torch.is_autocast_enabled("cpu")),
    "an autocast that is not left": (lambda: torch.autocast("cpu").__enter__(), isolation.autocast_depth),
    "cast weights that are kept": (
        lambda: torch.set_autocast_cache_enabled(False),
        torch.is_autocast_cache_enabled,
    ),
    "type of autocast": (
        lambda: torch.set_autocast_dtype("cpu", torch.float16),
        lambda: torch.get_autocast_dtype("cpu"),
    ),
    "warn always": (lambda: torch.set_warn_always(True), torch.is_warn_always_enabled),
    "flash attention": (
        lambda: torch.backends.cuda.enable_flash_sdp(False),
        torch.backends.cuda.flash_sdp_enabled,
    ),
    "cudnn": attribute(torch.backends.cudnn, "benchmark", True),
    "memory filled": attribute(torch.utils.deterministic, "fill_uninitialized_memory", False),
    "PyTorch's numbers printed": (
        lambda: torch.set_printoptions(1, sci_mode=True),
        lambda: str(torch.ones(1) / 3),
    ),
    "NumPy's numbers printed": (lambda: numpy.set_printoptions(1), lambda: str(numpy.ones(1) / 3)),
    "NumPy's errors": (lambda: numpy.seterr(all="raise"), numpy.geterr),
    "NumPy's answer to errors": (lambda: numpy.seterrcall(other_handler), numpy.geterrcall),
    "random numbers": (lambda: random.seed(5), random.getstate),
    "NumPy's random numbers": (lambda: numpy.random.seed(5), lambda: numpy.random.get_state()[1].tolist()),
    "PyTorch's random numbers": (lambda: torch.manual_seed(5), lambda: torch.get_rng_state().tolist()),
    "working directory": (lambda: os.chdir("/"), os.getcwd),
    "recursion limit": (lambda: sys.setrecursionlimit(5000), sys.getrecursionlimit),
    "low recursion limit": (lambda: lower_limit(), sys.getrecursionlimit),
    "a variable more": (lambda: os.environ.update(ATTEMPT="1"), lambda: dict(os.environ)),
    "a variable less": (lambda: os.environ.pop("PATH"), lambda: dict(os.environ)),
    "locale": (
        lambda: locale.setlocale(locale.LC_ALL, "C" if locale.setlocale(locale.LC_ALL) != "C" else "C.UTF-8"),
        lambda: locale.setlocale(locale.LC_ALL),
    ),
    "decimals": (lambda: setattr(decimal.getcontext(), "prec", 3), lambda: decimal.getcontext().prec),
    "garbage": (gc.disable, gc.isenabled),
    "garbage threshold": (lambda: gc.set_threshold(5, 5, 5), gc.get_threshold),
    "time of connections": (lambda: socket.setdefaulttimeout(1.5), socket.getdefaulttimeout),
    "level of the log": (lambda: logging.root.setLevel(3), lambda: logging.root.level),
    "log disabled": (lambda: logging.disable(), lambda: logging.root.manager.disable),
    "a handler of the log": (
        lambda: logging.root.addHandler(logging.NullHandler()),
        lambda: logging.root.handlers[:],
    ),
    "path of modules": (lambda: sys.path.insert(0, "/nowhere"), lambda: sys.path[:]),
    "another path of modules": (lambda: setattr(sys, "path", []), lambda: sys.path[:]),
    "arguments": (sys.argv.clear, lambda: sys.argv[:]),
    "a module lost": (lambda: sys.modules.pop("json"), lambda: "json" in sys.modules),
    "a module in another's place": (
        lambda: sys.modules.update(json=math),
        lambda: sys.modules["json"],
    ),
    "interrupt": (
        lambda: signal.signal(signal.SIGINT, lambda *_: None),
        lambda: signal.getsignal(signal.SIGINT),
    ),
    "warnings": (lambda: warnings.simplefilter("error"), lambda: warnings.filters[:]),
    "output": attribute(sys, "stdout", None),
    "errors": attribute(sys, "stderr", None),
    "what a cell shows": attribute(sys, "displayhook", other_handler),
    "print": attribute(builtins, "print", other_handler),
    "print lost": (lambda: delattr(builtins, "print"), lambda: hasattr(builtins, "print")),
    "a builtin more": (
        lambda: setattr(builtins, "attempt_was_here", 1),
        lambda: hasattr(builtins, "attempt_was_here"),
    ),
    "torch.softmax": attribute(torch, "softmax", other_handler),
    "torch.isclose": attribute(torch, "isclose", lambda *args, **kwargs: torch.tensor(True)),
    "torch.randn": attribute(torch, "randn", other_handler),
    "functional.softmax": attribute(functional, "softmax", other_handler),
    "nn.Linear": attribute(nn, "Linear", other_handler),
    "softmax of tensors": attribute(torch.Tensor, "softmax", lambda x, dim: x),
    "a method's own": (
        lambda: setattr(torch.Tensor, "detach", other_handler),
        lambda: torch.Tensor.detach,
    ),
    "math.exp": attribute(math, "exp", other_handler),
    "pi": attribute(math, "pi", 3),
    "numpy.exp": attribute(numpy, "exp", other_handler),
    "random.random": attribute(random, "random", lambda: 4),
    "time": attribute(time, "sleep", other_handler),
    "os.path": attribute(os, "path", None),
    "answer to errors of threads": attribute(threading, "excepthook", None),
    "copies": attribute(copy, "deepcopy", None),
    "gradients taken": attribute(torch.autograd, "grad", lambda *args, **kwargs: None),
    "other random numbers of NumPy": (
        lambda: numpy.random.set_bit_generator(numpy.random.PCG64(1)),
        numpy.random.get_bit_generator,
    ),
    "PyTorch taken from the modules": (lambda: sys.modules.pop("torch"), lambda: sys.modules.get("torch")),
    "how modules are found": (sys.meta_path.clear, lambda: sys.meta_path[:]),
    "where modules are found": (sys.path_hooks.clear, lambda: sys.path_hooks[:]),
    "a request to end": (
        lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
        lambda: signal.getsignal(signal.SIGTERM),
    ),
    "what new files may not be": (lambda: os.umask(0o777), lambda: isolation.umask()),
    "turns of threads": (lambda: sys.setswitchinterval(1.0), sys.getswitchinterval),
    "long numbers": (lambda: sys.set_int_max_str_digits(0), sys.get_int_max_str_digits),
    "input": attribute(sys, "stdin", None),
    "a mode for every function": (lambda: Watch().__enter__(), overrides._get_current_function_mode_stack),
    "a mode for every operation": (
        lambda: FlopCounterMode(display=False).__enter__(),
        _python_dispatch._get_current_dispatch_mode_stack,
    ),
    "a hook of every module": (
        lambda: module.register_module_forward_hook(print),
        lambda: dict(module._global_forward_hooks),
    ),
    "a device for ever": (lambda: torch.device("meta").__enter__(), lambda: torch.ones(1).device),
}


class Watch(overrides.TorchFunctionMode):
    """Watches every function."""


KEPT = []


def kept(context):
    """A context that stays open, since nobody forgets it."""
    KEPT.append(context)
    return context


def lower_limit():
    """As low as it goes: it may not be below the depth of the moment."""
    for limit in range(10, 1000):
        with contextlib.suppress(RecursionError):
            sys.setrecursionlimit(limit)
            return


@pytest.mark.parametrize("name", CHANGES)
def test_what_an_attempt_changes_is_as_it_was_before(name):
    change, read = CHANGES[name]
    before, seen = read(), []

    def attempt(x):
        change()
        seen.append(read())
        return x * 2

    judge(EXERCISE, attempt)
    after = read()  # before anything is compared: pytest too needs what was changed
    assert after == before and seen and seen[0] != before


THREADS = torch.get_num_threads()
OWN = {  # what a learner has set, and how it is set back
    "deterministic algorithms": (
        lambda: torch.use_deterministic_algorithms(True, warn_only=True),
        lambda: torch.use_deterministic_algorithms(False),
    ),
    "matmul precision": (
        lambda: torch.set_float32_matmul_precision("high"),
        lambda: torch.set_float32_matmul_precision("highest"),
    ),
    "anomaly mode": (
        lambda: torch.autograd.set_detect_anomaly(True),
        lambda: torch.autograd.set_detect_anomaly(False),
    ),
    "flush denormal": (lambda: torch.set_flush_denormal(True), lambda: torch.set_flush_denormal(False)),
    "dtype": (lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32)),
    "device": (lambda: torch.set_default_device("meta"), lambda: torch.set_default_device(None)),
    "threads": (
        lambda: torch.set_num_threads(3),
        lambda threads=THREADS: torch.set_num_threads(threads),
    ),
    "PyTorch's numbers printed": (
        lambda: torch.set_printoptions(1),
        lambda: torch.set_printoptions(profile="default"),
    ),
    "NumPy's errors": (lambda: numpy.seterr(all="raise"), lambda: numpy.seterr(all="warn", under="ignore")),
    "recursion limit": (lambda: sys.setrecursionlimit(3000), lambda: sys.setrecursionlimit(1000)),
    "garbage": (gc.disable, gc.enable),
    "print": (
        lambda: setattr(builtins, "print", other_handler),
        lambda own=print: setattr(builtins, "print", own),
    ),
    "torch.rand": (
        lambda: setattr(torch, "rand", other_handler),
        lambda own=torch.rand: setattr(torch, "rand", own),
    ),
}


def denormal(x):
    """Doubles, by way of a number that is zero where denormals are flushed."""
    return x * (torch.tensor(1e-40).mul(1) / 1e-40) * 2


def careless(x):
    """Doubles, and divides by zero in NumPy."""
    numpy.zeros(2) / 0
    return denormal(x)


@pytest.mark.parametrize("name", OWN)
def test_what_a_learner_has_set_is_kept_and_changes_no_verdict(name):
    change, undo = OWN[name]
    read = CHANGES.get(name, (None, lambda: torch.rand))[1]
    try:
        change()
        own = read()
        verdicts = [judge(EXERCISE, careless), judge(ROOT, lambda x: x.mul(0).sqrt())]
        kept = read() == own
    finally:
        undo()
    assert [verdict.status for verdict in verdicts] == ["passed", "passed"]
    assert kept


def test_a_device_that_holds_around_a_check_changes_no_verdict():
    with torch.device("meta"):
        result = judge(EXERCISE, careless)
        assert torch.ones(1).device.type == "meta"
    assert result.status == "passed" and torch.ones(1).device.type == "cpu"


def test_autocast_around_a_check_changes_no_verdict():
    product = Exercise(
        "9.3", "?", 1, 1, "?", lambda x: x @ x, lambda seed: (torch.ones(2 + seed, 2 + seed) / 3,), (), ()
    )
    with torch.autocast("cpu"):
        assert judge(product, lambda x: x @ x).status == "passed"
        assert torch.is_autocast_enabled("cpu")


@pytest.mark.skipif(os.name != "posix", reason="no variables in bytes here")
def test_what_another_thread_does_to_the_environment_meanwhile_stays(monkeypatch):
    names = ("THEIRS", "THEIRS_NO_MORE", "OWN", "OWN_NO_MORE", "OWN_IN_BYTES")
    for name in names:
        monkeypatch.setenv(name, "before")

    def other():
        os.environ["THEIRS"] = "set"
        del os.environ["THEIRS_NO_MORE"]

    def attempt(x):
        os.environ.update(OWN="changed", OWN_TOO="new")
        os.environ.pop("OWN_NO_MORE", None)
        os.environb[b"OWN_IN_BYTES"] = b"changed"
        if "THEIRS_NO_MORE" in os.environ:
            thread = threading.Thread(target=other)
            thread.start(), thread.join()
        return x * 2

    plain = os.putenv, os.unsetenv
    assert judge(EXERCISE, attempt).status == "passed"
    assert [os.environ.get(name) for name in names] == ["set", None, "before", "before", "before"]
    assert "OWN_TOO" not in os.environ and (os.putenv, os.unsetenv) == plain


def test_every_call_starts_afresh():
    """What the first call changes, the second does not find."""
    found = []

    def attempt(x):
        found.append((torch.rand(1).item(), random.random(), numpy.random.rand(), torch.get_default_dtype()))
        torch.set_default_dtype(torch.float64)
        return x * 2

    judge(EXERCISE, attempt)
    assert len(found) == 4 and len({*found}) == 1


def test_an_attempt_cannot_deceive_the_comparison():
    def attempt(x):
        torch.isclose = lambda *args, **kwargs: torch.tensor(True)
        torch.Tensor.all = lambda *args: True
        builtins.any = lambda *args: False
        return x

    assert judge(EXERCISE, attempt).status == "failed"


def test_a_backward_pass_may_change_as_much():
    class Vandal(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, upstream):
            torch.set_default_dtype(torch.float64)
            torch.softmax = other_handler
            return upstream * 2

    softmax = torch.softmax
    assert judge(EXERCISE, Vandal.apply).status == "passed"
    assert torch.softmax is softmax and torch.get_default_dtype() is torch.float32


def test_no_attempt_closes_the_output(capsys):
    def attempt(x):
        print("before")
        sys.stdout.close(), sys.stderr.close(), sys.stdin.close(), sys.stdout.detach()
        with sys.stdout:
            print("after")
        return x * 2

    output = sys.stdout
    assert judge(EXERCISE, attempt).status == "passed"
    assert sys.stdout is output and not output.closed
    assert capsys.readouterr().out == "before\nafter\n" * 4


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarms here")
def test_no_attempt_leaves_an_alarm():
    def attempt(x):
        signal.alarm(5)
        return x * 2

    judge(EXERCISE, attempt)
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_hooks_of_debuggers_are_as_they_were():
    before = sys.gettrace(), sys.getprofile()

    def attempt(x):
        sys.settrace(lambda *args: None), sys.setprofile(lambda *args: None)
        return x * 2

    judge(EXERCISE, attempt)
    assert (sys.gettrace(), sys.getprofile()) == before


def test_a_check_works_in_another_thread():
    results = []
    thread = threading.Thread(target=lambda: results.append(judge(EXERCISE, lambda x: x + x)))
    thread.start(), thread.join()
    assert results[0].status == "passed"


def test_a_module_imported_by_an_attempt_stays():
    module = types.ModuleType("late")

    def attempt(x):
        torch.late = module
        return x * 2

    judge(EXERCISE, attempt)
    assert vars(torch).pop("late") is module


def test_where_the_output_is_none_a_check_goes_on(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert judge(EXERCISE, lambda x: print("nobody") or x * 2).status == "passed"


def test_the_first_check_does_not_load_the_compiler_of_pytorch():
    code = """
import sys
from linformer_from_scratch.exercises import EXERCISES
from linformer_from_scratch.exercises.engine import checking as engine
engine.judge(EXERCISES["0.1"], EXERCISES["0.1"].reference)
print("torch._inductor" in sys.modules)
"""
    seen = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    assert seen.stdout == "False\n"


@pytest.mark.parametrize("name", ["len", "isinstance", "type", "map", "all", "getattr", "next", "__import__"])
@pytest.mark.parametrize("value", [None, other_handler])
def test_even_what_the_engine_itself_is_made_of_is_put_back(name, value):
    def attempt(x):
        vars(builtins)[name] = value
        return x * 2

    own = vars(builtins)[name]
    judge(EXERCISE, attempt)
    kept, vars(builtins)[name] = vars(builtins)[name], own
    assert kept is own


def test_the_numbers_that_numpy_would_have_drawn_next_are_drawn_next():
    for generator in (numpy.random.MT19937(3), numpy.random.PCG64(3)):
        own = numpy.random.get_bit_generator()
        try:
            numpy.random.set_bit_generator(generator)
            numpy.random.randn()  # keeps a second one for later
            state = numpy.random.get_state(legacy=False)
            expected = numpy.random.randn(), numpy.random.rand()
            numpy.random.set_state(state)
            judge(EXERCISE, lambda x: x * 2 + 0 * numpy.random.randn())
            assert (numpy.random.randn(), numpy.random.rand()) == expected
        finally:
            numpy.random.set_bit_generator(own)
