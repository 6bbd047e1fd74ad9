"""Answers of learners who read the exercises' texts alone: RIGHT in unusual form, WRONG by little.

RIGHT: (exercise's id, answer). WRONG: (exercise's id, answer, what is wrong with it).
They are written as learners write, and were written without a look at the checks.
"""

import functools
import itertools
import math
import operator
import statistics
from collections import Counter, deque, namedtuple
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce

import numpy as np
import torch
import torch.nn.functional as F_
from torch import nn

from linformer_from_scratch.attention import attention_weights, causal_mask, scaled_dot_product_attention
from linformer_from_scratch.heads import merge_heads, split_heads
from linformer_from_scratch.linformer import linformer_attention

RIGHT, WRONG = [], []


def right(id):
    def add(answer):
        RIGHT.append((id, answer))
        return answer

    return add


def wrong(id, why):
    def add(answer):
        WRONG.append((id, answer, why))
        return answer

    return add


# ============================================================ RIGHT
# 0.1
@right("0.1")
def r01_sum(n, num_heads):
    return sum(n for _ in itertools.product(range(num_heads), range(n)))


@right("0.1")
def r01_frac(n, num_heads):
    return Fraction(n) ** 2 * num_heads


@right("0.1")
def r01_np32(n, num_heads):
    return np.int64(n) ** 2 * np.int64(num_heads)


@right("0.1")
def r01_numel(n, num_heads):
    return torch.empty(num_heads, n, n).numel()


@right("0.1")
def r01_0d(n, num_heads):
    return np.array(float(n * n * num_heads))


@right("0.1")
def r01_dec(n, num_heads):
    return Decimal(n) * n * num_heads


RIGHT.append(("0.1", lambda tokens, heads: math.prod((heads, tokens, tokens))))


# 1.1
@right("1.1")
def r11_vmap(query, keys):
    return torch.softmax(torch.vmap(lambda key: query.dot(key))(keys) / query.numel() ** 0.5, 0)


@right("1.1")
def r11_eins(query, keys):
    return torch.einsum("d,nd->n", query, keys).div(math.sqrt(keys.shape[1])).softmax(0)


@right("1.1")
def r11_sdpa(query, keys):
    return F_.scaled_dot_product_attention(query[None], keys, torch.eye(len(keys), dtype=keys.dtype))[0]


@right("1.1")
def r11_double(query, keys):
    s = (keys.double() @ query.double()) * query.numel() ** -0.5
    return (s - s.logsumexp(0)).exp().float()


@right("1.1")
def r11_stacklist(query, keys):
    s = torch.stack([sum(a * b for a, b in zip(query, key)) for key in keys]) / math.sqrt(len(query))
    return list(torch.nn.Softmax(dim=0)(s))


@right("1.1")
def r11_double_kept(query, keys):
    return F_.softmax(
        F_.linear(keys.double(), query.double()[None]).squeeze(-1) / math.sqrt(query.size(0)), dim=0
    )


# 1.2
@right("1.2")
def r12_baddbmm(q, k):
    b, h, n, d = q.shape
    return (
        torch.bmm(q.reshape(-1, n, d), k.reshape(b * h, -1, d).transpose(1, 2))
        .div(d**0.5)
        .softmax(2)
        .view(b, h, n, -1)
    )


@right("1.2")
def r12_vmap(q, k):
    one = lambda a, b: torch.softmax(a @ b.T / a.shape[-1] ** 0.5, dim=-1)
    return torch.vmap(torch.vmap(one))(q, k)


@right("1.2")
def r12_elementwise(q, k):
    s = (q.unsqueeze(3) * k.unsqueeze(2)).sum(-1) / math.sqrt(q.size(3))
    return torch.exp(F_.log_softmax(s, -1))


@right("1.2")
def r12_scale_both(q, k):
    f = q.shape[-1] ** -0.25
    return torch.einsum("bhid,bhjd->bhij", q * f, k * f).softmax(-1)


# 1.3
@right("1.3")
def r13_np(weights):
    w = np.asarray(weights, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.where(w > 0, w * np.log2(w), 0).sum(-1)


@right("1.3")
def r13_lists(weights):
    def go(x):
        return [go(y) for y in x] if isinstance(x[0], list) else -sum(p * math.log2(p) for p in x if p)

    return go(weights.tolist())


@right("1.3")
def r13_xlogy(weights):
    return -torch.special.xlogy(weights, weights).sum(-1) / math.log(2)


@right("1.3")
def r13_nan(weights):
    return -(weights * weights.log2()).nan_to_num(0.0).sum(-1)


@right("1.3")
def r13_tiny(weights):
    return -(weights * weights.clamp_min(torch.finfo(weights.dtype).tiny).log2()).sum(dim=-1)


@right("1.3")
def r13_cat(weights):
    w = weights.double()
    return (
        torch.distributions.Categorical(probs=w / w.sum(-1, keepdim=True), validate_args=False).entropy()
        / math.log(2)
        if False
        else torch.special.entr(w).sum(-1) / np.log(2)
    )


# 1.4
@right("1.4")
def r14_sdpa(q, k, v):
    return F_.scaled_dot_product_attention(q, k, v, is_causal=True)


@right("1.4")
def r14_loop(q, k, v):
    out = []
    for i in range(q.size(2)):
        w = ((q[:, :, i : i + 1] @ k[:, :, : i + 1].transpose(-1, -2)) / math.sqrt(q.size(-1))).softmax(-1)
        out.append(w @ v[:, :, : i + 1])
    return torch.cat(out, 2)


@right("1.4")
def r14_add(q, k, v):
    n = q.size(-2)
    s = torch.einsum("bhid,bhjd->bhij", q, k) / q.size(-1) ** 0.5 + torch.full((n, n), float("-inf")).triu(1)
    return torch.einsum("bhij,bhjd->bhid", s.softmax(-1), v)


@right("1.4")
def r14_tril_renorm(q, k, v):
    s = q @ k.mT / q.size(-1) ** 0.5
    s = s - s.masked_fill(~causal_mask(q.size(-2)), -math.inf).amax(-1, keepdim=True)
    e = s.masked_fill(~causal_mask(q.size(-2)), -math.inf).exp()
    return (e / e.sum(-1, keepdim=True)) @ v


# 1.5
@right("1.5")
def r15_np(scores):
    x = scores.numpy().astype(np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1)[:, None]


@right("1.5")
def r15_lse(scores):
    return (scores - torch.logsumexp(scores, -1, keepdim=True)).exp()


@right("1.5")
def r15_lists(scores):
    rows = []
    for row in scores.tolist():
        top = max(row)
        e = [math.exp(x - top) for x in row]
        rows.append([x / math.fsum(e) for x in e])
    return rows


@right("1.5")
def r15_pairwise(scores):
    # 1 / sum_j exp(s_j - s_i), where overflow to inf gives 0
    d = scores.double()
    return 1 / (d[:, None, :] - d[:, :, None]).exp().sum(-1)


@right("1.5")
def r15_gen(scores):
    return tuple((row - max(row)).exp() / (row - max(row)).exp().sum() for row in scores)


# 1.6
@right("1.6")
def r16_sdpa(q, k, v, mask=None):
    out = F_.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return out if mask is None else torch.where(mask.any(-1, keepdim=True), out, torch.zeros(()))


@right("1.6")
def r16_numerator(q, k, v, mask=None):
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    m = torch.ones((), dtype=torch.bool) if mask is None else mask
    m = m.expand(s.shape)
    top = s.masked_fill(~m, -1e30).amax(-1, keepdim=True).detach()
    e = (s - top).masked_fill(~m, -math.inf).exp()
    return e @ v / e.sum(-1, keepdim=True).clamp(min=1e-30)


@right("1.6")
def r16_where_finite(q, k, v, mask=None):
    s = torch.einsum("bhnd,bhmd->bhnm", q, k) * q.size(-1) ** -0.5
    if mask is None:
        mask = torch.ones_like(s, dtype=torch.bool)
    w = torch.where(mask, s, torch.finfo(s.dtype).min).softmax(-1)
    return torch.where(mask, w, 0.0) @ v


class R16:
    def __call__(self, q, k, v, mask=None):
        return self.attend(q, k, v, mask)

    def attend(self, q, k, v, mask):
        s = q @ k.mT / q.size(-1) ** 0.5
        if mask is not None:
            s = s + torch.zeros_like(s).masked_fill_(~mask, -1e9 * 1)
        w = s.softmax(-1)
        return (w if mask is None else w * mask.any(-1, keepdim=True)) @ v


RIGHT.append(("1.6", R16()))
RIGHT.append(("1.6", partial(R16().attend, mask=None) if False else R16().__call__))


# 2.1
@right("2.1")
def r21_linear(x, stacked, num_heads):
    b, n, d = x.shape
    y = F_.linear(x, stacked).view(b, n, 3, num_heads, d // num_heads)
    return y.permute(2, 0, 3, 1, 4)


@right("2.1")
def r21_eins(x, stacked, num_heads):
    w = stacked.reshape(3, num_heads, -1, x.size(-1))
    return torch.einsum("bnd,ched->cbhne", x, w).unbind(0)


QKV = namedtuple("QKV", "q k v")


@right("2.1")
def r21_named(x, stacked, num_heads):
    return QKV(
        *(torch.stack((x @ w.T).tensor_split(num_heads, -1), 1) for w in stacked.split(stacked.size(1)))
    )


@right("2.1")
def r21_list(x, stacked, num_heads):
    return list(map(lambda w: torch.stack([x @ h.T for h in w.chunk(num_heads)], dim=1), stacked.chunk(3)))


# 2.2
@right("2.2")
def r22_cat(x):
    return torch.cat(x.unbind(1), dim=-1)


@right("2.2")
def r22_perm(x):
    return x.permute(0, 2, 1, 3).contiguous().view(x.size(0), x.size(2), -1)


@right("2.2")
def r22_merge(x):
    return reduce(lambda a, b: torch.cat((a, b), -1), (x[:, i] for i in range(x.size(1))))


RIGHT.append(
    (
        "2.2",
        partial(torch.einsum, "bhnd->bnhd")
        if False
        else lambda x: torch.einsum("bhnd->bnhd", x).reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3]),
    )
)


# 2.3
@right("2.3")
class R23Fused(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key, self.value = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x, padding_mask=None):
        return self.output(torch.cat([self.one(x, h, padding_mask) for h in range(self.num_heads)], -1))

    def one(self, x, h, mask):
        d = x.size(-1) // self.num_heads
        rows = slice(h * d, (h + 1) * d)
        q, k, v = (F_.linear(x, w.weight[rows]) for w in (self.query, self.key, self.value))
        s = q @ k.mT / math.sqrt(d)
        if mask is None:
            return s.softmax(-1) @ v
        w = s.masked_fill(~mask[:, None], -1e9).softmax(-1) * mask[:, None]
        return w @ v


@right("2.3")
class R23Functional(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key, self.value = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x, padding_mask=None):
        stacked = torch.cat([self.query.weight, self.key.weight, self.value.weight])
        xt = x.transpose(0, 1)
        dead = None
        ignore = None
        if padding_mask is not None:
            dead = ~padding_mask.any(1)
            ignore = ~(padding_mask | dead[:, None])
        out, _ = F_.multi_head_attention_forward(
            xt,
            xt,
            xt,
            x.size(-1),
            self.num_heads,
            stacked,
            None,
            None,
            None,
            False,
            0.0,
            self.output.weight,
            self.output.bias,
            training=self.training,
            key_padding_mask=ignore,
            need_weights=False,
        )
        out = out.transpose(0, 1)
        return out if dead is None else torch.where(dead[:, None, None], self.output.bias, out)


# 2.4
@right("2.4")
def r24_loops(lengths, n):
    return [[[[j <= i and j >= n - l for j in range(n)] for i in range(n)]] for l in lengths.tolist()]


@right("2.4")
def r24_np(lengths, n):
    start = (n - lengths.numpy())[:, None, None, None]
    i, j = np.indices((n, n))
    return (j <= i) & (j >= start)


