"""The sentence encoder of chapter 12 on shards of its texts, and the windows it may attend through.

Each takes over the parts of a module that `shard` has copied. Texts are padded to the encoder's full length
before they are cut.
"""

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.common.ranks import Group, own_part, rank, shares, world_size
from linformer_from_scratch.distributed.sums import AgreedSum, sum_over_ranks
from linformer_from_scratch.heads import check_inputs, merge_heads, split_heads
from linformer_from_scratch.linformer import real_tokens
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained.lengthwise import LengthwiseEncoder
from linformer_from_scratch.pretrained.network import SentenceEncoder, pool
from linformer_from_scratch.pretrained.windows import WindowAttention, lengths_of, windows


class SequenceParallelWindows(WindowAttention):
    """WindowAttention on this rank's tokens; the other ranks hold the rest of the text.

    A window is cut by the length of the whole text. So two exchanges serve a layer: how many real tokens each
    text has, batch integers; then the slots.

    Args:
        whole: the layer before it was cut, whose weights this one takes.
        seq_len: tokens of a whole text, with its padding.
        add_up: sums over the ranks.

    Shape: as SequenceParallelAttention
    Raises: ValueError if x has not as many tokens as this rank's share of seq_len, or if the ranks' batches
        or layers differ.
    """

    def __init__(self, whole: WindowAttention, seq_len: int, add_up: AgreedSum):
        vars(self).update(vars(whole))
        self.seq_len, self.add_up = seq_len, add_up

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """As in one process, for texts that fill the shard."""
        check_inputs(x, padding_mask, self.query.in_features)
        check_fills(x.size(1), shares(self.seq_len, world_size(self.add_up.group))[rank(self.add_up.group)])
        lengths = self.add_up(
            lengths_of(x, padding_mask),
            batch=len(x),
            d_model=x.size(-1),
            num_heads=self.num_heads,
            proj_dim=self.proj_dim,
            numbers=x.dtype,
            slots_have_gradients=x.requires_grad,
        )
        E = own_part(windows(lengths, self.proj_dim, self.seq_len), self.add_up.group, dim=-1)
        x = real_tokens(x, padding_mask)
        slots = self.add_up.reduce(E.to(x.dtype) @ x, self.add_up.group)
        projected = self.query(x), self.key(slots), self.value(slots)
        q, k, v = (split_heads(y, self.num_heads) for y in projected)
        whole_mask = torch.arange(self.seq_len, device=x.device) < lengths[:, None]
        return self.output(merge_heads(self.attend(q, k, v, whole_mask)))


class GatheredAttention(MultiHeadAttention):
    """Exact attention on this rank's tokens, which read the keys and values of all ranks.

    They are gathered in one sum, to which every rank gives its own between zeros, and which of them are real
    in another: batch · seq_len · (2 d_model + 1) numbers, where slots are batch · proj_dim · d_model.

    Args, Shape, Raises: as SequenceParallelWindows
    """

    def __init__(self, whole: MultiHeadAttention, seq_len: int, add_up: AgreedSum):
        vars(self).update(vars(whole))
        self.seq_len, self.add_up = seq_len, add_up

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """As in one process, for texts that fill the shard."""
        check_inputs(x, padding_mask, self.query.in_features)
        group = self.add_up.group
        own = shares(self.seq_len, world_size(group))
        before, after = sum(own[: rank(group)]), sum(own[rank(group) + 1 :])
        check_fills(x.size(1), own[rank(group)])
        real = x.new_ones(x.shape[:2]) if padding_mask is None else padding_mask.to(x.dtype)
        sizes = {"batch": len(x), "d_model": x.size(-1), "num_heads": self.num_heads}
        whole_mask = self.add_up(functional.pad(real, (before, after)), **sizes, kv_heads=self.num_kv_heads)
        q, k, v = self.project(x)
        both = functional.pad(torch.stack([k, v]), (0, 0, before, after))
        k, v = self.add_up.reduce(both, group)
        return self.output(merge_heads(self.attend(q, k, v, whole_mask > 0)))


class SequenceParallelSentenceEncoder(SentenceEncoder):
    """SentenceEncoder on this rank's tokens and their positions; `embed` gives the whole text's vector.

    Args:
        whole: the encoder, whose parts this one takes; its positions and its attention are cut already.
        group: the ranks that share a text.

    Shape: as SentenceEncoder, with n = this rank's share of 512 tokens
    Raises: ValueError if there are more or fewer tokens.
    """

    def __init__(self, whole: SentenceEncoder, group: Group = None):
        vars(self).update(vars(whole))
        self.group = group

    def hidden(self, ids: Tensor, padding_mask: Tensor | None = None) -> list[Tensor]:
        """This rank's vectors after every block."""
        check_fills(ids.size(-1), self.positions.num_embeddings)
        return super().hidden(ids, padding_mask)

    def embed(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """The whole text's unit vector, the same on every rank: one exchange more. Shape: (batch, 384)

        The loss is the sum of what the ranks make of it, so each takes its share: loss(vectors) / ranks.
        """
        own = real_tokens(self(ids, padding_mask), padding_mask).sum(dim=1, keepdim=True)
        return pool(sum_over_ranks(own, self.group))


class SequenceParallelLengthwiseEncoder(LengthwiseEncoder):
    """LengthwiseEncoder on this rank's tokens: a text's length is the sum over ranks.

    Args, Shape, Raises: as SequenceParallelSentenceEncoder
    """

    def __init__(self, whole: LengthwiseEncoder, group: Group = None):
        vars(self).update(vars(whole))
        self.linformer.positions = self.exact.positions  # each was cut; they stay one
        self.add_up = AgreedSum(group)

    def lengths(self, ids: Tensor, padding_mask: Tensor | None) -> Tensor:
        """Of the whole texts, on every rank."""
        return self.add_up(super().lengths(ids, padding_mask), batch=len(ids))

    def without_padding(self, ids: Tensor, padding_mask: Tensor) -> tuple[Tensor, Tensor]:
        """As they are: a shard is always full."""
        return ids, padding_mask


def check_fills(tokens: int, expected: int, of: str = "positions") -> None:
    """Raise ValueError unless a shard gets as many tokens as it was cut for."""
    if tokens != expected:
        raise ValueError(
            f"this shard has {tokens} tokens and {expected} {of}; "
            "pad the text to its full length before it is cut"
        )
