"""Right is right, whatever it is written with; and nothing else is."""

import math
from collections import defaultdict, namedtuple
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from linformer_from_scratch.course.exercises.engine.compare import value_difference

NUMBERS = [
    8, 8.0, Fraction(16, 2), Decimal(8), np.int32(8), np.float16(8), np.longdouble(8), np.array(8.0),
    torch.tensor(8, dtype=torch.uint8), torch.tensor(8, dtype=torch.bfloat16),
    nn.Parameter(torch.tensor(8.0)),
]  # fmt: skip


@pytest.mark.parametrize("expected", [8, torch.tensor(8.0)], ids=repr)
@pytest.mark.parametrize("got", NUMBERS, ids=lambda got: f"{type(got).__name__}-{got}")
def test_a_number_is_a_number(got, expected):
    assert value_difference(got, expected) == ""


@pytest.mark.parametrize("expected", [8, 8.0], ids=repr)
@pytest.mark.parametrize("got", [9, 7.99, torch.tensor(8.01), math.nan, -math.inf], ids=str)
def test_another_number_is_not(got, expected):
    assert value_difference(got, expected).startswith("Got ")


NOT_NUMBERS = [np.True_, torch.tensor(True), [1], torch.tensor([1.0]), 1 + 0j, "1", None]
NOT_NUMBERS += [torch.tensor(1.0, device="meta")]


@pytest.mark.parametrize("expected", [1, 1.0], ids=repr)
@pytest.mark.parametrize("got", NOT_NUMBERS, ids=repr)
def test_what_is_no_number_is_refused(got, expected):
    assert value_difference(got, expected) != ""


def test_large_counts_are_told_apart():
    assert value_difference(10**12 + 1, 10**12)
    assert value_difference(float(10**12), 10**12) == ""
    assert value_difference(float(10**12 + 10**7), 10**12)
    assert value_difference(torch.tensor(2.0**24), 2**24 + 1) == ""  # float32 has no other


def test_numbers_are_compared_to_five_digits():
    assert value_difference(2633, 2633.14) and value_difference(torch.tensor(0.5954), torch.tensor(0.59546))
    assert value_difference(2633.14001, 2633.14) == ""
    assert value_difference(torch.tensor(1 / 3), 1 / 3) == ""


def test_small_numbers_are_compared_by_their_own_size():
    assert value_difference(2e-9, 1e-9)
    assert value_difference(1.00001e-9, 1e-9) == ""
    assert value_difference(1e-9, 0.0) == ""
    assert value_difference(torch.tensor([2e-4, 0.0]), torch.tensor([1e-4, 0.0]))


def test_nan_and_infinity_are_values():
    for number in (math.nan, math.inf):
        assert value_difference(torch.tensor(number), number) == ""
        assert value_difference(1.0, number)
        assert value_difference(np.array([1.0, number]), torch.tensor([1.0, number])) == ""


ROWS = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
ARRAYS = {
    "float64": ROWS.double(),
    "float16": ROWS.half(),
    "whole": ROWS.int(),
    "NumPy": ROWS.numpy(),
    "NumPy, unsigned": ROWS.numpy().astype(np.uint16),
    "tuples of whole numbers": ((1, 2), (3, 4), (5, 6)),
    "lists of scalars": [[*row] for row in ROWS],
    "mixed": [[1, 2.0], torch.tensor([3, 4]), np.array([5.0, 6.0])],
    "a parameter": nn.Parameter(ROWS.clone()),
}


@pytest.mark.parametrize("expected", [ROWS, ROWS.long()], ids=lambda rows: str(rows.dtype))
@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_an_array(name, expected):
    assert value_difference(ARRAYS[name], expected) == ""


@pytest.mark.parametrize("name", ARRAYS)
def test_other_values_are_found_however_they_are_written(name):
    other = ROWS.clone()
    other[1, 0] += 1
    assert "at index (1, 0): got 3, expected 4" in value_difference(ARRAYS[name], other)


