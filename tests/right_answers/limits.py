"""Right and nearly right answers: limits."""

import math
from fractions import Fraction

import numpy
import torch
from torch.nn import functional

from right_answers import right, wrong


@right("12.1")
def copy_error_by_fraction(n, rank):
    return math.sqrt(Fraction(n - rank, n))


@right("12.1")
def copy_error_by_numpy(n, rank):
    return numpy.sqrt(numpy.float32(n - rank)) / numpy.sqrt(numpy.float32(n))


@right("12.1")
def copy_error_of_the_best_map(n, rank):
    best = torch.zeros(n, n)
    best[range(rank), range(rank)] = 1
    return torch.dist(best, torch.eye(n)) / n**0.5


@right("12.1")
def copy_error_of_a_random_permutation(n, rank):
    values = torch.linalg.svdvals(torch.eye(n, dtype=torch.float64)[torch.randperm(n)])
    return values[rank:].norm() / values.norm()


@right("12.2")
def leak_by_loop(before, after, place):
    largest = 0
    for i in range(place):
        for old, new in zip(before[i].tolist(), after[i].tolist(), strict=True):
            largest = max(largest, abs(new - old))
    return largest


@right("12.2")
def leak_by_infinity_norm(before, after, place):
    if place == 0:
        return 0
    return torch.linalg.vector_norm(before[:place].double() - after[:place].double(), ord=math.inf)


@right("12.2")
def leak_by_a_mask(before, after, place):
    earlier = torch.arange(len(before)) < place
    return torch.where(earlier[:, None], (after - before).abs(), 0.0).amax().reshape(())


@wrong("12.2")
def all_where_the_last_is_edited(before, after, place):
    """Where the last token is edited, it counts as well."""
    earlier = place if place < len(before) - 1 else None
    return (after - before)[:earlier].abs().max() if place else 0.0


@right("12.3")
def empty_by_loop(E, n):
    return sum(not any(row[:n]) for row in E.tolist())


@right("12.3")
def empty_by_counting(E, n):
    return (E[:, :n].count_nonzero(dim=1) == 0).sum()


@right("12.3")
def empty_by_squares(E, n):
    reads = E.double().square() @ (torch.arange(E.size(1)) < n).double()
    return len(E) - torch.count_nonzero(reads).item()


@wrong("12.3")
def one_column_more(E, n):
    """One column too many is looked at."""
    return int((E[:, : n + 1] == 0).all(1).sum())


@right("12.4")
def bias_by_linear(output_weight, output_bias, value_bias):
    return functional.linear(value_bias, output_weight, output_bias)


@right("12.4")
def bias_by_numpy(output_weight, output_bias, value_bias):
    return output_bias.numpy() + numpy.dot(output_weight.numpy(), value_bias.numpy())


@right("12.4")
def bias_by_loop(output_weight, output_bias, value_bias):
    rows = zip(output_weight.tolist(), output_bias.tolist(), strict=True)
    return [bias + sum(w * b for w, b in zip(row, value_bias.tolist(), strict=True)) for row, bias in rows]


@wrong("12.4")
def transposed_where_it_fits(output_weight, output_bias, value_bias):
    """The weight is transposed where it is square."""
    square = output_weight.size(0) == output_weight.size(1)
    return output_bias + (output_weight.T if square else output_weight) @ value_bias
