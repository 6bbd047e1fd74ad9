"""Chapter 01: exercises and quiz."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from linformer_from_scratch.attention import (
    attention_entropy,
    attention_weights,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)
from linformer_from_scratch.exercises.engine.checking import Exercise
from linformer_from_scratch.exercises.engine.draws import normal, row
from linformer_from_scratch.exercises.engine.quiz import Option, Question

BATCH, HEADS = 2, 3
SIZES = ((5, 7, 4), (7, 5, 11), (1, 3, 2), (6, 6, 5))  # queries, keys, features of each draw


# 1.1: the weights of one query


def one_query_weights(query: Tensor, keys: Tensor) -> Tensor:
    """softmax(keys · query / √d). Shape: query (d,), keys (n, d) -> (n,)."""
    return attention_weights(query[None], keys)[0]


def draw_one_query(seed: int) -> tuple[Tensor, ...]:
    """One query and n keys."""
    _, n, d = row(seed, SIZES)
    return normal(seed, (d,), (n, d))


def one_unscaled(query, keys):
    """Your softmax gets the scores undivided. With long vectors they're so large that one key takes everything. Divide by √d first."""
    return (keys @ query).softmax(-1)


def one_scaled_by_d(query, keys):
    """You divide by d. The variance of a dot product grows with d, its standard deviation with √d: which of them do you want at one?"""
    return (keys @ query / len(query)).softmax(-1)


def one_scaled_by_n(query, keys):
    """You divide by the root of the number of keys. More keys don't make a score larger; more features do. Which axis has the length d?"""
    return (keys @ query / math.sqrt(len(keys))).softmax(-1)


def one_scaled_afterwards(query, keys):
    """You divide after the softmax, and so your weights sum to 1/√d. It's the scores that are too large: divide those."""
    return (keys @ query).softmax(-1) / math.sqrt(len(query))


def one_scaled_up(query, keys):
    """You multiply by √d, and the scores are too large already. Divide."""
    return (keys @ query * math.sqrt(len(query))).softmax(-1)


def one_without_softmax(query, keys):
    """You stopped one step early. These are scores: some are negative, and they don't sum to one. Put them through a softmax."""
    return keys @ query / math.sqrt(len(query))


def one_divided_by_sum(query, keys):
    """You divide the scores by their sum, as with votes. Scores can be negative, and then so are your shares. Softmax takes exp first."""
    scores = keys @ query / math.sqrt(len(query))
    return scores / scores.sum()


def one_not_normalised(query, keys):
    """Half a softmax: after exp your numbers are positive, but they don't sum to one yet. Divide by their sum."""
    return (keys @ query / math.sqrt(len(query))).exp()


def one_scaled_for_the_toy(query, keys):
    """You divide by √2. That was right for the toy, whose arrows have two numbers; here d is len(query)."""
    return (keys @ query / math.sqrt(2)).softmax(-1)


# 1.2: the weights of all queries, batched and with heads


def all_query_weights(q: Tensor, k: Tensor) -> Tensor:
    """softmax(q kᵀ / √d). Shape: q (batch, heads, n, d), k (batch, heads, m, d) -> (batch, heads, n, m)."""
    return attention_weights(q, k)


def draw_queries_and_keys(seed: int) -> tuple[Tensor, ...]:
    """A batch of heads, with n queries and m keys."""
    n, m, d = row(seed, SIZES)
    return normal(seed, (BATCH, HEADS, n, d), (BATCH, HEADS, m, d))


def softmax_over_queries(q, k):
    """Your columns sum to one, not your rows. It's the queries that have attention to give, so the softmax runs over the keys, the last axis."""
    return (q @ k.mT / math.sqrt(q.size(-1))).softmax(-2)


def softmax_over_heads(q, k):
    """Your softmax runs over axis 1, and that's the heads: they compete with each other for every pair. The keys are on the last axis."""
    return (q @ k.mT / math.sqrt(q.size(-1))).softmax(1)


def softmax_over_batch(q, k):
    """Your softmax runs over axis 0, so the texts of a batch compete with each other. The keys are on the last axis."""
    return (q @ k.mT / math.sqrt(q.size(-1))).softmax(0)


