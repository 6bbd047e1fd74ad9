"""Exercises of chapter 06."""

import math
import re

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.course.exercises.engine.checking import Refused, exercise
from linformer_from_scratch.course.exercises.engine.draws import normal, row
from linformer_from_scratch.heads import merge_heads, real_tokens, split_heads
from linformer_from_scratch.linformer import LinformerAttention, linformer_attention
from linformer_from_scratch.projections import LearnedProjection

BATCH, HEADS = 2, 3
SIZES = ((7, 4, 5), (8, 5, 4), (1, 1, 3), (9, 9, 6))  # tokens, slots, features of a head, for each draw


def attend(q, keys, values):
    """Softmax(q keysᵀ / √d) values."""
    return (q @ keys.mT / math.sqrt(q.size(-1))).softmax(-1) @ values


@exercise("6.1", stars=1, minutes=6, gradients=("q", "k", "v", "E", "F"), part="linformer_attention")
class Linformer:
    """Linformer attention."""

    hints = (
        "It's chapter 01's attention. Only the keys and the values change, before it begins.",
        "E @ k is (…, proj_dim, d), so the map q @ (E @ k).mT is (…, n, proj_dim).",
        "weights = (q @ (E @ k).mT / math.sqrt(…)).softmax(dim=-1), and what do they mix? The shrunken …",
    )
    reference = linformer_attention

    def draw(seed):
        """Queries, keys, values of a batch of heads, and E and F."""
        n, slots, d = row(seed, SIZES)
        return normal(seed, *3 * [(BATCH, HEADS, n, d)], (slots, n), (slots, n))

    def E_on_features(q, k, v, E, F):
        """k @ E.mT mixes the features of each token, and runs whenever the sizes happen to fit. E mixes tokens, the rows of k: put it on the left, E @ k."""
        return attend(q, k @ E.mT, v @ F.mT)

    def E_transposed(q, k, v, E, F):
        """E.mT belongs to the other convention, n × proj_dim. Your E is (proj_dim, n) already, so E @ k fits as it stands."""
        return attend(q, E.mT @ k, F.mT @ v)

    def E_and_F_swapped(q, k, v, E, F):
        """You shrink the keys with F and the values with E. It's the other way round: E for the keys, F for the values."""
        return attend(q, F @ k, E @ v)

    def E_for_both(q, k, v, E, F):
        """You shrink the values with E as well. They have a matrix of their own: F @ v."""
        return attend(q, E @ k, E @ v)

    def values_not_compressed(q, k, v, E, F):
        """Your map has a column for each slot, and you let it mix n values. Every slot needs a value too: F @ v."""
        return attend(q, E @ k, v)

    def values_in_chapter_1(q, k, v, E, F):
        """You shrink the keys and stop there: F is never used. A slot is a key and a value, so the values shrink as well, F @ v."""
        return scaled_dot_product_attention(q, E @ k, v)

    def first_values(q, k, v, E, F):
        """You mix the first proj_dim values as they are. The value of a slot is made of all tokens: F @ v."""
        return attend(q, E @ k, v[..., : len(E), :])

    def values_forgotten(q, k, v, E, F):
        """You multiply P̄ by F and stop. Those are weights for n values, and the values themselves are still missing: P̄ (F v)."""
        return (q @ (E @ k).mT / math.sqrt(q.size(-1))).softmax(-1) @ F

    def full_attention(q, k, v, E, F):
        """That's full attention: you never use E and F. Shrink the keys with E and the values with F before it starts."""
        return attend(q, k, v)

    def softmax_over_tokens(q, k, v, E, F):
        """Your columns sum to one. Each query spreads its attention over the slots, and the slots are the last axis: dim=-1."""
        return (q @ (E @ k).mT / math.sqrt(q.size(-1))).softmax(-2) @ (F @ v)

    def scaled_by_slots(q, k, v, E, F):
        """You divide by √proj_dim, which is tempting, since proj_dim is what's new. But a score is a sum over d features, and they are what makes it large: q.size(-1)."""
        return (q @ (E @ k).mT / math.sqrt(E.size(0))).softmax(-1) @ (F @ v)

    def linformer_unscaled(q, k, v, E, F):
        """You don't divide the scores by √d. The key of a slot has d features like any other key, so its scores need it just as much."""
        return (q @ (E @ k).mT).softmax(-1) @ (F @ v)


def keep_tokens(keep: Tensor, n: int) -> Tensor:
    """Row i of E picks token keep[i]. Shape: keep (m,) of integers -> (m, n)."""
    return torch.eye(n)[keep]


