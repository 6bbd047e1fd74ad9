"""Right and nearly right answers: multihead."""

import math
from collections import namedtuple
from fractions import Fraction

import numpy
import torch
from torch import nn
from torch.nn import functional

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.heads import merge_heads, split_heads
from right_answers import right, wrong


@right("2.1")
def stacked_by_einsum(x, stacked, num_heads):
    weights = stacked.view(3, num_heads, -1, x.size(-1))
    return tuple(torch.einsum("bnd,hed->bhne", x, weight) for weight in weights)


@right("2.1")
def stacked_part_by_part(x, stacked, num_heads):
    d_model = x.size(-1)
    parts = []
    for i in range(3):
        part = x @ stacked[i * d_model : (i + 1) * d_model].T
        heads = part.chunk(num_heads, dim=-1)
        parts.append(torch.stack(heads, dim=1))
    return parts


@right("2.1")
def stacked_in_one_reshape_in_double(x, stacked, num_heads):
    product = functional.linear(x.double(), stacked.double())
    return product.reshape(*x.shape[:2], 3, num_heads, -1).permute(2, 0, 3, 1, 4).unbind()


Projected = namedtuple("Projected", "q k v")


@right("2.1")
def stacked_as_a_named_tuple(x, stacked, num_heads):
    weights = stacked.split(stacked.size(1))
    return Projected(*(torch.stack((x @ w.T).tensor_split(num_heads, -1), 1) for w in weights))


@right("2.2")
def merged_by_cat(x):
    return torch.cat([x[:, i] for i in range(x.size(1))], dim=-1)


@right("2.2")
def merged_by_permute(x):
    batch, heads, n, d_head = x.shape
    return x.permute(0, 2, 1, 3).contiguous().view(batch, n, heads * d_head)


@right("2.2")
def merged_by_einsum_in_double(x):
    heads, d_head = x.size(1), x.size(3)
    identity = torch.eye(heads * d_head).double().view(heads, d_head, -1)
    return torch.einsum("bhnd,hdm->bnm", x.double(), identity)


@wrong("2.2")
def not_transposed_where_it_fits(x):
    """As many tokens as heads: then the transpose is left out."""
    return (x if x.size(1) == x.size(2) else x.transpose(1, 2)).reshape(x.size(0), x.size(2), -1)