def scaled_afterwards(q, k):
    """You divide by √d after the softmax, and so every row sums to 1/√d. Divide the scores instead."""
    return (q @ k.mT).softmax(-1) / math.sqrt(q.size(-1))


def keys_not_transposed(q, k):
    """You multiply q by k as it stands, (…, n, d) by (…, m, d), so features meet tokens. Transpose the keys first: k.mT is (…, d, m)."""
    return (q @ k / math.sqrt(q.size(-1))).softmax(-1)


def all_axes_transposed(q, k):
    """You transposed too much. k.T reverses all four axes, and k.transpose(1, 2) swaps heads and tokens. k.mT leaves batch and heads alone."""
    return (q @ k.permute(3, 2, 1, 0) / math.sqrt(q.size(-1))).softmax(-1)


def keys_ask(q, k):
    """Your rows belong to the keys, as if they were asking. The query asks, so q comes first: q @ k.mT."""
    return (k @ q.mT / math.sqrt(q.size(-1))).softmax(-1)


def scaled_by_all_heads(q, k):
    """Your d counts the features of all heads together. Each dot product runs over those of one head, q.size(-1)."""
    return (q @ k.mT / math.sqrt(q.size(-1) * q.size(1))).softmax(-1)


def scaled_by_tokens(q, k):
    """You divide by the root of the number of queries, axis −2. A dot product adds up features: d is on the last axis."""
    return (q @ k.mT / math.sqrt(q.size(-2))).softmax(-1)


def scaled_by_heads(q, k):
    """You divide by the root of the number of heads. A dot product never sees the other heads: its d is q.size(-1)."""
    return (q @ k.mT / math.sqrt(q.size(1))).softmax(-1)


def scaled_for_the_toy(q, k):
    """You divide by √2, the toy's √d. Your queries have more features than two: d is q.size(-1)."""
    return (q @ k.mT / math.sqrt(2)).softmax(-1)


def unscaled(q, k):
    """Right axes, right order, but the scores go in undivided. With many features one key will take the whole row: divide by √d."""
    return (q @ k.mT).softmax(-1)


# 1.3: entropy in bits


def draw_weights(seed: int) -> tuple[Tensor]:
    """Rows of weights, some exactly zero as under a mask; once without other axes, once one large and many tiny."""
    n, m, d = row(seed, SIZES)
    if seed % 4 == 3:
        weights = torch.full((1, BATCH, n, 2**11 + 1), 2.0**-23)
        weights[..., m] = 1 - 2.0**-12
        return (weights,)
    axes = () if seed % 4 == 1 else (BATCH, HEADS)
    q, k = normal(seed, (*axes, n, d), (*axes, m, d))
    mask = torch.rand(n, m, generator=torch.Generator().manual_seed(seed)) > 0.4
    mask[:, 0] = True
    return (attention_weights(3 * q, k, mask),)


def entropy_in_nats(weights):
    """Right formula, wrong unit: that's in nats. For bits take the logarithm to base 2, or divide by ln 2."""
    return torch.special.entr(weights).sum(-1)


def entropy_negative(weights):
    """Your entropy is negative. Weights lie below one, so their logarithms do lie below zero; the minus in front is missing."""
    return -torch.special.entr(weights).sum(-1) / math.log(2)


def entropy_nan_at_zero(weights):
    """You have a NaN where a weight is exactly zero: 0 · log 0 is 0 · −∞. Such a weight should add nothing, and torch.special.entr and xlogy know that."""
    return -(weights * weights.log2()).sum(-1)


def entropy_mean(weights):
    """You average over the keys. Entropy is an average already, with the weights as its shares, so add up."""
    return torch.special.entr(weights).mean(-1) / math.log(2)


def entropy_over_queries(weights):
    """You add up over the queries, axis −2. Each query has its own entropy: add up over its keys, the last axis."""
    return torch.special.entr(weights).sum(-2) / math.log(2)


def entropy_of_everything(weights):
    """You return a single number. Each row is spread in its own way: add up over the last axis only."""
    return torch.special.entr(weights).sum() / math.log(2)


