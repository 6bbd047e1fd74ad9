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
    """The scores go into the softmax undivided; divide them by √d first, or long vectors make it one-hot."""
    return (keys @ query).softmax(-1)


def one_scaled_by_d(query, keys):
    """You divide by d; the scores' standard deviation is √d, so divide by √d."""
    return (keys @ query / len(query)).softmax(-1)


def one_scaled_by_n(query, keys):
    """You divide by the root of the number of keys; what makes scores large is d, the number of features."""
    return (keys @ query / math.sqrt(len(keys))).softmax(-1)


def one_scaled_afterwards(query, keys):
    """√d divides the scores, before the softmax; after it the weights no longer sum to one."""
    return (keys @ query).softmax(-1) / math.sqrt(len(query))


def one_scaled_up(query, keys):
    """You multiply by √d, which makes large scores larger; divide."""
    return (keys @ query * math.sqrt(len(query))).softmax(-1)


def one_without_softmax(query, keys):
    """These are still scores: they can be negative and do not sum to one. Put them through a softmax."""
    return keys @ query / math.sqrt(len(query))


def one_divided_by_sum(query, keys):
    """Dividing scores by their sum gives negative shares when scores are negative; softmax takes exp first."""
    scores = keys @ query / math.sqrt(len(query))
    return scores / scores.sum()


def one_not_normalised(query, keys):
    """exp makes the scores positive, but they must also sum to one: divide by their sum."""
    return (keys @ query / math.sqrt(len(query))).exp()


# 1.2: the weights of all queries, batched and with heads


def all_query_weights(q: Tensor, k: Tensor) -> Tensor:
    """softmax(q kᵀ / √d). Shape: q (batch, heads, n, d), k (batch, heads, m, d) -> (batch, heads, n, m)."""
    return attention_weights(q, k)


def draw_queries_and_keys(seed: int) -> tuple[Tensor, ...]:
    """A batch of heads, with n queries and m keys."""
    n, m, d = row(seed, SIZES)
    return normal(seed, (BATCH, HEADS, n, d), (BATCH, HEADS, m, d))


def softmax_over_queries(q, k):
    """Your columns sum to one, not your rows: each query spreads its weight over the keys, the last axis."""
    return (q @ k.mT / math.sqrt(q.size(-1))).softmax(-2)


def softmax_over_heads(q, k):
    """The softmax runs over the heads; within each head it should run over the keys, the last axis."""
    return (q @ k.mT / math.sqrt(q.size(-1))).softmax(1)


def softmax_over_batch(q, k):
    """The softmax runs over the batch; within each sample it should run over the keys, the last axis."""
    return (q @ k.mT / math.sqrt(q.size(-1))).softmax(0)


def scaled_afterwards(q, k):
    """√d divides the scores, before the softmax; after it the rows no longer sum to one."""
    return (q @ k.mT).softmax(-1) / math.sqrt(q.size(-1))


def keys_not_transposed(q, k):
    """q @ k multiplies features by tokens; transpose the keys first: k.mT is (…, d, m)."""
    return (q @ k / math.sqrt(q.size(-1))).softmax(-1)


def all_axes_transposed(q, k):
    """Swap only the last two axes: k.mT. k.T reverses all four, and k.transpose(1, 2) swaps heads and tokens."""
    return (q @ k.permute(3, 2, 1, 0) / math.sqrt(q.size(-1))).softmax(-1)


def keys_ask(q, k):
    """Your rows belong to keys; they should belong to queries: q comes first, q @ k.mT."""
    return (k @ q.mT / math.sqrt(q.size(-1))).softmax(-1)


def scaled_by_all_heads(q, k):
    """√d counts the features of one head, q.size(-1), not those of all heads together."""
    return (q @ k.mT / math.sqrt(q.size(-1) * q.size(1))).softmax(-1)


def scaled_by_tokens(q, k):
    """You divide by the root of the number of queries; d is the number of features, q.size(-1)."""
    return (q @ k.mT / math.sqrt(q.size(-2))).softmax(-1)


def scaled_by_heads(q, k):
    """You divide by the root of the number of heads; d is the number of features, q.size(-1)."""
    return (q @ k.mT / math.sqrt(q.size(1))).softmax(-1)


def unscaled(q, k):
    """The scores are not divided by √d; compare what happens at d = 256 in the section above."""
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
    """This is the entropy in nats; bits need the logarithm to base 2."""
    return torch.special.entr(weights).sum(-1)


def entropy_negative(weights):
    """The sign is missing: logarithms of numbers below one are negative, so entropy is minus the sum."""
    return -torch.special.entr(weights).sum(-1) / math.log(2)


