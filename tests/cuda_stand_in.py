"""A GPU where there is none: the part of torch.cuda that the course uses, on tensors of the CPU.

with StandIn(memory=2**30): ...  # inside, torch.cuda is this one, and what is asked for "cuda" is there

It is as strict as the real one where an order is wrong: tensors of two devices do not meet, an event is read
after the GPU was waited for, nothing is waited for or copied while a graph is recorded, a replay needs a
recording and the memory it reads, and whoever asks for more than there is runs out of memory. What it cannot
show: speed, streams that run side by side, kernels of their own.
"""

import time
import weakref
from contextlib import contextmanager
from types import SimpleNamespace

import torch
from torch import distributed
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

NAME = "Stand-in"
MOVES = "_to_copy", "copy_", "index_put_", "allreduce_", "allgather_"  # may see two devices
WAITS = "_local_scalar_dense", "nonzero"  # their result is read by Python
CAPTURING = "operation not permitted when stream is capturing"
GETTERS = {torch.Tensor.device.__get__: "device", torch.Tensor.is_cuda.__get__: "is_cuda"}
GETTERS |= {torch.Tensor.is_cpu.__get__: "is_cpu"}
PARSE_TO = torch._C._nn._parse_to
ONLY_CPU = torch.Tensor.numpy, torch.Tensor.__array__
NCCL = "init_process_group", "get_backend"
AUTOCAST, INIT_PROCESS_GROUP = torch.autocast, distributed.init_process_group
here = None  # the StandIn that is installed


def is_cuda(device):
    return isinstance(device, str | torch.device) and torch.device(device).type == "cuda"


class Stream:
    """A queue of work; here all work is done at once, in order."""

    def __init__(self, device=None, priority=0):
        self.device = device

    def wait_event(self, event):
        assert event.at is not None, "waits for an event that nobody has recorded"

    def wait_stream(self, stream):
        here.joined.add((self, stream))

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def query(self):
        return True

    def synchronize(self):
        here.synchronize()


