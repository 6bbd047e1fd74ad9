"""Chapter 02: exercises and quiz."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import functional_call

from linformer_from_scratch.attention import attention_weights, causal_mask, padding_mask
from linformer_from_scratch.exercises.engine.checking import Exercise
from linformer_from_scratch.exercises.engine.draws import normal, row
from linformer_from_scratch.exercises.engine.quiz import Option, Question
from linformer_from_scratch.heads import merge_heads, split_heads
from linformer_from_scratch.multihead import MultiHeadAttention

BATCH = 2
SIZES = ((5, 3, 4), (7, 2, 5), (1, 4, 3), (3, 3, 2))  # tokens, heads, features of a head, for each draw


# 2.1: queries, keys and values of all heads from one product


def project_and_split(x: Tensor, stacked: Tensor, num_heads: int) -> tuple[Tensor, ...]:
    """q, k and v. Shape: x (batch, n, d_model), stacked (3·d_model, d_model) -> each (batch, heads, n, d_head)."""
    return tuple(split_heads(part, num_heads) for part in (x @ stacked.mT).chunk(3, dim=-1))


def draw_stacked(seed: int) -> tuple:
    """A batch of tokens, a stacked weight, and the number of heads."""
    n, heads, d_head = row(seed, SIZES)
    d_model = heads * d_head
    return *normal(seed, (BATCH, n, d_model), (3 * d_model, d_model)), heads


def three_parts(x, stacked):
    """Queries, keys and values, uncut."""
    return (x @ stacked.mT).chunk(3, dim=-1)


def cut_across_tokens(x, stacked, num_heads):
    """The shape is right, the contents are not: view(batch, heads, n, …) cuts across tokens. Cut, then transpose."""
    return [part.reshape(x.size(0), num_heads, x.size(1), -1) for part in three_parts(x, stacked)]


def heads_after_tokens(x, stacked, num_heads):
    """Heads and tokens are the wrong way round; attention needs (batch, heads, n, d_head): transpose axes 1 and 2."""
    return [part.unflatten(-1, (num_heads, -1)) for part in three_parts(x, stacked)]


def every_other_feature(x, stacked, num_heads):
    """Head 0 took every h-th feature; head i takes the i-th block of d_head neighbours: (num_heads, d_head), in this order."""
    return [part.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2) for part in three_parts(x, stacked)]


def tokens_cut(x, stacked, num_heads):
    """You cut the tokens; every head keeps all n tokens, and the features are what is cut."""
    return [part.repeat(1, num_heads, 1).unflatten(1, (num_heads, -1)) for part in three_parts(x, stacked)]


def stacked_head_by_head(x, stacked, num_heads):
    """You cut into heads first and each head into three; in the stack all queries come first, then all keys, then all values."""
    return split_heads(x @ stacked.mT, num_heads).chunk(3, dim=-1)


def keys_in_front(x, stacked, num_heads):
    """Queries and keys have changed places: the stack holds the queries first."""
    q, k, v = project_and_split(x, stacked, num_heads)
    return k, q, v


def values_before_keys(x, stacked, num_heads):
    """Keys and values have changed places: the stack holds queries, keys and values, in this order."""
    q, k, v = project_and_split(x, stacked, num_heads)
    return q, v, k


def one_unsplit(x, stacked, num_heads):
    """These are q, k and v of all heads together, (batch, n, d_model); each must still be cut into heads."""
    return three_parts(x, stacked)


def cut_off(name: str) -> Callable[[Tensor, Tensor, int], list[Tensor]]:
    """The mistake of one of the three results without gradient, with the sentence that names it."""

    def cut(x, stacked, num_heads):
        parts = zip("qkv", project_and_split(x, stacked, num_heads), strict=True)
        return [part.detach() if other == name else part for other, part in parts]

    cut.__name__ = f"cut_off_{name}"
    cut.__doc__ = f"The values are right, but no gradient flows through {name}: .detach(), .data and torch.tensor() cut it off."
    return cut


# 2.2: put the heads together again


def draw_heads(seed: int) -> tuple[Tensor, ...]:
    """A batch of heads."""
    n, heads, d_head = row(seed, SIZES)
    return normal(seed, (BATCH, heads, n, d_head))


def merged_without_transpose(x):
    """The shape is right, the contents are not: without a transpose, features of different tokens are joined."""
    return x.reshape(x.size(0), x.size(2), -1)


def heads_interleaved(x):
    """The heads are shuffled feature by feature; each head's d_head features must stay together."""
    return x.permute(0, 2, 3, 1).flatten(-2)


