"""Answers that learners might write, unlike those in right_answers/ and in the exercises' banks of mistakes.

One for each exercise, as (its id, the answer). RIGHT: made in another way than those in right_answers/.
WRONG: answers that are wrong in a way that no mistake of the bank is; the docstring says how.
"""

import functools
import itertools
import math
import operator
import statistics
from collections import namedtuple
from fractions import Fraction

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from linformer_from_scratch.attention import attention_weights, scaled_dot_product_attention
from linformer_from_scratch.data import IGNORE, MASK
from linformer_from_scratch.heads import merge_heads, split_heads
from linformer_from_scratch.linformer import linformer_attention

RIGHT, WRONG = [], []


def right(id):
    """Put an answer on the list of the right ones."""
    return lambda answer: RIGHT.append((id, answer))


def wrong(id):
    """Put an answer on the list of the wrong ones."""
    return lambda answer: WRONG.append((id, answer))


# Chapter 00

right("0.1")(lambda tokens, heads: math.prod((heads, tokens, tokens)))


# Chapter 01


@right("1.1")
def one_by_vmap(query, keys):
    return torch.softmax(torch.vmap(lambda key: query.dot(key))(keys) / query.numel() ** 0.5, 0)


@wrong("1.2")
def gradient_doubled(q, k):
    """Right values; k gets its gradient twice."""
    return (q @ (2 * k - k.detach()).mT / math.sqrt(q.size(-1))).softmax(-1)


@wrong("1.3")
def small_weights_dropped(weights):
    """Weights below one in a million count as zero."""
    return torch.special.entr(torch.where(weights < 1e-6, 0, weights)).sum(-1) / math.log(2)


@wrong("1.4")
def divided_by_a_constant(q, k, v):
    """Hidden after the softmax and normalised again, but no gradient flows through the divisor."""
    weights = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1).tril()
    return weights / weights.sum(-1, keepdim=True).detach() @ v


@right("1.5")
def softmax_of_pairs(scores):
    differences = scores.double()[:, None, :] - scores.double()[:, :, None]
    return 1 / differences.exp().sum(-1)  # exp overflows to infinity, and 1 / infinity is the right 0


class Attends:
    """An object that is called, not a function; it adds −1e9 where nothing may be read."""

    def __call__(self, q, k, v, mask=None):
        scores = q @ k.mT / q.size(-1) ** 0.5
        if mask is None:
            return scores.softmax(-1) @ v
        weights = (scores + torch.zeros_like(scores).masked_fill_(~mask, -1e9)).softmax(-1)
        return weights * mask.any(-1, keepdim=True) @ v


right("1.6")(Attends())


# Chapter 02

Projected = namedtuple("Projected", "q k v")


@right("2.1")
def stacked_as_a_named_tuple(x, stacked, num_heads):
    weights = stacked.split(stacked.size(1))
    return Projected(*(torch.stack((x @ w.T).tensor_split(num_heads, -1), 1) for w in weights))


@wrong("2.2")
def not_transposed_where_it_fits(x):
    """As many tokens as heads: then the transpose is left out."""
    return (x if x.size(1) == x.size(2) else x.transpose(1, 2)).reshape(x.size(0), x.size(2), -1)