def entropy_shifted_by(constant: float) -> Callable[[Tensor], Tensor]:
    """The mistake of adding a constant inside the logarithm, with the sentence that names it."""

    def shifted(weights):
        return -(weights * (weights + constant).log2()).sum(-1)

    shifted.__doc__ = (
        f"You keep the logarithm from −∞ by adding {constant:g} to the weights. In a row of many weights as small as "
        "that it costs you entropy. Only a weight of exactly zero needs help: torch.special.entr or xlogy."
    )
    return shifted


def entropy_bounded_by(constant: float) -> Callable[[Tensor], Tensor]:
    """The mistake of a lower bound inside the logarithm, with the sentence that names it."""

    def bounded(weights):
        return -(weights * weights.clamp(min=constant).log2()).sum(-1)

    bounded.__doc__ = (
        f"You don't let a weight fall below {constant:g} inside the logarithm. In a row of many smaller ones that costs "
        "you entropy. Only a weight of exactly zero needs help: torch.special.entr or xlogy."
    )
    return bounded


# 1.4: causal attention


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Token i attends to tokens 0 … i. Shape: q, k, v (…, n, d) -> (…, n, d)."""
    return scaled_dot_product_attention(q, k, v, causal_mask(q.size(-2)))


def draw_tokens(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """As many queries as keys; in every second draw the first token's own score is −144."""
    n, _, d = row(seed, SIZES)
    q, k, v = normal(seed, *3 * [(BATCH, HEADS, n, d)])
    if seed % 2:
        q[..., 0, :] *= 12 * d**0.25 / q[..., 0, :].norm(dim=-1, keepdim=True)
        k[..., 0, :] = -q[..., 0, :]
    return q, k, v


def scores_of(q, k):
    """Scaled scores and the causal mask."""
    return q @ k.mT / math.sqrt(q.size(-1)), causal_mask(q.size(-2))


def product_with_the_mask(q, k, v):
    """You multiply the scores by the mask. It's tempting, it's in many a diagram, and a score of 0 still gets weight, since exp 0 = 1. Set hidden scores to −∞."""
    scores, mask = scores_of(q, k)
    return (scores * mask).softmax(-1) @ v


def zero_times_infinity(q, k, v):
    """You switch −∞ off by a factor of 0, and 0 · −∞ is NaN. Fill in −∞ only where a key is hidden: scores.masked_fill(~mask, -math.inf)."""
    scores, mask = scores_of(q, k)
    return (scores + (1 - mask.float()) * -math.inf).softmax(-1) @ v


def filled_with_a_number(q, k, v):
    """You hide keys with a score like −100. That looks safe until a row's visible scores are lower still, and then the hidden keys win. Fill in -math.inf."""
    scores, mask = scores_of(q, k)
    return scores.masked_fill(~mask, -100).softmax(-1) @ v


def zeroed_after_softmax(q, k, v):
    """You zero the weights after the softmax, when the future has already had its share. Your rows sum to less than one. Hide the scores before it."""
    scores, mask = scores_of(q, k)
    return scores.softmax(-1) * mask @ v


def only_the_future(q, k, v):
    """Your triangle is upside down: your tokens attend to the future and not to the past. Row i may attend to columns 0 … i."""
    scores, mask = scores_of(q, k)
    return scores.masked_fill(~mask.mT, -math.inf).softmax(-1) @ v


def one_ahead(q, k, v):
    """Off by one: token i also sees token i + 1, which is just what it should predict. Stop at the diagonal."""
    scores = q @ k.mT / math.sqrt(q.size(-1))
    mask = torch.ones(q.size(-2), q.size(-2), dtype=torch.bool).tril(1)
    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v


def without_itself(q, k, v):
    """You hide the diagonal as well. A token may attend to itself; without that, the first one has nobody and becomes NaN."""
    scores, mask = scores_of(q, k)
    return scores.masked_fill(~mask.tril(-1), -math.inf).softmax(-1) @ v


def hidden_kept(q, k, v):
    """You filled where the mask is True, and here True means “may attend”. So you've hidden the past: fill ~mask."""
    scores, mask = scores_of(q, k)
    return scores.masked_fill(mask, -math.inf).softmax(-1) @ v


