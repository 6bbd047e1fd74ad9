"""Chapter 12: exercises and quiz."""

import math

import torch
from torch import Tensor

from linformer_from_scratch.exercises.engine.checking import Exercise
from linformer_from_scratch.exercises.engine.draws import normal, row
from linformer_from_scratch.exercises.engine.quiz import Option, Question
from linformer_from_scratch.limits import copy_error, leak
from linformer_from_scratch.projections import empty_slots

# 12.1: how much of a shift a rank can hold


def draw_ranks(seed: int) -> tuple[int, int]:
    """Tokens and a rank; once the full rank."""
    n, rank = row(seed, ((64, 16), (7, 7), (50, 3), (12, 11)))
    return n, min(n, rank)


def share_left_out(n, rank):
    """You return 1 − rank/n, the share of the squares that's missing. You're one step short: the exercise asks for a norm, so take the root."""
    return 1 - rank / n


def share_of_squares_kept(n, rank):
    """rank/n is the share of the squares that the map keeps. You want the other share, and then its root, because the exercise asks for a norm."""
    return rank / n


def share_kept(n, rank):
    """√(rank/n) says how much of the permutation the map keeps. Turn it round: what does it miss?"""
    return math.sqrt(rank / n)


def none_below_full_rank(n, rank):
    """Below full rank you call everything lost. But all n singular values are 1, and the best map still has `rank` of them."""
    return float(rank < n)


def singular_values_fall(n, rank):
    """You let the singular values fall off as 1/i, as those of a real head might. A permutation only moves rows around: all of its are 1."""
    squares = [1 / (i * i) for i in range(1, n + 1)]
    return math.sqrt(sum(squares[rank:]) / sum(squares))


def absolute_error(n, rank):
    """That's the error itself, √(n − rank). It grows with n, so divide it by the permutation's own norm, √n."""
    return math.sqrt(n - rank)


def share_of_the_norm_left_out(n, rank):
    """You subtract norms, 1 − √(rank/n). Norms don't add up, their squares do: subtract inside the root."""
    return 1 - math.sqrt(rank / n)


def in_per_cent(n, rank):
    """You're off by a factor of 100: that's the error in per cent, and the exercise wants a share."""
    return 100 * copy_error(n, rank)


def divided_by_n(n, rank):
    """You divide by n. A permutation has n ones, so its Frobenius norm is √n."""
    return math.sqrt(n - rank) / n


# 12.2: does the past know?


def draw_outputs(seed: int) -> tuple[Tensor, Tensor, int]:
    """Outputs before and after an edit in the middle, at the end, at the first token, at the second.

    The largest change of an earlier token is a fall; at the end, a rise.
    """
    n, d, place, scale = row(seed, ((7, 4, 3, 5.0), (5, 3, 4, 5.0), (6, 4, 0, 5.0), (9, 2, 1, 0.1)))
    place = 0 if seed % 4 == 2 else min(place, n - 1)
    before, change = normal(seed, (n, d), (n, d))
    change[place:] *= scale  # later tokens may change, mostly more
    change[:place] += 1.5 if seed % 4 == 1 else -1.5
    return before, before + change, place


def with_the_token_itself(before, after, place):
    """You count the edited token, too, and that one has every right to change. [:place] ends just before it."""
    return (after - before)[: place + 1].abs().max().item()


def without_the_last_earlier_token(before, after, place):
    """[:place - 1] drops the token right before the edit, where leaks like to hide. Tokens 0 to place − 1 are [:place]."""
    return (after - before)[: place - 1].abs().max().item() if place else 0.0


def maximum_of_nothing(before, after, place):
    """With place = 0 there's no earlier token, and PyTorch refuses the maximum of nothing. Return 0.0 in that case."""
    return (after - before)[:place].abs().max().item()


def later_tokens(before, after, place):
    """You look after the edit. Later tokens may attend to it in any model; a leak is a change of an earlier one."""
    return (after - before)[place:].abs().max().item()


def all_tokens(before, after, place):
    """You look at all tokens, but from the edit on they may change in an honest causal model, too. Look only before it."""
    return (after - before).abs().max().item()


def signed(before, after, place):
    """You miss every change downwards. Take absolute values before the maximum."""
    return (after - before)[:place].max().item() if place else 0.0


def signed_the_other_way(before, after, place):
    """before - after misses every change upwards. Take absolute values before the maximum."""
    return (before - after)[:place].max().item() if place else 0.0


