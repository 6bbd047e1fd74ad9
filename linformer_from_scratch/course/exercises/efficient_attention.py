"""Exercises of chapter 09."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.attention import attention_weights, causal_mask, scaled_dot_product_attention
from linformer_from_scratch.course.exercises.engine.checking import exercise
from linformer_from_scratch.course.exercises.engine.draws import normal, row
from linformer_from_scratch.efficient import linear_attention, window_mask
from linformer_from_scratch.efficient.linear import elu_plus_one

LEADING = ((2, 3), (3,), (2, 3), ())  # axes before those of tokens and features, for each draw


def positions(n):
    """The token that reads, in rows, and the one that is read, in columns."""
    return torch.arange(n)[:, None], torch.arange(n)


@exercise("9.1", stars=1, minutes=5)
class WindowMask:
    """The mask of a sliding window."""

    hints = (
        "How far apart are tokens i and j, for all pairs at once? Once you have that, the mask is a comparison.",
        "i = torch.arange(n)[:, None] is (n, 1), j = torch.arange(n) is (n,); i - j is (n, n).",
        "near = (i - j).abs() <= …; return near & (…) if causal else near",
    )
    reference = window_mask

    def draw(seed):
        """Tokens, a window, once of 0, and whether later tokens are hidden."""
        return *row(seed, ((7, 2), (8, 3), (1, 4), (11, 0))), seed % 4 in (1, 2)

    def one_token_short(n, window, causal):
        """You wrote < where it should be <=: a neighbour exactly `window` away still counts, and yours is missing, on either side."""
        i, j = positions(n)
        return ((i - j).abs() < window) & ((j <= i) | (not causal))

    def one_token_more(n, window, causal):
        """Your band is one token too wide on either side. Try window = 0: each token should see itself and nobody else."""
        return window_mask(n, window + 1, causal)

    def window_in_all(n, window, causal):
        """Your band is `window` wide in all, as some papers count it. Here `window` counts the tokens on each side."""
        return window_mask(n, window // 2, causal)

    def all_earlier_ones(n, window, causal):
        """j - i is negative for every earlier token, so all of them pass your test, however far away: compare the distance, (i - j).abs()."""
        i, j = positions(n)
        near = j - i <= window
        return near & (j <= i) if causal else near

    def all_later_ones(n, window, causal):
        """i - j is negative for every later token, so all of them pass your test, however far away: compare the distance, (i - j).abs()."""
        i, j = positions(n)
        near = i - j <= window
        return near & (j <= i) if causal else near

    def later_not_earlier(n, window, causal):
        """Rows and columns are swapped. Row i is the token that attends, column j the one it attends to, and causal means j <= i."""
        return window_mask(n, window, causal).mT.clone()

    def not_itself(n, window, causal):
        """With causal=True your tokens can't see themselves, and the first one can't see anybody: you want j <= i, not j < i."""
        i, j = positions(n)
        return window_mask(n, window) & (j < i) if causal else window_mask(n, window)

    def never_causal(n, window, causal):
        """You never look at `causal`, so later tokens stay visible. Hide them with & (j <= i)."""
        return window_mask(n, window)

    def causal_without_window(n, window, causal):
        """With causal=True your window is gone and every earlier token is visible. Both conditions hold: j <= i, and at most `window` back."""
        return causal_mask(n) if causal else window_mask(n, window)

    def always_causal(n, window, causal):
        """You hide later tokens even if causal is False. Then the window reaches to both sides."""
        return window_mask(n, window, True)

    def what_to_hide(n, window, causal):
        """Your True means hide. In this course True means that token i may attend to token j, so you have exactly the opposite."""
        return ~window_mask(n, window, causal)

    def to_be_added(n, window, causal):
        """That's the mask one adds to scores, 0 and -inf. Asked for is the boolean one: True where j may be attended to."""
        return torch.zeros(n, n).masked_fill(~window_mask(n, window, causal), -math.inf)

    def ones_and_zeros(n, window, causal):
        """Right pattern, wrong type: you return the numbers 1 and 0. A comparison alone gives booleans: (i - j).abs() <= window."""
        return window_mask(n, window, causal).float()


