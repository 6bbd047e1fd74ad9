"""Tasks whose answers all stand in the text, to be found by attention alone (chapters 09 and 12).

needle: one marked token among noise; the last token asks for its value.
copy:   the second half of the text repeats the first.
recall: the first half gives a value for every key, the second asks for all of them in another order.

A batch is a function of a seed and a step, as in `data`: inputs and targets, IGNORE where nothing is asked.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.common.random_state import integers, permutations
from linformer_from_scratch.data import IGNORE, generator_of

VALUES = 16  # different values: a guess is right once in 16
BLANK = 2 * VALUES  # stands where an answer is asked for; VALUES + v is the value v, marked
VOCAB_SIZE = 2 * VALUES + 1
FIRST_HELD_OUT = 10**9  # the step of the first batch that is never trained on: no run has so many steps

Batches = Callable[[int], tuple[Tensor, Tensor]]


def needle(n: int, batch: int, seed: int = 0) -> Batches:
    """Find the only marked token, at a random place before the last, and say its value.

    Shape: step -> inputs and targets (batch, n)
    Raises: ValueError if n < 2 or the batch is empty.
    """
    n, batch = check_size("n", n, least=2), check_size("batch", batch)

    def batches(step: int) -> tuple[Tensor, Tensor]:
        draw = generator_of(seed, step)
        inputs = integers(draw, 0, VALUES, batch, n)
        places = integers(draw, 0, n - 1, batch, 1)
        targets = torch.full_like(inputs, IGNORE)
        targets[:, -1:] = inputs.gather(1, places)
        inputs.scatter_add_(1, places, torch.full_like(places, VALUES))
        inputs[:, -1] = BLANK
        return inputs, targets

    return batches


def copy(n: int, batch: int, seed: int = 0) -> Batches:
    """Repeat the first half of the text: token n/2 + i is token i.

    Shape: step -> inputs and targets (batch, n)
    Raises: ValueError if n is odd or below 2, or the batch is empty.
    """
    n, batch = check_size("n", n, least=2), check_size("batch", batch)
    if n % 2:
        raise ValueError(f"n is {n}, expected an even number")

    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs = integers(generator_of(seed, step), 0, VALUES, batch, n)
        targets = torch.full_like(inputs, IGNORE)
        targets[:, n // 2 :] = inputs[:, : n // 2]
        inputs[:, n // 2 :] = BLANK
        return inputs, targets

    return batches


def recall(n: int, batch: int, seed: int = 0) -> Batches:
    """Say the value that stood after this key: n/4 keys with their values, then all the keys again.

    Multi-query associative recall (Arora et al. 2023, arXiv 2312.04927, section 3), with every key asked for.
    The keys are the tokens from VOCAB_SIZE on, each once in either half.

    Shape: step -> inputs and targets (batch, n)
    Raises: ValueError if n is not a positive multiple of 4, or the batch is empty.
    """
    n = check_size("n", n, least=2)
    if n % 4:
        raise ValueError(f"n is {n}, expected a multiple of 4")
    return scattered_recall(n, n // 4, batch, seed)


def scattered_recall(n: int, facts: int, batch: int, seed: int = 0, unasked: bool = False) -> Batches:
    """As recall, with fewer keys than there is room for: they stand at random places among noise.

    Every key with its value is at an even place before the last 2 · facts tokens, which ask for all the keys;
    the rest of these places hold marked values, which nobody asks for. If unasked, they hold more facts
    instead, of which nobody knows before the end that they are not asked for.

    Shape: step -> inputs and targets (batch, n)
    Raises: ValueError if n is odd or has no room for so many facts, or the batch is empty.
    """
    n, batch = check_size("n", n, least=2), check_size("batch", batch)
    facts = check_size("facts", facts, most=n // 4)
    if n % 2:
        raise ValueError(f"n is {n}, expected an even number")
    told_in = n // 2 - facts  # pairs of places
    keys = told_in if unasked else facts

    def batches(step: int) -> tuple[Tensor, Tensor]:
        draw = generator_of(seed, step)
        told, asked = (permutations(draw, batch, keys) for _ in range(2))
        asked = asked[:, :facts]
        value_of = integers(draw, 0, VALUES, batch, keys)  # of key 0, 1, …
        inputs = value_of.new_full((batch, n), BLANK)
        if told_in > keys:
            inputs[:, : 2 * told_in] = integers(draw, VALUES, 2 * VALUES, batch, 2 * told_in)
            places = 2 * permutations(draw, batch, told_in)[:, :facts]
        else:
            places = 2 * torch.arange(keys, device=told.device).expand(batch, -1)
        inputs.scatter_(1, places, VOCAB_SIZE + told)
        inputs.scatter_(1, places + 1, value_of.gather(1, told))
        inputs[:, 2 * told_in :: 2] = VOCAB_SIZE + asked
        targets = torch.full_like(inputs, IGNORE)
        targets[:, 2 * told_in + 1 :: 2] = value_of.gather(1, asked)
        return inputs, targets

    return batches


def validation_batches(batches: Batches, count: int) -> list[tuple[Tensor, Tensor]]:
    """Batches of the task that no run trains on, always the same."""
    return [batches(FIRST_HELD_OUT + i) for i in range(check_size("count", count, least=0))]


def vocab_size(task: str, n: int) -> int:
    """How many different tokens a task has; recall has n/4 keys besides."""
    return VOCAB_SIZE + (check_size("n", n) // 4 if task == "recall" else 0)
