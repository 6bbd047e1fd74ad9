"""Chapter 09: exercises and quiz."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.attention import (
    attention_weights,
    causal_mask,
    scaled_dot_product_attention,
)
from linformer_from_scratch.efficient import linear_attention, window_mask
from linformer_from_scratch.efficient.linear import elu_plus_one
from linformer_from_scratch.exercises.engine.checking import Exercise
from linformer_from_scratch.exercises.engine.draws import normal, row
from linformer_from_scratch.exercises.engine.quiz import Option, Question

LEADING = ((2, 3), (3,), (2, 3), ())  # axes before those of tokens and features, for each draw


# 9.1: the mask of a sliding window


def draw_window(seed: int) -> tuple[int, int, bool]:
    """Tokens, a window, once of 0, and whether later tokens are hidden."""
    return *row(seed, ((7, 2), (8, 3), (1, 4), (11, 0))), seed % 4 in (1, 2)


def positions(n):
    """The token that reads, in rows, and the one that is read, in columns."""
    return torch.arange(n)[:, None], torch.arange(n)


def one_token_short(n, window, causal):
    """One token is missing on either side: a neighbour exactly `window` away may still be read, so <= and not <."""
    i, j = positions(n)
    return ((i - j).abs() < window) & ((j <= i) | (not causal))


def one_token_more(n, window, causal):
    """Your band is one token too wide on either side: a neighbour is read if it is at most `window` away."""
    return window_mask(n, window + 1, causal)


def window_in_all(n, window, causal):
    """Your band is `window` wide in all; here `window` counts the tokens on either side."""
    return window_mask(n, window // 2, causal)


def all_earlier_ones(n, window, causal):
    """Your rows read all earlier tokens, however far: j - i is negative there, so take the distance, (i - j).abs()."""
    i, j = positions(n)
    near = j - i <= window
    return near & (j <= i) if causal else near


def all_later_ones(n, window, causal):
    """Your rows read all later tokens, however far: i - j is negative there, so take the distance, (i - j).abs()."""
    i, j = positions(n)
    near = i - j <= window
    return near & (j <= i) if causal else near


def later_not_earlier(n, window, causal):
    """Rows and columns are swapped: row i is the token that reads, column j the one that is read, and causal means j <= i."""
    return window_mask(n, window, causal).mT.clone()


def not_itself(n, window, causal):
    """With causal=True, your tokens do not read themselves, and the first one has no other token to read: j <= i, not j < i."""
    i, j = positions(n)
    return window_mask(n, window) & (j < i) if causal else window_mask(n, window)


def never_causal(n, window, causal):
    """Your mask shows later tokens even if causal is True: hide them with & (j <= i)."""
    return window_mask(n, window)


def causal_without_window(n, window, causal):
    """With causal=True, your mask shows all earlier tokens, however far; the window still holds: at most `window` back."""
    return causal_mask(n) if causal else window_mask(n, window)


def always_causal(n, window, causal):
    """You hide later tokens even if causal is False; then the window reaches to both sides."""
    return window_mask(n, window, True)


def what_to_hide(n, window, causal):
    """Your True hides; in this course True means that a token may be read."""
    return ~window_mask(n, window, causal)


def to_be_added(n, window, causal):
    """You return the 0 and -inf that one adds to scores; return booleans, True where j may be read."""
    return torch.zeros(n, n).masked_fill(~window_mask(n, window, causal), -math.inf)


def ones_and_zeros(n, window, causal):
    """You return the numbers 1 and 0; a comparison gives booleans: (i - j).abs() <= window."""
    return window_mask(n, window, causal).float()


# 9.2: Nyström


def nystrom(q: Tensor, k: Tensor, v: Tensor, landmarks: int) -> Tensor:
    """Attention through landmarks, corrected by the pseudoinverse. Shape: q, k (..., n, d), v (..., n, d_v) -> as v."""
    q_mean, k_mean = (x.unflatten(-2, (landmarks, -1)).mean(dim=-2) for x in (q, k))
    correction = torch.linalg.pinv(attention_weights(q_mean, k_mean))
    return attention_weights(q, k_mean) @ correction @ (attention_weights(q_mean, k) @ v)


def draw_landmarks(seed: int) -> tuple[Tensor, Tensor, Tensor, int]:
    """Heads whose windows have a theme each, so that landmarks differ and the middle map is far from singular."""
    landmarks, width, more, d_v = row(seed, ((4, 5, 2, 7), (5, 3, 3, 4), (1, 3, 4, 5), (7, 3, 2, 5)))
    d = landmarks + more
    q, k, v = heads(seed, landmarks * width, d, d_v)
    theme = 4 * torch.eye(landmarks, d).repeat_interleave(width, dim=0)
    return q + theme, k + theme, v, landmarks


def heads(seed: int, n: int, d: int, d_v: int) -> tuple[Tensor, ...]:
    """Queries and keys (..., n, d), values (..., n, d_v), with as many axes before as the seed says."""
    leading = LEADING[seed % len(LEADING)]
    return normal(seed, *2 * [(*leading, n, d)], (*leading, n, d_v))


def means(x, landmarks):
    """The means of windows of neighbours."""
    return x.unflatten(-2, (landmarks, -1)).mean(dim=-2)


def three_factors(q, k, v, q_mean, k_mean, correct=torch.linalg.pinv):
    """Tokens to landmarks, landmarks to each other, corrected, landmarks to tokens."""
    correction = correct(attention_weights(q_mean, k_mean))
    return attention_weights(q, k_mean) @ correction @ (attention_weights(q_mean, k) @ v)


def middle_left_out(q, k, v, landmarks):
    """The middle factor is missing: undo what landmarks read of each other, with the pseudoinverse of that map."""
    return attention_weights(q, means(k, landmarks)) @ (attention_weights(means(q, landmarks), k) @ v)


def middle_not_inverted(q, k, v, landmarks):
    """The middle map mixes the landmarks once more; invert it, so that the mixing is undone: torch.linalg.pinv."""
    return three_factors(q, k, v, means(q, landmarks), means(k, landmarks), lambda middle: middle)


def middle_transposed(q, k, v, landmarks):
    """A transpose undoes rotations only, and a softmax map is not a rotation: take torch.linalg.pinv."""
    return three_factors(q, k, v, means(q, landmarks), means(k, landmarks), lambda middle: middle.mT)


def entries_inverted(q, k, v, landmarks):
    """1 / x inverts every entry by itself; the inverse of a matrix is torch.linalg.pinv."""
    return three_factors(q, k, v, means(q, landmarks), means(k, landmarks), torch.reciprocal)


def landmarks_picked(q, k, v, landmarks):
    """Your landmarks are single tokens, the first of each window; take the mean of the window."""
    width = q.size(-2) // landmarks
    return three_factors(q, k, v, q[..., ::width, :], k[..., ::width, :])


def landmarks_summed(q, k, v, landmarks):
    """Your landmarks are sums, so their scores grow with the window; take means."""
    width = q.size(-2) // landmarks
    return three_factors(q, k, v, width * means(q, landmarks), width * means(k, landmarks))


def landmarks_interleaved(q, k, v, landmarks):
    """Your landmark averages tokens from all over the text; it should average neighbours: unflatten to (landmarks, -1), in this order."""
    q_mean, k_mean = (x.unflatten(-2, (-1, landmarks)).mean(dim=-3) for x in (q, k))
    return three_factors(q, k, v, q_mean, k_mean)


def windows_of_landmarks(q, k, v, landmarks):
    """Your stretches have `landmarks` tokens each; there should be `landmarks` stretches, of n / landmarks tokens each."""
    q_mean, k_mean = (x.unflatten(-2, (-1, landmarks)).mean(dim=-2) for x in (q, k))
    return three_factors(q, k, v, q_mean, k_mean)


def landmarks_of_keys_only(q, k, v, landmarks):
    """Both of your landmarks are means of keys; the rows of a map belong to queries, so Q̃ is made from q."""
    return three_factors(q, k, v, means(k, landmarks), means(k, landmarks))


def landmarks_swapped(q, k, v, landmarks):
    """Your landmarks are swapped: the tokens' queries read K̃, and Q̃ reads the tokens' keys, since queries read keys."""
    left, right = attention_weights(q, means(q, landmarks)), attention_weights(means(k, landmarks), k)
    middle = torch.linalg.pinv(attention_weights(means(q, landmarks), means(k, landmarks)))
    return left @ middle @ (right @ v)


def softmax_of_the_product(q, k, v, landmarks):
    """You approximate the scores and take one softmax of the whole n×n map; each of the three maps has its own softmax."""
    q_mean, k_mean = means(q, landmarks), means(k, landmarks)
    scores = q @ k_mean.mT @ torch.linalg.pinv(q_mean @ k_mean.mT) @ (q_mean @ k.mT)
    return (scores / math.sqrt(q.size(-1))).softmax(dim=-1) @ v


def landmarks_unscaled(q, k, v, landmarks):
    """The scores are not divided by √d; all three maps are attention as in chapter 01."""
    q = q * math.sqrt(q.size(-1))
    return three_factors(q, k, v, means(q, landmarks), means(k, landmarks))


def linformer_by_means(q, k, v, landmarks):
    """That is Linformer with mean pooling, one map and pooled values; here landmarks read all tokens, and the middle factor corrects them."""
    return scaled_dot_product_attention(q, means(k, landmarks), means(v, landmarks))


# 9.3: linear attention


def draw_heads(seed: int) -> tuple[Tensor, ...]:
    """Queries, keys and values of some heads; values have features of their own.

    Of a single token every gradient with respect to q and k is zero, up to rounding: none is drawn.
    """
    return heads(seed, *row(seed, ((7, 4, 5), (5, 6, 8), (2, 5, 4), (9, 4, 7))))


def mix(q, k, v):
    """q (kᵀ v), each row divided by q Σ k."""
    return q @ (k.mT @ v) / (q @ k.sum(dim=-2)[..., None])


def softmax_instead(q, k, v):
    """That is softmax attention; here φ(q)·φ(k) takes the place of exp(q·k / √d)."""
    return scaled_dot_product_attention(q, k, v)


def divided_by_root_d(q, k, v):
    """Leave √d out here: it kept exp in check, and φ grows no faster than its input."""
    return mix(elu_plus_one(q / math.sqrt(q.size(-1))), elu_plus_one(k), v)


def not_divided(q, k, v):
    """Your weights do not sum to one: divide row i by φ(q_i) · Σ φ(k_j)."""
    q, k = elu_plus_one(q), elu_plus_one(k)
    return q @ (k.mT @ v)


def divided_by_tokens(q, k, v):
    """You divide by n; weights sum to one if row i is divided by its own sum, φ(q_i) · Σ φ(k_j)."""
    q, k = elu_plus_one(q), elu_plus_one(k)
    return q @ (k.mT @ v) / q.size(-2)


def elu_alone(q, k, v):
    """The + 1 is missing: elu alone is negative below zero, so weights are, and a divisor may come near zero."""
    return mix(functional.elu(q), functional.elu(k), v)


def relu_instead(q, k, v):
    """You take relu + 1, which is flat below zero, so that all negative entries count alike; elu(x) + 1 is exp(x) there."""
    return mix(q.relu() + 1, k.relu() + 1, v)


def one_inside(q, k, v):
    """The 1 belongs outside: elu(x) + 1 is positive everywhere, elu(x + 1) is not."""
    return mix(functional.elu(q + 1), functional.elu(k + 1), v)


def phi_of_queries_only(q, k, v):
    """φ is missing on the keys: with negative entries there, a weight can be negative."""
    return mix(elu_plus_one(q), k, v)


def phi_of_keys_only(q, k, v):
    """φ is missing on the queries: with negative entries there, a weight can be negative."""
    return mix(q, elu_plus_one(k), v)


def phi_of_the_product(q, k, v):
    """You take φ of q kᵀ, an n×n map; φ of q and of k, each by itself, is what lets the brackets move."""
    scores = elu_plus_one(q @ k.mT)
    return scores / scores.sum(dim=-1, keepdim=True) @ v


def own_key_only(q, k, v):
    """Your divisor is φ(q_i) · φ(k_i) alone; it should be the sum over all keys: φ(q_i) · Σ φ(k_j)."""
    q, k = elu_plus_one(q), elu_plus_one(k)
    return q @ (k.mT @ v) / (q * k).sum(dim=-1, keepdim=True)


def keys_divided(q, k, v):
    """You divide each feature of the keys by its sum; the divisor belongs to a query: φ(q_i) · Σ φ(k_j)."""
    q, k = elu_plus_one(q), elu_plus_one(k)
    return q @ ((k / k.sum(dim=-2, keepdim=True)).mT @ v)


def keys_summed_over_features(q, k, v):
    """k.sum(dim=-1) sums the features of each key; sum the tokens, dim=-2, and one vector of d features is left."""
    q, k = elu_plus_one(q), elu_plus_one(k)
    return q @ (k.mT @ v) / (q @ k.sum(dim=-1)[..., None])


def two_softmaxes(q, k, v):
    """You take two softmaxes, one over the features of q and one over the tokens of k: that is another relative; take φ of both."""
    return q.softmax(dim=-1) @ (k.softmax(dim=-2).mT @ v)


# 9.4: the same, causal


def causal_linear_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Linear attention over the tokens up to one's own. Shape: q, k (..., n, d), v (..., n, d_v) -> as v."""
    return linear_attention(q, k, v, causal=True)


