"""Choices for Linformer's E and F: modules that compress the sequence axis (chapters 06 and 07).

Each maps (..., n, d) to (..., proj_dim, d), for every n up to seq_len; missing tokens count as zeros. Its
attribute `commutes` says whether (E X) W = E (X W) for every matrix W of features, with one E X for all
heads: then a layer compresses first, which is cheaper. Sharing is passing the same object twice.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.common.checks import check_size, graph_is_written
from linformer_from_scratch.common.random_state import normal


def project(x: Tensor, E: Tensor) -> Tensor:
    """E x: every slot is a weighted sum of the tokens; n tokens use the first n columns of E.

    Shape: x (..., n, d), E (proj_dim, seq_len) or one per head (num_heads, proj_dim, seq_len)
        -> (..., proj_dim, d)
    Raises: ValueError if x has more than seq_len tokens.

    >>> project(torch.zeros(2, 5, 4), E=torch.zeros(3, 8)).shape
    torch.Size([2, 3, 4])
    """
    first = _first_columns(E, _check_length(x, E.size(-1)))
    if E.dim() == 2:
        # not E @ x, for which PyTorch copies x to fold its batch away
        return first.expand(*x.shape[:-2], -1, -1) @ x
    if x.shape[-3:-2] != E.shape[:-2]:
        raise ValueError(f"x is {tuple(x.shape)}; E has a matrix for each of {E.size(0)} heads")
    # not E @ x, for which PyTorch copies E for each sample
    return torch.einsum("hkn,...hnd->...hkd", first, x)


class Projection(nn.Module):
    """The sizes of a projection. One of your own inherits from this class and adds forward.

    Args:
        seq_len: longest input, in tokens.
        proj_dim: slots, the paper's k.

    Raises: ValueError if one is not a positive integer.

    >>> Projection(seq_len=8, proj_dim=3).commutes
    False
    """

    commutes = False  # whether (E X) W = E (X W) for every W

    def __init__(self, seq_len: int, proj_dim: int):
        super().__init__()
        self.seq_len, self.proj_dim = check_size("seq_len", seq_len), check_size("proj_dim", proj_dim)


class LearnedProjection(Projection):
    """E as a matrix of parameters, the paper's choice (Wang et al. 2020, section 4).

    Starts as N(0, 1 / seq_len), so that slots vary as much as tokens do. Its entries are of size
    1 / √seq_len: AdamW moves every number by about the learning rate, and so would change E √seq_len times as
    fast as other weights. `training.parameter_groups` gives an optimizer rates that make up for this.

    Args:
        seq_len: longest input, in tokens.
        proj_dim: slots, the paper's k.
        num_heads: one matrix for each head; by default all heads share one (headwise sharing).

    Attributes:
        weight: E, the parameter. Shape: (proj_dim, seq_len) or (num_heads, proj_dim, seq_len)
        unit: the size of its entries, 1 / √seq_len.

    Shape: (..., n, d) -> (..., proj_dim, d), or (..., num_heads, n, d) -> (..., num_heads, proj_dim, d)
    Raises: ValueError if a size is not a positive integer, or x has more than seq_len tokens.
    Linear. Commutes with W where the heads share one matrix; with one for each, X would have to be compressed
    for every head, so the layer takes the paper's order.

    >>> LearnedProjection(seq_len=8, proj_dim=3)(torch.zeros(2, 5, 4)).shape
    torch.Size([2, 3, 4])
    """

    def __init__(self, seq_len: int, proj_dim: int, num_heads: int | None = None):
        super().__init__(seq_len, proj_dim)
        heads = () if num_heads is None else (check_size("num_heads", num_heads),)
        self.unit = 1 / math.sqrt(self.seq_len)
        self.weight = nn.Parameter(torch.randn(*heads, self.proj_dim, self.seq_len) * self.unit)
        self.register_load_state_dict_pre_hook(_load_stored)

    @property
    def commutes(self) -> bool:  # type: ignore[override]
        """Whether all heads share one matrix."""
        return self.weight.dim() == 2

    def forward(self, x: Tensor) -> Tensor:
        """Shape: (..., n, d) -> (..., proj_dim, d)."""
        return project(x, self.weight)


class GaussianProjection(Projection):
    """E drawn once from N(0, 1 / seq_len) and never trained: the theorems' random matrix, up to a factor.

    Args:
        seq_len, proj_dim: as LearnedProjection.
        seed: which draw; the matrix is saved with the model, so the seed is not needed to load it.

    Shape: (..., n, d) -> (..., proj_dim, d)
    Raises: as LearnedProjection.
    Linear, shared by the heads: commutes with W.

    >>> GaussianProjection(seq_len=8, proj_dim=3)(torch.zeros(2, 5, 4)).shape
    torch.Size([2, 3, 4])
    """

    commutes = True
    weight: Tensor

    def __init__(self, seq_len: int, proj_dim: int, seed: int = 0):
        super().__init__(seq_len, proj_dim)
        drawn = normal(torch.Generator().manual_seed(seed), self.proj_dim, self.seq_len)
        like = torch.empty(0)  # device and dtype, as parameters have them
        self.register_buffer("weight", (drawn / math.sqrt(self.seq_len)).to(like))

    def forward(self, x: Tensor) -> Tensor:
        """Shape: (..., n, d) -> (..., proj_dim, d)."""
        return project(x, self.weight)


class MeanPooling(Projection):
    """Slot i is the mean of window i, tokens ⌊i seq_len / proj_dim⌋ to ⌈(i + 1) seq_len / proj_dim⌉ - 1.

    Suggested in Wang et al. 2020, section 4. No parameters. Neighbouring windows share a token where proj_dim
    does not divide seq_len.

    Args: seq_len, proj_dim: as LearnedProjection.
    Shape: (..., n, d) -> (..., proj_dim, d)
    Raises: as LearnedProjection.
    Linear, shared by the heads: commutes with W.

    >>> MeanPooling(seq_len=4, proj_dim=2)(torch.arange(4.0)[:, None]).flatten()
    tensor([0.5000, 2.5000])
    """

    commutes = True

    def forward(self, x: Tensor) -> Tensor:
        """Shape: (..., n, d) -> (..., proj_dim, d)."""
        return _along_tokens(functional.adaptive_avg_pool1d, _extend(x, self.seq_len), self.proj_dim)


class MaxPooling(Projection):
    """Slot i holds the largest number of each feature in window i; windows as in MeanPooling.

    Suggested in Wang et al. 2020, section 4. No parameters.

    Args: seq_len, proj_dim: as LearnedProjection.
    Shape: (..., n, d) -> (..., proj_dim, d)
    Raises: as LearnedProjection.
    Not linear: max(X) W is not max(X W), so it does not commute with W.

    >>> MaxPooling(seq_len=4, proj_dim=2)(torch.arange(4.0)[:, None]).flatten()
    tensor([1., 3.])
    """

    def forward(self, x: Tensor) -> Tensor:
        """Shape: (..., n, d) -> (..., proj_dim, d)."""
        return _along_tokens(functional.adaptive_max_pool1d, _extend(x, self.seq_len), self.proj_dim)


class StridedConvolution(Projection):
    """A convolution with a kernel of ⌈seq_len / proj_dim⌉ tokens; window i begins at ⌊i seq_len / proj_dim⌋.

    Suggested in Wang et al. 2020, section 4, with seq_len / proj_dim as kernel and stride. Where proj_dim
    does not divide seq_len, some neighbouring windows share a token; none is empty.

    Args:
        seq_len, proj_dim: as LearnedProjection.
        d_head: features of a head, which the kernel mixes.

    Shape: (..., n, d_head) -> (..., proj_dim, d_head)
    Raises: as LearnedProjection.
    Linear, shared by the heads, but it mixes features: it does not commute with W.

    >>> StridedConvolution(seq_len=8, proj_dim=3, d_head=4)(torch.zeros(2, 5, 4)).shape
    torch.Size([2, 3, 4])
    """

    def __init__(self, seq_len: int, proj_dim: int, d_head: int):
        super().__init__(seq_len, proj_dim)
        width = math.ceil(seq_len / proj_dim)
        self.convolution = nn.Conv1d(d_head, d_head, width, stride=width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Shape: (..., n, d_head) -> (..., proj_dim, d_head)."""
        if x.size(-1) != self.convolution.in_channels:
            raise ValueError(f"x has {x.size(-1)} features, expected d_head={self.convolution.in_channels}")
        x = _extend(x, self.seq_len)
        if self.seq_len % self.proj_dim:  # otherwise the windows do not overlap
            starts = torch.arange(self.proj_dim, device=x.device) * self.seq_len // self.proj_dim
            windows = starts[:, None] + torch.arange(self.convolution.kernel_size[0], device=x.device)
            x = x.index_select(-2, windows.flatten())  # (proj_dim, width), one after another
        return _along_tokens(self.convolution, x)


