"""Sharp attention: the fewer keys a query attends to, the more slots it takes."""

from collections.abc import Sequence

import torch

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.linformer import linformer_attention
from linformer_from_scratch.low_rank import best_rank
from linformer_from_scratch.pretrained import stored_heads
from linformer_from_scratch.projections import MeanPooling


def errors_by_temperature(
    layer: int, head: int, slots: int, temperatures: Sequence[float]
) -> dict[str, list[float]]:
    """Relative output errors of a stored head of MiniLM whose scores are divided by a temperature.

    Of the best map of rank `slots`, and of Linformer with mean pooling. Below 1 attention is sharper than the
    head's own.
    """
    q, k, v, _ = stored_heads()[layer, head]
    E = MeanPooling(len(k), slots)(torch.eye(len(k), dtype=k.dtype, device=k.device))
    by_map: dict[str, list[float]] = {"best map of that rank": [], "mean pooling": []}
    for temperature in temperatures:
        weights = attention_weights(q / temperature, k)
        outputs = best_rank(weights, slots) @ v, linformer_attention(q / temperature, k, v, E, E)
        for errors, output in zip(by_map.values(), outputs, strict=True):
            errors.append(((output - weights @ v).norm() / (weights @ v).norm()).item())
    return by_map
