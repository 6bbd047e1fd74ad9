"""Exercises of chapter 13."""

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from linformer_from_scratch.course.exercises.engine.checking import exercise
from linformer_from_scratch.course.exercises.engine.draws import normal, row
from linformer_from_scratch.descendants.blocks import block_attention, compress_blocks, masked_softmax

BATCH = 2
TEXTS = ((12, 4, 5), (17, 5, 3), (3, 4, 2), (22, 3, 4))  # tokens, those of a block, features, for each draw


def block_slots(x: Tensor, bias: Tensor) -> Tensor:
    """Means of blocks, weighed by place. Shape: x (batch, n, d), bias (m,) -> (batch, n // m, d)"""
    return compress_blocks(x, bias)


@exercise("13.1", stars=1, minutes=6, gradients=("x", "bias"), part="block_slots")
class BlockSlots:
    """A slot for every block."""

    hints = (
        "How many whole blocks are there, and how many tokens fill them? Cut the rest off first.",
        "View x[:, : blocks * m] as (batch, blocks, m, d), and bias.softmax(0) as (m, 1).",
        "(bias.softmax(0)[:, None] * x[:, : blocks * m].unflatten(1, (blocks, m))).sum(…)",
    )
    reference = block_slots

    def draw(seed):
        """A text that fills its blocks, one with a remainder, one shorter than a block, one of several blocks."""
        n, m, d = row(seed, TEXTS)
        return normal(seed, (BATCH, n, d), (m,))

    def means(x, bias):
        """Your slots are plain means, so bias does nothing. Its softmax says how much each place of a block counts."""
        return compress_blocks(x, torch.zeros_like(bias))

    def bias_as_weights(x, bias):
        """You multiply by bias itself. They're logits: take their softmax, and the weights sum to one, so a slot stays a mean."""
        n = x.size(1) // len(bias) * len(bias)
        return (bias[:, None] * x[:, :n].unflatten(1, (-1, len(bias)))).sum(2)

    def every_mth_token(x, bias):
        """Your slot collects tokens from all over the text, the last of them from the future. A block is m tokens side by side: unflatten to (n // m, m), not (m, n // m). Both shapes fit, which is why it's so easy to miss."""
        m, blocks = len(bias), x.size(1) // len(bias)
        return (bias.softmax(0)[:, None, None] * x[:, : blocks * m].unflatten(1, (m, blocks))).sum(1)

    def with_the_rest(x, bias):
        """You also make a slot of the tokens after the last whole block. It's tempting not to waste them, but they have to wait until their block is full."""
        m = len(bias)
        parts = x.split(m, dim=1)
        return torch.stack([(bias[: p.size(1)].softmax(0)[:, None] * p).sum(1) for p in parts], dim=1)

    def last_tokens(x, bias):
        """You drop tokens at the beginning. Blocks are counted from the first token, and it's the end that has to wait."""
        m = len(bias)
        return compress_blocks(x[:, x.size(1) % m :], bias)

    def divided_by_m(x, bias):
        """You divide by m once more. The softmax already sums to one."""
        return compress_blocks(x, bias) / len(bias)


def may_read(start: int, n: int, block: int) -> Tensor:
    """Shape: (n, (start + n) // block)"""
    tokens, slots = tokens_and_slots(start, n, block)
    return slots < (tokens + 1) // block


