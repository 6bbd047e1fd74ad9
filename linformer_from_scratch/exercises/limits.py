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
    """That is the share of the squares that is left out. The exercise asks for norms, so take the square root."""
    return 1 - rank / n


def share_of_squares_kept(n, rank):
    """That is the share of the squares that is kept. The exercise asks for the norm of what is missed."""
    return rank / n


def share_kept(n, rank):
    """That is what is kept. The exercise asks for what is missed."""
    return math.sqrt(rank / n)


def none_below_full_rank(n, rank):
    """Below full rank not everything is lost: n singular values are 1, and the best map keeps `rank` of them."""
    return float(rank < n)


def singular_values_fall(n, rank):
    """You let the singular values fall off as 1/i, but those of a permutation are all 1."""
    squares = [1 / (i * i) for i in range(1, n + 1)]
    return math.sqrt(sum(squares[rank:]) / sum(squares))


def absolute_error(n, rank):
    """That is ‖Π − best map‖ itself; divide by ‖Π‖ = √n."""
    return math.sqrt(n - rank)


def share_of_the_norm_left_out(n, rank):
    """You subtract norms, 1 − √(rank/n). Only their squares add up, so take the root of 1 − rank/n."""
    return 1 - math.sqrt(rank / n)


def in_per_cent(n, rank):
    """That is the error in per cent. Return it as a share: leave out the factor of 100."""
    return 100 * copy_error(n, rank)


def divided_by_n(n, rank):
    """You divide by n, but the Frobenius norm of a permutation is √n."""
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
    """You count the edited token as well, but that one must change. Look only at the tokens before it."""
    return (after - before)[: place + 1].abs().max().item()


def without_the_last_earlier_token(before, after, place):
    """[:place - 1] leaves out the token just before the edit: tokens 0 to place − 1 are [:place]."""
    return (after - before)[: place - 1].abs().max().item() if place else 0.0


def maximum_of_nothing(before, after, place):
    """There is no token before the first one, and the maximum of nothing is an error: if place is 0, return 0.0."""
    return (after - before)[:place].abs().max().item()


def later_tokens(before, after, place):
    """Later tokens may read the edit, with or without a causal mask. A leak is a change of earlier ones."""
    return (after - before)[place:].abs().max().item()


def all_tokens(before, after, place):
    """You look at all tokens, but from the edit on they may change in a causal layer, too."""
    return (after - before).abs().max().item()


def signed(before, after, place):
    """A fall is a change as well: take absolute values before the maximum."""
    return (after - before)[:place].max().item() if place else 0.0


def signed_the_other_way(before, after, place):
    """A rise is a change as well: take absolute values before the maximum."""
    return (before - after)[:place].max().item() if place else 0.0


def average(before, after, place):
    """An average hides one token that changed among many that did not. Take the largest change."""
    return (after - before)[:place].abs().mean().item() if place else 0.0


def only_the_neighbour(before, after, place):
    """You look only at the token just before the edit, but the future may leak to any earlier one."""
    return (after - before)[place - 1].abs().max().item() if place else 0.0


def sums_of_changes(before, after, place):
    """You add up the changes. The exercise asks for the largest change of a single number."""
    return (after - before)[:place].abs().sum().item()


def row_norms(before, after, place):
    """You take the length of a row's change. The exercise asks for the largest change of a single number."""
    return (after - before)[:place].norm(dim=1).max().item() if place else 0.0


def sizes_apart(before, after, place):
    """You compare the largest outputs before and after, but an output can change and stay as large as it was."""
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
    """That counts slots that are empty for the longest text; asked is a text of n tokens, the first n columns."""
    return int((E == 0).all(dim=1).sum())


def partly_empty(E, n):
    """A slot that misses some of the tokens is not empty: all its first n numbers must be zero."""
    return int((E[:, :n] == 0).any(dim=1).sum())


def share_of_empty_slots(E, n):
    """That is the share of the slots that are empty. The exercise asks for their number."""
    return empty_slots(E, n) / E.size(0)


def last_columns(E, n):
    """A shorter text meets the first columns of E, not the last."""
    return int((E[:, -n:] == 0).all(dim=1).sum())


def sums_to_zero(E, n):
    """A row whose numbers cancel still reads the text: ask whether all are zero, not whether their sum is."""
    return int((E[:, :n].sum(dim=1) == 0).sum())


def negative_is_nothing(E, n):
    """A negative weight reads, too: ask whether all are zero, or take absolute values before the maximum."""
    return int((E[:, :n].amax(dim=1) <= 0).sum())


def nearly_zero(E, n):
    """A small weight still reads a little. To read nothing at all means to be exactly zero: == 0."""
    return int((E[:, :n].abs() < 1e-6).all(dim=1).sum())


def filled_slots(E, n):
    """These are the slots that do read something. The exercise asks for the others."""
    return E.size(0) - empty_slots(E, n)


def by_proportion(E, n):
    """You count by n / seq_len, but not every E has windows of one size, and a window that n cuts in two still reads its first part."""
    return E.size(0) - E.size(0) * n // E.size(1)


def by_proportion_rounded_up(E, n):
    """That is right for windows of one size. But a learned E may read the text with any of its slots, so look at its rows."""
    return E.size(0) - math.ceil(E.size(0) * n / E.size(1))


def empty_after_the_text(E, n):
    """Those slots hold nothing of the tokens after the text. The text itself is the first n columns."""
    return int((E[:, n:] == 0).all(dim=1).sum())


