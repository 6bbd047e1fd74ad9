"""A million tokens on paper: what each rank holds, sends and computes for one layer, and when to split it."""

import math
from typing import NamedTuple

from linformer_from_scratch import cost
from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.cost import Device, Sizes, Step, floor_seconds, flops, tiled_attention
from linformer_from_scratch.distributed.wire import linformer_bytes, ring_bytes

ADAMW = 16  # bytes a trained number: float32 itself, its gradient, AdamW's two means


class Wire(NamedTuple):
    """What joins the ranks: bytes that one can send in a second, and seconds until a message is there."""

    bytes_per_s: float
    latency_s: float


# NVLink: 900 GB/s per GPU, both directions together (NVIDIA, H200 Tensor Core GPU data sheet).
# Network: one card of 400 Gbit/s for each of eight GPUs (NVIDIA DGX H100 User Guide).
# Latencies: round numbers near NCCL's own model (NVIDIA/nccl, src/graph/tuning.cc).
NVLINK, NETWORK = Wire(450e9, 2e-6), Wire(50e9, 5e-6)
GPUS_OF_A_MACHINE = 8  # that NVLink joins


class Plan(NamedTuple):
    """One layer of one text, forward, by rank.

    tokens: that the rank holds.
    matrix_bytes: of its columns of E and F.
    token_bytes: of the layer's input.
    sent_bytes: that it sends.
    seconds: floor of what its attention computes.
    wire_seconds: of its all-reduce.
    feed_forward_seconds: floor of the block's other half, four times as wide as d_model.
    exact_seconds: floor of what exact attention computes on as many ranks.
    ring_seconds: of the exchange of ring attention around one ring, at the pace of its slowest rank, which
        goes on while it computes.
    """

    tokens: int
    matrix_bytes: int
    token_bytes: int
    sent_bytes: float
    seconds: float
    wire_seconds: float
    feed_forward_seconds: float
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
    """The slowest on the way: NVLink within a machine of eight GPUs, the network beyond."""
    return NVLINK if check_size("ranks", ranks) <= GPUS_OF_A_MACHINE else NETWORK


def hops(ranks: int, way: str) -> tuple[int, int]:
    """Messages of a sum over ranks that wait for each other, within machines and between them.

    way: "flat ring", whose every message crosses the network if there are several machines; "ring", which
    goes through one machine after the other; "tree", a chain in each machine, a binary tree of the machines.

    Raises: ValueError for another way.
    """
    machines = math.ceil(check_size("ranks", ranks) / GPUS_OF_A_MACHINE)
    steps, crossing = 2 * (ranks - 1), 2 * (machines - 1)
    if way == "flat ring":
        return (0, steps) if machines > 1 else (steps, 0)
    if way == "ring":
        return steps - crossing, crossing
    if way == "tree":
        return 2 * (math.ceil(ranks / machines) - 1), 2 * math.ceil(math.log2(machines))
    raise ValueError(f"way is {way!r}, expected 'flat ring', 'ring' or 'tree'")


def sum_seconds(sent_bytes: float, ranks: int, way: str = "ring") -> float:
    """Seconds of a sum over ranks: a rank's bytes on the slowest wire, and the hops, one after the other."""
    within, between = hops(ranks, way)
    return sent_bytes / wire_of(ranks).bytes_per_s + within * NVLINK.latency_s + between * NETWORK.latency_s


def plan(s: Sizes, ranks: int, device: Device, way: str = "ring") -> Plan:
    """What a rank does for a layer in the cheap order, its maps in tiles, E and F different.

    Args:
        s: sizes of the whole text; ranks divides n.
        device: each rank's.
        way: of the sum over ranks, as in hops.

    Raises: ValueError if ranks does not divide n.
    """
    if s.n % check_size("ranks", ranks):
        raise ValueError(f"{ranks} ranks do not divide n={s.n}")
    own = Sizes(s.n // ranks, s.d_model, s.num_heads, s.proj_dim, s.batch, s.bytes_per_number)
    exact = flops(tiled_attention(s)) / ranks  # operations bind it at such lengths
    sent, wire = linformer_bytes(s, ranks), wire_of(ranks)
    return Plan(
        tokens=own.n,
        matrix_bytes=2 * s.proj_dim * own.n * s.bytes_per_number,
        token_bytes=own.numel * s.bytes_per_number,
        sent_bytes=sent,
        seconds=floor_seconds(cost.compress_tokens(own, fused=True), device, s.bytes_per_number),
        wire_seconds=sum_seconds(sent, ranks, way),
        feed_forward_seconds=floor_seconds(feed_forward(own), device, s.bytes_per_number),
        exact_seconds=exact / device.flops_per_s[s.bytes_per_number],
        ring_seconds=ring_bytes(s, ranks) / wire.bytes_per_s + (ranks - 1) * wire.latency_s,
    )


def feed_forward(s: Sizes) -> list[Step]:
    """Each token alone, to 4 d_model features and back: 16nd² operations, nothing to exchange."""
    d, b = s.d_model, s.bytes_per_number
    operations, moved = 8 * s.numel * d, (5 * s.numel + 4 * d * d) * b
    return [Step("up", operations, moved, 4 * s.numel * b), Step("down", operations, moved, s.numel * b)]


def training_bytes(
    s: Sizes, layers: int, ranks: int = 1, matrices: int | None = None, kept: int = 1
) -> float:
    """What a rank holds of E and F while AdamW trains them, and of its tokens in all layers.

    At least: the other weights come on top.

    Args:
        s: sizes of the whole text.
        layers: that the text passes.
        ranks: which share the text.
        matrices: different ones among the E and F of all layers; two a layer unless told.
        kept: vectors of a token that a layer keeps for backward; one, its input, if it recomputes the rest.
    """
    layers, ranks = check_size("layers", layers), check_size("ranks", ranks)
    kept = check_size("kept", kept, least=0)
    matrices = 2 * layers if matrices is None else check_size("matrices", matrices, least=0)
    trained = matrices * s.proj_dim * s.n * ADAMW
    return (trained + layers * kept * s.numel * s.bytes_per_number) / ranks


def longest_text(
    s: Sizes, layers: int, memory_bytes: float, ranks: int = 1, matrices: int | None = None, kept: int = 1
) -> int:
    """The most tokens whose training_bytes fit; n of s does not matter."""
    one = Sizes(1, s.d_model, s.num_heads, s.proj_dim, s.batch, s.bytes_per_number)
    return math.floor(memory_bytes / training_bytes(one, layers, ranks, matrices, kept))
