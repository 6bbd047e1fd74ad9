"""Weights of other implementations of Linformer, in our layer: the same outputs, to rounding.

Each takes a layer's state dict, or a model's and the prefix of a layer in it, and what such a dict does not
say. What was learned comes along; dropout is no weight, so set `layer.dropout`.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.projections import LearnedProjection, Projection, StridedConvolution, project

State = Mapping[str, Tensor]


class BiasedProjection(Projection):
    """E x + b: every slot has a number added to all its features, as an nn.Linear along the text gives it.

    Args:
        weight: E. Shape: (proj_dim, seq_len) or (num_heads, proj_dim, seq_len)
        bias: b. Shape: as E, without its last axis

    Shape: (..., n, d) -> (..., proj_dim, d). Does not commute with W.
    """

    def __init__(self, weight: Tensor, bias: Tensor):
        super().__init__(weight.size(-1), weight.size(-2))
        self.weight, self.bias = nn.Parameter(weight.clone()), nn.Parameter(bias.clone())

    def forward(self, x: Tensor) -> Tensor:
        """Shape: (..., n, d) -> (..., proj_dim, d)."""
        return project(x, self.weight) + self.bias[..., None]


def from_linformer(state: State, num_heads: int, prefix: str = "") -> LinformerAttention:
    """A layer with the weights of LinformerSelfAttention of the package `linformer` (lucidrains).

    Its options dim_head, one_kv_head and share_kv come along; where heads, or keys and values, share a matrix
    W there, they get equal ones here. No counterpart: reading another text (`context`).

    Args:
        state: of LinformerSelfAttention, or of a model that holds it, with its prefix.
        num_heads: its `heads`, which a state dict does not say: another number gives another layer.

    Raises: ValueError for a name that is missing, or another num_heads where one_kv_head tells it.
    """
    own = _Named(state, prefix)
    query, key = own["to_q.weight"], own["to_k.weight"]
    value = own.get("to_v.weight", key)
    copies = query.size(0) // key.size(0)  # one_kv_head: all heads read the same
    if copies not in (1, num_heads):
        raise ValueError(f"num_heads is {num_heads}, expected {copies}: all heads share one key")
    E, F = _pair(own["proj_k"].T, own.get("proj_v", own["proj_k"]).T)
    weights = query, key.repeat(copies, 1), value.repeat(copies, 1), own["to_out.weight"]
    return _layer(num_heads, E, F, weights, own["to_out.bias"])


def from_linformer_pytorch(state: State, prefix: str = "", seq_len: int | None = None) -> LinformerAttention:
    """A layer with the weights of MHAttention of the package `linformer-pytorch` (tatp22).

    All ways of sharing come along, learned E with their biases, convolutions, dim_d, k_reduce_by_layer and
    w_o_intermediate_dim. No counterpart, and a state dict shows none of it: causal=True (its mask lets slots
    tell of later tokens), full_attention, decoder_mode, and the E of method="no_params", which is not saved.

    Args:
        state: of MHAttention, or of a model that holds it, with its prefix.
        seq_len: its `input_size`, for convolutions alone: another number gives another layer.

    Raises: ValueError for a name that is missing, a convolution without seq_len, with other kernels for each
        head, or that does not end with the text.
    """
    own = _Named(state, prefix)
    num_heads = sum(name.startswith("to_q.") for name in own)
    heads = range(max(1, num_heads))  # without any, the first one's name is missed
    query, key, value = (torch.cat([own[f"to_{what}.{i}.weight"] for i in heads]) for what in "qkv")
    if "w_o.weight" in own:
        output, bias = own["w_o.weight"], own["w_o.bias"]
    else:  # two linear layers, one after another, are one
        first, second = own["w_o_1.weight"], own["w_o_2.weight"]
        output, bias = second @ first, second @ own["w_o_1.bias"] + own["w_o_2.bias"]
    E, E_bias, F, F_bias = (
        torch.stack([own[f"heads.{i}.{which}.{what}"] for i in heads])
        for which in "EF"
        for what in ("weight", "bias")
    )
    if E.dim() == 4:  # a convolution's bias is the same in all slots: softmax ignores that of the keys,
        bias = bias + output @ F_bias.flatten()  # and weights that sum to one pass on that of the values
    for_keys = for_values = _projection(E, E_bias, seq_len)
    if not (torch.equal(E, F) and torch.equal(E_bias, F_bias)):
        for_values = _projection(F, F_bias, seq_len)
    return _layer(num_heads, for_keys, for_values, (query, key, value, output), bias)


def from_fairseq(state: State, num_heads: int, prefix: str = "") -> LinformerAttention:
    """A layer with the weights of MultiheadLinearAttention, the paper's released code (examples/linformer).

    All ways of sharing come along, and biases: the query keeps its own, softmax ignores the key's, and the
    value's is added to the output's, since weights sum to one. It takes (n, batch, d_model), ours (batch, n,
    d_model). No counterpart: bias_k, add_zero_attn, quantisation noise, attention to another text.

    Args:
        state: of MultiheadLinearAttention, or of a model that holds it, with its prefix.
        num_heads: its `num_heads`, which a state dict does not say: another number gives another layer.

    Raises: ValueError for a name that is missing, or for add_bias_kv.
    """
    own = _Named(state, prefix)
    if "bias_k" in own:
        raise ValueError("the layer was made with add_bias_kv, expected one without: ours has no such slot")
    weights = [own[f"{name}_proj.weight"] for name in ("q", "k", "v", "out")]
    E, F = own["compress_k.weight"], own.get("compress_v.weight", own["compress_k.weight"])
    if "q_proj.bias" not in own:
        return _layer(num_heads, *_pair(E, F), weights, weights[3].new_zeros(len(weights[3])))
    bias = own["out_proj.bias"] + weights[3] @ own["v_proj.bias"]
    return _layer(num_heads, *_pair(E, F), weights, bias, own["q_proj.bias"])


class _Named(dict):
    """What of a state dict has a prefix, by the rest of its name; says which name is missing."""

    def __init__(self, state: State, prefix: str):
        self.state, self.prefix = state, prefix
        own = {name: tensor for name, tensor in state.items() if name.startswith(prefix)}
        super().__init__({name.removeprefix(prefix): tensor.detach() for name, tensor in own.items()})

    def __missing__(self, name: str) -> Tensor:
        fitting = [repr(own.removesuffix(name)) for own in self.state if own.endswith(name)]
        raise ValueError(
            f"the state dict has no {self.prefix}{name}; prefixes that fit: {', '.join(fitting) or 'none'}"
        )


def _pair(E: Tensor, F: Tensor) -> tuple[Projection, Projection]:
    """Learned E and F, one object where they are equal: sharing that a state dict does not tell."""
    for_keys = _learned(E)
    return for_keys, for_keys if torch.equal(E, F) else _learned(F)


def _learned(weight: Tensor) -> Projection:
    with torch.device("meta"):  # draws nothing
        E = LearnedProjection(weight.size(1), weight.size(0))
    E.weight = nn.Parameter(weight.clone())
    return E


def _projection(weights: Tensor, biases: Tensor, seq_len: int | None) -> Projection:
    """E or F of `linformer-pytorch`, of which every head has a copy. Shape: weights (num_heads, …)"""
    alike = all(torch.equal(one, some[0]) for some in (weights, biases) for one in some)
    if weights.dim() == 3:
        return BiasedProjection(weights[0], biases[0]) if alike else BiasedProjection(weights, biases)
    _, d_head, _, width = weights.shape
    if not alike:
        raise ValueError("every head has a convolution of its own, expected one for all")
    if seq_len is None or seq_len % width:
        raise ValueError(f"seq_len is {seq_len}, expected a multiple of the convolution's {width} tokens")
    with torch.device("meta"):
        E = StridedConvolution(seq_len, seq_len // width, d_head)
    E.convolution.weight = nn.Parameter(weights[0].clone())
    return E


def _layer(
    num_heads: int,
    E: Projection,
    F: Projection,
    weights: Sequence[Tensor],
    bias: Tensor,
    query_bias: Tensor | None = None,
) -> LinformerAttention:
    """The layer of these matrices: of the query, key, value and output. Shape: (out, in) each"""
    with torch.device("meta"):
        layer = LinformerAttention(len(weights[0]), num_heads, E, F)
    names, biases = ("query", "key", "value", "output"), (query_bias, None, None, bias)
    for name, weight, added in zip(names, weights, biases, strict=True):
        linear = nn.Linear(weight.size(1), weight.size(0), bias=added is not None, device="meta")
        linear.weight = nn.Parameter(weight.clone())
        if added is not None:
            linear.bias = nn.Parameter(added.clone())
        setattr(layer, name, linear)
    return layer