def no_mask(q, k, v):
    """No mask yet: every token still sees the future. Put causal_mask(n) to use on the scores."""
    return scaled_dot_product_attention(q, k, v)


def causal_unscaled(q, k, v):
    """Your mask is fine. The scores aren't divided by √d."""
    scores, mask = scores_of(q, k)
    return (scores * math.sqrt(q.size(-1))).masked_fill(~mask, -math.inf).softmax(-1) @ v


def causal_weights_only(q, k, v):
    """You return the weights, (…, n, n). One product to go: let them mix the values."""
    scores, mask = scores_of(q, k)
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


# 1.5: a softmax that does not overflow


def stable_softmax(scores: Tensor) -> Tensor:
    """softmax over the last axis. Shape: (rows, n) -> the same."""
    return scores.softmax(-1)


def draw_large_scores(seed: int) -> tuple[Tensor]:
    """Rows far apart, each with two scores far above its mean; exp overflows beyond 88, in float64 beyond 709."""
    rows, n, _ = row(seed, SIZES)
    (scores,) = normal(seed, (rows + 1, n + 1))
    scores[:, :2] += 300
    return (scores + torch.linspace(-600, 600, rows + 1)[:, None],)


def softmax_with(scores, shift):
    """exp of the shifted scores over its sum."""
    e = (scores - shift).exp()
    return e / e.sum(-1, keepdim=True)


def not_shifted(scores):
    """You take exp of the scores as they are. Beyond 88 that's infinite, and ∞/∞ is NaN. Subtract the row's maximum first."""
    return softmax_with(scores, 0)


def in_float64(scores):
    """float64 moves the ceiling from 88 to 709, and some scores are above that, too. Subtract the row's maximum, and there is no ceiling."""
    return softmax_with(scores.double(), 0)


def shifted_by_the_batch(scores):
    """You subtract the maximum of all rows. In a row far below it every exp becomes 0, and 0/0 is NaN. Each row needs its own."""
    return softmax_with(scores, scores.max())


def shifted_by_the_mean(scores):
    """You subtract the mean, so some scores stay above zero and can still overflow. Which number leaves none above zero?"""
    return softmax_with(scores, scores.mean(-1, keepdim=True))


def shifted_by_the_largest_size(scores):
    """You subtract the largest absolute value. In a row of large negative scores that pushes them further down, until every exp is 0. Take the maximum, sign and all."""
    return softmax_with(scores, scores.abs().amax(-1, keepdim=True))


def shifted_by_columns(scores):
    """You subtract each column's maximum, so the scores of one row move by different amounts, and that changes its softmax. One number for each row."""
    return softmax_with(scores, scores.amax(0))


def over_columns(scores):
    """Your columns sum to one. Each row is a softmax to itself, over the last axis."""
    return scores.softmax(0)


def logarithms(scores):
    """You return the logarithms of the weights. One exp more, and you have the softmax."""
    return scores.log_softmax(-1)


def summed_over_everything(scores):
    """You divide by the sum over everything, so that all rows together sum to one. Each row should: sum(-1, keepdim=True)."""
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    return e / e.sum()


# 1.6: scaled dot-product attention with any mask


