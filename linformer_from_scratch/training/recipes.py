"""Models and data by their settings: what the command line and the recorded runs have in common."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from linformer_from_scratch.data import (
    ByteVocabulary,
    MaskedBatches,
    SubwordVocabulary,
    held_out,
    pad,
    stream,
)
from linformer_from_scratch.encoder import Encoder, NoAttention
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import GaussianProjection, LearnedProjection, MeanPooling, Projection
from linformer_from_scratch.results import mean_and_spread, read_rows, select

KINDS = {"learned": LearnedProjection, "gaussian": GaussianProjection, "mean": MeanPooling}
ATTENTIONS = ("linformer", "full", "full-first", "full-last", "none")
SHARING = ("none", "headwise", "key-value", "layerwise")
PACKAGES = ("tkinter", "idlelib", "email", "distutils", "asyncio", "xml", "importlib", "lib2to3")
SHORTEST = 32  # tokens of a passage
JUDGED, JUDGED_SEED = 32, 1_000_000  # validation batches, and the seed of their windows and masks


@dataclass(frozen=True)
class Recipe:
    """Settings of an encoder.

    Args:
        attention: "linformer", "full", "none"; or "full-first", "full-last": full attention in that layer,
            Linformer in the others.
        seq_len, d_model, num_heads: sizes, as in Encoder.
        num_layers: how many blocks.
        proj_dim: slots of Linformer, the paper's k.
        sharing: "none" (E and F for every head), "headwise", "key-value" or "layerwise".
        projection: "learned", "gaussian" (drawn once, fixed) or "mean" pooling.
        neighbours: as in Encoder.

    Raises: ValueError if a word is not one of these.
    """

    attention: str = "linformer"
    seq_len: int = 128
    d_model: int = 64
    num_heads: int = 4
    num_layers: int = 2
    proj_dim: int = 32
    sharing: str = "layerwise"
    projection: str = "learned"
    neighbours: int = 1

    def __post_init__(self):
        known = {"attention": ATTENTIONS, "sharing": SHARING, "projection": tuple(KINDS)}
        for name, words in known.items():
            if getattr(self, name) not in words:
                raise ValueError(f"{name} is {getattr(self, name)!r}, expected one of {', '.join(words)}")
        if self.sharing == "none" and self.projection != "learned" and self.attention not in ("full", "none"):
            raise ValueError(
                f"{self.projection} projections have no matrix for each head, expected 'learned'"
            )


def encoder(recipe: Recipe, vocab_size: int) -> Encoder:
    """A fresh encoder; its weights come from torch's random state."""
    sizes = recipe.d_model, recipe.num_heads
    if recipe.attention == "full":
        layers = [MultiHeadAttention(*sizes) for _ in range(recipe.num_layers)]
    elif recipe.attention == "none":
        layers = [NoAttention() for _ in range(recipe.num_layers)]
    else:
        layers = [LinformerAttention(*sizes, E, F) for E, F in _projections(recipe)]
        if recipe.attention == "full-first":
            layers[0] = MultiHeadAttention(*sizes)
        if recipe.attention == "full-last":
            layers[-1] = MultiHeadAttention(*sizes)
    return Encoder(vocab_size, recipe.seq_len, recipe.d_model, layers, recipe.neighbours)


def _projections(recipe: Recipe) -> Sequence[tuple[Projection, Projection]]:
    """E and F of each layer, shared by being the same object."""
    make = _maker(recipe)
    if recipe.sharing == "layerwise":
        return [(make(),) * 2] * recipe.num_layers
    if recipe.sharing == "key-value":
        return [(make(),) * 2 for _ in range(recipe.num_layers)]
    return [(make(), make()) for _ in range(recipe.num_layers)]


def _maker(recipe: Recipe) -> Callable[[], Projection]:
    drawn = iter(range(2 * recipe.num_layers))  # another seed for each fixed matrix
    more = {"num_heads": recipe.num_heads} if recipe.sharing == "none" else {}
    return lambda: KINDS[recipe.projection](
        recipe.seq_len,
        recipe.proj_dim,
        **more,
        **({"seed": next(drawn)} if recipe.projection == "gaussian" else {}),
    )


def vocabulary_for(documents: dict[str, str], size: int) -> SubwordVocabulary | ByteVocabulary:
    """Subwords of the training documents; bytes for a size of 259."""
    if size == ByteVocabulary.size:
        return ByteVocabulary()
    hidden = set(held_out(documents))
    return SubwordVocabulary([text for title, text in documents.items() if title not in hidden], size)


def streams(documents: dict[str, str], vocabulary) -> tuple[Tensor, Tensor]:
    """Tokens of the training documents, and of those held out. Shape: (tokens,) each."""
    hidden = set(held_out(documents))
    sides = [
        [text for title, text in documents.items() if (title in hidden) is side] for side in (False, True)
    ]
    return stream(sides[0], vocabulary), stream(sides[1], vocabulary)


def judged(ids: Tensor, seq_len: int, batch_size: int, vocab_size: int) -> list[tuple[Tensor, Tensor]]:
    """The fixed batches by which every model is judged."""
    batches = MaskedBatches(ids, seq_len, batch_size, vocab_size, JUDGED_SEED)
    return [batches(i) for i in range(JUDGED)]


def passages(
    documents: dict[str, str], vocabulary, seq_len: int
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Pieces of the PACKAGES' modules, and which package each is from: for training, and held out.

    Shape: (ids (pieces, seq_len) padded, labels (pieces,)) each
    """
    hidden = set(held_out(documents))
    sides: tuple[list, list] = ([], [])
    for title, text in documents.items():
        package, ids = title.partition(".")[0], vocabulary.encode(text)
        if package in PACKAGES:
            pieces = [ids[i : i + seq_len] for i in range(0, len(ids), seq_len)]
            sides[title in hidden].extend(
                (piece, PACKAGES.index(package)) for piece in pieces if len(piece) >= SHORTEST
            )
    train, held = (
        (pad([piece for piece, _ in side], seq_len), torch.tensor([label for _, label in side]))
        for side in sides
    )
    return train, held


def recorded(experiment: str, **differing: object) -> list[dict]:
    """Rows of a recorded experiment: Linformer at k = 32 with one learned E for all, but for what differs.

    Other attentions carry the same words, which mean nothing to them: recorded("size", attention="full").
    """
    settings = {"attention": "linformer", "proj_dim": 32, "sharing": "layerwise", "projection": "learned"}
    return select(read_rows(f"08_{experiment}"), **settings | differing)


def curves_of(rows: list[dict]) -> tuple[list[int], list[list[float]]]:
    """Updates, and the held-out losses of every run."""
    updates = [point[0] for point in rows[0]["curve"]]
    return updates, [[point[1] for point in row["curve"]] for row in rows]


def final_loss(rows: list[dict]) -> tuple[float, float]:
    """Mean and standard deviation over runs of the last held-out loss."""
    return mean_and_spread([row["curve"][-1][1] for row in rows])


def parameters(model: nn.Module) -> int:
    """How many numbers are trained."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
