"""Linear attention: a kernel in place of the softmax, and brackets in another order (chapter 09).

    output_i = φ(q_i)ᵀ Σ_j φ(k_j) v_jᵀ / φ(q_i)ᵀ Σ_j φ(k_j)
                                      Katharopoulos et al. 2020 (arXiv 2006.16236), section 3.2, φ = elu + 1

With the sums over j ≤ i it is causal; then they are all that has to be kept of the past.
"""

from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.efficient.blocks import check_same_length, in_blocks, whole_blocks

CHUNK = 64  # tokens whose scores are held at once if causal


def elu_plus_one(x: Tensor) -> Tensor:
    """φ(x) = elu(x) + 1, which is positive: x + 1 above zero, eˣ below. Shape: as x."""
    return functional.elu(x) + 1


def linear_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Kernel attention with φ = elu + 1; no division by √d.

    Shape: q and k (..., n, d), v (..., n, d_v) -> (..., n, d_v)
    Raises: ValueError if q, k and v differ in n.
    Cost: 4 n·d² operations and 2 n·d more for the divisors; memory O(n·d).
    """
    return kernel_attention(elu_plus_one(q), elu_plus_one(k), v, causal)


def kernel_attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Mix values by the products of non-negative features, each row divided by its sum.

    Shape: features q and k (..., n, m), v (..., n, d_v) -> (..., n, d_v)
    Raises: ValueError if q, k and v differ in n.
    """
    check_same_length(q, k, v)
    if causal:
        return _causal(q, k, v)
    mixed = q @ (k.mT @ v)  # the brackets: (..., m, d_v), and never (..., n, n)
    return mixed / (q @ k.sum(dim=-2)[..., None])


def _causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Token by token within a chunk, by the sums of all earlier chunks beyond it."""
    n = q.size(-2)
    q, k, v = (in_blocks(x, CHUNK) for x in (q, k, v))  # (..., chunks, CHUNK, m)
    near = (q @ k.mT).tril()
    states, sums = k.mT @ v, k.sum(dim=-2)[..., None]  # of each chunk: (..., m, d_v), (..., m, 1)
    states, sums = (_before(x) for x in (states, sums))  # of the earlier chunks
    mixed, divisors = near @ v + q @ states, near.sum(dim=-1, keepdim=True) + q @ sums
    mixed, divisors = (x.flatten(-3, -2)[..., :n, :] for x in (mixed, divisors))
    return mixed / divisors


def _before(x: Tensor) -> Tensor:
    """Sums over earlier chunks; cumsum - x would keep rounding errors of what comes later."""
    return functional.pad(x, (0, 0, 0, 0, 1, 0)).cumsum(dim=-3)[..., :-1, :, :]


def linear_flops(n: int, d: int, features: int | None = None, causal: bool = False) -> int:
    """Operations of one head with d features, and as many features of the kernel unless told otherwise."""
    m = d if features is None else features
    if not causal:
        return 4 * n * m * d + 2 * n * m
    padded = whole_blocks(n, CHUNK) * CHUNK
    return 4 * padded * m * d + 2 * padded * m + 2 * padded * CHUNK * (m + d)