@exercise("6.2", stars=2, minutes=6)
class KeptTokens:
    """An E that keeps chosen tokens."""

    hints = (
        "Row i of E is the recipe of slot i. Here every recipe has a single ingredient.",
        "keep is (m,) and E is (m, n). Where in row i does the single 1 go? In column keep[i].",
        "Each row of the identity, torch.eye(n), copies one token. Pick rows by indexing.",
    )
    reference = keep_tokens

    def draw(seed):
        """Some tokens, in an order of their own, and how many there are in all."""
        n, kept = row(seed, ((7, 3), (5, 2), (3, 3), (21, 5)))
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
        return order[: min(kept, n)], n

    def kept_columns(keep, n):
        """Your E is n × m. It needs a row for each slot and a column for each token, so index the rows of the identity, not its columns."""
        return torch.eye(n)[:, keep]

    def zeros_on_the_diagonal(keep, n):
        """You zero the other tokens' keys, but that doesn't hide them: their score is 0, and exp 0 = 1. Leave those rows out of E."""
        return torch.diag(torch.zeros(n).index_fill(0, keep, 1.0))

    def all_in_every_slot(keep, n):
        """All your slots are the same: the mean of the kept tokens. Slot i should copy one of them, token keep[i]."""
        return torch.zeros(n).index_fill(0, keep, 1 / len(keep)).expand(len(keep), n).clone()

    def first_tokens(keep, n):
        """You keep the first m tokens, whatever keep says. It's an index: use it as one."""
        return torch.eye(n)[: len(keep)]

    def in_the_order_of_the_text(keep, n):
        """The right tokens in the wrong order: you sorted them. Attention wouldn't notice, but slot i should copy token keep[i]."""
        return torch.eye(n)[keep.sort().values]

    def ones_at_all_of_them(keep, n):
        """Each of your rows has a 1 at every kept token, so each slot is their sum. Row i wants a single 1, in column keep[i]."""
        return torch.zeros(len(keep), n).index_fill(1, keep, 1.0)

    def shared_out(keep, n):
        """You divide by m, as if a slot were an average. It copies one token, so its entry is 1: a smaller key would have smaller scores."""
        return torch.eye(n)[keep] / len(keep)

    def dropped_instead(keep, n):
        """You drop the tokens in keep and keep all the others. It's the other way round."""
        return torch.eye(n)[[i for i in range(n) if i not in keep.tolist()]]


def compress_length(x: Tensor, weight: Tensor) -> Tensor:
    """What Linear(n, proj_dim) makes of the sequence axis. Shape: (batch, heads, n, d) -> (…, proj_dim, d)."""
    return functional.linear(x.mT, weight).mT


@exercise("6.3", stars=2, minutes=6, gradients=("x", "weight"))
class FixedBug:
    """The bug, fixed."""

    hints = (
        "A linear layer acts on the last axis, and doesn't ask what that axis is.",
        "x.mT is (batch, heads, d, n): now the tokens are last. But the result should be (…, proj_dim, d).",
        "functional.linear(x.mT, weight), and then swap the last two axes back …",
    )
    reference = compress_length

    def draw(seed):
        """A batch of heads, and the weight of Linear(n, proj_dim)."""
        n, slots, d = row(seed, SIZES)
        return normal(seed, (BATCH, HEADS, n, d), (slots, n))

    def linear_on_features(x, weight):
        """You apply the layer to x as it stands, and a linear layer acts on the last axis: here, the features. Bring the tokens there first, x.mT."""
        return functional.linear(x, weight)

    def not_turned_back(x, weight):
        """Your numbers are right and their axes are swapped. One more .mT after the linear layer puts slots before features."""
        return functional.linear(x.mT, weight)

    def reshaped(x, weight):
        """The shape is right and the contents aren't: reshape reads the numbers in order, so it mixes tokens with features. You want to swap two axes, x.mT."""
        turned = x.reshape(*x.shape[:2], x.size(-1), x.size(-2))
        return functional.linear(turned, weight).mT

    def reshaped_back(x, weight):
        """Your first step is right. On the way back reshape mixes slots with features; swap the axes again, with .mT."""
        turned = functional.linear(x.mT, weight)
        return turned.reshape(*x.shape[:2], weight.size(0), x.size(-1))

    def along_heads(x, weight):
        """You brought the heads to the end, not the tokens. Swap the last two axes: x.mT."""
        return functional.linear(x.transpose(1, 3), weight).transpose(1, 3)

    def weight_of_its_own(x, weight):
        """Your numbers are right, but no gradient reaches weight: nn.Parameter(weight), a new nn.Linear and .detach() all cut it off. functional.linear(x.mT, weight) doesn't."""
        return functional.linear(x.mT, weight.detach()).mT


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


