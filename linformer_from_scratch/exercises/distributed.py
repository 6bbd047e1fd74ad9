"""Chapter 11: exercises and quiz."""

import math

import torch
from torch import Tensor

from linformer_from_scratch.cost import Sizes
from linformer_from_scratch.distributed.wire import linformer_bytes
from linformer_from_scratch.exercises.draws import normal, row
from linformer_from_scratch.exercises.engine import Exercise
from linformer_from_scratch.exercises.quiz import Option, Question
from linformer_from_scratch.training.ranks import shares

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
    """You give every rank the same weight; a rank with more rows speaks for more of the batch, so weight by rows."""
    return gradients.mean(dim=0)


def plain_sum(gradients, rows):
    """A sum of means grows with the number of ranks; weight each by its share of the rows."""
    return gradients.sum(dim=0)


def not_divided(gradients, rows):
    """That is the gradient of the summed loss; divide by the rows of all ranks to get that of the mean."""
    return (gradients * rows[:, None]).sum(dim=0)


def divided_by_ranks(gradients, rows):
    """You divide the weighted sum by the number of ranks; divide by the number of rows."""
    return (gradients * rows[:, None]).mean(dim=0)


def summed_and_divided(gradients, rows):
    """Each of these is already a mean over its rank's rows: multiply by the rows before you divide by all of them."""
    return gradients.sum(dim=0) / rows.sum()


def weighted_the_wrong_way(gradients, rows):
    """You weight by 1 / rows, which gives the ranks with the fewest rows the most to say; weight by rows."""
    return (gradients / rows[:, None]).sum(dim=0) / (1 / rows).sum()


def weighted_by_squares(gradients, rows):
    """You weight twice; a rank's gradient is multiplied by its rows once, and the sum is divided by all rows."""
    return (gradients * rows[:, None] ** 2).sum(dim=0) / (rows**2).sum()


def only_the_first(gradients, rows):
    """That is rank 0's gradient alone; the ranks would drift apart within an update."""
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
    """Every rank uses the first columns of E; a shard that begins at token i needs the columns from i on."""
    parts = zip(lengths, x.split(lengths), strict=True)
    return torch.stack([E[:, :length] @ tokens for length, tokens in parts])


def empty_shards_left_out(E, x, lengths):
    """A rank without tokens adds zeros; keep its place, so that there is a part for every rank."""
    return partial_slots(E, x, [length for length in lengths if length])


def equal_shards(E, x, lengths):
    """You cut the text into equal parts; the ranks hold `lengths` tokens, which differ."""
    own = shares(len(x), len(lengths))
    return partial_slots(E, x, own)


def summed_already(E, x, lengths):
    """That is the sum over ranks on each of them; asked is what a rank adds before the sum."""
    return (E @ x).expand(len(lengths), -1, -1).clone()


def a_mean_already(E, x, lengths):
    """You divide by the ranks; E x is the sum of the parts, not their mean."""
    return partial_slots(E, x, lengths) / len(lengths)


def summed_up_to_here(E, x, lengths):
    """Your ranks also add what the ranks before them hold; then the sum over ranks counts early tokens again and again."""
    return partial_slots(E, x, lengths).cumsum(dim=0)


def summed_without_ranks(E, x, lengths):
    """That is E x itself, the sum over all ranks; return what each rank adds, (ranks, proj_dim, d)."""
    return E @ x


def begun_at_multiples(E, x, lengths):
    """You let shard i begin at i · its own length; where lengths differ it begins at the sum of those before it."""
    starts = [min(i * length, E.size(1) - length) for i, length in enumerate(lengths)]
    parts = zip(starts, lengths, x.split(lengths), strict=True)
    return torch.stack([E[:, i : i + length] @ tokens for i, length, tokens in parts])


def columns_in_reverse(E, x, lengths):
    """Tokens of one rank meet columns of another: cut E at the same places as the text, in the same order."""
    starts = [sum(lengths[i + 1 :]) for i in range(len(lengths))]
    parts = zip(starts, lengths, x.split(lengths), strict=True)
    return torch.stack([E[:, i : i + length] @ tokens for i, length, tokens in parts])


def means_of_tokens(E, x, lengths):
    """You average over the tokens of a shard; a slot is a weighted sum, whatever the shard's length."""
    return partial_slots(E, x, lengths) / torch.tensor(lengths)[:, None, None]


# 11.3: the gradient of a sum over ranks


def backward_of_sum(upstream: Tensor) -> Tensor:
    """Of x_r on each rank, given each rank's ∂loss_r / ∂sum. Shape: (ranks, ...) -> (ranks, ...)."""
    return upstream.sum(dim=0).expand_as(upstream).clone()


def draw_upstream(seed: int) -> tuple[Tensor, ...]:
    """What arrives on one to four ranks: a matrix each, a vector, three axes, a number."""
    ranks, *shape = row(seed, ((2, 3, 4, 5), (1, 2, 5, 4), (3, 4, 2, 5), (4, 5, 3, 2)))
    return normal(seed, (ranks, *shape[: (2, 1, 3, 0)[seed % 4]]))


