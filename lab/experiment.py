"""What an experiment is: a name, the settings of its rows, and the function that measures one of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linformer_from_scratch.common.files import PACKAGE

BUILD = PACKAGE.parent / "build"  # checkpoints, and what else can be made again
COMMAND = "python -m lab"


@dataclass(frozen=True)
class Experiment:
    """A file of recorded rows, one for each settings of a grid, as it is declared.

    Args:
        name: chapter and word, as in 12_recall; that of the file.
        about: what is measured, in one line.
        grid: the settings of every row, but for the seed.
        measure: measure(**settings) -> the values of the row.
        seeds: each measures the whole grid; None where nothing is drawn by a seed.
        threads: of the CPU.
    """

    name: str
    about: str
    grid: Sequence[dict]
    measure: Callable[..., dict]
    seeds: tuple[int, ...] | None = None
    threads: int = 1

    @property
    def command(self) -> str:
        """What measures it."""
        return f"{COMMAND} {self.name}"

    def settings(self) -> list[dict]:
        """The settings of every row, in the order in which they are measured."""
        if self.seeds is None:
            return list(self.grid)
        return [settings | {"seed": seed} for seed in self.seeds for settings in self.grid]
