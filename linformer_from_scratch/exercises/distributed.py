"""Chapter 11: exercises and quiz."""

import math

import torch
from torch import Tensor

from linformer_from_scratch.cost import Sizes
from linformer_from_scratch.distributed.ranks import shares
from linformer_from_scratch.distributed.wire import linformer_bytes
from linformer_from_scratch.exercises.engine.checking import Exercise
from linformer_from_scratch.exercises.engine.draws import normal, row
from linformer_from_scratch.exercises.engine.quiz import Option, Question

# 11.1: one gradient from the ranks' gradients


def whole_gradient(gradients: Tensor, rows: Tensor) -> Tensor:
    """Gradient of the mean loss of all rows, from every rank's. Shape: (ranks, d), (ranks,) -> (d,)."""
    return (gradients * rows[:, None]).sum(dim=0) / rows.sum()


def draw_gradients(seed: int) -> tuple[Tensor, Tensor]:
    """Gradients of ranks with different numbers of rows, which are integers; once a single rank, once equal numbers."""
    generator = torch.Generator().manual_seed(seed)
    ranks, d = row(seed, ((3, 4), (1, 2), (2, 7), (5, 3)))
    rows = 1 + torch.randperm(7, generator=generator)[:ranks]
    rows[1:] = rows[0] if seed % 4 == 3 else rows[1:]
    return torch.randn(ranks, d, generator=generator), rows


def plain_mean(gradients, rows):
    """You give every rank the same weight. A rank with more texts stands for more of the batch, so weight by rows."""
    return gradients.mean(dim=0)


def plain_sum(gradients, rows):
    """A sum of means grows with the number of ranks. Weight each mean by its share of the rows."""
    return gradients.sum(dim=0)


def not_divided(gradients, rows):
    """That is the gradient of the summed loss. Divide it by the rows of all ranks to get the gradient of the mean."""
    return (gradients * rows[:, None]).sum(dim=0)


def divided_by_ranks(gradients, rows):
    """You divide the weighted sum by the number of ranks. Divide it by the number of all rows."""
    return (gradients * rows[:, None]).mean(dim=0)


def summed_and_divided(gradients, rows):
    """Each gradient is already a mean over its rank's rows. Multiply it by these rows before you divide by all of them."""
    return gradients.sum(dim=0) / rows.sum()


def weighted_the_wrong_way(gradients, rows):
    """You weight by 1 / rows, which gives the ranks with the fewest rows the largest weights. Weight by rows."""
    return (gradients / rows[:, None]).sum(dim=0) / (1 / rows).sum()


def weighted_by_squares(gradients, rows):
    """You weight twice. Multiply each rank's gradient by its rows once, and divide the sum by all rows."""
    return (gradients * rows[:, None] ** 2).sum(dim=0) / (rows**2).sum()


def only_the_first(gradients, rows):
    """That is rank 0's gradient alone, so the texts of all other ranks would be ignored. Combine all ranks."""
    return gradients[0].clone()


# 11.2: what each rank adds to the slots


def partial_slots(E: Tensor, x: Tensor, lengths: list[int]) -> Tensor:
    """E_s x_s of every rank. Shape: (proj_dim, n), (n, d), lengths that sum to n -> (ranks, proj_dim, d)."""
    parts = zip(E.split(lengths, dim=1), x.split(lengths), strict=True)
    return torch.stack([columns @ tokens for columns, tokens in parts])


def draw_shards(seed: int) -> tuple[Tensor, Tensor, list[int]]:
    """A text cut into shards of different lengths, some of them empty; once a single shard."""
    ranks, proj_dim, d, *lengths = row(
        seed, ((3, 3, 2, 4, 2, 5), (1, 4, 3, 7, 0, 0), (3, 2, 5, 1, 0, 6), (2, 5, 4, 3, 4, 2))
    )
    lengths = lengths[:ranks]
    E, x = normal(seed, (proj_dim, sum(lengths)), (sum(lengths), d))
    return E, x, lengths


