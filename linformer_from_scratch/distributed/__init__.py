"""Linformer with its sequence split over ranks: one all-reduce of 2·k·d numbers serves a layer (chapter 11).

sums: a sum over ranks that gradients pass through · sequence: the layer, and whole models, cut into shards ·
wire: bytes by formula and as sent · plan: a million tokens on paper · launch: ranks from a notebook ·
experiments: what ranks are asked to show. Training on shares of the batch is training.Trainer's.
"""

from linformer_from_scratch.distributed.launch import launch
from linformer_from_scratch.distributed.sequence import SequenceParallelAttention, shard, sum_gradients
from linformer_from_scratch.distributed.sums import sum_over_ranks
from linformer_from_scratch.distributed.wire import linformer_bytes, ring_bytes, sent_bytes, ulysses_bytes

__all__ = [
    "SequenceParallelAttention",
    "launch",
    "linformer_bytes",
    "ring_bytes",
    "sent_bytes",
    "shard",
    "sum_gradients",
    "sum_over_ranks",
    "ulysses_bytes",
]