def attend(attention: Callable, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Without a mask it is called without one."""
    return attention(q, k, v) if mask is None else attention(q, k, v, mask)


def draw_masked(seed: int) -> tuple[Tensor | None, ...]:
    """In turn: the past without the token itself; no mask; padding, where one token is nobody at all; any mask."""
    n, m, d = row(seed, SIZES)
    m = m if seed % 4 else n
    some = torch.rand(BATCH, HEADS, n, m, generator=torch.Generator().manual_seed(seed)) > 0.4
    some[0, 0, 0] = False
    mask = (
        causal_mask(n).tril(-1),
        None,
        padding_mask(torch.tensor([0, m - 1 if n > 1 else 0]), m)[:, None, None, :],
        some,
    )[seed % 4]
    return *normal(seed, (BATCH, HEADS, n, d), (BATCH, HEADS, m, d), (BATCH, HEADS, m, d + 1)), mask


def masked_scores(q, k, mask):
    """Scaled scores, −∞ where the mask is False."""
    scores = q @ k.mT / math.sqrt(q.size(-1))
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def nan_where_nobody_is_read(q, k, v, mask=None):
    """A row that may attend to nobody came out as NaN: its softmax is 0/0. Nearly everybody forgets that row. Fill in zeros for its weights, after the softmax."""
    return masked_scores(q, k, mask).softmax(-1) @ v


def everybody_where_nobody_is_read(q, k, v, mask=None):
    """You hide keys with a large negative number. In a row where all are hidden they're all equal again, so the row attends to everybody. It should give zeros."""
    return masked_scores(q, k, mask).clamp(min=-1e9).softmax(-1) @ v


def upside_down(q, k, v, mask=None):
    """You read the mask the other way round. Here True means “may attend”, so fill in −∞ where it's False: ~mask."""
    return nan_where_nobody_is_read(q, k, v, None if mask is None else ~mask)


def times_the_mask(q, k, v, mask=None):
    """You multiply the scores by the mask. Hidden ones become 0, and exp 0 = 1, so they keep their weight. Fill in −∞."""
    return (masked_scores(q, k, None) * (1 if mask is None else mask)).softmax(-1) @ v


def weights_times_the_mask(q, k, v, mask=None):
    """You hide the weights, after the softmax, and so your rows sum to less than one. Hide the scores, before it."""
    return masked_scores(q, k, None).softmax(-1) * (1 if mask is None else mask) @ v


def masked_over_queries(q, k, v, mask=None):
    """Your softmax runs over the queries, axis −2. Each query divides its attention among the keys: the last axis."""
    return masked_scores(q, k, mask).softmax(-2).nan_to_num() @ v


def mask_unread(q, k, v, mask=None):
    """You never use the mask, so hidden keys still get attention."""
    return scaled_dot_product_attention(q, k, v)


def mask_needed(q, k, v, mask=None):
    """You need a mask, and sometimes there is none: then mask is None, and ~None is an error. Ask `if mask is not None` first."""
    return scaled_dot_product_attention(q, k, v, ~~mask)


def masked_unscaled(q, k, v, mask=None):
    """Masks and empty rows are right, and that's the hard part. But nothing divides the scores by √d."""
    return scaled_dot_product_attention(q * math.sqrt(q.size(-1)), k, v, mask)


def scaled_by_value_features(q, k, v, mask=None):
    """Your d is the width of v. The dot products run over the features of q and k, and v may be wider: q.size(-1)."""
    return scaled_dot_product_attention(q * math.sqrt(q.size(-1) / v.size(-1)), k, v, mask)


def filled_after_the_values(q, k, v, mask=None):
    """Your output is right, your gradients aren't. NaN weights met v before you cleaned up, and NaN flows back to it. Fill in the zeros before the weights meet v."""
    return (masked_scores(q, k, mask).softmax(-1) @ v).nan_to_num(0)


def infinity_added(q, k, v, mask=None):
    """Your output is right, but you added −∞, and from an empty row NaN flows back through that sum to q and k. masked_fill lets nothing through."""
    scores = masked_scores(q, k, None)
    if mask is not None:
        scores = scores + torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -math.inf)
    return scores.softmax(-1).nan_to_num() @ v


