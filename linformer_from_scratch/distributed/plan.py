"""A million tokens on paper: what each rank holds, sends and computes for one layer's forward pass."""

from typing import NamedTuple

from linformer_from_scratch.cost import Device, Sizes, compress_tokens, floor_seconds, flops, tiled_attention
from linformer_from_scratch.distributed.wire import linformer_bytes


class Plan(NamedTuple):
    """One layer of one text, by rank.

    tokens: that the rank holds.
    matrix_bytes: of its columns of E and F.
    token_bytes: of the layer's input.
    sent_bytes: that it sends, forward.
    seconds: floor of what it computes; exact_seconds: of exact attention on as many ranks, exchange left out.
    wire_seconds: floor of the exchange.
    """

    tokens: int
    matrix_bytes: int
    token_bytes: int
    sent_bytes: float
    seconds: float
    exact_seconds: float
    wire_seconds: float


def plan(s: Sizes, ranks: int, device: Device, wire_bytes_per_s: float) -> Plan:
    """What a rank does for a layer in the cheap order, its maps in tiles, E and F different.

    Args:
        s: sizes of the whole text; ranks divides n.
        device: each rank's.
        wire_bytes_per_s: that a rank can send.

    Raises: ValueError if ranks does not divide n.
    """
    if ranks < 1 or s.n % ranks:
        raise ValueError(f"{ranks} ranks do not divide n={s.n}")
    own = Sizes(s.n // ranks, s.d_model, s.num_heads, s.proj_dim, s.batch, s.bytes_per_number)
    exact = flops(tiled_attention(s)) / ranks  # operations bind it at such lengths
    sent = linformer_bytes(s, ranks)
    return Plan(
        tokens=own.n,
        matrix_bytes=2 * s.proj_dim * own.n * s.bytes_per_number,
        token_bytes=own.tokens * s.bytes_per_number,
        sent_bytes=sent,
        seconds=floor_seconds(compress_tokens(own, fused=True), device, s.bytes_per_number),
        exact_seconds=exact / device.flops_per_s[s.bytes_per_number],
        wire_seconds=sent / wire_bytes_per_s,
    )