def reshaped_heads(x: Tensor, num_heads: int) -> Tensor:
    """Shape: (batch, n, d_model) -> (batch, num_heads, n, d_head), in the order of memory: wrong."""
    return x.reshape(len(x), num_heads, x.size(1), -1)


@exercise("6.4", stars=2, minutes=10, gradients=("x", "w_query", "w_key", "w_value", "w_output", "E", "F"))
class SeveralHeads:
    """Several heads."""

    hints = (
        "Take chapter 02's layer, and put linformer_attention where its attention was.",
        "split_heads(x @ w, num_heads) is (batch, heads, n, d_head). E and F are the same for every head.",
        "heads = linformer_attention(q, k, v, E, F); merge_heads(heads) is (batch, n, d_model), and then …",
    )
    reference = multi_head_linformer

    def draw(seed):
        """A batch of tokens, four weight matrices, E, F and the number of heads."""
        n, slots, d_head = row(seed, SIZES)
        (heads,) = row(seed, ((3,), (2,), (5,), (1,)))
        d = heads * d_head
        drawn = normal(seed, (BATCH, n, d), *4 * [(d, d)], *2 * [(slots, n)])
        return drawn[0], *(w / math.sqrt(d) for w in drawn[1:5]), *drawn[5:], heads

    def one_wide_head(x, w_query, w_key, w_value, w_output, E, F, num_heads):
        """You attend with a single head as wide as the model. Cut q, k and v into heads first: split_heads(x @ w, num_heads)."""
        return linformer_attention(x @ w_query, x @ w_key, x @ w_value, E, F) @ w_output

    def heads_not_mixed(x, w_query, w_key, w_value, w_output, E, F, num_heads):
        """You stop after merging. One step is left: w_output mixes the heads."""
        return multi_head_linformer(x, w_query, w_key, w_value, torch.eye(len(w_output)), E, F, num_heads)

    def weights_from_the_left(x, w_query, w_key, w_value, w_output, E, F, num_heads):
        """You transpose the weights, as you would if nn.Linear had stored them. These multiply from the right as they are: x @ w."""
        return multi_head_linformer(x, w_query.mT, w_key.mT, w_value.mT, w_output.mT, E, F, num_heads)

    def merged_by_reshape(x, w_query, w_key, w_value, w_output, E, F, num_heads):
        """You merge with reshape alone, and that joins features of different tokens. Bring the heads of a token next to each other first, as merge_heads does."""
        q, k, v = (split_heads(x @ w, num_heads) for w in (w_query, w_key, w_value))
        return linformer_attention(q, k, v, E, F).reshape(x.shape) @ w_output

    def cut_by_reshape(x, w_query, w_key, w_value, w_output, E, F, num_heads):
        """You cut with reshape(batch, heads, n, d_head), and that puts features of different tokens into one head. Cut the features only: split_heads."""
        q, k, v = (reshaped_heads(x @ w, num_heads) for w in (w_query, w_key, w_value))
        return merge_heads(linformer_attention(q, k, v, E, F)) @ w_output

    def heads_not_brought_forward(x, w_query, w_key, w_value, w_output, E, F, num_heads):
        """You cut the features into heads but left the tokens in front of them, so E mixes heads. Swap axes 1 and 2, as split_heads does."""
        q, k, v = ((x @ w).unflatten(-1, (num_heads, -1)) for w in (w_query, w_key, w_value))
        return linformer_attention(q, k, v, E, F).reshape(x.shape) @ w_output

    def reshaped_there_and_back(x, w_query, w_key, w_value, w_output, E, F, num_heads):
        """The shapes fit, which is how reshape hides the damage: it cut the tokens into heads, not the features. Use split_heads and merge_heads."""
        q, k, v = (reshaped_heads(x @ w, num_heads) for w in (w_query, w_key, w_value))
        return linformer_attention(q, k, v, E, F).reshape(x.shape) @ w_output

    def queries_compressed_too(x, w_query, w_key, w_value, w_output, E, F, num_heads):
        """You shrink the queries as well, so proj_dim rows come out, and n tokens wait for one each. Only keys and values go through E and F."""
        q, k, v = (split_heads(x @ w, num_heads) for w in (w_query, w_key, w_value))
        return merge_heads(linformer_attention(E @ q, k, v, E, F)) @ w_output

    def E_in_both_places(x, w_query, w_key, w_value, w_output, E, F, num_heads):
        """Your values go through E. They have a matrix of their own, F."""
        return multi_head_linformer(x, w_query, w_key, w_value, w_output, E, E, num_heads)

    def scaled_by_the_model(x, w_query, w_key, w_value, w_output, E, F, num_heads):
        """You divide by √d_model. A score is a sum over the features of one head, so d is d_head."""
        return multi_head_linformer(
            x, w_query / math.sqrt(num_heads), w_key, w_value, w_output, E, F, num_heads
        )