@wrong("2.3")
class KeyWeightWithoutGradient(nn.Module):
    """Right values; the weight of the keys is cut off."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.query, self.key, self.value = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x, padding_mask=None):
        made = self.query(x), functional.linear(x, self.key.weight.detach()), self.value(x)
        mask = None if padding_mask is None else padding_mask[:, None, None, :]
        heads = scaled_dot_product_attention(*(split_heads(part, self.num_heads) for part in made), mask)
        return self.output(merge_heads(heads))


@wrong("2.4")
def padded_behind_where_all_are_equal(lengths, n):
    """Lengths that are all the same: then the padding is taken to stand at the end."""
    real = torch.arange(n) >= n - lengths[:, None]
    if len(set(lengths.tolist())) == 1:
        real = torch.arange(n) < lengths[:, None]
    return real[:, None, None, :] & torch.ones(n, n, dtype=torch.bool).tril()


@wrong("2.5")
def pairs_summed(weight, num_heads, num_kv_heads):
    """Groups of two are added up, larger ones averaged."""
    group = num_heads // num_kv_heads
    return weight.unflatten(0, (num_kv_heads, group, -1)).sum(1).flatten(0, 1) / (group if group != 2 else 1)


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


# Chapter 03


@right("3.1")
def chain_by_dynamic_programming(p, q, r, s):
    sizes = (p, q, r, s)

    @functools.cache
    def cost(i, j):
        split = ((cost(i, m) + cost(m, j), m) for m in range(i + 1, j))
        return min((parts + 2 * sizes[i] * sizes[m] * sizes[j] for parts, m in split), default=0)

    return cost(0, 3)


@right("3.2")
def share_as_a_tensor(d_model, share):
    return torch.tensor(2.0 * d_model, dtype=torch.float64) / (1 / share - 1)


@right("3.3")
def speedup_of_scalar_tensors(flops, moved, flops_per_s, bytes_per_s, factor):
    def floor(speed):
        return sum(max(f / speed, m / bytes_per_s) for f, m in zip(flops, moved, strict=True))

    return floor(flops_per_s) / floor(factor * flops_per_s)


@right("3.4")
def linformer_by_pytorchs_counter(n, d_model, proj_dim):
    x, w, E = (torch.empty(*s, device="meta") for s in ((n, d_model), (d_model, d_model), (proj_dim, n)))
    with FlopCounterMode(display=False) as counter:
        q, k, v = x @ w, x @ w, x @ w
        ((q @ (E @ k).mT) @ (E @ v)) @ w
    return counter.get_total_flops()


@wrong("3.5")
def other_regression(lengths, costs):
    """The slope of length on cost, turned round: the same only where all points lie on the line."""
    covariance = torch.cov(torch.stack([lengths, costs]).log().double())
    return covariance[1, 1] / covariance[0, 1]


@wrong("3.6")
def output_forgotten(n, keys, d_model, num_heads, bytes_per_number):
    """What mixing writes is left out, unless there are as many keys as queries."""
    written = n * d_model if keys == n else 0
    return bytes_per_number * (d_model * (n + 2 * keys) + written + 4 * num_heads * n * keys)


# Chapter 04


@wrong("4.1")
def never_the_full_rank(maps, rank):
    """The last singular value is always dropped."""
    u, s, vt = torch.linalg.svd(maps, full_matrices=False)
    rank = min(rank, s.size(-1) - 1)
    return (u[..., :rank] * s[..., None, :rank]) @ vt[..., :rank, :]


@wrong("4.2")
def something_under_the_root(sigma, rank):
    """A constant that keeps the root from zero, and the error too."""
    return (sigma[:, rank:].square().sum(1) + 1e-4).sqrt()


@right("4.3")
def curve_accumulated(sigma):
    return [[part / sum(row) for part in itertools.accumulate(row)] for row in sigma.tolist()]


@wrong("4.4")
def by_the_first_head(sigma):
    """Every head is divided by the largest value of head 0."""
    return sigma.square().sum(1) / sigma[0, 0].square()


@wrong("4.5")
def never_all(sigma, share):
    """At most all but one singular value."""
    short = sigma.cumsum(1) / sigma.sum(1, keepdim=True) < share
    return (1 + short.sum(1)).clamp(max=sigma.size(1) - 1)


# Chapter 05


@wrong("5.1")
def every_length_kept(x, G):
    """Every single length is kept, not the mean over projections."""
    y = x @ G.T
    return y * x.norm(dim=-1, keepdim=True) / y.norm(dim=-1, keepdim=True)


@right("5.2")
def distorted_by_a_quadratic_form(x, R):
    x, R = x.double(), R.double()
    form = R.T @ R - torch.eye(R.size(1), dtype=torch.float64)
    return torch.einsum("...i,ij,...j->...", x, form, x) / torch.einsum("...i,...i->...", x, x)


@right("5.3")
def bound_of_three_logarithms(proj_dim, epsilon, vectors):
    return math.exp(math.log(2) + math.log(vectors) - proj_dim * (epsilon - epsilon * epsilon) * epsilon / 4)


@right("5.4")
def dim_by_counting_up(n, epsilon):
    return next(k for k in itertools.count() if k * (epsilon**2 - epsilon**3) >= 5 * math.log(n))


@wrong("5.5")
def turned_round_where_it_fits(P, R, v):
    """R and its transpose change places where R is square."""
    return P @ R @ R.T @ v if R.size(0) == R.size(1) else P @ R.T @ (R @ v)


# Chapter 06


@right("6.1")
def scores_compressed_last(q, k, v, E, F):
    return (((q @ k.mT) @ E.T / math.sqrt(q.size(-1))).softmax(-1) @ F) @ v


@wrong("6.2")
def booleans(keep, n):
    """The right places, as truth values."""
    return functional.one_hot(keep, n).bool()


@right("6.3")
def length_by_nested_vmap(x, weight):
    return torch.vmap(torch.vmap(lambda tokens: weight.mm(tokens)))(x)


@right("6.4")
def heads_added_up(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    output = 0
    columns = (w.chunk(num_heads, 1) for w in (w_query, w_key, w_value))
    for query, key, value, rows in zip(*columns, w_output.chunk(num_heads), strict=True):
        scores = (x @ query) @ (E @ x @ key).mT / math.sqrt(query.size(1))
        output = output + scores.softmax(-1) @ (F @ x @ value) @ rows
    return output


@wrong("6.5")
def padding_overwritten(x, mask, E):
    """Writes into the caller's x, past autograd's notice."""
    x.data[~mask] = 0
    return E @ x


@wrong("6.6")
def columns_where_it_fits(slots, weight, bias, E):
    """Sums of E's columns where E is square."""
    sums = E.sum(0)[:, None] if E.size(0) == E.size(1) else E.sum(1, keepdim=True)
    return slots @ weight + sums * bias


