"""Every experiment by its name."""

from collections.abc import Sequence

from lab import (
    capstone,
    descendants,
    efficient,
    lengths,
    long_texts,
    recall,
    training,
    writing,
)
from lab.experiment import Experiment

DECLARED = (training, efficient, recall, writing, capstone, lengths, long_texts, descendants)
EXPERIMENTS = {experiment.name: experiment for module in DECLARED for experiment in module.EXPERIMENTS}


def find(names: Sequence[str]) -> list[Experiment]:
    """The experiments of these names.

    Raises: ValueError if one of them is not known; it names those that are.
    """
    for name in names:
        if name not in EXPERIMENTS:
            raise ValueError(f"there is no experiment {name!r}, expected one of {', '.join(EXPERIMENTS)}")
    return [EXPERIMENTS[name] for name in names]