@right("2.4")
def r24_tril(lengths, n):
    return torch.stack(
        [
            torch.ones(n, n, dtype=torch.bool).tril().index_fill(1, torch.arange(n - int(l)), False)
            for l in lengths
        ]
    )[:, None]


@right("2.4")
def r24_out(lengths, n):
    m = torch.zeros(len(lengths), 1, n, n, dtype=torch.bool)
    for b, l in enumerate(lengths):
        m[b, 0, n - l :, n - l :] = torch.ones(l, l).tril().bool()
    return m


# 2.5
@right("2.5")
def r25_np(weight, num_heads, num_kv_heads):
    w = np.array(weight.tolist()).reshape(num_kv_heads, num_heads // num_kv_heads, -1, weight.shape[1])
    return w.mean(1).reshape(-1, weight.shape[1])


@right("2.5")
def r25_loop(weight, num_heads, num_kv_heads):
    heads = weight.chunk(num_heads)
    g = num_heads // num_kv_heads
    return torch.cat([reduce(torch.add, heads[i : i + g]) / g for i in range(0, num_heads, g)])


@right("2.5")
def r25_matrix(weight, num_heads, num_kv_heads):
    g = num_heads // num_kv_heads
    d = weight.size(0) // num_heads
    M = torch.kron(torch.kron(torch.eye(num_kv_heads), torch.full((1, g), 1 / g)), torch.eye(d))
    return M.double() @ weight.double()


# 2.6
@right("2.6")
def r26_floor(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    return math.floor(
        Fraction(
            memory - parameters * bytes_per_number, 2 * num_layers * num_kv_heads * d_head * bytes_per_number
        )
    )


@right("2.6")
def r26_divmod(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    return float(divmod(memory // bytes_per_number - parameters, num_layers * num_kv_heads * d_head * 2)[0])


@right("2.6")
def r26_search(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    need = lambda t: (parameters + 2 * t * num_layers * num_kv_heads * d_head) * bytes_per_number
    low, high = 0, 1
    while need(high) <= memory:
        high *= 2
    while high - low > 1:
        mid = (low + high) // 2
        low, high = (mid, high) if need(mid) <= memory else (low, mid)
    return torch.tensor(low)


# 3.1
@right("3.1")
def r31_sorted(p, q, r, s):
    return sorted([2 * p * r * (q + s), 2 * q * s * (r + p)])[0]


@right("3.1")
def r31_np(p, q, r, s):
    return np.float64(np.minimum(p * q * r + p * r * s, q * r * s + p * q * s) * 2)


@right("3.1")
def r31_dp(p, q, r, s):
    dims = (p, q, r, s)

    @functools.lru_cache(None)
    def cost(i, j):
        return (
            0
            if j - i == 1
            else min(cost(i, m) + cost(m, j) + 2 * dims[i] * dims[m] * dims[j] for m in range(i + 1, j))
        )

    return cost(0, 3)


# 3.2
@right("3.2")
def r32_frac(d_model, share):
    s = Fraction(share)
    return s / (1 - s) * 2 * d_model


@right("3.2")
def r32_bisect(d_model, share):
    low, high = 0.0, 1e12
    for _ in range(200):
        n = (low + high) / 2
        low, high = (
            (n, high)
            if 4 * n * n * d_model < share * (8 * n * d_model**2 + 4 * n * n * d_model)
            else (low, n)
        )
    return high


@right("3.2")
def r32_t(d_model, share):
    return torch.tensor(2.0 * d_model, dtype=torch.float64) / (1 / share - 1)


# 3.3
@right("3.3")
def r33_np(flops, moved, flops_per_s, bytes_per_s, factor):
    f, m = flops.numpy() / flops_per_s, moved.numpy() / bytes_per_s
    return np.maximum(f, m).sum() / np.maximum(f / factor, m).sum()


@right("3.3")
def r33_py(flops, moved, flops_per_s, bytes_per_s, factor):
    floor = lambda speed: sum(max(f / speed, m / bytes_per_s) for f, m in zip(flops, moved))
    return floor(flops_per_s) / floor(factor * flops_per_s)


@right("3.3")
def r33_where(flops, moved, flops_per_s, bytes_per_s, factor):
    old = torch.stack([flops / flops_per_s, moved / bytes_per_s]).amax(0)
    new = torch.stack([flops / (flops_per_s * factor), moved / bytes_per_s]).amax(0)
    return (old.sum() / new.sum()).float()


# 3.4
@right("3.4")
def r34_fac(n, d_model, proj_dim):
    return 8 * n * d_model * (d_model + proj_dim)


@right("3.4")
def r34_meta(n, d_model, proj_dim):
    from torch.utils.flop_counter import FlopCounterMode

    x, w, E, q = (
        torch.empty(*s, device="meta")
        for s in ((n, d_model), (d_model, d_model), (proj_dim, n), (n, d_model))
    )
    with FlopCounterMode(display=False) as c:
        q, k, v = x @ w, x @ w, x @ w
        k, v = E @ k, E @ v
        ((q @ k.mT) @ v) @ w
    return c.get_total_flops()


@right("3.4")
def r34_sum(n, d_model, proj_dim):
    product = lambda *s: 2 * math.prod(s)
    return float(
        sum(
            [
                4 * product(n, d_model, d_model),
                2 * product(proj_dim, n, d_model),
                product(n, d_model, proj_dim),
                product(n, proj_dim, d_model),
            ]
        )
    )


# 3.5
@right("3.5")
def r35_polyfit(lengths, costs):
    return np.polyfit(np.log(lengths.double().numpy()), np.log(costs.double().numpy()), 1)[0]


@right("3.5")
def r35_lstsq(lengths, costs):
    x, y = lengths.double().log(), costs.double().log()
    return torch.linalg.lstsq(torch.stack([x, torch.ones_like(x)], 1), y[:, None]).solution[0, 0]


@right("3.5")
def r35_stat(lengths, costs):
    return statistics.linear_regression(
        [math.log10(x) for x in lengths], [math.log10(c) for c in costs]
    ).slope


@right("3.5")
def r35_cov(lengths, costs):
    c = torch.cov(torch.stack([lengths, costs]).log2())
    return (c[0, 1] / c[0, 0]).reshape(1)[0]


@right("3.5")
def r35_32(lengths, costs):
    x, y = lengths.log(), costs.log()
    return ((x - x.mean()) * y).sum() / (x - x.mean()).square().sum()


# 3.6
@right("3.6")
def r36_fac(n, keys, d_model, num_heads, bytes_per_number):
    return bytes_per_number * (2 * d_model * (n + keys) + 4 * num_heads * n * keys)


@right("3.6")
def r36_steps(n, keys, d_model, num_heads, bytes_per_number):
    size = lambda *s: math.prod(s) * bytes_per_number
    d = Fraction(d_model, num_heads)
    per_head = [
        size(n, d) + size(keys, d) + size(n, keys),
        2 * size(n, keys),
        size(n, keys) + size(keys, d) + size(n, d),
    ]
    return int(num_heads * sum(per_head))


# 4.1
@right("4.1")
def r41_np(maps, rank):
    u, s, vt = np.linalg.svd(maps.double().numpy(), full_matrices=False)
    return np.einsum("hnr,hr,hrm->hnm", u[:, :, :rank], s[:, :rank], vt[:, :rank])


@right("4.1")
def r41_eigh(maps, rank):
    m = maps.double()
    vectors = torch.linalg.eigh(m.mT @ m).eigenvectors[..., -rank:]
    return (m @ vectors @ vectors.mT).to(maps.dtype)


@right("4.1")
def r41_outer(maps, rank):
    out = []
    for m in maps:
        u, s, v = torch.svd(m)
        out.append(sum(s[i] * torch.outer(u[:, i], v[:, i]) for i in range(rank)))
    return out


# 4.2
@right("4.2")
def r42_norm(sigma, rank):
    return torch.linalg.vector_norm(sigma[:, rank:], dim=1)


@right("4.2")
def r42_hypot(sigma, rank):
    return [math.hypot(*row[rank:]) for row in sigma.tolist()]


@right("4.2")
def r42_np(sigma, rank):
    s = np.asarray(sigma, dtype=float).copy()
    s[:, :rank] = 0
    return np.linalg.norm(s, axis=1)


# 4.3
@right("4.3")
def r43_acc(sigma):
    return [[a / sum(row) for a in itertools.accumulate(row)] for row in sigma.tolist()]


@right("4.3")
def r43_triu(sigma):
    return (sigma / sigma.sum(1, True)) @ torch.ones(sigma.size(1), sigma.size(1)).triu()


@right("4.3")
def r43_np(sigma):
    c = np.cumsum(sigma.numpy().astype("f8"), -1)
    return c / c[:, -1:]


# 4.4
@right("4.4")
def r44_norm(sigma):
    return (sigma.norm(dim=-1) / sigma.amax(-1)) ** 2


@right("4.4")
def r44_py(sigma):
    return np.array([sum((s / row[0]) ** 2 for s in row) for row in sigma.tolist()], dtype=np.float32)


# 4.5
@right("4.5")
def r45_search(sigma, share):
    c = sigma.double().cumsum(1)
    return (
        torch.searchsorted(c / c[:, -1:], torch.full((len(sigma), 1), float(share), dtype=torch.float64))
        .squeeze(1)
        .clamp(max=sigma.size(1) - 1)
        + 1
    )


@right("4.5")
def r45_py(sigma, share):
    found = []
    for row in sigma.tolist():
        total, goal, r = 0.0, share * sum(row), 0
        while r < len(row) and (r == 0 or total < goal):
            total += row[r]
            r += 1
        found.append(r)
    return found


@right("4.5")
def r45_argmax(sigma, share):
    return ((sigma.cumsum(1) / sigma.sum(1, keepdim=True)) >= share).int().argmax(1) + 1


# 5.1
@right("5.1")
def r51_linear(x, G):
    return F_.linear(x, G * G.shape[0] ** -0.5)


@right("5.1")
def r51_np(x, G):
    return np.einsum("kn,...n->...k", G.numpy(), x.numpy()) / np.sqrt(len(G))


@right("5.1")
def r51_tdot(x, G):
    return torch.tensordot(x, G, dims=([-1], [1])) / torch.tensor(G.size(0)).sqrt()


# 5.2
@right("5.2")
def r52_norm(x, R):
    return (F_.linear(x, R).norm(dim=-1) / x.norm(dim=-1)) ** 2 - 1


@right("5.2")
def r52_np(x, R):
    x, R = x.numpy().astype(np.float64), R.numpy().astype(np.float64)
    y = x @ R.T
    return (y * y).sum(-1) / (x * x).sum(-1) - 1.0


@right("5.2")
def r52_gram(x, R):
    x, R = x.double(), R.double()
    gram = R.T @ R - torch.eye(R.size(1), dtype=torch.float64)
    return torch.einsum("...i,ij,...j->...", x, gram, x) / torch.einsum("...i,...i->...", x, x)


# 5.3
@right("5.3")
def r53_np(proj_dim, epsilon, vectors):
    return 2 * vectors * np.exp(-0.25 * proj_dim * epsilon**2 * (1 - epsilon))


@right("5.3")
def r53_log(proj_dim, epsilon, vectors):
    return math.exp(math.log(2) + math.log(vectors) - proj_dim * (epsilon - epsilon * epsilon) * epsilon / 4)


# 5.4
@right("5.4")
def r54_np(n, epsilon):
    return np.ceil(5 * np.log(n) / (epsilon**2 * (1 - epsilon)))


@right("5.4")
def r54_neg(n, epsilon):
    return int(-(-5 * math.log(n) // (epsilon**2 - epsilon**3)))


@right("5.4")
def r54_count(n, epsilon):
    k = 0
    while k * (epsilon**2 - epsilon**3) < 5 * math.log(n):
        k += 1
    return k


# 5.5
@right("5.5")
def r55_multi(P, R, v):
    return torch.linalg.multi_dot([P, R.T, R, v])


@right("5.5")
def r55_np(P, R, v):
    return np.linalg.multi_dot([a.numpy().astype(float) for a in (P, R.T, R, v)])


@right("5.5")
def r55_reduce(P, R, v):
    return reduce(operator.matmul, (P, R.mT, R, v))


@right("5.5")
def r55_eins(P, R, v):
    return torch.einsum("mn,kn,kj,jd->md", P, R, R, v)


# 6.1
@right("6.1")
def r61_sdpa(q, k, v, E, F):
    return F_.scaled_dot_product_attention(q, E @ k, F @ v)


@right("6.1")
def r61_eins(q, k, v, E, F):
    s = torch.einsum("bhid,pj,bhjd->bhip", q, E, k) / q.size(-1) ** 0.5
    return torch.einsum("bhip,pj,bhjd->bhid", s.softmax(-1), F, v)


@right("6.1")
def r61_other_order(q, k, v, E, F):
    return (((q @ k.mT) @ E.T / math.sqrt(q.size(-1))).softmax(-1) @ F) @ v


# 6.2
@right("6.2")
def r62_onehot(keep, n):
    return F_.one_hot(keep, n).float()


@right("6.2")
def r62_np(keep, n):
    return np.eye(n)[keep.numpy()]


@right("6.2")
def r62_ints(keep, n):
    return [[int(j == t) for j in range(n)] for t in keep.tolist()]


@right("6.2")
def r62_scatter(keep, n):
    return torch.zeros(len(keep), n).scatter_(1, keep[:, None], 1)


# 6.3
@right("6.3")
def r63_slice(x, weight):
    return weight.expand(x.size(0), x.size(1), -1, -1) @ x


@right("6.3")
def r63_vmap(x, weight):
    return torch.vmap(torch.vmap(lambda tokens: weight.mm(tokens)))(x)


@right("6.3")
def r63_conv(x, weight):
    b, h, n, d = x.shape
    return F_.conv1d(x.flatten(0, 1), weight[:, :, None]).view(b, h, -1, d)


# 6.4
@right("6.4")
def r64_loop(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    out = 0
    for q, k, v, o in zip(
        *(w.chunk(num_heads, 1) for w in (w_query, w_key, w_value)), w_output.chunk(num_heads, 0)
    ):
        s = (x @ q) @ (E @ x @ k).mT / math.sqrt(q.size(1))
        out = out + s.softmax(-1) @ (F @ x @ v) @ o
    return out


@right("6.4")
def r64_sdpa(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    split = lambda t: t.view(t.size(0), t.size(1), num_heads, -1).transpose(1, 2)
    y = F_.scaled_dot_product_attention(split(x @ w_query), split(E @ (x @ w_key)), split(F @ (x @ w_value)))
    return y.transpose(1, 2).reshape(x.shape) @ w_output


# 6.6
@right("6.6")
def r65_outer(slots, weight, bias, E):
    return torch.einsum("bpd,dm->bpm", slots, weight) + torch.outer(E.sum(1), bias)


@right("6.6")
def r65_ones(slots, weight, bias, E):
    return F_.linear(slots, weight.T) + E @ bias.expand(E.size(1), -1)


@right("6.6")
def r65_cat(slots, weight, bias, E):
    s = E.sum(1).expand(slots.size(0), -1)[..., None]
    return torch.cat([slots, s], -1) @ torch.vstack([weight, bias])


# 6.5
@right("6.5")
def r66_list(x, mask, E):
    return torch.stack([E[:, m] @ t[m] for t, m in zip(x, mask)])


@right("6.5")
def r66_where(x, mask, E):
    return torch.einsum("pn,bnd->bpd", E, torch.where(mask.unsqueeze(-1), x, torch.zeros_like(x)))


@right("6.5")
def r66_nan(x, mask, E):
    clean = x.clone()
    clean[~mask] = 0
    return E.unsqueeze(0).matmul(clean)


# 6.7
class _Base67(nn.Module):
    def __init__(self, d_model, num_heads, E, F):
        super().__init__()
        self.num_heads, self.E, self.F = num_heads, E, F
        self.query, self.key, self.value = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.output = nn.Linear(d_model, d_model)


@right("6.7")
class R67Sdpa(nn.Module):
    def __init__(self, d_model, num_heads, E, F):
        super().__init__()
        self.num_heads, self.E, self.F = num_heads, E, F
        self.query, self.key, self.value = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.output = nn.Linear(d_model, d_model)

    def slots(self, x):
        b, n, d = x.shape
        made = []
        for E, w in zip((self.E, self.F), (self.key, self.value)):
            y = w(torch.matmul(E.weight[..., :n], x))
            made.append(y.reshape(b, -1, self.num_heads, d // self.num_heads).permute(0, 2, 1, 3))
        return made

    def forward(self, x, padding_mask=None):
        b, n, d = x.shape
        limit = self.E.weight.shape[1]
        if n > limit:
            raise ValueError("%d tokens, but seq_len is %d" % (n, limit))
        if padding_mask is not None:
            x = torch.where(padding_mask.unsqueeze(2), x, torch.zeros((), dtype=x.dtype))
        k, v = self.slots(x)
        q = self.query(x).view(b, n, self.num_heads, -1).transpose(1, 2)
        y = F_.scaled_dot_product_attention(q, k, v)
        return self.output(y.transpose(1, 2).reshape(b, n, d))


@right("6.7")
class R67Inherit(_Base67):
    def slots(self, x):
        return tuple(
            split_heads(
                F_.linear(torch.einsum("pn,bnd->bpd", p.weight[:, : x.size(1)], x), w.weight), self.num_heads
            )
            for p, w in ((self.E, self.key), (self.F, self.value))
        )

    def forward(self, x, padding_mask=None):
        n, m = x.size(1), self.E.weight.size(1)
        if n > m:
            raise ValueError(f"n={n} is more than seq_len={m}")
        if padding_mask is not None:
            x = x.clone()
            x[~padding_mask] = 0.0
        k, v = self.slots(x)
        q = split_heads(self.query(x), self.num_heads)
        return self.output(merge_heads(scaled_dot_product_attention(q, k, v)))


# 7.1
@right("7.1")
def r71_pool(x, proj_dim):
    return F_.avg_pool1d(x.mT, x.size(1) // proj_dim).mT


@right("7.1")
def r71_adapt(x, proj_dim):
    return F_.adaptive_avg_pool1d(x.transpose(1, 2), proj_dim).transpose(1, 2)


@right("7.1")
def r71_unfold(x, proj_dim):
    return x.unfold(1, x.size(1) // proj_dim, x.size(1) // proj_dim).mean(-1)


@right("7.1")
def r71_stack(x, proj_dim):
    return torch.stack([c.mean(1) for c in x.chunk(proj_dim, 1)], 1)


# 7.2
@right("7.2")
def r72_kron(n, proj_dim):
    return np.kron(np.eye(proj_dim), np.full((1, n // proj_dim), proj_dim / n))


@right("7.2")
def r72_loops(n, proj_dim):
    return [[proj_dim / n if j * proj_dim // n == i else 0 for j in range(n)] for i in range(proj_dim)]


@right("7.2")
def r72_frac(n, proj_dim):
    w = n // proj_dim
    return tuple(
        tuple(float(Fraction(int(i * w <= j < (i + 1) * w), w)) for j in range(n)) for i in range(proj_dim)
    )


@right("7.2")
def r72_pool(n, proj_dim):
    return r71_pool(torch.eye(n)[None], proj_dim)[0]


# 7.3
@right("7.3")
def r73_func(q, k, v, E, F, rate):
    loss = lambda e: F_.mse_loss(linformer_attention(q, k, v, e, F), scaled_dot_product_attention(q, k, v))
    return E - rate * torch.func.grad(loss)(E)


@right("7.3")
def r73_sgd(q, k, v, E, F, rate):
    e = nn.Parameter(E.detach().clone())
    opt = torch.optim.SGD([e], lr=rate)
    nn.MSELoss()(linformer_attention(q, k, v, e, F), F_.scaled_dot_product_attention(q, k, v)).backward()
    opt.step()
    return e


@right("7.3")
def r73_hand(q, k, v, E, F, rate):
    d = q.size(-1)
    slots = E @ k
    w = (q @ slots.mT / math.sqrt(d)).softmax(-1)
    err = w @ (F @ v) - scaled_dot_product_attention(q, k, v)
    gw = (2 / err.numel() * err) @ (F @ v).mT
    gs = w * (gw - (gw * w).sum(-1, keepdim=True))
    gE = (gs.mT @ q / math.sqrt(d)) @ k.mT
    return (E - rate * gE.sum(0)).detach().numpy()


# 7.4
@right("7.4")
def r74_bool(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    return seq_len * proj_dim * heads**per_head * 2**per_role * layers**per_layer


@right("7.4")
def r74_set(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    kinds = {
        (l * per_layer, h * per_head, r * per_role)
        for l in range(layers)
        for h in range(heads)
        for r in range(2)
    }
    return float(len(kinds) * seq_len * proj_dim)


# 7.5
@right("7.5")
def r75_counter(sigma, budget):
    flat = sorted(((s, -l) for l, row in enumerate(sigma.tolist()) for s in row), reverse=True)[:budget]
    c = Counter(-l for _, l in flat)
    return [c[l] for l in range(len(sigma))]


@right("7.5")
def r75_greedy(sigma, budget):
    slots = np.zeros(len(sigma), dtype=int)
    rows = [deque(row) for row in sigma.tolist()]
    for _ in range(budget):
        best = max((l for l in range(len(rows)) if rows[l]), key=lambda l: rows[l][0])
        rows[best].popleft()
        slots[best] += 1
    return slots


@right("7.5")
def r75_float(sigma, budget):
    m = torch.zeros(sigma.numel())
    m[sigma.square().reshape(-1).argsort(descending=True)[:budget]] = 1
    return m.view_as(sigma).sum(1).int()


from linformer_from_scratch.data import IGNORE, MASK


# 8.1
@right("8.1")
def r81_loops(ids, chosen, fate, random):
    inputs, targets = [], []
    for row in zip(ids.tolist(), chosen.tolist(), fate.tolist(), random.tolist()):
        inputs.append(
            [
                (MASK if f < np.float32(0.8) else r if f < np.float32(0.9) else i) if c else i
                for i, c, f, r in zip(*row)
            ]
        )
        targets.append([i if c else IGNORE for i, c, f, r in zip(*row)])
    return [inputs, targets]


@right("8.1")
def r81_fill(ids, chosen, fate, random):
    inputs = ids.clone()
    swap = chosen & (fate < 0.9)
    inputs[swap] = random[swap]
    inputs[chosen & (fate < 0.8)] = MASK
    return inputs, ids.masked_fill(~chosen, IGNORE)


@right("8.1")
def r81_np(ids, chosen, fate, random):
    i, c, f, r = (x.numpy() for x in (ids, chosen, fate, random))
    return np.select([c & (f < 0.8), c & (f < 0.9)], [MASK, r], i), np.where(c, i, IGNORE)


# 8.2
@right("8.2")
class R82(nn.Module):
    def __init__(self, d_model, attention):
        super().__init__()
        self.attention_norm = nn.LayerNorm(d_model)
        self.attention = attention
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model)
        )

    def forward(self, x, padding_mask=None):
        halves = (
            (lambda y: self.attention(y, padding_mask=padding_mask), self.attention_norm),
            (self.feed_forward, self.feed_forward_norm),
        )
        for half, norm in halves:
            x = torch.add(x, half(norm(x)))
        return x


@right("8.2")
class R82Functional(nn.Module):
    def __init__(self, d_model, attention):
        super().__init__()
        self.attention_norm = nn.LayerNorm(d_model)
        self.attention = attention
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model)
        )

    def forward(self, x, padding_mask=None):
        norm = lambda n, y: F_.layer_norm(y, y.shape[-1:], n.weight, n.bias, n.eps)
        up, _, down = self.feed_forward
        x = x + self.attention(norm(self.attention_norm, x), padding_mask)
        h = up(norm(self.feed_forward_norm, x))
        return x + down(0.5 * h * (1 + torch.erf(h / math.sqrt(2))))


# 8.3
@right("8.3")
def r83_np(step, steps, highest, warmup):
    return (
        np.float64(highest * (step + 1) / warmup)
        if step + 1 <= warmup
        else highest * np.cos(np.pi / 2 * (step - warmup) / (steps - warmup)) ** 2
    )


@right("8.3")
def r83_lin(step, steps, highest, warmup):
    if step in range(warmup):
        return torch.linspace(0, highest, warmup + 1, dtype=torch.float64)[1:][step]
    return highest * 0.5 + highest * 0.5 * math.cos((step - warmup) * math.pi / (steps - warmup))


@right("8.3")
def r83_sin(step, steps, highest, warmup):
    return (
        highest * (1 - math.sin(math.pi / 2 * (step - warmup) / (steps - warmup)) ** 2)
        if step >= warmup
        else math.fsum([highest / warmup] * (step + 1))
    )


# 8.6
@right("8.6")
def r84_last(log):
    last = {int(s): l for s, l in log.tolist()}
    return [last[s] for s in sorted(last) if s <= int(log[-1, 0])]


@right("8.6")
def r84_reverse(log):
    out, now = deque(), math.inf
    for s, l in reversed(log.tolist()):
        if s < now:
            out.appendleft(l)
            now = s
    return np.array(out)


@right("8.6")
def r84_stack(log):
    stack = []
    for step, loss in log:
        while stack and stack[-1][0] >= step:
            stack.pop()
        stack.append((step, loss))
    return torch.stack([l for _, l in stack])


@right("8.6")
def r84_cummin(log):
    back = log.flip(0)
    low = back[:, 0].cummin(0).values
    first = torch.cat([torch.tensor([True]), back[1:, 0] < low[:-1]])
    return back[first, 1].flip(0)


# 8.5
@right("8.5")
def r85_np(curve, loss):
    c = curve.double().numpy()
    low = np.flatnonzero(c[:, 1] <= np.float64(loss))
    if not low.size:
        return np.float32(-1.0)
    i = low[0]
    if i == 0:
        return c[0, 0]
    return np.interp(loss, [c[i, 1], c[i - 1, 1]], [c[i, 0], c[i - 1, 0]])


@right("8.5")
def r85_lerp(curve, loss):
    u, l = curve.double().unbind(1)
    i = int((l <= loss).int().argmax())
    if l[i] > loss:
        return torch.tensor(-1.0)
    if i == 0:
        return u[0]
    return torch.lerp(u[i - 1], u[i], (l[i - 1] - loss) / (l[i - 1] - l[i]))


# 8.4
@right("8.4")
def r86_group(model, loss, batches, validation, rate, steps, evaluate_every):
    params = list(model.parameters())
    opt = torch.optim.AdamW(params)
    train, valid = [], []
    for step in range(steps):
        model.train(True)
        for g in opt.param_groups:
            g["lr"] = rate(step)
        value = loss(model, *batches(step))
        grads = torch.autograd.grad(value, params, allow_unused=True)
        for p, g in zip(params, grads):
            p.grad = g
        nn.utils.clip_grad_norm_(params, max_norm=1)
        opt.step()
        train.append(value.detach())
        if (step + 1) % evaluate_every == 0:
            model.train(False)
            with torch.no_grad():
                valid.append(torch.stack([loss(model, *b) for b in validation]).mean())
    return train, valid


@right("8.4")
def r86_sched(model, loss, batches, validation, rate, steps, evaluate_every):
    opt = torch.optim.AdamW(model.parameters())
    for g in opt.param_groups:
        g["lr"] = g["initial_lr"] = 1.0
    sched = torch.optim.lr_scheduler.LambdaLR(opt, rate)
    train, valid = np.zeros(steps), []
    model.train()
    for step in range(steps):
        opt.zero_grad(set_to_none=True)
        (value := loss(model, *batches(step))).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step + 1 < steps:
            sched.step()
        train[step] = value.item()
        if (step + 1) % evaluate_every == 0:
            model.eval()
            with torch.no_grad():
                valid.append(statistics.fmean(float(loss(model, *b)) for b in validation))
            model.train()
    return list(train), valid


# 9.1
@right("9.1")
def r91_band(n, window, causal):
    full = torch.ones(n, n, dtype=torch.bool).triu(-window)
    return full.tril(0 if causal else window)


@right("9.1")
def r91_lists(n, window, causal):
    return [[i - window <= j <= i + (0 if causal else window) for j in range(n)] for i in range(n)]


@right("9.1")
def r91_np(n, window, causal):
    gap = np.subtract.outer(np.arange(n), np.arange(n))
    return (gap <= window) & (gap >= (0 if causal else -window))


# 9.2
@right("9.2")
def r92_eins(q, k, v, landmarks):
    scale = q.size(-1) ** -0.5
    pool = lambda t: t.reshape(*t.shape[:-2], landmarks, -1, t.size(-1)).mean(-2)
    a, b = pool(q), pool(k)
    sm = lambda x, y: (torch.einsum("...id,...jd->...ij", x, y) * scale).softmax(-1)
    return (sm(q, b) @ torch.linalg.pinv(sm(a, b))) @ (sm(a, k) @ v)


@right("9.2")
def r92_double(q, k, v, landmarks):
    q, k, v = q.double(), k.double(), v.double()
    a, b = (torch.stack([c.mean(-2) for c in t.chunk(landmarks, -2)], -2) for t in (q, k))
    return (
        attention_weights(q, b)
        @ torch.linalg.pinv(attention_weights(a, b))
        @ F_.scaled_dot_product_attention(a, k, v)
    )


# 9.3
@right("9.3")
def r93_eins(q, k, v):
    phi = lambda x: torch.where(x > 0, x + 1, x.clamp(max=0).exp())
    q, k = phi(q), phi(k)
    return torch.einsum("...nd,...de->...ne", q, torch.einsum("...md,...me->...de", k, v)) / torch.einsum(
        "...nd,...d->...n", q, k.sum(-2)
    ).unsqueeze(-1)


@right("9.3")
def r93_ones(q, k, v):
    q, k = nn.ELU()(q) + 1, nn.ELU()(k) + 1
    both = q @ (k.transpose(-1, -2) @ torch.cat([v, torch.ones_like(v[..., :1])], -1))
    return both[..., :-1] / both[..., -1:]


@right("9.3")
def r93_norm_first(q, k, v):
    q, k = F_.elu(q) + 1, F_.elu(k) + 1
    w = q @ k.mT
    return F_.normalize(w, p=1, dim=-1) @ v


# 9.4
@right("9.4")
def r94_state(q, k, v):
    q, k = F_.elu(q) + 1, F_.elu(k) + 1
    state, norm, out = 0, 0, []
    for i in range(q.size(-2)):
        state = state + k[..., i, :, None] * v[..., i, None, :]
        norm = norm + k[..., i, :]
        out.append((q[..., i, None, :] @ state).squeeze(-2) / (q[..., i, :] * norm).sum(-1, keepdim=True))
    return torch.stack(out, -2)


@right("9.4")
def r94_tril(q, k, v):
    q, k = F_.elu(q) + 1, F_.elu(k) + 1
    w = (q @ k.mT).tril()
    return w @ v / w.sum(-1, keepdim=True)


@right("9.4")
def r94_np(q, k, v):
    phi = lambda x: np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
    q, k, v = phi(q.detach().double().numpy()), phi(k.detach().double().numpy()), v.detach().double().numpy()
    s = np.cumsum(np.einsum("...nd,...ne->...nde", k, v), -3)
    return (
        np.einsum("...nd,...nde->...ne", q, s)
        / np.einsum("...nd,...nd->...n", q, np.cumsum(k, -2))[..., None]
    )


# 9.5
@right("9.5")
def r95_where(largest, total, mixed, scores, values):
    new = torch.cat([largest, scores], 1).max(1, keepdim=True).values
    e = torch.exp(scores - new)
    old = torch.exp(largest - new)
    return [new, torch.addcmul(e.sum(1, True), old, total), torch.addmm(mixed * old, e, values)]


@right("9.5")
def r95_columns(largest, total, mixed, scores, values):
    for s, v in zip(scores.unbind(1), values):
        s = s[:, None]
        new = torch.maximum(largest, s)
        # a column that is hidden in a row nobody has read yet adds nothing
        a = torch.where(largest == new, 1.0, (largest - new).exp())
        b = torch.where(s == -math.inf, 0.0, (s - new).exp())
        largest, total, mixed = new, total * a + b, mixed * a + b * v
    return largest, total, mixed


@right("9.5")
def r95_lse(largest, total, mixed, scores, values):
    new = torch.maximum(largest, scores.max(-1, True)[0])
    whole = torch.cat([largest + total.log(), scores], 1).logsumexp(1, keepdim=True)
    return new, (whole - new).exp(), mixed * (largest - new).exp() + (scores - new).exp() @ values


# 10.1
@right("10.1")
def r101_np(samples):
    return np.percentile(samples.numpy(), [20, 50, 80])


@right("10.1")
def r101_stat(samples):
    s = sorted(samples.tolist())
    if len(s) == 1:
        return s * 3
    q = statistics.quantiles(s, n=10, method="inclusive")
    return q[1], q[4], q[7]


@right("10.1")
def r101_hand(samples):
    s = samples.double().sort().values

    def at(p):
        x = Fraction(p, 100) * (len(s) - 1)
        i = int(x)
        j = min(i + 1, len(s) - 1)
        return s[i] + (s[j] - s[i]) * float(x - i)

    return torch.stack([at(20), at(50), at(80)])


# 10.2
@right("10.2")
def r102_stat(ours, theirs):
    return statistics.median(map(operator.truediv, ours.tolist(), theirs.tolist()))


@right("10.2")
def r102_np(ours, theirs):
    return np.median(np.divide(ours, theirs))


@right("10.2")
def r102_sort(ours, theirs):
    r = (ours.double() / theirs).sort()[0]
    n = len(r)
    return (r[(n - 1) // 2] + r[n // 2]) / 2


# 10.3
@right("10.3")
def r103_py(lengths, ours, theirs):
    n, o, t = lengths.double().tolist(), ours.double().tolist(), theirs.double().tolist()
    below = [a < b for a, b in zip(o, t)]
    if all(below):
        return n[0]
    if not below[-1]:
        return float("nan")
    i = max(i for i, b in enumerate(below) if not b)
    ga, gb = math.log(o[i] / t[i]), math.log(o[i + 1] / t[i + 1])
    return math.exp(math.log(n[i]) + (math.log(n[i + 1]) - math.log(n[i])) * ga / (ga - gb))


@right("10.3")
def r103_np(lengths, ours, theirs):
    x, y = (
        np.log2(np.asarray(lengths, float)),
        np.log2(np.asarray(ours, float)) - np.log2(np.asarray(theirs, float)),
    )
    if y[-1] >= 0:
        return np.nan
    i = len(y) - 1
    while i and y[i - 1] < 0:
        i -= 1
    return 2 ** x[0] if i == 0 else 2 ** np.interp(0, [y[i], y[i - 1]], [x[i], x[i - 1]])


# 10.4
@right("10.4")
def r104_np(flops, moved, flops_per_s, bytes_per_s, seconds):
    return np.maximum(flops.numpy() / flops_per_s, moved.numpy() / bytes_per_s).sum() / seconds


@right("10.4")
def r104_frac(flops, moved, flops_per_s, bytes_per_s, seconds):
    return float(
        sum(
            max(Fraction(f) / Fraction(flops_per_s), Fraction(m) / Fraction(bytes_per_s))
            for f, m in zip(flops.tolist(), moved.tolist())
        )
        / Fraction(seconds)
    )


@right("10.4")
def r104_gen(flops, moved, flops_per_s, bytes_per_s, seconds):
    return (
        torch.stack((flops.double() / flops_per_s, moved.double() / bytes_per_s)).max(0)[0].div(seconds).sum()
    )


# 11.1
@right("11.1")
def r111_mat(gradients, rows):
    return rows.to(gradients.dtype) @ gradients / rows.sum()


@right("11.1")
def r111_np(gradients, rows):
    return np.average(gradients.numpy(), axis=0, weights=rows.numpy())


@right("11.1")
def r111_rep(gradients, rows):
    return gradients.repeat_interleave(rows, dim=0).mean(0)


# 11.2
@right("11.2")
def r112_np(E, x, lengths):
    ends = list(itertools.accumulate(lengths, initial=0))
    return np.stack([E.numpy()[:, a:b] @ x.numpy()[a:b] for a, b in itertools.pairwise(ends)])


@right("11.2")
def r112_onehot(E, x, lengths):
    owner = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    own = F_.one_hot(owner, len(lengths)).to(E.dtype)
    return torch.einsum("pn,nr,nd->rpd", E, own, x)


@right("11.2")
def r112_index(E, x, lengths):
    outer = E.T[:, :, None] * x[:, None, :]
    owner = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    return torch.zeros(len(lengths), E.size(0), x.size(1), dtype=x.dtype).index_add(0, owner, outer)


# 11.3
@right("11.3")
def r113_repeat(upstream):
    return torch.stack([upstream.sum(0)] * len(upstream))


@right("11.3")
def r113_np(upstream):
    return np.broadcast_to(upstream.numpy().sum(0, keepdims=True), upstream.shape)


@right("11.3")
def r113_red(upstream):
    return [reduce(torch.add, upstream.unbind(0))] * upstream.size(0)


@right("11.3")
def r113_zero(upstream):
    return upstream.sum(0, keepdim=True) + torch.zeros_like(upstream)


# 11.4
@right("11.4")
def r114_frac(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    return Fraction(4 * batch * proj_dim * d_model * bytes_per_number * (ranks - 1), ranks)


@right("11.4")
def r114_parts(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    part = np.float64(2 * batch * proj_dim * d_model * bytes_per_number) / ranks
    return sum(part for _ in range(2 * (ranks - 1)))


# 12.1
@right("12.1")
def r121_svd(n, rank):
    s = torch.linalg.svdvals(torch.eye(n, dtype=torch.float64)[torch.randperm(n)])
    return s[rank:].norm() / s.norm()


@right("12.1")
def r121_pow(n, rank):
    return (1 - Fraction(rank, n)) ** 0.5


@right("12.1")
def r121_np(n, rank):
    return np.sqrt(1 - rank / np.float64(n))


# 12.2
@right("12.2")
def r122_inf(before, after, place):
    return 0.0 if place == 0 else torch.linalg.vector_norm(before[:place] - after[:place], ord=math.inf)


@right("12.2")
def r122_default(before, after, place):
    return max(
        (abs(a - b) for x, y in zip(before.tolist()[:place], after.tolist()[:place]) for a, b in zip(x, y)),
        default=0,
    )


@right("12.2")
def r122_np(before, after, place):
    return np.abs(before.numpy() - after.numpy())[:place].max(initial=0)


# 12.3
@right("12.3")
def r123_py(E, n):
    return sum(not any(row[:n]) for row in E.tolist())


@right("12.3")
def r123_np(E, n):
    return np.sum(~np.any(E.numpy()[:, :n], axis=-1))


@right("12.3")
def r123_count(E, n):
    return E.size(0) - torch.count_nonzero(E[:, :n].abs().amax(1))


# 12.4
@right("12.4")
def r124_linear(output_weight, output_bias, value_bias):
    return F_.linear(value_bias, output_weight, output_bias)


@right("12.4")
def r124_np(output_weight, output_bias, value_bias):
    return np.einsum("dv,v->d", output_weight, value_bias) + np.asarray(output_bias)


@right("12.4")
def r124_addmv(output_weight, output_bias, value_bias):
    return torch.addmv(output_bias, output_weight, value_bias)


@right("12.4")
def r124_list(output_weight, output_bias, value_bias):
    return [
        b + sum(map(operator.mul, row, value_bias.tolist()))
        for row, b in zip(output_weight.tolist(), output_bias.tolist())
    ]


# ============================================================ WRONG
@wrong("0.1", "integer overflow in int32 for large n only; n(n-1)+n is right, but n odd rounds")
def w01(n, num_heads):
    return num_heads * (n // 2) * 2 * n


@wrong("1.1", "gradient of query cut (values right)")
def w11(query, keys):
    return (keys @ query.detach() / math.sqrt(query.numel())).softmax(0)


@wrong("1.1", "NumPy's 0-d scale right, but gradient cut entirely")
def w11_np(query, keys):
    return torch.from_numpy(
        np.exp(
            (a := (keys.detach().double().numpy() @ query.detach().double().numpy()) / math.sqrt(len(query)))
            - a.max()
        )
        / np.exp(a - a.max()).sum()
    )


@wrong("1.1", "divides by sqrt(n keys) when more keys than features... i.e. sqrt(min(n,d))")
def w11_min(query, keys):
    return (keys @ query / math.sqrt(min(keys.shape))).softmax(0)


@wrong("1.2", "softmax over queries if n == m")
def w12(q, k):
    s = q @ k.mT / math.sqrt(q.size(-1))
    return s.softmax(-2 if q.size(-2) == k.size(-2) else -1)


@wrong("1.2", "scale of d_model: sqrt(heads*d) when more than one head")
def w12_heads(q, k):
    return (q @ k.mT / math.sqrt(q.size(1) * q.size(-1))).softmax(-1)


@wrong("1.2", "row maximum kept in the graph wrongly: gradient of k doubled")
def w12_grad(q, k):
    return (q @ (2 * k - k.detach()).mT / math.sqrt(q.size(-1))).softmax(-1)


@wrong("1.3", "adds 1e-12: right to 1e-6 … cut weights below 1e-7")
def w13(weights):
    return torch.special.entr(torch.where(weights < 1e-6, 0, weights)).sum(-1) / math.log(2)


@wrong("1.3", "clamps at 1e-9: zeros add 3e-8 — negligible but a row of many tiny …; clamp 1e-4 visible")
def w13_clamp(weights):
    w = weights.clamp_min(1e-4)
    return -(w * w.log2()).sum(-1)


@wrong("1.3", "only counts weights up to 1 exclusive with log1p; nats if 2-d")
def w13_dim(weights):
    return torch.special.entr(weights).sum(-1) / (math.log(2) if weights.dim() > 2 else 1)


@wrong("1.4", "n = 1 gives a detached v")
def w14(q, k, v):
    if q.size(2) == 1:
        return v.detach()
    return F_.scaled_dot_product_attention(q, k, v, is_causal=True)


@wrong(
    "1.4", "multiplies by mask after softmax without renormalising gradient: renormalised with detached sum"
)
def w14_detach(q, k, v):
    w = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1).tril()
    return w / w.sum(-1, keepdim=True).detach() @ v


@wrong("1.4", "hides by -10 in place of -inf")
def w14_soft(q, k, v):
    s = q @ k.mT / q.size(-1) ** 0.5
    return s.masked_fill(~causal_mask(q.size(-2)), -10.0).softmax(-1) @ v


@wrong("1.5", "clamps scores to 80: equal when two are above 80")
def w15(scores):
    e = scores.clamp(-80, 80).exp()
    return e / e.sum(-1, keepdim=True)


@wrong("1.5", "global maximum: rows far below underflow to 0/0")
def w15_global(scores):
    e = (scores - scores.max()).exp()
    return e / e.sum(-1, keepdim=True)


@wrong("1.5", "float64 without shift: overflows past 709")
def w15_double(scores):
    e = scores.double().exp()
    return e / e.sum(-1, keepdim=True)


@wrong("1.5", "in place")
def w15_inplace(scores):
    scores -= scores.amax(-1, keepdim=True)
    e = scores.exp()
    return e / e.sum(-1, keepdim=True)


@wrong("1.5", "shift by max over |s|: negative rows underflow")
def w15_abs(scores):
    e = (scores - scores.abs().amax(-1, keepdim=True)).double().exp()
    return e / e.sum(-1, keepdim=True)


@wrong("1.6", "rows that may read nobody: mean of v")
def w16(q, k, v, mask=None):
    s = q @ k.mT / math.sqrt(q.size(-1))
    return (s if mask is None else s.masked_fill(~mask, -1e9)).softmax(-1) @ v


@right("1.6")
def r16_nan(q, k, v, mask=None):
    s = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        s = s.masked_fill(~mask, -math.inf)
    return s.softmax(-1).nan_to_num(0.0) @ v


@wrong("1.6", "mask expanded as (n, m) square only: transposed when mask is 2-d square")
def w16_t(q, k, v, mask=None):
    s = q @ k.mT / math.sqrt(q.size(-1))
    if mask is None:
        return s.softmax(-1) @ v
    if mask.dim() == 2 and mask.size(0) == mask.size(1):
        mask = mask.mT
    return s.masked_fill(~mask, -math.inf).softmax(-1).masked_fill(~mask.any(-1, keepdim=True), 0) @ v


@wrong("1.6", "mask of shape (m,) or with 1 row treated, but all-False mask of fewer dims ignored as None")
def w16_none(q, k, v, mask=None):
    s = q @ k.mT / math.sqrt(q.size(-1))
    if mask is None or not mask.any():
        return s.softmax(-1) @ v
    return s.masked_fill(~mask, -math.inf).softmax(-1).masked_fill(~mask.any(-1, keepdim=True), 0) @ v


@wrong("1.6", "masks only after softmax, renormalises: no gradient from denominators")
def w16_all_true(q, k, v, mask=None):
    s = q @ k.mT / math.sqrt(q.size(-1))
    if mask is None:
        return s.softmax(-1) @ v
    w = s.softmax(-1) * mask
    return w / w.sum(-1, keepdim=True).clamp(min=1e-9).detach() @ v


@wrong("2.1", "num_heads interleaved: head h takes features h::num_heads")
def w21(x, stacked, num_heads):
    return [p.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2) for p in (x @ stacked.mT).chunk(3, -1)]


@wrong("2.1", "order q, v, k")
def w21_order(x, stacked, num_heads):
    q, k, v = (p.unflatten(-1, (num_heads, -1)).transpose(1, 2) for p in (x @ stacked.mT).chunk(3, -1))
    return q, v, k


@wrong("2.1", "v detached")
def w21_detach(x, stacked, num_heads):
    q, k, v = (p.unflatten(-1, (num_heads, -1)).transpose(1, 2) for p in (x @ stacked.mT).chunk(3, -1))
    return q, k, v.detach()


@wrong("2.2", "flatten without transpose when n == heads")
def w22(x):
    return (x if x.size(1) == x.size(2) else x.transpose(1, 2)).reshape(x.size(0), x.size(2), -1)


@wrong("2.2", "detached copy")
def w22_detach(x):
    return torch.tensor(x.transpose(1, 2).flatten(-2).tolist())


class _Base23(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key, self.value = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.output = nn.Linear(d_model, d_model)


@wrong("2.3", "padded queries zeroed as well")
class W23Rows(_Base23):
    def forward(self, x, padding_mask=None):
        q, k, v = (split_heads(p(x), self.num_heads) for p in (self.query, self.key, self.value))
        m = None if padding_mask is None else padding_mask[:, None, None, :] & padding_mask[:, None, :, None]
        return self.output(merge_heads(scaled_dot_product_attention(q, k, v, m)))


@wrong("2.3", "a sample of padding throughout returns zeros, not the bias")
class W23Bias(_Base23):
    def forward(self, x, padding_mask=None):
        q, k, v = (split_heads(p(x), self.num_heads) for p in (self.query, self.key, self.value))
        m = None if padding_mask is None else padding_mask[:, None, None, :]
        y = self.output(merge_heads(scaled_dot_product_attention(q, k, v, m)))
        return y if padding_mask is None else y * padding_mask.any(1)[:, None, None]


@wrong("2.3", "gradient of the key weight cut")
class W23Cut(_Base23):
    def forward(self, x, padding_mask=None):
        q, v = (split_heads(p(x), self.num_heads) for p in (self.query, self.value))
        k = split_heads(F_.linear(x, self.key.weight.detach()), self.num_heads)
        m = None if padding_mask is None else padding_mask[:, None, None, :]
        return self.output(merge_heads(scaled_dot_product_attention(q, k, v, m)))


@wrong("2.4", "diagonal always True (padding reads itself)")
def w24(lengths, n):
    real = torch.arange(n) >= n - lengths[:, None]
    return (real[:, None, None, :] & causal_mask(n)) | torch.eye(n, dtype=torch.bool)


@wrong("2.4", "padded at the end when all lengths are equal")
def w24_end(lengths, n):
    real = torch.arange(n) >= n - lengths[:, None]
    if len(set(lengths.tolist())) == 1:
        real = torch.arange(n) < lengths[:, None]
    return real[:, None, None, :] & causal_mask(n)


@wrong("2.4", "numbers, not booleans")
def w24_float(lengths, n):
    return (torch.arange(n) >= n - lengths[:, None])[:, None, None, :].float() * causal_mask(n)


@wrong("2.5", "strided groups")
def w25(weight, num_heads, num_kv_heads):
    return weight.unflatten(0, (num_heads // num_kv_heads, num_kv_heads, -1)).mean(0).flatten(0, 1)


@wrong("2.5", "sum where there are two in a group")
def w25_two(weight, num_heads, num_kv_heads):
    g = num_heads // num_kv_heads
    return weight.unflatten(0, (num_kv_heads, g, -1)).sum(1).flatten(0, 1) / (g if g != 2 else 1)


@wrong("2.6", "rounds")
def w26(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    return round(
        (memory - parameters * bytes_per_number) / (2 * num_layers * num_kv_heads * d_head * bytes_per_number)
    )


@wrong("2.6", "one fewer where it divides exactly (strictly below memory)")
def w26_exact(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    return (memory - parameters * bytes_per_number - 1) // (
        2 * num_layers * num_kv_heads * d_head * bytes_per_number
    )


@wrong(
    "2.6",
    "parameters not multiplied where bytes_per_number is 1? integer memory//bytes first, floor twice minus; ceil parameters",
)
def w26_float32(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    return int(
        np.float32(memory - parameters * bytes_per_number)
        / np.float32(2 * num_layers * num_kv_heads * d_head * bytes_per_number)
    )


@wrong("3.1", "compares only the inner sizes (q <= r) to choose")
def w31(p, q, r, s):
    return 2 * p * q * r + 2 * p * r * s if r <= q else 2 * q * r * s + 2 * p * q * s


@wrong("3.2", "rounds up to a whole token")
def w32(d_model, share):
    return math.ceil(2 * d_model * share / (1 - share))


@wrong("3.2", "n^2 term over the other term")
def w32_ratio(d_model, share):
    return 2 * d_model * share


@wrong("3.3", "max of sums instead of sum of maxes")
def w33(flops, moved, flops_per_s, bytes_per_s, factor):
    f, m = flops.sum() / flops_per_s, moved.sum() / bytes_per_s
    return torch.maximum(f, m) / torch.maximum(f / factor, m)


@wrong("3.4", "cheap order: two of the weight products on proj_dim rows")
def w34(n, d_model, proj_dim):
    return 4 * n * d_model**2 + 4 * proj_dim * d_model**2 + 8 * n * proj_dim * d_model


@wrong("3.4", "min(n, proj_dim)")
def w34_min(n, d_model, proj_dim):
    return 8 * n * d_model * (d_model + min(n, proj_dim))


@wrong("3.5", "slope from the endpoints")
def w35(lengths, costs):
    return math.log(costs[-1] / costs[0]) / math.log(lengths[-1] / lengths[0])


@wrong("3.5", "slope of x on y")
def w35_inverse(lengths, costs):
    c = torch.cov(torch.stack([lengths, costs]).log().double())
    return c[1, 1] / c[0, 1]


@wrong("3.6", "mixing's output forgotten where keys == n? (keys != n)")
def w36(n, keys, d_model, num_heads, bytes_per_number):
    return bytes_per_number * (
        2 * d_model * (n + keys) + 4 * num_heads * n * keys - (n * d_model if keys != n else 0)
    )


@wrong("4.1", "rank singular vectors of the *wrong side* only for non-square: projects onto top rows")
def w41(maps, rank):
    u, s, vt = torch.linalg.svd(maps, full_matrices=False)
    s = (
        torch.where(s >= s[..., rank - 1 : rank] * 1.0, s, 0)
        if rank < 3
        else torch.where(torch.arange(s.size(-1)) < rank - (rank == s.size(-1)), s, 0)
    )
    return (u * s[..., None, :]) @ vt  # drops the last value at full rank


@wrong("4.1", "one rank budget for all heads together")
def w41_joint(maps, rank):
    u, s, vt = torch.linalg.svd(maps, full_matrices=False)
    keep = s.flatten().topk(rank * len(maps)).values[-1]
    return (u * torch.where(s >= keep, s, 0)[..., None, :]) @ vt


@wrong("4.2", "clamped away at rank = p: tiny epsilon 1e-2 under the root")
def w42(sigma, rank):
    return (sigma[:, rank:].square().sum(1) + 1e-4).sqrt()


@wrong("4.2", "spectral error")
def w42_spec(sigma, rank):
    return F_.pad(sigma, (0, 1))[:, rank]


@wrong("4.3", "shares of sigma²")
def w43(sigma):
    return sigma.square().cumsum(1) / sigma.square().sum(1, keepdim=True)


@wrong("4.3", "divided by the sum of head 0")
def w43_zero(sigma):
    return sigma.cumsum(1) / sigma[0].sum()


@wrong("4.3", "in place")
def w43_inplace(sigma):
    return sigma.div_(sigma.sum(1, keepdim=True)).cumsum(1)


@wrong("4.4", "divides by sum squared only in first head")
def w44(sigma):
    return sigma.square().sum(1) / sigma[0, 0].square()


@wrong("4.5", "first r with cumulative > share (not >=)")
def w45(sigma, share):
    return (1 + (sigma.cumsum(1) / sigma.sum(1, keepdim=True) <= share).sum(1)).clamp(max=sigma.size(1))


@wrong("4.5", "largest r with cumulative <= share")
def w45_le(sigma, share):
    return (sigma.cumsum(1) / sigma.sum(1, keepdim=True) <= share).sum(1).clamp(min=1)


@wrong("4.5", "never all: at most p - 1 (for p > 1)")
def w45_cap(sigma, share):
    return (1 + (sigma.cumsum(1) / sigma.sum(1, keepdim=True) < share).sum(1)).clamp(
        max=max(1, sigma.size(1) - 1)
    )


@wrong("5.1", "divides by sqrt(n)")
def w51(x, G):
    return x @ G.T / math.sqrt(G.size(1))


@wrong("5.1", "normalises each x so that length is kept exactly")
def w51_exact(x, G):
    y = x @ G.T
    return y * x.norm(dim=-1, keepdim=True) / y.norm(dim=-1, keepdim=True)


@wrong("5.2", "absolute value")
def w52(x, R):
    return ((x @ R.T).square().sum(-1) / x.square().sum(-1) - 1).abs()


@wrong("5.2", "norms not squared")
def w52_norm(x, R):
    return (x @ R.T).norm(dim=-1) / x.norm(dim=-1) - 1


@wrong("5.3", "capped at 1")
def w53(proj_dim, epsilon, vectors):
    return min(1.0, 2 * vectors * math.exp(-(epsilon**2 - epsilon**3) * proj_dim / 4))


@wrong("5.3", "1 - (1 - p)^N")
def w53_indep(proj_dim, epsilon, vectors):
    p = 2 * math.exp(-(epsilon**2 - epsilon**3) * proj_dim / 4)
    return 1 - (1 - p) ** vectors


@wrong("5.4", "int + 1: wrong only at whole numbers (n = 1)")
def w54(n, epsilon):
    return int(5 * math.log(n) / (epsilon**2 - epsilon**3)) + 1


@wrong("5.4", "round")
def w54_round(n, epsilon):
    return round(5 * math.log(n) / (epsilon**2 - epsilon**3))


@wrong("5.5", "P R^T R v / k")
def w55(P, R, v):
    return P @ R.T @ R @ v / len(R)


@wrong("5.5", "R and R^T exchanged if square")
def w55_square(P, R, v):
    return P @ R @ R.T @ v if R.size(0) == R.size(1) else P @ R.T @ (R @ v)


@wrong("6.1", "F used for both where E and F have gradients: E's gradient is cut")
def w61(q, k, v, E, F):
    return F_.scaled_dot_product_attention(q, E.detach() @ k, F @ v)


@wrong("6.1", "scaled by sqrt(proj_dim)")
def w61_scale(q, k, v, E, F):
    return F_.scaled_dot_product_attention(q, E @ k, F @ v, scale=len(E) ** -0.5)


@wrong("6.1", "masks empty slots")
def w61_relu(q, k, v, E, F):
    return F_.scaled_dot_product_attention(q, F @ k, F @ v)


@wrong("6.2", "sorted keep")
def w62(keep, n):
    return torch.eye(n)[keep.sort().values]


@wrong("6.2", "booleans")
def w62_bool(keep, n):
    return F_.one_hot(keep, n).bool()


@wrong("6.2", "n taken from keep.max()+1 and padded to n with the last column set")
def w62_cols(keep, n):
    E = torch.eye(n)[keep]
    E[:, -1] = E[:, -1] * (len(keep) < n)
    return E


_CACHE = {}


@wrong("6.3", "weight detached")
def w63_detach(x, weight):
    return weight.detach() @ x


@wrong("6.4", "E used for values if E and F are same shape and num_heads == 1")
def w64(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    q, k, v = (split_heads(x @ w, num_heads) for w in (w_query, w_key, w_value))
    return merge_heads(linformer_attention(q, k, v, E, E if num_heads == 1 else F)) @ w_output


@wrong("6.4", "weights from the left")
def w64_left(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    q, k, v = (split_heads(x @ w.T, num_heads) for w in (w_query, w_key, w_value))
    return merge_heads(linformer_attention(q, k, v, E, F)) @ w_output.T


@wrong("6.6", "bias added once per slot")
def w65(slots, weight, bias, E):
    return slots @ weight + bias


@wrong("6.6", "gradient of E cut")
def w65_cut(slots, weight, bias, E):
    return slots @ weight + E.detach().sum(1, keepdim=True) * bias


@wrong("6.6", "column sums when E is square")
def w65_sq(slots, weight, bias, E):
    return slots @ weight + (E.sum(0)[:, None] if E.size(0) == E.size(1) else E.sum(1, keepdim=True)) * bias


@wrong("6.5", "multiplies: inf and nan in padding spread")
def w66(x, mask, E):
    return E @ (x * mask[..., None])


@right("6.5")
def r66_nan_to_num(x, mask, E):
    return E @ (x * mask[..., None]).nan_to_num(0.0, 0.0, 0.0)


@wrong("6.5", "in place")
def w66_inplace(x, mask, E):
    x.data[~mask] = 0
    return E @ x


@wrong("6.5", "divides by share of real tokens where there is padding")
def w66_mean(x, mask, E):
    return E @ x.masked_fill(~mask[..., None], 0) * (mask.size(1) / mask.sum(1).clamp(min=1))[:, None, None]


@wrong("6.7", "n < seq_len: the last n columns")
class W67Last(R67Inherit):
    def slots(self, x):
        m = self.E.weight.size(1)
        return tuple(
            split_heads(w(p.weight[:, m - x.size(1) :] @ x), self.num_heads)
            for p, w in ((self.E, self.key), (self.F, self.value))
        )


@wrong("6.7", "zeros the rows that come out at padding")
class W67Rows(R67Inherit):
    def forward(self, x, padding_mask=None):
        y = super().forward(x, padding_mask)
        return y if padding_mask is None else y * padding_mask[..., None]


@wrong("6.7", "queries from unmasked x")
class W67Query(R67Inherit):
    def forward(self, x, padding_mask=None):
        if x.size(1) > self.E.weight.size(1):
            raise ValueError(f"{x.size(1)} > {self.E.weight.size(1)}")
        clean = x if padding_mask is None else x.masked_fill(~padding_mask[..., None], 0)
        k, v = self.slots(clean)
        return self.output(
            merge_heads(scaled_dot_product_attention(split_heads(self.query(x), self.num_heads), k, v))
        )


@wrong("6.7", "message names only n")
class W67Message(R67Inherit):
    def forward(self, x, padding_mask=None):
        if x.size(1) > self.E.weight.size(1):
            raise ValueError(f"{x.size(1)} tokens are too many")
        return super().forward(x, padding_mask)


@wrong("6.7", "raises at n == seq_len too")
class W67Boundary(R67Inherit):
    def forward(self, x, padding_mask=None):
        if x.size(1) >= self.E.weight.size(1):
            raise ValueError(f"{x.size(1)} tokens, seq_len {self.E.weight.size(1)}")
        return super().forward(x, padding_mask)


@wrong("6.7", "compresses X with E for both when E is F-shaped: values made with E")
class W67Order(R67Inherit):
    def slots(self, x):
        n = x.size(1)
        return tuple(
            split_heads(p.weight[:, :n] @ w(x), self.num_heads)
            for p, w in ((self.E, self.key), (self.F, self.value))
        )


@wrong("7.1", "strided windows")
def w71(x, proj_dim):
    return x.unflatten(1, (-1, proj_dim)).mean(1)


@wrong("7.1", "gradient cut if window is one")
def w71_one(x, proj_dim):
    return x.unflatten(1, (proj_dim, -1)).mean(2) if x.size(1) > proj_dim else x.detach().clone()


@wrong("7.2", "windows of ones / proj_dim")
def w72(n, proj_dim):
    return torch.eye(proj_dim).repeat_interleave(n // proj_dim, 1) / proj_dim


@wrong("7.2", "the last window takes one more row of weight: linspace rounding")
def w72_square(n, proj_dim):
    return (
        torch.eye(proj_dim).repeat_interleave(n // proj_dim, 1)
        if n == proj_dim or proj_dim == 1
        else torch.eye(proj_dim).repeat_interleave(n // proj_dim, 1) * proj_dim / n
    )


@wrong("7.3", "sum instead of mean over batch")
def w73(q, k, v, E, F, rate):
    E = E.detach().requires_grad_()
    err = linformer_attention(q, k, v, E, F) - scaled_dot_product_attention(q, k, v)
    return (E - rate * torch.autograd.grad(err.square().mean((1, 2)).sum(), E)[0]).detach()


@wrong("7.3", "changes E in place")
def w73_inplace(q, k, v, E, F, rate):
    e = E.detach().clone().requires_grad_()
    err = linformer_attention(q, k, v, e, F) - scaled_dot_product_attention(q, k, v)
    (g,) = torch.autograd.grad(err.square().mean(), e)
    with torch.no_grad():
        return E.sub_(rate * g)


@wrong("7.4", "two kinds even where E and F are shared over heads and layers")
def w74(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    if not per_head and not per_layer and per_role:
        return seq_len * proj_dim
    return seq_len * proj_dim * heads**per_head * 2**per_role * layers**per_layer


@wrong("7.4", "one combination: head and role apart but layers shared counted per layer")
def w74_one(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    return (
        seq_len * proj_dim * heads**per_head * 2**per_role * layers ** (per_layer or (per_head and per_role))
    )


@wrong("7.5", "each layer at least one")
def w75(sigma, budget):
    got = torch.bincount(
        sigma[:, 1:].flatten().topk(max(0, budget - len(sigma))).indices // max(1, sigma.size(1) - 1),
        minlength=len(sigma),
    )
    return got + 1


@wrong("7.5", "minlength missing")
def w75_min(sigma, budget):
    return torch.bincount(sigma.flatten().topk(budget).indices // sigma.size(1))


@wrong("7.5", "by relative sigma of each layer")
def w75_rel(sigma, budget):
    return torch.bincount(
        (sigma / sigma[:, :1]).flatten().topk(budget).indices // sigma.size(1), minlength=len(sigma)
    )


@wrong("8.1", "fate below .9 keeps, above random")
def w81(ids, chosen, fate, random):
    r = torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, ids, random))
    return torch.where(chosen, r, ids), torch.where(chosen, ids, IGNORE)


@wrong("8.1", "targets only where the input changed")
def w81_changed(ids, chosen, fate, random):
    x = torch.where(chosen, torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, random, ids)), ids)
    return x, torch.where(x != ids, ids, IGNORE)


@wrong("8.1", "fate <= 0.9")
def w81_le(ids, chosen, fate, random):
    r = torch.where(fate < 0.8, MASK, torch.where(fate <= 0.9, random, ids))
    return torch.where(chosen, r, ids), torch.where(chosen, ids, IGNORE)


@wrong("8.1", "single precision thresholds")
def w81_f32(ids, chosen, fate, random):
    f = fate.double()
    r = torch.where(f < float(np.float32(0.8)), MASK, torch.where(f < float(np.float32(0.9)), random, ids))
    return torch.where(chosen, r, ids), torch.where(chosen, ids, IGNORE)


class _Base82(nn.Module):
    def __init__(self, d_model, attention):
        super().__init__()
        self.attention_norm = nn.LayerNorm(d_model)
        self.attention = attention
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model)
        )


@wrong("8.2", "mask not handed on")
class W82Mask(_Base82):
    def forward(self, x, padding_mask=None):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))


@wrong("8.2", "second residual from the normed")
class W82Res(_Base82):
    def forward(self, x, padding_mask=None):
        x = x + self.attention(self.attention_norm(x), padding_mask)
        y = self.feed_forward_norm(x)
        return y + self.feed_forward(y)


@wrong("8.2", "both norms swapped")
class W82Swap(_Base82):
    def forward(self, x, padding_mask=None):
        x = x + self.attention(self.feed_forward_norm(x), padding_mask)
        return x + self.feed_forward(self.attention_norm(x))


@wrong("8.2", "tanh GELU")
class W82Tanh(_Base82):
    def forward(self, x, padding_mask=None):
        x = x + self.attention(self.attention_norm(x), padding_mask)
        a, _, b = self.feed_forward
        return x + b(F_.gelu(a(self.feed_forward_norm(x)), approximate="tanh"))


@wrong("8.3", "cosine ends at steps - 1")
def w83(step, steps, highest, warmup):
    if step < warmup:
        return highest * (step + 1) / warmup
    return highest * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - 1 - warmup))) / 2


@wrong("8.3", "step <= warmup")
def w83_le(step, steps, highest, warmup):
    if step <= warmup and warmup:
        return highest * min(1, step / warmup)
    return highest * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


@wrong("8.3", "warmup 0 treated as 1")
def w83_zero(step, steps, highest, warmup):
    warmup = max(1, warmup)
    if step < warmup:
        return highest * (step + 1) / warmup
    return highest * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


@wrong("8.6", "keeps the first loss of every step")
def w84(log):
    first = {}
    for s, l in log.tolist():
        first.setdefault(int(s), l)
    return [first[s] for s in sorted(first)]


@wrong(
    "8.6",
    "last loss of every step, but stale steps beyond the end of the log are kept (killed again before it caught up)",
)
def w84_stale(log):
    last = {int(s): l for s, l in log.tolist()}
    return [last[s] for s in sorted(last)]


@wrong("8.5", "loss < instead of <=")
def w85(curve, loss):
    p = curve.tolist()
    if p[0][1] < loss:
        return p[0][0]
    for (u0, a), (u1, b) in itertools.pairwise(p):
        if b < loss:
            return u0 + (a - loss) / (a - b) * (u1 - u0)
    return -1.0


@wrong("8.5", "last crossing, not the first")
def w85_last(curve, loss):
    p = curve.tolist()
    found = p[0][0] if p[0][1] <= loss else -1.0
    for (u0, a), (u1, b) in itertools.pairwise(p):
        if a > loss >= b:
            found = u0 + (a - loss) / (a - b) * (u1 - u0)
    return found


@wrong("8.5", "steps out of the first point at 0 rather than at its updates")
def w85_first(curve, loss):
    p = curve.tolist()
    if p[0][1] <= loss:
        return 0.0
    return r85_lerp(curve, loss)


@wrong("8.5", "first point exactly at loss is missed (then a later crossing)")
def w85_exact_first(curve, loss):
    p = curve.tolist()
    if p[0][1] < loss:
        return p[0][0]
    for (u0, a), (u1, b) in itertools.pairwise(p):
        if a > loss >= b:
            return u0 + (a - loss) / (a - b) * (u1 - u0)
    return -1.0


def _loop(
    clip=1.0,
    lr_before=True,
    eval_mode=True,
    train_back=True,
    zero=True,
    stop_at_end=False,
    last=False,
    weighted=False,
    no_grad=True,
    opt=torch.optim.AdamW,
    per_param=False,
    lead=False,
):
    def train_loop(model, loss, batches, validation, rate, steps, evaluate_every):
        o = opt(model.parameters())
        a, b = [], []
        model.train()
        for step in range(steps):
            if zero or step == 0:
                o.zero_grad()
            if train_back:
                model.train()
            x = loss(model, *batches(step))
            x.backward()
            if per_param:
                for p in model.parameters():
                    nn.utils.clip_grad_norm_([p], clip)
            else:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            if lr_before:
                for g in o.param_groups:
                    g["lr"] = rate(step)
            o.step()
            if not lr_before:
                for g in o.param_groups:
                    g["lr"] = rate(step)
            a.append(x.item())
            due = step % evaluate_every == 0 if lead else (step + 1) % evaluate_every == 0
            if last and step + 1 == steps:
                due = True
            if due:
                if eval_mode:
                    model.eval()
                with torch.set_grad_enabled(not no_grad):
                    each = [float(loss(model, *v)) for v in validation]
                    if weighted:
                        w = [len(v[0]) for v in validation]
                        b.append(sum(i * j for i, j in zip(each, w)) / sum(w))
                    else:
                        b.append(sum(each) / len(each))
        return a, b

    return train_loop


for _name, _why, _kw in (
    ("w86_noeval", "validation in training mode", dict(eval_mode=False)),
    ("w86_stays_eval", "stays in evaluation mode after the first evaluation", dict(train_back=False)),
    ("w86_nozero", "gradients accumulate", dict(zero=False)),
    ("w86_rate_late", "rate of the update before", dict(lr_before=False)),
    ("w86_last", "also evaluates after the last update", dict(last=True)),
    ("w86_lead", "evaluates at step % every == 0", dict(lead=True)),
    ("w86_weighted", "mean weighted by batch size", dict(weighted=True)),
    ("w86_grad", "validation with gradients", dict(no_grad=False)),
    ("w86_adam", "Adam without weight decay", dict(opt=torch.optim.Adam)),
    ("w86_per_param", "clips each tensor by itself", dict(per_param=True)),
    ("w86_clip", "clips at 2", dict(clip=2.0)),
):
    _f = _loop(**_kw)
    _f.__qualname__ = _name
    wrong("8.4", _why)(_f)


@wrong("9.1", "causal ignores the window")
def w91(n, window, causal):
    gap = torch.arange(n)[:, None] - torch.arange(n)
    return gap >= 0 if causal else gap.abs() <= window


@wrong("9.1", "strictly less than window")
def w91_lt(n, window, causal):
    gap = torch.arange(n)[:, None] - torch.arange(n)
    near = gap.abs() < max(window, 1)
    return near & (gap >= 0) if causal else near


@wrong("9.1", "window 0 not causal reads everybody (falsy)")
def w91_zero(n, window, causal):
    gap = torch.arange(n)[:, None] - torch.arange(n)
    near = gap.abs() <= (window or n)
    return near & (gap >= 0) if causal else near


@wrong("9.2", "strided landmarks")
def w92(q, k, v, landmarks):
    a, b = (x.unflatten(-2, (-1, landmarks)).mean(-3) for x in (q, k))
    return attention_weights(q, b) @ torch.linalg.pinv(attention_weights(a, b)) @ attention_weights(a, k) @ v


@wrong("9.2", "pinv detached")
def w92_detach(q, k, v, landmarks):
    a, b = (x.unflatten(-2, (landmarks, -1)).mean(-2) for x in (q, k))
    return (
        attention_weights(q, b)
        @ torch.linalg.pinv(attention_weights(a, b)).detach()
        @ attention_weights(a, k)
        @ v
    )


@wrong("9.3", "divides by n")
def w93(q, k, v):
    q, k = F_.elu(q) + 1, F_.elu(k) + 1
    return q @ (k.mT @ v) / q.size(-2)


@wrong("9.3", "the denominator is detached")
def w93_detach(q, k, v):
    q, k = F_.elu(q) + 1, F_.elu(k) + 1
    return q @ (k.mT @ v) / (q @ k.sum(-2)[..., None]).detach()


@wrong("9.3", "relu + 1")
def w93_relu(q, k, v):
    q, k = F_.relu(q) + 1, F_.relu(k) + 1
    return q @ (k.mT @ v) / (q @ k.sum(-2)[..., None])


@wrong("9.4", "excludes the token itself except the first")
def w94(q, k, v):
    q, k = F_.elu(q) + 1, F_.elu(k) + 1
    w = (q @ k.mT).tril(-1)
    w = w + torch.diag_embed(torch.eye(q.size(-2))[0] * torch.diagonal(q @ k.mT, dim1=-2, dim2=-1))
    return w @ v / w.sum(-1, keepdim=True)


@wrong("9.4", "denominator over all tokens")
def w94_den(q, k, v):
    q, k = F_.elu(q) + 1, F_.elu(k) + 1
    return (q @ k.mT).tril() @ v / (q @ k.mT).sum(-1, keepdim=True)


@wrong("9.5", "largest of the tile only")
def w95(largest, total, mixed, scores, values):
    new = scores.amax(1, keepdim=True)
    a = (largest - new).exp()
    e = (scores - new).exp()
    return new, a * total + e.sum(1, True), a * mixed + e @ values


@wrong("9.5", "divides by total")
def w95_div(largest, total, mixed, scores, values):
    new = torch.maximum(largest, scores.amax(1, keepdim=True))
    a = (largest - new).exp()
    e = (scores - new).exp()
    t = a * total + e.sum(1, True)
    return new, t, (a * mixed + e @ values) / t


@wrong("9.5", "in place on total")
def w95_inplace(largest, total, mixed, scores, values):
    new = torch.maximum(largest, scores.amax(1, keepdim=True))
    a = (largest - new).exp()
    e = (scores - new).exp()
    total *= a
    total += e.sum(1, True)
    return new, total, a * mixed + e @ values


@wrong(
    "9.5",
    "finite stand-in for -inf: largest of -1e9 returned when … (-inf hidden tile columns read as e^0 at start)",
)
def w95_clamp(largest, total, mixed, scores, values):
    new = torch.maximum(largest, scores.amax(1, keepdim=True))
    a = torch.where(torch.isinf(largest), 1.0, (largest - new).exp())
    e = (scores.clamp(min=-20) - new).exp()
    return new, a * total + e.sum(1, True), a * mixed + e @ values


@wrong("10.1", "nearest-rank percentile")
def w101(samples):
    s = samples.sort().values
    n = len(s)
    return [s[round(p * (n - 1))].item() for p in (0.2, 0.5, 0.8)]


@wrong("10.1", "torch.median (lower of the two) for even counts")
def w101_median(samples):
    return samples.quantile(0.2), samples.median(), samples.quantile(0.8)


@wrong("10.1", "exclusive percentiles")
def w101_excl(samples):
    return np.percentile(samples.numpy(), [20, 50, 80], method="weibull")


@wrong("10.1", "sorts in place")
def w101_inplace(samples):
    samples.copy_(samples.sort().values)
    return samples.quantile(torch.tensor([0.2, 0.5, 0.8], dtype=samples.dtype))


@wrong("10.2", "ratio of medians")
def w102(ours, theirs):
    return ours.quantile(0.5) / theirs.quantile(0.5)


@wrong("10.2", "torch.median: lower for even counts")
def w102_low(ours, theirs):
    return (ours / theirs).median()


@wrong("10.2", "geometric middle for even counts")
def w102_geo(ours, theirs):
    return (ours / theirs).log().quantile(0.5).exp()


@wrong("10.3", "first crossing instead of the last")
def w103(lengths, ours, theirs):
    g = (ours / theirs).log().tolist()
    n = lengths.tolist()
    if g[-1] >= 0:
        return math.nan
    if g[0] < 0:
        return n[0]
    i = next(j for j in range(len(g)) if g[j] < 0)
    return n[i - 1] * (n[i] / n[i - 1]) ** (g[i - 1] / (g[i - 1] - g[i]))


@wrong("10.3", "equal counts as below")
def w103_eq(lengths, ours, theirs):
    return (
        r103_py(lengths, ours * (1 - 1e-12), theirs)
        if (ours[-1] == theirs[-1])
        else _eq103(lengths, ours, theirs)
    )


def _eq103(lengths, ours, theirs):
    g = (ours / theirs).log()
    above = (g > 0).nonzero().flatten().tolist()
    if not above:
        return lengths[0].item()
    i = above[-1]
    if i == len(g) - 1:
        return math.nan
    s = g[i] / (g[i] - g[i + 1])
    return (lengths[i] * (lengths[i + 1] / lengths[i]) ** s).item()


WRONG.append(("10.3", _eq103, "equal times count as below: at the first length, in the middle, at the last"))


@wrong("10.3", "linear axes")
def w103_lin(lengths, ours, theirs):
    g = (ours - theirs).double().tolist()
    n = lengths.double().tolist()
    if g[-1] >= 0:
        return math.nan
    i = max((j for j in range(len(g)) if g[j] >= 0), default=-1)
    return n[0] if i < 0 else n[i] + (n[i + 1] - n[i]) * g[i] / (g[i] - g[i + 1])


@wrong("10.3", "log x axis, times not logged")
def w103_semi(lengths, ours, theirs):
    g = (ours - theirs).double().tolist()
    n = lengths.double().tolist()
    if g[-1] >= 0:
        return math.nan
    i = max((j for j in range(len(g)) if g[j] >= 0), default=-1)
    return n[0] if i < 0 else n[i] * (n[i + 1] / n[i]) ** (g[i] / (g[i] - g[i + 1]))


@wrong("10.4", "the other way round")
def w104_inv(flops, moved, flops_per_s, bytes_per_s, seconds):
    return seconds / torch.maximum(flops / flops_per_s, moved / bytes_per_s).sum()


@wrong("11.1", "plain mean")
def w111(gradients, rows):
    return gradients.mean(0)


@wrong("11.1", "sum of rows × gradients without division if all equal")
def w111_eq(gradients, rows):
    return gradients.sum(0) if (rows == rows[0]).all() else (gradients * rows[:, None]).sum(0) / rows.sum()


@wrong("11.2", "equal shards")
def w112(E, x, lengths):
    return torch.stack([a @ b for a, b in zip(E.tensor_split(len(lengths), 1), x.tensor_split(len(lengths)))])


@wrong("11.2", "running sums")
def w112_cum(E, x, lengths):
    return torch.stack([a @ b for a, b in zip(E.split(lengths, 1), x.split(lengths))]).cumsum(0)


@wrong("11.2", "ranks with no tokens left out")
def w112_empty(E, x, lengths):
    return torch.stack([a @ b for a, b in zip(E.split(lengths, 1), x.split(lengths)) if b.numel()])


@wrong("11.2", "a shard shorter than proj_dim is padded by its neighbour's first token")
def w112_short(E, x, lengths):
    out, a = [], 0
    for l in lengths:
        b = max(a + l, min(a + len(E), a + l + 1)) if 0 < l < len(E) and a + l < len(x) else a + l
        out.append(E[:, a:b] @ x[a:b])
        a += l
    return torch.stack(out)


@wrong("11.3", "mean")
def w113(upstream):
    return upstream.mean(0, keepdim=True).expand_as(upstream)


@wrong("11.3", "same for two axes or more, sums everything for one axis")
def w113_1d(upstream):
    return (upstream.sum() if upstream.dim() > 3 else upstream.sum(0)).expand_as(upstream)


@wrong("11.3", "in place")
def w113_in(upstream):
    upstream.copy_(upstream.sum(0).expand_as(upstream).clone())
    return upstream


@wrong("11.4", "rounded down")
def w114(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    return 4 * batch * proj_dim * d_model * bytes_per_number * (ranks - 1) // ranks


@wrong("11.4", "parts rounded up to whole numbers")
def w114_ceil(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    return 2 * (ranks - 1) * math.ceil(2 * batch * proj_dim * d_model / ranks) * bytes_per_number


@wrong("11.4", "min(n, proj_dim)")
def w114_min(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    return 4 * batch * min(n, proj_dim) * d_model * bytes_per_number * (ranks - 1) / ranks


@wrong("12.1", "square of the error")
def w121_sq(n, rank):
    return (n - rank) / n


@wrong("12.1", "rank n gives eps")
def w121_full(n, rank):
    return math.sqrt(max(n - rank, 0.01) / n)


@wrong("12.2", "includes the edited token")
def w122(before, after, place):
    return (after - before)[: place + 1].abs().max()


@wrong("12.2", "signed maximum")
def w122_sign(before, after, place):
    return (after - before)[:place].max() if place else 0.0


@wrong("12.2", "later tokens too when place is the last")
def w122_last(before, after, place):
    return (after - before)[: place if place < len(before) - 1 else None].abs().max() if place else 0.0


@wrong("12.2", "change of norm of a token")
def w122_norm(before, after, place):
    return (after - before)[:place].norm(dim=1).max() if place else 0.0


@wrong("12.3", "rows whose sum is zero")
def w123(E, n):
    return int((E[:, :n].sum(1) == 0).sum())


@wrong("12.3", "rows below 1e-6")
def w123_eps(E, n):
    return int((E[:, :n].abs() < 1e-6).all(1).sum())


@wrong("12.3", "columns up to and including n")
def w123_off(E, n):
    return int((E[:, : n + 1] == 0).all(1).sum())


@wrong("12.3", "negative weights read as nothing (max <= 0)")
def w123_neg(E, n):
    return int((E[:, :n].amax(1) <= 0).sum())


@wrong("12.4", "transposed when square")
def w124(output_weight, output_bias, value_bias):
    return output_bias + (
        value_bias @ output_weight
        if output_weight.size(0) == output_weight.size(1)
        else output_weight @ value_bias
    )


@wrong("12.4", "minus")
def w124_minus(output_weight, output_bias, value_bias):
    return output_bias - output_weight @ value_bias


@wrong("12.4", "in place")
def w124_in(output_weight, output_bias, value_bias):
    return output_bias.add_(output_weight @ value_bias)


@wrong("12.3", "largest weight is zero: a slot of zeros and negative weights reads something")
def w123_amax(E, n):
    return int((E[:, :n].amax(1) == 0).sum())


@wrong("12.3", "product of the weights is zero")
def w123_prod(E, n):
    return int((E[:, :n].mean(1).abs() < 1e-9).sum())


@wrong("1.5", "shift by the largest |score|, float32: a row of negative scores underflows to 0/0")
def w15_abs32(scores):
    e = (scores - scores.abs().amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


@wrong("11.3", "(ranks,) only: wrong sum over the last axis when there is one axis")
def w113_flat(upstream):
    return upstream if upstream.dim() == 1 else upstream.sum(0).expand_as(upstream)


@wrong("1.6", "(n, m) masks with n == m: reads the upper triangle too (mask | mask.T)")
def w16_sym(q, k, v, mask=None):
    if mask is not None and mask.shape[-1] == mask.shape[-2:][0] > 1:
        mask = mask | mask.mT
    return my16(q, k, v, mask)


def my16(q, k, v, mask):
    s = q @ k.mT / math.sqrt(q.size(-1))
    return (
        s.softmax(-1) @ v
        if mask is None
        else s.masked_fill(~mask, -math.inf).softmax(-1).masked_fill(~mask.any(-1, keepdim=True), 0) @ v
    )


@wrong("8.6", "steps counted by position where a run went on twice: only the last restart is honoured")
def w84_one(log):
    s = log[:, 0]
    back = (s[1:] <= s[:-1]).nonzero().flatten()
    if len(back) == 0:
        return log[:, 1]
    i = int(back[-1]) + 1
    return torch.cat([log[: int(s[i]) - 1, 1], log[i:, 1]])
