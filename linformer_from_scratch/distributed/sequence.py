"""Linformer's layer on a shard of the sequence: E K = Σ E_s K_s, a sum over the shards.

A rank holds some tokens and the columns of E and F that belong to them. It compresses what it has, and the
sum over ranks of these slots is what one process would have: (proj_dim, d_model) numbers, whatever n.
"""

import copy

import torch
from torch import Tensor, nn

from linformer_from_scratch.distributed.sums import sum_over_ranks
from linformer_from_scratch.encoder import Encoder
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.projections import LearnedProjection, Projection
from linformer_from_scratch.ranks import Group, agree, rank, shares, world_size


class SequenceParallelAttention(LinformerAttention):
    """LinformerAttention on this rank's tokens; the other ranks hold the rest of the text.

    head_i = softmax(Q_i (Σ_s E_s K_s)ᵀ / √d_head) Σ_s F_s V_s, the sums over all ranks

    Args:
        d_model, num_heads: as LinformerAttention, the same on all ranks.
        E, F: this rank's columns, learned projections with seq_len = the tokens it holds at most. Where F
            is E and the heads share it, the ranks exchange half as much.
        group: the ranks that share a text; all ranks by default.
        check: first see that the ranks' batches are alike, a few bytes more. Sums of tensors that are not
            alike end in a crash or in wrong numbers, so only layers behind a checked one should do without.

    Shape: x (batch, tokens of this rank, d_model), padding_mask (batch, tokens of this rank) -> as x
    Raises: ValueError as LinformerAttention, if E or F is not learned, or if the ranks' batches differ.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        E: Projection,
        F: Projection,
        group: Group = None,
        check: bool = True,
    ):
        for name, matrix in (("E", E), ("F", F)):
            if not isinstance(matrix, LearnedProjection):
                raise ValueError(f"{name} is a {type(matrix).__name__}, expected a LearnedProjection to cut")
        super().__init__(d_model, num_heads, E, F)
        self.group, self.check = group, check

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Refuse batches that differ, then as one process does."""
        if self.check:
            agree(self.group, batch=len(x))
        return super().forward(x, padding_mask)

    def slots(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Compressed keys and values of the whole text. Shape: (batch, num_heads, proj_dim, d_head) each."""
        if self.F is self.E and self.E.commutes:
            whole = sum_over_ranks(self.E(x), self.group)  # (batch, proj_dim, d_model), serves both
            return self.split(self.key(whole)), self.split(self.value(whole))
        keys, values = sum_over_ranks(torch.stack(super().slots(x)), self.group)
        return keys, values


def cut(model: nn.Module, group: Group = None) -> nn.Module:
    """This rank's copy of a model: every LinformerAttention with its columns of E and F, and, of an Encoder,
    its positions. The rest is the same on all ranks.

    Args:
        model: a LinformerAttention, or any module that holds some and works on each token alone elsewhere.
        group: the ranks that share a text; all ranks by default. Their shards are shares(seq_len, ranks).

    Raises: ValueError if an E is not learned, or an Encoder looks at neighbours, across the edges of shards.
    """
    if isinstance(model, LinformerAttention):
        return _cut_attention(model, group, {})
    model, own = copy.deepcopy(model), {}
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, LinformerAttention):
                layer = _cut_attention(child, group, own)
                layer.check = not any(isinstance(m, SequenceParallelAttention) for m in model.modules())
                setattr(parent, name, layer)
        if isinstance(parent, Encoder):
            _cut_positions(parent, group)
    return model


def _cut_attention(
    whole: LinformerAttention, group: Group, own: dict[int, Projection]
) -> SequenceParallelAttention:
    for matrix in (whole.E, whole.F):  # a shared one is cut once, and stays shared
        own.setdefault(id(matrix), _cut_projection(matrix, group))
    sizes = whole.query.in_features, whole.num_heads
    layer = SequenceParallelAttention(*sizes, own[id(whole.E)], own[id(whole.F)], group)
    for name in ("query", "key", "value", "output"):
        setattr(layer, name, copy.deepcopy(getattr(whole, name)))
    return layer


def _cut_projection(whole: Projection, group: Group) -> Projection:
    if not isinstance(whole, LearnedProjection):
        raise ValueError(f"a {type(whole).__name__} cannot be cut, expected a LearnedProjection")
    own = copy.deepcopy(whole)
    own.weight = nn.Parameter(own_part(whole.weight.detach(), group, dim=-1).clone())
    own.seq_len = own.weight.size(-1)
    return own


def _cut_positions(encoder: Encoder, group: Group) -> None:
    if encoder.neighbours is not None:
        width = encoder.neighbours.kernel_size[0]
        raise ValueError(
            f"a convolution over {width} tokens crosses the edges of shards, expected neighbours=0"
        )
    rows = own_part(encoder.positions.weight.detach(), group, dim=0).clone()
    encoder.positions = nn.Embedding.from_pretrained(rows, freeze=False)


def own_part(x: Tensor, group: Group = None, dim: int = 1) -> Tensor:
    """This rank's part of a tensor that is cut along its tokens, such as ids (batch, n)."""
    return x.split(shares(x.size(dim), world_size(group)), dim)[rank(group)]


def sum_gradients(model: nn.Module, group: Group = None) -> None:
    """After backward: sum the gradients of all weights that every rank holds. Shards keep their own."""
    own = {id(parameter) for parameter in shards(model)}
    for parameter in model.parameters():
        if parameter.requires_grad and id(parameter) not in own:
            if parameter.grad is None:  # all ranks must take part
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad = sum_over_ranks(parameter.grad, group)


def shards(model: nn.Module) -> list[nn.Parameter]:
    """Parameters of which every rank holds a part: columns of E and F, positions of an Encoder."""
    found = []
    for module in model.modules():
        if isinstance(module, SequenceParallelAttention):
            found += [module.E.weight, module.F.weight]
        if isinstance(module, Encoder):
            found.append(module.positions.weight)
    return found