def tokens_and_slots(start, n, block):
    """Their numbers, tokens in rows. Shape: (n, 1), ((start + n) // block,)"""
    return torch.arange(start, start + n)[:, None], torch.arange((start + n) // block)


@exercise("13.2", stars=2, minutes=6)
class PastSlots:
    """Which slots are in the past."""

    hints = (
        "Slot i is made of tokens i · block … (i + 1) · block - 1. Standing at which token do you have all of them behind you?",
        "Query t gets the first (t + 1) // block slots. Try it by hand for the last token of a block, and for the one before.",
        "torch.arange(slots) < (torch.arange(start, start + n)[:, None] + 1) // …",
    )
    reference = may_read

    def draw(seed):
        """A text from its beginning, a piece of one, a single token, a piece that ends with the first block."""
        return row(seed, ((0, 13, 4), (6, 11, 4), (23, 1, 3), (3, 2, 5)))

    def own_open_block(start, n, block):
        """Your query attends to the block it stands in, which holds tokens after it. That's the bug of the two issues. Only from its last token on is a block over: (t + 1) // block slots."""
        tokens, slots = tokens_and_slots(start, n, block)
        return slots <= tokens // block

    def one_late(start, n, block):
        """You're one token too careful. The last token of a block may attend to its slot already, since nothing in there comes later: (t + 1) // block blocks have ended, not t // block."""
        tokens, slots = tokens_and_slots(start, n, block)
        return slots < tokens // block

    def from_the_piece(start, n, block):
        """You count blocks from where the piece starts. They start where the text starts: token i of the piece is token start + i."""
        tokens, slots = tokens_and_slots(start, n, block)
        return slots < (tokens - start + 1) // block

    def all_slots(start, n, block):
        """You let every query attend to every slot, so the first token knows how the text ends. That's Linformer again, and it can't write."""
        return torch.ones(n, (start + n) // block, dtype=torch.bool)

    def only_the_latest(start, n, block):
        """You show a query only the slot that ended last. All earlier ones are in its past too."""
        tokens, slots = tokens_and_slots(start, n, block)
        return slots == (tokens + 1) // block - 1

    def slots_first(start, n, block):
        """Your axes are swapped: a row for each query, a column for each slot, (n, slots)."""
        return may_read(start, n, block).T


def attend(
    q: Tensor, k: Tensor, v: Tensor, slots_k: Tensor, slots_v: Tensor, block: int, window: int
) -> Tensor:
    """Shape: q, k, v (batch, n, d), slots (batch, n // block, d) -> (batch, n, d)"""
    return block_attention(q, k, v, slots_k, slots_v, block, window)


def back(q):
    """By how much each token lies before each query. Shape: (batch, n, d) -> (n, n)"""
    t = torch.arange(q.size(1))
    return t[:, None] - t


def near(q, window):
    """The last tokens, those that each query may read. Shape: (batch, n, d) -> (n, n)"""
    return (back(q) >= 0) & (back(q) < window)


def read(q, k, v, slots_k, slots_v, slots_seen, tokens_seen, softmax=masked_softmax):
    """One softmax over the slots and tokens that are seen."""
    scores = q @ torch.cat([slots_k, k], 1).mT / math.sqrt(q.size(-1))
    return softmax(scores, torch.cat([slots_seen, tokens_seen], 1)) @ torch.cat([slots_v, v], 1)


def hidden_by(low):
    """A softmax that puts this in the place of hidden scores."""
    return lambda scores, seen: scores.masked_fill(~seen, low).softmax(-1)


@exercise(
    "13.3", stars=3, minutes=12, gradients=("q", "k", "v", "slots_k", "slots_v"), part="block_attention"
)
class SlotsAndWindow:
    """One softmax over slots and window."""

    hints = (
        "Put the slots' keys in front of the tokens' keys, and likewise the values. From there on it's chapter 01's attention with a mask.",
        "The mask is (n, n // block + n): the staircase of exercise 13.2 on the left, with start 0, and on the right the band where t - s is from 0 to window - 1.",
        "mask = torch.cat([slots_seen, tokens_seen], dim=1); scaled_dot_product_attention(q, keys, values, …)",
    )
    reference = attend

    def draw(seed):
        """A text of several blocks, one with a remainder, a single token, and one without a window."""
        n, block, window, d = row(seed, ((12, 3, 4, 5), (17, 5, 2, 3), (1, 4, 3, 2), (7, 3, 0, 4)))
        q, k, v, slots_k, slots_v = normal(seed, *3 * [(BATCH, n, d)], *2 * [(BATCH, n // block, d)])
        return q, k, v, slots_k, slots_v, block, window

    def two_softmaxes(q, k, v, slots_k, slots_v, block, window):
        """You take one softmax over the slots and another over the window, and add what they mix. Then a query spends as much attention on slots as on neighbours, whether it wants to or not. Put all its scores side by side and take one softmax."""
        far = attend(q, k, v, slots_k, slots_v, block, 0)
        return far + attend(q, k, v, slots_k[:, :0], slots_v[:, :0], q.size(1) + 1, window)

    def window_without_itself(q, k, v, slots_k, slots_v, block, window):
        """Your window stops before the query's own token. It holds the last `window` tokens, and the query's own is one of them."""
        seen = (back(q) > 0) & (back(q) <= window)
        return read(q, k, v, slots_k, slots_v, may_read(0, q.size(1), block), seen)

    def window_one_too_long(q, k, v, slots_k, slots_v, block, window):
        """Your window is one token too long. With the query's own it holds `window` tokens, so t - s < window, not <=."""
        return attend(q, k, v, slots_k, slots_v, block, window + 1)

    def window_ahead(q, k, v, slots_k, slots_v, block, window):
        """Your window reaches forward as well, so a query sees what comes after it. Did you take abs(t - s)?"""
        return read(q, k, v, slots_k, slots_v, may_read(0, q.size(1), block), back(q).abs() < window)

    def future_in_the_window(q, k, v, slots_k, slots_v, block, window):
        """Your window has a beginning and no end: t - s < window is also true for every token s after t, where t - s is negative. Ask for t - s >= 0 as well."""
        return read(q, k, v, slots_k, slots_v, may_read(0, q.size(1), block), back(q) < window)

    def nothing_divided_by_nothing(q, k, v, slots_k, slots_v, block, window):
        """A query that sees nothing gets 0/0 from you. It should get zeros: PyTorch's own function returns them, a softmax over -inf doesn't."""
        past = may_read(0, q.size(1), block)
        return read(q, k, v, slots_k, slots_v, past, near(q, window), hidden_by(-math.inf))

    def mean_of_everything(q, k, v, slots_k, slots_v, block, window):
        """A query that sees nothing should get zeros. You mask with a large negative number, and if all scores are that low the softmax makes them equal: the query gets the mean of everything, future included."""
        past = may_read(0, q.size(1), block)
        return read(q, k, v, slots_k, slots_v, past, near(q, window), hidden_by(-1e9))

    def open_block_read(q, k, v, slots_k, slots_v, block, window):
        """Your queries attend to the slot of the block they're in. Only blocks that have ended are in the past, (t + 1) // block of them."""
        tokens, slots = tokens_and_slots(0, q.size(1), block)
        return read(q, k, v, slots_k, slots_v, slots <= tokens // block, near(q, window))

    def slots_not_in_the_window(q, k, v, slots_k, slots_v, block, window):
        """You hide slots whose tokens are in the window too. It looks tidier, but nobody asked for it: a token may be seen twice, in its slot and in the window. Hide only blocks that have not ended."""
        tokens, slots = tokens_and_slots(0, q.size(1), block)
        before = (slots + 1) * block <= tokens - window + 1
        return block_attention(q, k, v, slots_k, slots_v, block, window, before)

    def slots_alone(q, k, v, slots_k, slots_v, block, window):
        """Your queries attend to slots only, so they miss the last few tokens. The window goes into the same softmax."""
        return attend(q, k, v, slots_k, slots_v, block, 0)

    def scores_not_scaled(q, k, v, slots_k, slots_v, block, window):
        """You forgot to divide the scores by √d, those of the slots and those of the window."""
        return attend(q * math.sqrt(q.size(-1)), k, v, slots_k, slots_v, block, window)


def gated_slots(x: Tensor, gate: Tensor, bias: Tensor) -> Tensor:
    """Shape: x and gate (batch, n, d), bias (m, d) -> (batch, n // m, d)"""
    return compress_blocks(x, bias, gate)


def in_blocks_of(m, *tensors):
    """Each tensor without what follows its last whole block. Shape: (batch, n, d) -> (batch, n // m, m, d)"""
    return [x[:, : x.size(1) // m * m].unflatten(1, (-1, m)) for x in tensors]


@exercise("13.4", stars=2, minutes=6, gradients=("x", "gate", "bias"))
class WeightsByContent:
    """Weights by content."""

    hints = (
        "Cut x and gate into blocks in the same way. Who competes with whom: over which axis do the weights sum to one?",
        "Blocks have the shape (batch, blocks, m, d), so bias (m, d) can be added to those of gate as it is. The softmax is over axis 2.",
        "((gate + bias).softmax(2) * x).sum(…), with both cut into blocks",
    )
    reference = gated_slots

    def draw(seed):
        """A text as in 13.1, with logits for every token and feature."""
        n, m, d = row(seed, TEXTS)
        return normal(seed, (BATCH, n, d), (BATCH, n, d), (m, d))

    def gate_without_bias(x, gate, bias):
        """You left out the bias. Add it to the gate, place by place in a block, before the softmax."""
        return compress_blocks(x, torch.zeros_like(bias), gate)

    def bias_without_gate(x, gate, bias):
        """You left out the gate, so your slots weigh tokens by place alone. That was 13.1."""
        return compress_blocks(x, bias)

    def over_the_text(x, gate, bias):
        """Your softmax goes over the whole text, so the blocks share one total of one. Each block needs its own: cut first, then softmax."""
        x, gate = in_blocks_of(len(bias), x, gate)
        weights = (gate + bias).flatten(1, 2).softmax(1).view_as(gate)
        return (weights * x).sum(2)

    def over_features(x, gate, bias):
        """Your softmax goes over the features. The question is how much each *token* counts: take it over the tokens of a block, for each feature separately."""
        x, gate = in_blocks_of(len(bias), x, gate)
        return ((gate + bias).softmax(-1) * x).sum(2)

    def over_blocks(x, gate, bias):
        """Your softmax goes over the blocks, so blocks compete with one another. The m tokens inside a block should compete."""
        x, gate = in_blocks_of(len(bias), x, gate)
        return ((gate + bias).softmax(1) * x).sum(2)

    def one_weight_for_all_features(x, gate, bias):
        """You average the logits over the features and give each token one weight. A slot may take one feature from the verb and another from the subject, so keep a weight for each feature."""
        x, gate = in_blocks_of(len(bias), x, gate)
        return ((gate + bias).mean(-1, keepdim=True).softmax(2) * x).sum(2)

    def sigmoid_gate(x, gate, bias):
        """You take a sigmoid of each logit, as gates often do. Then the weights of a block needn't sum to one; a softmax over its tokens makes them."""
        x, gate = in_blocks_of(len(bias), x, gate)
        return ((gate + bias).sigmoid() * x).sum(2)


def tokens_of(chosen: Tensor, block: int) -> Tensor:
    """Shape: chosen (n, n // block) -> (n, n), booleans both"""
    tokens = of_chosen(chosen, block)
    return tokens | is_open(len(chosen), block)


def of_chosen(chosen, block):
    """Tokens of chosen blocks. Shape: (n, n // block) -> (n, n)"""
    return pad(chosen.repeat_interleave(block, dim=1), (0, len(chosen) % block))


def is_open(n, block):
    """Tokens up to each query's own, in the block that has not ended. Shape: (n, n)"""
    place = torch.arange(n)
    return (place <= place[:, None]) & (place >= (place[:, None] + 1) // block * block)


@exercise("13.5", stars=2, minutes=6)
class ChosenTokens:
    """From chosen blocks to tokens."""

    hints = (
        "A block that is chosen turns into `block` True side by side. What's missing in your mask's width, if blocks don't fill the text?",
        "The open block begins at token (t + 1) // block * block, and query t has seen it up to token t.",
        "chosen.repeat_interleave(block, 1), padded to n columns, | (s <= t) & (s >= …)",
    )
    reference = tokens_of

    def draw(seed):
        """A text that fills its blocks, one with a remainder, one shorter than a block, and blocks of one token."""
        n, block = row(seed, ((12, 4), (17, 5), (3, 4), (7, 1)))
        (wish,) = normal(seed, (n, n // block))
        return (wish > 0) & may_read(0, n, block), block

    def whole_blocks_only(chosen, block):
        """You leave out the block that hasn't ended, so a query misses its last few tokens, and the first queries see nothing. Nobody can choose that block yet, so every query attends to what there is of it."""
        return of_chosen(chosen, block)

    def open_block_to_its_end(chosen, block):
        """You show a query the whole block it stands in, and so the tokens after it. Stop at token t."""
        place = torch.arange(len(chosen))
        return of_chosen(chosen, block) | (place // block == place[:, None] // block)

    def own_block_at_its_end(chosen, block):
        """The last token of a block still gets its block from you, chosen or not. With that token the block has ended, so from then on it has to be chosen like any other: the open one begins at (t + 1) // block * block."""
        place = torch.arange(len(chosen))
        own = (place <= place[:, None]) & (place >= place[:, None] // block * block)
        return of_chosen(chosen, block) | own

    def all_that_came_before(chosen, block):
        """You let a query attend to all tokens up to its own, so the choice does nothing. Apart from chosen blocks, only the open block is shown."""
        return torch.ones(len(chosen), len(chosen), dtype=torch.bool).tril()

    def every_other_token(chosen, block):
        """You repeat the row of blocks, so the tokens of a chosen block lie all over the text. Each block's answer belongs to `block` tokens side by side: repeat_interleave, not repeat."""
        n = len(chosen)
        return pad(chosen.repeat(1, block), (0, n % block)) | is_open(n, block)

    def one_token_for_each(chosen, block):
        """You show the last token of each chosen block only. Its slot was for choosing; attended to are all its tokens."""
        n = len(chosen)
        last = torch.arange(n) % block == block - 1
        return of_chosen(chosen, block) & last | is_open(n, block)


def slots_of_real(x: Tensor, mask: Tensor, bias: Tensor) -> Tensor:
    """Shape: x (n, d), mask (n,), bias (m,) -> (real tokens // m, d)"""
    return compress_blocks(x[mask], bias)


@exercise("13.6", stars=2, minutes=5)
class PaddingOutside:
    """Padding stays outside."""

    hints = (
        "What would the slots be if nobody had padded this text at all?",
        "x[mask] is that text: (real tokens, d), wherever the padding was.",
        "block_slots(x[mask][None], …)[0]",
    )
    reference = slots_of_real

    def draw(seed):
        """Padding at the beginning, at the end, inside, and every third token."""
        n, m, d = row(seed, ((13, 4, 3), (15, 3, 5), (12, 2, 4), (10, 3, 2)))
        x, bias = normal(seed, (n, d), (m,))
        mask = torch.ones(n, dtype=torch.bool)
        mask[(slice(3), slice(-4, None), slice(2, 7, 2), slice(None, None, 3))[seed % 4]] = False
        return x, mask, bias

    def zeroed(x, mask, bias):
        """You set padding to zero, as chapter 06 did and as the library did. Here a zero still takes its share of the softmax, and still pushes the real tokens into other blocks. Take the padding out first, x[mask], and cut what's left."""
        return compress_blocks(x * mask[:, None], bias)

    def zeroed_to_length(x, mask, bias):
        """You return the right number of slots, but the padding is still inside them as zeros. Take it out before you cut: x[mask]."""
        return compress_blocks(x * mask[:, None], bias)[: int(mask.sum()) // len(bias)]

    def weightless(x, mask, bias):
        """Your padding has no weight, which is half the cure. But the real tokens still stand in the blocks of their padded places. Alone they'd stand in others: cut after x[mask]."""
        m, n = len(bias), len(x) // len(bias) * len(bias)
        blocks, real = x[:n].unflatten(0, (-1, m)), mask[:n].unflatten(0, (-1, m))
        return (masked_softmax(bias.expand_as(real), real)[..., None] * blocks).sum(1)

    def mask_not_used(x, mask, bias):
        """You never look at mask, so padding is mixed in like any token."""
        return compress_blocks(x, bias)

    def mask_inverted(x, mask, bias):
        """You keep the padding and throw away the text. True means a real token."""
        return compress_blocks(x[~mask], bias)

    def from_the_first_real(x, mask, bias):
        """You cut off the padding at the beginning only. It can also stand at the end, or in the middle: x[mask] doesn't care where."""
        return compress_blocks(x[int(mask.int().argmax()) :] if mask.any() else x[:0], bias)

    def as_many_from_the_front(x, mask, bias):
        """You count the padded tokens and drop that many at the front. They may be anywhere, so drop exactly the ones that mask names: x[mask]."""
        return compress_blocks(x[int((~mask).sum()) :], bias)

    def rest_kept(x, mask, bias):
        """You make a slot of the tokens after the last whole block as well. They wait until their block is full."""
        parts = x[mask].split(len(bias)) if mask.any() else ()
        slots = [(bias[: len(part)].softmax(0)[:, None] * part).sum(0) for part in parts]
        return torch.stack(slots) if slots else x[:0]
