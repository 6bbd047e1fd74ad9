"""Whatever an attempt does to Python, NumPy or PyTorch as a whole: afterwards it is as it was before.

What cannot be undone: files written, threads left running, streams closed below Python, limits of the process,
and patches of other modules and classes than those named here.
"""

import builtins
import copy
import decimal
import gc
import inspect
import json
import linecache
import locale
import logging
import math
import operator
import os
import random
import signal
import socket
import sys
import threading
import time
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from sys import setrecursionlimit
from typing import Any

import numpy
import torch
from numpy.random import mtrand
from torch import Tensor, nn, overrides
from torch.nn import functional
from torch.nn.modules import module
from torch.utils import _python_dispatch

USED = (builtins, sys, copy, inspect, json, linecache, math, os, random, threading, time, traceback, warnings)
NAMESPACES = (*USED, numpy, torch, torch.autograd, Tensor, nn, functional)  # by learners or by us
AS_IT_IS = object()


@dataclass(frozen=True)
class Setting:
    """How something global is read and written, and how it starts for an attempt: the same for all, or as it is."""

    read: Callable[[], Any]
    write: Callable[[Any], object]
    start: Any = AS_IT_IS


@contextmanager
def isolated() -> Iterator["Afresh"]:
    """Inside: PyTorch and NumPy as they start. Afterwards: everything global as it was before.

    What it gives is a context for every single call of an attempt.
    """
    with ExitStack() as stack:
        for name in ("stdin", "stdout", "stderr"):
            stream = getattr(sys, name)
            stack.callback(setattr, sys, name, stream)
            setattr(sys, name, stream and Unclosable(stream))
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(own_environment())
        for setting in SETTINGS:
            stack.callback(setting.write, setting.read())
        afresh = Afresh({namespace: dict(vars(namespace)) for namespace in NAMESPACES})
        stack.enter_context(afresh)
        yield afresh


class Afresh:
    """Inside: a fair start, seeds fixed, gradients on. Afterwards: the same again, and every name what it was."""

    def __init__(self, names: dict[object, dict[str, object]]):
        self.names = names
        self.modules = sys.modules.copy()
        self.recording: list[torch.inference_mode] = []  # one is entered within another

    def __enter__(self):
        self.depth = sys.getrecursionlimit()
        self.recording.append(torch.inference_mode(False))
        self.recording[-1].__enter__()
        start()
        self.modes = [(stack, stack.read()) for stack in MODES]

    def __exit__(self, *error):
        builtins.__dict__.update(self.names[builtins])  # all that follows needs these
        setrecursionlimit(self.depth)
        sys.__dict__.update(self.names[sys])
        sys.modules.update(self.modules)
        for namespace, kept in self.names.items():
            put_back(namespace, kept)
        for stack, modes in self.modes:
            stack.write(modes)
        self.recording.pop().__exit__(*error)
        start()


def start() -> None:
    """What every attempt finds."""
    warnings.simplefilter("ignore")  # what an attempt warns of is not what its author needs to hear
    for setting in SETTINGS:
        if setting.start is not AS_IT_IS:
            setting.write(setting.start)
    random.seed(0)
    numpy.random.seed(0)
    torch.default_generator.manual_seed(0)  # the CPU's only: nothing waits for a GPU to start


class Unclosable:
    """A stream that whoever reads or prints cannot close."""

    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """Stay open: others go on printing."""

    detach = close


@contextmanager
def own_environment() -> Iterator[None]:
    """Afterwards: the variables that this thread set or deleted are as before; what other threads did stays."""
    thread, plain = threading.get_ident(), (os.putenv, os.unsetenv)
    before: dict[str, str | None] = {}

    def noting(write: Callable) -> Callable:
        def noted(key: Any, *value: Any) -> None:
            if threading.get_ident() == thread:
                name = os.fsdecode(key)
                before.setdefault(name, os.environ.get(name))
            write(key, *value)

        return noted

    # Every change of os.environ goes through these two.
    os.putenv, os.unsetenv = noting(os.putenv), noting(os.unsetenv)
    try:
        yield
    finally:
        os.putenv, os.unsetenv = plain
        for name, value in before.items():
            if value is not None:
                os.environ[name] = value
            elif name in os.environ:
                del os.environ[name]


