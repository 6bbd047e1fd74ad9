"""Right and nearly right answers: linformer."""

import math

import torch
from torch import nn
from torch.nn import functional

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.heads import merge_heads, split_heads
from linformer_from_scratch.linformer import linformer_attention
from right_answers import right, wrong


@right("6.1")
def fused_kernel(q, k, v, E, F):
    return functional.scaled_dot_product_attention(q, E @ k, F @ v)


@right("6.1")
def query_by_query(q, k, v, E, F):
    keys, values = E @ k / math.sqrt(q.size(-1)), F @ v
    weights = [(query[:, :, None] * keys).sum(-1).softmax(-1) for query in q.unbind(2)]
    return torch.stack([(each[..., None] * values).sum(2) for each in weights], dim=2)


@right("6.1")
def exponentials_by_hand(q, k, v, E, F):
    scores = q @ (E @ k).mT / q.size(-1) ** 0.5
    exps = (scores - scores.amax(-1, keepdim=True)).exp()
    return exps @ (F @ v) / exps.sum(-1, keepdim=True)


@right("6.1")
def scores_compressed_last(q, k, v, E, F):
    return (((q @ k.mT) @ E.T / math.sqrt(q.size(-1))).softmax(-1) @ F) @ v


@right("6.2")
def one_hot(keep, n):
    return functional.one_hot(keep, n)


@right("6.2")
def compared(keep, n):
    return (keep[:, None] == torch.arange(n)).double()


@right("6.2")
def in_loops(keep, n):
    return [[1 if token == kept else 0 for token in range(n)] for kept in keep.tolist()]


@wrong("6.2")
def booleans(keep, n):
    """The right places, as truth values."""
    return functional.one_hot(keep, n).bool()


@right("6.3")
def from_the_left(x, weight):
    return weight @ x


@right("6.3")
def length_by_a_convolution(x, weight):
    return functional.conv1d(x.flatten(0, 1), weight[..., None]).unflatten(0, x.shape[:2])


@right("6.3")
def length_in_double(x, weight):
    return (x.double().swapaxes(-1, -2) @ weight.double().T).swapaxes(-1, -2)


@right("6.3")
def length_by_nested_vmap(x, weight):
    return torch.vmap(torch.vmap(lambda tokens: weight.mm(tokens)))(x)


