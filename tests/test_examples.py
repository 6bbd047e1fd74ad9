"""Every layer and function of chapters 01 to 07 has an example in a docstring, which prints what it says."""

import doctest
import inspect

import pytest
import torch
from torch import nn

from linformer_from_scratch import (
    attention,
    cost,
    heads,
    linformer,
    low_rank,
    multihead,
    projections,
    random_projections,
)

MODULES = (attention, multihead, heads, cost, low_rank, random_projections, linformer, projections)
IMPORTED = {"torch": torch, "LearnedProjection": projections.LearnedProjection}


@pytest.mark.parametrize("module", MODULES)
def test_examples_print_what_they_say(module):
    outcome = doctest.testmod(module, extraglobs=IMPORTED)
    assert outcome.attempted and not outcome.failed


def test_no_layer_and_no_function_lacks_its_example():
    for module in MODULES:
        tests = doctest.DocTestFinder().find(module)
        code = "".join(example.source for test in tests for example in test.examples)
        for name, thing in vars(module).items():
            if getattr(thing, "__module__", "") != module.__name__ or name.startswith(("_", "check_")):
                continue
            if inspect.isfunction(thing) or (inspect.isclass(thing) and issubclass(thing, nn.Module)):
                assert f"{name}(" in code
