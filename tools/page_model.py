"""Write the pretrained encoder for onnxruntime-web, in a browser: python tools/page_model.py FOLDER

exact.onnx: ids (1, n) -> vector (1, 384); hidden (1, n, 384), its tokens' outputs; q, k, v (6, 12, n, 32).
slots.onnx: ids (1, n), E (slots, n) -> the same, but k and v (6, 12, slots, 32); the page computes E.
weights.bin: the weights of both, 8 bits each (eight_bits.py).

ids are int64, from 2 to 512; all else is float32. q, k and v are those of full_encoder, whose keys and values
have no bias.
"""

import sys
from pathlib import Path

import onnx_ir
import torch
from eight_bits import ByteEmbedding, in_bytes
from torch import Tensor, nn
from torch.export import Dim

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.heads import AttentionLayer, merge_heads, split_heads
from linformer_from_scratch.pretrained.network import SentenceEncoder, pool
from linformer_from_scratch.pretrained.sentence_encoder import full_encoder
from linformer_from_scratch.pretrained.weights import MAX_TOKENS, VOCAB_SIZE

WEIGHTS = "weights.bin"
OUTPUTS = ["vector", "hidden", "q", "k", "v"]
EXAMPLE = 77, 9  # tokens and slots of the input from which the graphs are recorded; both are free in them


def heads(attention: AttentionLayer, x: Tensor, E: Tensor | None) -> list[Tensor]:
    """Queries, keys and values; with E, keys and values of slots, as WindowAttention makes them.

    Shape: x (1, n, 384), E (slots, n) -> q (1, 12, n, 32), k and v (1, 12, n or slots, 32)
    """
    read = x if E is None else E @ x
    projected = attention.query(x), attention.key(read), attention.value(read)
    return [split_heads(one, attention.num_heads) for one in projected]


class Graph(nn.Module):
    """The exact encoder, or with E the one that reads through slots; a slot without a token is not read.

    Shape: ids (1, n), E (slots, n) -> vector (1, 384), hidden (1, n, 384), q (6, 12, n, 32),
        k and v (6, 12, n or slots, 32)
    """

    def __init__(self, encoder: SentenceEncoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, ids: Tensor, E: Tensor | None = None) -> tuple[Tensor, ...]:
        """What SentenceEncoder.embed does, with all that the heads computed on the way."""
        encoder, filled = self.encoder, None if E is None else (E != 0).any(dim=1)
        x = encoder.norm(encoder.tokens(ids) + encoder.positions.weight[: ids.size(1)] + encoder.segment)
        layers = []
        for block in encoder.blocks:
            layers.append(heads(block.attention, x, E))
            mixed = block.attention.output(merge_heads(scaled_dot_product_attention(*layers[-1], filled)))
            x = block.attention_norm(x + mixed)
            x = block.feed_forward_norm(x + block.feed_forward(x))
        return pool(x), x, *(torch.cat(layer) for layer in zip(*layers, strict=True))


def page_encoder() -> SentenceEncoder:
    """The pretrained encoder in 8 bits.

    Raises: as model_weights.
    """
    encoder = full_encoder()
    encoder.tokens = ByteEmbedding(encoder.tokens)
    in_bytes(encoder.blocks)
    return encoder.eval().requires_grad_(False)


def export(graph: Graph, inputs: dict[str, Tensor], sizes: dict) -> onnx_ir.Model:
    """A graph for every number of tokens and slots, without notes on where its nodes come from."""
    model = torch.onnx.export(
        graph.eval(),
        kwargs=inputs,
        input_names=list(inputs),
        output_names=OUTPUTS,
        dynamic_shapes=sizes,
        verbose=False,
    ).model
    for node in model.graph.all_nodes():
        node.metadata_props.clear()
    return model


def graphs(encoder: SentenceEncoder) -> dict[str, onnx_ir.Model]:
    """Both graphs, around the same weights."""
    tokens, slots = EXAMPLE
    ids, E = torch.arange(tokens)[None] % VOCAB_SIZE, torch.ones(slots, tokens) / tokens
    n, k = Dim("n", min=2, max=MAX_TOKENS), Dim("slots", min=2, max=MAX_TOKENS)
    graph, sizes = Graph(encoder), {"ids": {1: n}, "E": {0: k, 1: n}}
    exact = export(graph, {"ids": ids}, {"ids": {1: n}})
    return {"exact": exact, "slots": export(graph, {"ids": ids, "E": E}, sizes)}


def write(models: dict[str, onnx_ir.Model], folder: Path) -> None:
    """Each graph in a file of its own, and the weights once.

    Raises: RuntimeError if the graphs differ in their weights or in the order of them.
    """
    written = set()
    for name, model in models.items():
        onnx_ir.save(model, folder / f"{name}.onnx", external_data=WEIGHTS)
        written.add((folder / WEIGHTS).read_bytes())
    if len(written) > 1:
        raise RuntimeError(f"{' and '.join(models)} have different weights, expected the same bytes")


if __name__ == "__main__":
    write(graphs(page_encoder()), Path(sys.argv[1]))