def empty_columns(E, n):
    """You count the tokens that no slot reads. Count the slots, which are the rows."""
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
    """The value's bias passes through W_O as the values do: multiply it by the weight first."""
    return output_bias + value_bias


def transposed(output_weight, output_bias, value_bias):
    """Linear computes x Wᵀ + b with W (out, in): for a column of features that is W @ value_bias, not its transpose."""
    return output_bias + output_weight.mT @ value_bias


def from_the_left(output_weight, output_bias, value_bias):
    """From the left it is value_bias @ output_weight.mT: Linear keeps its weight as (out, in)."""
    return output_bias + value_bias @ output_weight


def value_bias_alone(output_weight, output_bias, value_bias):
    """You dropped the bias that the output had before. Keep it."""
    return output_weight @ value_bias


def value_bias_taken_away(output_weight, output_bias, value_bias):
    """The sign is wrong: the output's bias must add what the values no longer contribute."""
    return output_bias - output_weight @ value_bias


def output_bias_alone(output_weight, output_bias, value_bias):
    """You lost the value's bias: rows of softmax sum to one, so all of it reaches the output."""
    return output_bias.clone()


def both_projected(output_weight, output_bias, value_bias):
    """The output's own bias is added after W_O. Only the value's bias goes through W_O."""
    return output_weight @ (output_bias + value_bias)


def elementwise(output_weight, output_bias, value_bias):
    """That multiplies entry by entry. Each output reads the features of all values, so sum over them."""
    return output_bias + output_weight.diagonal() * value_bias


EXERCISES = (
    Exercise(
        id="12.1",
        question="Let rank be a number from 1 to n. How far is the best map of that rank from a permutation of n tokens? Return one number: the Frobenius error divided by the permutation's Frobenius norm.",
        difficulty=1,
        minutes=4,
        trains="how much of a copy k slots can hold at most",
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
            "What are the singular values of a permutation? By chapter 04 the error is the root of the sum of the squares left out.",
            "All n singular values are 1, and the best map keeps `rank` of them. ‖Π‖² is n.",
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
            "Which tokens must not know about the edit?",
            "Rows 0 … place − 1 of the difference, (place, d); place may be 0, and the maximum of nothing is an error.",
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
            "A slot is a row of E. When does it read none of the n tokens?",
            "E[:, :n] is (proj_dim, n); a row of zeros is an empty slot. Count rows.",
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
            "Each row of P sums to one. What is P (V + 1bᵀ)?",
            "It is P V + 1bᵀ: the bias reaches W_O, (d, d_v), unchanged, and W_O maps it to (d,).",
            "output_bias + output_weight @ …",
        ),
    ),
)

QUIZ = (
    Question(
        "A Linformer is trained to predict the next token of a text. Its loss is lower than that of a causal Transformer. Why?",
        (
            Option(
                "Its slots hold the token that it should predict",
                "A slot that every token reads holds the next token, among others.",
                True,
            ),
            Option(
                "Compression keeps it from overfitting",
                "The held-out loss fell as well. And given only the beginning of a text, the model is worse than a guess.",
            ),
            Option(
                "It has more parameters",
                "E and F add some parameters, but these cannot tell what comes next.",
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
                "Through 16 slots, copies that had no mistake at 64 tokens were 0.24 to 0.97 right at 256.",
                True,
            ),
            Option(
                "the topic of the text",
                "We did not measure this. An average over all tokens already tells much about the topic.",
            ),
            Option("the speed", "Its cost is linear in n, which is why one uses it."),
            Option(
                "nothing, if E and F are learned",
                "Once learned, they are fixed: the same k sums for every text.",
            ),
        ),
    ),
    Question(
        "Mean pooling with 128 slots was made for 512 tokens; a text has 32. What happens?",
        (
            Option(
                "Most slots are empty, and still get weight",
                "Their scores are 0, and exp 0 is 1, so they take weight in every row; their values are zero, so the output shrinks.",
                True,
            ),
            Option(
                "Nothing changes, missing tokens count as zero",
                "The missing tokens do count as zero. But an empty slot scores 0, and exp 0 is 1.",
            ),
            Option("An error", "That happens to longer texts, for which E has no columns."),
            Option(
                "It gets better, since 128 slots are plenty for 32 tokens",
                "Each slot still stands for four tokens, so only eight slots hold the text.",
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
                "On Image, it gets nearly all of the training pictures right, and few of the others.",
            ),
            Option(
                "Linformer is made for pictures",
                "Both tasks use pictures, and it is near the top in one and near the bottom in the other.",
            ),
            Option(
                "k = 16 is enough for long texts",
                "On Text it is well below the Transformer, in this table and when others ran it again.",
            ),
        ),
    ),
    Question(
        "You have fused exact attention, texts of 512 tokens and a pretrained encoder. Which attention should you take?",
        (
            Option(
                "the exact one, as it is",
                "At 512 tokens Linformer saves no memory and a little time, and the vectors change.",
                True,
            ),
            Option(
                "Linformer with the fitted E and F",
                "Its vectors are close to the exact ones but not the same, and at this length it saves little time.",
            ),
            Option(
                "Linformer with k = 512",
                "That is exact only if E = F is a permutation, and then it saves nothing.",
            ),
            Option(
                "sliding windows, they are never worse",
                "They cannot see past their reach, and at this length they save little, too.",
            ),
        ),
    ),
)