def put_back(namespace: object, names: dict[str, object]) -> None:
    """Let names stand for what they stood for; new ones go, except modules that were imported meanwhile."""
    now = vars(namespace)
    if len(now) == len(names) and all(map(operator.is_, now.values(), names.values())):
        return
    for name in [name for name in now if name not in names and not isinstance(now[name], types.ModuleType)]:
        delattr(namespace, name)
    for name in [name for name in names if now.get(name, AS_IT_IS) is not names[name]]:
        setattr(namespace, name, names[name])


def modes_of(module: types.ModuleType, read: Callable[[], list]) -> Setting:
    """What watches every operation; what was entered and not left is left, also where it lies below others."""

    def write(modes: list) -> None:
        if read() != modes:
            for _ in read():
                module._pop_mode()
            for mode in modes:
                module._push_mode(mode)

    return Setting(read, write)


MODES = (
    modes_of(overrides, overrides._get_current_function_mode_stack),
    modes_of(_python_dispatch, _python_dispatch._get_current_dispatch_mode_stack),
)


# How settings are read and written that are more than one call


def use_device(device: torch.device) -> None:
    """Make it the default device, unless it is: PyTorch slows down where a default was set at all."""
    if torch.get_default_device() != device:
        torch.set_default_device(None)  # brings back what `with torch.device(…)` around it asks for
    if torch.get_default_device() != device:
        torch.set_default_device(device)


def gpu_states() -> list[Tensor]:
    """The random states of GPUs that are in use: nothing waits for one to start."""
    return torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []


def determinism() -> tuple[bool, bool]:
    """Must algorithms be deterministic, and is it only a warning where there is none?"""
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def set_determinism(state: tuple[bool, bool]) -> None:
    """Set it where it differs: PyTorch loads its compiler for that, which takes seconds."""
    if state != determinism():
        torch.use_deterministic_algorithms(state[0], warn_only=state[1])


def matmul_precision() -> str | None:
    """None where PyTorch cannot tell, because its older and its newer settings disagree."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return None


def set_matmul_precision(precision: str | None) -> None:
    """Set it where it differs: what is set no longer follows the settings above it."""
    if precision and precision != matmul_precision():
        torch.set_float32_matmul_precision(precision)


def anomaly_mode() -> tuple[bool, bool]:
    """Is the backward pass watched, and NaN in it refused?"""
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


def flushes_denormals() -> bool:
    """Are the smallest numbers taken for zero? Only arithmetic can tell."""
    return sys.float_info.min / 2 == 0


def autocast(device: str) -> Setting:
    """Whether operations choose their own precision, and which."""

    def read() -> tuple[bool, torch.dtype]:
        return torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)

    def write(state: tuple[bool, torch.dtype]) -> None:
        torch.set_autocast_enabled(device, state[0])
        torch.set_autocast_dtype(device, state[1])

    return Setting(read, write, (False, read()[1]))


def autocast_depth() -> int:
    """How many autocasts have been entered: PyTorch keeps the weights that they cast until the last is left."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def set_autocast_depth(depth: int) -> None:
    """Enter or leave so many that none is left over, with the weights it has kept."""
    if autocast_depth() > depth:
        torch.clear_autocast_cache()
    while autocast_depth() > depth:
        torch.autocast_decrement_nesting()
    while autocast_depth() < depth:
        torch.autocast_increment_nesting()


def working_directory() -> str | None:
    """None where it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


def set_working_directory(path: str | None) -> None:
    """Go there, if it is there."""
    if path is not None:
        with suppress(OSError):
            os.chdir(path)


def umask() -> int:
    """What new files may not be. Nobody can look without touching it."""
    os.umask(mask := os.umask(0o77))
    return mask


def handlers() -> dict[int, Any]:
    """What answers each signal, where Python knows; for the main thread to set."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    answers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return {number: answer for number, answer in answers.items() if answer is not None}


def set_handlers(answers: dict[int, Any]) -> None:
    """Set those that differ: some may not be set at all."""
    now = handlers()
    for number, answer in answers.items():
        if now[number] != answer:
            signal.signal(number, answer)


def alarm() -> tuple[float, float]:
    """Seconds until the alarm and between alarms; zeros for none."""
    return signal.getitimer(signal.ITIMER_REAL) if hasattr(signal, "getitimer") else (0.0, 0.0)