EXERCISES = (
    Exercise(
        id="1.1",
        question="Write the attention weights of one query, shape (d,), over n keys, shape (n, d).",
        difficulty=1,
        minutes=5,
        trains="scores, √d and softmax, without any axis to lose",
        reference=one_query_weights,
        draw=draw_one_query,
        gradients=("query", "keys"),
        mistakes=(
            one_unscaled,
            one_scaled_by_d,
            one_scaled_by_n,
            one_scaled_afterwards,
            one_scaled_up,
            one_without_softmax,
            one_divided_by_sum,
            one_not_normalised,
            one_scaled_for_the_toy,
        ),
        hints=(
            "Three steps: a dot product with each key, a division, a softmax.",
            "keys @ query has the shape (n,), a score for each key. d is query.size(-1).",
            "scores = keys @ query / math.sqrt(query.size(-1)); then return scores.softmax(dim=…)",
        ),
    ),
    Exercise(
        id="1.2",
        question="Write the weights of all queries at once: q (batch, heads, n, d), k (batch, heads, m, d).",
        difficulty=2,
        minutes=8,
        trains="which axis is which: transpose, scale, softmax",
        reference=all_query_weights,
        draw=draw_queries_and_keys,
        gradients=("q", "k"),
        mistakes=(
            softmax_over_queries,
            softmax_over_heads,
            softmax_over_batch,
            scaled_afterwards,
            keys_not_transposed,
            all_axes_transposed,
            keys_ask,
            scaled_by_all_heads,
            scaled_by_tokens,
            scaled_by_heads,
            unscaled,
            scaled_for_the_toy,
        ),
        hints=(
            "The same three steps as in 1.1. One matrix product does all the dot products; which of the two has to be turned?",
            "(…, n, d) @ (…, d, m) gives (…, n, m). k.mT swaps the last two axes and leaves batch and heads alone.",
            "scores = q @ k.mT / math.sqrt(q.size(-1)). Each row is a query that divides its attention among …",
        ),
    ),
    Exercise(
        id="1.3",
        question="Write the entropy in bits of each row of weights (…, n, m); a weight of 0 adds 0.",
        difficulty=2,
        minutes=6,
        trains="measuring how sharp a row of attention is",
        reference=attention_entropy,
        draw=draw_weights,
        mistakes=(
            entropy_in_nats,
            entropy_negative,
            entropy_nan_at_zero,
            entropy_mean,
            entropy_over_queries,
            entropy_of_everything,
            *map(entropy_shifted_by, (1e-5, 1e-6, 1e-7, 1e-8, 1e-9)),
            *map(entropy_bounded_by, (1e-5, 1e-6)),
        ),
        hints=(
            "It's −Σ w · log₂ w over the keys of one query. What happens at w = 0?",
            "log2 of 0 is −∞, and 0 · −∞ is NaN. Those terms have to be 0, and only those.",
            "torch.special.entr(weights) is −w · ln w, and 0 at 0. Sum it over dim=-1; then from nats to bits.",
        ),
    ),
    Exercise(
        id="1.4",
        question="Write causal attention: token i attends to tokens 0 … i. q, k and v are (batch, heads, n, d).",
        difficulty=2,
        minutes=10,
        trains="masks before the softmax, not inside and not after",
        reference=causal_attention,
        draw=draw_tokens,
        gradients=("q", "k", "v"),
        mistakes=(
            product_with_the_mask,
            zero_times_infinity,
            filled_with_a_number,
            zeroed_after_softmax,
            only_the_future,
            one_ahead,
            without_itself,
            hidden_kept,
            no_mask,
            causal_unscaled,
            causal_weights_only,
        ),
        hints=(
            "Which number has an exp of zero? Put it where a score should count for nothing.",
            "causal_mask(n) is (n, n), True where a token may attend. The scores are (batch, heads, n, n); it broadcasts.",
            "scores.masked_fill(~causal_mask(q.size(-2)), -math.inf), then the softmax over keys, then … @ v",
        ),
    ),
    Exercise(
        id="1.5",
        question="Write a softmax over the last axis that survives scores in the hundreds: (rows, n).",
        difficulty=3,
        minutes=8,
        trains="numerical stability",
        reference=stable_softmax,
        draw=draw_large_scores,
        mistakes=(
            not_shifted,
            in_float64,
            shifted_by_the_batch,
            shifted_by_the_mean,
            shifted_by_the_largest_size,
            shifted_by_columns,
            summed_over_everything,
            over_columns,
            logarithms,
        ),
        hints=(
            "You may add the same number to every score of a row without changing its softmax. Which one would help?",
            "scores.amax(dim=-1, keepdim=True) has the shape (rows, 1), so each row loses its own maximum.",
            "e = (scores - scores.amax(dim=-1, keepdim=True)).exp(); return e / e.sum(…)",
        ),
    ),
    Exercise(
        id="1.6",
        question="Write scaled dot-product attention with an optional mask of any shape that broadcasts, True = may attend.",
        difficulty=3,
        minutes=12,
        trains="the whole function, the empty row included",
        reference=scaled_dot_product_attention,
        draw=draw_masked,
        gradients=("q", "k", "v"),
        use=attend,
        part="attention",
        mistakes=(
            nan_where_nobody_is_read,
            everybody_where_nobody_is_read,
            upside_down,
            times_the_mask,
            weights_times_the_mask,
            masked_over_queries,
            mask_unread,
            mask_needed,
            masked_unscaled,
            scaled_by_value_features,
            filled_after_the_values,
            infinity_added,
        ),
        hints=(
            "Take 1.4 with the mask that you're given, or without one if it's None. What becomes of a row of nothing but −∞?",
            "mask.any(dim=-1, keepdim=True) is True for rows that may attend to somebody. It broadcasts as the mask does.",
            "weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1); then weights.masked_fill(…, 0) @ v",
        ),
    ),
)