def nystrom(q: Tensor, k: Tensor, v: Tensor, landmarks: int) -> Tensor:
    """Attention through landmarks, corrected by the pseudoinverse. Shape: q, k (..., n, d), v (..., n, d_v) -> as v."""
    return three_factors(q, k, v, means(q, landmarks), means(k, landmarks))


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


@exercise("9.2", stars=2, minutes=8, gradients=("q", "k", "v"))
class Nystrom:
    """Nyström."""

    hints = (
        "Three maps, each a softmax: tokens attend to landmarks, landmarks to landmarks, landmarks to tokens.",
        "With m landmarks, Q̃ and K̃ are (…, m, d), and the maps (…, n, m), (…, m, m) and (…, m, n).",
        "q_mean = q.unflatten(-2, (landmarks, -1)).mean(dim=-2); attention_weights(q, k_mean) @ torch.linalg.pinv(…) @ …",
    )
    reference = nystrom

    def draw(seed):
        """Heads whose windows have a theme each, so that landmarks differ and the middle map is far from singular."""
        landmarks, width, more, d_v = row(seed, ((4, 5, 2, 7), (5, 3, 3, 4), (1, 3, 4, 5), (7, 3, 2, 5)))
        d = landmarks + more
        q, k, v = heads(seed, landmarks * width, d, d_v)
        theme = 4 * torch.eye(landmarks, d).repeat_interleave(width, dim=0)
        return q + theme, k + theme, v, landmarks

    def middle_left_out(q, k, v, landmarks):
        """You multiply two maps, and the formula has three factors. Between them goes the pseudoinverse of how landmarks attend to each other."""
        return attention_weights(q, means(k, landmarks)) @ (attention_weights(means(q, landmarks), k) @ v)

    def middle_not_inverted(q, k, v, landmarks):
        """Your middle map blurs the landmarks once more. It's there to undo that blur, so invert it: torch.linalg.pinv."""
        return three_factors(q, k, v, means(q, landmarks), means(k, landmarks), lambda middle: middle)

    def middle_transposed(q, k, v, landmarks):
        """You transposed the middle map. That undoes a rotation, and a softmax map isn't one: torch.linalg.pinv."""
        return three_factors(q, k, v, means(q, landmarks), means(k, landmarks), lambda middle: middle.mT)

    def entries_inverted(q, k, v, landmarks):
        """1 / x inverts each entry alone. The inverse of a matrix is another thing: torch.linalg.pinv."""
        return three_factors(q, k, v, means(q, landmarks), means(k, landmarks), torch.reciprocal)

    def landmarks_picked(q, k, v, landmarks):
        """Your landmarks are single tokens, the first of each stretch. A landmark is the mean of its stretch."""
        width = q.size(-2) // landmarks
        return three_factors(q, k, v, q[..., ::width, :], k[..., ::width, :])

    def landmarks_summed(q, k, v, landmarks):
        """You sum each stretch, so scores grow with its length and the softmax sharpens. Take the mean."""
        width = q.size(-2) // landmarks
        return three_factors(q, k, v, width * means(q, landmarks), width * means(k, landmarks))

    def landmarks_interleaved(q, k, v, landmarks):
        """Your landmark averages tokens from all over the text, since unflatten got its sizes in the other order: (landmarks, -1) makes neighbours."""
        q_mean, k_mean = (x.unflatten(-2, (-1, landmarks)).mean(dim=-3) for x in (q, k))
        return three_factors(q, k, v, q_mean, k_mean)

    def windows_of_landmarks(q, k, v, landmarks):
        """You made stretches of `landmarks` tokens. There should be `landmarks` stretches, with n / landmarks tokens each."""
        q_mean, k_mean = (x.unflatten(-2, (-1, landmarks)).mean(dim=-2) for x in (q, k))
        return three_factors(q, k, v, q_mean, k_mean)

    def landmarks_of_keys_only(q, k, v, landmarks):
        """Both of your landmarks are means of keys. Rows of a map belong to queries, so Q̃ must come from q."""
        return three_factors(q, k, v, means(k, landmarks), means(k, landmarks))

    def landmarks_swapped(q, k, v, landmarks):
        """You swapped the two kinds of landmarks. Queries always attend to keys: q goes with K̃, and Q̃ goes with k."""
        left, right = attention_weights(q, means(q, landmarks)), attention_weights(means(k, landmarks), k)
        middle = torch.linalg.pinv(attention_weights(means(q, landmarks), means(k, landmarks)))
        return left @ middle @ (right @ v)

    def softmax_of_the_product(q, k, v, landmarks):
        """You approximate the scores and take one softmax over the whole n×n map, which is the thing to avoid. Each of the three maps has a softmax to itself."""
        q_mean, k_mean = means(q, landmarks), means(k, landmarks)
        scores = q @ k_mean.mT @ torch.linalg.pinv(q_mean @ k_mean.mT) @ (q_mean @ k.mT)
        return (scores / math.sqrt(q.size(-1))).softmax(dim=-1) @ v

    def landmarks_unscaled(q, k, v, landmarks):
        """You forgot √d. All three maps are ordinary attention, so attention_weights from chapter 01 does it for you."""
        q = q * math.sqrt(q.size(-1))
        return three_factors(q, k, v, means(q, landmarks), means(k, landmarks))

    def linformer_by_means(q, k, v, landmarks):
        """That's Linformer with mean pooling: one map, and pooled values. Here landmark queries attend to all tokens first, and the middle factor corrects them."""
        return scaled_dot_product_attention(q, means(k, landmarks), means(v, landmarks))


