"""A GPU where there is none: the part of torch.cuda that the benchmark and the trainer use, on CPU tensors.

with StandIn(): ...  # inside, torch.cuda is this one, and what is asked for "cuda" is there

Tensors of two devices do not meet, events are read only after waiting for the GPU, random numbers are the
GPU's own, and memory is counted. Speed, streams and recorded graphs need a GPU: test_cuda.py.
"""

import time
import weakref
from contextlib import contextmanager, nullcontext

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

NAME, MEMORY = "Stand-in", 2**33
MOVES = "_to_copy", "copy_", "index_put_"  # may take tensors of two devices
PARSE_TO = torch._C._nn._parse_to
AUTOCAST = torch.autocast
here = None  # the StandIn that is installed


def is_cuda(device):
    return isinstance(device, str | torch.device) and torch.device(device).type == "cuda"


def on_cpu(value):
    return torch.device("cpu") if is_cuda(value) else value


def tensors_in(tree):
    return [value for value in tree_leaves(tree) if isinstance(value, torch.Tensor)]


class Stream:
    """A queue of work; here all work is done at once, in order."""

    def wait_stream(self, stream):
        pass


class Event:
    """A mark in a stream; its time can be read after waiting for the GPU."""

    def __init__(self, enable_timing=False):
        assert enable_timing

    def record(self):
        self.at, self.waits = time.perf_counter(), here.waits

    def elapsed_time(self, end_event):
        if here.waits <= end_event.waits:
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return 1e3 * (end_event.at - self.at)  # milliseconds


class CUDAGraph:
    """Operations to be replayed; here they were done when they were recorded."""

    def replay(self):
        pass


class Devices(TorchFunctionMode):
    """What Python asks of tensors: "cuda" is made on the CPU, and says that it is on cuda:0."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func == torch.Tensor.device.__get__:
            return torch.device("cuda:0" if here.holds(args[0]) else "cpu")
        if func == torch.Tensor.is_cuda.__get__:
            return here.holds(args[0])
        if func is PARSE_TO and any(map(here.holds, tensors_in((args, kwargs)))):
            return torch.device("cuda"), *func(*args, **kwargs)[1:]  # module.to(a tensor)
        if func is torch.Tensor.to:
            return self.moved(*args, **kwargs)
        if kwargs.get("device") is None:
            return func(*args, **kwargs)
        with here.making(is_cuda(kwargs["device"])):
            return func(*args, **kwargs | {"device": "cpu"})

    def moved(self, tensor, *args, **kwargs):
        given = [*args, *kwargs.values()]
        targets = [is_cuda(value) for value in given if isinstance(value, str | torch.device)]
        targets += [here.holds(value) for value in given if isinstance(value, torch.Tensor)]
        args, kwargs = map(on_cpu, args), {name: on_cpu(value) for name, value in kwargs.items()}
        if not targets or targets[0] == here.holds(tensor):
            return torch.Tensor.to(tensor, *args, **kwargs)
        with here.making(targets[0]):
            return torch.Tensor.to(tensor, *args, **kwargs | {"copy": True})


class Operations(TorchDispatchMode):
    """What is computed: on one device, and counted in bytes."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, func._schema.name.partition("::")[2]
        given = tensors_in((args, kwargs))
        on = [here.holds(tensor) for tensor in given]
        mixed = any(on) and not all(held or not tensor.dim() for held, tensor in zip(on, given, strict=True))
        if mixed and name not in MOVES:
            raise RuntimeError(f"Expected all tensors to be on the same device, but found two ({name})")
        to_gpu = any(on) if here.target is None else here.target
        results = here.drawn(func, args, kwargs) if to_gpu else func(*args, **kwargs)
        known = {tensor.untyped_storage() for tensor in given}
        for tensor in tensors_in(results) if to_gpu else ():
            if tensor.untyped_storage() not in known:
                here.mark(tensor)
        return results


class StandIn:
    """The stand-in for torch.cuda; inside a `with` it is in its place.

    Args:
        bf16: whether it computes in bfloat16; else it is only emulated.
    """

    def __init__(self, bf16=True):
        self.allocated = self.peak = self.waits = 0
        self.storages, self.target, self.autocasts = weakref.WeakSet(), None, []
        self.modes = Devices(), Operations()
        self.manual_seed_all(0)
        self.names = {
            **{kind.__name__: kind for kind in (Stream, Event, CUDAGraph)},
            **dict.fromkeys(("graph", "stream"), nullcontext),
            "current_stream": Stream,
            "is_current_stream_capturing": lambda: False,
            "is_available": lambda: True,
            "is_bf16_supported": lambda including_emulation=True: bf16 or including_emulation,
            "device_count": lambda: 1,
            "get_device_name": lambda: NAME,
            **dict.fromkeys(("memory_allocated", "memory_reserved"), lambda: self.allocated),
            "max_memory_allocated": lambda: self.peak,
            "mem_get_info": lambda: (MEMORY - self.allocated, MEMORY),
            "empty_cache": lambda: None,
            "get_rng_state": lambda device: self.random.clone(),
        }
        own = self.synchronize, self.reset_peak_memory_stats, self.set_rng_state, self.manual_seed_all
        self.names |= {method.__name__: method for method in own}

    def synchronize(self):
        self.waits += 1

    def reset_peak_memory_stats(self):
        self.peak = self.allocated

    def set_rng_state(self, new_state, device):
        self.random = new_state.clone()

    def manual_seed_all(self, seed):
        self.random = torch.Generator().manual_seed(seed).get_state()

    def __enter__(self):
        global here
        here, self.patch = self, pytest.MonkeyPatch()
        for name, ours in self.names.items():
            self.patch.setattr(torch.cuda, name, ours)  # raises if there is no such name
        self.patch.setattr(torch, "autocast", self.autocast)
        for mode in self.modes:
            mode.__enter__()
        return self

    def __exit__(self, *error):
        for mode in reversed(self.modes):
            mode.__exit__(*error)
        self.patch.undo()

    def autocast(self, device_type, dtype=None, enabled=True):
        """Of the GPU, done by the CPU's."""
        self.autocasts.append((device_type, dtype, enabled))
        return AUTOCAST("cpu", dtype, enabled)

    def holds(self, tensor):
        return tensor.untyped_storage() in self.storages

    @contextmanager
    def making(self, target):
        """Inside, what is made lies on the GPU, or on the CPU."""
        before, self.target = self.target, target
        try:
            yield
        finally:
            self.target = before

    def mark(self, tensor):
        """A new tensor lies on the GPU: count its memory."""
        storage = tensor.untyped_storage()
        self.storages.add(storage)
        self.count(storage.nbytes())
        weakref.finalize(storage, self.count, -storage.nbytes())

    def count(self, change):
        self.allocated += change
        self.peak = max(self.peak, self.allocated)

    def drawn(self, func, args, kwargs):
        """An operation of the GPU, with the GPU's random numbers."""
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        cpu = torch.get_rng_state()
        torch.set_rng_state(self.random)
        try:
            return func(*args, **kwargs)
        finally:
            self.random = torch.get_rng_state()
            torch.set_rng_state(cpu)
