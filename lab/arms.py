"""The layers that chapter 14 compares: by name, each built alike in every task."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch import projections
from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.common.random_state import permutations
from linformer_from_scratch.efficient import EfficientAttention
from linformer_from_scratch.efficient.blocks import from_blocks, in_blocks
from linformer_from_scratch.efficient.linear import linear_attention
from linformer_from_scratch.encoder import TokenMLP
from linformer_from_scratch.fields.mixing import FixedMixing
from linformer_from_scratch.fields.sensors import group_means
from linformer_from_scratch.fields.slots import GatedSlots, Slices
from linformer_from_scratch.heads import finite_padding, real_tokens
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import LearnedProjection, MeanPooling, Projection, start_at

D_MODEL, NUM_HEADS = 64, 4
DILATIONS = 1, 9, 81  # of a convolution over 9 neighbours, layer by layer
ON_A_GRID = 1, 3, 9  # over 3 × 3


@dataclass(frozen=True)
class Place:
    """Where a layer stands.

    Args:
        n: tokens.
        k: slots.
        depth: layers before it.
        side: of the grid, where the tokens are one; else 0.
        groups: which group each token belongs to, where that is known.
        num_heads: of D_MODEL / num_heads features each, where E and F or exact attention stand.
    """

    n: int
    k: int
    depth: int = 0
    side: int = 0
    groups: Tensor | None = None
    num_heads: int = NUM_HEADS


class Convolution(nn.Module):
    """Of neighbours: in the order of the tokens, or on their grid. Shape: x (batch, n, d_model) -> as x"""

    def __init__(self, place: Place):
        super().__init__()
        self.side = place.side
        if self.side:
            self.mix: nn.Module = nn.Conv2d(
                D_MODEL, D_MODEL, 3, padding="same", dilation=ON_A_GRID[place.depth]
            )
        else:
            self.mix = nn.Conv1d(D_MODEL, D_MODEL, 9, padding="same", dilation=DILATIONS[place.depth])

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Mix neighbours; padding counts as zeros."""
        x = real_tokens(finite_padding(x, padding_mask), padding_mask)
        x = x.mT.unflatten(2, (self.side, self.side)) if self.side else x.mT
        return self.mix(x).flatten(2).mT


class PairWeights(nn.Module):
    """Linear attention with a learned weight for every pair of places: Q Kᵀ C V, C (n, n), in 32 features.

    Shape: x (batch, n, d_model), padding_mask (batch, n) -> as x; padding counts as zeros
    """

    def __init__(self, n: int):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(D_MODEL, 32, bias=False) for _ in range(3))
        self.C, self.output = LearnedProjection(n, n), nn.Linear(32, D_MODEL)
        with torch.no_grad():
            self.C.weight.mul_(0.1)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Sum up over keys, then over queries: nothing is n × n but C."""
        x = real_tokens(finite_padding(x, padding_mask), padding_mask)
        return self.output(self.query(x) @ (self.key(x).mT @ self.C(self.value(x))))


class FourierMixing(nn.Module):
    """A convolution over a whole grid, by its lowest frequencies.

    Li et al. 2021 (Fourier neural operator, arXiv 2010.08895), equation 4.

    Args:
        side: the grid has side · side places, row by row.
        d_model: features per place.
        modes: frequencies along each axis that are kept, at most side / 2; each has a matrix of features.

    Shape: x (batch, side · side, d_model), padding_mask (batch, side · side) -> as x; padding counts as zeros
    """

    def __init__(self, side: int, d_model: int, modes: int = 8):
        super().__init__()
        self.side, self.modes = check_size("side", side), check_size("modes", modes, most=side // 2)
        self.weight = nn.Parameter(torch.randn(2, modes, modes, d_model, d_model, 2) / d_model)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """To frequencies, matrix by matrix, and back."""
        x = real_tokens(finite_padding(x, padding_mask), padding_mask)
        size, k = (self.side, self.side), self.modes
        waves = torch.fft.rfft2(x.mT.unflatten(2, size))[..., :k]
        low, high = torch.view_as_complex(self.weight)
        low = torch.einsum("bixy,xyio->boxy", waves[:, :, :k], low)
        high = torch.einsum("bixy,xyio->boxy", waves[:, :, -k:], high)  # the negative frequencies
        between = low.new_zeros(*low.shape[:2], self.side - 2 * k, k)
        return torch.fft.irfft2(torch.cat([low, between, high], dim=2), s=size).flatten(2).mT


def tiles(place: Place) -> Tensor:
    """Which square tile a point of the grid lies in, of k of them. Shape: (n,)"""
    per_side, at = round(place.k**0.5), torch.arange(place.side)
    tile = at * per_side // place.side
    return (per_side * tile[:, None] + tile).flatten()


def relative(attend: Callable[..., Tensor]) -> nn.Module:
    """A layer around a function of q, k, v."""
    return EfficientAttention(D_MODEL, NUM_HEADS, attend)


def in_chunks(size: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Exact attention within chunks of so many tokens."""
    q_, k_, v_ = (in_blocks(x, size) for x in (q, k, v))
    return from_blocks(functional.scaled_dot_product_attention(q_, k_, v_), q.size(-2))