def average(before, after, place):
    """One token that knows is enough for a leak, and your average hides it among many that don't. Take the largest change."""
    return (after - before)[:place].abs().mean().item() if place else 0.0


def only_the_neighbour(before, after, place):
    """You check only the token right before the edit. The future can leak into any earlier token."""
    return (after - before)[place - 1].abs().max().item() if place else 0.0


def sums_of_changes(before, after, place):
    """You add all changes up. That grows with the text; the exercise asks for the largest change of a single number."""
    return (after - before)[:place].abs().sum().item()


def row_norms(before, after, place):
    """You measure how far a whole row moved. The exercise asks for the largest change of a single number."""
    return (after - before)[:place].norm(dim=1).max().item() if place else 0.0


def sizes_apart(before, after, place):
    """You compare the largest output before with the largest after. An output can change a lot and be as large as it was: subtract first."""
    return abs((after[:place].abs().max() - before[:place].abs().max()).item()) if place else 0.0


# 12.3: slots that hold nothing


def draw_windows(seed: int) -> tuple[Tensor, int]:
    """Means of windows, for a shorter text and a whole one; kept tokens, of either sign; tiny differences at the beginning."""
    proj_dim, width, n = row(seed, ((4, 3, 7), (5, 2, 10), (3, 4, 6), (6, 2, 4)))
    E = torch.zeros(proj_dim, proj_dim * width)
    for i in range(proj_dim):
        if seed % 4 == 2:
            E[i, (i + 1) * width - 2] = (-1.0, 1.0)[i % 2]  # keeps a token
        elif seed % 4 == 3:
            E[i, i : i + 2] = torch.tensor([1e-8, -1e-8])  # sums to zero, and is not empty
        else:
            E[i, i * width : (i + 1) * width] = 1 / width
    return E, min(n, E.size(1))


def never_empty(E, n):
    """You look at the whole of E, so you count slots that no text could fill. This text has n tokens: look at the first n columns."""
    return int((E == 0).all(dim=1).sum())


def partly_empty(E, n):
    """You count a slot as empty if it misses any token. It's empty only if it misses all n of them."""
    return int((E[:, :n] == 0).any(dim=1).sum())


def share_of_empty_slots(E, n):
    """That's the share of empty slots. The exercise asks how many they are."""
    return empty_slots(E, n) / E.size(0)


def last_columns(E, n):
    """You use the last n columns. A short text begins at column 0, so it meets the first n."""
    return int((E[:, -n:] == 0).all(dim=1).sum())


def sums_to_zero(E, n):
    """You add a row up, and its numbers can cancel while the slot reads the text. Ask whether all of them are zero."""
    return int((E[:, :n].sum(dim=1) == 0).sum())


def negative_is_nothing(E, n):
    """You take a negative weight for none. It reads its token like any other, with a minus sign."""
    return int((E[:, :n].amax(dim=1) <= 0).sum())


def nearly_zero(E, n):
    """You drop weights that are only small. A small weight still reads a little; nothing at all means exactly zero."""
    return int((E[:, :n].abs() < 1e-6).all(dim=1).sum())


def filled_slots(E, n):
    """You count the slots that do read something. The exercise asks for the others."""
    return E.size(0) - empty_slots(E, n)


def by_proportion(E, n):
    """You count by n / seq_len. That takes all windows for equal, and it loses the window that the end of the text cuts in two."""
    return E.size(0) - E.size(0) * n // E.size(1)


def by_proportion_rounded_up(E, n):
    """Right for windows of one size, and only for them. A learned E may read this text with any of its slots, so look at its rows."""
    return E.size(0) - math.ceil(E.size(0) * n / E.size(1))


def empty_after_the_text(E, n):
    """You look at the columns after the text. Those tokens don't exist; the text is the first n columns."""
    return int((E[:, n:] == 0).all(dim=1).sum())


def empty_columns(E, n):
    """You count tokens that no slot reads, along the wrong axis. Slots are the rows of E."""
    return int((E[:, :n] == 0).all(dim=0).sum())


# 12.4: three biases


def folded_bias(output_weight: Tensor, output_bias: Tensor, value_bias: Tensor) -> Tensor:
    """The output's bias once it has taken up the value's. Shape: (d, d_v), (d,), (d_v,) -> (d,)."""
    return output_bias + output_weight @ value_bias


def draw_biases(seed: int) -> tuple[Tensor, ...]:
    """Two layers whose values have as many features as the model, two where they have not; once with one."""
    d_model, d_values = row(seed, ((5, 5), (1, 7), (4, 2), (3, 3)))
    return normal(seed, (d_model, d_values), (d_model,), (d_values,))


