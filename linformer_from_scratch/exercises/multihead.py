"""Chapter 02: exercises and quiz."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.attention import attention_weights, scaled_dot_product_attention
from linformer_from_scratch.exercises.draws import normal
from linformer_from_scratch.exercises.engine import Exercise
from linformer_from_scratch.exercises.quiz import Option, Question
from linformer_from_scratch.heads import merge_heads, split_heads

BATCH = 2
SIZES = ((5, 3, 4), (7, 2, 5), (1, 4, 3), (6, 3, 2))  # tokens, heads, features of a head, for each draw


# 2.1: cut the features into heads


def draw_features(seed: int) -> tuple:
    """A batch of tokens, and the number of heads."""
    n, heads, d_head = SIZES[seed % len(SIZES)]
    return *normal(seed, (BATCH, n, heads * d_head)), heads


def cut_across_tokens(x, num_heads):
    """The shape is right, the contents are not: view(batch, heads, n, …) cuts across tokens. Cut, then transpose."""
    return x.reshape(x.size(0), num_heads, x.size(1), -1)


def heads_after_tokens(x, num_heads):
    """Heads and tokens stand the wrong way round; the maps need (batch, heads, n, d_head): transpose axes 1 and 2."""
    return x.unflatten(-1, (num_heads, -1))


def every_other_feature(x, num_heads):
    """Head 0 took every h-th feature; head i takes the i-th block of d_head neighbours: (num_heads, d_head), in this order."""
    return x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)


def tokens_cut(x, num_heads):
    """You cut the tokens; every head keeps all n tokens, and the features are what is cut."""
    return x.unflatten(1, (num_heads, -1))


# 2.2: put the heads together again


def draw_heads(seed: int) -> tuple[Tensor, ...]:
    """A batch of heads."""
    n, heads, d_head = SIZES[seed % len(SIZES)]
    return normal(seed, (BATCH, heads, n, d_head))


def merged_without_transpose(x):
    """The shape is right, the contents are not: without a transpose, features of different tokens are joined."""
    return x.reshape(x.size(0), x.size(2), -1)


def heads_interleaved(x):
    """The heads are shuffled feature by feature; each head's d_head features must stay together."""
    return x.permute(0, 2, 3, 1).flatten(-2)


def heads_averaged(x):
    """You average the heads; they stand side by side, so that d_model features come out again."""
    return x.mean(1)


def heads_along_tokens(x):
    """You joined the heads along the tokens, which gives h·n tokens; join them along the features."""
    return x.flatten(1, 2)


# 2.3: multi-head attention from weight matrices


def multi_head(x, w_query, w_key, w_value, w_output, num_heads):
    """Project, split, attend, merge, project. Shape: x (batch, n, d_model), weights (d_model, d_model) -> as x."""
    q, k, v = (split_heads(x @ w.mT, num_heads) for w in (w_query, w_key, w_value))
    return merge_heads(scaled_dot_product_attention(q, k, v)) @ w_output.mT


def draw_layer(seed: int) -> tuple:
    """Tokens, four weight matrices as nn.Linear stores them (out, in), and the number of heads."""
    n, heads, d_head = SIZES[seed % len(SIZES)]
    d_model = heads * d_head
    x, *weights = normal(seed, (BATCH, n, d_model), *[(d_model, d_model)] * 4)
    return x, *(w / math.sqrt(d_model) for w in weights), heads


def scaled_by_d_model(x, w_query, w_key, w_value, w_output, num_heads):
    """Inside a head the dot product has d_head terms, so the divisor is √d_head, not √d_model."""
    return multi_head(x, w_query / math.sqrt(num_heads), w_key, w_value, w_output, num_heads)


def no_output_projection(x, w_query, w_key, w_value, w_output, num_heads):
    """The last step is missing: the merged heads still go through W_O, which lets them speak to each other."""
    return multi_head(x, w_query, w_key, w_value, torch.eye(x.size(-1)), num_heads)


def weights_not_transposed(x, w_query, w_key, w_value, w_output, num_heads):
    """nn.Linear stores its weight as (out, in), so it computes x @ w.T, not x @ w."""
    return multi_head(x, w_query.mT, w_key.mT, w_value.mT, w_output.mT, num_heads)


def one_large_head(x, w_query, w_key, w_value, w_output, num_heads):
    """This is one head of d_model features: split q, k and v into heads before attending."""
    return multi_head(x, w_query, w_key, w_value, w_output, 1)


