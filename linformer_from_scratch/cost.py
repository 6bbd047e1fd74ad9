"""What a layer costs, by formula: operations, bytes moved and stored, a floor for its time (chapter 03).

A layer is a list of steps. Operations are those of matrix products, one multiply-add counted as two, as
PyTorch's FlopCounterMode counts them. Bytes are what a step must read and write when its inputs and its
result lie in memory. No machine is faster than the floor: the longer of the two times that operations and
bytes take (the roofline model, Williams, Waterman and Patterson 2009).
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from linformer_from_scratch.common.checks import check_size


@dataclass(frozen=True)
class Sizes:
    """Sizes of a layer and of its input.

    Args:
        n: tokens.
        d_model: features per token, a multiple of num_heads.
        num_heads: heads of d_model // num_heads features each.
        proj_dim: slots to which Linformer compresses the sequence, the paper's k.
        batch: sequences.
        bytes_per_number: 4 for float32, 2 for float16 and bfloat16.

    Raises: ValueError if one is not a positive integer, or if num_heads does not divide d_model.
    """

    n: int
    d_model: int = 512
    num_heads: int = 8
    proj_dim: int = 128
    batch: int = 1
    bytes_per_number: int = 4

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            object.__setattr__(self, name, check_size(name, value))
        if self.d_model % self.num_heads:
            raise ValueError(f"{self.num_heads} heads do not divide d_model={self.d_model}")

    @property
    def d_head(self) -> int:
        """Features of a head."""
        return self.d_model // self.num_heads

    @property
    def numel(self) -> int:
        """Numbers in a tensor (batch, n, d_model)."""
        return self.batch * self.n * self.d_model

    @property
    def slot_numel(self) -> int:
        """Numbers in a tensor (batch, proj_dim, d_model)."""
        return self.batch * self.proj_dim * self.d_model


class Step(NamedTuple):
    """One step of a layer: floating-point operations, bytes read and written, bytes of its result."""

    name: str
    flops: int
    moved: int
    result: int


class Device(NamedTuple):
    """The limits of a machine.

    flops_per_s: bytes of a number -> operations per second of its matrix products.
    bytes_per_s: bytes per second between memory and processor, read plus written.
    """

    name: str
    flops_per_s: dict[int, float]
    bytes_per_s: float


# Peaks of NVIDIA's data sheets: float32 without tensor cores, 16 bit with them and without sparsity.
DEVICES = (
    Device("V100 (the paper's)", {4: 15.7e12, 2: 125e12}, 0.9e12),
    Device("A100 40 GB", {4: 19.5e12, 2: 312e12}, 1.555e12),
    Device("H200", {4: 67e12, 2: 989e12}, 4.8e12),
)


def full_attention(s: Sizes) -> list[Step]:
    """Multi-head attention that stores its n×n maps: 8nd² + 4n²d operations.

    >>> [step.name for step in full_attention(Sizes(n=1024))]
    ['queries, keys, values', 'scores', 'softmax', 'mix values', 'output']
    """
    return [_project_tokens(s), *_attend(s, keys=s.n, fused=False), _output(s)]


def tiled_attention(s: Sizes) -> list[Step]:
    """Exact attention tile by tile, no map in memory (Dao et al. 2022): 8nd² + 4n²d operations as well.

    >>> flops(tiled_attention(Sizes(n=1024)))
    4294967296
    """
    return [_project_tokens(s), *_attend(s, keys=s.n, fused=True), _output(s)]


def compress_keys(s: Sizes, fused: bool = False) -> list[Step]:
    """Linformer in the paper's order, E(XW): 8nd² + 8nkd operations, k = proj_dim (Wang et al. 2020).

    >>> flops(compress_keys(Sizes(n=1024, proj_dim=64)))
    2415919104
    """
    compress = _product("E K and F V", s, 2 * s.slot_numel, s.n, 2 * s.numel + 2 * s.proj_dim * s.n)
    return [_project_tokens(s), compress, *_attend(s, s.proj_dim, fused), _output(s)]


def compress_tokens(s: Sizes, fused: bool = False, shared: bool = False) -> list[Step]:
    """Linformer in the cheap order, (EX)W: 4nd² + 4kd² + 8nkd operations; 6nkd if shared, E = F.

    >>> flops(compress_tokens(Sizes(n=1024, proj_dim=64)))
    1409286144
    """
    times, name = (1, "E X") if shared else (2, "E X and F X")
    return [
        _product("queries", s, s.numel, s.d_model, s.numel + s.d_model**2),
        _product(name, s, times * s.slot_numel, s.n, s.numel + times * s.proj_dim * s.n),
        _product("keys and values", s, 2 * s.slot_numel, s.d_model, times * s.slot_numel + 2 * s.d_model**2),
        *_attend(s, s.proj_dim, fused),
        _output(s),
    ]


def linear_attention_steps(s: Sizes) -> list[Step]:
    """φ(Q)(φ(K)ᵀV), each row divided by φ(Q)·Σφ(K): 8nd² + 4nd·d_head + 2nd operations.

    Katharopoulos et al. 2020, with φ = elu + 1; computing φ is no matrix product and is left out.

    >>> flops(linear_attention_steps(Sizes(n=1024)))
    2282749952
    """
    states = s.batch * s.d_model * s.d_head  # one (d_head, d_head) matrix a head
    rows = s.batch * s.num_heads * s.n  # one divisor for each row of each head
    return [
        _project_tokens(s),
        _product("φ(K)ᵀ V", s, states, s.n, 2 * s.numel),
        _product("φ(Q) (φ(K)ᵀ V)", s, s.numel, s.d_head, s.numel + states),
        _product("divisors", s, rows, s.d_head, s.numel + s.batch * s.d_model),
        _output(s),
    ]


LAYERS: dict[str, Callable[[Sizes], list[Step]]] = {
    "full": full_attention,
    "tiled exact": tiled_attention,
    "Linformer E(XW)": compress_keys,
    "Linformer (EX)W": compress_tokens,
    "linear attention": linear_attention_steps,
}


def flops(steps: Sequence[Step]) -> int:
    """Operations of all steps.

    >>> flops(full_attention(Sizes(n=1024)))
    4294967296
    """
    return sum(step.flops for step in steps)


def moved_bytes(steps: Sequence[Step]) -> int:
    """Bytes that all steps read and write.

    >>> moved_bytes(tiled_attention(Sizes(n=1024)))
    25165824
    """
    return sum(step.moved for step in steps)


def stored_bytes(steps: Sequence[Step]) -> int:
    """Bytes of the results of all steps: what is held if none is freed before the layer ends.

    >>> stored_bytes(full_attention(Sizes(n=1024)))
    77594624
    """
    return sum(step.result for step in steps)


def floor_seconds(steps: Sequence[Step], device: Device, bytes_per_number: int = 4) -> float:
    """Seconds below which the device cannot go: for each step, what its operations or its bytes take.

    Raises: ValueError if the device has no ceiling for numbers of that size.

    >>> round(1e6 * floor_seconds(full_attention(Sizes(n=1024)), DEVICES[0]))  # microseconds
    348
    """
    if bytes_per_number not in device.flops_per_s:
        known = ", ".join(map(str, device.flops_per_s))
        raise ValueError(f"{device.name} has ceilings for {known} bytes a number, got {bytes_per_number}")
    per_s = device.flops_per_s[bytes_per_number]
    return sum(max(step.flops / per_s, step.moved / device.bytes_per_s) for step in steps)


def crossover(
    ours: Callable[[int], float], theirs: Callable[[int], float], longest: int = 2**20
) -> int | None:
    """Smallest n at which our cost lies below theirs, if it stays there from then on; None up to `longest`.

    Raises: ValueError if longest is not a positive integer.

    >>> crossover(lambda n: 100 * n, lambda n: n**2)
    101
    """
    longest = check_size("longest", longest)
    n = 1 + bisect_left(range(1, longest + 1), True, key=lambda n: ours(n) < theirs(n))
    return n if n <= longest else None


def fit_exponent(lengths: Sequence[float], costs: Sequence[float]) -> float:
    """The a of cost ≈ c · lengthᵃ, by least squares on the logarithms.

    Raises: ValueError for fewer than two points, unequal numbers of them, or a point that is not positive.

    >>> round(fit_exponent([1, 2, 4], [3, 12, 48]), 6)
    2.0
    """
    if len(lengths) != len(costs) or len(lengths) < 2:
        raise ValueError(f"got {len(lengths)} lengths and {len(costs)} costs, expected at least 2 of each")
    if not all(math.isfinite(value) and value > 0 for value in (*lengths, *costs)):
        raise ValueError(f"smallest value is {min(*lengths, *costs)}, expected finite numbers above 0")
    x, y = torch.tensor([lengths, costs], dtype=torch.float64, device="cpu").log()
    x, y = x - x.mean(), y - y.mean()
    return (x @ y / (x @ x)).item()


def _product(name: str, s: Sizes, result: int, inner: int, reads: int) -> Step:
    """A matrix product: every number of its result is a dot product of `inner` terms."""
    b = s.bytes_per_number
    return Step(name, 2 * result * inner, (reads + result) * b, result * b)


def _project_tokens(s: Sizes) -> Step:
    return _product("queries, keys, values", s, 3 * s.numel, s.d_model, s.numel + 3 * s.d_model**2)


def _output(s: Sizes) -> Step:
    return _product("output", s, s.numel, s.d_model, s.numel + s.d_model**2)


def _attend(s: Sizes, keys: int, fused: bool) -> list[Step]:
    """Attention of n queries to `keys` keys and values: n tokens, or proj_dim slots."""
    keys_or_values = s.batch * keys * s.d_model
    maps = s.batch * s.num_heads * s.n * keys
    scores = _product("scores", s, maps, s.d_head, s.numel + keys_or_values)
    softmax = Step("softmax", 0, 2 * maps * s.bytes_per_number, maps * s.bytes_per_number)
    mix = _product("mix values", s, s.numel, keys, maps + keys_or_values)
    if not fused:
        return [scores, softmax, mix]
    moved = 2 * (s.numel + keys_or_values) * s.bytes_per_number  # maps live and die in the processor
    return [Step("attention, tile by tile", scores.flops + mix.flops, moved, mix.result)]
