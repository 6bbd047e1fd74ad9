"""Encoders by their settings, for the command line and for the recorded runs."""

from dataclasses import dataclass

import torch
from torch import nn

from linformer_from_scratch.encoder import Encoder, NoAttention, TokenMLP, with_sinusoids
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import (
    GaussianProjection,
    LearnedProjection,
    MeanPooling,
    Projection,
    start_at_windows,
)
from linformer_from_scratch.training.settings import LARGEST, check_ranges, setting

ATTENTIONS = ("linformer", "full", "none", "mlp")
SHARING = ("none", "headwise", "key-value", "layerwise")
PROJECTIONS = ("windows", "random", "gaussian", "mean")
POSITIONS = ("random", "sinusoids")


@dataclass(frozen=True)
class Recipe:
    """Settings of an encoder.

    Raises: ValueError if a word is unknown, a size is out of its range, or there is not one attention for
        each layer.
    """

    attention: str = setting(
        "linformer", "linformer, full, none or mlp (as many weights), or one for each layer: full+linformer"
    )
    seq_len: int = setting(128, "longest text, in tokens", least=1, most=LARGEST)
    d_model: int = setting(64, "features per token", least=1, most=LARGEST)
    num_heads: int = setting(4, "heads of each attention; they divide d_model", least=1, most=LARGEST)
    num_layers: int = setting(2, "how many blocks", least=1, most=1000)
    proj_dim: int = setting(32, "slots of Linformer, the paper's k", least=1, most=LARGEST)
    sharing: str = setting("layerwise", "none (E and F for every head), headwise, key-value or layerwise")
    projection: str = setting(
        "windows", "windows or random (where learned E and F start), gaussian or mean (fixed)"
    )
    projection_rate: float = setting(
        1.0, "times E's own rate, 1/√seq_len of the others'; √seq_len is the full rate", least=0, most=LARGEST
    )
    neighbours: int = setting(
        1, "tokens on either side that a convolution adds to each token", least=0, most=LARGEST
    )
    positions: str = setting("random", "random or sinusoids: where the learned positions start")

    def __post_init__(self) -> None:
        check_ranges(self)
        for word in self.layers:
            _check_word("attention", word, ATTENTIONS)
        _check_word("sharing", self.sharing, SHARING)
        _check_word("projection", self.projection, PROJECTIONS)
        _check_word("positions", self.positions, POSITIONS)
        if len(self.layers) != self.num_layers:
            raise ValueError(
                f"attention {self.attention} is for {len(self.layers)} layers, expected {self.num_layers}"
            )
        fixed = self.projection in ("gaussian", "mean")
        if fixed and self.sharing == "none" and "linformer" in self.layers:
            raise ValueError(
                f"{self.projection} projections have no matrix for each head; expected windows or random"
            )

    @property
    def layers(self) -> list[str]:
        """The kind of attention of each layer."""
        words = self.attention.split("+")
        return words * self.num_layers if len(words) == 1 else words


def _check_word(name: str, word: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise ValueError(f"{name} is {word!r}, expected one of {', '.join(known)}")


def encoder(recipe: Recipe, vocab_size: int) -> Encoder:
    """A fresh encoder; its weights are drawn from torch's global random state."""
    sizes = recipe.d_model, recipe.num_heads
    make = {
        "linformer": lambda pair: LinformerAttention(*sizes, *pair),
        "full": lambda pair: MultiHeadAttention(*sizes),
        "none": lambda pair: NoAttention(),
        "mlp": lambda pair: TokenMLP(recipe.d_model),
    }
    pairs = projections(recipe) if "linformer" in recipe.layers else [()] * recipe.num_layers
    layers = [make[word](pair) for word, pair in zip(recipe.layers, pairs, strict=True)]
    made = Encoder(vocab_size, recipe.seq_len, recipe.d_model, layers, recipe.neighbours)
    return with_sinusoids(made) if recipe.positions == "sinusoids" else made


def projections(recipe: Recipe) -> list[tuple[Projection, Projection]]:
    """E and F of each layer, shared by being the same object."""
    if recipe.sharing == "layerwise":
        return [(projection(recipe),) * 2] * recipe.num_layers
    if recipe.sharing == "key-value":
        return [(projection(recipe),) * 2 for _ in range(recipe.num_layers)]
    return [(projection(recipe), projection(recipe)) for _ in range(recipe.num_layers)]


def projection(recipe: Recipe) -> Projection:
    """One fresh E."""
    sizes = recipe.seq_len, recipe.proj_dim
    if recipe.projection == "mean":
        return MeanPooling(*sizes)
    if recipe.projection == "gaussian":
        return GaussianProjection(*sizes, seed=int(torch.randint(2**31, (), device="cpu")))
    E = LearnedProjection(*sizes, recipe.num_heads if recipe.sharing == "none" else None)
    return E if recipe.projection == "random" else start_at_windows(E)


def lr_scale(recipe: Recipe, model: nn.Module) -> dict[nn.Parameter, float]:
    """For the Trainer: how much faster than the other weights E and F of a recipe learn."""
    own = projection_weights(model) if recipe.projection_rate != 1 else []
    return dict.fromkeys(own, recipe.projection_rate)


def projection_weights(model: nn.Module) -> list[nn.Parameter]:
    """Every learned E and F of a model, a shared one once."""
    return [module.weight for module in model.modules() if isinstance(module, LearnedProjection)]


def parameters(model: nn.Module) -> int:
    """How many numbers of a model are trained."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
