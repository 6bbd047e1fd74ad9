"""Exercises of chapter 02."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import functional_call

from linformer_from_scratch.attention import attention_weights, causal_mask, padding_mask
from linformer_from_scratch.course.exercises.engine.checking import exercise
from linformer_from_scratch.course.exercises.engine.draws import normal, row
from linformer_from_scratch.heads import merge_heads, split_heads
from linformer_from_scratch.multihead import MultiHeadAttention

BATCH = 2
SIZES = ((5, 3, 4), (7, 2, 5), (1, 4, 3), (3, 3, 2))  # tokens, heads, features of a head, for each draw


def project_and_split(x: Tensor, stacked: Tensor, num_heads: int) -> tuple[Tensor, ...]:
    """q, k and v. Shape: x (batch, n, d_model), stacked (3·d_model, d_model) -> each (batch, heads, n, d_head)."""
    return tuple(split_heads(part, num_heads) for part in (x @ stacked.mT).chunk(3, dim=-1))


def three_parts(x, stacked):
    """Queries, keys and values, uncut."""
    return (x @ stacked.mT).chunk(3, dim=-1)


def cut_off(name: str) -> Callable[[Tensor, Tensor, int], list[Tensor]]:
    """The mistake of one of the three results without gradient, with the sentence that names it."""

    def cut(x, stacked, num_heads):
        parts = zip("qkv", project_and_split(x, stacked, num_heads), strict=True)
        return [part.detach() if other == name else part for other, part in parts]

    cut.__name__ = f"cut_off_{name}"
    cut.__doc__ = f"Your numbers are right, but no gradient gets back through {name}, so its weights would never learn. Look for .detach(), .data or torch.tensor()."
    return cut


@exercise("2.1", stars=2, minutes=6, gradients=("x", "stacked"))
class ProjectAndSplit:
    """Queries, keys and values of all heads from one product."""

    hints = (
        "One product gives you all three, side by side. Take them apart first, then cut each into heads.",
        "(batch, n, 3·d_model) -> three (batch, n, d_model) -> each (batch, n, num_heads, d_head) -> …",
        "q, k, v = (x @ stacked.mT).chunk(3, dim=-1); then x.unflatten(-1, (num_heads, -1)) and a transpose of …",
    )
    reference = project_and_split

    def draw(seed):
        """A batch of tokens, a stacked weight, and the number of heads."""
        n, heads, d_head = row(seed, SIZES)
        d_model = heads * d_head
        return *normal(seed, (BATCH, n, d_model), (3 * d_model, d_model)), heads

    def cut_across_tokens(x, stacked, num_heads):
        """Right shape, wrong numbers: going straight to (batch, heads, n, …) cuts across tokens, because that's how they lie in memory. Cut the last axis, then transpose."""
        return [part.reshape(x.size(0), num_heads, x.size(1), -1) for part in three_parts(x, stacked)]

    def heads_after_tokens(x, stacked, num_heads):
        """You've cut correctly and stopped at (batch, n, heads, d_head). Attention works on the last two axes, and they should be tokens and features: transpose axes 1 and 2."""
        return [part.unflatten(-1, (num_heads, -1)) for part in three_parts(x, stacked)]

    def every_other_feature(x, stacked, num_heads):
        """You deal out the features like cards: head 0 gets every h-th one. A head is a block of d_head neighbours, so unflatten to (num_heads, d_head), in this order."""
        return [part.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2) for part in three_parts(x, stacked)]

    def tokens_cut(x, stacked, num_heads):
        """You cut the text into pieces, one for each head. It's in many a diagram, and it's wrong: every head keeps all n tokens. Cut the features."""
        return [x.repeat(1, num_heads, 1).unflatten(1, (num_heads, -1)) for x in three_parts(x, stacked)]

    def stacked_head_by_head(x, stacked, num_heads):
        """You cut into heads first, and then each head into three. The stack isn't sorted by head: all queries come first, then all keys, then all values. Split into three first."""
        return split_heads(x @ stacked.mT, num_heads).chunk(3, dim=-1)

    def keys_in_front(x, stacked, num_heads):
        """Your queries and keys have changed places. In the stack the queries come first."""
        q, k, v = project_and_split(x, stacked, num_heads)
        return k, q, v

    def values_before_keys(x, stacked, num_heads):
        """Your keys and values have changed places. The stack goes queries, keys, values."""
        q, k, v = project_and_split(x, stacked, num_heads)
        return q, v, k

    def one_unsplit(x, stacked, num_heads):
        """You have q, k and v, still in one piece: (batch, n, d_model). One step to go: cut each into heads."""
        return three_parts(x, stacked)

    without_gradient = tuple(map(cut_off, "qkv"))


