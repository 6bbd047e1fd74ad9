"""The network of all-MiniLM-L6-v2 around whatever attention it is given.

It maps every text to a unit vector; texts of similar content lie close together (Reimers and Gurevych 2019,
Sentence-BERT). Its architecture is BERT's (Devlin et al. 2019, section 3).
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.common.checks import check_ids, check_mask, check_size, seen
from linformer_from_scratch.encoder import Block
from linformer_from_scratch.heads import AttentionLayer, real_tokens
from linformer_from_scratch.pretrained.texts import TextEncoder
from linformer_from_scratch.pretrained.weights import (
    D_MODEL,
    MAX_TOKENS,
    NUM_LAYERS,
    VOCAB_SIZE,
    model_weights,
)

LAYER_NORM_EPSILON = 1e-12
UNUSED = ("embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias")
BLOCK = {  # our names of its parts, and BERT's
    "attention.query": "attention.self.query",
    "attention.key": "attention.self.key",
    "attention.value": "attention.self.value",
    "attention.output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "feed_forward.0": "intermediate.dense",
    "feed_forward.2": "output.dense",
    "feed_forward_norm": "output.LayerNorm",
}


class SentenceEncoder(TextEncoder):
    """all-MiniLM-L6-v2 around six attention layers, with its pretrained weights in all of them.

    Args:
        attentions: one layer for each of the six blocks, with 384 features and 12 heads, that owns `query`,
            `key`, `value` and `output`: MultiHeadAttention, LinformerAttention.
        weights: other weights under BERT's names, which the network then shares; by default a copy of the
            pretrained ones.

    Shape: ids (batch, n) with n <= 512, padding_mask (batch, n), True = a real token -> (batch, n, 384)
    Raises: ValueError as check_ids and check_mask, if there are more than 512 tokens or not six
        layers; as model_weights.
    """

    segment: Tensor

    def __init__(self, attentions: Iterable[AttentionLayer], weights: Mapping[str, Tensor] | None = None):
        super().__init__()
        attentions = list(attentions)
        if len(attentions) != NUM_LAYERS:
            raise ValueError(f"got {len(attentions)} attention layers, expected {NUM_LAYERS}")
        if (different := len({id(layer) for layer in attentions})) != NUM_LAYERS:
            raise ValueError(
                f"got {different} different attention layers, expected {NUM_LAYERS}: each has weights"
            )
        with torch.device("meta"):  # without numbers, which are loaded below
            self.tokens = nn.Embedding(VOCAB_SIZE, D_MODEL)
            self.positions = nn.Embedding(MAX_TOKENS, D_MODEL)
            self.register_buffer("segment", torch.empty(D_MODEL))  # the same for all tokens of one text
            self.norm = nn.LayerNorm(D_MODEL, LAYER_NORM_EPSILON)
            self.blocks = nn.ModuleList(
                Block(D_MODEL, layer, norm_first=False, eps=LAYER_NORM_EPSILON) for layer in attentions
            )
        state = renamed(model_weights() if weights is None else weights)
        if weights is None:
            state = {name: tensor.clone() for name, tensor in state.items()}
        for i, layer in enumerate(attentions):
            fold_biases(layer, state, f"blocks.{i}.attention")
        unknown = self.load_state_dict(state, strict=False, assign=True).unexpected_keys
        if unknown:
            raise ValueError(f"the attention layers have no {', '.join(unknown)}")

    def forward(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """The vectors after the last block."""
        return self.hidden(ids, padding_mask)[-1]

    def hidden(self, ids: Tensor, padding_mask: Tensor | None = None) -> list[Tensor]:
        """The vectors after every block, six of (batch, n, 384)."""
        check_ids(ids, VOCAB_SIZE)
        check_mask("padding_mask", padding_mask, ids)
        n, most = ids.size(-1), self.positions.num_embeddings
        if n > most:
            raise ValueError(f"input has {n} tokens; the encoder has positions for {most}")
        x = self.norm(self.tokens(ids) + self.positions.weight[:n] + self.segment)
        outputs = []
        for block in self.blocks:
            x = block(x, padding_mask)
            outputs.append(x)
        return outputs

    def embed(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """The mean over a text's real tokens, scaled to length one. Shape: (batch, 384)."""
        return pool(self(ids, padding_mask), padding_mask)