def running(q, k, v):
    """The two running sums: of φ(k) vᵀ, (..., n, d, d_v), and of φ(k), (..., n, d); and φ(q)."""
    q, k = elu_plus_one(q), elu_plus_one(k)
    return q, (k[..., None] * v[..., None, :]).cumsum(dim=-3), k.cumsum(dim=-2)


def read(q, states, sums):
    """What every query reads from the state at its token."""
    return (q[..., None, :] @ states).squeeze(-2) / (q * sums).sum(dim=-1, keepdim=True)


def all_tokens_read(q, k, v):
    """Every token reads later ones too: your sums run over the whole text. Token i needs them as they are at i."""
    return linear_attention(q, k, v)


def divisor_of_all(q, k, v):
    """Your divisor sums later keys as well, so the weights of early tokens sum to less than one: take a running sum there, too."""
    q, states, sums = running(q, k, v)
    return read(q, states, sums[..., -1:, :])


def mixed_from_all(q, k, v):
    """Your divisor is causal, but the values are mixed from the whole text: Σ φ(k) vᵀ must be a running sum, too."""
    q, states, sums = running(q, k, v)
    return read(q, states[..., -1:, :, :], sums)


def own_token_missing(q, k, v):
    """Your sums end before token i; it reads itself as well, and the first token has nothing else to read: 0/0."""
    q, states, sums = running(q, k, v)
    own = elu_plus_one(k)
    return read(q, states - own[..., None] * v[..., None, :], sums - own)


