"""What widgets share that show how a cost grows with n: the picture, quantities in words, formulas as tables.

Python works a formula out once, with letters in place of numbers; growth.js puts the numbers in.

    n, k = letters(2)
    3 * n * n / k + n        Terms({(2, -1): 3.0, (1, 0): 1})
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from linformer_from_scratch.cost import Sizes
from linformer_from_scratch.course import plots
from linformer_from_scratch.course.widgets import stills
from linformer_from_scratch.course.widgets.live import LiveWidget


class GrowthWidget(LiveWidget):
    """Curves over n, beside bars of what there is at the chosen n; growth.js stands in front of its own file.

    Attributes:
        lines: name of a curve -> place of its colour in plots.LINES, width; narrow ones lie on wide ones.
        lengths: the n at which curves are drawn.
    """

    lines: ClassVar[Mapping[str, tuple[int, float]]]
    lengths: ClassVar[Sequence[int]]
    helpers = ("growth",)
    n: Any

    @property
    def curves(self) -> Mapping[str, Sequence[float]]:
        """Name of a curve -> its value at each of `lengths`."""
        raise NotImplementedError

    @property
    def colours(self) -> dict[str, str]:
        """Name of a curve -> its colour on white."""
        return {name: plots.LINES[place] for name, (place, _) in self.lines.items()}

    def beside(
        self, title: str, ticks: Sequence[float], units: dict[str, float], bars: Callable, high: float, **more
    ) -> stills.Figure:
        """Curves beside bars; ticks: of their axis, more: what else `plots.draw_growth` takes."""
        curves = partial(
            plots.draw_growth,
            title=title,
            lengths=self.lengths,
            curves=self.curves,
            looks={name: (self.colours[name], width) for name, (_, width) in self.lines.items()},
            ticks={tick: quantity(tick, units) for tick in ticks},
            n=self.n,
            **more,
        )
        return stills.board([["curves", "bars"]], {"curves": curves, "bars": bars}, (11, high), widths=(3, 2))


def quantity(value: float, units: dict[str, float]) -> str:
    """A number in three digits with the largest unit that leaves at least 1: 4.3 GFLOP, 1.2 ms, 512 MiB.

    Args:
        units: name -> size, the smallest first.
    """
    unit = next((name for name in reversed(units) if value >= units[name]), next(iter(units)))
    number = value / units[unit]
    return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"


class Terms(dict[tuple[int, ...], float]):
    """A formula as a sum of terms: powers of the letters -> coefficient."""

    def __add__(self, other):
        other = self._terms(other)
        return Terms({powers: self.get(powers, 0) + other.get(powers, 0) for powers in self | other})

    def __mul__(self, other):
        total: dict = Counter()
        for powers, coefficient in self.items():
            for others, factor in self._terms(other).items():
                total[tuple(map(sum, zip(powers, others, strict=True)))] += coefficient * factor
        return Terms(total)

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other):
        return self + -1 * other

    def __truediv__(self, letter):
        ((powers, coefficient),) = self._terms(letter).items()
        return self * Terms({tuple(-power for power in powers): 1 / coefficient})

    __floordiv__ = __truediv__  # Sizes divides by what divides

    def __pow__(self, times):
        return math.prod([self] * times)

    def _terms(self, other: Any) -> "Terms":
        return other if isinstance(other, Terms) else Terms({tuple(0 for _ in next(iter(self))): other})


class Letters(Sizes):
    """Sizes that are letters, so that what is worked out from them is a formula."""

    def __post_init__(self):
        pass  # no number to refuse


def letters(count: int) -> list[Any]:
    """Formulas that are one letter each, to take the place of numbers."""
    return [Terms({tuple(int(i == j) for j in range(count)): 1}) for i in range(count)]


def table(formula: Terms | int) -> list[list[float]]:
    """A formula as JSON can hold it: [coefficient, power of the first letter, …] of each term; 0 has none."""
    terms = formula.items() if isinstance(formula, Terms) else ()
    return [[coefficient, *powers] for powers, coefficient in terms]