def padded_slots(x: Tensor, mask: Tensor, E: Tensor) -> Tensor:
    """E times the real tokens. Shape: x (batch, n, d), mask (batch, n), E (proj_dim, n) -> (batch, proj_dim, d)."""
    return E @ x.masked_fill(~mask[..., None], 0.0)


def two_texts(n: int) -> Tensor:
    """Which tokens are real: padded at the left, and at the right; where n = 1 nothing is real in the second."""
    tokens = torch.arange(n)
    return torch.stack([tokens >= n // 3, tokens < n // 2])


@exercise("6.5", stars=2, minutes=6, gradients=("x", "E"))
class Padding:
    """Padding."""

    hints = (
        "A slot is a sum over tokens. What should a padded token add to it?",
        "mask[..., None] is (batch, n, 1), which fits x, (batch, n, d).",
        "x.masked_fill(~mask[..., None], …), and then multiply by E from the left.",
    )
    reference = padded_slots

    def draw(seed):
        """A batch whose padding holds infinities: at the left of one sample, at the right of the other."""
        n, slots, d = row(seed, SIZES)
        x, E = normal(seed, (BATCH, n, d), (slots, n))
        mask = two_texts(n)
        return x.masked_fill(~mask[..., None], math.inf), mask, E

    def padding_kept(x, mask, E):
        """You leave the padding in, and now every slot has some. No mask can take it out later: clean x before E sees it."""
        return E @ x

    def multiplied_by_the_mask(x, mask, E):
        """You multiply by the mask, which works until the padding holds ∞ or NaN: 0 · ∞ is NaN. masked_fill writes zeros, whatever was there."""
        return E @ (x * mask[..., None])

    def first_tokens_taken(x, mask, E):
        """You count the real tokens and take that many from the left. They may stand anywhere: go by the mask, and fill where ~mask."""
        first = torch.arange(x.size(1)) < mask.sum(-1, keepdim=True)
        return E @ torch.where(first[..., None], x, 0.0)

    def real_tokens_zeroed(x, mask, E):
        """You put the zeros where the tokens are real. True means a real token, so fill where ~mask."""
        return E @ x.masked_fill(mask[..., None], 0.0)

    def averaged_over_real_tokens(x, mask, E):
        """You divide by the number of real tokens, as an average would. A slot is a weighted sum: leave the padding out and change nothing else."""
        lengths = mask.sum(-1).clamp(min=1)[:, None, None]
        return padded_slots(x, mask, E) / lengths

    def slots_filled(x, mask, E):
        """You fill slots by a mask of tokens. By then every slot has padding mixed into it: fill x first, then apply E."""
        return (E @ x).masked_fill(~mask[..., None], 0.0)

    def slots_multiplied(x, mask, E):
        """You multiply E @ x by the mask, but its rows are slots, and each has some padding in it. Fill x where ~mask, then apply E."""
        return (E @ x) * mask[..., None]

    def mask_times_slots(x, mask, E):
        """Your mask multiplies slots, and it speaks of tokens. The zeros go into x, where ~mask, before E is applied."""
        return mask[..., None] * (E @ x)

    def first_slots_multiplied(x, mask, E):
        """You cut the mask to proj_dim to make it fit. That it didn't fit was the warning: it belongs to tokens, not slots. Fill x before E is applied."""
        return (E @ x) * mask[:, : len(E), None]

    def first_slots_filled(x, mask, E):
        """You cut the mask to proj_dim and hide slots with it. But slot i isn't token i, it mixes all of them: fill x before E is applied."""
        return (E @ x).masked_fill(~mask[:, : len(E), None], 0.0)

    def slots_zeroed(x, mask, E):
        """You zero slots as if they were tokens. Every slot mixes all tokens, so the padding has to go before E is applied."""
        kept = torch.arange(len(E)) < mask.sum(-1, keepdim=True)
        return (E @ x).masked_fill(~kept[..., None], 0.0)


def keys_with_bias(slots: Tensor, weight: Tensor, bias: Tensor, E: Tensor) -> Tensor:
    """E (X W + 1 bᵀ) from slots = E X. Shape: slots (batch, proj_dim, d), weight (d, m), E (proj_dim, n) -> (…, proj_dim, m)."""
    return slots @ weight + E.sum(-1, keepdim=True) * bias


@exercise("6.6", stars=2, minutes=8, gradients=("slots", "weight", "bias", "E"))
class BiasAfterE:
    """A bias in the cheap order."""

    hints = (
        "Multiply the bracket out: E X W, plus E times a matrix whose rows are all b.",
        "E times a column of ones is the sum of each row of E, so (proj_dim, 1).",
        "slots @ weight + E.sum(dim=-1, keepdim=True) * …",
    )
    reference = keys_with_bias

    def draw(seed):
        """Compressed tokens, a weight, a bias, and the E that compressed them."""
        n, slots, d = row(seed, SIZES)
        x, weight, bias, E = normal(seed, (BATCH, n, d), (d, d + 1), (d + 1,), (slots, n))
        return E @ x, weight, bias, E

    def bias_as_it_is(slots, weight, bias, E):
        """(EX)W + b is what you get if you compress first and change nothing else. But E mixes the biases too: what does row i of E make of n copies of b?"""
        return slots @ weight + bias

    def bias_forgotten(slots, weight, bias, E):
        """Your bias is gone. Multiply the bracket out: E (X W + 1 bᵀ) = (E X) W + (E 1) bᵀ."""
        return slots @ weight

    def bias_times_tokens(slots, weight, bias, E):
        """You add n · b, which would be right if every entry of E were 1. Slot i gets b times the sum of row i of E."""
        return slots @ weight + E.size(-1) * bias

    def bias_summed_over_all(slots, weight, bias, E):
        """You add up all of E to one number. Every slot has its own: the sum of its row."""
        return slots @ weight + E.sum() * bias

    def bias_times_the_mean(slots, weight, bias, E):
        """You take the mean of each row of E, but n weighted copies of b add up. Slot i gets b times the sum of row i."""
        return slots @ weight + E.mean(dim=-1, keepdim=True) * bias

    def bias_of_columns(slots, weight, bias, E):
        """E.sum(0) adds up the columns: one number for each token. You need one for each slot, the sum of its row, E.sum(dim=-1, keepdim=True)."""
        return slots @ weight + E.sum(0) * bias

    def bias_of_a_column(slots, weight, bias, E):
        """You sum over slots, so a number is left for each token. Sum over tokens, the last axis of E, and one is left for each slot."""
        return slots @ weight + E.sum(0)[:, None] * bias

    def bias_of_flat_rows(slots, weight, bias, E):
        """The right sums along the wrong axis: they belong to slots, and yours line up with features. Keep the axis, E.sum(dim=-1, keepdim=True)."""
        return slots @ weight + E.sum(-1) * bias

    def bias_before_weight(slots, weight, bias, E):
        """You add the row sums before the weight, so W mixes them. The bias comes after W: (E X) W first, then (E 1) bᵀ."""
        return (slots + E.sum(-1, keepdim=True)) @ weight * bias


class Uses(nn.Module):
    """Everything that is asked of a layer, in one call, so that it can be made with the weights that are drawn."""

    layer: LinformerAttention  # or a learner's, which promises the same

    def __init__(self, layer: LinformerAttention):
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor, padding_mask: Tensor, seq_len: int) -> tuple[Tensor, ...]:
        """The slots; then outputs without padding, with 1,000 in the padding and with infinities there."""
        self.count(x.new_zeros(1, seq_len, x.size(-1)))
        outputs = [self.layer(x)]
        for fill in (1000.0, math.inf):
            padded = x.masked_fill(~padding_mask[..., None], fill)
            given = padded.clone()
            outputs.append(self.layer(given, padding_mask))
            if not torch.equal(given, padded):
                raise Refused("forward changes x in place")
        self.refuse(x.new_zeros(1, seq_len + 1, x.size(-1)))
        return *self.layer.slots(x), *outputs

    def count(self, x: Tensor) -> None:
        """Complain where the slots of a text of seq_len tokens cost more than E X, F X and their products with W."""
        n, proj_dim = self.layer.E.seq_len, self.layer.E.proj_dim
        d_model = x.size(-1)
        cheap = 2 * 2 * (proj_dim * n * d_model + proj_dim * d_model * d_model)
        with FlopCounterMode(display=False) as counter:
            self.layer.slots(x)
        if counter.get_total_flops() > cheap:
            raise Refused(
                f"slots(x) takes {counter.get_total_flops():,} operations, the cheap order {cheap:,}: "
                "first E X and F X, once each, then key and value"
            )

    def refuse(self, x: Tensor) -> None:
        """Complain unless a text of one token too many raises ValueError with both numbers."""
        n = x.size(1)
        try:
            self.layer(x)
        except Exception as error:
            if not isinstance(error, ValueError):
                raise Refused(f"{n} tokens raised {type(error).__name__}, not ValueError") from error
            if not {str(n), str(n - 1)} <= {*re.findall(r"\d+", str(error))}:
                raise Refused(f"the ValueError does not say both {n} and {n - 1}") from error
        else:
            raise Refused(f"{n} tokens were accepted although E and F take {n - 1}; expected ValueError")


class PaddingInSlots(LinformerAttention):
    """A layer whose slots hold the padding, so that `attend` gets the mask too late."""

    def forward(self, x, padding_mask=None):
        heads = self.attend(self.split(self.query(x)), *self.slots(x), padding_mask)
        return self.output(merge_heads(heads))


OF_A_LAYER = "x", "query", "key", "value", "output", "bias", "E", "F"


@exercise("6.7", stars=3, minutes=25, gradients=OF_A_LAYER, part="linformer_layer")
class WholeLayer:
    """The whole layer."""

    hints = (
        "forward answers three questions, in this order: is x too long, which tokens are real, what do the queries find?",
        "E.weight[:, :n] @ x is (batch, proj_dim, d_model). Put self.key on that, then split it into heads.",
        "x = x.masked_fill(~padding_mask[..., None], 0.0); keys, values = self.slots(x); then the queries, softmax, …",
    )
    reference = LinformerAttention

    def draw(seed):
        """A batch with its mask, the layer's weights, E and F for texts as long or longer, and the number of heads."""
        n, longer, slots, d_head, heads = row(
            seed, ((7, 0, 4, 5, 3), (5, 3, 3, 4, 2), (1, 4, 2, 3, 5), (9, 2, 6, 3, 4))
        )
        d, seq_len = heads * d_head, max(n + longer, slots + 1)
        x, *weights = normal(seed, (BATCH, n, d), *4 * [(d, d)], (d,), *2 * [(slots, seq_len)])
        scaled = [weight / math.sqrt(weight.size(-1)) for weight in weights]
        return x, two_texts(n), *scaled, heads

    def use(attempt, x, padding_mask, query, key, value, output, bias, E, F, num_heads):
        """Build the layer, give it the drawn weights, and use it."""
        projections = (LearnedProjection(E.size(1), E.size(0)) for _ in "EF")
        uses = Uses(attempt(x.size(-1), num_heads, *projections))
        weights = {"query.weight": query, "key.weight": key, "value.weight": value, "output.weight": output}
        weights |= {"output.bias": bias, "E.weight": E, "F.weight": F}
        named = {f"layer.{name}": weight for name, weight in weights.items()}
        if missing := named.keys() - {name for name, _ in uses.named_parameters()}:
            names = ", ".join(sorted(name.removeprefix("layer.") for name in missing))
            raise Refused(f"the layer has no {names}; keep the names of __init__")
        return functional_call(uses, named, (x, padding_mask, E.size(1)))

    class MaskIgnored(LinformerAttention):
        """You take padding_mask and never use it. Put zeros in place of the padding in x, before E and F mix it into every slot."""

        def forward(self, x, padding_mask=None):
            return super().forward(x)

    class MaskMultiplied(LinformerAttention):
        """You multiply by the mask, which works until the padding holds ∞ or NaN: 0 · ∞ is NaN. masked_fill writes zeros, whatever was there."""

        def forward(self, x, padding_mask=None):
            return super().forward(x if padding_mask is None else x * padding_mask[..., None])

    class RealTokensZeroed(LinformerAttention):
        """You put the zeros where the tokens are real. True means a real token, so fill where ~padding_mask."""

        def forward(self, x, padding_mask=None):
            return super().forward(x, None if padding_mask is None else ~padding_mask)

    class SlotsMasked(PaddingInSlots):
        """You mask the scores, as full attention does. But their columns are slots now, and each has some padding in it: fill x before E is applied."""

        def attend(self, q, k, v, padding_mask):
            scores = q @ k.mT / math.sqrt(q.size(-1))
            if padding_mask is not None:
                scores = scores.masked_fill(~padding_mask[:, None, None, :], -math.inf)
            return scores.softmax(dim=-1) @ v

    class SlotsMaskedByTheKernel(PaddingInSlots):
        """You hand the mask to the kernel, whose keys are slots, not tokens. Fill x where ~padding_mask, before E; after that no mask is needed."""

        def attend(self, q, k, v, padding_mask):
            mask = None if padding_mask is None else padding_mask[:, None, None]
            return functional.scaled_dot_product_attention(q, k, v, mask)

    class SlotsMaskedAsInChapter1(PaddingInSlots):
        """Chapter 01's mask hides keys, and your keys are slots: none of them is a token, and each has some padding in it. Fill x before E is applied."""

        def attend(self, q, k, v, padding_mask):
            mask = None if padding_mask is None else padding_mask[:, None, None]
            return scaled_dot_product_attention(q, k, v, mask)

    class FirstSlotsMasked(SlotsMasked):
        """You cut the mask of tokens to proj_dim and hide slots with it. But slot i isn't token i, it mixes all of them: fill x before E is applied."""

        def attend(self, q, k, v, padding_mask):
            return super().attend(q, k, v, None if padding_mask is None else padding_mask[:, : k.size(-2)])

    class PaddedRowsZeroed(LinformerAttention):
        """You put zeros into the output at padded positions. Leave those rows as they come: nobody looks at them."""

        def forward(self, x, padding_mask=None):
            output = super().forward(x, padding_mask)
            return output if padding_mask is None else output.masked_fill(~padding_mask[..., None], 0.0)

    class InPlace(LinformerAttention):
        """You write zeros into x itself, and whoever passed it, a residual connection for example, has lost its tokens. Work on a copy."""

        def forward(self, x, padding_mask=None):
            if padding_mask is not None:
                x[~padding_mask] = 0
            return super().forward(x)

    class PaddingAsks(LinformerAttention):
        """Your queries are still made from what's in the padding. Fill x first, then make queries, keys and values from the filled one."""

        def forward(self, x, padding_mask=None):
            slots = self.slots(real_tokens(x, padding_mask))
            return self.output(merge_heads(self.attend(self.split(self.query(x)), *slots, padding_mask)))

        def attend(self, q, k, v, padding_mask):
            return (q @ k.mT / math.sqrt(q.size(-1))).softmax(dim=-1) @ v

    class PaddingAsksTheKernel(PaddingAsks):
        """Your slots are clean, but your queries still come from whatever is in the padding. Fill x once, and make all three from it."""

        attend = LinformerAttention.attend

    class PaddingOutOfSlotsOnlyForKeys(LinformerAttention):
        """Your keys are clean, and your values still have the padding in them. Make both from the x that has zeros there."""

        def forward(self, x, padding_mask=None):
            real = real_tokens(x, padding_mask)
            keys, values = self.slots(real)[0], self.slots(x)[1]
            return self.output(
                merge_heads(self.attend(self.split(self.query(real)), keys, values, padding_mask))
            )

    class LongerCut(LinformerAttention):
        """You cut a text longer than seq_len and tell nobody what's missing. Raise a ValueError with both numbers."""

        def slots(self, x):
            return super().slots(x[:, : self.E.seq_len])

    class LongerCrashes(LinformerAttention):
        """A text longer than seq_len crashes somewhere inside, with a message about shapes. Compare n with E.weight.size(-1) first, and raise a ValueError with both numbers."""

        def slots(self, x):
            for_keys, for_values = (E.get_parameter("weight")[:, : x.size(1)] @ x for E in (self.E, self.F))
            return self.split(self.key(for_keys)), self.split(self.value(for_values))

    class LongerAsserted(LinformerAttention):
        """assert raises an AssertionError, and python -O leaves it out. If n > seq_len, raise a ValueError with both numbers."""

        def forward(self, x, padding_mask=None):
            assert x.size(1) <= self.E.seq_len
            return super().forward(x, padding_mask)

    class LongerWithoutNumbers(LinformerAttention):
        """Your ValueError lacks a number. Whoever meets it at three in the morning wants to know how long the text was and how long it may be."""

        def forward(self, x, padding_mask=None):
            if x.size(1) > self.E.seq_len:
                raise ValueError("the text is too long")
            return super().forward(x, padding_mask)

    class LastColumns(LinformerAttention):
        """You take the last n columns of E and F. A text of n tokens uses the first n."""

        def slots(self, x):
            return super().slots(functional.pad(x, (0, 0, max(0, self.E.seq_len - x.size(1)), 0)))

    class ShorterRefused(LinformerAttention):
        """A text shorter than seq_len crashes in your layer. It's welcome: it uses the first n columns, E.weight[:, :n]."""

        def slots(self, x):
            if x.size(1) > self.E.seq_len:
                return super().slots(x)
            for_keys, for_values = self.E.weight @ x, self.F.weight @ x
            return self.split(self.key(for_keys)), self.split(self.value(for_values))

    class EAndFSwapped(LinformerAttention):
        """You swapped E and F: E compresses what becomes the keys, F what becomes the values."""

        def slots(self, x):
            return self.split(self.key(self.F(x))), self.split(self.value(self.E(x)))

    class KeysAndValuesSwapped(LinformerAttention):
        """Your slots(x) returns values and keys. It's keys first, values second."""

        def slots(self, x):
            return super().slots(x)[::-1]

    class ValuesAsKeys(LinformerAttention):
        """slots(x) returns the keys first and the values second; your forward takes them the other way round."""

        def attend(self, q, k, v, padding_mask):
            return super().attend(q, v, k, padding_mask)

    class EForBoth(LinformerAttention):
        """You shrink the values with E as well. They have a matrix of their own, F."""

        def slots(self, x):
            return tuple(self.split(W(self.E(x))) for W in (self.key, self.value))

    class DearOrder(LinformerAttention):
        """You apply the key and value weights to all n tokens and compress afterwards. Compress first, (E X) W, and only proj_dim rows are left for them."""

        def slots(self, x):
            return self.E(self.split(self.key(x))), self.F(self.split(self.value(x)))

    class DearOrderOnce(LinformerAttention):
        """One of keys and values is cheap, the other still takes the expensive order. Both E X and F X come first, then their weights."""

        def slots(self, x):
            return self.E(self.split(self.key(x))), self.split(self.value(self.F(x)))

    class HeadByHead(LinformerAttention):
        """You compress X once for every head. All heads share E X and F X: compress once, and cut into heads at the end."""

        def slots(self, x):
            def compressed(E, W):
                weights = W.weight.chunk(self.num_heads)
                return torch.stack([functional.linear(E(x), weight) for weight in weights], dim=1)

            return compressed(self.E, self.key), compressed(self.F, self.value)

    class ScaledByTheModel(LinformerAttention):
        """You divide by √d_model. A score is a sum over the features of one head, so d is d_head."""

        def attend(self, q, k, v, padding_mask):
            return super().attend(q / math.sqrt(self.num_heads), k, v, padding_mask)

    class ScaledBySlots(LinformerAttention):
        """You divide by √proj_dim, which is tempting, since proj_dim is what's new. But a score is a sum over d_head features, and they are what makes it large."""

        def attend(self, q, k, v, padding_mask):
            return super().attend(q * math.sqrt(q.size(-1) / k.size(-2)), k, v, padding_mask)

    class SoftmaxOverTokens(LinformerAttention):
        """Your columns sum to one. Each query spreads its attention over the slots, and the slots are the last axis: dim=-1."""

        def attend(self, q, k, v, padding_mask):
            return (q @ k.mT / math.sqrt(q.size(-1))).softmax(dim=-2) @ v

    class ScaledTwice(LinformerAttention):
        """You divide by √d_head, and then scaled_dot_product_attention divides again. Once is enough."""

        def attend(self, q, k, v, padding_mask):
            return super().attend(q / math.sqrt(q.size(-1)), k, v, padding_mask)

    class Unscaled(LinformerAttention):
        """You forgot to divide the scores by √d_head."""

        def attend(self, q, k, v, padding_mask):
            return super().attend(q * math.sqrt(q.size(-1)), k, v, padding_mask)

    class MergedByReshape(LinformerAttention):
        """You merge with reshape alone, and that joins features of different tokens. Bring the heads of a token next to each other first, as merge_heads does."""

        def forward(self, x, padding_mask=None):
            real = real_tokens(x, padding_mask)
            heads = self.attend(self.split(self.query(real)), *self.slots(real), padding_mask)
            return self.output(heads.reshape(x.shape))

    class CutByReshape(LinformerAttention):
        """You cut with reshape(batch, num_heads, …), and that puts features of different tokens into one head. Cut the features only, as split_heads does."""

        def split(self, x):
            return reshaped_heads(x, self.num_heads)

    class OneWideHead(LinformerAttention):
        """You attend with all d_model features at once. Cut queries, keys and values into heads first."""

        def split(self, x):
            return x[:, None]

    class BiasLost(LinformerAttention):
        """The output layer has a bias, and yours got lost. Call self.output(…) instead of multiplying by its weight."""

        def forward(self, x, padding_mask=None):
            return super().forward(x, padding_mask) - self.output.bias

    class HeadsNotMixed(LinformerAttention):
        """You stop after merging. One step is left: self.output mixes the heads."""

        def forward(self, x, padding_mask=None):
            real = real_tokens(x, padding_mask)
            return merge_heads(self.attend(self.split(self.query(real)), *self.slots(real), padding_mask))
