"""How much of an attention map is redundant: singular values, best rank-r maps, spectra (chapter 04).

Every function takes one map or many, (..., n, m), on any device, and keeps the dtype, even under autocast;
16-bit maps are decomposed in float32, and the result is rounded to 16 bits again. Functions of singular
values take them as `singular_values` returns them: largest first, along the last axis.

>>> singular_values(torch.diag(torch.tensor([3.0, 4.0]))).round()
tensor([4., 3.])
>>> rebuild(*decompose(torch.ones(3, 3)), rank=1).sum().round()
tensor(9.)
>>> frobenius_error(torch.tensor([4.0, 3.0]), rank=1)
tensor(3.)
>>> stable_rank(torch.tensor([4.0, 3.0]))
tensor(1.5625)
"""

import math

import torch
from torch import Tensor

from linformer_from_scratch.common.checks import check_size, full_precision, in_float32, seen
from linformer_from_scratch.common.random_state import normal, permutations, uniform


def singular_values(maps: Tensor) -> Tensor:
    """Singular values, largest first.

    Shape: (..., n, m) -> (..., min(n, m))
    Raises: ValueError if maps are no matrices of finite floating-point numbers.
    """
    return torch.linalg.svdvals(_checked(maps)).to(maps.dtype)


def decompose(maps: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """U, σ and Vᵀ with maps = U diag(σ) Vᵀ: the singular value decomposition.

    Shape: (..., n, m) -> (..., n, p), (..., p), (..., p, m) with p = min(n, m)
    Raises: as singular_values.

    >>> [part.shape for part in decompose(torch.eye(3, 2))]
    [torch.Size([3, 2]), torch.Size([2]), torch.Size([2, 2])]
    """
    u, sigma, vt = (part.to(maps.dtype) for part in torch.linalg.svd(_checked(maps), full_matrices=False))
    return u, sigma, vt


def rebuild(u: Tensor, sigma: Tensor, vt: Tensor, rank: int) -> Tensor:
    """The first `rank` terms of Σ σ_i u_i v_iᵀ.

    Shape: as decompose gives them -> (..., n, m)
    Raises: ValueError if rank does not lie in 0 … p.
    """
    rank = check_size("rank", rank, 0, sigma.size(-1))
    with full_precision(u):
        return (u[..., :rank] * sigma[..., None, :rank]) @ vt[..., :rank, :]


def best_rank(maps: Tensor, rank: int) -> Tensor:
    """The closest maps of at most this rank, in the Frobenius and in the spectral norm.

    Eckart and Young 1936; Mirsky 1960 for all unitarily invariant norms.

    Shape: (..., n, m) -> as maps
    Raises: ValueError if rank does not lie in 0 … min(n, m), or as singular_values.

    >>> torch.linalg.matrix_rank(best_rank(torch.eye(4), rank=2))
    tensor(2)
    """
    u, sigma, vt = torch.linalg.svd(_checked(maps), full_matrices=False)
    return rebuild(u, sigma, vt, rank).to(maps.dtype)


def frobenius_error(sigma: Tensor, rank: int) -> Tensor:
    """√(σ²_{r+1} + σ²_{r+2} + …): how far the best map of rank r lies away, in the Frobenius norm.

    Shape: (..., p) -> (...)
    Raises: ValueError if rank does not lie in 0 … p.
    """
    rank = check_size("rank", rank, 0, sigma.size(-1))
    return sigma[..., rank:].norm(dim=-1)


def spectral_error(sigma: Tensor, rank: int) -> Tensor:
    """σ_{r+1}: how far the best map of rank r lies away, in the spectral norm; 0 at full rank.

    Shape: (..., p) -> (...)
    Raises: ValueError if rank does not lie in 0 … p.

    >>> spectral_error(torch.tensor([4.0, 3.0]), rank=1)
    tensor(3.)
    """
    rank = check_size("rank", rank, 0, sigma.size(-1))
    return sigma[..., rank] if rank < sigma.size(-1) else torch.zeros_like(sigma[..., 0])


def cumulative_spectrum(sigma: Tensor) -> Tensor:
    """Share of the first r singular values in the sum of all, for r = 1 … p: figure 1 of Wang et al. 2020.

    Shape: (..., p) -> (..., p), rising to one

    >>> cumulative_spectrum(torch.tensor([3.0, 1.0]))
    tensor([0.7500, 1.0000])
    """
    return sigma.cumsum(dim=-1) / sigma.sum(dim=-1, keepdim=True)


def rank_at(sigma: Tensor, share: float = 0.9) -> Tensor:
    """Smallest r whose first r singular values make up this share of their sum.

    Shape: (..., p) -> (...), integers in 1 … p
    Raises: ValueError if share does not lie in (0, 1].

    >>> rank_at(torch.tensor([3.0, 1.0]), share=0.9)
    tensor(2)
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

    >>> entropy_rank(torch.ones(4)).round()
    tensor(4.)
    """
    return torch.special.entr(sigma / sigma.sum(dim=-1, keepdim=True)).sum(dim=-1).exp()


# Maps to compare with: without them, a spectrum says nothing. Each lies on its generator's device and has
# PyTorch's default dtype; the draw is the same for every dtype.


def identity_map(n: int, generator: torch.Generator) -> Tensor:
    """Every token attends to itself. Shape: (n, n).

    >>> identity_map(2, torch.Generator()).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return torch.eye(n, device=generator.device)


def gaussian_map(n: int, generator: torch.Generator) -> Tensor:
    """Standard normal entries; no attention map, since they may be negative. Shape: (n, n).

    >>> gaussian_map(4, torch.Generator()).shape
    torch.Size([4, 4])
    """
    return normal(generator, n, n).to(torch.get_default_dtype())


def stochastic_map(n: int, generator: torch.Generator) -> Tensor:
    """Uniform entries, rows scaled to sum to one. Shape: (n, n).

    >>> stochastic_map(2, torch.Generator()).sum(dim=-1).round()
    tensor([1., 1.])
    """
    drawn = uniform(generator, n, n)
    return (drawn / drawn.sum(dim=-1, keepdim=True)).to(torch.get_default_dtype())


def softmax_map(n: int, generator: torch.Generator, std: float = 1.0) -> Tensor:
    """Softmax of independent normal scores of this standard deviation. Shape: (n, n).

    >>> softmax_map(2, torch.Generator()).sum(dim=-1).round()
    tensor([1., 1.])
    """
    return (std * normal(generator, n, n)).softmax(dim=-1).to(torch.get_default_dtype())


BASELINES = {
    "identity": identity_map,
    "Gaussian": gaussian_map,
    "random stochastic": stochastic_map,
    "random softmax": softmax_map,
}


# Two controls for one head: its spectrum if all but the sharpness of its rows, or all but the size of its
# scores, were random.


def shuffled_rows(maps: Tensor, generator: torch.Generator) -> Tensor:
    """Each row's weights dealt to the keys in a random order of its own: as sharp, with nothing in common.

    Shape: (..., n, m) -> as maps
    Raises: as singular_values.

    >>> shuffled_rows(torch.eye(3), torch.Generator()).sum(dim=-1)
    tensor([1., 1., 1.])
    """
    _checked(maps)
    return maps.gather(-1, permutations(generator, *maps.shape).to(maps.device))


def score_spread(scores: Tensor) -> Tensor:
    """Standard deviation of scores around the mean of their row, which softmax ignores.

    Shape: (..., n, m) -> (...)

    >>> score_spread(torch.tensor([[1.0, 3.0]]))
    tensor(1.)
    """
    return (scores - scores.mean(dim=-1, keepdim=True)).square().mean(dim=(-2, -1)).sqrt()


def random_head(scores: Tensor, d_head: int, generator: torch.Generator) -> Tensor:
    """Map of a head with normal queries and keys, whose scores spread as far as the given ones.

    Shape: (..., n, m) -> as scores, each row sums to one
    Raises: ValueError if d_head is not a positive integer; as singular_values.

    >>> random_head(torch.eye(3), 4, torch.Generator()).shape
    torch.Size([3, 3])
    """
    wide = _checked(scores)
    d_head = check_size("d_head", d_head)
    *front, n, m = scores.shape
    q, k = (normal(generator, *front, size, d_head) for size in (n, m))
    with full_precision(q):
        drawn = (q @ k.mT).to(wide)
    spread = score_spread(wide) / score_spread(drawn)
    return (drawn * spread[..., None, None]).softmax(dim=-1).to(scores.dtype)


def _checked(maps: Tensor) -> Tensor:
    """The maps, 16-bit ones in float32. Raise ValueError unless they are matrices of finite numbers."""
    if not isinstance(maps, Tensor) or maps.dim() < 2 or not maps.is_floating_point():
        kind = f"{maps.dtype} {tuple(maps.shape)}" if isinstance(maps, Tensor) else type(maps).__name__
        raise ValueError(f"maps are {kind}, expected a floating-point tensor (..., n, m)")
    if 0 in maps.shape[-2:]:
        raise ValueError(f"maps are {tuple(maps.shape)}, expected at least 1 row and 1 column")
    if seen(maps.isfinite().all()) is False:
        bad = math.prod(maps.shape) - int(maps.isfinite().sum())
        raise ValueError(f"maps hold {bad} numbers that are NaN or infinite, expected 0")
    return in_float32(maps)