def heads_averaged(x):
    """You average the heads; they belong side by side, so that d_model features come out again."""
    return x.mean(1)


def heads_added(x):
    """You add up the heads; they belong side by side, and W_O adds them later."""
    return x.sum(1)


def not_joined(x):
    """Heads are still an axis of their own: join (num_heads, d_head) into one axis of d_model features."""
    return x.transpose(1, 2)


def heads_along_tokens(x):
    """You joined the heads along the tokens, which gives h·n tokens; join them along the features."""
    return x.flatten(1, 2)


# 2.3: multi-head attention as a module


def run_layer(
    layer: Callable,
    x: Tensor,
    padding_mask: Tensor | None,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    bias: Tensor,
    num_heads: int,
) -> Tensor:
    """Build a layer and run it with these weights; without a mask it is called without one."""
    weights = {"query.weight": query, "key.weight": key, "value.weight": value, "output.weight": output}
    given = (x,) if padding_mask is None else (x, padding_mask)
    return functional_call(layer(x.size(-1), num_heads), weights | {"output.bias": bias}, given)


def draw_layer(seed: int) -> tuple:
    """Tokens, in every second draw a mask, weights as nn.Linear stores them (out, in), and the number of heads."""
    n, heads, d_head = row(seed, SIZES)
    d_model = heads * d_head
    x, bias, *weights = normal(seed, (BATCH, n, d_model), (d_model,), *[(d_model, d_model)] * 4)
    lengths = torch.tensor([0 if seed % 4 else max(1, n - 2), n])  # the first may be padding throughout
    mask = None if seed % 2 else padding_mask(lengths, n)
    return x, mask, *(w / math.sqrt(d_model) for w in weights), bias, heads


class ScaledByDModel(MultiHeadAttention):
    """Inside a head the dot product has d_head terms, so the divisor is √d_head, not √d_model."""

    def attend(self, q, k, v, padding_mask):
        return super().attend(q / math.sqrt(self.num_heads), k, v, padding_mask)


class Unscaled(MultiHeadAttention):
    """The scores are not divided: by √d_head, the features of one head."""

    def attend(self, q, k, v, padding_mask):
        return super().attend(q * math.sqrt(q.size(-1)), k, v, padding_mask)


class OneLargeHead(MultiHeadAttention):
    """This is one head of d_model features: split q, k and v into heads before attending."""

    def __init__(self, d_model, num_heads):
        super().__init__(d_model, 1)


class KeysAndValuesSwapped(MultiHeadAttention):
    """Keys and values have changed places: scores come from the keys, and it is the values that are mixed."""

    def attend(self, q, k, v, padding_mask):
        return super().attend(q, v, k, padding_mask)


class CutAcrossTokens(MultiHeadAttention):
    """Heads were cut by a reshape to (batch, heads, n, …), which mixes tokens: cut the features, then transpose."""

    def project(self, x, padding_mask=None):
        shape = (x.size(0), self.num_heads, x.size(1), -1)
        return tuple(part(x).reshape(shape) for part in (self.query, self.key, self.value))


class MergedWrongly(MultiHeadAttention):
    """Everything is right up to the merge, where tokens were mixed: transpose heads and tokens back first."""

    def forward(self, x, padding_mask=None):
        return self.output(merged_without_transpose(self.attend(*self.project(x), padding_mask)))


class NoOutput(MultiHeadAttention):
    """The last step is missing: the merged heads still go through `output`, which mixes them."""

    def forward(self, x, padding_mask=None):
        return merge_heads(self.attend(*self.project(x), padding_mask))


class MaskForgotten(MultiHeadAttention):
    """padding_mask is not used: real tokens still read padding. Hide its keys before the softmax."""

    def mask(self, x, padding_mask):
        return None


class MaskInverted(MultiHeadAttention):
    """The mask is the wrong way round: True marks a real token, which may be read."""

    def mask(self, x, padding_mask):
        return None if padding_mask is None else ~padding_mask[:, None, None, :]


