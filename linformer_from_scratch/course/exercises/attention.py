"""Exercises of chapter 01."""

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
from linformer_from_scratch.course.exercises.engine.checking import exercise
from linformer_from_scratch.course.exercises.engine.draws import normal, row

BATCH, HEADS = 2, 3
SIZES = ((5, 7, 4), (7, 5, 11), (1, 3, 2), (6, 6, 5))  # queries, keys, features of each draw


def one_query_weights(query: Tensor, keys: Tensor) -> Tensor:
    """softmax(keys · query / √d). Shape: query (d,), keys (n, d) -> (n,)."""
    return attention_weights(query[None], keys)[0]


@exercise("1.1", stars=1, minutes=5, gradients=("query", "keys"))
class OneQuery:
    """The weights of one query."""

    hints = (
        "Three steps: a dot product with each key, a division, a softmax.",
        "keys @ query has the shape (n,), a score for each key. d is query.size(-1).",
        "scores = keys @ query / math.sqrt(query.size(-1)); then return scores.softmax(dim=…)",
    )
    reference = one_query_weights

    def draw(seed):
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


def all_query_weights(q: Tensor, k: Tensor) -> Tensor:
    """softmax(q kᵀ / √d). Shape: q (batch, heads, n, d), k (batch, heads, m, d) -> (batch, heads, n, m)."""
    return attention_weights(q, k)


@exercise("1.2", stars=2, minutes=8, gradients=("q", "k"))
class AllQueries:
    """The weights of all queries, batched and with heads."""

    hints = (
        "The same three steps as in 1.1. One matrix product does all the dot products; which of the two has to be turned?",
        "(…, n, d) @ (…, d, m) gives (…, n, m). k.mT swaps the last two axes and leaves batch and heads alone.",
        "scores = q @ k.mT / math.sqrt(q.size(-1)). Each row is a query that divides its attention among …",
    )
    reference = all_query_weights

    def draw(seed):
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

    def unscaled(q, k):
        """Right axes, right order, but the scores go in undivided. With many features one key will take the whole row: divide by √d."""
        return (q @ k.mT).softmax(-1)

    def scaled_for_the_toy(q, k):
        """You divide by √2, the toy's √d. Your queries have more features than two: d is q.size(-1)."""
        return (q @ k.mT / math.sqrt(2)).softmax(-1)


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


@exercise("1.3", stars=2, minutes=6)
class EntropyInBits:
    """Entropy in bits."""

    hints = (
        "It's −Σ w · log₂ w over the keys of one query. What happens at w = 0?",
        "log2 of 0 is −∞, and 0 · −∞ is NaN. Those terms have to be 0, and only those.",
        "torch.special.entr(weights) is −w · ln w, and 0 at 0. Sum it over dim=-1; then from nats to bits.",
    )
    reference = attention_entropy

    def draw(seed):
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

    shifted = tuple(map(entropy_shifted_by, (1e-5, 1e-6, 1e-7, 1e-8, 1e-9)))
    bounded = tuple(map(entropy_bounded_by, (1e-5, 1e-6)))


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Token i attends to tokens 0 … i. Shape: q, k, v (…, n, d) -> (…, n, d)."""
    return scaled_dot_product_attention(q, k, v, causal_mask(q.size(-2)))


def scores_of(q, k, mask=None):
    """Scaled scores, −∞ where the mask is False."""
    scores = q @ k.mT / math.sqrt(q.size(-1))
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


@exercise("1.4", stars=2, minutes=10, gradients=("q", "k", "v"))
class CausalAttention:
    """Causal attention."""

    hints = (
        "Which number has an exp of zero? Put it where a score should count for nothing.",
        "causal_mask(n) is (n, n), True where a token may attend. The scores are (batch, heads, n, n); it broadcasts.",
        "scores.masked_fill(~causal_mask(q.size(-2)), -math.inf), then the softmax over keys, then … @ v",
    )
    reference = causal_attention

    def draw(seed):
        """As many queries as keys; in every second draw the first token's own score is −144."""
        n, _, d = row(seed, SIZES)
        q, k, v = normal(seed, *3 * [(BATCH, HEADS, n, d)])
        if seed % 2:
            q[..., 0, :] *= 12 * d**0.25 / q[..., 0, :].norm(dim=-1, keepdim=True)
            k[..., 0, :] = -q[..., 0, :]
        return q, k, v

    def product_with_the_mask(q, k, v):
        """You multiply the scores by the mask. It's tempting, it's in many a diagram, and a score of 0 still gets weight, since exp 0 = 1. Set hidden scores to −∞."""
        return (scores_of(q, k) * causal_mask(q.size(-2))).softmax(-1) @ v

    def zero_times_infinity(q, k, v):
        """You switch −∞ off by a factor of 0, and 0 · −∞ is NaN. Fill in −∞ only where a key is hidden: scores.masked_fill(~mask, -math.inf)."""
        return (scores_of(q, k) + (1 - causal_mask(q.size(-2)).float()) * -math.inf).softmax(-1) @ v

    def filled_with_a_number(q, k, v):
        """You hide keys with a score like −100. That looks safe until a row's visible scores are lower still, and then the hidden keys win. Fill in -math.inf."""
        return scores_of(q, k).masked_fill(~causal_mask(q.size(-2)), -100).softmax(-1) @ v

    def zeroed_after_softmax(q, k, v):
        """You zero the weights after the softmax, when the future has already had its share. Your rows sum to less than one. Hide the scores before it."""
        return scores_of(q, k).softmax(-1) * causal_mask(q.size(-2)) @ v

    def only_the_future(q, k, v):
        """Your triangle is upside down: your tokens attend to the future and not to the past. Row i may attend to columns 0 … i."""
        return scores_of(q, k, causal_mask(q.size(-2)).mT).softmax(-1) @ v

    def one_ahead(q, k, v):
        """Off by one: token i also sees token i + 1, which is just what it should predict. Stop at the diagonal."""
        return scores_of(q, k, torch.ones_like(causal_mask(q.size(-2))).tril(1)).softmax(-1) @ v

    def without_itself(q, k, v):
        """You hide the diagonal as well. A token may attend to itself; without that, the first one has nobody and becomes NaN."""
        return scores_of(q, k, causal_mask(q.size(-2)).tril(-1)).softmax(-1) @ v

    def hidden_kept(q, k, v):
        """You filled where the mask is True, and here True means “may attend”. So you've hidden the past: fill ~mask."""
        return scores_of(q, k, ~causal_mask(q.size(-2))).softmax(-1) @ v

    def no_mask(q, k, v):
        """No mask yet: every token still sees the future. Put causal_mask(n) to use on the scores."""
        return scaled_dot_product_attention(q, k, v)

    def causal_unscaled(q, k, v):
        """Your mask is fine. The scores aren't divided by √d."""
        return causal_attention(q * math.sqrt(q.size(-1)), k, v)

    def causal_weights_only(q, k, v):
        """You return the weights, (…, n, n). One product to go: let them mix the values."""
        return scores_of(q, k, causal_mask(q.size(-2))).softmax(-1)