@exercise("2.2", stars=1, minutes=4, gradients=("x",))
class MergeHeads:
    """Put the heads together again."""

    hints = (
        "Two steps made the heads in 2.1. Take them back, the last one first.",
        "(batch, num_heads, n, d_head) -> (batch, n, num_heads, d_head) -> (batch, n, d_model)",
        "Start with x.transpose(1, 2). Then flatten the last two axes into one.",
    )
    reference = merge_heads

    def draw(seed):
        """A batch of heads."""
        n, heads, d_head = row(seed, SIZES)
        return normal(seed, (BATCH, heads, n, d_head))

    def merged_without_transpose(x):
        """Right shape, wrong numbers: you join features of different tokens. Heads and tokens have to swap axes before you flatten."""
        return x.reshape(x.size(0), x.size(2), -1)

    def heads_interleaved(x):
        """You shuffle the heads like two halves of a pack of cards, feature by feature. The d_head features of a head stay together."""
        return x.permute(0, 2, 3, 1).flatten(-2)

    def heads_averaged(x):
        """You average the heads, and so all but d_head of the features are gone. They belong side by side: d_model features went in, d_model come out."""
        return x.mean(1)

    def heads_added(x):
        """You add up the heads. That does happen, but later, and by W_O, which multiplies each by its own slice first. Here they only go side by side."""
        return x.sum(1)

    def not_joined(x):
        """Good transpose. The heads still have their own axis, though: flatten the last two, (num_heads, d_head), into d_model."""
        return x.transpose(1, 2)

    def heads_along_tokens(x):
        """You put the heads one below the other, and now there are h·n tokens. Put them side by side: it's the features that you join."""
        return x.flatten(1, 2)


OF_A_LAYER = "x", "query", "key", "value", "output", "bias"