def own_only(upstream):
    """Each rank keeps what arrives at itself; but its x went into every rank's sum, so every rank's loss depends on it."""
    return upstream.clone()


def mean_of_all(upstream):
    """That is the mean; the loss is the sum of the ranks' losses, and so are its gradients."""
    return upstream.mean(dim=0).expand_as(upstream).clone()


def times_the_ranks(upstream):
    """You multiply a rank's own gradient by the number of ranks; the others' gradients differ from it."""
    return upstream * len(upstream)


def of_rank_0(upstream):
    """That spreads rank 0's gradient; sum what arrives on all ranks."""
    return upstream[:1].expand_as(upstream).clone()


def of_the_others(upstream):
    """You leave out the rank's own loss; it depends on its x as well."""
    return upstream.sum(dim=0) - upstream


def without_ranks(upstream):
    """You return one gradient; every rank has an x of its own, so return (ranks, …), the same on each."""
    return upstream.sum(dim=0)


def one_for_all(upstream):
    """The sum is right, and every rank needs it: return (ranks, …), not (1, …)."""
    return upstream.sum(dim=0, keepdim=True)


def only_on_rank_0(upstream):
    """The other ranks get nothing: that is the gradient of a sum that only rank 0 receives. Here all ranks do."""
    total = torch.zeros_like(upstream)
    total[0] = upstream.sum(dim=0)
    return total


# 11.4: bytes on the wire


def wire_bytes(batch: int, n: int, d_model: int, proj_dim: int, bytes_per_number: int, ranks: int) -> float:
    """A rank sends this for a layer's forward pass, E and F different."""
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
    """These are keys and values of n tokens; the ranks exchange slots, proj_dim of them."""
    return wire_bytes(batch, n, d_model, n, bytes_per_number, ranks)


def keys_alone(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """Half of it: compressed keys and compressed values both go through the sum, and each part goes around twice."""
    return wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks) / 2


