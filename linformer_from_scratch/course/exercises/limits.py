"""Exercises of chapter 12."""

import math

import torch
from torch import Tensor

from linformer_from_scratch.course.exercises.engine.checking import exercise
from linformer_from_scratch.course.exercises.engine.draws import normal, row
from linformer_from_scratch.limits import copy_error, leak
from linformer_from_scratch.projections import empty_slots


@exercise("12.1", stars=1, minutes=4)
class ShiftByRank:
    """How much of a shift a rank can hold."""

    hints = (
        "A permutation only moves rows around. What does that make of its singular values? Chapter 04 turns those that you leave out into an error.",
        "All n of them are 1, and the best map keeps `rank`. The error is the root of the sum of the squares left out, and the permutation's own norm is √n.",
        "math.sqrt((n - …) / …)",
    )
    reference = copy_error

    def draw(seed):
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


@exercise("12.2", stars=1, minutes=4)
class Leak:
    """Does the past know?."""

    hints = (
        "You edited one token. Which outputs must not know?",
        "Those of rows 0 … place − 1. Their change has shape (place, d), and with place = 0 there is nothing to take a maximum of.",
        "(after - before)[:place].abs()… if place else 0.0",
    )
    reference = leak

    def draw(seed):
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

    def sums_of_changes(before, after, place):
        """You add all changes up. That grows with the text; the exercise asks for the largest change of a single number."""
        return (after - before)[:place].abs().sum().item()

    def only_the_neighbour(before, after, place):
        """You check only the token right before the edit. The future can leak into any earlier token."""
        return (after - before)[place - 1].abs().max().item() if place else 0.0

    def row_norms(before, after, place):
        """You measure how far a whole row moved. The exercise asks for the largest change of a single number."""
        return (after - before)[:place].norm(dim=1).max().item() if place else 0.0

    def sizes_apart(before, after, place):
        """You compare the largest output before with the largest after. An output can change a lot and be as large as it was: subtract first."""
        return abs((after[:place].abs().max() - before[:place].abs().max()).item()) if place else 0.0


@exercise("12.3", stars=2, minutes=5)
class EmptySlots:
    """Slots that hold nothing."""

    hints = (
        "Forget windows for a moment: a slot is a row of E. What must the row look like to read none of the n tokens?",
        "Cut E down to what this text meets, E[:, :n]. A row of zeros there is an empty slot; count such rows.",
        "int((E[:, :n] == 0).all(dim=…).sum())",
    )
    reference = empty_slots

    def draw(seed):
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


def folded_bias(output_weight: Tensor, output_bias: Tensor, value_bias: Tensor) -> Tensor:
    """The output's bias once it has taken up the value's. Shape: (d, d_v), (d,), (d_v,) -> (d,)."""
    return output_bias + output_weight @ value_bias


@exercise("12.4", stars=2, minutes=5)
class ThreeBiases:
    """Three biases."""

    hints = (
        "Give every value the same extra b. Each row of P sums to one, so what comes out of P (V + 1bᵀ)?",
        "P V + 1bᵀ: the bias arrives at W_O as it was, (d_v,), and W_O maps it to (d,).",
        "output_bias + output_weight @ …",
    )
    reference = folded_bias

    def draw(seed):
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