def added_unprojected(output_weight, output_bias, value_bias):
    """You add the value's bias as it is. It travels the way of the values, so it has to go through W_O first."""
    return output_bias + value_bias


def transposed(output_weight, output_bias, value_bias):
    """You multiply by W_Oᵀ. Linear keeps its weight as (out, in), so for a column of features it's W @ value_bias."""
    return output_bias + output_weight.mT @ value_bias


def from_the_left(output_weight, output_bias, value_bias):
    """You multiply from the left, which is Wᵀ again: Linear keeps its weight as (out, in). From the left, it would be value_bias @ output_weight.mT."""
    return output_bias + value_bias @ output_weight


def value_bias_alone(output_weight, output_bias, value_bias):
    """You replaced the output's bias. It's still needed: add to it."""
    return output_weight @ value_bias


def value_bias_taken_away(output_weight, output_bias, value_bias):
    """You subtract. The new bias has to put back what the values no longer bring, so the sign is plus."""
    return output_bias - output_weight @ value_bias


def output_bias_alone(output_weight, output_bias, value_bias):
    """You left the output's bias alone, and the value's is lost. Rows of softmax sum to one, so all of it used to reach the output."""
    return output_bias.clone()


def both_projected(output_weight, output_bias, value_bias):
    """You send both biases through W_O. The output's own bias is added after W_O; only the value's goes through."""
    return output_weight @ (output_bias + value_bias)


def elementwise(output_weight, output_bias, value_bias):
    """You multiply entry by entry with the diagonal. Each output mixes all value features, so it's a matrix product."""
    return output_bias + output_weight.diagonal() * value_bias


EXERCISES = (
    Exercise(
        id="12.1",
        question="Let rank be a number from 1 to n. How far is the best map of that rank from a permutation of n tokens? Return one number: the Frobenius error divided by the permutation's Frobenius norm.",
        difficulty=1,
        minutes=4,
        trains="how much of a copy k slots can carry at best",
        reference=copy_error,
        draw=draw_ranks,
        mistakes=(
            share_left_out,
            share_of_squares_kept,
            share_kept,
            none_below_full_rank,
            singular_values_fall,
            absolute_error,
            share_of_the_norm_left_out,
            in_per_cent,
            divided_by_n,
        ),
        hints=(
            "A permutation only moves rows around. What does that make of its singular values? Chapter 04 turns those that you leave out into an error.",
            "All n of them are 1, and the best map keeps `rank`. The error is the root of the sum of the squares left out, and the permutation's own norm is √n.",
            "math.sqrt((n - …) / …)",
        ),
    ),
    Exercise(
        id="12.2",
        question="before and after are a layer's outputs, of shape (n, d), before and after token `place` (counted from 0) was edited. Return the largest absolute change of any number at an earlier token, as one number. If place is 0, return 0.0.",
        difficulty=1,
        minutes=4,
        trains="a test for causality that needs no theory",
        reference=leak,
        draw=draw_outputs,
        mistakes=(
            with_the_token_itself,
            without_the_last_earlier_token,
            maximum_of_nothing,
            later_tokens,
            all_tokens,
            signed,
            signed_the_other_way,
            average,
            sums_of_changes,
            only_the_neighbour,
            row_norms,
            sizes_apart,
        ),
        hints=(
            "You edited one token. Which outputs must not know?",
            "Those of rows 0 … place − 1. Their change has shape (place, d), and with place = 0 there is nothing to take a maximum of.",
            "(after - before)[:place].abs()… if place else 0.0",
        ),
    ),
    Exercise(
        id="12.3",
        question="A text of n tokens meets the first n columns of E, of shape (proj_dim, seq_len). How many slots read nothing at all, because they multiply every token by exactly zero? Return one number.",
        difficulty=2,
        minutes=5,
        trains="what happens to a text that is shorter than E",
        reference=empty_slots,
        draw=draw_windows,
        mistakes=(
            never_empty,
            partly_empty,
            share_of_empty_slots,
            last_columns,
            sums_to_zero,
            negative_is_nothing,
            nearly_zero,
            filled_slots,
            by_proportion,
            by_proportion_rounded_up,
            empty_after_the_text,
            empty_columns,
        ),
        hints=(
            "Forget windows for a moment: a slot is a row of E. What must the row look like to read none of the n tokens?",
            "Cut E down to what this text meets, E[:, :n]. A row of zeros there is an empty slot; count such rows.",
            "int((E[:, :n] == 0).all(dim=…).sum())",
        ),
    ),
    Exercise(
        id="12.4",
        question="MiniLM's values have a bias, and ours have none. For full attention, return the output bias, of shape (d,), that makes up for it, from W_O (d, d_v), its bias (d,) and the value's bias (d_v,).",
        difficulty=2,
        minutes=5,
        trains="fitting one implementation's weights into another",
        reference=folded_bias,
        draw=draw_biases,
        mistakes=(
            added_unprojected,
            transposed,
            from_the_left,
            value_bias_alone,
            value_bias_taken_away,
            output_bias_alone,
            both_projected,
            elementwise,
        ),
        hints=(
            "Give every value the same extra b. Each row of P sums to one, so what comes out of P (V + 1bᵀ)?",
            "P V + 1bᵀ: the bias arrives at W_O as it was, (d_v,), and W_O maps it to (d,).",
            "output_bias + output_weight @ …",
        ),
    ),
)