def entropy_nan_at_zero(weights):
    """A masked key gives 0 · log 0 = NaN, but a weight of zero adds nothing: torch.special.entr and xlogy know that."""
    return -(weights * weights.log2()).sum(-1)


def entropy_mean(weights):
    """Sum over the keys, do not average: the weights already are the probabilities of the average."""
    return torch.special.entr(weights).mean(-1) / math.log(2)


def entropy_over_queries(weights):
    """You sum over the queries; every query has an entropy of its own, so sum over the last axis."""
    return torch.special.entr(weights).sum(-2) / math.log(2)


def entropy_of_everything(weights):
    """This is one number for all rows; every query has an entropy of its own: sum over the last axis only."""
    return torch.special.entr(weights).sum() / math.log(2)


def entropy_shifted_by(constant: float) -> Callable[[Tensor], Tensor]:
    """The mistake of adding a constant inside the logarithm, with the sentence that names it."""

    def shifted(weights):
        return -(weights * (weights + constant).log2()).sum(-1)

    shifted.__doc__ = (
        f"You take the logarithm of w + {constant:g}, which lowers the entropy of a row with many weights as "
        "small as that. Only a weight of exactly zero needs care: torch.special.entr or xlogy."
    )
    return shifted


def entropy_bounded_by(constant: float) -> Callable[[Tensor], Tensor]:
    """The mistake of a lower bound inside the logarithm, with the sentence that names it."""

    def bounded(weights):
        return -(weights * weights.clamp(min=constant).log2()).sum(-1)

    bounded.__doc__ = (
        f"Your logarithm never falls below that of {constant:g}, which lowers the entropy of a row with many weights "
        "smaller than that. Only a weight of exactly zero needs care: torch.special.entr or xlogy."
    )
    return bounded


# 1.4: causal attention


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Token i reads tokens 0 … i. Shape: q, k, v (…, n, d) -> (…, n, d)."""
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
    """Multiplying by 0 makes a score 0, and exp 0 = 1: hidden keys still get weight. Set them to −∞."""
    scores, mask = scores_of(q, k)
    return (scores * mask).softmax(-1) @ v


def zero_times_infinity(q, k, v):
    """0 · −∞ is NaN, so a factor cannot switch −∞ off; fill the hidden scores: scores.masked_fill(~mask, -math.inf)."""
    scores, mask = scores_of(q, k)
    return (scores + (1 - mask.float()) * -math.inf).softmax(-1) @ v


def filled_with_a_number(q, k, v):
    """−100 is not −∞: where the visible scores are lower still, the hidden keys win. Fill with -math.inf."""
    scores, mask = scores_of(q, k)
    return scores.masked_fill(~mask, -100).softmax(-1) @ v


def zeroed_after_softmax(q, k, v):
    """Zeroing after the softmax leaves rows that sum to less than one; hide the scores before it."""
    scores, mask = scores_of(q, k)
    return scores.softmax(-1) * mask @ v


def only_the_future(q, k, v):
    """The mask is upside down: token i must read the past, columns 0 … i, not the future."""
    scores, mask = scores_of(q, k)
    return scores.masked_fill(~mask.mT, -math.inf).softmax(-1) @ v


def one_ahead(q, k, v):
    """Token i also reads token i + 1, the next one: what it may read ends on the diagonal."""
    scores = q @ k.mT / math.sqrt(q.size(-1))
    mask = torch.ones(q.size(-2), q.size(-2), dtype=torch.bool).tril(1)
    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v


def without_itself(q, k, v):
    """A token may read itself: keep the diagonal, or the first row has nothing to attend to and becomes NaN."""
    scores, mask = scores_of(q, k)
    return scores.masked_fill(~mask.tril(-1), -math.inf).softmax(-1) @ v


def hidden_kept(q, k, v):
    """masked_fill fills where the mask is True; ours is True where a token may be read, so fill ~mask."""
    scores, mask = scores_of(q, k)
    return scores.masked_fill(mask, -math.inf).softmax(-1) @ v


def no_mask(q, k, v):
    """Every token still reads the future; apply causal_mask(n) to the scores."""
    return scaled_dot_product_attention(q, k, v)


def causal_unscaled(q, k, v):
    """The mask is right, but the scores are not divided by √d."""
    scores, mask = scores_of(q, k)
    return (scores * math.sqrt(q.size(-1))).masked_fill(~mask, -math.inf).softmax(-1) @ v


def causal_weights_only(q, k, v):
    """These are the weights, (…, n, n); one product is missing: let them mix the values."""
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
    """exp of scores in the hundreds is infinite, and ∞/∞ is NaN; subtract the row's maximum first."""
    return softmax_with(scores, 0)


