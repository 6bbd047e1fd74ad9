"""Models that write (chapters 00, 12): language models of bytes, as the package carries them."""

from collections.abc import Callable

from safetensors.torch import load_file
from torch import Tensor, nn

from linformer_from_scratch.common.files import DATA
from linformer_from_scratch.data import ByteVocabulary, docstrings
from linformer_from_scratch.efficient import EfficientAttention, sliding_window_attention
from linformer_from_scratch.encoder import Encoder, MaskedLanguageModel
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import LearnedProjection, start_at_windows
from linformer_from_scratch.training.corpora import streams

SEQ_LEN, D_MODEL, NUM_HEADS, SLOTS = 128, 64, 4, 32
WEIGHTS = DATA / "writers.safetensors"  # of the models of seed 0, in half precision; a prefix names each
GIVEN = (16, 32, 64, 96, 127)  # tokens, of a text yet to be written
WRITERS: dict[str, Callable[[], nn.Module]] = {
    "full, causal": lambda: MultiHeadAttention(D_MODEL, NUM_HEADS, causal=True),
    "sliding window, causal": lambda: EfficientAttention(D_MODEL, NUM_HEADS, window_before),
    "Linformer": lambda: LinformerAttention(D_MODEL, NUM_HEADS, *(windows(), windows())),
}


def windows() -> LearnedProjection:
    """A learned E that begins as means of windows."""
    return start_at_windows(LearnedProjection(SEQ_LEN, SLOTS))


def window_before(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """This token and the SLOTS before it."""
    return sliding_window_attention(q, k, v, SLOTS, causal=True)


def untrained(attention: str) -> nn.Module:
    """A language model with an attention of WRITERS in its two layers."""
    layers = [WRITERS[attention]() for _ in range(2)]
    return MaskedLanguageModel(Encoder(ByteVocabulary.size, SEQ_LEN, D_MODEL, layers))


def held_out() -> Tensor:
    """Texts that no model was trained on: (256, SEQ_LEN + 1) bytes."""
    _, held = streams(docstrings(), ByteVocabulary())
    return held.unfold(0, SEQ_LEN + 1, SEQ_LEN + 1)[:256]


def writer(attention: str) -> nn.Module:
    """The model of seed 0 after all its updates, as the package carries it."""
    model = untrained(attention)
    prefix = f"{attention}."
    stored = {name: one.float() for name, one in load_file(WEIGHTS).items() if name.startswith(prefix)}
    model.load_state_dict({name.removeprefix(prefix): tensor for name, tensor in stored.items()})
    return model.eval()
