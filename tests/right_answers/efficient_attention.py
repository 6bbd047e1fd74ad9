"""Right and nearly right answers: efficient_attention."""

import math

import numpy as np
import torch
from torch.nn import functional

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.efficient import nystrom_attention
from right_answers import right, wrong


@right("9.1")
def window_in_loops(n, window, causal):
    return [[abs(i - j) <= window and (not causal or j <= i) for j in range(n)] for i in range(n)]


@right("9.1")
def window_by_triangles(n, window, causal):
    return torch.ones(n, n, dtype=torch.bool).tril(0 if causal else window).triu(-window)


@right("9.1")
def window_row_by_row(n, window, causal):
    mask = torch.zeros(n, n, dtype=torch.bool)
    for i in range(n):
        mask[i, max(0, i - window) : i + 1 + (0 if causal else window)] = True
    return mask


@wrong("9.1")
def no_window_for_zero(n, window, causal):
    """A window of 0 is taken for none."""
    gap = torch.arange(n)[:, None] - torch.arange(n)
    near = gap.abs() <= (window or n)
    return near & (gap >= 0) if causal else near


def attend(q, k):
    return functional.softmax(torch.einsum("...id,...jd->...ij", q, k) / math.sqrt(q.shape[-1]), dim=-1)


def averages(x, landmarks):
    return torch.stack([part.mean(dim=-2) for part in x.chunk(landmarks, dim=-2)], dim=-2)


@right("9.2")
def nystrom_by_solve(q, k, v, landmarks):
    q_mean, k_mean = averages(q, landmarks), averages(k, landmarks)
    return attend(q, k_mean) @ torch.linalg.solve(attend(q_mean, k_mean), attend(q_mean, k) @ v)


@right("9.2")
def nystrom_head_by_head(q, k, v, landmarks):
    if q.dim() > 2:
        return torch.stack([nystrom_head_by_head(*head, landmarks) for head in zip(q, k, v, strict=True)])
    read_all = functional.scaled_dot_product_attention(averages(q, landmarks), k, v)
    middle = attend(averages(q, landmarks), averages(k, landmarks))
    return attend(q, averages(k, landmarks)) @ torch.linalg.lstsq(middle, read_all).solution


@right("9.2")
def nystrom_by_the_package(q, k, v, landmarks):
    return nystrom_attention(q, k, v, landmarks, steps=10)


@wrong("9.2")
def correction_without_gradient(q, k, v, landmarks):
    """Right values; no gradient flows through the pseudoinverse."""
    q_mean, k_mean = (x.unflatten(-2, (landmarks, -1)).mean(-2) for x in (q, k))
    correction = torch.linalg.pinv(attention_weights(q_mean, k_mean)).detach()
    return attention_weights(q, k_mean) @ correction @ attention_weights(q_mean, k) @ v


def phi(x):
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


@right("9.3")
def kernel_with_a_map(q, k, v):
    weights = phi(q) @ phi(k).transpose(-2, -1)
    return weights / weights.sum(dim=-1, keepdim=True) @ v


@right("9.3")
def kernel_with_a_column_of_ones(q, k, v):
    ones = torch.ones_like(v[..., :1])
    mixed = phi(q) @ (phi(k).mT @ torch.cat([v, ones], dim=-1))
    return mixed[..., :-1] / mixed[..., -1:]


@right("9.3")
def kernel_token_by_token(q, k, v):
    state, total = 0, 0
    for j in range(k.size(-2)):
        key = phi(k[..., j, :])
        state, total = state + key[..., :, None] * v[..., j, None, :], total + key
    rows = [phi(q[..., i, :])[..., None, :] for i in range(q.size(-2))]
    return torch.cat([row @ state / (row @ total[..., None]) for row in rows], dim=-2)


@wrong("9.3")
def divisor_without_gradient(q, k, v):
    """Right values; no gradient flows through the divisor."""
    q, k = functional.elu(q) + 1, functional.elu(k) + 1
    return q @ (k.mT @ v) / (q @ k.sum(-2)[..., None]).detach()


