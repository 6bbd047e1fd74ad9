"""Exercises of chapter 04."""

import torch
from torch import Tensor

from linformer_from_scratch import low_rank
from linformer_from_scratch.course.exercises.engine.checking import exercise
from linformer_from_scratch.course.exercises.engine.draws import normal, row
from linformer_from_scratch.low_rank import cumulative_spectrum, frobenius_error, rank_at, stable_rank

SPECTRA = ((2, 12, 3), (3, 12, 1), (2, 15, 5), (4, 9, 2))  # heads, singular values, rank of each draw


def draw_spectra(seed: int) -> tuple[Tensor]:
    """Positive numbers, largest first, of several heads."""
    heads, count, _ = row(seed, SPECTRA)
    (x,) = normal(seed, (heads, count))
    return (x.abs().sort(dim=-1, descending=True).values + 0.1,)


@exercise("4.1", stars=2, minutes=8)
class BestRank:
    """The best map of rank r."""

    hints = (
        "Three steps: decompose, keep the first r of everything, multiply back.",
        "torch.linalg.svd(maps, full_matrices=False) gives u (heads, n, p), s (heads, p), vt (heads, p, m). Where is r in each?",
        "(u[..., :rank] * s[..., None, :rank]) @ …",
    )
    reference = low_rank.best_rank

    def draw(seed):
        """Maps of several heads, each larger than the one before, and a rank, once as high as it goes."""
        *sizes, rank = row(seed, ((2, 5, 7, 2), (3, 7, 5, 1), (2, 4, 11, 3), (4, 6, 3, 3)))
        (maps,) = normal(seed, tuple(sizes))
        return torch.arange(1, len(maps) + 1)[:, None, None] * maps, rank

    def smallest_kept(maps, rank):
        """You kept the last r singular values, and svd sorts them largest first. Which end of the list carries the map?"""
        u, s, vt = torch.linalg.svd(maps, full_matrices=False)
        return (u[..., -rank:] * s[..., None, -rank:]) @ vt[..., -rank:, :]

    def values_forgotten(maps, rank):
        """You multiplied U and Vᵀ and left σ out, so every piece came out equally strong. Where do the strengths go in?"""
        u, _, vt = torch.linalg.svd(maps, full_matrices=False)
        return u[..., :rank] @ vt[..., :rank, :]

    def values_squared(maps, rank):
        """σ is in there twice, once with U and once with Vᵀ. Splitting it fairly is a nice thought, but then each takes √σ; simpler is σ on one side."""
        u, s, vt = torch.linalg.svd(maps, full_matrices=False)
        return (u[..., :rank] * s[..., None, :rank].square()) @ vt[..., :rank, :]

    def one_too_many(maps, rank):
        """You kept r + 1 pieces. In Python :rank already stops after the first r, so the + 1 is one too many."""
        u, s, vt = torch.linalg.svd(maps, full_matrices=False)
        return (u[..., : rank + 1] * s[..., None, : rank + 1]) @ vt[..., : rank + 1, :]

    def one_map_only(maps, rank):
        """Right for a single map. Here the first axis counts maps, so [:, :rank] cuts rows and [:rank] throws heads away: count from the end, [..., :rank]."""
        u, s, vt = torch.linalg.svd(maps, full_matrices=False)
        return u[:, :rank] @ torch.diag(s[:rank]) @ vt[:rank]

    def one_map_scaled(maps, rank):
        """For a single map this would be it. With an axis of maps in front, count axes from the end: u[..., :rank], s[..., None, :rank], vt[..., :rank, :]."""
        u, s, vt = torch.linalg.svd(maps, full_matrices=False)
        return (u[:, :rank] * s[:rank]) @ vt[:rank]

    def diagonal_cut(maps, rank):
        """You handed torch.diag one vector per head, and it read off a diagonal instead of making matrices. You need none: s[..., None, :rank] scales the columns of u in every map."""
        u, s, vt = torch.linalg.svd(maps, full_matrices=False)
        return u[:, :rank] @ torch.diag(s)[:rank, :rank] @ vt[:rank]

    def columns_of_vt(maps, rank):
        """You cut columns of Vᵀ, as you did with U. But svd returns V transposed, so its directions are rows: vt[..., :rank, :]."""
        u, s, vt = torch.linalg.svd(maps, full_matrices=False)
        return (u[..., :rank] * s[..., None, :rank]) @ vt[..., :rank]

    def diagonal_of_many(maps, rank):
        """torch.diag makes a matrix from one vector, but given a matrix it takes the diagonal out. Skip it and scale the columns of u: s[..., None, :rank]."""
        u, s, vt = torch.linalg.svd(maps, full_matrices=False)
        return u[..., :rank] @ torch.diag(s[..., :rank]) @ vt[..., :rank, :]

    def sigma_along_rows(maps, rank):
        """Your σ lines up with the wrong axis of U. It should scale the columns in each map, so give it an axis for the rows: s[..., None, :rank]."""
        u, s, vt = torch.linalg.svd(maps, full_matrices=False)
        return (u[..., :rank] * s[..., :rank]) @ vt[..., :rank, :]

    def columns_kept(maps, rank):
        """You kept the first r keys and dropped the rest. That has rank r, but the best copy keeps a bit of every column: cut the pieces, not the map."""
        kept = maps.clone()
        kept[..., rank:] = 0
        return kept

    def ranks_shared_out(maps, rank):
        """You let the heads compete: the largest singular values of all of them together. But every map gets its own r pieces, weak heads included."""
        u, s, vt = torch.linalg.svd(maps, full_matrices=False)
        least = s.flatten().topk(rank * len(maps)).values[-1]
        return (u * (s * (s >= least))[..., None, :]) @ vt