def in_float64(scores):
    """float64 only moves the limit from 88 to 709; subtract the row's maximum, and there is none."""
    return softmax_with(scores.double(), 0)


def shifted_by_the_batch(scores):
    """You subtract the maximum of the whole batch; in rows far below it every exp becomes 0, and 0/0 is NaN."""
    return softmax_with(scores, scores.max())


def shifted_by_the_mean(scores):
    """Subtracting the mean leaves scores above zero, which can still overflow; only the maximum is safe."""
    return softmax_with(scores, scores.mean(-1, keepdim=True))


def shifted_by_the_largest_size(scores):
    """You subtract the largest absolute value; where all scores are far below zero every exp becomes 0, and 0/0 is NaN."""
    return softmax_with(scores, scores.abs().amax(-1, keepdim=True))


def shifted_by_columns(scores):
    """You subtract each column's maximum, so different amounts within one row, which changes its softmax."""
    return softmax_with(scores, scores.amax(0))


def over_columns(scores):
    """Your columns sum to one; each row is a softmax of its own, over the last axis."""
    return scores.softmax(0)


def logarithms(scores):
    """These are the logarithms of the weights; exp of them is the softmax."""
    return scores.log_softmax(-1)


def summed_over_everything(scores):
    """The sum runs over all rows; every row must sum to one on its own: sum(-1, keepdim=True)."""
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
    """The softmax of a row of −∞ is 0/0 = NaN: where nothing may be read, the weights must be zeros. Fill them in after the softmax."""
    return masked_scores(q, k, mask).softmax(-1) @ v


def everybody_where_nobody_is_read(q, k, v, mask=None):
    """A large negative number hides a key only beside larger scores; a row of nothing else reads all keys evenly. It must give zeros."""
    return masked_scores(q, k, mask).clamp(min=-1e9).softmax(-1) @ v


def upside_down(q, k, v, mask=None):
    """The mask is upside down: True means that a token may be read, so fill the scores where it is False, ~mask."""
    return nan_where_nobody_is_read(q, k, v, None if mask is None else ~mask)


def times_the_mask(q, k, v, mask=None):
    """Multiplying scores by the mask makes hidden ones 0, and exp 0 = 1: they keep weight. Fill them with −∞."""
    return (masked_scores(q, k, None) * (1 if mask is None else mask)).softmax(-1) @ v


def weights_times_the_mask(q, k, v, mask=None):
    """Hiding after the softmax leaves rows that sum to less than one; hide the scores, before it."""
    return masked_scores(q, k, None).softmax(-1) * (1 if mask is None else mask) @ v


def masked_over_queries(q, k, v, mask=None):
    """Your softmax runs over the queries; each query spreads its weight over the keys, the last axis."""
    return masked_scores(q, k, mask).softmax(-2).nan_to_num() @ v


def mask_unread(q, k, v, mask=None):
    """The mask is not used: hidden keys are still read."""
    return scaled_dot_product_attention(q, k, v)


def mask_needed(q, k, v, mask=None):
    """mask is None where everything may be read, and None cannot be inverted: ask `if mask is not None` first."""
    return scaled_dot_product_attention(q, k, v, ~~mask)


def masked_unscaled(q, k, v, mask=None):
    """Masks and empty rows are right, but the scores are not divided by √d."""
    return scaled_dot_product_attention(q * math.sqrt(q.size(-1)), k, v, mask)


def scaled_by_value_features(q, k, v, mask=None):
    """You divide by the root of the features of v; the dot products run over those of q and k: q.size(-1)."""
    return scaled_dot_product_attention(q * math.sqrt(q.size(-1) / v.size(-1)), k, v, mask)


def filled_after_the_values(q, k, v, mask=None):
    """The values are right, but NaN weights met v, and NaN flows back to it: fill the weights with zeros before they meet v."""
    return (masked_scores(q, k, mask).softmax(-1) @ v).nan_to_num(0)


