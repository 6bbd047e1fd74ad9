"""Linformer's layer on a shard of the sequence: E K = Σ E_s K_s, a sum over the shards.

A rank holds some tokens and the columns of E and F that belong to them. It compresses what it has, and the
sum over ranks of these slots is what one process would have: (proj_dim, d_model) numbers, whatever n.
"""

import copy
import zlib
from collections.abc import Callable
from typing import TypeVar, overload

import torch
from torch import Tensor, distributed, nn

from linformer_from_scratch.distributed.sums import sum_over_ranks
from linformer_from_scratch.encoder import Classifier, Encoder
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.projections import LearnedProjection, Projection
from linformer_from_scratch.training.ranks import Group, assert_same_across_ranks, rank, shares, world_size

Reduce = Callable[[Tensor, Group], Tensor]
Model = TypeVar("Model", bound=nn.Module)


class SequenceParallelAttention(LinformerAttention):
    """LinformerAttention on this rank's tokens; the other ranks hold the rest of the text.

    head_i = softmax(Q_i (Σ_s E_s K_s)ᵀ / √d_head) Σ_s F_s V_s, the sums over all ranks

    Args:
        d_model, num_heads: as LinformerAttention, the same on all ranks.
        E, F: this rank's columns, learned projections with seq_len = the tokens it holds. Where F is E
            and the heads share it, the ranks exchange half as much.
        group: the ranks that share a text; all ranks by default.
        check: first see that the ranks' batches and layers are alike, a few bytes more. Sums of tensors that
            are not alike end in a crash or in wrong numbers, so only layers behind a checked one should do
            without, and all ranks the same ones.
        reduce: (this rank's part, group) -> the sum over the ranks.

    Shape: x (batch, seq_len of this rank, d_model), padding_mask (batch, seq_len of this rank) -> as x
    Raises: ValueError as LinformerAttention, if E or F is not learned, if x has not one token for each
        column, or if the ranks' batches or layers differ in what is summed.
    A shorter text must be padded before it is cut: else its tokens would meet other columns than in one
    process.
    """

    E: LearnedProjection
    F: LearnedProjection

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        E: Projection,
        F: Projection,
        group: Group = None,
        check: bool = True,
        reduce: Reduce = sum_over_ranks,
    ):
        super().__init__(d_model, num_heads, _learned(E), _learned(F))
        self.group, self.check, self.reduce = group, check, reduce

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
        """Sum over the ranks, after a check that all of them sum the same thing."""
        if self.check:
            assert_same_across_ranks(
                self.group,
                batch=batch,
                d_model=self.query.in_features,
                num_heads=self.num_heads,
                proj_dim=self.E.proj_dim,
                sharing="E = F" if self.F is self.E else "E and F",
                matrices=self.E.stored.shape[:-2].numel(),
                dtype=part.dtype,
                gradients=part.requires_grad,
            )
        return self.reduce(part, self.group)


@overload
def shard(model: LinformerAttention, group: Group = None) -> SequenceParallelAttention: ...
@overload
def shard(model: Model, group: Group = None) -> Model: ...
def shard(model: nn.Module, group: Group = None) -> nn.Module:
    """This rank's copy of a model: attention layers with its columns of E and F, encoders with its positions.

    The rest is the same on all ranks, and so must the model be before it is cut, to the last number: all
    ranks of the group cut at the same time, and first compare what they have, in two small exchanges.

    Args:
        model: a LinformerAttention, or a module that holds some and works on each token alone elsewhere.
        group: the ranks that share a text; all ranks by default. Their shards are shares(seq_len, ranks).

    Raises: ValueError if an E is not learned, if an Encoder looks at neighbours, across the edges of shards,
        or if the model holds a Classifier, which takes a mean over all tokens; if the ranks' models differ.
    """
    if world_size(group) > 1:
        assert_same_across_ranks(group, **_description(model))
    holder = nn.ModuleList([copy.deepcopy(model)])
    layers: dict[int, SequenceParallelAttention] = {}  # one that stands in two places stays one
    matrices: set[int] = set()
    for parent in list(holder.modules()):
        if isinstance(parent, Classifier):
            raise ValueError("a Classifier takes a mean over tokens of all ranks; cut its encoder")
        if isinstance(parent, Encoder):
            _shard_positions(parent, group)
        for name, child in list(parent._modules.items()):
            if isinstance(child, LinformerAttention):
                if id(child) not in layers:
                    layers[id(child)] = _shard_attention(child, matrices, group, check=not layers)
                setattr(parent, name, layers[id(child)])
    return holder[0]