def keys_and_values_swapped(x, w_query, w_key, w_value, w_output, num_heads):
    """Keys and values have changed places: scores come from the keys, what is mixed are the values."""
    return multi_head(x, w_query, w_value, w_key, w_output, num_heads)


def heads_merged_wrongly(x, w_query, w_key, w_value, w_output, num_heads):
    """Everything is right up to the merge, where tokens were mixed: transpose heads and tokens back first."""
    q, k, v = (split_heads(x @ w.mT, num_heads) for w in (w_query, w_key, w_value))
    return merged_without_transpose(scaled_dot_product_attention(q, k, v)) @ w_output.mT


# 2.4: a batch of unequal lengths


def attend_padded(q, k, v, padding_mask):
    """Nobody reads padding. Shape: q, k, v (batch, heads, n, d), padding_mask (batch, n) -> as q."""
    return scaled_dot_product_attention(q, k, v, padding_mask[:, None, None, :])


def draw_padded(seed: int) -> tuple:
    """A batch of two, the second shorter than the first unless it has one token only."""
    n, heads, d_head = SIZES[seed % len(SIZES)]
    qkv = normal(seed, *[(BATCH, heads, n, d_head)] * 3)
    lengths = torch.tensor([n, max(1, n - 2)])
    return *qkv, torch.arange(n) < lengths[:, None]


def padded_queries_hidden_too(q, k, v, padding_mask):
    """Padded queries may attend as usual, since what they read is thrown away; hide padding as keys only."""
    real = padding_mask[:, None, None, :]
    return scaled_dot_product_attention(q, k, v, real & real.mT)


def queries_hidden(q, k, v, padding_mask):
    """You hid the padded queries; what must not be read are the padded keys: the mask goes on the last axis."""
    return scaled_dot_product_attention(q, k, v, padding_mask[:, None, :, None])


def mask_inverted(q, k, v, padding_mask):
    """The mask is the wrong way round: True marks a real token, which may be read."""
    return scaled_dot_product_attention(q, k, v, ~padding_mask[:, None, None, :])


def mask_forgotten(q, k, v, padding_mask):
    """Real tokens still read padding: hide its keys before the softmax."""
    return scaled_dot_product_attention(q, k, v)


def padding_zeroed(q, k, v, padding_mask):
    """Zeroed keys still have a score, 0, and exp 0 = 1: they take weight from the real ones. Use −∞."""
    keep = padding_mask[:, None, :, None]
    return scaled_dot_product_attention(q, k * keep, v * keep)


def zeroed_afterwards(q, k, v, padding_mask):
    """Zeroing the weights after the softmax leaves rows that sum to less than one; hide the scores before it."""
    return attention_weights(q, k) * padding_mask[:, None, None, :] @ v


# 2.5: fewer key/value heads


def grouped_attention(q, k, v):
    """Query head i reads key/value head i // group. Shape: q (batch, heads, n, d), k, v (batch, fewer, n, d)."""
    return functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def draw_grouped(seed: int) -> tuple[Tensor, ...]:
    """Six query heads over 2, 3, 1 or 6 key/value heads."""
    n, kv_heads, d_head = ((5, 2, 4), (7, 3, 5), (1, 1, 3), (4, 6, 2))[seed % 4]
    return normal(seed, (BATCH, 6, n, d_head), (BATCH, kv_heads, n, d_head), (BATCH, kv_heads, n, d_head))


def heads_dealt_out(q, k, v):
    """repeat deals the heads out like cards (0 1 0 1 …); neighbours share one (0 0 1 1 …): repeat_interleave."""
    group = q.size(1) // k.size(1)
    return scaled_dot_product_attention(q, k.repeat(1, group, 1, 1), v.repeat(1, group, 1, 1))


def first_head_only(q, k, v):
    """All query heads read key/value head 0; that is multi-query attention, right only when there is one."""
    return scaled_dot_product_attention(q, k[:, :1], v[:, :1])


def key_value_heads_averaged(q, k, v):
    """You average the key/value heads; each stays itself and serves its own group of query heads."""
    return scaled_dot_product_attention(q, k.mean(1, keepdim=True), v.mean(1, keepdim=True))


def queries_averaged(q, k, v):
    """You merged query heads; only keys and values get fewer, all query heads keep their own output."""
    return scaled_dot_product_attention(q.unflatten(1, (k.size(1), -1)).mean(2), k, v)