def draw_heads(seed: int) -> tuple[Tensor, ...]:
    """Queries, keys and values of some heads; values have features of their own.

    Of a single token every gradient with respect to q and k is zero, up to rounding: none is drawn.
    """
    return heads(seed, *row(seed, ((7, 4, 5), (5, 6, 8), (2, 5, 4), (9, 4, 7))))


def mix(q, k, v):
    """q (kᵀ v), each row divided by q Σ k."""
    return q @ (k.mT @ v) / (q @ k.sum(dim=-2)[..., None])


@exercise("9.3", stars=2, minutes=6, gradients=("q", "k", "v"))
class LinearAttention:
    """Linear attention."""

    hints = (
        "You can bracket a product of three matrices in two ways. Which of them never makes an n×n matrix?",
        "φ(k)ᵀ v is (…, d, d_v). For the divisor, sum φ(k) over the tokens, (…, d): φ(q) times this sum is one number per token.",
        "q, k = functional.elu(q) + 1, functional.elu(k) + 1; return q @ (…) / (q @ k.sum(dim=-2)[..., None])",
    )
    reference = linear_attention
    draw = draw_heads

    def softmax_instead(q, k, v):
        """That's ordinary softmax attention. The point is to replace exp(q·k / √d) by φ(q)·φ(k)."""
        return scaled_dot_product_attention(q, k, v)

    def divided_by_root_d(q, k, v):
        """You divide by √d out of habit. It kept exp from exploding; φ grows no faster than its input, so leave it out."""
        return mix(elu_plus_one(q / math.sqrt(q.size(-1))), elu_plus_one(k), v)

    def not_divided(q, k, v):
        """Your weights don't sum to one. Divide row i by its sum of weights, φ(q_i) · Σ φ(k_j)."""
        q, k = elu_plus_one(q), elu_plus_one(k)
        return q @ (k.mT @ v)

    def divided_by_tokens(q, k, v):
        """You divide by n, as if all weights were equal. They aren't: row i needs its own sum, φ(q_i) · Σ φ(k_j)."""
        q, k = elu_plus_one(q), elu_plus_one(k)
        return q @ (k.mT @ v) / q.size(-2)

    def elu_alone(q, k, v):
        """You left out the + 1. Below zero elu is negative, so weights become negative and the divisor may come close to zero."""
        return mix(functional.elu(q), functional.elu(k), v)

    def relu_instead(q, k, v):
        """You used relu + 1, which is flat below zero, so all negative entries look the same. elu(x) + 1 is exp(x) there."""
        return mix(q.relu() + 1, k.relu() + 1, v)

    def one_inside(q, k, v):
        """The 1 slipped inside the brackets: elu(x + 1) can be negative, elu(x) + 1 can't."""
        return mix(functional.elu(q + 1), functional.elu(k + 1), v)

    def phi_of_queries_only(q, k, v):
        """You applied φ to the queries and forgot the keys, where negative entries now give negative weights."""
        return mix(elu_plus_one(q), k, v)

    def phi_of_keys_only(q, k, v):
        """You applied φ to the keys and forgot the queries, where negative entries now give negative weights."""
        return mix(q, elu_plus_one(k), v)

    def phi_of_the_product(q, k, v):
        """You apply φ to q kᵀ, and there's the n×n map again. Apply it to q and to k separately; only then can the brackets move."""
        scores = elu_plus_one(q @ k.mT)
        return scores / scores.sum(dim=-1, keepdim=True) @ v

    def own_key_only(q, k, v):
        """You divide by φ(q_i) · φ(k_i), the weight of one key. Row i needs the sum over all of them: φ(q_i) · Σ φ(k_j)."""
        q, k = elu_plus_one(q), elu_plus_one(k)
        return q @ (k.mT @ v) / (q * k).sum(dim=-1, keepdim=True)

    def keys_divided(q, k, v):
        """You divide each feature of the keys by its sum. The divisor belongs to the query: φ(q_i) · Σ φ(k_j)."""
        q, k = elu_plus_one(q), elu_plus_one(k)
        return q @ ((k / k.sum(dim=-2, keepdim=True)).mT @ v)

    def keys_summed_over_features(q, k, v):
        """k.sum(dim=-1) adds up the features of each key. Add up the tokens, dim=-2, and you keep one vector of d features."""
        q, k = elu_plus_one(q), elu_plus_one(k)
        return q @ (k.mT @ v) / (q @ k.sum(dim=-1)[..., None])

    def two_softmaxes(q, k, v):
        """You take two softmaxes, over the features of q and over the tokens of k. It's a published relative (Efficient Attention), and another one: apply φ to both."""
        return q.softmax(dim=-1) @ (k.softmax(dim=-2).mT @ v)


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


