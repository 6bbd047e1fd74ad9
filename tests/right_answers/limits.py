"""Right answers: limits."""

import math
from fractions import Fraction

import numpy
import torch
from torch.nn import functional


def copy_error_by_fraction(n, rank):
    return math.sqrt(Fraction(n - rank, n))


def copy_error_by_numpy(n, rank):
    return numpy.sqrt(numpy.float32(n - rank)) / numpy.sqrt(numpy.float32(n))


def copy_error_of_the_best_map(n, rank):
    best = torch.zeros(n, n)
    best[range(rank), range(rank)] = 1
    return torch.dist(best, torch.eye(n)) / n**0.5


def leak_by_loop(before, after, place):
    largest = 0
    for i in range(place):
        for old, new in zip(before[i].tolist(), after[i].tolist(), strict=True):
            largest = max(largest, abs(new - old))
    return largest


def leak_by_infinity_norm(before, after, place):
    if place == 0:
        return 0
    return torch.linalg.vector_norm(before[:place].double() - after[:place].double(), ord=math.inf)


def leak_by_a_mask(before, after, place):
    earlier = torch.arange(len(before)) < place
    return torch.where(earlier[:, None], (after - before).abs(), 0.0).amax().reshape(())


def empty_by_loop(E, n):
    return sum(not any(row[:n]) for row in E.tolist())


def empty_by_counting(E, n):
    return (E[:, :n].count_nonzero(dim=1) == 0).sum()


def empty_by_squares(E, n):
    reads = E.double().square() @ (torch.arange(E.size(1)) < n).double()
    return len(E) - torch.count_nonzero(reads).item()


def bias_by_linear(output_weight, output_bias, value_bias):
    return functional.linear(value_bias, output_weight, output_bias)


def bias_by_numpy(output_weight, output_bias, value_bias):
    return output_bias.numpy() + numpy.dot(output_weight.numpy(), value_bias.numpy())


def bias_by_loop(output_weight, output_bias, value_bias):
    rows = zip(output_weight.tolist(), output_bias.tolist(), strict=True)
    return [bias + sum(w * b for w, b in zip(row, value_bias.tolist(), strict=True)) for row, bias in rows]