def _description(model: nn.Module) -> dict[str, object]:
    """What must be the same on all ranks: sizes first, then the numbers themselves."""
    layers = [(name, layer) for name, layer in model.named_modules() if isinstance(layer, LinformerAttention)]
    heads = {f"num_heads{name and ' of '}{name}": layer.num_heads for name, layer in layers}
    sizes: dict[str, object] = {}
    numbers: dict[str, object] = {}
    for name, parameter in model.named_parameters():
        state = "learned" if parameter.requires_grad else "frozen"
        sizes[name] = f"{tuple(parameter.shape)} of {parameter.dtype}, {state}"
        stored = parameter.detach().flatten().view(torch.uint8).cpu().numpy()
        numbers[f"the numbers of {name}"] = f"checksum {zlib.crc32(stored.data)}"
    return {**sizes, **heads, **numbers}


def _shard_attention(
    whole: LinformerAttention, matrices: set[int], group: Group, check: bool
) -> SequenceParallelAttention:
    for matrix in (whole.E, whole.F):
        if id(matrix) not in matrices:  # a shared one is cut once
            shard_projection(matrix, group)
            matrices.add(id(matrix))
    layer = SequenceParallelAttention(
        whole.query.in_features, whole.num_heads, whole.E, whole.F, group, check
    )
    for name in ("query", "key", "value", "output"):
        setattr(layer, name, getattr(whole, name))
    return layer.train(whole.training)


def shard_projection(E: Projection, group: Group = None) -> None:
    """Leave this rank's columns of a learned E."""
    E = _learned(E)
    columns = own_part(E.stored.detach(), group, dim=-1).clone()  # E.root stays that of the whole
    E.stored = nn.Parameter(columns, requires_grad=E.stored.requires_grad)
    E.seq_len = columns.size(-1)


def _shard_positions(encoder: Encoder, group: Group) -> None:
    if encoder.neighbours is not None:
        width = encoder.neighbours.kernel_size[0]
        raise ValueError(
            f"a convolution over {width} tokens crosses the edges of shards, expected neighbours=0"
        )
    whole = encoder.positions.weight
    rows = own_part(whole.detach(), group, dim=0).clone()
    encoder.positions = nn.Embedding.from_pretrained(rows, freeze=not whole.requires_grad)


def _learned(E: Projection) -> LearnedProjection:
    if not isinstance(E, LearnedProjection):
        raise ValueError(f"got a {type(E).__name__}, expected a LearnedProjection, whose columns can be cut")
    return E


def own_part(x: Tensor, group: Group = None, dim: int = 1) -> Tensor:
    """This rank's part of a tensor that is cut along its tokens, such as ids (batch, n)."""
    return x.split(shares(x.size(dim), world_size(group)), dim)[rank(group)]


def sum_gradients(model: nn.Module, group: Group = None) -> None:
    """After backward: sum the gradients of all weights that every rank holds. Shards keep their own."""
    own = {id(parameter) for parameter in sharded_parameters(model)}
    for parameter in model.parameters():
        if parameter.requires_grad and id(parameter) not in own:
            if parameter.grad is None:  # all ranks must take part
                parameter.grad = torch.zeros_like(parameter)
            if world_size(group) > 1:
                distributed.all_reduce(parameter.grad, group=group)


def sharded_parameters(model: nn.Module) -> list[Tensor]:
    """Parameters of which every rank holds a part: columns of E and F, positions of an Encoder; each once."""
    found: list[Tensor] = []
    for module in model.modules():
        if isinstance(module, SequenceParallelAttention):
            found += [module.E.stored, module.F.stored]
        if isinstance(module, Encoder):
            found.append(module.positions.weight)
    return list({id(parameter): parameter for parameter in found}.values())