class QueriesHidden(MultiHeadAttention):
    """You hid the padded queries, but it is the padded keys that must not be read: the mask goes on the last axis."""

    def mask(self, x, padding_mask):
        return None if padding_mask is None else padding_mask[:, None, :, None]


class PaddedQueriesHiddenToo(MultiHeadAttention):
    """Padded queries may attend as usual, since what they read is thrown away; hide padding as keys only."""

    def mask(self, x, padding_mask):
        keys = super().mask(x, padding_mask)
        return None if keys is None else keys & keys.mT


class PaddingZeroed(MultiHeadAttention):
    """Tokens set to zero still have a score, 0, and exp 0 = 1: they take weight from the real ones. Use −∞."""

    def forward(self, x, padding_mask=None):
        return super().forward(x if padding_mask is None else x * padding_mask[..., None])


class ZeroedAfterwards(MultiHeadAttention):
    """Zeroing the weights after the softmax leaves rows that sum to less than one; hide the scores before it."""

    def attend(self, q, k, v, padding_mask):
        keep = self.mask(q, padding_mask)
        return attention_weights(q, k) * (1 if keep is None else keep) @ v


class ZerosForPadding(MultiHeadAttention):
    """A sample that is padding throughout gives zeros here; it reads zeros, and `output` then adds its bias."""

    def forward(self, x, padding_mask=None):
        output = super().forward(x, padding_mask)
        return output if padding_mask is None else output * padding_mask.any(1)[:, None, None]


class PaddedOutputsZeroed(MultiHeadAttention):
    """You set the outputs of padded tokens to zero; they read like all others, and later layers ignore them."""

    def forward(self, x, padding_mask=None):
        output = super().forward(x, padding_mask)
        return output if padding_mask is None else output * padding_mask[..., None]


class NaNForPadding(MultiHeadAttention):
    """A sample that is padding throughout gives 0/0 = NaN; it must read zeros, so that its output is the bias."""

    hidden = -math.inf

    def attend(self, q, k, v, padding_mask):
        scores = q @ k.mT / math.sqrt(q.size(-1))
        keep = self.mask(q, padding_mask)
        return (scores if keep is None else scores.masked_fill(~keep, self.hidden)).softmax(-1) @ v


class EverybodyForPadding(NaNForPadding):
    """A sample that is padding throughout reads all of it evenly, since its scores are equally low; it must read zeros."""

    hidden = -1e9


# 2.4: the mask of a model that writes text, whose padding stands in front


def readable(lengths: Tensor, n: int) -> Tensor:
    """True where a key is real and not in the query's future. Shape: lengths (batch,) -> (batch, 1, n, n)."""
    return real_at_the_end(lengths, n)[:, None, None, :] & causal_mask(n)


def real_at_the_end(lengths: Tensor, n: int) -> Tensor:
    """True at the last tokens, as many as are real. Shape: (batch,) -> (batch, n)."""
    return padding_mask(lengths, n).flip(-1)


def draw_lengths(seed: int) -> tuple[Tensor, int]:
    """Lengths from 1 to n, one of them n; in every fourth draw all the same."""
    batch, n = row(seed, ((3, 7), (2, 5), (1, 1), (4, 6)))
    lengths = torch.randint(1, n + 1, (batch,), generator=torch.Generator().manual_seed(seed))
    lengths[-1] = n
    if seed % 4 == 1:
        lengths[:] = (n + 1) // 2
    return lengths, n


def future_read(lengths, n):
    """Padding is hidden, the future is not: a token may read itself and those before it, causal_mask(n)."""
    return real_at_the_end(lengths, n)[:, None, None, :].repeat(1, 1, n, 1)


def padding_read(lengths, n):
    """The future is hidden, padding is not: it comes first, so real tokens have it in their past."""
    return causal_mask(n).repeat(len(lengths), 1, 1, 1)


def either(lengths, n):
    """You join the two by “or”; a key must be real and not in the future, both: &."""
    return real_at_the_end(lengths, n)[:, None, None, :] | causal_mask(n)


def padding_behind(lengths, n):
    """You hide the last tokens; here the padding comes first, and the last tokens are the real ones."""
    return padding_mask(lengths, n)[:, None, None, :] & causal_mask(n)