@right("9.4")
def causal_in_place(q, k, v):
    state = torch.zeros(*q.shape[:-2], q.size(-1), v.size(-1))
    total, output = torch.zeros_like(q[..., 0, :]), torch.empty_like(v)
    for i in range(q.size(-2)):
        query, key = phi(q[..., i, :]), phi(k[..., i, :])
        state += key[..., :, None] * v[..., i, None, :]
        total += key
        output[..., i, :] = (query[..., None, :] @ state)[..., 0, :] / (query * total).sum(-1, keepdim=True)
    return output


@right("9.4")
def causal_in_numpy(q, k, v):
    q, k, v = (x.double().numpy() for x in (q, k, v))
    q, k = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))
    states = np.cumsum(k[..., :, None] * v[..., None, :], axis=-3)
    sums = np.cumsum(k, axis=-2)
    return np.einsum("...nd,...nde->...ne", q, states) / (q * sums).sum(-1)[..., None]


@right("9.4")
def causal_by_prefixes(q, k, v):
    cut = [(q[..., i : i + 1, :], k[..., : i + 1, :], v[..., : i + 1, :]) for i in range(q.size(-2))]
    return torch.cat([kernel_with_a_map(*past) for past in cut], dim=-2)


@wrong("9.4")
def only_the_first_reads_itself(q, k, v):
    """Tokens do not read themselves, except the first."""
    q, k = functional.elu(q) + 1, functional.elu(k) + 1
    weights = q @ k.mT
    first = torch.zeros_like(weights)
    first[..., 0, 0] = weights[..., 0, 0]
    weights = weights.tril(-1) + first
    return weights @ v / weights.sum(-1, keepdim=True)


@right("9.5")
def tile_column_by_column(largest, total, mixed, scores, values):
    for score, value in zip(scores.split(1, dim=1), values, strict=True):
        new = torch.where(score > largest, score, largest)
        shrink, weight = torch.exp(largest - new), torch.exp(score - new)
        largest, total, mixed = new, total * shrink + weight, mixed * shrink + weight * value
    return [largest, total, mixed]


@right("9.5")
def tile_row_by_row(largest, total, mixed, scores, values):
    rows = []
    for i, row in enumerate(scores.tolist()):
        new = max(largest[i].item(), *row)
        shrink, weights = math.exp(largest[i] - new), [math.exp(score - new) for score in row]
        summed = shrink * mixed[i] + sum(w * value for w, value in zip(weights, values, strict=True))
        rows.append(([new], [shrink * total[i].item() + sum(weights)], summed.tolist()))
    return tuple(map(list, zip(*rows, strict=True)))


@right("9.5")
def tile_as_one_key_more(largest, total, mixed, scores, values):
    """The state is one key: its score is the largest, its weight total, its value their quotient."""
    logits = torch.cat([largest + total.log(), scores], dim=1)
    new = torch.cat([largest, scores], dim=1).max(dim=1, keepdim=True).values
    all_of_it = (torch.logsumexp(logits, dim=1, keepdim=True) - new).exp()
    weights = logits.softmax(dim=1)
    before = torch.where(total > 0, mixed / total, 0.0)
    return new, all_of_it, all_of_it * (weights[:, :1] * before + weights[:, 1:] @ values)


@wrong("9.5")
def total_written_over(largest, total, mixed, scores, values):
    """Adds to the caller's total in place."""
    new = torch.maximum(largest, scores.amax(1, keepdim=True))
    shrink, weights = (largest - new).exp(), (scores - new).exp()
    total *= shrink
    total += weights.sum(1, True)
    return new, total, shrink * mixed + weights @ values


CANCELS = "a factor common to all features of a query cancels"
LAST = "a score has two axes, and the last of two is number one"
SAME = {
    "9.3": {
        "q - q.detach().amax(dim=-1, keepdim=True).clamp(max=0) -> "
        "q + q.detach().amax(dim=-1, keepdim=True).clamp(max=0)": CANCELS,
    },
    "9.5": {"-1 -> +1": LAST, "-1 -> +1 (2)": LAST},
}
