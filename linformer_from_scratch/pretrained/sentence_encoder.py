"""The pretrained encoder with Linformer inside, and what to compare it with: the capstone of chapter 12."""

from collections.abc import Callable

from safetensors.torch import load_file
from torch import Tensor

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.common.files import DATA
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.low_rank import best_rank
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained.lengthwise import LengthwiseEncoder, read_layout
from linformer_from_scratch.pretrained.low_rank_updates import load_updates
from linformer_from_scratch.pretrained.network import SentenceEncoder
from linformer_from_scratch.pretrained.weights import D_MODEL, MAX_TOKENS, NUM_HEADS, NUM_LAYERS
from linformer_from_scratch.projections import LearnedProjection, Projection

FITTED = DATA  # minilm_linformer_k128: what was fitted (.safetensors), layout (.json), model card (.md)
RANK = 16  # of the updates that were fitted
FIXED, FIXED_DIM = DATA / "minilm_fixed_k128.safetensors", 128


class BestRankAttention(MultiHeadAttention):
    """Multi-head attention through the closest map of a given rank: a bound for all maps of that rank.

    Needs the whole n×n map and its singular values, so it saves nothing (Eckart and Young 1936).

    Args: d_model, num_heads: as MultiHeadAttention.
        rank: of every head's map.
    Shape: x (batch, n, d_model) -> (batch, n, d_model)
    """

    def __init__(self, d_model: int, num_heads: int, rank: int):
        super().__init__(d_model, num_heads)
        self.rank = rank

    def attend(self, q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor | None) -> Tensor:
        """With maps of which only the first singular values are kept."""
        maps = attention_weights(q, k, self.mask(q, padding_mask))
        return best_rank(maps, min(self.rank, q.size(-2))) @ v


def full_encoder() -> SentenceEncoder:
    """The model as it was trained, with exact attention."""
    return SentenceEncoder(MultiHeadAttention(D_MODEL, NUM_HEADS) for _ in range(NUM_LAYERS))


def best_rank_encoder(rank: int) -> SentenceEncoder:
    """Every map replaced by the closest one of this rank."""
    return SentenceEncoder(BestRankAttention(D_MODEL, NUM_HEADS, rank) for _ in range(NUM_LAYERS))


def linformer_encoder(make: Callable[[], Projection]) -> SentenceEncoder:
    """Linformer in every layer; `make` gives each E and each F, twelve in all."""
    return SentenceEncoder(LinformerAttention(D_MODEL, NUM_HEADS, make(), make()) for _ in range(NUM_LAYERS))


def fixed_encoder() -> SentenceEncoder:
    """Linformer in every layer with E and F of 128 slots, fitted at fixed places of 512 tokens (chapter 12).

    All other weights are the pretrained ones. Shorter texts meet the first columns only, and lose more; what
    is made for use is fitted_encoder.

    Raises: ValueError if the file does not hold them; as model_weights.
    """
    model = linformer_encoder(lambda: LearnedProjection(MAX_TOKENS, FIXED_DIM))
    expected = projections(model)
    found = {name: tensor.float() for name, tensor in load_file(FIXED).items()}
    if {name: t.shape for name, t in found.items()} != {name: t.shape for name, t in expected.items()}:
        raise ValueError(f"{FIXED.name} does not hold {len(expected)} matrices {FIXED_DIM} × {MAX_TOKENS}")
    model.load_state_dict(found, strict=False)
    return model


def fitted_encoder(proj_dim: int = 128) -> LengthwiseEncoder:
    """Texts to vectors, long ones through 128 slots: what chapter 12 fitted on texts of every length.

    Its model card, minilm_linformer_k128.md, says what it keeps and what it takes, by length.

    Raises: ValueError if no encoder of that size comes with the course; as load_updates and model_weights.
    """
    path = FITTED / f"minilm_linformer_k{proj_dim}.safetensors"
    if not path.exists():
        sizes = sorted(int(p.stem.rpartition("k")[2]) for p in FITTED.glob("minilm_linformer_k*.safetensors"))
        raise ValueError(f"no fitted encoder of k={proj_dim} comes with the course, only of k in {sizes}")
    encoder = LengthwiseEncoder(read_layout(path.with_suffix(".json")))
    load_updates(encoder.linformer, RANK, load_file(path))
    return encoder.eval()


def projections(model: SentenceEncoder) -> dict[str, Tensor]:
    """Learned E and F of every layer, by their names in the model, which can load them."""
    return {
        f"{name}.weight": module.weight.detach()
        for name, module in model.named_modules()
        if isinstance(module, LearnedProjection)
    }
