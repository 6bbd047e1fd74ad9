"""Fixed mixing: every output is a learned sum over places, the same in every input (chapter 14)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.common.checks import check_size


class FixedMixing(nn.Module):
    """There and back: n places -> k numbers -> n places, feature by feature; no queries.

    GELU between, as in the token mixing of Tolstikhin et al. 2021 (MLP-Mixer, arXiv 2105.01601), equation 1.

    Args:
        seq_len: places.
        proj_dim: numbers between, for each feature.

    Shape: x (batch, seq_len, d_model), padding_mask None -> as x
    """

    def __init__(self, seq_len: int, proj_dim: int):
        super().__init__()
        self.there, self.back = (
            nn.Linear(seq_len, check_size("proj_dim", proj_dim)),
            nn.Linear(proj_dim, seq_len),
        )

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Mix along the places."""
        return self.back(functional.gelu(self.there(x.mT))).mT


class FourierMixing(nn.Module):
    """A convolution over a whole grid, by its lowest frequencies.

    Li et al. 2021 (Fourier neural operator, arXiv 2010.08895), equation 4.

    Args:
        side: the grid has side · side places, row by row.
        d_model: features per place.
        modes: frequencies along each axis that are kept; of them each has a matrix of features.

    Shape: x (batch, side · side, d_model) -> as x
    """

    def __init__(self, side: int, d_model: int, modes: int = 8):
        super().__init__()
        self.side, self.modes = side, modes
        self.weight = nn.Parameter(torch.randn(2, modes, modes, d_model, d_model, 2) / d_model)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """To frequencies, matrix by matrix, and back."""
        grid = x.mT.unflatten(2, (self.side, self.side))
        waves, weight, k = torch.fft.rfft2(grid), torch.view_as_complex(self.weight), self.modes
        out = torch.zeros_like(waves)
        out[:, :, :k, :k] = torch.einsum("bixy,xyio->boxy", waves[:, :, :k, :k], weight[0])
        out[:, :, -k:, :k] = torch.einsum("bixy,xyio->boxy", waves[:, :, -k:, :k], weight[1])
        return torch.fft.irfft2(out, s=(self.side, self.side)).flatten(2).mT