class Event:
    """A mark in a stream; its time can be read after the GPU was waited for."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False):
        self.timed, self.at, self.passed = enable_timing, None, False

    def record(self, stream=None):
        self.at, self.passed = time.perf_counter(), False
        here.pending.append(self)

    def wait(self, stream=None):
        assert self.at is not None, "waits for an event that nobody has recorded"

    def query(self):
        return self.passed

    def synchronize(self):
        here.synchronize()

    def elapsed_time(self, end_event):
        if not (self.timed and end_event.timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.at is None or end_event.at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.passed and end_event.passed):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return 1e3 * (end_event.at - self.at)  # milliseconds


class CUDAGraph:
    """Operations that were recorded, not run; replay runs them on the same memory."""

    def __init__(self, keep_graph=False):
        self.recorded = None

    def capture_begin(self, pool=None, capture_error_mode="global"):
        if here.stream_now is here.main:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream.")
        self.recorded, here.capturing = Recording(), self

    def capture_end(self):
        if here.capturing is not self:
            raise RuntimeError("capture_end was called on a graph that is not being captured.")
        here.capturing = None
        self.recorded.forget_results()

    def replay(self):
        if self.recorded is None:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        self.recorded.replay()

    def reset(self):
        self.recorded = None


class graph:
    """Record what is called inside, on a stream of its own."""

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
        self.graph, self.inside = cuda_graph, here.in_stream(stream or Stream())

    def __enter__(self):
        here.synchronize()
        here.empty_cache()
        self.inside.__enter__()
        self.graph.capture_begin()

    def __exit__(self, *error):
        self.graph.capture_end()
        self.inside.__exit__(*error)


class Recording:
    """Operations on memory that the recording owns, and on memory of others that it must not outlive."""

    def __init__(self):
        self.steps, self.own = [], set()

    def add(self, func, args, kwargs, results):
        before = {storage_of(tensor) for tensor in tensors_in((args, kwargs))}
        self.own |= {storage_of(tensor) for tensor in tensors_in(results)} - before
        self.steps.append((func, *tree_map(self._frozen, (args, kwargs, results))))

    def _frozen(self, value):
        """A tensor by its place in memory; of the GPU's memory only the graph's own is kept alive."""
        if type(value) not in TENSORS:
            return value
        return Place(value, storage_of(value) in self.own or not here.holds(value))

    def forget_results(self):
        """Nothing has been computed yet: what lies there is anything."""
        for *_, results in self.steps:
            for place in tree_leaves(results):
                if isinstance(place, Place) and place.own and place.dtype.is_floating_point:
                    place.tensor().fill_(torch.nan)

    def replay(self):
        for func, args, kwargs, results in self.steps:
            args, kwargs, targets = tree_map(
                lambda value: value.tensor() if isinstance(value, Place) else value, (args, kwargs, results)
            )
            found = func(*args, **kwargs)
            for target, tensor in zip(tensors_in(targets), tensors_in(found), strict=True):
                if storage_of(target) is not storage_of(tensor):  # neither a view nor in place
                    target.copy_(tensor)


class Place:
    """Where a tensor lies."""

    def __init__(self, tensor, own):
        storage = tensor.untyped_storage()
        self.own, self.dtype = own, tensor.dtype
        self.storage = (lambda: storage) if own else weakref.ref(storage)
        self.at = tensor.storage_offset(), tensor.size(), tensor.stride()

    def tensor(self):
        storage = self.storage()
        if storage is None:
            raise RuntimeError("CUDA error: an illegal memory access: the graph reads memory that was freed")
        return torch.empty(0, dtype=self.dtype).set_(storage, *self.at)


TENSORS = torch.Tensor, torch.nn.Parameter, torch.nn.Buffer


def tensors_in(tree):
    return [value for value in tree_leaves(tree) if isinstance(value, torch.Tensor)]


def storage_of(tensor):
    return tensor.untyped_storage()


class Devices(TorchFunctionMode):
    """What Python asks of tensors: "cuda" is made on the CPU, and says that it is on cuda:0."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in GETTERS:
            return self._device(GETTERS[func], args[0])
        if func in ONLY_CPU and here.holds(args[0]):
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first.")
        if func is PARSE_TO and any(here.holds(found) for found in tensors_in((args, kwargs))):
            return torch.device("cuda"), *func(*args, **kwargs)[1:]  # module.to(a tensor)
        if func is torch.Tensor.cuda:
            func, args = torch.Tensor.to, (args[0], "cuda")
        if func is torch.Tensor.cpu:
            func, args = torch.Tensor.to, (args[0], "cpu")
        if func is torch.Tensor.to:
            return self._moved(args, kwargs)
        if kwargs.get("device") is None:
            return func(*args, **kwargs)
        with here.making("cuda" if is_cuda(kwargs["device"]) else "cpu"):
            return here.marked(func(*args, **kwargs | {"device": "cpu"}))

    def _device(self, what, tensor):
        on = here.holds(tensor)
        return {"device": torch.device("cuda:0" if on else "cpu"), "is_cuda": on, "is_cpu": not on}[what]

    def _moved(self, args, kwargs):
        tensor, others = args[0], [*args[1:], *kwargs.values()]
        targets = [is_cuda(found) for found in others if isinstance(found, str | torch.device)]
        targets += [here.holds(found) for found in others if isinstance(found, torch.Tensor)]
        cpu = lambda found: "cpu" if isinstance(found, str | torch.device) else found  # noqa: E731
        args = [tensor, *map(cpu, args[1:])]
        kwargs = {name: cpu(found) for name, found in kwargs.items()}
        if not targets or targets[0] == here.holds(tensor):
            return torch.Tensor.to(*args, **kwargs)
        with here.making("cuda" if targets[0] else "cpu"):
            return here.marked(torch.Tensor.to(*args, **kwargs | {"copy": True}))


