"""Right and nearly right answers: projections."""

import itertools

import numpy
import torch
from torch import nn
from torch.nn import functional

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.linformer import linformer_attention
from right_answers import right, wrong


@right("7.1")
def window_by_window(x, proj_dim):
    return torch.stack([window.mean(dim=1) for window in x.chunk(proj_dim, dim=1)], dim=1)


@right("7.1")
def by_pytorch(x, proj_dim):
    return functional.adaptive_avg_pool1d(x.mT, proj_dim).mT


@right("7.1")
def by_a_product(x, proj_dim):
    width = x.size(1) // proj_dim
    return torch.einsum("kn,bnd->bkd", torch.eye(proj_dim).repeat_interleave(width, 1), x) / width


@right("7.1")
def pooled_by_unfold(x, proj_dim):
    return x.unfold(1, x.size(1) // proj_dim, x.size(1) // proj_dim).mean(-1)


@right("7.2")
def matrix_in_loops(n, proj_dim):
    width = n // proj_dim
    return [[1 / width if j // width == i else 0 for j in range(n)] for i in range(proj_dim)]


@right("7.2")
def matrix_of_the_identity(n, proj_dim):
    return functional.adaptive_avg_pool1d(torch.eye(n), proj_dim).T


@right("7.2")
def matrix_by_comparing(n, proj_dim):
    window = torch.arange(n) // (n // proj_dim)
    return (window == torch.arange(proj_dim)[:, None]).double() * (proj_dim / n)


@wrong("7.2")
def one_window_of_ones(n, proj_dim):
    """A single window is not divided by its tokens."""
    ones = torch.eye(proj_dim).repeat_interleave(n // proj_dim, 1)
    return ones if proj_dim == 1 else ones * proj_dim / n


@right("7.3")
def by_an_optimizer(q, k, v, E, F, rate):
    E = nn.Parameter(E.clone())
    difference = linformer_attention(q, k, v, E, F) - functional.scaled_dot_product_attention(q, k, v)
    difference.pow(2).mean().backward()
    torch.optim.SGD([E], lr=rate).step()
    return E


@right("7.3")
def by_functional_grad(q, k, v, E, F, rate):
    q, k, v, E, F = (x.double() for x in (q, k, v, E, F))
    exact = scaled_dot_product_attention(q, k, v)
    step = torch.func.grad(lambda E: (linformer_attention(q, k, v, E, F) - exact).square().mean())
    return E - rate * step(E)


@right("7.3")
def by_hand(q, k, v, E, F, rate):
    scale = q.size(-1) ** 0.5
    weights = (q @ (E @ k).mT / scale).softmax(-1)
    difference = weights @ (F @ v) - scaled_dot_product_attention(q, k, v)
    of_weights = 2 * difference / difference.numel() @ (F @ v).mT
    of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True)) / scale
    return E - rate * (of_scores.mT @ q @ k.mT).sum(0)


@wrong("7.3")
def step_of_the_sum_over_samples(q, k, v, E, F, rate):
    """The mean over tokens and features, but the sum over the batch."""
    E = E.detach().requires_grad_()
    error = linformer_attention(q, k, v, E, F) - scaled_dot_product_attention(q, k, v)
    return (E - rate * torch.autograd.grad(error.square().mean((1, 2)).sum(), E)[0]).detach()


@right("7.4")
def product_of_choices(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    return heads**per_head * 2**per_role * layers**per_layer * seq_len * proj_dim


@right("7.4")
def counted_one_by_one(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    every = itertools.product(range(heads), "EF", range(layers))
    different = {(h * per_head, role if per_role else "E", layer * per_layer) for h, role, layer in every}
    return float(len(different) * seq_len * proj_dim)


@right("7.4")
def counted_as_tensors(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    sizes = [heads if per_head else 1, 2 if per_role else 1, layers if per_layer else 1, seq_len, proj_dim]
    return torch.tensor(sizes).prod()


@wrong("7.4")
def layers_counted_for_some(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    """Shared layers count all the same where heads and roles are apart."""
    layers = layers if per_layer or (per_head and per_role) else 1
    return seq_len * proj_dim * heads**per_head * 2**per_role * layers


@right("7.5")
def slot_by_slot(sigma, budget):
    slots = [0] * len(sigma)
    for _ in range(budget):
        left = [row[k].item() if k < len(row) else -1 for row, k in zip(sigma, slots, strict=True)]
        slots[left.index(max(left))] += 1
    return slots


@right("7.5")
def by_the_least_kept(sigma, budget):
    least = sigma.double().square().flatten().topk(budget).values[-1]
    return (sigma.double().square() >= least).sum(dim=1)


@right("7.5")
def in_numpy(sigma, budget):
    s = sigma.numpy()
    chosen = numpy.argsort(-s, axis=None)[:budget]
    return numpy.bincount(chosen // s.shape[1], minlength=len(s)).astype(numpy.float32)


@wrong("7.5")
def by_share_of_the_largest(sigma, budget):
    """Layers are compared by singular values as shares of their own largest."""
    chosen = (sigma / sigma[:, :1]).flatten().topk(budget).indices
    return torch.bincount(chosen // sigma.size(1), minlength=len(sigma))
