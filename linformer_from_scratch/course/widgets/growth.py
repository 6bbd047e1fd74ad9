"""What widgets share that show how a cost grows with n: quantities in words, formulas as tables.

Python works a formula out once, with letters in place of numbers; growth.js puts the numbers in.

    n, k = letters(2)
    3 * n * n / k + n        Terms({(2, -1): 3.0, (1, 0): 1})
"""

import math
from collections import Counter
from typing import Any

from linformer_from_scratch.cost import Sizes


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
