"""Exercises of chapter 11."""

import math

import torch
from torch import Tensor

from linformer_from_scratch.cost import Sizes
from linformer_from_scratch.course.exercises.engine.checking import exercise
from linformer_from_scratch.course.exercises.engine.draws import normal, row
from linformer_from_scratch.distributed.wire import linformer_bytes


def whole_gradient(gradients: Tensor, rows: Tensor) -> Tensor:
    """Gradient of the mean loss of all rows, from every rank's. Shape: (ranks, d), (ranks,) -> (d,)."""
    return (gradients * rows[:, None]).sum(dim=0) / rows.sum()


@exercise("11.1", stars=1, minutes=4)
class GradientOfAllRanks:
    """One gradient from the ranks' gradients."""

    hints = (
        "Forget the ranks for a moment. What would you divide by what, if you had every text's gradient? Now group that sum by rank.",
        "A rank's gradient is a mean. Times the number of its texts, it's a sum, (d,). Add up the sums and divide once, by the number of all texts.",
        "(gradients * rows[:, None]).sum(dim=0) / …",
    )
    reference = whole_gradient

    def draw(seed):
        """Gradients of ranks with different numbers of rows, which are integers; once a single rank, once equal numbers."""
        generator = torch.Generator().manual_seed(seed)
        ranks, d = row(seed, ((3, 4), (1, 2), (2, 7), (5, 3)))
        rows = 1 + torch.randperm(7, generator=generator)[:ranks]
        rows[1:] = rows[0] if seed % 4 == 3 else rows[1:]
        return torch.randn(ranks, d, generator=generator), rows

    def plain_mean(gradients, rows):
        """You give every rank the same say. But a rank with three texts speaks for more of the batch than one with two: weight its gradient by its rows."""
        return gradients.mean(dim=0)

    def plain_sum(gradients, rows):
        """You add up means, and the result grows with the number of ranks. Each mean counts for its share of the rows only: multiply it by rows / rows.sum()."""
        return gradients.sum(dim=0)

    def not_divided(gradients, rows):
        """Good so far: that's the gradient of the summed loss. The mean loss has one division more, by the rows of all ranks together."""
        return (gradients * rows[:, None]).sum(dim=0)

    def divided_by_ranks(gradients, rows):
        """You weight by rows, then divide by the number of ranks. How many texts went into that weighted sum? Divide by those: rows.sum()."""
        return (gradients * rows[:, None]).mean(dim=0)

    def summed_and_divided(gradients, rows):
        """You divide by all rows before anybody was multiplied by their own. Each gradient is a mean; turn it into a sum first, times its rows."""
        return gradients.sum(dim=0) / rows.sum()

    def weighted_the_wrong_way(gradients, rows):
        """Your weights are 1 / rows, so the rank with the fewest texts is the loudest. It's the other way round: weight by rows."""
        return (gradients / rows[:, None]).sum(dim=0) / (1 / rows).sum()

    def weighted_by_squares(gradients, rows):
        """You weight by rows twice. Once is enough to turn a mean into a sum; after that, divide by all rows."""
        return (gradients * rows[:, None] ** 2).sum(dim=0) / (rows**2).sum()

    def only_the_first(gradients, rows):
        """That's rank 0's gradient alone. The other ranks have computed theirs for nothing: they belong in the sum."""
        return gradients[0].clone()


def partial_slots(E: Tensor, x: Tensor, lengths: list[int]) -> Tensor:
    """E_s x_s of every rank. Shape: (proj_dim, n), (n, d), lengths that sum to n -> (ranks, proj_dim, d)."""
    parts = zip(E.split(lengths, dim=1), x.split(lengths), strict=True)
    return torch.stack([columns @ tokens for columns, tokens in parts])


def slots_from(starts, E, x, lengths):
    """The same, but each rank takes its columns of E from another place on."""
    parts = zip(starts, lengths, x.split(lengths), strict=True)
    return torch.stack([E[:, i : i + length] @ tokens for i, length, tokens in parts])