def values_dealt_out(q, k, v):
    """Keys are shared by neighbours, values are dealt out: a head must read its key and value from one place."""
    group = q.size(1) // k.size(1)
    return scaled_dot_product_attention(q, k.repeat_interleave(group, 1), v.repeat(1, group, 1, 1))


# 2.6: the size of a key/value cache


def cache_bytes(n: int, num_layers: int, num_kv_heads: int, d_head: int, bytes_per_number: int) -> int:
    """Bytes of the keys and values of n tokens in every layer."""
    return 2 * n * num_layers * num_kv_heads * d_head * bytes_per_number


def draw_cache(seed: int) -> tuple[int, ...]:
    """n, num_layers, num_kv_heads, d_head, bytes_per_number."""
    return ((4096, 32, 8, 128, 2), (513, 7, 3, 65, 4), (1, 1, 1, 1, 1), (1000, 6, 12, 32, 2))[seed % 4]


def keys_only(n, num_layers, num_kv_heads, d_head, bytes_per_number):
    """Keys alone are half of it: values are kept as well."""
    return n * num_layers * num_kv_heads * d_head * bytes_per_number


def maps_counted(n, num_layers, num_kv_heads, d_head, bytes_per_number):
    """You counted n×n maps; they are not kept. The cache holds keys and values, n rows of d_head each."""
    return n * n * num_layers * num_kv_heads * bytes_per_number


def one_layer(n, num_layers, num_kv_heads, d_head, bytes_per_number):
    """That is one layer; every layer keeps its own keys and values."""
    return 2 * n * num_kv_heads * d_head * bytes_per_number


def one_head(n, num_layers, num_kv_heads, d_head, bytes_per_number):
    """That is one key/value head; multiply by num_kv_heads."""
    return 2 * n * num_layers * d_head * bytes_per_number


def in_bits(n, num_layers, num_kv_heads, d_head, bytes_per_number):
    """These are bits; bytes_per_number already counts bytes."""
    return 16 * n * num_layers * num_kv_heads * d_head * bytes_per_number


EXERCISES = (
    Exercise(
        id="2.1",
        question="Cut the features of x (batch, n, d_model) into heads: (batch, num_heads, n, d_head).",
        difficulty=1,
        minutes=5,
        trains="reshape without mixing tokens",
        reference=split_heads,
        draw=draw_features,
        mistakes=(cut_across_tokens, heads_after_tokens, every_other_feature, tokens_cut),
        hints=(
            "Two steps: cut the last axis into two, then bring heads before tokens.",
            "(batch, n, d_model) -> (batch, n, num_heads, d_head) -> (batch, num_heads, n, d_head)",
            "x.unflatten(-1, (num_heads, -1)), followed by a transpose of two axes",
        ),
    ),
    Exercise(
        id="2.2",
        question="Undo it: x (batch, num_heads, n, d_head) -> (batch, n, num_heads · d_head).",
        difficulty=1,
        minutes=4,
        trains="the inverse of a reshape",
        reference=merge_heads,
        draw=draw_heads,
        mistakes=(merged_without_transpose, heads_interleaved, heads_averaged, heads_along_tokens),
        hints=(
            "Do the two steps of 2.1 backwards, in the opposite order.",
            "(batch, num_heads, n, d_head) -> (batch, n, num_heads, d_head) -> (batch, n, d_model)",
            "x.transpose(1, 2), and then flatten the last two axes into one",
        ),
    ),
    Exercise(
        id="2.3",
        question="Write multi-head attention: x, four weights (out, in) as in nn.Linear, and num_heads.",
        difficulty=3,
        minutes=12,
        trains="the whole layer in five lines",
        reference=multi_head,
        draw=draw_layer,
        mistakes=(
            scaled_by_d_model,
            no_output_projection,
            weights_not_transposed,
            one_large_head,
            keys_and_values_swapped,
            heads_merged_wrongly,
        ),
        hints=(
            "Project three times, split, attend in every head at once, merge, project once more.",
            "x @ w.mT is (batch, n, d_model); split_heads makes it (batch, num_heads, n, d_head), and so on.",
            "q = split_heads(x @ w_query.mT, num_heads); … ; return merge_heads(…) @ w_output.mT",
        ),
    ),
    Exercise(
        id="2.4",
        question="Attend in a padded batch: q, k, v (batch, heads, n, d), padding_mask (batch, n), True = real.",
        difficulty=2,
        minutes=6,
        trains="masks with axes for heads and queries",
        reference=attend_padded,
        draw=draw_padded,
        mistakes=(
            padded_queries_hidden_too,
            queries_hidden,
            mask_inverted,
            mask_forgotten,
            padding_zeroed,
            zeroed_afterwards,
        ),
        hints=(
            "Which tokens must not be read: padded queries or padded keys?",
            "Scores are (batch, heads, n queries, n keys); the mask (batch, n) needs two axes of size 1.",
            "scaled_dot_product_attention(q, k, v, padding_mask[:, None, None, :]) puts it on the axis of …",
        ),
    ),
    Exercise(
        id="2.5",
        question="Attend with fewer key/value heads: q (batch, 6, n, d), k and v (batch, fewer, n, d).",
        difficulty=2,
        minutes=8,
        trains="grouped-query attention",
        reference=grouped_attention,
        draw=draw_grouped,
        mistakes=(
            heads_dealt_out,
            first_head_only,
            key_value_heads_averaged,
            queries_averaged,
            values_dealt_out,
        ),
        hints=(
            "Write every key/value head out as many times as query heads share it; then attend as before.",
            "group = q.size(1) // k.size(1); heads 0 … group − 1 read key/value head 0, the next ones head 1.",
            "k.repeat_interleave(group, dim=1), and the same for v",
        ),
    ),
    Exercise(
        id="2.6",
        question="Count the bytes of a cache that keeps the keys and values of n tokens in every layer.",
        difficulty=1,
        minutes=4,
        trains="what fewer key/value heads save",
        reference=cache_bytes,
        draw=draw_cache,
        mistakes=(keys_only, maps_counted, one_layer, one_head, in_bits),
        hints=(
            "Multiply what there is one of for every token.",
            "One layer keeps keys (num_kv_heads, n, d_head) and values of the same shape.",
            "2 * n * num_layers * … * … * bytes_per_number",
        ),
    ),
)