def first_columns_everywhere(E, x, lengths):
    """Every rank uses the first columns of E here. A shard that begins at token i needs the columns from i on."""
    parts = zip(lengths, x.split(lengths), strict=True)
    return torch.stack([E[:, :length] @ tokens for length, tokens in parts])


def empty_shards_left_out(E, x, lengths):
    """A rank without tokens adds zeros. Keep its place, so that the result has a part for every rank."""
    return partial_slots(E, x, [length for length in lengths if length])


def equal_shards(E, x, lengths):
    """You cut the text into equal parts, but the shards differ: cut it by `lengths`."""
    own = shares(len(x), len(lengths))
    return partial_slots(E, x, own)


def summed_already(E, x, lengths):
    """That is the sum over ranks, once for each rank. Return what each rank adds before the sum."""
    return (E @ x).expand(len(lengths), -1, -1).clone()


def a_mean_already(E, x, lengths):
    """You divide by the number of ranks, but E x is the sum of the parts and not their mean."""
    return partial_slots(E, x, lengths) / len(lengths)


def summed_up_to_here(E, x, lengths):
    """Your ranks also add what the ranks before them hold, so the sum over ranks counts the early tokens several times."""
    return partial_slots(E, x, lengths).cumsum(dim=0)


def summed_without_ranks(E, x, lengths):
    """That is E x itself, the sum over all ranks. Return what each rank adds, (ranks, proj_dim, d)."""
    return E @ x


def begun_at_multiples(E, x, lengths):
    """You let shard i begin at i times its own length. It begins where the shards before it end: at the sum of their lengths."""
    starts = [min(i * length, E.size(1) - length) for i, length in enumerate(lengths)]
    parts = zip(starts, lengths, x.split(lengths), strict=True)
    return torch.stack([E[:, i : i + length] @ tokens for i, length, tokens in parts])


def columns_in_reverse(E, x, lengths):
    """The tokens of one rank meet the columns of another. Cut E at the same places as the text, in the same order."""
    starts = [sum(lengths[i + 1 :]) for i in range(len(lengths))]
    parts = zip(starts, lengths, x.split(lengths), strict=True)
    return torch.stack([E[:, i : i + length] @ tokens for i, length, tokens in parts])


def means_of_tokens(E, x, lengths):
    """You average over the tokens of a shard. A slot is a weighted sum, however long the shard is."""
    return partial_slots(E, x, lengths) / torch.tensor(lengths)[:, None, None]


# 11.3: the gradient of a sum over ranks


def backward_of_sum(upstream: Tensor) -> Tensor:
    """Of x_s on each rank, given each rank's ∂loss_s / ∂sum. Shape: (ranks, ...) -> (ranks, ...)."""
    return upstream.sum(dim=0).expand_as(upstream).clone()


def draw_upstream(seed: int) -> tuple[Tensor, ...]:
    """What arrives on one to four ranks: a matrix each, a vector, three axes, a number."""
    ranks, *shape = row(seed, ((2, 3, 4, 5), (1, 2, 5, 4), (3, 4, 2, 5), (4, 5, 3, 2)))
    return normal(seed, (ranks, *shape[: (2, 1, 3, 0)[seed % 4]]))


def own_only(upstream):
    """You give each rank its own gradient only. But its x went into every rank's sum, so every rank's loss depends on it."""
    return upstream.clone()


def mean_of_all(upstream):
    """That is the mean. The whole loss is the sum of the ranks' losses, so its gradient is the sum of their gradients."""
    return upstream.mean(dim=0).expand_as(upstream).clone()


def times_the_ranks(upstream):
    """You multiply a rank's own gradient by the number of ranks, but the gradients of the other ranks are different."""
    return upstream * len(upstream)


def of_rank_0(upstream):
    """That gives every rank the gradient of rank 0. Sum what arrives on all ranks."""
    return upstream[:1].expand_as(upstream).clone()


def of_the_others(upstream):
    """You leave out the rank's own loss, which depends on its x as well."""
    return upstream.sum(dim=0) - upstream


def without_ranks(upstream):
    """You return one gradient. Every rank has an x of its own, so return (ranks, …), with the same gradient for each."""
    return upstream.sum(dim=0)