@exercise("11.2", stars=2, minutes=6)
class PartialSlots:
    """What each rank adds to the slots."""

    hints = (
        "Each column of E belongs to one token. Which columns does rank 1 need, and why not the first ones?",
        "Cut both at the same places. Tensor.split takes a list of lengths and an axis: 1 for E (proj_dim, n), 0 for x (n, d).",
        "torch.stack([columns @ tokens for columns, tokens in zip(E.split(lengths, dim=1), …)])",
    )
    reference = partial_slots

    def draw(seed):
        """A text cut into shards of different lengths, some of them empty; once a single shard."""
        ranks, proj_dim, d, *lengths = row(
            seed, ((3, 3, 2, 4, 2, 5), (1, 4, 3, 7, 0, 0), (3, 2, 5, 1, 0, 6), (2, 5, 4, 3, 4, 2))
        )
        lengths = lengths[:ranks]
        E, x = normal(seed, (proj_dim, sum(lengths)), (sum(lengths), d))
        return E, x, lengths

    def first_columns_everywhere(E, x, lengths):
        """Every rank takes the first columns of E, as a layer does with a short text. But rank 1's tokens don't stand at the beginning of the text: a shard that begins at token i needs the columns from i on."""
        return slots_from([0] * len(lengths), E, x, lengths)

    def empty_shards_left_out(E, x, lengths):
        """You drop the ranks that hold no tokens. They still take part in the all-reduce, and what they add is zeros: keep their place."""
        return partial_slots(E, x, [length for length in lengths if length])

    def equal_shards(E, x, lengths):
        """You cut the text into equal parts, which is what one would do. Here somebody else has cut it: use `lengths`."""
        return partial_slots(E, x, [len(part) for part in x.tensor_split(len(lengths))])

    def summed_already(E, x, lengths):
        """You return the finished sum, once for each rank. Nobody has summed anything yet: what does one rank compute from its own tokens?"""
        return (E @ x).expand(len(lengths), -1, -1).clone()

    def a_mean_already(E, x, lengths):
        """You divide by the number of ranks, as for gradients of a shared batch. E x is the sum of the parts, not their mean: leave them as they are."""
        return partial_slots(E, x, lengths) / len(lengths)

    def summed_up_to_here(E, x, lengths):
        """Your rank s also adds what the ranks before it hold. Sum that over ranks, and the early tokens count several times. Give each rank its own part only."""
        return partial_slots(E, x, lengths).cumsum(dim=0)

    def summed_without_ranks(E, x, lengths):
        """That's E x, what all ranks know after the sum. The question is what each of them puts in before it: (ranks, proj_dim, d)."""
        return E @ x

    def begun_at_multiples(E, x, lengths):
        """You let shard i begin at i times its own length. That works while all shards are equally long. It begins where the ones before it end: add up their lengths."""
        starts = [min(i * length, E.size(1) - length) for i, length in enumerate(lengths)]
        return slots_from(starts, E, x, lengths)

    def columns_in_reverse(E, x, lengths):
        """One rank's tokens meet another rank's columns. Cut E and the text at the same places, and deal them out in the same order."""
        return slots_from([sum(lengths[i + 1 :]) for i in range(len(lengths))], E, x, lengths)

    def means_of_tokens(E, x, lengths):
        """You take the mean over a shard's tokens. A slot is a weighted sum, and E has all the weights in it already: don't divide."""
        return partial_slots(E, x, lengths) / torch.tensor(lengths)[:, None, None]


def backward_of_sum(upstream: Tensor) -> Tensor:
    """Of x_s on each rank, given each rank's ∂loss_s / ∂sum. Shape: (ranks, ...) -> (ranks, ...)."""
    return upstream.sum(dim=0).expand_as(upstream).clone()