def _load_stored(E: LearnedProjection, state: dict[str, Tensor], prefix: str, *_: Any) -> None:
    """Accept weights of version 1.0 too, which held √seq_len · E under the name `stored`."""
    if f"{prefix}stored" in state and f"{prefix}weight" not in state:
        state[f"{prefix}weight"] = state.pop(f"{prefix}stored") * E.unit


def check_parameter(E: LearnedProjection) -> nn.Parameter:
    """E's matrix. Raises ValueError if it is computed from others, as by weight_norm or pruning."""
    if not isinstance(E.weight, nn.Parameter):
        raise ValueError(
            f"E's weight is a {type(E.weight).__name__}, expected a Parameter: it is computed from others"
        )
    return E.weight


@torch.no_grad()
def start_at(E: LearnedProjection, weight: Tensor) -> LearnedProjection:
    """Set a learned E to this matrix, for example that of a trained layer; return E.

    Shape: weight (proj_dim, seq_len), the same for every head, or one per head (num_heads, proj_dim, seq_len)
    Raises: ValueError if the matrix has another shape, or E's own is computed, as by weight_norm.

    >>> start_at(LearnedProjection(2, 1), torch.ones(1, 2)).weight.tolist()
    [[1.0, 1.0]]
    """
    own = check_parameter(E)
    if weight.shape not in (own.shape, own.shape[-2:]):
        raise ValueError(f"the matrix is {tuple(weight.shape)}, expected {tuple(own.shape)}")
    own.copy_(weight)
    return E


