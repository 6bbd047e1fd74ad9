"""Tiled exact attention: the softmax in one pass over tiles, no n×n map in memory (chapter 09).

m ← max(m, scores), l ← l·e^(m_old − m) + Σ e^(scores − m), o ← o·e^(m_old − m) + e^(scores − m) V
                   online softmax: Milakov and Gimelshein 2018 (arXiv 1805.02867)
                   tiles, and a backward pass that computes them again: Dao et al. 2022 (arXiv 2205.14135)
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from linformer_from_scratch.common.checks import check_size, full_precision, graph_is_written
from linformer_from_scratch.efficient.blocks import self_attention_in_float32


@self_attention_in_float32
def tiled_attention(q: Tensor, k: Tensor, v: Tensor, tile: int = 128, causal: bool = False) -> Tensor:
    """softmax(q kᵀ / √d) v, exactly, holding one tile of scores at a time, forward and backward.

    Shape: q and k (..., n, d), v (..., n, d_v) -> (..., n, d_v)
    Raises: ValueError if tile < 1, or if q, k and v differ in n or in the axes before it.
    Cost: 4 n²·d operations, about half of them if causal; memory O(n·d). It can be differentiated once.
    A program that is traced, exported or compiled for every n cannot hold a loop whose length depends on n:
    it calls PyTorch's own fused function, which computes the same.
    """
    tile = check_size("tile", tile)
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        shapes = ", ".join(str(tuple(x.shape[:-2])) for x in (q, k, v))
        raise ValueError(f"q, k, v have the batch axes {shapes}; expected the same")
    if graph_is_written():
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return _Tiled.apply(q / math.sqrt(q.size(-1)), k, v, tile, causal)[0]


class _Tiled(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, tile: int, causal: bool) -> tuple[Tensor, Tensor]:
        outputs, logarithms = [], []
        for rows, read in _sweep(q.size(-2), tile, causal):
            queries = q[..., rows, :]
            largest = queries.new_full((*queries.shape[:-1], 1), -math.inf)  # m: of each row, so far
            total = torch.zeros_like(largest)  # l: sum of the exponentials, so far
            mixed = queries.new_zeros(*queries.shape[:-1], v.size(-1))  # o: values mixed, so far
            for columns in read:
                scores = _scores(queries, k[..., columns, :], rows, columns, causal)  # (..., tile, tile)
                new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
                weights, shrink = (scores - new).exp(), (largest - new).exp()
                total = shrink * total + weights.sum(dim=-1, keepdim=True)
                mixed = shrink * mixed + weights @ v[..., columns, :]
                largest = new
            outputs.append(mixed / total)
            logarithms.append(largest + total.log())
        return torch.cat(outputs, dim=-2), torch.cat(logarithms, dim=-2)

    @staticmethod
    def setup_context(context: Any, inputs: tuple, outputs: tuple[Tensor, Tensor]) -> None:
        q, k, v, context.tile, context.causal = inputs
        context.mark_non_differentiable(outputs[1])
        context.save_for_backward(q, k, v, *outputs)  # n·d numbers each: no map

    @staticmethod
    @once_differentiable
    def backward(context: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        with full_precision(upstream):  # as forward: the same scores
            return _Tiled._gradients(context, upstream)

    @staticmethod
    def _gradients(context: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, output, logarithm = context.saved_tensors
        q_grad, k_grad, v_grad = (torch.zeros_like(x) for x in (q, k, v))
        common = (upstream * output).sum(dim=-1, keepdim=True)  # softmax takes it off each score's gradient
        for rows, read in _sweep(q.size(-2), context.tile, context.causal):
            for columns in read:
                scores = _scores(q[..., rows, :], k[..., columns, :], rows, columns, context.causal)
                weights = (scores - logarithm[..., rows, :]).exp()  # the tile of P, computed again
                v_grad[..., columns, :] += weights.mT @ upstream[..., rows, :]
                change = weights * (upstream[..., rows, :] @ v[..., columns, :].mT - common[..., rows, :])
                q_grad[..., rows, :] += change @ k[..., columns, :]
                k_grad[..., columns, :] += change.mT @ q[..., rows, :]
        return q_grad, k_grad, v_grad, None, None


def _sweep(n: int, tile: int, causal: bool) -> Iterator[tuple[slice, list[slice]]]:
    """Tiles of rows, each with the tiles of columns that its rows may read."""
    tiles = [slice(start, min(start + tile, n)) for start in range(0, n, tile)]
    for i, rows in enumerate(tiles):
        yield rows, tiles[: i + 1] if causal else tiles


def _scores(q: Tensor, k: Tensor, rows: slice, columns: slice, causal: bool) -> Tensor:
    """Scores of queries that are already divided by √d."""
    scores = q @ k.mT
    if not causal:
        return scores
    i = torch.arange(rows.start, rows.stop, device=q.device)[:, None]
    j = torch.arange(columns.start, columns.stop, device=q.device)
    return scores.masked_fill(j > i, -math.inf)
