"""Random projections, the Johnson-Lindenstrauss lemma, and Linformer's two theorems (chapter 05).

R is (proj_dim, n) with independent entries N(0, 1/proj_dim). For any fixed x and 0 < ε < 1,

    Pr(|‖Rx‖² − ‖x‖²| ≥ ε‖x‖²) ≤ 2 exp(−(ε² − ε³) proj_dim / 4)          Arriaga and Vempala 1999

The dimension n of x is not in it. In the paper's letters proj_dim is k.
"""

import math

import torch
from torch import Tensor

from linformer_from_scratch.common.checks import check_size, full_precision


def gaussian_projection(
    proj_dim: int, n: int, generator: torch.Generator | None = None, dtype: torch.dtype = torch.float32
) -> Tensor:
    """R: independent entries of mean 0 and variance 1 / proj_dim, so that E[RᵀR] = I.

    Shape: (proj_dim, n), on the device of the generator
    Raises: ValueError if a size is not a positive integer.

    >>> gaussian_projection(proj_dim=2, n=5).shape
    torch.Size([2, 5])
    """
    proj_dim, n = check_size("proj_dim", proj_dim), check_size("n", n)
    device = generator.device if generator else None
    return torch.randn(proj_dim, n, generator=generator, dtype=dtype, device=device) / math.sqrt(proj_dim)


def distortion(x: Tensor, R: Tensor) -> Tensor:
    """‖Rx‖² / ‖x‖² − 1 of each row x: 0 where the projection keeps the length.

    Shape: x (..., n), R (proj_dim, n) -> (...)
    Raises: ValueError if x and R differ in n, or a row of x is zero.

    >>> distortion(torch.tensor([[3.0, 1.0]]), R=torch.eye(2)[:1])  # of 9 + 1, 9 are left
    tensor([-0.1000])
    """
    _check_length(x.size(-1), R)
    squared = x.square().sum(dim=-1)
    if not squared.all():
        raise ValueError("a row of x is zero, expected a norm above 0 to compare with")
    with full_precision(x):
        return (x @ R.mT).square().sum(dim=-1) / squared - 1


def failure_bound(proj_dim: int, epsilon: float, vectors: int = 1) -> float:
    """2 · vectors · exp(−(ε² − ε³) proj_dim / 4): the lemma, and the union bound over several vectors.

    Above 1 it says nothing.

    Raises: ValueError if ε does not lie in (0, 1), or a number is not a positive integer.

    >>> round(failure_bound(proj_dim=256, epsilon=0.5), 4)
    0.0007
    """
    _check_epsilon(epsilon)
    proj_dim, vectors = check_size("proj_dim", proj_dim), check_size("vectors", vectors)
    return 2 * vectors * math.exp(-(epsilon**2 - epsilon**3) * proj_dim / 4)


def needed_dim(vectors: int, epsilon: float, failure: float = 0.5) -> int:
    """Smallest proj_dim whose failure_bound for that many vectors is at most `failure`.

    Raises: ValueError if ε or failure does not lie in (0, 1), or vectors is not a positive integer.

    >>> needed_dim(vectors=1000, epsilon=0.5)
    266
    """
    _check_epsilon(epsilon)
    vectors = check_size("vectors", vectors)
    if not 0 < failure < 1:
        raise ValueError(f"failure is {failure}, expected a number between 0 and 1")
    return math.ceil(4 * math.log(2 * vectors / failure) / (epsilon**2 - epsilon**3))


def theorem_1_dim(n: int, epsilon: float) -> int:
    """5 ln n / (ε² − ε³), rounded up: the k of theorem 1, for which the bound on failure is 2 n^(−1/4).

    Raises: ValueError if n is no integer from 2 on, or ε is not in (0, 1), where ε² − ε³ is positive.

    >>> theorem_1_dim(n=512, epsilon=0.1)
    3466
    """
    _check_epsilon(epsilon)
    n = check_size("n", n, least=2)
    return math.ceil(5 * math.log(n) / (epsilon**2 - epsilon**3))


def theorem_2_dims(n: int, d: int, epsilon: float) -> tuple[float, float]:
    """9 d ln d / ε² and 5 ln n / ε²: theorem 2 takes the smaller. Its Θ hides constants; here they are 1.

    Raises: ValueError if n or d is no integer from 2 on, or ε does not lie in (0, 1).

    >>> [round(k) for k in theorem_2_dims(n=512, d=64, epsilon=0.5)]
    [9582, 125]
    """
    _check_epsilon(epsilon)
    n, d = check_size("n", n, least=2), check_size("d", d, least=2)
    return 9 * d * math.log(d) / epsilon**2, 5 * math.log(n) / epsilon**2


def theorem_1_map(P: Tensor, R: Tensor) -> Tensor:
    """P̃ = P RᵀR, of rank at most proj_dim (Wang et al. 2020, theorem 1).

    Shape: P (..., m, n), R (proj_dim, n) -> as P
    Raises: ValueError if P and R differ in n.

    >>> theorem_1_map(torch.ones(1, 3), R=torch.eye(3)[:2])
    tensor([[1., 1., 0.]])
    """
    _check_length(P.size(-1), R)
    with full_precision(P):
        return P @ R.mT @ R


def theorem_2_projections(R: Tensor, delta: float) -> tuple[Tensor, Tensor]:
    """E = δR and F = e^(−δ)R (Wang et al. 2020, theorem 2).

    Shape: R (proj_dim, n) -> (proj_dim, n) twice
    Raises: ValueError if δ is not a finite number above 0.

    >>> [x.shape for x in theorem_2_projections(torch.ones(2, 5), delta=0.5)]
    [torch.Size([2, 5]), torch.Size([2, 5])]
    """
    if not (math.isfinite(delta) and delta > 0):
        raise ValueError(f"delta is {delta}, expected a finite number above 0")
    return delta * R, math.exp(-delta) * R


def relative_error(approximate: Tensor, exact: Tensor) -> Tensor:
    """‖approximate − exact‖ / ‖exact‖ over the last axis.

    Shape: (..., n) twice -> (...)

    >>> relative_error(torch.tensor([0.0, 4.0]), torch.tensor([3.0, 4.0]))
    tensor(0.6000)
    """
    return (approximate - exact).norm(dim=-1) / exact.norm(dim=-1)


def _check_epsilon(epsilon: float) -> None:
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon is {epsilon}, expected a number between 0 and 1")


def _check_length(n: int, R: Tensor) -> None:
    if n != R.size(-1):
        raise ValueError(f"got {n} tokens; R was drawn for n={R.size(-1)}")