def padded_queries(lengths, n):
    """You hide padding along the queries' axis, so real tokens still read it; hide it as keys, on the last axis."""
    return real_at_the_end(lengths, n)[:, None, :, None] & causal_mask(n)


def the_future_only(lengths, n):
    """The causal half is upside down: row i, the query, may read columns 0 … i, on and below the diagonal."""
    return real_at_the_end(lengths, n)[:, None, None, :] & causal_mask(n).mT


def not_itself(lengths, n):
    """A token may read itself: keep the diagonal, or the first real token has nothing to read."""
    return readable(lengths, n).tril(-1)


def one_too_many(lengths, n):
    """One padded token is still read: with L real ones of n, padding is 0 … n − L − 1, so real keys have j ≥ n − L."""
    return (torch.arange(n) >= n - 1 - lengths[:, None])[:, None, None, :] & causal_mask(n)


def one_too_few(lengths, n):
    """The first real token is hidden as well: with L real ones of n they are n − L … n − 1, so >= and not >."""
    return (torch.arange(n) > n - lengths[:, None])[:, None, None, :] & causal_mask(n)


def padding_reads_itself(lengths, n):
    """Padded tokens still read themselves; nobody reads padding, so their rows are empty."""
    return readable(lengths, n) | torch.eye(n, dtype=torch.bool)


def no_axis_for_heads(lengths, n):
    """(batch, n, n) has no axis for the heads, so beside (batch, heads, n, n) its batch would line up with them: (batch, 1, n, n)."""
    return readable(lengths, n)[:, 0]


def ones_and_zeros(lengths, n):
    """These are numbers; a mask is boolean, since PyTorch adds a mask of numbers to the scores."""
    return readable(lengths, n).float()


# 2.5: from all key or value heads to fewer


