"""How much of an attention map is redundant: singular values, best rank-r maps, spectra (chapter 04).

Every function takes one map or many, (..., n, m), on any device, and keeps its precision. Functions of
singular values take them as `singular_values` gives them: largest first, along the last axis.
"""

import math

import torch
from torch import Tensor


def singular_values(maps: Tensor) -> Tensor:
    """Singular values, largest first.

    Shape: (..., n, m) -> (..., min(n, m))
    Raises: ValueError if maps are no matrices of finite floating-point numbers.
    """
    _check_matrices(maps)
    return torch.linalg.svdvals(maps)


def decompose(maps: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """U, σ and Vᵀ with maps = U diag(σ) Vᵀ: the singular value decomposition.

    Shape: (..., n, m) -> (..., n, p), (..., p), (..., p, m) with p = min(n, m)
    Raises: as singular_values.
    """
    _check_matrices(maps)
    return torch.linalg.svd(maps, full_matrices=False)


def rebuild(u: Tensor, sigma: Tensor, vt: Tensor, rank: int) -> Tensor:
    """The first `rank` terms of Σ σ_i u_i v_iᵀ.

    Shape: as decompose gives them -> (..., n, m)
    Raises: ValueError if rank does not lie in 0 … p.
    """
    _check_rank(rank, sigma.size(-1))
    return (u[..., :rank] * sigma[..., None, :rank]) @ vt[..., :rank, :]


def best_rank(maps: Tensor, rank: int) -> Tensor:
    """The closest maps of at most this rank, in the Frobenius and in the spectral norm.

    Eckart and Young 1936; Mirsky 1960 for all unitarily invariant norms.

    Shape: (..., n, m) -> as maps
    Raises: ValueError if rank does not lie in 0 … min(n, m), or as singular_values.
    """
    return rebuild(*decompose(maps), rank)


def frobenius_error(sigma: Tensor, rank: int) -> Tensor:
    """√(σ²_{r+1} + σ²_{r+2} + …): how far the best map of rank r lies away, in the Frobenius norm.

    Shape: (..., p) -> (...)
    Raises: ValueError if rank does not lie in 0 … p.
    """
    _check_rank(rank, sigma.size(-1))
    return sigma[..., rank:].norm(dim=-1)


def spectral_error(sigma: Tensor, rank: int) -> Tensor:
    """σ_{r+1}: how far the best map of rank r lies away, in the spectral norm; 0 at full rank.

    Shape: (..., p) -> (...)
    Raises: ValueError if rank does not lie in 0 … p.
    """
    _check_rank(rank, sigma.size(-1))
    return sigma[..., rank] if rank < sigma.size(-1) else torch.zeros_like(sigma[..., 0])


def cumulative_spectrum(sigma: Tensor) -> Tensor:
    """Share of the first r singular values in the sum of all, for r = 1 … p: figure 1 of Wang et al. 2020.

    Shape: (..., p) -> (..., p), rising to one
    """
    return sigma.cumsum(dim=-1) / sigma.sum(dim=-1, keepdim=True)


def rank_at(sigma: Tensor, share: float = 0.9) -> Tensor:
    """Smallest r whose first r singular values make up this share of their sum.

    Shape: (..., p) -> (...), integers in 1 … p
    Raises: ValueError if share does not lie in (0, 1].
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}, expected a number in (0, 1]")
    short = cumulative_spectrum(sigma)[..., :-1] < share  # all p of them make up 1, whatever rounding says
    return 1 + short.sum(dim=-1)


def stable_rank(sigma: Tensor) -> Tensor:
    """Σσ² / σ₁²: at most the rank, and hardly moved by small singular values (Rudelson and Vershynin 2007).

    Shape: (..., p) -> (...)
    """
    return sigma.square().sum(dim=-1) / sigma[..., 0].square()


def entropy_rank(sigma: Tensor) -> Tensor:
    """2 to the entropy of σ/Σσ in bits: p where all are equal, 1 where one is alone (Roy and Vetterli 2007).

    Shape: (..., p) -> (...)
    """
    return torch.special.entr(sigma / sigma.sum(dim=-1, keepdim=True)).sum(dim=-1).exp()


# Maps to compare with: without them, a spectrum says nothing.


def identity_map(n: int, generator: torch.Generator) -> Tensor:
    """Every token reads itself. Shape: (n, n)."""
    return torch.eye(n)


def gaussian_map(n: int, generator: torch.Generator) -> Tensor:
    """Standard normal entries; no attention map, since they may be negative. Shape: (n, n)."""
    return torch.randn(n, n, generator=generator)


def stochastic_map(n: int, generator: torch.Generator) -> Tensor:
    """Uniform entries, rows scaled to sum to one. Shape: (n, n)."""
    uniform = torch.rand(n, n, generator=generator)
    return uniform / uniform.sum(dim=-1, keepdim=True)


def softmax_map(n: int, generator: torch.Generator, std: float = 1.0) -> Tensor:
    """Softmax of independent normal scores of this standard deviation. Shape: (n, n)."""
    return (std * torch.randn(n, n, generator=generator)).softmax(dim=-1)


BASELINES = {
    "identity": identity_map,
    "Gaussian": gaussian_map,
    "random stochastic": stochastic_map,
    "random softmax": softmax_map,
}


# Two controls for one head: how high its spectrum would lie if only its sharpness, or only the size of its
# scores, were left of it.


def shuffled_rows(maps: Tensor, generator: torch.Generator) -> Tensor:
    """Each row's weights dealt to the keys in a random order of its own: as sharp, with nothing in common.

    Shape: (..., n, m) -> as maps
    Raises: as singular_values.
    """
    _check_matrices(maps)
    return maps.gather(-1, torch.rand(maps.shape, generator=generator).argsort(dim=-1))


def score_spread(scores: Tensor) -> Tensor:
    """Standard deviation of scores around the mean of their row; that mean itself is nothing to softmax.

    Shape: (..., n, m) -> (...)
    """
    return (scores - scores.mean(dim=-1, keepdim=True)).square().mean(dim=(-2, -1)).sqrt()


def random_head(scores: Tensor, d_head: int, generator: torch.Generator) -> Tensor:
    """Map of a head with normal queries and keys, whose scores spread as far as the given ones.

    Shape: (..., n, m) -> as scores, each row sums to one
    Raises: ValueError if d_head is no positive integer, or as singular_values.
    """
    _check_matrices(scores)
    if type(d_head) is not int or d_head < 1:
        raise ValueError(f"d_head is {d_head}, expected an integer of at least 1")
    *front, n, m = scores.shape
    q, k = (torch.randn(*front, size, d_head, generator=generator) for size in (n, m))
    drawn = (q @ k.mT).to(scores)
    return (drawn * (score_spread(scores) / score_spread(drawn))[..., None, None]).softmax(dim=-1)


def _check_matrices(maps: Tensor) -> None:
    if not isinstance(maps, Tensor) or maps.dim() < 2 or not maps.is_floating_point():
        kind = f"{maps.dtype} {tuple(maps.shape)}" if isinstance(maps, Tensor) else type(maps).__name__
        raise ValueError(f"maps are {kind}, expected a floating-point tensor (..., n, m)")
    if 0 in maps.shape[-2:]:
        raise ValueError(f"maps are {tuple(maps.shape)}, expected at least 1 row and 1 column")
    if not maps.isfinite().all():
        bad = math.prod(maps.shape) - int(maps.isfinite().sum())
        raise ValueError(f"maps hold {bad} numbers that are NaN or infinite, expected 0")


def _check_rank(rank: int, largest: int) -> None:
    if type(rank) is not int or not 0 <= rank <= largest:
        raise ValueError(f"rank is {rank}, expected an integer in 0 … {largest}")