QUIZ = (
    Question(
        "d_model = 512 and 8 heads, n tokens. The layer computes …",
        (
            Option("8 maps of n×n", "The features are cut into eighths, the tokens are not.", True),
            Option(
                "8 maps of n/8 × n/8", "The tokens are not divided among the heads: every head reads all n."
            ),
            Option(
                "1 map of n×n, shared by the heads",
                "Every head has its own queries and keys, hence its own map.",
            ),
            Option(
                "64 maps of n×n, one for each feature of a head",
                "Features are summed in the dot product; heads are not.",
            ),
        ),
    ),
    Question(
        "x.view(batch, heads, n, d_head) instead of unflatten and transpose …",
        (
            Option(
                "runs, and mixes features of different tokens",
                "The shape is right and the contents are wrong.",
                True,
            ),
            Option(
                "raises an error",
                "The number of entries fits, so nothing is raised: that is what makes it dangerous.",
            ),
            Option(
                "is the same, only faster",
                "view keeps memory order, in which a token's features lie together.",
            ),
            Option(
                "gives the heads in another order, which W_O can undo",
                "Tokens are mixed across rows; no W_O undoes that.",
            ),
        ),
    ),
    Question(
        "Inside a head, scores are divided by …",
        (
            Option("√d_head", "The dot product has d_head terms.", True),
            Option("√d_model", "That would be right for one head of d_model features."),
            Option("√num_heads", "The number of heads does not enter a head's dot product."),
            Option("√n", "n sets how many scores there are, not how large they are."),
        ),
    ),
    Question(
        "8 query heads, 2 key/value heads. Compared with 8 and 8, the scores cost …",
        (
            Option("the same; the cache is a quarter", "Every query head still makes its n×n map.", True),
            Option(
                "a quarter; the cache is the same",
                "The other way round: what is kept shrinks, what is computed does not.",
            ),
            Option(
                "a quarter, and so does the cache",
                "Every query head still multiplies with n keys: 8·n² scores.",
            ),
            Option(
                "the same, and so does the cache",
                "Only 2 heads of keys and values are stored for each token.",
            ),
        ),
    ),
    Question(
        "Two sentences of 7 and 4 tokens are padded to 7. The mask hides …",
        (
            Option(
                "the last 3 keys of the second sentence from every query",
                "Nobody may read padding.",
                True,
            ),
            Option(
                "the last 3 queries of the second sentence",
                "What padded queries compute is thrown away later; hiding them keeps padding readable.",
            ),
            Option("both sentences' last 3 tokens", "The first sentence has no padding."),
            Option(
                "nothing: zero vectors have no effect",
                "A zero key has score 0, and exp 0 = 1: it takes weight.",
            ),
        ),
    ),
)