@exercise("11.3", stars=2, minutes=5)
class GradientOfASum:
    """The gradient of a sum over ranks."""

    hints = (
        "Change x₀ a little. On which ranks does y change, and on which does the loss?",
        "On all of them, each through its own copy of y. The chain rule adds up what they say, and the answer is the same for every x_s. It has the shape of upstream.",
        "upstream.sum(dim=0).expand_as(…).clone()",
    )
    reference = backward_of_sum

    def draw(seed):
        """What arrives on one to four ranks: a matrix each, a vector, three axes, a number."""
        ranks, *shape = row(seed, ((2, 3, 4, 5), (1, 2, 5, 4), (3, 4, 2, 5), (4, 5, 3, 2)))
        return normal(seed, (ranks, *shape[: (2, 1, 3, 0)[seed % 4]]))

    def own_only(upstream):
        """You give each rank its own gradient back, which is what autograd does when it doesn't see the sum. But x_s went into every rank's y, so every rank's loss has something to say about it."""
        return upstream.clone()

    def mean_of_all(upstream):
        """That's the mean. The whole loss is the *sum* of the ranks' losses, so their gradients add up, and nobody divides."""
        return upstream.mean(dim=0).expand_as(upstream).clone()

    def times_the_ranks(upstream):
        """You multiply a rank's own gradient by the number of ranks, as if all of them had the same loss. Each has its own: add up the ones that really arrive."""
        return upstream * len(upstream)

    def of_rank_0(upstream):
        """Everybody gets rank 0's gradient. What arrives on the other ranks counts as much: sum over all of them."""
        return upstream[:1].expand_as(upstream).clone()

    def of_the_others(upstream):
        """You sum over the other ranks and leave out the rank itself. Its own loss depends on its own x too, through its own copy of y."""
        return upstream.sum(dim=0) - upstream

    def without_ranks(upstream):
        """You return the sum once. It's the right sum, but each rank has an x of its own that waits for a gradient: return (ranks, …), the same for each."""
        return upstream.sum(dim=0)

    def one_for_all(upstream):
        """The sum is right, and its first axis has length 1. Every rank needs a copy: (ranks, …) instead of (1, …)."""
        return upstream.sum(dim=0, keepdim=True)

    def only_on_rank_0(upstream):
        """Rank 0 gets the sum and the others get zeros. That would be right if only rank 0 had added something; they all have."""
        total = torch.zeros_like(upstream)
        total[0] = upstream.sum(dim=0)
        return total


def wire_bytes(batch: int, n: int, d_model: int, proj_dim: int, bytes_per_number: int, ranks: int) -> float:
    """What a rank sends for a layer's forward pass, E and F different."""
    sizes = Sizes(n, d_model, d_model, proj_dim, batch, bytes_per_number)
    return linformer_bytes(sizes, ranks)


