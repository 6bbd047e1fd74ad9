"""What another machine might compute: the last bits of sums and of softmax, up or down, as a seed decides.

The same operation on the same numbers rounds the same way twice, as a machine does. Where the environment has
ROUNDING=seed, every Python of a test run computes so (offline/sitecustomize.py).
"""

import os

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map, tree_map_only

SUMS = "mm addmm bmm baddbmm addbmm mv addmv dot linear sum mean norm linalg_vector_norm var std cumsum"
OTHERS = "_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data logsumexp native_layer_norm"
FUSED = "_scaled_dot_product_flash_attention_for_cpu"
ROUNDED = {*SUMS.split(), *OTHERS.split(), FUSED, f"{FUSED}_backward"}
BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


class Rounding(TorchDispatchMode):
    """Inside, what ROUNDED return is one unit in the last place off, unless every machine has it exactly."""

    def __init__(self, seed: int):
        super().__init__()
        self.seed = seed

    @classmethod
    def ignore_compile_internals(cls):
        """torch.compile works inside; what it has made is rounded when it runs."""
        return True

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = operation(*args, **kwargs)
        name = operation.overloadpacket.__name__
        measured = torch.autograd._profiler_enabled()  # what is added here is no memory of the cell's
        if name not in ROUNDED or kwargs.keys() & {"out", "dtype"} or measured:
            return result
        exact = operation(*tree_map_only(Tensor, doubled, args), **kwargs)
        if name == FUSED:  # beside the result stands what its backward pass uses
            return self.nudged(result[0], exact[0]), *result[1:]
        if name == "_softmax_backward_data":
            result = self.cancelled(result, *args[:2])
        return tree_map(self.nudged, result, exact)

    def nudged(self, result, exact):
        """Up or down where float32 cannot hold the exact value; what has vanished stays zero."""
        if not isinstance(result, Tensor) or not result.is_floating_point() or result.is_meta:
            return result
        infinity = torch.tensor([-torch.inf, torch.inf], dtype=result.dtype)
        other = torch.nextafter(result, infinity[self.coins(result)])
        return torch.where((exact.float() == exact) | exact.isnan() | (result == 0), result, other)

    def cancelled(self, result, gradient, weights):
        """What rounding leaves of w (g − Σ w g); some kernels happen to leave nothing."""
        left = (self.coins(gradient) - 0.5) * torch.finfo(result.dtype).eps * weights * gradient
        return result + left * self.coins(gradient.flatten()[:1].sum())

    def coins(self, values):
        """0 or 1 for each value, as its bits, its place and the seed decide."""
        place = torch.arange(values.numel()).view(values.shape)
        mixed = values.view(BITS[values.itemsize]) + 7 * place + 1000003 * self.seed
        return (mixed * 0x4F1BBCDCBFA53E0B >> 40) & 1


def doubled(tensor):
    return tensor.double() if tensor.is_floating_point() else tensor


if "ROUNDING" in os.environ:
    Rounding(int(os.environ["ROUNDING"])).__enter__()
