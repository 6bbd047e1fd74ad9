"""What an attempt changes globally is as before once it has run.

That is: the random numbers of Python, NumPy and PyTorch; PyTorch's gradient mode, default dtype, default device,
number of threads, autocast and anomaly detection; NumPy's handling of errors; warnings; the working directory;
environment variables; and the names in NAMESPACES. An attempt can still break everything else, such as other modules,
files, signal handlers and open streams.
"""

import builtins
import math
import operator
import os
import random
import sys
import types
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.common.random_state import get_rng_state, set_rng_state

NAMESPACES = (builtins, sys, math, numpy, torch, Tensor, nn, functional)  # in which a slip lands


@contextmanager
def isolated() -> Iterator[None]:
    """Inside: the settings that PyTorch and NumPy start with, and fixed seeds. Afterwards: all as before."""
    with ExitStack() as stack:
        stack.callback(restore_environment, dict(os.environ))
        with suppress(OSError):  # the working directory is gone
            stack.callback(os.chdir, os.getcwd())
        device = torch.device("cuda" if torch.cuda.is_initialized() else "cpu")  # starts no GPU
        stack.callback(set_rng_state, get_rng_state(device), device)
        stack.callback(numpy.random.set_state, numpy.random.get_state())
        stack.callback(random.setstate, random.getstate())
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        stack.callback(use_device, torch.get_default_device())
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        stack.enter_context(torch.inference_mode(False))  # gradients on, too; afterwards as before
        stack.enter_context(torch.autocast("cpu", enabled=False))
        stack.enter_context(torch.autograd.set_detect_anomaly(False))
        stack.enter_context(numpy.errstate(all="warn", under="ignore"))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # what an attempt warns of is not what its author needs to hear
        torch.set_default_dtype(torch.float32)
        use_device(torch.device("cpu"))
        torch.set_num_threads(1)  # draws are tiny: on a busy machine, waiting for a second core takes longer
        torch.default_generator.manual_seed(0)  # the CPU's only: nothing waits for a GPU to start
        numpy.random.seed(0)
        random.seed(0)
        for namespace in NAMESPACES:  # restored first: the rest needs them
            stack.callback(restore_names, namespace, dict(vars(namespace)))
        yield


def use_device(device: torch.device) -> None:
    """Make it the default device, unless it is: PyTorch slows down where a default was set at all."""
    if torch.get_default_device() != device:
        torch.set_default_device(None)  # brings back what `with torch.device(…)` around it asks for
    if torch.get_default_device() != device:
        torch.set_default_device(device)


def restore_names(namespace: object, names: dict[str, object]) -> None:
    """Bind names as before; new ones go, except modules that were imported meanwhile."""
    now = dict(vars(namespace))
    if len(now) == len(names) and all(map(operator.is_, now.values(), names.values())):
        return
    for name, value in now.items():
        if name not in names and not isinstance(value, types.ModuleType):
            delattr(namespace, name)
    for name, value in names.items():
        if name not in now or now[name] is not value:
            setattr(namespace, name, value)


def restore_environment(variables: dict[str, str]) -> None:
    """Set environment variables as before."""
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    for name, value in variables.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
