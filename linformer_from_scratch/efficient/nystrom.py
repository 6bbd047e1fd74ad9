"""Nyström: low rank through landmarks taken from the text itself (chapter 09).

    softmax(Q K̃ᵀ/√d) · softmax(Q̃ K̃ᵀ/√d)⁺ · softmax(Q̃ Kᵀ/√d) V
                                  Xiong et al. 2021 (Nyströmformer, arXiv 2102.03902), equations 13 and 14

Q̃ and K̃ are means of segments of the text; ⁺ is the pseudoinverse, found by iteration.
"""

import torch
from torch import Tensor

from linformer_from_scratch.attention import attention_weights, scaled_dot_product_attention
from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.efficient.blocks import self_attention_in_float32


@self_attention_in_float32
def nystrom_attention(q: Tensor, k: Tensor, v: Tensor, landmarks: int, steps: int = 6) -> Tensor:
    """Attend to landmarks, correct for how they attend to each other, let them attend to all.

    Shape: q and k (..., n, d), v (..., n, d_v) -> (..., n, d_v)
    Raises: ValueError if landmarks is not in 1 … n, or if q, k and v differ in n.
    Cost: 8 n·landmarks·d operations and a part that does not grow with n; memory O(n·landmarks).
    Six steps, as in the paper, do not reach the pseudoinverse where landmarks attend alike: their map is then
    nearly singular, and the smallest singular values are not inverted.
    With a landmark for each token all three maps are S, and S S⁺ S = S: computed as exact attention.
    Not causal: a landmark is a mean over its segment, and every landmark attends to all tokens.
    """
    n = q.size(-2)
    landmarks = check_size("landmarks", landmarks)
    if landmarks > n:
        raise ValueError(f"landmarks is {landmarks}, expected at most n={n}")
    if landmarks == n:
        if torch.jit.is_tracing():
            raise ValueError(
                f"traced with {n} tokens, expected more than landmarks={landmarks}, where it is exact"
            )
        return scaled_dot_product_attention(q, k, v)
    q_mean, k_mean = segment_means(q, landmarks), segment_means(k, landmarks)  # (..., landmarks, d)
    correction = pseudoinverse(attention_weights(q_mean, k_mean), steps)  # (..., landmarks, landmarks)
    return attention_weights(q, k_mean) @ (correction @ (attention_weights(q_mean, k) @ v))


def segment_means(x: Tensor, segments: int) -> Tensor:
    """Means of neighbours: every token in one segment, the last n mod segments of them a token longer.

    Shape: (..., n, d) -> (..., segments, d)
    """
    n, segments = x.size(-2), check_size("segments", segments)
    size, longer = n // segments, n % segments
    if torch.compiler.is_compiling():  # as a matrix: the slices below would not export for every n
        token = torch.arange(n, device=x.device)
        segment = torch.minimum(token // size, segments + (token - n) // (size + 1))
        member = (segment == torch.arange(segments, device=x.device)[:, None]).to(x.dtype)  # (segments, n)
        return member / member.sum(dim=-1, keepdim=True) @ x
    border = n - longer * (size + 1)
    shorter = x[..., :border, :].unflatten(-2, (segments - longer, size))
    others = x[..., border:, :].unflatten(-2, (longer, size + 1))
    return torch.cat([shorter.mean(dim=-2), others.mean(dim=-2)], dim=-2)


def pseudoinverse(a: Tensor, steps: int = 6) -> Tensor:
    """The Moore-Penrose inverse of square matrices, approached by iteration (Razavi et al. 2014).

    Starts at aᵀ / (‖a‖₁ ‖a‖∞), the norms of each matrix by itself. Where a is
    singular, rounding errors grow beyond some 20 steps.

    Shape: (..., m, m) -> (..., m, m)
    """
    rows, columns = a.abs().sum(dim=-1), a.abs().sum(dim=-2)
    z = a.mT / (rows.amax(dim=-1) * columns.amax(dim=-1))[..., None, None]
    identity = torch.eye(a.size(-1), dtype=a.dtype, device=a.device)
    for _ in range(check_size("steps", steps, least=0)):
        az = a @ z
        z = z @ (13 * identity - az @ (15 * identity - az @ (7 * identity - az))) / 4
    return z


def nystrom_flops(n: int, d: int, landmarks: int, steps: int = 6) -> int:
    """Operations of one head with d features."""
    m = landmarks
    if m == n:
        return 4 * n * n * d
    return 8 * n * m * d + 4 * m * m * d + 8 * steps * m**3
