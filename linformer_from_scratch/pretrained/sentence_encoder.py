"""A real pretrained encoder around whatever attention it is given: the capstone of chapter 12.

all-MiniLM-L6-v2 gives every text a unit vector, so that texts of like content lie close (Reimers and Gurevych
2019, Sentence-BERT). Its blocks normalise after each part, as BERT's do (Devlin et al. 2019, section 3):

    x ← LayerNorm(x + Attention(x)); x ← LayerNorm(x + FeedForward(x))
"""

from collections.abc import Callable, Iterable

from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.attention import attention_weights
from linformer_from_scratch.course.files import DATA
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.low_rank import best_rank
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.pretrained import (
    LAYER_NORM_EPSILON,
    MAX_TOKENS,
    NUM_HEADS,
    NUM_LAYERS,
    model_weights,
)
from linformer_from_scratch.projections import LearnedProjection, Projection

D_MODEL, D_FEED_FORWARD = 384, 1536
FITTED = DATA  # minilm_linformer_k128.safetensors and its model card


class Block(nn.Module):
    """One layer of BERT: attention, then a feed-forward layer on each token, a LayerNorm after either.

    Shape: x (batch, n, d_model), padding_mask (batch, n), True = a real token -> (batch, n, d_model)
    """

    def __init__(self, attention: nn.Module):
        super().__init__()
        self.attention = attention
        self.attention_norm = nn.LayerNorm(D_MODEL, LAYER_NORM_EPSILON)
        self.feed_forward = nn.Sequential(
            nn.Linear(D_MODEL, D_FEED_FORWARD), nn.GELU(), nn.Linear(D_FEED_FORWARD, D_MODEL)
        )
        self.feed_forward_norm = nn.LayerNorm(D_MODEL, LAYER_NORM_EPSILON)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Normalise after each of the two."""
        x = self.attention_norm(x + self.attention(x, padding_mask))
        return self.feed_forward_norm(x + self.feed_forward(x))


class SentenceEncoder(nn.Module):
    """all-MiniLM-L6-v2 around six attention layers, with its pretrained weights in all of them.

    Args:
        attentions: one layer for each of the six blocks, with 384 features and 12 heads, that owns `query`,
            `key`, `value` and `output`: MultiHeadAttention, LinformerAttention.

    Shape: ids (batch, n) with n <= 512, padding_mask (batch, n), True = a real token -> (batch, n, 384)
    Raises: ValueError if there are more than 512 tokens or not six layers; as model_weights.
    """

    def __init__(self, attentions: Iterable[nn.Module]):
        super().__init__()
        attentions = list(attentions)
        if len(attentions) != NUM_LAYERS:
            raise ValueError(f"got {len(attentions)} attention layers, expected {NUM_LAYERS}")
        w = model_weights()
        self.tokens = nn.Embedding.from_pretrained(
            w["embeddings.word_embeddings.weight"].clone(), freeze=False
        )
        # every text is of the first kind (token type 0), so its vector is added to all positions
        positions = (
            w["embeddings.position_embeddings.weight"] + w["embeddings.token_type_embeddings.weight"][0]
        )
        self.positions = nn.Embedding.from_pretrained(positions, freeze=False)
        self.norm = nn.LayerNorm(D_MODEL, LAYER_NORM_EPSILON)
        self.blocks = nn.ModuleList(map(Block, attentions))
        _load(self.norm, w, "embeddings.LayerNorm")
        for i, block in enumerate(self.blocks):
            name = f"encoder.layer.{i}"
            load_attention(block.attention, w, f"{name}.attention")
            _load(block.attention_norm, w, f"{name}.attention.output.LayerNorm")
            _load(block.feed_forward[0], w, f"{name}.intermediate.dense")
            _load(block.feed_forward[2], w, f"{name}.output.dense")
            _load(block.feed_forward_norm, w, f"{name}.output.LayerNorm")

    def forward(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """The vectors after the last block."""
        return self.hidden(ids, padding_mask)[-1]

    def hidden(self, ids: Tensor, padding_mask: Tensor | None = None) -> list[Tensor]:
        """The vectors after every block, six of (batch, n, 384)."""
        n = ids.size(-1)
        if n > MAX_TOKENS:
            raise ValueError(f"input has {n} tokens; the encoder has positions for {MAX_TOKENS}")
        x = self.norm(self.tokens(ids) + self.positions.weight[:n])
        found = []
        for block in self.blocks:
            x = block(x, padding_mask)
            found.append(x)
        return found

    def embed(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """A unit vector a text: the mean over its real tokens, scaled to length one. Shape: (batch, 384)."""
        return pool(self(ids, padding_mask), padding_mask)


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


def load_attention(layer: nn.Module, w: dict[str, Tensor], name: str) -> None:
    """Give a layer the pretrained weights; our layers have one bias of BERT's four, and need two.

    The key's adds the same to all scores of a query, so softmax forgets it. The value's goes through a mean
    whose weights sum to one, so the output's bias takes it up. The query's must stay, so the layer gets it.
    All three are exact for full attention (chapter 12 shows what they are for Linformer).
    """
    weights = {role: w[f"{name}.self.{role}.weight"] for role in ("query", "key", "value")}
    output, value_bias = w[f"{name}.output.dense.weight"], w[f"{name}.self.value.bias"]
    layer.query = nn.Linear(D_MODEL, D_MODEL)  # with a bias
    layer.query.bias = nn.Parameter(w[f"{name}.self.query.bias"].clone())
    for role, weight in weights.items():
        getattr(layer, role).weight = nn.Parameter(weight.clone())
    layer.output.weight = nn.Parameter(output.clone())
    layer.output.bias = nn.Parameter(w[f"{name}.output.dense.bias"] + output @ value_bias)


def full_encoder() -> SentenceEncoder:
    """The model as it was trained, with exact attention."""
    return SentenceEncoder(MultiHeadAttention(D_MODEL, NUM_HEADS) for _ in range(NUM_LAYERS))


def best_rank_encoder(rank: int) -> SentenceEncoder:
    """Every map replaced by the closest one of this rank."""
    return SentenceEncoder(BestRankAttention(D_MODEL, NUM_HEADS, rank) for _ in range(NUM_LAYERS))


def linformer_encoder(make: Callable[[], Projection]) -> SentenceEncoder:
    """Linformer in every layer; `make` gives each E and each F, twelve in all."""
    return SentenceEncoder(LinformerAttention(D_MODEL, NUM_HEADS, make(), make()) for _ in range(NUM_LAYERS))


def fitted_encoder(proj_dim: int = 128) -> SentenceEncoder:
    """Linformer in every layer with E and F as chapter 12 fitted them; minilm_linformer_k128.md says how.

    All other weights are the pretrained ones. Made for 512 tokens: shorter texts lose more (chapter 12).

    Raises: ValueError if no E and F of that size come with the course, or the file does not hold them.
    """
    path = FITTED / f"minilm_linformer_k{proj_dim}.safetensors"
    if not path.exists():
        sizes = sorted(int(p.stem.rpartition("k")[2]) for p in FITTED.glob("minilm_linformer_k*.safetensors"))
        raise ValueError(f"no fitted E and F of k={proj_dim} come with the course, only of k in {sizes}")
    model = linformer_encoder(lambda: LearnedProjection(MAX_TOKENS, proj_dim))
    expected = projections(model)
    found = {name: tensor.float() for name, tensor in load_file(path).items()}
    if {name: t.shape for name, t in found.items()} != {name: t.shape for name, t in expected.items()}:
        raise ValueError(f"{path.name} does not hold {len(expected)} matrices {proj_dim} × {MAX_TOKENS}")
    model.load_state_dict(found, strict=False)
    return model


def projections(model: SentenceEncoder) -> dict[str, Tensor]:
    """Learned E and F of every layer, by their names in the model."""
    return {name: tensor for name, tensor in model.state_dict().items() if ".E." in name or ".F." in name}


def pool(hidden: Tensor, padding_mask: Tensor | None = None) -> Tensor:
    """Unit vectors of texts: means over real tokens, scaled. Shape: (batch, n, d) -> (batch, d)."""
    if padding_mask is not None:
        hidden = hidden * padding_mask[..., None]
    return functional.normalize(hidden.sum(dim=1), dim=-1)  # a mean and a sum point the same way


def _load(module: nn.Module, w: dict[str, Tensor], name: str) -> None:
    module.load_state_dict({what: w[f"{name}.{what}"].clone() for what in ("weight", "bias")})
