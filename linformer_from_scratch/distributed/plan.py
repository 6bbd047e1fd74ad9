"""A million tokens on paper: what each rank holds, sends and computes for one layer, and when to split it."""

import math
from typing import NamedTuple

from linformer_from_scratch.cost import Device, Sizes, compress_tokens, floor_seconds, flops, tiled_attention
from linformer_from_scratch.distributed.wire import linformer_bytes, ring_bytes

ADAMW = 16  # bytes a trained number: float32 itself, its gradient, AdamW's two means


class Wire(NamedTuple):
    """What joins the ranks: bytes that one can send in a second, and seconds until a message is there."""

    name: str
    bytes_per_s: float
    latency_s: float


# NVIDIA's data sheets. NVLink 4 of an H100 or H200: 900 GB/s, both ways together. ConnectX-7: 400 Gbit/s.
# Latencies are round numbers of the size that people measure, not of a data sheet.
NVLINK, NETWORK = Wire("NVLink", 450e9, 2e-6), Wire("network", 50e9, 5e-6)
GPUS_OF_A_MACHINE = 8  # that NVLink joins


class Plan(NamedTuple):
    """One layer of one text, forward, by rank.

    tokens: that the rank holds.
    matrix_bytes: of its columns of E and F.
    token_bytes: of the layer's input.
    sent_bytes: that it sends.
    seconds: floor of what it computes.
    wire_seconds: of its all-reduce around a ring; steps: messages that wait for each other there.
    exact_seconds: floor of what exact attention computes on as many ranks.
    ring_seconds: of the exchange of ring attention, which goes on while it computes.
    """

    tokens: int
    matrix_bytes: int
    token_bytes: int
    sent_bytes: float
    seconds: float
    wire_seconds: float
    steps: int
    exact_seconds: float
    ring_seconds: float

    @property
    def linformer_total(self) -> float:
        """Attention waits for the slots, and the slots for the sum: one after the other."""
        return self.seconds + self.wire_seconds

    @property
    def ring_total(self) -> float:
        """A rank sends a block while it reads it: the longer of the two."""
        return max(self.exact_seconds, self.ring_seconds)


def wire_of(ranks: int) -> Wire:
    """NVLink within a machine of eight GPUs, a network card for each rank beyond."""
    return NVLINK if ranks <= GPUS_OF_A_MACHINE else NETWORK


def plan(s: Sizes, ranks: int, device: Device, wire: Wire) -> Plan:
    """What a rank does for a layer in the cheap order, its maps in tiles, E and F different.

    Args:
        s: sizes of the whole text; ranks divides n.
        device: each rank's.
        wire: between the ranks.

    Raises: ValueError if ranks does not divide n.
    """
    if ranks < 1 or s.n % ranks:
        raise ValueError(f"{ranks} ranks do not divide n={s.n}")
    own = Sizes(s.n // ranks, s.d_model, s.num_heads, s.proj_dim, s.batch, s.bytes_per_number)
    exact = flops(tiled_attention(s)) / ranks  # operations bind it at such lengths
    sent, steps = linformer_bytes(s, ranks), 2 * (ranks - 1)
    around = ring_bytes(s, ranks) / wire.bytes_per_s + (ranks - 1) * wire.latency_s
    return Plan(
        tokens=own.n,
        matrix_bytes=2 * s.proj_dim * own.n * s.bytes_per_number,
        token_bytes=own.tokens * s.bytes_per_number,
        sent_bytes=sent,
        seconds=floor_seconds(compress_tokens(own, fused=True), device, s.bytes_per_number),
        wire_seconds=sent / wire.bytes_per_s + steps * wire.latency_s,
        steps=steps,
        exact_seconds=exact / device.flops_per_s[s.bytes_per_number],
        ring_seconds=around,
    )


def training_bytes(s: Sizes, layers: int, ranks: int = 1) -> float:
    """What a rank holds of E and F while AdamW trains them, beside one vector a token that every layer keeps.

    At least: a layer keeps more of its tokens than its input, and the other weights come on top.
    """
    matrices = 2 * s.proj_dim * s.n * ADAMW
    return layers * (matrices + s.tokens * s.bytes_per_number) / ranks


def longest_text(s: Sizes, layers: int, memory_bytes: float, ranks: int = 1) -> int:
    """The most tokens whose training_bytes fit; n of s does not matter."""
    one = Sizes(1, s.d_model, s.num_heads, s.proj_dim, s.batch, s.bytes_per_number)
    return math.floor(memory_bytes / training_bytes(one, layers, ranks))
