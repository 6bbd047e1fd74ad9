"""A Transformer encoder around whatever attention it is given, and heads for two tasks (chapter 08).

x ← x + Attention(LayerNorm(x)); x ← x + FeedForward(LayerNorm(x))          pre-norm, Xiong et al. 2020
x ← LayerNorm(x + Attention(x)); x ← LayerNorm(x + FeedForward(x))          post-norm, Vaswani et al. 2017

An attention layer is any module that takes x (batch, n, d_model) and padding_mask (batch, n), True = a real
token, and returns the shape of x: MultiHeadAttention, LinformerAttention, or one of your own.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from linformer_from_scratch.common.checks import check_ids, check_mask, check_size


class Block(nn.Module):
    """One layer: attention mixes tokens, the feed-forward layer works on each token alone.

    Normalises before each of the two, not after: then the sum x runs through unchanged from the first layer
    to the last, and a deep encoder trains without a long warm-up (Xiong et al. 2020, arXiv 2002.04745).

    Args:
        d_model: features per token.
        attention: any layer that this module's docstring describes.
        dropout: share of numbers set to zero, while training, in what is added to x.
        mlp_ratio: features inside the feed-forward layer, a multiple of d_model (Vaswani et al. 2017, 3.3).
        norm_first: False normalises after each of the two, as the first Transformers and BERT do.
        eps: added to the variance in each LayerNorm.

    Shape: x (batch, n, d_model), padding_mask (batch, n) -> (batch, n, d_model)
    """

    def __init__(
        self,
        d_model: int,
        attention: nn.Module,
        dropout: float = 0.0,
        mlp_ratio: int = 4,
        norm_first: bool = True,
        eps: float = 1e-5,
    ):
        super().__init__()
        mlp_ratio = check_size("mlp_ratio", mlp_ratio)
        self.norm_first = norm_first
        self.attention_norm = nn.LayerNorm(d_model, eps)
        self.attention = attention
        self.feed_forward_norm = nn.LayerNorm(d_model, eps)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, mlp_ratio * d_model), nn.GELU(), nn.Linear(mlp_ratio * d_model, d_model)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Add the output of attention, then that of the feed-forward layer."""
        if self.norm_first:
            x = x + self.dropout(self.attention(self.attention_norm(x), padding_mask))
            return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        x = self.attention_norm(x + self.dropout(self.attention(x, padding_mask)))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))