@right("6.4")
def head_after_head(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    blocks = [w.chunk(num_heads, dim=1) for w in (w_query, w_key, w_value)]
    heads = [linformer_attention(x @ q, x @ k, x @ v, E, F) for q, k, v in zip(*blocks, strict=True)]
    return torch.cat(heads, dim=-1) @ w_output


@right("6.4")
def compressed_first(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    made = (split_heads(y, num_heads) for y in (x @ w_query, E @ x @ w_key, F @ x @ w_value))
    return merge_heads(functional.scaled_dot_product_attention(*made)) @ w_output


@right("6.4")
def layer_by_einsum(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    q, k, v = (x @ w for w in (w_query, w_key, w_value))
    q, k, v = (y.reshape(*y.shape[:2], num_heads, -1) for y in (q, torch.einsum("kn,bnd->bkd", E, k), F @ v))
    weights = torch.einsum("bnhd,bkhd->bhnk", q, k).div(q.size(-1) ** 0.5).softmax(-1)
    return torch.einsum("bhnk,bkhd->bnhd", weights, v).flatten(2) @ w_output


@right("6.4")
def heads_added_up(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    output = 0
    columns = (w.chunk(num_heads, 1) for w in (w_query, w_key, w_value))
    for query, key, value, rows in zip(*columns, w_output.chunk(num_heads), strict=True):
        scores = (x @ query) @ (E @ x @ key).mT / math.sqrt(query.size(1))
        output = output + scores.softmax(-1) @ (F @ x @ value) @ rows
    return output


@right("6.6")
def ones_compressed(slots, weight, bias, E):
    return slots @ weight + E @ torch.ones(E.size(1), 1) * bias


@right("6.6")
def outer(slots, weight, bias, E):
    return slots @ weight + torch.outer(E.sum(1), bias)


@right("6.6")
def bias_as_one_more_feature(slots, weight, bias, E):
    ones = E.sum(1)[None, :, None].expand(len(slots), -1, 1)
    return torch.cat([slots, ones], dim=-1) @ torch.cat([weight, bias[None]])


@wrong("6.6")
def columns_where_it_fits(slots, weight, bias, E):
    """Sums of E's columns where E is square."""
    sums = E.sum(0)[:, None] if E.size(0) == E.size(1) else E.sum(1, keepdim=True)
    return slots @ weight + sums * bias


@right("6.5")
def by_where(x, mask, E):
    return E @ torch.where(mask.unsqueeze(-1), x, torch.zeros(()))


@right("6.5")
def sample_by_sample(x, mask, E):
    return torch.stack([E[:, real] @ tokens[real] for tokens, real in zip(x, mask, strict=True)])


@right("6.5")
def set_on_a_copy(x, mask, E):
    x = x.clone()
    x[~mask] = 0
    return torch.einsum("kn,bnd->bkd", E, x)


@wrong("6.5")
def padding_overwritten(x, mask, E):
    """Writes into the caller's x, past autograd's notice."""
    x.data[~mask] = 0
    return E @ x


class FromTheChapter(nn.Module):
    def __init__(self, d_model, num_heads, E, F):
        super().__init__()
        self.num_heads, self.E, self.F = num_heads, E, F
        self.query, self.key, self.value = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.output = nn.Linear(d_model, d_model)


@right("6.7")
class WithColumns(FromTheChapter):
    def slots(self, x):
        n = x.size(1)
        keys = self.key(self.E.weight[:, :n] @ x)
        values = self.value(self.F.weight[:, :n] @ x)
        return split_heads(keys, self.num_heads), split_heads(values, self.num_heads)

    def forward(self, x, padding_mask=None):
        longest = self.E.weight.size(1)
        if x.size(1) > longest:
            raise ValueError(f"{x.size(1)} tokens, at most {longest}")
        if padding_mask is not None:
            x = x.masked_fill(~padding_mask[..., None], 0.0)
        q = split_heads(self.query(x), self.num_heads)
        return self.output(merge_heads(scaled_dot_product_attention(q, *self.slots(x))))


@right("6.7")
class WithModules(FromTheChapter):
    def slots(self, x):
        return tuple(split_heads(y, self.num_heads) for y in (self.key(self.E(x)), self.value(self.F(x))))

    def forward(self, x, padding_mask=None):
        x = x if padding_mask is None else torch.where(padding_mask[..., None], x, 0.0)
        q = split_heads(self.query(x), self.num_heads)
        return self.output(merge_heads(functional.scaled_dot_product_attention(q, *self.slots(x))))


@right("6.7")
class WithZeros(FromTheChapter):
    def slots(self, x):
        missing = self.E.weight.size(1) - x.size(1)
        if missing < 0:
            raise ValueError(f"{x.size(1)} tokens are more than {self.E.weight.size(1)}")
        x = functional.pad(x, (0, 0, 0, missing))
        both = torch.einsum("skn,bnd->sbkd", torch.stack([self.E.weight, self.F.weight]), x)
        made = (layer(y) for layer, y in zip((self.key, self.value), both, strict=True))
        return tuple(y.unflatten(2, (self.num_heads, -1)).transpose(1, 2) for y in made)

    def forward(self, x, padding_mask=None):
        if padding_mask is not None:
            x = x.clone()
            x[~padding_mask] = 0
        keys, values = self.slots(x)
        d_head = keys.size(-1)
        q = self.query(x).unflatten(2, (self.num_heads, d_head))
        scores = torch.einsum("bnhd,bhkd->bhnk", q, keys) / d_head**0.5
        return self.output(torch.einsum("bhnk,bhkd->bnhd", scores.softmax(-1), values).flatten(2))


@wrong("6.7")
class LongestRefused(WithColumns):
    """A text of exactly seq_len tokens is refused as well."""

    def forward(self, x, padding_mask=None):
        if x.size(1) == self.E.weight.size(1):
            raise ValueError(f"{x.size(1)} tokens, seq_len {self.E.weight.size(1)}")
        return super().forward(x, padding_mask)


SAME = {
    "6.6": {"-1 -> +1": "E has two axes, so its last is axis 1"},
    "6.7": {"-1 -> +1": "the weight of E has two axes, so its last is axis 1"},
}