@exercise("2.3", stars=3, minutes=12, gradients=OF_A_LAYER, part="multi_head_attention")
class MultiHead:
    """Multi-head attention as a module."""

    hints = (
        "It's five lines: project three times and split, fit the mask, attend in all heads at once, merge, project once more.",
        "self.query(x) is (batch, n, d_model); split_heads makes it (batch, num_heads, n, d_head). The scores are "
        "(batch, heads, n, n), so the mask (batch, n) is two axes short. Which two?",
        "keys = None if padding_mask is None else padding_mask[:, None, None, :]; q = split_heads(self.query(x), "
        "self.num_heads); … ; return self.output(merge_heads(…))",
    )
    reference = MultiHeadAttention

    def draw(seed):
        """Tokens, in every second draw a mask, weights as nn.Linear stores them (out, in), and the number of heads."""
        n, heads, d_head = row(seed, SIZES)
        d_model = heads * d_head
        x, bias, *weights = normal(seed, (BATCH, n, d_model), (d_model,), *[(d_model, d_model)] * 4)
        lengths = torch.tensor([0 if seed % 4 else max(1, n - 2), n])  # the first may be padding throughout
        mask = None if seed % 2 else padding_mask(lengths, n)
        return x, mask, *(w / math.sqrt(d_model) for w in weights), bias, heads

    def use(layer, x, padding_mask, query, key, value, output, bias, num_heads):
        """Build a layer and run it with these weights; without a mask it is called without one."""
        weights = {"query.weight": query, "key.weight": key, "value.weight": value, "output.weight": output}
        given = (x,) if padding_mask is None else (x, padding_mask)
        return functional_call(layer(x.size(-1), num_heads), weights | {"output.bias": bias}, given)

    class ScaledByDModel(MultiHeadAttention):
        """You divide by √d_model. Inside a head a dot product has only d_head terms, so √d_head is what brings its variance to one."""

        def attend(self, q, k, v, padding_mask):
            return super().attend(q / math.sqrt(self.num_heads), k, v, padding_mask)

    class Unscaled(MultiHeadAttention):
        """Your scores go into the softmax undivided. Divide them by √d_head, the root of the number of features of one head."""

        def attend(self, q, k, v, padding_mask):
            return super().attend(q * math.sqrt(q.size(-1)), k, v, padding_mask)

    class OneLargeHead(MultiHeadAttention):
        """You have one head with all d_model features. It's the large head from the beginning of the chapter: split q, k and v before they attend."""

        def __init__(self, d_model, num_heads):
            super().__init__(d_model, 1)

    class KeysAndValuesSwapped(MultiHeadAttention):
        """Your keys and values have changed jobs. Queries meet the keys in the scores, and the weights mix the values."""

        def attend(self, q, k, v, padding_mask):
            return super().attend(q, v, k, padding_mask)

    class CutAcrossTokens(MultiHeadAttention):
        """Your split mixes tokens: a reshape to (batch, heads, n, …) has the right shape and the wrong numbers. split_heads cuts the features, then transposes."""

        def project(self, x, padding_mask=None):
            shape = (x.size(0), self.num_heads, x.size(1), -1)
            return tuple(part(x).reshape(shape) for part in (self.query, self.key, self.value))

    class MergedWrongly(MultiHeadAttention):
        """All's well until you merge, and there you mix tokens. Transpose heads and tokens back before you join the features, as merge_heads does."""

        def forward(self, x, padding_mask=None):
            return self.output(self.attend(*self.project(x), padding_mask).reshape(x.shape))

    class NoOutput(MultiHeadAttention):
        """One step short: your merged heads lie side by side, and nobody has added them up. Send them through `output`."""

        def forward(self, x, padding_mask=None):
            return merge_heads(self.attend(*self.project(x), padding_mask))

    class MaskForgotten(MultiHeadAttention):
        """You don't use padding_mask, so real tokens attend to padding. Hide its keys before the softmax."""

        def mask(self, x, padding_mask):
            return None

    class MaskInverted(MultiHeadAttention):
        """Your mask hides the real tokens and shows the padding. Here True means a real token; it's nn.MultiheadAttention that has it the other way round."""

        def mask(self, x, padding_mask):
            return None if padding_mask is None else ~padding_mask[:, None, None, :]

    class QueriesHidden(MultiHeadAttention):
        """You hide the padded tokens as queries. They may ask what they like; nobody may attend to them. So the mask goes on the axis of the keys, the last one."""

        def mask(self, x, padding_mask):
            return None if padding_mask is None else padding_mask[:, None, :, None]

    class PaddedQueriesHiddenToo(MultiHeadAttention):
        """You hide padding twice, as keys and as queries. Padded queries attend like all others here (what they get is thrown away later), so hide the keys only."""

        def mask(self, x, padding_mask):
            keys = super().mask(x, padding_mask)
            return None if keys is None else keys & keys.mT

    class PaddingZeroed(MultiHeadAttention):
        """You set the padding to zero and hope that nobody notices. A zero key still has a score, 0, and exp 0 = 1 takes weight from the real ones. Set those scores to −∞."""

        def forward(self, x, padding_mask=None):
            return super().forward(x if padding_mask is None else x * padding_mask[..., None])

    class ZeroedAfterwards(MultiHeadAttention):
        """You zero the weights after the softmax, when the padding has already had its share, so your rows sum to less than one. Hide the scores before it."""

        def attend(self, q, k, v, padding_mask):
            keep = self.mask(q, padding_mask)
            return attention_weights(q, k) * (1 if keep is None else keep) @ v

    class ZerosForPadding(MultiHeadAttention):
        """For a text that is nothing but padding you return zeros. Its heads do bring back zeros, but `output` comes after them and adds its bias."""

        def forward(self, x, padding_mask=None):
            output = super().forward(x, padding_mask)
            return output if padding_mask is None else output * padding_mask.any(1)[:, None, None]

    class PaddedOutputsZeroed(MultiHeadAttention):
        """You clean up too much: the outputs of padded tokens needn't be zero. They attend like all others, and whoever comes next ignores them."""

        def forward(self, x, padding_mask=None):
            output = super().forward(x, padding_mask)
            return output if padding_mask is None else output * padding_mask[..., None]

    class NaNForPadding(MultiHeadAttention):
        """A text that is nothing but padding gives you 0/0 = NaN, and it'll take every gradient with it. Its heads should bring back zeros, so that its output is the bias."""

        hidden = -math.inf

        def attend(self, q, k, v, padding_mask):
            scores = q @ k.mT / math.sqrt(q.size(-1))
            keep = self.mask(q, padding_mask)
            return (scores if keep is None else scores.masked_fill(~keep, self.hidden)).softmax(-1) @ v

    class EverybodyForPadding(NaNForPadding):
        """You hide keys with a very low score instead of −∞. If all of them are hidden, they're equally low, and softmax shares the attention out evenly. Such a text should bring back zeros."""

        hidden = -1e9