class Operations(TorchDispatchMode):
    """What is computed: on one device, counted in bytes, recorded while a graph is."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, func._schema.name.partition("::")[2]
        given = tensors_in((args, kwargs))
        on = [here.holds(tensor) for tensor in given]
        mixed = any(on) and not all(held or not tensor.dim() for held, tensor in zip(on, given, strict=True))
        if mixed and name not in MOVES:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and "
                f"cpu! ({name})"
            )
        target = here.target or ("cuda" if any(on) else "cpu")
        crosses = mixed or (name == "_to_copy" and any(on) != (target == "cuda"))
        if here.capturing and (crosses or (any(on) and name in WAITS)):
            raise RuntimeError(f"CUDA error: {CAPTURING} ({name})")
        results = here.drawn(func, args, kwargs) if target == "cuda" else func(*args, **kwargs)
        known = {storage_of(tensor) for tensor in given}
        for tensor in tensors_in(results):
            if target == "cuda" and storage_of(tensor) not in known:
                here.mark(tensor)
        if here.capturing and (target == "cuda" or any(on)):
            here.capturing.recorded.add(func, args, kwargs, results)
        return results


class StandIn:
    """The stand-in for torch.cuda; inside a `with` it is in its place.

    Args:
        memory: bytes of the GPU.
        bf16: whether it computes in bfloat16; else it is only emulated.
        count: GPUs of the machine.
    """

    Stream, Event, CUDAGraph, graph = Stream, Event, CUDAGraph, graph
    OutOfMemoryError = torch.OutOfMemoryError

    def __init__(self, memory=2**33, bf16=True, count=1):
        self.memory, self.bf16, self.count = memory, bf16, count
        self.allocated = self.peak = self.reserved = 0
        self.storages, self.pending, self.joined = weakref.WeakSet(), [], set()
        self.main = self.stream_now = Stream()
        self.capturing, self.target = None, None
        self.random = torch.Generator().manual_seed(0).get_state()
        self.autocasts, self.backend = [], None
        self.synchronized = 0
        self.modes = Devices(), Operations()

    # What torch.cuda has

    def is_available(self):
        return True

    def is_initialized(self):
        return True

    def is_bf16_supported(self, including_emulation=True):
        return self.bf16 or including_emulation

    def device_count(self):
        return self.count

    def current_device(self):
        return 0

    def set_device(self, device):
        index = device if isinstance(device, int) else torch.device(device).index
        if index not in range(self.count):
            raise RuntimeError("CUDA error: invalid device ordinal")

    def get_device_name(self, device=None):
        return NAME

    def get_device_properties(self, device=None):
        return SimpleNamespace(name=NAME, total_memory=self.memory)

    def synchronize(self, device=None):
        if self.capturing:
            raise RuntimeError(f"CUDA error: {CAPTURING}")
        self.synchronized += 1
        for event in self.pending:
            event.passed = True
        self.pending.clear()

    def current_stream(self, device=None):
        return self.stream_now

    def default_stream(self, device=None):
        return self.main

    def stream(self, stream):
        return self.in_stream(stream)

    def is_current_stream_capturing(self):
        return self.capturing is not None

    def memory_allocated(self, device=None):
        return self.allocated

    def max_memory_allocated(self, device=None):
        return self.peak

    def reset_peak_memory_stats(self, device=None):
        self.peak = self.allocated

    def memory_reserved(self, device=None):
        return self.reserved

    def mem_get_info(self, device=None):
        return self.memory - self.reserved, self.memory

    def empty_cache(self):
        self.reserved = self.allocated

    def get_rng_state(self, device="cuda"):
        return self.random.clone()

    def set_rng_state(self, new_state, device="cuda"):
        self.random = new_state.clone()

    def get_rng_state_all(self):
        return [self.get_rng_state() for _ in range(self.count)]

    def set_rng_state_all(self, new_states):
        for state in new_states:
            self.set_rng_state(state)

    def manual_seed(self, seed):
        self.random = torch.Generator().manual_seed(seed).get_state()

    def manual_seed_all(self, seed):
        self.manual_seed(seed)

    # What it is made of

    def __enter__(self):
        global here
        assert here is None, "one stand-in at a time"
        here = self
        places = torch.cuda, torch.cuda.random  # where others may have bound a name that looks there
        self.before = [
            (place, name, vars(place)[name]) for place in places for name in NAMES if name in vars(place)
        ]
        self.before += [(torch, "autocast", torch.autocast)]
        self.before += [(distributed, name, getattr(distributed, name)) for name in NCCL]
        for place, name, _ in self.before:
            if name in NAMES:
                setattr(place, name, getattr(self, name))
        torch.autocast = self.autocast
        distributed.init_process_group, distributed.get_backend = self.init_process_group, self.get_backend
        for mode in self.modes:
            mode.__enter__()
        return self

    def __exit__(self, *error):
        global here
        for mode in reversed(self.modes):
            mode.__exit__(*error)
        for place, name, value in self.before:
            setattr(place, name, value)
        here = None

    def autocast(self, device_type, dtype=None, enabled=True):
        """Of the GPU, done by the CPU's."""
        self.autocasts.append((device_type, dtype, enabled))
        return AUTOCAST("cpu" if is_cuda(device_type) else device_type, dtype, enabled)

    def init_process_group(self, backend, **options):
        """NCCL's work is done by gloo; it says NCCL."""
        self.backend = backend
        INIT_PROCESS_GROUP("gloo" if backend == "nccl" else backend, **options)

    def get_backend(self, group=None):
        return self.backend

    def holds(self, tensor):
        return storage_of(tensor) in self.storages

    @contextmanager
    def making(self, target):
        before, self.target = self.target, target
        try:
            yield
        finally:
            self.target = before

    @contextmanager
    def in_stream(self, stream):
        before, self.stream_now = self.stream_now, stream
        try:
            yield
        finally:
            self.stream_now = before

    def marked(self, results):
        """What was made for the GPU lies there, also where no operation has made it."""
        for tensor in tensors_in(results) if self.target == "cuda" else ():
            if not self.holds(tensor):
                self.mark(tensor)
        return results

    def mark(self, tensor):
        """Count the memory of a new tensor, unless there is not enough."""
        storage = storage_of(tensor)
        if self.allocated + storage.nbytes() > self.memory:
            raise torch.OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {storage.nbytes()} bytes; "
                f"{self.allocated} of {self.memory} are in use."
            )
        self.storages.add(storage)
        self._count(storage.nbytes())
        weakref.finalize(storage, self._count, -storage.nbytes())

    def _count(self, change):
        self.allocated += change
        self.peak, self.reserved = max(self.peak, self.allocated), max(self.reserved, self.allocated)

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


NAMES = [name for name in vars(StandIn) if hasattr(torch.cuda, name) and not name.startswith("_")]
