"""One pass through the pretrained encoder, with what every head computed on the way."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.common.checks import check_ids
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained.network import SentenceEncoder
from linformer_from_scratch.pretrained.weights import (
    D_MODEL,
    NUM_HEADS,
    NUM_LAYERS,
    VOCAB_SIZE,
    model_weights,
)


class Encoding(NamedTuple):
    """One pass through the encoder.

    hidden: (n, 384), after the last layer.
    weights: (layers, heads, n, n), every row sums to one.
    q, k, v: (layers, heads, n, 32), what the weights are made of and what they mix.
    """

    hidden: Tensor
    weights: Tensor
    q: Tensor
    k: Tensor
    v: Tensor


class RecordedAttention(MultiHeadAttention):
    """Attention by chapter 01's definition, with all of BERT's biases; it remembers its last call.

    Shape: as MultiHeadAttention
    """

    def __init__(self) -> None:
        super().__init__(D_MODEL, NUM_HEADS)
        self.query, self.key, self.value = (nn.Linear(D_MODEL, D_MODEL) for _ in range(3))
        self.last: tuple[Tensor, ...] = ()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor | None) -> Tensor:
        """With stored maps, which are remembered."""
        weights = attention_weights(q, k, self.mask(q, padding_mask))
        self.last = weights, q, k, v
        return weights @ v


@torch.no_grad()
def encode(ids: Tensor, weights: Mapping[str, Tensor] | None = None) -> Encoding:
    """Run the encoder, with the pretrained weights or with others of the same names.

    Shape: ids (n,) of integers, n <= 512 -> as Encoding says
    Raises: ValueError as check_ids, or if there are more than 512; as model_weights.
    """
    check_ids(ids, VOCAB_SIZE, dims=1)
    with torch.device("meta"):  # no numbers: the network shares the weights it is given
        attentions = [RecordedAttention() for _ in range(NUM_LAYERS)]
    hidden = SentenceEncoder(attentions, model_weights() if weights is None else weights)(ids[None])[0]
    by_layer = [attention.last for attention in attentions]
    return Encoding(hidden, *(torch.cat(layers) for layers in zip(*by_layer, strict=True)))