def every(step: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Exact attention to every so many-th token."""
    return functional.scaled_dot_product_attention(q, k[..., ::step, :], v[..., ::step, :])


def linformer(at: Place, E: Projection, F: Projection | None = None) -> nn.Module:
    """With one projection for keys and values, or two."""
    return LinformerAttention(D_MODEL, at.num_heads, E, F or E)


def learned(at: Place) -> LearnedProjection:
    """E from random numbers."""
    return LearnedProjection(at.n, at.k)


def from_windows(at: Place) -> LearnedProjection:
    """E from windows."""
    return projections.start_at_windows(learned(at))


def from_shuffled(at: Place) -> LearnedProjection:
    """E from windows of the places in another order, the same for E and F."""
    order = permutations(torch.Generator().manual_seed(at.depth), at.n)
    return start_at(learned(at), from_windows(at).weight.detach()[:, order])


def given(at: Place, groups: Tensor | None) -> nn.Module:
    """A slot for each group: E is its mean, and stays so."""
    if groups is None:
        raise ValueError("got no groups, expected those of the places")
    means = group_means(groups)
    with torch.random.fork_rng(devices=[]):  # all other numbers are drawn as without an E
        E = LearnedProjection(at.n, len(means))
    return linformer(at, start_at(E, means).requires_grad_(False))


ARMS: dict[str, Callable[[Place], nn.Module]] = {
    "exact attention": lambda at: MultiHeadAttention(D_MODEL, at.num_heads),
    "E and F": lambda at: linformer(at, learned(at), learned(at)),
    "E and F, from windows": lambda at: linformer(at, from_windows(at), from_windows(at)),
    "fixed windows": lambda at: linformer(at, MeanPooling(at.n, at.k)),
    "one slot": lambda at: linformer(at, MeanPooling(at.n, 1)),
    "slots by content": lambda at: GatedSlots(D_MODEL, NUM_HEADS, at.k),
    "slices": lambda at: Slices(D_MODEL, NUM_HEADS, at.k),
    "fixed mixing": lambda at: FixedMixing(at.n, at.k),
    "every 4th token": lambda at: relative(partial(every, 4)),
    "chunks of n / 8": lambda at: relative(partial(in_chunks, at.n // 8)),
    "linear attention": lambda at: relative(linear_attention),
    "convolution": Convolution,
    "no attention": lambda at: TokenMLP(D_MODEL),
    # in some tasks only
    "E = F": lambda at: linformer(at, learned(at)),
    "E and F, from shuffled windows": lambda at: linformer(at, from_shuffled(at), from_shuffled(at)),
    "fixed mixing, then exact": lambda at: (
        MultiHeadAttention(D_MODEL, NUM_HEADS) if at.depth else FixedMixing(at.n, at.k)
    ),
    "chunks of n / 4": lambda at: relative(partial(in_chunks, at.n // 4)),
    "places known": lambda at: given(at, at.groups),
    "tiles": lambda at: given(at, tiles(at)),
    "Fourier layers": lambda at: FourierMixing(at.side, D_MODEL),
}
EVERYWHERE = list(ARMS)[:13]
EXTRA_OF_SENSORS = ["E = F", "fixed mixing, then exact", "chunks of n / 4", "places known"]
EXTRA_OF_ELECTRODES = ["E and F, from shuffled windows"]
EXTRA_OF_A_GRID = ["tiles", "Fourier layers"]  # and a U-Net