def start_at_windows(E: LearnedProjection) -> LearnedProjection:
    """Set a learned E to the windows of MeanPooling, the same for every head; return E.

    >>> start_at_windows(LearnedProjection(4, 2)).weight.tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    """
    identity = torch.eye(E.seq_len, dtype=E.weight.dtype, device=E.weight.device)
    return start_at(E, MeanPooling(E.seq_len, E.proj_dim)(identity))


def empty_slots(E: Tensor, n: int) -> int:
    """Slots that read none of the first n tokens. Shape: E (proj_dim, seq_len) -> a count.

    >>> empty_slots(torch.eye(3), n=2)
    1
    """
    return int((E[:, : check_size("n", n, least=0)] == 0).all(dim=1).sum())


def _first_columns(E: Tensor, n: int) -> Tensor:
    """The first n columns of E: a view, except in a graph, where a slice would not export for every n."""
    return E.index_select(-1, torch.arange(n, device=E.device)) if graph_is_written() else E[..., :n]


def _extend(x: Tensor, length: int) -> Tensor:
    """Append zeros up to this length; a full input is not copied, except in a graph for every n."""
    missing = length - _check_length(x, length)
    return functional.pad(x, (0, 0, 0, missing)) if graph_is_written() or missing else x


def _along_tokens(operation: Callable[..., Tensor], x: Tensor, *arguments: int) -> Tensor:
    """Apply an operation of (batch, features, length) to (..., length, features)."""
    slots = operation(x.reshape(-1, *x.shape[-2:]).mT, *arguments)
    return slots.mT.reshape(*x.shape[:-2], slots.size(-1), x.size(-1))


def _check_length(x: Tensor, seq_len: int) -> int:
    n = x.size(-2)
    if n > seq_len:
        raise ValueError(f"input has {n} tokens; E and F were built for seq_len={seq_len}")
    return n