def set_alarm(times: tuple[float, float]) -> None:
    """Set it where it differs."""
    if hasattr(signal, "setitimer") and alarm() != times:
        signal.setitimer(signal.ITIMER_REAL, *times)


def items(values: list) -> Setting:
    """What a list holds."""
    return Setting(values.copy, lambda kept: values.__setitem__(slice(None), kept))


def entries(values: dict) -> Setting:
    """What a dictionary holds."""

    def write(kept: dict) -> None:
        values.clear()
        values.update(kept)

    return Setting(values.copy, write)


def attribute(owner: object, name: str) -> Setting:
    """A setting that is an attribute."""
    return Setting(lambda: getattr(owner, name), lambda value: setattr(owner, name, value))


def hook(read: Callable[[], object], write: Callable[[Any], object]) -> Setting:
    """A hook that debuggers have too: written only where it differs, since they complain."""
    return Setting(read, lambda value: None if read() is value else write(value))


SETTINGS = (
    Setting(random.getstate, random.setstate),
    Setting(lambda: numpy.random.get_state(legacy=False), numpy.random.set_state),
    Setting(mtrand.get_bit_generator, mtrand.set_bit_generator, numpy.random.MT19937(0)),
    Setting(torch.get_rng_state, torch.set_rng_state),
    Setting(gpu_states, torch.cuda.set_rng_state_all),
    Setting(torch.get_default_dtype, torch.set_default_dtype, torch.float32),
    Setting(torch.get_default_device, use_device, torch.device("cpu")),
    # Draws are tiny: on a busy machine, waiting for a second core takes longer.
    Setting(torch.get_num_threads, torch.set_num_threads, 1),
    Setting(determinism, set_determinism, (False, False)),
    Setting(matmul_precision, set_matmul_precision, "highest"),
    Setting(anomaly_mode, lambda mode: torch.autograd.set_detect_anomaly(*mode), (False, True)),
    Setting(flushes_denormals, torch.set_flush_denormal, False),
    autocast("cpu"),
    autocast("cuda"),
    Setting(autocast_depth, set_autocast_depth, 0),
    Setting(torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled, True),
    Setting(torch.is_warn_always_enabled, torch.set_warn_always, False),
    Setting(torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.enable_flash_sdp),
    Setting(torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.enable_math_sdp),
    Setting(torch.backends.cuda.mem_efficient_sdp_enabled, torch.backends.cuda.enable_mem_efficient_sdp),
    attribute(torch.backends.cudnn, "enabled"),
    attribute(torch.backends.cudnn, "benchmark"),
    attribute(torch.backends.cudnn, "deterministic"),
    attribute(torch.utils.deterministic, "fill_uninitialized_memory"),
    Setting(torch._tensor_str.get_printoptions, lambda options: torch.set_printoptions(**options)),
    Setting(numpy.get_printoptions, lambda options: numpy.set_printoptions(**options)),
    Setting(numpy.geterr, lambda modes: numpy.seterr(**modes), numpy.geterr()),
    Setting(numpy.geterrcall, numpy.seterrcall),
    Setting(working_directory, set_working_directory),
    Setting(umask, os.umask),
    Setting(lambda: locale.setlocale(locale.LC_ALL), lambda name: locale.setlocale(locale.LC_ALL, name)),
    Setting(lambda: decimal.getcontext().copy(), decimal.setcontext),
    Setting(gc.isenabled, lambda enabled: gc.enable() if enabled else gc.disable()),
    Setting(gc.get_threshold, lambda thresholds: gc.set_threshold(*thresholds)),
    Setting(socket.getdefaulttimeout, socket.setdefaulttimeout),
    Setting(sys.getswitchinterval, sys.setswitchinterval),
    Setting(sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    Setting(lambda: logging.root.level, logging.root.setLevel),
    Setting(lambda: logging.root.manager.disable, logging.disable),
    items(logging.root.handlers),
    items(sys.path),
    items(sys.argv),
    items(sys.meta_path),
    items(sys.path_hooks),
    *(
        entries(hooks)
        for name, hooks in vars(module).items()
        if name.startswith("_global") and isinstance(hooks, dict)
    ),
    Setting(handlers, set_handlers),
    Setting(alarm, set_alarm),
    hook(sys.gettrace, sys.settrace),
    hook(sys.getprofile, sys.setprofile),
)
