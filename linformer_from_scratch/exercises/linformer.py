"""Chapter 06: exercises and quiz."""

import math
import re

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.exercises.engine.checking import Exercise, Refused
from linformer_from_scratch.exercises.engine.draws import normal, row
from linformer_from_scratch.exercises.engine.quiz import Option, Question
from linformer_from_scratch.heads import merge_heads, split_heads
from linformer_from_scratch.linformer import LinformerAttention, linformer_attention, real_tokens
from linformer_from_scratch.projections import LearnedProjection

BATCH, HEADS = 2, 3
SIZES = ((7, 4, 5), (8, 5, 4), (1, 1, 3), (9, 9, 6))  # tokens, slots, features of a head, for each draw


# 6.1: Linformer attention


def draw_attention(seed: int) -> tuple[Tensor, ...]:
    """Queries, keys, values of a batch of heads, and E and F."""
    n, slots, d = row(seed, SIZES)
    return normal(seed, *3 * [(BATCH, HEADS, n, d)], (slots, n), (slots, n))


def attend(q, keys, values):
    """Softmax(q keysᵀ / √d) values."""
    return (q @ keys.mT / math.sqrt(q.size(-1))).softmax(-1) @ values


def E_on_features(q, k, v, E, F):
    """k @ E.mT multiplies E with the features; E mixes tokens, so it goes on the left: E @ k."""
    return attend(q, k @ E.mT, v @ F.mT)


def E_transposed(q, k, v, E, F):
    """E is (proj_dim, n) here, so E @ k fits as it is; with .mT you use the other convention, n × proj_dim."""
    return attend(q, E.mT @ k, F.mT @ v)


def E_and_F_swapped(q, k, v, E, F):
    """E and F are swapped: E compresses the keys, and F compresses the values."""
    return attend(q, F @ k, E @ v)


def E_for_both(q, k, v, E, F):
    """Your values are compressed by E as well; they belong to F."""
    return attend(q, E @ k, E @ v)


def values_not_compressed(q, k, v, E, F):
    """Your map is n × proj_dim, so it cannot mix n values; compress the values too: F @ v."""
    return attend(q, E @ k, v)


def values_in_chapter_1(q, k, v, E, F):
    """F is not used: every slot needs a key and a value, so the values are compressed too, F @ v."""
    return scaled_dot_product_attention(q, E @ k, v)


def first_values(q, k, v, E, F):
    """You mix the first proj_dim values as they are; a slot's value is made of all tokens, F @ v."""
    return attend(q, E @ k, v[..., : len(E), :])


def values_forgotten(q, k, v, E, F):
    """That is P̄F, what each token reads from each token; the values v are still to be mixed: P̄ (F v)."""
    return (q @ (E @ k).mT / math.sqrt(q.size(-1))).softmax(-1) @ F


def full_attention(q, k, v, E, F):
    """That is full attention: neither E nor F is used. Compress the keys with E and the values with F first."""
    return attend(q, k, v)


def softmax_over_tokens(q, k, v, E, F):
    """Your columns sum to one; each query spreads its weights over the slots, so softmax belongs on the last axis."""
    return (q @ (E @ k).mT / math.sqrt(q.size(-1))).softmax(-2) @ (F @ v)


def scaled_by_slots(q, k, v, E, F):
    """You divide by the root of proj_dim; what makes dot products large is d, the features: q.size(-1)."""
    return (q @ (E @ k).mT / math.sqrt(E.size(0))).softmax(-1) @ (F @ v)


def linformer_unscaled(q, k, v, E, F):
    """The scores are not divided by √d; compressed keys have d features, like any other keys."""
    return (q @ (E @ k).mT).softmax(-1) @ (F @ v)


# 6.2: an E that keeps chosen tokens


def keep_tokens(keep: Tensor, n: int) -> Tensor:
    """Row i of E picks token keep[i]. Shape: keep (m,) of integers -> (m, n)."""
    return torch.eye(n)[keep]


def draw_tokens_to_keep(seed: int) -> tuple[Tensor, int]:
    """Some tokens, in an order of their own, and how many there are in all."""
    n, kept = row(seed, ((7, 3), (5, 2), (3, 3), (21, 5)))
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    return order[: min(kept, n)], n


def kept_columns(keep, n):
    """That is n × m: E has one row for each slot and one column for each token. Index rows of the identity."""
    return torch.eye(n)[:, keep]