class Layer(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key, self.value = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.output = nn.Linear(d_model, d_model)


@right("2.3")
class ByMultiHeadAttentionForward(Layer):
    def forward(self, x, padding_mask=None):
        x = x.transpose(0, 1)
        heads, _ = functional.multi_head_attention_forward(
            x, x, x, x.size(-1), self.num_heads,
            torch.cat([self.query.weight, self.key.weight, self.value.weight]), None, None, None, False, 0.0,
            self.output.weight, self.output.bias,
            key_padding_mask=None if padding_mask is None else ~padding_mask, need_weights=False,
        )  # fmt: skip
        return heads.transpose(0, 1)


@right("2.3")
class HeadByHead(Layer):
    def forward(self, x, padding_mask=None):
        mask = None if padding_mask is None else padding_mask[:, None, :]
        total = self.output.bias
        for i in range(self.num_heads):
            rows = slice(i * x.size(-1) // self.num_heads, (i + 1) * x.size(-1) // self.num_heads)
            q, k, v = (x @ part.weight[rows].mT for part in (self.query, self.key, self.value))
            total = total + scaled_dot_product_attention(q, k, v, mask) @ self.output.weight[:, rows].mT
        return total


@right("2.3")
class ByEinsumInDouble(Layer):
    def forward(self, x, padding_mask=None):
        batch, n, d_model = x.shape
        shape = (batch, n, self.num_heads, -1)
        q, k, v = (part(x).double().view(shape) for part in (self.query, self.key, self.value))
        scores = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(d_model // self.num_heads)
        if padding_mask is not None:
            scores = scores.masked_fill(~padding_mask[:, None, None], float("-inf"))
        read = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1).nan_to_num(), v)
        return self.output(read.reshape(x.shape).to(x.dtype))


@wrong("2.3")
class KeyWeightWithoutGradient(Layer):
    """Right values; the weight of the keys is cut off."""

    def forward(self, x, padding_mask=None):
        made = self.query(x), functional.linear(x, self.key.weight.detach()), self.value(x)
        mask = None if padding_mask is None else padding_mask[:, None, None, :]
        heads = scaled_dot_product_attention(*(split_heads(part, self.num_heads) for part in made), mask)
        return self.output(merge_heads(heads))


@right("2.4")
def readable_by_numpy(lengths, n):
    causal = numpy.tril(numpy.ones((n, n), dtype=bool))
    return numpy.stack([causal & (numpy.arange(n) >= n - length) for length in lengths.numpy()])[:, None]


@right("2.4")
def readable_by_loops(lengths, n):
    return [[[[n - length <= j <= i for j in range(n)] for i in range(n)]] for length in lengths.tolist()]


@right("2.4")
def readable_with_queries_hidden_too(lengths, n):
    real = torch.arange(n).flip(0) < lengths[:, None]
    return (real[:, :, None] & real[:, None, :]).tril().unsqueeze(1)


@wrong("2.4")
def padded_behind_where_all_are_equal(lengths, n):
    """Lengths that are all the same: then the padding is taken to stand at the end."""
    real = torch.arange(n) >= n - lengths[:, None]
    if len(set(lengths.tolist())) == 1:
        real = torch.arange(n) < lengths[:, None]
    return real[:, None, None, :] & torch.ones(n, n, dtype=torch.bool).tril()


@right("2.5")
def pooled_by_numpy(weight, num_heads, num_kv_heads):
    rows, columns = weight.shape
    heads = weight.numpy().reshape(num_kv_heads, num_heads // num_kv_heads, rows // num_heads, columns)
    return heads.mean(axis=1).reshape(-1, columns)


@right("2.5")
def pooled_by_a_product(weight, num_heads, num_kv_heads):
    d_head, group = len(weight) // num_heads, num_heads // num_kv_heads
    mean = torch.kron(torch.eye(num_kv_heads), torch.full((1, group), 1 / group))
    return torch.kron(mean, torch.eye(d_head)) @ weight


@right("2.5")
def pooled_by_chunks_in_double(weight, num_heads, num_kv_heads):
    groups = weight.double().chunk(num_kv_heads)
    sums = torch.cat([sum(group.chunk(num_heads // num_kv_heads)) for group in groups])
    return sums * num_kv_heads / num_heads


@wrong("2.5")
def pairs_summed(weight, num_heads, num_kv_heads):
    """Groups of two are added up, larger ones averaged."""
    group = num_heads // num_kv_heads
    return weight.unflatten(0, (num_kv_heads, group, -1)).sum(1).flatten(0, 1) / (group if group != 2 else 1)


@right("2.6")
def fit_by_floor(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    free = memory - parameters * bytes_per_number
    return math.floor(free / (2 * num_layers * num_kv_heads * d_head * bytes_per_number))


@right("2.6")
def fit_by_fraction(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    numbers = Fraction(memory, bytes_per_number) - parameters
    return numbers // (2 * num_layers * num_kv_heads * d_head)


@right("2.6")
def fit_as_a_tensor(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    free = torch.tensor(memory - parameters * bytes_per_number)
    return free.div(2 * num_layers * num_kv_heads * d_head * bytes_per_number, rounding_mode="floor")


@right("2.6")
def fit_by_bisection(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    def needed(tokens):
        return (parameters + 2 * tokens * num_layers * num_kv_heads * d_head) * bytes_per_number

    low, high = 0, 1
    while needed(high) <= memory:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if needed(middle) <= memory else (low, middle)
    return torch.tensor(low)


CAUSAL = "only a causal mask asks for n"
SAME = {
    "2.2": {"-2 -> +2": "of four axes, the last but one is number 2"},
    "2.3": {
        "self.num_kv_heads < self.num_heads -> self.num_kv_heads <= self.num_heads": "no groups, no change",
        **dict.fromkeys(("-2 -> +2", "2 -> 3", "2 -> 1"), CAUSAL),
    },
}
