"""Fixed mixing: every output is a learned sum over places, the same in every input (chapter 14)."""

from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.heads import finite_padding, real_tokens


class FixedMixing(nn.Module):
    """There and back: n places -> k numbers -> n places, feature by feature; no queries.

    GELU between, as in the token mixing of Tolstikhin et al. 2021 (MLP-Mixer, arXiv 2105.01601), equation 1.

    Args:
        seq_len: places.
        proj_dim: numbers between, for each feature.

    Shape: x (batch, seq_len, d_model), padding_mask (batch, seq_len) with True = a real token -> as x
    """

    def __init__(self, seq_len: int, proj_dim: int):
        super().__init__()
        self.there, self.back = (
            nn.Linear(seq_len, check_size("proj_dim", proj_dim)),
            nn.Linear(proj_dim, seq_len),
        )

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Mix along the places."""
        x = real_tokens(finite_padding(x, padding_mask), padding_mask)
        return self.back(functional.gelu(self.there(x.mT))).mT