def zeros_on_the_diagonal(keep, n):
    """Keys of zeros are not hidden: their score is 0, which still gets weight, since exp 0 = 1. Leave those rows out."""
    return torch.diag(torch.zeros(n).index_fill(0, keep, 1.0))


def all_in_every_slot(keep, n):
    """Every slot holds the mean of the kept tokens; slot i should hold one of them, token keep[i]."""
    return torch.zeros(n).index_fill(0, keep, 1 / len(keep)).expand(len(keep), n).clone()


def first_tokens(keep, n):
    """That keeps the first m tokens; `keep` says which tokens to keep."""
    return torch.eye(n)[: len(keep)]


def in_the_order_of_the_text(keep, n):
    """Attention would not notice, but slot i should hold token keep[i]; your slots are in the order of the text."""
    return torch.eye(n)[keep.sort().values]


def ones_at_all_of_them(keep, n):
    """Every row has a 1 at every kept token, so each slot holds their sum; row i has a single 1, in column keep[i]."""
    return torch.zeros(len(keep), n).index_fill(1, keep, 1.0)


def shared_out(keep, n):
    """Each row copies a whole token, so its one entry is 1 and not 1/m: a smaller key would have smaller scores."""
    return torch.eye(n)[keep] / len(keep)


def dropped_instead(keep, n):
    """These are the tokens to drop; keep the others."""
    return torch.eye(n)[[i for i in range(n) if i not in keep.tolist()]]


# 6.3: the bug, fixed


def compress_length(x: Tensor, weight: Tensor) -> Tensor:
    """What Linear(n, proj_dim) makes of the sequence axis. Shape: (batch, heads, n, d) -> (…, proj_dim, d)."""
    return functional.linear(x.mT, weight).mT


def draw_length(seed: int) -> tuple[Tensor, ...]:
    """A batch of heads, and the weight of Linear(n, proj_dim)."""
    n, slots, d = row(seed, SIZES)
    return normal(seed, (BATCH, HEADS, n, d), (slots, n))


def linear_on_features(x, weight):
    """A linear layer acts on the last axis, and that is the features. Bring the tokens there first: x.mT."""
    return functional.linear(x, weight)


def not_turned_back(x, weight):
    """The numbers are right, but the axes are swapped: swap them back after the linear layer, so that slots come before features."""
    return functional.linear(x.mT, weight)


def reshaped(x, weight):
    """reshape keeps the numbers in their order and so mixes tokens with features; swap the axes with x.mT instead."""
    turned = x.reshape(*x.shape[:2], x.size(-1), x.size(-2))
    return functional.linear(turned, weight).mT


def reshaped_back(x, weight):
    """The first step is right; but reshape then mixes slots with features. Swap the axes back with .mT."""
    turned = functional.linear(x.mT, weight)
    return turned.reshape(*x.shape[:2], weight.size(0), x.size(-1))


def along_heads(x, weight):
    """You brought the heads to the end, not the tokens; swap the last two axes: x.mT."""
    return functional.linear(x.transpose(1, 3), weight).transpose(1, 3)


def weight_of_its_own(x, weight):
    """The numbers are right, but weight gets no gradient: nn.Parameter(weight), a new nn.Linear and .detach() cut it off; functional.linear(x.mT, weight) does not."""
    return functional.linear(x.mT, weight.detach()).mT


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
    n, slots, d_head = row(seed, SIZES)
    (heads,) = row(seed, ((3,), (2,), (5,), (1,)))
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