def readable(lengths: Tensor, n: int) -> Tensor:
    """True where a key is real and not in the query's future. Shape: lengths (batch,) -> (batch, 1, n, n)."""
    return real_at_the_end(lengths, n)[:, None, None, :] & causal_mask(n)


def real_at_the_end(lengths: Tensor, n: int) -> Tensor:
    """True at the last tokens, as many as are real. Shape: (batch,) -> (batch, n)."""
    return padding_mask(lengths, n).flip(-1)


@exercise("2.4", stars=2, minutes=6)
class PaddingInFront:
    """The mask of a model that writes text, whose padding stands in front."""

    hints = (
        "There are two conditions. Whether a key is real doesn't depend on who asks. Whether it lies in the past does.",
        "Real keys are (batch, 1, 1, n), the past is (n, n). Join them with &, and they broadcast to (batch, 1, n, n).",
        "real = torch.arange(n) >= n - lengths[:, None]; return real[:, None, None, :] & …",
    )
    reference = readable

    def draw(seed):
        """Lengths from 1 to n, one of them n; in every fourth draw all the same."""
        batch, n = row(seed, ((3, 7), (2, 5), (1, 1), (4, 6)))
        lengths = torch.randint(1, n + 1, (batch,), generator=torch.Generator().manual_seed(seed))
        lengths[-1] = n
        if seed % 4 == 1:
            lengths[:] = (n + 1) // 2
        return lengths, n

    def future_read(lengths, n):
        """Padding is hidden, but your tokens can see the future. Each may attend to itself and to those before it: that's causal_mask(n)."""
        return real_at_the_end(lengths, n)[:, None, None, :].repeat(1, 1, n, 1)

    def padding_read(lengths, n):
        """The future is hidden, but padding isn't. It comes first here, so it lies in the past of every real token, where the causal mask lets it through."""
        return causal_mask(n).repeat(len(lengths), 1, 1, 1)

    def either(lengths, n):
        """You join the two conditions with “or”, so a key in the past gets through even if it's padding. It has to be real and not in the future: &."""
        return real_at_the_end(lengths, n)[:, None, None, :] | causal_mask(n)

    def padding_behind(lengths, n):
        """You hide the last tokens, as padding usually has it. In this batch the padding comes first, and the last tokens are the real ones."""
        return padding_mask(lengths, n)[:, None, None, :] & causal_mask(n)

    def padded_queries(lengths, n):
        """You hide padding along the rows, so real tokens still attend to it. Queries are rows, keys are columns: hide it on the last axis."""
        return real_at_the_end(lengths, n)[:, None, :, None] & causal_mask(n)

    def the_future_only(lengths, n):
        """Your triangle is upside down: tokens see the future and not the past. Row i is the query, and it may attend to columns 0 … i."""
        return real_at_the_end(lengths, n)[:, None, None, :] & causal_mask(n).mT

    def not_itself(lengths, n):
        """You hide the diagonal, too. A token may attend to itself; without that, the first real one has nobody."""
        return readable(lengths, n).tril(-1)

    def one_too_many(lengths, n):
        """Off by one: a padded token gets through. With L real ones of n, padding is 0 … n − L − 1, so the real keys are those with j ≥ n − L."""
        return (torch.arange(n) >= n - 1 - lengths[:, None])[:, None, None, :] & causal_mask(n)

    def one_too_few(lengths, n):
        """Off by one: you've hidden the first real token as well. With L real ones of n they are n − L … n − 1, so it's >= and not >."""
        return (torch.arange(n) > n - lengths[:, None])[:, None, None, :] & causal_mask(n)

    def padding_reads_itself(lengths, n):
        """Your padded tokens attend to themselves. Nobody attends to padding, not even padding, so its rows are empty."""
        return readable(lengths, n) | torch.eye(n, dtype=torch.bool)

    def no_axis_for_heads(lengths, n):
        """Right mask, but (batch, n, n) has no axis for the heads. Beside scores of (batch, heads, n, n), your batch would line up with the heads: make it (batch, 1, n, n)."""
        return readable(lengths, n)[:, 0]

    def ones_and_zeros(lengths, n):
        """Right places, wrong kind: these are ones and zeros. PyTorch would add such numbers to the scores and hide nothing. Return booleans."""
        return readable(lengths, n).float()