class NoAttention(nn.Module):
    """Reads nothing and adds nothing: the encoder that is left shows what attention is worth.

    Shape: x (batch, n, d_model), padding_mask (batch, n) -> zeros (batch, n, d_model)
    """

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Zeros in the shape of x."""
        check_mask("padding_mask", padding_mask, x)
        return torch.zeros_like(x)


class TokenMLP(nn.Module):
    """As many weights as multi-head attention, 4 · d_model², and nothing is read: each token stays alone.

    The control for what attention's weights do besides reading other tokens.

    Args: d_model: features per token.
    Shape: x (batch, n, d_model), padding_mask (batch, n) -> (batch, n, d_model)
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(d_model, 2 * d_model), nn.GELU(), nn.Linear(2 * d_model, d_model)
        )

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Two linear layers, token by token."""
        check_mask("padding_mask", padding_mask, x)
        return self.layers(x)


def sinusoids(n: int, d_model: int) -> Tensor:
    """Position vectors in which a shift is a rotation (Vaswani et al. 2017, section 3.5).

    Shape: (n, d_model)
    """
    n, d_model = check_size("n", n), check_size("d_model", d_model)
    pairs = torch.arange(0, d_model, 2, dtype=torch.float32)  # a half has too few digits for an angle
    angles = torch.arange(n)[:, None] * 10_000 ** (-pairs / d_model)
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :d_model]
    return waves.to(torch.get_default_dtype())


def with_sinusoids(encoder: "Encoder") -> "Encoder":
    """The encoder, whose positions begin as `sinusoids`."""
    with torch.no_grad():
        encoder.positions.weight.copy_(sinusoids(*encoder.positions.weight.shape))
    return encoder


class Encoder(nn.Module):
    """Token ids to vectors that know their context.

    x = √d_model · token + position, then the blocks, then a LayerNorm     Vaswani et al. 2017, section 3.4

    Args:
        vocab_size: how many different tokens there are.
        seq_len: longest input, in tokens; every position has a learned vector.
        d_model: features per token.
        attentions: one attention layer for each block. Layers that hold the same E and F share them
            (layerwise sharing, Wang et al. 2020, section 4).
        neighbours: tokens on either side that a convolution adds to each token before the first block; 0 for
            none, as in the paper. With 1, a small model learns in minutes what would otherwise take hours.
        dropout: as Block, and of the embeddings.

    Shape: ids (batch, n) with n <= seq_len, padding_mask (batch, n), True = a real token
        -> (batch, n, d_model)
    Raises: ValueError as check_ids and check_mask, if there are more than seq_len tokens, or if no
        attention layer is given.
    """

    def __init__(
        self,
        vocab_size: int,
        seq_len: int,
        d_model: int,
        attentions: Sequence[nn.Module],
        neighbours: int = 0,
        dropout: float = 0.0,
    ):
        super().__init__()
        if not attentions:
            raise ValueError("got 0 attention layers, expected at least 1")
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(seq_len, d_model)
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=d_model**-0.5)
        width = 2 * check_size("neighbours", neighbours, least=0) + 1
        self.neighbours = nn.Conv1d(d_model, d_model, width, padding="same") if neighbours else None
        self.blocks = nn.ModuleList(Block(d_model, attention, dropout) for attention in attentions)
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Embed tokens and positions, then one block after another."""
        x = self.dropout(self.embed(ids, padding_mask))
        for block in self.blocks:
            x = block(x, padding_mask)
        return self.norm(x)

    def embed(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """The input of the first block. Shape: as forward."""
        check_ids(ids, self.tokens.num_embeddings)
        check_mask("padding_mask", padding_mask, ids)
        n, seq_len = ids.size(-1), self.positions.num_embeddings
        if n > seq_len:
            raise ValueError(f"input has {n} tokens; the encoder has positions for seq_len={seq_len}")
        x = math.sqrt(self.tokens.embedding_dim) * self.tokens(ids) + self.positions.weight[:n]
        if self.neighbours is None:
            return x
        if padding_mask is not None:
            x = x.masked_fill(~padding_mask[..., None], 0.0)  # no token has padding as its neighbour
        return x + self.neighbours(x.mT).mT


class MaskedLanguageModel(nn.Module):
    """Which token stood there? Scores of every token of the vocabulary (BERT, Devlin et al. 2019, 3.1).

    The last matrix is the embedding of the tokens itself (weight tying, Press and Wolf 2017).

    Args: encoder: an Encoder.
    Shape: ids (batch, n), padding_mask (batch, n), where (batch, n) -> (batch, n, vocab_size), or
        (number of True in where, vocab_size): scores only where they are asked for, which is cheaper
    Raises: ValueError as Encoder, or if where does not hold a boolean for each token.
    """

    def __init__(self, encoder: Encoder):
        super().__init__()
        d_model = encoder.tokens.embedding_dim
        self.encoder = encoder
        self.transform = nn.Sequential(nn.Linear(d_model, d_model), nn.GELU(), nn.LayerNorm(d_model))
        self.vocabulary = nn.Linear(d_model, encoder.tokens.num_embeddings)
        self.vocabulary.weight = encoder.tokens.weight
        nn.init.zeros_(self.vocabulary.bias)

    def forward(self, ids: Tensor, padding_mask: Tensor | None = None, where: Tensor | None = None) -> Tensor:
        """Encode all tokens; score the vocabulary at some of them, or at all."""
        check_ids(ids, self.encoder.tokens.num_embeddings)
        check_mask("where", where, ids)
        x = self.encoder(ids, padding_mask)
        return self.vocabulary(self.transform(x if where is None else x[where]))


class Classifier(nn.Module):
    """Which class does the whole text belong to? Scores from the mean of its real tokens.

    Args:
        encoder: an Encoder, fresh or pretrained.
        num_classes: how many classes.

    Shape: ids (batch, n), padding_mask (batch, n) -> (batch, num_classes); of padding alone, the bias
    Raises: ValueError as Encoder.
    """

    def __init__(self, encoder: Encoder, num_classes: int):
        super().__init__()
        self.encoder = encoder
        self.classes = nn.Linear(encoder.tokens.embedding_dim, num_classes)

    def forward(self, ids: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Encode, take the mean over real tokens, score the classes."""
        x = self.encoder(ids, padding_mask)
        if padding_mask is None:
            return self.classes(x.mean(dim=1))
        real = padding_mask[..., None].to(x.dtype)
        return self.classes((x * real).sum(dim=1) / real.sum(dim=1).clamp(min=1))
