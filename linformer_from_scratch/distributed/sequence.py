"""Linformer's layer on a shard of the sequence: E K = Σ E_s K_s, a sum over the shards.

A rank holds some tokens and the columns of E and F that belong to them. It compresses what it has, and the
sum over ranks of these slots is what one process would have: (proj_dim, d_model) numbers, whatever n.
"""

import copy
import zlib
from typing import Any

import torch
from torch import Tensor, distributed, nn

from linformer_from_scratch.common.ranks import Group, assert_same_across_ranks, own_part, world_size
from linformer_from_scratch.distributed.sums import AgreedSum
from linformer_from_scratch.encoder import Block, Classifier, Encoder, NoAttention
from linformer_from_scratch.heads import AttentionLayer
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.pretrained.texts import TextEncoder
from linformer_from_scratch.projections import LearnedProjection, Projection, check_parameter


class SequenceParallelAttention(LinformerAttention):
    """LinformerAttention on this rank's tokens; the other ranks hold the rest of the text.

    head_i = softmax(Q_i (Σ_s E_s K_s)ᵀ / √d_head) Σ_s F_s V_s, the sums over all ranks

    Args:
        d_model, num_heads: as LinformerAttention, the same on all ranks.
        E, F: this rank's columns, learned projections with seq_len = the tokens it holds. Where F is E
            and the heads share it, the ranks exchange half as much.
        group: the ranks that share a text; all ranks by default.

    Shape: x (batch, seq_len of this rank, d_model), padding_mask (batch, seq_len of this rank) -> as x
    Raises: ValueError as LinformerAttention, if E or F is not learned, if x has not one token for each
        column, or if the ranks' batches or layers differ in what is summed.
    A shorter text must be padded before it is cut: else its tokens would meet other columns than in one
    process.
    """

    E: LearnedProjection
    F: LearnedProjection

    def __init__(self, d_model: int, num_heads: int, E: Projection, F: Projection, group: Group = None):
        super().__init__(d_model, num_heads, _learned(E), _learned(F))
        self.add_up = AgreedSum(group)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """As in one process, for texts that fill the shard."""
        if x.size(1) != self.E.seq_len:
            raise ValueError(
                f"this shard has {x.size(1)} tokens and {self.E.seq_len} columns of E; "
                "pad the text to its full length before it is cut"
            )
        return super().forward(x, padding_mask)

    def definition(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Not defined on a shard: it needs the whole text."""
        raise NotImplementedError("the definition needs the whole text; ask the layer before it was cut")

    def slots(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Compressed keys and values of the whole text. Shape: (batch, num_heads, proj_dim, d_head) each."""
        if self.F is self.E and self.E.commutes:
            whole = self._sum(self.E(x), len(x))  # (batch, proj_dim, d_model), serves both
            return self.split(self.key(whole)), self.split(self.value(whole))
        keys, values = self._sum(torch.stack(super().slots(x)), len(x))
        return keys, values

    def _sum(self, part: Tensor, batch: int) -> Tensor:
        """Sum over the ranks, all of which must sum the same thing."""
        return self.add_up(
            part,
            batch=batch,
            d_model=self.query.in_features,
            num_heads=self.num_heads,
            proj_dim=self.E.proj_dim,
            sharing="E = F" if self.F is self.E else "E and F",
            matrices=self.E.weight.shape[:-2].numel(),
        )


def shard(model: nn.Module, group: Group = None) -> Any:
    """This rank's copy of a model: attention with its columns of E and F, encoders with its positions.

    The rest is the same on all ranks, and so must the model be before it is cut, to the last number: all
    ranks of the group cut at the same time, and first compare what they have, in two small exchanges.

    Args:
        model: a LinformerAttention, an Encoder around such layers, or a module that holds some and works on
            each token alone elsewhere.
        group: the ranks that share a text; all ranks by default. Their shards are those of own_part.

    Raises: ValueError, with its name, for what cannot be cut: other attention; an E that is not learned, or
        that no layer sums over ranks; keys or values with a bias; an Encoder that looks at neighbours, across
        the edges of shards; a Classifier or a TextEncoder, which take a mean over all tokens. Also if the
        ranks' models differ.
    """
    if world_size(group) > 1:
        assert_same_across_ranks(group, **_description(model))
    for name, module in model.named_modules():
        _check_can_be_cut(name, module)
    own = copy.deepcopy(model)
    layers: list[Any] = [module for module in own.modules() if isinstance(module, LinformerAttention)]
    summed = {matrix for layer in layers for matrix in (layer.E, layer.F)}
    for name, module in own.named_modules():
        if isinstance(module, LearnedProjection) and module not in summed:
            raise ValueError(
                f"no layer sums over ranks what {name or 'the model'} gives, expected its E or F"
            )
    for matrix in summed:
        shard_projection(matrix, group)
    for layer in layers:
        layer.__class__ = SequenceParallelAttention  # in place: what is used twice stays one
        layer.add_up = AgreedSum(group, check=layer is layers[0])  # the first sees for all
    for module in own.modules():
        if isinstance(module, Encoder):
            rows = own_part(module.positions.weight.detach(), group, dim=0).clone()
            frozen = not module.positions.weight.requires_grad
            module.positions = nn.Embedding.from_pretrained(rows, freeze=frozen)
    return own


def _check_can_be_cut(name: str, module: nn.Module) -> None:
    """Raise ValueError for what reads more than one token in a way that no sum over shards gives."""
    kind = type(module).__name__
    if isinstance(module, Classifier | TextEncoder):
        raise ValueError(f"a {kind} takes a mean over tokens of all ranks, expected an Encoder")
    if isinstance(module, Encoder) and module.neighbours is not None:
        width = module.neighbours.kernel_size[0]
        raise ValueError(
            f"a convolution over {width} tokens crosses the edges of shards, expected neighbours=0"
        )
    if type(module) is LinformerAttention:
        for part in ("key", "value"):
            if getattr(getattr(module, part), "bias", None) is not None:
                raise ValueError(f"a layer's {part} has a bias, which every rank would add to the slots")
    if isinstance(module, Block) and not isinstance(module.attention, AttentionLayer | NoAttention):
        name, module = f"{name}.attention", module.attention  # of any kind
    elif not isinstance(module, AttentionLayer) or type(module) is LinformerAttention:
        return
    raise ValueError(
        f"{name or 'the model'} is a {type(module).__name__}, whose tokens may read all others; "
        "expected LinformerAttention, whose slots are sums over shards"
    )


def _description(model: nn.Module) -> dict[str, str]:
    """What must be the same on all ranks: sizes, then numbers. Heads are compared in the first sum."""
    described, numbers = {}, {}
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        state = "learned" if tensor.requires_grad else "frozen"
        described[name] = f"{tuple(tensor.shape)} of {tensor.dtype}, {state}"
        numbers_as_bytes = tensor.detach().flatten().view(torch.uint8).cpu().numpy()
        numbers[f"the numbers of {name}"] = f"checksum {zlib.crc32(numbers_as_bytes.data)}"
    return described | numbers


def shard_projection(E: Projection, group: Group = None) -> None:
    """Leave this rank's columns of a learned E."""
    E = _learned(E)
    columns = own_part(E.weight.detach(), group, dim=-1).clone()  # E.unit stays that of the whole
    E.weight = nn.Parameter(columns, requires_grad=E.weight.requires_grad)
    E.seq_len = columns.size(-1)


def _learned(E: Projection) -> LearnedProjection:
    if not isinstance(E, LearnedProjection):
        raise ValueError(f"got a {type(E).__name__}, expected a LearnedProjection, whose columns can be cut")
    check_parameter(E)
    return E


def sum_gradients(model: nn.Module, group: Group = None) -> None:
    """After backward: sum the gradients of all weights that every rank holds. Shards keep their own."""
    own = {*sharded_parameters(model)}  # tensors are hashed by identity
    for parameter in model.parameters():
        if parameter.requires_grad and parameter not in own:
            if parameter.grad is None:  # all ranks must take part
                parameter.grad = torch.zeros_like(parameter)
            if world_size(group) > 1:
                distributed.all_reduce(parameter.grad, group=group)


def sharded_parameters(model: nn.Module) -> list[Tensor]:
    """Parameters of which every rank holds a part: columns of E and F, positions of an Encoder; each once."""
    return [
        module.positions.weight if isinstance(module, Encoder) else module.weight
        for module in model.modules()
        if isinstance(module, Encoder | LearnedProjection)
    ]
