"""Chapter 06: exercises and quiz."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.exercises.draws import normal
from linformer_from_scratch.exercises.engine import Exercise
from linformer_from_scratch.exercises.quiz import Option, Question
from linformer_from_scratch.heads import merge_heads, split_heads
from linformer_from_scratch.linformer import linformer_attention

BATCH, HEADS = 2, 3
SIZES = ((7, 4, 5), (5, 6, 4), (1, 2, 3), (9, 8, 6))  # tokens, slots, features of a head, for each draw


# 6.1: Linformer attention


def draw_attention(seed: int) -> tuple[Tensor, ...]:
    """Queries, keys, values of a batch of heads, and E and F."""
    n, slots, d = SIZES[seed % len(SIZES)]
    return normal(seed, *3 * [(BATCH, HEADS, n, d)], (slots, n), (slots, n))


def attend(q, keys, values):
    """Softmax(q keysᵀ / √d) values."""
    return (q @ keys.mT / math.sqrt(q.size(-1))).softmax(-1) @ values


def E_on_features(q, k, v, E, F):
    """k @ E.mT multiplies E with the features; E mixes tokens, so it stands on the left: E @ k."""
    return attend(q, k @ E.mT, v @ F.mT)


def E_transposed(q, k, v, E, F):
    """E is (proj_dim, n) here, so E @ k fits as it is; with .mT you use the other convention, n × proj_dim."""
    return attend(q, E.mT @ k, F.mT @ v)


def E_and_F_swapped(q, k, v, E, F):
    """E and F are swapped: E compresses the keys, F the values."""
    return attend(q, F @ k, E @ v)


def E_for_both(q, k, v, E, F):
    """Your values are compressed by E as well; F is theirs, unless the two are the same object."""
    return attend(q, E @ k, E @ v)


def values_not_compressed(q, k, v, E, F):
    """Your map is n × proj_dim, so it cannot mix n values; compress the values too: F @ v."""
    return attend(q, E @ k, v)


def softmax_over_tokens(q, k, v, E, F):
    """Your columns sum to one; every query shares itself out over the slots, the last axis."""
    return (q @ (E @ k).mT / math.sqrt(q.size(-1))).softmax(-2) @ (F @ v)


def scaled_by_slots(q, k, v, E, F):
    """You divide by the root of proj_dim; what makes dot products large is d, the features: q.size(-1)."""
    return (q @ (E @ k).mT / math.sqrt(E.size(0))).softmax(-1) @ (F @ v)


def linformer_unscaled(q, k, v, E, F):
    """The scores are not divided by √d; compressed keys have d features like any others."""
    return (q @ (E @ k).mT).softmax(-1) @ (F @ v)


# 6.2: an E that keeps chosen tokens


def keep_tokens(keep: Tensor, n: int) -> Tensor:
    """Row i of E picks token keep[i]. Shape: keep (m,) of integers -> (m, n)."""
    return torch.eye(n)[keep]


def draw_tokens_to_keep(seed: int) -> tuple[Tensor, int]:
    """Some tokens, in an order of their own, and how many there are in all."""
    n = (7, 5, 3, 11)[seed % 4]
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    return order[: max(2, n // 2)], n


def kept_columns(keep, n):
    """That is n × m: E has one row for each slot and one column for each token. Index rows of the identity."""
    return torch.eye(n)[:, keep]


def zeros_on_the_diagonal(keep, n):
    """Zeroed keys are not hidden: a score of 0 still gets weight, since exp 0 = 1. Leave their rows out altogether."""
    return torch.diag(torch.zeros(n).index_fill(0, keep, 1.0))


def all_in_every_slot(keep, n):
    """Every slot holds the mean of the kept tokens; slot i should hold one of them, token keep[i]."""
    return torch.zeros(n).index_fill(0, keep, 1 / len(keep)).expand(len(keep), n).clone()


def first_tokens(keep, n):
    """That keeps the first m tokens; which ones to keep stands in `keep`."""
    return torch.eye(n)[: len(keep)]


def in_the_order_of_the_text(keep, n):
    """Attention would not notice, but slot i should hold token keep[i]; yours stand in the order of the text."""
    return torch.eye(n)[keep.sort().values]


def shared_out(keep, n):
    """Each row picks a whole token, so its one entry is 1, not 1/m: a smaller key has smaller scores."""
    return torch.eye(n)[keep] / len(keep)


def dropped_instead(keep, n):
    """These are the tokens to drop; keep the others."""
    return torch.eye(n)[[i for i in range(n) if i not in keep.tolist()]]


# 6.3: the bug, mended


def compress_length(x: Tensor, weight: Tensor) -> Tensor:
    """What Linear(n, proj_dim) makes of the sequence axis. Shape: (batch, heads, n, d) -> (…, proj_dim, d)."""
    return functional.linear(x.mT, weight).mT


def draw_length(seed: int) -> tuple[Tensor, ...]:
    """A batch of heads, and the weight of Linear(n, proj_dim)."""
    n, slots, d = SIZES[seed % len(SIZES)]
    return normal(seed, (BATCH, HEADS, n, d), (slots, n))


def linear_on_features(x, weight):
    """A linear layer acts on the last axis, and that is the features. Bring the tokens there first: x.mT."""
    return functional.linear(x, weight)


def not_turned_back(x, weight):
    """Right numbers, wrong way round: after the linear layer, turn the axes back, or features stand where slots should."""
    return functional.linear(x.mT, weight)


def reshaped(x, weight):
    """reshape keeps the order of the numbers and so mixes tokens with features; a transpose does not: x.mT."""
    turned = x.reshape(*x.shape[:2], x.size(-1), x.size(-2))
    return functional.linear(turned, weight).mT


def reshaped_back(x, weight):
    """The way there is right; on the way back, reshape mixes slots with features. Use .mT again."""
    turned = functional.linear(x.mT, weight)
    return turned.reshape(*x.shape[:2], weight.size(0), x.size(-1))


def along_heads(x, weight):
    """You brought the heads to the end, not the tokens; swap the last two axes: x.mT."""
    return functional.linear(x.transpose(1, 3), weight).transpose(1, 3)


# 6.4: several heads


def multi_head_linformer(
    x: Tensor,
    w_query: Tensor,
    w_key: Tensor,
    w_value: Tensor,
    w_output: Tensor,
    E: Tensor,
    F: Tensor,
    num_heads: int,
) -> Tensor:
    """Linformer in every head. Shape: x (batch, n, d_model) -> the same; weights multiply from the right."""
    q, k, v = (split_heads(x @ w, num_heads) for w in (w_query, w_key, w_value))
    return merge_heads(linformer_attention(q, k, v, E, F)) @ w_output


def draw_layer(seed: int) -> tuple:
    """A batch of tokens, four weight matrices, E, F and the number of heads."""
    n, slots, d_head = SIZES[seed % len(SIZES)]
    heads = (3, 2, 5, 2)[seed % 4]
    d = heads * d_head
    drawn = normal(seed, (BATCH, n, d), *4 * [(d, d)], *2 * [(slots, n)])
    return drawn[0], *(w / math.sqrt(d) for w in drawn[1:5]), *drawn[5:], heads


def one_wide_head(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    """One head of all features: cut q, k and v into heads first, split_heads(x @ w, num_heads)."""
    return linformer_attention(x @ w_query, x @ w_key, x @ w_value, E, F) @ w_output


def heads_not_mixed(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    """The last step is missing: after merging, w_output mixes the heads."""
    return multi_head_linformer(x, w_query, w_key, w_value, torch.eye(len(w_output)), E, F, num_heads)


def weights_from_the_left(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    """These weights multiply from the right, x @ w; you transposed them, as nn.Linear keeps its own."""
    return multi_head_linformer(x, w_query.mT, w_key.mT, w_value.mT, w_output.mT, E, F, num_heads)


def merged_by_reshape(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    """Merging by reshape alone joins features of different tokens; bring heads and features together first, as merge_heads does."""
    q, k, v = (split_heads(x @ w, num_heads) for w in (w_query, w_key, w_value))
    return linformer_attention(q, k, v, E, F).reshape(x.shape) @ w_output


def queries_compressed_too(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    """Your queries are compressed as well, so proj_dim rows come out instead of n; only keys and values go through E and F."""
    q, k, v = (split_heads(x @ w, num_heads) for w in (w_query, w_key, w_value))
    return merge_heads(linformer_attention(E @ q, k, v, E, F)) @ w_output


def E_in_both_places(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    """Your values are compressed by E as well; F is theirs."""
    return multi_head_linformer(x, w_query, w_key, w_value, w_output, E, E, num_heads)


def scaled_by_the_model(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    """√d counts the features of one head, d_head, not all d_model of them."""
    return multi_head_linformer(x, w_query / math.sqrt(num_heads), w_key, w_value, w_output, E, F, num_heads)


# 6.5: a bias in the cheap order


def keys_with_bias(slots: Tensor, weight: Tensor, bias: Tensor, E: Tensor) -> Tensor:
    """E (X W + 1 bᵀ) from slots = E X. Shape: slots (batch, proj_dim, d), weight (d, m), E (proj_dim, n) -> (…, proj_dim, m)."""
    return slots @ weight + E.sum(-1, keepdim=True) * bias


def draw_bias(seed: int) -> tuple[Tensor, ...]:
    """Compressed tokens, a weight, a bias, and the E that compressed them."""
    n, slots, d = SIZES[seed % len(SIZES)]
    x, weight, bias, E = normal(seed, (BATCH, n, d), (d, d + 1), (d + 1,), (slots, n))
    return E @ x, weight, bias, E


def bias_as_it_is(slots, weight, bias, E):
    """(EX)W + b is what you get by compressing first and changing nothing; E mixes the biases too, and its rows do not sum to one."""
    return slots @ weight + bias


def bias_forgotten(slots, weight, bias, E):
    """The bias is missing: E (X W + 1 bᵀ) = (E X) W + (E 1) bᵀ."""
    return slots @ weight


def bias_times_tokens(slots, weight, bias, E):
    """n · b would be right if every entry of E were 1; slot i gets the sum of row i of E times b."""
    return slots @ weight + E.size(-1) * bias


def bias_summed_over_all(slots, weight, bias, E):
    """You sum all of E; every slot has a factor of its own, the sum of its row."""
    return slots @ weight + E.sum() * bias


def bias_before_weight(slots, weight, bias, E):
    """You add the mixed bias where the weight is yet to come; b belongs behind W, after (E X) W."""
    return (slots + E.sum(-1, keepdim=True)) @ weight * bias


# 6.6: padding


def padded_slots(x: Tensor, mask: Tensor, E: Tensor) -> Tensor:
    """E times the real tokens. Shape: x (batch, n, d), mask (batch, n), E (proj_dim, n) -> (batch, proj_dim, d)."""
    return E @ x.masked_fill(~mask[..., None], 0.0)


def draw_padded(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """A batch whose padding holds infinities: at the left of one sample, at the right of the other."""
    n, slots, d = SIZES[seed % len(SIZES)]
    x, E = normal(seed, (BATCH, n, d), (slots, n))
    tokens = torch.arange(n)
    mask = torch.stack([tokens >= n // 3, tokens < n // 2])  # nothing is real in the second where n = 1
    return x.masked_fill(~mask[..., None], math.inf), mask, E


def padding_kept(x, mask, E):
    """Padding went into the slots: whatever it holds is mixed with the real tokens, and no mask can take it out later."""
    return E @ x


def multiplied_by_the_mask(x, mask, E):
    """0 · ∞ and 0 · NaN are NaN: a product lets bad padding through. Put zeros in its place with masked_fill."""
    return E @ (x * mask[..., None])


def first_tokens_taken(x, mask, E):
    """You count the real tokens and take as many from the left; they may stand anywhere, so fill where ~mask."""
    first = torch.arange(x.size(1)) < mask.sum(-1, keepdim=True)
    return E @ torch.where(first[..., None], x, 0.0)


def real_tokens_zeroed(x, mask, E):
    """You put zeros where the tokens are real: True means a real token, so fill where ~mask."""
    return E @ x.masked_fill(mask[..., None], 0.0)


def averaged_over_real_tokens(x, mask, E):
    """Only leave the padding out; dividing by the number of real tokens changes the slots of every sample that has some."""
    lengths = mask.sum(-1).clamp(min=1)[:, None, None]
    return padded_slots(x, mask, E) / lengths


def slots_zeroed(x, mask, E):
    """You zeroed slots, not tokens: every slot mixes all tokens, so padding must go before E is applied."""
    slots = E @ x
    kept = torch.arange(len(E)) < mask.sum(-1, keepdim=True)
    return slots.masked_fill(~kept[..., None], 0.0)


EXERCISES = (
    Exercise(
        id="6.1",
        question="Write Linformer attention: q, k, v are (batch, heads, n, d), E and F are (proj_dim, n).",
        difficulty=1,
        minutes=6,
        trains="where E and F stand, and what they leave alone",
        reference=linformer_attention,
        draw=draw_attention,
        mistakes=(
            E_on_features,
            E_transposed,
            E_and_F_swapped,
            E_for_both,
            values_not_compressed,
            softmax_over_tokens,
            scaled_by_slots,
            linformer_unscaled,
        ),
        hints=(
            "It is attention as in chapter 01; only the keys and the values change before it begins.",
            "E @ k is (…, proj_dim, d); the map q @ (E @ k).mT is (…, n, proj_dim).",
            "weights = (q @ (E @ k).mT / math.sqrt(…)).softmax(dim=-1), and then they mix the compressed …",
        ),
    ),
    Exercise(
        id="6.2",
        question="Write an E, (m, n), with which Linformer is full attention over the m tokens in `keep`.",
        difficulty=2,
        minutes=6,
        trains="E as a matrix: rows are slots, columns are tokens",
        reference=keep_tokens,
        draw=draw_tokens_to_keep,
        mistakes=(
            kept_columns,
            zeros_on_the_diagonal,
            all_in_every_slot,
            first_tokens,
            in_the_order_of_the_text,
            shared_out,
            dropped_instead,
        ),
        hints=(
            "Row i of E says which tokens slot i is made of. Here it is made of a single one.",
            "keep is (m,), E is (m, n): one 1 in each row, in column keep[i].",
            "The rows of the identity, torch.eye(n), each pick one token; index them.",
        ),
    ),
    Exercise(
        id="6.3",
        question="Mend the bug: apply Linear(n, proj_dim), given its weight (proj_dim, n), to the tokens of x.",
        difficulty=2,
        minutes=6,
        trains="which axis a linear layer acts on",
        reference=compress_length,
        draw=draw_length,
        mistakes=(linear_on_features, not_turned_back, reshaped, reshaped_back, along_heads),
        hints=(
            "A linear layer acts on the last axis, whatever stands there.",
            "x.mT is (batch, heads, d, n): now the tokens are last. The result should be (…, proj_dim, d).",
            "functional.linear(x.mT, weight), and then turn the last two axes …",
        ),
    ),
    Exercise(
        id="6.4",
        question="Write multi-head Linformer from its weights: x (batch, n, d_model) comes out in the same shape.",
        difficulty=2,
        minutes=10,
        trains="the whole layer, from tokens to tokens",
        reference=multi_head_linformer,
        draw=draw_layer,
        mistakes=(
            one_wide_head,
            heads_not_mixed,
            weights_from_the_left,
            merged_by_reshape,
            queries_compressed_too,
            E_in_both_places,
            scaled_by_the_model,
        ),
        hints=(
            "Chapter 02's layer, with linformer_attention where attention was.",
            "split_heads(x @ w, num_heads) is (batch, heads, n, d_head); E and F are the same for every head.",
            "heads = linformer_attention(q, k, v, E, F); merge_heads(heads) is (batch, n, d_model), and then …",
        ),
    ),
    Exercise(
        id="6.5",
        question="Write E (X W + 1 bᵀ), given slots = E X: no token is left to add the bias to.",
        difficulty=3,
        minutes=8,
        trains="the cheap order, and its trap",
        reference=keys_with_bias,
        draw=draw_bias,
        mistakes=(
            bias_as_it_is,
            bias_forgotten,
            bias_times_tokens,
            bias_summed_over_all,
            bias_before_weight,
        ),
        hints=(
            "Multiply the bracket out: E X W, and E times a matrix whose rows are all b.",
            "E times a column of ones is the sum of each row of E, (proj_dim, 1).",
            "slots @ weight + E.sum(dim=-1, keepdim=True) * …",
        ),
    ),
    Exercise(
        id="6.6",
        question="Write the slots of a padded batch, E times real tokens only: mask (batch, n) is True at those.",
        difficulty=2,
        minutes=6,
        trains="padding goes before E, not after",
        reference=padded_slots,
        draw=draw_padded,
        mistakes=(
            padding_kept,
            multiplied_by_the_mask,
            first_tokens_taken,
            real_tokens_zeroed,
            averaged_over_real_tokens,
            slots_zeroed,
        ),
        hints=(
            "What may a padded token add to a sum over tokens?",
            "mask[..., None] is (batch, n, 1) and fits x, (batch, n, d).",
            "x.masked_fill(~mask[..., None], …), and then E from the left.",
        ),
    ),
)

QUIZ = (
    Question(
        "Linformer's map P̄ is n × k. What does row i hold?",
        (
            Option(
                "how much token i reads from each of k summaries of all tokens",
                "Each summary is a weighted sum over the whole sequence.",
                True,
            ),
            Option(
                "how much token i reads from the k most important tokens",
                "Nothing is chosen: E mixes all tokens, with the same weights for every text.",
            ),
            Option(
                "how much token i reads from its k nearest neighbours",
                "That is a sliding window (chapter 09); a slot of Linformer may mix any tokens.",
            ),
            Option(
                "the features of token i, compressed to k",
                "Features keep their number; tokens are what is compressed.",
            ),
        ),
    ),
    Question(
        "Why are the queries not compressed?",
        (
            Option(
                "k queries give k outputs, and every token needs its own",
                "Rows of the output are rows of Q.",
                True,
            ),
            Option("it would save nothing", "It would save more still; but the output would have k rows."),
            Option("queries have full rank", "Their rank is at most d_head, like that of the keys."),
            Option("it would break the softmax", "The softmax would run as before, over fewer rows."),
        ),
    ),
    Question(
        "Linear(d_head, k) is applied to keys of shape (…, d_head, n). It …",
        (
            Option(
                "fails, unless n happens to equal d_head",
                "A linear layer acts on the last axis, here n; it expects d_head.",
                True,
            ),
            Option("projects the sequence to k slots", "Only where n = d_head, by accident."),
            Option("projects the features to k", "The features are not the last axis here."),
            Option("projects both axes", "A linear layer touches one axis, the last."),
        ),
    ),
    Question(
        "With k = n, Linformer equals full attention …",
        (
            Option(
                "if E = F is a permutation, but not in general",
                "Softmax does not commute with mixing keys.",
                True,
            ),
            Option(
                "always: nothing is compressed", "A random orthogonal E = F already gives something else."
            ),
            Option("if E and F are invertible", "Orthogonal matrices are invertible, and it fails for them."),
            Option("never", "E = F = I, or any permutation, gives it back exactly."),
        ),
    ),
    Question(
        "A padded batch comes in. Where must padding be removed?",
        (
            Option(
                "from the keys and values, before E and F mix them",
                "After E every slot holds a share of it.",
                True,
            ),
            Option(
                "in the scores, with −∞ at padded keys",
                "The scores belong to slots; no column is a padded token.",
            ),
            Option(
                "nowhere, E learns to ignore it",
                "E weighs positions, and padding stands at other ones in every text.",
            ),
            Option("in the output, with zeros at padded tokens", "By then real tokens have read it."),
        ),
    ),
    Question(
        "E is learned and every slot mixes the whole text. Which mask on the n × k scores makes this causal?",
        (
            Option(
                "none: every slot already holds the future",
                "Hiding a slot hides past and future together.",
                True,
            ),
            Option("the lower triangle of n × k", "Slot j is not token j; it mixes all of them."),
            Option(
                "one that hides the last slots from early tokens",
                "The first slots hold the last tokens as well; only an E with zeros there would change that.",
            ),
            Option("it needs none", "Change the last token, and the first output moves."),
        ),
    ),
)
