"""Four heads of the pretrained encoder on two texts, stored with E and F fitted to them on others."""

import json
from functools import cache
from typing import NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor

from linformer_from_scratch.common.files import DATA

HEADS_FILE = DATA / "minilm_heads.safetensors"  # their tokens are beside it, in a .json
STORED_HEADS = (5, 6), (1, 5), (1, 3), (4, 2)  # layer and head, counted from 1
STORED_DIMS = 2, 4, 8, 16, 32, 64  # slots of the fitted E and F
MANUAL = "manual"  # a page of it; the other text is "story", STORY of maps.py


class StoredHead(NamedTuple):
    """One head on 128 tokens of a text, and E and F fitted to it on other texts.

    q, k, v: (n, 32).
    learned: proj_dim -> (E, F), each (proj_dim, n).
    """

    q: Tensor
    k: Tensor
    v: Tensor
    learned: dict[int, tuple[Tensor, ...]]


@cache
@torch.inference_mode(False)  # the cached tensors may need gradients later
def stored_heads(text: str = MANUAL) -> dict[tuple[int, int], StoredHead]:
    """The STORED_HEADS (from float16), by layer and head; tools/make_data.py fits E and F.

    Args:
        text: "manual" or "story".
    """
    stored = {name: rounded.float() for name, rounded in load_file(HEADS_FILE).items()}
    heads = {}
    for layer, head in STORED_HEADS:
        learned = {size: tuple(stored[f"{layer}.{head} learned {size}"]) for size in STORED_DIMS}
        q, k, v = stored[f"{layer}.{head} {text}"]
        heads[layer, head] = StoredHead(q, k, v, learned)
    return heads


def stored_tokens(text: str = MANUAL) -> list[str]:
    """The n tokens that the STORED_HEADS read."""
    return json.loads(HEADS_FILE.with_suffix(".json").read_text(encoding="utf-8"))["tokens"][text]
