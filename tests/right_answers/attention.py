"""Right and nearly right answers: attention."""

import math

import numpy
import torch
from torch.nn import functional

from linformer_from_scratch.attention import scaled_dot_product_attention
from right_answers import right, wrong


@right("1.1")
def one_by_pytorch(query, keys):
    return functional.scaled_dot_product_attention(query[None], keys, torch.eye(len(keys)).to(keys))[0]


@right("1.1")
def one_key_at_a_time(query, keys):
    scores = torch.stack([(query * key).sum() for key in keys]) / len(query) ** 0.5
    return scores.exp() / scores.exp().sum()


@right("1.1")
def one_by_einsum_in_double(query, keys):
    return torch.einsum("d,nd->n", query.double(), keys.double()).div(math.sqrt(len(query))).softmax(0)


@right("1.1")
def one_by_vmap(query, keys):
    return torch.softmax(torch.vmap(lambda key: query.dot(key))(keys) / query.numel() ** 0.5, 0)


@right("1.2")
def all_by_einsum(q, k):
    return torch.einsum("bhnd,bhmd->bhnm", q, k).div(q.shape[-1] ** 0.5).softmax(dim=3)


@right("1.2")
def all_one_by_one(q, k):
    pairs = zip(q.flatten(0, 1), k.flatten(0, 1), strict=True)
    heads = [torch.stack([one_key_at_a_time(query, keys) for query in queries]) for queries, keys in pairs]
    return torch.stack(heads).unflatten(0, q.shape[:2])


@right("1.2")
def all_by_log_softmax_in_double(q, k):
    scores = (q / math.sqrt(q.size(-1))).double() @ k.double().transpose(-2, -1)
    return functional.log_softmax(scores, -1).exp()


@wrong("1.2")
def gradient_doubled(q, k):
    """Right values; k gets its gradient twice."""
    return (q @ (2 * k - k.detach()).mT / math.sqrt(q.size(-1))).softmax(-1)


@right("1.3")
def entropy_by_categorical(weights):
    return torch.distributions.Categorical(probs=weights).entropy() / math.log(2)


@right("1.3")
def entropy_by_clamping_in_double(weights):
    return -(weights.double() * weights.double().clamp(min=1e-300).log2()).sum(dim=-1)


@right("1.3")
def entropy_by_loops(weights):
    if weights.dim() > 1:
        return [entropy_by_loops(row) for row in weights]
    return -sum(w * math.log2(w) for w in weights.tolist() if w)


@wrong("1.3")
def small_weights_dropped(weights):
    """Weights below one in a million count as zero."""
    return torch.special.entr(torch.where(weights < 1e-6, 0, weights)).sum(-1) / math.log(2)


@right("1.4")
def causal_by_pytorch(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


@right("1.4")
def causal_token_by_token(q, k, v):
    cut = [(q[..., [i], :], k[..., : i + 1, :], v[..., : i + 1, :]) for i in range(q.size(-2))]
    return torch.cat([scaled_dot_product_attention(*past) for past in cut], dim=-2)


@right("1.4")
def causal_by_einsum_in_double(q, k, v):
    scores = torch.einsum("bhid,bhjd->bhij", q.double(), k.double()) * q.size(-1) ** -0.5
    i, j = torch.meshgrid(torch.arange(q.size(2)), torch.arange(q.size(2)), indexing="ij")
    return torch.einsum("bhij,bhje->bhie", scores.masked_fill(j > i, -torch.inf).softmax(-1), v.double())


@wrong("1.4")
def divided_by_a_constant(q, k, v):
    """Hidden after the softmax and normalised again, but no gradient flows through the divisor."""
    weights = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1).tril()
    return weights / weights.sum(-1, keepdim=True).detach() @ v


@right("1.5")
def softmax_by_logsumexp(scores):
    return (scores - scores.logsumexp(-1, keepdim=True)).exp()


@right("1.5")
def softmax_by_numpy(scores):
    e = numpy.exp(scores.numpy() - scores.numpy().max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@right("1.5")
def softmax_row_by_row(scores):
    rows = []
    for row in scores.tolist():
        e = [math.exp(score - max(row)) for score in row]
        rows.append([term / sum(e) for term in e])
    return rows


@right("1.5")
def softmax_of_pairs(scores):
    differences = scores.double()[:, None, :] - scores.double()[:, :, None]
    return 1 / differences.exp().sum(-1)  # exp overflows to infinity, and 1 / infinity is the right 0


@right("1.6")
def masked_by_pytorch(q, k, v, mask=None):
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@right("1.6")
def masked_by_nan_to_num(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(-1).nan_to_num(0.0) @ v


@right("1.6")
def masked_by_exp_and_sum(q, k, v, mask=None):
    scores = (q.double() @ k.double().mT) * q.size(-1) ** -0.5
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    if mask is not None:
        e = e * mask
    total = e.sum(-1, keepdim=True)
    return (e / torch.where(total > 0, total, 1.0)) @ v.double()


class Attends:
    """An object that is called, not a function; it adds −1e9 where nothing may be read."""

    def __call__(self, q, k, v, mask=None):
        scores = q @ k.mT / q.size(-1) ** 0.5
        if mask is None:
            return scores.softmax(-1) @ v
        weights = (scores + torch.zeros_like(scores).masked_fill_(~mask, -1e9)).softmax(-1)
        return weights * mask.any(-1, keepdim=True) @ v


right("1.6")(Attends())


VECTOR, MATRIX = "a vector's last axis is its first", "a matrix's last axis is number 1"
SAME = {
    "1.1": {"0 -> -1": "the only row is also the last", "1 -> 0": VECTOR, "1 -> 0 (2)": VECTOR},
    "1.4": {"-2 -> +2": "of four axes, the last but one is number 2"},
    "1.5": {"-1 -> +1": MATRIX, "-1 -> +1 (2)": MATRIX},
}