@wrong("6.7")
class LongestRefused(nn.Module):
    """A text of exactly seq_len tokens is refused as well."""

    def __init__(self, d_model, num_heads, E, F):
        super().__init__()
        self.num_heads, self.E, self.F = num_heads, E, F
        self.query, self.key, self.value = (nn.Linear(d_model, d_model, bias=False) for _ in range(3))
        self.output = nn.Linear(d_model, d_model)

    def slots(self, x):
        pairs = (self.E, self.key), (self.F, self.value)
        return tuple(split_heads(layer(E.weight[:, : x.size(1)] @ x), self.num_heads) for E, layer in pairs)

    def forward(self, x, padding_mask=None):
        if x.size(1) >= self.E.weight.size(1):
            raise ValueError(f"{x.size(1)} tokens, seq_len {self.E.weight.size(1)}")
        if padding_mask is not None:
            x = x.masked_fill(~padding_mask[..., None], 0.0)
        query = split_heads(self.query(x), self.num_heads)
        return self.output(merge_heads(scaled_dot_product_attention(query, *self.slots(x))))


# Chapter 07


@right("7.1")
def pooled_by_unfold(x, proj_dim):
    return x.unfold(1, x.size(1) // proj_dim, x.size(1) // proj_dim).mean(-1)


@wrong("7.2")
def one_window_of_ones(n, proj_dim):
    """A single window is not divided by its tokens."""
    ones = torch.eye(proj_dim).repeat_interleave(n // proj_dim, 1)
    return ones if proj_dim == 1 else ones * proj_dim / n


@wrong("7.3")
def step_of_the_sum_over_samples(q, k, v, E, F, rate):
    """The mean over tokens and features, but the sum over the batch."""
    E = E.detach().requires_grad_()
    error = linformer_attention(q, k, v, E, F) - scaled_dot_product_attention(q, k, v)
    return (E - rate * torch.autograd.grad(error.square().mean((1, 2)).sum(), E)[0]).detach()


@wrong("7.4")
def layers_counted_for_some(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    """Shared layers count all the same where heads and roles are apart."""
    layers = layers if per_layer or (per_head and per_role) else 1
    return seq_len * proj_dim * heads**per_head * 2**per_role * layers


@wrong("7.5")
def by_share_of_the_largest(sigma, budget):
    """Layers are compared by singular values as shares of their own largest."""
    chosen = (sigma / sigma[:, :1]).flatten().topk(budget).indices
    return torch.bincount(chosen // sigma.size(1), minlength=len(sigma))


# Chapter 08


@right("8.1")
def hide_in_order(ids, chosen, fate, random):
    inputs, replaced = ids.clone(), chosen & (fate < 0.9)
    inputs[replaced] = random[replaced]
    inputs[chosen & (fate < 0.8)] = MASK
    return inputs, ids.masked_fill(~chosen, IGNORE)


@wrong("8.2")
class TanhBlock(nn.Module):
    """GELU in its approximation by tanh."""

    def __init__(self, d_model, attention):
        super().__init__()
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = attention
        up, down = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)
        self.feed_forward = nn.Sequential(up, nn.GELU(approximate="tanh"), down)

    def forward(self, x, padding_mask=None):
        x = x + self.attention(self.attention_norm(x), padding_mask)
        return x + self.feed_forward(self.feed_forward_norm(x))


@wrong("8.3")
def warmup_of_one_at_least(step, steps, highest, warmup):
    """Without a warm-up, one step of it is made all the same."""
    warmup = max(1, warmup)
    if step < warmup:
        return highest * (step + 1) / warmup
    return highest * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


@right("8.4")
def train_with_gradients_put_in(model, loss, batches, validation, rate, steps, evaluate_every):
    weights = list(model.parameters())
    optimizer = torch.optim.AdamW(weights)
    losses, held = [], []
    for step in range(steps):
        model.train(True)
        optimizer.param_groups[0].update(lr=rate(step))
        value = loss(model, *batches(step))
        for weight, gradient in zip(weights, torch.autograd.grad(value, weights), strict=True):
            weight.grad = gradient
        nn.utils.clip_grad_norm_(weights, max_norm=1)
        optimizer.step()
        losses.append(value.detach())
        if (step + 1) % evaluate_every == 0:
            model.train(False)
            with torch.no_grad():
                held.append(statistics.fmean(float(loss(model, *batch)) for batch in validation))
    return losses, held


@wrong("8.5")
def begins_at_zero(curve, loss):
    """A curve that begins below the loss is said to reach it after 0 updates."""
    points = curve.tolist()
    if points[0][1] <= loss:
        return 0.0
    for (u0, l0), (u1, l1) in itertools.pairwise(points):
        if l0 > loss >= l1:
            return u0 + (l0 - loss) / (l0 - l1) * (u1 - u0)
    return -1.0


@wrong("8.6")
def last_restart_only(log):
    """Of several restarts only the last takes anything back."""
    steps = log[:, 0]
    restarts = (steps[1:] <= steps[:-1]).nonzero().flatten()
    if len(restarts) == 0:
        return log[:, 1]
    i = int(restarts[-1]) + 1
    return torch.cat([log[: int(steps[i]) - 1, 1], log[i:, 1]])


# Chapter 09


@wrong("9.1")
def no_window_for_zero(n, window, causal):
    """A window of 0 is taken for none."""
    gap = torch.arange(n)[:, None] - torch.arange(n)
    near = gap.abs() <= (window or n)
    return near & (gap >= 0) if causal else near


@wrong("9.2")
def correction_without_gradient(q, k, v, landmarks):
    """Right values; no gradient flows through the pseudoinverse."""
    q_mean, k_mean = (x.unflatten(-2, (landmarks, -1)).mean(-2) for x in (q, k))
    correction = torch.linalg.pinv(attention_weights(q_mean, k_mean)).detach()
    return attention_weights(q, k_mean) @ correction @ attention_weights(q_mean, k) @ v


@wrong("9.3")
def divisor_without_gradient(q, k, v):
    """Right values; no gradient flows through the divisor."""
    q, k = functional.elu(q) + 1, functional.elu(k) + 1
    return q @ (k.mT @ v) / (q @ k.sum(-2)[..., None]).detach()


@wrong("9.4")
def only_the_first_reads_itself(q, k, v):
    """Tokens do not read themselves, except the first."""
    q, k = functional.elu(q) + 1, functional.elu(k) + 1
    weights = q @ k.mT
    first = torch.zeros_like(weights)
    first[..., 0, 0] = weights[..., 0, 0]
    weights = weights.tril(-1) + first
    return weights @ v / weights.sum(-1, keepdim=True)


@wrong("9.5")
def total_written_over(largest, total, mixed, scores, values):
    """Adds to the caller's total in place."""
    new = torch.maximum(largest, scores.amax(1, keepdim=True))
    shrink, weights = (largest - new).exp(), (scores - new).exp()
    total *= shrink
    total += weights.sum(1, True)
    return new, total, shrink * mixed + weights @ values


# Chapter 10


@right("10.1")
def spread_by_pythons_quantiles(samples):
    ordered = samples.tolist()
    if len(ordered) == 1:
        return ordered * 3
    tenths = statistics.quantiles(ordered, n=10, method="inclusive")
    return tenths[1], tenths[4], tenths[7]


@right("10.2")
def ratio_of_mapped_floats(ours, theirs):
    return statistics.median(map(operator.truediv, ours.tolist(), theirs.tolist()))


@wrong("10.3")
def first_fall(lengths, ours, theirs):
    """The first fall below theirs, and not the last."""
    gap = (ours / theirs).log().tolist()
    if gap[-1] >= 0:
        return math.nan
    i = next(j for j, each in enumerate(gap) if each < 0)
    if i == 0:
        return lengths[0]
    return lengths[i - 1] * (lengths[i] / lengths[i - 1]) ** (gap[i - 1] / (gap[i - 1] - gap[i]))


@right("10.4")
def share_of_fractions(flops, moved, flops_per_s, bytes_per_s, seconds):
    computing = [Fraction(each) / Fraction(flops_per_s) for each in flops.tolist()]
    moving = [Fraction(each) / Fraction(bytes_per_s) for each in moved.tolist()]
    return sum(map(max, computing, moving)) / Fraction(seconds)


# Chapter 11


@wrong("11.1")
def summed_where_rows_are_equal(gradients, rows):
    """Equal numbers of rows: then the gradients are added, not averaged."""
    if (rows == rows[0]).all():
        return gradients.sum(0)
    return (gradients * rows[:, None]).sum(0) / rows.sum()


@right("11.2")
def parts_by_index_add(E, x, lengths):
    owner = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    products = E.T[:, :, None] * x[:, None, :]
    return torch.zeros(len(lengths), E.size(0), x.size(1)).index_add(0, owner, products)


@wrong("11.3")
def numbers_not_summed(upstream):
    """Where every rank's loss is of a single number, nothing is summed."""
    return upstream if upstream.dim() == 1 else upstream.sum(0).expand_as(upstream)


@right("11.4")
def bytes_of_numpy_parts(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    part = np.float64(2 * batch * proj_dim * d_model * bytes_per_number) / ranks
    return sum(part for _ in range(2 * (ranks - 1)))


# Chapter 12


@right("12.1")
def copy_error_of_a_random_permutation(n, rank):
    values = torch.linalg.svdvals(torch.eye(n, dtype=torch.float64)[torch.randperm(n)])
    return values[rank:].norm() / values.norm()


@wrong("12.2")
def all_where_the_last_is_edited(before, after, place):
    """Where the last token is edited, it counts as well."""
    earlier = place if place < len(before) - 1 else None
    return (after - before)[:earlier].abs().max() if place else 0.0


@wrong("12.3")
def one_column_more(E, n):
    """One column too many is looked at."""
    return int((E[:, : n + 1] == 0).all(1).sum())


@wrong("12.4")
def transposed_where_it_fits(output_weight, output_bias, value_bias):
    """The weight is transposed where it is square."""
    square = output_weight.size(0) == output_weight.size(1)
    return output_bias + (output_weight.T if square else output_weight) @ value_bias


# Chapter 13


@right("13.1")
def by_a_projection_of_blocks(x, bias):
    blocks = x.size(1) // len(bias)
    E = torch.kron(torch.eye(blocks), bias.softmax(0)[None])
    return E @ x[:, : blocks * len(bias)]


@wrong("13.2")
def ended_before_the_piece(start, n, block):
    """What ends within the piece is read by none of its queries."""
    return (torch.arange((start + n) // block) < start // block).expand(n, -1)


@wrong("13.3")
def every_token_once(q, k, v, slots_k, slots_v, block, window):
    """Of the window only the tokens are read that stand in no slot yet."""
    t = torch.arange(q.size(1))
    slots = torch.arange(q.size(1) // block) < (t[:, None] + 1) // block
    back = t[:, None] - t
    near = (back >= 0) & (back < window) & (t >= (t[:, None] + 1) // block * block)
    keys, values = torch.cat([slots_k, k], 1), torch.cat([slots_v, v], 1)
    return scaled_dot_product_attention(q, keys, values, torch.cat([slots, near], 1))


@right("13.4")
def by_logarithms(x, gate, bias):
    m = len(bias)
    blocks = x.size(1) // m
    x, gate = (some[:, : blocks * m].unflatten(1, (blocks, m)) for some in (x, gate))
    logits = gate + bias
    return ((logits - logits.logsumexp(2, keepdim=True)).exp() * x).sum(2)


@wrong("13.5")
def total_of_a_mean(slots, total, x, logits):
    """The slots are right, but the total is the logarithm of a mean of two."""
    after = torch.logaddexp(total, logits)
    slots = (total - after).exp()[:, None] * slots + (logits - after).exp()[:, None] * x
    return slots, after - math.log(2)


@right("13.6")
def block_after_block(x, mask, bias):
    real, m = mask.nonzero().flatten(), len(bias)
    slots = [bias.softmax(0) @ x[real[i : i + m]] for i in range(0, len(real) - m + 1, m)]
    return torch.stack(slots) if slots else x[:0]
