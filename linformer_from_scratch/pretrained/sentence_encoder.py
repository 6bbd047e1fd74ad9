"""The pretrained encoder with Linformer inside, and encoders to compare with: the capstone of chapter 12."""

from collections.abc import Callable

from safetensors.torch import load_file
from torch import Tensor

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.common.files import DATA
from linformer_from_scratch.encoder import NoAttention
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.low_rank import best_rank
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained.lengthwise import LengthwiseEncoder, read_layout
from linformer_from_scratch.pretrained.low_rank_updates import load_updates
from linformer_from_scratch.pretrained.network import SentenceEncoder
from linformer_from_scratch.pretrained.weights import D_MODEL, MAX_TOKENS, NUM_HEADS, NUM_LAYERS
from linformer_from_scratch.projections import LearnedProjection, Projection

FITTED = DATA  # minilm_linformer_k128: fitted updates (.safetensors), layout (.json), model card (.md)
RANK = 16  # of the fitted updates
FIXED, FIXED_DIM = DATA / "minilm_fixed_k128.safetensors", 128


class BestRankAttention(MultiHeadAttention):
    """Multi-head attention with the closest map of a given rank: a bound for all maps of that rank.

    Needs the whole n×n map and its singular values, so it saves nothing (Eckart and Young 1936).

    Args:
        d_model, num_heads: as MultiHeadAttention.
        rank: of every head's map.

    Shape: x (batch, n, d_model) -> (batch, n, d_model)
    """

    def __init__(self, d_model: int, num_heads: int, rank: int):
        super().__init__(d_model, num_heads)
        self.rank = check_size("rank", rank, least=0)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor | None) -> Tensor:
        """With maps that keep only their first singular values."""
        maps = attention_weights(q, k, self.mask(q, padding_mask))
        if padding_mask is not None:
            maps = maps.masked_fill(~padding_mask[:, None, :, None], 0.0)  # a rank is that of all rows
        return best_rank(maps, min(self.rank, q.size(-2))) @ v


def full_encoder() -> SentenceEncoder:
    """The pretrained model, with exact attention."""
    return SentenceEncoder(MultiHeadAttention(D_MODEL, NUM_HEADS) for _ in range(NUM_LAYERS))


def silent_encoder() -> SentenceEncoder:
    """The pretrained model without attention: every layer's returns zeros, so a token sees no other."""
    model = full_encoder()
    for block in model.blocks:
        block.attention = NoAttention()
    return model


def best_rank_encoder(rank: int) -> SentenceEncoder:
    """The pretrained model with every map replaced by the closest one of this rank."""
    return SentenceEncoder(BestRankAttention(D_MODEL, NUM_HEADS, rank) for _ in range(NUM_LAYERS))


def linformer_encoder(make: Callable[[], Projection]) -> SentenceEncoder:
    """Linformer in every layer; `make` gives each E and each F, twelve in all."""
    return SentenceEncoder(LinformerAttention(D_MODEL, NUM_HEADS, make(), make()) for _ in range(NUM_LAYERS))


def fixed_encoder() -> SentenceEncoder:
    """Linformer in every layer with E and F of 128 slots, fitted at fixed places of 512 tokens (chapter 12).

    All other weights are the pretrained ones. Shorter texts use the first columns only, and lose more;
    fitted_encoder is the one to use.

    Raises: as model_weights.
    """
    model = linformer_encoder(lambda: LearnedProjection(MAX_TOKENS, FIXED_DIM))
    model.load_state_dict({name: E.float() for name, E in load_file(FIXED).items()}, strict=False)
    return model


def fitted_encoder(proj_dim: int = 128) -> LengthwiseEncoder:
    """Texts to vectors, long ones through 128 slots: fitted in chapter 12 on texts of all lengths.

    Its model card, minilm_linformer_k128.md, gives its accuracy and its time by length.

    Raises: ValueError if the course has no encoder of that size; as load_updates and model_weights.
    """
    path = FITTED / f"minilm_linformer_k{proj_dim}.safetensors"
    if not path.exists():
        raise ValueError(f"no fitted encoder of k={proj_dim} comes with the course, only that of k=128")
    encoder = LengthwiseEncoder(read_layout(path.with_suffix(".json")))
    load_updates(encoder.linformer, RANK, load_file(path))
    return encoder.eval()


def projections(model: SentenceEncoder) -> dict[str, Tensor]:
    """Learned E and F of every layer, under the names by which the model can load them."""
    return {
        f"{name}.weight": module.weight.detach()
        for name, module in model.named_modules()
        if isinstance(module, LearnedProjection)
    }