def one_for_all(upstream):
    """The sum is right, but every rank needs it. Return (ranks, …), not (1, …)."""
    return upstream.sum(dim=0, keepdim=True)


def only_on_rank_0(upstream):
    """You give the other ranks nothing. That would be right if rank 0 alone had added to the sum, but all ranks did."""
    total = torch.zeros_like(upstream)
    total[0] = upstream.sum(dim=0)
    return total


# 11.4: bytes on the wire


def wire_bytes(batch: int, n: int, d_model: int, proj_dim: int, bytes_per_number: int, ranks: int) -> float:
    """What a rank sends for a layer's forward pass, E and F different."""
    sizes = Sizes(n, d_model, d_model, proj_dim, batch, bytes_per_number)
    return linformer_bytes(sizes, ranks)


def draw_sizes(seed: int) -> tuple[int, int, int, int, int, int]:
    """Batch, n, d_model, proj_dim, bytes and ranks; shards and texts longer and shorter than proj_dim, once a single shard.

    Small enough that a rest of a byte is seen.
    """
    batch, shard, d_model, proj_dim, bytes_per_number, ranks = row(
        seed, ((3, 28, 13, 9, 2, 5), (5, 31, 10, 11, 4, 1), (1, 12, 17, 14, 2, 3), (2, 6, 12, 8, 4, 7))
    )
    shard = (shard, shard, min(shard, proj_dim // 2 + 2), 1)[seed % 4]
    return batch, shard * ranks, d_model, proj_dim, bytes_per_number, ranks


def of_whole_keys(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You count the keys and values of n tokens. The ranks exchange slots, and there are only proj_dim of them."""
    return wire_bytes(batch, n, d_model, n, bytes_per_number, ranks)


def keys_alone(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """That is half of it. Keys and values are both summed, and each part goes around the ring twice."""
    return wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks) / 2


def size_of_the_sum(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """That is the size of what is summed. In each of two rounds a rank sends P − 1 of its P parts, so multiply by 2 (P − 1)/P."""
    return 2.0 * batch * proj_dim * d_model * bytes_per_number


def size_of_one_texts_sum(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """That is the size of one text's slots. Count the whole batch, and multiply by 2 (P − 1)/P for what an all-reduce sends."""
    return 2.0 * proj_dim * d_model * bytes_per_number


def numbers_of_one_texts_sum(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """That counts the numbers in one text's slots. The question is how many bytes an all-reduce sends for a whole batch."""
    return 2.0 * proj_dim * d_model


def no_more_than_its_tokens(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You let a short shard send fewer slots. But each of its tokens adds to all proj_dim slots, however few tokens there are."""
    return wire_bytes(batch, n, d_model, min(proj_dim, n // ranks), bytes_per_number, ranks)


def no_more_than_the_text(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You let a text shorter than proj_dim send fewer slots. But E has proj_dim rows, so all slots are summed and sent."""
    return wire_bytes(batch, n, d_model, min(proj_dim, n), bytes_per_number, ranks)


def slots_shared_out(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You divide the slots by the ranks, as if each rank added to a few of them only. Every rank adds to all proj_dim slots."""
    return wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks) / ranks


def rounded_up(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You round the parts up to whole numbers. Here the parts may be cut anywhere, so do not round."""
    part = math.ceil(2 * batch * proj_dim * d_model / ranks)
    return 2 * part * bytes_per_number * (ranks - 1)


def rounded_down(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You round down to whole bytes, as // does. Here the parts may be cut anywhere, so write /."""
    return float(wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks) // 1)


def to_everybody(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You send all slots to each of the other ranks. Around a ring the slots are cut into P parts, so no rank sends more than twice their size."""
    return 2.0 * batch * proj_dim * d_model * bytes_per_number * (ranks - 1)


def numbers_not_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You count numbers. Each of them takes bytes_per_number bytes."""
    return wire_bytes(batch, n, d_model, proj_dim, 1, ranks)


def one_text(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You count one text. Every text of the batch has its own slots."""
    return wire_bytes(1, n, d_model, proj_dim, bytes_per_number, ranks)


def whole_twice(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You forget the factor (P − 1)/P. In each round a rank sends only P − 1 of the P parts, and a rank that is alone sends nothing."""
    return 4.0 * batch * proj_dim * d_model * bytes_per_number


def forward_and_backward(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """That is forward and backward together, or one pass of two layers. The question is about one layer's forward pass."""
    return 2 * wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks)


def of_all_ranks(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """That is what all ranks send together. One rank sends 2 (P − 1) parts, each 1/P of the whole."""
    return ranks * wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks)


def maps_sent(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You count n×k numbers, as in a map. Maps stay where their queries are. What is sent are slots, which have d_model features."""
    return 4.0 * batch * n * proj_dim * bytes_per_number * (ranks - 1) / ranks


EXERCISES = (
    Exercise(
        id="11.1",
        question="Each rank has the gradient of the mean loss over its own texts: gradients (ranks, d), and rows (ranks,) counts the texts. Return the gradient of the mean loss over all texts, (d,).",
        difficulty=1,
        minutes=4,
        trains="one batch on several ranks",
        reference=whole_gradient,
        draw=draw_gradients,
        mistakes=(
            plain_mean,
            plain_sum,
            not_divided,
            divided_by_ranks,
            summed_and_divided,
            weighted_the_wrong_way,
            weighted_by_squares,
            only_the_first,
        ),
        hints=(
            "Write the mean over all texts as a sum over ranks of sums over their texts.",
            "A rank's gradient is a mean. Multiplied by the number of its texts it is a sum, (d,). Add up these sums, and divide by the number of all texts.",
            "(gradients * rows[:, None]).sum(dim=0) / …",
        ),
    ),
    Exercise(
        id="11.2",
        question="Rank 0 holds the first lengths[0] tokens of x (n, d), rank 1 the next lengths[1], and so on. Return what each rank adds to E x: (ranks, proj_dim, d).",
        difficulty=2,
        minutes=6,
        trains="a product over n as a sum over shards",
        reference=partial_slots,
        draw=draw_shards,
        mistakes=(
            first_columns_everywhere,
            empty_shards_left_out,
            equal_shards,
            summed_already,
            a_mean_already,
            summed_up_to_here,
            summed_without_ranks,
            begun_at_multiples,
            columns_in_reverse,
            means_of_tokens,
        ),
        hints=(
            "Each column of E belongs to one token. Which columns does a rank need?",
            "Tensor.split takes a list of lengths and an axis. E (proj_dim, n) is cut along axis 1, and x (n, d) along axis 0.",
            "torch.stack([columns @ tokens for columns, tokens in zip(E.split(lengths, dim=1), …)])",
        ),
    ),
    Exercise(
        id="11.3",
        question="Every rank holds y = x₀ + x₁ + … From upstream (ranks, …), the gradient of each rank's loss for y, return the gradient of the sum of all losses for every x_s.",
        difficulty=2,
        minutes=5,
        trains="what autograd must be told of an exchange",
        reference=backward_of_sum,
        draw=draw_upstream,
        mistakes=(
            own_only,
            mean_of_all,
            times_the_ranks,
            of_rank_0,
            of_the_others,
            without_ranks,
            one_for_all,
            only_on_rank_0,
        ),
        hints=(
            "The whole loss is the sum of the ranks' losses. Which of these change if x₀ changes?",
            "All of them do, each through its own copy of y, and the chain rule adds up their gradients. The result has the shape of upstream.",
            "upstream.sum(dim=0).expand_as(…).clone()",
        ),
    ),
    Exercise(
        id="11.4",
        question="How many bytes does a rank send for a layer's forward pass, if the all-reduce goes around a ring and E and F are different? Given: batch, n, d_model, proj_dim, bytes_per_number, ranks.",
        difficulty=2,
        minutes=6,
        trains="a budget for the wire",
        reference=wire_bytes,
        draw=draw_sizes,
        mistakes=(
            of_whole_keys,
            keys_alone,
            size_of_the_sum,
            size_of_one_texts_sum,
            numbers_of_one_texts_sum,
            no_more_than_its_tokens,
            no_more_than_the_text,
            slots_shared_out,
            rounded_up,
            rounded_down,
            to_everybody,
            numbers_not_bytes,
            one_text,
            whole_twice,
            forward_and_backward,
            of_all_ranks,
            maps_sent,
        ),
        hints=(
            "How many numbers are in what is summed over the ranks? n is not among the factors.",
            "Compressed keys and values are 2 · batch · proj_dim · d_model numbers. In an all-reduce of S bytes every rank sends 2 S (P − 1)/P.",
            "2 * (2 * batch * proj_dim * d_model * …) * (ranks - 1) / ranks",
        ),
    ),
)

QUIZ = (
    Question(
        "Eight ranks share a text of n tokens, and then a text of 4n tokens. What happens to the bytes that Linformer's layer sends?",
        (
            Option("They stay the same", "The ranks sum k slots, however many tokens went into them.", True),
            Option(
                "There are four times as many",
                "That would be ring attention or Ulysses, which move the keys and values of tokens.",
            ),
            Option("There are sixteen times as many", "No n×n map leaves a rank in any of these schemes."),
            Option("There are a quarter as many", "A rank holds more tokens than before, but as many slots."),
        ),
    ),
    Question(
        "The output of a layer on shards is right to the last digit, but many gradients are wrong. What is the likeliest mistake?",
        (
            Option(
                "all_reduce was called in place, and autograd does not know of it",
                "Then the slots of each rank get the gradient of that rank's loss only.",
                True,
            ),
            Option("The shards are uneven", "A sum comes out right however long its parts are."),
            Option(
                "The gradients of E's shards were not summed over ranks",
                "They must not be summed: a column belongs to one token, which lies on one rank.",
            ),
            Option(
                "float32 rounds",
                "Rounding makes the sixth or seventh digit wrong, in the forward pass as well.",
            ),
        ),
    ),
    Question(
        "Ranks share one text. Which gradients must be summed over the ranks after backward?",
        (
            Option(
                "those of the weights that every rank holds, such as W_Q",
                "Each rank used these weights on its own tokens, and the gradient of the whole text is the sum.",
                True,
            ),
            Option(
                "all of them",
                "Each rank has its own columns of E and F, so a sum over ranks would mix different columns.",
            ),
            Option(
                "those of E and F",
                "They stay where they are, since the other ranks do not even have these columns.",
            ),
            Option(
                "none, since backward had an all-reduce already",
                "That all-reduce is for the slots. W_Q's gradient comes from this rank's queries only.",
            ),
        ),
    ),
    Question(
        "Two ranks share a batch of 5 texts as 3 and 2. When is their update the same as that of one process, up to rounding?",
        (
            Option(
                "if gradients are averaged with weights 3/5 and 2/5",
                "A mean over 5 texts gives every text the same weight.",
                True,
            ),
            Option(
                "if gradients are averaged with equal weights",
                "Then each of the 2 texts counts for more than each of the 3.",
            ),
            Option(
                "if the learning rate is doubled",
                "Gradients are averaged and not added, so the size of an update does not change with the number of ranks.",
            ),
            Option(
                "never, because sums are rounded differently",
                "They are, but only in the last digits, and the question allows for rounding.",
            ),
        ),
    ),
    Question(
        "At n = 1,000,000 and k = 256, E and F of one layer hold 512 million numbers. What follows for eight ranks?",
        (
            Option(
                "Each rank holds 64 million, since it needs only its own columns",
                "E and F are cut along n, as the text is.",
                True,
            ),
            Option(
                "Every rank holds all of them",
                "A rank would never use the columns of other ranks' tokens, so it need not hold them.",
            ),
            Option(
                "They are sent around with the tokens",
                "Neither is sent: Linformer sends nothing that has n rows or columns.",
            ),
            Option(
                "k must shrink as n grows",
                "Memory does not ask for that. It is another question whether k is large enough for so much text.",
            ),
        ),
    ),
)
