"""Right and nearly right answers: low_rank."""

import itertools
import math

import numpy
import torch

from right_answers import right, wrong


@right("4.1")
def piece_by_piece(maps, rank):
    u, s, vt = torch.linalg.svd(maps)
    pieces = [s[..., i, None, None] * u[..., :, i, None] * vt[..., None, i, :] for i in range(rank)]
    return sum(pieces)


@right("4.1")
def map_by_map(maps, rank):
    rebuilt = []
    for one in maps:
        u, s, v = torch.svd(one)
        rebuilt.append(u[:, :rank] @ torch.diag(s[:rank]) @ v[:, :rank].T)
    return rebuilt


@right("4.1")
def projected(maps, rank):
    _, vectors = torch.linalg.eigh(maps.double().mT @ maps.double())
    largest = vectors[..., -rank:]
    return maps.double() @ largest @ largest.mT


@wrong("4.1")
def never_the_full_rank(maps, rank):
    """The last singular value is always dropped."""
    u, s, vt = torch.linalg.svd(maps, full_matrices=False)
    rank = min(rank, s.size(-1) - 1)
    return (u[..., :rank] * s[..., None, :rank]) @ vt[..., :rank, :]


@right("4.2")
def error_in_loops(sigma, rank):
    return [math.hypot(*head[rank:]) for head in sigma.tolist()]


@right("4.2")
def error_in_numpy(sigma, rank):
    return numpy.linalg.norm(sigma.numpy()[:, rank:], axis=-1)


@right("4.2")
def all_without_the_kept(sigma, rank):
    squares = sigma.double().square()
    return (squares.sum(-1) - squares[..., :rank].sum(-1)) ** 0.5


@wrong("4.2")
def something_under_the_root(sigma, rank):
    """A constant that keeps the root from zero, and the error too."""
    return (sigma[:, rank:].square().sum(1) + 1e-4).sqrt()


@right("4.3")
def curve_in_numpy(sigma):
    totals = numpy.cumsum(sigma.numpy(), axis=-1)
    return totals / totals[:, -1:]


@right("4.3")
def curve_of_shares(sigma):
    return torch.cumsum(sigma.double() / sigma.double().sum(1)[:, None], 1)


@right("4.3")
def curve_by_a_triangle(sigma):
    return sigma @ torch.ones(sigma.size(-1), sigma.size(-1)).triu() / sigma.sum(-1, keepdim=True)


@right("4.3")
def curve_accumulated(sigma):
    return [[part / sum(row) for part in itertools.accumulate(row)] for row in sigma.tolist()]


@right("4.4")
def stable_in_loops(sigma):
    return [sum(x * x for x in head) / head[0] ** 2 for head in sigma.tolist()]


@right("4.4")
def stable_by_norms(sigma):
    return (sigma.norm(dim=-1) / sigma.norm(p=math.inf, dim=-1)) ** 2


@right("4.4")
def stable_of_ratios(sigma):
    return (sigma / sigma[:, :1]).pow(2).sum(1)


@wrong("4.4")
def by_the_first_head(sigma):
    """Every head is divided by the largest value of head 0."""
    return sigma.square().sum(1) / sigma[0, 0].square()


@right("4.5")
def count_in_numpy(sigma, share):
    reached = numpy.cumsum(sigma.numpy(), -1) >= share * sigma.numpy().sum(-1, keepdims=True)
    return reached.argmax(-1) + 1


@right("4.5")
def count_by_searching(sigma, share):
    rising = sigma.cumsum(-1) / sigma.sum(-1, keepdim=True)
    wanted = torch.full((len(sigma), 1), share)
    return torch.searchsorted(rising, wanted)[:, 0].int() + 1


@right("4.5")
def count_as_floats(sigma, share):
    rising = sigma.double().cumsum(-1) / sigma.double().sum(-1, keepdim=True)
    return 1.0 + (rising < share).double().sum(-1)


@wrong("4.5")
def never_all(sigma, share):
    """At most all but one singular value."""
    short = sigma.cumsum(1) / sigma.sum(1, keepdim=True) < share
    return (1 + short.sum(1)).clamp(max=sigma.size(1) - 1)


LAST = "sigma is (heads, p), so its last axis is axis 1"
SAME = {
    "4.2": {"-1 -> +1": LAST},
    "4.3": {"-1 -> +1": LAST, "-1 -> +1 (2)": LAST},
    "4.4": {"-1 -> +1": LAST},
    "4.5": {"-1 -> +1 (2)": LAST},
}