@exercise("9.4", stars=3, minutes=10)
class CausalLinearAttention:
    """The same, causal."""

    hints = (
        "In 9.3 two sums run over all tokens, one in the numerator, one in the divisor. Let both stop at token i.",
        "k[..., None] * v[..., None, :] is (…, n, d, d_v), one matrix per token. Sum along the tokens, dim=-3.",
        "states, sums = (k[..., None] * v[..., None, :]).cumsum(-3), k.cumsum(-2); (q[..., None, :] @ states).squeeze(-2) / …",
    )
    reference = causal_linear_attention
    draw = draw_heads

    def all_tokens_read(q, k, v):
        """Every token still sees later ones, since your sums run over the whole text. Token i needs them as they stand at i."""
        return linear_attention(q, k, v)

    def divisor_of_all(q, k, v):
        """Your numerator is causal and your divisor isn't: it counts later keys, so early weights sum to less than one. Make it a running sum as well."""
        q, states, sums = running(q, k, v)
        return read(q, states, sums[..., -1:, :])

    def running_sums_not_divided(q, k, v):
        """Your values are weighted and summed, but not divided: each row's weights have to sum to one. Divide by φ(q_i) · Σ φ(k), a running sum as well."""
        q, states, _ = running(q, k, v)
        return (q[..., None, :] @ states).squeeze(-2)

    def mixed_from_all(q, k, v):
        """Your divisor is causal and your numerator isn't: Σ φ(k) vᵀ runs over the whole text. Make it a running sum as well."""
        q, states, sums = running(q, k, v)
        return read(q, states[..., -1:, :, :], sums)

    def own_token_missing(q, k, v):
        """Your sums stop just before token i. It may see itself, and the first token has nobody else: there you get 0/0."""
        q, states, sums = running(q, k, v)
        own = elu_plus_one(k)
        return read(q, states - own[..., None] * v[..., None, :], sums - own)

    def summed_along_features(q, k, v):
        """Your cumsum ran along the features. Tokens are dim=-3 in (…, n, d, d_v), and dim=-2 in (…, n, d)."""
        q, k = elu_plus_one(q), elu_plus_one(k)
        return read(q, (k[..., None] * v[..., None, :]).cumsum(dim=-2), k.cumsum(dim=-1))

    def summed_along_features_of_states(q, k, v):
        """Your sum of keys is right. φ(k) vᵀ has one axis more, (…, n, d, d_v), so there the tokens are dim=-3."""
        q, k = elu_plus_one(q), elu_plus_one(k)
        return read(q, (k[..., None] * v[..., None, :]).cumsum(dim=-2), k.cumsum(dim=-2))

    def from_the_end(q, k, v):
        """Your sums start at the end, so each token sees only what comes later. Start at the first."""
        return causal_linear_attention(*(x.flip(-2) for x in (q, k, v))).flip(-2)

    def query_summed_too(q, k, v):
        """You multiply each key by its own token's query before you sum. Sum first, then multiply by φ(q_i), so that all earlier keys meet the query of token i."""
        weights = (elu_plus_one(q) * elu_plus_one(k)).sum(dim=-1, keepdim=True)
        return (weights * v).cumsum(dim=-2) / weights.cumsum(dim=-2)

    def outputs_averaged(q, k, v):
        """You average the outputs so far. What accumulates is Σ φ(k) vᵀ and Σ φ(k), and each query gets its output from those."""
        count = torch.arange(1, q.size(-2) + 1)[:, None]
        return linear_attention(q, k, v).cumsum(dim=-2) / count

    def phi_forgotten(q, k, v):
        """φ is missing, so your running sums of q·k can be zero or negative, and you divide by them."""
        return read(q, (k[..., None] * v[..., None, :]).cumsum(dim=-3), k.cumsum(dim=-2))

    def causal_softmax(q, k, v):
        """That's causal softmax attention, which needs all earlier keys again for every token. Use φ and running sums."""
        return scaled_dot_product_attention(q, k, v, causal_mask(q.size(-2)))


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