def stable_softmax(scores: Tensor) -> Tensor:
    """softmax over the last axis. Shape: (rows, n) -> the same."""
    return scores.softmax(-1)


def softmax_with(scores, shift):
    """exp of the shifted scores over its sum."""
    e = (scores - shift).exp()
    return e / e.sum(-1, keepdim=True)


@exercise("1.5", stars=3, minutes=8)
class StableSoftmax:
    """A softmax that does not overflow."""

    hints = (
        "You may add the same number to every score of a row without changing its softmax. Which one would help?",
        "scores.amax(dim=-1, keepdim=True) has the shape (rows, 1), so each row loses its own maximum.",
        "e = (scores - scores.amax(dim=-1, keepdim=True)).exp(); return e / e.sum(…)",
    )
    reference = stable_softmax

    def draw(seed):
        """Rows far apart, each with two scores far above its mean; exp overflows beyond 88, in float64 beyond 709."""
        rows, n, _ = row(seed, SIZES)
        (scores,) = normal(seed, (rows + 1, n + 1))
        scores[:, :2] += 300
        return (scores + torch.linspace(-600, 600, rows + 1)[:, None],)

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

    def summed_over_everything(scores):
        """You divide by the sum over everything, so that all rows together sum to one. Each row should: sum(-1, keepdim=True)."""
        e = (scores - scores.amax(-1, keepdim=True)).exp()
        return e / e.sum()

    def over_columns(scores):
        """Your columns sum to one. Each row is a softmax to itself, over the last axis."""
        return scores.softmax(0)

    def logarithms(scores):
        """You return the logarithms of the weights. One exp more, and you have the softmax."""
        return scores.log_softmax(-1)


@exercise("1.6", stars=3, minutes=12, gradients=("q", "k", "v"), part="attention")
class AnyMask:
    """Scaled dot-product attention with any mask."""

    hints = (
        "Take 1.4 with the mask that you're given, or without one if it's None. What becomes of a row of nothing but −∞?",
        "mask.any(dim=-1, keepdim=True) is True for rows that may attend to somebody. It broadcasts as the mask does.",
        "weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1); then weights.masked_fill(…, 0) @ v",
    )
    reference = scaled_dot_product_attention

    def draw(seed):
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

    def use(attention, q, k, v, mask):
        """Without a mask it is called without one."""
        return attention(q, k, v) if mask is None else attention(q, k, v, mask)

    def nan_where_nobody_is_read(q, k, v, mask=None):
        """A row that may attend to nobody came out as NaN: its softmax is 0/0. Nearly everybody forgets that row. Fill in zeros for its weights, after the softmax."""
        return scores_of(q, k, mask).softmax(-1) @ v

    def everybody_where_nobody_is_read(q, k, v, mask=None):
        """You hide keys with a large negative number. In a row where all are hidden they're all equal again, so the row attends to everybody. It should give zeros."""
        return scores_of(q, k, mask).clamp(min=-1e9).softmax(-1) @ v

    def upside_down(q, k, v, mask=None):
        """You read the mask the other way round. Here True means “may attend”, so fill in −∞ where it's False: ~mask."""
        return scores_of(q, k, None if mask is None else ~mask).softmax(-1) @ v

    def times_the_mask(q, k, v, mask=None):
        """You multiply the scores by the mask. Hidden ones become 0, and exp 0 = 1, so they keep their weight. Fill in −∞."""
        return (scores_of(q, k) * (1 if mask is None else mask)).softmax(-1) @ v

    def weights_times_the_mask(q, k, v, mask=None):
        """You hide the weights, after the softmax, and so your rows sum to less than one. Hide the scores, before it."""
        return scores_of(q, k).softmax(-1) * (1 if mask is None else mask) @ v

    def masked_over_queries(q, k, v, mask=None):
        """Your softmax runs over the queries, axis −2. Each query divides its attention among the keys: the last axis."""
        return scores_of(q, k, mask).softmax(-2).nan_to_num() @ v

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
        return (scores_of(q, k, mask).softmax(-1) @ v).nan_to_num(0)

    def infinity_added(q, k, v, mask=None):
        """Your output is right, but you added −∞, and from an empty row NaN flows back through that sum to q and k. masked_fill lets nothing through."""
        scores = scores_of(q, k)
        if mask is not None:
            scores = scores + torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -math.inf)
        return scores.softmax(-1).nan_to_num() @ v