def pooled(weight: Tensor, num_heads: int, num_kv_heads: int) -> Tensor:
    """Each new head is the mean of its group. Shape: (num_heads·d_head, d_model) -> (num_kv_heads·d_head, d_model)."""
    groups = weight.unflatten(0, (num_kv_heads, num_heads // num_kv_heads, -1))
    return groups.mean(dim=1).flatten(0, 1)


@exercise("2.5", stars=2, minutes=8)
class FewerHeads:
    """From all key or value heads to fewer."""

    hints = (
        "Which rows of the weight belong to head 0? And which heads go into the first new one?",
        "(num_heads·d_head, d_model) -> (num_kv_heads, group, d_head, d_model) -> mean over the group -> two axes.",
        "weight.unflatten(0, (num_kv_heads, num_heads // num_kv_heads, -1)), then the mean over dim=…",
    )
    reference = pooled

    def draw(seed):
        """Groups of one to four heads; in the last of the course's draws every head stays as it is."""
        kv_heads, group, d_head, d_model = row(
            seed, ((2, 3, 4, 7), (3, 2, 5, 11), (1, 4, 3, 5), (3, 1, 3, 8))
        )
        heads = kv_heads * group
        return *normal(seed, (heads * d_head, d_model)), heads, kv_heads

    def pooled_like_cards(weight, num_heads, num_kv_heads):
        """You deal the heads out like cards, 0 1 0 1 …. In this layer neighbours share: 0 0 1 1 …."""
        return weight.unflatten(0, (num_heads // num_kv_heads, num_kv_heads, -1)).mean(0).flatten(0, 1)

    def first_of_each_group(weight, num_heads, num_kv_heads):
        """You keep the first head of each group and throw away the others, and all that they've learned. Take the mean of the group."""
        return weight.unflatten(0, (num_kv_heads, num_heads // num_kv_heads, -1))[:, 0].flatten(0, 1)

    def summed(weight, num_heads, num_kv_heads):
        """You add up the heads of a group. That makes keys longer and scores larger than the queries are used to: divide by the size of the group."""
        return pooled(weight, num_heads, num_kv_heads) * (num_heads // num_kv_heads)

    def features_pooled(weight, num_heads, num_kv_heads):
        """You average neighbouring rows, and those are different features of one head. Average the same feature over the heads of the group."""
        return weight.unflatten(0, (-1, num_heads // num_kv_heads)).mean(1)

    def all_pooled(weight, num_heads, num_kv_heads):
        """You average over all heads, so all your new heads are alike. Each is the mean of its own group."""
        return pooled(weight, num_heads, 1).repeat(num_kv_heads, 1)

    def written_out_again(weight, num_heads, num_kv_heads):
        """Right means, but you repeat each for every head of its group, and then nothing is saved. The grouped layer has num_kv_heads heads."""
        heads = pooled(weight, num_heads, num_kv_heads).unflatten(0, (num_kv_heads, -1))
        return heads.repeat_interleave(num_heads // num_kv_heads, 0).flatten(0, 1)


def tokens_that_fit(
    memory: int, parameters: int, num_layers: int, num_kv_heads: int, d_head: int, bytes_per_number: int
) -> int:
    """Whole tokens whose keys and values fit beside the model's parameters."""
    free, a_token = free_and_a_token(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number)
    return free // a_token


def free_and_a_token(memory, parameters, num_layers, num_kv_heads, d_head, bytes_per_number):
    """Bytes that are left beside the parameters, and bytes of a token."""
    free = memory - parameters * bytes_per_number
    return free, 2 * num_layers * num_kv_heads * d_head * bytes_per_number


@exercise("2.6", stars=2, minutes=5)
class CachedTokens:
    """How many tokens a cache can keep."""

    hints = (
        "How many bytes are left when the parameters are in? And how many does one more token take?",
        "A token takes a key and a value, in each of num_layers layers, for each of num_kv_heads heads, d_head numbers each.",
        "(memory - parameters * bytes_per_number) // (2 * num_layers * …)",
    )
    reference = tokens_that_fit

    def draw(seed):
        """Memory that is full to the last byte, that lacks one byte for one token more, or that has some to spare."""
        sizes = (
            (4096, 7_000_000, 32, 8, 128, 2),
            (8191, 123_456, 7, 3, 65, 4),
            (1, 9, 1, 2, 1, 1),
            (1000, 77_777, 6, 12, 32, 2),
        )
        tokens, parameters, layers, kv_heads, d_head, per_number = row(seed, sizes)
        a_token = 2 * layers * kv_heads * d_head * per_number
        memory = parameters * per_number + tokens * a_token + (0, a_token - 1, 1, a_token * 3 // 4)[seed % 4]
        return memory, parameters, layers, kv_heads, d_head, per_number

    def parameters_forgotten(memory, parameters, *sizes):
        """You give the whole memory to the cache, and the model has nowhere to live. Take its parameters off first."""
        return tokens_that_fit(memory, 0, *sizes)

    def parameters_as_bytes(memory, parameters, *sizes):
        """You take off one byte for each parameter. Parameters are numbers, too: each takes bytes_per_number bytes."""
        return tokens_that_fit(memory - parameters, 0, *sizes)

    def keys_only(*sizes):
        """You've counted the keys. The values take as much again."""
        free, a_token = free_and_a_token(*sizes)
        return free // (a_token // 2)

    def one_layer(memory, parameters, num_layers, *sizes):
        """You've counted one layer. Every layer has its own keys and values, so multiply by num_layers."""
        return tokens_that_fit(memory, parameters, 1, *sizes)

    def one_head(memory, parameters, num_layers, num_kv_heads, *sizes):
        """You've counted one key/value head. A token has num_kv_heads of them in every layer."""
        return tokens_that_fit(memory, parameters, num_layers, 1, *sizes)

    def numbers_for_bytes(*sizes):
        """You divide bytes by numbers. Each number of a token takes bytes_per_number bytes: multiply by that first."""
        free, a_token = free_and_a_token(*sizes)
        return free // (a_token // sizes[-1])

    def rounded_up(*sizes):
        """You round up, and the last of your tokens doesn't quite fit. Round down."""
        free, a_token = free_and_a_token(*sizes)
        return -(-free // a_token)

    def not_whole(*sizes):
        """There's a fraction in your answer, and nobody can keep a third of a token. Round down to a whole number: //."""
        free, a_token = free_and_a_token(*sizes)
        return free / a_token

    def rounded(*sizes):
        """round() goes up from one half on, and then your last token hangs out of the memory. Round down: //."""
        free, a_token = free_and_a_token(*sizes)
        return round(free / a_token)

    def in_float32(*sizes):
        """You divide tensors, and a quotient of tensors is float32: seven digits, too few for this many bytes, so your last token is an artefact. Stay with whole numbers: //."""
        free, a_token = free_and_a_token(*sizes)
        return int(torch.tensor(free) / a_token)