def larger(largest, scores):
    """The largest score of each row, the old ones and those of the tile."""
    return torch.maximum(largest, scores.amax(dim=-1, keepdim=True))


@exercise("9.5", stars=3, minutes=10, part="online_softmax")
class OnlineSoftmax:
    """One step of the online softmax."""

    hints = (
        "Find the new maximum first. total and mixed were measured from the old one. By which factor are they off now?",
        "With keepdim=True the new maximum is (n, 1). The tile's exponentials are (n, t), and they mix its values, (t, d), into (n, d).",
        "shrink, weights = (largest - new).exp(), (scores - new).exp(); return new, shrink * total + …, shrink * mixed + …",
    )
    reference = online_softmax

    def draw(seed):
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

    def old_sums_kept(largest, total, mixed, scores, values):
        """You add to the old sums as they are, but they were measured from the old maximum. Multiply both by exp(largest - new) first."""
        new = larger(largest, scores)
        return added(new, 1, total, mixed, (scores - new).exp(), values)

    def old_sums_grow(largest, total, mixed, scores, values):
        """You have the sign the wrong way round. A larger maximum makes the old terms smaller: exp(largest - new)."""
        new = larger(largest, scores)
        return added(new, (new - largest).exp(), total, mixed, (scores - new).exp(), values)

    def mixed_kept(largest, total, mixed, scores, values):
        """You rescale total and forget mixed, the commonest slip here. Both are sums of the same exponentials, so both shrink."""
        new, total, of_tile = online_softmax(largest, total, torch.zeros_like(mixed), scores, values)
        return new, total, mixed + of_tile

    def total_kept(largest, total, mixed, scores, values):
        """You rescale mixed and forget total. Both are sums of the same exponentials, so both shrink."""
        new, of_tile, mixed = online_softmax(largest, torch.zeros_like(total), mixed, scores, values)
        return new, total + of_tile, mixed

    def new_sums_shrink(largest, total, mixed, scores, values):
        """You shrink the tile's own terms as well. They're measured from the new maximum already; only the old ones aren't."""
        new = larger(largest, scores)
        shrink = (largest - new).exp()
        return added(new, shrink, total, mixed, shrink * (scores - new).exp(), values)

    def one_maximum_for_all_rows(largest, total, mixed, scores, values):
        """You take one maximum for the whole tile. Each row has its own, or a row far below the others loses all its terms to exp."""
        new = torch.maximum(largest, scores.amax())
        return added(new, (largest - new).exp(), total, mixed, (scores - new).exp(), values)

    def old_maximum_forgotten(largest, total, mixed, scores, values):
        """Your maximum is the tile's, even where the old one is larger. Take torch.maximum of the two."""
        new = scores.amax(dim=-1, keepdim=True)
        return added(new, (largest - new).exp(), total, mixed, (scores - new).exp(), values)

    def measured_from_the_old(largest, total, mixed, scores, values):
        """You measure the tile from the old maximum, which is -inf at the start. Find the new one first, then exp(scores - new)."""
        new = larger(largest, scores)
        return added(new, (largest - new).exp(), total, mixed, (scores - largest).exp(), values)

    def measured_from_the_tile(largest, total, mixed, scores, values):
        """You measure the tile from its own maximum. Where the old one is larger, the tile's terms must shrink as well: exp(scores - new)."""
        new = larger(largest, scores)
        own = scores.amax(dim=-1, keepdim=True)
        return added(new, (largest - new).exp(), total, mixed, (scores - own).exp(), values)

    def old_state_forgotten(largest, total, mixed, scores, values):
        """You return the state of this tile alone. The tiles before it count as well: shrink total and mixed, and add to them."""
        return online_softmax(torch.full_like(largest, -math.inf), 0 * total, 0 * mixed, scores, values)

    def measured_from_zero(largest, total, mixed, scores, values):
        """You add exp(scores) to sums that were measured from a maximum. Measure the tile from the new one: exp(scores - new)."""
        new = larger(largest, scores)
        return added(new, (largest - new).exp(), total, mixed, scores.exp(), values)

    def subtracted_too_late(largest, total, mixed, scores, values):
        """Right on paper, but exp of a raw score overflows from 89 on. Subtract the maximum first, then take exp."""
        new = larger(largest, scores)
        total = total * largest.exp() + scores.exp().sum(dim=-1, keepdim=True)
        mixed = mixed * largest.exp() + scores.exp() @ values
        return new, total / new.exp(), mixed / new.exp()

    def divided_early(largest, total, mixed, scores, values):
        """You divide too early. More tiles may come, so mixed stays a sum; it's divided once, after the last."""
        new, total, mixed = online_softmax(largest, total, mixed, scores, values)
        return new, total, mixed / total

    def axis_lost(largest, total, mixed, scores, values):
        """amax(dim=-1) has the shape (n,), and against (n, 1) that broadcasts to n × n without a word. keepdim=True keeps it (n, 1)."""
        new = torch.maximum(largest, scores.amax(dim=-1))
        return added(new, (largest - new).exp(), total, mixed, (scores - new).exp(), values)

    def sums_without_axis(largest, total, mixed, scores, values):
        """sum(dim=-1) has the shape (n,), and against (n, 1) that broadcasts to n × n without a word. keepdim=True keeps it (n, 1)."""
        new, total, mixed = online_softmax(largest, total, mixed, scores, values)
        new_ones = (scores - new).exp()
        return new, total - new_ones.sum(dim=-1, keepdim=True) + new_ones.sum(dim=-1), mixed

    def mixed_before_total(largest, total, mixed, scores, values):
        """You return mixed before total. The order is largest, total, mixed."""
        new, total, mixed = online_softmax(largest, total, mixed, scores, values)
        return new, mixed, total