def size_of_the_sum(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """2 · batch · proj_dim · d_model numbers are what is summed; each goes around twice, but for a rank's own part: times 2 (P − 1)/P."""
    return 2.0 * batch * proj_dim * d_model * bytes_per_number


def size_of_one_texts_sum(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """2 · proj_dim · d_model numbers are one text's slots: count those of the whole batch, and 2 (P − 1)/P times as much is sent."""
    return 2.0 * proj_dim * d_model * bytes_per_number


def numbers_of_one_texts_sum(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """2 · proj_dim · d_model counts the numbers of one text's slots; asked are the bytes that are sent, for a batch, by an all-reduce."""
    return 2.0 * proj_dim * d_model


def no_more_than_its_tokens(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You let a short shard send fewer slots; each of its tokens adds to all proj_dim of them, however few tokens it has."""
    return wire_bytes(batch, n, d_model, min(proj_dim, n // ranks), bytes_per_number, ranks)


def no_more_than_the_text(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You let a text shorter than proj_dim send fewer slots; E has proj_dim rows, so all slots are summed and sent."""
    return wire_bytes(batch, n, d_model, min(proj_dim, n), bytes_per_number, ranks)


def slots_shared_out(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You divide the slots by the ranks, as if each rank summed its own few; every rank adds to all proj_dim slots."""
    return wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks) / ranks


def rounded_up(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You round the parts up to whole numbers; the best all-reduce is counted as if they could be cut anywhere."""
    part = math.ceil(2 * batch * proj_dim * d_model / ranks)
    return 2 * part * bytes_per_number * (ranks - 1)


def rounded_down(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You round down to whole bytes, as // does; the best all-reduce is counted as if the parts could be cut anywhere: write /."""
    return float(wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks) // 1)


def to_everybody(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """That sends everything to each of the others; an all-reduce cuts the slots into P parts, so nobody sends more than twice their size."""
    return 2.0 * batch * proj_dim * d_model * bytes_per_number * (ranks - 1)


def numbers_not_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You count numbers; each takes bytes_per_number bytes."""
    return wire_bytes(batch, n, d_model, proj_dim, 1, ranks)


def one_text(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You count one text; every text of the batch has its own slots."""
    return wire_bytes(1, n, d_model, proj_dim, bytes_per_number, ranks)


def whole_twice(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """You forget (P − 1)/P: a rank need not send the part it sums itself, and one rank alone sends nothing."""
    return 4.0 * batch * proj_dim * d_model * bytes_per_number


def forward_and_backward(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """That is forward and backward together, or one pass of two layers; asked is one layer's forward pass."""
    return 2 * wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks)


def of_all_ranks(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """These are the bytes of all ranks together, or the whole sum sent 2 (P − 1) times; one rank sends parts, each 1/P of the sum."""
    return ranks * wire_bytes(batch, n, d_model, proj_dim, bytes_per_number, ranks)


def maps_sent(batch, n, d_model, proj_dim, bytes_per_number, ranks):
    """These are n×k numbers, as in a map; maps stay where their queries are, and slots have d_model features."""
    return 4.0 * batch * n * proj_dim * bytes_per_number * (ranks - 1) / ranks


EXERCISES = (
    Exercise(
        id="11.1",
        question="From every rank's gradient (ranks, d) of the mean over its own rows (ranks,), return that of all rows' mean, (d,).",
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
            "Write the mean over all rows as a sum over ranks of sums over their rows.",
            "A rank's gradient is a mean: times its rows it is a sum, (d,). All the sums, divided by all the rows.",
            "(gradients * rows[:, None]).sum(dim=0) / …",
        ),
    ),
    Exercise(
        id="11.2",
        question="The ranks hold lengths[0], lengths[1], … tokens of x (n, d). Return what each adds to E x: (ranks, proj_dim, d).",
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
            "Tensor.split takes a list of lengths and an axis: E (proj_dim, n) is cut along 1, x (n, d) along 0.",
            "torch.stack([columns @ tokens for columns, tokens in zip(E.split(lengths, dim=1), …)])",
        ),
    ),
    Exercise(
        id="11.3",
        question="s = x₀ + x₁ + … lies on every rank. From upstream (ranks, …), each rank's ∂loss_r/∂s, return the gradient of every x_r.",
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
            "The loss is the sum of the ranks' losses. Which of them change if x₀ changes?",
            "All of them do, each through its own copy of s; the chain rule adds up. The result has the shape of upstream.",
            "upstream.sum(dim=0).expand_as(…).clone()",
        ),
    ),
    Exercise(
        id="11.4",
        question="Bytes a rank sends for a layer's forward pass, by the best all-reduce, E and F different: from batch, n, d_model, proj_dim, bytes_per_number, ranks.",
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
            "How many numbers does the sum over ranks hold? n is not among the factors.",
            "Compressed keys and values are 2 · batch · proj_dim · d_model numbers; an all-reduce of S bytes sends 2 S (P − 1)/P from every rank.",
            "2 * (2 * batch * proj_dim * d_model * …) * (ranks - 1) / ranks",
        ),
    ),
)

QUIZ = (
    Question(
        "Eight ranks share a text of n tokens, then one of 4 n. What happens to the bytes that Linformer's layer sends?",
        (
            Option("Nothing", "The sum over ranks holds k slots, whatever was summed.", True),
            Option(
                "Four times as many",
                "That is ring attention, or Ulysses: they move keys and values of tokens.",
            ),
            Option("Sixteen times as many", "No n×n map leaves a rank with any of these methods."),
            Option("A quarter", "A rank holds more tokens, not fewer; the slots are as many as before."),
        ),
    ),
    Question(
        "Forward is right to the last digit, the gradients are wrong. What is the likeliest mistake?",
        (
            Option(
                "all_reduce was called in place, and autograd does not know of it",
                "Then each rank's slots get the gradient of that rank's loss alone.",
                True,
            ),
            Option("The shards are uneven", "A sum does not mind how long its parts are."),
            Option(
                "Gradients of E's shard were not summed over ranks",
                "They must not be: a column belongs to one token, which lies on one rank.",
            ),
            Option(
                "float32 rounds", "That makes the sixth or seventh digit wrong, in the forward pass as well."
            ),
        ),
    ),
    Question(
        "Ranks share one text. Which gradients does a rank have to share after backward?",
        (
            Option(
                "those of the weights that every rank holds, such as W_Q",
                "Each rank used them on its own tokens, and the whole text's gradient is the sum.",
                True,
            ),
            Option(
                "all of them",
                "Columns of E and F are this rank's alone; adding another rank's would mix different columns.",
            ),
            Option("those of E and F", "They stay: the other ranks do not even have these columns."),
            Option(
                "none, the backward all-reduce did it",
                "That one serves the slots; W_Q's gradient comes from this rank's queries only.",
            ),
        ),
    ),
    Question(
        "Two ranks share a batch of 5 texts as 3 and 2. When is the update that of one process, up to rounding?",
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
                "Averaging, not adding: the size of the update does not change with the ranks.",
            ),
            Option(
                "never, sums are rounded differently",
                "They are, in the last digit; that is not another update.",
            ),
        ),
    ),
    Question(
        "At n = 1,000,000 and k = 256, E and F of one layer hold 512 million numbers. What follows for eight ranks?",
        (
            Option(
                "64 million on each, since a rank needs its own columns alone",
                "E and F are cut along n, like the text.",
                True,
            ),
            Option(
                "every rank holds all of them",
                "Only if one copies the layer; its other columns would never be used.",
            ),
            Option("they are sent around with the tokens", "Nothing that has n rows or columns is sent."),
            Option(
                "k must shrink with n",
                "Memory does not ask for it; whether k is large enough for so much text is another matter.",
            ),
        ),
    ),
)