QUIZ = (
    Question(
        "Your Linformer predicts the next token with a far lower loss than a causal Transformer. What happened?",
        (
            Option(
                "Its slots hold the token that it should predict",
                "It learned to fetch the answer. Hide the rest of the text, and it does worse than a guess.",
                True,
            ),
            Option(
                "Compression keeps it from overfitting",
                "A tempting story, since the loss on held-out text is low as well. Held-out text was in its slots, too.",
            ),
            Option(
                "It has more parameters",
                "E and F add a few. No number of parameters tells you the next byte of an unknown text that well.",
            ),
            Option(
                "A causal mask is in the way of the Transformer",
                "The mask keeps it honest: when a model writes, there is no next token to see.",
            ),
        ),
    ),
    Question(
        "n grows, and the number of things to recall or copy grows with n, but k stays fixed. What got worse in our runs?",
        (
            Option(
                "repeating an earlier part of the text exactly, token by token",
                "Through 16 slots, copies without a mistake at 64 tokens were 0.24 to 0.97 right at 256.",
                True,
            ),
            Option(
                "the topic of the text",
                "We didn't measure that, and an average over all tokens already tells much about a topic.",
            ),
            Option("the speed", "The one thing that fixed k is good for: the cost is linear in n."),
            Option(
                "nothing, if E and F are learned",
                "Recall fell with learned E and F as it did with plain averages. Once learned, they're the same k sums for every text.",
            ),
        ),
    ),
    Question(
        "Mean pooling with 128 slots was made for 512 tokens; your text has 32. What happens?",
        (
            Option(
                "Most slots are empty, and still get weight",
                "They score 0, and exp 0 is 1, so they take weight in every row. Their values are zero, so the output shrinks.",
                True,
            ),
            Option(
                "Nothing changes, missing tokens count as zero",
                "As values they do. But a score of zero isn't no score: exp 0 is 1.",
            ),
            Option("An error", "You'd get that with a longer text, for which E has no columns."),
            Option(
                "It gets better, since 128 slots are plenty for 32 tokens",
                "They'd be plenty if the text could use them. Each slot is made for four tokens, so 32 tokens fill eight.",
            ),
        ),
    ),
    Question(
        "In Long Range Arena, Linformer is second of eleven on Pathfinder and second to last on Image. What may you conclude?",
        (
            Option(
                "Little about rank: one k, no search for hyperparameters, no spread",
                "When others ran the benchmark again, Linformer was well behind the Transformer on Pathfinder.",
                True,
            ),
            Option(
                "Low rank regularises",
                "On Image it gets nearly all training pictures right and few of the others. That's the opposite.",
            ),
            Option(
                "Linformer is made for pictures",
                "Both tasks are pictures. It can't be made for one and bad at the other for the same reason.",
            ),
            Option(
                "k = 16 is enough for long texts",
                "On Text it's well below the Transformer, in this table and when others ran it again.",
            ),
        ),
    ),
    Question(
        "You have fused exact attention, texts of 512 tokens and a pretrained encoder. Which attention should you use?",
        (
            Option(
                "the exact one, as it is",
                "At this length slots save no memory and a little time, and they change the vectors.",
                True,
            ),
            Option(
                "Linformer with the fitted E and F",
                "Close to the exact vectors, but not the same, and all the surgery saves little time at 512 tokens.",
            ),
            Option(
                "Linformer with k = 512",
                "Exact only if E and F are the same permutation, and then you've saved nothing at all.",
            ),
            Option(
                "sliding windows, they are never worse",
                "They can't see past their reach, and at this length they save little, too.",
            ),
        ),
    ),
)
