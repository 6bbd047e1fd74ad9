"""Bytes that a rank sends for one layer's forward pass: by formula, and as the machine counted them.

P ranks share a text of n tokens. An all-reduce of S bytes, done the best way, sends 2 S (P-1)/P from every
rank (Patarasuk and Yuan 2009). The backward pass of Linformer's layer sends as much again.
"""

import os
import socket
import stat
import struct

from linformer_from_scratch.cost import Sizes

COUNTERS_AT = 200  # in Linux' struct tcp_info: tcpi_bytes_sent, tcpi_bytes_retrans, 8 bytes each


def linformer_bytes(s: Sizes, ranks: int, shared: bool = False) -> float:
    """One all-reduce of the compressed keys and values, or of E X alone where E = F; independent of n."""
    return (1 if shared else 2) * s.slot_numel * s.bytes_per_number * 2 * (ranks - 1) / ranks


def ring_bytes(s: Sizes, ranks: int, group: int = 1) -> float:
    """Ring attention (Liu et al. 2023, arXiv 2310.01889): every shard's keys and values visit every rank.

    group: query heads that share a key/value head, as in grouped-query attention.
    """
    return 2 * s.numel / group / ranks * s.bytes_per_number * (ranks - 1)


def ulysses_bytes(s: Sizes, ranks: int) -> float:
    """Ulysses (Jacobs et al. 2023, arXiv 2309.14509): queries, keys, values and results change from shards
    of tokens to shards of heads and back, four all-to-alls."""
    return 4 * s.numel / ranks * s.bytes_per_number * (ranks - 1) / ranks


def sent_bytes() -> int:
    """Bytes that this process has sent so far through its open TCP connections; gloo uses no others.

    Raises: OSError where the system does not say (only Linux does).
    """
    if not hasattr(socket, "TCP_INFO") or not os.path.isdir("/proc/self/fd"):
        raise OSError("this system does not count a connection's bytes; Linux does")
    open_files = [int(name) for name in os.listdir("/proc/self/fd")]
    return sum(_sent(number) for number in open_files if os.path.exists(f"/proc/self/fd/{number}"))


def _sent(number: int) -> int:
    """Bytes sent through one open file; 0 if it is no TCP connection."""
    if not stat.S_ISSOCK(os.fstat(number).st_mode):
        return 0
    with socket.socket(fileno=os.dup(number)) as connection:
        if (
            connection.family not in (socket.AF_INET, socket.AF_INET6)
            or connection.type != socket.SOCK_STREAM
        ):
            return 0
        counters = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    sent, sent_again = struct.unpack_from("QQ", counters, COUNTERS_AT)
    return sent - sent_again
