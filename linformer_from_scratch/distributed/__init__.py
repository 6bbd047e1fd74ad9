"""Linformer with its sequence split over ranks: one all-reduce of 2·k·d numbers serves a layer (chapter 11).

sums: a sum over ranks that gradients pass through · sequence: the layer, and whole models, cut into shards ·
wire: bytes by formula and as sent · plan: a million tokens on paper · launch: ranks from a notebook ·
experiments: what ranks are asked to show. Training on shares of the batch is training.Trainer's.
"""

from linformer_from_scratch.distributed.launch import launch as launch
from linformer_from_scratch.distributed.sequence import SequenceParallelAttention as SequenceParallelAttention
from linformer_from_scratch.distributed.sequence import shard as shard
from linformer_from_scratch.distributed.sequence import sum_gradients as sum_gradients
from linformer_from_scratch.distributed.sums import sum_over_ranks as sum_over_ranks
from linformer_from_scratch.distributed.wire import linformer_bytes as linformer_bytes
from linformer_from_scratch.distributed.wire import ring_bytes as ring_bytes
from linformer_from_scratch.distributed.wire import sent_bytes as sent_bytes
from linformer_from_scratch.distributed.wire import ulysses_bytes as ulysses_bytes
