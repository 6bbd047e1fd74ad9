"""Sensors that hear hidden sources: inputs in which a position is a place (chapter 14).

Each source has a name and a value, other ones in every input. Each sensor hears the name or the value of one
source, with noise, and asks for a name: which value has the source of that name? Who hears whom is fixed, and
in no order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.common.random_state import integers, permutations, uniform
from linformer_from_scratch.data import generator_of
from linformer_from_scratch.fields.model import FieldModel

VALUES = 16  # a guess is right once in 16
Batch = tuple[Tensor, Tensor, Tensor, Tensor]  # names and values as heard, names asked for, their values


@dataclass(frozen=True)
class Sensors:
    """The task.

    Args:
        n: sensors, the tokens of an input.
        sources: each is heard by n / sources of them.
        names: that a source may have; in every input all sources have different ones.
        right_name: share of the names that are heard right; the others are drawn at random.
        right_value: the same for values.
        moving: share of the sensors that hear another source in every input, 0 to 1.
        together: whether every sensor hears name and value; else either, the other one is blank.
        places: which draw of who hears whom.

    Raises: ValueError if there are more sources than sensors or names, or a share is not within 0 … 1.
    """

    n: int = 1024
    sources: int = 8
    names: int = 16
    right_name: float = 0.7
    right_value: float = 0.7
    moving: float = 0.0
    together: bool = False
    places: int = 123

    def __post_init__(self) -> None:
        check_size("sources", self.sources, most=min(self.n, self.names))
        for name in ("right_name", "right_value", "moving"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected a share from 0 to 1")

    @property
    def source_of(self) -> Tensor:
        """Whom each sensor hears while it does not move. Shape: (n,)."""
        draw = torch.Generator().manual_seed(self.places)
        return (torch.arange(self.n) % self.sources)[permutations(draw, self.n)]

    @property
    def movers(self) -> Tensor:
        """Those that move. Shape: (moving · n,)."""
        draw = torch.Generator().manual_seed(self.places + 1)
        return permutations(draw, self.n)[: round(self.moving * self.n)]

    @property
    def hears_values(self) -> Tensor:
        """Who hears values, where names and values are heard apart; the rest hear names. Shape: (n,)."""
        return uniform(torch.Generator().manual_seed(self.places + 2), self.n) < 0.5

    def batches(self, size: int, seed: int = 0) -> Callable[[int], Batch]:
        """step -> four tensors (size, n), always the same for the same step."""
        fixed, movers = self.source_of, self.movers
        hears = self.hears_values

        def batch(step: int) -> Batch:
            draw = generator_of(seed, step)
            heard = fixed.expand(size, -1).clone()  # source of every sensor
            heard[:, movers] = fixed[movers][permutations(draw, size, len(movers))]
            name_of = permutations(draw, size, self.names)[:, : self.sources]
            value_of = integers(draw, 0, VALUES, size, self.sources)
            asked = integers(draw, 0, self.sources, size, self.n)
            names = self._noisy(draw, name_of.gather(1, heard), self.right_name, self.names)
            values = self._noisy(draw, value_of.gather(1, heard), self.right_value, VALUES)
            if not self.together:
                names, values = names.masked_fill(hears, self.names), values.masked_fill(~hears, VALUES)
            return names, values, name_of.gather(1, asked), value_of.gather(1, asked)

        return batch

    def _noisy(self, draw: torch.Generator, right: Tensor, share: float, kinds: int) -> Tensor:
        return right.where(uniform(draw, *right.shape) < share, integers(draw, 0, kinds, *right.shape))


def group_means(groups: Tensor) -> Tensor:
    """An E whose row g is the mean of the tokens of group g, for positions that are places.

    Shape: groups (n,), numbers from 0 on, each of them there -> (groups, n)

    >>> group_means(torch.tensor([0, 1, 0])).tolist()
    [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]
    """
    member = functional.one_hot(groups).T.to(torch.get_default_dtype())
    return member / member.sum(dim=1, keepdim=True)


class Readings(nn.Module):
    """What a sensor knows: in half of the features what it asks for, in the others what it has heard.

    A name has one vector, whether it's heard or asked for; what isn't heard is zeros.

    Args:
        sensors: the task.
        d_model: features per sensor, an even number.

    Shape: names, values, asked (batch, n) -> (batch, n, d_model)
    """

    def __init__(self, sensors: Sensors, d_model: int):
        super().__init__()
        self.names = nn.Embedding(sensors.names + 1, d_model // 2, padding_idx=sensors.names)
        self.values = nn.Embedding(VALUES + 1, d_model // 2, padding_idx=VALUES)

    def forward(self, names: Tensor, values: Tensor, asked: Tensor) -> Tensor:
        """Side by side."""
        return torch.cat([self.names(asked), self.names(names) + self.values(values)], dim=-1)


def listener(sensors: Sensors, attentions: Sequence[nn.Module], d_model: int = 64) -> FieldModel:
    """A model of readings: what a sensor asks for and has heard, and which sensor it is.

    Args: attentions: a layer for each block.
    Shape: names, values, asked (batch, n) -> scores of the values (batch, n, VALUES)
    """
    return FieldModel(Readings(sensors, d_model), attentions, sensors.n, d_model, VALUES)