def extend_positions(encoder: SentenceEncoder, n: int, how: str) -> SentenceEncoder:
    """Give an encoder positions for n tokens, made from those it was trained with; return it.

    "repeated": after the last position comes the first again (Beltagy et al. 2020, arXiv 2004.05150,
    section 5). "interpolated": n vectors at equal distances along the trained ones, so each text position
    moves n / 512 times as slowly (as Chen et al. 2023, arXiv 2306.15595, do it to rotary positions).

    Shape: positions (512, 384) -> (n, 384)
    Raises: ValueError for another word, or if n is less than the positions that there are.
    """
    trained = encoder.positions.weight.detach()
    check_size("n", n, least=len(trained))
    if how == "repeated":
        vectors = trained[torch.arange(n) % len(trained)]
    elif how == "interpolated":
        vectors = functional.interpolate(trained.mT[None], size=n, mode="linear", align_corners=True)[0].mT
    else:
        raise ValueError(f"how is {how!r}, expected 'repeated' or 'interpolated'")
    encoder.positions = nn.Embedding.from_pretrained(vectors.contiguous(), freeze=False)
    return encoder


def pool(hidden: Tensor, padding_mask: Tensor | None = None) -> Tensor:
    """Unit vectors of texts: means over real tokens, scaled. Shape: (batch, n, d) -> (batch, d).

    Raises: ValueError as check_mask, or if a text is all padding; in a graph, its vector is zero.
    """
    check_mask("padding_mask", padding_mask, hidden)
    if padding_mask is not None:
        if seen((~padding_mask.any(dim=1)).any()):
            raise ValueError("a text has 0 real tokens, expected at least 1: an empty mean has no direction")
        hidden = real_tokens(hidden, padding_mask)
    return functional.normalize(hidden.sum(dim=1), dim=-1)  # a mean and a sum point the same way


def renamed(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """BERT's weights under their names in a SentenceEncoder.

    Raises: ValueError if one is missing, or if there is one that neither the encoder nor UNUSED names.
    """
    parts = {"norm": "embeddings.LayerNorm"}
    for i in range(NUM_LAYERS):
        parts |= {f"blocks.{i}.{ours}": f"encoder.layer.{i}.{berts}" for ours, berts in BLOCK.items()}
    names = {
        "tokens.weight": "embeddings.word_embeddings.weight",
        "positions.weight": "embeddings.position_embeddings.weight",
        "segment": "embeddings.token_type_embeddings.weight",
    }
    for kind in ("weight", "bias"):
        names |= {f"{ours}.{kind}": f"{berts}.{kind}" for ours, berts in parts.items()}
    if wrong := {*names.values()} - {*weights} or {*weights} - {*names.values(), *UNUSED}:
        what = "have no" if min(wrong) in names.values() else "hold"
        raise ValueError(
            f"the weights {what} {min(wrong)}, expected the {len(names)} of {NUM_LAYERS} BERT layers"
        )
    state = {ours: weights[berts] for ours, berts in names.items()}
    return state | {"segment": state["segment"][0]}


def fold_biases(layer: AttentionLayer, state: dict[str, Tensor], name: str) -> None:
    """Fold the biases for which an attention layer has no parameter into its weights.

    BERT's query, key, value and output have one each. In ours the output has one, and the query gets one
    here. The key's adds the same to all scores of a query, and softmax ignores it. The value's passes through
    a mean whose weights sum to one, so it is added to the output's. Both are exact for full attention;
    chapter 12 shows what they do in Linformer.
    """
    layer.query = nn.Linear(D_MODEL, D_MODEL, device="meta")  # with a bias
    if layer.key.bias is None:
        del state[f"{name}.key.bias"]
    if layer.value.bias is None:
        added = state[f"{name}.output.weight"] @ state.pop(f"{name}.value.bias")
        state[f"{name}.output.bias"] = state[f"{name}.output.bias"] + added