def test_truths_are_no_numbers_and_numbers_no_truths():
    mask = torch.eye(2, dtype=torch.bool)
    assert value_difference([[True, False], [False, True]], mask) == ""
    assert value_difference(mask.numpy(), mask) == ""
    assert value_difference(mask, mask.float()) == "Got True and False, expected numbers"
    assert value_difference(mask.int().numpy(), mask) == "Got numbers, expected True and False"
    assert value_difference([[True, 0], [0, True]], mask)
    for truth in (np.True_, torch.tensor(True), np.array(True), True):
        assert value_difference(truth, True) == ""
        assert value_difference(truth, False)
    assert value_difference(1, True)


def test_a_list_may_stand_for_a_tuple_and_rows_for_values():
    pair = (torch.ones(2), torch.zeros(2))
    assert value_difference([torch.ones(2), [0, 0]], pair) == ""
    assert value_difference(torch.stack(pair), pair) == ""
    assert value_difference(namedtuple("Pair", "one other")(*pair), pair) == ""
    maximum, place = torch.tensor([3.0]), torch.tensor([0])
    assert value_difference(torch.tensor([[3.0, 1.0]]).max(-1), (maximum, place)) == ""
    assert value_difference((torch.ones(2),), pair) == "Returned 1 values, expected 2"
    assert value_difference((torch.ones(2), torch.ones(2)), pair).startswith("Value 2 of 2: ")
    assert value_difference(5, pair).startswith("Returned 5 (int), expected 2 values")


def test_how_far_float32_may_be_off_follows_from_float64():
    expected = torch.tensor([1.0, 1e-3])
    got = expected + torch.tensor([0.0, 3e-5])
    assert value_difference(got, expected, expected.double())
    assert value_difference(got, expected) == "", "nothing is known of float32"
    assert value_difference(got, expected, expected.double() + torch.tensor([6e-6, 0.0])) == ""
    assert value_difference(got + 1e-3, expected, expected.double() + 1.0)  # however bad it is, not further


def test_what_agrees_with_float64_is_right_however_float32_rounds():
    rounded, exact = torch.tensor([1.0, 2.0]), torch.tensor([1.5, 2.0]).double()
    assert value_difference(exact.float(), rounded, exact) == "" == value_difference(rounded, rounded, exact)
    assert value_difference(torch.tensor([1.25, 2.0]), rounded, exact)
    for got, expected, truth in [
        (3, 2, 3),
        (1.5, 1.0, 1.5),
        (True, False, True),
        ([3, 1], torch.tensor([2, 1]), torch.tensor([3, 1])),
    ]:
        assert value_difference(got, expected, truth) == "" and value_difference(got, expected)


def test_how_far_a_number_may_be_off_follows_from_float64_too():
    assert value_difference(1.00003, 1.0)
    assert value_difference(1.00003, 1.0, 1.000005) == "" and value_difference(0.99997, 1.0, 0.999995) == ""
    assert value_difference(1.001, 1.0, 2.0), "however bad the reference is"
    assert value_difference(Fraction(1, 3), 1 / 3) == "" and value_difference(Fraction(1, 3), 0)


def test_what_is_neither_number_nor_array_is_compared_as_it_is():
    assert value_difference(None, None) == "" and value_difference("a", "a") == ""
    assert value_difference("a", "b") and value_difference(None, "a")
    assert value_difference([1.0, "a"], (1.0, "a"), (1.0, "a")) == ""


def test_a_dict_is_compared_entry_by_entry_in_any_order():
    right = {"a": 0.5, "b": True}
    for other in ({"b": True, "a": 0.5}, {"a": np.float32(0.5), "b": np.True_}, defaultdict(int, right)):
        assert not value_difference(other, right)
    assert value_difference({"a": 0.25, "b": True}, right) == "a: Got 0.25, expected 0.5"
    assert value_difference({"a": 0.5}, right) == "No entry for 'b'"
    assert value_difference(right | {3: 0}, right) == "Got an entry for 3, expected none"
    assert value_difference([0.5, True], right) == "Returned a list of length 2, expected a dict of length 2"