@exercise("11.4", stars=2, minutes=6)
class BytesOnTheWire:
    """Bytes on the wire."""

    hints = (
        "First the thing that's summed: how many numbers? If n is among your factors, look again.",
        "Slots of keys and of values: 2 · batch · proj_dim · d_model numbers. If they're S bytes, the ring sends 2 (P − 1) parts of S/P from every rank.",
        "2 * (2 * batch * proj_dim * d_model * …) * (ranks - 1) / ranks",
    )
    reference = wire_bytes

    def draw(seed):
        """Batch, n, d_model, proj_dim, bytes and ranks; shards and texts longer and shorter than proj_dim, once a single shard.

        Small enough that a rest of a byte is seen.
        """
        batch, shard, d_model, proj_dim, bytes_per_number, ranks = row(
            seed, ((3, 28, 13, 9, 2, 5), (5, 31, 10, 11, 4, 1), (1, 12, 17, 14, 2, 3), (2, 6, 12, 8, 4, 7))
        )
        shard = (shard, shard, min(shard, proj_dim // 2 + 2), 1)[seed % 4]
        return batch, shard * ranks, d_model, proj_dim, bytes_per_number, ranks

    def of_whole_keys(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """You send the keys and values of n tokens, as ring attention does. Linformer's ranks exchange slots, and there are proj_dim of those, however long the text."""
        return wire_bytes(batch, n, d_model, n, bytes_per_number, ranks)

    def keys_alone(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """That's half of it. Either the values are missing, or one of the two rounds: keys and values are both summed, and each part goes around the ring twice."""
        return wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks) / 2

    def size_of_the_sum(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """That's how large the thing is that gets summed. In each of two rounds a rank sends P − 1 of its P parts, so multiply by 2 (P − 1)/P."""
        return 2.0 * batch * proj_dim * d_model * bytes_per_number

    def size_of_one_texts_sum(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """That's how large one text's slots are. There's a whole batch of texts, and an all-reduce sends 2 (P − 1)/P times what it sums."""
        return 2.0 * proj_dim * d_model * bytes_per_number

    def numbers_of_one_texts_sum(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """You count the numbers in one text's slots. From there it's three steps: the batch, the bytes of a number, and the 2 (P − 1)/P of an all-reduce."""
        return 2.0 * proj_dim * d_model

    def no_more_than_its_tokens(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """You let a short shard send fewer slots. It's tempting, but a token adds to all proj_dim slots, even a token on its own."""
        return wire_bytes(batch, n, d_model, min(proj_dim, n // ranks), bytes_per_number, ranks)

    def no_more_than_the_text(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """You let a text shorter than proj_dim send fewer slots. E has proj_dim rows all the same, and each makes a slot that gets summed and sent. That's why Linformer loses on short texts."""
        return wire_bytes(batch, n, d_model, min(proj_dim, n), bytes_per_number, ranks)

    def slots_shared_out(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """You divide the slots among the ranks, as if each made a few of them. Each makes all proj_dim, from its own tokens."""
        return wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks) / ranks

    def rounded_up(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """You round the parts up to whole numbers, as a real program has to. Here they may be cut anywhere: don't round."""
        part = math.ceil(2 * batch * proj_dim * d_model / ranks)
        return 2 * part * bytes_per_number * (ranks - 1)

    def rounded_down(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """Somewhere you round down to whole bytes; look for a //. Here the parts may be cut anywhere, so write /."""
        return float(wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks) // 1)

    def to_everybody(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """You let a rank send all its slots to each of the others. The ring is thriftier: it cuts them into P parts, and no rank sends more than twice the whole, however many ranks there are."""
        return 2.0 * batch * proj_dim * d_model * bytes_per_number * (ranks - 1)

    def numbers_not_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """You count numbers. The question is how many bytes: bytes_per_number for each."""
        return wire_bytes(batch, n, d_model, proj_dim, 1, ranks)

    def one_text(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """You count a single text. Every text of the batch has its own slots, and all of them are summed."""
        return wire_bytes(1, n, d_model, proj_dim, bytes_per_number, ranks)

    def whole_twice(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """You send the whole twice. In each round a rank sends only P − 1 of its P parts, so there's a factor (P − 1)/P. Try it with one rank, which has nobody to send to."""
        return 4.0 * batch * proj_dim * d_model * bytes_per_number

    def forward_and_backward(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """That's twice the right number: forward and backward together, or two layers. We're after one layer's forward pass."""
        return 2 * wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks)

    def of_all_ranks(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """That's what all ranks send together. One of them sends 2 (P − 1) parts, each 1/P of the whole."""
        return ranks * wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks)

    def maps_sent(batch, n, d_model, proj_dim, bytes_per_number, ranks):
        """You count n × k numbers, which is a map. Maps stay where their queries are. It's slots that travel, and they have d_model features."""
        return 4.0 * batch * n * proj_dim * bytes_per_number * (ranks - 1) / ranks