def pooled(weight: Tensor, num_heads: int, num_kv_heads: int) -> Tensor:
    """Each new head is the mean of its group. Shape: (num_heads·d_head, d_model) -> (num_kv_heads·d_head, d_model)."""
    groups = weight.unflatten(0, (num_kv_heads, num_heads // num_kv_heads, -1))
    return groups.mean(dim=1).flatten(0, 1)


def draw_pooled(seed: int) -> tuple:
    """Groups of one to four heads; in the last of the course's draws every head stays as it is."""
    kv_heads, group, d_head, d_model = row(seed, ((2, 3, 4, 7), (3, 2, 5, 11), (1, 4, 3, 5), (3, 1, 3, 8)))
    heads = kv_heads * group
    return *normal(seed, (heads * d_head, d_model)), heads, kv_heads


def pooled_like_cards(weight, num_heads, num_kv_heads):
    """You grouped the heads like dealt cards (0 1 0 1 …); neighbours share a head (0 0 1 1 …)."""
    return weight.unflatten(0, (num_heads // num_kv_heads, num_kv_heads, -1)).mean(0).flatten(0, 1)


def first_of_each_group(weight, num_heads, num_kv_heads):
    """You keep the first head of each group and throw the others away; take the mean of all heads of a group."""
    return weight.unflatten(0, (num_kv_heads, num_heads // num_kv_heads, -1))[:, 0].flatten(0, 1)


def summed(weight, num_heads, num_kv_heads):
    """You add the heads of a group up, which makes keys longer and scores larger; take their mean."""
    return pooled(weight, num_heads, num_kv_heads) * (num_heads // num_kv_heads)


def features_pooled(weight, num_heads, num_kv_heads):
    """You averaged neighbouring rows, features of one head; average the same feature of different heads."""
    return weight.unflatten(0, (-1, num_heads // num_kv_heads)).mean(1)


def all_pooled(weight, num_heads, num_kv_heads):
    """You averaged all heads; each new head is the mean of its own group only."""
    return pooled(weight, num_heads, 1).repeat(num_kv_heads, 1)


def written_out_again(weight, num_heads, num_kv_heads):
    """You wrote each mean out once for every head of its group; the grouped layer has only num_kv_heads heads."""
    heads = pooled(weight, num_heads, num_kv_heads).unflatten(0, (num_kv_heads, -1))
    return heads.repeat_interleave(num_heads // num_kv_heads, 0).flatten(0, 1)


# 2.6: how many tokens a cache can keep


def tokens_that_fit(
    memory: int, parameters: int, num_layers: int, num_kv_heads: int, d_head: int, bytes_per_number: int
) -> int:
    """Whole tokens whose keys and values fit beside the model's parameters."""
    a_token = 2 * num_layers * num_kv_heads * d_head * bytes_per_number
    return (memory - parameters * bytes_per_number) // a_token


def draw_memory(seed: int) -> tuple[int, ...]:
    """Memory that is full to the last byte, that lacks one byte for one token more, or that has some to spare."""
    sizes = (
        (4096, 7_000_000, 32, 8, 128, 2),
        (8191, 123_456, 7, 3, 65, 4),
        (1, 9, 1, 2, 1, 1),
        (1000, 77_777, 6, 12, 32, 2),
    )
    tokens, parameters, layers, kv_heads, d_head, per_number = row(seed, sizes)
    a_token = 2 * layers * kv_heads * d_head * per_number
    spare = (0, a_token - 1, 1, a_token * 3 // 4)[seed % 4]
    return (
        parameters * per_number + tokens * a_token + spare,
        parameters,
        layers,
        kv_heads,
        d_head,
        per_number,
    )


def parameters_forgotten(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    """The parameters are in the same memory; the cache gets only what they leave."""
    return memory // (2 * num_layers * num_kv_heads * d_head * bytes_per_number)


def parameters_as_bytes(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    """parameters counts numbers; each of them takes bytes_per_number bytes, too."""
    return (memory - parameters) // (2 * num_layers * num_kv_heads * d_head * bytes_per_number)


def keys_only(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    """Keys alone are half of it: values are kept as well."""
    return (memory - parameters * bytes_per_number) // (num_layers * num_kv_heads * d_head * bytes_per_number)


def one_layer(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    """That is one layer; every layer keeps its own keys and values."""
    return (memory - parameters * bytes_per_number) // (2 * num_kv_heads * d_head * bytes_per_number)


def one_head(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    """That is one key/value head; a token has num_kv_heads of them in every layer."""
    return (memory - parameters * bytes_per_number) // (2 * num_layers * d_head * bytes_per_number)


def numbers_for_bytes(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    """You divide by the numbers of a token; each of them takes bytes_per_number bytes."""
    return (memory - parameters * bytes_per_number) // (2 * num_layers * num_kv_heads * d_head)


def rounded_up(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    """You round up; the last of these tokens does not fit in full. Round down."""
    return -(
        (parameters * bytes_per_number - memory)
        // (2 * num_layers * num_kv_heads * d_head * bytes_per_number)
    )


def not_whole(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    """Part of a token cannot be kept: round down to a whole number."""
    return (memory - parameters * bytes_per_number) / (
        2 * num_layers * num_kv_heads * d_head * bytes_per_number
    )


def rounded(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    """round() goes up from one half on, and then the last token does not fit in full. Round down."""
    return round(not_whole(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number))


def in_float32(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    """A quotient of tensors is float32, whose seven digits round the last token up; stay with whole numbers: //."""
    free = torch.tensor(memory - parameters * bytes_per_number)
    return int(free / (2 * num_layers * num_kv_heads * d_head * bytes_per_number))


EXERCISES = (
    Exercise(
        id="2.1",
        question="Project by a stacked weight (3·d_model, d_model) and cut into heads: q, k, v of all heads.",
        difficulty=2,
        minutes=6,
        trains="reshape without mixing tokens",
        reference=project_and_split,
        draw=draw_stacked,
        gradients=("x", "stacked"),
        mistakes=(
            cut_across_tokens,
            heads_after_tokens,
            every_other_feature,
            tokens_cut,
            stacked_head_by_head,
            keys_in_front,
            values_before_keys,
            one_unsplit,
            *map(cut_off, "qkv"),
        ),
        hints=(
            "One product gives all three side by side; take them apart first, then cut each into heads.",
            "(batch, n, 3·d_model) -> three (batch, n, d_model) -> each (batch, n, num_heads, d_head) -> …",
            "q, k, v = (x @ stacked.mT).chunk(3, dim=-1); then x.unflatten(-1, (num_heads, -1)) and a transpose of …",
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
        gradients=("x",),
        mistakes=(
            merged_without_transpose,
            heads_interleaved,
            heads_averaged,
            heads_added,
            not_joined,
            heads_along_tokens,
        ),
        hints=(
            "Do the two steps of 2.1 that made heads backwards, in the opposite order.",
            "(batch, num_heads, n, d_head) -> (batch, n, num_heads, d_head) -> (batch, n, d_model)",
            "x.transpose(1, 2), and then flatten the last two axes into one",
        ),
    ),
    Exercise(
        id="2.3",
        question="Write the forward pass of a multi-head attention layer, with an optional padding_mask (batch, n).",
        difficulty=3,
        minutes=12,
        trains="the whole layer in five lines",
        reference=MultiHeadAttention,
        draw=draw_layer,
        gradients=("x", "query", "key", "value", "output", "bias"),
        use=run_layer,
        part="multi_head_attention",
        mistakes=(
            ScaledByDModel,
            Unscaled,
            OneLargeHead,
            KeysAndValuesSwapped,
            CutAcrossTokens,
            MergedWrongly,
            NoOutput,
            MaskForgotten,
            MaskInverted,
            QueriesHidden,
            PaddedQueriesHiddenToo,
            PaddingZeroed,
            ZeroedAfterwards,
            ZerosForPadding,
            PaddedOutputsZeroed,
            NaNForPadding,
            EverybodyForPadding,
        ),
        hints=(
            "Project three times, split, attend in every head at once, merge, project once more.",
            "self.query(x) is (batch, n, d_model); split_heads makes it (batch, num_heads, n, d_head). Of the scores "
            "(batch, heads, n, n) the mask (batch, n) lacks two axes.",
            "keys = None if padding_mask is None else padding_mask[:, None, None, :]; q = split_heads(self.query(x), "
            "self.num_heads); … ; return self.output(merge_heads(…))",
        ),
    ),
    Exercise(
        id="2.4",
        question="Build the causal mask of a batch with padding in front: lengths (batch,) -> (batch, 1, n, n).",
        difficulty=2,
        minutes=6,
        trains="masks with axes for heads and queries",
        reference=readable,
        draw=draw_lengths,
        mistakes=(
            future_read,
            padding_read,
            either,
            padding_behind,
            padded_queries,
            the_future_only,
            not_itself,
            one_too_many,
            one_too_few,
            padding_reads_itself,
            no_axis_for_heads,
            ones_and_zeros,
        ),
        hints=(
            "Two conditions: which keys are real does not depend on the query; which lie in the past does.",
            "Real keys: (batch, 1, 1, n). The past: (n, n). Joined by &, they broadcast to (batch, 1, n, n).",
            "real = torch.arange(n) >= n - lengths[:, None]; return real[:, None, None, :] & …",
        ),
    ),
    Exercise(
        id="2.5",
        question="Pool a key or value weight of num_heads heads into num_kv_heads: the mean of each group of neighbours.",
        difficulty=2,
        minutes=8,
        trains="which rows of a weight are which head, and who shares",
        reference=pooled,
        draw=draw_pooled,
        mistakes=(
            pooled_like_cards,
            first_of_each_group,
            summed,
            features_pooled,
            all_pooled,
            written_out_again,
        ),
        hints=(
            "Which rows of the weight make head 0? Which heads go into the first new one?",
            "(num_heads·d_head, d_model) -> (num_kv_heads, group, d_head, d_model) -> mean over the group -> two axes.",
            "weight.unflatten(0, (num_kv_heads, num_heads // num_kv_heads, -1)), then the mean over dim=…",
        ),
    ),
    Exercise(
        id="2.6",
        question="How many tokens fit into the cache, beside a model's parameters, in a given memory?",
        difficulty=2,
        minutes=5,
        trains="what fewer key/value heads save",
        reference=tokens_that_fit,
        draw=draw_memory,
        mistakes=(
            parameters_forgotten,
            parameters_as_bytes,
            keys_only,
            one_layer,
            one_head,
            numbers_for_bytes,
            rounded_up,
            not_whole,
            rounded,
            in_float32,
        ),
        hints=(
            "What is left when the parameters are in, and what does one more token take?",
            "A token takes keys and values, in num_layers layers, of num_kv_heads heads with d_head numbers each.",
            "(memory - parameters * bytes_per_number) // (2 * num_layers * …)",
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