def cut_by_reshape(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    """reshape(batch, heads, n, d_head) mixes features of different tokens into a head; cut the features only: split_heads."""
    q, k, v = (reshaped_heads(x @ w, num_heads) for w in (w_query, w_key, w_value))
    return merge_heads(linformer_attention(q, k, v, E, F)) @ w_output


def heads_not_brought_forward(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    """The features are cut into heads, but tokens still come before heads: swap axes 1 and 2, as split_heads does."""
    q, k, v = ((x @ w).unflatten(-1, (num_heads, -1)) for w in (w_query, w_key, w_value))
    return linformer_attention(q, k, v, E, F).reshape(x.shape) @ w_output


def reshaped_there_and_back(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    """The shapes fit, but reshape cuts the tokens into heads, not the features; use split_heads and merge_heads."""
    q, k, v = (reshaped_heads(x @ w, num_heads) for w in (w_query, w_key, w_value))
    return linformer_attention(q, k, v, E, F).reshape(x.shape) @ w_output


def reshaped_heads(x: Tensor, num_heads: int) -> Tensor:
    """Shape: (batch, n, d_model) -> (batch, num_heads, n, d_head), in the order of memory: wrong."""
    return x.reshape(len(x), num_heads, x.size(1), -1)


def queries_compressed_too(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    """Your queries are compressed as well, so proj_dim rows come out instead of n; only keys and values go through E and F."""
    q, k, v = (split_heads(x @ w, num_heads) for w in (w_query, w_key, w_value))
    return merge_heads(linformer_attention(E @ q, k, v, E, F)) @ w_output


def E_in_both_places(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    """Your values are compressed by E as well; they belong to F."""
    return multi_head_linformer(x, w_query, w_key, w_value, w_output, E, E, num_heads)


def scaled_by_the_model(x, w_query, w_key, w_value, w_output, E, F, num_heads):
    """√d counts the features of one head, d_head, not all d_model of them."""
    return multi_head_linformer(x, w_query / math.sqrt(num_heads), w_key, w_value, w_output, E, F, num_heads)


# 6.5: padding


def padded_slots(x: Tensor, mask: Tensor, E: Tensor) -> Tensor:
    """E times the real tokens. Shape: x (batch, n, d), mask (batch, n), E (proj_dim, n) -> (batch, proj_dim, d)."""
    return E @ x.masked_fill(~mask[..., None], 0.0)


def draw_padded(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """A batch whose padding holds infinities: at the left of one sample, at the right of the other."""
    n, slots, d = row(seed, SIZES)
    x, E = normal(seed, (BATCH, n, d), (slots, n))
    mask = two_texts(n)
    return x.masked_fill(~mask[..., None], math.inf), mask, E


def two_texts(n: int) -> Tensor:
    """Which tokens are real: padded at the left, and at the right; where n = 1 nothing is real in the second."""
    tokens = torch.arange(n)
    return torch.stack([tokens >= n // 3, tokens < n // 2])


def padding_kept(x, mask, E):
    """Padding went into the slots: whatever it holds is mixed with the real tokens, and no mask can take it out later."""
    return E @ x


def multiplied_by_the_mask(x, mask, E):
    """0 · ∞ and 0 · NaN are NaN, so a product lets bad padding through. Replace it by zeros with masked_fill."""
    return E @ (x * mask[..., None])


def first_tokens_taken(x, mask, E):
    """You count the real tokens and take that many from the left; but they may be anywhere, so fill where ~mask."""
    first = torch.arange(x.size(1)) < mask.sum(-1, keepdim=True)
    return E @ torch.where(first[..., None], x, 0.0)


def real_tokens_zeroed(x, mask, E):
    """You put zeros where the tokens are real: True means a real token, so fill where ~mask."""
    return E @ x.masked_fill(mask[..., None], 0.0)


def averaged_over_real_tokens(x, mask, E):
    """Only leave the padding out; dividing by the number of real tokens changes the slots of every sample that has some."""
    lengths = mask.sum(-1).clamp(min=1)[:, None, None]
    return padded_slots(x, mask, E) / lengths


def slots_filled(x, mask, E):
    """The mask is one of tokens, and E @ x has slots: every slot already mixes the padding, so fill x before E is applied."""
    return (E @ x).masked_fill(~mask[..., None], 0.0)


def slots_multiplied(x, mask, E):
    """The mask belongs to tokens, and E @ x has slots, each of which holds some padding; fill x where ~mask, then apply E."""
    return (E @ x) * mask[..., None]


def mask_times_slots(x, mask, E):
    """Your mask multiplies slots, but it says which tokens are real: put zeros into x where ~mask, then apply E."""
    return mask[..., None] * (E @ x)


def first_slots_multiplied(x, mask, E):
    """A mask of tokens, cut to proj_dim, cannot clean slots, since each of them mixes all tokens. Fill x before E is applied."""
    return (E @ x) * mask[:, : len(E), None]


def first_slots_filled(x, mask, E):
    """A mask of tokens, cut to proj_dim, hides slots: but slot i is not token i, it mixes all. Fill x before E is applied."""
    return (E @ x).masked_fill(~mask[:, : len(E), None], 0.0)


def slots_zeroed(x, mask, E):
    """You zeroed slots, not tokens: every slot mixes all tokens, so padding must go before E is applied."""
    kept = torch.arange(len(E)) < mask.sum(-1, keepdim=True)
    return (E @ x).masked_fill(~kept[..., None], 0.0)


# 6.6: a bias in the cheap order


def keys_with_bias(slots: Tensor, weight: Tensor, bias: Tensor, E: Tensor) -> Tensor:
    """E (X W + 1 bᵀ) from slots = E X. Shape: slots (batch, proj_dim, d), weight (d, m), E (proj_dim, n) -> (…, proj_dim, m)."""
    return slots @ weight + E.sum(-1, keepdim=True) * bias


def draw_bias(seed: int) -> tuple[Tensor, ...]:
    """Compressed tokens, a weight, a bias, and the E that compressed them."""
    n, slots, d = row(seed, SIZES)
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


def bias_times_the_mean(slots, weight, bias, E):
    """Slot i gets the sum of row i of E times b; you took the mean of the row."""
    return slots @ weight + E.mean(dim=-1, keepdim=True) * bias


def bias_of_columns(slots, weight, bias, E):
    """E.sum(0) adds up the columns, one number for each token; slot i needs the sum of its row, E.sum(dim=-1, keepdim=True)."""
    return slots @ weight + E.sum(0) * bias


def bias_of_a_column(slots, weight, bias, E):
    """You sum over slots, so a number is left for each token; sum over tokens, the last axis of E, and one is left for each slot."""
    return slots @ weight + E.sum(0)[:, None] * bias


def bias_of_flat_rows(slots, weight, bias, E):
    """The sums of E's rows lie along the features, but they belong to slots: keep the axis, E.sum(dim=-1, keepdim=True)."""
    return slots @ weight + E.sum(-1) * bias


def bias_before_weight(slots, weight, bias, E):
    """You add the mixed bias before the weight is applied; b is added after W, to (E X) W."""
    return (slots + E.sum(-1, keepdim=True)) @ weight * bias


# 6.7: the whole layer


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


def use_layer(attempt, x, padding_mask, query, key, value, output, bias, E, F, num_heads):
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


def draw_whole_layer(seed: int) -> tuple:
    """A batch with its mask, the layer's weights, E and F for texts as long or longer, and the number of heads."""
    n, longer, slots, d_head, heads = row(
        seed, ((7, 0, 4, 5, 3), (5, 3, 3, 4, 2), (1, 4, 2, 3, 5), (9, 2, 6, 3, 4))
    )
    d, seq_len = heads * d_head, max(n + longer, slots + 1)
    x, *weights = normal(seed, (BATCH, n, d), *4 * [(d, d)], (d,), *2 * [(slots, seq_len)])
    scaled = [weight / math.sqrt(weight.size(-1)) for weight in weights]
    return x, two_texts(n), *scaled, heads


class MaskIgnored(LinformerAttention):
    """The mask is not used: zeros must take the place of padding in x before E and F mix it into every slot."""

    def forward(self, x, padding_mask=None):
        return super().forward(x)


class MaskMultiplied(LinformerAttention):
    """You multiply by the mask: 0 · ∞ and 0 · NaN are NaN, so bad padding comes through. Use masked_fill."""

    def forward(self, x, padding_mask=None):
        return super().forward(x if padding_mask is None else x * padding_mask[..., None])


class RealTokensZeroed(LinformerAttention):
    """You put zeros where the tokens are real: True means a real token, so fill where ~padding_mask."""

    def forward(self, x, padding_mask=None):
        return super().forward(x, None if padding_mask is None else ~padding_mask)


class PaddingInSlots(LinformerAttention):
    """A layer whose slots hold the padding, so that `attend` gets the mask too late."""

    def forward(self, x, padding_mask=None):
        heads = self.attend(self.split(self.query(x)), *self.slots(x), padding_mask)
        return self.output(merge_heads(heads))


class SlotsMasked(PaddingInSlots):
    """You mask the scores, but their columns are slots, not tokens, and each holds some padding. Fill x before E is applied."""

    def attend(self, q, k, v, padding_mask):
        scores = q @ k.mT / math.sqrt(q.size(-1))
        if padding_mask is not None:
            scores = scores.masked_fill(~padding_mask[:, None, None, :], -math.inf)
        return scores.softmax(dim=-1) @ v


class SlotsMaskedByTheKernel(PaddingInSlots):
    """The mask went to the scores, whose columns are slots, not tokens. Fill x where ~padding_mask, before E; then no mask is needed."""

    def attend(self, q, k, v, padding_mask):
        mask = None if padding_mask is None else padding_mask[:, None, None]
        return functional.scaled_dot_product_attention(q, k, v, mask)


class SlotsMaskedAsInChapter1(PaddingInSlots):
    """Chapter 01's mask hides keys, and yours are slots now: each holds some padding, and none is a token. Fill x before E is applied."""

    def attend(self, q, k, v, padding_mask):
        mask = None if padding_mask is None else padding_mask[:, None, None]
        return scaled_dot_product_attention(q, k, v, mask)


class FirstSlotsMasked(SlotsMasked):
    """A mask of tokens, cut to proj_dim, hides slots: but slot i is not token i, it mixes all. Fill x before E is applied."""

    def attend(self, q, k, v, padding_mask):
        return super().attend(q, k, v, None if padding_mask is None else padding_mask[:, : k.size(-2)])


class PaddedRowsZeroed(LinformerAttention):
    """You put zeros into the output at padding; leave those rows as they come, since nobody reads them."""

    def forward(self, x, padding_mask=None):
        output = super().forward(x, padding_mask)
        return output if padding_mask is None else output.masked_fill(~padding_mask[..., None], 0.0)


class InPlace(LinformerAttention):
    """You write zeros into x itself, and whoever passed it, a residual for example, has lost its tokens: work on a copy."""

    def forward(self, x, padding_mask=None):
        if padding_mask is not None:
            x[~padding_mask] = 0
        return super().forward(x)


class PaddingAsksTheKernel(LinformerAttention):
    """The slots are right, but your queries are still made from what is in the padding: fill x once, and use it for all three."""

    def forward(self, x, padding_mask=None):
        slots = self.slots(real_tokens(x, padding_mask))
        return self.output(merge_heads(self.attend(self.split(self.query(x)), *slots, padding_mask)))


class PaddingAsks(PaddingAsksTheKernel):
    """Your queries are still made from what is in the padding: fill x first, then make queries, keys and values from the filled one."""

    def attend(self, q, k, v, padding_mask):
        return (q @ k.mT / math.sqrt(q.size(-1))).softmax(dim=-1) @ v


class PaddingOutOfSlotsOnlyForKeys(LinformerAttention):
    """The values still hold the padding: both keys and values are made of the x that has zeros there."""

    def forward(self, x, padding_mask=None):
        real = real_tokens(x, padding_mask)
        keys, values = self.slots(real)[0], self.slots(x)[1]
        return self.output(merge_heads(self.attend(self.split(self.query(real)), keys, values, padding_mask)))


class LongerCut(LinformerAttention):
    """A text longer than seq_len is cut, and nobody is told what is missing: raise ValueError with both numbers."""

    def slots(self, x):
        return super().slots(x[:, : self.E.seq_len])


class LongerCrashes(LinformerAttention):
    """A text longer than seq_len fails somewhere inside; compare n with E.weight.size(-1) and raise ValueError with both numbers."""

    def slots(self, x):
        for_keys, for_values = (E.get_parameter("weight")[:, : x.size(1)] @ x for E in (self.E, self.F))
        return self.split(self.key(for_keys)), self.split(self.value(for_values))


class LongerAsserted(LinformerAttention):
    """assert raises an AssertionError, and python -O leaves it out: if n > seq_len, raise ValueError with both numbers."""

    def forward(self, x, padding_mask=None):
        assert x.size(1) <= self.E.seq_len
        return super().forward(x, padding_mask)


class LongerWithoutNumbers(LinformerAttention):
    """Your ValueError lacks a number: whoever reads it wants to know how long the text was and how long it may be."""

    def forward(self, x, padding_mask=None):
        if x.size(1) > self.E.seq_len:
            raise ValueError("the text is too long")
        return super().forward(x, padding_mask)


class LastColumns(LinformerAttention):
    """A text of n tokens uses the first n columns of E and F; yours uses the last."""

    def slots(self, x):
        return super().slots(functional.pad(x, (0, 0, max(0, self.E.seq_len - x.size(1)), 0)))


class ShorterRefused(LinformerAttention):
    """A text shorter than seq_len is allowed: it uses the first n columns, E.weight[:, :n]."""

    def slots(self, x):
        if x.size(1) > self.E.seq_len:
            return super().slots(x)
        for_keys, for_values = self.E.weight @ x, self.F.weight @ x
        return self.split(self.key(for_keys)), self.split(self.value(for_values))


class EAndFSwapped(LinformerAttention):
    """E and F are swapped: E compresses what becomes the keys, F what becomes the values."""

    def slots(self, x):
        return self.split(self.key(self.F(x))), self.split(self.value(self.E(x)))


class KeysAndValuesSwapped(LinformerAttention):
    """slots(x) returns the keys first and the values second; yours come the other way round."""

    def slots(self, x):
        return super().slots(x)[::-1]


class ValuesAsKeys(LinformerAttention):
    """slots(x) returns the keys first and the values second; your forward takes them the other way round."""

    def attend(self, q, k, v, padding_mask):
        return super().attend(q, v, k, padding_mask)


class EForBoth(LinformerAttention):
    """Your values are compressed by E as well; they belong to F."""

    def slots(self, x):
        return tuple(self.split(W(self.E(x))) for W in (self.key, self.value))


class DearOrder(LinformerAttention):
    """You apply the key and value weights to all n tokens; compress first, (E X) W, and proj_dim rows are left for them."""

    def slots(self, x):
        return self.E(self.split(self.key(x))), self.F(self.split(self.value(x)))


class DearOrderOnce(LinformerAttention):
    """One of keys and values is still made in the expensive order: both E X and F X come first, then their weights."""

    def slots(self, x):
        return self.E(self.split(self.key(x))), self.split(self.value(self.F(x)))


class HeadByHead(LinformerAttention):
    """You compress X once for every head; all heads share E X and F X, so compress first and cut into heads at the end."""

    def slots(self, x):
        def compressed(E, W):
            weights = W.weight.chunk(self.num_heads)
            return torch.stack([functional.linear(E(x), weight) for weight in weights], dim=1)

        return compressed(self.E, self.key), compressed(self.F, self.value)


class ScaledByTheModel(LinformerAttention):
    """√d counts the features of one head, d_head, not all d_model of them."""

    def attend(self, q, k, v, padding_mask):
        return super().attend(q / math.sqrt(self.num_heads), k, v, padding_mask)


class ScaledBySlots(LinformerAttention):
    """You divide by the root of proj_dim; what makes dot products large is d_head, the features of a head."""

    def attend(self, q, k, v, padding_mask):
        return super().attend(q * math.sqrt(q.size(-1) / k.size(-2)), k, v, padding_mask)


class SoftmaxOverTokens(LinformerAttention):
    """Your columns sum to one; each query spreads its weights over the slots, so softmax belongs on the last axis."""

    def attend(self, q, k, v, padding_mask):
        return (q @ k.mT / math.sqrt(q.size(-1))).softmax(dim=-2) @ v


class ScaledTwice(LinformerAttention):
    """The scores are divided by √d_head twice: scaled_dot_product_attention does it already."""

    def attend(self, q, k, v, padding_mask):
        return super().attend(q / math.sqrt(q.size(-1)), k, v, padding_mask)


class Unscaled(LinformerAttention):
    """The scores are not divided by √d_head."""

    def attend(self, q, k, v, padding_mask):
        return super().attend(q * math.sqrt(q.size(-1)), k, v, padding_mask)


class MergedByReshape(LinformerAttention):
    """Merging by reshape alone joins features of different tokens; bring heads and features together first, as merge_heads does."""

    def forward(self, x, padding_mask=None):
        real = real_tokens(x, padding_mask)
        heads = self.attend(self.split(self.query(real)), *self.slots(real), padding_mask)
        return self.output(heads.reshape(x.shape))


class CutByReshape(LinformerAttention):
    """reshape(batch, num_heads, …) mixes features of different tokens into a head; cut the features only, as split_heads does."""

    def split(self, x):
        return reshaped_heads(x, self.num_heads)


class OneWideHead(LinformerAttention):
    """You attend with all d_model features at once: cut queries, keys and values into heads first."""

    def split(self, x):
        return x[:, None]


class BiasLost(LinformerAttention):
    """The output layer has a bias, and yours is lost: call self.output(…) instead of multiplying by its weight."""

    def forward(self, x, padding_mask=None):
        return super().forward(x, padding_mask) - self.output.bias


class HeadsNotMixed(LinformerAttention):
    """The last step is missing: self.output mixes the merged heads."""

    def forward(self, x, padding_mask=None):
        real = real_tokens(x, padding_mask)
        return merge_heads(self.attend(self.split(self.query(real)), *self.slots(real), padding_mask))


EXERCISES = (
    Exercise(
        id="6.1",
        question="Write Linformer attention: q, k, v are (batch, heads, n, d), E and F are (proj_dim, n).",
        difficulty=1,
        minutes=6,
        trains="where E and F multiply, and what they leave as it is",
        reference=linformer_attention,
        draw=draw_attention,
        gradients=("q", "k", "v", "E", "F"),
        part="linformer_attention",
        mistakes=(
            E_on_features,
            E_transposed,
            E_and_F_swapped,
            E_for_both,
            values_not_compressed,
            values_in_chapter_1,
            first_values,
            values_forgotten,
            full_attention,
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
            ones_at_all_of_them,
            shared_out,
            dropped_instead,
        ),
        hints=(
            "Row i of E says which tokens slot i is made of. Here that is a single token.",
            "keep is (m,) and E is (m, n): row i has a single 1, in column keep[i].",
            "Each row of the identity, torch.eye(n), copies one token; choose rows by indexing.",
        ),
    ),
    Exercise(
        id="6.3",
        question="Fix the bug: apply Linear(n, proj_dim), given its weight (proj_dim, n), along the token axis of x.",
        difficulty=2,
        minutes=6,
        trains="which axis a linear layer acts on",
        reference=compress_length,
        draw=draw_length,
        gradients=("x", "weight"),
        mistakes=(
            linear_on_features,
            not_turned_back,
            reshaped,
            reshaped_back,
            along_heads,
            weight_of_its_own,
        ),
        hints=(
            "A linear layer acts on the last axis, whatever that axis holds.",
            "x.mT is (batch, heads, d, n): now the tokens are last. The result should be (…, proj_dim, d).",
            "functional.linear(x.mT, weight), and then swap the last two axes …",
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
        gradients=("x", "w_query", "w_key", "w_value", "w_output", "E", "F"),
        mistakes=(
            one_wide_head,
            heads_not_mixed,
            weights_from_the_left,
            merged_by_reshape,
            cut_by_reshape,
            heads_not_brought_forward,
            reshaped_there_and_back,
            queries_compressed_too,
            E_in_both_places,
            scaled_by_the_model,
        ),
        hints=(
            "Take chapter 02's layer, and put linformer_attention in the place of attention.",
            "split_heads(x @ w, num_heads) is (batch, heads, n, d_head); E and F are the same for every head.",
            "heads = linformer_attention(q, k, v, E, F); merge_heads(heads) is (batch, n, d_model), and then …",
        ),
    ),
    Exercise(
        id="6.5",
        question="Compute the slots of a padded batch, E times the real tokens alone: mask (batch, n) is True there.",
        difficulty=2,
        minutes=6,
        trains="removing padding before E is applied",
        reference=padded_slots,
        draw=draw_padded,
        gradients=("x", "E"),
        mistakes=(
            padding_kept,
            multiplied_by_the_mask,
            first_tokens_taken,
            real_tokens_zeroed,
            averaged_over_real_tokens,
            slots_filled,
            slots_multiplied,
            mask_times_slots,
            first_slots_multiplied,
            first_slots_filled,
            slots_zeroed,
        ),
        hints=(
            "What should a padded token add to a sum over tokens?",
            "mask[..., None] is (batch, n, 1) and fits x, (batch, n, d).",
            "x.masked_fill(~mask[..., None], …), and then multiply by E from the left.",
        ),
    ),
    Exercise(
        id="6.6",
        question="Compute E (X W + 1 bᵀ) from slots = E X: the bias has to be added to the compressed rows.",
        difficulty=2,
        minutes=8,
        trains="the cheap order, and what a bias changes in it",
        reference=keys_with_bias,
        draw=draw_bias,
        gradients=("slots", "weight", "bias", "E"),
        mistakes=(
            bias_as_it_is,
            bias_forgotten,
            bias_times_tokens,
            bias_summed_over_all,
            bias_times_the_mean,
            bias_of_columns,
            bias_of_a_column,
            bias_of_flat_rows,
            bias_before_weight,
        ),
        hints=(
            "Multiply the bracket out: E X W, and E times a matrix whose rows are all b.",
            "E times a column of ones is the sum of each row of E, (proj_dim, 1).",
            "slots @ weight + E.sum(dim=-1, keepdim=True) * …",
        ),
    ),
    Exercise(
        id="6.7",
        question="Write the whole layer: slots(x) in the cheap order, forward(x, padding_mask) for every length.",
        difficulty=3,
        minutes=25,
        trains="the whole chapter in one module, which later chapters run",
        reference=LinformerAttention,
        draw=draw_whole_layer,
        gradients=("x", "query", "key", "value", "output", "bias", "E", "F"),
        use=use_layer,
        part="linformer_layer",
        mistakes=(
            MaskIgnored,
            MaskMultiplied,
            RealTokensZeroed,
            SlotsMasked,
            SlotsMaskedByTheKernel,
            SlotsMaskedAsInChapter1,
            FirstSlotsMasked,
            PaddedRowsZeroed,
            InPlace,
            PaddingAsks,
            PaddingAsksTheKernel,
            PaddingOutOfSlotsOnlyForKeys,
            LongerCut,
            LongerCrashes,
            LongerAsserted,
            LongerWithoutNumbers,
            LastColumns,
            ShorterRefused,
            EAndFSwapped,
            KeysAndValuesSwapped,
            ValuesAsKeys,
            EForBoth,
            DearOrder,
            DearOrderOnce,
            HeadByHead,
            ScaledByTheModel,
            ScaledBySlots,
            SoftmaxOverTokens,
            ScaledTwice,
            Unscaled,
            MergedByReshape,
            CutByReshape,
            OneWideHead,
            BiasLost,
            HeadsNotMixed,
        ),
        hints=(
            "forward answers three questions, in this order: is x too long, which tokens are real, what do the queries read?",
            "E.weight[:, :n] @ x is (batch, proj_dim, d_model); self.key of it, split, (batch, heads, proj_dim, d_head).",
            "x = x.masked_fill(~padding_mask[..., None], 0.0); keys, values = self.slots(x); then the queries, softmax, …",
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
                "A slot of Linformer may mix tokens from anywhere; nothing prefers neighbours (but see chapter 09).",
            ),
            Option(
                "the features of token i, compressed to k",
                "The number of features stays the same; the tokens are compressed.",
            ),
        ),
    ),
    Question(
        "Why are the queries not compressed?",
        (
            Option(
                "k queries give k outputs, and every token needs one of its own",
                "The output has one row for each row of Q.",
                True,
            ),
            Option(
                "it would save nothing", "It would save even more, but the output would have only k rows."
            ),
            Option("queries have full rank", "Their rank is at most d_head, as is that of the keys."),
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
            Option("projects the sequence to k slots", "Only if n = d_head, and then by accident."),
            Option("projects the features to k", "The features are not the last axis here."),
            Option("projects both axes", "A linear layer touches one axis, the last."),
        ),
    ),
    Question(
        "With k = n, Linformer equals full attention …",
        (
            Option(
                "if E = F is a permutation, but not in general",
                "Softmax allows the slots to be shuffled, but not to be mixed.",
                True,
            ),
            Option(
                "always: nothing is compressed",
                "A random orthogonal E = F compresses nothing either, and gives something else.",
            ),
            Option(
                "if E and F are invertible",
                "Random orthogonal matrices are invertible, and every one that we drew failed.",
            ),
            Option("never", "If E = F is the identity or any other permutation matrix, they are equal."),
        ),
    ),
    Question(
        "A padded batch comes in. Where must padding be removed?",
        (
            Option(
                "from the keys and values, before E and F mix them",
                "Once E is applied, every slot holds a share of the padding.",
                True,
            ),
            Option(
                "in the scores, with −∞ at padded keys",
                "The scores belong to slots, so no column of them is a padded token.",
            ),
            Option(
                "nowhere, since E learns to ignore it",
                "E has one weight for each position, and the padding is at other positions in every text.",
            ),
            Option(
                "in the output, with zeros at padded tokens", "By then the real tokens have already read it."
            ),
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
            Option("the lower triangle of n × k", "Slot j is not token j; it mixes all tokens."),
            Option(
                "one that hides the last slots from early tokens",
                "The first slots hold the last tokens as well; only an E with zeros there would change that.",
            ),
            Option("it needs none", "If you change the last token, the first output moves."),
        ),
    ),
)