@exercise("4.2", stars=1, minutes=4)
class ErrorOfARank:
    """Its error, from the singular values alone."""

    hints = (
        "You never need the maps. The error is made of the singular values that weren't kept.",
        "Of (heads, p) the first r are kept, so the lost ones start at index r.",
        "sigma[..., rank:]… and then Pythagoras: squares, their sum, its root",
    )
    reference = frobenius_error

    def draw(seed):
        """Spectra as small as those of attention maps, and a rank."""
        (sigma,) = draw_spectra(seed)
        return sigma / 16, row(seed, SPECTRA)[-1]

    def squares_not_rooted(sigma, rank):
        """You stopped one step early: that is the squared error. Take its root."""
        return frobenius_error(sigma, rank).square()

    def kept_not_lost(sigma, rank):
        """You measured what the copy keeps. The error is what it lost: σ_{r+1} and everything after it."""
        return sigma[..., :rank].norm(dim=-1)

    def lost_too_much(sigma, rank):
        """You counted σ_r as lost, but rank r keeps it. Python counts from 0, so σ_{r+1} is at index r: start there."""
        return sigma[..., rank - 1 :].norm(dim=-1)

    def plain_sum(sigma, rank):
        """You added the lost values themselves. The pieces are at right angles, so it's Pythagoras: add the squares, then take the root."""
        return sigma[..., rank:].sum(dim=-1)

    def first_lost_only(sigma, rank):
        """That's σ_{r+1} alone, the error in the other norm, the spectral one. The Frobenius norm counts every value that's lost."""
        return sigma[..., rank]


@exercise("4.3", stars=1, minutes=4)
class CumulativeSpectrum:
    """The curve of figure 1."""

    hints = (
        "Entry r is a running sum up to r, divided by the sum of all.",
        "(heads, p) -> (heads, p). The divisor must keep its axis to broadcast: (heads, 1).",
        "sigma.cumsum(dim=-1) / …",
    )
    reference = cumulative_spectrum
    draw = draw_spectra

    def cumulative_squares(sigma):
        """You summed squares, which is the share of energy and looks far more low rank. The paper's figure sums the singular values as they are."""
        squared = sigma.square()
        return squared.cumsum(-1) / squared.sum(-1, keepdim=True)

    def not_normalised(sigma):
        """The running sum is right, but your curve doesn't end at 1, so you can't compare heads. Divide by the sum of all."""
        return sigma.cumsum(-1)

    def by_the_largest(sigma):
        """You divided by σ₁, so the curve starts at 1 instead of ending there. A share is a share of the sum of all."""
        return sigma.cumsum(-1) / sigma[..., :1]

    def across_heads(sigma):
        """You added across heads. Axis 0 counts the heads; each head's curve runs along the last axis."""
        return sigma.cumsum(0) / sigma.sum(0, keepdim=True)

    def from_the_end(sigma):
        """You started adding at the smallest. The values come largest first already, so there's nothing to flip."""
        return sigma.flip(-1).cumsum(-1) / sigma.sum(-1, keepdim=True)


