"""Right and nearly right answers: cost."""

import functools
from fractions import Fraction
from math import prod

import numpy
import torch
from torch.utils.flop_counter import FlopCounterMode

from right_answers import right, wrong


@right("3.1")
def chain_by_a_table(p, q, r, s):
    orders = (((p, q, r), (p, r, s)), ((q, r, s), (p, q, s)))
    return min(sum(2 * prod(sizes) for sizes in order) for order in orders)


@right("3.1")
def chain_as_a_float_by_numpy(p, q, r, s):
    return 2.0 * numpy.minimum(p * r * (q + s), q * s * (p + r))


@right("3.1")
def chain_by_a_loop(p, q, r, s):
    left = sum(2 * q for _ in range(p * r)) + sum(2 * r for _ in range(p * s))
    right = sum(2 * r for _ in range(q * s)) + sum(2 * q for _ in range(p * s))
    return left if left < right else right


@right("3.1")
def chain_by_dynamic_programming(p, q, r, s):
    sizes = (p, q, r, s)

    @functools.cache
    def cost(i, j):
        split = ((cost(i, m) + cost(m, j), m) for m in range(i + 1, j))
        return min((parts + 2 * sizes[i] * sizes[m] * sizes[j] for parts, m in split), default=0)

    return cost(0, 3)


@right("3.2")
def share_by_numpy(d_model, share):
    return numpy.float64(d_model) * 2 / (1 / share - 1)


@right("3.2")
def share_as_a_fraction(d_model, share):
    share = Fraction(share)
    return 2 * d_model * share / (1 - share)


@right("3.2")
def share_by_halving(d_model, share):
    low, high = 0.0, 1e6
    for _ in range(80):
        n = (low + high) / 2
        maps, weights = 4 * n**2 * d_model, 8 * n * d_model**2
        low, high = (n, high) if maps < share * (maps + weights) else (low, n)
    return torch.tensor(low)


@right("3.2")
def share_as_a_tensor(d_model, share):
    return torch.tensor(2.0 * d_model, dtype=torch.float64) / (1 / share - 1)


@right("3.3")
def speedup_by_loops(flops, moved, flops_per_s, bytes_per_s, factor):
    now = then = 0.0
    for operations, numbers in zip(flops.tolist(), moved.tolist(), strict=True):
        now += max(operations / flops_per_s, numbers / bytes_per_s)
        then += max(operations / flops_per_s / factor, numbers / bytes_per_s)
    return now / then


@right("3.3")
def speedup_by_numpy(flops, moved, flops_per_s, bytes_per_s, factor):
    computing, moving = flops.numpy() / flops_per_s, moved.numpy() / bytes_per_s
    return numpy.maximum(computing, moving).sum() / numpy.maximum(computing / factor, moving).sum()


@right("3.3")
def speedup_by_where_in_float32(flops, moved, flops_per_s, bytes_per_s, factor):
    computing, moving = flops.float() / flops_per_s, moved.float() / bytes_per_s
    now = torch.where(computing > moving, computing, moving).sum()
    return (now / (computing / factor).clamp(min=moving).sum()).item()


@right("3.3")
def speedup_of_scalar_tensors(flops, moved, flops_per_s, bytes_per_s, factor):
    def floor(speed):
        return sum(max(f / speed, m / bytes_per_s) for f, m in zip(flops, moved, strict=True))

    return floor(flops_per_s) / floor(factor * flops_per_s)


@right("3.4")
def linformer_as_one_formula(n, d_model, proj_dim):
    return 8 * n * d_model * (d_model + proj_dim)


@right("3.4")
def linformer_step_by_step_by_numpy(n, d_model, proj_dim):
    products = numpy.array(
        [(n, d_model, d_model)] * 4 + [(proj_dim, n, d_model)] * 2 + [(n, d_model, proj_dim)] * 2
    )
    return 2 * products.prod(axis=1).sum()


@right("3.4")
def linformer_as_a_float(n, d_model, proj_dim):
    return 2.0 * (4 * n * d_model**2 + 2 * proj_dim * n * d_model + 2 * n * proj_dim * d_model)


@right("3.4")
def linformer_by_pytorchs_counter(n, d_model, proj_dim):
    x, w, E = (torch.empty(*s, device="meta") for s in ((n, d_model), (d_model, d_model), (proj_dim, n)))
    with FlopCounterMode(display=False) as counter:
        q, k, v = x @ w, x @ w, x @ w
        ((q @ (E @ k).mT) @ (E @ v)) @ w
    return counter.get_total_flops()


@right("3.5")
def exponent_by_polyfit(lengths, costs):
    return numpy.polyfit(numpy.log(lengths.numpy()), numpy.log(costs.numpy()), 1)[0]


@right("3.5")
def exponent_by_lstsq(lengths, costs):
    line = torch.stack([lengths.log(), torch.ones_like(lengths)], dim=1)
    return torch.linalg.lstsq(line, costs.log()[:, None]).solution[0, 0]


@right("3.5")
def exponent_by_covariance(lengths, costs):
    covariance = torch.cov(torch.stack([lengths, costs]).double().log2())
    return covariance[0, 1] / covariance[0, 0]


@wrong("3.5")
def other_regression(lengths, costs):
    """The slope of length on cost, turned round: the same only where all points lie on the line."""
    covariance = torch.cov(torch.stack([lengths, costs]).log().double())
    return covariance[1, 1] / covariance[0, 1]


@right("3.6")
def bytes_step_by_step(n, keys, d_model, num_heads, bytes_per_number):
    queries, slots, maps = n * d_model, keys * d_model, num_heads * n * keys
    scores, softmax, mixing = queries + slots + maps, maps + maps, maps + slots + queries
    return (scores + softmax + mixing) * bytes_per_number


@right("3.6")
def bytes_as_a_float_by_numpy(n, keys, d_model, num_heads, bytes_per_number):
    return numpy.dot([2.0, 2.0, 4.0], [n * d_model, keys * d_model, num_heads * n * keys]) * bytes_per_number


@right("3.6")
def bytes_of_real_tensors(n, keys, d_model, num_heads, bytes_per_number):
    q, k = torch.empty(num_heads, n, d_model // num_heads), torch.empty(num_heads, keys, d_model // num_heads)
    maps = q @ k.mT
    moved = (q, k, maps, maps, maps, maps, k, maps @ k)
    return torch.tensor(sum(tensor.numel() for tensor in moved) * bytes_per_number)


@wrong("3.6")
def output_forgotten(n, keys, d_model, num_heads, bytes_per_number):
    """What mixing writes is left out, unless there are as many keys as queries."""
    written = n * d_model if keys == n else 0
    return bytes_per_number * (d_model * (n + 2 * keys) + written + 4 * num_heads * n * keys)


SAME = {
    "3.5": {"y - y.mean() -> y + y.mean()": "x has the mean zero, so what is added to all of y drops out"},
}