QUIZ = (
    Question(
        "Row i of the attention map holds …",
        (
            Option(
                "how token i divides its attention among all tokens",
                "A row belongs to the token that attends, and it sums to one.",
                True,
            ),
            Option(
                "how much attention token i gets from every token",
                "That's column i, and a column can sum to anything.",
            ),
            Option(
                "the features of token i",
                "The map is tokens by tokens. By then the features have disappeared into the dot products.",
            ),
            Option(
                "the similarity of token i to all others, so that the map is symmetric",
                "Query and key are different vectors, so i may attend to j without j attending to i. Ask anybody who's been in love.",
            ),
        ),
    ),
    Question(
        "Without the division by √d, at d = 256 and standard normal q and k, …",
        (
            Option(
                "one key takes nearly everything: some queries get hardly any gradient, and a few get a huge one",
                "The scores have a standard deviation of 16, so the choice is made before anything is learned.",
                True,
            ),
            Option(
                "nothing changes, since softmax normalises anyway",
                "Softmax swallows an added constant, but not a factor. A factor changes the temperature.",
            ),
            Option(
                "the rows no longer sum to one",
                "They do. A softmax always does; it's the shares within the row that change.",
            ),
            Option(
                "the scores overflow float32",
                "A few dozen is far from 88. The scores are too sharp, and not too large to compute.",
            ),
        ),
    ),
    Question(
        "Somebody hides keys by softmax(scores · mask) with a mask of zeros and ones. The hidden keys get …",
        (
            Option(
                "weight, as if their score were zero",
                "exp 0 = 1. In the chapter's row the two hidden keys even took four fifths.",
                True,
            ),
            Option("exactly zero weight", "That takes a score of −∞. Zero is a perfectly ordinary score."),
            Option("NaN", "Nothing here is infinite, so there's no NaN to warn you. The mistake is silent."),
            Option(
                "a little weight, too small to matter",
                "In the chapter's row they got more than the visible keys.",
            ),
        ),
    ),
    Question(
        "Why may you subtract the row's maximum before exp?",
        (
            Option(
                "the same factor appears above and below the fraction bar, and cancels",
                "exp(s − c) = exp(s)/exp(c), for every term of the row, so the softmax stays exactly what it was.",
                True,
            ),
            Option(
                "it changes the weights so little that it doesn't matter",
                "It doesn't change them at all, rounding aside.",
            ),
            Option(
                "it centres the scores, which also helps training",
                "Centring would subtract the mean, and then the scores above it can still overflow.",
            ),
            Option(
                "any constant would do; the maximum is only a habit",
                "On paper, yes. On a machine only the maximum keeps every exp at 1 or below, and one of them at 1.",
            ),
        ),
    ),
    Question(
        "n doubles and d stays. The stored attention map …",
        (
            Option(
                "takes four times the memory",
                "It has n × n numbers. That's the wall.",
                True,
            ),
            Option("takes twice the memory", "Queries, keys, values and output do. The map has n² entries."),
            Option(
                "stays the same, since its rows sum to one",
                "A sum of one can be made of any number of shares, and here it's n for each of n rows.",
            ),
            Option("takes 2d times the memory", "The map has no feature axis, so d doesn't come into it."),
        ),
    ),
)