def summed_along_features(q, k, v):
    """cumsum ran along the features; in (…, n, d, d_v) the tokens are dim=-3, in (…, n, d) dim=-2."""
    q, k = elu_plus_one(q), elu_plus_one(k)
    return read(q, (k[..., None] * v[..., None, :]).cumsum(dim=-2), k.cumsum(dim=-1))


def summed_along_features_of_states(q, k, v):
    """Your sum of keys is right, but φ(k) vᵀ has one axis more: in (…, n, d, d_v) the tokens are dim=-3."""
    q, k = elu_plus_one(q), elu_plus_one(k)
    return read(q, (k[..., None] * v[..., None, :]).cumsum(dim=-2), k.cumsum(dim=-2))


def from_the_end(q, k, v):
    """Your sums run from the end, so tokens read later ones; start at the first."""
    return causal_linear_attention(*(x.flip(-2) for x in (q, k, v))).flip(-2)


def query_summed_too(q, k, v):
    """You multiply each key by its own token's query; multiply by φ(q_i) after the sum, so that all keys meet the query of token i."""
    weights = (elu_plus_one(q) * elu_plus_one(k)).sum(dim=-1, keepdim=True)
    return (weights * v).cumsum(dim=-2) / weights.cumsum(dim=-2)


def outputs_averaged(q, k, v):
    """You average the outputs so far; what accumulates is Σ φ(k) vᵀ and Σ φ(k), and each query reads those."""
    count = torch.arange(1, q.size(-2) + 1)[:, None]
    return linear_attention(q, k, v).cumsum(dim=-2) / count