def infinity_added(q, k, v, mask=None):
    """The values are right, but where −∞ was added NaN flows back to q and k from an empty row; masked_fill stops it."""
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
        ),
        hints=(
            "Three steps: one dot product for each key, divide, softmax.",
            "keys @ query has shape (n,): one score for each key. d is query.size(-1).",
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
        ),
        hints=(
            "The same three steps as in 1.1; a matrix product does all dot products at once.",
            "(…, n, d) @ (…, d, m) gives (…, n, m). k.mT swaps the last two axes and leaves batch and heads.",
            "scores = q @ k.mT / math.sqrt(q.size(-1)); rows are queries, so the softmax runs over the axis of …",
        ),
    ),
    Exercise(
        id="1.3",
        question="Write the entropy in bits of each row of weights (…, n, m); a weight of 0 adds 0.",
        difficulty=2,
        minutes=6,
        trains="reading how sharp a row of attention is",
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
            "Entropy is −Σ w · log₂ w over the keys of one query.",
            "Input (…, n, m), output (…, n). log2 of 0 is −∞, and 0 · −∞ is NaN: those terms must be 0.",
            "torch.special.entr(weights) is −w · ln w with 0 at 0; sum it over dim=-1 and divide by ln 2.",
        ),
    ),
    Exercise(
        id="1.4",
        question="Write causal attention: token i reads tokens 0 … i. q, k and v are (batch, heads, n, d).",
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
            "Which number, put in place of a score, has exp equal to zero?",
            "causal_mask(n) is (n, n) and True where a token may be read; scores are (batch, heads, n, n).",
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
            "Adding the same number to every score of a row leaves its softmax as it was. Which number helps?",
            "scores.amax(dim=-1, keepdim=True) has shape (rows, 1), so it is subtracted row by row.",
            "e = (scores - scores.amax(dim=-1, keepdim=True)).exp(); return e / e.sum(…)",
        ),
    ),
    Exercise(
        id="1.6",
        question="Write scaled dot-product attention with an optional mask of any shape that broadcasts, True = may be read.",
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
            "Take 1.4 with the mask that you are given, or without one if it is None. What becomes of a row of −∞?",
            "mask.any(dim=-1, keepdim=True) is True where a row may read something; it broadcasts as the mask does.",
            "weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1); then weights.masked_fill(…, 0) @ v",
        ),
    ),
)

QUIZ = (
    Question(
        "Row i of the attention map holds …",
        (
            Option(
                "how much token i reads from every token",
                "Rows are queries, and each row sums to one.",
                True,
            ),
            Option(
                "how much every token reads from token i", "That is column i. Columns need not sum to one."
            ),
            Option("the features of token i", "The map has no feature axis: it is tokens by tokens."),
            Option(
                "the similarity of token i to all others, so that the map is symmetric",
                "q and k differ, so i may read j without j reading i.",
            ),
        ),
    ),
    Question(
        "Without the division by √d, at d = 256 and standard normal q and k, …",
        (
            Option(
                "the softmax is nearly one-hot: most rows of weights hardly change when a score changes, and a few change violently",
                "The scores' standard deviation is 16, and one key takes almost everything.",
                True,
            ),
            Option(
                "nothing changes, since softmax normalises anyway",
                "Softmax ignores an added constant, not a factor: the factor is an inverse temperature.",
            ),
            Option("the rows no longer sum to one", "They do: softmax always sums to one."),
            Option(
                "the scores overflow float32",
                "Scores of a few dozen are far from overflow; they are only too sharp.",
            ),
        ),
    ),
    Question(
        "Somebody hides keys by softmax(scores · mask) with a mask of zeros and ones. The hidden keys get …",
        (
            Option(
                "weight, as if their score were zero",
                "A score of zero still gives exp 0 = 1, and the hidden keys together can even get most of the weight.",
                True,
            ),
            Option("exactly zero weight", "Only a score of −∞ gives exactly zero."),
            Option("NaN", "Nothing here is infinite, so nothing becomes NaN: the error is silent."),
            Option(
                "a little weight, too small to matter",
                "The table in the chapter gives hidden keys most of the row.",
            ),
        ),
    ),
    Question(
        "Why may you subtract the row's maximum before exp?",
        (
            Option(
                "numerator and denominator are divided by the same factor, which cancels, so the softmax is unchanged",
                "Because exp(s − c) = exp(s)/exp(c), and exp(c) cancels.",
                True,
            ),
            Option(
                "it changes the weights so little that it does not matter", "It does not change them at all."
            ),
            Option(
                "it centres the scores, which also helps training",
                "Centring would be the mean, and that can overflow.",
            ),
            Option(
                "any constant would serve as well; the maximum is only a habit",
                "Any constant is right on paper; the maximum alone keeps exp ≤ 1.",
            ),
        ),
    ),
    Question(
        "n doubles and d stays. The stored attention map …",
        (
            Option(
                "takes four times the memory",
                "The map has n × n numbers. This is the wall that Linformer removes.",
                True,
            ),
            Option("takes twice the memory", "q, k, v and the output double; the map has n² entries."),
            Option(
                "stays the same, since its rows sum to one",
                "Sums say nothing about how many numbers are stored.",
            ),
            Option("takes 2d times the memory", "The map has no feature axis, so d does not enter."),
        ),
    ),
)