@exercise("4.4", stars=1, minutes=4)
class StableRank:
    """The stable rank."""

    hints = (
        "If all pieces were as strong as the first, how many would give the same sum of squares?",
        "(heads, p) -> (heads,): sum over the last axis. The largest is the first, sigma[..., 0].",
        "sigma.square().sum(dim=-1) / …",
    )
    reference = stable_rank
    draw = draw_spectra

    def sum_by_largest(sigma):
        """You left out the squares, and that's another measure. Square both, each σ in the sum and σ₁ below it."""
        return sigma.sum(-1) / sigma[..., 0]

    def participation(sigma):
        """You computed (Σσ)² / Σσ², another effective rank. The stable rank puts the sum of squares on top, over the largest square."""
        return sigma.sum(-1).square() / sigma.square().sum(-1)

    def only_below_squared(sigma):
        """Below you squared σ₁, on top you forgot to. Which power does each σ in the sum have in Σσ² / σ₁²?"""
        return sigma.sum(-1) / sigma[..., 0].square()

    def rooted(sigma):
        """You took a root at the end. Try the identity: with its n ones it should come out as n, and yours gives √n."""
        return stable_rank(sigma).sqrt()

    def count_of_nonzero(sigma):
        """You counted the values above zero: that's the ordinary rank, where a speck of noise counts as much as σ₁."""
        return (sigma > 0).sum(-1).to(sigma.dtype)

    def entropy_instead(sigma):
        """You computed the entropy rank, a fine measure but another one. Here you only need Σσ² and σ₁²."""
        return low_rank.entropy_rank(sigma)


@exercise("4.5", stars=2, minutes=6)
class RankForAShare:
    """How many for a share."""

    hints = (
        "Count how often the running sum is still too small. One more, and it's enough.",
        "Your 4.3 gives (heads, p), rising to 1. Compare it with the share: booleans can be summed.",
        "1 + (cumulative < share)…",
    )
    reference = rank_at

    def draw(seed):
        """Spectra, in one draw with a sum that reaches the share exactly, and a share."""
        if seed % 4 == 1:
            return torch.tensor([[2.0, 1.0, 1.0], [4.0, 3.0, 1.0], [8.0, 0.0, 0.0]]), 0.5
        (share,) = row(seed, ((0.9,), (0.5,), (0.75,), (0.95,)))
        (sigma,) = draw_spectra(seed)
        sigma[-1] = 1.0 if seed % 4 == 3 else sigma[-1]  # of equal values nearly all are needed
        return sigma, share

    def index_not_count(sigma, share):
        """You returned the index where the share is reached. It starts at 0, so the number of values is one more."""
        return rank_at(sigma, share) - 1

    def more_than_the_share(sigma, share):
        """Where the sum hits the share exactly, you ask for one more. “At least” is met already: compare with <, not <=."""
        return (1 + (cumulative_spectrum(sigma) <= share).sum(-1)).clamp(max=sigma.size(-1))

    def share_of_energy(sigma, share):
        """You summed squares again. Here the share is of the singular values as they are."""
        return rank_at(sigma.square(), share)

    def larger_than_a_share_of_the_first(sigma, share):
        """You counted the values above a share of σ₁, one by one. Add them up instead, until their sum reaches the share of all."""
        return (sigma >= share * sigma[..., :1]).sum(-1)

    def share_of_the_count(sigma, share):
        """You took a share of how many values there are. Their sizes never came in, but a strong piece should count for more."""
        return torch.full(sigma.shape[:-1], -int(-share * sigma.size(-1) // 1))