def phi_forgotten(q, k, v):
    """φ is missing: sums of q·k can be zero or negative, and you divide by them."""
    return read(q, (k[..., None] * v[..., None, :]).cumsum(dim=-3), k.cumsum(dim=-2))


def causal_softmax(q, k, v):
    """That is causal softmax attention, which needs all earlier keys again for every token; take φ and running sums."""
    return scaled_dot_product_attention(q, k, v, causal_mask(q.size(-2)))


# 9.5: one step of the online softmax


def online_softmax(
    largest: Tensor, total: Tensor, mixed: Tensor, scores: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The state of every row after one tile more. Shape: scores (n, t), values (t, d) -> (n, 1), (n, 1), (n, d)."""
    new = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
    shrink, weights = (largest - new).exp(), (scores - new).exp()
    return new, shrink * total + weights.sum(dim=-1, keepdim=True), shrink * mixed + weights @ values


def added(new, shrink, total, mixed, weights, values):
    """The old sums, shrunk, and those of the tile."""
    return new, shrink * total + weights.sum(dim=-1, keepdim=True), shrink * mixed + weights @ values


def draw_tile(seed: int) -> tuple[Tensor, ...]:
    """A state, and a tile: at the very start, a row far below zero; half hidden, a row of it altogether; of one row; with large scores."""
    n, t, d = row(seed, ((5, 3, 4), (6, 4, 3), (1, 2, 5), (7, 5, 2)))
    earlier, scores, earlier_values, values = normal(seed, (n, 8), (n, t), (8, d), (t, d))
    if seed % 4 == 0:
        scores[-1] -= 200
        return torch.full((n, 1), -math.inf), torch.zeros(n, 1), torch.zeros(n, d), scores, values
    if seed % 4 == 1:
        scores = scores.masked_fill(torch.ones(n, t, dtype=torch.bool).triu(), -math.inf)
    if seed % 4 == 3:
        earlier, scores = 100 * earlier, 200 * scores
    largest = earlier.amax(dim=-1, keepdim=True)
    weights = (earlier - largest).exp()
    return largest, weights.sum(dim=-1, keepdim=True), weights @ earlier_values, scores, values


def larger(largest, scores):
    """The largest score of each row, the old ones and those of the tile."""
    return torch.maximum(largest, scores.amax(dim=-1, keepdim=True))


def old_sums_kept(largest, total, mixed, scores, values):
    """The old sums were measured from the old maximum: multiply both by exp(largest - new) before you add."""
    new = larger(largest, scores)
    return added(new, 1, total, mixed, (scores - new).exp(), values)


def old_sums_grow(largest, total, mixed, scores, values):
    """The sign is wrong: a larger maximum makes the old terms smaller, by exp(largest - new)."""
    new = larger(largest, scores)
    return added(new, (new - largest).exp(), total, mixed, (scores - new).exp(), values)


def mixed_kept(largest, total, mixed, scores, values):
    """You rescale total but not mixed; both are sums of the same exponentials, so both shrink."""
    new, total, of_tile = online_softmax(largest, total, torch.zeros_like(mixed), scores, values)
    return new, total, mixed + of_tile


def total_kept(largest, total, mixed, scores, values):
    """You rescale mixed but not total; both are sums of the same exponentials, so both shrink."""
    new, of_tile, mixed = online_softmax(largest, torch.zeros_like(total), mixed, scores, values)
    return new, total + of_tile, mixed


def new_sums_shrink(largest, total, mixed, scores, values):
    """You shrink the tile's terms as well; they are measured from the new maximum already, only the old ones are not."""
    new = larger(largest, scores)
    shrink = (largest - new).exp()
    return added(new, shrink, total, mixed, shrink * (scores - new).exp(), values)


def one_maximum_for_all_rows(largest, total, mixed, scores, values):
    """You take one maximum of the whole tile; each row has its own, or rows far below it lose all their terms to exp."""
    new = torch.maximum(largest, scores.amax())
    return added(new, (largest - new).exp(), total, mixed, (scores - new).exp(), values)


def old_maximum_forgotten(largest, total, mixed, scores, values):
    """Your maximum is the tile's; where the old one is larger, keep it: torch.maximum of the two."""
    new = scores.amax(dim=-1, keepdim=True)
    return added(new, (largest - new).exp(), total, mixed, (scores - new).exp(), values)


def measured_from_the_old(largest, total, mixed, scores, values):
    """You measure the tile from the old maximum, which is -inf at the start; find the new one first: exp(scores - new)."""
    new = larger(largest, scores)
    return added(new, (largest - new).exp(), total, mixed, (scores - largest).exp(), values)


def measured_from_the_tile(largest, total, mixed, scores, values):
    """You measure the tile from its own maximum; where the old one is larger the tile's terms shrink as well: exp(scores - new)."""
    new = larger(largest, scores)
    own = scores.amax(dim=-1, keepdim=True)
    return added(new, (largest - new).exp(), total, mixed, (scores - own).exp(), values)


def old_state_forgotten(largest, total, mixed, scores, values):
    """That is the state of this tile alone; the tiles before it count as well: shrink total and mixed, and add to them."""
    return online_softmax(torch.full_like(largest, -math.inf), 0 * total, 0 * mixed, scores, values)


def measured_from_zero(largest, total, mixed, scores, values):
    """The tile's exponentials must be measured from the new maximum, as the old ones are: exp(scores - new)."""
    new = larger(largest, scores)
    return added(new, (largest - new).exp(), total, mixed, scores.exp(), values)


def subtracted_too_late(largest, total, mixed, scores, values):
    """This is right on paper, but exp of a raw score overflows from 89 on: subtract the maximum first, then take exp."""
    new = larger(largest, scores)
    total = total * largest.exp() + scores.exp().sum(dim=-1, keepdim=True)
    mixed = mixed * largest.exp() + scores.exp() @ values
    return new, total / new.exp(), mixed / new.exp()


def divided_early(largest, total, mixed, scores, values):
    """You divide too early: more tiles may come, so mixed stays a sum and is divided once, after the last."""
    new, total, mixed = online_softmax(largest, total, mixed, scores, values)
    return new, total, mixed / total


def axis_lost(largest, total, mixed, scores, values):
    """amax(dim=-1) is (n,), and with (n, 1) that broadcasts to n × n; keepdim=True keeps it (n, 1)."""
    new = torch.maximum(largest, scores.amax(dim=-1))
    return added(new, (largest - new).exp(), total, mixed, (scores - new).exp(), values)


def sums_without_axis(largest, total, mixed, scores, values):
    """sum(dim=-1) is (n,), and with (n, 1) that broadcasts to n × n; keepdim=True keeps it (n, 1)."""
    new, total, mixed = online_softmax(largest, total, mixed, scores, values)
    new_ones = (scores - new).exp()
    return new, total - new_ones.sum(dim=-1, keepdim=True) + new_ones.sum(dim=-1), mixed


def mixed_before_total(largest, total, mixed, scores, values):
    """You return mixed before total; the order is largest, total, mixed."""
    new, total, mixed = online_softmax(largest, total, mixed, scores, values)
    return new, mixed, total


EXERCISES = (
    Exercise(
        id="9.1",
        question="Write the boolean mask, (n, n), of a sliding window: token i may read token j if j is at most `window` tokens away and, if causal, j <= i.",
        difficulty=1,
        minutes=5,
        trains="saying in a mask who reads whom",
        reference=window_mask,
        draw=draw_window,
        mistakes=(
            one_token_short,
            one_token_more,
            window_in_all,
            all_earlier_ones,
            all_later_ones,
            later_not_earlier,
            not_itself,
            never_causal,
            causal_without_window,
            always_causal,
            what_to_hide,
            to_be_added,
            ones_and_zeros,
        ),
        hints=(
            "Write down how far apart tokens i and j are, for all pairs at once; the mask is a comparison.",
            "i = torch.arange(n)[:, None] is (n, 1), j = torch.arange(n) is (n,); i - j is (n, n).",
            "near = (i - j).abs() <= …; return near & (…) if causal else near",
        ),
    ),
    Exercise(
        id="9.2",
        question="Write Nyström attention: each landmark is the mean of n / landmarks neighbours, and the middle factor is the torch.linalg.pinv of a map.",
        difficulty=2,
        minutes=8,
        trains="building summaries from the text itself",
        reference=nystrom,
        draw=draw_landmarks,
        gradients=("q", "k", "v"),
        mistakes=(
            middle_left_out,
            middle_not_inverted,
            middle_transposed,
            entries_inverted,
            landmarks_picked,
            landmarks_summed,
            landmarks_interleaved,
            windows_of_landmarks,
            landmarks_of_keys_only,
            landmarks_swapped,
            softmax_of_the_product,
            landmarks_unscaled,
            linformer_by_means,
        ),
        hints=(
            "Three maps, each a softmax: tokens read landmarks, landmarks read landmarks, landmarks read tokens.",
            "With m landmarks, Q̃ and K̃ are (…, m, d), and the maps (…, n, m), (…, m, m) and (…, m, n).",
            "q_mean = q.unflatten(-2, (landmarks, -1)).mean(dim=-2); attention_weights(q, k_mean) @ torch.linalg.pinv(…) @ …",
        ),
    ),
    Exercise(
        id="9.3",
        question="Write linear attention with φ = elu + 1 and without an n×n map (the check cannot see whether you formed one): q, k (…, n, d), v (…, n, d_v).",
        difficulty=2,
        minutes=6,
        trains="moving the brackets, for the values and for the divisor",
        reference=linear_attention,
        draw=draw_heads,
        gradients=("q", "k", "v"),
        mistakes=(
            softmax_instead,
            divided_by_root_d,
            not_divided,
            divided_by_tokens,
            elu_alone,
            relu_instead,
            one_inside,
            phi_of_queries_only,
            phi_of_keys_only,
            phi_of_the_product,
            own_key_only,
            keys_divided,
            keys_summed_over_features,
            two_softmaxes,
        ),
        hints=(
            "A product of three matrices may be bracketed in two ways. Which one never makes an n×n matrix?",
            "φ(k)ᵀ v is (…, d, d_v). Σ φ(k) over the tokens is (…, d), and φ(q) times this sum is one number for each token.",
            "q, k = functional.elu(q) + 1, functional.elu(k) + 1; return q @ (…) / (q @ k.sum(dim=-2)[..., None])",
        ),
    ),
    Exercise(
        id="9.4",
        question="Make linear attention causal with running sums: token i reads the tokens up to itself; q, k (…, n, d), v (…, n, d_v), φ as in 9.3.",
        difficulty=3,
        minutes=10,
        trains="turning attention into a state that is updated token by token",
        reference=causal_linear_attention,
        draw=draw_heads,
        mistakes=(
            all_tokens_read,
            divisor_of_all,
            mixed_from_all,
            own_token_missing,
            summed_along_features,
            summed_along_features_of_states,
            from_the_end,
            query_summed_too,
            outputs_averaged,
            phi_forgotten,
            causal_softmax,
        ),
        hints=(
            "In 9.3, two sums run over all tokens. Let both stop at token i.",
            "k[..., None] * v[..., None, :] is (…, n, d, d_v), a matrix for each token; the running sum goes along the tokens, dim=-3.",
            "states, sums = (k[..., None] * v[..., None, :]).cumsum(-3), k.cumsum(-2); (q[..., None, :] @ states).squeeze(-2) / …",
        ),
    ),
    Exercise(
        id="9.5",
        question="Take a tile, scores (n, t) and values (t, d), into the online softmax's state: largest and total (n, 1), mixed (n, d).",
        difficulty=3,
        minutes=10,
        trains="taking an exact softmax without ever seeing a whole row",
        reference=online_softmax,
        draw=draw_tile,
        part="online_softmax",
        mistakes=(
            old_sums_kept,
            old_sums_grow,
            mixed_kept,
            total_kept,
            new_sums_shrink,
            one_maximum_for_all_rows,
            old_maximum_forgotten,
            measured_from_the_old,
            measured_from_the_tile,
            old_state_forgotten,
            measured_from_zero,
            subtracted_too_late,
            divided_early,
            axis_lost,
            sums_without_axis,
            mixed_before_total,
        ),
        hints=(
            "Find the new maximum first. total and mixed were measured from the old one: which factor turns one into the other?",
            "The new maximum is (n, 1), with keepdim=True; the tile's exponentials are (n, t), and mix values (t, d) into (n, d).",
            "shrink, weights = (largest - new).exp(), (scores - new).exp(); return new, shrink * total + …, shrink * mixed + …",
        ),
    ),
)

QUIZ = (
    Question(
        "Tiled attention sees one tile of scores at a time. Compared with softmax over whole rows, its output is …",
        (
            Option(
                "the same, to rounding, after one pass",
                "Whenever a larger score comes, the sums so far are rescaled.",
                True,
            ),
            Option(
                "the same, to rounding, after a second pass that knows the maxima",
                "The online softmax saves this second pass: exp(old maximum - new one) corrects what was summed before.",
            ),
            Option(
                "an approximation: each tile has a softmax of its own",
                "The sums of all tiles are rescaled to one maximum, and divided once, after the last tile.",
            ),
            Option(
                "the same, with fewer operations",
                "Every score is computed, with 4n²d operations; tiles save memory.",
            ),
        ),
    ),
    Question(
        "A window reaches 32 tokens to either side, and the text has 1,025. How many layers until the last token can know of the first?",
        (
            Option(
                "32",
                "Each layer carries information at most 32 tokens further, and the two tokens are 1,024 apart.",
                True,
            ),
            Option("1", "One layer reads 32 tokens to either side, and nothing beyond."),
            Option("16", "The window is 65 wide, but only 32 of it lie towards the first token."),
            Option("5", "Each layer adds 32 tokens; the distance does not double."),
            Option(
                "no number is enough",
                "Information passes on: neighbours have read their own neighbours in the layer below.",
            ),
        ),
    ),
    Question(
        "The text becomes four times as long. Which of these then takes eight times as many operations?",
        (
            Option(
                "strided attention in which every token reads √n others",
                "n√n: there are four times as many tokens, and each reads twice as many.",
                True,
            ),
            Option("a sliding window of 64 tokens", "Four times: n · 64."),
            Option("tiled exact attention", "Sixteen times: n², even if no map is stored."),
            Option("linear attention", "Four times: n·d²."),
        ),
    ),
    Question(
        "Performer takes m random features of q and k. The product of two feature vectors is …",
        (
            Option(
                "exp(q·k / √d) on average over draws, with an error that shrinks as m grows",
                "The estimate is right on average, and more features make it spread less.",
                True,
            ),
            Option(
                "exp(q·k / √d) exactly, since the features are positive",
                "Being positive keeps weights from being negative; it does not make them right.",
            ),
            Option(
                "exp(q·k / √d) exactly, as soon as m = d and directions are orthogonal",
                "Orthogonal directions lower the spread; the estimate would be exact only with infinitely many features.",
            ),
            Option(
                "a kernel of its own, which has nothing to do with the softmax",
                "That describes linear attention with elu + 1; Performer aims at the softmax.",
            ),
        ),
    ),
    Question(
        "Which of these can write a text token by token, from a state that does not grow?",
        (
            Option(
                "linear attention",
                "Σ φ(k) vᵀ and Σ φ(k) are all it needs of the past, whatever its length.",
                True,
            ),
            Option(
                "Linformer, which is another name for linear attention",
                "Both are linear in n, but a slot of Linformer mixes in later tokens, too, and E is built for one longest text.",
            ),
            Option(
                "Nyström, since its landmarks come from the text itself",
                "A landmark is a mean that includes later tokens, and it reads all tokens, so Nyström is not causal.",
            ),
            Option(
                "tiled exact attention",
                "It can be causal, but every new token reads all keys before it, so the cache grows.",
            ),
        ),
    ),
)
